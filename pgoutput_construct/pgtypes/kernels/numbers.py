"""bool, int2, int4, int8, oid, float4 and float8 in text format."""

from typing import Any, Final

from pgoutput_construct.compiled.jit import inlined, u8
from pgoutput_construct.pgtypes.kernels.digits import MINUS, MOST, POINT, POWERS, ZERO, digits

__all__ = ["read_boolean", "read_float", "read_integer"]

LAST_DIGITS: Final = 223_372_036_854_775_807
"""Of the greatest int8, behind its first digit."""
WORD_DIGITS: Final = MOST + 1


@inlined
def read_boolean(data: Any, at: int, length: int, yes: int, no: int) -> tuple[bool, int]:
    """Return whether one of two letters stands there, and 1 for the first."""
    byte = u8(data, at) if length == 1 else -1
    return byte in (yes, no), byte == yes


@inlined
def read_integer(data: Any, at: int, end: int, low: int, high: int) -> tuple[bool, int]:
    """Return whether an integer within bounds stands there, and which."""
    negative = at < end and u8(data, at) == MINUS
    at += negative
    value = digits(data, at, end)
    if end - at == WORD_DIGITS:
        first, value = u8(data, at) - ZERO, digits(data, at + 1, end)
        good = 0 <= first < 9 or (first == 9 and value <= LAST_DIGITS)
        value = value + first * POWERS[MOST] if good and value >= 0 else -1
    number = -value if negative else value
    return value >= 0 and low <= number <= high, number


@inlined
def read_float(data: Any, at: int, end: int, limit: int, most: int) -> tuple[bool, float]:
    """Read what one rounded division gives exactly: a number that the type holds, over a power of ten that it holds."""
    negative = at < end and u8(data, at) == MINUS
    at += negative
    point = at
    while point < end and u8(data, point) != POINT:
        point += 1
    places = max(end - point - 1, 0)
    value = digits(data, at, point)
    if places and value >= 0:
        part = digits(data, point + 1, end) if point - at + places <= MOST else -1
        value = value * POWERS[places] + part if part >= 0 else -1
    if value < 0 or value > limit or places > most or point + 1 == end:
        return False, 0.0
    number = value / POWERS[places]  # a float4 loses nothing: it has less than half of a float8's digits
    return True, -number if negative else number
