"""Arrays of whatever has a form (arrayfuncs.c)."""

import math
import re
import struct
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from pgoutput_construct.pgtypes.builtin_types import BuiltinType
from pgoutput_construct.pgtypes.form import Form, Reader, Writer
from pgoutput_construct.pgtypes.loader import MAX_DIMENSIONS, pieces

__all__ = ["array_form", "array_text", "element_oid"]

_HEADER: Final = struct.Struct("!iiI")
_DIMENSION: Final = struct.Struct("!ii")
_LENGTH: Final = struct.Struct("!i")
_QUOTED: Final = frozenset('"\\{} \t\n\r\v\f')
_NULL: Final = "NULL"
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_BOUND: Final = re.compile(r"\[(-?\d+):(-?\d+)\]")


def element_oid(data: bytes) -> int:
    """Return the OID of the type of an array's elements; raise one of ``CANNOT`` for what is none."""
    dimensions, has_nulls, oid = _HEADER.unpack_from(data)
    if not 0 <= dimensions <= MAX_DIMENSIONS or has_nulls not in (0, 1):
        raise ValueError("this is no array")
    return int(oid)


def array_text(element: Writer, delimiter: str, data: bytes) -> str:
    """Write an array: its bounds where one of them is not 1, then its elements in braces (array_out())."""
    element_oid(data)
    (count,) = _LENGTH.unpack_from(data)
    start = _HEADER.size + count * _DIMENSION.size
    dimensions = list(_DIMENSION.iter_unpack(data[_HEADER.size : start]))
    items = list(pieces(data[start:]))
    if not count and not items:
        return "{}"
    if min(size for size, _ in dimensions) < 1 or len(items) != math.prod(size for size, _ in dimensions):
        raise ValueError("so many elements it does not have")
    bounds = "".join(f"[{lower}:{lower + size - 1}]" for size, lower in dimensions)
    texts: list[str] = [_NULL if item is None else _quoted(element(item), delimiter) for item in items]
    for size, _ in reversed(dimensions):
        texts = ["{" + delimiter.join(texts[at : at + size]) + "}" for at in range(0, len(texts), size)]
    return (f"{bounds}=" if any(lower != 1 for _, lower in dimensions) else "") + texts[0]


def _quoted(text: str, delimiter: str) -> str:
    if text and delimiter not in text and text.upper() != _NULL and not _QUOTED.intersection(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def array_form(row: BuiltinType, element: Form) -> Form:
    """Return the form of an array type whose elements have a form."""

    def text(data: bytes) -> str:
        if element_oid(data) != row.element_oid:
            raise ValueError("these are not its elements")
        return array_text(element.text, row.delimiter, data)

    return Form(text, None if element.binary is None else _reader(row, element.binary))


def _reader(row: BuiltinType, element: Reader) -> Reader:
    tokens = re.compile(rf'([{{}}{row.delimiter}])|"((?:[^"\\]|\\.)*)"|([^"{{}}{row.delimiter}]+)', re.DOTALL)

    def binary(text: str) -> bytes:
        lowers = [int(lower) for lower, _ in _BOUND.findall(text[: text.index("{")])]
        sizes, items = _elements(tokens, text[text.index("{") :], element)
        dimensions = b"".join(
            _DIMENSION.pack(size, lower) for size, lower in zip(sizes, lowers or [1] * len(sizes), strict=True)
        )
        has_nulls = int(_LENGTH.pack(-1) in items)
        return _HEADER.pack(len(sizes), has_nulls, row.element_oid) + dimensions + b"".join(items)

    return binary


def _elements(tokens: re.Pattern[str], text: str, element: Reader) -> tuple[list[int], list[bytes]]:
    """Return how many elements each dimension has, and the elements with their lengths."""
    items, counts, depth = list[bytes](), list[int](), 0
    for mark, quoted, plain in _split(tokens, text):
        if mark == "{":
            depth += 1
            counts += [0] * (depth > len(counts))
            counts[depth - 1] += 1
        elif mark == "}":
            depth -= 1
        elif not mark:
            items.append(_item(plain or _ESCAPED.sub(r"\1", quoted), element) if plain != _NULL else _LENGTH.pack(-1))
    if not items:
        return [], []
    counts.append(len(items))
    return [inner // outer for outer, inner in pairwise(counts)], items


def _split(tokens: re.Pattern[str], text: str) -> Iterator[tuple[str, str, str]]:
    at = 0
    while at < len(text):
        found = tokens.match(text, at)
        if found is None:
            raise ValueError("this is no array")
        yield found[1] or "", found[2] or "", found[3] or ""
        at = found.end()


def _item(text: str, element: Reader) -> bytes:
    data = element(text)
    return _LENGTH.pack(len(data)) + data
