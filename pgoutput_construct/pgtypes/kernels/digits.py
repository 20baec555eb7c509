"""Decimal digits, eight at a time."""

from typing import Any, Final

import numpy as np

from pgoutput_construct.compiled.jit import inlined, u8, u64

__all__ = ["MINUS", "MOST", "POINT", "POWERS", "ZERO", "digits", "eight_digits"]

MINUS: Final = ord("-")
POINT: Final = ord(".")
ZERO: Final = ord("0")
POWERS: Final = np.array([10**power for power in range(19)], np.int64)
MOST: Final = 18
"""Digits that a word holds, whatever they are."""


@inlined
def eight_digits(word: int, size: int) -> int:
    """Return the number that the last bytes of a word (read most significant first) write, -1 where one is no digit."""
    word = (word ^ 0x3030303030303030) & ((1 << 8 * size) - 1 if size < 8 else -1)
    if ((word + 0x7676767676767676) | word) & -0x7F7F7F7F7F7F7F80:  # a byte above 9
        return -1
    word = ((word >> 8) & 0x00FF00FF00FF00FF) * 10 + (word & 0x00FF00FF00FF00FF)
    word = ((word >> 16) & 0x0000FFFF0000FFFF) * 100 + (word & 0x0000FFFF0000FFFF)
    return (word >> 32) * 10_000 + (word & 0xFFFFFFFF)


@inlined
def digits(data: Any, at: int, end: int) -> int:
    """Return the number that 1 to 18 digits write, -1 for anything else."""
    size = end - at
    if size < 1 or size > MOST:
        return -1
    if size <= 8 <= end:
        return eight_digits(u64(data, end - 8), size)
    value = 0
    for place in range(at, end):
        digit = u8(data, place) - ZERO
        if digit < 0 or digit > 9:
            return -1
        value = value * 10 + digit
    return value
