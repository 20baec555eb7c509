"""Stands in for compiled/jit.py: kernels in plain Python that may read nothing outside their payload.

Stronger than numba's own run, where a read beyond the payload is a read of the next one.
"""

import struct
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

__all__ = [
    "WORD",
    "OutsideError",
    "Window",
    "copy_word",
    "double_bits",
    "find_nul",
    "inlined",
    "kernel",
    "prefetch",
    "put8",
    "put32",
    "put64",
    "put_length",
    "put_nothing",
    "put_word",
    "read_value",
    "single_bits",
    "u8",
    "u16",
    "u32",
    "u64",
]

WORD: Final = 8

Function = TypeVar("Function", bound=Callable[..., object])


class OutsideError(AssertionError):
    """A kernel has read beyond its payload."""


class Window:
    """The bytes of a batch, of which only those of one payload may be read."""

    def __init__(self, payload: bytes, before: bytes, after: bytes) -> None:
        self.data = before + payload + after
        self.start = len(before)
        self.end = len(before) + len(payload)

    def __len__(self) -> int:
        return len(self.data)

    def read(self, at: int, size: int) -> int:
        """Return an unsigned number; raise OutsideError for bytes of other payloads."""
        if not self.start <= at <= self.end - size:
            raise OutsideError(f"{size} bytes are read at {at}, outside {self.start}..{self.end}")
        return int.from_bytes(self.data[at : at + size], "big")


def kernel(function: Function) -> Function:
    """Return the function as it is."""
    return function


inlined = kernel


def u8(data: Window, at: int) -> int:
    """Read a byte."""
    return data.read(at, 1)


def u16(data: Window, at: int) -> int:
    """Read two bytes."""
    return data.read(at, 2)


def u32(data: Window, at: int) -> int:
    """Read four bytes."""
    return data.read(at, 4)


def u64(data: Window, at: int) -> int:
    """Read eight bytes as a signed number: numba's are signed."""
    value = data.read(at, 8)
    return value - (1 << 64) if value >> 63 else value


def prefetch(data: Window, at: int) -> None:
    """Prefetch nothing: what is prefetched is not read."""


def find_nul(data: Window, at: int, end: int) -> int:
    """Return the position of the next NUL, -1 where there is none before the end."""
    return next((place for place in range(at, end) if u8(data, place) == 0), -1)


def read_value(tag: int, data: Window, *given: Any) -> bool:
    """Read nothing: without a plan every value is found where it is."""
    return False


def put_nothing(*given: Any) -> None:
    """Write nothing."""


def _put(target: Any, at: int, number: int, size: int) -> None:
    """Write the last bytes of a number, in the byte order of this machine."""
    for step, byte in enumerate((number & (1 << 8 * size) - 1).to_bytes(size, sys.byteorder)):
        target[at + step] = byte


put8, put32, put64 = (partial(_put, size=size) for size in (1, 4, 8))


def copy_word(target: Any, at: int, source: Window, start: int) -> None:
    """Copy eight bytes; the target checks where they are written."""
    put_word(target, at, source.read(start, WORD))


def put_word(target: Any, at: int, word: int, size: int = WORD) -> None:
    """Write a word of eight bytes, the most significant byte first; the target checks each place."""
    for step in range(size):
        target[at + step] = word >> 8 * (size - 1 - step) & 0xFF


def put_length(target: Any, at: int, number: int) -> None:
    """Write a number of 32 bits as the wire has it."""
    put_word(target, at, number, 4)


def single_bits(number: float) -> int:
    """Return the bits of a number as a float4."""
    return int.from_bytes(struct.pack(">f", number), "big")


def double_bits(number: float) -> int:
    """Return the bits of a number as a float8."""
    return int.from_bytes(struct.pack(">d", number), "big")
