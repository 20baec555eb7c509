"""The views ``transactions`` and ``events``: what the index of each segment says of what ended in it."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql.datasource import InputPartition

from pgoutput_construct.changelog._facts.events import LogEvent
from pgoutput_construct.changelog._index.log_index import messages_of
from pgoutput_construct.changelog._index.segment_index import SegmentIndex
from pgoutput_construct.changelog._segment.footer import Segment
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.spark.source.options import SourceOptions
from pgoutput_construct.spark.source.pieces import Piece, Range
from pgoutput_construct.spark.source.planning import segment_pieces
from pgoutput_construct.spark.source.reading import read_part
from pgoutput_construct.spark.visible_rows import timestamps

__all__ = ["EventsView", "TransactionsView"]

_TIME = pa.timestamp("us", tz="UTC")
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


class _IndexView(ABC):
    """What a view of indexes has in common."""

    columns: pa.Schema

    def __init__(self, options: SourceOptions) -> None:
        self.options = options

    def schema(self, log: ChangeLog, as_of: int) -> pa.Schema:
        """Return the columns."""
        return self.columns

    def tasks(self, log: ChangeLog, as_of: int, wanted: Range, schema: pa.Schema) -> list[InputPartition]:
        """Return a task for some segments each."""
        return [_Indexes(piece, schema) for piece in segment_pieces(log, wanted)]

    def read(self, task: "_Indexes") -> Iterator[pa.RecordBatch]:
        """Read the indexes of the segments."""
        for segment in task.piece.segments:
            _, index = read_part(segment, _no_rows)
            found = self.entries(task.piece.range, segment, index)
            yield from found.select(task.schema.names).cast(task.schema).combine_chunks().to_batches()

    @abstractmethod
    def entries(self, wanted: Range, segment: Segment, index: SegmentIndex) -> pa.Table:
        """Return the entries of one segment."""


def _no_rows(index: SegmentIndex) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.array([], np.int64), np.array([], np.int64)


class _Indexes(InputPartition):
    def __init__(self, piece: Piece, schema: pa.Schema) -> None:
        self.piece = piece
        self.schema = schema


class TransactionsView(_IndexView):
    """The transactions that committed: where they stand, when, and how many messages they have."""

    columns = _TRANSACTIONS

    def entries(self, wanted: Range, segment: Segment, index: SegmentIndex) -> pa.Table:
        """Return those that committed in a segment."""
        found = _in_segment(wanted.transactions(index), segment)
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
    """What the capture learned in addition to the messages; ``details`` are JSON."""

    columns = _EVENTS

    def entries(self, wanted: Range, segment: Segment, index: SegmentIndex) -> pa.Table:
        """Return those that stand in a segment."""
        found = _in_segment(index.entries("events"), segment)
        is_wanted = pc.and_(pc.greater(found["seq"], wanted.after), pc.less_equal(found["seq"], wanted.until))
        found = found.filter(is_wanted)
        rows = zip(*(found[name].to_pylist() for name in ("seq", "lsn", "time", "payload")), strict=True)
        details = [json.dumps(dict(LogEvent.parse(*row).details)) for row in rows]
        time = timestamps(found["time"].to_numpy())
        return pa.table([found["seq"], found["name"], found["lsn"], time, pa.array(details, pa.string())], _EVENTS)


def _in_segment(entries: pa.Table, segment: Segment) -> pa.Table:
    """Leave out what a segment has that covers one which was compacted away."""
    seqs = entries["seq"]
    return entries.filter(pc.and_(pc.greater_equal(seqs, segment.first_seq), pc.less_equal(seqs, segment.last_seq)))
