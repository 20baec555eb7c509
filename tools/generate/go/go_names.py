"""What things are called in Go: identifiers, types and functions of the package wire; and literals and conditions."""

import re
from collections.abc import Callable
from typing import Final

from tools.generate.reserved import RESERVED
from tools.generate.typed_layouts import (
    Block,
    Data,
    Kind,
    Letter,
    ListOf,
    Maybe,
    Named,
    Number,
    Text,
    condition_text,
)
from tools.language import Field, Option
from tools.language.conditions import Term

__all__ = [
    "asked_flag",
    "bytes_literal",
    "condition",
    "exported",
    "letter_literal",
    "local",
    "number_method",
    "number_type",
    "type_name",
]

_OWN: Final = frozenset({"r", "w", "j", "m", "v", "layout", "wire", "item", "i", "data", "value", "start"})
"""The names that generated functions use themselves."""
_PREDECLARED: Final = """append bool byte cap copy false int int8 int16 int32 int64 len make max min new nil string
    true uint uint8 uint16 uint32 uint64"""
"""Identifiers of the language that generated functions use, or may."""
_TAKEN: Final = _OWN.union(RESERVED["go"].split(), _PREDECLARED.split())
"""The names that no local variable may have."""
_INITIALS: Final = {"lsn": "LSN", "lsns": "LSNs", "oid": "OID", "oids": "OIDs", "xid": "XID", "id": "ID", "gid": "GID"}
"""The words that Go's conventions write in upper case."""
_WIRE_TYPES: Final = {"Lsn": "wire.LSN", "Timestamp": "wire.Timestamp", "Float": "float64"}
"""The types of numbers that have a class in Python, by its name."""


def exported(name: str) -> str:
    """Return a name as other packages see it: ``relation_oid`` is ``RelationOID``."""
    words = (word for word in re.split(r"[^A-Za-z0-9]+", name) if word)
    return "".join(_INITIALS.get(word, word[:1].upper() + word[1:]) for word in words)


def local(name: str) -> str:
    """Return a name as a variable or a parameter: ``column_count`` is ``columnCount``."""
    first, *others = name.split("_")
    camel = first + "".join(_INITIALS.get(word, word.capitalize()) for word in others)
    return f"{camel}_" if camel in _TAKEN else camel


def asked_flag(option: Option) -> str:
    """Return the field of Layout that says whether an option was requested."""
    return f"Has{exported(option.name)}"


def type_name(kind: Kind) -> str:
    """Return the type of a value."""
    match kind:
        case Number(size, signed, python):
            name = _WIRE_TYPES.get(python, f"{'' if signed else 'u'}int{8 * size}")
        case Letter():
            name = "wire.Letter"
        case Text():
            name = "wire.Text"
        case Data():
            name = "[]byte"
        case Block(size):
            name = f"[{size}]byte"
        case ListOf(item):
            name = f"[]{type_name(item)}"
        case Maybe(inside):
            name = f"wire.Optional[{type_name(inside)}]"
        case Named(own):
            name = own
    return name


def number_type(field: Field) -> str:
    """Return the type of a number as it is on the wire."""
    assert field.type is not None and field.size is not None
    return type_name(Number(field.size, field.signed, field.type.python))


def number_method(field: Field) -> str:
    """Return the method that reads or writes a number: ``Uint32``."""
    assert field.size is not None
    if field.is_float:
        return f"Float{8 * field.size}"
    return f"{'Int' if field.signed else 'Uint'}{8 * field.size}"


def condition(term: Term | None, value: Callable[[str], str] = str) -> str:
    """Return a condition; ``value`` returns the expression of an earlier field, by its name."""
    return condition_text(
        term, lambda parameter: f"layout.{exported(parameter)}", lambda field, mask: f"{value(field)}&{mask} != 0"
    )


def letter_literal(letter: str) -> str:
    """Return the literal of a byte that stands for a letter."""
    plain = letter.isascii() and letter.isprintable() and letter not in "'\\"
    return f"'{letter}'" if plain else str(ord(letter))


def bytes_literal(data: bytes) -> str:
    """Return the literal of a string with these bytes."""
    if all(32 < each < 127 and each not in b'"\\' for each in data):
        return f'"{data.decode("ascii")}"'
    return '"' + "".join(f"\\x{each:02x}" for each in data) + '"'
