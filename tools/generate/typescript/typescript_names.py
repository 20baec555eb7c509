"""Names, types and literals of the TypeScript module."""

import json
import re
from typing import Final

from tools.generate.reserved import RESERVED
from tools.generate.typed_layouts import Block, Data, Kind, Letter, ListOf, Maybe, Named, Number, Text, pascal
from tools.language import Alternative, Choice, Field, Option

__all__ = [
    "bigint_suffix",
    "camel",
    "codes",
    "letter_literal",
    "letters",
    "local",
    "mask",
    "property_of",
    "requested",
    "tags",
    "type_of",
]

_WORDS: Final = frozenset(RESERVED["javascript"].split()) | {"r", "w", "m", "layout", "wire", "item", "i", "data"}
"""Names that no variable of a field may have: words of the language, and variables that generated functions use."""


def camel(name: str) -> str:
    """Return a name in camelCase: ``old_key`` is ``oldKey``."""
    words = [word for word in re.split(r"[^A-Za-z0-9]+", name) if word]
    return words[0] + "".join(word[:1].upper() + word[1:] for word in words[1:])


def local(name: str) -> str:
    """Return the variable of a field or a parameter: its name, with an underscore if that is taken."""
    return f"{camel(name)}_" if camel(name) in _WORDS else camel(name)


def property_of(name: str) -> str:
    """Return a property of an object literal whose value is the variable of that name."""
    return camel(name) if local(name) == camel(name) else f"{camel(name)}: {local(name)}"


def requested(option: Option) -> str:
    """Return the property of a layout that says whether an option was requested."""
    return f"has{pascal(option.name)}"


def type_of(kind: Kind) -> str:
    """Return the type of values of a kind."""
    match kind:
        case Number(size, _, "int"):
            name = "bigint" if size == 8 else "number"
        case Number(_, _, python):
            name = f"wire.{python}"
        case Letter():
            name = "string"
        case Text():
            name = "wire.Text"
        case Data() | Block():
            name = "Uint8Array"
        case ListOf(item):
            name = f"({type_of(item)})[]" if isinstance(item, Maybe) else f"{type_of(item)}[]"
        case Maybe(inside):
            name = f"{type_of(inside)} | null"
        case Named(name):
            pass
    return name


def bigint_suffix(size: int | None) -> str:
    """Return what follows the digits of a number of this many bytes: those of 64 bits are bigint."""
    return "n" if size == 8 else ""


def codes(field: Field) -> str:
    """Return the only numbers that a field may have, as arguments."""
    return ", ".join(f"{code}{bigint_suffix(field.size)}" for code in field.codes)


def mask(field: Field) -> str:
    """Return the number with all bits of a field."""
    return f"{field.mask:#x}{bigint_suffix(field.size)}"


def letters(field: Field) -> str:
    """Return the only letters that a field may have, as one string."""
    return json.dumps("".join(map(chr, field.codes)))


def letter_literal(alternative: Alternative) -> str:
    """Return the tag of a branch, as a string or a number."""
    return json.dumps(alternative.key)


def tags(choice: Choice) -> str:
    """Return the tags of a choice, as one string, or numbers as arguments."""
    if choice.numeric:
        return ", ".join(each.letter for each in choice.alternatives)
    return json.dumps("".join(each.letter for each in choice.alternatives))
