"""Table copies alongside a stream: requested in the log, read in threads of their own, and appended by the pump.

The package's docstring explains how a copy joins the stream. ``Copier`` is what a capture uses: its thread looks for
tables to copy (``CopySelection``) and has them read (``CopyMaker``); the pump appends what is in ``pieces``, and
completes a copy once the log has every commit before its ``sees_until``.
"""

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Self

import psycopg

from pgoutput_construct.changelog._facts.partial_copies import PartialCopy, begun_details, read_details
from pgoutput_construct.changelog._facts.visibility import Snapshot
from pgoutput_construct.changelog._notes.copy_requests import CopyRequest
from pgoutput_construct.changelog._segment.events import COPIED_CHUNKS, COPIED_TABLE, COPYING_TABLE
from pgoutput_construct.changelog._store.store import LogStore, MissingFileError
from pgoutput_construct.changelog.log_options import LogOptions
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.changelog.writer import Durable, LogWriter
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres._catalog.table_catalog import locked_tables
from pgoutput_construct.postgres._patience import PatientConnection, StopCheck, Stopped
from pgoutput_construct.postgres._snapshot.chunks import ByteRate, ChangedTableError, ChunkReader, was_changed
from pgoutput_construct.postgres._snapshot.copied_tables import PublishedTable, read_tables
from pgoutput_construct.postgres._snapshot.copy_plans import chunks_of, columns_of, new_plan, obstacle, stream_terms
from pgoutput_construct.postgres._snapshot.copy_selection import CopySelection, TableToCopy
from pgoutput_construct.postgres._snapshot.jobs import CopyProgress, Piece, PieceQueue, TableJob
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
)
from pgoutput_construct.postgres._snapshot.void_search import VoidSearch
from pgoutput_construct.postgres._snapshot.workers import NO_LOCK, Workers, connect_to_copy, copying_error
from pgoutput_construct.postgres.connection import current_lsn, describe_error
from pgoutput_construct.postgres.replication_slots import ExportedSnapshot
from pgoutput_construct.stream.identifiers import full_name
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
        self,
        dsn: str,
        store: LogStore,
        publications: Sequence[str],
        workers: int,
        everything: bool,
        interval: float,
        rate: float | None = None,
    ) -> None:
        """Prepare; ``start`` begins to copy.

        Args:
            dsn: The connection string, as libpq reads it.
            store: The store of the log, which has the requests.
            publications: The names of the publications.
            workers: The number of connections that copy a table.
            everything: Copy every published table without a copy in the log, not only those that are requested.
            interval: Seconds between two reads of the publications.
            rate: How many bytes a second are read at most; None: any number.
        """
        self.pieces = PieceQueue()
        """The pieces to append."""
        self.on_copied: Callable[[int, RelationShape], None] = lambda oid, shape: None
        """Called with the OID and the columns of each table whose copy is complete."""
        self.has_facts_of: Callable[[int], bool] = lambda oid: True
        """Returns whether the log has facts of a table, which must precede its first copy."""
        self._store = store
        self._selection = CopySelection(store, publications, everything, interval)
        self._reader = ChunkReader(self.pieces.put, ByteRate(rate))
        self._windows = CommitWindows()
        given = self._selection, self._reader, workers, self._stop, self._windows
        self._maker = CopyMaker(dsn, publications, *given, self._conclude, self._is_seen)
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
        """Begin to copy; copies in progress continue, on a server that was promoted with another snapshot.

        Args:
            options: The options of the stream: copied rows are written as it would send them.
            complete_lsn: The LSN up to which the log is complete and durable.
        """
        self._maker.stream = stream_terms(options)
        for job in list(self._selection.open.values()):
            if not self._is_seen(job):  # the server may have crashed, and have lost what the snapshot sees
                job.abandon()
        if self._timeline not in (None, options.timeline):
            self.restart(has_gap=False)
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

    def restart(self, has_gap: bool = True) -> None:
        """Void the attempts that are not complete, since another slot, or another server, is read.

        Args:
            has_gap: Whether the log lacks changes since their snapshots: then copies begin with their first rows.
        """
        self._selection.restart(has_gap)
        for job in list(self._selection.open.values()):
            job.abandon()
        self._complete_lsn = Lsn(0)
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
        """Whether a copy waits for its event, or for its last row, to become durable."""
        awaited = max((job.last_seq for job in self._appended if job.is_continued), default=-1)
        return not self.pieces and max(self._event_seq, awaited) > self._durable_seq

    @property
    def has_more(self) -> bool:
        """Whether pieces, or the event of a copy, can be appended."""
        return bool(self.pieces) or any(self._is_complete(job) for job in self._appended)

    @property
    def awaited_lsn(self) -> Lsn | None:
        """The lowest ``sees_until`` of the copies that wait for the stream, None for none.

        Until the log is complete and durable up to it, nobody knows which transactions the copy contains, and no chunk
        counts as read.
        """
        jobs = (job for job in list(self._selection.open.values()) if job.read or job.is_waiting or not job.missing)
        return min((job.sees_until for job in jobs if not job.void and not self._is_seen(job)), default=None)

    def append_to(self, writer: LogWriter) -> None:
        """Append events and pieces, up to the limits of a segment; call it between transactions of the stream."""
        for job in [job for job in self._appended if self._is_complete(job)]:
            self._complete(job, writer)
        while not writer.is_full() and (piece := self.pieces.take()) is not None:
            if not piece.chunk.job.void:
                self._begin(piece.chunk.job, writer)
                if piece.block is not None:
                    writer.append(piece.block)
                self._count_piece(piece, writer)
        for job in list(self._selection.open.values()):
            self._note_chunks(job, writer)

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

    def _begin(self, job: TableJob, writer: LogWriter) -> None:
        """Append the event that an attempt begins, before its first row."""
        if job.partial is not None and job.attempt is None:
            attempt = job.begin(job.partial, writer.next_seq)
            writer.append_fact(COPYING_TABLE, job.snapshot.lsn, **begun_details(job.partial.plan, attempt))

    def _note_chunks(self, job: TableJob, writer: LogWriter) -> None:
        """Append the event that chunks were read to their ends, once the log has all that the snapshot sees."""
        if job.read and self._is_seen(job) and (chunks := job.take_read(writer.next_seq)):
            assert job.partial is not None and job.attempt is not None
            details = read_details(job.partial.plan, job.partial.attempts[job.attempt], chunks)
            writer.append_fact(COPIED_CHUNKS, job.snapshot.lsn, **details)

    def _count_piece(self, piece: Piece, writer: LogWriter) -> None:
        """Count an appended piece; after the last one of a table, complete the copy if possible."""
        job = piece.chunk.job
        job.last_seq = writer.next_seq - 1
        job.rows += piece.rows
        self._rows += piece.rows
        self._bytes += piece.size
        if not piece.is_last:
            return
        job.missing -= 1
        job.done += 0 if piece.chunk.was_read else piece.chunk.size
        job.read.append(piece.chunk.number)
        if not job.missing:
            self._appended.append(job)
            if self._is_complete(job):
                self._complete(job, writer)

    def _is_complete(self, job: TableJob) -> bool:
        """Return whether the event of a copy can be appended; True for a void copy."""
        return job.void or (self._is_seen(job) and (job.void_rows is not None or not job.is_continued))

    def _is_seen(self, job: TableJob) -> bool:
        """Return whether the log has all commits that the copy may contain."""
        return job.sees_until <= self._complete_lsn

    def _complete(self, job: TableJob, writer: LogWriter) -> None:
        """Append the event that a copy is complete."""
        self._appended.remove(job)
        if job.complete(writer.next_seq):
            self._event_seq = writer.next_seq
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
        self._conclude()
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

    def _copy(self, tables: Iterable[TableToCopy]) -> None:
        """Copy tables one after the other; one that is locked is skipped, and its error raised at the end."""
        locked = []
        for table in tables:
            self._conclude()
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

    def _conclude(self) -> None:
        """Do what copies need whose rows were all read."""
        self._settle_durable()
        self._find_void_rows()

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

    def _find_void_rows(self) -> None:
        """Find the rows of copies of several attempts that do not count, once all that it takes is durable."""
        for job in [job for job in self._appended if job.is_continued and job.void_rows is None and not job.void]:
            if job.partial is None or job.read or job.last_seq > self._durable_seq or not self._is_seen(job):
                continue
            keys = [column.name for column in job.table.key]
            try:
                job.rows, job.void_rows = VoidSearch(ChangeLog(self._store), job.partial, keys).run()
            except MissingFileError:
                continue  # its segments were merged meanwhile: the next search reads those
            except ChangedTableError as error:
                _LOG.warning("%s is copied again from its first row: %s", job.table, error)
                job.partial = None
                job.abandon()
            if (wake := self.pieces.wake) is not None:
                wake()

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
_STREAM_PAUSE: Final = 0.02  # seconds


class CopyMaker:
    """Makes copies: one connection reads the catalog and takes snapshots, others read rows.

    Its methods return when all rows were passed on by ``reader``, or the copy is void. They raise ReplicationError,
    psycopg.Error and Stopped.
    """

    def __init__(
        self,
        dsn: str,
        publications: Sequence[str],
        selection: CopySelection,
        reader: ChunkReader,
        workers: int,
        stop: StopCheck,
        windows: CommitWindows,
        meanwhile: Callable[[], None],
        is_seen: Callable[[TableJob], bool],
    ) -> None:
        """Prepare; connections are opened when they are needed.

        The arguments are those of ``Copier``, though requests may say other numbers of ``workers``. ``selection`` has
        the copies in progress, ``reader`` passes on pieces, ``windows`` has the commits that a snapshot may see or not.
        ``meanwhile`` is called again and again while rows are read; ``is_seen`` returns whether the log has all commits
        that a copy may contain.
        """
        self._windows, self._meanwhile, self._is_seen = windows, meanwhile, is_seen
        self._dsn, self._publications, self._selection, self._reader = dsn, tuple(publications), selection, reader
        self._workers, self._stop = workers, stop
        self._connection: PatientConnection | None = None
        self._tries: dict[int, int] = {}
        self.stream = ""
        """The options of the stream on which the rows depend."""
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

    def copy_table(self, table: TableToCopy) -> None:
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
        except BaseException as error:
            if job is not None and not job.abandon():
                return  # it was completed before: the log has what its snapshot sees
            self._windows.close(window)
            if job is not None:
                self._discard(job)
            if not was_changed(error) or self._tries.get(table.oid, 0) >= _MAX_TRIES:
                raise copying_error(error, full_name(table), connection, table.oid) from error
            self._tried(table.oid)

    def _wait_for_stream(self, connection: PatientConnection, job: TableJob) -> None:
        """Wait until what a resumed copy reads counts at once: a capture that is soon killed again would lose it.

        A stream that lags needs the time itself.
        """
        job.is_waiting = True
        while job.is_waiting and not job.void and not self._is_seen(job):
            connection.patience.check(float("inf"))
            self._meanwhile()
            time.sleep(_STREAM_PAUSE)
        job.is_waiting = False

    def _copy(self, connection: PatientConnection, job: TableJob) -> None:
        workers = max((request.workers or self._workers for request in job.requests), default=self._workers)
        is_resumed = any(chunk.was_read for chunk in job.chunks)
        is_shared = is_resumed or min(len(job.chunks), workers) > 1
        if is_shared and self._tries.get(job.table.oid, 0) < _UNLOCKED_TRIES:
            exported = export_snapshot(connection)  # this releases the lock: a stream may lag for long
            if is_resumed:
                self._wait_for_stream(connection, job)
            self._run([job], exported, workers)
        else:
            for chunk in job.chunks:
                if not job.void:
                    self._reader.read(connection, chunk)
                    self._meanwhile()

    def _begin(
        self,
        table: PublishedTable,
        snapshot: Snapshot,
        requests: tuple[CopyRequest, ...] = (),
        window: CommitWindow | None = None,
    ) -> TableJob:
        """Begin the copy of a table, divided into chunks, or resume one that was begun.

        Without a window the snapshot is that of a new slot.
        """
        job = TableJob(table, snapshot, requests, window=window, columns=columns_of(table))
        job.generation = self._selection.generation
        partial = self._selection.partial(table.oid)
        if partial is not None and (reason := obstacle(partial, job, self.stream)):
            _LOG.warning("%s is copied again from its first row: %s", table, reason)
            partial = None
        if partial is not None:
            _LOG.info("the copy of %s continues from %s", table, partial.read_pages())
        job.partial = self._new_copy(table, requests) if partial is None else partial
        job.chunks = tuple(chunks_of(job, job.partial))
        if len(job.chunks) == 1:
            job.partial = None
        job.missing, job.done = len(job.chunks), sum(chunk.size for chunk in job.chunks if chunk.was_read)
        self._selection.open[table.oid] = job
        self.jobs.append(job)
        if job.generation != self._selection.generation:
            job.abandon()
        return job

    def _new_copy(self, table: PublishedTable, requests: Iterable[CopyRequest]) -> PartialCopy:
        allocate, version = self._selection.allocate_chunks, self.connection.info.server_version
        numbers = tuple(request.number for request in requests)
        return PartialCopy(new_plan(table, allocate, self.stream, version, numbers))

    def _run(self, jobs: list[TableJob], snapshot: str, count: int) -> None:
        try:
            Workers(self._dsn, self._reader, snapshot, self._stop).run(jobs, count, self._meanwhile)
        finally:
            for job in jobs:
                if job.void:
                    self._discard(job)
                if job.was_altered:
                    self._tried(job.table.oid)

    def _discard(self, job: TableJob) -> None:
        self._windows.close(job.window)
        self._selection.discard(job)
        self.jobs = [other for other in self.jobs if other is not job]

    def _tried(self, oid: int) -> None:
        self._tries[oid] = self._tries.get(oid, 0) + 1
