"""Snapshots of a server for table copies, and the commits that they may see or not.

The package's docstring explains why a copy needs ``begin_snapshot``, ``sees_until`` and ``CommitWindow``;
``changelog/_facts/visibility.py`` has the rule by which readers use the result.
"""

import logging
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import psycopg
import pyarrow.compute as pc

from pgoutput_construct.catalog_queries import CURRENT_SNAPSHOT, INSERTED_LSN, for_release
from pgoutput_construct.changelog._facts.visibility import Snapshot, Visibility
from pgoutput_construct.changelog._index.indexes import index_of
from pgoutput_construct.changelog._index.planning import committed_transactions
from pgoutput_construct.changelog._segment.block import Numbers
from pgoutput_construct.changelog._segment.footer import Segment
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres._patience import PatientConnection
from pgoutput_construct.postgres.connection import (
    Connection,
    current_lsn,
    encode_sql,
    fetch,
    fetch_row,
    fetch_value,
    is_standby,
    reading_answer,
    run,
)
from pgoutput_construct.stream.identifiers import qualified_name
from pgoutput_construct.wire import Lsn

__all__ = [
    "CommitWindow",
    "CommitWindows",
    "LostSnapshotError",
    "begin_snapshot",
    "check_can_copy",
    "describe_lock_holders",
    "export_snapshot",
    "imported_snapshot",
    "next_xid",
    "read_snapshot",
    "sees_until",
]


_LOG = logging.getLogger("pgoutput_construct")
_BEGIN: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_PAUSE: Final = 0.1  # seconds
_LOST: Final = frozenset({"22023", "42704", "55000"})
"""SQLSTATEs for an exported snapshot whose transaction has ended (ImportSnapshot)."""
_WARN_SECONDS: Final = 2.0  # seconds
_OLDEST: Final = 130000
_PAGE_HEADERS: Final = (24, 40)
"""The size in bytes of the header of a WAL page, and of the first page of a file."""


def check_can_copy(connection: Connection) -> None:
    """Raise ReplicationError if tables cannot be copied from the server.

    On a standby ``pg_current_snapshot()`` does not list the running transactions: ``GetSnapshotData()`` stores them in
    subxip, which it does not return.
    """
    if (version := connection.info.server_version) < _OLDEST:
        raise ReplicationError(f"table copies need PostgreSQL {_OLDEST // 10000}, the server is {version // 10000}")
    if is_standby(connection):
        raise ReplicationError(
            "the server is a standby, whose snapshots do not list running transactions: copy tables from its primary, "
            "with a slot there"
        )


@reading_answer(CURRENT_SNAPSHOT.purpose)
def read_snapshot(connection: Connection, lsn: Lsn) -> Snapshot:
    """Return the current snapshot of ``connection``; ``lsn`` is an LSN that the server had reached before it."""
    return Snapshot.parse(str(fetch_value(connection, CURRENT_SNAPSHOT)), lsn)


def next_xid(connection: Connection) -> int:
    """Return a 64-bit xid that is higher than those of all transactions that are writing now."""
    return read_snapshot(connection, Lsn(0)).xmax


class LostSnapshotError(Exception):
    """An exported snapshot no longer exists. Never leaves the room."""


@contextmanager
def imported_snapshot(connection: Connection, name: str) -> Iterator[None]:
    """Run a block in a transaction with an exported snapshot.

    Raises LostSnapshotError if the transaction that exported it has ended.
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


@reading_answer(INSERTED_LSN.purpose)
def sees_until(connection: Connection) -> Lsn:
    """Return an LSN that is after the commit records of all transactions that the snapshot of ``connection`` sees.

    It is the WAL insert position, read after the snapshot was taken. If that is directly after the header of a WAL page
    (``SizeOfXLogShortPHD`` or ``SizeOfXLogLongPHD``, which ``XLogBytePosToRecPtr()`` skips), no record begins in
    between, and the start of the page is returned: an idle server sends no LSN beyond it, so waiting would never end.
    """
    lsn, page = int(fetch_value(connection, INSERTED_LSN)), int(fetch_row(connection, "SHOW wal_block_size")[0])
    return Lsn(lsn - lsn % page if lsn % page in _PAGE_HEADERS else lsn)


@contextmanager
def begin_snapshot(connection: PatientConnection, namespace: str, name: str, after: int) -> Iterator[Snapshot]:
    """Run a block in a transaction whose snapshot sees all transactions with an xid before ``after``.

    The table is locked against rewriting (ACCESS SHARE, as by any query) until ``export_snapshot`` releases it.

    Args:
        connection: A connection without an open transaction.
        namespace: The schema of the table.
        name: The name of the table.
        after: A 64-bit xid. Transactions before it are waited for; after two seconds they are logged.
    """
    snapshot = _begin_locked(connection, namespace, name)
    logged, began = "", time.monotonic()
    while snapshot.xmin < after:
        _end(connection)
        older = _writers(connection, [xid % 2**32 for xid in snapshot.xip if xid < after])
        if older != logged and time.monotonic() - began >= _WARN_SECONDS:
            logged = older
            _LOG.warning("the copy of %s waits for %s", qualified_name(namespace, name), older or "open transactions")
        connection.patience.check(float("inf"))
        time.sleep(_PAUSE)
        snapshot = _begin_locked(connection, namespace, name)
    try:
        yield snapshot
    finally:
        _end(connection)


def export_snapshot(connection: Connection) -> str:
    """Export the snapshot of ``begin_snapshot`` for other connections; return its name.

    This releases the lock on the table: if an ALTER TABLE waited for it, the other connections would queue after the
    ALTER TABLE for their own locks, while this one waits for them: a deadlock that the server cannot detect.
    """
    run(connection, "ROLLBACK TO SAVEPOINT locked")
    run(connection, "RELEASE SAVEPOINT locked")
    return str(fetch_row(connection, "SELECT pg_export_snapshot()")[0])


def _begin_locked(connection: PatientConnection, namespace: str, name: str) -> Snapshot:
    lsn = current_lsn(connection)
    connection.execute(_BEGIN)
    try:
        connection.execute(b"SAVEPOINT locked")
        # Locked before the snapshot is taken: a rewrite has ended, and the snapshot sees all of it.
        connection.execute(encode_sql(f"LOCK TABLE {qualified_name(namespace, name)} IN ACCESS SHARE MODE"))
        return read_snapshot(connection, lsn)
    except BaseException:
        _end(connection)
        raise


def _end(connection: Connection) -> None:
    with suppress(psycopg.Error):  # a broken connection has no transaction
        if not connection.closed:
            connection.execute(b"ROLLBACK")


_SESSION: Final = """concat_ws(', ', 'pid ' || pid, 'user ' || usename, 'application ' || nullif(application_name, ''),
        state, 'open since ' || xact_start)"""
_PREPARED: Final = "format('prepared transaction %%L of %%s, since %%s', gid, owner, prepared)"

_WRITERS: Final = f"""SELECT {_SESSION} FROM pg_stat_activity
    WHERE backend_xid IS NOT NULL AND backend_xid::text::bigint = ANY(%s)
    UNION ALL SELECT {_PREPARED} FROM pg_prepared_xacts WHERE transaction::text::bigint = ANY(%s) ORDER BY 1"""

# Only ACCESS EXCLUSIVE conflicts with reading; so does a session that waits for it, since locks queue. A prepared
# transaction has no process: the lock on its xid identifies it.
_LOCKS: Final = f"""WITH RECURSIVE tree AS (
        SELECT %s::oid AS oid
        UNION ALL SELECT inhrelid FROM tree JOIN pg_inherits i ON inhparent = oid AND {{is_attached}}),
    locks AS (SELECT pid, virtualtransaction FROM pg_locks JOIN tree ON tree.oid = relation
        JOIN pg_database d ON d.oid = database AND datname = current_database() WHERE mode = 'AccessExclusiveLock')
    SELECT {_SESSION} FROM pg_stat_activity WHERE pid IN (SELECT pid FROM locks)
    UNION ALL SELECT {_PREPARED} FROM pg_prepared_xacts
    WHERE transaction IN (SELECT x.transactionid FROM pg_locks x JOIN locks USING (virtualtransaction)
        WHERE x.pid IS NULL AND x.locktype = 'transactionid') ORDER BY 1"""


def _writers(connection: Connection, xids: Collection[int]) -> str:
    """Describe the sessions of some transactions, given by 32-bit xids; empty if all have ended."""
    listed = list(xids)
    return _joined(fetch(connection, _WRITERS, [listed, listed]))


def describe_lock_holders(connection: Connection, oid: int) -> str:
    """Describe the sessions that hold, or wait for, ACCESS EXCLUSIVE on a table or its partitions."""
    return _joined(fetch(connection, for_release(_LOCKS, connection.info.server_version), [oid]))


def _joined(rows: list[tuple[str, ...]]) -> str:
    return "; ".join(row[0] for row in rows)


_END: Final = Lsn(2**63 - 1)


@dataclass(eq=False)
class CommitWindow:
    """The commits of the log between two LSNs, which the snapshot of a copy may see or not.

    It is opened before ``since``, the flush LSN, is read. A server sends only WAL that it has flushed, so whatever
    commits at ``since`` or later arrives afterwards, in a segment that is added to the window.
    """

    since: Lsn = field(default_factory=Lsn)
    """The snapshot sees all commits before this LSN."""
    until: Lsn = _END
    """The snapshot sees no commit at or after this LSN (``Visibility.sees_until``)."""
    _lsns: list[Numbers] = field(default_factory=list)
    _xids: list[Numbers] = field(default_factory=list)

    def add(self, lsns: Numbers, xids: Numbers) -> None:
        """Add the commits of a segment: their LSNs, and their 32-bit top-level xids."""
        is_within = (lsns >= int(self.since)) & (lsns < int(self.until))
        if is_within.any():
            self._lsns.append(lsns[is_within])
            self._xids.append(xids[is_within])

    def visibility(self, snapshot: Snapshot) -> Visibility:
        """Return which transactions ``snapshot`` sees; the log must have all commits before ``until``."""
        lsns, xids = (np.concatenate([np.empty(0, np.int64), *parts]) for parts in (self._lsns, self._xids))
        is_within = lsns >= int(self.since)  # some may have been added before ``since`` was set
        return Visibility.of_commits(snapshot, self.until, lsns[is_within], xids[is_within])


class CommitWindows:
    """The open windows: the copier's thread opens and closes them, the pump adds segments."""

    def __init__(self) -> None:
        self._open: list[CommitWindow] = []
        self._lock = threading.Lock()

    def open(self) -> CommitWindow:
        """Return a new window, which receives commits until ``close``."""
        window = CommitWindow()
        with self._lock:
            self._open.append(window)
        return window

    def close(self, window: CommitWindow | None) -> None:
        """Stop adding commits to a window; does nothing for None and closed windows."""
        with self._lock:
            self._open = [other for other in self._open if other is not window]

    def add(self, segment: Segment) -> None:
        """Add the commits of a segment that has become durable."""
        with self._lock:
            windows = list(self._open)
        if not windows:
            return
        transactions = committed_transactions(index_of(segment).transactions)
        if transactions.num_rows and pc.max(transactions["commit_lsn"]).as_py() >= min(each.since for each in windows):
            lsns, xids = (transactions[name].to_numpy() for name in ("commit_lsn", "xid"))
            for window in windows:
                window.add(lsns, xids)
