"""One connection of a capture: frames into the log, segments cut, positions confirmed when durable."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pgoutput_construct.changelog.writer import LogWriter
from pgoutput_construct.errors import DecodeError, ProtocolError, ReplicationError
from pgoutput_construct.postgres.ending import Ending
from pgoutput_construct.postgres.replication import ReplicationStream
from pgoutput_construct.postgres.transactions import TransactionTracker
from pgoutput_construct.wire import Lsn, PrimaryKeepalive, XLogData

__all__ = ["CaptureProgress", "Pump"]

_SLICE = 0.1  # seconds: how long a signal or stop() may go unnoticed
_REPORT_INTERVAL = 1.0


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
    ended_by: str | None = None
    """``until_lsn``, ``until_idle``, ``duration``, ``stop``, or the signal's name; None while it runs."""


@dataclass
class Pump:
    """Moves frames from a stream into a log until the end, or until the connection breaks."""

    writer: LogWriter
    stream: ReplicationStream
    tracker: TransactionTracker
    ending: Ending
    progress: CaptureProgress
    """Kept up to date."""
    report: Callable[[], None]
    """Called when the progress is worth showing."""
    idle_interval: float = 10.0
    """Seconds: how often a position is confirmed that moves although nothing is published."""
    _next_idle: float = 0.0
    _next_report: float = 0.0
    _next_ask: float = 0.0

    def run(self) -> str:
        """Return the reason of the end; then all that was received is durable, and what is complete is
        confirmed.

        Raises ReplicationError, DecodeError and ProtocolError, after publishing what came before.
        """
        try:
            while not (reason := self.ending.reason(self.tracker)):
                self._step()
        except (ReplicationError, DecodeError, ProtocolError):
            self._publish()
            raise
        self._publish()
        self._confirm()
        return reason

    def _step(self) -> None:
        frame = self.stream.read(_SLICE)
        if isinstance(frame, XLogData):
            self._take(frame)
        elif isinstance(frame, PrimaryKeepalive):
            self._keepalive(frame)
        elif frame is None:
            self._ask()
        if self.writer.is_due():
            self._publish()
            self._confirm()
        if time.monotonic() >= self._next_report:
            self._show()

    def _take(self, frame: XLogData) -> None:
        if not frame.data:
            self.progress.empty += 1
            return
        tracker = self.tracker
        states, stream_xid = tracker.session.state.parameters, tracker.session.stream_xid
        transactions, dropped = tracker.transactions, tracker.dropped
        if tracker.admit(frame.data):
            self.writer.append(frame, stream_xid=stream_xid, **states)
            self.progress.payload_bytes += len(frame.data)
        self.progress.transactions += tracker.transactions - transactions
        self.progress.dropped += tracker.dropped - dropped

    def _keepalive(self, frame: PrimaryKeepalive) -> None:
        self.tracker.keepalive(frame.wal_end)
        if frame.reply_requested:
            # A server that shuts down waits until all that it has sent is confirmed.
            self._publish()
            self._confirm()
        elif not self.writer.pending and time.monotonic() >= self._next_idle:
            self._confirm()

    def _ask(self) -> None:
        if self.ending.asks and time.monotonic() >= self._next_ask:
            self.stream.send_status(reply_requested=True)
            self._next_ask = time.monotonic() + 1

    def _publish(self) -> None:
        segment = self.writer.publish(self.tracker.position)
        if segment is not None:
            self.progress.rows += segment.rows - segment.events
            self.progress.segments += 1
            self._show()

    def _confirm(self) -> None:
        # Only after a publish, or with nothing in memory: then all that was received is durable.
        self._next_idle = time.monotonic() + self.idle_interval
        self.writer.note(self.tracker.complete_lsn)
        self.stream.confirm(self.tracker.complete_lsn)
        self.progress.confirmed_lsn = self.stream.confirmed_lsn

    def _show(self) -> None:
        self._next_report = time.monotonic() + _REPORT_INTERVAL
        self.progress.complete_lsn = self.tracker.complete_lsn
        self.report()
