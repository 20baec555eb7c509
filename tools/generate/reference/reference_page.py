"""Emits the reference page: each message and part as text and a table, and as a graph if it has choices."""

from collections.abc import Iterable, Iterator, Sequence

from tools.generate.reference import reference_connection as connection
from tools.generate.reference.reference_fields import fields_table, sizes
from tools.generate.reference.reference_graph import graph
from tools.generate.reference.reference_states import order_table, state_diagram
from tools.generate.reference.reference_text import (
    availability,
    code,
    heading,
    in_python,
    intro,
    link,
    markdown,
    notation,
    table,
)
from tools.language import Message, Part, Spec
from tools.language.model import Option

__all__ = ["emit_reference"]

DOCUMENTS = "https://www.postgresql.org/docs/current/"

READING = """
Offsets are in bytes from the start of the message. If there are two, the first is without and the second with the
fields that have a condition. Fields after one of variable size have none. All numbers are big-endian. A graph shows the
paths through the choices and repeats of a message.
"""
PARAMETERS = "Parameters determine the layout besides the bytes. Conditions in the tables refer to them."
OPTIONS = "Options of `START_REPLICATION`."
ORDER = """
Which messages are permitted depends on those before. An arrow is a message that leads to another state; a note lists
those that keep the state.
"""


def emit_reference(spec: Spec, others: Sequence[tuple[str, str]] = ()) -> str:
    """Return the page; ``others`` are the titles and files of related pages."""
    front = {title: text for title, text in _front(spec) if text}
    chunks = [heading(spec), *_about(spec, others), _contents(spec, front)]
    chunks += [f"## {title}\n\n{text}" for title, text in front.items()]
    chunks += ["## Messages of the protocol", _overview(spec), *(_section(spec, message) for message in spec.messages)]
    if spec.parts:
        chunks += ["## Parts of messages", *(_section(spec, part) for part in spec.parts)]
    return "\n\n".join(chunk.strip("\n") for chunk in [*chunks, _types(spec)]) + "\n"


def _about(spec: Spec, others: Sequence[tuple[str, str]]) -> Iterator[str]:
    parts = f" and {len(spec.parts)} part{'s' * (len(spec.parts) > 1)}" if spec.parts else ""
    found = f"{len(spec.messages)} messages{parts}, generated from"
    if spec.is_postgresql:
        language = f"[{spec.file}]({spec.file}), whose language [README.md](README.md) explains"
        yield intro(f"{found} {language}. Source: [PostgreSQL's documentation]({DOCUMENTS}{spec.source}.html).")
    else:
        yield intro(f"{found} {code(spec.file)}. Source: {markdown(spec.source)}.")
    if others:
        yield "See also: " + ", ".join(f"[{markdown(title)}]({file})" for title, file in others) + "."
    yield intro(READING)
    if spec.framed:
        yield intro(connection.FRAMING)


def _contents(spec: Spec, front: Iterable[str]) -> str:
    lines = [f"- {link(title)}" for title in front]
    lines.append(f"- {link('Messages of the protocol')}: {', '.join(link(message.name) for message in spec.messages)}")
    if spec.parts:
        lines.append(f"- {link('Parts of messages')}: {', '.join(link(part.name) for part in spec.parts)}")
    return "\n".join(["## Contents", "", *lines, f"- {link('Types')}"])


def _front(spec: Spec) -> Iterator[tuple[str, str]]:
    """Yield titles and texts of the sections before the messages; none if the specification has none."""
    versions = [(str(v.version), f"PostgreSQL {v.server}" * bool(v.server), markdown(v.brings)) for v in spec.versions]
    yield "Protocol versions", _rows("", ("Version", "First server", "Brings"), versions)
    parameters = [(code(p.name), p.type, markdown(p.description)) for p in spec.parameters]
    yield "Parameters", _rows(PARAMETERS, ("Parameter", "Type", "Meaning"), parameters)
    options = [row for option in spec.options for row in _option_rows(option, "")]
    yield "Options", _rows(OPTIONS, ("Option", "PostgreSQL", "Protocol version", "Meaning"), options)
    yield "Order of messages", _order(spec) if spec.states else ""


def _order(spec: Spec) -> str:
    words, rows = (connection.ORDER, connection.order_table) if spec.framed else (ORDER, order_table)
    return f"{intro(words)}\n\n{_fenced(state_diagram(spec))}\n\n{rows(spec)}"


def _rows(text: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return f"{text}\n\n{table(head, rows)}".lstrip() if rows else ""


def _option_rows(option: Option, prefix: str) -> Iterator[Sequence[str]]:
    name = code(f"{prefix}{option.name}")
    yield name, str(option.server or ""), str(option.since or ""), markdown(option.description)
    for value in option.values:
        yield from _option_rows(value, f"{option.name} = ")


def _overview(spec: Spec) -> str:
    head = ("Tag", "Behind its length", "Message", "Sender", "PostgreSQL", "Protocol version", "Meaning")
    return table(head, (_overview_row(spec, message) for message in spec.messages))


def _overview_row(spec: Spec, message: Message) -> Sequence[str]:
    tag, versions = message.tag_text, (str(message.server or ""), str(message.since or ""))
    begin = code(tag) if tag else "", code(notation(message.code)) if message.code else ""
    sender = message.sender or ("both" if spec.framed else "")
    return *begin, link(message.name), sender, *versions, markdown(message.description)


def _section(spec: Spec, each: Message | Part) -> str:
    facts = _facts_of_message(spec, each) if isinstance(each, Message) else _facts_of_part(spec, each)
    lines = [f"- {name}: {text}" for name, text in (("Since", availability(spec, each)), *facts) if text]
    chunks = [f"### {markdown(each.name)}", markdown(each.description), "\n".join(lines)]
    return "\n\n".join(filter(None, [*chunks, fields_table(spec, each), _fenced(graph(each))]))


def _facts_of_message(spec: Spec, message: Message) -> Iterator[tuple[str, str]]:
    if message.unasked:
        yield "Also before", markdown(message.unasked)
    if message.sender or spec.framed:
        yield "Sent by", f"the {message.sender}" if message.sender else "the server and the client"
    if message.within:
        enters = f", and leads into {code(message.enters)}" if message.enters else ", which it leaves as it is"
        enters = ", and leads back to the state before it" if message.returns else enters
        yield "Comes in the state" + "s" * (len(message.within) > 1), ", ".join(map(code, message.within)) + enters
    if message.ignored:
        yield "Ignored in the state" + "s" * (len(message.ignored) > 1), ", ".join(map(code, message.ignored))
    if found := sizes(spec, message):
        yield "Size", " or ".join(map(str, found)) + (" byte" if found == [1] else " bytes")
    yield "In Python", code(message.class_name)


def _facts_of_part(spec: Spec, part: Part) -> Iterator[tuple[str, str]]:
    if users := [link(message.name) for message in spec.messages if part.name in set(message.references())]:
        yield "Used by", ", ".join(users)
    yield "In Python", in_python(part)


def _fenced(text: str) -> str:
    return f"```mermaid\n{text}\n```" if text else ""


def _types(spec: Spec) -> str:
    rows = [
        (code(t.notation), "signed" if t.signed else "", str(t.bytes or "by the bytes"), code(t.python), code(t.arrow))
        for t in spec.types
    ]
    constants = "A tag such as `Byte1('B')` and a constant such as `Int8(0)` are always the same bytes."
    return f"## Types\n\n{constants}\n\n" + table(("Notation", "Sign", "Bytes", "Python", "Arrow"), rows)
