"""The C library's memory in a capture that runs for years."""

import ctypes
from contextlib import suppress

__all__ = ["return_large_buffers"]

_M_MMAP_THRESHOLD = -3  # malloc.h
_THRESHOLD = 2**18


def return_large_buffers() -> None:
    """Have glibc give every freed buffer of 256 KB and more back to the system; elsewhere nothing happens.

    By itself it raises that limit to the largest buffer that was ever freed. The buffers of batches then lie among
    small ones that live until their segment is written, and the process keeps twice the memory that it uses.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _THRESHOLD)
