"""The committed transactions of a change log, in the order of their commits, with messages and events between them."""

import time
from bisect import bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from pgoutput_construct.cli._logging import print_notes
from pgoutput_construct.cli._printing import say
from pgoutput_construct.cli.commands._log_relations import LogRelations
from pgoutput_construct.cli.commands._tail_output import Header, TailSelection
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.stream import RowReader
from pgoutput_construct.wire import Lsn, Timestamp, parse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgoutput_construct.changelog import ChangeLog, LogEntry
    from pgoutput_construct.stream.transaction_reader import EndedTransaction
    from pgoutput_construct.wire.messages import PgoutputMessage

__all__ = ["tail_log"]

_PAUSE: Final = 1.0
"""Seconds between two reads of a log that is followed; longer where opening it takes longer."""
_TABLES: Final = 2
"""Segments in memory at a time."""


def tail_log(address: str, selection: TailSelection, from_lsn: Lsn | None, follow: bool) -> None:
    """Show committed transactions of a log.

    Args:
        address: The log's.
        selection: What is shown, and how.
        from_lsn: The first commit LSN; None: all.
        follow: Wait for the log, if it has no segment yet, and continue with what a capture adds, until interrupted.

    Raises:
        ChangeLogError: The log does not exist or is damaged, or a table is selected that it does not know.
        ProtocolError: The log contradicts itself.
    """
    last_seq = -1
    while True:
        log, began = _opened(address, follow), time.monotonic()
        reader = _Reader(log, selection)
        if not follow:
            reader.check()
        if last_seq < 0:
            reader.warn()
        else:
            reader.log.check_kept(last_seq + 1)
        last_seq = reader.show(last_seq, from_lsn or Lsn(0))
        if selection.enough or not follow:
            return
        time.sleep(max(_PAUSE, 2 * (time.monotonic() - began)))


def _opened(address: str, follow: bool) -> "ChangeLog":
    from pgoutput_construct.changelog import ChangeLog
    from pgoutput_construct.changelog.reader import EmptyLogError

    has_told = False
    while True:
        try:
            return ChangeLog(address)
        except EmptyLogError as error:
            if not follow:
                raise
            if not has_told:
                say(f"{error}: waiting for the capture's first segment", err=True)
            has_told = True
            time.sleep(_PAUSE)


class _Reader:
    """Shows what a log holds now: the items of its timeline, and the changes of each transaction."""

    def __init__(self, log: "ChangeLog", selection: TailSelection) -> None:
        self.log = log
        self.selection = selection
        self.relations = LogRelations(log.index)
        self._tables = lru_cache(_TABLES)(lambda first_seq: log.table(log.segment(first_seq)))
        self._starts = [segment.first_seq for segment in log.segments]
        self._holding = self._segment_indexes() if selection.tables else frozenset(range(len(log.segments)))

    def check(self) -> None:
        """Raise ChangeLogError for a selected table that the log does not know."""
        if unknown := sorted(set(self.selection.tables) - (known := self.relations.names())):
            raise ChangeLogError(f"{self.log.store}: no table {unknown[0]!r}: the log has {', '.join(sorted(known))}")

    def warn(self) -> None:
        """Warn of what the log lacks of the selected tables."""
        from pgoutput_construct.changelog._facts.completeness import lacks_of

        lacks, oids = lacks_of(self.log.index), self.relations.oids(self.selection.tables)
        print_notes("warning", [lack for lack in lacks if not self.selection.tables or lack.relation_oid in oids])

    def show(self, after_seq: int, from_lsn: Lsn) -> int:
        """Show what ended after a seq, at an LSN or later; return the seq up to which the log was read."""
        from pgoutput_construct.changelog import LogEvent
        from pgoutput_construct.changelog.timeline import ItemKind, LogicalMessage, Timeline
        from pgoutput_construct.stream.transaction_reader import EndedTransaction

        self.selection.printer.values.types = self.relations.types
        items = Timeline(
            self.log,
            {ItemKind.TRANSACTION, ItemKind.MESSAGE, ItemKind.EVENT},
            after=after_seq,
            first_lsn=from_lsn,
            relation_oids=self.relations.oids(self.selection.tables) if self.selection.tables else None,
            lost=(),  # what a lost history left may have been shown already: an event says that it is void
            read=lambda segment: self._tables(segment.first_seq),
        )
        for item in items:
            if self.selection.enough:
                return item.seq
            if isinstance(item, EndedTransaction):
                self._show_transaction(item)
            elif isinstance(item, LogicalMessage):
                self.selection.take(item.seq, item.message, ())
            elif isinstance(item, LogEvent):
                self.selection.event(item)
        return self.log.segments[-1].last_seq

    def _show_transaction(self, ended: "EndedTransaction") -> None:
        transaction = ended.transaction
        self.selection.begin(Header(Lsn(ended.commit_lsn or 0), Timestamp(ended.time or 0), transaction.xid))
        reader, before = RowReader(self.relations, "raw"), 0
        for first, last in transaction.spans:
            for entry, message in self._between(first, last):
                if getattr(message, "xid", None) not in transaction.aborted:
                    self.relations.go_to(entry)
                    self.selection.take(before + entry.seq - first, message, reader.read(message))
            before += last - first + 1
        self.selection.end()

    def _between(self, first: int, last: int) -> "Iterator[tuple[LogEntry, PgoutputMessage]]":
        from pgoutput_construct.changelog.reader import table_entries

        index = bisect_right(self._starts, first) - 1
        while index < len(self._starts) and self._starts[index] <= last:
            if index in self._holding:
                segment = self.log.segments[index]
                low = max(first, segment.first_seq)
                rows = self._tables(segment.first_seq).slice(low - segment.first_seq, last - low + 1)
                for entry in table_entries(rows, segment.name):
                    yield entry, parse(entry.payload, **{**segment.options.layout(), **entry.states})
            index += 1

    def _segment_indexes(self) -> frozenset[int]:
        """Return the indexes of the segments that hold changes of the tables: the others need not be read."""
        import pyarrow as pa
        import pyarrow.compute as pc

        rows, indexes = self.log.index.located("rows")
        oids = pa.array(self.relations.oids(self.selection.tables), pa.int64())
        return frozenset(indexes[pc.is_in(rows["oid"], oids).to_numpy()].tolist())
