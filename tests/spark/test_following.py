"""A real server's tables that had rows before, are copied, and altered on the way: what comes out equals the source."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import create_slot, fetch_table
from pgoutput_construct.spark import (
    IncompleteTableWarning,
    OpenLog,
    advance,
    compare,
    open_log,
    read_table,
    write_tables,
)
from tests.postgres.shop import Shop
from tests.spark.copying import copy_table

pytestmark = pytest.mark.spark

BEFORE = """
CREATE TABLE keyed (id int PRIMARY KEY, name text, gone text);
CREATE TABLE whole (a int, b text);
ALTER TABLE whole REPLICA IDENTITY FULL;
CREATE TABLE added (a int, b text);
CREATE TABLE silent (a int);
CREATE TABLE turned (id int PRIMARY KEY, code text NOT NULL UNIQUE);
INSERT INTO keyed SELECT i, 'row ' || i, 'x' FROM generate_series(1, 20) i;
INSERT INTO whole SELECT i % 3, 'same' FROM generate_series(1, 9) i;
INSERT INTO added SELECT i, 'row ' || i FROM generate_series(1, 5) i;
INSERT INTO turned SELECT i, 'code ' || i FROM generate_series(1, 5) i;
"""

ALTERED = """
ALTER TABLE keyed ADD COLUMN since date DEFAULT '2020-02-02', ADD COLUMN grid int[] DEFAULT '{1,NULL,3}';
UPDATE keyed SET name = 'changed' WHERE id < 4;
ALTER TABLE keyed RENAME COLUMN name TO title;
INSERT INTO keyed VALUES (30, 'new', 'y');
ALTER TABLE keyed DROP COLUMN gone;
ALTER TABLE keyed ADD COLUMN gone int;
UPDATE keyed SET id = id + 100, gone = 7 WHERE id IN (5, 30);
ALTER TABLE whole ADD COLUMN c text DEFAULT 'dé';
UPDATE whole SET b = 'other' WHERE ctid IN (SELECT ctid FROM whole LIMIT 4);
INSERT INTO whole VALUES (0, 'same', 'dé'), (0, 'same', 'own');
DELETE FROM whole WHERE c = 'own';
ALTER TABLE whole DROP COLUMN b;
DELETE FROM whole WHERE ctid IN (SELECT ctid FROM whole WHERE a = 1 LIMIT 1);
UPDATE whole SET a = 5 WHERE ctid IN (SELECT ctid FROM whole WHERE a = 2 LIMIT 1);
ALTER TABLE added ADD COLUMN endless timestamptz DEFAULT 'infinity';
INSERT INTO added VALUES (9, 'last', NULL);
ALTER TABLE added RENAME TO moved;
ALTER TABLE turned REPLICA IDENTITY FULL;
UPDATE turned SET id = 9 WHERE id = 1;
ALTER TABLE turned REPLICA IDENTITY USING INDEX turned_code_key;
UPDATE turned SET id = 8 WHERE code = 'code 2';
DELETE FROM turned WHERE id = 3;
"""

TABLES = ("public.keyed", "public.whole", "public.moved", "public.silent", "public.turned", "public.item")


@pytest.mark.server
def test_equal_to_the_source(spark: Any, server18: EmbeddedServer, tmp_path: Path) -> None:
    """Rows that were there, defaults, renamed, dropped and re-added columns, full rows, other identities."""
    with Shop.create(server18, "following", tmp_path / "log") as shop:
        shop.execute(*_statements(BEFORE), f"SELECT pg_drop_replication_slot('{shop.slot}')")
        with shop.connect() as connection:
            create_slot(connection, shop.slot, two_phase=True)
        shop.execute("INSERT INTO item VALUES (1, 'seen')")
        shop.capture()
        _copy_beside_an_open_transaction(shop)
        copied = open_log(spark, shop.directory)
        before = advance(None, copied.changes("public.added"), copied.table("public.added")).localCheckpoint()
        with shop.capturing():
            for statement in _statements(ALTERED):
                shop.execute(statement)
        shop.capture()
        opened = open_log(spark, shop.directory)
        assert [str(lack) for lack in opened.lacks] == []
        _check_equal(opened, shop, tmp_path, TABLES)
        _check_default(opened, before, shop)
        assert opened.table("public.keyed").columns.names == ["id", "title", "since", "grid", "gone", "gone_dropped_3"]


SHOP = """
CREATE SCHEMA sales;
CREATE TABLE sales.retyped (id int PRIMARY KEY, n text, u int);
CREATE TABLE sales.anew (id int PRIMARY KEY, v text);
CREATE TABLE sales.later (id int PRIMARY KEY, v text);
CREATE TABLE sales.empty (id int PRIMARY KEY, v text);
CREATE TABLE sales.only_inserts (v text, big text);
INSERT INTO sales.retyped SELECT i, i::text, i FROM generate_series(1, 100) i;
INSERT INTO sales.anew SELECT i, 'old' FROM generate_series(1, 10) i;
INSERT INTO sales.later SELECT i, 'old' FROM generate_series(1, 50) i;
INSERT INTO sales.only_inserts SELECT 'old', repeat('x', i) FROM generate_series(1, 10) i;
CREATE PUBLICATION following FOR TABLE sales.retyped, sales.anew, sales.empty, sales.only_inserts, item;
"""

REWRITTEN = """
INSERT INTO sales.retyped VALUES (200, '200', 0);
ALTER TABLE sales.retyped ALTER n TYPE int USING n::int * 2;
UPDATE sales.retyped SET u = 5 WHERE id = 1;
ALTER TABLE sales.retyped ADD COLUMN moment timestamptz DEFAULT clock_timestamp();
DELETE FROM sales.retyped WHERE id = 2;
DROP TABLE sales.anew;
CREATE TABLE sales.anew (id int PRIMARY KEY, v text, w int DEFAULT 3);
INSERT INTO sales.anew VALUES (2, 'before it is published');
ALTER PUBLICATION following ADD TABLE sales.anew, sales.later;
INSERT INTO sales.later VALUES (51, 'new');
INSERT INTO sales.anew VALUES (3, 'new');
INSERT INTO sales.only_inserts VALUES ('new', NULL);
ALTER SCHEMA sales RENAME TO "Sales";
BEGIN;
DELETE FROM "Sales".later WHERE id < 10;
PREPARE TRANSACTION 'following';
COMMIT PREPARED 'following';
UPDATE item SET name = 'again';
"""


@pytest.mark.long
def test_the_capture_copies_what_the_stream_does_not_say(spark: Any, server: EmbeddedServer, tmp_path: Path) -> None:
    """Tables rewritten, dropped and made anew, published later, renamed with their schema: copied by the capture."""
    with Shop.create(server, f"copying_{server.version}", tmp_path / "log") as shop:
        shop.execute(*_statements(SHOP), "INSERT INTO item VALUES (1, 'old')")
        shop.execute(f"SELECT pg_drop_replication_slot('{shop.slot}')")
        options: dict[str, Any] = {"publications": ["following"], "snapshot": True, "status_interval": 1.0}
        shop.capture(create_slot=True, **options)
        with shop.capturing(**options), shop.connect() as connection:
            for statement in _statements(REWRITTEN):
                connection.execute(statement.encode())
        shop.capture(**options)
        opened = open_log(spark, shop.directory)
        assert [str(lack) for lack in opened.lacks] == []
        names = [f'"Sales".{name}' for name in ("retyped", "anew", "later", "empty", "only_inserts")]
        assert opened.table("sales.anew").dropped and opened.state("sales.anew").isEmpty()
        _check_equal(opened, shop, tmp_path, ["public.item", *names])


def _statements(script: str) -> list[str]:
    return [statement for statement in script.split(";\n") if statement.strip()]


def _copy_beside_an_open_transaction(shop: Shop) -> None:
    """Copy the tables while a transaction has changed them that no snapshot sees; then it commits."""
    with shop.connect() as open_one:
        open_one.execute("BEGIN")
        open_one.execute("UPDATE keyed SET name = 'late' WHERE id > 18")
        open_one.execute("INSERT INTO whole VALUES (1, 'late')")
        for name in ("keyed", "whole", "added", "silent", "turned", "item"):
            copy_table(shop.dsn, shop.directory, name)
        shop.execute("DELETE FROM keyed WHERE id = 1", "INSERT INTO item VALUES (2, 'later')")
        open_one.execute("COMMIT")


def _check_default(log: OpenLog, before: Any, shop: Shop) -> None:
    """Rows of a state that is older than a column get the default that the column was added with."""
    table = log.table("public.moved")
    assert "endless" in table.current and "endless" not in before.columns
    after = advance(before, log.changes("public.moved"), table).drop("_commit_lsn", "_seq")
    comparison = compare(after, fetch_table(shop.dsn, table.namespace, table.name, table.current_columns))
    assert comparison.equal, comparison


def _check_equal(log: OpenLog, shop: Shop, tmp_path: Path, names: Sequence[str]) -> None:
    written = write_tables(log, tmp_path / "tables")
    assert set(names) == {name for name in log.tables if not log.table(name).dropped}
    with warnings.catch_warnings():
        warnings.simplefilter("error", IncompleteTableWarning)
        for name in names:
            table = log.table(name)
            state = log.state(name, read_table(log.spark, written[name].path))
            comparison = compare(state, fetch_table(shop.dsn, table.namespace, table.name, table.current_columns))
            assert comparison.equal, f"{name}: {comparison}"
