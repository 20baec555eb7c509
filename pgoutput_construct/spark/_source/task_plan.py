"""Which segments a read of a table needs, and what of the log each task is told; out of the index alone."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import ceil
from operator import itemgetter
from os import cpu_count
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql.datasource import InputPartition

from pgoutput_construct.changelog._facts.completeness import present_copies
from pgoutput_construct.changelog._facts.copies import TableCopy
from pgoutput_construct.changelog._index.log_index import LogIndex, is_own
from pgoutput_construct.changelog._index.planning import commits_of, committed, spans_of
from pgoutput_construct.changelog._index.usage import COPIED, PLAIN
from pgoutput_construct.changelog._segment.footer import Segment
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.spark._log_view.added_columns import DEFAULT_PREFIX, Prefix
from pgoutput_construct.spark._log_view.log_tables import LogTables
from pgoutput_construct.spark._log_view.replicated_tables import Table
from pgoutput_construct.spark._log_view.table_columns import ColumnDefault
from pgoutput_construct.spark._log_view.visible_rows import LogPlan
from pgoutput_construct.spark._source.read_range import LogRange
from pgoutput_construct.stream.relations import RelationHistory
from pgoutput_construct.stream.transactions import SPAN_COLUMNS, Spans

__all__ = [
    "ReaderColumns",
    "SegmentGroup",
    "SelectedRuns",
    "TableTask",
    "columns_of_group",
    "described_groups",
    "groups_in_range",
    "groups_with_rows",
    "reader_columns",
    "table_tasks",
]

Numbers = NDArray[np.int64]

Flags = NDArray[np.bool_]

_TASK_ROWS: Final = 1_000_000

_TASK_BYTES: Final = 1 << 28
"""Segments share a task until they have so much: each task costs a start, and each file of Parquet, until a column
gives up its dictionary, more for every row than after that."""

_LEAST: Final = 1 / 4
"""Such a part of it is enough for a task where this machine would have fewer tasks than processors."""

_FEW: Final = 4


class SelectedRuns:
    """The rows that a range of a log has, by segment: runs of the index's ``rows``, and what shows them."""

    def __init__(self, index: LogIndex, wanted: LogRange, oids: Sequence[int] | None = None) -> None:
        """Look for the rows of some relations, None for all."""
        commits, first_seqs = commits_of(index, wanted.lost), index.table["first_seq"].to_numpy()
        with_own, in_part = _segments_with_own(commits, wanted)
        for place in np.flatnonzero(in_part).tolist():
            some = wanted.transactions(index.one(place))
            own = is_own(some, np.full(len(some), first_seqs[place]))
            with_own[place] = bool(own.any())
        marked, places = index.located("marked")
        is_wanted = _committed(marked, wanted)
        marked, places = marked.filter(pa.array(is_wanted)), places[is_wanted]
        self.spans = spans_of(marked.filter(pa.array(~is_own(marked, first_seqs[places]))))
        self.copies = _copies(index, wanted)
        self._find(index, with_own, oids)

    def _find(self, index: LogIndex, with_own: Flags, oids: Sequence[int] | None) -> None:
        runs, places = index.located("rows")
        span, first_seq, xids = (runs[name].to_numpy() for name in ("span", "first_seq", "xid"))
        chunks = np.where(span == COPIED, xids, -1)
        plan = LogPlan(self.spans, RelationHistory(), self.copies)
        _, found = plan.origins_at(first_seq, xids, chunks)
        found |= (span == PLAIN) & with_own[places]
        if oids is not None:
            found &= np.isin(runs["oid"].to_numpy(), np.array(oids, np.int64))
        self.places = places[found]
        """The segment of each run."""
        self.descriptions: Numbers = runs["description"].to_numpy()[found]
        """The seq of the Relation that describes each run."""


def _segments_with_own(commits: Mapping[str, Numbers], wanted: LogRange) -> tuple[Flags, Flags]:
    """Tell of segments whether they have wanted transactions of their own, and of which the numbers do not tell it."""
    bounds, own = wanted.bounds, commits["own"] > 0
    within, without = own.copy(), ~own
    for least, most, first, last in (
        ("first_commit", "last_commit", wanted.after + 1, wanted.until),
        ("least_lsn", "most_lsn", bounds.first_lsn, bounds.last_lsn),
    ):
        within &= (commits[least] >= first) & (commits[most] <= last)
        without |= (commits[most] < first) | (commits[least] > last)
    return within, ~within & ~without


def _committed(transactions: pa.Table, wanted: LogRange) -> Flags:
    numbered = transactions.append_column("row", pa.array(np.arange(len(transactions))))
    found = committed(numbered.select(["row", "seq", "outcome", "end_lsn", "commit_lsn", "commit_time"]), wanted.lost)
    flags = np.zeros(len(transactions), np.bool_)
    flags[found["row"].to_numpy()[wanted.mask(found)]] = True
    return flags


def _copies(index: LogIndex, wanted: LogRange) -> tuple[TableCopy, ...]:
    copies = (copy for copy in present_copies(index) if copy.rows and wanted.after < copy.seq <= wanted.until)
    return tuple(sorted((copy for copy in copies if wanted.bounds.includes(copy)), key=lambda copy: copy.first_chunk))


@dataclass(frozen=True)
class SegmentGroup(InputPartition):
    """Some segments, and which of their transactions are wanted."""

    segments: tuple[Segment, ...]
    range: LogRange
    spans: Spans | None = None
    """The wanted transactions in them that are not their own (``commit_numbers.is_own``), None for none."""
    copies: tuple[TableCopy, ...] = ()
    """The wanted copies."""


def groups_with_rows(log: ChangeLog, index: LogIndex, wanted: LogRange, found: SelectedRuns) -> Iterator[SegmentGroup]:
    """Yield a group for each task, of the segments that have rows which are wanted."""
    for group in _groups_of(log, index, np.unique(found.places), wanted):
        spans = _overlapping_spans(found.spans, group.segments[0].first_seq, group.segments[-1].last_seq)
        yield replace(group, spans=spans, copies=found.copies)


def groups_in_range(log: ChangeLog, wanted: LogRange) -> Iterator[SegmentGroup]:
    """Yield a group for each task, of all segments in which something ended that is wanted."""
    first, last = log.segments.place(wanted.after + 1), log.segments.place(wanted.until)
    yield from _groups_of(log, log.index, np.arange(max(first, 0), last + 1), wanted)


def _groups_of(log: ChangeLog, index: LogIndex, places: Numbers, wanted: LogRange) -> Iterator[SegmentGroup]:
    if not len(places):
        return
    first = int(places[0])
    known: Sequence[Segment] = log.segments[first : int(places[-1]) + 1]
    if len(places) > _FEW:
        known = list(known)  # one by one they take ten times as long
    listed = ((place, known[place - first]) for place in places.tolist())
    bare = [(place, each if each.index is None else replace(each, index=None)) for place, each in listed]
    for group in _groups(bare):
        yield SegmentGroup(tuple(segment for _, segment in group), wanted)


@dataclass(frozen=True)
class ReaderColumns:
    """What a description of a table's rows is to a reader."""

    names: tuple[str, ...]
    """What its columns are called."""
    missing: Mapping[str, ColumnDefault]
    """What its rows have in columns that came later."""


@dataclass(frozen=True)
class TableTask(InputPartition):
    """The rows of one table in a group."""

    group: SegmentGroup
    table: str
    """Its name, for messages."""
    oids: tuple[int, ...]
    """Its OIDs."""
    columns: pa.Schema
    """The columns that are wanted."""
    schema: pa.Schema
    """All that is returned."""
    used: Mapping[int, ReaderColumns]
    """What its rows are described by, by the seqs of the Relations."""
    skips_malformed: bool = False
    """Whether malformed rows are left out."""
    prefix: Prefix = DEFAULT_PREFIX
    """How added columns are called for whom it reads."""


def table_tasks(
    opened: LogTables,
    table: Table,
    wanted: LogRange,
    columns: pa.Schema,
    schema: pa.Schema,
    skips_malformed: bool = False,
    prefix: Prefix = DEFAULT_PREFIX,
) -> list[TableTask]:
    """Return what reads the tables that had a name, a task each.

    ``prefix`` is that of its reader, all else has the names of replays.
    """
    oids, used = table.relation_oids, reader_columns(opened, table)
    return [
        TableTask(
            group, table.qualified, oids, columns, schema, columns_of_group(used, described), skips_malformed, prefix
        )
        for group, described in described_groups(opened, wanted, oids)
    ]


def described_groups(
    opened: LogTables, wanted: LogRange, oids: Sequence[int]
) -> Iterator[tuple[SegmentGroup, list[int]]]:
    """Yield a group for each task that reads rows of some relations, and the seqs of the Relations of these rows."""
    found = SelectedRuns(opened.index, wanted, oids)
    for group in groups_with_rows(opened.log, opened.index, wanted, found):
        first, last = (opened.log.segments.place(s.first_seq) for s in (group.segments[0], group.segments[-1]))
        yield group, np.unique(found.descriptions[(found.places >= first) & (found.places <= last)]).tolist()


def columns_of_group(used: Mapping[int, ReaderColumns], described: Iterable[int]) -> dict[int, ReaderColumns]:
    """Return the descriptions of a table that are among those of a group."""
    return {seq: used[seq] for seq in described if seq in used}


def reader_columns(opened: LogTables, table: Table) -> dict[int, ReaderColumns]:
    """Return the descriptions of a table, by the seqs of the Relations."""
    descriptions = opened.plan.history.descriptions
    return {descriptions[i].seq: ReaderColumns(names, table.missing.get(i, {})) for i, names in table.names.items()}


def _groups(segments: Sequence[tuple[int, Segment]]) -> Iterator[list[tuple[int, Segment]]]:
    """Yield the segments of each task, in order; tasks have about as much to do as each other."""
    sizes = np.array([max(each.rows / _TASK_ROWS, each.payload_bytes / _TASK_BYTES) for _, each in segments])
    ends = np.cumsum(sizes)
    tasks = max(ceil(ends[-1]), min(cpu_count() or 1, int(ends[-1] / _LEAST)), 1)
    places = ((ends - sizes / 2) * tasks / max(ends[-1], 1 / _TASK_ROWS)).astype(np.int64).tolist()
    for _, group in groupby(zip(places, segments, strict=True), itemgetter(0)):
        yield [segment for _, segment in group]


def _overlapping_spans(spans: Spans, first: int, last: int) -> Spans:
    """Return the spans that have something of a part of the log."""
    starts, ends = (np.frombuffer(column, np.int64) for column in (spans.first_seq, spans.last_seq))
    begin, end = int(np.searchsorted(ends, first)), int(np.searchsorted(starts, last, "right"))
    columns = {name: getattr(spans, name)[begin:end] for name in SPAN_COLUMNS}
    aborted = {place - begin: xids for place, xids in spans.aborted.items() if begin <= place < end}
    return Spans(**columns, aborted=aborted)
