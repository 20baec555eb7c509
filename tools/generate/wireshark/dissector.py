"""Emits the Wireshark dissector: the specifications as Lua tables, then the code in lua/ that interprets them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tools.generate.text import COMMAND, GENERATED
from tools.generate.wireshark.dissector_elements import Names, elements, structure
from tools.generate.wireshark.lua_text import lua
from tools.language import Message, Option, Spec
from tools.language.wire_names import in_role

__all__ = ["emit_dissector"]

CODE = Path(__file__).with_name("lua")
MODULES = ("fields", "reading", "options", "messages", "conversations")
"""The Lua files, in the order in which they follow the tables."""

ABOUT = """\
-- A Wireshark dissector of PostgreSQL's logical replication: the frames in CopyData, and the messages of pgoutput in
-- them. spec/README.md says how to install it."""


def emit_dissector(spec: Spec, frames: Spec, connection: Spec) -> str:
    """Return the dissector of messages, in frames, on a connection."""
    mark = f"-- {GENERATED}{spec.file}, {frames.file} and {connection.file} by: {COMMAND}. Do not edit."
    names = Names()
    tables: Mapping[str, Any] = {
        "FRAMES": [_message(frames, message, names) for message in frames.messages],
        "MESSAGES": [_message(spec, message, names) for message in spec.messages],
        "PARTS": [{"name": p.name, **structure(p, names)} for each in (frames, spec) for p in each.parts],
        "STATES": [{"name": s.name, "about": s.description, "sets": list(s.sets)} for s in spec.places],
        "OPTIONS": list(_options(spec)),
        "COPY_DATA": _framing(connection, "CopyData"),
        "QUERY": _framing(connection, "Query"),
    }
    chunks = [
        mark,
        ABOUT,
        f"local {', '.join(tables)}",
        *(f"{name} = {lua(rows)}" for name, rows in tables.items()),
        *(CODE.joinpath(f"{name}.lua").read_text("utf-8").strip() for name in MODULES),
    ]
    return "\n\n".join(chunks) + "\n"


def _message(spec: Spec, message: Message, names: Names) -> Mapping[str, Any]:
    steps = spec.steps(message)
    return {
        "tag": message.tag[0],
        "name": message.name,
        "class": message.class_name,
        "group": message.group,
        "needs": message.needs,
        "option": _asked_by(spec, message),
        "states": list(steps),
        **_leads(spec, message),
        "elements": elements(message, names),
    }


def _leads(spec: Spec, message: Message) -> Mapping[str, Any]:
    """Return the state that a message enters, or a table of them if that depends on the state before."""
    if message.returns or message.enters in spec.nested:
        return {"steps": dict(spec.steps(message))}
    return {"enters": message.enters}


def _asked_by(spec: Spec, message: Message) -> Mapping[str, Any] | None:
    """Return the option that enables a message, and the value with which it is off."""
    if message.option is None or message.unasked:
        return None
    option = next(each for each in spec.options if each.name == message.option)
    return {"name": option.name, "off": option.values[0].name if option.values else "off"}


def _options(spec: Spec) -> Iterator[Mapping[str, Any]]:
    """Yield the protocol version and the options that determine layouts."""
    newest = max((version.version for version in spec.versions), default=1)
    for option in spec.options:
        if option.name == "proto_version":
            yield {"name": option.name, "type": "number", "default": 1, "newest": newest, "about": option.description}
        elif option in spec.layout_options:
            yield _option(option)


def _option(option: Option) -> Mapping[str, Any]:
    values = [{"name": value.name, "sets": list(value.sets)} for value in option.values]
    return {
        "name": option.name,
        "type": option.type,
        "default": option.values[0].name if option.values else None,
        "values": values,
        "sets": list(option.sets),
        "about": option.description,
    }


def _framing(connection: Spec, name: str) -> Mapping[str, int]:
    """Return the tag of a message of a connection, and the constant after its length."""
    message = in_role(connection, name)
    assert message.length is not None
    return {"tag": message.tag[0], "header": len(message.tag) + (message.length.size or 0)}
