"""The slot of a running capture, looked at from beside: what the stream does not tell of it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pgoutput_construct.cli.logs import LOGGER
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.wire import Lsn

if TYPE_CHECKING:
    from pgoutput_construct.cli.meter import Meter
    from pgoutput_construct.postgres import SlotHealth

__all__ = ["SlotWatch", "watching"]

_INTERVAL = 5.0  # seconds


class SlotWatch(threading.Thread):
    """Asks the server for the slot every few seconds, over a connection of its own, and tells the meter.

    Each problem of the slot is logged when it appears. A server that does not answer is no error: the capture deals
    with that.
    """

    def __init__(self, dsn: str, slot: str, meter: "Meter") -> None:
        super().__init__(name="slot watch", daemon=True)
        self.dsn = dsn
        self.slot = slot
        self.meter = meter
        self.health: SlotHealth | None = None
        """The slot when it was last seen."""
        self.up = False
        """Whether the server answered the last time, and somebody reads the slot."""
        self._connection: Any = None
        self._problem: str | None = None
        self._end = threading.Event()

    def run(self) -> None:
        """Ask until the end."""
        while not self._end.wait(_INTERVAL if self.health else 0.5):
            try:
                self._look()
            except ReplicationError:
                self.up = False
                self._close()
        self._close()

    def end(self) -> None:
        """Stop asking; the thread is not waited for, which may stand in a connection attempt."""
        self._end.set()

    def _look(self) -> None:
        from pgoutput_construct.postgres import connect, slot_health

        if self._connection is None:
            self._connection = connect(self.dsn, replication=False)
        found = slot_health(self._connection, self.slot)
        self.health = found[0] if found else None
        self.up = bool(found) and found[0].active_pid is not None
        if self.health is not None:
            self.meter.see(Lsn((self.health.confirmed_lsn or 0) + (self.health.lag_bytes or 0)))
            self._tell(self.health.problem)

    def _tell(self, problem: str | None) -> None:
        if problem not in (None, self._problem):
            LOGGER.warning("%s", problem)
        self._problem = problem

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@contextmanager
def watching(dsn: str, slot: str, meter: "Meter") -> Iterator[SlotWatch]:
    """Watch a slot until the block ends."""
    watch = SlotWatch(dsn, slot, meter)
    watch.start()
    try:
        yield watch
    finally:
        watch.end()
