"""Tables of few rows in formats with a log of commits: overwritten without Spark, where their files allow that."""

import json
import random
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from pgoutput_construct import lake as lake_tables
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.lake._notes import Dataset, Warehouse
from pgoutput_construct.spark import Retention, maintain, read_current, replicate
from pgoutput_construct.spark._replicate import read_history, table_write
from pgoutput_construct.spark._replicate.arrow_writes import ProducedFiles
from pgoutput_construct.spark._replicate.table_write import TableWrite
from pgoutput_construct.spark._table_formats import delta_sink, parquet_sink
from pgoutput_construct.spark._table_formats.delta_files import PlainDeltaTable
from pgoutput_construct.spark._table_formats.delta_sink import DeltaSink
from pgoutput_construct.spark._table_formats.iceberg_files import IcebergTable
from pgoutput_construct.spark._table_formats.iceberg_sink import IcebergSink
from pgoutput_construct.spark._table_formats.parquet_sink import ParquetSink
from tests.crashes import Moment, before, killed
from tests.postgres.shop import Shop
from tests.spark.replicate.rounds import check_equal
from tests.spark.replicate.test_table_readers import TABLES as ALL_TYPES
from tests.table_formats import SHORT_WITHOUT_DELTA

pytestmark = [pytest.mark.server, pytest.mark.spark]

LAKES = SHORT_WITHOUT_DELTA[1:]
DAMAGED: Any = pytest.raises(PySparkException, match="damaged")
COMMITS = {"delta": PlainDeltaTable, "iceberg": IcebergTable}


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path, lake: Any) -> Iterator[Shop]:
    """A database, and its log."""
    with Shop.create(server18, "few_rows", tmp_path / "log") as shop:
        yield shop


@pytest.fixture
def overwritten(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of tables that are changed without Spark, in their order."""
    found, commit = list[int](), ProducedFiles.commit

    def counted(produced: ProducedFiles) -> Dataset:
        if produced.files.present:
            assert produced.rows is not None
            found.append(produced.rows)
        return commit(produced)

    monkeypatch.setattr(ProducedFiles, "commit", counted)
    return found


@pytest.mark.parametrize("into", LAKES)
def test_all_types(lake: Any, shop: Shop, tmp_path: Path, into: str, overwritten: list[int]) -> None:
    """Rows are those of the server after updates, deletes, keys that move, and values that were not sent."""
    shop.execute(*(each.replace('"Select"', "kinds") for each in ALL_TYPES if "Mapped" not in each))
    shop.capture(snapshot=True)
    warehouse, names = tmp_path / "wh [1] ü", ["kinds"]
    rounds = (
        (),
        ("UPDATE kinds SET s = 7, day = 'infinity' WHERE id = 3", "DELETE FROM kinds WHERE id = 4"),
        ("UPDATE kinds SET id = 40 WHERE id = 3", "UPDATE kinds SET t = repeat('x', 40) WHERE id = 40"),
        ("DELETE FROM kinds WHERE id = 40", "INSERT INTO kinds (id, s) VALUES (40, 1)"),
    )
    for statements in rounds:
        shop.execute(*statements)
        shop.capture()
        replicate(lake, shop.directory, warehouse, into)
        check_equal(lake, shop, warehouse, names)
    assert len(overwritten) == 3 and min(overwritten) > 0


@pytest.mark.parametrize("into", LAKES)
def test_the_metadata_columns_that_are_asked_for(
    lake: Any, shop: Shop, tmp_path: Path, into: str, overwritten: list[int]
) -> None:
    """Without positions in the files, rows before come before all changes."""
    shop.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    shop.capture(snapshot=True)
    for statement in ("SELECT", "UPDATE t SET v = 'c' WHERE id = 1", "UPDATE t SET id = 3 WHERE id = 1"):
        shop.execute(statement)
        shop.capture()
        replicate(lake, shop.directory, tmp_path / "wh", into, metadata_columns="none", untyped="never")
    rows = read_current(lake, tmp_path / "wh", "t")
    assert rows.columns == ["id", "v"] and sorted(map(tuple, rows.collect())) == [(2, "b"), (3, "c")]
    assert overwritten == [2, 2]


@pytest.mark.parametrize("into", LAKES)
@pytest.mark.long
def test_files_that_have_other_columns(
    lake: Any, shop: Shop, tmp_path: Path, into: str, overwritten: list[int]
) -> None:
    """After ALTER TABLE files are read by Spark; a column with the name of a dropped one is another."""
    shop.execute("CREATE TABLE t (id int PRIMARY KEY, v int, w text)", "INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b')")
    shop.capture(snapshot=True)
    rounds = (
        ("UPDATE t SET v = 3 WHERE id = 1",),
        ("ALTER TABLE t DROP w", "ALTER TABLE t ADD w text", "UPDATE t SET v = 4 WHERE id = 1"),
        ("UPDATE t SET w = 'c' WHERE id = 1",),
        ("UPDATE t SET w = 'd' WHERE id = 2",),
        ("ALTER TABLE t ALTER v TYPE bigint", "UPDATE t SET v = 1 << 30 WHERE id = 1"),
        ("UPDATE t SET v = v + 1",),
        ("DELETE FROM t",),
        ("INSERT INTO t VALUES (5, 5, 'e')", "UPDATE t SET v = 6"),
    )
    for statements in rounds:
        shop.execute(*statements)
        shop.capture()
        replicate(lake, shop.directory, tmp_path / "wh", into)
        check_equal(lake, shop, tmp_path / "wh", ["t"])
    assert len(overwritten) >= 3


def test_rows_that_the_driver_cannot_take(spark: Any) -> None:
    """More bytes than it takes are merged; any other error of reading them is that of the table."""
    conf, limit = spark.sparkContext._jsc.sc().conf(), "spark.driver.maxResultSize"
    before = conf.get(limit, "1g")
    try:
        conf.set(limit, "1m")
        for value, expected in (("repeat('x', 1 << 21)", nullcontext()), ("raise_error('damaged')", DAMAGED)):
            with expected:
                assert table_write._rows_in_driver(spark.range(1).selectExpr(f"{value} AS v"), ["v"]) is None
    finally:
        conf.set(limit, before)


@pytest.mark.long
def test_a_table_of_delta_lake_that_is_not_plain(
    lake: Any, shop: Shop, tmp_path: Path, overwritten: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark writes one with other features or properties, and all where the library is not installed."""
    shop.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    shop.capture(snapshot=True)
    warehouse = tmp_path / "wh"
    replicate(lake, shop.directory, tmp_path / "100%20", "delta")
    check_equal(lake, shop, tmp_path / "100%20", ["t"])
    table = f"delta.`{warehouse}/public.t`"
    alterations = (
        f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        f"DELETE FROM {table} WHERE id = 0",
        f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')",
    )
    replicate(lake, shop.directory, warehouse, "delta")
    for number, statement in enumerate(alterations):
        lake.sql(statement)
        shop.execute(f"UPDATE t SET v = '{number}' WHERE id = 1")
        shop.capture()
        replicate(lake, shop.directory, warehouse, "delta")
        check_equal(lake, shop, warehouse, ["t"])
    assert overwritten == []
    with monkeypatch.context() as patched:
        patched.setattr(delta_sink, "has_deltalake", lambda: False)
        for number in range(2):
            shop.execute(f"UPDATE t SET v = 'x{number}' WHERE id = 1")
            shop.capture()
            replicate(lake, shop.directory, tmp_path / "other", "delta")
            check_equal(lake, shop, tmp_path / "other", ["t"])
    assert overwritten == []
    shop.execute("UPDATE t SET v = 'y' WHERE id = 1")
    shop.capture()
    replicate(lake, shop.directory, tmp_path / "other", "delta")
    check_equal(lake, shop, tmp_path / "other", ["t"])
    assert overwritten == [2]


@pytest.mark.long
def test_more_rows(
    lake: Any, shop: Shop, tmp_path: Path, overwritten: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more bytes than that, changes are merged into a table; of Delta Lake also into what the library wrote."""
    monkeypatch.setattr(DeltaSink, "few_bytes", 20_000)
    shop.execute(
        "CREATE TABLE t (id bigint PRIMARY KEY, v text)",
        "INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 500) i",
    )
    shop.capture(snapshot=True)
    warehouse, merged = tmp_path / "wh", TableWrite._merged
    merges = list[str]()

    def counted(write: TableWrite, before: Dataset) -> Any:
        merges.append(write.step.table)
        return merged(write, before)

    monkeypatch.setattr(TableWrite, "_merged", counted)
    for statement in ("SELECT", "INSERT INTO t SELECT i, 'x' FROM generate_series(501, 520) i", "UPDATE t SET v = 'y'"):
        shop.execute(statement if statement != "UPDATE t SET v = 'y'" else f"{statement} WHERE id IN (7, 510)")
        shop.capture()
        replicate(lake, shop.directory, warehouse, "delta")
        check_equal(lake, shop, warehouse, ["t"])
    assert overwritten == [] and merges == ["public.t"]
    history = lake.sql(f"DESCRIBE HISTORY delta.`{warehouse}/public.t`").orderBy("version").collect()
    assert [row["operation"] for row in history] == ["CREATE TABLE", "WRITE", "MERGE"]
    metrics = history[-1]["operationMetrics"]
    assert metrics["numTargetFilesRemoved"] == "2" and metrics["numTargetRowsUpdated"] == "2"
    added = [json.loads(line) for line in (warehouse / "public.t/_delta_log/00000000000000000001.json").open()]
    (statistics,) = (json.loads(each["add"]["stats"]) for each in added if "add" in each)
    assert statistics["minValues"]["id"] == 501 and statistics["maxValues"]["id"] == 520
    shop.execute("UPDATE t SET v = 'z' WHERE id BETWEEN 501 AND 503")
    shop.capture()
    replicate(lake, shop.directory, warehouse, "delta")
    check_equal(lake, shop, warehouse, ["t"])


@pytest.mark.long
def test_how_long_versions_are_retained(lake: Any, shop: Shop, tmp_path: Path, overwritten: list[int]) -> None:
    """Replaced files of Delta Lake stay for readers that began with them; then those of the latest commit are left."""
    shop.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    shop.capture(snapshot=True)
    warehouse = tmp_path / "wh"
    for number in range(3):
        shop.execute(f"UPDATE t SET v = '{number}' WHERE id = 1")
        shop.capture()
        replicate(lake, shop.directory, warehouse, "delta")
    assert overwritten == [2] * 2
    for grace, files in ((600, 3), (0, 1)):
        list(maintain(lake, warehouse, retention=Retention(age=0, count=1, grace=grace)))
        assert len([*warehouse.glob("public.t/*.parquet")]) == files
        check_equal(lake, shop, warehouse, ["t"])


def _fill(shop: Shop) -> None:
    """Create a table of 3,000 rows, and copy it."""
    shop.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v text)",
        "INSERT INTO t SELECT i, md5(i::text) || md5((-i)::text) FROM generate_series(1, 3000) i",
    )
    shop.capture(snapshot=True)


def _have_none_tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no table overwritten because it is tiny, and each when it has six files."""
    monkeypatch.setattr("pgoutput_construct.spark._replicate.arrow_writes._FILES", 6)
    monkeypatch.setattr("pgoutput_construct.spark._replicate.arrow_writes.TINY", 0)


def test_deletes_by_position(
    lake: Any, shop: Shop, tmp_path: Path, overwritten: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table of Iceberg that is not tiny gets files of new rows and of deletes, until it has many files."""
    _have_none_tiny(monkeypatch)
    _fill(shop)
    warehouse, counts = tmp_path / "wh", list[int]()
    replicate(lake, shop.directory, warehouse, "iceberg")
    chance = random.Random(7)
    for number in range(5):
        low = chance.randrange(2900)
        shop.execute(
            f"UPDATE t SET v = 'u{number}' WHERE id BETWEEN {low} AND {low + 60}",
            f"DELETE FROM t WHERE id BETWEEN {low + 30} AND {low + 35}",
            f"UPDATE t SET id = id + 10000 WHERE id = {low + 1}",
            f"INSERT INTO t VALUES ({low + 31}, 'again')",
        )
        shop.capture()
        replicate(lake, shop.directory, warehouse, "iceberg")
        check_equal(lake, shop, warehouse, ["t"])
        table = _iceberg_table(lake, warehouse)
        counts.append(lake.sql(f"SELECT * FROM {table}.delete_files").count())
    assert len(overwritten) == 5 and min(overwritten) > 2900
    assert counts == [1, 2, 3, 0, 1]
    lake.sql(f"DELETE FROM {table} WHERE false")
    maintain(lake, warehouse, retention=Retention(age=0, count=1, grace=0))
    check_equal(lake, shop, warehouse, ["t"])


def test_a_compaction_that_comes_first(lake: Any, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program has put the files together of which rows are to be deleted: refused, and done again."""
    _have_none_tiny(monkeypatch)
    _fill(shop)
    replicate(lake, shop.directory, tmp_path / "wh", "iceberg")
    catalog = _iceberg_table(lake, tmp_path / "wh").partition(".")[0]
    changed = IcebergTable.change

    def overtaken(*arguments: Any) -> None:
        options = "options => map('rewrite-all', 'true')"
        lake.sql(f"CALL {catalog}.system.rewrite_data_files(table => 'public.t', {options})").collect()
        changed(*arguments)

    shop.execute("UPDATE t SET v = 'changed' WHERE id < 9", "DELETE FROM t WHERE id = 20")
    shop.capture()
    with monkeypatch.context() as patched, pytest.raises(PgoutputError, match="missing data files"):
        patched.setattr(IcebergTable, "change", overtaken)
        replicate(lake, shop.directory, tmp_path / "wh", "iceberg")
    replicate(lake, shop.directory, tmp_path / "wh", "iceberg")
    check_equal(lake, shop, tmp_path / "wh", ["t"])


@pytest.mark.parametrize(
    ("into", "batches"),
    [("parquet", 4), *(pytest.param(into, 7, marks=pytest.mark.long) for into in ("parquet", "iceberg"))],
)
def test_rows_found_by_key(
    lake: Any,
    shop: Shop,
    tmp_path: Path,
    into: str,
    batches: int,
    overwritten: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a larger table the rows of changed keys are read, also of one that its type cannot hold, and then deleted."""
    keys = {
        "t": "part smallint, day date, code text, n numeric(9, 2)",
        "kinds": "b bool, c bytea, d timestamptz, e float8",
    }
    shop.execute(
        *(f"CREATE TABLE {name} ({each}, v text)" for name, each in keys.items()),
        "ALTER TABLE t ADD PRIMARY KEY (part, day, code, n)",
        "ALTER TABLE kinds ADD PRIMARY KEY (b, c, d, e)",
        "INSERT INTO t SELECT i % 7, date '2026-01-01' + i % 50, 'c' || i % 90, i, md5(i::text) "
        "FROM generate_series(1, 3000) i",
        "INSERT INTO t VALUES (1, 'infinity', 'c1', 1), (1, '-infinity', 'c1', 1), (1, 'infinity', 'c1', 'NaN')",
        "INSERT INTO kinds SELECT i % 2 = 0, int4send(i), 'epoch'::timestamptz + i * interval '1 h', i, md5(i::text) "
        "FROM generate_series(1, 3000) i",
        "INSERT INTO kinds VALUES (true, '', 'infinity', 'NaN', 'odd'), (true, '', 'infinity', 0, 'zero')",
    )
    shop.capture(snapshot=True)
    rounds = (
        (),
        ("UPDATE t SET v = 'a' WHERE part = 3 AND n < 90", "UPDATE kinds SET v = 'b' WHERE e IN (7, 'NaN')"),
        ("UPDATE t SET v = 'i' WHERE day = 'infinity' AND n = 1", "DELETE FROM t WHERE day = '-infinity'"),
        ("UPDATE t SET part = part + 100 WHERE n BETWEEN 100 AND 120", "UPDATE kinds SET e = '-0' WHERE e = 0"),
        ("DELETE FROM t WHERE n BETWEEN 20 AND 30",),
        ("DELETE FROM t WHERE n < 50", "INSERT INTO t VALUES (3, '2026-01-04', 'c3', 3, 'again')"),
        ("UPDATE t SET v = v || 'z' WHERE part = 3 AND n < 600", "DELETE FROM kinds WHERE e > 5"),
    )
    tables, counts = [f"public.{name}" for name in keys], list[int]()
    for statements in rounds[:batches]:
        shop.execute(*statements)
        shop.capture()
        replicate(lake, shop.directory, tmp_path / "small", tables=tables, history=True)
        overwritten.clear()
        with monkeypatch.context() as patched:
            patched.setattr(parquet_sink, "SMALL", 0)
            for sink in (ParquetSink, IcebergSink):
                patched.setattr(sink, "few_bytes", 0)
                patched.setattr(sink, "merge", None)
                patched.setattr(sink, "record", None)
            replicate(lake, shop.directory, tmp_path / "wh", into, tables, history=True)
        counts.append(len(overwritten))
        check_equal(lake, shop, tmp_path / "wh", [*keys])
        for name in tables:
            one, other = (read_history(lake, tmp_path / each, name).toArrow().to_pylist() for each in ("wh", "small"))
            assert sorted(map(repr, map(dict.items, one))) == sorted(map(repr, map(dict.items, other)))
    assert counts == [0, 4, 2, 4, 2, 2, 4][:batches]  # of each table that changed, and its history
    list(maintain(lake, tmp_path / "wh", retention=Retention(age=0, count=1, grace=0)))
    check_equal(lake, shop, tmp_path / "wh", [*keys])


@pytest.mark.parametrize("into", LAKES)
def test_histories(
    lake: Any, shop: Shop, tmp_path: Path, into: str, overwritten: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows come, and end, as in Parquet: also in files of new rows and of deletes, and in columns that are added."""
    _have_none_tiny(monkeypatch)
    shop.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v text)",
        "INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 300) i",
    )
    shop.capture(snapshot=True)
    rounds = (
        ("INSERT INTO t VALUES (1000, 'new')",),
        ("UPDATE t SET v = 'a' WHERE id < 9", "DELETE FROM t WHERE id = 3", "INSERT INTO t VALUES (3, 'again')"),
        ("UPDATE t SET id = 2000 WHERE id = 1000", "UPDATE t SET v = 'b' WHERE id IN (4, 50, 2000)"),
        ("TRUNCATE t", "INSERT INTO t VALUES (1, 'after')"),
        ("ALTER TABLE t ADD w int", "UPDATE t SET w = 1"),
    )
    counts = list[list[int]]()
    for statements in rounds:
        shop.execute(*statements)
        shop.capture()
        overwritten.clear()
        replicate(lake, shop.directory, tmp_path / "wh", into, ["public.t"], history=True)
        counts.append(sorted(overwritten))
        replicate(lake, shop.directory, tmp_path / "parquet", tables=["public.t"], history=True)
        one, other = (read_history(lake, tmp_path / name, "t").toArrow().to_pylist() for name in ("wh", "parquet"))
        assert sorted(repr(sorted(row.items())) for row in one) == sorted(repr(sorted(row.items())) for row in other)
    assert counts == [[], [301, 310], [301, 314], [1, 315], []] and len(one) == 316


@pytest.mark.long
def test_deletes_by_position_among_others(
    lake: Any, shop: Shop, tmp_path: Path, overwritten: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are in files of a MERGE, too; a table in copy-on-write has none."""
    _have_none_tiny(monkeypatch)
    _fill(shop)
    warehouse = tmp_path / "wh"
    replicate(lake, shop.directory, warehouse, "iceberg")
    table = _iceberg_table(lake, warehouse)
    # A MERGE of Spark, and then deletes in its files.
    with monkeypatch.context() as patched:
        patched.setattr(IcebergSink, "few_bytes", 0)
        patched.setattr(IcebergSink, "key_bytes", 0)
        shop.execute("UPDATE t SET v = 'merged' WHERE id % 500 = 3")
        shop.capture()
        replicate(lake, shop.directory, warehouse, "iceberg")
    check_equal(lake, shop, warehouse, ["t"])
    # Killed before its commit, and before its note: what a MERGE has deleted stays so, nothing is deleted twice.
    shop.execute("UPDATE t SET v = 'after' WHERE id % 250 = 3", "DELETE FROM t WHERE id % 500 = 4")
    shop.capture()
    for moment in (before(IcebergTable, "change"), Moment.BEFORE_NOTE):
        with killed(moment):
            replicate(lake, shop.directory, warehouse, "iceberg")
    replicate(lake, shop.directory, warehouse, "iceberg")
    check_equal(lake, shop, warehouse, ["t"])
    for number in range(4):  # of which each has deletes alone
        shop.execute(f"DELETE FROM t WHERE id % 250 = {number + 6}")
        shop.capture()
        replicate(lake, shop.directory, warehouse, "iceberg")
        assert lake.sql(f"SELECT * FROM {table}.delete_files").count() < 6
    check_equal(lake, shop, warehouse, ["t"])
    shop.execute("UPDATE t SET v = 'most'")
    shop.capture()
    replicate(lake, shop.directory, warehouse, "iceberg")
    check_equal(lake, shop, warehouse, ["t"])
    assert lake.sql(f"SELECT * FROM {table}.delete_files").count() == 0
    lake.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.merge.mode' = 'copy-on-write')")
    shop.execute("UPDATE t SET v = 'copied' WHERE id = 1")
    shop.capture()
    replicate(lake, shop.directory, warehouse, "iceberg")
    check_equal(lake, shop, warehouse, ["t"])
    assert lake.sql(f"SELECT * FROM {table}.delete_files").count() == 0


def test_a_table_of_iceberg_with_deletion_vectors(
    lake: Any, shop: Shop, tmp_path: Path, overwritten: list[int]
) -> None:
    """Version 3 of the format has no files of deletes by position: one that is not tiny is overwritten, or merged."""
    _fill(shop)
    options: dict[str, Any] = {"table_properties": {"format-version": "3"}}
    for statement in ("SELECT", "UPDATE t SET v = 'x' WHERE id < 9", "DELETE FROM t WHERE id < 3"):
        shop.execute(statement)
        shop.capture()
        replicate(lake, shop.directory, tmp_path / "wh", "iceberg", **options)
        check_equal(lake, shop, tmp_path / "wh", ["t"])
    files = lake.sql(f"SELECT file_format FROM {_iceberg_table(lake, tmp_path / 'wh')}.delete_files").collect()
    assert {row["file_format"] for row in files} <= {"PUFFIN"}


def _iceberg_table(lake: Any, warehouse: Path) -> str:
    sink = IcebergSink(Warehouse(warehouse))
    sink.prepare(lake)
    return sink._table("public.t")


def test_delta_lake_without_spark(lake: Any, shop: Shop, tmp_path: Path) -> None:
    """``lake.read`` has the types that it has of Parquet, of which pandas can have values."""
    shop.execute(
        "CREATE TABLE t (id int PRIMARY KEY, words text[], doc bytea, day date)",
        "INSERT INTO t VALUES (1, '{a,NULL}', '\\x00', '2026-01-31'), (2, NULL, NULL, 'infinity')",
    )
    shop.capture(snapshot=True)
    for into in ("parquet", "delta"):
        replicate(lake, shop.directory, tmp_path / into, into)
    one, other = (lake_tables.read(tmp_path / into, "t") for into in ("parquet", "delta"))
    assert [(each.name, each.type) for each in one.schema] == [(each.name, each.type) for each in other.schema]
    assert sorted(one.to_pandas()["id"]) == sorted(other.to_pandas()["id"]) == [1, 2]
    assert sorted(one.to_pylist(), key=str) == sorted(other.to_pylist(), key=str)
