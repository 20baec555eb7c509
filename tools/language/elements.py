"""What messages and parts are made of: choices, repeats, and structures of these and of fields."""

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
    description: str = ""
    server: int | None = None
    term: Term | None = None
    python: str | None = None
    form: str | None = None
    """What its bytes are as a value of a row: ``text``, ``binary`` or ``none``; None where that is not written."""
    then: "Structure | str | None" = None
    line: int = 0

    def tested(self, test: str) -> str:
        """Return a test in a generated module, and the condition where it has one."""
        return f"{test} and {self.condition}" if self.condition else test

    @property
    def value(self) -> str:
        """Its python value in a generated module, which calls the module of the message classes ``m``."""
        return self.python if self.python in ("None", "bytes") else f"m.{self.python}"

    @property
    def length(self) -> Field | None:
        """The length of a content that is nothing but its length and its bytes, as PostgreSQL's values are."""
        match self.then:
            case Structure(elements=(Field() as size, Field() as content)) if content.length == size.name:
                return None if size.conditional or size.variants else size
        return None

    @property
    def content(self) -> "Field | None":
        """The bytes of a value that has more than these: its class of bytes has the rest as attributes."""
        if self.python in (None, "None") or not isinstance(self.then, Structure) or self.then.single is not None:
            return None
        fields = [each for each in self.then.exposed if isinstance(each, Field)]
        found = [each for each in fields if each.python == "bytes" and not each.conditional and not each.variants]
        return found[0] if len(found) == 1 and len(fields) == len(self.then.exposed) else None

    @property
    def extras(self) -> "tuple[Field, ...]":
        """What such a value has in addition to its bytes, in wire order."""
        if self.content is None or not isinstance(self.then, Structure):
            return ()
        return tuple(each for each in self.then.exposed if isinstance(each, Field) and each is not self.content)

    @property
    def format(self) -> str:
        """What its bytes are as a value of a row: PostgreSQL's ``text``, its ``binary`` format, or ``none``."""
        return self.form or ("text" if self.python == "bytes" else "none")

    @property
    def defines(self) -> tuple[str, ...]:
        """The names that its python value brings: a class, or a constant and its class; none for None and bytes."""
        if self.python in (None, "None", "bytes"):
            return ()
        return (self.python, self.python.capitalize()) if self.python.isupper() else (self.python,)

    @property
    def letter(self) -> str:
        """Its tag as a str of one character."""
        return self.tag.decode("ascii")


@dataclass(frozen=True)
class Choice(Conditional):
    """One of several tagged branches, or none of them where it is optional."""

    kind: str
    name: str
    alternatives: tuple[Alternative, ...]
    optional: bool = False
    description: str = ""
    line: int = 0
    positional: ClassVar[bool] = False

    @property
    def valued(self) -> bool:
        """Whether the branch taken shows in the Python value itself, so that no kind is kept alongside."""
        return all(alternative.python for alternative in self.alternatives)

    @property
    def kind_name(self) -> str:
        """The name of the field that holds the tag of the branch taken."""
        return f"{self.name}_kind"

    @cached_property
    def term(self) -> Term | None:  # type: ignore[override]
        """When any of its branches can be taken, for an optional choice that came whole with a version or an option."""
        return conditions.some(each.term for each in self.alternatives) if self.optional else None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fields of an object that it fills: its tag where that is kept, and its content."""
        return (self.name,) if self.valued else (self.kind_name, self.name)


@dataclass(frozen=True)
class Repeat(Conditional):
    """Items that follow each other; a field says how many, or a byte that is zero or the end follows."""

    kind: str
    name: str
    count: str | None
    item: "Item"
    description: str = ""
    term: Term | None = None
    server: int | None = None
    to_end: bool = False
    """Whether its items go to the end of the message."""
    line: int = 0
    positional: ClassVar[bool] = False

    @property
    def terminated(self) -> bool:
        """Whether a byte that is zero follows its last item."""
        return self.count is None and not self.to_end

    @property
    def times(self) -> str:
        """How many items there are, in words."""
        return f"{self.count} times" if self.count else "to the end" if self.to_end else "until a zero byte"

    @property
    def class_name(self) -> str | None:
        """The class of its items; None where each is known by its one field."""
        return self.item.class_name

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fields of an object that it fills: its own."""
        return (self.name,)


Block = Fields | Choice | Repeat
Element = Field | Choice | Repeat


@dataclass(frozen=True)
class Structure:
    """Blocks in wire order."""

    blocks: tuple[Block, ...]

    @property
    def class_name(self) -> str | None:
        """The class of its objects, None where it has none of its own."""
        return None

    @cached_property
    def elements(self) -> tuple[Element, ...]:
        """The fields, choices and repeats in wire order, blocks opened."""
        return tuple(self._elements())

    def _elements(self) -> Iterator[Element]:
        for block in self.blocks:
            if isinstance(block, Fields):
                yield from block.fields
            else:
                yield block

    @cached_property
    def sizes(self) -> Mapping[str, str]:
        """Counts and lengths by name, each with the name of what it measures."""
        measured = {e.count: e.name for e in self.elements if isinstance(e, Repeat) and e.count}
        return measured | {e.length: e.name for e in self.elements if isinstance(e, Field) and e.length}

    @cached_property
    def exposed(self) -> tuple[Element, ...]:
        """What a Python object holds: neither constants nor derived counts and lengths."""
        return tuple(e for e in self.elements if not self._hidden(e))

    def _hidden(self, element: Element) -> bool:
        return isinstance(element, Field) and (element.hidden or element.name in self.sizes)

    @cached_property
    def single(self) -> Element | None:
        """The one thing exposed, for which the whole structure can stand; None when there are more."""
        only = self.exposed[0] if len(self.exposed) == 1 else None
        return None if isinstance(only, Choice) and not only.valued else only

    @cached_property
    def principal(self) -> Element | None:
        """What the structure stands for where nothing conditional is there: the one element that always is."""
        always = [element for element in self.exposed if conditions.outside(element.term) is None]
        only = always[0] if len(always) == 1 else None
        return self.single or (None if isinstance(only, Choice) and not only.valued else only)

    @property
    def extended(self) -> bool:
        """Whether it is its principal alone under some parameters, and an object of its class under others."""
        return self.single is None and self.principal is not None

    @property
    def extension(self) -> Term | None:
        """When an extended structure is an object: where the parameters bring anything but its principal."""
        terms = (conditions.outside(element.term) for element in self.exposed)
        return conditions.some(term for term in terms if term is not None)

    @cached_property
    def flags(self) -> frozenset[str]:
        """The names of the fields whose bits say what else is there."""
        return frozenset(bit.field for element in self.elements for bit in conditions.bits(element.term))

    @cached_property
    def field_names(self) -> tuple[str, ...]:
        """The names of the fields of its object, in wire order."""
        return tuple(name for element in self.exposed for name in element.names)

    def inside(self) -> "Iterator[Structure]":
        """Yield this structure and all that stand in it, those of parts excepted."""
        yield self
        for element in self.elements:
            if isinstance(element, Repeat):
                yield from element.item.inside()
            elif isinstance(element, Choice):
                for alternative in element.alternatives:
                    if isinstance(alternative.then, Structure):
                        yield from alternative.then.inside()

    def records(self) -> Iterator[Repeat]:
        """Yield the repeats in it whose items are objects of their own class, those in others first."""
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
    """What a repeat repeats, and the name of its class where it has one."""

    named: str | None = None

    @property
    def class_name(self) -> str | None:
        """The class of its objects."""
        return self.named
