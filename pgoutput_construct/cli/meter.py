"""How fast a running capture is, and how far behind: from what it reports, and what the server says of the slot."""

import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from pgoutput_construct.wire import Lsn

if TYPE_CHECKING:
    from pgoutput_construct.postgres import CaptureProgress, SlotHealth

__all__ = ["Meter", "Speed"]

_WINDOW = 10.0
"""Seconds over which rates are averaged."""
_REMEMBERED = 4096


class Speed(NamedTuple):
    """Rates and lag at one moment."""

    messages_per_second: float
    bytes_per_second: float
    lag_bytes: int
    """WAL that the server has written and that is not durable in the log."""
    lag_seconds: float
    """How long the oldest of that WAL has been known to be missing; 0.0 when nothing is."""


class _Sample(NamedTuple):
    at: float
    messages: int
    payload_bytes: int


class Meter:
    """Fed by one thread; ``speed`` may be called from any other."""

    def __init__(self, progress: "CaptureProgress", clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with what a capture says first; ``clock`` returns seconds."""
        self.progress = progress
        """The latest report."""
        self.server_lsn = Lsn(0)
        """The end of the server's WAL when it was last asked: the stream itself does not tell it."""
        self._clock = clock
        self._samples: deque[_Sample] = deque([_Sample(clock(), progress.rows, progress.payload_bytes)])
        self._health: SlotHealth | None = None
        self._ends: deque[tuple[float, Lsn]] = deque(maxlen=_REMEMBERED)

    def report(self, progress: "CaptureProgress") -> None:
        """Take in what the capture says."""
        now, self.progress = self._clock(), progress
        self._samples.append(_Sample(now, progress.rows, progress.payload_bytes))
        while len(self._samples) > 2 and self._samples[1].at < now - _WINDOW:
            self._samples.popleft()
        self._see(now, progress.health)

    def speed(self) -> Speed:
        """Return the rates over the last seconds, and the lag now."""
        now, first, last, confirmed = self._clock(), self._samples[0], self._samples[-1], self.progress.confirmed_lsn
        seconds = max(now - first.at, 1.0)
        messages, size = last.messages - first.messages, last.payload_bytes - first.payload_bytes
        missing_since = next((at for at, lsn in list(self._ends) if lsn > confirmed), now)
        lag = max(self.server_lsn - confirmed, 0)
        return Speed(messages / seconds, size / seconds, lag, now - missing_since)

    def _see(self, now: float, health: "SlotHealth | None") -> None:
        if health is not None and health is not self._health:
            self._health = health
            self.server_lsn = Lsn((health.confirmed_lsn or 0) + (health.lag_bytes or 0))
            self._ends.append((now, self.server_lsn))
        while self._ends and self._ends[0][1] <= self.progress.confirmed_lsn:
            self._ends.popleft()
