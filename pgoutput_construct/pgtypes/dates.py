"""Dates, times and intervals (date.c, timestamp.c), under DateStyle ISO, IntervalStyle postgres and TimeZone UTC.

Python's datetime supports neither infinity nor years before 1 or after 9999, and psycopg loads a month of an interval
as thirty days. Therefore text is computed from the numbers on the wire.

| PostgreSQL | Arrow |
|---|---|
| date | date32 |
| timestamp | timestamp(us) |
| timestamptz | timestamp(us, UTC) |
| time, timetz, interval | string |
"""

import re
import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pgoutput_construct.pgtypes.family import ArrowKind, ArrowTypes, Compiled, Family
from pgoutput_construct.pgtypes.value_codec import Codec
from pgoutput_construct.wire.types import POSTGRES_EPOCH, UNIX_TO_POSTGRES, Timestamp

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column
    from pyspark.sql import types as T  # noqa: N812 - as Spark's documentation has it

__all__ = ["FAMILY", "FIRST_TIMESTAMP", "LAST_TIMESTAMP"]

FIRST_TIMESTAMP: Final = Timestamp.from_datetime(datetime.min.replace(tzinfo=UTC))
"""The first microsecond of the year 1: the earliest timestamp of Python and Spark."""
LAST_TIMESTAMP: Final = Timestamp.from_datetime(datetime.max.replace(tzinfo=UTC))
"""The last microsecond of the year 9999."""

_DAY: Final = 86_400_000_000
"""Microseconds."""
_EPOCH: Final = POSTGRES_EPOCH.toordinal()
_CYCLE_YEARS: Final = 400
_CYCLE_DAYS: Final = 146_097
"""The Gregorian calendar repeats after 400 years."""
_DATE_INFINITY: Final = {"infinity": 2**31 - 1, "-infinity": -(2**31)}
_TIME_INFINITY: Final = {"infinity": 2**63 - 1, "-infinity": -(2**63)}
_INTERVAL_INFINITY: Final = {
    "infinity": (2**63 - 1, 2**31 - 1, 2**31 - 1),
    "-infinity": (-(2**63), -(2**31), -(2**31)),
}
"""Microseconds, days, months; since PostgreSQL 17."""

_DATE_WORDS = {days: text for text, days in _DATE_INFINITY.items()}
_TIME_WORDS = {microseconds: text for text, microseconds in _TIME_INFINITY.items()}
_INTERVAL_WORDS = {numbers: text for text, numbers in _INTERVAL_INFINITY.items()}


def _date_text(data: bytes) -> str:
    """Write a date: 4 bytes, days since 2000-01-01 (date_send())."""
    (days,) = struct.unpack("!i", data)
    if days in _DATE_WORDS:
        return _DATE_WORDS[days]
    day, era = _date(days)
    return day + era


def _timestamp_text(data: bytes, zone: str = "") -> str:
    """Write a timestamp, and its zone: 8 bytes, microseconds since 2000-01-01 (timestamp_send())."""
    (microseconds,) = struct.unpack("!q", data)
    if microseconds in _TIME_WORDS:
        return _TIME_WORDS[microseconds]
    days, rest = divmod(microseconds, _DAY)
    day, era = _date(days)
    return f"{day} {_clock(rest)}{zone}{era}"


def _time_text(data: bytes) -> str:
    """Write a time of day: 8 bytes, microseconds since midnight, 24:00:00 included (time_send())."""
    return _clock(*struct.unpack("!q", data))


def _timetz_text(data: bytes) -> str:
    """Write a time of day with its zone: as a time, and 4 bytes, seconds west of Greenwich (timetz_send())."""
    microseconds, west = struct.unpack("!qi", data)
    minutes, seconds = divmod(abs(west), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [hours, minutes, seconds] if seconds else [hours, minutes] if minutes else [hours]
    return _clock(microseconds) + ("-" if west > 0 else "+") + ":".join(f"{part:02}" for part in parts)


def _interval_text(data: bytes) -> str:
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
    cycles, ordinal = divmod(_EPOCH + days - 1, _CYCLE_DAYS)
    day = date(1, 1, 1) + timedelta(days=ordinal)
    year = day.year + cycles * _CYCLE_YEARS
    era = "" if year > 0 else " BC"  # there is no year 0: the year before 1 is 1 BC
    return f"{year if year > 0 else 1 - year:04}-{day.month:02}-{day.day:02}", era


def _clock(microseconds: int) -> str:
    seconds, fraction = divmod(microseconds, 1_000_000)
    minutes, seconds = divmod(seconds, 60)
    text = f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"
    return f"{text}.{fraction:06}".rstrip("0") if fraction else text


_DATE_TEXT = re.compile(r"(\d{4,})-(\d\d)-(\d\d)")
_CLOCK_TEXT = re.compile(r"(\d\d+):(\d\d):(\d\d)(?:\.(\d{1,6}))?")
_ZONE_TEXT = re.compile(r"([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?")
_INTERVAL_TEXT = re.compile(
    r"(?:([+-]?\d+) years? ?)?(?:([+-]?\d+) mons? ?)?(?:([+-]?\d+) days? ?)?(?:([+-]?)(\d\d+:\d\d:\d\d(?:\.\d{1,6})?))?"
)


def _found(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    if found is None:
        raise ValueError("DateStyle is not ISO, or IntervalStyle not postgres")
    return found


def _days(text: str) -> int:
    """Parse a finite date as days since 2000-01-01."""
    day, _, era = text.partition(" ")
    year, month, number = map(int, _found(_DATE_TEXT, day).groups())
    if era not in ("", "BC"):
        raise ValueError(f"{era!r} is not an era")
    cycles, year = divmod((1 - year if era else year) - 1, _CYCLE_YEARS)
    return date(year + 1, month, number).toordinal() + cycles * _CYCLE_DAYS - _EPOCH


def _microseconds(text: str) -> int:
    hours, minutes, seconds, fraction = _found(_CLOCK_TEXT, text).groups()
    return ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 1_000_000 + int((fraction or "").ljust(6, "0"))


def _date_binary(text: str) -> bytes:
    infinite = _DATE_INFINITY.get(text)
    return struct.pack("!i", _days(text) if infinite is None else infinite)


def _timestamp_binary(text: str, zone: str = "") -> bytes:
    if text in _TIME_INFINITY:
        return struct.pack("!q", _TIME_INFINITY[text])
    day, clock, *era = text.split(" ")
    if not clock.endswith(zone):
        raise ValueError("TimeZone is not UTC")
    return struct.pack("!q", _days(" ".join([day, *era])) * _DAY + _microseconds(clock.removesuffix(zone)))


def _time_binary(text: str) -> bytes:
    return struct.pack("!q", _microseconds(text))


def _timetz_binary(text: str) -> bytes:
    at = max(text.find("+"), text.find("-"))
    sign, *parts = _found(_ZONE_TEXT, text[at:]).groups(default="0")
    hours, minutes, seconds = map(int, parts)
    east = (hours * 60 + minutes) * 60 + seconds
    return struct.pack("!qi", _microseconds(text[:at]), east if sign == "-" else -east)


def _interval_binary(text: str) -> bytes:
    if text in _INTERVAL_INFINITY:
        return struct.pack("!qii", *_INTERVAL_INFINITY[text])
    years, months, days, sign, clock = _found(_INTERVAL_TEXT, text).groups()
    microseconds = _microseconds(clock) if clock else 0
    months = int(years or 0) * 12 + int(months or 0)
    return struct.pack("!qii", -microseconds if sign == "-" else microseconds, int(days or 0), months)


# In Arrow.


def _arrow() -> ArrowTypes:
    import pyarrow as pa

    plain, zoned = pa.timestamp("us"), pa.timestamp("us", tz="UTC")
    both = {pa.date32(), plain}  # not timestamptz: which instant a date is depends on the time zone
    return ArrowTypes(
        {"date32": pa.date32(), "timestamp": plain, "timestamptz": zoned},
        (
            ArrowKind(pa.types.is_date, lambda value, _: type(value) is date),
            ArrowKind(pa.types.is_timestamp, _is_timestamp, _as_timestamp),
        ),
        lambda one, other: plain if {one, other} == both else None,
    )


def _is_timestamp(value: Any, target: "pa.DataType") -> bool:
    if not isinstance(value, datetime):
        return False
    try:
        return bool(value.tzinfo) == bool(target.tz) and (not target.tz or bool(value.astimezone(UTC)))
    except OverflowError:  # outside of the years 1 to 9999 in UTC
        return False


def _as_timestamp(value: Any, target: "pa.DataType") -> Any:
    return datetime.combine(value, time()) if type(value) is date and not target.tz else value


def _compiled() -> Mapping[str, Sequence[Compiled]]:
    import pyarrow as pa

    from pgoutput_construct.pgtypes.kernels import row_plan, text_casts
    from pgoutput_construct.pgtypes.kernels.date_readers import FIRST_DAY, LAST_DAY
    from pgoutput_construct.pgtypes.kernels.planned_casts import TEXT, PlannedCast, within

    def since_2000(size: int, unit: int) -> PlannedCast:
        """Read days (4 bytes) or microseconds (8); infinities and years outside 1 to 9999 are left to the slow path."""
        first, last = FIRST_DAY * unit, (LAST_DAY + 1) * unit - 1
        epoch = UNIX_TO_POSTGRES // _DAY * unit
        return PlannedCast(size, within(first - epoch, last - epoch), epoch)

    days = Compiled(pa.types.is_date, PlannedCast(row_plan.DATE, within(0, 0)), since_2000(4, unit=1))

    def timestamps(zoned: bool) -> Compiled:
        # A timestamp without a time zone is no instant: neither type is read into the other's column.
        def holds(target: pa.DataType) -> bool:
            return pa.types.is_timestamp(target) and (target.tz is not None) == zoned

        return Compiled(holds, PlannedCast(row_plan.TIMESTAMP, within(int(zoned), 0)), since_2000(8, unit=_DAY))

    clock = Compiled(pa.types.is_string, TEXT, text_casts.TIME_BINARY)
    return {"date": [days], "timestamp": [timestamps(False)], "timestamptz": [timestamps(True)], "time": [clock]}


# In Spark.


def _spark_timestamptz(value: "Column", kind: "T.DataType") -> "Column":
    """Return the text of a timestamp in UTC, whatever the session's time zone; timestamp_ntz avoids its DST changes."""
    from pyspark.sql import functions as F  # noqa: N812

    seconds = F.unix_micros(value).cast("decimal(20,0)") * F.lit("0.000001").cast("decimal(6,6)")
    nothing = F.lit(0)
    since = F.make_dt_interval(nothing, nothing, nothing, seconds.cast("decimal(18,6)"))
    return F.concat((F.lit("1970-01-01").cast("timestamp_ntz") + since).cast("string"), F.lit("+00"))


FAMILY: Final = Family(
    {
        "date": Codec(_date_text, _date_binary),
        "time": Codec(_time_text, _time_binary),
        "timestamp": Codec(_timestamp_text, _timestamp_binary),
        "timestamptz": Codec(partial(_timestamp_text, zone="+00"), partial(_timestamp_binary, zone="+00")),
        "interval": Codec(_interval_text, _interval_binary),
        "timetz": Codec(_timetz_text, _timetz_binary),
    },
    arrow=_arrow,
    compiled=_compiled,
    spark={"TimestampType": _spark_timestamptz},
)
