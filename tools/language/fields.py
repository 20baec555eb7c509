"""The fields of messages and parts, and their types."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from tools.language import conditions
from tools.language.conditions import Term

__all__ = ["Conditional", "Field", "Fields", "Type"]


class Conditional:
    """An element that may be absent: ``term`` is the condition under which it is present; None: always."""

    term: Term | None

    @property
    def conditional(self) -> bool:
        """Whether it may be absent."""
        return self.term is not None

    @property
    def since(self) -> int | None:
        """The first protocol version with it."""
        return conditions.range_of(self.term)[0] or None

    @property
    def until(self) -> int | None:
        """The last protocol version with it."""
        return conditions.range_of(self.term)[1]

    @property
    def when(self) -> Term | None:
        """The condition on parameters and bits, in the versions with it."""
        return conditions.range_of(self.term)[2]

    @property
    def condition(self) -> str:
        """The condition as a Python expression of parameters and earlier fields; empty: always present."""
        return conditions.text(self.term)

    def test(self, named: Callable[[str], str]) -> str:
        """Return its condition with the expressions of the earlier fields in it."""
        return conditions.text(self.term, named)


@dataclass(frozen=True)
class Type:
    """One row of spec/types.yaml: a notation, and its type on the wire, in Python and in Arrow."""

    notation: str
    construct: str
    python: str
    arrow: str
    signed: bool = False
    bytes: int | None = None


@dataclass(frozen=True)
class Field(Conditional):
    """A field: it has a type, refers to a part, or is a constant.

    A field that differs between versions has ``variants``, at most one of which is present; its own type, values and
    bits are the union of theirs.
    """

    name: str
    notation: str
    description: str = ""
    type: Type | None = None
    part: str | None = None
    constant: bytes | int | None = None
    term: Term | None = None
    server: int | None = None
    length: str | None = None
    values: Mapping[str | int, str] | None = None
    bits: Mapping[int, str] | None = None
    documented: str | None = None
    positional: bool = False
    measures: str | None = None
    absent: int | None = None
    role: str | None = None
    formerly: tuple[str, ...] = ()
    """Its former names."""
    limits: Mapping[str | int, Term] = field(default_factory=dict, hash=False)
    """The conditions of those of its values or bits that have one."""
    variants: "tuple[Field, ...]" = ()
    written: "tuple[Field, ...]" = ()
    """Its variants as specified; a field whose values or bits have conditions is a variant itself."""
    complete: bool = False
    """Whether one of its variants is always present."""
    line: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the object's fields that it fills: its own."""
        return (self.name,)

    @property
    def rows(self) -> "tuple[Field, ...]":
        """The fields that the specification and the documents list for it: itself, or its variants."""
        return self.written or (self,)

    @property
    def always(self) -> "Field":
        """The same without its condition."""
        return replace(self, term=None)

    @cached_property
    def size(self) -> int | None:
        """Its size in bytes; None if it varies: a String, a Byten, a part, variants."""
        if self.variants:
            return None
        if isinstance(self.constant, bytes):
            return len(self.constant)
        return self.type.bytes if self.type else None

    @property
    def width(self) -> int | None:
        """The size of a number in bytes, of variants the greatest; None if it is not a number."""
        if not self.variants:
            return None if self.is_block else self.size
        sizes = [each.width for each in self.variants if each.constant is None]
        return None if None in sizes else max(size or 0 for size in sizes)

    @property
    def hidden(self) -> bool:
        """Whether no object has it: a constant, or the length of the message."""
        if self.variants:
            return all(each.hidden for each in self.variants)
        return self.constant is not None or self.frames

    @property
    def signed(self) -> bool:
        """Whether it is a number that can be negative."""
        return self.type is not None and self.type.signed

    @property
    def code(self) -> str:
        """Its struct format character; KeyError if its size varies."""
        if self.is_block:
            return f"{self.size}s"
        if self.is_float:
            return "d"
        letter = _STRUCT_CODES[self.size or 0]
        return letter.lower() if self.signed else letter

    @property
    def frames(self) -> bool:
        """Whether it is the message's length, counted from this field's own first byte."""
        return self.measures is not None

    @cached_property
    def is_block(self) -> bool:
        """Whether it is bytes of a fixed length."""
        return self.size is not None and self.type is not None and self.type.python == "bytes"

    @property
    def is_float(self) -> bool:
        """Whether it is a number in floating point."""
        return self.type is not None and self.type.python == "Float"

    @property
    def is_open(self) -> bool:
        """Whether it is bytes to the end of the message, or of the part whose length is known."""
        return self.type is not None and self.type.construct == "Data" and self.length is None

    @property
    def is_area(self) -> bool:
        """Whether it is a part with a length of its own: it takes that many bytes, whatever is in them."""
        return self.part is not None and self.length is not None

    @cached_property
    def is_letter(self) -> bool:
        """Whether it is a byte that stands for a letter: a str of one character in Python."""
        return bool(self.values) and all(isinstance(value, str) for value in self.values or ())

    @cached_property
    def is_text(self) -> bool:
        """Whether it is a String: bytes up to a NUL."""
        return self.type is not None and self.type.construct == "String"

    @property
    def python(self) -> str:
        """The name of its Python type, if it is present."""
        if self.part or self.type is None:
            return self.part or "bytes"
        return "str" if self.is_letter else self.type.python

    @cached_property
    def codes(self) -> tuple[int, ...]:
        """The only numbers that it may have on the wire: the codes of its letters, or its values; empty: any."""
        return tuple(ord(value) if isinstance(value, str) else value for value in self.values or ())

    @cached_property
    def mask(self) -> int:
        """All of its bits; 0 if none are specified."""
        return sum(self.bits or ())

    @property
    def constant_number(self) -> int | None:
        """The number of a constant on the wire; None for other fields."""
        return self.constant[0] if isinstance(self.constant, bytes) else self.constant

    @cached_property
    def constant_bytes(self) -> bytes | None:
        """The bytes of a constant on the wire; None for other fields."""
        if self.constant_number is None:
            return None
        return self.constant_number.to_bytes(self.size or 1, "big")


_STRUCT_CODES: Final[Mapping[int, str]] = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""The code of an unsigned integer of a size in bytes, in a struct format."""


@dataclass(frozen=True)
class Fields:
    """A run of fields: the block types ``header`` and ``body``, and the list under ``then``."""

    kind: str
    fields: tuple[Field, ...]
    line: int = 0
