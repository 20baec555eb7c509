"""Several connections that copy the chunks of tables under one snapshot, each in a thread of its own."""

import logging
import threading
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

import psycopg

from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres._patience import Asked, Patience, PatientConnection, Stopped
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
"""What a server says when a lock was not to be had in time."""


class Workers:
    """Copies chunks until none are left, the snapshot is gone, or the end is asked for."""

    def __init__(self, dsn: str, reader: ChunkReader, snapshot: str, asked: Asked) -> None:
        """Copy over ``dsn`` under the exported ``snapshot``; ``asked`` ends it."""
        self._dsn, self._reader, self._snapshot, self._asked = dsn, reader, snapshot, asked
        self._chunks: deque[Chunk] = deque()
        self._lost = False
        self._warned: set[str] = set()
        self._error: BaseException | None = None

    def run(self, jobs: Iterable[TableJob], count: int) -> None:
        """Copy tables over at most ``count`` connections; those that were changed, or not reached, are void then.

        Raises ReplicationError for what cannot pass by itself.
        """
        # Large tables first: at the end no connection is left alone with one.
        ordered = sorted(jobs, key=lambda job: -job.table.pages)
        self._chunks.extend(chunk for job in ordered for chunk in job.chunks)
        names = [f"copy {number}" for number in range(min(count, len(self._chunks)))]
        threads = [threading.Thread(target=self._work, name=name, daemon=True) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for chunk in self._chunks:
            chunk.job.void = True
        if self._error is not None:
            raise self._error

    def _stop_reason(self) -> str | None:
        return "the copies end" if self._lost or self._error is not None else self._asked()

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
        """Decide what becomes of a chunk that was not read to its end."""
        self._lost = self._lost or isinstance(error, LostSnapshotError)
        if self._lost or isinstance(error, Stopped) or was_changed(error):
            if was_changed(error):
                _LOG.info("%s is copied anew: %s", chunk.job.table, error)
            chunk.job.void = True
            return
        found = copying_error(error, str(chunk.job.table), connection, chunk.job.table.oid)
        if not isinstance(found, ReplicationError) or not found.transient:
            self._error, chunk.job.void = found, True
            return
        if (text := str(found)) not in self._warned:
            self._warned.add(text)
            _LOG.warning("%s; trying again", text)
        self._chunks.append(chunk)
        time.sleep(_PAUSE)


def copying_error(error: BaseException, table: str, connection: Connection | None, oid: int) -> BaseException:
    """Return an error that says which table cannot be copied, and what to do; ``connection`` is what met it."""
    if not isinstance(error, psycopg.Error):
        return error
    if error.sqlstate == NO_LOCK:
        return ReplicationError(_locked(table, connection, oid), sqlstate=NO_LOCK, transient=True)
    found = describe_error(error, f"table {table} cannot be copied")
    if error.sqlstate == "42501":
        text = (
            f"{found}: the role of the capture needs to read every row of it (GRANT SELECT; with row-level security "
            "the attribute BYPASSRLS, too)"
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
    # Who waits for a lock gives way to another table; and others wait behind who waits.
    "lock_timeout": "10s",
    # An error where a policy would leave rows out: they would be missing without a word.
    "row_security": "off",
    # Rows come in the order of their pages, each time the same, so that a copy can go on where it was broken off.
    "synchronize_seqscans": "off",
    "enable_indexscan": "off",
    "enable_indexonlyscan": "off",
    "enable_bitmapscan": "off",
    "max_parallel_workers_per_gather": "0",
}


def connect_to_copy(dsn: str, asked: Asked | None) -> PatientConnection:
    """Open an ordinary connection that copies; ``asked`` ends its waits. Raises ReplicationError."""
    connection = connect(dsn, replication=False, patience=Patience(asked=asked))
    for name, value in _SETTINGS.items():
        run(connection, f"SET {name} = '{value}'")
    return connection
