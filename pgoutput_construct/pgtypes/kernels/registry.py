"""The table of types: how the values of each become an Arrow array, in text and in binary format."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import pyarrow as pa

from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES, BuiltinType
from pgoutput_construct.pgtypes.kernels import casts, texts
from pgoutput_construct.pgtypes.kernels.arrays import list_of
from pgoutput_construct.pgtypes.kernels.column import Cast, Result, Values
from pgoutput_construct.wire.messages import FORMS, VALUE_TAGS

__all__ = ["TYPES", "find_cast"]


class Casts(NamedTuple):
    """How the values of a type are read; columns of any type are text in Arrow's strings."""

    holds: Callable[[pa.DataType], bool]
    """For which Arrow types: a column that was altered may have a wider one than its type's own."""
    text: Cast
    """The cast of text format."""
    binary: Cast | None
    """The cast of binary format, None for none."""


_is = pa.types
TYPES: Final[Mapping[str, Casts]] = {
    "bool": Casts(_is.is_boolean, casts.BOOL_TEXT, casts.BOOL_BINARY),
    "int2": Casts(_is.is_integer, casts.INTEGER_TEXT, casts.INTEGER_BINARY[2]),
    "int4": Casts(_is.is_integer, casts.INTEGER_TEXT, casts.INTEGER_BINARY[4]),
    "int8": Casts(_is.is_integer, casts.INTEGER_TEXT, casts.INTEGER_BINARY[8]),
    "oid": Casts(_is.is_integer, casts.INTEGER_TEXT, casts.OID_BINARY),
    "float4": Casts(_is.is_floating, casts.FLOAT_TEXT, casts.FLOAT_BINARY[4]),
    "float8": Casts(_is.is_floating, casts.FLOAT_TEXT, casts.FLOAT_BINARY[8]),
    "numeric": Casts(_is.is_decimal, casts.DECIMAL_TEXT, casts.DECIMAL_BINARY),
    "date": Casts(_is.is_date, casts.DATE_TEXT, casts.DATE_BINARY),
    "timestamp": Casts(_is.is_timestamp, casts.TIMESTAMP_TEXT, casts.TIMESTAMP_BINARY),
    "timestamptz": Casts(_is.is_timestamp, casts.TIMESTAMP_TEXT, casts.TIMESTAMP_BINARY),
    "time": Casts(_is.is_string, casts.TEXT, texts.TIME_BINARY),
    "bytea": Casts(_is.is_binary, texts.BYTEA_TEXT, casts.TEXT),
    "uuid": Casts(_is.is_string, casts.TEXT, texts.UUID_BINARY),
    "inet": Casts(_is.is_string, casts.TEXT, texts.INET_BINARY),
    "cidr": Casts(_is.is_string, casts.TEXT, texts.INET_BINARY),
    "jsonb": Casts(_is.is_string, casts.TEXT, casts.JSONB_BINARY),
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "json", "xml"), Casts(_is.is_string, casts.TEXT, casts.TEXT)),
}
"""By the name of the built-in type (pg_type)."""

CHOSEN: Final[Mapping[str, Casts]] = {
    "numeric": Casts(_is.is_floating, casts.FLOAT_TEXT, None),
    "uuid": Casts(_is.is_binary, texts.UUID_TEXT, casts.TEXT),
}
"""Types that a reader may choose beside those of TYPES."""

NARROW: Final[Mapping[str, pa.DataType]] = {
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "date": pa.date32(),
}
"""Types whose values may go into a wider one, which a column that was altered has."""


_FORM_OF: Final[Mapping[int, str]] = {VALUE_TAGS[kind]: form for kind, form in FORMS.items()}
"""What the bytes after a tag are, text or binary format; other kinds of values are loaded one by one."""


def find_cast(code: int, type_oid: int, target: pa.DataType) -> Cast | None:
    """Return how values with this tag (VALUE_TAGS) are read by a kernel, None where they are loaded one by one."""
    builtin = BUILTIN_TYPES.get(type_oid)
    if code not in _FORM_OF:
        return None
    if _is.is_list(target):
        if code not in (VALUE_TAGS["text"], VALUE_TAGS["binary"]):
            return None
        element = find_cast(code, builtin.element_oid, target.value_type) if builtin is not None else None
        return list_of(element) if element is not None else None
    if _FORM_OF[code] == "text" and _is.is_string(target):
        return casts.TEXT
    own = NARROW.get(builtin.name) if builtin is not None else None
    if own is not None and own != target and _is_wider(target, own):
        cast = find_cast(code, type_oid, own)
        return _through(cast, own) if cast is not None else None
    return None if builtin is None else _own_cast(code, builtin, target)


def _own_cast(code: int, builtin: BuiltinType, target: pa.DataType) -> Cast | None:
    """Return the cast of a type, or that of the type whose format it has."""
    is_text = _FORM_OF[code] == "text"
    for known in (table.get(builtin.name) for table in (TYPES, CHOSEN)):
        if known is not None and known.holds(target):
            return known.text if is_text else known.binary
    alike = builtin.text_like if is_text else builtin.binary_like
    return find_cast(code, alike, target) if alike and builtin.name not in TYPES else None


def _is_wider(target: pa.DataType, own: pa.DataType) -> bool:
    """Tell whether values of NARROW go into a type: numbers into other numbers, dates into timestamps of no zone."""
    return bool(target == pa.timestamp("us") if _is.is_date(own) else _is.is_decimal(target) or _is.is_floating(target))


def _through(cast: Cast, own: pa.DataType) -> Cast:
    """Return a cast of values that are read as of their own type, and then go into a wider one."""

    def through(values: Values, target: pa.DataType) -> Result:
        array, left = cast(values, own)
        return array.cast(target), left

    return through
