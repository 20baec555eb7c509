"""The codec of a type: functions between PostgreSQL's text and the bytes of its binary format."""

import struct
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

__all__ = [
    "CODEC_ERRORS",
    "MAX_DIMENSIONS",
    "NUMERIC_NEGATIVE",
    "Codec",
    "Reader",
    "Writer",
    "hexadecimal",
    "quoted",
    "sized",
    "split_items",
    "utf8",
]

CODEC_ERRORS: Final = (ValueError, ArithmeticError, struct.error, LookupError, RecursionError, NameError, TypeError)
"""The exceptions that a codec raises for bytes, or a text, that are not a value of its type."""

Writer = Callable[[bytes], str]
"""Binary format -> PostgreSQL's text, as its output function writes it; raises one of ``CODEC_ERRORS``."""
Reader = Callable[[str], bytes]
"""PostgreSQL's text -> binary format, as its send function writes it; raises one of ``CODEC_ERRORS``."""

MAX_DIMENSIONS: Final = 6
"""MAXDIM in PostgreSQL's array.h."""
NUMERIC_NEGATIVE: Final = 0x4000
"""NUMERIC_NEG in numeric.c; here because both ``numbers`` and kernels import it."""


class Codec(NamedTuple):
    """The two conversions of a type's values."""

    text: Writer
    binary: Reader | None = None
    """None: not implemented; a client that requests the binary format gets text, as for types without a send function.

    It reads what PostgreSQL writes under DateStyle ISO, IntervalStyle postgres and TimeZone UTC. For other text the
    result is undefined; to validate it, compare ``text`` of the result with the original.
    """


def hexadecimal(data: bytes) -> str:
    """Return bytes in the text format of bytea: ``\\x`` and hexadecimal digits."""
    return "\\x" + data.hex()


def utf8(data: bytes) -> str:
    """Decode UTF-8; raise UnicodeDecodeError, a ValueError."""
    return data.decode("utf-8")


def quoted(text: str, special: frozenset[str]) -> str:
    """Return the text of a part of a composite or range, in double quotes if it is empty or has a special character."""
    if text and not special.intersection(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '""') + '"'


def sized(data: bytes) -> bytes:
    """Return an item of an array or range: its length in 4 bytes, then its bytes; see ``split_items``."""
    return struct.pack("!i", len(data)) + data


def split_items(data: bytes) -> Iterator[bytes | None]:
    """Split the items of an array or range: each has 4 bytes length, -1 for NULL, then as many bytes."""
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("!i", data, at)
        at += 4
        if not -1 <= length <= len(data) - at:
            raise ValueError(f"length {length} exceeds the {len(data) - at} bytes that are left")
        yield None if length < 0 else data[at : at + length]
        at += max(length, 0)
