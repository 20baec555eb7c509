"""What of the committed transactions is wanted: those that change certain tables, up to a number."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pgoutput_construct.cli.tail_print import Header, Printer
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.stream.rows import RowChange
from pgoutput_construct.wire import Lsn, Timestamp
from pgoutput_construct.wire.messages import Message, PgoutputMessage

__all__ = ["Wanted"]


class Wanted:
    """Takes in the messages of committed transactions, one transaction after the other, and has the wanted printed."""

    def __init__(self, printer: Printer, tables: Collection[str] = (), limit: int | None = None) -> None:
        """``tables`` are names such as ``public.orders``, none for all; ``limit`` is a number of transactions."""
        self.printer = printer
        self.tables = tables
        self.limit = limit
        self._count = 0
        self._header: Header | None = None
        self._shown = False

    @property
    def enough(self) -> bool:
        """Whether as many transactions as wanted have been printed."""
        return self.limit is not None and self._count >= self.limit

    def begin(self, header: Header) -> None:
        """Go on with another transaction; what has no change that is wanted is not printed."""
        self._header, self._shown = header, False

    def take(self, seq: int, message: PgoutputMessage, rows: Iterable[RowChange]) -> None:
        """Take in a message, its position in the transaction, and the rows that it changes."""
        header = self._header
        for row in rows:
            if header is not None and (not self.tables or full_name(row.relation) in self.tables):
                self.printer.change(header, seq, row)
                self._shown = True
        if isinstance(message, Message) and not self.tables:
            self.printer.message(header, seq, message)
            self._shown = True

    def event(self, name: str, lsn: Lsn, time: Timestamp, details: Mapping[str, Any]) -> None:
        """Take in what a capture noted in its log."""
        if not self.tables:
            self.printer.event(name, lsn, time, details)

    def end(self) -> None:
        """End the transaction."""
        self._count += self._shown
        self._header = None
