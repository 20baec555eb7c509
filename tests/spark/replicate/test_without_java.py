"""A small database is replicated where there is no Java; what needs Spark says so, and is done once there is one."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from pgoutput_construct import lake
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from tests.postgres.shop import Shop

pytestmark = [pytest.mark.server, pytest.mark.slow]

ROUNDS = (
    """
    CREATE TABLE keyed (id int PRIMARY KEY, note text, big text, at timestamptz);
    ALTER TABLE keyed ALTER big SET STORAGE EXTERNAL;
    CREATE TABLE whole (a int, b text);
    ALTER TABLE whole REPLICA IDENTITY FULL;
    INSERT INTO keyed SELECT i, 'row ' || i, repeat('b', 3000 + i), 'epoch' FROM generate_series(1, 90) i;
    INSERT INTO whole SELECT i % 3, 'same' FROM generate_series(1, 9) i;
    INSERT INTO item VALUES (1, 'first');
    COMMENT ON COLUMN item.name IS 'its name';
    COMMENT ON TABLE item IS 'what is sold';
    """,
    """
    UPDATE keyed SET note = 'changed' WHERE id < 4;
    UPDATE keyed SET id = id + 100 WHERE id BETWEEN 3 AND 5;
    DELETE FROM keyed WHERE id = 6;
    INSERT INTO keyed VALUES (6, 'again', NULL, now()), (500, 'new', '', NULL);
    TRUNCATE item;
    INSERT INTO item VALUES (7, 'after');
    UPDATE whole SET b = 'other' WHERE ctid IN (SELECT ctid FROM whole LIMIT 4);
    DELETE FROM whole WHERE a = 2;
    """,
)
ALTERED = (
    "ALTER TABLE keyed ADD COLUMN later int DEFAULT 7; INSERT INTO item VALUES (8, 'meanwhile')",
    "INSERT INTO item VALUES (9, 'after a table failed')",
)
TABLES = {"public.item": "id, name", "public.keyed": "id, note, big, at", "public.whole": "a, b"}


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Shop]:
    """Return a database, and an empty place for a log."""
    with Shop.create(server18, f"no_java_{request.node.callspec.id}", tmp_path / "log") as shop:
        yield shop


@pytest.fixture
def no_java(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which no Java is found."""
    (tmp_path / "empty").mkdir()
    return {**os.environ, "JAVA_HOME": str(tmp_path / "empty")}


def _replicate(shop: Shop, into: str, environment: dict[str, str], *options: str) -> "subprocess.CompletedProcess[str]":
    place = shop.directory.parent / "warehouse"
    command = [sys.executable, "-m", "pgoutput_construct.cli", "replicate", str(shop.directory), "--once"]
    command += ["--into", into, "--warehouse", str(place), "--master", "local[2]"]
    command += options or ("--maintain", "--history")
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)


def _source(shop: Shop, table: str, columns: str) -> list[tuple[Any, ...]]:
    with shop.connect() as connection:
        return _ordered(connection.execute(f"SELECT {columns} FROM {table}".encode()).fetchall())


def _replica(shop: Shop, table: str, columns: str, *, history: bool) -> list[tuple[Any, ...]]:
    rows = lake.read(str(shop.directory.parent / "warehouse"), table, history=history)
    rows = rows.filter(pc.is_null(rows["_ended_by"])) if history else rows
    return _ordered(tuple(row.values()) for row in rows.select(columns.split(", ")).to_pylist())


def _ordered(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: repr(row[:2]))


def _check(shop: Shop, tables: dict[str, str]) -> None:
    """Compare tables, and the rows of their histories that have not ended, with those of the server."""
    for table, columns in tables.items():
        for history in (False, True):
            assert _replica(shop, table, columns, history=history) == _source(shop, table, columns), (table, history)


@pytest.mark.parametrize(
    ("into", "java_comes"),
    [
        pytest.param("parquet", False, id="parquet"),
        pytest.param("parquet", True, id="parquet_then_spark", marks=pytest.mark.long),
        pytest.param("delta", False, id="delta"),
        pytest.param("delta", True, id="delta_then_spark", marks=pytest.mark.long),
    ],
)
def test_rounds(shop: Shop, no_java: dict[str, str], into: str, java_comes: bool) -> None:
    """Tables come, and change, without Java; an altered one with a default waits for it, and the others do not."""
    for statements in ROUNDS:
        shop.execute(*statements.split(";"))
        shop.capture()
        done = _replicate(shop, into, no_java)
        assert done.returncode == 0, done.stderr
        assert "starting Spark" not in done.stderr
        assert re.search(r" INFO .* maintenance of public\.item", done.stderr) and "WARNING" not in done.stderr
        _check(shop, TABLES)
    for statements in ALTERED if into == "delta" else ALTERED[:1]:
        shop.execute(*statements.split(";"))
        shop.capture()
        done = _replicate(shop, into, no_java)
        assert done.returncode == 1, done.stderr
        needs = r"(the history of )?public\.keyed \(columns were added.*\) needs Spark\. Spark needs Java 17"
        assert re.search(needs, done.stderr), done.stderr
        assert "Traceback" not in done.stderr
        assert "public.item is left unchanged" not in done.stderr
        _check(shop, {"public.item": "id, name", "public.whole": "a, b"})
    if not java_comes:
        return
    done = _replicate(shop, into, dict(os.environ))
    assert done.returncode == 0, done.stderr
    assert re.search(r"starting Spark \(local\[2\]\) for (the history of )?public\.keyed", done.stderr)
    if into == "delta":
        item = DeltaTable(str(shop.directory.parent / "warehouse" / "public.item"))
        assert item.metadata().description == "what is sold"
        assert [field.metadata for field in item.schema().fields if field.name == "name"] == [{"comment": "its name"}]
    _check(shop, {**TABLES, "public.keyed": "id, note, big, at, later"})


@pytest.mark.long
def test_many_tables(shop_of_many: Shop, no_java: dict[str, str]) -> None:
    """More than are worth a task of their own: their inserts are staged, and appended all the same."""
    names = [f"many_{number}" for number in range(34)]
    for number in (1, 2):
        create = (f"CREATE TABLE IF NOT EXISTS {name} (id int PRIMARY KEY)" for name in names)
        shop_of_many.execute(*create, *(f"INSERT INTO {name} VALUES ({number})" for name in names))
        shop_of_many.capture()
        done = _replicate(shop_of_many, "delta", no_java)
        assert done.returncode == 0, done.stderr
    _check(shop_of_many, {f"public.{name}": "id" for name in names})


def test_rows_that_spark_loads(shop_of_many: Shop, no_java: dict[str, str]) -> None:
    """Where a format has Spark write what is decoded, the error says why."""
    shop_of_many.execute("CREATE TABLE loaded (id int PRIMARY KEY)", "INSERT INTO loaded VALUES (1)")
    shop_of_many.capture()
    done = _replicate(shop_of_many, "delta", no_java, "--table-property", "delta.appendOnly=false")
    assert done.returncode == 1
    needs = r"public\.loaded \(Spark writes tables .* that have partitions, properties"
    assert re.search(needs, done.stderr), done.stderr


@pytest.fixture
def shop_of_many(server18: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """Return another database."""
    with Shop.create(server18, "no_java_many", tmp_path / "log") as shop:
        yield shop
