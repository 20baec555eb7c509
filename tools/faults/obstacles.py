"""python -m tools.faults undecodable and timeouts: obstacles that a healthy server puts in the way of a capture.

Slots that it can never decode are replaced, and timeouts that the role has for its own sessions end nothing.
"""

import argparse
import random
import shutil
import signal
import subprocess
import tempfile
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import psycopg

from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.changelog._facts.copies import latest_copies
from pgoutput_construct.changelog._segment.events import BEGUN_ANEW
from pgoutput_construct.changelog.verify import verify
from pgoutput_construct.demo.embedded_server import VERSIONS, EmbeddedServer
from pgoutput_construct.demo.processes import running
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres import capture, drop_slot, slot_health
from pgoutput_construct.postgres.checksums import SourceServer
from pgoutput_construct.wire import Insert, Lsn, parse
from tools.background import in_background
from tools.faults.committed_spans import committed_spans
from tools.faults.errors import FaultsError
from tools.servers import RELEASES, open_server

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["TIMEOUTS", "break_decoding", "create_limited_role", "ids", "timeouts", "undecodable"]

TIMEOUTS: Final = {
    "statement_timeout": 0,
    "lock_timeout": 0,
    "idle_in_transaction_session_timeout": 0,
    "idle_session_timeout": 140000,
    "transaction_timeout": 170000,
}
"""All that a role may have for its sessions, and since which release."""
_LOCK: Final = 7
_ELSEWHERE: Final = "UPDATE pg_class SET relfilenode = (relfilenode::bigint {} 1000000)::oid WHERE oid = {}"
_SLOT: Final = "obstructed"
_ROWS: Final = "INSERT INTO item SELECT g, repeat('x', 100) FROM generate_series({}, {}) g"
_SECONDS: Final = 120.0


def undecodable(arguments: Sequence[str] | None = None) -> int:
    """Run the command ``undecodable``; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.faults undecodable",
        description="A slot has a change that the server cannot decode: a capture ends with the remedy, or replaces "
        "the slot. Then slots are made while tables are truncated, which now and then gives such a one.",
    )
    parser.add_argument("--slots", type=int, default=20, help="made amid TRUNCATE on each server (default 20)")
    options = _parsed(parser, arguments)
    return _on_each(options.versions, lambda source: [*_replaced(source), *_amid_truncates(source, options.slots)])


def timeouts(arguments: Sequence[str] | None = None) -> int:
    """Run the command ``timeouts``; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.faults timeouts",
        description="The role of a capture has every timeout of PostgreSQL, of a second: a slot is created while "
        "a transaction writes, tables are copied, changes come for a while; a snapshot is held, a server is tailed.",
    )
    return _on_each(_parsed(parser, arguments).versions, _limited)


def break_decoding(server: EmbeddedServer, dbname: str, first_id: int, table: str = "item") -> None:
    """Insert the ids ``first_id`` and the next into a table, in a transaction that no slot from before can decode.

    While the INSERT runs, another transaction says in pg_class that the rows of the table are elsewhere, and a third
    one takes that back. The historic snapshot for the second row is the one in between: "could not map filenumber"
    (ReorderBufferProcessTXN), each time. The table itself is as if nothing had happened: the INSERT has it open.
    """
    insert = f"""INSERT INTO {table} SELECT g, CASE WHEN g > {first_id} THEN pg_advisory_xact_lock({_LOCK})::text END
        FROM generate_series({first_id}, {first_id + 1}) g"""
    waiting = f"SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = {_LOCK} AND NOT granted"
    with server.connect(dbname=dbname) as altering, server.connect(dbname=dbname) as writing:
        oid = altering.execute("SELECT %s::regclass::oid", [table]).fetchall()[0][0]
        altering.execute("SET allow_system_table_mods = on")
        altering.execute(f"SELECT pg_advisory_lock({_LOCK})".encode())
        with in_background(lambda done: writing.execute(insert.encode())):
            while not altering.execute(waiting.encode()).fetchall():
                time.sleep(0.01)
            altering.execute(_ELSEWHERE.format("+", oid).encode())
            altering.execute(f"SELECT pg_advisory_unlock({_LOCK})".encode())
        altering.execute(_ELSEWHERE.format("-", oid).encode())


@contextmanager
def create_limited_role(connection: "psycopg.Connection[Any]", name: str) -> Iterator[Callable[[str], str]]:
    """Create a role whose timeouts are all one second, for a block; yield what makes a connection string its own.

    They apply from a session's start until the client's first SET, which must come within that time.
    """
    connection.execute(f"CREATE ROLE {name} SUPERUSER LOGIN".encode())
    for setting, since in TIMEOUTS.items():
        if connection.info.server_version >= since:
            connection.execute(f"ALTER ROLE {name} SET {setting} = '1s'".encode())
    try:
        yield lambda dsn: psycopg.conninfo.make_conninfo(dsn, user=name)
    finally:
        connection.execute(f"DROP ROLE {name}".encode())


def ids(log: ChangeLog, oid: int) -> list[int]:
    """Return the ids of a table into which was only inserted: those of its latest copy, and what that does not see."""
    copy, spans, found = latest_copies(log.index)[oid], committed_spans(log.index), []
    for entry in log.entries(copied=True):
        message = parse(entry.payload, **{**log.options.layout(), **entry.states})
        if not isinstance(message, Insert) or message.relation_oid != oid:
            continue
        place = bisect_right(spans.first_seq, entry.seq) - 1
        in_span = place >= 0 and entry.seq <= spans.last_seq[place]
        if entry.snapshot is not None:
            counts = copy.first_chunk <= entry.snapshot <= copy.last_chunk and entry.seq not in copy.void
        else:
            counts = in_span and bool(copy.snapshot.invisible(np.array([spans.xid[place]]))[0])
        if counts:
            found.append(int(bytes(message.new[0])))  # type: ignore[arg-type]
    return sorted(found)


@dataclass
class _Source:
    """A database with a table into which is only inserted, and its publication."""

    server: EmbeddedServer
    dbname: str = "obstacles"
    directory: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="obstacles-")))

    @property
    def dsn(self) -> str:
        return psycopg.conninfo.make_conninfo(self.server.dsn, dbname=self.dbname)

    def create(self) -> None:
        with self.server.connect() as admin:
            admin.execute(f"CREATE DATABASE {self.dbname}".encode())
        self.execute("CREATE TABLE item (id bigint PRIMARY KEY, name text)", "CREATE PUBLICATION p FOR TABLE item")

    def execute(self, *statements: str) -> None:
        with self.server.connect(dbname=self.dbname) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def end(self) -> Lsn:
        with self.server.connect(dbname=self.dbname) as connection:
            (row,) = connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchall()
            return Lsn(row[0])

    def capture(self, name: str, dsn: str | None = None, **options: Any) -> Any:
        """Capture into the log ``name``, unless options say otherwise up to the present end of the WAL."""
        if "stop" not in options:
            options["until_lsn"] = self.end()
        given = {"create_slot": True, "snapshot": True, "handle_signals": False, **options}
        return capture(dsn or self.dsn, _SLOT, ["p"], self.directory / name, **given)

    def drop_slot(self) -> None:
        with self.server.connect(dbname=self.dbname) as connection:
            drop_slot(connection, _SLOT, missing_ok=True)

    def differences(self, name: str) -> list[str]:
        """Return how the log ``name`` differs from the table."""
        log = ChangeLog(self.directory / name)
        with self.server.connect(dbname=self.dbname) as connection:
            (row,) = connection.execute("SELECT 'item'::regclass::oid::bigint").fetchall()
            there = [each[0] for each in connection.execute("SELECT id FROM item ORDER BY id")]
        found = ids(log, row[0])
        problems = [str(problem) for problem in verify(log.store).problems]
        return problems if found == there else [f"{name}: {len(found)} rows, the table has {len(there)}", *problems]


def _parsed(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    parser.add_argument("--versions", type=int, nargs="+", choices=RELEASES, default=VERSIONS, help="PostgreSQL's")
    return parser.parse_args(arguments)


def _on_each(versions: Sequence[int], attack: Callable[[_Source], list[str]]) -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that no server is left behind
    good = True
    for version in versions:
        with open_server(version) as server:
            source = _Source(server)
            source.create()
            print(f"PostgreSQL {version}, files in {source.directory}", flush=True)
            problems = attack(source)
        print(f"PostgreSQL {version}: {'; '.join(problems) or 'the log has what the table has'}", flush=True)
        good = good and not problems
        if not problems:
            shutil.rmtree(source.directory)
    return 0 if good else 1


def _replaced(source: _Source) -> list[str]:
    """Capture over a change that cannot be decoded: with the remedy in the error, and then with the remedy."""
    source.execute(_ROWS.format(1, 1000))
    source.capture("replaced")
    break_decoding(source.server, source.dbname, 1001)
    source.execute(_ROWS.format(1003, 2000))
    problems = []
    try:
        source.capture("replaced")
        problems.append("the slot was decoded")
    except ReplicationError as error:
        print(f"  stop: {error}", flush=True)
        problems += [] if "--on-lost-slot snapshot" in str(error) else ["the error names no remedy"]
    source.capture("replaced", on_lost_slot="snapshot")
    source.execute(_ROWS.format(2001, 3000))
    source.capture("replaced")
    print(f"  snapshot: the log began {_begun(source, 'replaced')} time(s) from scratch", flush=True)
    source.drop_slot()
    return problems + source.differences("replaced")


def _amid_truncates(source: _Source, slots: int) -> list[str]:
    """Make slots while tables are truncated and created, each for a log of its own; return what the logs lack."""
    replaced, problems = 0, list[str]()

    def truncate(number: int, done: Any) -> None:
        with source.server.connect(dbname=source.dbname, autocommit=False) as connection:
            connection.execute(f"CREATE TABLE other{number} (id int PRIMARY KEY)".encode())
            while not done.is_set():
                connection.execute(f"INSERT INTO other{number} VALUES (1)".encode())
                connection.execute("SAVEPOINT s")
                connection.execute(f"TRUNCATE other{number}".encode())
                connection.execute(f"INSERT INTO other{number} VALUES (2)".encode())
                if random.random() < 0.5:
                    connection.execute("ROLLBACK TO SAVEPOINT s")
                connection.execute(f"TRUNCATE other{number}".encode())
                connection.commit()

    for number in range(slots):
        name = f"truncates{number}"
        with in_background(*((lambda done, place=4 * number + each: truncate(place, done)) for each in range(4))):
            time.sleep(random.random() / 10)
            source.capture(name, on_lost_slot="snapshot")
            source.execute(_ROWS.format(10_000 + 10 * number, 10_009 + 10 * number))
            source.capture(name, on_lost_slot="snapshot")
        replaced += bool(_begun(source, name))
        problems += source.differences(name)
        source.drop_slot()
    print(f"  {slots} slots made amid TRUNCATE: {replaced} could not be decoded, and were replaced", flush=True)
    return problems


def _begun(source: _Source, name: str) -> int:
    return sum(event.name == BEGUN_ANEW for event in ChangeLog(source.directory / name).events())


def _limited(source: _Source) -> list[str]:
    with source.server.connect() as admin, create_limited_role(admin, "limited") as limited:
        dsn = limited(source.dsn)
        return [*_captured(source, dsn), *_held(dsn), *_tailed(source, dsn)]


def _captured(source: _Source, dsn: str) -> list[str]:
    """Create a slot while a transaction writes, copy tables, and capture for a while."""
    source.execute(_ROWS.format(1, 20_000))
    options: Any = {"heartbeat": 0.5, "status_interval": 0.5}
    with in_background(lambda done: source.capture("limited", dsn, stop=done.is_set, **options)) as (capturing,):
        with source.server.connect(dbname=source.dbname, autocommit=False) as writing:
            writing.execute("INSERT INTO item VALUES (20001, 'open')")
            time.sleep(3)
        _wait(capturing, lambda: any(slot.confirmed_lsn is not None for slot in slot_health(dsn, _SLOT)))
        for number in range(3):
            time.sleep(1.5)
            source.execute(_ROWS.format(20_002 + number * 50_000, 70_001 + number * 50_000))
        end = source.end()
        _wait(capturing, lambda: any((slot.confirmed_lsn or 0) >= end for slot in slot_health(dsn, _SLOT)))
    progress = capturing.result()
    source.capture("limited", dsn)
    print(
        f"  capture --create-slot --snapshot: {progress.rows:,} messages, {progress.reconnects} reconnects", flush=True
    )
    return [*source.differences("limited"), *(["the connection was lost"] if progress.reconnects else [])]


def _held(dsn: str) -> list[str]:
    """Hold a snapshot as ``verify`` does, between statements and in one."""
    with SourceServer(dsn, ["p"]).held() as held:
        time.sleep(2)
        held.connection.execute("SELECT pg_sleep(2)")
        rows = held.connection.execute("SELECT count(*) FROM public.item").fetchall()[0][0]
    print(f"  a snapshot as of verify, held for four seconds: {rows:,} rows", flush=True)
    return []


def _tailed(source: _Source, dsn: str) -> list[str]:
    """Tail the server, whose temporary slot waits for a transaction, too."""
    command = ["-m", "pgoutput_construct.cli", "tail", dsn, "--publication", "p", "--limit", "1"]
    writing = source.server.connect(dbname=source.dbname, autocommit=False)
    with writing, running(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tailing:
        writing.execute("INSERT INTO item VALUES (-1, 'open')")
        _wait_for(lambda: any(slot.temporary for slot in slot_health(dsn)) or tailing.poll() is not None)
        time.sleep(2)
        writing.commit()
        _wait_for(lambda: any(s.temporary and s.confirmed_lsn for s in slot_health(dsn)) or tailing.poll() is not None)
        time.sleep(2)
        source.execute("INSERT INTO item VALUES (-2, 'tailed')")
        output, errors = tailing.communicate(timeout=_SECONDS)
    print(f"  tail: exit {tailing.returncode}, {output.strip() or errors.strip()}", flush=True)
    return [] if tailing.returncode == 0 and "tailed" in output else ["the tail ended without a change"]


def _wait(working: "Future[Any]", condition: Callable[[], bool]) -> None:
    _wait_for(lambda: condition() or working.done())


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise FaultsError(f"waited for longer than {_SECONDS:g} seconds")
        time.sleep(0.05)
