"""When a connection failed: whether, and after how many seconds, the next one is tried."""

import logging
import re
import time
from collections import Counter

from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres.replication import DecodingError, SilentServerError

__all__ = ["Retry"]

_LOG = logging.getLogger("pgoutput_construct")

_MIN_PAUSE, _MAX_PAUSE = 0.1, 30.0  # seconds
_STABLE_SECONDS = 5.0  # seconds after which a connection counts as stable: pauses start from the shortest again
_INTERNAL_ATTEMPTS = 3
"""How often the same internal error may end a stream without a complete transaction in between. A transaction that is
rolled back while a slot with two_phase decodes it can cause one ("could not map filenumber", ReorderBufferProcessTXN),
and is skipped the next time; an error that persists is caused by the slot, and never ends."""


class Retry:
    """Decides after each failed connection, including the first one, whether and when to try again."""

    def __init__(self, limit: float | None = None, first_limit: float | None = None) -> None:
        """Retry until ``limit`` seconds after the last contact with the server; None for no limit.

        With a ``first_limit``, until ``began`` only the time without a stream counts: connections that break before
        the work begins do not extend it. It applies instead of ``limit`` if that is None.
        """
        self._limit = limit
        self._has_begun = first_limit is None
        self._limit_now = first_limit if limit is None else limit
        self.silent = 0
        """The number of consecutive connections that received nothing and ended because the server was silent."""
        self._contact = self._attempt = time.monotonic()
        self._pause = _MIN_PAUSE
        self._received = 0
        self._logged = ""
        self._connected = False
        self._internal: Counter[str] = Counter()
        self._transactions = 0

    def begin(self, received: int = 0) -> None:
        """Note that an attempt begins; ``received`` is the activity so far (``activity``)."""
        self._attempt = time.monotonic()
        self._connected = False
        self._received = received

    def connected(self, what: str) -> None:
        """Note and log that the attempt succeeded; ``what`` describes the stream."""
        _LOG.info("%s%s", "connected again: " if self._logged else "connected: ", what)
        self._logged = ""
        self._connected = True

    def began(self) -> None:
        """Note that the work has begun, for which the connections are made: ``first_limit`` ends."""
        self._has_begun = True
        self._limit_now = self._limit

    def recurs(self, error: ReplicationError, transactions: int) -> bool:
        """Return whether ``error`` is an internal error of the server that has persisted over all its attempts.

        ``transactions`` is the number of complete transactions since the first connection: with each new one, attempts
        are counted from zero again.
        """
        if transactions != self._transactions:
            self._internal.clear()
            self._transactions = transactions
        if not isinstance(error, DecodingError):
            return False
        self._internal[str(error)] += 1
        return self._internal[str(error)] > _INTERNAL_ATTEMPTS

    def failed(self, error: ReplicationError, received: int = 0) -> float:
        """Return the seconds to pause before the next attempt.

        ``received`` is the activity so far. Raises ``error`` if it is not transient, or the limit has passed.
        """
        now = time.monotonic()
        if self._connected and self._has_begun:
            self._contact = now
        elif self._connected and not isinstance(error, SilentServerError):
            self._contact += now - self._attempt  # the server may have decoded for long before it sent anything
        if not error.transient or (self._limit_now is not None and now - self._contact >= self._limit_now):
            raise error
        silent_again = isinstance(error, SilentServerError) and received == self._received
        self.silent = self.silent + 1 if silent_again else 0
        self._pause = _MIN_PAUSE if self._was_stable(now) else min(self._pause * 2, _MAX_PAUSE)
        self._log_once(error)
        return self._pause

    def _was_stable(self, now: float) -> bool:
        return self._connected and now - self._attempt >= _STABLE_SECONDS

    def _log_once(self, error: ReplicationError) -> None:
        # Once per kind of error: texts that differ in process ids and LSNs only are the same.
        state = re.sub(r"\d+", "", str(error))
        if state != self._logged:
            self._logged = state
            limit = "until it succeeds" if self._limit_now is None else f"for up to {self._limit_now:g} seconds"
            _LOG.warning("%s; trying again %s", " ".join(str(error).split()), limit)
