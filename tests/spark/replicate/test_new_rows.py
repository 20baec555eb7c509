"""New rows that tasks write themselves: the same as those that Spark writes."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from psycopg import sql

import pgoutput_construct as pgo
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.spark._heap import Heap
from pgoutput_construct.spark._replicate import read_current, replicate, staging, step_writer
from pgoutput_construct.spark._replicate.batch_plan import Reporter
from tests.postgres.shop import PUBLICATION, Shop
from tests.spark.replicate.rounds import check_equal
from tests.spark.replicate.test_table_readers import TABLES as ALL_TYPES
from tests.table_formats import SHORT_IN_PARQUET, SHORT_WITHOUT_DELTA

pytestmark = [pytest.mark.server, pytest.mark.spark]

WRITTEN_BY_TASKS = re.compile(r"part-[0-9a-f]{32}-\d{5}\.parquet")


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path, lake: Any) -> Iterator[Shop]:
    """A database, and its log."""
    with Shop.create(server18, "new_rows", tmp_path / "log") as shop:
        yield shop


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks write new rows, however few they are."""
    monkeypatch.setattr(step_writer, "least_new_rows", lambda sink, tables: 1)


def _files(warehouse: Path, name: str = "") -> set[Path]:
    """Return the files that tasks wrote."""
    return {path for path in warehouse.rglob(f"*{name}*/**/*.parquet") if WRITTEN_BY_TASKS.fullmatch(path.name)}


@pytest.mark.parametrize("into", SHORT_IN_PARQUET)
def test_all_types(
    lake: Any, shop: Shop, tmp_path: Path, into: str, at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy, and rows that come later, with masks; then they are changed."""
    shop.execute(*ALL_TYPES)
    shop.capture(snapshot=True)
    options: dict[str, Any] = {"masks": {'public."Select".t': "sha256(salt)"}, "exclude_columns": ['public."Select".x']}
    direct, staged = tmp_path / "direct", tmp_path / "staged"
    rounds = (
        (),
        ("INSERT INTO \"Select\" (id, s, day, n) VALUES (30, 7, 'infinity', 'NaN'), (31, NULL, NULL, 1)",),
        ("UPDATE \"Select\" SET s = 1, t = 'new' WHERE id IN (3, 30)", 'DELETE FROM "Select" WHERE id = 4'),
    )
    for number, statements in enumerate(rounds):
        shop.execute(*statements)
        shop.capture()
        known = _files(direct)
        replicate(lake, shop.directory, direct, into, **options)
        is_added = bool(_files(direct) - known)
        assert is_added == (number == 0 or (number == 1 and into != "parquet"))
        with monkeypatch.context() as patched:
            patched.setattr(Reporter, "has_inserts_alone", lambda self, step: False)
            replicate(lake, shop.directory, staged, into, **options)
        found, expected = (read_current(lake, each, 'public."Select"') for each in (direct, staged))
        assert found.schema.simpleString() == expected.schema.simpleString()
        rows, others = (each.orderBy("id").toArrow().to_pylist() for each in (found, expected))
        assert list(map(repr, rows)) == list(map(repr, others)) and rows
    assert not _files(staged)


@pytest.mark.parametrize("into", SHORT_IN_PARQUET)
@pytest.mark.long
def test_large_batches(lake: Any, shop: Shop, tmp_path: Path, into: str) -> None:
    """By themselves, those of Parquet from 10,000 rows on; a history does not have them so."""
    shop.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v text)",
        "INSERT INTO t SELECT i, (SELECT string_agg(md5((i * 10 + k)::text), '') FROM generate_series(1, 8) k) "
        "FROM generate_series(1, 40000) i",
    )
    shop.capture(snapshot=True)
    warehouse, recorded = tmp_path / "wh", tmp_path / "recorded"
    for statements in (
        (),
        ("INSERT INTO t SELECT i, 'v' FROM generate_series(40001, 60000) i",),
        ("UPDATE t SET v = 'w' WHERE id % 100 = 0", "DELETE FROM t WHERE id % 1000 = 1"),
        ("BEGIN; SAVEPOINT a; INSERT INTO t VALUES (-1, 'x'); ROLLBACK TO a; INSERT INTO t VALUES (-2, 'y'); COMMIT",),
        ("TRUNCATE t", "INSERT INTO t SELECT i, 'after' FROM generate_series(1, 20000) i"),
    ):
        shop.execute(*statements)
        shop.capture()
        known = _files(warehouse)
        replicate(lake, shop.directory, warehouse, into)
        check_equal(lake, shop, warehouse, ["t"])
        has_new = not statements or statements[0].startswith("INSERT")
        has_few = statements[:1] and statements[0].startswith("BEGIN") and into != "parquet"
        assert bool(_files(warehouse) - known) == bool(has_new or has_few)
    replicate(lake, shop.directory, recorded, into, history=True)
    check_equal(lake, shop, recorded, ["t"])
    assert not _files(recorded)


@pytest.mark.parametrize("into", SHORT_WITHOUT_DELTA[1:])
def test_rows_that_are_larger_than_the_heap(
    lake: Any, shop: Shop, tmp_path: Path, into: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They do not go through it, so that its size does not count."""
    monkeypatch.setattr(staging, "heap_of", lambda spark: Heap(304 << 20, "spark.driver.memory"))
    shop.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, repeat('x', 5 << 20))")
    shop.capture(snapshot=True)
    replicate(lake, shop.directory, tmp_path / "wh", into, tables=["t"])
    assert read_current(lake, tmp_path / "wh", "t").selectExpr("max(length(v))").first()[0] == 5 << 20


@pytest.mark.parametrize("into", SHORT_WITHOUT_DELTA)
def test_rows_that_lack_values(lake: Any, shop: Shop, tmp_path: Path, into: str, at_once: None) -> None:
    """Rows that enter a row filter come as inserts, without their unchanged TOASTed values: they are not new rows."""
    name = sql.Identifier(PUBLICATION).as_string()
    shop.execute(
        "CREATE TABLE t (id int, n int, v text, PRIMARY KEY (id, n))",
        "ALTER TABLE t ALTER v SET STORAGE EXTERNAL",
        f"DROP PUBLICATION {name}",
        f"CREATE PUBLICATION {name} FOR TABLE t WHERE (n > 1)",
        "INSERT INTO t SELECT i, i, repeat('long', 1000) FROM generate_series(1, 5) i",
    )
    shop.capture(snapshot=True)
    warehouse = tmp_path / "wh"
    replicate(lake, shop.directory, warehouse, into)
    known = _files(warehouse)
    assert known
    shop.execute("UPDATE t SET n = 2 WHERE id = 1", "INSERT INTO t VALUES (9, 9, 'short')")
    shop.capture()
    with pytest.raises(pgo.ChangeLogError, match=r"public\.t: .*'v'.*: copy the table again .*--table"):
        replicate(lake, shop.directory, warehouse, into)
    assert _files(warehouse) == known


@pytest.mark.parametrize("into", SHORT_WITHOUT_DELTA)
def test_changes_that_the_index_does_not_tell(
    lake: Any, shop: Shop, tmp_path: Path, into: str, at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were other changes among them, nothing would be written of a table, and then all of it from staged changes."""
    shop.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t SELECT i, 'v' FROM generate_series(1, 9) i"
    )
    shop.capture(snapshot=True)
    warehouse = tmp_path / "wh"
    replicate(lake, shop.directory, warehouse, into)
    shop.execute("UPDATE t SET v = 'w' WHERE id = 3", "DELETE FROM t WHERE id = 4", "INSERT INTO t VALUES (10, 'x')")
    shop.capture()
    known = _files(warehouse)
    monkeypatch.setattr(Reporter, "has_inserts_alone", lambda self, step: True)
    replicate(lake, shop.directory, warehouse, into)
    check_equal(lake, shop, warehouse, ["t"])
    assert _files(warehouse) == known


def test_a_task_that_writes_after_the_batch_gave_it_up(
    lake: Any, shop: Shop, tmp_path: Path, at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file is in no part of the table, and is removed before tasks write again."""
    shop.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    shop.capture(snapshot=True)
    shop.execute("INSERT INTO t SELECT i, 'v' FROM generate_series(1, 9) i", "UPDATE t SET v = 'w' WHERE id = 3")
    shop.capture()
    warehouse = tmp_path / "wh"
    with monkeypatch.context() as patched:
        patched.setattr(Reporter, "has_inserts_alone", lambda self, step: True)
        replicate(lake, shop.directory, warehouse, "parquet")
    (written,) = warehouse.rglob("public.t/v*/*.parquet")
    late = written.parent.with_name(f"{written.parent.name[:-8]}0badf00d") / "part-late.parquet"
    late.parent.mkdir()
    shutil.copy(written, late)
    check_equal(lake, shop, warehouse, ["t"])
    shop.execute("DROP TABLE t", "CREATE TABLE t (id int PRIMARY KEY, v text)")
    shop.execute("INSERT INTO t SELECT i, 'x' FROM generate_series(1, 5) i")
    shop.capture(snapshot=True)
    replicate(lake, shop.directory, warehouse, "parquet")
    check_equal(lake, shop, warehouse, ["t"])
    assert _files(warehouse) and not late.exists()


@pytest.mark.parametrize("into", SHORT_WITHOUT_DELTA)
def test_files_that_cannot_be_written(
    lake: Any, shop: Shop, tmp_path: Path, into: str, at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is that of the table, which is tried again; its files are removed."""
    shop.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v timestamptz)",
        "CREATE TABLE other (id int PRIMARY KEY)",
        "INSERT INTO t SELECT i, now() FROM generate_series(1, 9) i",
        "INSERT INTO t VALUES (10, 'infinity')",
        "INSERT INTO other VALUES (1)",
    )
    shop.capture(snapshot=True)
    warehouse = tmp_path / "wh"
    with pytest.raises(pgo.ChangeLogError, match=r"public\.t: values of 'v' cannot be represented in the types"):
        replicate(lake, shop.directory, warehouse, into, untyped="never")
    assert not [path for path in _files(warehouse) if "/t/" in str(path) or "public.t" in str(path)]
    assert read_current(lake, warehouse, "public.other").count() == 1
    replicate(lake, shop.directory, warehouse, into, types="timestamptz=string", untyped="never")
    assert read_current(lake, warehouse, "public.t").count() == 10
