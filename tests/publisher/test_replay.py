"""A change log of a real server, brought into another database by PostgreSQL's own subscription, is equal to it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner
from psycopg.sql import SQL, Identifier

import pgoutput_construct as pgo
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.cli.group import cli
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import capture, current_lsn
from pgoutput_construct.publisher.replay import (
    ReplayError,
    TargetTable,
    _ReplayFeed,
    compare_tables,
    connected,
    replay,
    target_tables,
)
from tests.publisher.facts import Fact
from tests.publisher.logs import WrittenLog, insert, relation
from tests.publisher.subscriber import database
from tests.spark.logs import ORDERS, log_options, write_log
from tools.faults.obstacles import TIMEOUTS

pytestmark = pytest.mark.server

TABLES = """
CREATE SCHEMA "Odd names";
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE orders (id int PRIMARY KEY, note text, amount numeric(10,2), big text);
CREATE TABLE "Odd names"."a table" ("a key" text PRIMARY KEY, at timestamptz, feeling mood);
CREATE TABLE pairs (a int, b text); ALTER TABLE pairs REPLICA IDENTITY FULL;
CREATE PUBLICATION shop FOR ALL TABLES;
"""
BEFORE = """
INSERT INTO orders SELECT n, 'copied', n, repeat('x', 4000) FROM generate_series(1, 300) n;
INSERT INTO pairs SELECT n, 'copied' FROM generate_series(1, 10) n;
"""
CHANGES = """
INSERT INTO "Odd names"."a table" VALUES ('k', '2026-01-31 12:00+00', 'ok'), ('gone', NULL, NULL);
UPDATE orders SET note = 'changed' WHERE id < 50;
UPDATE orders SET id = id + 1000 WHERE id BETWEEN 60 AND 70;
DELETE FROM orders WHERE id BETWEEN 200 AND 210; DELETE FROM "Odd names"."a table" WHERE "a key" = 'gone';
UPDATE pairs SET b = 'changed' WHERE a > 5;
BEGIN; INSERT INTO orders SELECT n, 'streamed', 1, 'y' FROM generate_series(2000, 4000) n;
SAVEPOINT s; INSERT INTO pairs SELECT n, 'never' FROM generate_series(1, 1000) n; ROLLBACK TO s;
DELETE FROM orders WHERE id = 2001; COMMIT;
ALTER TABLE orders ADD COLUMN extra int DEFAULT 7; UPDATE orders SET extra = 8 WHERE id = 1;
INSERT INTO orders (id, extra) VALUES (5000, 9);
ALTER TABLE pairs RENAME TO couples; INSERT INTO couples VALUES (99, 'renamed');
BEGIN; INSERT INTO couples VALUES (100, 'prepared'); PREPARE TRANSACTION 'replayed';
INSERT INTO couples VALUES (101, 'between'); COMMIT PREPARED 'replayed';
"""
ALTERED = (
    "ALTER TABLE couples RENAME COLUMN b TO letters; UPDATE couples SET letters = 'later' WHERE a = 1;"
    "ALTER TABLE orders DROP COLUMN big; UPDATE orders SET note = 'without' WHERE id = 2",
    "ALTER TABLE orders ADD COLUMN big int; UPDATE orders SET big = 3 WHERE id = 3",
)
"""What is captured before the next of these: then the log knows which column is which."""
NAMES = {"orders": "id, note, amount, extra, big", '"Odd names"."a table"': "*", "couples": "a, letters"}


@pytest.fixture(scope="module")
def recorded(server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A log that was begun with a copy of rows, and the rows of the server in the end."""
    log = tmp_path_factory.mktemp("replayed") / "log"
    with database(server, "replay_source") as source:
        for statement in (TABLES + BEFORE).split(";"):
            source.execute(statement)
        options: Any = {"proto_version": 4, "streaming": "parallel", "two_phase": True, "handle_signals": False}
        first: Any = {"create_slot": True, "snapshot": True, "until_idle": 1.0}
        capture(source.info.dsn, "replayed", ["shop"], log, **options, **first)
        for statements in (CHANGES, *ALTERED):
            for statement in statements.split(";"):
                source.execute(statement.encode())
            capture(source.info.dsn, "replayed", ["shop"], log, **options, until_lsn=current_lsn(source))
        yield log, _rows(source)
        source.execute("SELECT pg_drop_replication_slot('replayed')")


def target_tables_of(log: Path) -> list[TargetTable]:
    """Return the tables that a log is about."""
    read = ChangeLog(log)
    return target_tables(read.descriptions(), read.index)


def _rows(connection: psycopg.Connection[Any]) -> dict[str, Any]:
    query = "SELECT md5(string_agg(t::text, E'\\n' ORDER BY t::text)), count(*) FROM (SELECT {} FROM {}) t"
    return {
        name: connection.execute(query.format(columns, name).encode()).fetchone() for name, columns in NAMES.items()
    }


def test_a_log_is_replayed(server: EmbeddedServer, recorded: tuple[Path, dict[str, Any]]) -> None:
    """Tables are created where they are not there, and equal those of the server; a second replay is refused."""
    log, expected = recorded
    with database(server, "replay_target") as target:
        target.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
        with pytest.raises(ReplayError, match="the log has no commit at or before 0/1: choose"):
            replay(log, target.info.dsn, pgo.Lsn(1))
        source = target.info.dsn.replace("replay_target", "replay_source")
        done = CliRunner().invoke(cli, ["replay", str(log), "--into", target.info.dsn, "--compare", source])
        assert done.exit_code == 0, done.output
        assert done.output.count(": equal") == len(NAMES)
        assert "public.orders: " in done.output
        assert _rows(target) == expected
        assert target.execute("SELECT count(*) FROM pg_subscription").fetchone() == (0,)
        with pytest.raises(ReplayError, match="has rows: replay into an empty table"):
            replay(log, target.info.dsn)
        target.execute("UPDATE orders SET note = 'other' WHERE id = 5000; DELETE FROM couples")
        compared = compare_tables(target.info.dsn, source, target_tables_of(log))
        assert {each.table: each.equal for each in compared} == {
            "public.orders": False,
            "public.couples": False,
            '"Odd names"."a table"': True,
        }


def test_a_log_is_replayed_into_another_release(
    server: EmbeddedServer, recorded: tuple[Path, dict[str, Any]], request: pytest.FixtureRequest
) -> None:
    """What was captured from 19 is subscribed to by 18, and what was captured from earlier ones by 19."""
    other: EmbeddedServer = request.getfixturevalue("server18" if server.version == 19 else "server19")
    log, expected = recorded
    with database(other, "replay_other") as target:
        target.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
        source = psycopg.conninfo.make_conninfo(server.dsn, dbname="replay_source")
        done = CliRunner().invoke(cli, ["replay", str(log), "--into", target.info.dsn, "--compare", source])
        assert done.exit_code == 0, done.output
        assert done.output.count(": equal") == len(NAMES) and _rows(target) == expected


def test_a_log_is_replayed_to_an_earlier_commit(server: EmbeddedServer, recorded: tuple[Path, dict[str, Any]]) -> None:
    """Up to the first commit behind the copies there is what it left, and nothing of what came later."""
    log, _ = recorded
    first = ChangeLog(log).transactions()["commit_lsn"].to_pylist()
    with database(server, "replay_earlier") as target:
        target.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
        replay(log, target.info.dsn, first[0])
        (table,) = (name for name in NAMES if name != "orders" and "Odd" in name)
        assert target.execute(f"SELECT count(*) FROM {table}").fetchone() == (2,)
        assert target.execute("SELECT count(*), min(note) FROM orders").fetchone() == (300, "copied")


def test_a_type_that_the_server_lacks_is_named(server: EmbeddedServer, recorded: tuple[Path, dict[str, Any]]) -> None:
    """A column of an enum that is not there is refused before anything is applied, with the remedy."""
    log, _ = recorded
    with database(server, "replay_lacking") as target:
        assert "no type public.mood: create it" in _refused(log, target.info.dsn)


def test_names_that_no_row_has_had(tmp_path: Path) -> None:
    """A table and its columns are called as the catalog said behind the last row; where it did not, as in that."""
    described = {"oid": ORDERS.relation_oid, "schema": "public", "snapshot": [1, 1, []], "replica_identity": "d"}
    rest: Any = {"created": 1, "filenodes": [[1, 1]]}
    shapes = [(column.type_oid, column.type_modifier) for column in ORDERS.columns]
    facts = []
    for place, name, names in ((0, "orders", ("id", "total")), (4, "sales", ("number", "amount"))):
        shaped = zip(names, shapes, strict=True)
        told = [{"number": n, "name": c, "type": t, "modifier": m} for n, (c, (t, m)) in enumerate(shaped, 1)]
        columns = [{**column, "published": True} for column in told]
        facts.append(Fact(place, pgo.Lsn(1 + 2000 * place), {**described, **rest, "name": name, "columns": columns}))
    last, time = pgo.Lsn(2000), pgo.Timestamp(0)
    row = pgo.Insert(None, ORDERS.relation_oid, (b"1", b"2"))
    stream = (pgo.Begin(pgo.Lsn(1000), time, 700), ORDERS, row, pgo.Commit(pgo.Lsn(1000), pgo.Lsn(1010), time))
    payloads = [pgo.build(each) for each in (*stream, pgo.Begin(last, time, 701), pgo.Commit(last, last, time))]
    for number, read in enumerate((facts, ())):
        write_log(tmp_path / f"{number}", payloads, log_options(), facts=read)
    (sales,), (orders,) = (target_tables_of(tmp_path / f"{number}") for number in range(2))
    assert (sales.name, sales.key, sales.current) == ("sales", ("number",), ("number", "amount"))
    assert (orders.name, orders.key, orders.current) == ("orders", ("id",), ("id", "total"))


REFUSED = {
    "CREATE VIEW orders AS SELECT 1 AS id": "is not a table: rename",
    "CREATE TABLE orders (id int PRIMARY KEY, note text, amount int)": "add big_dropped_4, extra, big, or drop",
    "CREATE SUBSCRIPTION pgoutput_replay CONNECTION 'host=x' PUBLICATION p WITH (connect = false, slot_name = NONE)": (
        "an interrupted one left its subscription behind"
    ),
}


def test_servers_that_are_refused(server: EmbeddedServer, recorded: tuple[Path, dict[str, Any]]) -> None:
    """One whose tables, or what an earlier replay left, are in the way, or that is not there; nothing is done then."""
    log, _ = recorded
    tables = "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND oid >= 16384"
    with database(server, "replay_refused") as target:
        for statement, text in REFUSED.items():
            target.execute(statement.encode())
            before = target.execute(tables).fetchone()
            assert text in _refused(log, target.info.dsn)
            assert target.execute(tables).fetchone() == before
            kind, name = statement.split()[1:3]
            target.execute(f"DROP {kind} {name}".encode())
        away = "host=127.0.0.1 port=1 password=secret"
        told = [_refused(log, away), _refused(log, f"{away} more"), _refused(log, target.info.dsn, "--compare", away)]
        assert ["connection" in each and "secret" not in each for each in told] == [True] * 3
        assert target.execute(tables).fetchone() == (0,)


def test_a_table_that_would_be_ignored(
    server: EmbeddedServer, recorded: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A subscription that was not listed a table says nothing of its rows; the replay does."""
    log, _ = recorded
    published = _ReplayFeed.published
    with database(server, "replay_ignored") as target:
        target.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
        few = lambda *given: [table for table in published(*given) if table.name != "couples"]  # noqa: E731
        monkeypatch.setattr(_ReplayFeed, "published", few)
        assert "would ignore public.couples" in _refused(log, target.info.dsn)
        assert target.execute("SELECT count(*) FROM pg_subscription").fetchone() == (0,)


@pytest.mark.differs_by_version
def test_no_timeout_of_the_target_holds(server: EmbeddedServer) -> None:
    """A replay waits for a subscription, however long that takes, whatever the role or the database sets."""
    with server.connect() as admin:
        admin.execute("CREATE DATABASE limited_target")
        for name, since in TIMEOUTS.items():
            if admin.info.server_version >= since:
                admin.execute(SQL("ALTER DATABASE limited_target SET {} = '1h'").format(Identifier(name)))
    try:
        with connected(psycopg.conninfo.make_conninfo(server.dsn, dbname="limited_target")) as connection:
            for name, since in TIMEOUTS.items():
                if connection.info.server_version >= since:
                    assert connection.execute(f"SHOW {name}".encode()).fetchall() == [("0",)]
    finally:
        with server.connect() as admin:
            admin.execute("DROP DATABASE limited_target WITH (FORCE)")


def _refused(log: Path, into: str, *more: str) -> str:
    done = CliRunner().invoke(cli, ["replay", str(log), "--into", into, *more])
    assert done.exit_code == 1, done.output
    return done.output


def test_a_time_between_a_prepare_and_its_rollback(server18: EmbeddedServer, tmp_path: Path) -> None:
    """What committed meanwhile is there; a table that was dropped and created again has the rows of the last one."""
    log = WrittenLog(tmp_path)
    log.copy(1, 700, ["of the one that was dropped"], 50, "t")
    log.commit(700, 100, 110, relation(1, "t"), insert(1, "gone"))
    prepared = (pgo.Lsn(200), pgo.Lsn(210), pgo.Timestamp(200), 701, "gid")
    log.put(pgo.BeginPrepare(*prepared), relation(2, "t"), insert(2, "never"), pgo.Prepare(*prepared))
    log.commit(702, 300, 310, insert(2, "early"))
    log.commit(703, 400, 410, insert(2, "in time"))
    times = pgo.Timestamp(200), pgo.Timestamp(900)
    log.put(pgo.RollbackPrepared(pgo.Lsn(210), pgo.Lsn(910), *times, 701, "gid"))
    log.commit(704, 1000, 1010, insert(2, "late"))
    log.publish()
    with database(server18, "replay_rolled_back") as target:
        done = replay(log.directory, target.info.dsn, pgo.Timestamp(500))
        assert target.execute("SELECT id FROM t ORDER BY id").fetchall() == [("early",), ("in time",)]
        assert any("public.t" in lack for lack in done.lacks)
