"""One connection of a capture: frames into the log, segments cut, positions confirmed when durable."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pgoutput_construct.changelog.footer import Segment
from pgoutput_construct.changelog.writer import LogWriter
from pgoutput_construct.columnar.envelope import Frames
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.postgres.catalog_watch import CatalogWatch
from pgoutput_construct.postgres.copying.copier import Copier
from pgoutput_construct.postgres.copying.jobs import CopyProgress
from pgoutput_construct.postgres.ending import Ending
from pgoutput_construct.postgres.health import SlotHealth
from pgoutput_construct.postgres.intake import Intake, Taken
from pgoutput_construct.postgres.replication import ReplicationStream
from pgoutput_construct.postgres.transactions import TransactionTracker
from pgoutput_construct.postgres.turns import quick_turns
from pgoutput_construct.wire import Lsn

__all__ = ["CaptureProgress", "Pump"]

_SLICE = 0.1  # seconds: how long a signal or stop() may go unnoticed
_REPORT_INTERVAL = 1.0
_GATHER, _SHORT_GATHER = 0.03, 0.001  # seconds: how long frames are gathered to be taken in together
_CUT_INTERVAL = 0.02  # seconds: between two segments that are cut because a commit waits


@dataclass
class CaptureProgress:
    """How far a capture has come; the counts are of this call."""

    rows: int = 0
    """Payloads that are durable in the log."""
    payload_bytes: int = 0
    """Bytes of payload received into the log."""
    segments: int = 0
    """Segments published."""
    transactions: int = 0
    """Committed transactions that were received completely."""
    dropped: int = 0
    """Transactions that the server sent again and the log had."""
    empty: int = 0
    """Frames without a payload (PostgreSQL 13 sends one in place of an unknown Origin)."""
    reconnects: int = 0
    """Attempts to connect again."""
    complete_lsn: Lsn = field(default_factory=Lsn)
    """Everything that the server sends before this position was received."""
    confirmed_lsn: Lsn = field(default_factory=Lsn)
    """Everything before this position is durable, and the server was told so."""
    open_transactions: int = 0
    """Transactions that are in the log and have not ended: streamed ones that still run, and prepared ones."""
    connected: bool = False
    """Whether the slot is being read now."""
    copies: CopyProgress = field(default_factory=CopyProgress)
    """How far the copies of tables are."""
    health: SlotHealth | None = None
    """The slot when the server was last asked about it; None before that."""
    ended_by: str | None = None
    """``until_lsn``, ``until_idle``, ``duration``, ``stop``, or the signal's name; None while it runs."""


@dataclass
class Pump:
    """Moves frames from a stream into a log until the end, or until the connection breaks.

    While the log's thread makes a segment durable, frames are taken in, up to the limits of the next one; then the
    stream is held, and the server told that we are there.
    """

    writer: LogWriter
    stream: ReplicationStream
    intake: Intake
    ending: Ending
    progress: CaptureProgress
    """Kept up to date."""
    report: Callable[[], None]
    """Called when the progress is worth showing; it may not take long."""
    copier: Copier
    """What copies tables: its rows are appended between transactions."""
    catalog: CatalogWatch
    """What is noticed beside the stream, and belongs into the log."""
    idle_interval: float = 10.0
    """Seconds: how often a position is confirmed that moves although nothing is published."""
    synchronous: Callable[[], bool] = lambda: False
    """Whether commits wait for what is confirmed here (synchronous_standby_names): then each cuts a segment."""
    begin: Callable[[], None] = lambda: None
    """Called once the server's history is known to be the log's; nothing is confirmed, and no copy appended, before."""
    _has_begun: bool = False
    _reply_requested: bool = False
    _next_idle: float = 0.0
    _next_cut: float = 0.0
    _next_report: float = 0.0
    _next_ask: float = 0.0
    _cut_lsn: Lsn = field(default_factory=Lsn)

    @quick_turns()
    def run(self) -> str:
        """Return the reason of the end; then all that was received is durable, and what is complete is confirmed.

        Raises LogGapError where the server's history is not the log's; ReplicationError, DecodeError, ProtocolError and
        what callbacks raise, and what came before is published then.
        """
        self.writer.on_durable = self.copier.pieces.wake = self.stream.frames.wake
        self.writer.on_collected = self.copier.became_durable
        try:
            self._begin()
            while not (reason := self.ending.reason(self.tracker)):
                self._step()
            self._settle()
        except (ChangeLogError, KeyboardInterrupt):
            raise  # the log takes nothing more, or it was asked for twice
        except BaseException:  # a callback's, too
            self._publish()
            raise
        finally:
            self.writer.on_durable = self.writer.on_collected = self.copier.pieces.wake = None
        return reason

    def compare(self) -> str | None:
        """Read until the server's history is known to be the log's; append and confirm nothing.

        Return the reason where the capture is to end before that. Raises as ``run``.
        """
        reason = None
        while not self.tracker.compared and not (reason := self.ending.reason(self.tracker)):
            if frames := self.stream.drain(_SLICE):
                taken = self.intake.take(frames)
                if taken.error is not None:
                    raise taken.error
                if taken.reply_requested:
                    self.stream.send_status()
            self._ask()
        return reason

    @property
    def tracker(self) -> TransactionTracker:
        """Which transactions came completely."""
        return self.intake.tracker

    def _step(self) -> None:
        if self.writer.busy and self.writer.is_full():
            self.stream.hold(_SLICE)
        elif frames := self.stream.drain(self._patience(), max(1, self.writer.limits.rows - self.writer.pending)):
            self._take(frames)
        else:
            self._ask()
        self._begin()
        if self._has_begun:
            self.catalog.append_news(self.tracker.between)
            if self.tracker.between:
                self.copier.append_to(self.writer)
        self._collect()
        if not self.writer.busy and self._is_due():
            self._cut()
        if time.monotonic() >= self._next_report:
            self._show()

    def _begin(self) -> None:
        if not self._has_begun and self.tracker.compared:
            self._has_begun = True
            self.catalog.append_news(self.tracker.between)
            self.begin()

    def _take(self, frames: Frames) -> None:
        transactions, dropped = self.tracker.transactions, self.tracker.dropped
        taken = self.intake.take(frames)
        self._append(taken)
        self.catalog.receive(taken.block)
        self.progress.payload_bytes += taken.payload_bytes
        self.progress.empty += taken.empty
        self.progress.transactions += self.tracker.transactions - transactions
        self.progress.dropped += self.tracker.dropped - dropped
        if taken.reply_requested:
            self.stream.send_status()
            # A server that shuts down waits until all that it has sent is confirmed.
            self._reply_requested = True
        if taken.error is not None:
            raise taken.error

    def _append(self, taken: Taken) -> None:
        """Append what came, and copied rows between two of its transactions when some wait."""
        if self.copier.has_more and taken.quiet is not None:
            self.writer.append(taken.block.take(slice(0, taken.quiet)))
            self.copier.append_to(self.writer)
            self.writer.append(taken.block.take(slice(taken.quiet, None)))
        else:
            self.writer.append(taken.block)

    def _patience(self) -> float:
        """Return how long frames are waited for: not at all while copied rows wait that can be appended."""
        return 0.0 if self.copier.has_more and self.tracker.between else _SLICE

    def _ask(self) -> None:
        is_asked = self.ending.asks or not self.tracker.compared or self.copier.awaited_lsn is not None
        if is_asked and time.monotonic() >= self._next_ask:
            self.stream.send_status(reply_requested=True)
            self._next_ask = time.monotonic() + 1

    def _is_due(self) -> bool:
        now = time.monotonic()
        copied = self.writer.pending and self.copier.wants_cut
        if self.writer.is_due() or copied or self.catalog.is_hurried or self._is_awaited():
            return True
        waiting = self._is_ahead()
        if not self.writer.pending:
            return waiting and (self._reply_requested or now >= self._next_idle)
        return self._reply_requested or (waiting and now >= self._next_cut and self._is_synchronous())

    def _is_ahead(self) -> bool:
        """Tell whether more is complete than was confirmed, or handed over to be made durable and confirmed."""
        handed_over = max(self.stream.confirmed_lsn, self._cut_lsn)
        return self.tracker.compared and self.tracker.complete_lsn > handed_over

    def _is_awaited(self) -> bool:
        """Return whether a copy waits for an LSN up to which all is here, and not durable."""
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
        self._cut_lsn = position.complete_lsn if self.tracker.compared else Lsn(0)
        self._next_cut = time.monotonic() + _CUT_INTERVAL

    def _collect(self) -> None:
        durable = self.writer.collect()
        if durable is not None:
            self._count(durable.segment)
            self._next_idle = time.monotonic() + self.idle_interval
            if self.tracker.compared:
                self.stream.confirm(durable.position.complete_lsn)
            self.progress.confirmed_lsn = max(self.progress.confirmed_lsn, self.stream.confirmed_lsn)

    def _settle(self) -> None:
        """Make all that was received durable and confirm it, with the server told meanwhile that we are there."""
        while self.writer.busy or self.writer.pending or self._is_ahead():
            if not self.writer.busy:
                self._cut()
            self.stream.hold(_SLICE)
            self._collect()
        self.progress.confirmed_lsn = max(self.progress.confirmed_lsn, self.stream.confirmed_lsn)

    def _publish(self) -> None:
        """Make all that was received durable; there is nobody to confirm it to."""
        durable = self.writer.collect(wait=True)
        self._count(durable.segment if durable else None)
        self._count(self.writer.publish(self.tracker.position))

    def _count(self, segment: Segment | None) -> None:
        if segment is not None:
            self.progress.rows += segment.rows - segment.events
            self.progress.segments += 1
            self.progress.open_transactions = self.writer.open_transactions
            self._show()

    def _show(self) -> None:
        self._next_report = time.monotonic() + _REPORT_INTERVAL
        self.progress.complete_lsn = self.tracker.complete_lsn
        self.report()
