"""The layouts as languages with static types have them: records, unions of choices, and the kind of each value.

Constants, counts and lengths are on the wire only. A structure with a single remaining element is that element's value,
as in Python; one that other parameters extend is always a record.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tools.generate.reserved import distinct
from tools.language import Alternative, Choice, Field, Message, Option, Part, Repeat, Spec, conditions
from tools.language.conditions import Bit, Every, Flag, Not, Since, Some, Term, Until
from tools.language.elements import Element, Structure

__all__ = [
    "Alias",
    "Attribute",
    "Block",
    "Branch",
    "Data",
    "Kind",
    "Letter",
    "ListOf",
    "Maybe",
    "Named",
    "Number",
    "Record",
    "Text",
    "TypedLayouts",
    "Union",
    "asked_option",
    "condition_text",
    "has_absence",
    "is_optional",
    "negated",
    "pascal",
    "step",
    "version_condition",
]


@dataclass(frozen=True)
class Number:
    """A number: its size in bytes, whether it has a sign, and its Python type, such as ``int`` or ``Float``."""

    size: int
    signed: bool = False
    python: str = "int"


@dataclass(frozen=True)
class Letter:
    """A byte that stands for a letter."""


@dataclass(frozen=True)
class Text:
    """Text that a NUL ends on the wire."""


@dataclass(frozen=True)
class Data:
    """Bytes."""


@dataclass(frozen=True)
class Block:
    """Bytes of a fixed number."""

    size: int


@dataclass(frozen=True)
class ListOf:
    """A list."""

    item: "Kind"


@dataclass(frozen=True)
class Maybe:
    """A value that may be absent, in a list or a branch."""

    inside: "Kind"


@dataclass(frozen=True)
class Named:
    """A record, a union or an alias, by its name."""

    name: str


Kind: TypeAlias = Number | Letter | Text | Data | Block | ListOf | Maybe | Named


@dataclass(frozen=True, eq=False)
class Attribute:
    """A field of a record."""

    name: str
    kind: Kind
    optional: bool
    about: str
    element: Element


@dataclass(frozen=True, eq=False)
class Record:
    """An object with fields: of a message, a part, an item of a repeat, or a value with several fields."""

    name: str
    about: str
    structure: Structure
    attributes: tuple[Attribute, ...]

    @property
    def message(self) -> Message | None:
        """The message that it is; None if it is none."""
        return self.structure if isinstance(self.structure, Message) else None


@dataclass(frozen=True, eq=False)
class Branch:
    """A branch of a union; without ``kind`` it has no content."""

    name: str
    kind: Kind | None
    alternative: Alternative


@dataclass(frozen=True, eq=False)
class Union:
    """The value of a choice: one of several branches."""

    name: str
    about: str
    choice: Choice
    branches: tuple[Branch, ...]


@dataclass(frozen=True, eq=False)
class Alias:
    """A part that is the value of its single element."""

    name: str
    about: str
    kind: Kind
    part: Part


class TypedLayouts:
    """The types of a specification: ``types`` has all, each after those that it consists of."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.types: list[Record | Union | Alias] = []
        self.nested: dict[int, str] = {}
        """The names of the structures that are the value of a single element, and more than that on the wire."""
        self._taken = [*spec.class_names()]
        self._unions: dict[int, Union] = {}
        self._records: dict[int, Record] = {}
        choices = (each for structure in spec.structures() for each in structure.elements if isinstance(each, Choice))
        branches = (branch for choice in choices if choice.valued for branch in choice.alternatives)
        self._value_bytes = {id(branch.content) for branch in branches if branch.content is not None}
        for part in spec.parts_in_order:
            self._visit(part, part.class_name)
            if part.single is None:
                self._add(part.class_name, part.description, part)
            else:
                self.nested[id(part)] = part.name
                self.types.append(Alias(part.name, part.description, self.inside(part), part))
        for message in spec.messages:
            self._visit(message, message.class_name)
            self._add(message.class_name, message.description, message)

    @property
    def records(self) -> list[Record]:
        """The records."""
        return [each for each in self.types if isinstance(each, Record)]

    def record(self, structure: Structure) -> Record:
        """Return the record of a structure that has one."""
        return self._records[id(structure)]

    def value_bytes(self, attribute: Attribute) -> bool:
        """Return whether a field holds the bytes of a value that has further fields: ``data`` in JSON, their digits."""
        return id(attribute.element) in self._value_bytes

    def union(self, choice: Choice) -> Union:
        """Return the union of a choice."""
        return self._unions[id(choice)]

    def needs(self, structure: Structure) -> bool:
        """Return whether the layout of a structure depends on parameters."""
        return any(
            conditions.parameters(each.term)
            for inside in self.spec.reached(structure)
            for element in inside.elements
            for each in _conditioned(element)
        )

    def inside(self, structure: Structure) -> Kind:
        """Return the kind of the value of a nested structure."""
        if structure.single is None:
            return Named(self.record(structure).name)
        kind = self.kind(structure.single)
        return Maybe(kind) if is_optional(structure.single) else kind

    def kind(self, element: Element) -> Kind:
        """Return the kind of an element's value."""
        if isinstance(element, Repeat):
            return ListOf(self.inside(element.item))
        if isinstance(element, Choice):
            return Named(self.union(element).name)
        return Named(element.part) if element.part else _plain_kind(element)

    def then(self, branch: Branch) -> Structure:
        """Return the structure of the content of a branch that has one."""
        found = branch.alternative.then
        assert found is not None
        return self.spec.part(found) if isinstance(found, str) else found

    def owner(self, choice: Choice) -> Structure:
        """Return the structure that a choice is in."""
        return next(each for each in self.spec.structures() if any(e is choice for e in each.elements))

    def json_name(self, union: Union, branch: Branch) -> str:
        """Return the class that JSON names around the content of a branch; empty if all contents are of one type."""
        classes = {self._class_of(self.then(each)) for each in union.branches if each.kind is not None}
        return self._class_of(self.then(branch)) if len(classes) > 1 and branch.kind is not None else ""

    def _class_of(self, structure: Structure) -> str:
        """Return the Python class of a structure's value."""
        element = structure.principal
        if element is None:
            return str(structure.class_name)
        if isinstance(element, Field) and element.part:
            return self._class_of(self.spec.part(element.part))
        return element.python if isinstance(element, Field) else "tuple"

    def named_itself(self, structure: Structure) -> Term | None:
        """Return the condition under which JSON names the class of a structure in its own value; None: never."""
        element = structure.principal
        inner = self.named_itself(self.spec.part(element.part)) if isinstance(element, Field) and element.part else None
        own = structure.extension if structure.extended else None
        found = [each for each in (own, inner) if each is not None]
        return conditions.some(found) if found else None

    def _visit(self, structure: Structure, owner: str) -> None:
        """Add the types of what is in a structure."""
        for element in structure.elements:
            if isinstance(element, Repeat):
                self._visit(element.item, element.class_name or owner)
                if element.item.single is None:
                    self._add(str(element.class_name), element.description, element.item)
                else:
                    self._nest(element.item, owner + pascal(element.name))
            elif isinstance(element, Choice):
                (name,) = distinct([owner + pascal(element.name)], self._taken)
                self._taken.append(name)
                branches = tuple(self._branches(element, name))
                self._unions[id(element)] = union = Union(name, element.description, element, branches)
                self.types.append(union)

    def _branches(self, choice: Choice, owner: str) -> Iterator[Branch]:
        names = distinct(pascal(each.name) for each in choice.alternatives)
        for name, each in zip(names, choice.alternatives, strict=True):
            yield Branch(name, self._content(each, owner + name), each)

    def _content(self, alternative: Alternative, owner: str) -> Kind | None:
        if isinstance(alternative.then, str):
            return Named(alternative.then)
        if alternative.then is None:
            return None
        self._visit(alternative.then, owner)
        if alternative.content is not None:
            self._add(str(alternative.python), alternative.description, alternative.then)
            return Named(str(alternative.python))
        self._nest(alternative.then, owner)
        return self.inside(alternative.then)

    def _nest(self, structure: Structure, name: str) -> None:
        (element, *others) = structure.elements
        plain = isinstance(element, Field) and not element.variants and not element.conditional
        if others or not (plain or isinstance(element, Choice)):
            (self.nested[id(structure)],) = distinct([name], self.nested.values())

    def _add(self, name: str, about: str, structure: Structure) -> None:
        attributes = tuple(Attribute(e.name, self.kind(e), is_optional(e), e.description, e) for e in structure.exposed)
        self._records[id(structure)] = record = Record(name, about, structure, attributes)
        self.types.append(record)


def _plain_kind(field: Field) -> Kind:
    """Return the kind of the value of a field that is no part."""
    if field.is_text:
        return Text()
    if field.is_letter:
        return Letter()
    if field.width is not None and field.type is not None:
        return Number(field.width, field.signed, field.type.python)
    return Block(field.size) if field.size is not None else Data()


def has_absence(element: Element) -> bool:
    """Return whether an element may be absent on the wire, whatever its value."""
    return element.conditional or (isinstance(element, Field) and bool(element.variants) and not element.complete)


def is_optional(element: Element) -> bool:
    """Return whether an element's value may be absent."""
    if isinstance(element, Choice):
        return element.optional
    if isinstance(element, Field) and element.variants:
        return not element.complete or any(each.hidden for each in element.variants)
    return element.conditional or (isinstance(element, Field) and element.absent is not None)


def step(structure: Structure, element: Element) -> str:
    """Return the step of an element in the path of an error; empty if the structure is this element alone."""
    return "" if structure.single is not None and len(structure.elements) == 1 else element.name


def pascal(name: str) -> str:
    """Return a name in PascalCase: ``old_key`` is ``OldKey``."""
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", name) if word)


def condition_text(term: Term | None, parameter: Callable[[str], str], bit: Callable[[str, int], str]) -> str:
    """Return a condition with the operators of C.

    Args:
        term: The condition.
        parameter: Returns the expression of a parameter.
        bit: Returns the test for a bit of an earlier field.
    """

    def inside(each: Term) -> str:
        text = condition_text(each, parameter, bit)
        return f"({text})" if " && " in text and not text.startswith("(") else text

    found = "true"
    match term:
        case Flag(name):
            found = parameter(name)
        case Since(version, name):
            found = f"{parameter(name)} >= {version}"
        case Until(version, name):
            found = f"{parameter(name)} <= {version}"
        case Bit(field, mask):
            found = bit(field, mask)
        case Not(Flag(name)):
            found = f"!{parameter(name)}"
        case Not(inner):
            found = negated(condition_text(inner, parameter, bit))
        case Every(terms):
            found = " && ".join(map(inside, terms))
        case Some(terms):
            found = f"({' || '.join(map(inside, terms))})"
    return found


def negated(test: str) -> str:
    """Return the negation of a test."""
    is_grouped = test.startswith("(") and test.endswith(")") and _depths(test[1:-1]) >= 0
    return f"!{test}" if is_grouped else f"!({test})"


def _depths(text: str) -> int:
    """Return the least depth of parentheses anywhere in a text."""
    depth = least = 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        least = min(least, depth)
    return least


def version_condition(alternative: Alternative) -> Term | None:
    """Return the part of a branch's condition that is about the protocol version."""
    since = Since(alternative.since) if alternative.since else None
    return conditions.every(since, Until(alternative.until) if alternative.until else None)


def asked_option(spec: Spec, message: Message) -> Option | None:
    """Return the option without which parse refuses a message; None if it needs none."""
    if not message.option or message.unasked:
        return None
    return next(option for option in spec.options if option.name == message.option)


def _conditioned(element: Element) -> Sequence[Field | Repeat | Alternative]:
    if isinstance(element, Choice):
        return element.alternatives
    return element.variants or (element,) if isinstance(element, Field) else (element,)
