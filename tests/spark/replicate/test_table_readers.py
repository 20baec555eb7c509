"""Tables read without Spark: each reader has the rows that Spark has, or refuses the table."""

import logging
import os
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pgoutput_construct import lake as lake_tables
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.lake._directories import directory_name
from pgoutput_construct.spark._replicate import read_current, replicate
from tests.postgres.shop import Shop
from tests.spark.replicate import table_readers
from tools.environments import READERS, missing_environment, python_with

pytestmark = [pytest.mark.server, pytest.mark.spark]

BY_LAKE = ("lake", "duckdb", "polars")
"""Readers that go by ``pgoutput_construct.lake``."""
VALUES = """
    id bigint PRIMARY KEY, b boolean, s smallint, i int, f real, d double precision, n numeric(12, 4),
    wide numeric(38, 10), any_n numeric, t text, x bytea, day date, at timestamp, z timestamptz, u uuid, j jsonb,
    ints int[], days date[], ns numeric(6, 2)[], "Odd.näme" text, big text
"""
TABLES = (
    f'CREATE TABLE "Select" ({VALUES})',
    'ALTER TABLE "Select" ALTER big SET STORAGE EXTERNAL',
    'CREATE TABLE "Mapped" (id int PRIMARY KEY, v text)',
    """INSERT INTO "Select" SELECT i, i % 2 = 0, -i, i * 1000, i / 7.0, 'NaN', i / 3.0, 1234567890123456789.0123456789,
        i / 3.0, 'ä' || i, decode('00ff', 'hex'), '2020-01-01'::date + i, '1850-06-01 12:00:00.000001',
        '2020-06-01 12:00+02', md5(i::text)::uuid, '{"a": 1}', array[i, NULL], array['2020-01-01', NULL]::date[],
        array[1.5, NULL], 'odd', repeat('b', 3000) FROM generate_series(1, 10) i""",
    'INSERT INTO "Select" VALUES (11), (12)',
    """INSERT INTO "Select" (id, day, at, z, days) SELECT 60 + n, v, v, v AT TIME ZONE 'UTC', array[v::date, NULL]
        FROM unnest('{9999-12-31 23:59:59.999999, 0001-01-01, 1582-10-10 12:00, 1500-02-28 01:02:03}'::timestamp[])
        WITH ORDINALITY _ (v, n)""",
    """INSERT INTO "Mapped" VALUES (1, 'a'), (2, 'b'), (3, NULL)""",
)
ROUNDS = (
    # merged
    (
        "UPDATE \"Select\" SET day = 'infinity', z = '-infinity', n = 'NaN', ints = '[0:0]={1}', i = NULL WHERE id < 4",
        'DELETE FROM "Select" WHERE id = 5',
        'UPDATE "Select" SET id = id + 100 WHERE id = 6',
        "INSERT INTO \"Select\" (id, days) VALUES (20, '{infinity}'), (21, '{}')",
        'UPDATE "Mapped" SET v = v || v',
    ),
    # replaced
    (
        'TRUNCATE "Mapped"',
        "INSERT INTO \"Mapped\" VALUES (9, 'after')",
        'ALTER TABLE "Select" ADD later time',
        "UPDATE \"Select\" SET later = '12:00' WHERE id = 7",
    ),
)


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path, lake: Any) -> Iterator[Shop]:
    """A database, where there is what reads without Spark."""
    if problem := missing_environment(READERS):
        pytest.skip(problem)
    with Shop.create(server18, "table_readers", tmp_path / "log") as shop:
        yield shop


def _read(reader: str, table: Path | str, warehouse: Path) -> "subprocess.CompletedProcess[str]":
    arguments = [python_with(READERS), table_readers.__file__, reader, table, warehouse / "read.arrow"]
    project = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    return subprocess.run(arguments, check=False, capture_output=True, text=True, timeout=120, env=project)


def _check_equal(spark: Any, warehouse: Path, name: str, *readers: str) -> None:
    """Compare what readers have of a table with what Spark has."""
    expected = _sorted(read_current(spark, warehouse, f'public."{name}"').toArrow())
    for reader in readers:
        found = _locate(warehouse, f'public."{name}"') if reader not in BY_LAKE else f'{warehouse}:public."{name}"'
        done = _read(reader, found, warehouse)
        assert done.returncode == 0, f"{reader}: {done.stderr}"
        with pa.ipc.open_file(warehouse / "read.arrow") as file:
            assert _sorted(file.read_all()) == expected, reader


def _locate(warehouse: Path, table: str) -> str:
    return lake_tables.locate(warehouse, table).path


def _sorted(rows: pa.Table) -> list[str]:
    return sorted(repr({name: _plain(value) for name, value in row.items()}) for row in rows.to_pylist())


def _plain(value: Any) -> Any:
    """Return a value in the one form of those that readers have of it: Polars has lists of entries for maps.

    UTC has several names.
    """
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).isoformat()
    if isinstance(value, list):
        return [tuple(item.values()) if isinstance(item, dict) else item for item in value]
    return value


@pytest.mark.parametrize(
    ("into", "readers", "each_time"),
    [
        ("parquet", BY_LAKE[1:], False),
        pytest.param("parquet", BY_LAKE, True, marks=pytest.mark.long),
        pytest.param("iceberg", ("lake", "pyiceberg", "polars-iceberg"), True, marks=pytest.mark.long),
    ],
    ids=["parquet", "parquet-batch by batch", "iceberg"],
)
def test_tables_in_parts(
    lake: Any, shop: Shop, tmp_path: Path, into: str, readers: tuple[str, ...], each_time: bool
) -> None:
    """Rows that batches replaced are still in the files, and do not count."""
    warehouse = tmp_path / "wh"
    for statements in (TABLES, ROUNDS[0]):
        shop.execute(*statements)
        shop.capture(snapshot=True)
        replicate(lake, shop.directory, warehouse, into, ['public."Select"'], write_mode="merge-on-read")
        if each_time or statements is ROUNDS[0]:
            _check_equal(lake, warehouse, "Select", *readers)


@pytest.mark.long
def test_the_rows_that_spark_has(lake: Any, shop: Shop, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Written, merged and replaced: every type, NULL, what types cannot hold; then with a name that Parquet refuses."""
    readers, warehouse = ("deltalake", "polars-delta", "lake"), tmp_path / "wh"
    chosen = ['public."Select"', '"Mapped"']
    for statements in (TABLES, *ROUNDS):
        shop.execute(*statements)
        shop.capture(snapshot=True)
        replicate(lake, shop.directory, warehouse, "delta", tables=chosen)
        for name in ("Select", "Mapped"):
            _check_equal(lake, warehouse, name, *readers)
    assert "column mapping" not in "\n".join(caplog.messages)
    _check_mapped(lake, shop, warehouse, caplog)


def _check_mapped(lake: Any, shop: Shop, warehouse: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A column comes whose name needs column mapping, which is said once; and goes: then the table has none."""
    table = warehouse / directory_name("public", "Mapped")
    with caplog.at_level(logging.WARNING):
        for statement in ('ALTER TABLE "Mapped" ADD "a (b)" int', 'INSERT INTO "Mapped" VALUES (10, NULL, 1)'):
            shop.execute(statement, 'UPDATE "Mapped" SET v = v || 1')
            shop.capture(snapshot=True)
            replicate(lake, shop.directory, warehouse, "delta")
    assert [record.getMessage() for record in caplog.records if "column mapping" in record.getMessage()] == [
        'public."Mapped" is written with Delta Lake\'s column mapping, which readers must support: some refuse such '
        "a table, some (delta-rs) read NULL in all columns; rename 'a (b)' to read it with any"
    ]
    rows = read_current(lake, warehouse, '"Mapped"').select("id", "v", "`a (b)`")
    assert set(map(tuple, rows.collect())) == {(9, "after11", None), (10, None, 1)}
    assert "column mapping" in _read("polars-delta", table, warehouse).stderr
    shop.execute('ALTER TABLE "Mapped" RENAME "a (b)" TO c', 'UPDATE "Mapped" SET c = 2 WHERE id = 9')
    shop.capture(snapshot=True)
    replicate(lake, shop.directory, warehouse, "delta")
    # Polars goes by the version of the protocol, which a table keeps.
    _check_equal(lake, warehouse, "Mapped", "deltalake")
