"""Tables of other programs that exist where tables are to be written: refused with what differs, or replaced."""

import logging
from pathlib import Path
from typing import Any

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.lake import read
from pgoutput_construct.lake._notes import Warehouse
from pgoutput_construct.spark import open_log
from pgoutput_construct.spark._replicate import read_current, replicate
from pgoutput_construct.spark._table_formats.iceberg_sink import IcebergSink
from tests.spark.logs import write_orders
from tests.table_formats import SHORT_IN_PARQUET

pytestmark = pytest.mark.spark

DIFFERENCES = (
    r"column 'id' is string there, and would be int; it lacks '_commit_lsn', '_seq', '_untyped', .*; "
    r"it has in addition 'extra'\): drop or rename it, replicate to another location, or give --adopt"
)


_UNREADABLE = r"orders exists already, .* \(Spark cannot read it as a table\)"


def _create_other(spark: Any, warehouse: Path, into: str) -> None:
    """Have another program create a table where the one of the log is to be written."""
    rows = spark.createDataFrame([("a", 1)], "id string, extra int")
    if into == "iceberg":
        sink = IcebergSink(Warehouse(warehouse))
        sink.prepare(spark)
        name = sink._table("public.orders")
        spark.sql(f"CREATE NAMESPACE {name.rpartition('.')[0]}")
        rows.writeTo(name).create()
    else:
        rows.write.format(into).save(str(warehouse / "public.orders"))


def _check_rows(spark: Any, log: Path, warehouse: Path) -> None:
    columns = ("id", "total")
    found = read_current(spark, warehouse, "public.orders").select(*columns).collect()
    assert sorted(found) == sorted(open_log(spark, log).state("public.orders").select(*columns).collect())


@pytest.mark.parametrize("into", SHORT_IN_PARQUET)
def test_a_table_of_others(lake: Any, tmp_path: Path, into: str, caplog: pytest.LogCaptureFixture) -> None:
    """It stays as it is, and the error says how it differs; when it is adopted, it is replaced, once."""
    log, warehouse = tmp_path / "log", tmp_path / "wh"
    write_orders(log, range(3))
    _create_other(lake, warehouse, into)
    before = sorted(path.relative_to(warehouse) for path in warehouse.rglob("[!._]*.parquet"))
    for _ in range(2):
        with pytest.raises(pgo.PgoutputError, match=rf"orders`? exists already, .* \({DIFFERENCES}"):
            replicate(lake, log, warehouse, into)
        assert all((warehouse / path).exists() for path in before)
    with caplog.at_level(logging.WARNING):
        replicate(lake, log, warehouse, into, adopt=True)
    assert "which is not of this warehouse, is replaced by public.orders" in caplog.text
    assert "extra" not in read_current(lake, warehouse, "public.orders").columns
    _check_rows(lake, log, warehouse)
    if into == "parquet":
        assert not any((warehouse / path).exists() for path in before)
    write_orders(log, range(3, 5))
    replicate(lake, log, warehouse, into)
    _check_rows(lake, log, warehouse)


@pytest.mark.parametrize("into", SHORT_IN_PARQUET)
def test_files_of_others(lake: Any, tmp_path: Path, into: str) -> None:
    """Files that are no table, in the directory of one: maintenance would remove them as left over."""
    log, warehouse = tmp_path / "log", tmp_path / "wh"
    folder = warehouse / ("public/orders" if into == "iceberg" else "public.orders")
    (folder / "deep").mkdir(parents=True)
    (folder / "notes.txt").write_text("mine")
    write_orders(log, range(3))
    with pytest.raises(pgo.PgoutputError, match=_UNREADABLE):
        replicate(lake, log, warehouse, into)
    assert (folder / "notes.txt").read_text() == "mine"
    replicate(lake, log, warehouse, into, adopt=True)
    _check_rows(lake, log, warehouse)
    assert not (folder / "notes.txt").exists() and not (folder / "deep").exists()


@pytest.mark.long
def test_files_in_the_same_folders(lake: Any, tmp_path: Path) -> None:
    """Files of another program are in folders of partitions that the new table has, too."""
    log, warehouse = tmp_path / "log", tmp_path / "wh"
    write_orders(log, range(3))
    rows = lake.createDataFrame([(number, "a") for number in (*range(9), 999)], "id int, extra string")
    rows.write.partitionBy("id").parquet(str(warehouse / "public.orders"))
    before = {*(warehouse / "public.orders").rglob("[!._]*.parquet")}
    replicate(lake, log, warehouse, "delta", adopt=True, partition_by={"public.orders": ["id"]})
    _check_rows(lake, log, warehouse)
    assert before and not any(path.exists() for path in before)
    assert not (warehouse / "public.orders/id=999").exists()
    with pytest.raises(pgo.PgoutputError, match="no column 'extra': the table has 'id'"):
        read(warehouse, "public.orders", ["extra"])


def test_a_table_of_another_catalog(lake: Any, tmp_path: Path) -> None:
    """Metadata of Iceberg that a catalog of files does not see."""
    log, warehouse = tmp_path / "log", tmp_path / "wh"
    write_orders(log, range(3))
    metadata = warehouse / "public/orders/metadata/00000-4f1c.metadata.json"
    metadata.parent.mkdir(parents=True)
    metadata.write_text("{}")
    with pytest.raises(pgo.PgoutputError, match=_UNREADABLE):
        replicate(lake, log, warehouse, "iceberg")
    assert metadata.exists()
    replicate(lake, log, warehouse, "iceberg", adopt=True)
    _check_rows(lake, log, warehouse)
