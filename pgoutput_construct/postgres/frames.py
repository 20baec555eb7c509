"""Raw frames of a running copy, taken from libpq as many at a time as have come; none of them is looked at."""

import selectors
import socket
import time
from contextlib import suppress

import psycopg
from psycopg import pq

from pgoutput_construct.columnar.envelope import Frames

__all__ = ["FrameReader"]

_BATCH_BYTES = 2**20
_BATCH_FRAMES = 8192
_LARGE = 2**18
"""Bytes from which on a frame is a batch by itself: then it is not copied to stand beside others."""
_NAP = 0.0005
"""Seconds. A server sends each message by itself; who wakes up for each takes twice the time. The buffer of a local
socket is full after about 300 messages, so a nap may not be longer."""


class FrameReader:
    """Reads the frames of one connection; a context manager that leaves the connection open."""

    def __init__(self, pgconn: pq.abc.PGconn, gather: float = 0.01) -> None:
        """Read from ``pgconn``; frames that come within ``gather`` seconds are given together."""
        self.gather = gather
        """For how many seconds frames may be gathered."""
        self.ended = False
        """True when the server has ended the copy: its result says why."""
        self.fed = False
        """True when bytes came during the last ``read``, be it a part of a frame."""
        self._pgconn = pgconn
        self._ahead = Frames()
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
        if self._problem is not None:
            raise self._problem
        self.fed = False
        frames, self._ahead = self._ahead, Frames()
        try:
            if not frames and not self.ended:
                self._gather(frames, timeout, min(most, _BATCH_FRAMES))
        except psycopg.Error as error:
            if not frames:
                raise
            self._problem = error
        return frames

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

    def _gather(self, frames: Frames, timeout: float, most: int) -> None:
        # A large message on a slow path is whole only after long, and the bytes never stop coming until then.
        limit, deadline = time.monotonic() + max(timeout, self.gather), 0.0
        while not self._take(frames, most) and (now := time.monotonic()) < limit:
            if frames and not deadline:
                deadline = now + self.gather
            if self.wait(0 if frames else min(timeout, limit - now)):
                self._pgconn.consume_input()
                self.fed = True
            elif not frames or now >= deadline:
                return
            else:
                time.sleep(_NAP)

    def _take(self, frames: Frames, most: int) -> bool:
        """Add what libpq has read; True when that is enough for a batch, or the copy has ended."""
        get, add, measure = self._pgconn.get_copy_data, frames.buffers.append, frames.sizes.append
        for _ in range(most - len(frames)):
            length, data = get(1)
            if length <= 0:
                self.ended = length < 0
                return self.ended
            if length >= _LARGE and frames.sizes:
                self._ahead = Frames([data.obj], [length], length)
                return True
            add(data.obj)  # not the view, which would be one more object for each frame
            measure(length)
            frames.total += length
            if frames.total >= _BATCH_BYTES or length >= _LARGE:
                return True
        return True

    def _rest(self) -> None:
        with suppress(BlockingIOError):
            while self._woken.recv(4096):
                pass
