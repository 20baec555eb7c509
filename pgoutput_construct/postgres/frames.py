"""Raw frames of a running copy, taken from libpq as many at a time as have come; none of them is looked at."""

import selectors
import socket
import time
from contextlib import AbstractContextManager, nullcontext, suppress

import psycopg
from psycopg import pq

from pgoutput_construct.columnar.envelope import Frames
from pgoutput_construct.postgres.gathering import BROKEN, ENDED, FAILED, LARGE, Gatherer
from pgoutput_construct.postgres.libpq import connection_address

__all__ = ["FrameReader"]

_BATCH_FRAMES = 8192
_NONE = Frames.of()


class FrameReader:
    """Reads the frames of one connection; a context manager that leaves the connection open."""

    def __init__(
        self, pgconn: pq.abc.PGconn, gather: float = 0.03, lock: AbstractContextManager[object] | None = None
    ) -> None:
        """Read from ``pgconn``; frames that come within ``gather`` seconds are given together.

        The ``lock`` is held whenever ``pgconn`` is used, for about as long as frames are gathered at most.
        """
        self.gather = gather
        """For how many seconds frames may be gathered."""
        self.ended = False
        """True when the server has ended the copy: its result says why."""
        self.fed = False
        """True when bytes came during the last ``read``, be it a part of a frame."""
        self._pgconn = pgconn
        self._lock = nullcontext() if lock is None else lock
        self._gatherer = Gatherer()
        self._ahead = _NONE
        self._problem: psycopg.Error | None = None
        self._waker, self._woken = socket.socketpair()
        self._waker.setblocking(False)
        self._woken.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(pgconn.socket, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)

    def read(self, timeout: float, most: int = _BATCH_FRAMES) -> Frames:
        """Return the frames that are there, ``most`` at most, waiting ``timeout`` seconds for the first, or none.

        A frame of which only a part has come by then is given by a later call.
        Raises psycopg.Error when the connection is broken and all that came before was returned.
        """
        self.fed = False
        if self._ahead:
            frames, self._ahead = self._ahead, _NONE
            return frames
        if self._problem is not None:
            raise self._problem
        return _NONE if self.ended else self._gather(timeout, min(most, _BATCH_FRAMES))

    def wait(self, timeout: float, *, write: bool = False) -> bool:
        """Wait until there is something to read, or where asked to ``write``; False after ``timeout`` or ``wake``."""
        if write:
            self._selector.modify(self._pgconn.socket, selectors.EVENT_READ | selectors.EVENT_WRITE)
        ready = {key.fileobj for key, _ in self._selector.select(max(timeout, 0))}
        if write:
            self._selector.modify(self._pgconn.socket, selectors.EVENT_READ)
        if self._woken in ready:
            self._rest()
        return self._pgconn.socket in ready

    def pause(self, timeout: float) -> None:
        """Wait for ``wake`` at most ``timeout`` seconds, whatever comes from the server."""
        self._woken.settimeout(timeout)
        with suppress(TimeoutError):
            self._woken.recv(1)
        self._woken.setblocking(False)

    def wake(self) -> None:
        """End a wait, from any thread."""
        with suppress(BlockingIOError, OSError):  # it was woken often, or is closed
            self._waker.send(b"\0")

    def close(self) -> None:
        """Let go of what was used for waiting."""
        self._selector.close()
        self._waker.close()
        self._woken.close()

    def _gather(self, timeout: float, most: int) -> Frames:
        # A large message on a slow path is whole only after long, and the bytes never stop coming until then.
        limit = time.monotonic() + max(timeout, self.gather)
        while True:
            with self._lock:
                frames = self._take(most)
            now = time.monotonic()
            if frames or self.ended or now >= limit or not self.wait(min(timeout, limit - now)):
                return frames
            with self._lock:
                self._pgconn.consume_input()
            self.fed = True

    def _take(self, most: int) -> Frames:
        """Return what libpq has, and what comes while that is gathered."""
        reason, frames = self._gatherer.gather(connection_address(self._pgconn), most, time.monotonic() + self.gather)
        if reason == LARGE:
            large = self._gatherer.large()
            if not frames:
                return large
            self._ahead = large
        self.ended = reason == ENDED
        if reason in (FAILED, BROKEN):
            self._problem = psycopg.OperationalError(
                f"reading from the server failed: {self._pgconn.get_error_message()}"
            )
            if not frames:
                raise self._problem
        return frames

    def _rest(self) -> None:
        with suppress(BlockingIOError):
            while self._woken.recv(4096):
                pass
