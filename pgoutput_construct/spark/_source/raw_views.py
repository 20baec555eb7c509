"""Views of what a log holds: ``messages`` as they were sent; ``transactions`` and ``events`` from the index."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql.datasource import InputPartition

from pgoutput_construct.changelog._index.log_index import LogMoment, messages_of
from pgoutput_construct.changelog._segment.events import LogEvent
from pgoutput_construct.changelog._segment.footer import Segment
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.columnar import kernels
from pgoutput_construct.spark._log_view.committed_rows import index_payloads, timestamps
from pgoutput_construct.spark._source.read_range import LogRange
from pgoutput_construct.spark._source.segment_rows import read_segment
from pgoutput_construct.spark._source.source_options import SourceOptions
from pgoutput_construct.spark._source.task_plan import ViewScanTask, plan_all_segments
from pgoutput_construct.wire.options import STATE_PARAMETERS

_TIME: Final = pa.timestamp("us", tz="UTC")
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


class _RawView(ABC):
    """A view of all segments in a range."""

    columns: pa.Schema

    def __init__(self, options: SourceOptions) -> None:
        self.options = options

    def schema(self, log: ChangeLog, as_of: LogMoment) -> pa.Schema:
        """Return the columns."""
        return self.columns

    def tasks(self, log: ChangeLog, as_of: LogMoment, selected: LogRange, schema: pa.Schema) -> list[InputPartition]:
        """Return a task for some segments each."""
        return [ViewScanTask(group, schema) for group in plan_all_segments(log, selected)]

    @abstractmethod
    def read(self, task: ViewScanTask) -> Iterator[pa.RecordBatch]:
        """Read the segments of a task."""


class _IndexView(_RawView):
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


class MessagesView(_RawView):
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
