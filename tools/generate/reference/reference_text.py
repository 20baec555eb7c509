"""Text for the reference: escaped Markdown and Mermaid, links, conditions."""

import re
from collections.abc import Iterable, Sequence

from tools.generate.text import COMMAND, GENERATED
from tools.generate.words import in_words
from tools.language import Alternative, Choice, Field, Message, Part, Repeat, Spec
from tools.language.conditions import Flag
from tools.language.elements import Structure

__all__ = [
    "availability",
    "code",
    "condition",
    "heading",
    "in_python",
    "intro",
    "link",
    "markdown",
    "mermaid",
    "notation",
    "slug",
    "table",
]

_MARKDOWN = re.compile(r"([\\`*_\[\]<>|~#&$]|^[-+]|(?<=^\d)[.)])")
_MERMAID = re.compile(r"[^\w ,.'()/=?!+-]|^[-+](?= )|(?<=\d)[.)](?= )")
"""Everything except letters, digits and some punctuation; and what would start a list."""


def heading(spec: Spec) -> str:
    """Return the first line of a generated page, and its title."""
    return f"<!-- {GENERATED}{spec.file} by: {COMMAND}. Do not edit. -->\n\n# {markdown(spec.title)}"


def intro(text: str) -> str:
    """Join several lines into one paragraph."""
    return " ".join(text.split())


def markdown(text: str) -> str:
    """Return text escaped for Markdown, also in a table cell."""
    return _MARKDOWN.sub(r"\\\1", text)


def code(text: str) -> str:
    """Return text as code, also in a table cell; notations contain neither backticks nor bars."""
    return f"`{text}`" if "`" not in text and "|" not in text else markdown(text)


def mermaid(text: str) -> str:
    """Return text escaped for the quotes of a Mermaid label."""
    return _MERMAID.sub(lambda match: f"#{ord(match[0])};", text)


def slug(title: str) -> str:
    """Return the anchor that code hosts generate for a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def link(title: str) -> str:
    """Return a link to a heading of this page."""
    return f"[{markdown(title)}](#{slug(title)})"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table without the columns that are empty in every row."""
    body = [list(row) for row in rows]
    used = [index for index in range(len(head)) if any(row[index] for row in body)]
    lines = [[head[index] for index in used], ["---"] * len(used), *([row[index] for index in used] for row in body)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def notation(field: Field) -> str:
    """Return a field's notation, with its sign if it has one."""
    return f"{field.notation}, signed" if field.signed and "(" not in field.notation else field.notation


def in_python(structure: Structure) -> str:
    """Return the Python type of a nested structure."""
    alone = f"its {code(structure.principal.name)} alone" if structure.principal is not None else ""
    cls = code(str(structure.class_name))
    return (f"{alone}, or {cls} where it has more" if structure.extended else alone) or cls


def condition(element: Field | Repeat | Choice) -> str:
    """Return the condition under which a field is present; empty if it always is."""
    when = element.when.name if isinstance(element.when, Flag) else in_words(element.when)
    since = f"since version {element.since}" if element.since else ""
    until = f"until version {element.until}" if element.until else ""
    return ", ".join(part for part in (when, since, until) if part)


def availability(spec: Spec, thing: Message | Part | Alternative | Field) -> str:
    """Return the PostgreSQL and protocol version that introduced something."""
    server = f"PostgreSQL {thing.server}" if thing.server else "any PostgreSQL" if spec.is_postgresql else ""
    since = None if isinstance(thing, Part) else thing.since
    until = None if isinstance(thing, Message | Part) else thing.until
    said = [server, f"protocol version {since}" * bool(since), f"until protocol version {until}" * bool(until)]
    return ", ".join(filter(None, said))
