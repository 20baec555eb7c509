"""Frames out of libpq by a kernel, which takes, naps and reads again without the GIL: threads that work have it."""

import time
from ctypes import c_int, c_void_p
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pgoutput_construct.columnar.envelope import Frames
from pgoutput_construct.columnar.foreign import address_of, copy_from, foreign
from pgoutput_construct.compiled.jit import kernel
from pgoutput_construct.compiled.memory import read_only
from pgoutput_construct.postgres.libpq import Libpq, libpq

__all__ = ["BROKEN", "ENDED", "FAILED", "FULL", "LARGE", "NOTHING", "Gatherer"]

_LARGE_BYTES: Final = 2**18
"""Bytes from which on a frame is left where libpq has put it, and is a batch by itself."""
_BATCH_BYTES: Final = 3 * 2**20

NOTHING, ENDED, FAILED = 0, -1, -2
"""No more frames: these are results of PQgetCopyData."""
FULL, LARGE, BROKEN = 1, 2, 3
"""There are enough frames, or the next one stands alone, or PQconsumeInput has failed."""

_NAP: Final = 500_000
"""Nanoseconds. A server sends each message by itself; who wakes up for each takes twice the time. The buffer of a local
socket is full after about 300 messages, so a nap may not be longer while they come."""
_SECOND: Final = 1_000_000_000

_get_copy_data = foreign(c_int, c_void_p, c_void_p, c_int)
_consume_input = foreign(c_int, c_void_p)
_free = foreign(None, c_void_p)
_nanosleep = foreign(c_int, c_void_p, c_void_p)
_clock_gettime = foreign(c_int, c_int, c_void_p)


@kernel
def _now(clock: int, which: int, moment: Any, place: int) -> Any:
    _clock_gettime(clock, (which, place))
    return moment[0] * _SECOND + moment[1]


@kernel
def _take(calls: Any, connection: int, places: Any, slot: Any, room: Any, ends: Any, count: int, at: int) -> Any:
    """Add what libpq has read; why that is all, how many frames there are now, and where the last one ends."""
    while count < len(ends) and at < _BATCH_BYTES:
        size = _get_copy_data(calls[0], (connection, places[0], 1))
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
def _gather(calls: Any, connection: int, places: Any, slot: Any, moment: Any, room: Any, ends: Any, until: int) -> Any:
    """Take frames until there are enough of them, or time is up; why these are all, and how many there are."""
    count, at, nap = 0, 0, _NAP
    while True:
        reason, found, at = _take(calls, connection, places, slot, room, ends, count, at)
        left = until - _now(calls[4], places[2], moment, places[1])
        if reason != NOTHING or found == 0 or left <= 0:
            return reason, found
        if found > count:
            count, nap = found, _NAP
        else:
            moment[0], moment[1] = 0, min(nap, left)
            _nanosleep(calls[3], (places[1], 0))
            nap *= 2
        if _consume_input(calls[1], (connection,)) == 0:
            return BROKEN, found


class Gatherer:
    """Room for a batch, and what the kernel is given."""

    def __init__(self) -> None:
        """Find libpq, and load the kernel, or compile it; raises ReplicationError."""
        self._libpq = found = libpq()
        calls = found.get_copy_data, found.consume_input, found.free, found.sleep, found.clock
        self._calls = np.array([*map(address_of, calls)], np.int64)
        self._room = np.empty(_BATCH_BYTES + _LARGE_BYTES, np.uint8)
        self._given = read_only(self._room)
        self._slot, self._moment = np.zeros(2, np.int64), np.zeros(2, np.int64)
        self._places = np.array([self._slot.ctypes.data, self._moment.ctypes.data, time.CLOCK_MONOTONIC], np.int64)
        if not _gather.signatures:
            self.gather(0, 1, 0.0)  # libpq says of no connection that it failed

    def gather(self, connection: int, most: int, until: float) -> tuple[int, Frames]:
        """Return at most so many frames of a connection (the address of its PGconn), and why these are all.

        More are waited for up to a time (time.monotonic()) when there is one. They are to be used before the next call.
        """
        ends = np.empty(most, np.int64)
        reason, count = _gather(
            self._calls, connection, self._places, self._slot, self._moment, self._room, ends, int(until * _SECOND)
        )
        return reason, Frames(self._given, ends[:count])

    def large(self) -> Frames:
        """Return the frame that ended a call with LARGE; its bytes are not copied."""
        address, size = self._slot.tolist()
        buffer = pa.foreign_buffer(address, size, _Allocated(self._libpq, address))
        return Frames(np.frombuffer(buffer, np.uint8), np.array([size]), lasting=True)


class _Allocated:
    """What libpq has allocated, until nobody uses it any more."""

    def __init__(self, library: Libpq, address: int) -> None:
        self._library = library
        self._address = address

    def __del__(self) -> None:
        self._library.free(self._address)
