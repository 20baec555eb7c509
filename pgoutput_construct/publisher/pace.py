"""The pace of a stream: what is served stays as far apart as it was when it was committed."""

import time

from pgoutput_construct.stream.logged import EndedTransaction

__all__ = ["Pace"]


class Pace:
    """Tells when each transaction is due, for one client: the first one at once."""

    def __init__(self) -> None:
        self._begun: float | None = None
        """When the clock would have to show 2000-01-01 for all to be on time."""

    def wait(self, ended: EndedTransaction) -> float:
        """Return the seconds until a transaction is due, 0 for one that is; copies of tables have no time, and wait."""
        if not ended.time:
            return 0.0
        committed, now = ended.time / 1e6, time.monotonic()
        if self._begun is None:
            self._begun = now - committed
        return max(self._begun + committed - now, 0.0)
