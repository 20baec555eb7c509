"""Which segments a read needs, and the tasks that read them: planned from the index, without a payload."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import ceil
from operator import itemgetter
from os import cpu_count
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from pgoutput_construct.changelog._facts.completeness import present_copies
from pgoutput_construct.changelog._facts.copies import TableCopy
from pgoutput_construct.changelog._index.log_index import LogIndex, is_own
from pgoutput_construct.changelog._index.planning import commit_stats, committed_transactions, spans_of
from pgoutput_construct.changelog._index.row_counts import COPIED, PLAIN
from pgoutput_construct.changelog._segment.block import Flags, Numbers
from pgoutput_construct.changelog._segment.footer import Segment
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.spark._log_view.added_columns import DEFAULT_PREFIX, Prefix
from pgoutput_construct.spark._log_view.committed_rows import LogPlan
from pgoutput_construct.spark._log_view.log_tables import LogTables
from pgoutput_construct.spark._log_view.replicated_tables import Table
from pgoutput_construct.spark._log_view.table_columns import ColumnDefault
from pgoutput_construct.spark._source.read_range import LogRange
from pgoutput_construct.stream.relations import RelationHistory
from pgoutput_construct.stream.transaction_reader import SPAN_COLUMNS, Spans

_TASK_ROWS: Final = 1_000_000
_TASK_BYTES: Final = 1 << 28
"""Rows, or bytes of payloads, of one task: starting a task is expensive, and so are the first rows of a Parquet file,
before dictionary encoding falls back to plain."""
_LEAST: Final = 1 / 4
"""The part of that which a task has at least, to have a task for each processor."""
_FEW: Final = 4


class SelectedRuns:
    """The rows in a range of a log: runs of the index's ``rows``, and their transactions and copies."""

    def __init__(self, index: LogIndex, selected: LogRange, oids: Sequence[int] | None = None) -> None:
        """``oids`` are the relations whose rows are selected, None for all."""
        commits, first_seqs = commit_stats(index, selected.lost), index.table["first_seq"].to_numpy()
        with_own, in_part = _segments_with_own(commits, selected)
        for number in np.flatnonzero(in_part).tolist():
            some = selected.transactions(index.one(number))
            own = is_own(some, np.full(len(some), first_seqs[number]))
            with_own[number] = bool(own.any())
        marked, numbers = index.located("marked")
        is_selected = _committed(marked, selected)
        marked, numbers = marked.filter(pa.array(is_selected)), numbers[is_selected]
        self.spans = spans_of(marked.filter(pa.array(~is_own(marked, first_seqs[numbers]))))
        self.copies = _copies(index, selected)
        self._select_runs(index, with_own, oids)

    def _select_runs(self, index: LogIndex, with_own: Flags, oids: Sequence[int] | None) -> None:
        runs, numbers = index.located("rows")
        span, first_seq, xids = (runs[name].to_numpy() for name in ("span", "first_seq", "xid"))
        chunks = np.where(span == COPIED, xids, -1)
        plan = LogPlan(self.spans, RelationHistory(), self.copies)
        _, found = plan.origins_at(first_seq, xids, chunks)
        found |= (span == PLAIN) & with_own[numbers]
        if oids is not None:
            found &= np.isin(runs["oid"].to_numpy(), np.array(oids, np.int64))
        self.segment_numbers = numbers[found]
        """The number of the segment of each run."""
        self.descriptions: Numbers = runs["description"].to_numpy()[found]
        """The seq of the Relation that describes each run."""


def _segments_with_own(commits: Mapping[str, Numbers], selected: LogRange) -> tuple[Flags, Flags]:
    """Return which segments contain matching transactions, and for which the statistics are inconclusive."""
    own = commits["own"] > 0
    within, without = own.copy(), ~own
    for least, most, first, last in (
        ("first_commit", "last_commit", selected.after + 1, selected.until),
        ("least_lsn", "most_lsn", selected.first_lsn, selected.last_lsn),
    ):
        within &= (commits[least] >= first) & (commits[most] <= last)
        without |= (commits[most] < first) | (commits[least] > last)
    return within, ~within & ~without


def _committed(transactions: pa.Table, selected: LogRange) -> Flags:
    numbered = transactions.append_column("row", pa.array(np.arange(len(transactions))))
    found = committed_transactions(
        numbered.select(["row", "seq", "outcome", "end_lsn", "commit_lsn", "commit_time"]), selected.lost
    )
    flags = np.zeros(len(transactions), np.bool_)
    flags[found["row"].to_numpy()[selected.mask(found)]] = True
    return flags


def _copies(index: LogIndex, selected: LogRange) -> tuple[TableCopy, ...]:
    copies = (copy for copy in present_copies(index) if copy.rows and selected.includes(copy))
    return tuple(sorted(copies, key=lambda copy: copy.first_chunk))


@dataclass(frozen=True)
class SegmentScanTask(InputPartition):
    """The segments of one task, and which of their transactions are selected."""

    segments: tuple[Segment, ...]
    range: LogRange
    spans: Spans | None = None
    """The selected transactions that are not of one segment alone (``log_index.is_own``), None for none."""
    copies: tuple[TableCopy, ...] = ()
    """The selected copies."""

    @property
    def size(self) -> int:
        """The bytes of the payloads of all messages in the segments."""
        return sum(segment.payload_bytes for segment in self.segments)


def plan_segments(
    log: ChangeLog, index: LogIndex, selected: LogRange, found: SelectedRuns
) -> Iterator[SegmentScanTask]:
    """Yield the segments that have selected rows, in a group for each task.

    Args:
        log: The log.
        index: Its index, as of the seq of the read.
        selected: The range.
        found: The selected rows.
    """
    for group in _groups_of(log, index, np.unique(found.segment_numbers), selected):
        spans = _overlapping_spans(found.spans, group.segments[0].first_seq, group.segments[-1].last_seq)
        yield replace(group, spans=spans, copies=found.copies)


def plan_all_segments(log: ChangeLog, selected: LogRange) -> Iterator[SegmentScanTask]:
    """Yield all segments between the seqs of a range, in a group for each task."""
    first, last = log.segments.find(selected.after + 1), log.segments.find(selected.until)
    yield from _groups_of(log, log.index, np.arange(max(first, 0), last + 1), selected)


def _groups_of(log: ChangeLog, index: LogIndex, numbers: Numbers, selected: LogRange) -> Iterator[SegmentScanTask]:
    if not len(numbers):
        return
    first = int(numbers[0])
    known: Sequence[Segment] = log.segments[first : int(numbers[-1]) + 1]
    if len(numbers) > _FEW:
        known = list(known)  # reading them one by one takes ten times as long
    listed = ((number, known[number - first]) for number in numbers.tolist())
    bare = [(number, each if each.index is None else replace(each, index=None)) for number, each in listed]
    for group in _groups(bare):
        yield SegmentScanTask(tuple(segment for _, segment in group), selected)


@dataclass(frozen=True)
class ViewScanTask(InputPartition):
    """A task of a view that is not of one table."""

    group: SegmentScanTask
    schema: pa.Schema
    """The columns to return."""
    skips_malformed: bool = False
    """Whether malformed rows are skipped, instead of an error."""


@dataclass(frozen=True)
class ReaderColumns:
    """How a reader sees the rows that one Relation describes."""

    names: tuple[str, ...]
    """The names of the Relation's columns in the table as it is now."""
    missing: Mapping[str, ColumnDefault]
    """The defaults of columns that were added later."""


@dataclass(frozen=True)
class TableScanTask(InputPartition):
    """A task: the rows of one table in a group of segments."""

    group: SegmentScanTask
    oids: tuple[int, ...]
    """The OIDs of the tables that had this name."""
    columns: pa.Schema
    """The selected columns of the table."""
    schema: pa.Schema
    """The columns of the returned rows, those of CHANGE among them."""
    used: Mapping[int, ReaderColumns]
    """The Relations that describe the rows, by their seqs."""
    skips_malformed: bool = False
    """Whether malformed rows are skipped, instead of an error."""
    prefix: Prefix = DEFAULT_PREFIX
    """The prefix of added columns in the returned rows."""
    has_images: bool = False
    """Whether rows are images (``change_images``), instead of changes."""


def table_tasks(
    opened: LogTables,
    table: Table,
    selected: LogRange,
    columns: pa.Schema,
    schema: pa.Schema,
    skips_malformed: bool = False,
    prefix: Prefix = DEFAULT_PREFIX,
    has_images: bool = False,
) -> list[TableScanTask]:
    """Plan a read of a table.

    Args:
        opened: The log.
        table: The table, under the names of replays (``added_columns``).
        selected: The range of the log.
        columns: The selected columns of the table, under these names.
        schema: All columns to return, under these names.
        skips_malformed: Whether malformed rows are skipped, instead of an error.
        prefix: The prefix that added columns have for the reader.
        has_images: Whether rows are images (``change_images``), instead of changes.
    """
    oids, used = table.relation_oids, reader_columns(opened, table)
    return [
        TableScanTask(
            group, oids, columns, schema, columns_of_group(used, described), skips_malformed, prefix, has_images
        )
        for group, described in plan_described_segments(opened, selected, oids)
    ]


def plan_described_segments(
    opened: LogTables, selected: LogRange, oids: Sequence[int]
) -> Iterator[tuple[SegmentScanTask, list[int]]]:
    """Yield groups of segments with rows of some relations, and the seqs of the Relations that describe them.

    Args:
        opened: The log.
        selected: The range.
        oids: The relations.
    """
    found = SelectedRuns(opened.index, selected, oids)
    for group in plan_segments(opened.log, opened.index, selected, found):
        first, last = (opened.log.segments.find(s.first_seq) for s in (group.segments[0], group.segments[-1]))
        is_in_group = (found.segment_numbers >= first) & (found.segment_numbers <= last)
        yield group, np.unique(found.descriptions[is_in_group]).tolist()


def columns_of_group(used: Mapping[int, ReaderColumns], described: Iterable[int]) -> dict[int, ReaderColumns]:
    """Return the descriptions of a table that occur in a group."""
    return {seq: used[seq] for seq in described if seq in used}


def reader_columns(opened: LogTables, table: Table) -> dict[int, ReaderColumns]:
    """Return the descriptions of a table, by the seqs of the Relations."""
    descriptions = opened.plan.history.descriptions
    return {descriptions[i].seq: ReaderColumns(names, table.missing.get(i, {})) for i, names in table.names.items()}


def _groups(segments: Sequence[tuple[int, Segment]]) -> Iterator[list[tuple[int, Segment]]]:
    """Yield the segments of each task, in order; tasks have about the same size."""
    sizes = np.array([max(each.rows / _TASK_ROWS, each.payload_bytes / _TASK_BYTES) for _, each in segments])
    ends = np.cumsum(sizes)
    tasks = max(ceil(ends[-1]), min(cpu_count() or 1, int(ends[-1] / _LEAST)), 1)
    task_numbers = ((ends - sizes / 2) * tasks / max(ends[-1], 1 / _TASK_ROWS)).astype(np.int64).tolist()
    for _, group in groupby(zip(task_numbers, segments, strict=True), itemgetter(0)):
        yield [segment for _, segment in group]


def _overlapping_spans(spans: Spans, first: int, last: int) -> Spans:
    """Return the spans that overlap a range of seqs."""
    starts, ends = (np.frombuffer(column, np.int64) for column in (spans.first_seq, spans.last_seq))
    begin, end = int(np.searchsorted(ends, first)), int(np.searchsorted(starts, last, "right"))
    columns = {name: getattr(spans, name)[begin:end] for name in SPAN_COLUMNS}
    aborted = {index - begin: xids for index, xids in spans.aborted.items() if begin <= index < end}
    return Spans(**columns, aborted=aborted)
