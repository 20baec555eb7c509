"""Dates, times and intervals as PostgreSQL writes them (DateStyle ISO, IntervalStyle postgres, TimeZone UTC).

Python's datetime holds neither infinity nor years before 1 or after 9999, and psycopg counts a month of an interval
as thirty days; so these are written from the numbers on the wire.
"""

import struct
from datetime import UTC, date, datetime, timedelta
from typing import Final

from pgoutput_construct.wire.types import POSTGRES_EPOCH, Timestamp

__all__ = [
    "CYCLE_DAYS",
    "CYCLE_YEARS",
    "DATE_INFINITY",
    "DAY",
    "EPOCH",
    "FIRST_TIMESTAMP",
    "INTERVAL_INFINITY",
    "LAST_TIMESTAMP",
    "TIME_INFINITY",
    "date_text",
    "interval_text",
    "time_text",
    "timestamp_text",
    "timetz_text",
]

FIRST_TIMESTAMP: Final = Timestamp.from_datetime(datetime.min.replace(tzinfo=UTC))
"""The first microsecond of the year 1, since 2000: before it, neither Python nor Spark has timestamps."""
LAST_TIMESTAMP: Final = Timestamp.from_datetime(datetime.max.replace(tzinfo=UTC))
"""The last microsecond of the year 9999."""

DAY: Final = 86_400_000_000
"""Microseconds."""
EPOCH: Final = POSTGRES_EPOCH.toordinal()
CYCLE_YEARS: Final = 400
CYCLE_DAYS: Final = 146_097
"""The Gregorian calendar repeats itself."""
DATE_INFINITY: Final = {"infinity": 2**31 - 1, "-infinity": -(2**31)}
TIME_INFINITY: Final = {"infinity": 2**63 - 1, "-infinity": -(2**63)}
INTERVAL_INFINITY: Final = {
    "infinity": (2**63 - 1, 2**31 - 1, 2**31 - 1),
    "-infinity": (-(2**63), -(2**31), -(2**31)),
}
"""Microseconds, days, months; PostgreSQL has these since 17."""

_DATE_WORDS = {days: text for text, days in DATE_INFINITY.items()}
_TIME_WORDS = {microseconds: text for text, microseconds in TIME_INFINITY.items()}
_INTERVAL_WORDS = {numbers: text for text, numbers in INTERVAL_INFINITY.items()}


def date_text(data: bytes) -> str:
    """Write a date: 4 bytes, days since 2000-01-01 (date_send())."""
    (days,) = struct.unpack("!i", data)
    if days in _DATE_WORDS:
        return _DATE_WORDS[days]
    day, era = _date(days)
    return day + era


def timestamp_text(data: bytes, zone: str = "") -> str:
    """Write a timestamp, and its zone: 8 bytes, microseconds since 2000-01-01 (timestamp_send())."""
    (microseconds,) = struct.unpack("!q", data)
    if microseconds in _TIME_WORDS:
        return _TIME_WORDS[microseconds]
    days, rest = divmod(microseconds, DAY)
    day, era = _date(days)
    return f"{day} {_clock(rest)}{zone}{era}"


def time_text(data: bytes) -> str:
    """Write a time of day: 8 bytes, microseconds since midnight, 24:00:00 included (time_send())."""
    return _clock(*struct.unpack("!q", data))


def timetz_text(data: bytes) -> str:
    """Write a time of day with its zone: as a time, and 4 bytes, seconds west of Greenwich (timetz_send())."""
    microseconds, west = struct.unpack("!qi", data)
    minutes, seconds = divmod(abs(west), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [hours, minutes, seconds] if seconds else [hours, minutes] if minutes else [hours]
    return _clock(microseconds) + ("-" if west > 0 else "+") + ":".join(f"{part:02}" for part in parts)


def interval_text(data: bytes) -> str:
    """Write an interval: 8 bytes microseconds, 4 bytes days, 4 bytes months (interval_send())."""
    microseconds, days, months = struct.unpack("!qii", data)
    if (microseconds, days, months) in _INTERVAL_WORDS:
        return _INTERVAL_WORDS[microseconds, days, months]
    sign = -1 if months < 0 else 1
    years, months = (sign * part for part in divmod(abs(months), 12))
    text, before = "", False
    # AddPostgresIntPart(): a part after a negative one has its plus sign written.
    for number, unit in ((years, "year"), (months, "mon"), (days, "day")):
        if number:
            plus, plural = "+" if before and number > 0 else "", "" if number == 1 else "s"
            text += f"{' ' if text else ''}{plus}{number} {unit}{plural}"
            before = number < 0
    if text and not microseconds:
        return text
    sign_text = "-" if microseconds < 0 else "+" if before else ""
    return f"{text}{' ' if text else ''}{sign_text}{_clock(abs(microseconds))}"


def _date(days: int) -> tuple[str, str]:
    """Write days since 2000-01-01, and the era."""
    cycles, ordinal = divmod(EPOCH + days - 1, CYCLE_DAYS)
    day = date(1, 1, 1) + timedelta(days=ordinal)
    year = day.year + cycles * CYCLE_YEARS
    era = "" if year > 0 else " BC"  # there is no year 0: before 1 comes 1 BC
    return f"{year if year > 0 else 1 - year:04}-{day.month:02}-{day.day:02}", era


def _clock(microseconds: int) -> str:
    seconds, fraction = divmod(microseconds, 1_000_000)
    minutes, seconds = divmod(seconds, 60)
    text = f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"
    return f"{text}.{fraction:06}".rstrip("0") if fraction else text
