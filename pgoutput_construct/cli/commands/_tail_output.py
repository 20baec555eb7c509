"""Committed transactions as a person reads them, or as JSON lines; and which of them are requested."""

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from pgoutput_construct.cli._printing import printable, say
from pgoutput_construct.cli._values import COLORS, Values, quoted
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.stream.rows import RowChange
from pgoutput_construct.wire import UNCHANGED, Lsn, Timestamp
from pgoutput_construct.wire.messages import Message, PgoutputMessage
from pgoutput_construct.wire.types import Marker

if TYPE_CHECKING:
    from pgoutput_construct.changelog import LogEvent

__all__ = ["Header", "JsonPrinter", "TailSelection", "TextPrinter"]


class Header(NamedTuple):
    """A committed transaction."""

    commit_lsn: Lsn
    commit_time: Timestamp
    xid: int


class _Printer(ABC):
    """Prints what was committed, in order.

    ``seq`` is the position in the transaction, as ``_seq`` of Spark's rows; ``header`` is None for what belongs to no
    transaction.
    """

    def __init__(self, values: Values, everything: bool = False) -> None:
        """``everything`` shows long values in full."""
        self.values = values
        self.everything = everything

    @abstractmethod
    def change(self, header: Header, seq: int, change: RowChange) -> None:
        """Print a changed row, or a truncated table."""

    @abstractmethod
    def message(self, header: Header | None, seq: int, message: Message) -> None:
        """Print a logical message."""

    @abstractmethod
    def event(self, event: "LogEvent") -> None:
        """Print what a capture noted in its log."""


class TextPrinter(_Printer):
    """A line a transaction, and below it a line a change."""

    _header: Header | None = None

    def __init__(self, values: Values, everything: bool = False) -> None:
        """``everything`` shows long values and all details of events."""
        from pgoutput_construct.cli.commands._event_texts import EventTexts

        super().__init__(values, everything)
        self._events = EventTexts(everything)

    def change(self, header: Header, seq: int, change: RowChange) -> None:
        self._begin(header)
        new, old = self.values.row(change.new, change.relation), self.values.row(change.old, change.relation)
        pairs = ", ".join(self._pairs(change, new, old or {}))
        op = click.style(change.op, fg=COLORS.get(change.op, "red"))
        click.echo(f"  {op} {printable(full_name(change.relation))}{pairs and f' ({pairs})'}")

    def message(self, header: Header | None, seq: int, message: Message) -> None:
        self._begin(header)
        start = "  " if header else f"{message.lsn}  "
        content = quoted(_content(message.content), self.everything)
        say(f"{start}message {quoted(message.prefix)} {content}")

    def event(self, event: "LogEvent") -> None:
        text = self._events.text(event.name, event.details)
        if text is not None:
            say(f"{event.time}  log: {f'at {event.lsn}: ' if event.lsn else ''}{text}", fg="cyan")

    def _begin(self, header: Header | None) -> None:
        if header is not None and header != self._header:
            say(f"{header.commit_time}  commit {header.commit_lsn}  xid {header.xid}", bold=True)
        self._header = header

    def _pairs(self, change: RowChange, new: Mapping[str, Any] | None, old: Mapping[str, Any]) -> Iterable[str]:
        row = old if new is None else {**change.unsent, **new}
        for column in change.relation.columns:
            if column.name in row:
                value, before = row[column.name], old.get(column.name, UNCHANGED)
                was = "" if before is UNCHANGED or before == value or new is None else f"{self._quoted(before)} -> "
                yield f"{printable(column.name)}={was if not isinstance(value, Marker) else ''}{self._quoted(value)}"

    def _quoted(self, value: Any) -> str:
        return quoted(value, self.everything)


class JsonPrinter(_Printer):
    """A line a change, which names its transaction."""

    def change(self, header: Header, seq: int, change: RowChange) -> None:
        relation = change.relation
        row = {"new": self.values.row(change.new, relation), "old": self.values.row(change.old, relation)}
        table = {
            "table": full_name(relation),
            "schema": relation.namespace or "pg_catalog",
            "name": relation.name,
        }
        self._line({**_position(header, seq), "op": change.op, **table, **row, "unchanged": [*change.unchanged]})

    def message(self, header: Header | None, seq: int, message: Message) -> None:
        position = _position(header, seq) if header else {"lsn": str(message.lsn)}
        said = {"prefix": message.prefix, "content": _content(message.content)}
        self._line({**position, "op": "message", **said, "transactional": header is not None})

    def event(self, event: "LogEvent") -> None:
        said = {"lsn": str(event.lsn), "time": str(event.time), "details": dict(event.details)}
        self._line({"event": event.name, **said})

    def _line(self, value: Mapping[str, Any]) -> None:
        click.echo(json.dumps(value, default=str))


def _position(header: Header, seq: int) -> dict[str, Any]:
    commit = {"commit_lsn": str(header.commit_lsn), "commit_time": str(header.commit_time), "xid": header.xid}
    return {**commit, "seq": seq}


def _content(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return f"\\x{content.hex()}"


class TailSelection:
    """Takes the messages of committed transactions, one transaction after the other, and prints the selected ones."""

    def __init__(self, printer: _Printer, tables: Collection[str] = (), limit: int | None = None) -> None:
        """``tables`` are names such as ``public.orders``, none for all; ``limit`` is a number of transactions."""
        self.printer = printer
        self.tables = tables
        self.limit = limit
        self._count = 0
        self._header: Header | None = None
        self._shown = False

    @property
    def enough(self) -> bool:
        """Whether the limit of transactions is reached."""
        return self.limit is not None and self._count >= self.limit

    def begin(self, header: Header) -> None:
        """Begin another transaction; one without a selected change is not printed."""
        self._header, self._shown = header, False

    def take(self, seq: int, message: PgoutputMessage, rows: Iterable[RowChange]) -> None:
        """Take a message.

        Args:
            seq: Its position in the transaction.
            message: The message.
            rows: The rows that it changes.
        """
        header = self._header
        for row in rows:
            if header is not None and (not self.tables or full_name(row.relation) in self.tables):
                self.printer.change(header, seq, row)
                self._shown = True
        if isinstance(message, Message) and not self.tables:
            self.printer.message(header, seq, message)
            self._shown = True

    def event(self, event: "LogEvent") -> None:
        """Take what a capture noted in its log."""
        if not self.tables:
            self.printer.event(event)

    def end(self) -> None:
        """End the transaction."""
        self._count += self._shown
        self._header = None
