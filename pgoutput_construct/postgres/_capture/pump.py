"""The loop of one stream: frames in, segments out, confirmed LSNs back.

``postgres/_capture/__init__.py`` explains what is confirmed, and when.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pgoutput_construct.changelog._segment.block import NO_XID, Block
from pgoutput_construct.changelog._segment.footer import Position, Segment
from pgoutput_construct.changelog.writer import LogWriter
from pgoutput_construct.columnar.envelope import FrameBatch, Frames, split_frames
from pgoutput_construct.columnar.scopes import ScopeReader
from pgoutput_construct.errors import ChangeLogError, PgoutputError
from pgoutput_construct.postgres._capture.apply_checks import ApplyChecks
from pgoutput_construct.postgres._capture.overlap import Overlap
from pgoutput_construct.postgres._capture.transaction_tracker import Admission, Ending, TransactionTracker
from pgoutput_construct.postgres._catalog.catalog_watch import CatalogWatch
from pgoutput_construct.postgres._snapshot.copier import Copier
from pgoutput_construct.postgres._snapshot.jobs import CopyProgress
from pgoutput_construct.postgres.replication import ReplicationStream
from pgoutput_construct.postgres.replication_slots import SlotHealth
from pgoutput_construct.stream.session import Session
from pgoutput_construct.wire import Lsn, PrimaryKeepalive

__all__ = ["CaptureProgress", "Intake", "Pump", "short_switch_interval"]


_SWITCH_SECONDS = 0.0005
"""The buffer of a local socket is full after about 1.5 ms. With Python's default of 5 ms the thread that reads the
stream often waits longer than that for the thread that writes a segment, and the server for both."""

_lock = threading.Lock()
_before: list[float] = []


@contextmanager
def short_switch_interval() -> Iterator[None]:
    """Set the interpreter's thread switch interval to 0.5 ms, until the last such context of the process ends."""
    with _lock:
        _before.append(_before[0] if _before else sys.getswitchinterval())
        sys.setswitchinterval(min(_before[0], _SWITCH_SECONDS))
    try:
        yield
    finally:
        with _lock:
            before = _before.pop()
            if not _before:
                sys.setswitchinterval(before)


@dataclass(frozen=True)
class _IntakeResult:
    """The content of a batch of frames."""

    block: Block
    """The payloads to append to the log."""
    empty: int
    """The number of frames without a payload."""
    reply_requested: bool
    """Whether the server requested a status update."""
    boundary: int | None
    """The index after the last payload of the block at which no transaction and no stream is open; None for none."""
    error: PgoutputError | None
    """Why the stream cannot be read further; the block has what came before."""


class Intake:
    """Turns the frames of one connection, in order, into blocks of payloads for the log."""

    def __init__(self, layout: Mapping[str, Any], position: Position, overlap: Overlap | None = None) -> None:
        """Prepare for a new connection.

        Args:
            layout: The options of the stream that decide layouts (``StreamOptions.layout``).
            position: How far the log is complete.
            overlap: The last transactions of the log, if the server sends them again.
        """
        self._scopes = ScopeReader(Session(**layout))
        self._open_xid = NO_XID
        self._checks = ApplyChecks()
        self.tracker = TransactionTracker(position, overlap)
        """Which transactions were received completely."""

    def take(self, frames: Frames) -> _IntakeResult:
        """Process at least one frame; errors in their content are returned, not raised."""
        batch = split_frames(frames, self._scopes.session.options)
        block, admission = self._admit(batch)
        reply_requested = False
        for index, frame in batch.others:  # frames without payload, each with the index of the payload after it
            if isinstance(frame, PrimaryKeepalive) and index <= len(admission.admitted):
                reply_requested = reply_requested or bool(frame.reply_requested)
                if admission.is_boundary(index):
                    self.tracker.keepalive(frame.wal_end)
        boundary, error = admission.last_boundary(), self.tracker.gap or admission.error or batch.error
        if self.tracker.gap is not None:
            block, boundary = block.take(slice(0, 0)), None
        return _IntakeResult(block, batch.empty, reply_requested, boundary, error)

    def _admit(self, batch: FrameBatch) -> tuple[Block, Admission]:
        scopes, states, refused = self._scopes.read(batch.payloads)
        columns = batch.wal_start, batch.send_time, self._scopes.session.options, states, scopes
        block = Block.from_payloads(batch.payloads, *columns, open_xid=self._open_xid)
        self._open_xid = block.open_xid
        found = [error for error in (*refused[:1], self._checks.first_refused(block)) if error is not None]
        admission = self.tracker.admit(block, min(found, key=lambda error: error.row, default=None))
        if len(admission.admitted) == len(block) and admission.admitted.all():
            return block, admission
        return block.take(admission.admitted.nonzero()[0]), admission


_SLICE = 0.1  # seconds after which a signal or stop() is noticed at the latest
_REPORT_INTERVAL = 1.0  # seconds
_GATHER, _SHORT_GATHER = 0.03, 0.001  # seconds for which frames are gathered into one batch
_CUT_INTERVAL = 0.02  # seconds between two segments that are cut because a synchronous commit waits


@dataclass
class CaptureProgress:
    """The progress of a capture; counts start at zero with each call of ``capture``."""

    rows: int = 0
    """Payloads that are durable in the log."""
    payload_bytes: int = 0
    """Bytes of payload received into the log."""
    segments: int = 0
    """Segments written."""
    transactions: int = 0
    """Committed transactions that were received completely."""
    dropped: int = 0
    """Transactions that the server sent again although the log had them."""
    empty: int = 0
    """Frames without a payload (PostgreSQL 13 sends one instead of an unknown Origin)."""
    reconnects: int = 0
    """Attempts to reconnect."""
    complete_lsn: Lsn = field(default_factory=Lsn)
    """Everything that the server sends before this LSN was received."""
    confirmed_lsn: Lsn = field(default_factory=Lsn)
    """Everything before this LSN is durable and confirmed to the server."""
    open_transactions: int = 0
    """Transactions in the log that have not ended: streamed ones that are in progress, and prepared ones."""
    connected: bool = False
    """Whether the slot is being read now."""
    copies: CopyProgress = field(default_factory=CopyProgress)
    """The progress of the table copies."""
    health: SlotHealth | None = None
    """The slot when it was last polled; None before that."""
    ended_by: str | None = None
    """``until_lsn``, ``until_idle``, ``duration``, ``stop``, or the signal's name; None while the capture runs."""


@dataclass
class Pump:
    """Moves frames from a stream into a log until the capture ends or the connection breaks.

    While the writer's thread makes one segment durable, frames are read into the next one, up to its limits; then
    reading pauses, and only status updates are sent.
    """

    writer: LogWriter
    stream: ReplicationStream
    intake: Intake
    ending: Ending
    progress: CaptureProgress
    """Updated while the pump runs."""
    report: Callable[[], None]
    """Called when the progress has changed; it must return quickly."""
    copier: Copier
    """Copies tables; their rows are appended between transactions."""
    catalog: CatalogWatch
    """Reads the catalog; what has changed is appended as events."""
    idle_interval: float = 10.0
    """Seconds between two confirmations while the position moves only with keepalives."""
    synchronous: Callable[[], bool] = lambda: False
    """Whether commits wait for the confirmation (synchronous_standby_names): then each commit cuts a segment."""
    on_compared: Callable[[], None] = lambda: None
    """Called once the server's history is known to be the log's; before that no LSN is confirmed, no copy appended."""
    _has_begun: bool = False
    _reply_requested: bool = False
    _next_idle: float = 0.0
    _next_cut: float = 0.0
    _next_report: float = 0.0
    _next_request: float = 0.0
    _cut_lsn: Lsn = field(default_factory=Lsn)

    @short_switch_interval()
    def run(self) -> str:
        """Run until the capture ends, and return the reason.

        Then everything that was received is durable, and all complete transactions are confirmed.

        Raises:
            LogGapError: The server's history is not the log's.
            ReplicationError: The stream broke. What was received before is durable then, as after the errors below.
            DecodeError: The server sent a malformed message.
            ProtocolError: The server sent a message that cannot come there.
        """
        self.writer.on_durable = self.copier.pieces.wake = self.catalog.on_polled = self.stream.frames.wake
        self.writer.on_collected = self.copier.note_durable
        try:
            self._begin()
            while not (reason := self.ending.reason(self.tracker)):
                self._step()
            self._drain()
        except (ChangeLogError, KeyboardInterrupt):
            raise  # the log cannot be written any more, or Ctrl-C was pressed twice
        except BaseException:  # also errors of callbacks
            self._publish()
            raise
        finally:
            self.writer.on_durable = self.writer.on_collected = None
            self.copier.pieces.wake = self.catalog.on_polled = None
        return reason

    def compare(self) -> str | None:
        """Read until the server's history is known to be the log's, without appending or confirming anything.

        Returns the reason if the capture ends before that, else None. Raises the same errors as ``run``.
        """
        reason = None
        while not self.tracker.is_compared and not (reason := self.ending.reason(self.tracker)):
            if frames := self.stream.drain(_SLICE):
                taken = self.intake.take(frames)
                if taken.error is not None:
                    raise taken.error
                if taken.reply_requested:
                    self.stream.send_status()
            self._request_reply()
        return reason

    @property
    def tracker(self) -> TransactionTracker:
        """Which transactions were received completely."""
        return self.intake.tracker

    def _step(self) -> None:
        if self.writer.busy and self.writer.is_full():
            self.stream.pause(_SLICE)
        elif frames := self.stream.drain(self._read_timeout(), max(1, self.writer.limits.rows - self.writer.pending)):
            self._take(frames)
        else:
            self._request_reply()
        self._begin()
        if self._has_begun:
            self.catalog.append_events(self.tracker.at_boundary)
            if self.tracker.at_boundary:
                self.copier.append_to(self.writer)
        self._collect()
        if not self.writer.busy and self._is_cut_due():
            self._cut()
        if time.monotonic() >= self._next_report:
            self._report_progress()

    def _begin(self) -> None:
        if not self._has_begun and self.tracker.is_compared:
            self._has_begun = True
            self.catalog.append_events(self.tracker.at_boundary)
            self.on_compared()

    def _take(self, frames: Frames) -> None:
        transactions, dropped = self.tracker.transactions, self.tracker.dropped
        taken = self.intake.take(frames)
        self._append(taken)
        self.catalog.receive(taken.block)
        self.progress.payload_bytes += taken.block.payload_bytes
        self.progress.empty += taken.empty
        self.progress.transactions += self.tracker.transactions - transactions
        self.progress.dropped += self.tracker.dropped - dropped
        if taken.reply_requested:
            self.stream.send_status()
            # A server that shuts down waits until everything that it has sent is confirmed (WalSndDone).
            self._reply_requested = True
        if taken.error is not None:
            raise taken.error

    def _append(self, taken: _IntakeResult) -> None:
        """Append a batch; copied rows that are waiting are inserted between two of its transactions."""
        if self.copier.has_more and taken.boundary is not None:
            self.writer.append(taken.block.take(slice(0, taken.boundary)))
            self.copier.append_to(self.writer)
            self.writer.append(taken.block.take(slice(taken.boundary, None)))
        else:
            self.writer.append(taken.block)

    def _read_timeout(self) -> float:
        """Return how many seconds to wait for frames: none while copied rows can be appended."""
        return 0.0 if self.copier.has_more and self.tracker.at_boundary else _SLICE

    def _request_reply(self) -> None:
        is_asked = self.ending.needs_replies or not self.tracker.is_compared or self.copier.awaited_lsn is not None
        if is_asked and time.monotonic() >= self._next_request:
            self.stream.send_status(reply_requested=True)
            self._next_request = time.monotonic() + 1

    def _is_cut_due(self) -> bool:
        now = time.monotonic()
        copied = self.writer.pending and self.copier.needs_cut
        if self.writer.is_due() or copied or self.catalog.needs_cut or self._unblocks_copy():
            return True
        waiting = self._is_ahead()
        if not self.writer.pending:
            return waiting and (self._reply_requested or now >= self._next_idle)
        return self._reply_requested or (waiting and now >= self._next_cut and self._is_synchronous())

    def _is_ahead(self) -> bool:
        """Return whether the position is beyond what was confirmed or is being made durable to be confirmed."""
        handed_over = max(self.stream.confirmed_lsn, self._cut_lsn)
        return self.tracker.is_compared and self.tracker.complete_lsn > handed_over

    def _unblocks_copy(self) -> bool:
        """Return whether a copy waits for an LSN that was received but is not durable yet."""
        awaited = self.copier.awaited_lsn
        return awaited is not None and self._is_ahead() and self.tracker.complete_lsn >= awaited

    def _is_synchronous(self) -> bool:
        synchronous = self.synchronous()
        self.stream.frames.gather = _SHORT_GATHER if synchronous else _GATHER
        return synchronous

    def _cut(self) -> None:
        position = self.tracker.position
        self.writer.cut(position)
        self._reply_requested = False
        self._cut_lsn = position.complete_lsn if self.tracker.is_compared else Lsn(0)
        self._next_cut = time.monotonic() + _CUT_INTERVAL

    def _collect(self) -> None:
        durable = self.writer.collect()
        if durable is not None:
            self._count(durable.segment)
            self._next_idle = time.monotonic() + self.idle_interval
            if self.tracker.is_compared:
                self.stream.confirm(durable.position.complete_lsn)
            self.progress.confirmed_lsn = max(self.progress.confirmed_lsn, self.stream.confirmed_lsn)

    def _drain(self) -> None:
        """Make everything that was received durable and confirm it; status updates continue meanwhile."""
        while self.writer.busy or self.writer.pending or self._is_ahead():
            if not self.writer.busy:
                self._cut()
            self.stream.pause(_SLICE)
            self._collect()
        self.progress.confirmed_lsn = max(self.progress.confirmed_lsn, self.stream.confirmed_lsn)

    def _publish(self) -> None:
        """Make everything that was received durable; the stream is broken, so nothing is confirmed."""
        durable = self.writer.collect(wait=True)
        self._count(durable.segment if durable else None)
        self._count(self.writer.publish(self.tracker.position))

    def _count(self, segment: Segment | None) -> None:
        if segment is not None:
            self.progress.rows += segment.rows - segment.events
            self.progress.segments += 1
            self.progress.open_transactions = self.writer.open_transactions
            self._report_progress()

    def _report_progress(self) -> None:
        self._next_report = time.monotonic() + _REPORT_INTERVAL
        self.progress.complete_lsn = self.tracker.complete_lsn
        self.report()
