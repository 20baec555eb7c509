"""Emits the tables around the messages: versions, options, states, groups, and names for bits and values."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tools.generate.text import constant, docstring, python_module
from tools.language import Choice, Field, Message, Option, Repeat, Spec, conditions
from tools.language.bounds import effect_of, roles_of
from tools.language.conditions import Term
from tools.language.elements import Element, Structure
from tools.language.row_rules import is_unread

__all__ = ["emit_protocol"]

IMPORTS = """
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, IntFlag, StrEnum
from typing import Final, Literal, NamedTuple, TypeAlias, TypedDict

from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.spec_metadata import Bound, Option, OptionValue
"""

GROUPS = {
    "change": ("CHANGES", "The messages that change rows of tables."),
    "description": ("DESCRIPTIONS", "The messages that describe rows."),
    "begin": ("BEGINS", "The messages that open a transaction, or a segment of one."),
    "end": ("ENDS", "The messages that end a transaction, or a segment of one."),
}

PYTHON_TYPES = {"number": "int | None", "switch": "bool", "names": "tuple[str, ...]"}
DEFAULTS = {"switch": "False", "names": "()"}
PUBLICATIONS = "publication_names"
"""The required option; StreamOptions has it as ``publications``."""
NAMED = ("streaming", "in_stream")
"""The named arguments of parse; others are keyword arguments."""


def emit_protocol(spec: Spec) -> str:
    """Return the module of tables."""
    chunks = [
        _versions(spec),
        *(_literal(spec, option) for option in spec.options if option.values),
        _options(spec),
        *_classes_of_options(spec),
        *_states(spec),
        *_groups(spec),
        _bounds(spec),
        *_enums(spec),
    ]
    public = re.findall(r"^(?:class )?([A-Z]\w+)(?=[:(])", "\n".join(chunks), re.MULTILINE)
    about = f"{spec.title}: versions, options, states, groups of messages, and names of bits and values."
    return python_module(spec, [about], IMPORTS, f"__all__ = {sorted(public)!r}", *chunks)


def _versions(spec: Spec) -> str:
    text = "The protocol versions, each with the first PostgreSQL version that supports it."
    return constant(
        "PROTOCOL_VERSIONS: Final[Mapping[int, int]]", (f"{v.version}: {v.server}" for v in spec.versions), text
    )


def _literal(spec: Spec, option: Option) -> str:
    values = ", ".join(repr(value.name) for value in option.values)
    return f"{_alias(spec, option)}: TypeAlias = Literal[{values}]\n" + docstring([option.description], "")


def _alias(spec: Spec, option: Option) -> str:
    name = _pascal(option.name)
    return f"{name}Option" if name in {message.class_name for message in spec.messages} else name


def _pascal(name: str) -> str:
    return "".join(part.capitalize() for part in re.split(r"[^A-Za-z0-9]+", name))


def _options(spec: Spec) -> str:
    oldest = spec.versions[0].version if spec.versions else 1
    rows = (
        f"{option.name!r}: Option({_default(option)}, {{{_values(spec, option, oldest)}}}, "
        f"{spec.came_with(option.server, option.since)}, {option.description!r}, {option.since or oldest})"
        for option in spec.options
    )
    return constant("OPTIONS: Final[Mapping[str, Option]]", rows, "The options of START_REPLICATION.")


def _default(option: Option) -> str:
    if option.values:
        return repr(option.values[0].name)
    return {"proto_version": "1", PUBLICATIONS: "None"}.get(option.name, DEFAULTS.get(option.type or "", "None"))


def _values(spec: Spec, option: Option, oldest: int) -> str:
    if option.type == "switch":
        on = f"{spec.came_with(option.server, option.since)}, {option.since or oldest}"
        return f"False: OptionValue({option.server or 0}, {oldest}), True: OptionValue({on}, {option.sets!r})"
    return ", ".join(
        f"{value.name!r}: OptionValue({spec.came_with(value.server, value.since)}, {value.since or oldest}, "
        f"{value.sets!r})"
        for value in option.values
    )


def _annotation(spec: Spec, option: Option) -> str:
    if option.name == "proto_version":
        return "int"
    return _alias(spec, option) if option.values else PYTHON_TYPES[option.type or ""]


def _classes_of_options(spec: Spec) -> Iterator[str]:
    """Yield the classes of options: those of layouts with the stream state, and those of START_REPLICATION."""
    version = ("proto_version: int = 1", "The protocol version.")
    layout = [_field(spec, option) for option in spec.layout_options]
    layout += [(f"{state.name}: bool = False", state.description or state.name) for state in spec.state_parameters]
    text = "What determines a message's layout besides its bytes; ``_asdict()`` returns the keywords of parse."
    yield _class("class ParseOptions(NamedTuple)", text, [version, *layout])
    more = [(field.partition(" = ")[0], "") for field, _ in layout if field.partition(":")[0] not in NAMED]
    text = "Keywords of parse and build besides proto_version, streaming and in_stream: those of later versions."
    yield _class("class MoreOptions(TypedDict, total=False)", text, more)
    plain = [option for option in spec.options if option.name != PUBLICATIONS]
    fields = [_field(spec, option) for option in plain]
    text = "The options of START_REPLICATION except the names of publications."
    yield _class("@dataclass(frozen=True, kw_only=True)\nclass ReplicationOptions", text, fields)
    hints = {option.name: _annotation(spec, option).removesuffix(" | None") for option in plain}
    given = [(f"{each.name}: {hints[each.name]} | None = None", each.description) for each in plain]
    text = "The options of START_REPLICATION that a caller gives: None for one that is not given."
    yield _class("@dataclass(frozen=True, kw_only=True, repr=False)\nclass GivenOptions", text, given)


def _field(spec: Spec, option: Option) -> tuple[str, str]:
    return f"{option.name}: {_annotation(spec, option)} = {_default(option)}", option.description


def _class(head: str, text: str, fields: Iterable[tuple[str, str]]) -> str:
    """Return a class whose fields have docstrings, if any."""
    lines = [line for field, about in fields for line in (f"    {field}", docstring([about]) if about else "") if line]
    return "\n".join([f"{head}:", docstring([text]), "", *lines])


def _states(spec: Spec) -> Iterator[str]:
    names = tuple(parameter.name for parameter in spec.parameters)
    yield f"PARAMETERS: Final = {names!r}\n" + docstring(["The parameters of the layouts, in the engines' order."], "")
    rows = (f"{state.name!r}: {_set(map(repr, state.sets))}" for state in spec.places)
    text = "The states of a stream, the initial one first, each with the parameters that it sets."
    yield constant("STATES: Final[Mapping[str, frozenset[str]]]", rows, text)
    steps = ((m, str(dict(spec.steps(m)))) for m in spec.messages)
    text = "The states in which each message is permitted, each with the state that follows."
    yield _of_messages("TRANSITIONS", "Mapping[str, str]", steps, text)


def _set(members: Iterable[str]) -> str:
    return f"frozenset({{{', '.join(members)}}})".replace("{}", "")


def _groups(spec: Spec) -> Iterator[str]:
    for group, (name, text) in GROUPS.items():
        members = _set(f"m.{message.class_name}" for message in spec.messages if message.group == group)
        yield f"{name}: Final[frozenset[type[m.PgoutputMessage]]] = {members}\n" + docstring([text], "")
    unread = _set(f"m.{message.class_name}" for message in spec.messages if is_unread(message, spec))
    text = "The messages that may change rows in a way that readers of tables do not know: they refuse a log with one."
    yield f"UNREAD: Final[frozenset[type[m.PgoutputMessage]]] = {unread}\n" + docstring([text], "")
    yield _of_messages(
        "LAID_OUT_BY_STATE",
        "frozenset[str]",
        ((m, _set(map(repr, found))) for m in spec.messages if (found := _state_conditions(spec, m))),
        "The messages whose layout depends on the stream state, each with the parameters that it depends on.",
    )
    yield _of_messages(
        "SINCE",
        "int",
        ((m, str(m.since)) for m in spec.messages if m.since and not m.unasked),
        "The first protocol version of each later message, except those that servers send in every version.",
    )
    yield _of_messages(
        "ASKED_BY",
        "str",
        ((m, repr(m.option)) for m in spec.messages if m.option and not m.unasked),
        "The option that each optional message requires, except those that servers send in any case.",
    )


def _bounds(spec: Spec) -> str:
    found = ((message, effect_of(message, spec)) for message in spec.messages)
    rows = ((message, f"Bound({effect!r}, {_roles(message)})") for message, effect in found if effect)
    text = "The effect of each message that begins or ends a transaction, and its fields by role."
    return _of_messages("BOUNDS", "Bound", rows, text)


def _roles(message: Message) -> str:
    roles = roles_of(message).items()
    return str({role: tuple(field.name for field in fields) for role, fields in roles})


def _of_messages(name: str, hint: str, rows: Iterable[tuple[Message, str]], text: str) -> str:
    lines = (f"m.{message.class_name}: {value}" for message, value in rows)
    return constant(f"{name}: Final[Mapping[type[m.PgoutputMessage], {hint}]]", lines, text)


def _state_conditions(spec: Spec, message: Message) -> list[str]:
    """Return the parameters that states set, and that determine which fields a message has."""
    names = {parameter.name for parameter in spec.state_parameters}
    terms = (term for inner in spec.reached(message) for element in inner.elements for term in _terms(element))
    return sorted(names & {name for term in terms for name in conditions.parameters(term)})


def _terms(element: Element) -> Iterator[Term | None]:
    """Yield the conditions of an element, of its branches, and of its variants."""
    yield element.term
    if isinstance(element, Choice):
        yield from (branch.term for branch in element.alternatives)
    elif isinstance(element, Field):
        yield from (variant.term for variant in element.variants)


def _enums(spec: Spec) -> Iterator[str]:
    for owner, structure in _owners(spec):
        for element in structure.elements:
            name = owner + _pascal(element.name)
            if isinstance(element, Choice) and not element.valued:
                members = {a.key: a.name for a in element.alternatives}
                base = "IntEnum" if element.numeric else "StrEnum"
                yield _enum(owner + _pascal(element.kind_name), base, members, element.description)
            elif isinstance(element, Field) and element.bits:
                yield _enum(name, "IntFlag", element.bits, element.description)
            elif isinstance(element, Field) and element.values:
                base = "StrEnum" if all(isinstance(value, str) for value in element.values) else "IntEnum"
                yield _enum(name, base, element.values, element.description)
            if isinstance(element, Field) and (element.bits or element.values):
                for old in element.formerly:
                    about = docstring([f"The former name of {name}."], "")
                    yield f"{owner}{_pascal(old)}: TypeAlias = {name}\n{about}"


def _owners(spec: Spec) -> Iterator[tuple[str, Structure]]:
    todo: list[tuple[str, Structure]] = [(part.name, part) for part in spec.parts]
    todo += [(message.class_name, message) for message in spec.messages]
    for owner, structure in todo:
        yield owner, structure
        todo += [(e.class_name or owner + _pascal(e.name), e.item) for e in structure.elements if isinstance(e, Repeat)]


def _enum(name: str, base: str, members: Mapping[Any, str], text: str) -> str:
    lines: dict[str, str | int] = {}
    for value, meaning in members.items():
        word = re.sub(r"\W+", "_", meaning, flags=re.ASCII).strip("_").upper()
        usable = word and not word[0].isdigit() and word not in lines and word != "MRO"
        plain = str(value) if str(value).isalnum() else "_".join(str(ord(letter)) for letter in str(value))
        lines[word if usable else f"VALUE_{plain}"] = value
    body = "".join(f"    {word} = {value!r}\n" for word, value in lines.items())
    return f"class {name}({base}):\n{docstring([text or name])}\n\n{body}"
