"""Python values as PostgreSQL's text: any value, or one of a column, which must be one of the column's type."""

import json
import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.extras import needing
from pgoutput_construct.pgtypes.builtin_types import TYPE_NAMES
from pgoutput_construct.pgtypes.type_registry import CODECS
from pgoutput_construct.pgtypes.value_codec import CODEC_ERRORS
from pgoutput_construct.wire import messages as m

__all__ = ["column_text", "text_of"]

_JSON: Final = frozenset({"json", "jsonb"})
_EXPECTED: Final[Mapping[str, str]] = {
    "bool": "a bool",
    "int16": "an int from -2^15 to 2^15 - 1",
    "int32": "an int from -2^31 to 2^31 - 1",
    "int64": "an int from -2^63 to 2^63 - 1",
    "float32": "a float",
    "float64": "a float",
    "decimal": "a Decimal, an int or a float",
    "binary": "bytes",
    "date32": "a date",
    "timestamp": "a datetime without a time zone",
    "timestamptz": "a datetime with a time zone",
    "list": "a list of values of its elements' type",
}
"""The Python values of a type, by the name of its Arrow type."""
_EXPECTED_BY_NAME: Final[Mapping[str, str]] = {
    "oid": "an int from 0 to 2^32 - 1",
    "json": "JSON as a str, or Json of psycopg",
    "jsonb": "JSON as a str, or Jsonb of psycopg",
    "uuid": "a UUID",
    "time": "a time without a time zone",
    "timetz": "a time with a time zone",
    "interval": "a timedelta",
}


def column_text(value: Any, type_name: str, column: str) -> m.Unchanged | bytes | None:
    """Return a value of a column in text format, as the server writes it under TimeZone UTC.

    None, UNCHANGED and ``Binary`` are returned unchanged.

    Args:
        value: A Python value, or its text as PostgreSQL writes it.
        type_name: The built-in type of the column.
        column: The table and column, for the error.

    Raises:
        PgoutputError: The value is not one of this type.
    """
    if value is None or value is m.UNCHANGED or isinstance(value, m.Binary):
        return value
    try:
        return _checked_text(value, type_name).encode("utf-8", "surrogateescape")
    except (PgoutputError, *CODEC_ERRORS) as error:
        reason = f" ({error})" if isinstance(error, _UnusualTextError) else ""
        raise PgoutputError(
            f"{column}: {value!r:.80} is not a value of {type_name}{reason}: expected {_expected(type_name)}, or "
            f"its text as PostgreSQL writes it"
        ) from None


class _UnusualTextError(PgoutputError):
    """A text that PostgreSQL may read as a value, but never writes."""


def _checked_text(value: Any, type_name: str) -> str:
    if _is_of_other_kind(value, type_name):
        raise PgoutputError("of another type")
    codec = CODECS.get(type_name)
    sent = text_of(_adapted(value, type_name))
    text = sent.decode("utf-8", "surrogateescape") if isinstance(sent, bytes) else ""
    if type_name in _JSON:
        json.loads(text)
    if codec is None or codec.binary is None:  # such as money, which depends on the server's locale
        return text
    written = codec.text(codec.binary(text))
    if isinstance(value, str) and written != text:
        raise _UnusualTextError(f"PostgreSQL writes it as {written!r:.80}")
    return written


def _is_of_other_kind(value: Any, type_name: str) -> bool:
    """Return whether a value's text would be one of the type, but by chance: PostgreSQL itself would write another."""
    if type_name in _JSON:
        return isinstance(value, bool | int | float | bytes | Decimal)
    return TYPE_NAMES[type_name].sends_text in ("plain", "xml") and not isinstance(value, str)


def _adapted(value: Any, type_name: str) -> Any:
    """Return a value so that ``text_of`` writes what the codec of its type reads."""
    if isinstance(value, list):
        element = type_name.removeprefix("_")
        return [None if each is None else _adapted(each, element) for each in value]
    if isinstance(value, datetime) and type_name == "timestamptz" and value.tzinfo is not None:
        return f"{value.astimezone(UTC).replace(tzinfo=None)}+00"
    if isinstance(value, timedelta) and type_name == "interval":
        return _interval(value)
    if type_name == "numeric" and isinstance(value, Decimal | float) and math.isfinite(value):
        return format(Decimal(str(value)), "f")
    return str(value) if isinstance(value, UUID) else value


def _interval(value: timedelta) -> str:
    """Return a timedelta as the server writes an interval of its days, and its seconds of a day."""
    rest = value - timedelta(days=value.days)
    hours, seconds = divmod(rest.seconds, 3600)
    sign = "+" if value.days < 0 else ""
    return f"{value.days} days {sign}{hours:02}:{seconds // 60:02}:{seconds % 60:02}.{rest.microseconds:06}"


def _expected(type_name: str) -> str:
    builtin = TYPE_NAMES[type_name]
    plain = "a str" if builtin.sends_text == "plain" else f"a value that psycopg adapts to {type_name}"
    return _EXPECTED_BY_NAME.get(type_name) or _EXPECTED.get(builtin.arrow, plain)


def text_of(value: Any) -> m.Unchanged | bytes | None:
    """Return a Python value in text format, as a message contains it; raise PgoutputError.

    psycopg dumps it, except numbers, text, bytes, booleans and dates, which need no psycopg. None, UNCHANGED and
    ``Binary`` are returned unchanged.
    """
    if value is None or value is m.UNCHANGED or isinstance(value, m.Binary):
        return value
    if isinstance(value, bytes):
        return b"\\x" + value.hex().encode("ascii")
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if isinstance(value, float) and not math.isfinite(value):
        return b"NaN" if math.isnan(value) else b"Infinity" if value > 0 else b"-Infinity"
    if (
        isinstance(value, str | int | float)
        or type(value) is date
        or (isinstance(value, Decimal) and value.is_finite())
    ):
        return str(value).encode("utf-8", "surrogateescape")
    return _dumped(value)


def _dumped(value: Any) -> bytes:
    with needing("postgres"):
        from psycopg.adapt import PyFormat, Transformer
        from psycopg.errors import DataError, ProgrammingError

    try:
        dumped = Transformer().get_dumper(value, PyFormat.TEXT).dump(value)
    except (ProgrammingError, DataError) as error:
        raise PgoutputError(f"{value!r:.80} cannot be a value: {error}") from error
    return b"" if dumped is None else bytes(dumped)
