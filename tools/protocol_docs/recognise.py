"""The format of a document, and damage to it: line numbers at the start of lines, missing lines."""

import re
from dataclasses import dataclass
from itertools import pairwise

from tools.protocol_docs.document import DocumentError, is_notation

__all__ = ["GAP", "Recognised", "decode", "gaps_in", "recognise", "without_gaps"]

GAP = re.compile("\ue000(\\d+)\ue001")
"""Marks where a numbered line is missing; private use characters, which no document contains."""

_NUMBERED = re.compile(r"(\d+)(?:[ \t](.*))?")
_FORMS = (
    ("yaml", re.compile(r"^```\s*yaml|^messages:\s*$", re.M)),
    ("html", re.compile(r"<(?:!doctype html|html|dl|dt|dd)\b", re.I)),
    ("sgml", re.compile(r"<(?:sect1|variablelist|varlistentry|listitem|term)\b", re.I)),
)


@dataclass(frozen=True)
class Recognised:
    """A text and its format: ``html``, ``sgml``, ``yaml`` or ``text``; ``lost`` are the missing line numbers."""

    form: str
    text: str
    lost: tuple[int, ...] = ()


def decode(data: bytes) -> str:
    """Return the text of a file; PostgreSQL's older pages are Latin-1."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def recognise(text: str) -> Recognised:
    """Return the format of a document; raise DocumentError if it has no fields."""
    text, lost = _unnumbered(text.replace("\r\n", "\n"))
    for form, pattern in _FORMS:
        if pattern.search(text):
            return Recognised(form, text, lost)
    if any(is_notation(line.strip()) for line in text.splitlines()):
        return Recognised("text", text, lost)
    raise DocumentError(
        "no fields such as Int32 or Byte1('B') are in it: give one of PostgreSQL's pages about message formats, "
        "as HTML, SGML, plain text, or what 'extract' has printed"
    )


def gaps_in(text: str) -> tuple[int, ...]:
    """Return the numbers of the lines that are missing inside a text."""
    return tuple(int(number) for number in GAP.findall(text))


def without_gaps(text: str) -> str:
    """Return a text without the marks of missing lines, with white space normalised."""
    return " ".join(GAP.sub(" ", text).split())


def _unnumbered(text: str) -> tuple[str, tuple[int, ...]]:
    """Return the text without line numbers, with a mark where a number is missing, and the missing numbers."""
    matches = [_NUMBERED.fullmatch(line) for line in text.splitlines() if line.strip()]
    numbers = [int(match[1]) for match in matches if match]
    rising = all(a < b for a, b in pairwise(numbers))
    if len(numbers) < max(3, len(matches)) or not rising:
        return text, ()
    lines: list[str] = []
    lost: list[int] = []
    expected = 1
    for number, match in zip(numbers, matches, strict=True):
        lost += range(expected, number)
        lines += [f"\ue000{n}\ue001" for n in range(expected, number)]
        lines.append((match and match[2]) or "")
        expected = number + 1
    return "\n".join(lines), tuple(lost)
