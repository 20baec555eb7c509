"""Memory that is used again and again stays with the process: else the system takes it, and gives it page by page."""

import ctypes
from contextlib import suppress
from typing import Final

__all__ = ["keep_memory"]

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of glibc's <malloc.h>
_KEPT: Final = {_MMAP_THRESHOLD: 32 * 2**20, _TRIM_THRESHOLD: 64 * 2**20}
"""Bytes: larger pieces go back to the system when they are freed, and so does more than this at the end of the heap."""


def keep_memory() -> None:
    """Have glibc keep what is freed; other C libraries go on as they are."""
    with suppress(AttributeError, OSError, TypeError):
        set_option = ctypes.CDLL(None).mallopt
        for option, size in _KEPT.items():
            set_option(option, size)
