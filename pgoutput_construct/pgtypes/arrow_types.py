"""Which Arrow type a column gets, by the OID and the modifier of its PostgreSQL type.

Families define the Arrow types of their values: see the tables at the top of ``numbers`` and ``dates``. An oid is int64
(it is unsigned), bytea is binary, an array of any built-in type is a list, and everything else is string: PostgreSQL's
text.

A reader may choose other types (``chosen_types``). An altered column gets a type that can represent its earlier values,
too (``unify``).

Values that the Arrow type cannot represent are not lost: the column is null, and the row's map ``_untyped`` has
PostgreSQL's text under the column's name. These are NaN and infinities in numeric(p, s), dates and timestamps that are
infinite or outside the years 1 to 9999, arrays of several dimensions or with lower bounds other than 1, and arrays that
contain any such value; and, where a reader keeps a type that is narrower than the column's own or of another kind (a
Spark query with schemaChange=ignore), integers and floats that it does not represent exactly, and timestamps without a
time zone where it has one, or the reverse. If the text cannot be determined, it is ``\\x`` and hexadecimal digits: for
text that is not UTF-8, and for the binary format of money, of regclass and its like, and of types that are not built
in, unless they are enums, composites or arrays of them.

A domain counts as its base type, without that type's modifier (a Type message names no more); enums, composites and
arrays of types that are not built in are string.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES, TYPE_NAMES, BuiltinType
from pgoutput_construct.pgtypes.family import CannotHold
from pgoutput_construct.pgtypes.loader import base_oid
from pgoutput_construct.pgtypes.numbers import decimal_type
from pgoutput_construct.pgtypes.type_registry import FAMILIES
from pgoutput_construct.wire.messages import RelationColumn, Type

__all__ = ["ARROW", "AS_USUAL", "UNTYPED", "Choices", "arrow_type", "chosen_types", "fitted", "is_known", "unify"]

Choices = Mapping[str, pa.DataType]
"""Arrow types by the names of built-in types, for columns that would have others."""

AS_USUAL: Final[Choices] = MappingProxyType({})
"""No choices."""

UNTYPED: Final = pa.map_(pa.string(), pa.string())
"""The type of ``_untyped``: column name -> text; names of the old row's columns have the prefix ``_before.``."""

_BETWEEN: Final = re.compile(r",(?![^(]*\))")
_FORM: Final = "write numeric=decimal(38,10), numeric=double, uuid=binary, or NAME=string; several with commas between"

_ARROW_FAMILIES: Final = tuple(arrow for family in FAMILIES.values() if (arrow := family.arrow()) is not None)
_KINDS: Final = tuple(kind for family in _ARROW_FAMILIES for kind in family.kinds)
ARROW: Final[Mapping[str, pa.DataType]] = {
    name: kind for family in _ARROW_FAMILIES for name, kind in family.types.items()
}
"""Arrow types by their names in spec/builtin_types.yaml; a ``decimal`` depends on the modifier instead."""


def chosen_types(text: str) -> Choices:
    """Parse a reader's choice of types, such as ``numeric=decimal(38,10),uuid=binary``; raise PgoutputError.

    Each item names a built-in type (typname) and its Arrow type: ``string`` (PostgreSQL's text) for any type;
    ``decimal(p,s)`` or ``double`` for a numeric whose own modifier is not a decimal that Arrow supports; ``binary`` for
    a uuid. Arrays of the type are lists of it. Values that the chosen type cannot represent go to ``_untyped``.
    """
    found: dict[str, pa.DataType] = {}
    for part in filter(None, (each.strip() for each in _BETWEEN.split(text))):
        name, _, kind = (each.strip() for each in part.partition("="))
        if name not in TYPE_NAMES or name.startswith("_"):
            raise PgoutputError(f"types: {name!r} is not the name in pg_type of a built-in type: {_FORM}")
        found[name] = _chosen(name, kind)
    return found


def arrow_type(column: RelationColumn, types: Mapping[int, Type], choices: Choices = AS_USUAL) -> pa.DataType:
    """Return the Arrow type of a column.

    Args:
        column: The column, as the Relation describes it.
        types: The Type messages before the Relation, by OID.
        choices: The types that a reader has chosen.
    """
    builtin = BUILTIN_TYPES.get(base_oid(column.type_oid, types))
    if builtin is None:
        return pa.string()
    if builtin.arrow == "list":
        return pa.list_(_scalar(BUILTIN_TYPES[builtin.element_oid], column.type_modifier, choices))
    return _scalar(builtin, column.type_modifier, choices)


def _scalar(builtin: BuiltinType, modifier: int, choices: Choices) -> pa.DataType:
    chosen = choices.get(builtin.name)
    if builtin.arrow != "decimal":
        return chosen or ARROW[builtin.arrow]
    own = decimal_type(modifier)
    return chosen if chosen is not None and (chosen == pa.string() or own is None) else own or pa.string()


def _chosen(name: str, words: str) -> pa.DataType:
    if words == "string":
        return pa.string()
    found = next(filter(None, (family.choose(name, words) for family in _ARROW_FAMILIES)), None)
    if found is None:
        raise PgoutputError(f"types: {name} cannot be {words!r}: {_FORM}")
    return found


def unify(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return a type that can represent the values of both types: the wider one, or string if neither is.

    Decimals, and floating-point types that represent each integer exactly, are wider than integers; timestamps without
    a time zone are wider than dates. Lists are unified by their elements.
    """
    if one.equals(other):
        return one
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(unify(one.value_type, other.value_type))
    return next(filter(None, (family.unify(one, other) for family in _ARROW_FAMILIES)), pa.string())


def is_known(target: pa.DataType) -> bool:
    """Return whether values can be read into this Arrow type."""
    if pa.types.is_list(target):
        return is_known(target.value_type)
    return any(kind.is_kind(target) for kind in _KINDS)


def fitted(value: Any, target: pa.DataType) -> Any:
    """Convert a value, as psycopg loads it, for an Arrow type; raise CannotHold if the type cannot represent it."""
    if value is None:
        return None
    if pa.types.is_list(target):
        if not isinstance(value, list):
            raise CannotHold
        return [fitted(item, target.value_type) for item in value]
    kind = next(kind for kind in _KINDS if kind.is_kind(target))
    found = kind.fit(value, target)
    if not kind.holds(found, target):
        raise CannotHold
    return found
