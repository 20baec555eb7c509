"""What a stream means: the committed transactions, as a case expects them and as a client reports them.

A client reports one JSON object a line, for each change of what it believes was committed, in the order of the commits:

=============== ====================================================================================================
``transaction`` anything that is the same for the changes of one transaction, and differs from that of the next one
``table``       the schema and the name with a dot between them, not quoted
``operation``   ``insert``, ``update``, ``delete``, ``truncate`` or ``message``
``new``         the row, as an object: of an insert or update; columns whose value was not sent are left out
``old``         what was sent of the row before: of an update, where it was, or delete; null or left out otherwise
``prefix``      of a logical message; likewise ``content``, as text, or as hexadecimal digits after ``\\x``
=============== ====================================================================================================

Values are null, or PostgreSQL's texts. A number or a boolean counts as its text, an object or list as a document of
JSON; ``{"binary": HEX}`` is a value that was sent in binary format, and is not decoded. A client that stores rows may
report more of ``old`` and ``new`` than was sent, if it is right.
"""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NamedTuple, TypeAlias

from pgoutput_construct.errors import PgoutputError

__all__ = [
    "ExpectedChange",
    "ExpectedTransaction",
    "ReportedChange",
    "SentBinary",
    "Value",
    "difference",
    "parse_report",
]

OPERATIONS: Final = ("insert", "update", "delete", "truncate", "message")


class SentBinary(NamedTuple):
    """A value that was sent in binary format."""

    text: str
    """PostgreSQL's text of it."""
    binary: str
    """The bytes, in hexadecimal."""


Value: TypeAlias = str | SentBinary | None
Row: TypeAlias = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class ExpectedChange:
    """A change that a client must report."""

    table: str
    operation: str
    new: Row | None = None
    old: Row | None = None
    before: Row | None = None
    """The whole row before, which a client that stores rows may report."""
    unsent: tuple[str, ...] = ()
    """The columns of the new row whose values were not sent."""
    prefix: str | None = None
    content: str | None = None
    step: int = field(default=-1, compare=False)
    """The index of the step that sends it."""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON has it; absent fields are omitted."""
        shown: dict[str, Any] = {"operation": self.operation} | ({"table": self.table} if self.table else {})
        for name in ("new", "old", "before", "prefix", "content"):
            if (value := getattr(self, name)) is not None:
                shown[name] = _shown(value) if isinstance(value, Mapping) else value
        if self.unsent:
            shown["unsent"] = [*self.unsent]
        if self.step >= 0:
            shown["step"] = self.step
        return shown

    @classmethod
    def from_json(cls, shown: Mapping[str, Any]) -> "ExpectedChange":
        """Return the change that ``to_json`` wrote."""
        found: dict[str, Any] = {name: _row(shown[name]) for name in ("new", "old", "before") if name in shown}
        found |= {name: shown[name] for name in ("prefix", "content", "step") if name in shown}
        return cls(shown.get("table", ""), shown["operation"], **found, unsent=tuple(shown.get("unsent", ())))


@dataclass(frozen=True, slots=True)
class ExpectedTransaction:
    """A transaction that a client must report as committed, at its position in the order of the commits."""

    unit: int
    """The unit that ends with its commit."""
    changes: tuple[ExpectedChange, ...]


@dataclass(frozen=True, slots=True)
class ReportedChange:
    """A line of a client."""

    transaction: Any
    table: str
    operation: str
    new: Mapping[str, Any] | None
    old: Mapping[str, Any] | None
    prefix: str | None
    content: str | None
    line: str


def parse_report(line: str) -> ReportedChange:
    """Return the change in a line of a client; raise PgoutputError for a line of another form."""
    try:
        found = json.loads(line, parse_float=Decimal)
    except ValueError as error:
        raise PgoutputError(f"not a line of JSON: {line[:200]!r}: {error}") from error
    if not isinstance(found, dict):
        raise PgoutputError(f"a line must be a JSON object: {line[:200]!r}")
    operation, table = found.get("operation"), found.get("table", "")
    if operation not in OPERATIONS:
        raise PgoutputError(f"operation must be one of {', '.join(OPERATIONS)}: {line[:200]!r}")
    if "transaction" not in found:
        raise PgoutputError(f"transaction is missing: {line[:200]!r}")
    for name in ("new", "old"):
        if not isinstance(found.get(name), dict | None):
            raise PgoutputError(f"{name} must be an object of columns, or null: {line[:200]!r}")
    if not isinstance(table, str | None):
        raise PgoutputError(f"table must be text such as public.orders: {line[:200]!r}")
    rest = {name: found.get(name) for name in ("new", "old", "prefix", "content")}
    return ReportedChange(found["transaction"], table or "", operation, **rest, line=line)


def difference(expected: ExpectedChange, reported: ReportedChange) -> str:
    """Return how a reported change differs from an expected one, in words; empty if it does not."""
    if reported.operation != expected.operation:
        return f"operation {reported.operation} instead of {expected.operation}"
    if expected.operation == "message":
        pairs = (("prefix", expected.prefix, reported.prefix), ("content", expected.content, reported.content))
        return next((f"{name} {got!r} instead of {text!r}" for name, text, got in pairs if not _is(text, got)), "")
    if reported.table != expected.table:
        return f"table {reported.table!r} instead of {expected.table!r}"
    unsent = {name: (expected.before or {}).get(name) for name in expected.unsent}
    kept = {**(expected.before or {}), **unsent} if expected.operation != "delete" else None
    return _row_difference("new", expected.new, reported.new, kept) or _row_difference(
        "old", expected.old, reported.old, expected.before
    )


def _row_difference(name: str, expected: Row | None, reported: Mapping[str, Any] | None, before: Row | None) -> str:
    if expected is None:
        if reported and (name == "new" or before is None):
            return f"{name} has {_text(reported)}, though there is none"
        expected = {}
    elif reported is None:
        return f"{name} is missing"
    for column, value in expected.items():
        if column not in (reported or {}):
            return f"{name}.{column} is missing"
        if not _is(value, (got := (reported or {})[column])):
            return f"{name}.{column} is {_text(got)} instead of {_text(value)}"
    return next((each for each in _unsent(name, expected, reported or {}, before)), "")


def _unsent(name: str, expected: Row, reported: Mapping[str, Any], before: Row | None) -> Iterable[str]:
    """Yield what is wrong about values that were not sent: they may be reported as they are in the row before."""
    for column, got in reported.items():
        if column in expected:
            continue
        if column not in (before or {}):
            yield f"{name}.{column} is {_text(got)}, and no value of this column was sent"
        elif not _is(known := (before or {})[column], got):
            yield f"{name}.{column} is {_text(got)}: its value was not sent, and is {_text(known)}"


def _is(expected: Value, got: Any) -> bool:
    if isinstance(expected, SentBinary):
        return bool(got == {"binary": expected.binary}) or _is(expected.text, got)
    if expected is None or got is None or isinstance(got, str):
        return bool(got == expected)
    if isinstance(got, bool):
        return expected == ("t" if got else "f")
    with suppress(InvalidOperation, ValueError):
        meant = Decimal(expected) if isinstance(got, int | Decimal) else json.loads(expected, parse_float=Decimal)
        return bool(meant == got)
    return False


def _text(value: Any) -> str:
    if isinstance(value, SentBinary):
        return f"{value.text!r} (0x{value.binary})"
    text = "NULL" if value is None else repr(value)
    return text if len(text) <= 160 else f"{text[:160]}… ({len(text):,} characters)"


def _shown(row: Row) -> dict[str, Any]:
    return {name: value._asdict() if isinstance(value, SentBinary) else value for name, value in row.items()}


def _row(shown: Mapping[str, Any]) -> dict[str, Value]:
    return {name: SentBinary(**value) if isinstance(value, dict) else value for name, value in shown.items()}
