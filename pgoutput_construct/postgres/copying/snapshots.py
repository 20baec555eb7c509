"""Snapshots of a server: which transactions they contain, and one that contains all from before the stream."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import psycopg
from psycopg import sql

from pgoutput_construct.catalog_queries import CURRENT_SNAPSHOT, INSERTED_LSN
from pgoutput_construct.changelog.visibility import Snapshot
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres.copying.holders import writers
from pgoutput_construct.postgres.queries import Connection, ask_one, fetch_row, run
from pgoutput_construct.postgres.server import current_lsn, is_standby
from pgoutput_construct.postgres.waiting import PatientConnection
from pgoutput_construct.stream.identifiers import qualified_name
from pgoutput_construct.wire import Lsn

__all__ = [
    "LostSnapshotError",
    "begin_alone",
    "check_can_copy",
    "export",
    "imported",
    "next_xid",
    "read_snapshot",
    "sees_until",
    "wait_until_flushed",
]

_LOG = logging.getLogger("pgoutput_construct")
_BEGIN: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_PAUSE: Final = 0.1  # seconds
_LOST: Final = frozenset({"22023", "42704", "55000"})
"""What a server says of an exported snapshot whose transaction has ended (ImportSnapshot)."""
_TOLD_AFTER: Final = 2.0  # seconds
_OLDEST: Final = 130000
_PAGE_HEADERS: Final = (24, 40)
"""Bytes of the header of a WAL page, and of the first one of a file."""


def check_can_copy(connection: Connection) -> None:
    """Raise ReplicationError where no table can be copied.

    The snapshots of a standby do not name the transactions that have not ended.
    """
    if (version := connection.info.server_version) < _OLDEST:
        raise ReplicationError(f"copies of tables need PostgreSQL {_OLDEST // 10000}, the server is {version // 10000}")
    if is_standby(connection):
        raise ReplicationError(
            "the server is a standby, whose snapshots do not say which transactions they contain: copy tables from its "
            "primary, with a slot there"
        )


def read_snapshot(connection: Connection, lsn: Lsn) -> Snapshot:
    """Return which transactions are in the snapshot of ``connection``; ``lsn`` was reached when it was made."""
    text = str(ask_one(connection, CURRENT_SNAPSHOT))
    xmin, xmax, running = text.split(":")
    return Snapshot(int(xmin), int(xmax), tuple(int(xid) for xid in running.split(",") if xid), lsn)


def next_xid(connection: Connection) -> int:
    """Return an xid that no transaction has that writes now."""
    return read_snapshot(connection, Lsn(0)).xmax


class LostSnapshotError(Exception):
    """A snapshot that a server exported is there no more. Never leaves the copying."""


@contextmanager
def imported(connection: Connection, name: str) -> Iterator[None]:
    """Run a block in a transaction with an exported snapshot.

    Raises LostSnapshotError where it is gone: who exported it has ended its transaction.
    """
    connection.execute(_BEGIN)
    try:
        try:
            connection.execute(b"SET TRANSACTION SNAPSHOT '%s'" % name.encode())
        except psycopg.Error as error:
            if error.sqlstate in _LOST:
                raise LostSnapshotError(str(error)) from error
            raise
        yield
    finally:
        _end(connection)


def sees_until(connection: Connection) -> Lsn:
    """Return an LSN before which all commit records are that the snapshot of ``connection`` sees.

    It is the WAL insert position, which is read after the snapshot was taken. Where a page of the WAL has nothing but
    its header, no record begins in that (``XLogBytePosToRecPtr()`` passes over it, ``SizeOfXLogShortPHD`` or
    ``SizeOfXLogLongPHD``): the page's begin is as good, and a server that is idle sends no position beyond it.
    """
    lsn, page = int(ask_one(connection, INSERTED_LSN)), int(fetch_row(connection, "SHOW wal_block_size")[0])
    return Lsn(lsn - lsn % page if lsn % page in _PAGE_HEADERS else lsn)


def wait_until_flushed(connection: PatientConnection, lsn: Lsn) -> None:
    """Return when the server has flushed its WAL up to an LSN, over a connection that is as old as that.

    A snapshot sees transactions with ``synchronous_commit = off`` before their commit records are on disk. A server
    that crashes then comes back without them, and writes others at these LSNs. The connection would not outlive that.
    An idle server writes its WAL within 15 seconds (``LOG_SNAPSHOT_INTERVAL_MS`` of its background writer).
    """
    while current_lsn(connection) < lsn:
        connection.patience.look_up(float("inf"))
        time.sleep(_PAUSE)


@contextmanager
def begin_alone(connection: PatientConnection, namespace: str, name: str, after: int) -> Iterator[Snapshot]:
    """Run a block in a transaction whose snapshot contains all transactions with an xid before ``after``.

    The table is locked against what would rewrite it (ACCESS SHARE, as any query does); ``export`` releases it.
    """
    snapshot = _begin(connection, namespace, name)
    told, began = "", time.monotonic()
    while snapshot.xmin < after:
        _end(connection)
        older = writers(connection, [xid % 2**32 for xid in snapshot.xip if xid < after])
        if older != told and time.monotonic() - began >= _TOLD_AFTER:
            told = older
            _LOG.warning(
                "the copy of %s waits for %s", qualified_name(namespace, name), older or "transactions that write"
            )
        connection.patience.look_up(float("inf"))
        time.sleep(_PAUSE)
        snapshot = _begin(connection, namespace, name)
    try:
        yield snapshot
    finally:
        _end(connection)


def export(connection: Connection) -> str:
    """Let other connections have the snapshot of ``begin_alone``; return its name.

    The table is no longer locked: a lock that is held while other connections wait for theirs, behind somebody who
    waits for this one, would never end.
    """
    run(connection, "ROLLBACK TO SAVEPOINT locked")
    run(connection, "RELEASE SAVEPOINT locked")
    return str(fetch_row(connection, "SELECT pg_export_snapshot()")[0])


def _begin(connection: PatientConnection, namespace: str, name: str) -> Snapshot:
    lsn = current_lsn(connection)
    connection.execute(_BEGIN)
    try:
        connection.execute(b"SAVEPOINT locked")
        # Before the snapshot: what was rewritten is complete, and is seen as a whole.
        connection.execute(
            f"LOCK TABLE {sql.Identifier(namespace, name).as_string(None)} IN ACCESS SHARE MODE".encode()
        )
        return read_snapshot(connection, lsn)
    except BaseException:
        _end(connection)
        raise


def _end(connection: Connection) -> None:
    with suppress(psycopg.Error):  # it is broken: then its transaction has ended
        if not connection.closed:
            connection.execute(b"ROLLBACK")
