"""Decoders of numbers: booleans, integers, floats, and decimals of 128 bits; they read digits eight at a time."""

from typing import Any, Final

import numpy as np

from pgoutput_construct.compiled.jit import entry_at, inlined, put64, u8, u16, u64
from pgoutput_construct.pgtypes.value_codec import NUMERIC_NEGATIVE

__all__ = [
    "MINUS",
    "MOST",
    "POINT",
    "POWERS",
    "WIDTH",
    "digits",
    "read_boolean",
    "read_decimal",
    "read_decimal_text",
    "read_float",
    "read_integer",
]

MINUS: Final = ord("-")
POINT: Final = ord(".")
ZERO: Final = ord("0")
POWERS: Final = np.array([10**power for power in range(19)], np.int64)
MOST: Final = 18
"""Decimal digits that always fit into a word (int64)."""


@inlined
def eight_digits(word: int, size: int) -> int:
    """Return the value of the last ``size`` bytes of a big-endian word as digits, -1 if one is not a digit."""
    word = (word ^ 0x3030303030303030) & ((1 << 8 * size) - 1 if size < 8 else -1)
    if ((word + 0x7676767676767676) | word) & -0x7F7F7F7F7F7F7F80:  # a byte above 9
        return -1
    word = ((word >> 8) & 0x00FF00FF00FF00FF) * 10 + (word & 0x00FF00FF00FF00FF)
    word = ((word >> 16) & 0x0000FFFF0000FFFF) * 100 + (word & 0x0000FFFF0000FFFF)
    return (word >> 32) * 10_000 + (word & 0xFFFFFFFF)


@inlined
def digits(data: Any, at: int, end: int) -> int:
    """Return the value of 1 to 18 digits, -1 for anything else; it may read the 8 bytes before ``end``."""
    size = end - at
    if size < 1 or size > MOST:
        return -1
    if size <= 8 <= end:
        return eight_digits(u64(data, end - 8), size)
    value = 0
    for offset in range(at, end):
        digit = u8(data, offset) - ZERO
        if digit < 0 or digit > 9:
            return -1
        value = value * 10 + digit
    return value


LAST_DIGITS: Final = 223_372_036_854_775_807
"""The greatest int8 without its first digit, which is 9."""
WORD_DIGITS: Final = MOST + 1


@inlined
def read_boolean(data: Any, at: int, length: int, yes: int, no: int) -> tuple[bool, int]:
    """Return whether the value is one of two letters, and whether it is the first."""
    byte = u8(data, at) if length == 1 else -1
    return byte in (yes, no), byte == yes


@inlined
def read_integer(data: Any, at: int, end: int, low: int, high: int) -> tuple[bool, int]:
    """Return whether the value is an integer within bounds, and the integer."""
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
    """Return whether the value is a decimal that is decoded here, and the float nearest to it.

    Only if numerator and power of ten are both exact in the type: then one division rounds correctly.
    """
    negative = at < end and u8(data, at) == MINUS
    at += negative
    point = at
    while point < end and u8(data, point) != POINT:
        point += 1
    fraction_digits = max(end - point - 1, 0)
    value = digits(data, at, point)
    if fraction_digits and value >= 0:
        part = digits(data, point + 1, end) if point - at + fraction_digits <= MOST else -1
        value = value * POWERS[fraction_digits] + part if part >= 0 else -1
    if value < 0 or value > limit or fraction_digits > most or point + 1 == end:
        return False, 0.0
    # Rounding again to float4 is harmless: it has less than half of a float8's digits.
    number = value / POWERS[fraction_digits]
    return True, -number if negative else number


WIDTH: Final = 16
"""Bytes of a decimal in Arrow."""
LIMB: Final = 0xFFFFFFFF
STEP: Final = 9
"""Decimal digits that are added to a number of four limbs (of 32 bits) at a time."""
BASE_DIGITS: Final = 4
"""Decimal digits of a digit to base 10,000."""
FEW: Final = 4
"""Digits to base 10,000 in a word of eight bytes."""
HEAD: Final = 8
"""numeric_send(): bytes of count, weight, sign and display scale, before the digits to base 10,000."""


@inlined
def _grow(one: int, two: int, three: int, four: int, factor: int, more: int) -> tuple[int, int, int, int]:
    """Multiply a number of four limbs, the lowest first, by a factor, and add a number."""
    one = one * factor + more
    two = two * factor + (one >> 32)
    three = three * factor + (two >> 32)
    four = four * factor + (three >> 32)
    return one & LIMB, two & LIMB, three & LIMB, four & LIMB


@inlined
def _put(out: Any, offset: int, negative: bool, low: int, high: int) -> None:
    """Write a number of two words, negated if ``negative``."""
    put64(out, offset, -low if negative else low)
    put64(out, offset + 8, ~high + (low == 0) if negative else high)


@inlined
def _wide_text(data: Any, at: int, point: int, end: int, power: int, negative: bool, out: Any, offset: int) -> bool:
    """Write the value of up to 38 digits with a decimal point, times 10 ** ``power``; return whether it was decoded."""
    one, two, three, four = 0, 0, 0, 0
    while at < end:
        stop = point if at < point else end
        size = min(STEP, stop - at)
        part = digits(data, at, at + size)
        if part < 0:
            return False
        one, two, three, four = _grow(one, two, three, four, POWERS[size], part)
        at += size + (at + size == point)
    while power > 0:
        one, two, three, four = _grow(one, two, three, four, POWERS[min(STEP, power)], 0)
        power -= STEP
    _put(out, offset, negative, two << 32 | one, four << 32 | three)
    return True


@inlined
def read_decimal_text(data: Any, at: int, end: int, precision: int, scale: int, out: Any, offset: int) -> bool:
    """Write the value of a text; return whether it was decoded: not with too many digits on a side of the point."""
    negative = at < end and u8(data, at) == MINUS
    at += negative
    point = end - scale - 1  # the usual offset; another one if the column's scale was smaller
    if point < at or u8(data, point) != POINT:
        point = at
        while point < end and u8(data, point) != POINT:
            point += 1
    whole, fraction_digits = point - at, max(end - point - 1, 0)
    significant = whole - (whole == 1 and u8(data, at) == ZERO)
    if point + 1 == end or whole < 1 or fraction_digits > scale or significant > precision - scale:
        return False
    if whole + scale > MOST:
        return _wide_text(data, at, point, end, scale - fraction_digits, negative, out, offset)
    value, part = digits(data, at, point), digits(data, point + 1, end) if fraction_digits else 0
    if value < 0 or part < 0:
        return False
    _put(out, offset, negative, value * POWERS[scale] + part * POWERS[scale - fraction_digits], 0)
    return True


@inlined
def _without_zeros(number: int, count: int) -> int:
    """Remove ``count`` trailing decimal zeros (3 at most); return -1 if there are fewer, or the number is negative."""
    if number < 0:
        return -1
    rest, step = np.uint64(number), np.uint64(1)  # signed division takes twice as many instructions
    if count == 1:
        rest, step = rest // np.uint64(10), np.uint64(10)
    elif count == 2:
        rest, step = rest // np.uint64(100), np.uint64(100)
    elif count == 3:
        rest, step = rest // np.uint64(1000), np.uint64(1000)
    return int(np.int64(rest)) if rest * step == np.uint64(number) else -1


@inlined
def _number(word: int) -> int:
    """Return the value of four digits to base 10,000, -1 if one is 10,000 or more."""
    if (word | (word + 0x58F058F058F058F0)) & -0x7FFF7FFF7FFF8000:  # 0x8000 less 10,000; 0x8000 in each
        return -1
    pairs = (word >> 16 & 0x0000FFFF0000FFFF) * POWERS[BASE_DIGITS] + (word & 0x0000FFFF0000FFFF)
    return (pairs >> 32) * POWERS[2 * BASE_DIGITS] + (pairs & LIMB)


@inlined
def _take_few(word: int, count: int, cut: int, power: int, most: int, negative: bool, out: Any, offset: int) -> bool:
    """Write the value of the last ``count`` digits of a word (FEW at most); return whether it was decoded.

    ``cut`` trailing decimal zeros are removed, and the rest is multiplied by 10 ** ``power``; the result must have at
    most ``most`` decimal digits.
    """
    word &= (1 << 16 * count) - 1 if count < FEW else -1
    value = _without_zeros(_number(word), cut) * entry_at(POWERS, power)
    if word >> 16 * (count - 1) == 0 or word & 0xFFFF == 0 or value < 0 or value >= entry_at(POWERS, most):
        return False
    _put(out, offset, negative, value, 0)
    return True


@inlined
def _take_many(data: Any, at: int, count: int, cut: int, power: int, negative: bool, out: Any, offset: int) -> bool:
    """Write the value of ``count`` digits, which fits into the type, as ``_take_few`` does."""
    last = u16(data, at + 2 * count - 2)
    end = _without_zeros(last, cut)
    if u16(data, at) == 0 or last == 0 or last >= POWERS[BASE_DIGITS] or end < 0:
        return False
    one, two, three, four = 0, 0, 0, 0
    for step in range(count - 1):
        digit = u16(data, at + 2 * step)
        if digit >= POWERS[BASE_DIGITS]:
            return False
        one, two, three, four = _grow(one, two, three, four, POWERS[BASE_DIGITS], digit)
    one, two, three, four = _grow(one, two, three, four, POWERS[BASE_DIGITS - cut], end)
    while power > 0:
        one, two, three, four = _grow(one, two, three, four, POWERS[min(STEP, power)], 0)
        power -= STEP
    _put(out, offset, negative, two << 32 | one, four << 32 | three)
    return True


@inlined
def read_decimal(data: Any, at: int, size: int, precision: int, scale: int, out: Any, offset: int) -> bool:
    """Write a numeric in binary format (numeric_send()) as a decimal; return whether it was decoded.

    Forms that PostgreSQL never sends (leading or trailing zero digits, digits beyond the scale) are left.
    """
    head = u64(data, at) if size >= HEAD else 0
    count, weight = head >> 48 & 0xFFFF, (head >> 32 & 0xFFFF ^ 0x8000) - 0x8000
    sign, shown = head >> 16 & 0xFFFF, head & 0xFFFF
    if size != HEAD + 2 * count or sign not in (0, NUMERIC_NEGATIVE):
        return False
    if count == 0:
        _put(out, offset, False, 0, 0)
        return head >> 16 == 0
    fraction_digits = BASE_DIGITS * (count - 1 - weight)
    # The last digit has four decimal digits; if fewer are displayed, the trailing ones are zeros, and are cut.
    cut = max(fraction_digits - min(scale, shown), 0)
    power, negative = scale - fraction_digits + cut, sign == NUMERIC_NEGATIVE
    if cut >= BASE_DIGITS:
        return False
    if count <= FEW and BASE_DIGITS * count + power <= MOST:
        word = u64(data, at + 2 * count)  # reads part of the head before the digits if these are fewer than FEW
        return _take_few(word, count, cut, power, min(precision, MOST), negative, out, offset)
    first = u16(data, at + HEAD)
    lead = 1 + (first >= 10) + (first >= 100) + (first >= 1000)
    if BASE_DIGITS * weight + lead > precision - scale:
        return False
    return _take_many(data, at + HEAD, count, cut, power, negative, out, offset)
