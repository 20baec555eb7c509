"""Emits the tables around the messages: versions, options, states, groups, and names for bits and values."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tools.generate.text import docstring, formatted, header
from tools.language import Choice, Field, Message, Option, Repeat, Spec
from tools.language.model import Structure

__all__ = ["emit_protocol"]

IMPORTS = """
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, IntFlag, StrEnum
from typing import Final, Literal, NamedTuple, TypeAlias, TypedDict

from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.tables import Option, OptionValue
"""

GROUPS = {
    "change": ("CHANGES", "The messages that change rows of tables."),
    "description": ("DESCRIPTIONS", "The messages that describe what the rows are."),
    "begin": ("BEGINS", "The messages that open a transaction, or a segment of one."),
    "end": ("ENDS", "The messages that end a transaction, or a segment of one."),
}

PYTHON_TYPES = {"number": "int | None", "switch": "bool", "names": "tuple[str, ...]"}
DEFAULTS = {"switch": "False", "names": "()"}
PUBLICATIONS = "publication_names"
"""The option that must be given; StreamOptions calls it ``publications``."""
NAMED = ("streaming", "in_stream")
"""What parse names among its arguments; all else is given by keyword."""


def emit_protocol(spec: Spec) -> str:
    """Return the module of tables."""
    chunks = [
        header(spec),
        docstring([f"{spec.title}: versions, options, states, groups of messages, and names of bits and values."], ""),
        IMPORTS,
        _versions(spec),
        *(_literal(spec, option) for option in spec.options if option.values),
        _options(spec),
        _parse_options(spec),
        _more_options(spec),
        _replication_options(spec),
        *_states(spec),
        *_groups(spec),
        *_enums(spec),
    ]
    public = re.findall(r"^(?:class )?([A-Z]\w+)(?=[:(])", "\n".join(chunks[3:]), re.MULTILINE)
    chunks.insert(3, f"__all__ = {sorted(public)!r}")
    return formatted("\n\n".join(chunks))


def _final(name: str, hint: str, rows: Iterable[str], text: str) -> str:
    body = "".join(f"{row},\n" for row in rows)
    return f"{name}: Final[{hint}] = {{\n{body}}}\n" + docstring([text], "")


def _versions(spec: Spec) -> str:
    text = "The protocol versions, each with the first PostgreSQL that speaks it."
    return _final("PROTOCOL_VERSIONS", "Mapping[int, int]", (f"{v.version}: {v.server}" for v in spec.versions), text)


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
        f"{spec.came_with(option.server, option.since)}, {option.description!r})"
        for option in spec.options
    )
    return _final("OPTIONS", "Mapping[str, Option]", rows, "The options of START_REPLICATION.")


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


def _parse_options(spec: Spec) -> str:
    lines = ["    proto_version: int = 1", docstring(["The protocol version."])]
    for option in spec.layout_options:
        lines += [f"    {option.name}: {_annotation(spec, option)} = {_default(option)}"]
        lines += [docstring([option.description])]
    for parameter in spec.state_parameters:
        lines += [f"    {parameter.name}: bool = False", docstring([parameter.description or parameter.name])]
    text = "All that decides the layout of a message from outside its bytes; ``_asdict()`` gives the keywords of parse."
    return f"class ParseOptions(NamedTuple):\n{docstring([text])}\n\n" + "\n".join(lines)


def _more_options(spec: Spec) -> str:
    fields = {option.name: _annotation(spec, option) for option in spec.layout_options}
    fields |= {parameter.name: "bool" for parameter in spec.state_parameters}
    lines = "".join(f"\n    {name}: {hint}" for name, hint in fields.items() if name not in NAMED)
    text = "The keywords of parse and build beside proto_version, streaming and in_stream: what later versions brought."
    return f"class MoreOptions(TypedDict, total=False):\n{docstring([text])}\n{lines}"


def _replication_options(spec: Spec) -> str:
    lines, options = [], [option for option in spec.options if option.name != PUBLICATIONS]
    for option in options:
        lines += [f"    {option.name}: {_annotation(spec, option)} = {_default(option)}"]
        lines += [docstring([option.description])]
    text = "The options of START_REPLICATION beside the names of publications."
    head = f"@dataclass(frozen=True, kw_only=True)\nclass ReplicationOptions:\n{docstring([text])}\n\n"
    hints = {option.name: _annotation(spec, option).removesuffix(" | None") for option in options}
    wishes = "".join(f"\n    {name}: {hint} | None" for name, hint in hints.items())
    asked = "The same as keywords, each None where it is left open."
    return head + "\n".join(lines) + f"\n\nclass GivenOptions(TypedDict, total=False):\n{docstring([asked])}\n{wishes}"


def _states(spec: Spec) -> Iterator[str]:
    names = ", ".join(repr(parameter.name) for parameter in spec.parameters)
    yield f"PARAMETERS: Final = ({names},)\n" + docstring(["The parameters of the layouts, in the engines' order."], "")
    rows = (f"{state.name!r}: {_set(map(repr, state.sets))}" for state in spec.states)
    text = "Where in the stream a message can stand, the first state first; and the parameters that a state sets."
    yield _final("STATES", "Mapping[str, frozenset[str]]", rows, text)
    rows = (f"m.{message.class_name}: {_transitions(spec, message)}" for message in spec.messages)
    text = "The states in which each message can come, each with the state that follows it."
    yield _final("TRANSITIONS", "Mapping[type[m.PgoutputMessage], Mapping[str, str]]", rows, text)


def _transitions(spec: Spec, message: Message) -> Mapping[str, str]:
    within = message.within or tuple(state.name for state in spec.states)
    return {state: message.enters or state for state in within}


def _set(members: Iterable[str]) -> str:
    return f"frozenset({{{', '.join(members)}}})".replace("{}", "")


def _groups(spec: Spec) -> Iterator[str]:
    for group, (name, text) in GROUPS.items():
        yield _classes(name, (m for m in spec.messages if m.group == group), text)
    names = {parameter.name for parameter in spec.state_parameters}
    depending = ((m, sorted(names & set(_conditions(spec, m)))) for m in spec.messages)
    rows = (f"m.{m.class_name}: {_set(map(repr, found))}" for m, found in depending if found)
    text = "The messages whose layout depends on where in the stream they stand, and on which parameters of it."
    yield _final("LAID_OUT_BY_STATE", "Mapping[type[m.PgoutputMessage], frozenset[str]]", rows, text)
    rows = (f"m.{m.class_name}: {m.since}" for m in spec.messages if m.since and not m.unasked)
    text = "The messages that came with a later protocol version, and which; not those that servers send all the same."
    yield _final("SINCE", "Mapping[type[m.PgoutputMessage], int]", rows, text)
    rows = (f"m.{m.class_name}: {m.option!r}" for m in spec.messages if m.option and not m.unasked)
    text = "The messages that come only when an option is on, and which; not those that servers send all the same."
    yield _final("ASKED_BY", "Mapping[type[m.PgoutputMessage], str]", rows, text)


def _classes(name: str, messages: Iterable[Message], text: str) -> str:
    members = _set(f"m.{message.class_name}" for message in messages)
    return f"{name}: Final[frozenset[type[m.PgoutputMessage]]] = {members}\n" + docstring([text], "")


def _conditions(spec: Spec, structure: Structure) -> Iterator[str]:
    """Yield the parameters that decide which fields of a structure, and of the parts in it, are there."""
    for inner in structure.inside():
        yield from (e.when for e in inner.elements if isinstance(e, Field) and e.when)
    for name in structure.references():
        yield from _conditions(spec, spec.part(name))


def _enums(spec: Spec) -> Iterator[str]:
    for owner, structure in _owners(spec):
        for element in structure.elements:
            name = owner + _pascal(element.name)
            if isinstance(element, Choice) and not element.valued:
                members = {a.tag.decode(): a.name for a in element.alternatives}
                yield _enum(owner + _pascal(element.kind_name), "StrEnum", members, element.description)
            elif isinstance(element, Field) and element.bits:
                yield _enum(name, "IntFlag", element.bits, element.description)
            elif isinstance(element, Field) and element.values:
                base = "StrEnum" if all(isinstance(value, str) for value in element.values) else "IntEnum"
                yield _enum(name, base, element.values, element.description)


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
        lines[word if usable else f"VALUE_{value}"] = value
    body = "".join(f"    {word} = {value!r}\n" for word, value in lines.items())
    return f"class {name}({base}):\n{docstring([text or name])}\n\n{body}"
