"""Emits the reference page: every message and part as words and a table, and as a graph where it has choices."""

from collections.abc import Iterator, Sequence

from tools.generate.reference_fields import fields_table, sizes
from tools.generate.reference_graph import graph
from tools.generate.reference_states import order_table, state_diagram
from tools.generate.reference_text import availability, code, heading, in_python, intro, link, markdown, table
from tools.language import Message, Part, Spec
from tools.language.model import Option

__all__ = ["emit_reference"]

DOCUMENTS = "https://www.postgresql.org/docs/current/"

READING = """
An offset counts bytes from the start of the message; of two numbers, the first is without and the second with the
fields that have a condition. Behind a field whose size only the bytes tell there is none. All numbers are big-endian.
A graph shows the ways through the choices and repeats of a message.
"""


def emit_reference(spec: Spec, others: Sequence[tuple[str, str]] = ()) -> str:
    """Return the page; ``others`` are the titles and files of the pages beside it."""
    sections = [section for section in _sections(spec) if section]
    chunks = [heading(spec), *_about(spec, others), _contents(spec), *sections]
    return "\n\n".join(chunk.strip("\n") for chunk in chunks) + "\n"


def _about(spec: Spec, others: Sequence[tuple[str, str]]) -> Iterator[str]:
    documents = f"[PostgreSQL's documentation]({DOCUMENTS}{spec.source}.html)"
    yield intro(
        f"{len(spec.messages)} messages{_and_parts(spec)}, generated from [{spec.file}]({spec.file}), whose language "
        f"[README.md](README.md) explains. Source: {documents}."
    )
    if others:
        yield "See also: " + ", ".join(f"[{markdown(title)}]({file})" for title, file in others) + "."
    yield intro(READING)


def _and_parts(spec: Spec) -> str:
    return f" and {len(spec.parts)} part{'s' * (len(spec.parts) > 1)}" if spec.parts else ""


def _contents(spec: Spec) -> str:
    titles = {
        "Protocol versions": spec.versions,
        "Parameters": spec.parameters,
        "Options": spec.options,
        "Order of messages": spec.states,
    }
    lines = [f"- {link(title)}" for title, rows in titles.items() if rows]
    lines.append(f"- {link('Messages of the protocol')}: {', '.join(link(message.name) for message in spec.messages)}")
    if spec.parts:
        lines.append(f"- {link('Parts of messages')}: {', '.join(link(part.name) for part in spec.parts)}")
    return "\n".join(["## Contents", "", *lines, f"- {link('Types')}"])


def _sections(spec: Spec) -> Iterator[str]:
    yield _versions(spec) if spec.versions else ""
    yield _parameters(spec) if spec.parameters else ""
    yield _options(spec) if spec.options else ""
    yield _order(spec) if spec.states else ""
    yield f"## Messages of the protocol\n\n{_overview(spec)}"
    yield from (_message(spec, message) for message in spec.messages)
    if spec.parts:
        yield "## Parts of messages"
        yield from (_part(spec, part) for part in spec.parts)
    yield _types(spec)


def _versions(spec: Spec) -> str:
    rows = [(str(v.version), f"PostgreSQL {v.server}", markdown(v.brings)) for v in spec.versions]
    return "## Protocol versions\n\n" + table(("Version", "First server", "Brings"), rows)


def _parameters(spec: Spec) -> str:
    rows = [(code(p.name), p.type, markdown(p.description)) for p in spec.parameters]
    text = "What decides the layout from outside the bytes. Conditions in the tables name these."
    return f"## Parameters\n\n{text}\n\n" + table(("Parameter", "Type", "Meaning"), rows)


def _options(spec: Spec) -> str:
    rows = [row for option in spec.options for row in _option_rows(option, "")]
    head = ("Option", "PostgreSQL", "Protocol version", "Meaning")
    return "## Options\n\nOptions of `START_REPLICATION`.\n\n" + table(head, rows)


def _option_rows(option: Option, prefix: str) -> Iterator[Sequence[str]]:
    name = code(f"{prefix}{option.name}")
    yield name, str(option.server or ""), str(option.since or ""), markdown(option.description)
    for value in option.values:
        yield from _option_rows(value, f"{option.name} = ")


def _order(spec: Spec) -> str:
    text = """
    Which message may come depends on what came before. An arrow is a message that leads into another state; a note
    lists those that leave the state as it is.
    """
    return f"## Order of messages\n\n{intro(text)}\n\n{_fenced(state_diagram(spec))}\n\n{order_table(spec)}"


def _overview(spec: Spec) -> str:
    head = ("Tag", "Message", "Sender", "PostgreSQL", "Protocol version", "Meaning")
    return table(head, (_overview_row(message) for message in spec.messages))


def _overview_row(message: Message) -> Sequence[str]:
    tag = code(message.tag.decode("ascii"))
    since = str(message.since or "")
    return (
        tag,
        link(message.name),
        message.sender or "",
        str(message.server or ""),
        since,
        markdown(message.description),
    )


def _message(spec: Spec, message: Message) -> str:
    facts = [f"- {name}: {text}" for name, text in _facts(spec, message)]
    return _section(spec, message, message.name, facts)


def _facts(spec: Spec, message: Message) -> Iterator[tuple[str, str]]:
    yield "Since", availability(spec, message)
    if message.unasked:
        yield "Also before", markdown(message.unasked)
    if message.sender:
        yield "Sent by", f"the {message.sender}"
    if message.within:
        enters = f", and leads into {code(message.enters)}" if message.enters else ", which it leaves as it is"
        yield "Comes in the state" + "s" * (len(message.within) > 1), ", ".join(map(code, message.within)) + enters
    if found := sizes(spec, message):
        yield "Size", " or ".join(map(str, found)) + (" byte" if found == [1] else " bytes")
    yield "In Python", code(message.class_name)


def _part(spec: Spec, part: Part) -> str:
    users = [link(message.name) for message in spec.messages if part.name in set(message.references())]
    facts = [f"- Since: {availability(spec, part)}", f"- Used by: {', '.join(users)}" if users else ""]
    facts.append(f"- In Python: {in_python(part, part.name)}")
    return _section(spec, part, part.name, [fact for fact in facts if fact])


def _section(spec: Spec, structure: Message | Part, name: str, facts: Sequence[str]) -> str:
    chunks = [f"### {markdown(name)}", markdown(structure.description), "\n".join(facts)]
    chunks += [fields_table(spec, structure), _fenced(graph(structure))]
    return "\n\n".join(chunk for chunk in chunks if chunk)


def _fenced(text: str) -> str:
    return f"```mermaid\n{text}\n```" if text else ""


def _types(spec: Spec) -> str:
    rows = [
        (code(t.notation), "signed" if t.signed else "", str(t.bytes or "by the bytes"), code(t.python), code(t.arrow))
        for t in spec.types
    ]
    constants = "A tag such as `Byte1('B')` and a constant such as `Int8(0)` are always the same bytes."
    return f"## Types\n\n{constants}\n\n" + table(("Notation", "Sign", "Bytes", "Python", "Arrow"), rows)
