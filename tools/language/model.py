"""The specification as objects: messages, parts, and what surrounds them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from tools.language.elements import Choice, Repeat, Structure
from tools.language.fields import Field, Type
from tools.language.nesting import Path, Step, unfolded
from tools.language.records import Document, Option

__all__ = ["Document", "Message", "Option", "Parameter", "Part", "Spec", "State", "Version"]


@dataclass(frozen=True)
class Message(Structure):
    """A message: the first field of its first block is the tag, or its length if it has no tag."""

    name: str = ""
    tag: bytes = b""
    description: str = ""
    server: int | None = None
    since: int | None = None
    unasked: str | None = None
    sender: str | None = None
    within: tuple[str, ...] = ()
    enters: str | None = None
    returns: bool = False
    """Whether it returns to the state from which the current state was entered."""
    ignored: tuple[str, ...] = ()
    group: str | None = None
    effect: str | None = None
    option: str | None = None
    rows: str | None = None
    """What readers of tables do with it, if it is no change: ``ignored`` or ``unread``; None if not specified."""
    line: int = 0

    @property
    def tag_text(self) -> str:
        """Its tag as text: a character, or the digits of a number; empty if it has none."""
        first = self.elements[0]
        is_letter = isinstance(first, Field) and isinstance(first.constant, bytes)
        return self.tag.decode("ascii") if is_letter else "".join(map(str, self.tag))

    @property
    def class_name(self) -> str:
        """The name of its class and of its Struct."""
        return self.name.replace(" ", "")

    @property
    def extended(self) -> bool:
        """A message is always an object."""
        return False

    @cached_property
    def length(self) -> Field | None:
        """The field with the message's length, counted from there on; None if it has none."""
        return next((field for field in self.elements[:2] if isinstance(field, Field) and field.frames), None)

    @cached_property
    def code(self) -> Field | None:
        """The constant after its length, which distinguishes it from others with the same tag, or without one."""
        place = len(self.tag) + 1
        following = self.elements[place] if self.length and len(self.elements) > place else None
        return following if isinstance(following, Field) and following.constant is not None else None

    @cached_property
    def code_bytes(self) -> bytes:
        """That constant on the wire; empty if it has none."""
        return (self.code.constant_bytes or b"") if self.code else b""

    @property
    def needs(self) -> int | None:
        """The protocol version before which it is refused; None: every version accepts it."""
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
        """The name of its class, or of the type that represents it."""
        return self.name

    @property
    def values(self) -> Choice | None:
        """How the values of a row are sent; None for a part that is not a row."""
        repeat = self.principal
        value = repeat.item.principal if isinstance(repeat, Repeat) else None
        return value if isinstance(value, Choice) and value.valued else None


@dataclass(frozen=True)
class Version:
    """A version of the protocol, and the PostgreSQL version that introduced it; 0 for another protocol."""

    version: int
    server: int = 0
    brings: str = ""
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Parameter:
    """Something outside the bytes that determines the layout."""

    name: str
    type: str
    description: str = ""
    documented: str | None = None
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class State:
    """A state of the stream; it may set parameters."""

    name: str
    sets: tuple[str, ...] = ()
    plain_copy: bool = False
    """Whether a CopyData in it has rows of a COPY, and no frame."""
    description: str = ""
    line: int = field(default=0, compare=False)

    @property
    def innermost(self) -> str:
        """The name of the state as written: ``block`` of ``stream/block``."""
        return self.name.rpartition("/")[2]


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
    carries: str | None = None
    """The file of the carried messages, whose versions and options apply here, too."""
    types: tuple[Type, ...] = field(default=(), repr=False)

    @cached_property
    def framed(self) -> bool:
        """Whether its messages have a length, so that they can follow each other on a connection."""
        return any(message.length for message in self.messages)

    @property
    def is_postgresql(self) -> bool:
        """Whether it describes PostgreSQL: it has sections of PostgreSQL's documents."""
        return bool(self.documents)

    @property
    def described_in(self) -> str:
        """The document that describes its messages."""
        return f"PostgreSQL's documentation, {self.source}" if self.is_postgresql else self.source

    @property
    def signature(self) -> tuple[str, ...]:
        """The parameters as arguments of a generated function: ``proto_version: int``."""
        return tuple(f"{parameter.name}: {parameter.type}" for parameter in self.parameters)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of the parameters, as a generated function passes them on."""
        return tuple(parameter.name for parameter in self.parameters)

    def structures(self) -> Iterator[Structure]:
        """Yield every structure: messages, parts, and all that are nested in them."""
        for top in (*self.messages, *self.parts):
            yield from top.inside()

    def reached(self, structure: Structure) -> Iterator[Structure]:
        """Yield all structures in a structure, including itself, and in the parts that it uses."""
        yield from structure.inside()
        for name in set(structure.references()):
            yield from self.reached(self.part(name))

    @property
    def rows(self) -> list[Part]:
        """The parts that are tuples: repeats of values that are sent in one of several formats."""
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
        """Yield every field, at any depth."""
        for structure in self.structures():
            yield from (element for element in structure.elements if isinstance(element, Field))

    @property
    def state_parameters(self) -> tuple[Parameter, ...]:
        """The parameters that states set: those that follow from the position in the stream."""
        names = {name for state in self.states for name in state.sets}
        return tuple(parameter for parameter in self.parameters if parameter.name in names)

    @cached_property
    def nested(self) -> frozenset[str]:
        """The states that messages leave by returning to the previous one."""
        return frozenset(name for message in self.messages if message.returns for name in message.within)

    @cached_property
    def paths(self) -> Mapping[Path, list[Path | None]]:
        """The states, with nested ones once for each state that they are entered in; and each message's transitions."""
        steps = [Step(message.within, message.enters, message.returns) for message in self.messages]
        return unfolded([state.name for state in self.states], self.nested, steps)

    @cached_property
    def places(self) -> tuple[State, ...]:
        """The states after unfolding: a nested one is called ``stream/block``, and sets the parameters of both."""
        states = {state.name: state for state in self.states}
        return tuple(
            State(
                "/".join(path),
                tuple(dict.fromkeys(name for each in path for name in states[each].sets)),
                states[path[-1]].plain_copy,
                states[path[-1]].description,
                states[path[-1]].line,
            )
            for path in self.paths
        )

    @cached_property
    def _steps(self) -> Mapping[str, Mapping[str, str]]:
        return {
            message.name: {"/".join(path): "/".join(to) for path, afters in self.paths.items() if (to := afters[index])}
            for index, message in enumerate(self.messages)
        }

    def steps(self, message: Message) -> Mapping[str, str]:
        """Return the states in which a message is permitted, each with the one that follows."""
        return self._steps[message.name]

    def following(self, message: Message, sender: str, place: State) -> str | None:
        """Return the state that follows a message on a connection; None if the sender cannot send it."""
        if sender == "client" and place.innermost in message.ignored:
            return place.name
        return self.steps(message).get(place.name) if message.sender in (None, sender) else None

    @property
    def layout_options(self) -> tuple[Option, ...]:
        """The options that determine which messages are sent, or their layout; without the protocol version."""
        asked = {message.option for message in self.messages if message.option and not message.unasked}
        return tuple(o for o in self.options if o.decides_layout or o.name in asked)

    def came_with(self, server: int | None, since: int | None) -> int:
        """Return the PostgreSQL version that introduced something: its own, or that of its protocol version."""
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
