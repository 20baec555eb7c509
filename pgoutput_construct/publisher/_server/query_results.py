"""The parts of which answers are made: results as messages, the context of a query, and patterns of SQL texts."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from pgoutput_construct.pgtypes.builtin_types import TYPE_NAMES
from pgoutput_construct.publisher._feed.feed import Feed
from pgoutput_construct.publisher.refusals import Refusal
from pgoutput_construct.publisher.slots import Slots
from pgoutput_construct.wire import connection_messages as m

__all__ = [
    "ESCAPING",
    "QUOTED",
    "TEXT",
    "TEXTS",
    "Answer",
    "QueryContext",
    "Result",
    "Rows",
    "known",
    "listed",
    "spaced",
    "unescaped",
]


@dataclass(frozen=True)
class Result:
    """The result of a query: a command tag, and rows of texts for a SELECT or SHOW."""

    command: str
    """The command tag; the number of rows is appended to ``SELECT``."""
    columns: Sequence[tuple[str, str]] = ()
    """The name and the built-in type's name of each column."""
    rows: Sequence[Sequence[str | None]] = field(default_factory=tuple)
    """The values in text format."""

    def messages(self) -> Iterator[m.ConnectionMessage]:
        """Yield the messages of the result."""
        if self.columns:
            yield m.RowDescription(tuple(_column(name, kind) for name, kind in self.columns))
        for row in self.rows:
            yield m.DataRow(tuple(None if value is None else value.encode("utf-8", "surrogateescape") for value in row))
        yield m.CommandComplete(f"SELECT {len(self.rows)}" if self.command == "SELECT" else self.command)


def _column(name: str, kind: str) -> m.ResultColumn:
    known = TYPE_NAMES[kind]
    return m.ResultColumn(name, 0, 0, known.oid, known.size, -1, 0)


TEXT: Final = r"'[^']*(?:''[^']*)*'"
"""Pattern of a text literal without escapes."""
TEXTS: Final = rf" ?{TEXT}(?: ?, ?{TEXT})* ?"
"""Pattern of a list of such literals. One that ended at the first parenthesis would cut a name that contains one."""
QUOTED: Final = rf"""{TEXT}|"[^"]*(?:""[^"]*)*\""""
"""Pattern of a text literal, or of a quoted name."""
_TEXT: Final = re.compile(TEXT)
ESCAPING: Final = r"(?<![\w$])[eE]'(?:[^'\\]|\\.|'')*'"
"""Pattern of a literal with escapes, as libpq and quote_literal_cstr() write texts with a backslash (with DOTALL)."""
_WORDS: Final = re.compile(rf"(?P<escaping>{ESCAPING})|(?P<quoted>{QUOTED})|\s+", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "'": "''"}
_NUMBERS: Final = frozenset("01234567xuU")
"""What follows a backslash in an escape by character code; no client writes names this way."""


@dataclass
class QueryContext:
    """What answers depend on: the feed, the slots, and the session."""

    feed: Feed
    slots: Slots
    settings: dict[str, str]
    process_id: int = 0
    """The id in the client's BackendKeyData."""
    wal_sender_timeout: float = 60
    """Seconds after which a silent walsender client is disconnected; 0: never."""


Rows: TypeAlias = Sequence[Sequence[str | None]]
Answer: TypeAlias = Callable[[QueryContext, re.Match[str]], Result]


def known(pattern: str) -> re.Pattern[str]:
    """Compile the pattern of a query as ``spaced`` normalizes it."""
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


def listed(text: str) -> list[str]:
    """Return the texts in a list of literals (TEXTS)."""
    return [literal[1:-1].replace("''", "'") for literal in _TEXT.findall(text)]


def unescaped(literal: str) -> str:
    """Return a literal with escapes (ESCAPING) as one without (TEXT), as scan.l reads it.

    Raises Refusal for an escape by character code.
    """

    def meant(escape: re.Match[str]) -> str:
        if escape[1] in _NUMBERS:
            raise Refusal(
                "0A000", f"this publisher does not support the escape {escape[0]}: write the character itself"
            )
        return _ESCAPES.get(escape[1], escape[1])

    return "'" + _ESCAPE.sub(meant, literal[2:-1]) + "'"


def spaced(statement: str) -> str:
    """Normalize a statement: single spaces outside of quotes, and literals without escapes."""
    return _WORDS.sub(_plain, statement).strip()


def _plain(match: re.Match[str]) -> str:
    return unescaped(match["escaping"]) if match["escaping"] else match["quoted"] or " "
