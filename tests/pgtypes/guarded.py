"""Memory that ends, or begins, where nothing may be read or written: a kernel that leaves it ends the process."""

import ctypes
import mmap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest

from pgoutput_construct.compiled import memory
from pgoutput_construct.pgtypes.kernels import row_plan

__all__ = ["guarded_allocation", "guarded_payloads"]

PAGE: Final = mmap.PAGESIZE
FORBIDDEN: Final = 0
"""PROT_NONE"""
UNSET: Final = 0xA5


def _guarded(size: int, front: bool) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return ``size`` bytes directly after a page that may not be touched, or directly before one."""
    pages = -(-max(size, 1) // PAGE)
    found = mmap.mmap(-1, (pages + 2) * PAGE)
    content = np.frombuffer(found, np.uint8)
    content[:] = UNSET
    protect, first = ctypes.CDLL(None, use_errno=True).mprotect, content.ctypes.data
    for page in (first, first + (pages + 1) * PAGE):
        assert protect(ctypes.c_void_p(page), ctypes.c_size_t(PAGE), FORBIDDEN) == 0
    begin = PAGE if front else (pages + 1) * PAGE - size
    return content[begin : begin + size]


@contextmanager
def guarded_allocation(front: bool) -> Iterator[None]:
    """Give kernels guarded memory to write to."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (memory, row_plan):
            patch.setattr(module, "allocate", lambda size: pa.py_buffer(_guarded(size, front)))
        yield


def guarded_payloads(payloads: Sequence[bytes], front: bool) -> pa.Array:
    """Return payloads as a binary array whose bytes are guarded."""
    together = b"".join(payloads)
    content = _guarded(len(together), front)
    content[:] = np.frombuffer(together, np.uint8)
    ends = np.cumsum([0, *map(len, payloads)], dtype=np.int64)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.large_binary(), len(payloads), buffers)
