"""Parses the commands of the replication protocol, as repl_gram.y and repl_scanner.l do."""

import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.publisher._server.query_results import ESCAPING, TEXT, unescaped
from pgoutput_construct.publisher.refusals import Refusal
from pgoutput_construct.wire.types import Lsn

__all__ = [
    "OFF_WORDS",
    "ON_WORDS",
    "AlterSlot",
    "Command",
    "CreateSlot",
    "DropSlot",
    "IdentifySystem",
    "ReadSlot",
    "Show",
    "StartReplication",
    "TimelineHistory",
    "is_replication_command",
    "parse_command",
]


ON_WORDS: Final = ("true", "on", "yes", "1", "t", "y")
OFF_WORDS: Final = ("false", "off", "no", "0", "f", "n")
"""The words for a boolean value (parse_bool() in ``bool.c``)."""


@dataclass(frozen=True)
class IdentifySystem:
    """``IDENTIFY_SYSTEM``."""


@dataclass(frozen=True)
class Show:
    """``SHOW name``."""

    name: str


@dataclass(frozen=True)
class TimelineHistory:
    """``TIMELINE_HISTORY tli``."""

    timeline: int


@dataclass(frozen=True)
class CreateSlot:
    """``CREATE_REPLICATION_SLOT name [TEMPORARY] LOGICAL plugin [options]``."""

    name: str
    plugin: str
    temporary: bool
    options: Mapping[str, str | None]


@dataclass(frozen=True)
class AlterSlot:
    """``ALTER_REPLICATION_SLOT name (options)``."""

    name: str
    options: Mapping[str, str | None]


@dataclass(frozen=True)
class ReadSlot:
    """``READ_REPLICATION_SLOT name``."""

    name: str


@dataclass(frozen=True)
class DropSlot:
    """``DROP_REPLICATION_SLOT name [WAIT]``."""

    name: str
    wait: bool


@dataclass(frozen=True)
class StartReplication:
    """``START_REPLICATION SLOT name LOGICAL lsn (options)``."""

    slot: str
    start: Lsn
    options: Mapping[str, str | None]


Command: TypeAlias = (
    IdentifySystem | Show | TimelineHistory | CreateSlot | AlterSlot | ReadSlot | DropSlot | StartReplication
)

_WORDS: Final = re.compile(
    rf"""\s*(?:(?P<quoted>"(?:[^"]|"")*")|(?P<escaping>{ESCAPING})|(?P<text>{TEXT})"""
    r"""|(?P<lsn>[0-9A-Fa-f]+/[0-9A-Fa-f]+)|(?P<word>[A-Za-z_][A-Za-z0-9_$]*)|(?P<number>[0-9]+)"""
    r"""|(?P<sign>[(),;.=]))""",
    re.DOTALL,
)
_FIRST: Final = (
    "IDENTIFY_SYSTEM",
    "SHOW",
    "TIMELINE_HISTORY",
    "CREATE_REPLICATION_SLOT",
    "READ_REPLICATION_SLOT",
    "DROP_REPLICATION_SLOT",
    "START_REPLICATION",
    "BASE_BACKUP",
    "ALTER_REPLICATION_SLOT",
    "UPLOAD_MANIFEST",
)
_BEFORE_15: Final = {
    "EXPORT_SNAPSHOT": ("snapshot", "export"),
    "NOEXPORT_SNAPSHOT": ("snapshot", "nothing"),
    "USE_SNAPSHOT": ("snapshot", "use"),
    "TWO_PHASE": ("two_phase", None),
    "RESERVE_WAL": ("reserve_wal", None),
}
"""Options of CREATE_REPLICATION_SLOT in the syntax before PostgreSQL 15, without parentheses."""


def is_replication_command(text: str) -> bool:
    """Return whether a query is a replication command, not SQL (replication_scanner_is_replication_command())."""
    word = re.match(r"\s*([A-Za-z_]+)", text)
    return word is not None and word[1].upper() in _FIRST


def parse_command(text: str) -> Command:
    """Parse a replication command; raise Refusal for a syntax error, or a command that is not supported."""
    words = _Words(text)
    first = words.keyword()
    read = _READERS.get(first)
    if read is None:
        raise Refusal("0A000", f"this publisher does not support {first}")
    command = read(words)
    words.end()
    return command


class _Words:
    """The tokens of a command, consumed one after the other."""

    def __init__(self, text: str) -> None:
        self.words: deque[tuple[str, str]] = deque()
        at, text = 0, text.rstrip().rstrip(";").rstrip()
        while at < len(text):
            match = _WORDS.match(text, at)
            if match is None or match.lastgroup is None:
                raise Refusal("42601", f'syntax error at or near "{text[at : at + 20].strip()}"')
            kind, word = match.lastgroup, match[match.lastgroup]
            # Subscriptions write publication names with a backslash like this, though repl_scanner.l rejects it.
            self.words.append(("text", unescaped(word)) if kind == "escaping" else (kind, word))
            at = match.end()

    def next(self, *kinds: str) -> str:
        kind, word = self.words.popleft() if self.words else ("", "")
        if kind not in kinds:
            where = f'at or near "{word}"' if word else "at end of input"
            raise Refusal("42601", f"syntax error {where}")
        return _unquoted(word) if kind in ("quoted", "text") else word

    def keyword(self) -> str:
        return self.next("word").upper()

    def name(self) -> str:
        """Return an identifier: folded to lower case unless it is quoted."""
        is_quoted = bool(self.words) and self.words[0][0] == "quoted"
        word = self.next("word", "quoted")
        return word if is_quoted else word.lower()

    def accept(self, word: str) -> bool:
        found = bool(self.words) and self.words[0][0] in ("word", "sign") and self.words[0][1].upper() == word
        if found:
            self.words.popleft()
        return found

    def expect(self, word: str) -> None:
        if not self.accept(word):
            self.next("")

    def generic_options(self) -> dict[str, str | None]:
        """Return the options of a slot command, at least one, with names in lower case, as in the grammar."""
        if self.words and self.words[0][1] == ")":
            self.next("")
        return self.options(str.lower)

    def options(self, named: Callable[[str], str] = str) -> dict[str, str | None]:
        """Return the options in parentheses: names, and values or None.

        Args:
            named: Normalizes the name of an option.
        """
        found: dict[str, str | None] = {}
        while not self.accept(")"):
            if found:
                self.expect(",")
            name = named(self.next("word", "quoted"))
            if name in found:
                raise Refusal("42601", "conflicting or redundant options", detail=f"{name} is given twice")
            has_value = bool(self.words) and self.words[0][0] != "sign"
            found[name] = self.next("text", "number", "word", "quoted") if has_value else None
        return found

    def end(self) -> None:
        if self.words:
            self.next("")


def _unquoted(word: str) -> str:
    return word[1:-1].replace(word[0] * 2, word[0])


def _show(words: _Words) -> Show:
    name = words.name()
    while words.accept("."):
        name += "." + words.name()
    return Show(name)


def _create(words: _Words) -> CreateSlot:
    name, temporary = words.name(), words.accept("TEMPORARY")
    if words.accept("PHYSICAL"):
        raise Refusal("0A000", "this publisher does not support physical replication slots")
    words.expect("LOGICAL")
    plugin = words.name()
    if words.accept("("):
        options = words.generic_options()
    else:
        options = {}
        while words.words:
            word = words.keyword()
            if word not in _BEFORE_15:
                raise Refusal("42601", f'syntax error at or near "{word}"')
            option, value = _BEFORE_15[word]
            options[option] = value
    return CreateSlot(name, plugin, temporary, options)


def _alter(words: _Words) -> AlterSlot:
    name = words.name()
    words.expect("(")
    return AlterSlot(name, words.generic_options())


def _start(words: _Words) -> StartReplication:
    if not words.accept("SLOT"):
        raise Refusal("0A000", "this publisher does not support physical replication")
    slot = words.name()
    if not words.accept("LOGICAL"):
        raise Refusal("0A000", "this publisher does not support physical replication")
    start = _lsn(words.next("lsn"))
    return StartReplication(slot, start, words.options() if words.accept("(") else {})


def _lsn(text: str) -> Lsn:
    try:
        return Lsn(text)
    except PgoutputError as error:
        raise Refusal("42601", f"invalid streaming start location: {error}") from error


def _timeline(words: _Words) -> TimelineHistory:
    """Parse a number of 32 bits, as UCONST in repl_scanner.l."""
    text = words.next("number")
    if len(text) > 10 or not 0 < int(text) < 1 << 32:
        raise Refusal("42601", f"invalid timeline {text[:20]}")
    return TimelineHistory(int(text))


_READERS: Final[Mapping[str, Callable[[_Words], Command]]] = {
    "IDENTIFY_SYSTEM": lambda words: IdentifySystem(),
    "SHOW": _show,
    "TIMELINE_HISTORY": _timeline,
    "CREATE_REPLICATION_SLOT": _create,
    "ALTER_REPLICATION_SLOT": _alter,
    "READ_REPLICATION_SLOT": lambda words: ReadSlot(words.name()),
    "DROP_REPLICATION_SLOT": lambda words: DropSlot(words.name(), words.accept("WAIT")),
    "START_REPLICATION": _start,
}
