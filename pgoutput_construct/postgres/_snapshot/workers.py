"""Parallel copies: several connections, each in a thread of its own, read chunks under one exported snapshot."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

import psycopg

from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres._patience import Patience, PatientConnection, StopCheck, Stopped
from pgoutput_construct.postgres._snapshot.chunks import ChunkReader, was_changed
from pgoutput_construct.postgres._snapshot.jobs import Chunk, TableJob
from pgoutput_construct.postgres._snapshot.snapshots import (  # _lock_holders
    LostSnapshotError,
    describe_lock_holders,
    imported_snapshot,
)
from pgoutput_construct.postgres.connection import Connection, connect, describe_error, run

__all__ = ["NO_LOCK", "Workers", "connect_to_copy", "copying_error"]


_LOG = logging.getLogger("pgoutput_construct")
_PAUSE: Final = 0.5  # seconds
_DEADLOCK: Final = "40P01"
NO_LOCK: Final = "55P03"
"""The SQLSTATE for a lock that was not obtained within ``lock_timeout``."""


class Workers:
    """Reads chunks until none are left, the snapshot is lost, or the end is requested."""

    def __init__(self, dsn: str, reader: ChunkReader, snapshot: str, stop: StopCheck) -> None:
        """Prepare; ``run`` opens the connections. ``snapshot`` is the name of an exported one; see ``CopyMaker``."""
        self._dsn, self._reader, self._snapshot, self._stop = dsn, reader, snapshot, stop
        self._chunks: deque[Chunk] = deque()
        self._lost = False
        self._warned: set[str] = set()
        self._error: BaseException | None = None

    def run(self, jobs: Iterable[TableJob], count: int, meanwhile: Callable[[], None]) -> None:
        """Read tables over at most ``count`` connections; void those that were altered or not reached.

        Args:
            jobs: The copies.
            count: The number of connections.
            meanwhile: Called again and again; what it raises of the server's is ignored: then the snapshot is lost.

        Raises:
            ReplicationError: An error that is not transient.
        """
        # Small tables first: they are soon complete. The chunks of a large one are enough for all connections.
        ordered = sorted(jobs, key=lambda job: job.table.pages)
        self._chunks.extend(chunk for job in ordered for chunk in job.chunks)
        names = [f"copy {number}" for number in range(min(count, len(self._chunks)))]
        threads = [threading.Thread(target=self._work, name=name, daemon=True) for name in names]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            for thread in threads:
                thread.join(_PAUSE / max(len(threads), 1))
            with suppress(psycopg.Error, ReplicationError):
                meanwhile()
        for chunk in self._chunks:
            chunk.job.abandon()
        if self._error is not None:
            raise self._error

    def _stop_reason(self) -> str | None:
        return "the copies end" if self._lost or self._error is not None else self._stop()

    def _work(self) -> None:
        connection: PatientConnection | None = None
        while not self._stop_reason() and (chunk := self._next()) is not None:
            try:
                connection = connection or connect_to_copy(self._dsn, self._stop_reason)
                self._copy(connection, chunk)
            except BaseException as error:
                self._failed(chunk, error, connection)
                if connection is not None:
                    connection.close()
                connection = None
        if connection is not None:
            connection.close()

    def _next(self) -> Chunk | None:
        try:
            return self._chunks.popleft()
        except IndexError:
            return None

    def _copy(self, connection: PatientConnection, chunk: Chunk) -> None:
        if not chunk.job.void:
            with imported_snapshot(connection, self._snapshot):
                self._reader.read(connection, chunk)

    def _failed(self, chunk: Chunk, error: BaseException, connection: Connection | None) -> None:
        """Retry a chunk after a transient error; void its copy otherwise."""
        self._lost = self._lost or isinstance(error, LostSnapshotError)
        if self._lost or isinstance(error, Stopped) or was_changed(error):
            if was_changed(error):
                _LOG.info("%s is copied again: %s", chunk.job.table, error)
            chunk.job.abandon(was_altered=was_changed(error))
            return
        found = copying_error(error, str(chunk.job.table), connection, chunk.job.table.oid)
        if not isinstance(found, ReplicationError) or not found.transient:
            self._error = found
            chunk.job.abandon()
            return
        if (text := str(found)) not in self._warned:
            self._warned.add(text)
            _LOG.warning("%s; trying again", text)
        self._chunks.append(chunk)
        time.sleep(_PAUSE)


def copying_error(error: BaseException, table: str, connection: Connection | None, oid: int) -> BaseException:
    """Return the error to raise for a table that cannot be copied, with the remedy.

    Args:
        error: The error.
        table: The qualified name of the table.
        connection: The connection on which it occurred, which is used to find who locks the table; None for none.
        oid: The OID of the table.

    Returns:
        A ReplicationError for psycopg errors, else ``error`` itself.
    """
    if not isinstance(error, psycopg.Error):
        return error
    if error.sqlstate == NO_LOCK:
        return ReplicationError(_locked(table, connection, oid), sqlstate=NO_LOCK, transient=True)
    found = describe_error(error, f"table {table} cannot be copied")
    if error.sqlstate == "42501":
        text = (
            f"{found}: the capture's role must be able to read every row of it (GRANT USAGE ON SCHEMA and GRANT "
            "SELECT; with row-level security also the attribute BYPASSRLS)"
        )
        return ReplicationError(text, sqlstate=error.sqlstate)
    return ReplicationError(
        str(found), sqlstate=error.sqlstate, transient=found.transient or error.sqlstate == _DEADLOCK
    )


def _locked(table: str, connection: Connection | None, oid: int) -> str:
    holders = ""
    with suppress(ReplicationError, Stopped):
        if connection is not None and not connection.closed:
            holders = describe_lock_holders(connection, oid)
    return (
        f"table {table} cannot be copied while it is locked (ACCESS EXCLUSIVE): {holders or 'by a session that ended'}"
    )


_SETTINGS: Final = {
    # After a timeout another table is copied; and while the copy waits, other sessions queue after it.
    "lock_timeout": "10s",
    # Raise an error if a policy would hide rows, instead of silently copying fewer.
    "row_security": "off",
    # Rows must come in the order of their pages, the same each time, so that an interrupted chunk can be resumed.
    "synchronize_seqscans": "off",
    "enable_indexscan": "off",
    "enable_indexonlyscan": "off",
    "enable_bitmapscan": "off",
    "max_parallel_workers_per_gather": "0",
}


def connect_to_copy(dsn: str, stop: StopCheck | None) -> PatientConnection:
    """Open an ordinary connection for copying; ``stop`` may end its waits. Raises ReplicationError."""
    connection = connect(dsn, replication=False, patience=Patience(stop=stop))
    for name, value in _SETTINGS.items():
        run(connection, f"SET {name} = '{value}'")
    return connection
