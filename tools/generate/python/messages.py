"""Emits the message classes: frozen, slotted dataclasses in wire order, with units and source."""

from collections.abc import Iterator, Sequence
from textwrap import wrap

from tools.generate.text import constant, docstring, python_module
from tools.generate.words import availability
from tools.language import Choice, Field, Message, Repeat, Spec
from tools.language.elements import Alternative, Element, Structure
from tools.language.model import State
from tools.language.program_names import by_position
from tools.language.wire_names import renamed

__all__ = ["emit_messages"]

IMPORTS = """
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias, overload

from pgoutput_construct.wire.field_renames import former, renamed
from pgoutput_construct.wire.types import (
    REQUIRED, Extended, FieldedBytes, Float, FormattedBytes, Lsn, Marker, Timestamp, require
)
"""


_ABSENT = " = None"
_REQUIRED = " = REQUIRED"
_BY_KEYWORD = " = field(default=None, kw_only=True)"
_Attribute = tuple[str, str, str]
"""The name, type and default of a field."""


def emit_messages(spec: Spec, union: str) -> str:
    """Return the module of message classes; ``union`` is the name of the type of all of them."""
    return python_module(
        spec,
        [f"{spec.title}: the message classes, fields in wire order.", "", *_about(spec)],
        IMPORTS,
        f"__all__ = {sorted(_public(spec, union))!r}",
        *_values(spec),
        *_Classes(spec).all(),
        f"{union}: TypeAlias = {' | '.join(m.class_name for m in spec.messages)}\n"
        + docstring(["Any of the messages."], ""),
        *_renamed(spec),
        *(_tables(spec, union) if spec.framed else [_by_tag(spec, union)]),
    )


def _about(spec: Spec) -> Iterator[str]:
    yield "Constants, counts and lengths are on the wire and not here; what is absent on the wire is None."
    yield f"Source: {spec.described_in}."


def _public(spec: Spec, union: str) -> set[str]:
    """Return the names that users import: classes and constants, but not the engines' tables."""
    values = {name for alternative in _valued_alternatives(spec) for name in alternative.defines}
    return {union, *spec.class_names(), *values, *renamed(spec)}


def _renamed(spec: Spec) -> Iterator[str]:
    """Yield what messages with another name were called, which programs use."""
    for name, now in renamed(spec).items():
        yield f"{name}: TypeAlias = {now}\n" + docstring([f"The name that {now} had before."], "")


def _valued_alternatives(spec: Spec) -> list[Alternative]:
    choices = [e for structure in spec.structures() for e in structure.elements if isinstance(e, Choice) and e.valued]
    return [alternative for choice in choices for alternative in choice.alternatives]


def _values(spec: Spec) -> Iterator[str]:
    alternatives = _valued_alternatives(spec)
    for alternative in alternatives:
        if len(alternative.defines) == 2:
            yield _marker(alternative)
        elif alternative.defines:
            text = docstring([alternative.description])
            base = "FieldedBytes" if alternative.extras else "FormattedBytes"
            head = f"class {alternative.python}({base}):\n{text}\n\n"
            yield head + (_with_attributes(alternative) if alternative.extras else "    __slots__ = ()")
    if alternatives:
        rows = (f'"{a.name}": {a.python}' for a in alternatives)
        text = "The Python type of each kind of value: a constant, or a class of bytes."
        yield constant("VALUES: Final[Mapping[str, object]]", rows, text)
        rows = (f'"{a.name}": {a.tag[0]:#x}' for a in alternatives)
        yield constant("VALUE_TAGS: Final[Mapping[str, int]]", rows, "The tag of each kind of value on the wire.")
        rows = (f'"{a.name}": "{a.format}"' for a in alternatives if a.format != "none")
        text = "The kinds of values whose bytes are in text or binary format; those of other kinds are in neither."
        yield constant("FORMS: Final[Mapping[str, str]]", rows, text)


def _with_attributes(alternative: Alternative) -> str:
    """Return the body of a FieldedBytes class, whose further fields are keyword arguments."""
    fields = [(field.name, field.python, field.description or field.name) for field in alternative.extras]
    hints = "".join(f"    {name}: {hint}\n{docstring([about])}\n" for name, hint, about in fields)
    given = ", ".join(f"{name}: {hint}" for name, hint, _ in fields)
    passed = ", ".join(f"{name}={name}" for name, _, _ in fields)
    return (
        f"    FIELDS = {tuple(name for name, _, _ in fields)!r}\n{hints}\n"
        f'    def __new__(cls, data: bytes, *, {given}) -> "{alternative.python}":\n'
        f"        return super()._made(data, {passed})"
    )


def _marker(alternative: Alternative) -> str:
    name, cls = alternative.defines
    return (
        f'class {cls}(Marker):\n{docstring([alternative.description])}\n\n    {name} = "{alternative.name}"\n\n\n'
        f"{name}: Final = {cls}.{name}\n" + docstring([alternative.description], "")
    )


class _Classes:
    """Writes the classes, and the aliases of parts, each after those that it depends on."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    def all(self) -> Iterator[str]:
        """Yield the classes of parts, then those of messages."""
        for part in self.spec.parts_in_order:
            yield from self._items(part)
            if part.single is None:
                yield self._class([part.description], part)
            else:
                yield f"{part.name}: TypeAlias = {_union(self._members(part.single))}\n" + docstring(
                    [part.description], ""
                )
        for message in self.spec.messages:
            yield from self._items(message)
        for message in self.spec.messages:
            source = [f"Source: {self.spec.source}, {message.name}.", *availability(self.spec, message)]
            yield self._class([message.description, "", *source], message, _constants(self.spec, message))

    def _items(self, structure: Structure) -> Iterator[str]:
        return (self._class([repeat.description], repeat.item) for repeat in structure.records())

    def _class(self, about: list[str], structure: Structure, constants: str = "") -> str:
        name = structure.class_name
        if structure.extended and structure.principal is not None:
            about = [*about, "", f"If it has nothing else, messages hold its {structure.principal.name} alone."]
            constants = f'    PRINCIPAL = "{structure.principal.name}"\n\n'
        text = docstring([about[0] or f"{name}.", *about[1:], *_attributes(structure)])
        names = {old: e.name for e in structure.exposed if isinstance(e, Field) for old in e.formerly}
        decorators = f"@renamed({', '.join(f'{old}={new!r}' for old, new in names.items())})\n" if names else ""
        declared = f"@dataclass(frozen=True, slots=True)\nclass {name}{'(Extended)' * structure.extended}"
        head = f"{decorators}{declared}:\n{text}\n\n"
        return head + constants + "\n".join([*self._body(structure), *self._former(structure)])

    def _former(self, structure: Structure) -> Iterator[str]:
        """Yield the former names of fields, as properties."""
        for field in (e for e in structure.exposed if isinstance(e, Field)):
            for old in field.formerly:
                about = docstring([f"The former name of {field.name}."], "        ").strip()
                yield f"\n    @property\n    def {old}(self) -> {_union(self._members(field))}:\n        {about}"
                yield f"        former(self, {old!r}, {field.name!r})\n        return self.{field.name}"

    def _body(self, structure: Structure) -> Iterator[str]:
        """Yield the fields; those that may be absent default to None, and positional ones after them stay required."""
        fields = list(self._fields(structure))
        yield from (f"    {name}: {hint}{default}" for name, hint, default in fields)
        if required := [name for name, _, default in fields if default == _REQUIRED]:
            yield "\n    def __post_init__(self) -> None:"
            yield f"        require(self, {', '.join(map(repr, required))})"
            yield "\n    if TYPE_CHECKING:  # what a default would hide: these fields have none\n"
            yield from _signatures(fields)

    def _fields(self, structure: Structure) -> Iterator[_Attribute]:
        """Yield the name, type and default of each field."""
        optional = False
        for element in structure.exposed:
            default = _default(element, structure, optional)
            optional |= default == _ABSENT
            if isinstance(element, Choice) and not element.valued:
                yield element.kind_name, f"{'int' if element.numeric else 'str'}{' | None' * element.optional}", default
            yield element.name, _union(self._members(element)), default

    def _members(self, element: Element) -> list[str]:
        """Return the types of a field's value."""
        if isinstance(element, Repeat):
            return [f"tuple[{_union(self._inside(element.item))}, ...]", *["None"] * element.conditional]
        if isinstance(element, Choice):
            return _values_types(element) if element.valued else self._branches(element)
        members = self._part(element.part) if element.part else [element.python]
        return [*members, *["None"] * (element.conditional or element.absent is not None)]

    def _branches(self, choice: Choice) -> list[str]:
        contents = [member for alternative in choice.alternatives for member in self._then(alternative)]
        return [*contents, *["None"] * choice.optional]

    def _then(self, alternative: Alternative) -> list[str]:
        if isinstance(alternative.then, str):
            return self._part(alternative.then)
        return ["None"] if alternative.then is None else self._inside(alternative.then)

    def _part(self, name: str) -> list[str]:
        part = self.spec.part(name)
        inside = self._inside(part)
        return inside if part.extended or set(inside) == {"None"} else [name]  # None | None is no type

    def _inside(self, structure: Structure) -> list[str]:
        """Return the types of a nested structure: of its principal, of its class, or both."""
        principal = self._members(structure.principal) if structure.principal is not None else []
        return [*principal, *[str(structure.class_name)] * (structure.single is None)]


def _default(element: Element, structure: Structure, optional: bool) -> str:
    positional = by_position(element, structure)
    if element.conditional and not positional:
        return _BY_KEYWORD
    if positional or (isinstance(element, Choice) and element.optional):
        return _ABSENT
    return _REQUIRED if optional else ""


def _signatures(fields: Sequence[_Attribute]) -> Iterator[str]:
    """Yield the overloads of the constructor: all fields by position, or keywords from one that may be omitted on."""
    places = [each for each in fields if each[2] != _BY_KEYWORD]
    named = [f"{name}: {hint} = None" for name, hint, default in fields if default == _BY_KEYWORD]
    last = max(number for number, each in enumerate(places) if each[2] == _REQUIRED)
    cuts = [number for number, each in enumerate(places[:last]) if each[2] == _ABSENT]
    own = "self" if all(name != "self" for name, _, _ in fields) else "self_"
    for cut in (last + 1, *cuts):
        before = [f"{name}: {hint}" for name, hint, _ in places[:cut]]
        after = [f"{name}: {hint}{_ABSENT * (default == _ABSENT)}" for name, hint, default in places[cut:]]
        star = ["*"] * bool(named)
        arguments = [*before, *after, *star, *named] if cut > last else [*before, "*", *after, *named]
        yield f"        @overload\n        def __init__({own}, {', '.join(arguments)}) -> None: ..."
    yield "        def __init__(self, *args: Any, **given: Any) -> None: ..."


def _attributes(structure: Structure) -> list[str]:
    """Return the lines of a docstring that describe the fields."""
    lines = [line for element in structure.exposed for line in _described(structure, element)]
    return ["", "Attributes:", *(f"    {line}" for line in lines)] if lines else []


def _described(structure: Structure, element: Element) -> Iterator[str]:
    if isinstance(element, Choice) and not element.valued:
        tags = ", ".join(f"{alternative.letter} ({alternative.name})" for alternative in element.alternatives)
        yield f"{element.kind_name}: What {element.name} is: {tags}."
    former = f" (formerly {', '.join(element.formerly)})" if isinstance(element, Field) and element.formerly else ""
    former += _number_of_items(structure, element) if isinstance(element, Repeat) else ""
    yield from wrap(f"{element.name}: {element.description or element.name}{former}", 110, subsequent_indent="    ")


def _number_of_items(structure: Structure, repeat: Repeat) -> str:
    """Return what the number of items must be, in parentheses; empty if it may be any."""
    if first := structure.alike.get(repeat.name):
        return f" (as many as {first})"
    return f" ({repeat.fixed} items)" if repeat.fixed else ""


def _values_types(choice: Choice) -> list[str]:
    return [str(alternative.python_class) for alternative in choice.alternatives]


def _union(members: list[str]) -> str:
    """Return a union of types: each once, None last."""
    return " | ".join(sorted(dict.fromkeys(members), key="None".__eq__))


def _constants(spec: Spec, message: Message) -> str:
    """Return the bytes with which a message begins.

    For a message of a connection also the offset of its length (None: it has none), and the constant after it by
    which it differs from others with the same tag.
    """
    lines = [f"    TAG = {message.tag!r}"]
    if spec.framed:
        lines += [
            f"    LENGTH_AT = {len(message.tag) if message.length else None}",
            f"    CODE = {message.code_bytes!r}",
        ]
    return "\n".join(lines) + "\n\n"


def _tables(spec: Spec, union: str) -> Iterator[str]:
    """Yield the tables of a connection: its messages in each state with the state that follows, and its states."""
    rows = (
        f'("{place.name}", "{sender}"): {{{", ".join(_steps(spec, place, sender))}}}'
        for place in spec.places
        for sender in ("server", "client")
    )
    yield constant(
        f"FOLLOWING: Final[Mapping[tuple[str, str], Mapping[type[{union}], str]]]",
        rows,
        "The messages that each side can send in each state of a connection, and the state that follows.",
    )
    if plain := [repr(place.name) for place in spec.places if place.plain_copy]:
        text = "The states in which a CopyData has rows of a COPY, and no frame."
        yield constant("PLAIN_COPY: Final[tuple[str, ...]]", plain, text, brackets="()")


def _steps(spec: Spec, place: State, sender: str) -> Iterator[str]:
    for message in spec.messages:
        if (following := spec.following(message, sender, place)) is not None:
            yield f'{message.class_name}: "{following}"'


def _by_tag(spec: Spec, union: str) -> str:
    rows = (f"{m.tag!r}: {m.class_name}" for m in spec.messages)
    return constant(f"BY_TAG: Final[Mapping[bytes, type[{union}]]]", rows, "The class of each first byte.")
