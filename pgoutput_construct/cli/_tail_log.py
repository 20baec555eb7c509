"""The committed transactions of a change log, in the order of their commits, and what stands between them."""

import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pgoutput_construct.cli._log_relations import LogRelations
from pgoutput_construct.cli._logging import warn_of_lacks
from pgoutput_construct.cli._tail_output import Header, Wanted
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.stream import RowReader
from pgoutput_construct.stream.transaction_reader import COMMITTED
from pgoutput_construct.wire import Lsn, Timestamp, parse
from pgoutput_construct.wire.messages import Message, PgoutputMessage
from pgoutput_construct.wire.protocol import MessageFlags

if TYPE_CHECKING:
    from pgoutput_construct.changelog import ChangeLog, LogEntry, LogEvent

__all__ = ["tail_log"]

_PAUSE: Final = 1.0
"""Seconds between two looks at a log that is followed; longer where opening it takes longer."""
_TABLES: Final = 2
"""Segments in memory at a time."""


class _Transaction(NamedTuple):
    header: Header
    spans: tuple[tuple[int, int], ...]
    """The first and last seq of each part of the log that holds it."""
    aborted: frozenset[int]
    """Subtransactions that were rolled back."""

    @property
    def lsn(self) -> Lsn:
        """The position of its commit."""
        return self.header.commit_lsn


def tail_log(address: str, wanted: Wanted, from_lsn: Lsn | None, follow: bool) -> None:
    """Show what has committed at ``from_lsn`` or later; with ``follow`` also what a capture adds, until interrupted.

    Raises ChangeLogError, and ProtocolError for a log that contradicts itself.
    """
    from pgoutput_construct.changelog import ChangeLog

    last_seq = -1
    while True:
        began = time.monotonic()
        reader = _Reader(ChangeLog(address), wanted)
        if not follow:
            reader.check()
        if last_seq < 0:
            reader.warn()
        else:
            reader.log.check_kept(last_seq + 1)
        last_seq = reader.show(last_seq, from_lsn or Lsn(0))
        if wanted.enough or not follow:
            return
        time.sleep(max(_PAUSE, 2 * (time.monotonic() - began)))


class _Reader:
    """Shows what a log holds now, segment after segment."""

    def __init__(self, log: "ChangeLog", wanted: Wanted) -> None:
        self.log = log
        self.wanted = wanted
        self.relations = LogRelations(log.index)
        self._table = lru_cache(_TABLES)(lambda place: log.table(log.segments[place]))
        self._starts = [segment.first_seq for segment in log.segments]
        self._complete = log.index.table["complete_lsn"].to_pylist()
        self._holding = self._places_of_tables() if wanted.tables else frozenset(range(len(log.segments)))

    def check(self) -> None:
        """Raise ChangeLogError for a wanted table that the log does not know."""
        if unknown := sorted(set(self.wanted.tables) - (known := self.relations.names())):
            raise ChangeLogError(f"{self.log.store}: no table {unknown[0]!r}: the log has {', '.join(sorted(known))}")

    def warn(self) -> None:
        """Say what the log lacks of the wanted tables."""
        from pgoutput_construct.changelog._facts.completeness import lacks_of

        lacks, oids = lacks_of(self.log.index), self.relations.oids(self.wanted.tables)
        warn_of_lacks([lack for lack in lacks if not self.wanted.tables or lack.relation_oid in oids])

    def show(self, after_seq: int, from_lsn: Lsn) -> int:
        """Show what ended after a seq, and at a position or later; return the seq up to which the log was read."""
        self.wanted.printer.values.types = self.relations.types
        for place, segment in enumerate(self.log.segments):
            if segment.last_seq > after_seq and self._complete[place] >= from_lsn:
                for seq, item in sorted(self._items(place).items()):
                    if self.wanted.enough:
                        return seq
                    if seq > after_seq and item.lsn >= from_lsn:
                        self._show(seq, item)
        return self.log.segments[-1].last_seq

    def _items(self, place: int) -> "dict[int, _Transaction | Message | LogEvent]":
        """Return what ended in a segment, by the seq of its end."""
        from pgoutput_construct.changelog import LogEvent

        one = slice(place, place + 1)
        rows = self.log.index.entries("transactions", one).to_pylist()
        found: dict[int, Any] = {row["seq"]: _transaction(row) for row in rows if row["outcome"] == COMMITTED}
        if not self.wanted.tables:
            found |= self._messages(place)
            events = self.log.index.entries("events", one).to_pylist()
            found |= {row["seq"]: LogEvent.parse(row["seq"], row["lsn"], row["time"], row["payload"]) for row in events}
        return found

    def _messages(self, place: int) -> dict[int, Message]:
        """Return the logical messages of a segment that belong to no transaction."""
        import pyarrow.compute as pc

        table = self._table(place)
        entries = self._table_entries(table.filter(pc.equal(table["tag"], Message.TAG[0])), place)
        found = {entry.seq: self._parse(entry, place) for entry in entries}
        return {
            seq: message
            for seq, message in found.items()
            if isinstance(message, Message) and not message.flags & MessageFlags.TRANSACTIONAL
        }

    def _show(self, seq: int, item: "_Transaction | Message | LogEvent") -> None:
        if isinstance(item, _Transaction):
            self.wanted.begin(item.header)
            self._show_changes(item)
            self.wanted.end()
        elif isinstance(item, Message):
            self.wanted.take(seq, item, ())
        else:
            self.wanted.event(item.name, item.lsn, item.time, item.details)

    def _show_changes(self, transaction: _Transaction) -> None:
        reader, before = RowReader(self.relations, "raw"), 0
        for first, last in transaction.spans:
            for entry, message in self._between(first, last):
                if getattr(message, "xid", None) not in transaction.aborted:
                    self.relations.go_to(entry)
                    self.wanted.take(before + entry.seq - first, message, reader.read(message))
            before += last - first + 1

    def _between(self, first: int, last: int) -> "Iterator[tuple[LogEntry, PgoutputMessage]]":
        place = bisect_right(self._starts, first) - 1
        while place < len(self._starts) and self._starts[place] <= last:
            if place in self._holding:
                start = self._starts[place]
                low = max(first, start)
                for entry in self._table_entries(self._table(place).slice(low - start, last - low + 1), place):
                    yield entry, self._parse(entry, place)
            place += 1

    def _places_of_tables(self) -> frozenset[int]:
        """Return the places of the segments that hold changes of the wanted tables: the others need not be read."""
        import pyarrow as pa
        import pyarrow.compute as pc

        rows, places = self.log.index.located("rows")
        oids = pa.array(self.relations.oids(self.wanted.tables), pa.int64())
        return frozenset(places[pc.is_in(rows["oid"], oids).to_numpy()].tolist())

    def _table_entries(self, table: Any, place: int) -> "Iterator[LogEntry]":
        from pgoutput_construct.changelog.reader import table_entries

        return table_entries(table, self.log.segments[place].name)

    def _parse(self, entry: "LogEntry", place: int) -> PgoutputMessage:
        return parse(entry.payload, **{**self.log.segments[place].options.layout(), **entry.states})


def _transaction(row: Mapping[str, Any]) -> _Transaction:
    header = Header(Lsn(row["commit_lsn"]), Timestamp(row["commit_time"]), row["xid"])
    return _Transaction(
        header, tuple((span["first"], span["last"]) for span in row["spans"]), frozenset(row["aborted"])
    )
