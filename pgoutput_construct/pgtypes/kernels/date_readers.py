"""Decoders of date, timestamp and timestamptz in text format, and the text of a time."""

from typing import Any, Final

import numpy as np

from pgoutput_construct.compiled.jit import inlined, put_word, u8, u16, u64
from pgoutput_construct.pgtypes.kernels.number_readers import MINUS, POINT, POWERS, digits

__all__ = ["DAY", "FIRST_DAY", "LAST_DAY", "NONE", "read_day", "read_timestamp", "write_time"]

DAY: Final = 86_400_000_000
SECOND: Final = 1_000_000
FIRST_DAY: Final = -719_162
LAST_DAY: Final = 2_932_896
"""Days since 1970-01-01 of the first and the last date with a year from 1 to 9999, the range of Python's dates."""
NONE: Final = -(1 << 62)
"""The result for text that is not decoded; also the end of output that was not written."""
DATE_SIZE: Final = len("2000-01-01")
TIME_SIZE: Final = len("00:00:00")
MICROSECONDS: Final = 6
PLUS: Final = ord("+")
COLON: Final = ord(":")
SPACE: Final = ord(" ")
MONTH_DAYS: Final = np.array([0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
MARCH_DAYS: Final = np.array([0, 306, 337, 0, 31, 61, 92, 122, 153, 184, 214, 245, 275])
"""Days between the first of March and that of each month."""
YEAR_AND_MONTH: Final = int.from_bytes(b"0000-00-")
ZEROS: Final = int.from_bytes(b"00")
WORD_OF_ZEROS: Final = int.from_bytes(b"00:00:00")


@inlined
def _day(data: Any, at: int) -> int:
    """Return the days since 1970-01-01 of a date of ten bytes, NONE unless its year is from 1 to 9999."""
    word, last = u64(data, at) ^ YEAR_AND_MONTH, u16(data, at + 8) ^ ZEROS
    if word & -0x0F0F0F0F000F0F01 | (word + 0x0606060600060600) & 0x1010101000101000:  # no dash, or no digit
        return NONE
    if last & 0xF0F0 | (last + 0x0606) & 0x1010:
        return NONE
    year = (word >> 56) * 1000 + (word >> 48 & 15) * 100 + (word >> 40 & 15) * 10 + (word >> 32 & 15)
    month, day = (word >> 16 & 15) * 10 + (word >> 8 & 15), (last >> 8) * 10 + (last & 15)
    if year < 1 or not 1 <= month <= 12 or not 1 <= day <= MONTH_DAYS[month]:
        return NONE
    if month == 2 and day == 29 and (year & 3 or (year % 100 == 0 and year % 400)):
        return NONE
    # Years that begin in March have their leap day at the end; 719,468 days lie between 0000-03-01 and 1970-01-01.
    year -= month <= 2
    century = year // 100
    return 365 * year + (year >> 2) - century + (century >> 2) + MARCH_DAYS[month] + day - 719_469


@inlined
def _clock(data: Any, at: int) -> int:
    """Return the seconds of a time of eight bytes, -1 for anything else."""
    word = u64(data, at) ^ WORD_OF_ZEROS
    if word & -0x0F0F000F0F000F10 | ((word + 0x0606000606000606) & 0x1010001010001010):  # not ':', or no digit
        return -1
    hours = (word >> 56) * 10 + (word >> 48 & 15)
    minutes = (word >> 32 & 15) * 10 + (word >> 24 & 15)
    seconds = (word >> 8 & 15) * 10 + (word & 15)
    return hours * 3600 + minutes * 60 + seconds if hours < 24 and minutes < 60 and seconds < 60 else -1


@inlined
def _zone(data: Any, at: int, end: int) -> int:
    """Return the seconds of ``+00`` or ``-03:30``, NONE for anything else."""
    size = end - at
    if size not in (3, 6):
        return NONE
    sign, hours, minutes = u8(data, at), digits(data, at + 1, at + 3), 0
    if size == 6:
        minutes = digits(data, at + 4, end) if u8(data, at + 3) == COLON else -1
    if sign not in (PLUS, MINUS) or not 0 <= hours < 16 or not 0 <= minutes < 60:
        return NONE
    return (hours * 60 + minutes) * (60 if sign == PLUS else -60)


@inlined
def read_day(data: Any, at: int, length: int) -> tuple[bool, int]:
    """Return whether the bytes are a date such as ``2000-01-01``, and the days since 1970-01-01."""
    day = _day(data, at) if length == DATE_SIZE else NONE
    return day != NONE, day


@inlined
def read_timestamp(data: Any, at: int, end: int, zoned: int) -> tuple[bool, int]:
    """Return whether the bytes are a timestamp, and the microseconds since 1970-01-01.

    The form is ``2000-01-01 00:00:00.000000+00``, with up to six digits of fraction, and a zone if ``zoned``.
    """
    rest = at + DATE_SIZE + 1 + TIME_SIZE
    if rest > end or u8(data, at + DATE_SIZE) != SPACE:
        return False, 0
    day, clock = _day(data, at), _clock(data, at + DATE_SIZE + 1)
    fraction, stop = 0, rest
    if rest < end and u8(data, rest) == POINT:
        stop = rest + 1
        while stop < end and 48 <= u8(data, stop) <= 57:
            stop += 1
        count = stop - rest - 1
        fraction = digits(data, rest + 1, stop) * POWERS[MICROSECONDS - count] if count <= MICROSECONDS else -1
    zone = _zone(data, stop, end) if zoned else 0 if stop == end else NONE
    time = day * DAY + (clock - zone) * SECOND + fraction
    good = day != NONE and clock >= 0 and fraction >= 0 and zone != NONE
    return good and FIRST_DAY * DAY <= time < (LAST_DAY + 1) * DAY, time


@inlined
def _two(number: int) -> int:
    """Return two decimal digits as bytes, minus the bytes of ``00``."""
    return (number // 10) << 8 | number % 10


@inlined
def write_time(data: Any, source: int, size: int, out: Any, at: int) -> int:
    """Write the text of a time in binary format (microseconds since midnight), up to 24:00:00, without trailing zeros.

    Return the offset of its end, NONE if the bytes are not a time.
    """
    number = u64(data, source) if size == 8 else -1
    if not 0 <= number <= DAY:
        return NONE
    seconds, fraction = number // SECOND, number % SECOND
    hours, minutes = seconds // 3600, seconds // 60 % 60
    put_word(out, at, WORD_OF_ZEROS + (_two(hours) << 48 | _two(minutes) << 24 | _two(seconds % 60)))
    at += TIME_SIZE
    if fraction:
        out[at] = POINT
        power, at = MICROSECONDS, at + 1
        while fraction:
            power -= 1
            out[at] = 48 + fraction // POWERS[power]
            fraction %= POWERS[power]
            at += 1
    return at
