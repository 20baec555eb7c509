"""From segments to typed rows, in a task: segments are read and checked, the selected rows in them decoded."""

import platform
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.changelog._facts.copies import TableCopy
from pgoutput_construct.changelog._index.log_index import is_own
from pgoutput_construct.changelog._index.planning import relation_history, spans_of
from pgoutput_construct.changelog._index.row_counts import COPIED
from pgoutput_construct.changelog._segment.block import Numbers
from pgoutput_construct.changelog._segment.footer import Segment
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex
from pgoutput_construct.changelog._segment.segment_reader import Needed, read_indexed
from pgoutput_construct.changelog._store.store import MissingFileError
from pgoutput_construct.changelog.reader import explain, table_entries
from pgoutput_construct.columnar.batch_arrays import look_up
from pgoutput_construct.columnar.decode_plan import DecodePlan
from pgoutput_construct.columnar.index import IS_ROW, BatchIndex
from pgoutput_construct.columnar.row_schema import DecodedBlock
from pgoutput_construct.columnar.table import table_rows
from pgoutput_construct.errors import ChangeLogError, PgoutputError
from pgoutput_construct.spark._execution import cache_archives
from pgoutput_construct.spark._log_view.change_columns import changes_schema
from pgoutput_construct.spark._log_view.committed_rows import CommittedRows, LogPlan, index_payloads, logged_rows
from pgoutput_construct.spark._log_view.table_columns import ColumnDefault, with_column_defaults
from pgoutput_construct.spark._source.change_images import images_of
from pgoutput_construct.spark._source.task_plan import ReaderColumns, SegmentScanTask, TableScanTask
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.stream.transaction_reader import SPAN_COLUMNS, Spans
from pgoutput_construct.wire.protocol import RelationColumnFlags, UpdateOldKind

_BATCH_ROWS: Final = 1 << 16


@dataclass(frozen=True)
class SegmentPart:
    """A batch of rows of one segment, and the plan that says which of them are selected."""

    name: str
    """The segment, for messages."""
    rows: pa.RecordBatch
    """Rows in the log's SCHEMA."""
    index: BatchIndex
    plan: LogPlan
    """The selected transactions and copies, and the Relations of the segment."""

    @cached_property
    def committed(self) -> CommittedRows:
        """The selected rows, as indexes in ``rows``."""
        rows, logged = logged_rows(self.rows, self.index)
        found = self.plan.committed(logged)
        return found._replace(rows=rows[found.rows])

    @cached_property
    def origins(self) -> Numbers:
        """The transaction or copy of each row, see ``LogPlan.origins_at``; 0 for rows that are not selected."""
        origins = np.zeros(self.rows.num_rows, np.int64)
        origins[self.committed.rows] = self.committed.origins
        return origins

    @cached_property
    def described(self) -> tuple[tuple[Description, Numbers], ...]:
        """The descriptions of selected rows, each with the indexes of its rows."""
        numbers = self.committed.descriptions
        known = np.unique(numbers[numbers >= 0]).tolist()
        return tuple((self.plan.history.descriptions[each], self.committed.rows[numbers == each]) for each in known)


def read_table_rows(task: TableScanTask) -> Iterator[pa.RecordBatch]:
    """Yield the selected rows of a table; raises ChangeLogError, with segment, seq and field, for a malformed one."""
    for part in read_parts(task.group, task.oids):
        yield from map(
            task.prefix.reader_batch,
            decode_part(part, task.columns, task.schema, task.used, task.skips_malformed, task.has_images),
        )


def decode_part(
    part: SegmentPart,
    columns: pa.Schema,
    schema: pa.Schema,
    used: Mapping[int, ReaderColumns],
    skips_malformed: bool = False,
    has_images: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield the selected rows of a table in a part.

    Args:
        part: Rows of a segment.
        columns: The selected columns of the table.
        schema: All columns to return.
        used: The Relations that describe the table's rows, by their seqs.
        skips_malformed: Whether malformed rows are skipped; else they raise ChangeLogError.
        has_images: Whether rows are images (``change_images``), instead of changes.
    """
    inner = changes_schema(columns) if has_images else schema
    for description, chosen in part.described:
        if (found := used.get(description.seq)) is not None:
            named = with_column_names(description, found.names)
            for block in decode_blocks(part, columns, named, chosen, skips_malformed):
                changes = _typed(part, columns, inner, found.missing, description.relation.relation_oid, block)
                yield _images(part, named, block, changes, schema) if has_images else changes


def _images(
    part: SegmentPart, description: Description, block: DecodedBlock, changes: pa.RecordBatch, schema: pa.Schema
) -> pa.RecordBatch:
    keys = {column.name for column in description.relation.columns if column.flags & RelationColumnFlags.KEY}
    return images_of(changes, keys, part.index.rows["old_kind"][block.rows] == ord(UpdateOldKind.KEY), schema)


def decode_blocks(
    part: SegmentPart, columns: pa.Schema, description: Description, chosen: Numbers, skips_malformed: bool
) -> Iterator[DecodedBlock]:
    """Decode rows of a part that one description fits.

    Args:
        part: Rows of a segment.
        columns: The columns to decode, under the names in ``description``.
        description: The Relation that describes the rows.
        chosen: Their indexes in the part.
        skips_malformed: Whether malformed rows are skipped; else they raise ChangeLogError.
    """
    copied = bool(part.origins[chosen[0]] >= len(part.plan.spans.xid))
    for block in table_rows(part.index, chosen, DecodePlan(description, columns), copied=copied):
        for error in block.errors if not skips_malformed else ():
            raise row_error(part, error.row, error.error) from error
        if block.batch is not None:
            yield block


def _typed(
    part: SegmentPart,
    columns: pa.Schema,
    schema: pa.Schema,
    missing: Mapping[str, ColumnDefault],
    oid: int,
    block: DecodedBlock,
) -> pa.RecordBatch:
    assert block.batch is not None
    filled = with_column_defaults(
        block.batch, {name: value for name, value in missing.items() if name in columns.names}
    )
    positions = part.plan.position_columns(part.origins[block.rows], part.rows.column("seq").to_numpy()[block.rows])
    arrays = positions | dict(zip(filled.schema.names, filled.columns, strict=True))
    if "_relation_oid" in schema.names:
        arrays["_relation_oid"] = pa.repeat(pa.scalar(oid, pa.int64()), block.batch.num_rows)
    return pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)


def read_parts(group: SegmentScanTask, oids: tuple[int, ...] | None = None) -> Iterator[SegmentPart]:
    """Read the segments of a group: the rows of some relations, None for all.

    Raises ChangeLogError for damage, with segment and seqs, and for a segment that does not exist on this host.
    """
    cache_archives()
    for segment in group.segments:
        needed = RowSelection(group, segment, oids)
        table, known = read_segment(segment, needed)
        plan = LogPlan(needed.spans(known), relation_history(known), group.copies)
        for batch in _rows(table, oids).combine_chunks().to_batches(_BATCH_ROWS):
            yield SegmentPart(segment.name, batch, index_payloads(segment.options, batch), plan)


def read_segment(segment: Segment, needed: Needed) -> tuple[pa.Table, SegmentIndex]:
    """Read the index of a segment and its ``needed`` rows; neighbouring rows may come with them.

    Raises as ``read_parts`` does.
    """
    try:
        return read_indexed(segment, needed)
    except MissingFileError as error:
        if segment.store.files():
            raise
        raise ChangeLogError(
            f"segment {segment.path}: not found on the host {platform.node()}, where a task of Spark reads it; the "
            "log is not damaged: put it where all executors find it, on a file system that they share under this path, "
            "or at an address such as s3://bucket/folder"
        ) from error


def _rows(table: pa.Table, oids: tuple[int, ...] | None) -> pa.Table:
    """Drop messages that are no rows, and rows of other relations; truncates and malformed rows may be of any."""
    tags = table["tag"].fill_null(0).to_numpy()
    is_row = look_up(tags, IS_ROW)
    if oids is not None:
        known = table["relation_oid"]
        is_row &= np.isin(known.fill_null(-1).to_numpy(), np.array([*oids, -1], np.int64))
    return table.filter(pa.array(is_row))


def row_error(part: SegmentPart, row: int, error: PgoutputError) -> ChangeLogError:
    """Return an error that says which row it is about: segment, seq, field path."""
    (entry,) = table_entries(pa.Table.from_batches([part.rows.slice(row, 1)]), part.name)
    return explain(entry, error)


def with_column_names(description: Description, names: tuple[str, ...]) -> Description:
    """Return a description whose columns have other names: those of the table as it is now."""
    relation = description.relation
    columns = tuple(replace(column, name=name) for column, name in zip(relation.columns, names, strict=True))
    return replace(description, relation=replace(relation, columns=columns))


Ranges = tuple[Numbers, Numbers]
"""The first and last seqs of ranges, both in ascending order."""


class RowSelection:
    """Which rows of a segment to read: those of some relations (None for all) in selected transactions and copies.

    The index has the first and the last seq of each relation in the segment; selected transactions are clipped to
    these. A few rows more than needed are read.
    """

    def __init__(self, group: SegmentScanTask, segment: Segment, oids: tuple[int, ...] | None) -> None:
        self.group, self.segment, self.oids = group, segment, oids
        self._spans: Spans | None = None

    def __call__(self, index: SegmentIndex) -> Ranges:
        """Return the ranges of seqs to read."""
        runs = index.entries("rows")
        if self.oids is not None:
            runs = runs.filter(pa.array(np.isin(runs["oid"].to_numpy(), np.array(self.oids, np.int64))))
        copied = runs["span"].to_numpy() == COPIED
        first, last, chunks = (runs[name].to_numpy() for name in ("first_seq", "last_seq", "xid"))
        selected = copied & _in_copies(self.group.copies, chunks)
        sent = _clipped(_ranges(self.spans(index)), first[~copied], last[~copied])
        return _merged_ranges(sent, (first[selected], last[selected]))

    def spans(self, index: SegmentIndex) -> Spans:
        """Return the selected transactions: those that are in this segment alone, and those of the group."""
        if self._spans is None:
            self._spans = _selected_spans(self.group, self.segment, index)
        return self._spans


def _in_copies(copies: tuple[TableCopy, ...], chunks: Numbers) -> NDArray[np.bool_]:
    """Return whether each chunk, given by its number, is of one of some copies."""
    found = np.zeros(len(chunks), np.bool_)
    for copy in copies:
        found |= (chunks >= copy.first_chunk) & (chunks <= copy.last_chunk)
    return found


def _ranges(spans: Spans) -> Ranges:
    return np.frombuffer(spans.first_seq, np.int64), np.frombuffer(spans.last_seq, np.int64)


def _clipped(ranges: Ranges, firsts: Numbers, lasts: Numbers) -> Ranges:
    """Clip ranges to the least of ``firsts`` and the greatest of ``lasts``."""
    if not len(firsts):
        return firsts, lasts
    first, last = np.maximum(ranges[0], firsts.min()), np.minimum(ranges[1], lasts.max())
    return first[first <= last], last[first <= last]


def _merged_ranges(one: Ranges, other: Ranges) -> Ranges:
    """Merge ranges: a transaction may continue after a chunk of a copy."""
    first, last = np.append(one[0], other[0]), np.append(one[1], other[1])
    order = np.argsort(first, kind="stable")
    return first[order], np.maximum.accumulate(last[order])


def _selected_spans(group: SegmentScanTask, segment: Segment, index: SegmentIndex) -> Spans:
    transactions = group.range.transactions(index)
    # A segment that covers one that was compacted away has more of them.
    own = is_own(transactions, np.full(len(transactions), segment.first_seq, np.int64))
    own &= transactions["seq"].to_numpy() <= segment.last_seq
    mine = spans_of(transactions.filter(pa.array(own)))
    return _merged_spans(mine, group.spans) if group.spans is not None and len(group.spans.xid) else mine


def _merged_spans(own: Spans, others: Spans) -> Spans:
    """Merge spans; a segment's own transactions have no rolled-back subtransactions."""
    first = np.concatenate([np.frombuffer(own.first_seq, np.int64), np.frombuffer(others.first_seq, np.int64)])
    order = np.argsort(first, kind="stable")
    indexes = np.empty(len(order), np.int64)
    indexes[order] = np.arange(len(order))
    columns = {name: _taken(getattr(own, name), getattr(others, name), order) for name in SPAN_COLUMNS}
    aborted = {int(indexes[len(own.xid) + index]): xids for index, xids in others.aborted.items()}
    return Spans(**columns, aborted=aborted)


def _taken(own: "array[int]", others: "array[int]", order: Numbers) -> "array[int]":
    both = np.concatenate([np.frombuffer(own, np.int64), np.frombuffer(others, np.int64)])
    return array("q", both[order].tobytes())
