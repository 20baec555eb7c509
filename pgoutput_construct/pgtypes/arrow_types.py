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

A reader may choose other types (``chosen_types``). A column that was altered gets a type that holds its values of
before, too (``unify``).

Values that the Arrow type cannot hold are not lost: the column is null, and the row's map ``_untyped`` has
PostgreSQL's text under the column's name. These are NaN and infinities in numeric(p, s), dates and timestamps that are
infinite or outside the years 1 to 9999, arrays of several dimensions or with bounds other than 1, and arrays that
hold any such value. Bytes for which no text is known stand there as ``\\x`` and hexadecimal digits: text that is not
UTF-8, and the binary format of money, of regclass and its like, and of types that are not built in, unless they are
enums, composites or arrays of them.

A domain counts as its base type, without that type's modifier (a Type message names no more); enums, composites and
arrays of types that are not built in are string.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES, TYPE_NAMES, BuiltinType
from pgoutput_construct.pgtypes.loader import base_oid
from pgoutput_construct.wire.messages import RelationColumn, Type

__all__ = ["AS_USUAL", "UNTYPED", "Choices", "arrow_type", "chosen_types", "unify"]

Choices = Mapping[str, pa.DataType]
"""Arrow types by the names of built-in types, for columns that would have others."""

AS_USUAL: Final[Choices] = MappingProxyType({})
"""Nothing is chosen."""

UNTYPED: Final = pa.map_(pa.string(), pa.string())
"""The type of ``_untyped``: column name -> text; the old row's columns stand under ``_before.`` and their name."""

_MAX_PRECISION = 38
_DIGITS: Final[Mapping[pa.DataType, int]] = {pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
"""How many decimal digits integers have."""
_EXACT: Final = frozenset(
    {
        (pa.int16(), pa.float32()),
        (pa.int16(), pa.float64()),
        (pa.int32(), pa.float64()),
        (pa.date32(), pa.timestamp("us")),
    }
)
"""Types, and those that hold each of their values exactly. A timestamptz of a date is another one in each time zone."""
_BETWEEN: Final = re.compile(r",(?![^(]*\))")
_DECIMAL: Final = re.compile(r"decimal\( *([0-9]{1,2}) *, *([0-9]{1,2}) *\)")
_FORM: Final = "write numeric=decimal(38,10), numeric=double, uuid=binary, or NAME=string; several with commas between"

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


def chosen_types(text: str) -> Choices:
    """Read what types a reader chooses, such as ``numeric=decimal(38,10),uuid=binary``.

    Each is of a built-in type, by its name in pg_type: ``string`` (PostgreSQL's text) for any; ``decimal(p,s)`` or
    ``double`` for a numeric whose own modifier says no decimal that Arrow holds; ``binary`` for a uuid. Arrays of the
    type are lists of it. What a type then cannot hold stands in ``_untyped``. Raises PgoutputError for anything else.
    """
    found: dict[str, pa.DataType] = {}
    for part in filter(None, (each.strip() for each in _BETWEEN.split(text))):
        name, _, kind = (each.strip() for each in part.partition("="))
        if name not in TYPE_NAMES or name.startswith("_"):
            raise PgoutputError(f"types: {name!r} is no built-in type of PostgreSQL by its name in pg_type: {_FORM}")
        found[name] = _chosen(name, kind)
    return found


def arrow_type(column: RelationColumn, types: Mapping[int, Type], choices: Choices = AS_USUAL) -> pa.DataType:
    """Return the Arrow type of a column; ``types`` are the Type messages that came before its Relation."""
    builtin = BUILTIN_TYPES.get(base_oid(column.type_oid, types))
    if builtin is None:
        return pa.string()
    if builtin.arrow == "list":
        return pa.list_(_scalar(BUILTIN_TYPES[builtin.element_oid], column.type_modifier, choices))
    return _scalar(builtin, column.type_modifier, choices)


def _scalar(builtin: BuiltinType, modifier: int, choices: Choices) -> pa.DataType:
    chosen = choices.get(builtin.name)
    if builtin.arrow != "decimal":
        return chosen or _ARROW[builtin.arrow]
    own = _decimal(modifier)
    return chosen if chosen is not None and (chosen == pa.string() or own is None) else own or pa.string()


def _chosen(name: str, kind: str) -> pa.DataType:
    decimal = _DECIMAL.fullmatch(kind)
    if name == "numeric" and decimal is not None:
        precision, scale = int(decimal[1]), int(decimal[2])
        if 1 <= precision <= _MAX_PRECISION and scale <= precision:
            return pa.decimal128(precision, scale)
    found = {"string": pa.string(), ("numeric", "double"): pa.float64(), ("uuid", "binary"): pa.binary()}
    for key in (kind, (name, kind)):
        if key in found:
            return found[key]
    raise PgoutputError(f"types: {name} cannot be {kind!r}: {_FORM}")


def _decimal(modifier: int) -> pa.DataType | None:
    # numeric.c: precision in the upper half, scale in 11 bits, signed since PostgreSQL 15; 4 is VARHDRSZ.
    precision, scale = (modifier - 4) >> 16 & 0xFFFF, ((modifier - 4 & 0x7FF) ^ 1024) - 1024
    fits = modifier >= 4 and precision <= _MAX_PRECISION and 0 <= scale <= precision
    return pa.decimal128(precision, scale) if fits else None


def unify(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return a type for the values of ``one`` and of ``other``: the wider one, or string when there is none.

    Integers go into decimals, and into floating-point numbers that hold each of them; dates into timestamps without a
    time zone. Lists are unified by their elements.
    """
    if one.equals(other):
        return one
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(unify(one.value_type, other.value_type))
    for same_kind in (pa.types.is_integer, pa.types.is_floating):
        if same_kind(one) and same_kind(other):
            return max(one, other, key=lambda kind: kind.bit_width)
    return _mixed(one, other) or _mixed(other, one) or pa.string()


def _mixed(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return one of two types that holds the values of both, or a decimal that does."""
    if (one, other) in _EXACT:
        return other
    if not pa.types.is_decimal(other):
        return None
    if one in _DIGITS:
        one = pa.decimal128(_DIGITS[one], 0)
    return _wider_decimal(one, other) if pa.types.is_decimal(one) else None


def _wider_decimal(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    scale = max(one.scale, other.scale)
    precision = max(one.precision - one.scale, other.precision - other.scale) + scale
    return pa.decimal128(precision, scale) if precision <= _MAX_PRECISION else pa.string()
