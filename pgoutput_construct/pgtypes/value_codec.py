"""The two formats of a value: PostgreSQL's text, and the bytes of its binary format; and what arrays consist of."""

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
    "split_items",
    "utf8",
]

CODEC_ERRORS: Final = (ValueError, ArithmeticError, struct.error, LookupError, RecursionError, NameError, TypeError)
"""What a writer of text raises for bytes that are not of its type, and a reader for such text."""

Writer = Callable[[bytes], str]
"""Binary format -> PostgreSQL's text, as its output function writes it; raises one of ``CODEC_ERRORS``."""
Reader = Callable[[str], bytes]
"""PostgreSQL's text -> binary format, as its send function writes it; raises one of ``CODEC_ERRORS``."""

MAX_DIMENSIONS: Final = 6
"""MAXDIM in PostgreSQL's array.h."""
NUMERIC_NEGATIVE: Final = 0x4000
"""NUMERIC_NEG in numeric.c; here, where kernels and numbers have it from."""


class Codec(NamedTuple):
    """How the values of a type are written in either format."""

    text: Writer
    binary: Reader | None = None
    """None: its text is not read; whoever asks for binary format gets the text, as of a type without a send function.

    It reads what PostgreSQL writes under DateStyle ISO, IntervalStyle postgres and TimeZone UTC. Of other text it may
    make anything: whether ``text`` makes the same text of it again tells.
    """


def hexadecimal(data: bytes) -> str:
    """Write bytes as bytea does: ``\\x`` and hexadecimal digits."""
    return "\\x" + data.hex()


def utf8(data: bytes) -> str:
    """Read text; raise UnicodeDecodeError (a ValueError) for what is not UTF-8."""
    return data.decode("utf-8")


def split_items(data: bytes) -> Iterator[bytes | None]:
    """Split what arrays and ranges are made of: 4 bytes length, then as many bytes; -1 for NULL."""
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("!i", data, at)
        at += 4
        if not -1 <= length <= len(data) - at:
            raise ValueError("a length beyond the end")
        yield None if length < 0 else data[at : at + length]
        at += max(length, 0)
