"""numeric with a modifier: decimal128, units of 10 ** -scale."""

from typing import Any, Final

from pgoutput_construct.columnar.forms.numbers import NEGATIVE
from pgoutput_construct.columnar.jit import inlined, put64, u8, u16, u64
from pgoutput_construct.columnar.typed.digits import MINUS, MOST, POINT, POWERS, ZERO, digits

__all__ = ["WIDTH", "read_decimal", "read_decimal_text"]

WIDTH: Final = 16
"""Bytes of a decimal in Arrow."""
LIMB: Final = 0xFFFFFFFF
STEP: Final = 9
"""Digits by which a number of four limbs (of 32 bits) grows at a time."""
BASE_DIGITS: Final = 4
HEAD: Final = 8
"""numeric.c: digits to base 10,000 behind a head of count, weight, sign and display scale."""


@inlined
def _grow(one: int, two: int, three: int, four: int, factor: int, more: int) -> tuple[int, int, int, int]:
    """Multiply a number of four limbs, the lowest first, and add to it."""
    one = one * factor + more
    two = two * factor + (one >> 32)
    three = three * factor + (two >> 32)
    four = four * factor + (three >> 32)
    return one & LIMB, two & LIMB, three & LIMB, four & LIMB


@inlined
def _put(out: Any, place: int, negative: bool, low: int, high: int) -> None:
    """Write a number of two words, negated where it is negative."""
    put64(out, place, -low if negative else low)
    put64(out, place + 8, ~high + (low == 0) if negative else high)


@inlined
def _wide_text(data: Any, at: int, point: int, end: int, power: int, negative: bool, out: Any, place: int) -> bool:
    """Read up to 38 digits on both sides of a point, and multiply by a power of ten."""
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
    _put(out, place, negative, two << 32 | one, four << 32 | three)
    return True


@inlined
def read_decimal_text(data: Any, at: int, end: int, precision: int, scale: int, out: Any, place: int) -> bool:
    """Read a text; return whether it is taken: not with more digits than the type has on either side of the point."""
    negative = at < end and u8(data, at) == MINUS
    at += negative
    point = end - scale - 1  # where it is, but for a column that has a larger scale than it had
    if point < at or u8(data, point) != POINT:
        point = at
        while point < end and u8(data, point) != POINT:
            point += 1
    whole, places = point - at, max(end - point - 1, 0)
    significant = whole - (whole == 1 and u8(data, at) == ZERO)
    if point + 1 == end or whole < 1 or places > scale or significant > precision - scale:
        return False
    if whole + scale > MOST:
        return _wide_text(data, at, point, end, scale - places, negative, out, place)
    value, part = digits(data, at, point), digits(data, point + 1, end) if places else 0
    if value < 0 or part < 0:
        return False
    _put(out, place, negative, value * POWERS[scale] + part * POWERS[scale - places], 0)
    return True


@inlined
def _without_zeros(digit: int, count: int) -> int:
    """Take so many decimal zeros from the end of a digit to base 10,000; -1 where there are fewer."""
    rest = -1
    if count == 0:
        rest = digit
    elif count == 1 and digit % 10 == 0:
        rest = digit // 10
    elif count == 2 and digit % 100 == 0:
        rest = digit // 100
    elif count == 3 and digit % 1000 == 0:
        rest = digit // 1000
    return rest


@inlined
def _before_last(word: int, count: int) -> int:
    """Return the number that the digits before the last one make, of so many (4 at most) at the end of a word.

    Digits are to base 10,000; return -1 where one is none.
    """
    lanes = (word >> 16) & ((1 << 16 * (count - 1)) - 1)
    if (lanes | (lanes + 0x58F058F058F0)) & 0x800080008000:  # 0x8000 less 10,000
        return -1
    return (lanes >> 32) * POWERS[8] + (lanes >> 16 & 0xFFFF) * POWERS[BASE_DIGITS] + (lanes & 0xFFFF)


@inlined
def _take(data: Any, at: int, count: int, precision: int, scale: int, out: Any, place: int) -> bool:
    """Read one numeric that has digits; return whether it is taken."""
    weight, sign, shown = (u16(data, at + 2) ^ 0x8000) - 0x8000, u16(data, at + 4), u16(data, at + 6)
    first, last = u16(data, at + HEAD), u16(data, at + HEAD + 2 * count - 2)
    places = BASE_DIGITS * (count - 1 - weight)
    # The last digit, of four decimal ones, ends in zeros where fewer are shown; those go.
    cut = max(places - min(scale, shown), 0)
    lead = 1 + (first >= 10) + (first >= 100) + (first >= 1000)
    end = _without_zeros(last, cut)
    if sign not in (0, NEGATIVE) or first == 0 or last == 0 or end < 0:
        return False
    if BASE_DIGITS * weight + lead > precision - scale:
        return False
    negative, power = sign == NEGATIVE, scale - places + cut
    if count <= 4 and BASE_DIGITS * count + power <= MOST:
        value = _before_last(u64(data, at + 2 * count), count)  # where digits are few, the head stands before them
        _put(out, place, negative, (value * POWERS[BASE_DIGITS - cut] + end) * POWERS[power], 0)
        return value >= 0 and last < POWERS[BASE_DIGITS]
    one, two, three, four = 0, 0, 0, 0
    for step in range(count - 1):
        digit = u16(data, at + HEAD + 2 * step)
        if digit >= POWERS[BASE_DIGITS]:
            return False
        one, two, three, four = _grow(one, two, three, four, POWERS[BASE_DIGITS], digit)
    one, two, three, four = _grow(one, two, three, four, POWERS[BASE_DIGITS - cut], end)
    while power > 0:
        one, two, three, four = _grow(one, two, three, four, POWERS[min(STEP, power)], 0)
        power -= STEP
    _put(out, place, negative, two << 32 | one, four << 32 | three)
    return last < POWERS[BASE_DIGITS]


@inlined
def read_decimal(data: Any, at: int, size: int, precision: int, scale: int, out: Any, place: int) -> bool:
    """Read numeric_send(); return whether it is taken.

    What PostgreSQL does not write (zero digits at an end, digits beyond the scale) is left.
    """
    count, taken = u16(data, at) if size >= HEAD else 0, False
    if size == HEAD and count == 0:
        _put(out, place, False, 0, 0)
        taken = u16(data, at + 2) == 0 and u16(data, at + 4) == 0
    elif count > 0 and size == HEAD + 2 * count:
        taken = _take(data, at, count, precision, scale, out, place)
    return taken
