"""Plain text as terms and paragraphs: a line right before a field is a heading."""

import re

from tools.protocol_docs.document import Entry, Node, Prose, is_notation

__all__ = ["read_plain"]

_HEADING = re.compile(r"(?!Or$)[A-Z]\w*(?: \w+)*(?: \([BF &]+\))?")
_PART = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]+)+")


def read_plain(text: str) -> tuple[str, tuple[Node, ...]]:
    """Return the title of a plain text, and its nodes."""
    paragraphs = _paragraphs(text)
    nodes: list[Node] = []
    body: list[Node] | None = None
    head = ""
    at = 0
    while at < len(paragraphs):
        this, following = paragraphs[at], paragraphs[at + 1] if at + 1 < len(paragraphs) else ""
        at += 1
        if _is_field(this, following) and body is not None:
            described = not is_notation(following) and following != ""
            body.append(Entry(this, (Prose(following),) if described else ()))
            at += described
        elif is_notation(following) and not is_notation(this) and _HEADING.fullmatch(this):
            nodes += [Entry(head, tuple(body))] if body is not None else []
            head, body = this, []
        else:
            (nodes if body is None else body).append(Prose(this))
    nodes += [Entry(head, tuple(body))] if body is not None else []
    return _title(paragraphs), tuple(nodes)


def _is_field(this: str, following: str) -> bool:
    return is_notation(this) or (_PART.fullmatch(this) is not None and not is_notation(following))


def _paragraphs(text: str) -> list[str]:
    """Return the paragraphs, with their lines joined; a line that is a notation is a paragraph of its own."""
    found: list[list[str]] = [[]]
    for line in text.splitlines():
        words = " ".join(line.split()).removesuffix(" #")
        if not words or is_notation(words):
            found += [[words], []] if words else [[]]
        else:
            found[-1].append(words)
    return [" ".join(lines) for lines in found if lines]


def _title(paragraphs: list[str]) -> str:
    first = paragraphs[0] if paragraphs else ""
    return re.sub(r"^(?:\d+\.)+(?:\d+\.?)?\s+", "", first)
