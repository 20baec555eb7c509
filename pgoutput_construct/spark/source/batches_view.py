"""The view ``batches``: one row a micro-batch, for who applies the range of a log by other means."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.spark.source.offsets import offset_at
from pgoutput_construct.spark.source.options import SourceOptions
from pgoutput_construct.spark.source.pieces import Range
from pgoutput_construct.spark.visible_rows import timestamps

__all__ = ["BatchesView"]

_SCHEMA = pa.schema(
    [
        ("after_seq", pa.int64()),
        ("seq", pa.int64()),
        ("commit_lsn", pa.int64()),
        ("commit_time", pa.timestamp("us", tz="UTC")),
    ]
)


@dataclass
class _Row(InputPartition):
    batch: pa.RecordBatch


class BatchesView:
    """The range of each micro-batch: what ended after one seq, up to another, and the last commit by then."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options

    def schema(self, log: ChangeLog, as_of: int) -> pa.Schema:
        """Return the columns."""
        return _SCHEMA

    def tasks(self, log: ChangeLog, as_of: int, wanted: Range, schema: pa.Schema) -> list[InputPartition]:
        """Return a task that has the row."""
        offset = offset_at(log.index, wanted.until)
        time = timestamps(np.array([offset.time or 0], np.int64))
        columns = {
            "after_seq": pa.array([wanted.after], pa.int64()),
            "seq": pa.array([wanted.until], pa.int64()),
            "commit_lsn": pa.array([offset.lsn], pa.int64()),
            "commit_time": time if offset.time is not None else pa.nulls(1, time.type),
        }
        return [_Row(pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema))]

    def read(self, task: _Row) -> Iterator[pa.RecordBatch]:
        """Return the row."""
        yield task.batch
