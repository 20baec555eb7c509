"""Values of types that are not built in, of which the stream tells a name alone: text of what shows what it is.

enum_send() sends the label itself. Arrays and rows of composite types (rowtypes.c) say of which types they consist, and
how long each part is. Other values have no text here: ranges, and what extensions bring unless it looks like a label.
"""

import struct
from collections.abc import Callable
from typing import Final

from pgoutput_construct.pgtypes.arrays import array_text, element_oid
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES
from pgoutput_construct.pgtypes.family import Family
from pgoutput_construct.pgtypes.value_codec import Writer, utf8

__all__ = ["FAMILY", "label", "user_text"]

FAMILY: Final = Family({}, without_codec=["record"])
_QUOTED: Final = frozenset('"\\(), \t\n\r\v\f')
_ARRAY = "_"
"""With what the names of array types begin (makeArrayTypeName())."""
_SIZES: Final = frozenset(kind.size for kind in BUILTIN_TYPES.values())
"""Bytes of values that always have as many."""


def user_text(name: str | None, writer: Callable[[int], Writer], data: bytes) -> str:
    """Write a value, in binary format, of a type that is not built in; raise one of ``CODEC_ERRORS`` where nobody can.

    Args:
        name: The type's name; None where the stream does not tell it, as of the parts of arrays and rows.
        writer: Returns what writes a type's values, by its OID.
        data: The value.
    """
    if not data.startswith(b"\0"):
        return label(data) if name is not None else _part(data)
    if name is not None and name.startswith(_ARRAY):
        return array_text(writer(element_oid(data)), ",", data)
    return _row_text(writer, data)


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


def _quoted(text: str) -> str:
    if text and not _QUOTED.intersection(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '""') + '"'


def _row_text(writer: Callable[[int], Writer], data: bytes) -> str:
    """Write a row of a composite type (record_out()); ``writer`` returns what writes a type's values, by its OID.

    Raises one of ``CODEC_ERRORS`` for what is no row, or has no columns.
    """
    (count,), at, texts = struct.unpack_from("!i", data), 4, list[str]()
    while at < len(data):
        oid, length = struct.unpack_from("!Ii", data, at)
        at += 8
        if not oid or not -1 <= length <= len(data) - at:
            raise ValueError("this is no row")
        texts.append("" if length < 0 else _quoted(writer(oid)(data[at : at + length])))
        at += max(length, 0)
    if not texts or len(texts) != count:
        raise ValueError(f"{len(texts)} columns where the count is {count}")
    return f"({','.join(texts)})"
