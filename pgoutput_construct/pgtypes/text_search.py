"""Full text search: tsvector and tsquery (tsvector.c and tsquery.c)."""

import re
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from pgoutput_construct.pgtypes.family import Family
from pgoutput_construct.pgtypes.value_codec import Codec, utf8

__all__ = ["FAMILY"]

_WEIGHTS = ("", "C", "B", "A")
"""By code; D, the default, is not written."""
_WEIGHT_SHIFT = 14  # WEP_GETWEIGHT() in ts_type.h
_LEXEME = re.compile(r"'((?:[^'\\]|''|\\\\)*)'(?::(\d+[ABC]?(?:,\d+[ABC]?)*))?(?: |\Z)")

_VALUE, _OPERATOR = 1, 2
_NOT, _AND, _OR, _PHRASE = 1, 2, 3, 4
_QUERY_WEIGHTS = ((8, "A"), (4, "B"), (2, "C"), (1, "D"))
_PRIORITY = {_OR: 1, _AND: 2, _PHRASE: 3, _NOT: 4}  # tsearch_op_priority


def _quoted(lexeme: str) -> str:
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def _word(data: bytes, at: int) -> tuple[str, int]:
    """Return the NUL-terminated string at an offset, and the offset after it."""
    end = data.index(b"\0", at)
    return utf8(data[at:end]), end + 1


def _vector_text(data: bytes) -> str:
    (count,), at, words = struct.unpack_from("!i", data), 4, list[str]()
    while at < len(data):
        lexeme, at = _word(data, at)
        (positions,) = struct.unpack_from("!H", data, at)
        found = struct.unpack_from(f"!{positions}H", data, at + 2)
        at += 2 + 2 * positions
        text = ",".join(f"{each % (1 << _WEIGHT_SHIFT)}{_WEIGHTS[each >> _WEIGHT_SHIFT]}" for each in found)
        words.append(f"{_quoted(lexeme)}:{text}" if text else _quoted(lexeme))
    if len(words) != count:
        raise ValueError(f"{len(words)} lexemes where the count is {count}")
    return " ".join(words)


def _vector_binary(text: str) -> bytes:
    pieces = [_lexeme_binary(*found.groups(default="")) for found in _LEXEME.finditer(text)]
    return struct.pack("!i", len(pieces)) + b"".join(pieces)


def _lexeme_binary(lexeme: str, positions: str) -> bytes:
    lexeme = lexeme.replace("''", "'").replace("\\\\", "\\")
    found = [
        int(each.rstrip("ABC")) | _WEIGHTS.index(each.strip("0123456789")) << _WEIGHT_SHIFT
        for each in filter(None, positions.split(","))
    ]
    return lexeme.encode() + struct.pack(f"!xH{len(found)}H", len(found), *found)


class _Item(NamedTuple):
    """One item of a query; operators precede their operands (prefix notation)."""

    operator: int
    """0 for a lexeme."""
    text: str


def _items(data: bytes) -> Iterator[_Item]:
    at = 4
    while at < len(data):
        if data[at] == _VALUE:
            weights, is_prefix = data[at + 1], data[at + 2]
            lexeme, at = _word(data, at + 3)
            marks = "*" * bool(is_prefix) + "".join(letter for bit, letter in _QUERY_WEIGHTS if weights & bit)
            yield _Item(0, _quoted(lexeme) + (f":{marks}" if marks else ""))
        elif data[at] == _OPERATOR:
            operator = data[at + 1]
            (distance,) = struct.unpack_from("!H", data, at + 2) if operator == _PHRASE else (0,)
            at += 4 if operator == _PHRASE else 2
            phrase = "<->" if distance == 1 else f"<{distance}>"
            yield _Item(operator, {_NOT: "!", _AND: "&", _OR: "|", _PHRASE: phrase}[operator])
        else:
            raise ValueError(f"unknown item type {data[at]}")


def _query_text(data: bytes) -> str:
    (count,), items = struct.unpack_from("!i", data), list(_items(data))
    if len(items) != count:
        raise ValueError(f"{len(items)} items where the count is {count}")
    if not items:
        return ""
    rest = iter(items)
    text = _infix(rest, 0, False)
    if next(rest, None) is not None:
        raise ValueError("items after the end of the query")
    return text


def _infix(items: Iterator[_Item], outer: int, is_right_of_phrase: bool) -> str:
    """Return the text of the next operand (infix() in tsquery.c), of an operator with the priority ``outer``."""
    operator, text = next(items, _Item(-1, ""))
    if not operator:
        return text
    priority = _PRIORITY[operator]
    if operator == _NOT:
        inner = "!" + _infix(items, priority, False)
        return f"( {inner} )" if priority < outer else inner
    right = _infix(items, priority, operator == _PHRASE)
    left = _infix(items, priority, False)
    joined = f"{left} {text} {right}"
    return f"( {joined} )" if priority < outer or (operator == _PHRASE and is_right_of_phrase) else joined


FAMILY: Final = Family(
    {"tsvector": Codec(_vector_text, _vector_binary), "tsquery": Codec(_query_text)}, without_codec=["gtsvector"]
)
