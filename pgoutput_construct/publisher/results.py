"""Results of queries as messages: a description of the rows, the rows, and the command that has ended."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pgoutput_construct.pgtypes.builtin_types import TYPE_NAMES
from pgoutput_construct.wire import connection_messages as m

__all__ = ["Result"]


@dataclass(frozen=True)
class Result:
    """What a query gives: nothing but its command tag, or rows of texts."""

    command: str
    """The command tag; the number of rows is added to ``SELECT``."""
    columns: Sequence[tuple[str, str]] = ()
    """The name and the built-in type of each column."""
    rows: Sequence[Sequence[str | None]] = field(default_factory=tuple)
    """The values in text format."""

    def messages(self) -> Iterator[m.ConnectionMessage]:
        """Yield what a client is sent."""
        if self.columns:
            yield m.RowDescription(tuple(_column(name, kind) for name, kind in self.columns))
        for row in self.rows:
            yield m.DataRow(tuple(None if value is None else value.encode("utf-8", "surrogateescape") for value in row))
        yield m.CommandComplete(f"SELECT {len(self.rows)}" if self.command == "SELECT" else self.command)


def _column(name: str, kind: str) -> m.ResultColumn:
    known = TYPE_NAMES[kind]
    return m.ResultColumn(name, 0, 0, known.oid, known.size, -1, 0)
