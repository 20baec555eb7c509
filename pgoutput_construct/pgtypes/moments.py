"""Dates, times and intervals, in text as ``times`` writes it, back into binary format."""

import re
import struct
from datetime import date
from functools import partial
from typing import Final

from pgoutput_construct.pgtypes import times
from pgoutput_construct.pgtypes.form import Form

__all__ = ["MOMENTS"]

_DATE = re.compile(r"(\d{4,})-(\d\d)-(\d\d)")
_CLOCK = re.compile(r"(\d\d+):(\d\d):(\d\d)(?:\.(\d{1,6}))?")
_ZONE = re.compile(r"([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?")
_INTERVAL = re.compile(
    r"(?:([+-]?\d+) years? ?)?(?:([+-]?\d+) mons? ?)?(?:([+-]?\d+) days? ?)?(?:([+-]?)(\d\d+:\d\d:\d\d(?:\.\d{1,6})?))?"
)


def _found(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    if found is None:
        raise ValueError("DateStyle is not ISO, or IntervalStyle not postgres")
    return found


def _days(text: str) -> int:
    """Read a date, without what is infinite, as days since 2000-01-01."""
    day, _, era = text.partition(" ")
    year, month, number = map(int, _found(_DATE, day).groups())
    if era not in ("", "BC"):
        raise ValueError("this is no era")
    cycles, year = divmod((1 - year if era else year) - 1, times.CYCLE_YEARS)
    return date(year + 1, month, number).toordinal() + cycles * times.CYCLE_DAYS - times.EPOCH


def _microseconds(text: str) -> int:
    hours, minutes, seconds, fraction = _found(_CLOCK, text).groups()
    return ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 1_000_000 + int((fraction or "").ljust(6, "0"))


def _date_binary(text: str) -> bytes:
    infinite = times.DATE_INFINITY.get(text)
    return struct.pack("!i", _days(text) if infinite is None else infinite)


def _timestamp_binary(text: str, zone: str = "") -> bytes:
    if text in times.TIME_INFINITY:
        return struct.pack("!q", times.TIME_INFINITY[text])
    day, clock, *era = text.split(" ")
    if not clock.endswith(zone):
        raise ValueError("TimeZone is not UTC")
    return struct.pack("!q", _days(" ".join([day, *era])) * times.DAY + _microseconds(clock.removesuffix(zone)))


def _time_binary(text: str) -> bytes:
    return struct.pack("!q", _microseconds(text))


def _timetz_binary(text: str) -> bytes:
    at = max(text.find("+"), text.find("-"))
    sign, *parts = _found(_ZONE, text[at:]).groups(default="0")
    hours, minutes, seconds = map(int, parts)
    east = (hours * 60 + minutes) * 60 + seconds
    return struct.pack("!qi", _microseconds(text[:at]), east if sign == "-" else -east)


def _interval_binary(text: str) -> bytes:
    if text in times.INTERVAL_INFINITY:
        return struct.pack("!qii", *times.INTERVAL_INFINITY[text])
    years, months, days, sign, clock = _found(_INTERVAL, text).groups()
    microseconds = _microseconds(clock) if clock else 0
    months = int(years or 0) * 12 + int(months or 0)
    return struct.pack("!qii", -microseconds if sign == "-" else microseconds, int(days or 0), months)


MOMENTS: Final = {
    "date": Form(times.date_text, _date_binary),
    "time": Form(times.time_text, _time_binary),
    "timestamp": Form(times.timestamp_text, _timestamp_binary),
    "timestamptz": Form(partial(times.timestamp_text, zone="+00"), partial(_timestamp_binary, zone="+00")),
    "interval": Form(times.interval_text, _interval_binary),
    "timetz": Form(times.timetz_text, _timetz_binary),
}
"""By name in pg_type."""
