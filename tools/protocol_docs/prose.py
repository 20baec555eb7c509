"""The meaningful sentences of PostgreSQL's documents: one pattern for each."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = [
    "EITHER",
    "ENDED",
    "GROUP",
    "MULTIPLE",
    "OR",
    "REPEAT",
    "REPEATED",
    "SHARED",
    "WHOSE",
    "Stated",
    "names",
    "stated",
    "words",
]

REPEAT = re.compile(
    r"(?P<one>one of )?the following (?:message parts?|submessages?|pair of fields|fields?) appears? for each\b"
    r"|\bfor [^,.:]+,? there is the following:|\bEach \w+ is specified as:",
    re.I,
)
"""Opens a repeat; ``one of`` makes it one of alternatives."""
ENDED = re.compile(r"\bzero byte (?:is required )?as (?:a )?terminator\b", re.I)
"""A repeat without a count, which a zero byte ends."""
REPEATED = re.compile(r"After the last \w+, the following fields? appears?:", re.I)
"""Ends a repeat."""
OR = re.compile(r"or", re.I)
GROUP = re.compile(
    r"following messages? (?:\((?P<names>.+?)\) )?(?:is|are) available since protocol version (?P<since>\d+)"
)
SHARED = re.compile(r"following message parts are shared")
WHOSE = re.compile(r"The (?P<name>[A-Z]\w*(?: [A-Z]\w*)*) message may contain")
EITHER = re.compile(
    r"either an? '(?P<first>.)' message part(?P<more>(?:,? (?:or )?an? '.' message part)+)(?P<none>,? or neither)?"
)
MULTIPLE = re.compile(r"there can be multiple (?P<name>\w+) messages")

_SINCE = re.compile(r"[^.(]*available since protocol version (\d+)[^.]*\.?", re.I)
_UNTIL = re.compile(
    r"[^.(]*(?:available (?:only )?(?:until|up to|through)|removed (?P<gone>in|since)|only (?P<before>before)) "
    r"protocol version (?P<version>\d+)[^.]*\.?",
    re.I,
)
_BIT = re.compile(
    r"(?:only )?(?:present |available )?(?:only )?(?:if|when) bit (\d+) of (?:the )?(\w+)(?: field)? is set", re.I
)
_REPEATED = re.compile(r"This field is repeated for each\b")
_ZERO = re.compile(r"must be 0\b")
_ABSENT = re.compile(r"(?<![\w.])-1 (?:indicates|if)\b")
_LETTER = re.compile(r"'([A-Za-z])'")
_CHOSEN = re.compile(r"(?:This field is (?P<optional>optional and is )?|\b)(?:only )?present if (?!the option)", re.I)
_CONDITION = re.compile(
    r"[^.;(,]*(?:\bpresent\b|\bomitted\b|\babsent\b|\boptional\b|\bavailable\b|\bonly (?:if|when|for|sent)\b)[^.;)]*",
    re.I,
)


@dataclass(frozen=True)
class Stated:
    """The meaning of a field's description: conditions are names of parameters, or the clause as written."""

    conditions: frozenset[str] = frozenset()
    since: int | None = None
    until: int | None = None
    repeated: bool = False
    zero: bool = False
    absent: bool = False
    letters: frozenset[str] = frozenset()


def stated(description: str, phrases: Mapping[str, str]) -> Stated:
    """Parse a description; ``phrases`` maps each parameter to the phrases by which documents state it."""
    since = _SINCE.search(description)
    until = _UNTIL.search(description)
    rest = _UNTIL.sub(" ", _SINCE.sub(" ", description))
    conditions = {f"bit {bit} of {field}" for bit, field in _BIT.findall(rest)}
    rest = _BIT.sub(" ", rest)
    for parameter, phrase in phrases.items():
        found = re.compile(re.escape(phrase), re.I)
        if found.search(rest):
            conditions.add(parameter)
            rest = found.sub(" ", rest)
    if chosen := _CHOSEN.search(rest):
        conditions.add("optional choice" if chosen["optional"] else "choice")
    elif clause := _CONDITION.search(rest):
        conditions.add(" ".join(clause[0].split()))
    zero, repeated = _ZERO.search(description), _REPEATED.search(description)
    absent, letters = _ABSENT.search(description), _LETTER.findall(description)
    return Stated(
        frozenset(conditions),
        int(since[1]) if since else None,
        int(until["version"]) - bool(until["gone"] or until["before"]) if until else None,
        bool(repeated),
        bool(zero),
        bool(absent),
        frozenset(letters),
    )


def names(text: str) -> list[str]:
    """Return the names in a list such as ``A, B, and C``."""
    return [name for name in re.split(r",\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+", text.strip()) if name]


def words(text: str) -> str:
    """Return a text for comparison: lower case, white space normalised."""
    return " ".join(text.casefold().split())
