"""Memory that kernels fill, as Arrow wants it."""

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

__all__ = ["LINE", "allocate", "bitmap", "read_only", "room"]

LINE: Final = 64
"""Bytes of a cache line; at its multiples Arrow wants a buffer to begin."""

# numpy and Arrow's own pools ask for huge pages, and give them back soon: to take them again can take longer than to
# decode. The system's allocator keeps what is freed.
_POOL: Final = pa.system_memory_pool()


def allocate(size: int) -> pa.Buffer:
    """Return ``size`` bytes that are not set yet."""
    return pa.allocate_buffer(size, _POOL)


def room(count: int, dtype: DTypeLike = np.uint8) -> NDArray[Any]:
    """Return an array whose entries are not set yet."""
    size = count * np.dtype(dtype).itemsize
    return np.frombuffer(allocate(size), dtype, count) if size else np.empty(0, dtype)


def bitmap(flags: NDArray[Any]) -> pa.Buffer:
    """Return flags, or numbers that are not 0, as Arrow has them: a bit for each."""
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array as one that nobody writes to.

    numba compiles a kernel again for an array that can be written to, which takes as long as the first time: all that
    is given to kernels to be read is given like this, be it of Arrow, which has most of it read-only, or of numpy.
    """
    view = array.view()
    view.flags.writeable = False
    return view
