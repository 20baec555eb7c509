"""The committed transactions of a change log, in the order of their commits."""

import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pgoutput_construct.cli.tail_print import Header
from pgoutput_construct.cli.tail_wanted import Wanted
from pgoutput_construct.stream import RelationCache, RowReader
from pgoutput_construct.stream.relations import RelationHistory
from pgoutput_construct.stream.state import ControlMessage
from pgoutput_construct.stream.transactions import Spans, TransactionReader
from pgoutput_construct.wire import Lsn, Timestamp, parse
from pgoutput_construct.wire.messages import Commit, CommitPrepared, Message, PgoutputMessage, Relation, StreamCommit
from pgoutput_construct.wire.protocol import CHANGES, MessageFlags

if TYPE_CHECKING:
    from pgoutput_construct.changelog import ChangeLog, LogEntry, LogEvent

__all__ = ["tail_log"]

_PAUSE: Final = 1.0
"""Seconds between two looks at a log that is followed; longer where opening it takes longer."""
_TABLES: Final = 2
"""Segments in memory at a time."""


class _Place(RelationCache):
    """What describes each OID at one position of a log, whichever was read before."""

    def __init__(self, history: RelationHistory) -> None:
        super().__init__()
        self.history = history
        self.types = history.types
        self.entry: LogEntry

    def update(self, message: Any) -> None:
        """Change nothing: the history has it."""

    def get(self, relation_oid: int) -> Relation:
        """Return the Relation of an OID for the entry."""
        index = self.history.index(relation_oid, self.entry.seq, self.entry.stream_xid)
        return self.history.descriptions[index].relation


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
        last_seq = _Reader(ChangeLog(address), wanted).show(last_seq, from_lsn or Lsn(0))
        if wanted.enough or not follow:
            return
        time.sleep(max(_PAUSE, 2 * (time.monotonic() - began)))


class _Reader:
    """Shows what a log holds now."""

    def __init__(self, log: "ChangeLog", wanted: Wanted) -> None:
        self.log = log
        self.wanted = wanted
        self.place = _Place(RelationHistory())
        self.items: dict[int, _Transaction | Message | LogEvent] = {}
        """What is to be shown, by the seq of its end."""
        self.starts = [segment.first_seq for segment in log.segments]
        self._table = lru_cache(_TABLES)(lambda index: log.table(log.segments[index]))
        self._plan()

    def show(self, after_seq: int, from_lsn: Lsn) -> int:
        """Show what ended after a seq, and at a position or later; return the seq of the end of the last."""
        self.wanted.printer.values.types = self.place.types
        for seq, item in sorted(self.items.items()):
            if seq > after_seq and not self.wanted.enough:
                after_seq = seq
                if item.lsn >= from_lsn:
                    self._show(seq, item)
        return after_seq

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
        reader, before = RowReader(self.place, "raw"), 0
        for first, last in transaction.spans:
            for entry in self._entries(first, last):
                message = self._parse(entry)
                if getattr(message, "xid", None) not in transaction.aborted:
                    self.place.entry = entry
                    self.wanted.take(before + entry.seq - first, message, reader.read(message))
            before += last - first + 1

    def _entries(self, first: int, last: int) -> "Iterator[LogEntry]":
        from pgoutput_construct.changelog.reader import table_entries

        index = self._segment(first)
        while index < len(self.starts) and self.starts[index] <= last:
            start, name = self.starts[index], self.log.segments[index].name
            low = max(first, start)
            yield from table_entries(self._table(index).slice(low - start, last - low + 1), name)
            index += 1

    def _segment(self, seq: int) -> int:
        return bisect_right(self.starts, seq) - 1

    def _parse(self, entry: "LogEntry") -> PgoutputMessage:
        layout = self.log.segments[self._segment(entry.seq)].options.layout()
        return parse(entry.payload, **{**layout, **entry.states})

    def _plan(self) -> None:
        rows, transactions, ends = {cls.TAG for cls in CHANGES}, TransactionReader(), dict[int, int]()
        for entry in self.log.entries():
            if entry.payload[:1] in rows:
                continue
            message = self._parse(entry)
            control = ControlMessage(entry.seq, entry.stream_xid, message)
            transactions.read(control)
            self.place.history.read(control)
            if isinstance(message, Message) and not message.flags & MessageFlags.TRANSACTIONAL:
                self.items[entry.seq] = message
            elif isinstance(message, Commit | StreamCommit | CommitPrepared):
                ends[message.commit_lsn] = entry.seq
        self._add(transactions.spans(), ends)
        self.items.update({event.seq: event for event in self.log.events()})

    def _add(self, spans: Spans, ends: Mapping[int, int]) -> None:
        found: dict[int, _Transaction] = {}
        for index, lsn in enumerate(spans.commit_lsn):
            span = (spans.first_seq[index], spans.last_seq[index])
            header = Header(Lsn(lsn), Timestamp(spans.commit_time[index]), spans.xid[index])
            earlier = found[lsn].spans if lsn in found else ()
            found[lsn] = _Transaction(header, (*earlier, span), spans.aborted.get(index, frozenset()))
        self.items.update({ends[lsn]: transaction for lsn, transaction in found.items()})
