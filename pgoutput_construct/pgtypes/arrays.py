"""Arrays of every type with a codec (arrayfuncs.c). In Arrow, one-dimensional arrays are lists; others are text."""

import math
import re
import struct
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES, BuiltinType
from pgoutput_construct.pgtypes.family import Family, SqlText
from pgoutput_construct.pgtypes.value_codec import MAX_DIMENSIONS, Codec, Reader, Writer, sized, split_items

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql import types as T  # noqa: N812 - as Spark's documentation has it

__all__ = [
    "array_text",
    "binary_elements",
    "element_oid",
    "family_over",
    "spark_array",
    "spark_is_plain",
    "spark_quoted",
    "sql_array",
]

_HEADER: Final = struct.Struct("!iiI")
_DIMENSION: Final = struct.Struct("!ii")
_LENGTH: Final = struct.Struct("!i")
_QUOTED: Final = frozenset('"\\{} \t\n\r\v\f')
_NULL: Final = "NULL"
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_BOUND: Final = re.compile(r"\[(-?\d+):(-?\d+)\]")


def element_oid(data: bytes) -> int:
    """Return the OID of the element type of an array in binary format; raise one of ``CODEC_ERRORS``."""
    dimensions, has_nulls, oid = _HEADER.unpack_from(data)
    if not 0 <= dimensions <= MAX_DIMENSIONS or has_nulls not in (0, 1):
        raise ValueError("not an array")
    return int(oid)


def array_text(element: Writer, delimiter: str, data: bytes) -> str:
    """Return the text of an array (array_out()): its bounds if a lower bound is not 1, and its elements in braces.

    Args:
        element: Writes the text of an element.
        delimiter: typdelim of the element type: a comma, or a semicolon for box.
        data: The array in binary format.
    """
    element_oid(data)
    (count,) = _LENGTH.unpack_from(data)
    start = _HEADER.size + count * _DIMENSION.size
    dimensions = list(_DIMENSION.iter_unpack(data[_HEADER.size : start]))
    items = list(split_items(data[start:]))
    if not count and not items:
        return "{}"
    if min(size for size, _ in dimensions) < 1 or len(items) != math.prod(size for size, _ in dimensions):
        raise ValueError(f"{len(items)} elements do not fill the dimensions")
    bounds = "".join(f"[{lower}:{lower + size - 1}]" for size, lower in dimensions)
    texts: list[str] = [_NULL if item is None else _quoted(element(item), delimiter) for item in items]
    for size, _ in reversed(dimensions):
        texts = ["{" + delimiter.join(texts[at : at + size]) + "}" for at in range(0, len(texts), size)]
    return (f"{bounds}=" if any(lower != 1 for _, lower in dimensions) else "") + texts[0]


def _quoted(text: str, delimiter: str) -> str:
    if text and delimiter not in text and text.upper() != _NULL and not _QUOTED.intersection(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _array_codec(row: BuiltinType, element: Codec) -> Codec:
    """Return the codec of an array type whose elements have one."""

    def text(data: bytes) -> str:
        if element_oid(data) != row.element_oid:
            raise ValueError("another element type")
        return array_text(element.text, row.delimiter, data)

    return Codec(text, None if element.binary is None else _reader(row, element.binary))


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
    """Return the size of each dimension, and the elements with their lengths, from an array's text."""
    items, counts, depth = list[bytes](), list[int](), 0
    for mark, quoted, plain in _split(tokens, text):
        if mark == "{":
            depth += 1
            counts += [0] * (depth > len(counts))
            counts[depth - 1] += 1
        elif mark == "}":
            depth -= 1
        elif not mark:
            item = sized(element(plain or _ESCAPED.sub(r"\1", quoted))) if plain != _NULL else _LENGTH.pack(-1)
            items.append(item)
    if not items:
        return [], []
    counts.append(len(items))
    return [inner // outer for outer, inner in pairwise(counts)], items


def _split(tokens: re.Pattern[str], text: str) -> Iterator[tuple[str, str, str]]:
    at = 0
    while at < len(text):
        found = tokens.match(text, at)
        if found is None:
            raise ValueError("not an array")
        yield found[1] or "", found[2] or "", found[3] or ""
        at = found.end()


def binary_elements(data: bytes) -> list[bytes | None]:
    """Return the elements of an array of at most one dimension (array_send()); raise CODEC_ERRORS for other arrays."""
    (dimensions,) = _LENGTH.unpack_from(data)
    if not dimensions:
        return []
    size, lower = _DIMENSION.unpack_from(data, _HEADER.size)
    items = list(split_items(data[_HEADER.size + _DIMENSION.size :]))
    if dimensions != 1 or lower != 1 or len(items) != size:
        raise ValueError("not one-dimensional from 1 on")
    return items


def family_over(codecs: Mapping[str, Codec]) -> Family:
    """Return the family of the arrays whose element types have a codec (by typname)."""
    arrays = {row.name: (row, BUILTIN_TYPES[row.element_oid].name) for row in BUILTIN_TYPES.values() if row.element_oid}
    found = {name: _array_codec(row, codecs[element]) for name, (row, element) in arrays.items() if element in codecs}
    return Family(found, without_codec=arrays.keys() - found.keys())


# Canonical texts, in SQL and in Spark.

# One-dimensional arrays with lower bound 1 whose elements Arrow's type can represent; others have PostgreSQL's own
# text.
_LIST_SQL: Final = (
    "CASE WHEN array_ndims({value}) = 1 AND array_lower({value}, 1) = 1 HOLDS THEN concat(ARRAY("
    "SELECT CASE WHEN e IS NOT NULL THEN ELEMENT END FROM unnest({value}) WITH ORDINALITY u (e, n) ORDER BY n)) "
    "ELSE PLAIN END"
)
_NEEDS_QUOTES: Final = r'\A\z|\A(?i:null)\z|["\\{},\s]'
"""The elements that array_out() quotes. Not $: in Java it also matches before a line separator at the end."""
_NEVER_QUOTED: Final = frozenset({"BooleanType", "DecimalType", "FloatType", "DoubleType", "DateType"})
"""Spark's types, besides integers, whose texts array_out() never quotes."""


def sql_array(element: SqlText, plain: str) -> str:
    """Return an SQL expression for the canonical text of a list ``{value}`` whose elements have a text of their own.

    Args:
        element: The canonical text of an element.
        plain: An SQL expression for PostgreSQL's own text of the whole array.
    """
    holds = f"AND {element.of_elements}" if element.of_elements else ""
    one = element.text.replace("{value}", "e")
    return _LIST_SQL.replace("HOLDS", holds).replace("ELEMENT", one).replace("PLAIN", plain)


def spark_quoted(text: "Column", kind: "T.DataType | None" = None) -> "Column":
    """Return the text of an element as array_out() writes it, null for NULL; ``kind`` None stands for a string."""
    from pyspark.sql import functions as F  # noqa: N812

    if kind is not None and spark_is_plain(kind):
        return text
    escaped = F.regexp_replace(text, r'(["\\])', r"\\$1")
    return F.when(text.rlike(_NEEDS_QUOTES), F.concat(F.lit('"'), escaped, F.lit('"'))).otherwise(text)


def spark_is_plain(kind: "T.DataType") -> bool:
    """Return whether texts of a Spark type never need quotes as array elements."""
    from pyspark.sql import types as T  # noqa: N812

    return isinstance(kind, T.IntegralType) or type(kind).__name__ in _NEVER_QUOTED


def spark_array(elements: "Column") -> "Column":
    """Return the text of an array in Spark from the texts of its elements, which are quoted already."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.concat(F.lit("{"), F.array_join(elements, ",", "NULL"), F.lit("}"))
