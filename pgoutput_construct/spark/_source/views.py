"""Views of a log: each has columns, plans tasks in the driver, and runs one of them in an executor."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql.datasource import InputPartition

from pgoutput_construct.changelog._index.log_index import LogPoint, messages_of
from pgoutput_construct.changelog._segment.block import Flags, Numbers
from pgoutput_construct.changelog._segment.events import LogEvent
from pgoutput_construct.changelog._segment.footer import Segment
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.columnar import kernels
from pgoutput_construct.columnar.decode_plan import DecodePlan
from pgoutput_construct.columnar.descriptions import UNDESCRIBED
from pgoutput_construct.columnar.row_schema import DecodedBlock
from pgoutput_construct.columnar.table import table_rows
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark._log_view.added_columns import Prefix
from pgoutput_construct.spark._log_view.committed_rows import index_payloads, logged_rows, timestamps
from pgoutput_construct.spark._log_view.replicated_tables import Table
from pgoutput_construct.spark._source.change_images import form_of
from pgoutput_construct.spark._source.micro_batches import offset_at
from pgoutput_construct.spark._source.read_range import LogRange, tables_at
from pgoutput_construct.spark._source.segment_rows import (
    SegmentPart,
    decode_blocks,
    read_parts,
    read_segment,
    read_table_rows,
    row_error,
    with_column_names,
)
from pgoutput_construct.spark._source.source_options import SourceOptions
from pgoutput_construct.spark._source.task_plan import (
    SelectedRuns,
    TableScanTask,
    ViewScanTask,
    plan_all_segments,
    plan_segments,
    table_tasks,
)
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.stream.relations import Description, undescribed_row
from pgoutput_construct.wire.options import STATE_PARAMETERS
from pgoutput_construct.wire.protocol import RelationColumnFlags, UpdateOldKind

_TIME: Final = pa.timestamp("us", tz="UTC")


class View(ABC):
    """A view, for a read with its options; unless it says otherwise, of all segments in the range."""

    columns: pa.Schema
    """The columns, where they do not depend on the log."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options

    def schema(self, log: ChangeLog, as_of: LogPoint) -> pa.Schema:
        """Return the columns as of a point."""
        return self.columns

    def tasks(self, log: ChangeLog, as_of: LogPoint, selected: LogRange, schema: pa.Schema) -> list[InputPartition]:
        """Plan a read.

        Args:
            log: The log.
            as_of: The point as of which it is read.
            selected: The range to read.
            schema: The columns to return, some of those of ``schema``.
        """
        return [ViewScanTask(group, schema) for group in plan_all_segments(log, selected)]

    @abstractmethod
    def read(self, task: Any) -> Iterator[pa.RecordBatch]:
        """Run a task."""


class TableView(View):
    """The view ``table``: the typed changes of one table."""

    def __init__(self, options: SourceOptions) -> None:
        assert options.table is not None
        super().__init__(options)
        self.name = options.table
        self.prefix = Prefix(options.metadataPrefix)
        self.skips_malformed = options.badRecords != "fail"
        self.form = form_of(options)

    def schema(self, log: ChangeLog, as_of: LogPoint) -> pa.Schema:
        """Return the requested columns of the table, or all, and those of a change."""
        table = tables_at(log, as_of, self.options.types, self.skips_malformed).table(self.name)
        # Spark itself applies spark.sql.caseSensitive.
        self.prefix.check(table.qualified, table.columns.names, case_sensitive=True, added=self.form.added)
        names = self.options.columns
        columns = table.columns if names is None else _columns(table, names)
        return self.prefix.reader_schema(self.form.schema(self.prefix.replay_columns(columns)))

    def tasks(self, log: ChangeLog, as_of: LogPoint, selected: LogRange, schema: pa.Schema) -> list[InputPartition]:
        """Plan a read of the selected rows into the columns of ``schema``."""
        opened = tables_at(log, as_of, self.options.types, self.skips_malformed)
        table = self.prefix.replay_table(opened.table(self.name))
        inner = self.prefix.replay_schema(schema, self.form.added)
        columns = pa.schema([field for field in inner if field.name not in self.form.added])
        planned = table_tasks(
            opened, table, selected, columns, inner, self.skips_malformed, self.prefix, self.form.has_images
        )
        return [*planned]

    def read(self, task: TableScanTask) -> Iterator[pa.RecordBatch]:
        """Read the rows of one task."""
        return read_table_rows(task)


def _columns(table: Table, names: Sequence[str]) -> pa.Schema:
    """Return some of a table's columns; raise ChangeLogError for one that it does not have."""
    for name in names:
        if name not in table.columns.names:
            raise ChangeLogError(f"{table.qualified} has no column {name!r}: it has {', '.join(table.columns.names)}")
    return pa.schema([table.columns.field(name) for name in names])


_ROW: Final = pa.map_(pa.string(), pa.string())
_CHANGES: Final = pa.schema(
    [
        ("_table", pa.string()),
        ("_op", pa.string()),
        ("before", _ROW),
        ("after", _ROW),
        ("_unchanged", pa.list_(pa.string())),
        ("_commit_lsn", pa.int64()),
        ("_seq", pa.int64()),
        ("_commit_time", _TIME),
        ("_xid", pa.int64()),
        ("_relation_oid", pa.int64()),
    ]
)


class ChangesView(View):
    """The rows of all tables, each as its table was described at the time: ``_table`` is its name then.

    ``before`` has only the key where only that was sent; ``after`` has no unsent columns.
    """

    columns = _CHANGES

    def tasks(self, log: ChangeLog, as_of: LogPoint, selected: LogRange, schema: pa.Schema) -> list[InputPartition]:
        """Return a task for some segments each."""
        found = SelectedRuns(log.index, selected)
        skips = self.options.badRecords != "fail"
        return [ViewScanTask(group, schema, skips) for group in plan_segments(log, log.index, selected, found)]

    def read(self, task: ViewScanTask) -> Iterator[pa.RecordBatch]:
        """Read the rows of the segments."""
        for part in read_parts(task.group):
            if not task.skips_malformed:
                for bad in part.committed.rows[part.committed.descriptions == UNDESCRIBED][:1].tolist():
                    raise row_error(part, bad, part.index.error(bad))
            for description, chosen in part.described:
                for columns in _of_table(part, description, chosen, task.skips_malformed):
                    arrays = [columns[name].cast(_CHANGES.field(name).type) for name in task.schema.names]
                    yield pa.RecordBatch.from_arrays(arrays, schema=task.schema)


def _of_table(
    part: SegmentPart, description: Description, chosen: Numbers, skips_malformed: bool
) -> Iterator[dict[str, pa.Array]]:
    relation = description.relation
    names = [column.name for column in relation.columns]
    # A column may have the name of an added one: they are decoded under their numbers.
    numbers = tuple(f"{number}" for number in range(len(names)))
    columns = pa.schema([(number, pa.string()) for number in numbers])
    seqs = part.rows.column("seq").to_numpy()
    of_key = np.array([bool(column.flags & RelationColumnFlags.KEY) for column in relation.columns], np.bool_)
    for block in decode_blocks(part, columns, with_column_names(description, numbers), chosen, skips_malformed):
        assert block.batch is not None
        count = block.batch.num_rows
        yield {
            "_table": pa.repeat(full_name(relation), count),
            "_op": block.batch.column("_op"),
            "_relation_oid": pa.repeat(relation.relation_oid, count),
            **_rows(part, block, names, of_key),
            **part.plan.position_columns(part.origins[block.rows], seqs[block.rows]),
        }


def _rows(part: SegmentPart, block: DecodedBlock, names: Sequence[str], of_key: Flags) -> dict[str, pa.Array]:
    batch, index = block.batch, part.index
    assert batch is not None
    count, width = batch.num_rows, len(names)
    after, before = (
        np.repeat((index.rows["new"][block.rows] >= 0)[:, None], width, 1),
        np.zeros((count, width), np.bool_),
    )
    before |= (index.rows["old"][block.rows] >= 0)[:, None]
    only_key = index.rows["old_kind"][block.rows] == ord(UpdateOldKind.KEY)
    before[only_key] &= of_key
    unchanged, sent = batch.column("_unchanged"), pc.list_value_length(batch.column("_unchanged")).to_numpy()
    named: list[list[str]] = [[]] * count
    for row in np.flatnonzero(sent).tolist():
        unsent = [int(number) for number in unchanged[row].as_py()]
        after[row, unsent] = False
        named[row] = [names[number] for number in unsent]
    old = batch.column("_before").flatten() if width else []
    new = [batch.column(number) for number in range(width)]
    return {
        "before": _maps(old, names, before, index.rows["old"][block.rows] >= 0),
        "after": _maps(new, names, after, index.rows["new"][block.rows] >= 0),
        "_unchanged": pa.array(named, pa.list_(pa.string())),
    }


def _maps(columns: Sequence[pa.Array], names: Sequence[str], has: Flags, is_row: Flags) -> pa.Array:
    """Return a map per row, of the columns that it has; null where there is no row."""
    count, width = has.shape
    lengths = has.sum(axis=1)
    offsets = pa.array(np.append(0, np.cumsum(lengths)).astype(np.int32), mask=np.append(~is_row, False))
    rows, column_indexes = np.nonzero(has)
    keys = pa.array(list(names), pa.string()).take(pa.array(column_indexes)) if width else pa.array([], pa.string())
    values = pa.concat_arrays(columns).take(pa.array(column_indexes * count + rows)) if width else keys
    return pa.MapArray.from_arrays(offsets, keys, values)


_QUARANTINE: Final = pa.schema(
    [
        ("seq", pa.int64()),
        ("segment", pa.string()),
        ("_commit_lsn", pa.int64()),
        ("_relation_oid", pa.int64()),
        ("reason", pa.string()),
        ("payload", pa.binary()),
    ]
)
_NOTHING: Final = pa.schema([])


class QuarantineView(View):
    """The rows that other views skip with ``badRecords=quarantine``; ``_relation_oid`` is 0 where it is unknown."""

    columns = _QUARANTINE

    def tasks(self, log: ChangeLog, as_of: LogPoint, selected: LogRange, schema: pa.Schema) -> list[InputPartition]:
        """Return a task for some segments each."""
        found = SelectedRuns(log.index, selected)
        return [ViewScanTask(group, schema) for group in plan_segments(log, log.index, selected, found)]

    def read(self, task: ViewScanTask) -> Iterator[pa.RecordBatch]:
        """Find the malformed rows of the segments, without decoding the values of others."""
        for part in read_parts(task.group):
            if found := list(_malformed(part)):
                yield pa.RecordBatch.from_pylist(found, schema=_QUARANTINE).select(task.schema.names)


def _malformed(part: SegmentPart) -> Iterator[dict[str, Any]]:
    rows, logged = logged_rows(part.rows, part.index)
    committed = part.plan.committed(logged)
    of_row = dict(zip(rows[committed.rows].tolist(), range(len(committed.rows)), strict=True))
    for row, reason in _reasons(part, rows[committed.rows], committed.descriptions):
        index = of_row[row]
        yield {
            "seq": part.rows.column("seq")[row].as_py(),
            "segment": part.name,
            "_commit_lsn": int(part.plan.column("commit_lsn")[committed.origins[index]]),
            "_relation_oid": int(logged.oids[committed.rows[index]]),
            "reason": reason,
            "payload": part.index.payload(row),
        }


def _reasons(part: SegmentPart, rows: Numbers, descriptions: Numbers) -> Iterator[tuple[int, str]]:
    """Yield rows that are malformed, that no Relation describes, or that do not fit their Relation; and why."""
    for row in np.unique(rows[descriptions == UNDESCRIBED]).tolist():
        reason = f"{undescribed_row(int(part.index.rows['relation_oid'][row]))} before this row"
        yield row, reason if part.index.valid[row] else str(part.index.error(row))
    for number in np.unique(descriptions[descriptions != UNDESCRIBED]).tolist():
        chosen = rows[descriptions == number]
        description = part.plan.history.descriptions[number]
        for block in table_rows(part.index, chosen, DecodePlan(description, _NOTHING)):
            yield from ((error.row, str(error)) for error in block.errors)


_TRANSACTIONS = pa.schema(
    [
        ("seq", pa.int64()),
        ("xid", pa.int64()),
        ("gid", pa.string()),
        ("streamed", pa.bool_()),
        ("commit_lsn", pa.int64()),
        ("end_lsn", pa.int64()),
        ("commit_time", _TIME),
        ("first_seq", pa.int64()),
        ("messages", pa.int64()),
    ]
)
_EVENTS = pa.schema(
    [("seq", pa.int64()), ("name", pa.string()), ("lsn", pa.int64()), ("time", _TIME), ("details", pa.string())]
)


class _IndexView(View):
    """A view of the indexes of segments."""

    def read(self, task: ViewScanTask) -> Iterator[pa.RecordBatch]:
        """Read the indexes of the segments."""
        for segment in task.group.segments:
            _, index = read_segment(segment, _no_rows)
            found = self.entries(task.group.range, segment, index)
            yield from found.select(task.schema.names).cast(task.schema).combine_chunks().to_batches()

    @abstractmethod
    def entries(self, selected: LogRange, segment: Segment, index: SegmentIndex) -> pa.Table:
        """Return the entries of one segment."""


def _no_rows(index: SegmentIndex) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.array([], np.int64), np.array([], np.int64)


class TransactionsView(_IndexView):
    """Committed transactions: their positions, times, and numbers of messages."""

    columns = _TRANSACTIONS

    def entries(self, selected: LogRange, segment: Segment, index: SegmentIndex) -> pa.Table:
        """Return the transactions that committed in a segment."""
        found = _in_segment(selected.transactions(index), segment)
        spans = pc.list_flatten(found["spans"])
        parents = pc.list_parent_indices(found["spans"]).to_numpy()
        messages = messages_of(found)
        firsts = np.full(len(found), np.iinfo(np.int64).max)
        np.minimum.at(firsts, parents, pc.struct_field(spans, "first").to_numpy())
        found = found.set_column(
            found.schema.get_field_index("commit_time"), "commit_time", timestamps(found["commit_time"].to_numpy())
        )
        return found.append_column("first_seq", pa.array(firsts)).append_column("messages", pa.array(messages))


class EventsView(_IndexView):
    """Events that the capture wrote in addition to the messages; ``details`` are JSON."""

    columns = _EVENTS

    def entries(self, selected: LogRange, segment: Segment, index: SegmentIndex) -> pa.Table:
        """Return the events of a segment."""
        found = _in_segment(index.entries("events"), segment)
        is_selected = pc.and_(pc.greater(found["seq"], selected.after), pc.less_equal(found["seq"], selected.until))
        found = found.filter(is_selected)
        rows = zip(*(found[name].to_pylist() for name in ("seq", "lsn", "time", "payload")), strict=True)
        details = [json.dumps(dict(LogEvent.parse(*row).details)) for row in rows]
        time = timestamps(found["time"].to_numpy())
        return pa.table([found["seq"], found["name"], found["lsn"], time, pa.array(details, pa.string())], _EVENTS)


def _in_segment(entries: pa.Table, segment: Segment) -> pa.Table:
    """Return the entries within the seqs of a segment: a file that compaction made may cover more than was listed."""
    seqs = entries["seq"]
    return entries.filter(pc.and_(pc.greater_equal(seqs, segment.first_seq), pc.less_equal(seqs, segment.last_seq)))


_SIGNED: Final = {pa.uint64(): pa.int64(), pa.uint32(): pa.int64(), pa.uint8(): pa.int16()}
"""Spark has no unsigned numbers: the signed type that each is cast to."""
_BATCH_ROWS: Final = 10_000


def _spark_type(field: pa.Field) -> pa.DataType:
    return _TIME if field.name.endswith("_time") else _SIGNED.get(field.type, field.type)


_MESSAGES: Final = pa.schema(
    [
        ("seq", pa.int64()),
        ("wal_start", pa.int64()),
        ("send_time", _TIME),
        *((name, pa.bool_()) for name in STATE_PARAMETERS),
        ("stream_xid", pa.int64()),
        ("snapshot", pa.int32()),
        *(pa.field(field.name, _spark_type(field)) for field in kernels.MESSAGE_SCHEMA),
        ("payload", pa.binary()),
        ("segment", pa.string()),
    ]
)
"""``kind`` is the name of the class; fields that it does not have are null. ``snapshot`` is the number of a copied
row's chunk."""


class MessagesView(View):
    """Every message of the log, in no particular order (that of the log is ``seq``), with one column a header field."""

    columns = _MESSAGES

    def read(self, task: ViewScanTask) -> Iterator[pa.RecordBatch]:
        """Read the messages of the segments."""
        selected = task.group.range
        ends = np.array([selected.after + 1]), np.array([selected.until])
        for segment in task.group.segments:
            table, _ = read_segment(segment, lambda index: ends)
            seqs = table["seq"].to_numpy()
            is_selected = (seqs > selected.after) & (seqs <= selected.until)
            messages = table.filter(pa.array(is_selected & table["tag"].is_valid().to_numpy()))
            for batch in messages.combine_chunks().to_batches(_BATCH_ROWS):
                headers = index_payloads(segment.options, batch).messages()
                columns = {name: batch.column(name) for name in _MESSAGES.names if name in batch.schema.names}
                columns |= {field.name: _signed(headers.column(field.name), field) for field in kernels.MESSAGE_SCHEMA}
                columns["segment"] = pa.repeat(segment.name, batch.num_rows)
                yield pa.RecordBatch.from_arrays([columns[name] for name in task.schema.names], schema=task.schema)


def _signed(column: pa.Array, field: pa.Field) -> pa.Array:
    if _spark_type(field) == _TIME:
        times = timestamps(column.fill_null(0).to_numpy())
        return pc.if_else(column.is_valid(), times, pa.scalar(None, times.type))
    return column.cast(_spark_type(field), safe=False)


_BATCHES = pa.schema(
    [
        ("after_seq", pa.int64()),
        ("seq", pa.int64()),
        ("commit_lsn", pa.int64()),
        ("commit_time", _TIME),
    ]
)


@dataclass
class _BatchTask(InputPartition):
    batch: pa.RecordBatch


class BatchesView(View):
    """The view ``batches``: a row per micro-batch, for programs that apply the range of a log by other means.

    It has everything that ended after ``after_seq``, up to ``seq``; ``commit_lsn`` is the last commit by then.
    """

    columns = _BATCHES

    def tasks(self, log: ChangeLog, as_of: LogPoint, selected: LogRange, schema: pa.Schema) -> list[InputPartition]:
        """Return a task that holds the row."""
        offset = offset_at(log.index, selected.until)
        time = timestamps(np.array([offset.time or 0], np.int64))
        columns = {
            "after_seq": pa.array([selected.after], pa.int64()),
            "seq": pa.array([selected.until], pa.int64()),
            "commit_lsn": pa.array([offset.lsn], pa.int64()),
            "commit_time": time if offset.time is not None else pa.nulls(1, time.type),
        }
        return [_BatchTask(pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema))]

    def read(self, task: _BatchTask) -> Iterator[pa.RecordBatch]:
        """Return the row."""
        yield task.batch


_VIEWS: Final[Mapping[str, type[View]]] = {
    "table": TableView,
    "changes": ChangesView,
    "transactions": TransactionsView,
    "messages": MessagesView,
    "events": EventsView,
    "batches": BatchesView,
    "quarantine": QuarantineView,
}


def view_of(options: SourceOptions) -> View:
    """Return the view that options name."""
    return _VIEWS[options.view](options)
