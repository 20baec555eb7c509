"""One capture: one log, one connection to its slot after another until the capture ends, and the user's callbacks."""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final, Self

import numpy as np
import psycopg

from pgoutput_construct.changelog._index.index_builder import IndexBuilder
from pgoutput_construct.changelog._segment.block import Block
from pgoutput_construct.changelog._segment.footer import Position
from pgoutput_construct.changelog._segment.segment_schema import segment_table
from pgoutput_construct.changelog.log_options import LogOptions
from pgoutput_construct.changelog.writer import LogWriter
from pgoutput_construct.columnar.copy_format import CopiedRows, CopyFormat
from pgoutput_construct.columnar.envelope import Frames
from pgoutput_construct.compiled.jit import compilation
from pgoutput_construct.compiled.memory import read_only
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres._capture.gaps import LogGapError, Recovery, record_connection, record_new_slot
from pgoutput_construct.postgres._capture.overlap import Overlap, sends_same_transactions
from pgoutput_construct.postgres._capture.preparation import CapturePlan, PreparedCapture, check_same_server, prepare
from pgoutput_construct.postgres._capture.pump import CaptureProgress, Intake, Pump
from pgoutput_construct.postgres._capture.slot_watch import SlotWatch
from pgoutput_construct.postgres._capture.transaction_tracker import Ending
from pgoutput_construct.postgres._catalog.catalog_watch import CatalogWatch
from pgoutput_construct.postgres._frames import Gatherer
from pgoutput_construct.postgres._patience import Patience, PatientConnection, Stopped, run_in_thread
from pgoutput_construct.postgres._retry import Retry
from pgoutput_construct.postgres._snapshot.copier import Copier
from pgoutput_construct.postgres.connection import check_wal_level, connect
from pgoutput_construct.postgres.publications import LostPublicationError
from pgoutput_construct.postgres.replication import ReplicationStream, Silence
from pgoutput_construct.postgres.replication_slots import UndecodableSlotError, drop_slot, end_reader
from pgoutput_construct.stream.session import Session
from pgoutput_construct.wire import Lsn, Timestamp, XLogData, build_frame
from pgoutput_construct.wire import messages as m

__all__ = [
    "Callbacks",
    "CaptureSession",
    "activity",
    "compile_kernels",
]


_LOG = logging.getLogger("pgoutput_construct")
_SLICE: Final = 0.1  # seconds
_MAX_REPLACED: Final = 10


@dataclass
class CaptureSession:
    """One call of ``capture``: it connects, checks, streams, and reconnects after transient errors."""

    dsn: str
    plan: CapturePlan
    writer: LogWriter
    ending: Ending
    callbacks: "Callbacks"
    progress: CaptureProgress
    watch: SlotWatch
    catalog: CatalogWatch
    copier: Copier
    _recovery: Recovery = field(default_factory=Recovery)
    _replaced: int = 0
    """The number of consecutive slots that could not be decoded and were replaced."""
    _transactions: int = 0
    """The number of transactions received when the last of them was replaced."""
    _reader: int | None = None
    """The process id of the last stream's walsender."""
    _is_compiled: bool = False
    _has_compared: bool = False
    """Whether the last stream used the log's own options, only to compare the server's history with the log."""

    def run(self, retry: Retry) -> CaptureProgress:
        """Capture until a condition of ``ending`` holds; return the final progress."""
        reason, before = None, self.writer.options.publications if self.writer.options else ()
        while reason is None:
            retry.begin(activity(self.progress))
            try:
                reason = self._connection(retry)
            except Stopped as stopped:
                reason = str(stopped)
            except LostPublicationError as error:
                with closing(connect(self.dsn, patience=Patience(stop=self.ending.reason))) as asking:
                    raise error.with_remedy(asking, self.plan.publications, before) from None
            except ReplicationError as error:
                self.progress.connected = False
                if self.ending.has_begun:
                    retry.began()
                if retry.recurs(error, self.progress.transactions):
                    self._give_up(error)
                pause = retry.failed(error, activity(self.progress))
                self.progress.reconnects += 1
                self._report()
                reason = self._sleep(pause)
        self.progress.ended_by, self.progress.connected = reason, False
        self._report()
        return self.progress

    def _give_up(self, error: ReplicationError) -> None:
        """Let the next connection replace a slot that cannot be decoded, if ``on_lost_slot`` allows it; else raise.

        A new slot that is created while the same transactions run may be undecodable again. If the server itself is
        damaged, tables must not be copied forever: the number of slots replaced without a transaction in between is
        limited.
        """
        if self.progress.transactions != self._transactions:
            self._replaced, self._transactions = 0, self.progress.transactions
        undecodable = UndecodableSlotError(self.plan.slot, error, self._replaced)
        if self.plan.options.on_lost_slot == "stop" or self._replaced == _MAX_REPLACED:
            raise undecodable from error
        self._replaced += 1
        self._recovery.gap = undecodable

    def _connection(self, retry: Retry) -> str | None:
        """Read the slot over one connection; return why the capture ends, or None to reconnect at once."""
        patience = Patience(stop=self.ending.reason)
        self._compile(patience)
        with closing(connect(self.dsn, patience=patience)) as asking:
            if self._reader is not None:
                end_reader(asking, self.plan.slot, self._reader)
            prepared = prepare(asking, self.plan, self.writer, self._recovery)
            if self._recovery.restarted:
                self.copier.restart()
            if prepared.exported is not None:
                self.copier.use_snapshot(prepared.exported)
            self.catalog.begin(asking, self._recovery.restarted)
            self._recovery.restarted = False
        if not prepared.created_slot:
            self._note_start(prepared)
        options, overlap = self._stream_plan(prepared)
        connection = connect(self.dsn, patience=patience)
        try:
            stream = self._start_stream(connection, replace(prepared, overlap=overlap), options, retry)
        except BaseException:
            connection.close()
            raise
        self._reader = connection.info.backend_pid
        retry.connected(f"slot {self.plan.slot!r} from {stream.confirmed_lsn}, timeline {prepared.options.timeline}")
        self.progress.connected = True
        self.progress.confirmed_lsn = max(stream.confirmed_lsn, prepared.confirmed_lsn)
        self._note_start(prepared)
        self.ending.restart_idle_timer(prepared.current_lsn)
        intake = Intake(options.layout(), self.writer.position, overlap)
        watched = self.ending, self.progress, self._report
        pump = Pump(self.writer, stream, intake, *watched, self.copier, self.catalog, self.plan.options.status_interval)
        self.watch.start()  # it also shows whether a silent server is active
        if options is not prepared.options:
            with stream:
                return self._compare(pump)
        record_connection(self.writer, prepared.options)
        if prepared.created_slot:
            record_new_slot(self.writer, self.plan.slot, prepared.confirmed_lsn, prepared.snapshot)
        pump.synchronous = lambda: self.watch.synchronous
        pump.on_compared = lambda: self.copier.start(prepared.options, self.writer.noted_lsn)
        with stream:
            return self._note_gap(pump.run)

    def _compare(self, pump: Pump) -> str | None:
        """Compare what the server sends under the log's own options; if that fails, only LSNs are compared."""
        try:
            reason = self._note_gap(pump.compare)
        except ReplicationError as error:
            if error.transient:
                raise
            reason = None
            if not pump.tracker.is_proved:
                _LOG.warning("the server's history can be compared with the log by LSNs only: %s", error)
        self._has_compared = self._recovery.gap is None
        return reason

    def _note_gap(self, run: Callable[[], str | None]) -> str | None:
        try:
            return run()
        except LogGapError as gap:
            if self.plan.options.on_lost_slot == "stop":
                raise
            self._recovery.gap = gap
            return None

    def _stream_plan(self, prepared: PreparedCapture) -> tuple[LogOptions, Overlap | None]:
        """Return the options of the next stream, and the overlap that it compares with the log.

        Under other publications or options the server sends other transactions. So a first stream with the log's own
        options is only compared; the next one has the requested options, and is captured.
        """
        options, overlap = prepared.options, prepared.overlap
        if overlap is None or sends_same_transactions(overlap.options, options):
            return options, overlap
        if self._has_compared:
            self._has_compared = False
            return options, None
        own: Any = {"publications": overlap.options.publications, **overlap.options.replication_options()}
        return replace(options, **own), overlap

    def _compile(self, patience: Patience) -> None:
        """Compile the kernels once, after a first connection to a server that can be captured.

        Compilation takes long, so it precedes the stream and the creation of a slot: no server waits for it.
        """
        if not self._is_compiled:
            with closing(connect(self.dsn, patience=patience)) as asking:
                check_wal_level(asking)
            with compilation():
                run_in_thread(compile_kernels, Patience(math.inf, patience.stop), lambda _: None)
            self._is_compiled = True

    def _start_stream(
        self, connection: PatientConnection, prepared: PreparedCapture, options: LogOptions, retry: Retry
    ) -> ReplicationStream:
        silence = Silence(
            self.plan.options.status_interval, silent_before=retry.silent, last_active=self.watch.last_active
        )
        start, confirmed = self.writer.position.complete_lsn, None
        if prepared.overlap is not None:
            start, confirmed = prepared.overlap.start_lsn, prepared.overlap.slot_lsn
        given: Any = {"status_interval": self.plan.options.status_interval, "silence": silence}
        check_same_server(connection, prepared.options)
        try:
            return ReplicationStream(connection, options, start, confirmed_lsn=confirmed, **given)
        except ReplicationError:
            if prepared.created_slot:  # otherwise it would retain WAL for a capture that never began
                with suppress(ReplicationError, psycopg.Error):
                    drop_slot(connection, self.plan.slot)
                    self.writer.note_slot(None)
            raise

    def _note_start(self, prepared: PreparedCapture) -> None:
        """Record the LSN at which an empty log begins, also if no segment is written: the log is then not new."""
        if not self.writer.noted_lsn:
            self.writer.cut(Position(complete_lsn=prepared.confirmed_lsn))
            self.writer.collect(wait=True)

    def _sleep(self, seconds: float) -> str | None:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if reason := self.ending.reason():
                return reason
            time.sleep(min(_SLICE, left))
        return None

    def _report(self) -> None:
        self.progress.health, self.progress.copies = self.watch.health, self.copier.progress()
        self.callbacks.report(replace(self.progress))


_POLL_SECONDS: Final = 0.05
_GRACE: Final = 3.0
"""Seconds for which the end of a capture waits for a callback that is running."""


class Callbacks:
    """Calls ``stop`` and ``on_progress`` on a thread of its own, so that a slow one delays nothing; a context manager.

    ``stop`` is called about every 50 ms. A progress report that arrives while ``on_progress`` is running replaces the
    one that is waiting. Errors of callbacks are raised by ``stopped``, ``report`` or the end of the context. A callback
    that has not returned by then is abandoned, with a warning. The end of the context reports the last progress.
    """

    def __init__(self, stop: Callable[[], bool] | None, on_progress: Callable[[CaptureProgress], None] | None) -> None:
        """Take the callbacks, each of which may be None."""
        self._stop, self._on_progress = stop, on_progress
        self._latest: CaptureProgress | None = None
        self._stopped = False
        self._error: BaseException | None = None
        self._news, self._done = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="callbacks of a capture", daemon=True)

    def stopped(self) -> bool:
        """Return whether ``stop`` has returned True."""
        self._raise()
        return self._stopped

    def report(self, progress: CaptureProgress) -> None:
        """Pass ``progress``, which must not change any more, to ``on_progress`` soon."""
        self._raise()
        self._latest = progress
        self._news.set()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        self._done.set()
        self._news.set()
        self._thread.join(_GRACE)
        if self._thread.is_alive():
            _LOG.warning("a callback has not returned within %g seconds: the capture ends without it", _GRACE)
        if error is None:
            self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _run(self) -> None:
        try:
            while not self._done.is_set():
                polls = self._stop is not None and not self._stopped
                self._news.wait(_POLL_SECONDS if polls else None)
                self._show()
                if self._stop is not None and polls:
                    self._stopped = self._stop()
            self._show()
        except BaseException as error:  # whatever it is, the caller's thread raises it
            self._error = error

    def _show(self) -> None:
        self._news.clear()
        latest, self._latest = self._latest, None
        if latest is not None and self._on_progress is not None:
            self._on_progress(latest)


def activity(progress: CaptureProgress) -> int:
    """Return a number that grows with every payload that the server sends."""
    return progress.payload_bytes + progress.dropped


_LAYOUT: Final[dict[str, Any]] = {"proto_version": 4, "streaming": "parallel"}
_OID: Final = 16384
_COLUMNS: Final = (m.RelationColumn(1, "a", 23, -1), m.RelationColumn(0, "b", 25, -1))
_ROW: Final = (b"1", None)
_COPIED: Final = (
    (None, b"1\tab\\\\c\n", b"2\t\\N\n"),
    (True, b"\0\2\0\0\0\1a\xff\xff\xff\xff"),
    (False, b"\0\2\0\0\0\1a\0\0\0\1b"),
)
"""Rows as COPY sends them: as text, or in binary format, with types that have a send function or have none."""
_COPIED_BYTES: Final = 4096


@cache
def compile_kernels() -> None:
    """Load the kernels from numba's cache, or compile them; once per process.

    They are called with the argument types of a capture: a stream of all messages, and copied rows of both formats.
    """
    Gatherer()
    builder = IndexBuilder()
    _exercise_stream(builder)
    for binary, *rows in _COPIED:
        _exercise_copy(builder, None if binary is None else [binary] * len(_COLUMNS), rows)
    builder.finish(1)


def _exercise_stream(builder: IndexBuilder) -> None:
    intake, session = Intake(_LAYOUT, Position()), Session(**_LAYOUT)
    payloads = [session.build(message) for message in _messages()]
    frames = [build_frame(XLogData(Lsn(1), Lsn(1), Timestamp(0), payload), **_LAYOUT) for payload in payloads]
    for some in (frames[:1], frames[1:]):
        together = Frames.of(*some)
        block = intake.take(Frames(together.data, together.ends)).block
        builder.add(block)
        segment_table([block], 0)
        block.take(np.arange(len(block)))
        block.header(m.Relation)


def _exercise_copy(builder: IndexBuilder, binary: Sequence[bool] | None, rows: Sequence[bytes]) -> None:
    described = Session(**_LAYOUT).build(m.Relation(None, _OID, "public", "t", "d", _COLUMNS))
    copied = CopiedRows(CopyFormat(_OID, len(_COLUMNS), _LAYOUT, binary), [described], _COPIED_BYTES)
    content, ends = b"".join(rows), np.cumsum([*map(len, rows)], dtype=np.int64)
    for padding in (0, _COPIED_BYTES):
        copied.add(read_only(np.frombuffer(content + bytes(padding), np.uint8)), ends)
    builder.add(Block.copied(copied.payloads(), 0, 1, 0, _LAYOUT))


def _messages() -> Iterator[m.PgoutputMessage]:
    lsn, time = Lsn(1), Timestamp(0)
    for xid in (None, 9):
        if xid is None:
            yield m.Begin(lsn, time, 3)
            yield m.Origin(lsn, "o")
        else:
            yield m.StreamStart(xid, 1)
        yield m.Type(xid, 70000, "public", "e")
        yield m.Relation(xid, _OID, "public", "t", "d", _COLUMNS)
        for row in (_ROW, (b"1", b"x" * 100)):
            yield m.Insert(xid, _OID, row)
        yield m.Update(xid, _OID, None, None, _ROW)
        yield m.Delete(xid, _OID, "K", _ROW)
        yield m.Truncate(xid, 0, (_OID,))
        yield m.Message(xid, 1, lsn, "", b"")
        if xid is None:
            yield m.Commit(lsn, lsn, time)
        else:
            yield m.StreamStop()
            yield m.StreamAbort(xid, 10, lsn, time)
            yield m.StreamCommit(xid, lsn, lsn, time)
    yield m.BeginPrepare(lsn, lsn, time, 11, "g")
    yield m.Insert(None, _OID, _ROW)
    yield m.Prepare(lsn, lsn, time, 11, "g")
    yield m.CommitPrepared(lsn, lsn, time, 11, "g")
    yield m.StreamStart(12, 1)
    yield m.StreamStop()
    yield m.StreamPrepare(lsn, lsn, time, 12, "h")
    yield m.RollbackPrepared(lsn, lsn, time, time, 12, "h")
