"""Copies of tables next to a stream: asked for, made in threads of their own, and appended by the pump."""

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import psycopg
import pyarrow.compute as pc

from pgoutput_construct.changelog._facts.copies import latest_copies
from pgoutput_construct.changelog._facts.events import COPIED_TABLE
from pgoutput_construct.changelog._facts.visibility import Snapshot
from pgoutput_construct.changelog._index.indexes import indexes_of
from pgoutput_construct.changelog._index.listing import list_log, read_pruned
from pgoutput_construct.changelog._notes.copy_requests import CopyRequest, TableName, fulfil, requests
from pgoutput_construct.changelog._store.store import LogStore
from pgoutput_construct.changelog.log_options import LogOptions
from pgoutput_construct.changelog.writer import Durable, LogWriter
from pgoutput_construct.columnar.descriptions import OUTSIDE, copy_scope
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres._catalog.table_catalog import locked_tables
from pgoutput_construct.postgres._snapshot.chunks import ChangedTableError, ChunkReader, was_changed
from pgoutput_construct.postgres._snapshot.copied_tables import PublishedTable, read_tables
from pgoutput_construct.postgres._snapshot.jobs import CopyProgress, Piece, Pieces, TableJob
from pgoutput_construct.postgres._snapshot.snapshots import (
    CommitWindow,
    CommitWindows,
    LostSnapshotError,
    begin_alone,
    check_can_copy,
    export,
    imported,
    next_xid,
    read_snapshot,
    sees_until,
    wait_until_flushed,
)
from pgoutput_construct.postgres._snapshot.workers import NO_LOCK, Workers, connect_to_copy, copying_error
from pgoutput_construct.postgres._waiting import Asked, PatientConnection, Stopped
from pgoutput_construct.postgres.connection import Connection, current_lsn, describe_error, is_standby
from pgoutput_construct.postgres.publications import read_published
from pgoutput_construct.postgres.slots import ExportedSnapshot
from pgoutput_construct.stream.identifiers import full_name, qualified_name
from pgoutput_construct.wire import Lsn

if TYPE_CHECKING:
    from pgoutput_construct.postgres._catalog.known_tables import Shape

__all__ = ["Copier", "CopyMaker"]


_LOG = logging.getLogger("pgoutput_construct")
_INTERVAL: Final = 0.5  # seconds
_SOON: Final = 0.1  # seconds after which the catalog's watch may have said what a table is
_LONGEST: Final = 30.0  # seconds between two attempts


class Copier:
    """Copies tables for one capture; a context manager around it, which ends what has not come to its end."""

    def __init__(
        self, dsn: str, store: LogStore, publications: Sequence[str], workers: int, everything: bool, interval: float
    ) -> None:
        """Copy what is asked for by requests in the log, and with ``everything`` each table that is published.

        Over ``workers`` connections; the publications are looked at every ``interval`` seconds.
        """
        self.pieces = Pieces()
        """What waits to be appended."""
        self.on_copied: Callable[[int, Shape], None] = lambda oid, shape: None
        """Called with the OID and the columns of each table whose copy was appended as a whole."""
        self.is_said: Callable[[int], bool] = lambda oid: True
        """Whether the log has facts of a table, which are to precede its first copy."""
        self._wanted = _Wanted(store, publications, everything, interval)
        self._reader = ChunkReader(self.pieces.put)
        self._windows = CommitWindows()
        given = self._wanted, self._reader, workers, self._asked, self._windows
        self._maker = CopyMaker(dsn, publications, *given)
        self._appended: list[TableJob] = []
        """Copies all of whose rows were appended, and of which the log does not yet say so."""
        self._complete_lsn = Lsn(0)
        """Up to where the log is complete with what is durable."""
        self._exported: ExportedSnapshot | None = None
        self._settled = False
        self._wish = self._seen = object()
        self._durable_seq = self._event_seq = -1
        self._timeline: int | None = None
        self._left = self._tables = self._rows = self._bytes = 0
        self._said = ""
        self._problem: BaseException | None = None
        self._closed, self._news = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="copies of tables", daemon=True)

    def start(self, options: LogOptions, complete_lsn: Lsn) -> None:
        """Begin to copy under the options of a log; what runs already goes on, unless the server was promoted.

        The log is complete, and durable, up to ``complete_lsn``.
        """
        if self._timeline not in (None, options.timeline):
            self.begin_anew()
        self._timeline = options.timeline
        self._complete_lsn = max(self._complete_lsn, complete_lsn)
        if self._thread.ident is None:
            self._reader.use(options.layout(), options.binary)
            self._thread.start()

    def use(self, exported: ExportedSnapshot) -> None:
        """Copy under a snapshot that was made with the slot; what was exported before is let go."""
        self._let_go()
        self._exported = exported
        self.look()

    def begin_anew(self) -> None:
        """Void the copies that are not complete: the changes from their snapshots on are not all in the log."""
        for job in [job for job in self._wanted.open.values() if job.event_seq is None]:
            job.void = True
        self._complete_lsn = Lsn(0)
        self._wanted.begin_anew()
        self.look()

    def check(self) -> None:
        """Raise what keeps a table from being copied."""
        if self._problem is not None:
            raise self._problem

    @property
    def busy(self) -> bool:
        """Whether something is wanted that is not durable."""
        return not self._settled or self._seen is not self._wish

    def look(self) -> None:
        """Look at the requests of the log and at the publications at once: there may be something new."""
        self._wish = object()
        self._news.set()

    @property
    def wants_cut(self) -> bool:
        """Whether somebody waits for what was appended to become durable."""
        return not self.pieces and self._event_seq > self._durable_seq

    @property
    def has_more(self) -> bool:
        """Whether something waits to be appended."""
        return bool(self.pieces) or any(self._is_complete(job) for job in self._appended)

    @property
    def awaited_lsn(self) -> Lsn | None:
        """The next LSN up to which the log is to be complete and durable, None for none: a copy waits for it.

        Before that nobody can say which transactions the copy contains.
        """
        return min((job.sees_until for job in self._appended if not self._is_complete(job)), default=None)

    def append_to(self, writer: LogWriter) -> None:
        """Append what waits, up to the limits of a segment; no transaction of the stream may be open in the log."""
        for job in [job for job in self._appended if self._is_complete(job)]:
            self._complete(job, writer)
        while not writer.is_full() and (piece := self.pieces.take()) is not None:
            if not piece.chunk.job.void:
                writer.append(piece.block)
                self._count(piece, writer)

    def became_durable(self, durable: Durable) -> None:
        """Take into account what has become durable."""
        self._complete_lsn = max(self._complete_lsn, durable.position.complete_lsn)
        if durable.segment is not None:
            self._windows.add(durable.segment)
            self._durable_seq = durable.segment.last_seq
            self._news.set()

    def progress(self) -> CopyProgress:
        """Return how far it is."""
        size, done = (sum(getattr(job, name) for job in list(self._maker.jobs)) for name in ("size", "done"))
        percent = 100.0 * done / size if size else 100.0
        return CopyProgress(self._tables, self._left, self._rows, self._bytes, percent, self._settled)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closed.set()
        self._news.set()
        self.pieces.close()
        if self._thread.ident is not None:
            self._thread.join(5)
        self._let_go()

    def _count(self, piece: Piece, writer: LogWriter) -> None:
        """Take an appended piece into account, and say so in the log when it was the last one of its table."""
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
        """Return whether the log has all that is to be known of a copy whose rows it has; also of one that is void."""
        return job.void or job.sees_until <= self._complete_lsn

    def _complete(self, job: TableJob, writer: LogWriter) -> None:
        """Say in the log that a copy is complete."""
        self._appended.remove(job)
        if not job.void:
            job.event_seq = self._event_seq = writer.next_seq
            numbers = [request.number for request in job.requests]
            writer.append_fact(COPIED_TABLE, job.snapshot.lsn, **job.copy().said(), requests=numbers)
            self.on_copied(job.table.oid, job.table.shape)
        self._windows.close(job.window)

    def _asked(self) -> str | None:
        return "the capture ends" if self._closed.is_set() else None

    def _let_go(self) -> None:
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
                pause = min(max(2 * pause, _INTERVAL), _LONGEST)
                if not self._may_pass(error):
                    self._problem = error
                    return
        self._maker.close()

    def _round(self) -> float:
        """Do what is to be done now; return after how many seconds to look again."""
        if self._exported is not None:
            self._copy_exported(self._exported)
        self._settle_durable()
        wish = self._wish
        if self._wanted.needs_look(at_once=self._seen is not wish):
            found = self._wanted.look(self._maker.connection)
            self._left = len(found) + len(self._wanted.open)
            if found:
                self._settled = False
                ready = [table for table in found if table.requests or self.is_said(table.oid)]
                self._copy(ready)
                return 0.0 if len(ready) == len(found) else _SOON
        self._left = len(self._wanted.open)
        self._settled, self._seen = not self._left, wish
        return _INTERVAL

    def _copy(self, tables: "Iterable[_WantedTable]") -> None:
        """Copy tables one after the other; one that is locked keeps nobody waiting but itself."""
        locked = []
        for table in tables:
            try:
                self._maker.alone(table)
            except ReplicationError as error:
                if error.sqlstate != NO_LOCK:
                    raise
                locked.append(error)
        if locked:
            raise locked[0]

    def _copy_exported(self, exported: ExportedSnapshot) -> None:
        try:
            self._maker.under(exported)
        except LostSnapshotError:
            _LOG.warning(
                "the snapshot that was made with the slot is gone: tables that are left are copied as they are"
            )
        self._let_go()

    def _settle_durable(self) -> None:
        for job in list(self._wanted.open.values()):
            if job.void:
                self._windows.close(job.window)
                self._wanted.discard(job)
            elif job.event_seq is not None and job.event_seq <= self._durable_seq:
                self._wanted.copied(job)
                self._tables += 1
                _LOG.info("table %s is in the log: %d rows", job.table, job.rows)

    def _may_pass(self, error: BaseException) -> bool:
        """Return whether to try again after an error, and say so once."""
        found = describe_error(error, "tables cannot be copied") if isinstance(error, psycopg.Error) else error
        if not isinstance(found, ReplicationError) or not found.transient:
            return False
        state = re.sub(r"\d+", "", str(found))
        if state != self._said:
            self._said = state
            _LOG.warning("%s; trying again", " ".join(str(found).split()))
        return True


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
        wanted: "_Wanted",
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

    def alone(self, wanted: "_WantedTable") -> None:
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


_LOOKS: Final = 1.0  # seconds between two looks at the requests of a log


@dataclass(frozen=True)
class _WantedTable:
    """A table that is to be copied."""

    oid: int
    namespace: str
    name: str
    after: int
    """Its snapshot must contain all transactions with an xid before this: they may have written what no stream has."""
    requests: tuple[CopyRequest, ...] = ()
    """Who asked for it."""


class _Wanted:
    """Knows what was copied, and looks at the publications and the requests from time to time."""

    def __init__(self, store: LogStore, publications: Sequence[str], everything: bool, interval: float) -> None:
        """Look at the publications every ``interval`` seconds, at all times where ``everything`` is to be copied."""
        self._store, self._publications, self._everything = store, tuple(publications), everything
        self._interval = interval
        # An object store is asked over the network, and wants to be paid for it.
        self._pause = _LOOKS if store.keeps_out else max(interval, _LOOKS)
        self._due = self._due_requests = 0.0
        self._requests: list[CopyRequest] = []
        self._served: dict[str, set[TableName]] = {}
        self._published: dict[int, TableName] = {}
        self._after: dict[int, int] = {}
        self._copied: set[int] | None = None
        self._next_number = self._now = 0
        self.open: dict[int, TableJob] = {}
        """The copies that are on their way into the log, by the OIDs of their tables."""

    def missing(self, oids: Iterable[int]) -> list[int]:
        """Return those of some tables that were not copied, and are not on their way."""
        return [oid for oid in oids if oid not in self.open and oid not in self._read_log()]

    def needs_look(self, at_once: bool = False) -> bool:
        """Return whether a server must be asked to know what is wanted; ``at_once``: there may be something new."""
        if at_once or time.monotonic() >= self._due_requests:
            self._requests = requests(self._store)
            self._due_requests = time.monotonic() + self._pause
        self._due = 0.0 if at_once else self._due
        return bool(self._requests) or (self._everything and time.monotonic() >= self._due)

    def look(self, connection: Connection) -> list[_WantedTable]:
        """Return the tables that are to be copied now; it must be asked again, until it returns none."""
        if self._requests and not self._everything and is_standby(connection):
            self._refuse_all("the server is a standby")
        if self._requests or time.monotonic() >= self._due:
            self._look(connection)
        asked: dict[int, list[CopyRequest]] = {}
        oids = {name: oid for oid, name in self._published.items()}
        for request in list(self._requests):
            for table in request.tables:
                if table in oids and table not in self._served.get(request.number, ()):
                    asked.setdefault(oids[table], []).append(request)
                elif table not in oids:
                    self._refuse(request, table, "it is not published")
        missing = self.missing(self._published) if self._everything else []
        chosen = [oid for oid in dict.fromkeys([*missing, *asked]) if oid not in self.open]
        if chosen:  # what becomes of them is not known here
            self._due = 0.0
        return [self._wanted(oid, tuple(asked.get(oid, ()))) for oid in chosen]

    def begin_anew(self) -> None:
        """Ask anew which transactions a copy must contain: another slot is read."""
        self._after.clear()
        self._due = 0.0

    def number(self, chunks: int) -> int:
        """Return the first of so many numbers of chunks that the log does not have."""
        self._read_log()
        first = self._next_number
        self._next_number += chunks
        return first

    def copied(self, job: TableJob) -> None:
        """Note that a copy is durable, and remove the requests that it was the last to fulfil."""
        self.open.pop(job.table.oid, None)
        self._read_log().add(job.table.oid)
        for request in job.requests:
            self._serve(request, (job.table.namespace, job.table.name))

    def discard(self, job: TableJob) -> None:
        """Note that a copy did not become complete: whether it is still wanted is looked at anew."""
        job.void = True
        self.open.pop(job.table.oid, None)
        self._due = 0.0

    def _wanted(self, oid: int, asked: tuple[CopyRequest, ...]) -> _WantedTable:
        # It may have been taken out of the publication and added again meanwhile: only what is asked now is certain.
        return _WantedTable(oid, *self._published[oid], self._now if asked else self._after[oid], asked)

    def _look(self, connection: Connection) -> None:
        self._published = read_published(connection, self._publications)
        # Read after they were seen to be published.
        self._now = next_xid(connection)
        self._after = {oid: self._after.get(oid, self._now) for oid in self._published}
        self._due = time.monotonic() + self._interval

    def _read_log(self) -> set[int]:
        """Return the tables that the log has copies of, or had before it was pruned; the log is read once."""
        if self._copied is None:
            listing = list_log(self._store)
            self._copied = {*read_pruned(self._store).copied}
            if listing:
                index = indexes_of(listing)
                self._copied.update(latest_copies(index))
                # Each chunk begins with what describes it, also one that was never completed.
                lowest = pc.min(index.entries("descriptions")["stream_xid"]).as_py()
                if lowest is not None and lowest < OUTSIDE:
                    self._next_number = copy_scope(lowest) + 1
        return self._copied

    def _refuse_all(self, reason: str) -> None:
        for request in list(self._requests):
            for table in request.tables:
                self._refuse(request, table, reason)

    def _refuse(self, request: CopyRequest, table: TableName, reason: str) -> None:
        _LOG.warning("no copy is made of table %s, for which somebody asked: %s", qualified_name(*table), reason)
        self._serve(request, table)

    def _serve(self, request: CopyRequest, table: TableName) -> None:
        served = self._served.setdefault(request.number, set())
        served.add(table)
        if served.issuperset(request.tables):
            fulfil(self._store, request)
            self._requests = [each for each in self._requests if each.number != request.number]
