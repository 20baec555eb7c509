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

from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa

from pgoutput_construct.wire.messages import RelationColumn, Type

__all__ = ["ARRAYS", "UNTYPED", "arrow_type", "base_oid", "unify"]

UNTYPED: Final = pa.map_(pa.string(), pa.string())
"""The type of ``_untyped``: column name -> text; the old row's columns stand under ``_before.`` and their name."""

_MAX_PRECISION = 38
_NUMERIC = 1700


def _numeric(modifier: int) -> pa.DataType:
    # numeric.c: precision in the upper half, scale in 11 bits, signed since PostgreSQL 15; 4 is VARHDRSZ.
    precision, scale = (modifier - 4) >> 16 & 0xFFFF, ((modifier - 4 & 0x7FF) ^ 1024) - 1024
    fits = modifier >= 4 and precision <= _MAX_PRECISION and 0 <= scale <= precision
    return pa.decimal128(precision, scale) if fits else pa.string()


_SCALARS: Final[Mapping[int, pa.DataType]] = {
    16: pa.bool_(),
    17: pa.binary(),
    20: pa.int64(),
    21: pa.int16(),
    23: pa.int32(),
    26: pa.int64(),
    700: pa.float32(),
    701: pa.float64(),
    1082: pa.date32(),
    1114: pa.timestamp("us"),
    1184: pa.timestamp("us", tz="UTC"),
}
"""By OID in pg_type; a type that is not here is string."""

_MODIFIED: Final[Mapping[int, Callable[[int], pa.DataType]]] = {_NUMERIC: _numeric}
"""The types whose Arrow type depends on the modifier."""


def _builtin() -> tuple[dict[str, int], dict[int, int]]:
    from psycopg.postgres import types

    # box alone separates the elements of its arrays with semicolons: those stay text.
    arrays = {info.array_oid: info.oid for info in types if info.array_oid and info.name != "box"}
    return {info.name: info.oid for info in types}, arrays


_NAMES, ARRAYS = _builtin()
"""OIDs by name, and the OID of the element type by that of the array type (pg_type, built-in types)."""


def base_oid(type_oid: int, types: Mapping[int, Type]) -> int:
    """Return the OID of a domain's built-in base type, any other OID as it is."""
    # logicalrep_write_typ() sends a domain's own OID with the name of its base type; "" is pg_catalog.
    declared = types.get(type_oid)
    if declared is None or declared.namespace:
        return type_oid
    name = declared.name
    if name.startswith("_") and name[1:] in _NAMES:
        element = _NAMES[name[1:]]
        return next((array for array, of in ARRAYS.items() if of == element), type_oid)
    return _NAMES.get(name, type_oid)


def arrow_type(column: RelationColumn, types: Mapping[int, Type]) -> pa.DataType:
    """Return the Arrow type of a column; ``types`` are the Type messages that came before its Relation."""
    oid = base_oid(column.type_oid, types)
    if oid in ARRAYS:
        return pa.list_(_scalar(ARRAYS[oid], column.type_modifier))
    return _scalar(oid, column.type_modifier)


def _scalar(oid: int, modifier: int) -> pa.DataType:
    return _MODIFIED[oid](modifier) if oid in _MODIFIED else _SCALARS.get(oid, pa.string())


def unify(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return a type for the values of both: the wider number, or string when there is none (list by element)."""
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
