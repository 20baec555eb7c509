"""Finds the cast for a type, a format and an Arrow type, among those that the families define.

Casts of one-dimensional arrays are here: they locate the elements, which the cast of the element type then decodes.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pgoutput_construct.compiled.jit import inlined, kernel, u8, u32
from pgoutput_construct.compiled.memory import room
from pgoutput_construct.pgtypes.arrow_types import ARROW
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES, BuiltinType
from pgoutput_construct.pgtypes.family import Compiled
from pgoutput_construct.pgtypes.kernels import planned_casts
from pgoutput_construct.pgtypes.kernels.cast import LEFT, NULL, TAKEN, Cast, ColumnValues, Result, array_of
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
        return _list_of(element) if element is not None else None
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


EMPTY: Final = 12
HEAD: Final = 20
"""array_send(): count of dimensions, whether it has nulls, element type; then size and lower bound of each."""
NULL_LENGTH: Final = 0xFFFFFFFF
OPEN, CLOSE, COMMA, QUOTE, BACKSLASH = (ord(letter) for letter in '{},"\\')
NULL_SIZE: Final = len("NULL")
NULL_TEXT: Final = int.from_bytes(b"NULL")
NULL_TAG: Final = VALUE_TAGS["null"]
TEXT_TAG: Final = VALUE_TAGS["text"]


@inlined
def _elements(data: Any, at: int, end: int, code: int, total: int, starts: Any, lengths: Any, tags: Any) -> int:
    """Append the elements of an array in binary format; return the new total, -1 for any other value."""
    size = end - at
    if size == EMPTY and u32(data, at) == 0:
        return total
    if size < HEAD or u32(data, at) != 1 or u32(data, at + 16) != 1:
        return -1
    count = u32(data, at + 12)
    at += HEAD
    if count > min((end - at) // 4, len(starts) - total):
        return -1
    while at + 4 <= end and count > 0:
        length = u32(data, at)
        at += 4
        null = length == NULL_LENGTH
        size = 0 if null else length
        if size > end - at:
            return -1
        starts[total], lengths[total], tags[total] = at, size, NULL_TAG if null else code
        at, total, count = at + size, total + 1, count - 1
    return total if at == end and count == 0 else -1


@inlined
def _elements_of_text(data: Any, at: int, end: int, code: int, total: int, starts: Any, lengths: Any, tags: Any) -> int:
    """Append the elements of ``{...}``, as _elements does; arrays with escapes or nested arrays are left."""
    if end - at < 2 or u8(data, at) != OPEN or u8(data, end - 1) != CLOSE:
        return -1
    at, end = at + 1, end - 1
    while at < end:
        quoted = u8(data, at) == QUOTE
        at += quoted
        first = at
        while at < end and u8(data, at) != (QUOTE if quoted else COMMA):
            byte = u8(data, at)
            if byte == BACKSLASH or (not quoted and (byte in (OPEN, CLOSE, QUOTE) or byte <= 32)):
                return -1
            at += 1
        null = not quoted and at - first == NULL_SIZE and u32(data, first) == NULL_TEXT
        starts[total], lengths[total], tags[total] = first, at - first, NULL_TAG if null else code
        total += 1
        if (quoted and at >= end) or (not quoted and at == first):
            return -1
        at += quoted
        if at < end and (u8(data, at) != COMMA or at + 1 == end):
            return -1
        at += 1
    return total


@kernel
def _split(
    data: Any,
    starts: Any,
    lengths: Any,
    tags: Any,
    code: int,
    inner_starts: Any,
    inner_lengths: Any,
    inner_tags: Any,
    ends: Any,
    state: Any,
) -> int:
    """Locate all elements of all arrays, and the end of each array's elements."""
    missing, total = 0, 0
    ends[0] = 0
    for row in range(len(starts)):
        state[row] = NULL
        if tags[row] == code:
            at, end = starts[row], starts[row] + lengths[row]
            if code == TEXT_TAG:
                found = _elements_of_text(data, at, end, code, total, inner_starts, inner_lengths, inner_tags)
            else:
                found = _elements(data, at, end, code, total, inner_starts, inner_lengths, inner_tags)
            state[row] = TAKEN if found >= 0 else LEFT
            total = max(found, total)
        missing += state[row] != TAKEN
        ends[row + 1] = total
    return missing


def _list_of(element: Cast) -> Cast:
    """Return the cast of arrays whose elements have this cast."""

    def cast(values: ColumnValues, target: pa.DataType) -> Result:
        # The most elements: each takes at least 4 bytes in binary format; in text one, and a comma or brace.
        most = values.size // (2 if values.code == TEXT_TAG else 4) + len(values)
        starts, lengths, tags = (room(most, each.dtype) for each in (values.starts, values.lengths, values.tags))
        state, ends = room(len(values)), room(len(values) + 1, np.int32)
        missing = _split(*values.given, starts, lengths, tags, ends, state)
        total = int(ends[-1])
        count = int(np.count_nonzero(tags[:total] == values.code))
        inner = ColumnValues(
            values.data, starts[:total], lengths[:total], tags[:total], values.code, count, values.size
        )
        items, left = element(inner, target.value_type)
        if left is not None:
            owners = np.searchsorted(ends, np.flatnonzero(left), "right") - 1
            state[owners] = LEFT
            missing = len(values) + 1  # more than the nulls, so that array_of looks for left rows
        lists, left = array_of(values, pa.int32(), state, missing, ends)
        buffers = lists.buffers()
        return pa.Array.from_buffers(target, len(values), buffers, children=[items]), left

    return cast
