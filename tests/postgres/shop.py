"""A small database to capture, and facts about its changes that do not come through our own client."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from inspect import getsource, isbuiltin, isroutine
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psycopg

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import ChangeLog, LogEntry, SegmentLimits, capture, create_slot, current_lsn
from pgoutput_construct.postgres._catalog.catalog_watch import CatalogWatch
from pgoutput_construct.postgres.connection import Connection
from pgoutput_construct.wire import (
    Begin,
    BeginPrepare,
    Commit,
    CommitPrepared,
    Insert,
    Lsn,
    Message,
    Prepare,
    RollbackPrepared,
    StreamAbort,
    StreamCommit,
    StreamPrepare,
    StreamStart,
    parse,
)
from tools.background import in_background

PUBLICATION = """the "shop's" \\ publication"""
"""A name that needs every kind of quoting."""

ENDS = (Commit, StreamCommit, Prepare, StreamPrepare, CommitPrepared, RollbackPrepared)


@dataclass
class Shop:
    """One test's database, slot and log directory."""

    server: EmbeddedServer
    dbname: str
    directory: Path
    slot: str
    options: dict[str, Any] = field(default_factory=dict)
    path: Callable[[str], str] = str
    """What makes of the connection string that of the captures, such as the way through a proxy."""

    @classmethod
    @contextmanager
    def create(
        cls,
        server: EmbeddedServer,
        dbname: str,
        directory: Path,
        two_phase: bool = True,
        failover: bool = False,
        encoding: str = "UTF8",
    ) -> "Iterator[Shop]":
        """Make the database, and drop it afterwards."""
        with server.connect() as admin:
            admin.execute(f"CREATE DATABASE {dbname} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0".encode())
        shop = cls(
            server, dbname, directory, f"slot_{dbname}", {"messages": True, "two_phase": two_phase, "new_log": True}
        )
        with shop.connect() as connection:
            connection.execute("CREATE TABLE item (id bigint PRIMARY KEY, name text)")
            name = psycopg.sql.Identifier(PUBLICATION).as_string(connection)
            connection.execute(f"CREATE PUBLICATION {name} FOR ALL TABLES".encode())
            create_slot(connection, shop.slot, two_phase=two_phase, failover=failover)
        try:
            yield shop
        finally:
            with server.connect() as admin:
                _drop(admin, shop)

    @property
    def dsn(self) -> str:
        """The connection string of the database."""
        return psycopg.conninfo.make_conninfo(self.server.dsn, dbname=self.dbname)

    def connect(self) -> "psycopg.Connection[Any]":
        """Open an autocommit connection."""
        return self.server.connect(dbname=self.dbname)

    def execute(self, *statements: str) -> Lsn:
        """Run statements one after the other; return the end of the WAL after them."""
        with self.connect() as connection:
            for statement in statements:
                connection.execute(statement.encode())
            return current_lsn(connection)

    def capture(self, until: Lsn | None = None, **options: Any) -> Any:
        """Capture into the directory up to a position, by default the present end of the WAL."""
        if until is None and "stop" not in options:
            until = self.execute()
        return capture(
            self.path(self.dsn),
            self.slot,
            options.pop("publications", [PUBLICATION]),
            self.directory,
            **{"until_lsn": until, **self.options, **options},
        )

    @contextmanager
    def capturing(self, **options: Any) -> Iterator[Future[Any]]:
        """Capture in a thread until the block ends, without delay; what it raises is raised then."""
        given = {"limits": SegmentLimits(seconds=0.1), **options}
        with in_background(lambda done: self.capture(stop=done.is_set, **given)) as (capturing,):
            yield capturing

    @contextmanager
    def capturing_process(self, before: str = "", **options: Any) -> Iterator["subprocess.Popen[bytes]"]:
        """Capture in a process of its own, which runs ``before`` first, and is killed when the block ends."""
        arguments = (self.path(self.dsn), self.slot, [PUBLICATION], str(self.directory))
        program = (
            f"{before}\n"
            "from pgoutput_construct.postgres import capture, SegmentLimits\n"
            f"capture(*{arguments!r}, **{self.options!r}, "
            f"{', '.join(f'{key}={value}' for key, value in options.items())})"
        )
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        process = subprocess.Popen([sys.executable, "-c", program], env=environment)
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
            process.wait(300)

    def log(self) -> ChangeLog:
        """Open the log."""
        return ChangeLog(self.directory)

    def confirmed(self) -> Lsn:
        """Ask the server where the slot is."""
        with self.connect() as connection:
            query = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = %s"
            row = connection.execute(query, [self.slot]).fetchone()
            return Lsn(row[0]) if row else Lsn(0)


def _drop(admin: "psycopg.Connection[Any]", shop: Shop) -> None:
    query = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = %s AND active"
    for _ in range(100):
        admin.execute(query, [shop.slot])
        with suppress(psycopg.errors.ObjectInUse, psycopg.errors.UndefinedObject):
            admin.execute("SELECT pg_drop_replication_slot(%s)", [shop.slot])
        left = admin.execute("SELECT FROM pg_replication_slots WHERE slot_name = %s", [shop.slot]).fetchall()
        if not left:
            break
        time.sleep(0.05)
    with admin.cursor() as cursor, suppress(psycopg.Error):
        cursor.execute(f"DROP DATABASE {shop.dbname} WITH (FORCE)".encode())


def wait_until(condition: Callable[[], bool], seconds: float = 300.0) -> None:
    """Wait for a condition; fail with its source when it does not come true, which takes long on a busy machine."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{seconds:g} seconds were not enough for {_source(condition)}"
        time.sleep(0.02)


def _source(condition: Callable[[], bool]) -> str:
    function = condition.func if isinstance(condition, partial) else condition
    return getsource(function).strip() if isroutine(function) and not isbuiltin(function) else repr(function)


@contextmanager
def counted_polls() -> Iterator[list[None]]:
    """Collect how often captures of this process have read the catalog to its end."""
    polls, poll = list[None](), CatalogWatch.poll

    def counted(watch: CatalogWatch, connection: Connection) -> None:
        poll(watch, connection)
        polls.append(None)

    with patch.object(CatalogWatch, "poll", counted):
        yield polls


def leave_detach_pending(connect: "Callable[[], psycopg.Connection[Any]]", parent: str, partition: str) -> None:
    """Cancel a DETACH CONCURRENTLY while it waits for a reader of the table."""
    pending = "SELECT FROM pg_inherits WHERE inhrelid = %s::regclass AND inhdetachpending"
    with connect() as reader, connect() as detaching, reader.transaction():
        reader.execute(f"SELECT FROM {parent}".encode())
        detaching.pgconn.send_query(f"ALTER TABLE {parent} DETACH PARTITION {partition} CONCURRENTLY".encode())
        wait_until(lambda: bool(reader.execute(pending, [partition]).fetchall()))
        detaching.cancel()
        while result := detaching.pgconn.get_result():
            assert b"canceling statement" in result.error_message


def messages(log: ChangeLog) -> Iterator[tuple[LogEntry, Any]]:
    """Parse every entry by itself, as a parallel reader would."""
    options = log.options
    for entry in log:
        yield (
            entry,
            parse(entry.payload, options.proto_version, options.streaming, in_stream=entry.in_stream),
        )


def end_lsn(end: Any) -> Lsn:
    """Return the position after the end of a transaction."""
    return Lsn(end.rollback_end_lsn if isinstance(end, RollbackPrepared) else end.end_lsn)


def ends(log: ChangeLog) -> "Counter[tuple[str, Lsn]]":
    """Count the ends of whole transactions by their position."""
    found: Counter[tuple[str, Lsn]] = Counter()
    for _, message in messages(log):
        if isinstance(message, ENDS):
            found[type(message).__name__, end_lsn(message)] += 1
    return found


def committed_ids(log: ChangeLog) -> list[int]:
    """Replay the log by the rules for readers, and return the committed item ids in commit order."""
    replay = _Replay()
    for entry, message in messages(log):
        replay.take(entry, message)
    return replay.committed


class _Replay:
    """The rules of the log's incomplete copies, written down a second time."""

    def __init__(self) -> None:
        self.committed: list[int] = []
        self._current: list[int] = []
        self._streams: dict[int, list[tuple[int, int]]] = {}
        self._prepared: dict[str, list[int]] = {}

    def take(self, entry: LogEntry, message: Any) -> None:
        """Take one message."""
        match message:
            case Begin() | BeginPrepare():
                self._current = []
            case Insert():
                self._insert(entry, message)
            case Commit():
                self.committed += self._current
            case Prepare():
                self._prepared[message.gid] = self._current
            case StreamStart(first_segment=1):
                self._streams[message.xid] = []
            case StreamAbort():
                self._abort(message)
            case StreamCommit():
                self.committed += [item for _, item in self._streams.pop(message.xid)]
            case StreamPrepare():
                self._prepared[message.gid] = [item for _, item in self._streams.pop(message.xid)]
            case CommitPrepared():
                self.committed += self._prepared.pop(message.gid)
            case RollbackPrepared():
                self._prepared.pop(message.gid)

    def _insert(self, entry: LogEntry, message: Insert) -> None:
        item = int(bytes(message.new[0]))  # type: ignore[arg-type]
        if entry.stream_xid is None:
            self._current.append(item)
        else:
            self._streams[entry.stream_xid].append((message.xid or 0, item))

    def _abort(self, message: StreamAbort) -> None:
        rows = self._streams.get(message.xid, [])
        kept = [row for row in rows if row[0] != message.subxid]
        self._streams[message.xid] = [] if message.subxid == message.xid else kept


def notes(log: ChangeLog) -> "Counter[bytes]":
    """Count the logical messages that belong to no transaction."""
    return Counter(
        message.content for _, message in messages(log) if isinstance(message, Message) and not message.flags
    )


def is_active(shop: Shop) -> bool:
    """Return whether the shop's slot is being read."""
    query = "SELECT FROM pg_replication_slots WHERE slot_name = %s AND active"
    with shop.connect() as connection:
        return bool(connection.execute(query, [shop.slot]).fetchall())
