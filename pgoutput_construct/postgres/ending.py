"""Why and when a capture ends."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pgoutput_construct.postgres.transactions import TransactionTracker
from pgoutput_construct.wire import Lsn

__all__ = ["Ending"]


@dataclass
class Ending:
    """What may end a capture; the first that does is its reason."""

    until_lsn: Lsn | None = None
    """The position up to which all must be durable."""
    stop: Callable[[], bool] = lambda: False
    """Asked each time, and may not take long; True ends the capture."""
    signals: Sequence[str] = ()
    """A live list: the first name that appears in it ends the capture."""
    duration: float | None = None
    """Seconds after which the capture ends."""
    until_idle: float | None = None
    """Seconds without a change, with nothing left on the server, after which the capture ends."""
    activity: Callable[[], int] = lambda: 0
    """A number that changes with everything that is received."""
    check: Callable[[], None] = lambda: None
    """Called each time; raises what keeps the capture from going on."""
    settled: Callable[[bool], bool] = lambda first: True
    """Asked where all was received: whether nothing else is under way that the log is to have before the end.

    It is told whether this is the first time since there was more to receive.
    """
    _began: float = field(default_factory=time.monotonic)
    _active: float = field(default_factory=time.monotonic)
    _received: int = -1
    _waiting: Lsn | None = None
    _is_asking: bool = False

    @property
    def asks(self) -> bool:
        """True when the end depends on a position that only an answer of the server tells."""
        return self.until_lsn is not None or self.until_idle is not None

    def connected(self, server_lsn: Lsn) -> None:
        """Begin to wait for idleness again: a server has WAL up to ``server_lsn``."""
        self._active, self._waiting = time.monotonic(), server_lsn

    def reason(self, tracker: TransactionTracker | None = None) -> str | None:
        """Name what ends the capture now, None to go on; ``tracker`` is given while a stream runs.

        Raises what ``check`` and ``stop`` raise.
        """
        if self.signals:
            return self.signals[0]
        self.check()
        if tracker is not None and (reached := self._ended(tracker)):
            return reached
        if self.duration is not None and time.monotonic() - self._began >= self.duration:
            return "duration"
        return "stop" if self.stop() else None

    def _ended(self, tracker: TransactionTracker) -> str | None:
        reached, was_asking = self._reached(tracker), self._is_asking
        self._is_asking = reached is not None
        return reached if reached and self.settled(not was_asking) else None

    def _reached(self, tracker: TransactionTracker) -> str | None:
        until = self.until_lsn
        if not tracker.compared:  # the log may be another server's
            return None
        if until is not None and tracker.between and tracker.complete_lsn >= until:
            return "until_lsn"
        return "until_idle" if self.until_idle is not None and self._is_idle(tracker, self.until_idle) else None

    def _is_idle(self, tracker: TransactionTracker, seconds: float) -> bool:
        received, now = self.activity(), time.monotonic()
        if received != self._received:
            self._received, self._active = received, now
        # A server may be silent since it decodes what it does not send: then it has not reached this position.
        caught_up = self._waiting is not None and tracker.complete_lsn >= self._waiting
        return caught_up and now - self._active >= seconds
