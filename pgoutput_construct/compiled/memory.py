"""Memory for kernels to fill, aligned as Arrow recommends."""

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

__all__ = ["LINE", "allocate", "bitmap", "read_only", "room"]

LINE: Final = 64
"""Bytes of a cache line, and Arrow's recommended alignment of buffers."""

# numpy and Arrow's default pool request huge pages and return them soon; to fault them in again can take longer than
# decoding. The system's allocator retains freed memory.
_POOL: Final = pa.system_memory_pool()


def allocate(size: int) -> pa.Buffer:
    """Return ``size`` uninitialised bytes."""
    return pa.allocate_buffer(size, _POOL)


def room(count: int, dtype: DTypeLike = np.uint8) -> NDArray[Any]:
    """Return an uninitialised array of ``count`` entries."""
    size = count * np.dtype(dtype).itemsize
    return np.frombuffer(allocate(size), dtype, count) if size else np.empty(0, dtype)


def bitmap(flags: NDArray[Any]) -> pa.Buffer:
    """Return an Arrow bitmap with a bit set for each flag, or number, that is not 0."""
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view of an array.

    To numba, writable and read-only arrays are different types, and it compiles a kernel again for each. So every array
    that kernels only read is passed like this, whether it comes from numpy or from Arrow, whose buffers are read-only.
    """
    view = array.view()
    view.flags.writeable = False
    return view
