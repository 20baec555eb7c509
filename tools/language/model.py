"""The specification as objects: messages and parts made of blocks, blocks made of fields."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from tools.language.records import Document, Option

__all__ = [
    "Alternative",
    "Block",
    "Choice",
    "Document",
    "Field",
    "Fields",
    "Message",
    "Option",
    "Parameter",
    "Part",
    "Repeat",
    "Spec",
    "State",
    "Structure",
    "Type",
    "Version",
]


@dataclass(frozen=True)
class Type:
    """One row of spec/types.yaml: a notation, and what it is on the wire, in Python and in Arrow."""

    notation: str
    construct: str
    python: str
    arrow: str
    signed: bool = False
    bytes: int | None = None


@dataclass(frozen=True)
class Field:
    """One field. It has a type, or refers to a part, or is a constant."""

    name: str
    notation: str
    description: str = ""
    type: Type | None = None
    part: str | None = None
    constant: bytes | int | None = None
    when: str | None = None
    since: int | None = None
    server: int | None = None
    length: str | None = None
    values: Mapping[str | int, str] | None = None
    bits: Mapping[int, str] | None = None
    documented: str | None = None
    line: int = 0

    @property
    def conditional(self) -> bool:
        """Whether the field may be absent."""
        return self.when is not None or self.since is not None


@dataclass(frozen=True)
class Fields:
    """A run of fields: the block types ``header`` and ``body``, and the list under ``then``."""

    kind: str
    fields: tuple[Field, ...]
    line: int = 0


@dataclass(frozen=True)
class Alternative:
    """One tagged branch of a choice."""

    name: str
    tag: bytes
    description: str = ""
    server: int | None = None
    since: int | None = None
    python: str | None = None
    then: "Structure | str | None" = None
    line: int = 0


@dataclass(frozen=True)
class Choice:
    """One of several tagged branches, or none of them where it is optional."""

    kind: str
    name: str
    alternatives: tuple[Alternative, ...]
    optional: bool = False
    description: str = ""
    line: int = 0

    @property
    def valued(self) -> bool:
        """Whether the branch taken shows in the Python value itself, so that no kind is kept beside it."""
        return all(alternative.python for alternative in self.alternatives)

    @property
    def kind_name(self) -> str:
        """The name of the field that holds the tag of the branch taken."""
        return f"{self.name}_kind"


@dataclass(frozen=True)
class Repeat:
    """Items that follow each other; an earlier field says how many."""

    kind: str
    name: str
    count: str
    item: "Structure"
    class_name: str | None = None
    description: str = ""
    line: int = 0


Block = Fields | Choice | Repeat
Element = Field | Choice | Repeat


@dataclass(frozen=True)
class Structure:
    """Blocks in wire order."""

    blocks: tuple[Block, ...]

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
        measured = {e.count: e.name for e in self.elements if isinstance(e, Repeat)}
        return measured | {e.length: e.name for e in self.elements if isinstance(e, Field) and e.length}

    @cached_property
    def exposed(self) -> tuple[Element, ...]:
        """What a Python object holds: neither constants nor derived counts and lengths."""
        return tuple(e for e in self.elements if not self._hidden(e))

    def _hidden(self, element: Element) -> bool:
        return isinstance(element, Field) and (element.constant is not None or element.name in self.sizes)

    @cached_property
    def single(self) -> Element | None:
        """The one thing exposed, for which the whole structure can stand; None when there are more."""
        only = self.exposed[0] if len(self.exposed) == 1 else None
        return None if isinstance(only, Choice) and not only.valued else only

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

    def references(self) -> Iterator[str]:
        """Yield the names of the parts that this structure refers to."""
        for structure in self.inside():
            for element in structure.elements:
                if isinstance(element, Field) and element.part:
                    yield element.part
                elif isinstance(element, Choice):
                    yield from (a.then for a in element.alternatives if isinstance(a.then, str))


@dataclass(frozen=True)
class Message(Structure):
    """A message: the first field of its first block is the tag."""

    name: str = ""
    tag: bytes = b""
    description: str = ""
    server: int | None = None
    since: int | None = None
    unasked: str | None = None
    sender: str | None = None
    within: tuple[str, ...] = ()
    enters: str | None = None
    group: str | None = None
    option: str | None = None
    line: int = 0

    @property
    def class_name(self) -> str:
        """The name of its class and of its Struct."""
        return self.name.replace(" ", "")


@dataclass(frozen=True)
class Part(Structure):
    """A structure that messages refer to by name."""

    name: str = ""
    description: str = ""
    server: int | None = None
    line: int = 0


@dataclass(frozen=True)
class Version:
    """One version of the protocol, and the server that brought it."""

    version: int
    server: int
    brings: str = ""


@dataclass(frozen=True)
class Parameter:
    """Something outside the bytes that decides how they are laid out."""

    name: str
    type: str
    description: str = ""
    documented: str | None = None


@dataclass(frozen=True)
class State:
    """Where in the stream a message stands; a state may set parameters."""

    name: str
    sets: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True)
class Spec:
    """A whole specification."""

    protocol: str
    title: str
    source: str
    file: str
    messages: tuple[Message, ...]
    parts: tuple[Part, ...] = ()
    versions: tuple[Version, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    states: tuple[State, ...] = ()
    options: tuple[Option, ...] = ()
    documents: tuple[Document, ...] = ()
    types: tuple[Type, ...] = field(default=(), repr=False)

    def structures(self) -> Iterator[Structure]:
        """Yield every structure: messages, parts, and all that stand in them."""
        for top in (*self.messages, *self.parts):
            yield from top.inside()

    @property
    def named(self) -> tuple[Message | Part, ...]:
        """The messages and the parts."""
        return (*self.messages, *self.parts)

    def fields(self) -> Iterator[Field]:
        """Yield every field, whatever it stands in."""
        for structure in self.structures():
            yield from (element for element in structure.elements if isinstance(element, Field))

    @property
    def state_parameters(self) -> tuple[Parameter, ...]:
        """The parameters that states set: what a message's place in the stream decides."""
        names = {name for state in self.states for name in state.sets}
        return tuple(parameter for parameter in self.parameters if parameter.name in names)

    @property
    def layout_options(self) -> tuple[Option, ...]:
        """The options that decide which messages come, or how they are laid out, beside the protocol version."""
        asked = {message.option for message in self.messages if message.option and not message.unasked}
        return tuple(o for o in self.options if o.decides_layout or (o.values and o.name in asked))

    def came_with(self, server: int | None, since: int | None) -> int:
        """Return the PostgreSQL version that brought something: its own, or that of its protocol version."""
        versions = {version.version: version.server for version in self.versions}
        return server or versions.get(since or 0, 0)

    def part(self, name: str) -> Part:
        """Return the part of that name."""
        return next(part for part in self.parts if part.name == name)

    @cached_property
    def parts_in_order(self) -> tuple[Part, ...]:
        """The parts, each after those that it refers to."""
        ordered: list[Part] = []
        while len(ordered) < len(self.parts):
            known = {part.name for part in ordered}
            ordered += [part for part in self.parts if part.name not in known and set(part.references()) <= known]
        return tuple(ordered)
