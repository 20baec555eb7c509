"""Finds the cast for a type, a format and an Arrow type, among those that the families define."""

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa

from pgoutput_construct.pgtypes.arrow_types import ARROW
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES, BuiltinType
from pgoutput_construct.pgtypes.family import Compiled
from pgoutput_construct.pgtypes.kernels import planned_casts
from pgoutput_construct.pgtypes.kernels.array_casts import list_of
from pgoutput_construct.pgtypes.kernels.cast import Cast, ColumnValues, Result
from pgoutput_construct.pgtypes.type_registry import FAMILIES
from pgoutput_construct.wire.messages import FORMS, VALUE_TAGS

__all__ = ["TYPES", "find_cast"]

_is = pa.types
TYPES: Final[Mapping[str, Sequence[Compiled]]] = {
    name: readers for family in FAMILIES.values() for name, readers in family.compiled().items()
}
"""The kernels of each type, by typname."""

_FORMAT_OF: Final[Mapping[int, str]] = {VALUE_TAGS[kind]: name for kind, name in FORMS.items()}
"""The format of the values with a tag, text or binary; other kinds of values are loaded one by one."""


def find_cast(code: int, type_oid: int, target: pa.DataType) -> Cast | None:
    """Return the cast of values, None if they are loaded one by one.

    Args:
        code: The tag of the values (VALUE_TAGS).
        type_oid: The OID of their type.
        target: The Arrow type.
    """
    builtin = BUILTIN_TYPES.get(type_oid)
    if code not in _FORMAT_OF:
        return None
    if _is.is_list(target):
        if code not in (VALUE_TAGS["text"], VALUE_TAGS["binary"]):
            return None
        element = find_cast(code, builtin.element_oid, target.value_type) if builtin is not None else None
        return list_of(element) if element is not None else None
    if _FORMAT_OF[code] == "text" and _is.is_string(target):
        return planned_casts.TEXT
    own = ARROW.get(builtin.arrow) if builtin is not None else None
    if own is not None and own != target and _is_wider(target, own):
        cast = find_cast(code, type_oid, own)
        return _through(cast, own) if cast is not None else None
    return None if builtin is None else _own_cast(code, builtin, target)


def _own_cast(code: int, builtin: BuiltinType, target: pa.DataType) -> Cast | None:
    """Return the cast of a type, or of the type whose format it shares (``like``)."""
    is_text = _FORMAT_OF[code] == "text"
    for known in TYPES.get(builtin.name, ()):
        if known.holds(target):
            return known.text if is_text else known.binary
    alike = builtin.text_like if is_text else builtin.binary_like
    return find_cast(code, alike, target) if alike and builtin.name not in TYPES else None


def _is_wider(target: pa.DataType, own: pa.DataType) -> bool:
    """Return whether values of a type can be cast to another: the cast is exact, or it fails.

    Integers to decimals and floats, floats to wider floats, dates to timestamps without a time zone. A cast to a
    narrower float, and one from a float to a decimal, would round.
    """
    if _is.is_date(own):
        return bool(target == pa.timestamp("us"))
    if _is.is_floating(own):
        return bool(_is.is_floating(target) and target.bit_width > own.bit_width)
    return bool(_is.is_integer(own) and (_is.is_decimal(target) or _is.is_floating(target)))


def _through(cast: Cast, own: pa.DataType) -> Cast:
    """Return a cast that decodes values as their own type, and then casts the array to a wider one."""

    def through(values: ColumnValues, target: pa.DataType) -> Result:
        array, left = cast(values, own)
        return array.cast(target), left

    return through
