"""When a server that sends nothing counts as gone, and when it is at work.

A walsender may send nothing for hours and be well: while it decodes what is not published it answers a request for a
status only now and then, under ``wal_sender_timeout`` after half of that (WalSndUpdateProgress), and within one step,
such as spilling a large transaction to the disk, not at all. Who gave it up then would have it begin again at the
slot's restart_lsn, and give it up again. So there is no fixed limit; what is found, and when:

- a host or a network that is gone: by TCP, in about a minute (keepalives and tcp_user_timeout of ``connect``);
- a path on which TCP acknowledges and nothing arrives, as through a proxy or a firewall that forgot it, or a
  walsender that is stopped while it waits: by asking. Three intervals after the last sign of life it is left, unless
  another connection shows the walsender at work (pg_stat_activity), which counts as one;
- a server that answers on no connection: likewise. What it does cannot be seen, so each connection in a row that ended
  in silence doubles the time that the next one has;
- a walsender that is stopped in the middle of decoding: not at all, since it looks as if it were at work. A warning
  says for how long it has sent nothing.
"""

import logging
import math
import time
from collections.abc import Callable
from typing import Any

import psycopg

from pgoutput_construct.catalog_queries import SENDER_TIMEOUT, WORKING_PROCESS
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres.connection import connect
from pgoutput_construct.postgres.queries import ask, ask_one

__all__ = ["Silence", "SilentServerError", "is_at_work", "sender_timeout"]

_LOG = logging.getLogger("pgoutput_construct")
_INTERVALS = 3


class Silence:
    """Follows one stream: when it last sent something, when to ask it to, and when to give it up."""

    def __init__(
        self,
        interval: float,
        *,
        allowed: float | None = None,
        silent_before: int = 0,
        seen_working: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """Ask after each ``interval`` of silence, and give up after three of them.

        Args:
            interval: Seconds.
            allowed: Seconds of silence that the server's settings allow (``sender_timeout``): it is not given up
                before. None to ask ``seen_working`` instead.
            silent_before: How many connections in a row ended in silence: each doubles the limit.
            seen_working: Returns when the server was last seen at work for this stream, in seconds of
                ``time.monotonic``; called often while it is silent.
        """
        self.interval = interval
        self.limit = max(_INTERVALS * interval * 2**silent_before, allowed or 0.0)
        """Seconds without a sign of life after which the server is given up."""
        self._seen_working = seen_working
        self._heard = self._asked = time.monotonic()
        self._said = False

    def heard(self) -> None:
        """Note that the server sent something."""
        self._heard = time.monotonic()
        self._said = False

    def asks(self) -> bool:
        """Return whether to ask for an answer now: it was silent for one interval, and was not asked in this one."""
        now = time.monotonic()
        if now - max(self._heard, self._asked) < self.interval:
            return False
        self._asked = now
        return True

    def check(self) -> None:
        """Raise SilentServerError when the server was silent for too long, and is not seen at work."""
        now = time.monotonic()
        if now - self._heard < self.interval:
            return
        seen = self._seen_working()
        if now - max(self._heard, seen) >= self.limit:
            raise SilentServerError(now - self._heard)
        if now - self._heard < self.limit:
            return
        if not self._said:
            self._said = True
            _LOG.warning(
                "the server has sent nothing for %.3g seconds, but is at work for the slot: it decodes what is not "
                "published; waiting for it",
                now - self._heard,
            )


class SilentServerError(ReplicationError):
    """A server that was asked and did not answer; connecting again may help."""

    def __init__(self, seconds: float) -> None:
        """Report that it was silent for ``seconds``."""
        super().__init__(
            f"the server has sent nothing for {seconds:.3g} seconds, though it was asked: the path to it is dead, or "
            "it hangs",
            transient=True,
        )


def sender_timeout(connection: psycopg.Connection[Any]) -> float:
    """Return for how many seconds a walsender waits for its client (wal_sender_timeout), and may be silent itself.

    Infinity where it waits for ever: then TCP alone says that it is gone.
    """
    return float(ask_one(connection, SENDER_TIMEOUT)) or math.inf


def is_at_work(dsn: str, pid: int) -> bool:
    """Return whether a new connection shows the server's process ``pid`` at work; False where none can be had."""
    try:
        with connect(dsn, replication=False) as connection:
            found = ask(connection, WORKING_PROCESS, pid=pid)
    except (ReplicationError, psycopg.Error):
        return False
    return any(row["is_at_work"] for row in found)
