"""Copies of tables beside a stream: asked for, made in threads of their own, and appended by the pump."""

import logging
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import psycopg

from pgoutput_construct.changelog.events import COPIED_TABLE
from pgoutput_construct.changelog.flush import Durable
from pgoutput_construct.changelog.options import LogOptions
from pgoutput_construct.changelog.store import LogStore
from pgoutput_construct.changelog.writer import LogWriter
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres.connection import describe_error
from pgoutput_construct.postgres.copying.chunks import ChunkReader
from pgoutput_construct.postgres.copying.jobs import CopyProgress, Piece, Pieces, TableJob
from pgoutput_construct.postgres.copying.making import CopyMaker
from pgoutput_construct.postgres.copying.snapshots import LostSnapshotError
from pgoutput_construct.postgres.copying.wanted import Wanted, WantedTable
from pgoutput_construct.postgres.copying.windows import CommitWindows
from pgoutput_construct.postgres.copying.workers import NO_LOCK
from pgoutput_construct.postgres.slots import ExportedSnapshot
from pgoutput_construct.postgres.waiting import Stopped
from pgoutput_construct.wire import Lsn

if TYPE_CHECKING:
    from pgoutput_construct.postgres.known import Shape

__all__ = ["Copier"]

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
        self._wanted = Wanted(store, publications, everything, interval)
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

    def _copy(self, tables: Iterable[WantedTable]) -> None:
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
        """Tell whether to try again after an error, and say so once."""
        found = describe_error(error, "tables cannot be copied") if isinstance(error, psycopg.Error) else error
        if not isinstance(found, ReplicationError) or not found.transient:
            return False
        state = re.sub(r"\d+", "", str(found))
        if state != self._said:
            self._said = state
            _LOG.warning("%s; trying again", " ".join(str(found).split()))
        return True
