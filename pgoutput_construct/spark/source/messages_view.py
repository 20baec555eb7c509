"""The view ``messages``: each message as it was sent, committed or not, with the fields that its class has."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import InputPartition

from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.columnar import kernels
from pgoutput_construct.spark.source.options import SourceOptions
from pgoutput_construct.spark.source.pieces import Piece, Range
from pgoutput_construct.spark.source.planning import segment_pieces
from pgoutput_construct.spark.source.reading import read_part
from pgoutput_construct.spark.visible_rows import index_log, timestamps
from pgoutput_construct.wire.options import STATE_PARAMETERS

__all__ = ["MessagesView"]

_TIME: Final = pa.timestamp("us", tz="UTC")
_SIGNED: Final = {pa.uint64(): pa.int64(), pa.uint32(): pa.int64(), pa.uint8(): pa.int16()}
"""Spark has no unsigned numbers; what stands for each."""
_BATCH_ROWS: Final = 10_000


def _kind(field: pa.Field) -> pa.DataType:
    return _TIME if field.name.endswith("_time") else _SIGNED.get(field.type, field.type)


_SCHEMA: Final = pa.schema(
    [
        ("seq", pa.int64()),
        ("wal_start", pa.int64()),
        ("send_time", _TIME),
        *((name, pa.bool_()) for name in STATE_PARAMETERS),
        ("stream_xid", pa.int64()),
        ("snapshot", pa.int32()),
        *(pa.field(field.name, _kind(field)) for field in kernels.MESSAGE_SCHEMA),
        ("payload", pa.binary()),
        ("segment", pa.string()),
    ]
)
"""``kind`` is the name of the class; fields that it does not have are null. ``snapshot`` is the number of a copied
row's chunk."""


class _Messages(InputPartition):
    def __init__(self, piece: Piece, schema: pa.Schema) -> None:
        self.piece = piece
        self.schema = schema


class MessagesView:
    """Every message of the log, in no particular order; that is the order of ``seq``."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options

    def schema(self, log: ChangeLog, as_of: int) -> pa.Schema:
        """Return the columns: those of the log, and one for each field of a message's header."""
        return _SCHEMA

    def tasks(self, log: ChangeLog, as_of: int, wanted: Range, schema: pa.Schema) -> list[InputPartition]:
        """Return a task for some segments each."""
        return [_Messages(piece, schema) for piece in segment_pieces(log, wanted)]

    def read(self, task: _Messages) -> Iterator[pa.RecordBatch]:
        """Read the messages of the segments."""
        wanted = task.piece.range
        ends = np.array([wanted.after + 1]), np.array([wanted.until])
        for segment in task.piece.segments:
            table, _ = read_part(task.piece, segment, lambda index: ends)
            seqs = table["seq"].to_numpy()
            is_wanted = (seqs > wanted.after) & (seqs <= wanted.until)
            messages = table.filter(pa.array(is_wanted & table["tag"].is_valid().to_numpy()))
            for batch in messages.combine_chunks().to_batches(_BATCH_ROWS):
                headers = index_log(segment.options, batch).messages()
                columns = {name: batch.column(name) for name in _SCHEMA.names if name in batch.schema.names}
                columns |= {field.name: _signed(headers.column(field.name), field) for field in kernels.MESSAGE_SCHEMA}
                columns["segment"] = pa.repeat(segment.name, batch.num_rows)
                yield pa.RecordBatch.from_arrays([columns[name] for name in task.schema.names], schema=task.schema)


def _signed(column: pa.Array, field: pa.Field) -> pa.Array:
    if _kind(field) == _TIME:
        times = timestamps(column.fill_null(0).to_numpy())
        return pc.if_else(column.is_valid(), times, pa.scalar(None, times.type))
    return column.cast(_kind(field), safe=False)
