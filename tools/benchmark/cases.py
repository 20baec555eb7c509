"""The cases: each is one table, one workload and one set of options, recorded once."""

import hashlib
from dataclasses import dataclass

from pgoutput_construct.wire.options import Streaming

__all__ = ["CASES", "HEADLINE", "TABLE", "Case"]

TABLE = "benchmark"
"""The name of the one table of a case."""


@dataclass(frozen=True, slots=True)
class Case:
    """One capture: every transaction inserts rows, then updates some of them, then deletes some."""

    name: str
    title: str
    columns: tuple[str, ...]
    """The columns after ``id int8``, as CREATE TABLE wants them."""
    values: tuple[str, ...]
    """Their values as SQL over ``id``; nothing is random, so each recording has the same rows."""
    update: str
    """What an UPDATE sets."""
    rows: int = 1000
    """Rows that one transaction inserts."""
    share: float = 1.0
    """Messages, as a part of those asked for: wide rows are slower to record and to hold."""
    proto_version: int = 1
    streaming: Streaming = "off"
    binary: bool = False

    @property
    def recipe(self) -> str:
        """A short name of all this: a recording by another recipe is not this case."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:8]

    def messages(self, asked: int) -> int:
        """Return how many messages to record when ``asked`` are asked for."""
        return max(int(asked * self.share), 100)


_TEN_COLUMNS = (
    "name text",
    "created timestamptz",
    "score float8",
    "active bool",
    "price numeric(12,2)",
    "quantity int4",
    "note text",
    "day date",
    "state text",
)
_TEN_VALUES = (
    "'n' || id * 7919 % 1000000",
    "timestamptz '2024-01-01 00:00:00+00' + id * interval '37.000123 seconds'",
    "(id * 7919 % 1000000) / 1000.0::float8",
    "id % 3 = 0",
    "(id * 104729 % 100000000) / 100.0",
    "(id * 31 % 100000)::int4",
    "CASE WHEN id % 10 > 0 THEN left(md5(id::text), 8) END",
    "date '2000-01-01' + (id % 9000)::int4",
    "(ARRAY['new', 'paid', 'sent', 'closed'])[id % 4 + 1]",
)
_TEN_UPDATE = "state = 'changed', quantity = quantity + 1"

_WIDE = (
    ("int4", "(id * {n} % 100000)::int4"),
    ("text", "'v' || id * {n} % 10000"),
    ("float8", "(id * {n} % 10000) / 8.0::float8"),
    ("bool", "(id + {n}) % 2 = 0"),
    ("date", "date '2000-01-01' + (id * {n} % 9000)::int4"),
    ("text", "NULL::text"),
)
"""The columns of the case of 300 columns, over and over."""


def _wide(number: int) -> tuple[str, str]:
    kind, value = _WIDE[number % len(_WIDE)]
    return f"c{number} {kind}", value.format(n=number + 3)


CASES = (
    Case(
        "ten",
        "ten columns (int8, text, timestamptz, float8, bool, numeric, int4, text, date, text)",
        _TEN_COLUMNS,
        _TEN_VALUES,
        _TEN_UPDATE,
    ),
    Case("narrow", "two columns (int8, int4)", ("value int4",), ("(id % 1000)::int4",), "value = value + 1"),
    Case(
        "wide",
        "300 columns (int4, text, float8, bool, date, NULL)",
        tuple(_wide(number)[0] for number in range(299)),
        tuple(_wide(number)[1] for number in range(299)),
        "c0 = c0 + 1",
        rows=200,
        share=0.03,
    ),
    Case(
        "text",
        "wide text: about 4 KB a value, stored apart, so that updates leave it unchanged",
        ("small int4", "body text"),
        ("(id % 1000)::int4", "repeat(md5(id::text), 96 + (id % 64)::int4)"),
        "small = small + 1",
        rows=200,
        share=0.03,
    ),
    Case(
        "streamed",
        "ten columns in large transactions, streamed (protocol version 2)",
        _TEN_COLUMNS,
        _TEN_VALUES,
        _TEN_UPDATE,
        rows=50_000,
        proto_version=2,
        streaming="on",
    ),
    Case("binary", "ten columns in binary format", _TEN_COLUMNS, _TEN_VALUES, _TEN_UPDATE, binary=True),
)
"""Every case; the first is the one that the goals speak of."""

HEADLINE = CASES[0]
"""The case of the goals: ten columns, about 142 bytes a message."""
