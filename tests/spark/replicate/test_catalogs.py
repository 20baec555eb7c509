"""Tables of Iceberg in a catalog that others use, too: one in SQLite, or a REST catalog, shared with pyiceberg."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest

import pgoutput_construct as pgo
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.spark._table_formats.sink import PartitionField
from pgoutput_construct.spark._table_formats.sinks import write_options_of
from tests.postgres.shop import Shop
from tests.spark.replicate import table_readers
from tools.environments import READERS, missing_environment, python_with
from tools.few_rows import FEW_ROWS
from tools.jars import missing_jars
from tools.rest_catalog import missing_rest_catalog, rest_catalog

_PACKAGE = "org.xerial:sqlite-jdbc:3.50.3.0"


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """A table in a log."""
    with Shop.create(server18, "catalogs", tmp_path / "log") as shop:
        shop.execute(
            "CREATE TABLE event (id int PRIMARY KEY, at timestamptz, note text)",
            "INSERT INTO event SELECT i, '2026-01-01T00:00Z'::timestamptz + i * '6 hours'::interval, i::text "
            "FROM generate_series(1, 20) i",
        )
        shop.capture(snapshot=True)
        yield shop


class Catalog(NamedTuple):
    """A catalog that Spark and pyiceberg share."""

    settings: Mapping[str, str]
    """Of Spark's catalog, after its name."""
    reader: str
    """One of those of ``table_readers``,"""
    place: str
    """and where it finds the catalog."""


@pytest.fixture(params=["sql", "rest"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    """Each kind of catalog in turn, where there is what it needs."""
    database, warehouse = tmp_path / "catalog.db", str(tmp_path / "tables")
    if problem := missing_environment(READERS) or missing_jars():
        pytest.skip(problem)
    if request.param == "sql":
        uri = {"type": "jdbc", "uri": f"jdbc:sqlite:{database}", "jdbc.schema-version": "V1"}
        yield Catalog({**uri, "warehouse": warehouse}, "sql-catalog", str(database))
        return
    if problem := missing_rest_catalog():
        pytest.skip(problem)
    with rest_catalog(tmp_path / "server") as address:
        yield Catalog({"type": "rest", "uri": address}, "rest-catalog", address)


def _replicate(
    shop: Shop, shared: Catalog, place: Path, *options: str, notes: str = "wh"
) -> "subprocess.CompletedProcess[str]":
    """Replicate the table in a process of its own, as its user does."""
    catalog = "spark.sql.catalog.shared"
    conf = {
        **FEW_ROWS,
        "spark.jars.packages": _PACKAGE,
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        **{f"{catalog}.{name}": value for name, value in shared.settings.items()},
        f"{catalog}.cache-enabled": "false",
    }
    given = [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
    command = ["replicate", str(shop.directory), "--into", "iceberg", "--warehouse", str(place / notes), "--once"]
    return subprocess.run(
        [sys.executable, "-m", "pgoutput_construct.cli", *command, "--table", "public.event", *given, *options],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "COLUMNS": "200"},
    )


def _read(shared: Catalog, table: str, output: Path) -> tuple[str, pa.Table]:
    """Read a table of the catalog by pyiceberg; return what it says of it, and its rows."""
    read = subprocess.run(
        [python_with(READERS), table_readers.__file__, shared.reader, f"{shared.place}:{table}", output],
        check=False,
        capture_output=True,
        text=True,
    )
    assert read.returncode == 0, read.stderr
    with pa.ipc.open_file(output) as file:
        return read.stdout, file.read_all()


@pytest.mark.long
@pytest.mark.server
@pytest.mark.spark
def test_a_shared_catalog(shop: Shop, shared: Catalog, tmp_path: Path) -> None:
    """Written, partitioned, merged into, and read by another program; what others have there stays as it is."""
    chosen = ["--catalog", "shared", "--partition-by", "public.event=day(at), bucket(4, id)"]
    done = _replicate(shop, shared, tmp_path, *chosen)
    assert done.returncode == 0, done.stderr
    shop.execute("UPDATE event SET note = 'new' WHERE id = 3", "DELETE FROM event WHERE id = 4")
    shop.capture()
    done = _replicate(shop, shared, tmp_path, *chosen)
    assert done.returncode == 0, done.stderr
    said, read = _read(shared, "public.event", tmp_path / "read.arrow")
    assert "day(2)" in said and "bucket[4](1)" in said
    rows = {row["id"]: row["note"] for row in read.to_pylist()}
    assert rows == {number: "new" if number == 3 else str(number) for number in range(1, 21) if number != 4}
    refused = _replicate(shop, shared, tmp_path)
    assert refused.returncode == 1 and "its tables are in the catalog 'shared': give --catalog shared" in refused.stderr
    problem = "`event` exists already, and is not of this warehouse (it has the columns that are to be written)"
    refused = _replicate(shop, shared, tmp_path, *chosen, notes="other")
    assert refused.returncode == 1 and problem in refused.stderr
    done = _replicate(shop, shared, tmp_path, *chosen, "--adopt", notes="other")
    assert done.returncode == 0, done.stderr
    shutil.rmtree(tmp_path / "other")  # such as on another machine, where the path is the same
    refused = _replicate(shop, shared, tmp_path, *chosen, notes="other")
    assert refused.returncode == 1 and problem in refused.stderr


def test_partitionings() -> None:
    """As they are written, and what a format does not have."""
    assert PartitionField.parse("day(at)") == PartitionField("day", "at")
    assert PartitionField.parse(" bucket( 16 , id ) ".replace("( 16", "(16")) == PartitionField("bucket", "id", 16)
    assert PartitionField.parse("Region") == PartitionField("identity", "Region")
    assert PartitionField.parse('day("at")') == PartitionField("day", "at")
    for column in ("at", "Region", '"odd"', 'a "b"'):
        for field in (PartitionField("identity", column), PartitionField("bucket", column, 4)):
            assert PartitionField.parse(str(field)) == field
    options = write_options_of("iceberg", None, {}, 0, None, {"public.t": ["day(at)"], "PUBLIC.t": ["id"]})
    assert [*map(str, options.partitions["public.t"])] == ["day(at)", "id"]
    for wrong in ("bucket(id)", "day(", "week(at)", ""):
        with pytest.raises(pgo.PgoutputError, match="invalid partition expression"):
            PartitionField.parse(wrong)
    with pytest.raises(pgo.PgoutputError, match="Delta Lake partitions by the values of columns alone"):
        write_options_of("delta", None, {}, 0, None, {"t": ["day(at)"]})
    with pytest.raises(pgo.PgoutputError, match="Parquet files are not partitioned"):
        write_options_of("parquet", None, {}, 0, None, {"t": ["at"]})
    with pytest.raises(pgo.PgoutputError, match="a catalog has tables of Iceberg"):
        write_options_of("delta", None, {}, 0, "shared")
