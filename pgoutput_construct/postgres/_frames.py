"""Receiving frames of the replication protocol in batches, without a Python object for each.

A server sends each message as a CopyData of its own. psycopg would return one ``bytes`` object per frame; here a kernel
(``compiled``) calls libpq's PQgetCopyData and PQconsumeInput directly, and copies frames into one buffer with an array
of their ends.
"""

import ctypes
import selectors
import socket
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext, suppress
from ctypes import c_int, c_void_p
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Final

import numpy as np
import psycopg
import pyarrow as pa
from psycopg import pq

from pgoutput_construct.columnar.envelope import Frames
from pgoutput_construct.compiled.c_functions import address_of, copy_from, foreign
from pgoutput_construct.compiled.jit import kernel
from pgoutput_construct.compiled.memory import read_only
from pgoutput_construct.errors import ReplicationError

__all__ = ["BROKEN", "ENDED", "FAILED", "FULL", "LARGE", "NOTHING", "FrameReader", "Gatherer", "libpq"]


_BATCH_FRAMES = 8192
_NONE = Frames.of()


class FrameReader:
    """Reads the frames of one connection; a context manager that leaves the connection open."""

    def __init__(
        self, pgconn: pq.abc.PGconn, gather: float = 0.03, lock: AbstractContextManager[object] | None = None
    ) -> None:
        """Prepare to read.

        Args:
            pgconn: A connection in COPY mode.
            gather: Seconds for which frames are gathered into one batch.
            lock: Held whenever ``pgconn`` is used, for at most about ``gather`` seconds at a time.
        """
        self.gather = gather
        """Seconds for which frames are gathered into one batch."""
        self.ended = False
        """Whether the server has ended the copy: its result has the reason."""
        self.fed = False
        """Whether bytes arrived during the last ``read``, even if only part of a frame."""
        self._pgconn = pgconn
        self._lock = nullcontext() if lock is None else lock
        self._gatherer = Gatherer()
        self._other: Gatherer | None = None
        """Has the frames that ``read`` returned last, while others are read ahead."""
        self._pool: ThreadPoolExecutor | None = None
        self._reading: Future[Frames] | None = None
        self._ahead = _NONE
        self._problem: psycopg.Error | None = None
        self._waker, self._woken = socket.socketpair()
        self._waker.setblocking(False)
        self._woken.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(pgconn.socket, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)

    def read(self, timeout: float, most: int = _BATCH_FRAMES) -> Frames:
        """Return the available frames, at most ``most``; wait up to ``timeout`` seconds for the first one.

        A frame that has arrived only in part is returned by a later call. Frames that are read ahead are returned when
        that ends, as many as these are, also if it found none. Raises psycopg.Error if the connection is broken, after
        everything that was received has been returned.
        """
        if (reading := self._reading) is not None:
            wait([reading])  # an interrupt leaves it to be read, or ended
            self._reading = None
            return reading.result()
        self.fed = False
        if self._ahead:
            frames, self._ahead = self._ahead, _NONE
            return frames
        if self._problem is not None:
            raise self._problem
        return _NONE if self.ended else self._gather(timeout, min(most, _BATCH_FRAMES))

    @property
    def is_reading_ahead(self) -> bool:
        """Whether frames were read ahead, or are, that ``read`` has not returned."""
        return self._reading is not None

    def read_ahead(self) -> None:
        """Read the next frames in a thread, while the caller works on those that ``read`` has returned.

        A server waits while the socket is full, which it is after some hundred messages. Until the next ``read``
        nothing else may read or wait, but for ``wake``; the lock is held by the thread.
        """
        if self._reading is None and not self._ahead and self._problem is None and not self.ended:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, thread_name_prefix="frames")
            self._gatherer, self._other = self._other or Gatherer(), self._gatherer
            self.fed = False
            self._reading = self._pool.submit(self._gather, self.gather, _BATCH_FRAMES)

    def end_reading_ahead(self) -> None:
        """Wait until nothing is read ahead, and forget what was; the thread ends."""
        if self._pool is not None:
            self.wake()
            self._pool.shutdown()
            self._pool = self._reading = None

    def wait(self, timeout: float, *, write: bool = False) -> bool:
        """Wait until the socket is readable, or with ``write`` writable; return False after ``timeout`` or ``wake``."""
        if write:
            self._selector.modify(self._pgconn.socket, selectors.EVENT_READ | selectors.EVENT_WRITE)
        ready = {key.fileobj for key, _ in self._selector.select(max(timeout, 0))}
        if write:
            self._selector.modify(self._pgconn.socket, selectors.EVENT_READ)
        if self._woken in ready:
            self._rest()
        return self._pgconn.socket in ready

    def pause(self, timeout: float) -> None:
        """Wait for ``wake``, at most ``timeout`` seconds, without reading."""
        self._woken.settimeout(timeout)
        with suppress(TimeoutError):
            self._woken.recv(1)
        self._woken.setblocking(False)

    def wake(self) -> None:
        """End a wait; may be called from any thread."""
        with suppress(BlockingIOError, OSError):  # it has been woken many times already, or is closed
            self._waker.send(b"\0")

    def close(self) -> None:
        """Close the sockets that are used for waiting, and end the thread that reads ahead."""
        self.end_reading_ahead()
        self._selector.close()
        self._waker.close()
        self._woken.close()

    def _gather(self, timeout: float, most: int) -> Frames:
        # A large message over a slow network takes long to arrive, and bytes keep coming until then.
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
        """Return the frames that libpq has, and those that arrive while they are gathered."""
        reason, frames = self._gatherer.gather(_connection_address(self._pgconn), most, time.monotonic() + self.gather)
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


_LARGE_BYTES: Final = 2**18
"""The bytes from which a frame stays in libpq's buffer, and is a batch of its own."""
_BATCH_BYTES: Final = 3 * 2**20

NOTHING, ENDED, FAILED = 0, -1, -2
"""No further frame: results of PQgetCopyData."""
FULL, LARGE, BROKEN = 1, 2, 3
"""The batch is full, the next frame is a batch of its own, or PQconsumeInput has failed."""

_NAP: Final = 500_000
"""Nanoseconds. A server sends each message by itself; waking up for each takes twice the time. The buffer of a local
socket is full after about 300 messages, so a pause must not be longer while they arrive."""
_SECOND: Final = 1_000_000_000

_get_copy_data = foreign(c_int, c_void_p, c_void_p, c_int)
_consume_input = foreign(c_int, c_void_p)
_free = foreign(None, c_void_p)
_nanosleep = foreign(c_int, c_void_p, c_void_p)
_clock_gettime = foreign(c_int, c_int, c_void_p)


@kernel
def _now(clock: int, which: int, timespec: Any, address: int) -> Any:
    _clock_gettime(clock, (which, address))
    return timespec[0] * _SECOND + timespec[1]


@kernel
def _take(calls: Any, connection: int, addresses: Any, slot: Any, room: Any, ends: Any, count: int, at: int) -> Any:
    """Copy the frames that libpq has; return why it stopped, the number of frames, and the end of the last one."""
    while count < len(ends) and at < _BATCH_BYTES:
        size = _get_copy_data(calls[0], (connection, addresses[0], 1))
        if size <= 0:
            return size, count, at
        if size >= _LARGE_BYTES:
            slot[1] = size
            return LARGE, count, at
        copy_from(slot[0], size, room, at)
        _free(calls[2], (slot[0],))
        at += size
        ends[count] = at
        count += 1
    return FULL, count, at


@kernel
def _gather(
    calls: Any, connection: int, addresses: Any, slot: Any, timespec: Any, room: Any, ends: Any, until: int
) -> Any:
    """Copy frames until the batch is full or the time has passed; return why it stopped, and the number of frames."""
    count, at, nap = 0, 0, _NAP
    while True:
        reason, found, at = _take(calls, connection, addresses, slot, room, ends, count, at)
        left = until - _now(calls[4], addresses[2], timespec, addresses[1])
        if reason != NOTHING or found == 0 or left <= 0:
            return reason, found
        if found > count:
            count, nap = found, _NAP
        else:
            timespec[0], timespec[1] = 0, min(nap, left)
            _nanosleep(calls[3], (addresses[1], 0))
            nap *= 2
        if _consume_input(calls[1], (connection,)) == 0:
            return BROKEN, found


class Gatherer:
    """The buffer of a batch, and the arguments of the kernel."""

    def __init__(self) -> None:
        """Find libpq, and load or compile the kernel; raises ReplicationError if libpq cannot be called."""
        self._libpq = found = libpq()
        calls = found.get_copy_data, found.consume_input, found.free, found.sleep, found.clock
        self._calls = np.array([*map(address_of, calls)], np.int64)
        self._room = np.empty(_BATCH_BYTES + _LARGE_BYTES, np.uint8)
        self._given = read_only(self._room)
        self._slot, self._timespec = np.zeros(2, np.int64), np.zeros(2, np.int64)
        self._addresses = np.array([self._slot.ctypes.data, self._timespec.ctypes.data, time.CLOCK_MONOTONIC], np.int64)
        if not _gather.signatures:
            self.gather(0, 1, 0.0)  # compiles it: libpq accepts a null connection, and reports failure

    def gather(self, connection: int, most: int, until: float) -> tuple[int, Frames]:
        """Return why gathering stopped (such as FULL), and the frames, which are valid until the next call.

        Args:
            connection: The address of the PGconn.
            most: The maximum number of frames.
            until: Once a first frame is there, wait for more until this time (time.monotonic()).
        """
        ends = np.empty(most, np.int64)
        reason, count = _gather(
            self._calls, connection, self._addresses, self._slot, self._timespec, self._room, ends, int(until * _SECOND)
        )
        return reason, Frames(self._given, ends[:count])

    def large(self) -> Frames:
        """Return the frame because of which ``gather`` returned LARGE, without copying its bytes."""
        address, size = self._slot.tolist()
        buffer = pa.foreign_buffer(address, size, _Allocated(self._libpq, address))
        return Frames(np.frombuffer(buffer, np.uint8), np.array([size]), lasting=True)


class _Allocated:
    """Memory that libpq allocated, freed when the last reference is gone."""

    def __init__(self, library: "_Libpq", address: int) -> None:
        self._library = library
        self._address = address

    def __del__(self) -> None:
        self._library.free(self._address)


@dataclass(frozen=True)
class _Libpq:
    """The functions of libpq and of the C library that the kernel calls (ctypes)."""

    get_copy_data: Any
    consume_input: Any
    free: Any
    sleep: Any
    clock: Any


@cache
def libpq() -> _Libpq:
    """Return the functions; raise ReplicationError if psycopg's libpq does not export them."""
    try:
        # Symbols are resolved in the libraries that psycopg's module is linked with, so this is its own libpq.
        library, system = ctypes.CDLL(_path()), ctypes.CDLL(None)
        library.PQfreemem.argtypes, library.PQfreemem.restype = [ctypes.c_void_p], None
        functions = library.PQgetCopyData, library.PQconsumeInput, library.PQfreemem
        return _Libpq(*functions, system.nanosleep, system.clock_gettime)
    except (OSError, AttributeError, ImportError, TypeError) as error:
        raise ReplicationError(
            f"the libpq of psycopg's implementation {pq.__impl__!r} cannot be called on {sys.platform}: {error}"
        ) from error


def _connection_address(connection: Any) -> int:
    """Return the address of a connection's PGconn; 0 for a closed one, which libpq rejects."""
    return int(connection.pgconn_ptr or 0)


def _path() -> str | None:
    if pq.__impl__ == "python":
        return pq.misc.find_libpq_full_path()
    return import_module(f"psycopg_{pq.__impl__}.pq").__file__
