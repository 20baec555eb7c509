"""How the kernels are compiled: once per machine where a cache can be written, once per process elsewhere."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit

__all__ = ["find_nul", "kernel", "u16", "u32", "u64"]

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile a function with numba when it is first called; it never holds Python objects."""
    try:
        compiled: Function = njit(cache=True, nogil=True)(function)
    except RuntimeError:  # numba finds no directory that it can write its cache to
        compiled = njit(nogil=True)(function)
    return compiled


@kernel
def u16(data: Any, at: int) -> Any:
    """Read two bytes, big-endian."""
    return np.int64(data[at]) << 8 | np.int64(data[at + 1])


@kernel
def u32(data: Any, at: int) -> Any:
    """Read four bytes, big-endian, unsigned."""
    return (
        np.int64(data[at]) << 24 | np.int64(data[at + 1]) << 16 | np.int64(data[at + 2]) << 8 | np.int64(data[at + 3])
    )


@kernel
def u64(data: Any, at: int) -> Any:
    """Read eight bytes, big-endian, as a signed number: the caller views it as unsigned where it is."""
    return u32(data, at) << 32 | u32(data, at + 4)


@kernel
def find_nul(data: Any, at: int, end: int) -> int:
    """Return the position of the next NUL, -1 where there is none before the end."""
    for place in range(at, end):
        if data[place] == 0:
            return place
    return -1
