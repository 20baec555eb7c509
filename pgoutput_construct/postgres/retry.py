"""Connecting again: which errors may pass, how long to pause, and what is said of it."""

import logging
import re
import time
from collections import Counter

from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres.failures import DecodingError
from pgoutput_construct.postgres.silence import SilentServerError

__all__ = ["Retry"]

_LOG = logging.getLogger("pgoutput_construct")
_SHORTEST, _LONGEST = 0.1, 30.0  # seconds
_STABLE = 5.0  # seconds after which a connection counts as good
_INTERNAL_ATTEMPTS = 3
"""How often the same internal error may end a stream without a transaction in between that came completely. A
transaction that is rolled back while a slot of two phases decodes it can make one ("could not map filenumber",
ReorderBufferProcessTXN), and is left out the next time; an error that comes again is the slot's, for ever."""


class Retry:
    """Decides after each failure of a connection, the first one too, whether and when to try again."""

    def __init__(self, limit: float | None = None) -> None:
        """Try again for ``limit`` seconds after the last contact, None: for ever."""
        self.limit = limit
        self.silent = 0
        """Connections in a row that brought nothing and ended in silence."""
        self._contact = self._attempt = time.monotonic()
        self._pause = _SHORTEST
        self._received = 0
        self._said = ""
        self._connected = False
        self._internal: Counter[str] = Counter()
        self._transactions = 0

    def begin(self, received: int = 0) -> None:
        """Note that an attempt begins, when so much had been ``received``."""
        self._attempt = time.monotonic()
        self._connected = False
        self._received = received

    def connected(self, what: str) -> None:
        """Note that it succeeded, and say so."""
        _LOG.info("%s%s", "connected again: " if self._said else "connected: ", what)
        self._said = ""
        self._connected = True

    def recurs(self, error: ReplicationError, transactions: int) -> bool:
        """Return whether ``error`` is an internal one that ended the stream as often as it may.

        ``transactions`` is how many came completely since the first connection: after another one attempts are
        counted from scratch.
        """
        if transactions != self._transactions:
            self._internal.clear()
            self._transactions = transactions
        if not isinstance(error, DecodingError):
            return False
        self._internal[str(error)] += 1
        return self._internal[str(error)] > _INTERNAL_ATTEMPTS

    def failed(self, error: ReplicationError, received: int = 0) -> float:
        """Return how many seconds to pause; raise ``error`` when it cannot pass by itself, or the time is over.

        ``received`` is how much has been received now.
        """
        now = time.monotonic()
        if self._connected:
            self._contact = now
        if not error.transient or (self.limit is not None and now - self._contact >= self.limit):
            raise error
        silent_again = isinstance(error, SilentServerError) and received == self._received
        self.silent = self.silent + 1 if silent_again else 0
        self._pause = _SHORTEST if self._was_stable(now) else min(self._pause * 2, _LONGEST)
        self._say(error)
        return self._pause

    def _was_stable(self, now: float) -> bool:
        return self._connected and now - self._attempt >= _STABLE

    def _say(self, error: ReplicationError) -> None:
        # Once for each state: process ids and positions in the text make no other state of it.
        state = re.sub(r"\d+", "", str(error))
        if state != self._said:
            self._said = state
            limit = "until it is there" if self.limit is None else f"for up to {self.limit:g} seconds"
            _LOG.warning("%s; trying again %s", " ".join(str(error).split()), limit)
