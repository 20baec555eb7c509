"""The elements of messages and parts: choices, repeats, and structures of these and of fields."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from tools.language import conditions
from tools.language.conditions import Term
from tools.language.fields import Conditional, Field, Fields

__all__ = ["Alternative", "Block", "Choice", "Element", "Item", "Repeat", "Structure"]


@dataclass(frozen=True)
class Alternative(Conditional):
    """One tagged branch of a choice."""

    name: str
    tag: bytes
    numeric: bool = False
    """Whether its tag is a number, such as Int8(16), and no letter."""
    description: str = ""
    server: int | None = None
    term: Term | None = None
    python: str | None = None
    form: str | None = None
    """The format of its bytes as a value of a row: ``text``, ``binary`` or ``none``; None if not specified."""
    then: "Structure | str | None" = None
    line: int = 0

    def tested(self, test: str) -> str:
        """Return a test in a generated module, combined with the condition, if any."""
        return f"{test} and {self.condition}" if self.condition else test

    @property
    def value(self) -> str:
        """Its Python value in a generated module, which imports the module of message classes as ``m``."""
        return self.python if self.python in ("None", "bytes") else f"m.{self.python}"

    @property
    def length(self) -> Field | None:
        """The length of a content that consists of a length and bytes, as PostgreSQL's values do."""
        match self.then:
            case Structure(elements=(Field() as size, Field() as content)) if (
                content.length == size.name and not content.part
            ):
                return None if size.conditional or size.variants else size
        return None

    @property
    def content(self) -> "Field | None":
        """The bytes of a value with further fields, which its class of bytes has as attributes."""
        if self.python in (None, "None") or not isinstance(self.then, Structure) or self.then.single is not None:
            return None
        fields = [each for each in self.then.exposed if isinstance(each, Field)]
        found = [each for each in fields if each.python == "bytes" and not each.conditional and not each.variants]
        return found[0] if len(found) == 1 and len(fields) == len(self.then.exposed) else None

    @property
    def extras(self) -> "tuple[Field, ...]":
        """The further fields of such a value, in wire order."""
        if self.content is None or not isinstance(self.then, Structure):
            return ()
        return tuple(each for each in self.then.exposed if isinstance(each, Field) and each is not self.content)

    @property
    def format(self) -> str:
        """The format of its bytes as a value of a row: ``text``, ``binary``, or ``none``."""
        return self.form or ("text" if self.python == "bytes" else "none")

    @property
    def defines(self) -> tuple[str, ...]:
        """The names that its Python value defines: a class, or a constant and its class; none for None and bytes."""
        if self.python in (None, "None", "bytes"):
            return ()
        kind = self.python_class or ""
        return (self.python, kind) if self.python.isupper() else (kind,)

    @property
    def python_class(self) -> str | None:
        """The class of its Python value: of a constant one that is called like it, ``SameAsOld`` of SAME_AS_OLD."""
        if self.python is None or not self.python.isupper():
            return self.python
        return "".join(word.capitalize() for word in self.python.split("_"))

    @property
    def key(self) -> str | int:
        """Its tag in Python: a str of one character, or a number."""
        return self.tag[0] if self.numeric else self.tag.decode("ascii")

    @property
    def letter(self) -> str:
        """Its tag as text: the character, or the digits of the number."""
        return str(self.key)

    @property
    def notation(self) -> str:
        """Its tag as the documents write it."""
        return f"Int8({self.tag[0]})" if self.numeric else f"Byte1('{self.letter}')"


@dataclass(frozen=True)
class Choice(Conditional):
    """A choice between tagged branches, or none of them if it is optional."""

    kind: str
    name: str
    alternatives: tuple[Alternative, ...]
    optional: bool = False
    description: str = ""
    line: int = 0
    positional: ClassVar[bool] = False

    @property
    def valued(self) -> bool:
        """Whether the branch is implied by the Python value, so that no field holds the tag."""
        return all(alternative.python for alternative in self.alternatives)

    @property
    def numeric(self) -> bool:
        """Whether the tags of its branches are numbers."""
        return self.alternatives[0].numeric

    @property
    def kind_name(self) -> str:
        """The name of the field that holds the tag of the branch."""
        return f"{self.name}_kind"

    @cached_property
    def term(self) -> Term | None:  # type: ignore[override]
        """The condition of any branch, for an optional choice that a version or an option introduced."""
        return conditions.some(each.term for each in self.alternatives) if self.optional else None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the object's fields that it fills: its tag, if there is a field for it, and its content."""
        return (self.name,) if self.valued else (self.kind_name, self.name)


@dataclass(frozen=True)
class Repeat(Conditional):
    """A repeat: its items end by a count, which a field or the specification has, a zero byte, or the last byte."""

    kind: str
    name: str
    count: str | None
    item: "Item"
    description: str = ""
    term: Term | None = None
    server: int | None = None
    to_end: bool = False
    """Whether it has items while bytes remain: in the message, or in the part whose length is known."""
    fixed: int | None = None
    """The number of its items if that is always the same."""
    line: int = 0
    positional: ClassVar[bool] = False

    @property
    def terminated(self) -> bool:
        """Whether a zero byte follows its last item."""
        return self.count is None and self.fixed is None and not self.to_end

    @property
    def times(self) -> str:
        """The number of items, as text."""
        counted = self.count or self.fixed
        return f"{counted} times" if counted else "while bytes remain" if self.to_end else "until a zero byte"

    @property
    def class_name(self) -> str | None:
        """The class of its items; None if each has a single field."""
        return self.item.class_name

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the object's fields that it fills: its own."""
        return (self.name,)


Block = Fields | Choice | Repeat
Element = Field | Choice | Repeat


@dataclass(frozen=True)
class Structure:
    """Blocks in wire order."""

    blocks: tuple[Block, ...]

    @property
    def class_name(self) -> str | None:
        """The class of its objects, None if it has none of its own."""
        return None

    @cached_property
    def elements(self) -> tuple[Element, ...]:
        """The fields, choices and repeats in wire order, without their blocks."""
        return tuple(self._elements())

    def _elements(self) -> Iterator[Element]:
        for block in self.blocks:
            if isinstance(block, Fields):
                yield from block.fields
            else:
                yield block

    @cached_property
    def sizes(self) -> Mapping[str, str]:
        """Counts and lengths by name, each with the name of what it measures: of several lists the first."""
        measured = {e.count: e.name for e in reversed(self.elements) if isinstance(e, Repeat) and e.count}
        return measured | {e.length: e.name for e in self.elements if isinstance(e, Field) and e.length}

    @cached_property
    def areas(self) -> Mapping[str, str]:
        """The lengths of parts by name, each with the name of the part's field."""
        return {e.length: e.name for e in self.elements if isinstance(e, Field) and e.is_area and e.length}

    @cached_property
    def alike(self) -> Mapping[str, str]:
        """The lists that share a count with an earlier list, by name, each with the name of the first one."""
        counted = {e.name: self.sizes[e.count] for e in self.elements if isinstance(e, Repeat) and e.count}
        return {name: first for name, first in counted.items() if name != first}

    @cached_property
    def exposed(self) -> tuple[Element, ...]:
        """The elements of a Python object: without constants, and without derived counts and lengths."""
        return tuple(e for e in self.elements if not self._hidden(e))

    def _hidden(self, element: Element) -> bool:
        return isinstance(element, Field) and (element.hidden or element.name in self.sizes)

    @cached_property
    def single(self) -> Element | None:
        """The only element exposed, which can represent the whole structure; None if there are several."""
        only = self.exposed[0] if len(self.exposed) == 1 else None
        return None if isinstance(only, Choice) and not only.valued else only

    @cached_property
    def principal(self) -> Element | None:
        """The element that represents the structure if nothing conditional is present: the only unconditional one."""
        always = [element for element in self.exposed if conditions.outside(element.term) is None]
        only = always[0] if len(always) == 1 else None
        return self.single or (None if isinstance(only, Choice) and not only.valued else only)

    @property
    def extended(self) -> bool:
        """Whether it is its principal alone under some parameters, and an object of its class under others."""
        return self.single is None and self.principal is not None

    @cached_property
    def additions(self) -> tuple[Element, ...]:
        """The elements exposed that are present under some parameters only."""
        return tuple(element for element in self.exposed if conditions.outside(element.term) is not None)

    @property
    def extension(self) -> Term | None:
        """The condition under which an extended structure is an object: more than its principal is present."""
        return conditions.some(conditions.outside(element.term) for element in self.additions)

    @cached_property
    def flags(self) -> frozenset[str]:
        """The names of the fields whose bits are used in conditions."""
        return frozenset(bit.field for element in self.elements for bit in conditions.bits(element.term))

    @cached_property
    def field_names(self) -> tuple[str, ...]:
        """The names of the fields of its object, in wire order."""
        return tuple(name for element in self.exposed for name in element.names)

    def inside(self) -> "Iterator[Structure]":
        """Yield this structure and all nested ones, except those of parts."""
        yield self
        for element in self.elements:
            if isinstance(element, Repeat):
                yield from element.item.inside()
            elif isinstance(element, Choice):
                for alternative in element.alternatives:
                    if isinstance(alternative.then, Structure):
                        yield from alternative.then.inside()

    def records(self) -> Iterator[Repeat]:
        """Yield the repeats in it whose items are objects of their own class, inner ones first."""
        for element in self.elements:
            if isinstance(element, Repeat):
                yield from element.item.records()
                if element.item.single is None:
                    yield element

    def references(self) -> Iterator[str]:
        """Yield the names of the parts that this structure refers to."""
        for structure in self.inside():
            for element in structure.elements:
                if isinstance(element, Field) and element.part:
                    yield element.part
                elif isinstance(element, Choice):
                    yield from (a.then for a in element.alternatives if isinstance(a.then, str))


@dataclass(frozen=True)
class Item(Structure):
    """The item of a repeat, and the name of its class, if it has one."""

    named: str | None = None

    @property
    def class_name(self) -> str | None:
        """The class of its objects."""
        return self.named
