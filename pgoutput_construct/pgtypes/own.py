"""Values of types that are not built in, of which the stream tells a name alone: text of what shows what it is.

enum_send() sends the label itself. Arrays and rows of composite types say of which types they consist, and how long
each part is. Other values have no text here: ranges, and what extensions bring unless it looks like a label.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

from pgoutput_construct.pgtypes.arrays import array_text, element_oid
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES, FIRST_USER_OID
from pgoutput_construct.pgtypes.form import Writer, utf8
from pgoutput_construct.pgtypes.loader import base_oid
from pgoutput_construct.pgtypes.nested import row_text
from pgoutput_construct.pgtypes.registry import TEXTS
from pgoutput_construct.wire.messages import Type

__all__ = ["label", "writer"]

_ARRAY = "_"
"""With what the names of array types begin (makeArrayTypeName())."""
_SIZES: Final = frozenset(kind.size for kind in BUILTIN_TYPES.values())
"""Bytes of values that always have as many."""


def writer(type_oid: int, types: Mapping[int, Type]) -> Writer:
    """Return what writes the text of a type's values in binary format; it raises one of ``CANNOT`` where nothing does.

    Args:
        type_oid: The type's OID.
        types: The Type messages before the Relation, by OID.
    """
    oid = base_oid(type_oid, types)
    if oid < FIRST_USER_OID:
        return TEXTS.get(BUILTIN_TYPES[oid].name, _refuse) if oid in BUILTIN_TYPES else _refuse
    return partial(_text, types[oid].name if oid in types else None, types)


def _refuse(data: bytes) -> str:
    raise ValueError("only its server knows its text")


def _text(name: str | None, types: Mapping[int, Type], data: bytes) -> str:
    if not data.startswith(b"\0"):
        return label(data) if name is not None else _part(data)
    if name is not None and name.startswith(_ARRAY):
        return array_text(writer(element_oid(data), types), ",", data)
    return row_text(lambda oid: writer(oid, types), data)


def _part(data: bytes) -> str:
    """Read a part of an array or row, of a type that no column has: it may be a domain, of numbers that look alike."""
    if len(data) in _SIZES:
        raise ValueError("this may be a number")
    return label(data)


def label(data: bytes) -> str:
    """Read a value of a type that is not built in, if it looks like an enum's; raise ValueError for others.

    Composites, ranges and arrays hold lengths, and these hold zero bytes.
    """
    text = utf8(data)
    if not text or not text.isprintable():
        raise ValueError("this is no label")
    return text
