"""When a server that says nothing counts as gone: TCP may go on acknowledging where nobody answers."""

import time

from pgoutput_construct.errors import ReplicationError

__all__ = ["Silence", "SilentServerError"]

_INTERVALS = 3
_LONGEST = 600.0  # seconds


class Silence:
    """Follows one stream: when it last said something, when to ask it to, and when to give it up.

    A server that decodes much that it does not send may be silent for long, too. So the limit doubles with each
    connection in a row that ended in silence: such a server is not interrupted for ever.
    """

    def __init__(self, interval: float, *, silent_before: int = 0) -> None:
        """Allow three times ``interval`` seconds, twice as much for each connection of ``silent_before``."""
        self.interval = interval
        self.limit = min(_INTERVALS * interval * 2**silent_before, max(_LONGEST, _INTERVALS * interval))
        self._heard = self._asked = time.monotonic()

    def heard(self) -> None:
        """Note that the server said something."""
        self._heard = time.monotonic()

    def asks(self) -> bool:
        """Tell whether to ask for an answer now: it was silent for one interval, and was not asked in this one."""
        now = time.monotonic()
        if now - max(self._heard, self._asked) < self.interval:
            return False
        self._asked = now
        return True

    def check(self) -> None:
        """Raise SilentServerError when the server was silent for too long."""
        if time.monotonic() - self._heard >= self.limit:
            raise SilentServerError(self.limit)


class SilentServerError(ReplicationError):
    """A server that was asked and did not answer; connecting again may help."""

    def __init__(self, seconds: float) -> None:
        """Say that it was silent for ``seconds``."""
        super().__init__(
            f"the server has said nothing for {seconds:g} seconds, though it was asked: the path to it is dead, or it "
            "hangs",
            transient=True,
        )
