"""Values made of others: ranges, multiranges and rows (rangetypes.c, multirangetypes.c, rowtypes.c)."""

import re
import struct
from collections.abc import Callable
from functools import partial
from typing import Final

from pgoutput_construct.pgtypes.form import Form, Reader, Writer
from pgoutput_construct.pgtypes.loader import pieces

__all__ = ["multirange_form", "range_form", "row_text"]

_EMPTY, _LOWER_IN, _UPPER_IN, _LOWER_FREE, _UPPER_FREE = 1, 2, 4, 8, 16  # rangetypes.h
_EMPTY_TEXT: Final = "empty"
_QUOTED: Final = frozenset('"\\()[], \t\n\r\v\f')
_ROW_QUOTED: Final = frozenset('"\\(), \t\n\r\v\f')
_BOUND = r'("(?:[^"\\]|\\.|"")*"|[^"\\()\[\],]*)'
_RANGE: Final = re.compile(rf"([\[(]){_BOUND},{_BOUND}([\])])", re.DOTALL)
_ONE: Final = re.compile(rf"{_EMPTY_TEXT}|[\[(]{_BOUND},{_BOUND}[\])]", re.DOTALL)


def _quoted(text: str, special: frozenset[str]) -> str:
    if text and not special.intersection(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '""') + '"'


def _range_text(bound: Writer, data: bytes) -> str:
    flags, bounds = data[0], [_quoted(bound(each or b""), _QUOTED) for each in pieces(data[1:])]
    if flags & _EMPTY and not bounds:
        return _EMPTY_TEXT
    lower = "" if flags & _LOWER_FREE else bounds.pop(0)
    upper = "" if flags & _UPPER_FREE else bounds.pop()
    if bounds:
        raise ValueError("more bounds than a range has")
    return f"{'(['[flags & _LOWER_IN > 0]}{lower},{upper}{')]'[flags & _UPPER_IN > 0]}"


def _range_binary(bound: Reader, text: str) -> bytes:
    if text == _EMPTY_TEXT:
        return bytes([_EMPTY])
    found = _RANGE.fullmatch(text)
    if found is None:
        raise ValueError("this is no range")
    opening, lower, upper, closing = found.groups()
    flags = _LOWER_IN * (opening == "[") | _UPPER_IN * (closing == "]")
    flags |= _LOWER_FREE * (not lower) | _UPPER_FREE * (not upper)
    return bytes([flags]) + b"".join(_sized(bound(_unquoted(each))) for each in (lower, upper) if each)


def _unquoted(text: str) -> str:
    return re.sub(r'\\(.)|"(")', r"\1\2", text[1:-1], flags=re.DOTALL) if text.startswith('"') else text


def _sized(data: bytes) -> bytes:
    return struct.pack("!i", len(data)) + data


def _multirange_text(one: Writer, data: bytes) -> str:
    (count,), ranges = struct.unpack_from("!i", data), [one(piece or b"") for piece in pieces(data[4:])]
    if len(ranges) != count:
        raise ValueError("so many ranges it does not have")
    return f"{{{','.join(ranges)}}}"


def _multirange_binary(one: Reader, text: str) -> bytes:
    found = [_sized(one(each[0])) for each in _ONE.finditer(text[1:-1])]
    return struct.pack("!i", len(found)) + b"".join(found)


def _form(text: Callable[[Writer, bytes], str], binary: Callable[[Reader, str], bytes], part: Form) -> Form:
    return Form(partial(text, part.text), None if part.binary is None else partial(binary, part.binary))


range_form: Final = partial(_form, _range_text, _range_binary)
"""Return the form of the ranges whose bounds have a form."""
multirange_form: Final = partial(_form, _multirange_text, _multirange_binary)
"""Return the form of the multiranges whose ranges have a form."""


def row_text(writer: Callable[[int], Writer], data: bytes) -> str:
    """Write a row of a composite type (record_out()); ``writer`` returns what writes a type's values, by its OID.

    Raises one of ``CANNOT`` for what is no row, or has no columns.
    """
    (count,), at, texts = struct.unpack_from("!i", data), 4, list[str]()
    while at < len(data):
        oid, length = struct.unpack_from("!Ii", data, at)
        at += 8
        if not oid or not -1 <= length <= len(data) - at:
            raise ValueError("this is no row")
        texts.append("" if length < 0 else _quoted(writer(oid)(data[at : at + length]), _ROW_QUOTED))
        at += max(length, 0)
    if not texts or len(texts) != count:
        raise ValueError("so many columns it does not have")
    return f"({','.join(texts)})"
