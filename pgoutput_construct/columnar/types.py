"""Which Arrow type a column gets, by the OID and the modifier of its PostgreSQL type.

| PostgreSQL | Arrow |
|---|---|
| bool, int2, int4, int8, float4, float8 | the same |
| oid | int64 (it is unsigned) |
| numeric(p, s) with p <= 38 and 0 <= s <= p | decimal128(p, s) |
| bytea | binary |
| date | date32 |
| timestamp | timestamp(us) |
| timestamptz | timestamp(us, UTC) |
| a one-dimensional array of any built-in type | list |
| everything else | string: PostgreSQL's text |

Values that the Arrow type cannot hold are not lost: the column is null, and the row's map ``_untyped`` has
PostgreSQL's text under the column's name. These are NaN and infinities in numeric(p, s), dates and timestamps that are
infinite or outside the years 1 to 9999, arrays of several dimensions or with bounds other than 1, and arrays that
hold any such value. Bytes for which no text is known (binary format of rare types, text that is not UTF-8) stand
there as ``\\x`` and hexadecimal digits.

A domain counts as its base type, without that type's modifier (a Type message names no more); enums, composites and
arrays of types that are not built in are string.
"""

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from pgoutput_construct.stream.builtin_types import BUILTIN_TYPES, BuiltinType
from pgoutput_construct.stream.values import base_oid
from pgoutput_construct.wire.messages import RelationColumn, Type

__all__ = ["UNTYPED", "arrow_type", "unify"]

UNTYPED: Final = pa.map_(pa.string(), pa.string())
"""The type of ``_untyped``: column name -> text; the old row's columns stand under ``_before.`` and their name."""

_MAX_PRECISION = 38

_ARROW: Final[Mapping[str, pa.DataType]] = {
    "bool": pa.bool_(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "binary": pa.binary(),
    "date32": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "string": pa.string(),
}
"""By the names that spec/builtin_types.yaml has for them; ``decimal`` depends on the column's modifier."""


def arrow_type(column: RelationColumn, types: Mapping[int, Type]) -> pa.DataType:
    """Return the Arrow type of a column; ``types`` are the Type messages that came before its Relation."""
    builtin = BUILTIN_TYPES.get(base_oid(column.type_oid, types))
    if builtin is None:
        return pa.string()
    if builtin.arrow == "list":
        return pa.list_(_scalar(BUILTIN_TYPES[builtin.element_oid], column.type_modifier))
    return _scalar(builtin, column.type_modifier)


def _scalar(builtin: BuiltinType, modifier: int) -> pa.DataType:
    return _decimal(modifier) if builtin.arrow == "decimal" else _ARROW[builtin.arrow]


def _decimal(modifier: int) -> pa.DataType:
    # numeric.c: precision in the upper half, scale in 11 bits, signed since PostgreSQL 15; 4 is VARHDRSZ.
    precision, scale = (modifier - 4) >> 16 & 0xFFFF, ((modifier - 4 & 0x7FF) ^ 1024) - 1024
    fits = modifier >= 4 and precision <= _MAX_PRECISION and 0 <= scale <= precision
    return pa.decimal128(precision, scale) if fits else pa.string()


def unify(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return a type for the values of ``one`` and of ``other``: the wider number, or string when there is none.

    Lists are unified by their elements.
    """
    if one.equals(other):
        return one
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(unify(one.value_type, other.value_type))
    for same_kind in (pa.types.is_integer, pa.types.is_floating):
        if same_kind(one) and same_kind(other):
            return max(one, other, key=lambda kind: kind.bit_width)
    if pa.types.is_decimal(one) and pa.types.is_decimal(other):
        return _wider_decimal(one, other)
    return pa.string()


def _wider_decimal(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    scale = max(one.scale, other.scale)
    precision = max(one.precision - one.scale, other.precision - other.scale) + scale
    return pa.decimal128(precision, scale) if precision <= _MAX_PRECISION else pa.string()
