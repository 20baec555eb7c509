"""The committed changes of one table, and its copied rows, in the order in which they make its rows.

The order
    Changes come in the order of their commits, within a transaction in the order of the stream. A copy of the table
    comes after the transactions that it contains and before all others (``TableCopy.visibility``), which is not quite
    the order of commits: a commit after the copy's position may be in the copy. For each single row it is, since a
    transaction that changes a row waits for the one that changed it before, and a snapshot that sees the later one sees
    the earlier one.

Only segments that have rows of the table are read, as the index says. Where each change stands is found first, in
arrays; then the segments are read again in that order.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog._facts.copies import TableCopy
from pgoutput_construct.changelog._index.planning import committed_transactions, lost_histories
from pgoutput_construct.changelog._segment.block import Flags, Numbers
from pgoutput_construct.changelog.decoding_order import ended_transaction
from pgoutput_construct.changelog.reader import ChangeLog, LogEntry, explain, table_entries
from pgoutput_construct.changelog.timeline import ItemKind, Timeline
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.forensics._tracked_table import LoggedTables, TrackedTable
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.stream.rows import OPERATIONS, SNAPSHOT
from pgoutput_construct.stream.transaction_reader import EndedTransaction
from pgoutput_construct.wire import Lsn, parse
from pgoutput_construct.wire.messages import Origin, Truncate

__all__ = ["Located", "LoggedChange", "Pattern", "SegmentTables", "TableChanges", "Transactions"]

_TABLES: Final = 2
"""Segments in memory at a time."""
_OF_COPY: Final = -1
"""Instead of the commit LSN: a copied row."""
_TRUNCATE: Final = Truncate.TAG[0]

Pattern: TypeAlias = Sequence[Collection[bytes]]
"""What a payload has: of each item one of the alternatives."""


class LoggedChange(NamedTuple):
    """One committed change of a table, or one copied row."""

    seq: int
    """Its seq in the log."""
    lsn: Lsn
    """Its LSN, as the server sent it."""
    op: str
    """One of ``stream.rows.OPS``."""
    message: Any
    """The message."""
    payload: bytes
    """The same as bytes."""
    options: Mapping[str, Any]
    """The keywords of ``parse``."""
    description: Description | None
    """What describes its rows; None for a truncate."""
    source: EndedTransaction | TableCopy
    """Where it comes from."""


class SegmentTables:
    """The segments of a log as tables, the last ones cached."""

    def __init__(self, log: ChangeLog) -> None:
        self.log = log
        self.read = lru_cache(_TABLES)(lambda segment_index: log.table(log.segments[segment_index]))
        """Return a segment by its index."""

    def entry(self, seq: int) -> LogEntry | None:
        """Return the message of a seq; None for an event."""
        segment = self.log.segment(seq)
        row = self.read(self.log.segments.find(seq)).slice(seq - segment.first_seq, 1)
        return next(table_entries(row, segment.name), None)

    def origin(self, transaction: EndedTransaction) -> Origin | None:
        """Return the Origin of a transaction: it follows the message that opens the first span."""
        first, last = transaction.transaction.spans[0]
        entry = self.entry(first + 1) if first < last else None
        if entry is None or entry.payload[:1] != Origin.TAG:
            return None
        message = parse(entry.payload, **{**self.log.segment(entry.seq).options.layout(), **entry.states})
        return message if isinstance(message, Origin) else None


class _Owners(NamedTuple):
    """The transactions that some seqs are in; an entry of each array for each seq."""

    number: Numbers
    """The number of the transaction, -1 for none that committed."""
    commit_lsn: Numbers
    xid: Numbers
    """Its top-level xid."""
    has_aborted: Flags
    """Whether subtransactions of it were rolled back."""


class _Committed:
    """Some committed transactions, and where their spans are."""

    def __init__(self, transactions: pa.Table, start: int) -> None:
        """Take them, and the number of the first one."""
        self.rows, self._start = transactions, start
        spans = transactions["spans"].combine_chunks()
        flat, parents = pc.list_flatten(spans), pc.list_parent_indices(spans).to_numpy()
        first, last = (pc.struct_field(flat, name).to_numpy() for name in ("first", "last"))
        order = np.argsort(first, kind="stable")
        self._first, self._last, self._parents = first[order], last[order], parents[order]
        self._facts = (
            np.arange(start, start + len(transactions)),
            transactions["commit_lsn"].to_numpy(),
            transactions["xid"].to_numpy(),
            pc.list_value_length(transactions["aborted"]).to_numpy() > 0,
        )

    def owners(self, seqs: Numbers) -> _Owners:
        """Return the transactions that seqs are in."""
        if not len(self._first):
            none = np.full(len(seqs), -1, np.int64)
            return _Owners(none, none, none, np.zeros(len(seqs), np.bool_))
        span_indexes = np.searchsorted(self._first, seqs, "right") - 1
        is_inside = (span_indexes >= 0) & (seqs <= self._last[span_indexes])
        number, *facts = (column[self._parents[span_indexes]] for column in self._facts)
        return _Owners(np.where(is_inside, number, -1), *facts)


class Transactions:
    """The committed transactions of a log by the seqs of their messages, without those of lost histories.

    Those that ended in a segment are read with it. What is not plainly of one segment is among ``LogIndex.marked``.
    """

    def __init__(self, log: ChangeLog) -> None:
        self._index = log.index
        self._lost = lost_histories(log.index)
        self._parts: list[_Committed] = []
        self._starts: list[int] = []
        self._own: dict[int, _Committed] = {}
        """The transactions that ended in a segment, by the segment's index."""
        self._marked = self._add(log.index.marked)
        self.get = lru_cache(maxsize=1024)(self._get)
        """Return a transaction by its number."""

    def owners(self, segment_index: int, seqs: Numbers) -> _Owners:
        """Return the transactions that seqs of a segment are in, given the index of the segment."""
        if segment_index not in self._own:
            self._own[segment_index] = self._add(self._index.one(segment_index).transactions)
        own, marked = self._own[segment_index].owners(seqs), self._marked.owners(seqs)
        columns: Any = (np.where(own.number >= 0, *pair) for pair in zip(own, marked, strict=True))
        return _Owners(*columns)

    def _add(self, transactions: pa.Table) -> _Committed:
        start = self._starts[-1] + len(self._parts[-1].rows) if self._parts else 0
        part = _Committed(committed_transactions(transactions, self._lost), start)
        self._starts.append(start)
        self._parts.append(part)
        return part

    def _get(self, number: int) -> EndedTransaction:
        part = bisect_right(self._starts, number) - 1
        return ended_transaction(self._parts[part].rows.slice(number - self._starts[part], 1).to_pylist()[0])


class Located(NamedTuple):
    """Where changes of a table stand, in their order; an entry of each array for each."""

    seq: Numbers
    segment_index: Numbers
    """The index of the segment."""
    stage: Numbers
    """How many copies of the table come before it; those of a copied row include its own."""
    commit_lsn: Numbers
    """That of its transaction; -1 for a copied row."""
    owner: Numbers
    """The number of its transaction (``Transactions``), or the index of its copy."""

    def take(self, chosen: Flags | Numbers | slice) -> "Located":
        """Return some of them."""
        return Located(*(column[chosen] for column in self))

    @classmethod
    def concat(cls, parts: Sequence["Located"]) -> "Located":
        """Put them together, in their order."""
        none = Located(*np.empty((5, 0), np.int64))
        columns = map(np.concatenate, zip(none, *parts, strict=True))
        together = cls(*columns)
        return together.take(np.lexsort((together.seq, together.owner, together.commit_lsn, together.stage)))


class TableChanges:
    """The changes of one table of a log."""

    def __init__(self, tables: LoggedTables, table: TrackedTable, segments: SegmentTables, known: Transactions) -> None:
        """Find the segments that have some.

        Args:
            tables: The tables of the log.
            table: The table.
            segments: The segments of the log.
            known: The transactions of the log.
        """
        self.table = table
        self._log, self._history = tables.log, tables.history
        self._segments, self._transactions = segments, known
        rows, segment_indexes = self._log.index.located("rows")
        is_mine = pc.equal(rows["oid"], table.relation_oid).to_numpy()
        self.segment_indexes: list[int] = np.unique(segment_indexes[is_mine]).tolist()
        """The indexes of the segments that have changes or copied rows of the table."""
        items = Timeline(self._log, {ItemKind.COPY}, relation_oids={table.relation_oid})
        copies = [item for item in items if isinstance(item, TableCopy)]
        self.copies: list[TableCopy] = sorted(copies, key=lambda copy: (copy.snapshot.lsn, copy.seq))
        """The complete copies of the table, in the order of their snapshots."""

    def is_binary(self, segment_index: int) -> bool:
        """Return whether a segment, given its index, was captured in binary format."""
        return self._log.segments[segment_index].options.binary

    def candidates(self, segment_index: int, patterns: Collection[Pattern] | None) -> Iterator[LoggedChange]:
        """Yield what a segment has of the table, whether or not it committed: the sources are not to be relied on.

        Args:
            segment_index: The index of the segment, one of ``segment_indexes``.
            patterns: Only changes whose payloads have one of these, and truncates; None: all.
        """
        rows = self._rows(segment_index)
        if patterns is not None:
            rows = rows.filter(pa.array(_has_one(rows, patterns) | (_tags(rows) == _TRUNCATE)))
        yield from self._parsed(rows, segment_index, {})

    def within(self, segment_index: int, firsts: Numbers, lasts: Numbers) -> set[int]:
        """Return the seqs of the changes of a segment that are in some spans.

        Args:
            segment_index: The index of the segment, one of ``segment_indexes``.
            firsts: The first seq of each span, ascending; spans do not overlap.
            lasts: The last seq of each.
        """
        seqs: Numbers = self._rows(segment_index)["seq"].to_numpy()
        spans = np.searchsorted(firsts, seqs, "right") - 1
        return {*seqs[(spans >= 0) & (seqs <= lasts[spans])].tolist()}

    def locate(self, seqs: Collection[int] | None = None) -> Located:
        """Return where the committed changes of the table stand, in their order.

        Args:
            seqs: Only these; None: all.
        """
        chosen = None if seqs is None else np.array(sorted(seqs), np.int64)
        segment_indexes = self.segment_indexes
        if chosen is not None:
            starts = self._log.segments.find
            segment_indexes = sorted({starts(int(seq)) for seq in chosen} & {*self.segment_indexes})
        return Located.concat([self._located(segment_index, chosen) for segment_index in segment_indexes])

    def ordered(self, located: Located) -> Iterator[LoggedChange | TableCopy]:
        """Yield changes in their order, and each copy before its first row; copies without a row among them, too."""
        begun = 0
        bounds = np.flatnonzero(np.diff(located.segment_index, prepend=-1))
        for first, end in pairwise([*bounds.tolist(), len(located.seq)]):
            run = located.take(slice(first, end))
            segment_index = int(run.segment_index[0])
            start = self._log.segments[segment_index].first_seq
            rows = self._segments.read(segment_index).take(pa.array(run.seq - start))
            sources = {seq: self._source(*source) for seq, *source in zip(*_columns(run), strict=True)}
            stages = dict(zip(run.seq.tolist(), run.stage.tolist(), strict=True))
            for change in self._parsed(rows, segment_index, sources):
                yield from self.copies[begun : stages[change.seq]]
                begun = max(begun, stages[change.seq])
                yield change
        yield from self.copies[begun:]

    def _source(self, commit_lsn: int, owner: int) -> EndedTransaction | TableCopy:
        return self.copies[owner] if commit_lsn == _OF_COPY else self._transactions.get(owner)

    def _rows(self, segment_index: int) -> pa.Table:
        rows = self._segments.read(segment_index)
        is_mine = rows["relation_oid"].fill_null(-1).to_numpy() == self.table.relation_oid
        return rows.filter(pa.array(is_mine | (_tags(rows) == _TRUNCATE)))

    def _located(self, segment_index: int, chosen: Numbers | None) -> Located:
        rows = self._rows(segment_index)
        if chosen is not None:
            rows = rows.filter(pa.array(np.isin(rows["seq"].to_numpy(), chosen)))
        chunks, seqs = rows["snapshot"].fill_null(-1).to_numpy(), rows["seq"].to_numpy()
        is_copied = chunks >= 0
        return Located.concat(
            [self._copied(segment_index, seqs[is_copied], chunks[is_copied]), self._sent(segment_index, rows)]
        )

    def _copied(self, segment_index: int, seqs: Numbers, chunks: Numbers) -> Located:
        owners = np.full(len(seqs), -1, np.int64)
        for number, copy in enumerate(self.copies):
            is_of_copy = (chunks >= copy.first_chunk) & (chunks <= copy.last_chunk)
            owners[is_of_copy & ~copy.void.has(seqs)] = number
        found = Located(seqs, np.full(len(seqs), segment_index), owners + 1, np.full(len(seqs), _OF_COPY), owners)
        return found.take(owners >= 0)

    def _sent(self, segment_index: int, rows: pa.Table) -> Located:
        rows = rows.filter(rows["snapshot"].is_null())
        seqs, xids = rows["seq"].to_numpy(), rows["xid"].fill_null(-1).to_numpy()
        owners = self._transactions.owners(segment_index, seqs)
        counts = owners.number >= 0
        for number in np.unique(owners.number[counts & owners.has_aborted]).tolist():
            aborted = [*self._transactions.get(number).transaction.aborted]
            counts &= (owners.number != number) | ~np.isin(xids, aborted)
        stages = np.zeros(len(seqs), np.int64)
        for copy in self.copies:
            stages += copy.visibility.adds(owners.commit_lsn, owners.xid)
        return Located(seqs, np.full(len(seqs), segment_index), stages, owners.commit_lsn, owners.number).take(counts)

    def _parsed(
        self, rows: pa.Table, segment_index: int, sources: Mapping[int, EndedTransaction | TableCopy]
    ) -> Iterator[LoggedChange]:
        segment, oid = self._log.segments[segment_index], self.table.relation_oid
        layout = segment.options.layout()
        for entry in table_entries(rows, segment.name):
            options = {**layout, **entry.states}
            try:
                message: Any = parse(entry.payload, **options)
                description = None if isinstance(message, Truncate) else self._description(entry)
            except PgoutputError as error:
                raise explain(entry, error) from error
            if description is not None or oid in message.relation_oids:
                op = OPERATIONS[type(message)] if entry.snapshot is None else SNAPSHOT
                source: Any = sources.get(entry.seq)
                yield LoggedChange(entry.seq, entry.wal_start, op, message, entry.payload, options, description, source)

    def _description(self, entry: LogEntry) -> Description:
        index = self._history.index(self.table.relation_oid, entry.seq, entry.scope)
        return self._history.descriptions[index]


def _columns(located: Located) -> Iterator[list[int]]:
    yield from (column.tolist() for column in (located.seq, located.commit_lsn, located.owner))


def _tags(rows: pa.Table) -> Numbers:
    tags: Numbers = rows["tag"].fill_null(0).to_numpy()
    return tags


def _has_one(rows: pa.Table, patterns: Collection[Pattern]) -> Flags:
    """Return which payloads have one of some patterns."""
    payloads, found = rows["payload"], np.zeros(len(rows), np.bool_)
    for pattern in patterns:
        has_all = np.ones(len(rows), np.bool_)
        for alternatives in pattern:
            has = [pc.match_substring(payloads, piece).to_numpy() for piece in alternatives]
            has_all &= np.logical_or.reduce(has)
        found |= has_all
    return found
