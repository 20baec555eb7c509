"""Table copies alongside a stream: requested in the log, read in threads of their own, and appended by the pump.

The package's docstring explains how a copy joins the stream. ``Copier`` is what a capture uses: its thread looks for
tables to copy (``_CopySelection``) and has them read (``CopyMaker``); the pump appends what is in ``pieces``, and
completes a copy once the log has every commit before its ``sees_until``.
"""

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import psycopg
import pyarrow.compute as pc

from pgoutput_construct.changelog._facts.copies import latest_copies
from pgoutput_construct.changelog._facts.visibility import Snapshot
from pgoutput_construct.changelog._index.indexes import indexes_of
from pgoutput_construct.changelog._index.listing import list_log
from pgoutput_construct.changelog._notes.copy_requests import CopyRequest, TableName, fulfil, requests
from pgoutput_construct.changelog._segment.events import COPIED_TABLE
from pgoutput_construct.changelog._segment.prune_note import read_pruned
from pgoutput_construct.changelog._store.store import LogStore
from pgoutput_construct.changelog.log_options import LogOptions
from pgoutput_construct.changelog.writer import Durable, LogWriter
from pgoutput_construct.columnar.descriptions import OUTSIDE, copy_scope
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres._catalog.table_catalog import locked_tables
from pgoutput_construct.postgres._patience import PatientConnection, StopCheck, Stopped
from pgoutput_construct.postgres._snapshot.chunks import ChangedTableError, ChunkReader, was_changed
from pgoutput_construct.postgres._snapshot.copied_tables import PublishedTable, read_tables
from pgoutput_construct.postgres._snapshot.jobs import Chunk, CopyProgress, Piece, PieceQueue, TableJob, split
from pgoutput_construct.postgres._snapshot.snapshots import (
    CommitWindow,
    CommitWindows,
    LostSnapshotError,
    begin_snapshot,
    check_can_copy,
    export_snapshot,
    imported_snapshot,
    next_xid,
    read_snapshot,
    sees_until,
    wait_until_flushed,
)
from pgoutput_construct.postgres._snapshot.workers import NO_LOCK, Workers, connect_to_copy, copying_error
from pgoutput_construct.postgres.connection import Connection, current_lsn, describe_error, is_standby
from pgoutput_construct.postgres.publications import read_published
from pgoutput_construct.postgres.replication_slots import ExportedSnapshot
from pgoutput_construct.stream.identifiers import full_name, qualified_name
from pgoutput_construct.wire import Lsn

if TYPE_CHECKING:
    from pgoutput_construct.postgres._catalog.catalog_state import RelationShape

__all__ = ["Copier", "CopyMaker"]


_LOG = logging.getLogger("pgoutput_construct")
_INTERVAL: Final = 0.5  # seconds
_FACTS_SECONDS: Final = 0.1  # seconds after which the catalog watch may have recorded the facts of a new table
_MAX_PAUSE: Final = 30.0  # seconds between two attempts at most


class Copier:
    """Copies tables for one capture; a context manager that abandons unfinished copies on exit."""

    def __init__(
        self, dsn: str, store: LogStore, publications: Sequence[str], workers: int, everything: bool, interval: float
    ) -> None:
        """Prepare; ``start`` begins to copy.

        Args:
            dsn: The connection string, as libpq reads it.
            store: The store of the log, which has the requests.
            publications: The names of the publications.
            workers: The number of connections that copy a table.
            everything: Copy every published table without a copy in the log, not only those that are requested.
            interval: Seconds between two reads of the publications.
        """
        self.pieces = PieceQueue()
        """The pieces to append."""
        self.on_copied: Callable[[int, RelationShape], None] = lambda oid, shape: None
        """Called with the OID and the columns of each table whose copy is complete."""
        self.has_facts_of: Callable[[int], bool] = lambda oid: True
        """Returns whether the log has facts of a table, which must precede its first copy."""
        self._selection = _CopySelection(store, publications, everything, interval)
        self._reader = ChunkReader(self.pieces.put)
        self._windows = CommitWindows()
        given = self._selection, self._reader, workers, self._stop, self._windows
        self._maker = CopyMaker(dsn, publications, *given)
        self._appended: list[TableJob] = []
        """Copies whose rows were all appended, and that are not complete in the log yet."""
        self._complete_lsn = Lsn(0)
        """The LSN up to which the log is complete and durable."""
        self._exported: ExportedSnapshot | None = None
        self._settled = False
        self._poll_request = self._polled = object()
        self._durable_seq = self._event_seq = -1
        self._timeline: int | None = None
        self._left = self._tables = self._rows = self._bytes = 0
        self._logged = ""
        self._problem: BaseException | None = None
        self._closed, self._news = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="table copies", daemon=True)

    def start(self, options: LogOptions, complete_lsn: Lsn) -> None:
        """Begin to copy; copies in progress continue, unless the server was promoted.

        Args:
            options: The options of the stream: copied rows are written as it would send them.
            complete_lsn: The LSN up to which the log is complete and durable.
        """
        if self._timeline not in (None, options.timeline):
            self.restart()
        self._timeline = options.timeline
        self._complete_lsn = max(self._complete_lsn, complete_lsn)
        if self._thread.ident is None:
            self._reader.set_options(options.layout(), options.binary)
            self._thread.start()

    def use_snapshot(self, exported: ExportedSnapshot) -> None:
        """Copy under the snapshot of a new slot; one that was exported before is released."""
        self._release_snapshot()
        self._exported = exported
        self.poll()

    def restart(self) -> None:
        """Void the copies that are not complete: the log lacks changes since their snapshots."""
        for job in [job for job in self._selection.open.values() if job.event_seq is None]:
            job.void = True
        self._complete_lsn = Lsn(0)
        self._selection.restart()
        self.poll()

    def check(self) -> None:
        """Raise the error for which tables cannot be copied, if there is one."""
        if self._problem is not None:
            raise self._problem

    @property
    def busy(self) -> bool:
        """Whether copies are requested, or due, that are not durable."""
        return not self._settled or self._polled is not self._poll_request

    def poll(self) -> None:
        """Read the requests of the log and the publications at once."""
        self._poll_request = object()
        self._news.set()

    @property
    def needs_cut(self) -> bool:
        """Whether a completed copy waits for its event to become durable."""
        return not self.pieces and self._event_seq > self._durable_seq

    @property
    def has_more(self) -> bool:
        """Whether pieces, or the event of a copy, can be appended."""
        return bool(self.pieces) or any(self._is_complete(job) for job in self._appended)

    @property
    def awaited_lsn(self) -> Lsn | None:
        """The lowest ``sees_until`` of the copies that wait for the stream, None for none.

        Until the log is complete and durable up to it, nobody knows which transactions the copy contains.
        """
        return min((job.sees_until for job in self._appended if not self._is_complete(job)), default=None)

    def append_to(self, writer: LogWriter) -> None:
        """Append events and pieces, up to the limits of a segment; call it between transactions of the stream."""
        for job in [job for job in self._appended if self._is_complete(job)]:
            self._complete(job, writer)
        while not writer.is_full() and (piece := self.pieces.take()) is not None:
            if not piece.chunk.job.void:
                writer.append(piece.block)
                self._count_piece(piece, writer)

    def note_durable(self, durable: Durable) -> None:
        """Note what has become durable."""
        self._complete_lsn = max(self._complete_lsn, durable.position.complete_lsn)
        if durable.segment is not None:
            self._windows.add(durable.segment)
            self._durable_seq = durable.segment.last_seq
            self._news.set()

    def progress(self) -> CopyProgress:
        """Return the progress of all copies."""
        size, done = (sum(getattr(job, name) for job in list(self._maker.jobs)) for name in ("size", "done"))
        percent = 100.0 * done / size if size else 100.0
        return CopyProgress(self._tables, self._left, self._rows, self._bytes, percent, self._settled)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._news.set()
        self.pieces.close()
        if self._thread.ident is not None:
            self._thread.join(5)
        self._release_snapshot()

    def _count_piece(self, piece: Piece, writer: LogWriter) -> None:
        """Count an appended piece; after the last one of a table, complete the copy if possible."""
        job = piece.chunk.job
        job.rows += piece.rows
        self._rows += piece.rows
        self._bytes += piece.size
        if not piece.is_last:
            return
        job.missing -= 1
        job.done += piece.chunk.size
        if not job.missing:
            self._appended.append(job)
            if self._is_complete(job):
                self._complete(job, writer)

    def _is_complete(self, job: TableJob) -> bool:
        """Return whether the log has all commits that the copy may contain; True for a void copy."""
        return job.void or job.sees_until <= self._complete_lsn

    def _complete(self, job: TableJob, writer: LogWriter) -> None:
        """Append the event that a copy is complete."""
        self._appended.remove(job)
        if not job.void:
            job.event_seq = self._event_seq = writer.next_seq
            numbers = [request.number for request in job.requests]
            writer.append_fact(COPIED_TABLE, job.snapshot.lsn, **job.copy().said(), requests=numbers)
            self.on_copied(job.table.oid, job.table.shape)
        self._windows.close(job.window)

    def _stop(self) -> str | None:
        return "the capture ends" if self._closed.is_set() else None

    def _release_snapshot(self) -> None:
        if self._exported is not None:
            self._exported.close()
        self._exported = None

    def _run(self) -> None:
        pause = 0.0
        while not self._closed.is_set():
            self._news.wait(pause)
            self._news.clear()
            try:
                pause = self._round()
            except Stopped:
                return
            except BaseException as error:
                self._maker.close()
                pause = min(max(2 * pause, _INTERVAL), _MAX_PAUSE)
                if not self._is_transient(error):
                    self._problem = error
                    return
        self._maker.close()

    def _round(self) -> float:
        """Copy what is due; return the seconds until the next round."""
        if self._exported is not None:
            self._copy_exported(self._exported)
        self._settle_durable()
        wish = self._poll_request
        if self._selection.needs_poll(at_once=self._polled is not wish):
            found = self._selection.tables_to_copy(self._maker.connection)
            self._left = len(found) + len(self._selection.open)
            if found:
                self._settled = False
                ready = [table for table in found if table.requests or self.has_facts_of(table.oid)]
                self._copy(ready)
                return 0.0 if len(ready) == len(found) else _FACTS_SECONDS
        self._left = len(self._selection.open)
        self._settled, self._polled = not self._left, wish
        return _INTERVAL

    def _copy(self, tables: "Iterable[_TableToCopy]") -> None:
        """Copy tables one after the other; one that is locked is skipped, and its error raised at the end."""
        locked = []
        for table in tables:
            try:
                self._maker.copy_table(table)
            except ReplicationError as error:
                if error.sqlstate != NO_LOCK:
                    raise
                locked.append(error)
        if locked:
            raise locked[0]

    def _copy_exported(self, exported: ExportedSnapshot) -> None:
        try:
            self._maker.copy_exported(exported)
        except LostSnapshotError:
            _LOG.warning(
                "the snapshot of the new slot was lost: the remaining tables are copied under snapshots of their own"
            )
        self._release_snapshot()

    def _settle_durable(self) -> None:
        for job in list(self._selection.open.values()):
            if job.void:
                self._windows.close(job.window)
                self._selection.discard(job)
            elif job.event_seq is not None and job.event_seq <= self._durable_seq:
                self._selection.copied(job)
                self._tables += 1
                _LOG.info(
                    "table %s was copied into the log: %s row%s", job.table, f"{job.rows:,}", "s" * (job.rows != 1)
                )

    def _is_transient(self, error: BaseException) -> bool:
        """Return whether to try again after an error; log each kind of error once."""
        found = describe_error(error, "tables cannot be copied") if isinstance(error, psycopg.Error) else error
        if not isinstance(found, ReplicationError) or not found.transient:
            return False
        state = re.sub(r"\d+", "", str(found))
        if state != self._logged:
            self._logged = state
            _LOG.warning("%s; trying again", " ".join(str(found).split()))
        return True


_UNLOCKED_TRIES: Final = 2
"""How often a copy may fail because the table is altered; the next one holds a lock against ALTER TABLE throughout."""
_MAX_TRIES: Final = 10


class CopyMaker:
    """Makes copies: one connection reads the catalog and takes snapshots, others read rows.

    Its methods return when all rows were passed on by ``reader``, or the copy is void. They raise ReplicationError,
    psycopg.Error and Stopped.
    """

    def __init__(
        self,
        dsn: str,
        publications: Sequence[str],
        selection: "_CopySelection",
        reader: ChunkReader,
        workers: int,
        stop: StopCheck,
        windows: CommitWindows,
    ) -> None:
        """Prepare; connections are opened when they are needed.

        The arguments are those of ``Copier``, though requests may say other numbers of ``workers``. ``selection`` has
        the copies in progress, ``reader`` passes on pieces, ``windows`` has the commits that a snapshot may see or not.
        """
        self._windows = windows
        self._dsn, self._publications, self._selection, self._reader = dsn, tuple(publications), selection, reader
        self._workers, self._stop = workers, stop
        self._connection: PatientConnection | None = None
        self._tries: dict[int, int] = {}
        self.jobs: list[TableJob] = []
        """The copies that were begun and are not void, including durable ones."""

    @property
    def connection(self) -> PatientConnection:
        """The connection for the catalog and for snapshots; it is opened when it is needed."""
        if self._connection is None or self._connection.closed:
            self._connection = connect_to_copy(self._dsn, self._stop)
        return self._connection

    def close(self) -> None:
        """Close the connection; the next use opens another one."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def copy_exported(self, exported: ExportedSnapshot) -> None:
        """Copy the tables that were published when the slot was created, under the slot's snapshot.

        Tables that have a copy are skipped; so are those that are being altered, which may be rewritten: they are
        copied later. Raises LostSnapshotError too.
        """
        connection = self.connection
        check_can_copy(connection)
        with imported_snapshot(connection, exported.name):
            snapshot = read_snapshot(connection, exported.lsn)
            missing = self._selection.missing(exported.published)
            tables = read_tables(connection, self._publications, missing, locked_tables(connection))
        self._run([self._begin(table, snapshot) for table in tables], exported.name, self._workers)

    def copy_table(self, table: "_TableToCopy") -> None:
        """Copy one table under a snapshot of its own."""
        connection, job = self.connection, None
        check_can_copy(connection)
        window = self._windows.open()
        try:
            # In this order: what commits before ``since`` has an xid before ``after``, so the snapshot sees it.
            window.since = current_lsn(connection)
            after = max(table.after, next_xid(connection))
            with begin_snapshot(connection, table.namespace, table.name, after) as snapshot:
                window.until = sees_until(connection)
                tables = read_tables(connection, self._publications, [table.oid])
                if not tables:
                    raise ChangedTableError(f"{full_name(table)} is no longer published")
                job = self._begin(tables[0], snapshot, table.requests, window)
                self._copy(connection, job)
            wait_until_flushed(connection, window.until)
        except BaseException as error:
            self._windows.close(window)
            if job is not None:
                self._discard(job)
            if not was_changed(error) or self._tries.get(table.oid, 0) >= _MAX_TRIES:
                raise copying_error(error, full_name(table), connection, table.oid) from error
            self._tried(table.oid)

    def _copy(self, connection: PatientConnection, job: TableJob) -> None:
        workers = max((request.workers or self._workers for request in job.requests), default=self._workers)
        if min(len(job.chunks), workers) > 1 and self._tries.get(job.table.oid, 0) < _UNLOCKED_TRIES:
            self._run([job], export_snapshot(connection), workers)
        else:
            for chunk in job.chunks:
                if not job.void:
                    self._reader.read(connection, chunk)

    def _begin(
        self,
        table: PublishedTable,
        snapshot: Snapshot,
        requests: tuple[CopyRequest, ...] = (),
        window: CommitWindow | None = None,
    ) -> TableJob:
        """Begin the copy of a table, divided into chunks; without a window the snapshot is that of a new slot."""
        version = self.connection.info.server_version
        job, parts = TableJob(table, snapshot, requests, window=window), list(split(table, version))
        first = self._selection.allocate_chunks(len(parts))
        job.chunks = tuple(Chunk(job, first + index, leaf, pages) for index, (leaf, pages) in enumerate(parts))
        job.missing = len(parts)
        self._selection.open[table.oid] = job
        self.jobs.append(job)
        return job

    def _run(self, jobs: list[TableJob], snapshot: str, count: int) -> None:
        try:
            Workers(self._dsn, self._reader, snapshot, self._stop).run(jobs, count)
        finally:
            for job in jobs:
                if job.void:
                    self._discard(job)
                    self._tried(job.table.oid)

    def _discard(self, job: TableJob) -> None:
        self._windows.close(job.window)
        self._selection.discard(job)
        self.jobs = [other for other in self.jobs if other is not job]

    def _tried(self, oid: int) -> None:
        self._tries[oid] = self._tries.get(oid, 0) + 1


_POLL_SECONDS: Final = 1.0  # seconds between two reads of a log's requests


@dataclass(frozen=True)
class _TableToCopy:
    """A table to copy."""

    oid: int
    namespace: str
    name: str
    after: int
    """The snapshot must see all transactions with a 64-bit xid before this: no stream may have their rows."""
    requests: tuple[CopyRequest, ...] = ()
    """The requests that the copy fulfils."""


class _CopySelection:
    """Selects the tables to copy, from the requests in the log and the publications; knows which were copied."""

    def __init__(self, store: LogStore, publications: Sequence[str], everything: bool, interval: float) -> None:
        """Prepare to select; the arguments are those of ``Copier``."""
        self._store, self._publications, self._everything = store, tuple(publications), everything
        self._interval = interval
        # Listing an object store costs time and money.
        self._pause = _POLL_SECONDS if store.keeps_out else max(interval, _POLL_SECONDS)
        self._due = self._due_requests = 0.0
        self._requests: list[CopyRequest] = []
        self._served: dict[str, set[TableName]] = {}
        self._published: dict[int, TableName] = {}
        self._after: dict[int, int] = {}
        self._copied: set[int] | None = None
        self._next_number = self._now = 0
        self.open: dict[int, TableJob] = {}
        """The copies in progress, by table OID."""

    def missing(self, oids: Iterable[int]) -> list[int]:
        """Return the tables that have no copy in the log, and none in progress."""
        return [oid for oid in oids if oid not in self.open and oid not in self._read_log()]

    def needs_poll(self, at_once: bool = False) -> bool:
        """Return whether the server must be queried; ``at_once`` reads requests and publications now."""
        if at_once or time.monotonic() >= self._due_requests:
            self._requests = requests(self._store)
            self._due_requests = time.monotonic() + self._pause
        self._due = 0.0 if at_once else self._due
        return bool(self._requests) or (self._everything and time.monotonic() >= self._due)

    def tables_to_copy(self, connection: Connection) -> list[_TableToCopy]:
        """Return the tables to copy now; call it again until it returns none."""
        if self._requests and not self._everything and is_standby(connection):
            self._refuse_all("the server is a standby")
        if self._requests or time.monotonic() >= self._due:
            self._read_publications(connection)
        requested: dict[int, list[CopyRequest]] = {}
        oids = {name: oid for oid, name in self._published.items()}
        for request in list(self._requests):
            for table in request.tables:
                if table in oids and table not in self._served.get(request.number, ()):
                    requested.setdefault(oids[table], []).append(request)
                elif table not in oids:
                    self._refuse(request, table, "it is not published")
        missing = self.missing(self._published) if self._everything else []
        chosen = [oid for oid in dict.fromkeys([*missing, *requested]) if oid not in self.open]
        if chosen:  # they may fail: read the publications again
            self._due = 0.0
        return [self._table_to_copy(oid, tuple(requested.get(oid, ()))) for oid in chosen]

    def restart(self) -> None:
        """Determine again which transactions a copy must contain: another slot is read."""
        self._after.clear()
        self._due = 0.0

    def allocate_chunks(self, chunks: int) -> int:
        """Return the first of ``chunks`` consecutive chunk numbers that the log does not have."""
        self._read_log()
        first = self._next_number
        self._next_number += chunks
        return first

    def copied(self, job: TableJob) -> None:
        """Note that a copy is durable, and remove the requests that are fulfilled with it."""
        self.open.pop(job.table.oid, None)
        self._read_log().add(job.table.oid)
        for request in job.requests:
            self._mark_served(request, (job.table.namespace, job.table.name))

    def discard(self, job: TableJob) -> None:
        """Note that a copy did not become complete: the table may be selected again."""
        job.void = True
        self.open.pop(job.table.oid, None)
        self._due = 0.0

    def _table_to_copy(self, oid: int, requests: tuple[CopyRequest, ...]) -> _TableToCopy:
        # A requested table may have been removed from the publication and added again since: use the current xid.
        return _TableToCopy(oid, *self._published[oid], self._now if requests else self._after[oid], requests)

    def _read_publications(self, connection: Connection) -> None:
        self._published = read_published(connection, self._publications)
        # Read after the publications: transactions with a later xid find the tables published.
        self._now = next_xid(connection)
        self._after = {oid: self._after.get(oid, self._now) for oid in self._published}
        self._due = time.monotonic() + self._interval

    def _read_log(self) -> set[int]:
        """Return the OIDs of the tables that the log has copies of, or had before it was pruned; reads the log once."""
        if self._copied is None:
            listing = list_log(self._store)
            self._copied = {*read_pruned(self._store).copied}
            if listing:
                index = indexes_of(listing)
                self._copied.update(latest_copies(index))
                # Each chunk begins with its Relation, also one that was never completed.
                lowest = pc.min(index.entries("descriptions")["stream_xid"]).as_py()
                if lowest is not None and lowest < OUTSIDE:
                    self._next_number = copy_scope(lowest) + 1
        return self._copied

    def _refuse_all(self, reason: str) -> None:
        for request in list(self._requests):
            for table in request.tables:
                self._refuse(request, table, reason)

    def _refuse(self, request: CopyRequest, table: TableName, reason: str) -> None:
        _LOG.warning("the request to copy table %s is refused: %s", qualified_name(*table), reason)
        self._mark_served(request, table)

    def _mark_served(self, request: CopyRequest, table: TableName) -> None:
        served = self._served.setdefault(request.number, set())
        served.add(table)
        if served.issuperset(request.tables):
            fulfil(self._store, request)
            self._requests = [each for each in self._requests if each.number != request.number]
