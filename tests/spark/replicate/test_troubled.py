"""Tables that cannot be brought up to date: each is its own trouble, and the others are what the source has."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from psycopg.sql import Identifier
from pyspark.errors import PythonException

import pgoutput_construct as pgo
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.lake._notes import Warehouse
from pgoutput_construct.postgres import snapshot
from pgoutput_construct.spark import open_log
from pgoutput_construct.spark._log_view import log_tables
from pgoutput_construct.spark._replicate import Batch, read_current, read_history, replicate, staging
from tests.postgres.shop import PUBLICATION, Shop, wait_until
from tests.spark.differences import stored_rows
from tests.table_formats import ALL_FORMATS, SHORT_IN_PARQUET

pytestmark = [pytest.mark.server, pytest.mark.spark]

OURS = ("_untyped", "_commit_lsn", "_seq")


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """A database of its own."""
    with Shop.create(server18, "troubled", tmp_path / "log") as shop:
        yield shop


def _execute(shop: Shop, *statements: str) -> None:
    shop.execute(*statements)
    shop.capture(snapshot=True)


def _rows(spark: Any, warehouse: Path, table: str, prefix: str = "_") -> list[tuple[Any, ...]]:
    ours = [prefix + name.removeprefix("_") for name in OURS]
    rows = stored_rows(spark, warehouse, table)
    assert rows.column_names[-3:] == ours
    # No dicts: names of columns may differ only in their case.
    columns = [rows.column(place).to_pylist() for place in range(rows.num_columns - 3)]
    return sorted(zip(*columns, strict=True)) if columns else [()] * len(rows)


@pytest.fixture
def sensitive(spark: Any) -> Any:
    """A session that tells names by their case."""
    session = spark.newSession()
    session.conf.set("spark.sql.caseSensitive", "true")
    return session


@pytest.mark.parametrize(
    ("into", "history"),
    # With seven histories, too, Delta Lake fills the code cache of the Java of tests.
    [
        ("parquet", False),
        *(pytest.param(into, into == "parquet", marks=pytest.mark.long) for into in ALL_FORMATS),
    ],
)
def test_odd_columns(lake: Any, sensitive: Any, shop: Shop, tmp_path: Path, into: str, history: bool) -> None:
    """No columns, a column named as one of a change, two that differ in case: they are written, or alone in trouble."""
    warehouse, reason = (
        tmp_path / "wh",
        r"public\.cased: Delta Lake cannot have the column .A.: .*; all other tables are",
    )
    _execute(
        shop,
        "CREATE TABLE empty ()",
        "INSERT INTO empty DEFAULT VALUES",
        "INSERT INTO empty DEFAULT VALUES",
        'CREATE TABLE op (id int PRIMARY KEY, _op text, __left int, "_before.id" float4)',
        "INSERT INTO op VALUES (1, 'a', 2, 'NaN')",
        'CREATE TABLE cased (id int PRIMARY KEY, a int, "A" text)',
        "INSERT INTO cased VALUES (1, 2, 'b')",
        "CREATE TABLE seq (id int PRIMARY KEY, _seq int)",
        "INSERT INTO seq VALUES (1, 2)",
        "CREATE TABLE late (id int PRIMARY KEY, v int)",
        "INSERT INTO late VALUES (1, 2)",
        "CREATE TABLE plain (id int PRIMARY KEY, v text)",
        "INSERT INTO plain VALUES (1, 'x')",
    )
    for number in (1, 2):
        with pytest.raises(pgo.ChangeLogError, match=reason) if into == "delta" else nullcontext():
            replicate(lake, shop.directory, warehouse, into, history=history)
        assert len(_rows(lake, warehouse, "public.empty")) == number + 1
        assert _rows(lake, warehouse, "public.plain") == [(each, "x") for each in range(1, number + 1)]
        assert [row[:3] for row in _rows(lake, warehouse, "public.op")] == [(1, "a" * number, 2)]
        if into != "delta":
            assert _rows(sensitive, warehouse, "public.cased") == [(1, 2, "b" * number)]
        assert _rows(lake, warehouse, "public.seq", "__") == [(1, 1 + number)]
        prefix = "_" if number == 1 else "__"
        assert _rows(lake, warehouse, "public.late", prefix) == [(1, 2) if number == 1 else (1, 2, 3)]
        for name, of_history in (("seq", "__"), ("op", "__"), ("late", prefix)) if history else ():
            found = stored_rows(lake, warehouse, f"public.{name}", history=True)
            assert (found[f"{of_history}ended_by"].null_count, len(found)) == (1, number)
        _execute(
            shop,
            "INSERT INTO empty DEFAULT VALUES",
            "UPDATE op SET _op = 'aa'",
            """UPDATE cased SET "A" = 'bb'""",
            f"INSERT INTO plain VALUES ({number + 1}, 'x')",
            "UPDATE seq SET _seq = 3",
            "ALTER TABLE late ADD COLUMN IF NOT EXISTS _seq int",
            "UPDATE late SET _seq = 3",
        )


@pytest.mark.long
@pytest.mark.parametrize("into", ALL_FORMATS)
def test_a_prefix(lake: Any, shop: Shop, tmp_path: Path, into: str) -> None:
    """What is added to a table is called otherwise, in batches that merge, move values and keep histories."""
    warehouse = tmp_path / "wh"
    _execute(
        shop,
        "CREATE TABLE seq (_seq int PRIMARY KEY, _op text, _untyped float4, _valid_to text, plain date)",
        "ALTER TABLE seq ALTER _op SET STORAGE EXTERNAL",
        "INSERT INTO seq SELECT i, repeat('b', 3000 + i), 1, 'v', '2020-01-01' FROM generate_series(1, 5) i",
        "CREATE TABLE plain (id int PRIMARY KEY, v text, day date)",
        "INSERT INTO plain VALUES (1, 'x', 'infinity'), (2, 'y', '2020-01-01')",
    )
    for number in range(3):
        batch = replicate(lake, shop.directory, warehouse, into, history=True, metadata_prefix="pg_")
        assert batch is not None and not batch.troubled and set(batch.tables) >= {"public.seq", "public.plain"}
        for name, columns in ("seq", "_seq, _op, _untyped, _valid_to, plain"), ("plain", "id, v, day::text"):
            found = read_current(lake, warehouse, f"public.{name}")
            assert found.columns[-3:] == ["pg_untyped", "pg_commit_lsn", "pg_seq"]
            day = "coalesce(CAST({0} AS string), pg_untyped['{0}'])".format("plain" if name == "seq" else "day")
            ours = [tuple(row) for row in found.selectExpr(*found.columns[: -3 - 1], day).collect()]
            with shop.connect() as connection:
                theirs = connection.execute(f"SELECT {columns} FROM {name}".replace("plain FROM", "plain::text FROM"))
                assert sorted(ours, key=str) == sorted(theirs.fetchall(), key=str)
            open_columns = read_history(lake, warehouse, f"public.{name}").where("pg_ended_by IS NULL")
            assert open_columns.count() == len(ours) and "pg_valid_from" in open_columns.columns
        _execute(
            shop,
            f"UPDATE seq SET _seq = _seq + 100, plain = 'infinity' WHERE _seq = {number + 1}",
            f"UPDATE seq SET _valid_to = 'w{number}' WHERE _seq > 3",
            f"DELETE FROM seq WHERE _seq = {5 - number}",
            f"UPDATE plain SET day = '2021-0{number + 1}-01', v = NULL WHERE id = 1",
        )
    with pytest.raises(pgo.PgoutputError, match="added columns is 'pg_', not 'x_': omit --metadata-prefix"):
        replicate(lake, shop.directory, warehouse, into, metadata_prefix="x_")
    with pytest.raises(pgo.PgoutputError, match="invalid column prefix 'a b'"):
        replicate(lake, shop.directory, warehouse, into, metadata_prefix="a b")


def _damage(warehouse: Path, table: str) -> Path:
    """Take the files of a table away; return where they are."""
    path = warehouse / f"public.{table}"
    return Path(shutil.move(path, warehouse.parent / f"{table}.away"))


def _add(shop: Shop, number: int) -> None:
    _execute(
        shop,
        *(f"INSERT INTO {table} VALUES ({number}, 'row')" for table in ("bad", "good")),
        *(f"UPDATE {table} SET v = 'changed' WHERE id = {number - 1}" for table in ("bad", "good")),
    )


def _expected(last: int) -> list[tuple[int, str]]:
    return [(number, "row" if number == last else "changed") for number in range(1, last + 1)]


@pytest.fixture
def pair(shop: Shop) -> Shop:
    """Two tables with a row each."""
    for table in ("bad", "good"):
        shop.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, v text)")
    _add(shop, 1)
    return shop


@pytest.mark.parametrize("into", SHORT_IN_PARQUET)
def test_files_that_are_gone(lake: Any, pair: Shop, tmp_path: Path, into: str) -> None:
    """Spark fails with one table: others are brought up to date; from scratch it is written again, and its history."""
    warehouse = tmp_path / "wh"
    replicate(lake, pair.directory, warehouse, into, history=True)
    if into == "iceberg":
        shutil.rmtree(warehouse / "public" / "bad" / "metadata")
    else:
        _damage(warehouse, "bad")
    # Where the data say what they are, and say nothing, the next run writes them from the log.
    last = 3 if into == "parquet" else 2
    for number in range(2, last + 1):
        _add(pair, number)
        with pytest.raises(pgo.ChangeLogError, match=r"public\.bad: .*; all other tables are up to date"):
            replicate(lake, pair.directory, warehouse, into, history=True)
        assert _rows(lake, warehouse, "public.good") == _expected(number)
        told = Warehouse(warehouse).progress()
        assert told is not None and set(told.troubled) == {"public.bad"}
    batch = replicate(lake, pair.directory, warehouse, into, history=True, resync=["public.bad"])
    assert batch is not None and batch.tables == {"public.bad": "written"} and not batch.troubled
    assert _rows(lake, warehouse, "public.bad") == _expected(last)
    assert read_history(lake, warehouse, "public.bad").count() == 2 * last - 1
    told = Warehouse(warehouse).progress()
    assert told is not None and told.done and not told.troubled
    with pytest.raises(pgo.ChangeLogError, match=r"the log has no table public\.x"):
        replicate(lake, pair.directory, warehouse, into, resync=["public.x"])


@pytest.mark.parametrize("into", SHORT_IN_PARQUET[:2])
def test_a_damaged_note(lake: Any, pair: Shop, tmp_path: Path, into: str) -> None:
    """It is its table's trouble, with place and remedy; others are brought up to date and read."""
    warehouse = tmp_path / "wh"
    replicate(lake, pair.directory, warehouse, into)
    note = warehouse / "_datasets" / "public.bad.json"
    for number, content in enumerate((b"", b"[]", b"\xff", note.with_name("public.good.json").read_bytes()), 2):
        note.write_bytes(content)
        _add(pair, number)
        reason = (
            r"public\.bad: .*/_datasets/public\.bad\.json: .* is damaged: .*; remove the file, or .*--resync.*; all"
        )
        with pytest.raises(pgo.ChangeLogError, match=reason):
            replicate(lake, pair.directory, warehouse, into)
        assert _rows(lake, warehouse, "public.good") == _expected(number)
        with pytest.raises(pgo.PgoutputError, match=r"public\.bad\.json: .* is damaged"):
            read_current(lake, warehouse, "public.bad")
    batch = replicate(lake, pair.directory, warehouse, into, resync=["public.bad"])
    assert batch is not None and batch.tables == {"public.bad": "written"}
    assert _rows(lake, warehouse, "public.bad") == _expected(5)
    note.write_text("{}")
    _add(pair, 6)
    with pytest.raises(pgo.ChangeLogError, match=r"public\.bad: .* is damaged: "):
        replicate(lake, pair.directory, warehouse, into)
    note.unlink()
    replicate(lake, pair.directory, warehouse, into)
    assert _rows(lake, warehouse, "public.bad") == _expected(6)
    note.with_name("public.nobody.json").write_text("{}")
    with pytest.raises(pgo.PgoutputError, match=r"public\.nobody\.json: .* is damaged: .*; remove the file"):
        replicate(lake, pair.directory, warehouse, into)


def test_from_scratch(spark: Any, pair: Shop, tmp_path: Path) -> None:
    """A table that says what is not so is what the source has; its history goes on where there is a new copy."""
    warehouse = tmp_path / "wh"
    replicate(spark, pair.directory, warehouse, history=True)
    place = Warehouse(warehouse)
    path = warehouse / place.datasets()["public.bad"].details["path"]
    wrong = spark.read.parquet(str(path)).selectExpr("id", "'wrong' AS v", *OURS).collect()
    schema = spark.read.parquet(str(path)).schema
    spark.createDataFrame(wrong, schema).write.mode("overwrite").parquet(str(path))
    _add(pair, 2)
    replicate(spark, pair.directory, warehouse, history=True)
    batch = replicate(spark, pair.directory, warehouse, history=True, resync=["public.bad"])
    assert batch is not None and batch.tables == {"public.bad": "written"}
    assert _rows(spark, warehouse, "public.bad") == _expected(2)
    ended = read_history(spark, warehouse, "public.bad").groupBy("_ended_by").count().collect()
    assert {row["_ended_by"]: row["count"] for row in ended} == {None: 2, "update": 1}


@pytest.mark.parametrize("into", ["parquet", "iceberg"])
@pytest.mark.long
def test_from_scratch_with_a_new_copy(lake: Any, pair: Shop, tmp_path: Path, into: str) -> None:
    """The history is continued: what it had has ended with the copy, and what is open is the source's."""
    warehouse = tmp_path / "wh"
    replicate(lake, pair.directory, warehouse, into, history=True)
    _add(pair, 2)
    snapshot(pair.dsn, pair.directory, ["public.bad"])
    _add(pair, 3)
    batch = replicate(lake, pair.directory, warehouse, into, history=True, resync=["public.bad"])
    assert batch is not None and batch.tables == {"public.bad": "written", "public.good": "changed"}
    _add(pair, 4)
    replicate(lake, pair.directory, warehouse, into, history=True)
    assert _rows(lake, warehouse, "public.bad") == _expected(4)
    found = read_history(lake, warehouse, "public.bad")
    assert sorted(tuple(row) for row in found.where("_ended_by IS NULL").select("id", "v").collect()) == _expected(4)
    ended = (
        found.where("_ended_by IS NOT NULL").selectExpr("id", "v", "_op", "_ended_by", "_valid_to IS NULL").collect()
    )
    assert sorted(map(tuple, ended)) == [
        (1, "row", "snapshot", "snapshot", True),
        (2, "row", "snapshot", "update", False),
        (3, "row", "insert", "update", False),
    ]


def test_a_run_goes_on(spark: Any, pair: Shop, tmp_path: Path) -> None:
    """Batch by batch the others are there; the table is named in each report, and comes back when it can."""
    warehouse, batches, done = tmp_path / "wh", list[Batch](), threading.Event()

    def at_end() -> bool:
        return bool(batches) and batches[-1].seq == pair.log().segments[-1].last_seq

    replicate(spark, pair.directory, warehouse)
    away = _damage(warehouse, "bad")
    _add(pair, 2)
    arguments = {"once": False, "interval": 0.2, "on_batch": batches.append, "stop": done.is_set}
    running = threading.Thread(target=replicate, args=(spark, pair.directory, warehouse), kwargs=arguments)
    running.start()
    try:
        for number in (3, 4):
            wait_until(at_end)
            assert batches[-1].troubled.keys() == {"public.bad"} and "public.bad" not in batches[-1].tables
            _add(pair, number)
            wait_until(at_end)
            assert _rows(spark, warehouse, "public.good") == _expected(number)
        shutil.move(away, warehouse / "public.bad")
        wait_until(lambda: not batches[-1].troubled)
    finally:
        done.set()
        running.join()
    assert _rows(spark, warehouse, "public.bad") == _expected(4)


@pytest.mark.parametrize("planned", [(log_tables, "_table"), (staging, "reader_columns")], ids=["table", "staging"])
def test_a_plan_that_fails(
    spark: Any, pair: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planned: tuple[ModuleType, str]
) -> None:
    """An error of any class is the trouble of its table; what is none of a table ends the batch."""
    warehouse, errors = tmp_path / "wh", list[BaseException]()
    replicate(spark, pair.directory, warehouse)
    _add(pair, 2)
    real = getattr(*planned)

    def plan(*arguments: Any) -> Any:
        found = real(*arguments)
        if getattr(arguments[-1], "name", None) == "bad":
            raise errors[-1]
        return found

    monkeypatch.setattr(*planned, plan)
    for error in (KeyboardInterrupt(), PermissionError("a segment")):
        errors.append(error)
        with pytest.raises(type(error)):
            replicate(spark, pair.directory, warehouse)
    errors.append(pa.ArrowInvalid("no such type"))
    with pytest.raises(pgo.ChangeLogError, match=r"public\.bad: .*ArrowInvalid: no such type.*; all other tables are"):
        replicate(spark, pair.directory, warehouse)
    progress = Warehouse(warehouse).progress()
    assert progress is not None and progress.troubled.keys() == {"public.bad"}
    assert _rows(spark, warehouse, "public.good") == _expected(2)
    assert _rows(spark, warehouse, "public.bad") == _expected(1)
    monkeypatch.undo()
    _add(pair, 3)
    replicate(spark, pair.directory, warehouse)
    assert _rows(spark, warehouse, "public.bad") == _rows(spark, warehouse, "public.good") == _expected(3)


@pytest.mark.parametrize("into", ["parquet", "iceberg"])
@pytest.mark.long
def test_partitions_with_another_identity(lake: Any, shop: Shop, tmp_path: Path, into: str) -> None:
    """A root is FULL, its partition is not: an update without its old row is an error; mended, the table is there."""
    warehouse, reason = tmp_path / "wh", r"public\.parted: .* did not send the old row: .*each partition.*--table"
    with shop.connect() as connection:
        name = Identifier(PUBLICATION).as_string(connection)
    _execute(
        shop,
        f"ALTER PUBLICATION {name} SET (publish_via_partition_root = true)",
        "CREATE TABLE parted (id int PRIMARY KEY, v text) PARTITION BY RANGE (id)",
        "CREATE TABLE parted_1 PARTITION OF parted DEFAULT",
        "ALTER TABLE parted REPLICA IDENTITY FULL",
        "CREATE TABLE plain (id int PRIMARY KEY, v text)",
        "INSERT INTO parted VALUES (1, 'row'), (2, 'row')",
        "INSERT INTO plain VALUES (1, 'row')",
    )
    replicate(lake, shop.directory, warehouse, into)
    assert _rows(lake, warehouse, "public.parted") == [(1, "row"), (2, "row")]
    _execute(shop, "UPDATE parted SET v = 'changed' WHERE id = 1", "INSERT INTO plain VALUES (2, 'row')")
    with pytest.raises(pgo.ChangeLogError, match=reason):
        replicate(lake, shop.directory, warehouse, into)
    assert _rows(lake, warehouse, "public.plain") == [(1, "row"), (2, "row")]
    log = open_log(lake, shop.directory)
    with pytest.raises(PythonException, match=r"public\.parted: .* did not send the old row"):
        log.state("public.parted").collect()
    assert log.state("public.parted", on_missing="report").count() == 3
    assert [row["_op"] for row in log.missing_rows("public.parted").collect()] == ["update"]
    shop.execute("ALTER TABLE parted_1 REPLICA IDENTITY FULL")
    snapshot(shop.dsn, shop.directory, ["public.parted"])
    _execute(shop, "UPDATE parted SET v = 'again' WHERE id = 2", "DELETE FROM parted WHERE id = 1")
    replicate(lake, shop.directory, warehouse, into)
    assert _rows(lake, warehouse, "public.parted") == [(2, "again")]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="whole"),
        pytest.param({"write_mode": "merge-on-read"}, id="parts", marks=pytest.mark.long),
        pytest.param({"into": "iceberg"}, id="iceberg", marks=pytest.mark.long),
    ],
)
def test_a_row_that_enters_a_row_filter(lake: Any, shop: Shop, tmp_path: Path, options: dict[str, str]) -> None:
    """Its UPDATE is sent as an INSERT without the unchanged TOASTed value: an error with the remedy, which helps."""
    spark, warehouse = lake, tmp_path / "wh"
    shop.execute(
        "CREATE TABLE small (id int PRIMARY KEY, v text, n int)",
        "ALTER TABLE small ALTER v SET STORAGE EXTERNAL",
        "CREATE PUBLICATION small FOR TABLE small WHERE (id < 100)",
        "INSERT INTO small VALUES (1, 'one', 1), (200, repeat('x', 3000), 2)",
    )
    shop.capture(publications=["small"], snapshot=True)
    replicate(spark, shop.directory, warehouse, **options)
    shop.execute("UPDATE small SET id = 2 WHERE id = 200")
    shop.capture(publications=["small"])
    with pytest.raises(
        pgo.ChangeLogError, match=r"public\.small: .* of the column 'v'.*copy the table again .*--table"
    ):
        replicate(spark, shop.directory, warehouse, **options)
    assert [row[0] for row in _rows(spark, warehouse, "public.small")] == [1]
    snapshot(shop.dsn, shop.directory, ["public.small"])
    shop.execute("UPDATE small SET n = 3 WHERE id = 2")
    shop.capture(publications=["small"])
    replicate(spark, shop.directory, warehouse, **options)
    assert _rows(spark, warehouse, "public.small") == [(1, "one", 1), (2, "x" * 3000, 3)]
