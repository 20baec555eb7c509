"""Memory that kernels fill: Arrow's pool keeps what is freed, where numpy gives it back, and gets it page by page."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

__all__ = ["bitmap", "room"]


def room(count: int, dtype: DTypeLike = np.uint8) -> NDArray[Any]:
    """Return an array whose entries are not set yet."""
    size = count * np.dtype(dtype).itemsize
    return np.frombuffer(pa.allocate_buffer(size), dtype, count) if size else np.empty(0, dtype)


def bitmap(flags: NDArray[Any]) -> pa.Buffer:
    """Return flags, or numbers that are not 0, as Arrow has them: a bit for each."""
    return pa.py_buffer(np.packbits(flags, bitorder="little"))
