"""Ranges and multiranges of every type with a codec (rangetypes.c, multirangetypes.c)."""

import re
import struct
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES
from pgoutput_construct.pgtypes.family import Family
from pgoutput_construct.pgtypes.value_codec import Codec, Reader, Writer, quoted, sized, split_items

__all__ = ["family_over"]

_EMPTY, _LOWER_IN, _UPPER_IN, _LOWER_FREE, _UPPER_FREE = 1, 2, 4, 8, 16  # rangetypes.h
_EMPTY_TEXT: Final = "empty"
_QUOTED: Final = frozenset('"\\()[], \t\n\r\v\f')
_BOUND = r'("(?:[^"\\]|\\.|"")*"|[^"\\()\[\],]*)'
_RANGE: Final = re.compile(rf"([\[(]){_BOUND},{_BOUND}([\])])", re.DOTALL)
_ONE: Final = re.compile(rf"{_EMPTY_TEXT}|[\[(]{_BOUND},{_BOUND}[\])]", re.DOTALL)


def _range_text(bound: Writer, data: bytes) -> str:
    flags, bounds = data[0], [quoted(bound(each or b""), _QUOTED) for each in split_items(data[1:])]
    if flags & _EMPTY and not bounds:
        return _EMPTY_TEXT
    lower = "" if flags & _LOWER_FREE else bounds.pop(0)
    upper = "" if flags & _UPPER_FREE else bounds.pop()
    if bounds:
        raise ValueError("a range has at most two bounds")
    return f"{'(['[flags & _LOWER_IN > 0]}{lower},{upper}{')]'[flags & _UPPER_IN > 0]}"


def _range_binary(bound: Reader, text: str) -> bytes:
    if text == _EMPTY_TEXT:
        return bytes([_EMPTY])
    found = _RANGE.fullmatch(text)
    if found is None:
        raise ValueError("not a range")
    opening, lower, upper, closing = found.groups()
    flags = _LOWER_IN * (opening == "[") | _UPPER_IN * (closing == "]")
    flags |= _LOWER_FREE * (not lower) | _UPPER_FREE * (not upper)
    return bytes([flags]) + b"".join(sized(bound(_unquoted(each))) for each in (lower, upper) if each)


def _unquoted(text: str) -> str:
    return re.sub(r'\\(.)|"(")', r"\1\2", text[1:-1], flags=re.DOTALL) if text.startswith('"') else text


def _multirange_text(one: Writer, data: bytes) -> str:
    (count,), ranges = struct.unpack_from("!i", data), [one(piece or b"") for piece in split_items(data[4:])]
    if len(ranges) != count:
        raise ValueError(f"{len(ranges)} ranges where the count is {count}")
    return f"{{{','.join(ranges)}}}"


def _multirange_binary(one: Reader, text: str) -> bytes:
    found = [sized(one(each[0])) for each in _ONE.finditer(text[1:-1])]
    return struct.pack("!i", len(found)) + b"".join(found)


def _codec(text: Callable[[Writer, bytes], str], binary: Callable[[Reader, str], bytes], part: Codec) -> Codec:
    return Codec(partial(text, part.text), None if part.binary is None else partial(binary, part.binary))


def family_over(codecs: Mapping[str, Codec]) -> Family:
    """Return the family of the ranges whose subtypes have a codec (by typname), and of their multiranges."""
    ranges = _over(partial(_codec, _range_text, _range_binary), codecs)
    return Family(ranges | _over(partial(_codec, _multirange_text, _multirange_binary), ranges))


def _over(make: Callable[[Codec], Codec], parts: Mapping[str, Codec]) -> dict[str, Codec]:
    """Return the codecs of the types whose subtype is in ``parts``: ranges over bounds, multiranges over ranges."""
    subtypes = {row.name: BUILTIN_TYPES[row.subtype_oid].name for row in BUILTIN_TYPES.values() if row.subtype_oid}
    return {name: make(parts[subtype]) for name, subtype in subtypes.items() if subtype in parts}
