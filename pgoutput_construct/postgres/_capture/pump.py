"""One attempt of a capture to read a slot: frames in, segments out, and what is confirmed."""

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
from pgoutput_construct.postgres._capture.overlap import Overlap
from pgoutput_construct.postgres._capture.transactions import Admission, Ending, TransactionTracker
from pgoutput_construct.postgres._catalog.catalog_watch import CatalogWatch
from pgoutput_construct.postgres._snapshot.copier import Copier
from pgoutput_construct.postgres._snapshot.jobs import CopyProgress
from pgoutput_construct.postgres.replication import ReplicationStream
from pgoutput_construct.postgres.slots import SlotHealth
from pgoutput_construct.stream.session import Session
from pgoutput_construct.wire import Lsn, PrimaryKeepalive

__all__ = ["CaptureProgress", "Intake", "Pump", "quick_turns"]


_SECONDS = 0.0005
"""The buffer of a local socket is full after about 1.5 ms. With Python's own 5 ms the thread that reads the stream
often waits longer than that for the one that writes a segment, and the server for both."""

_lock = threading.Lock()
_before: list[float] = []


@contextmanager
def quick_turns() -> Iterator[None]:
    """Have the threads of this process give way after half a millisecond, until the last such context ends."""
    with _lock:
        _before.append(_before[0] if _before else sys.getswitchinterval())
        sys.setswitchinterval(min(_before[0], _SECONDS))
    try:
        yield
    finally:
        with _lock:
            before = _before.pop()
            if not _before:
                sys.setswitchinterval(before)


@dataclass(frozen=True)
class _Taken:
    """What some frames brought."""

    block: Block
    """The payloads that belong into the log."""
    payload_bytes: int
    """Their bytes."""
    empty: int
    """Frames without a payload."""
    reply_requested: bool
    """Whether the server asked for a status."""
    quiet: int | None
    """Behind how many of the payloads of the block, at most, no transaction and no stream is open; None: nowhere."""
    error: PgoutputError | None
    """Why the stream cannot be read further; what came before is in the block."""


class Intake:
    """Takes in the frames of one connection, in their order."""

    def __init__(self, layout: Mapping[str, Any], position: Position, overlap: Overlap | None = None) -> None:
        """Begin a connection under options (``StreamOptions.layout``) where the log is complete up to ``position``.

        ``overlap`` is what the server was asked to send again.
        """
        self._scopes = ScopeReader(Session(**layout))
        self._open_xid = NO_XID
        self.tracker = TransactionTracker(position, overlap)
        """Which transactions came completely."""

    def take(self, frames: Frames) -> _Taken:
        """Take in frames, at least one; nothing is raised for what they hold."""
        batch = split_frames(frames, self._scopes.session.options)
        block, admission = self._admit(batch)
        asked = False
        for place, frame in batch.others:
            if isinstance(frame, PrimaryKeepalive) and place <= len(admission.kept):
                asked = asked or bool(frame.reply_requested)
                if admission.is_quiet(place):
                    self.tracker.keepalive(frame.wal_end)
        quiet, error = admission.last_quiet(), self.tracker.gap or admission.error or batch.error
        if self.tracker.gap is not None:
            block, quiet = block.take(slice(0, 0)), None
        return _Taken(block, block.payload_bytes, batch.empty, asked, quiet, error)

    def _admit(self, batch: FrameBatch) -> tuple[Block, Admission]:
        scopes, states, refused = self._scopes.read(batch.payloads)
        columns = batch.wal_start, batch.send_time, self._scopes.session.options, states, scopes
        block = Block.from_payloads(batch.payloads, *columns, open_xid=self._open_xid)
        self._open_xid = block.open_xid
        admission = self.tracker.admit(block.index, refused[0] if refused else None)
        if len(admission.kept) == len(block) and admission.kept.all():
            return block, admission
        return block.take(admission.kept.nonzero()[0]), admission


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

    def _append(self, taken: _Taken) -> None:
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
        """Return whether more is complete than was confirmed, or handed over to be made durable and confirmed."""
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
