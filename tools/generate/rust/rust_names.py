"""What Rust calls things: identifiers, types, literals and conditions."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from tools.generate.reserved import RESERVED
from tools.generate.typed_layouts import (
    Alias,
    Block,
    Data,
    Kind,
    Letter,
    ListOf,
    Maybe,
    Named,
    Number,
    Record,
    Text,
    TypedLayouts,
    Union,
    condition_text,
    has_absence,
)
from tools.language import Choice, Field, Option
from tools.language.conditions import Term
from tools.language.elements import Element, Structure

__all__ = [
    "ELIDED",
    "RustTypes",
    "byte_literal",
    "bytes_literal",
    "condition",
    "earlier_value",
    "presence",
    "requested",
    "rust_local",
    "rust_name",
    "struct_literal",
    "variant_tests",
]

ELIDED: Final = "'_"
"""The lifetime that the compiler finds out."""
_WORDS: Final = frozenset(RESERVED["rust"].split()) - {"read"}
_RAW_NEVER: Final = frozenset({"self", "super", "crate"})
"""Reserved words that not even ``r#`` makes a name."""
_OWN: Final = frozenset({"r", "w", "rt", "layout", "value", "index", "item", "start"})
"""The names of variables that generated functions use themselves."""
_LITERAL: Final = 18
"""The width of the fields of a struct literal on one line, by rustfmt's default."""

_Naming = Callable[[str], str]
"""Returns the expression of a field's value by the field's name."""


class RustTypes:
    """The types of values; those that hold bytes or text borrow them, and have a lifetime."""

    def __init__(self, typed: TypedLayouts, union: str) -> None:
        self._borrowing: set[str] = set()
        for each in typed.types:
            if any(self.borrows(kind) for kind in _kinds(each)):
                self._borrowing.add(each.name)
        if any(message.class_name in self._borrowing for message in typed.spec.messages):
            self._borrowing.add(union)

    def borrows(self, kind: Kind) -> bool:
        """Return whether a value holds bytes or text."""
        match kind:
            case Text() | Data():
                return True
            case ListOf(inside) | Maybe(inside):
                return self.borrows(inside)
            case Named(name):
                return name in self._borrowing
        return False

    def generic(self, name: str, lifetime: str = "'a") -> str:
        """Return the lifetime of a type in angle brackets; empty if it has none."""
        return f"<{lifetime}>" if name in self._borrowing else ""

    def named(self, name: str, lifetime: str = "'a") -> str:
        """Return a type with its lifetime, if it has one."""
        return name + self.generic(name, lifetime)

    def of(self, kind: Kind, lifetime: str = "'a") -> str:
        """Return the type of a value."""
        match kind:
            case Number(size, signed, "int"):
                found = f"{'i' if signed else 'u'}{8 * size}"
            case Number(python=python):
                found = f"rt::{python}"
            case Letter():
                found = "rt::Letter"
            case Text():
                found = f"rt::Text<{lifetime}>"
            case Data():
                found = f"&{lifetime} [u8]"
            case Block(size):
                found = f"[u8; {size}]"
            case ListOf(item):
                found = f"Vec<{self.of(item, lifetime)}>"
            case Maybe(inside):
                found = f"Option<{self.of(inside, lifetime)}>"
            case Named(name):
                found = self.named(name, lifetime)
        return found

    def reference(self, kind: Kind) -> str:
        """Return the type of a reference to a value."""
        match kind:
            case Data():
                return "&[u8]"
            case ListOf(item):
                return f"&[{self.of(item, ELIDED)}]"
        return f"&{self.of(kind, ELIDED)}"

    def wire(self, field: Field) -> str:
        """Return the type of a number as it is on the wire."""
        assert field.type is not None and field.size is not None
        return self.of(Number(field.size, field.signed, field.type.python))


def _kinds(each: Record | Union | Alias) -> Iterator[Kind]:
    match each:
        case Record():
            yield from (attribute.kind for attribute in each.attributes)
        case Union():
            yield from (branch.kind for branch in each.branches if branch.kind is not None)
        case Alias():
            yield each.kind


def rust_name(name: str) -> str:
    """Return a name as an identifier."""
    if name in _RAW_NEVER:
        return f"{name}_"
    return f"r#{name}" if name in _WORDS else name


def rust_local(name: str) -> str:
    """Return the variable of a field: its name, with an underscore if a generated function has one of that name."""
    return f"{name}_" if name in _OWN else rust_name(name)


def requested(option: Option) -> str:
    """Return the name of the parameter for whether an option was requested."""
    return f"has_{option.name}"


def byte_literal(value: int) -> str:
    """Return a byte: as a letter or a digit if it is one."""
    return f"b'{chr(value)}'" if _is_alphanumeric(value) else str(value)


def bytes_literal(data: bytes) -> str:
    """Return bytes: as text if they are letters and digits."""
    if data and all(map(_is_alphanumeric, data)):
        return f'b"{data.decode("ascii")}"'
    return f"&[{', '.join(map(str, data))}]"


def _is_alphanumeric(value: int) -> bool:
    return bytes([value]).isalnum()


def struct_literal(head: str, fields: Sequence[str], end: str = "") -> list[str]:
    """Return the lines of a struct literal as rustfmt writes it."""
    if not fields:
        return [head + end]
    inside = ", ".join(fields)
    if len(inside) <= _LITERAL:
        return [f"{head} {{ {inside} }}{end}"]
    return [f"{head} {{", *(f"    {each}," for each in fields), f"}}{end}"]


def condition(term: Term | None, named: _Naming = str, layout: str = "layout") -> str:
    """Return a condition.

    Args:
        term: The condition.
        named: Returns the expression of an earlier field.
        layout: The expression of the parameters.
    """
    return condition_text(
        term, lambda name: f"{layout}.{rust_name(name)}", lambda field, mask: f"{named(field)} & {mask} != 0"
    )


def earlier_value(structure: Structure, name: str, named: _Naming = rust_local) -> str:
    """Return the value of an earlier field; zero stands for one that is absent."""
    field = next(each for each in structure.elements if each.name == name)
    return f"{named(name)}.unwrap_or_default()" if has_absence(field) else named(name)


def presence(structure: Structure, element: Element, named: _Naming) -> str:
    """Return the condition under which an element is there; empty: always, or a choice, whose value tells."""
    if element.term is None or isinstance(element, Choice):
        return ""
    return condition(element.term, lambda name: earlier_value(structure, name, named))


def variant_tests(structure: Structure, field: Field, named: _Naming) -> list[str]:
    """Return the condition of each variant of a field; empty for the last one if one of them is always there."""
    tests = [presence(structure, each, named) for each in field.variants]
    return [*tests[:-1], ""] if field.complete else tests
