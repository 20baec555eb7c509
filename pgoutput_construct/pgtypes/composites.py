"""Values of types that are not built in: enums, composites (rowtypes.c), and arrays of them, in binary format.

The stream has only the name of such a type (Type message), not its definition. Some binary formats are self-describing,
though: enum_send() sends the label itself, and record_send() and array_send() send the OID and length of each part.
Other values have no text here: ranges, and types of extensions unless they look like a label.
"""

import struct
from collections.abc import Callable
from typing import Final

from pgoutput_construct.pgtypes.arrays import array_text, element_oid
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES
from pgoutput_construct.pgtypes.family import Family
from pgoutput_construct.pgtypes.value_codec import Writer, quoted, utf8

__all__ = ["FAMILY", "label", "user_text"]

FAMILY: Final = Family({}, without_codec=["record"])
_QUOTED: Final = frozenset('"\\(), \t\n\r\v\f')
_ARRAY = "_"
"""The prefix of the names of array types (makeArrayTypeName())."""
_SIZES: Final = frozenset(kind.size for kind in BUILTIN_TYPES.values())
"""The sizes in bytes of the built-in types of fixed size."""


def user_text(name: str | None, writer: Callable[[int], Writer], data: bytes) -> str:
    """Return the text of a value, in binary format, of a type that is not built in; raise one of ``CODEC_ERRORS``.

    Args:
        name: The type's name; None if the stream has no Type message for it, as for parts of arrays and composites.
        writer: Returns the text writer of a type by its OID.
        data: The value.
    """
    if not data.startswith(b"\0"):
        return label(data) if name is not None else _part(data)
    if name is not None and name.startswith(_ARRAY):
        return array_text(writer(element_oid(data)), ",", data)
    return _row_text(writer, data)


def _part(data: bytes) -> str:
    """Return the text of a part of an array or composite whose type is unknown, if it can only be a label.

    The type may also be a domain over a number, whose bytes can look like a label of the same size.
    """
    if len(data) in _SIZES:
        raise ValueError(f"a value of {len(data)} bytes of an unknown type may be a number")
    return label(data)


def label(data: bytes) -> str:
    """Return the label of an enum value; raise ValueError unless the bytes are printable text.

    Composites, ranges and arrays contain lengths, and so zero bytes, which are not printable.
    """
    text = utf8(data)
    if not text or not text.isprintable():
        raise ValueError("not a label")
    return text


def _row_text(writer: Callable[[int], Writer], data: bytes) -> str:
    """Return the text of a composite (record_out()); ``writer`` returns the text writer of a type by its OID.

    Raises one of ``CODEC_ERRORS`` for other bytes, and for a composite without columns.
    """
    (count,), at, texts = struct.unpack_from("!i", data), 4, list[str]()
    while at < len(data):
        oid, length = struct.unpack_from("!Ii", data, at)
        at += 8
        if not oid or not -1 <= length <= len(data) - at:
            raise ValueError("not a composite")
        texts.append("" if length < 0 else quoted(writer(oid)(data[at : at + length]), _QUOTED))
        at += max(length, 0)
    if not texts or len(texts) != count:
        raise ValueError(f"{len(texts)} columns where the count is {count}")
    return f"({','.join(texts)})"
