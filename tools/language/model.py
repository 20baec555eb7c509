"""The specification as objects: messages, parts, and what stands around them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from tools.language.elements import Choice, Repeat, Structure
from tools.language.fields import Field, Type
from tools.language.records import Document, Option

__all__ = ["Document", "Message", "Option", "Parameter", "Part", "Spec", "State", "Version"]


@dataclass(frozen=True)
class Message(Structure):
    """A message: the first field of its first block is the tag, or holds its length where it has no tag."""

    name: str = ""
    tag: bytes = b""
    description: str = ""
    server: int | None = None
    since: int | None = None
    unasked: str | None = None
    sender: str | None = None
    within: tuple[str, ...] = ()
    enters: str | None = None
    ignored: tuple[str, ...] = ()
    group: str | None = None
    effect: str | None = None
    option: str | None = None
    line: int = 0

    @property
    def class_name(self) -> str:
        """The name of its class and of its Struct."""
        return self.name.replace(" ", "")

    @property
    def extended(self) -> bool:
        """A message is always an object."""
        return False

    @property
    def length(self) -> Field | None:
        """The field that holds how many bytes it takes from there on; None where nothing in it says that."""
        return next((field for field in self.elements[:2] if isinstance(field, Field) and field.frames), None)

    @property
    def code(self) -> Field | None:
        """The constant behind its length, which tells it from others of the same tag, or without one."""
        place = len(self.tag) + 1
        following = self.elements[place] if self.length and len(self.elements) > place else None
        return following if isinstance(following, Field) and following.constant is not None else None

    @property
    def code_bytes(self) -> bytes:
        """That constant as it is on the wire; empty where there is none."""
        return (self.code.constant_bytes or b"") if self.code else b""

    def following(self, sender: str, state: str) -> str | None:
        """Return the state that follows it on a connection; None where the sender cannot send it in this state."""
        if sender == "client" and state in self.ignored:
            return state
        return (self.enters or state) if state in self.within and self.sender in (None, sender) else None

    @property
    def needs(self) -> int | None:
        """The protocol version before which it is refused; None when every version accepts it."""
        return None if self.unasked else self.since


@dataclass(frozen=True)
class Part(Structure):
    """A structure that messages refer to by name."""

    name: str = ""
    description: str = ""
    server: int | None = None
    line: int = 0

    @property
    def class_name(self) -> str:
        """The name of its class, or of the type that it is known by."""
        return self.name

    @property
    def values(self) -> Choice | None:
        """How the values of a row are sent, None for a part that is no row."""
        repeat = self.principal
        value = repeat.item.principal if isinstance(repeat, Repeat) else None
        return value if isinstance(value, Choice) and value.valued else None


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

    @property
    def framed(self) -> bool:
        """Whether its messages say how long they are, so that they can follow each other on a connection."""
        return any(message.length for message in self.messages)

    @property
    def signature(self) -> tuple[str, ...]:
        """The parameters as arguments of a generated function: ``proto_version: int``."""
        return tuple(f"{parameter.name}: {parameter.type}" for parameter in self.parameters)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of the parameters, as a generated function passes them on."""
        return tuple(parameter.name for parameter in self.parameters)

    def structures(self) -> Iterator[Structure]:
        """Yield every structure: messages, parts, and all that stand in them."""
        for top in (*self.messages, *self.parts):
            yield from top.inside()

    def reached(self, structure: Structure) -> Iterator[Structure]:
        """Yield all that stands in a structure, itself included, and all that stands in the parts that it uses."""
        yield from structure.inside()
        for name in set(structure.references()):
            yield from self.reached(self.part(name))

    @property
    def rows(self) -> list[Part]:
        """The parts that are rows: repeats of values that are sent in one of several ways."""
        return [part for part in self.parts if part.values is not None]

    @property
    def named(self) -> tuple[Message | Part, ...]:
        """The messages and the parts."""
        return (*self.messages, *self.parts)

    def class_names(self) -> Iterator[str]:
        """Yield the names of the classes of messages, of parts, and of items."""
        yield from (named.class_name for named in self.named)
        yield from (str(repeat.class_name) for named in self.named for repeat in named.records())

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
