"""Copies of tables are made: all under the snapshot of a new slot, later ones each under a snapshot of its own."""

import logging
from collections.abc import Iterable, Sequence
from typing import Final

from pgoutput_construct.changelog.requests import CopyRequest
from pgoutput_construct.changelog.visibility import Snapshot
from pgoutput_construct.postgres.catalog import locked_tables
from pgoutput_construct.postgres.copying.chunks import ChangedTableError, ChunkReader, was_changed
from pgoutput_construct.postgres.copying.jobs import TableJob
from pgoutput_construct.postgres.copying.session import connect_to_copy
from pgoutput_construct.postgres.copying.snapshots import (
    begin_alone,
    check_can_copy,
    export,
    imported,
    next_xid,
    read_snapshot,
    sees_until,
    wait_until_flushed,
)
from pgoutput_construct.postgres.copying.tables import PublishedTable, read_tables
from pgoutput_construct.postgres.copying.wanted import Wanted, WantedTable
from pgoutput_construct.postgres.copying.windows import CommitWindow, CommitWindows
from pgoutput_construct.postgres.copying.workers import Workers, copying_error
from pgoutput_construct.postgres.server import current_lsn
from pgoutput_construct.postgres.slots import ExportedSnapshot
from pgoutput_construct.postgres.waiting import Asked, PatientConnection
from pgoutput_construct.stream.identifiers import full_name

__all__ = ["CopyMaker"]

_LOG = logging.getLogger("pgoutput_construct")
_FREE_TRIES: Final = 2
"""How often a table may be altered while it is copied; then it is locked against that for the time of a copy."""
_MOST_TRIES: Final = 10


class CopyMaker:
    """Makes copies over one connection that looks, and others that read; what they read goes where ``reader`` puts it.

    Its methods return when all was handed over, or the copy is void. They raise ReplicationError, psycopg.Error and
    Stopped.
    """

    def __init__(
        self,
        dsn: str,
        publications: Sequence[str],
        wanted: Wanted,
        reader: ChunkReader,
        workers: int,
        asked: Asked,
        windows: CommitWindows,
    ) -> None:
        """Copy over ``workers`` connections to ``dsn``; ``asked`` ends it, ``windows`` are told what commits."""
        self._windows = windows
        self._dsn, self._publications, self._wanted, self._reader = dsn, tuple(publications), wanted, reader
        self._workers, self._asked = workers, asked
        self._connection: PatientConnection | None = None
        self._tries: dict[int, int] = {}
        self.jobs: list[TableJob] = []
        """The copies that were begun and are not void, the durable ones, too."""

    @property
    def connection(self) -> PatientConnection:
        """The connection that looks; it is made when it is needed."""
        if self._connection is None or self._connection.closed:
            self._connection = connect_to_copy(self._dsn, self._asked)
        return self._connection

    def close(self) -> None:
        """Let the connection go; the next use makes another one."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def under(self, exported: ExportedSnapshot) -> None:
        """Copy what was published when the slot was created, and was not copied, as the slot found it.

        Tables that are being altered are left for later: who alters them makes their rows other ones. Raises
        LostSnapshotError, too.
        """
        connection = self.connection
        check_can_copy(connection)
        with imported(connection, exported.name):
            snapshot = read_snapshot(connection, exported.lsn)
            missing = self._wanted.missing(exported.published)
            tables = read_tables(connection, self._publications, missing, locked_tables(connection))
        self._run([self._begin(table, snapshot) for table in tables], exported.name, self._workers)

    def alone(self, wanted: WantedTable) -> None:
        """Copy one table as it is now."""
        connection, job = self.connection, None
        check_can_copy(connection)
        window = self._windows.open()
        try:
            # In this order: who has no xid yet commits after the LSN, and the snapshot sees all who have one.
            window.since = current_lsn(connection)
            after = max(wanted.after, next_xid(connection))
            with begin_alone(connection, wanted.namespace, wanted.name, after) as snapshot:
                window.until = sees_until(connection)
                tables = read_tables(connection, self._publications, [wanted.oid])
                if not tables:
                    raise ChangedTableError(f"{full_name(wanted)} is not published as it was")
                job = self._begin(tables[0], snapshot, wanted.requests, window)
                self._copy(connection, job)
            wait_until_flushed(connection, window.until)
        except BaseException as error:
            self._windows.close(window)
            if job is not None:
                self._discard(job)
            if not was_changed(error) or self._tries.get(wanted.oid, 0) >= _MOST_TRIES:
                raise copying_error(error, full_name(wanted), connection, wanted.oid) from error
            self._tried(wanted.oid)

    def _copy(self, connection: PatientConnection, job: TableJob) -> None:
        workers = max((request.workers or self._workers for request in job.requests), default=self._workers)
        if min(len(job.chunks), workers) > 1 and self._tries.get(job.table.oid, 0) < _FREE_TRIES:
            self._run([job], export(connection), workers)
        else:
            for chunk in job.chunks:
                if not job.void:
                    self._reader.read(connection, chunk)

    def _begin(
        self,
        table: PublishedTable,
        snapshot: Snapshot,
        requests: Iterable[CopyRequest] = (),
        window: CommitWindow | None = None,
    ) -> TableJob:
        version = self.connection.info.server_version
        job = TableJob.of(table, snapshot, version, requests, self._wanted.number, window)
        self._wanted.open[table.oid] = job
        self.jobs.append(job)
        return job

    def _run(self, jobs: list[TableJob], snapshot: str, count: int) -> None:
        try:
            Workers(self._dsn, self._reader, snapshot, self._asked).run(jobs, count)
        finally:
            for job in jobs:
                if job.void:
                    self._discard(job)
                    self._tried(job.table.oid)

    def _discard(self, job: TableJob) -> None:
        self._windows.close(job.window)
        self._wanted.discard(job)
        self.jobs = [other for other in self.jobs if other is not job]

    def _tried(self, oid: int) -> None:
        self._tries[oid] = self._tries.get(oid, 0) + 1
