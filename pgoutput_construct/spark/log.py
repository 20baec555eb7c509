"""The change log in Spark: its segments are read and checked where they are needed, one task some segments."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from pgoutput_construct.changelog.columns import SCHEMA
from pgoutput_construct.changelog.footer import Segment
from pgoutput_construct.changelog.reader import ChangeLog, explain, table_entries
from pgoutput_construct.changelog.reading import read_segment
from pgoutput_construct.errors import ChangeLogError, PgoutputError

__all__ = ["LOG_SCHEMA", "failed", "map_segments", "read_log", "segment_batches"]

_TAG = SCHEMA.get_field_index("tag")
LOG_SCHEMA = SCHEMA.set(_TAG, pa.field("tag", pa.int16())).append(pa.field("segment", pa.string(), nullable=False))
"""The columns of the change log (Spark has no unsigned bytes), and the name of the segment."""

_BATCH_ROWS = 10_000
_TASK_ROWS = 50_000
"""Small segments share a task until they have this many rows: starting a task costs more than reading them."""

SegmentFunction = Callable[[Segment], Iterator[pa.RecordBatch]]


def read_log(spark: SparkSession, directory: str | Path) -> DataFrame:
    """Read a change log as a DataFrame of ``LOG_SCHEMA``, one row per message or event, in no particular order.

    The directory must be at the same path on every executor. Each segment is read by its own format, all checksums
    verified; an action raises (inside Spark's exception) ChangeLogError for damage, naming segment and seqs.
    """
    return map_segments(spark, ChangeLog(directory).segments, _all_rows, LOG_SCHEMA)


def map_segments(
    spark: SparkSession, segments: Sequence[Segment], function: SegmentFunction, schema: pa.Schema
) -> DataFrame:
    """Run a function on every segment, in executors, and return its batches (of ``schema``) as a DataFrame."""
    groups = _groups([replace(segment, index=None) for segment in segments])
    # As a broadcast each worker reads them once; in the closure, each task would.
    known = spark.sparkContext.broadcast(groups)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                for segment in known.value[index]:
                    yield from function(segment)

    numbers = spark.range(0, len(groups), 1, max(len(groups), 1))
    return numbers.mapInArrow(run, from_arrow_schema(schema, prefer_timestamp_ntz=True))


def segment_batches(segment: Segment) -> Iterator[pa.RecordBatch]:
    """Read the messages of one segment as batches of ``LOG_SCHEMA``.

    Raises ChangeLogError that names segment, seqs and field.
    """
    for batch in _all_rows(segment):
        tags = batch.column("tag")
        yield batch.filter(tags.is_valid()) if tags.null_count else batch


def _all_rows(segment: Segment) -> Iterator[pa.RecordBatch]:
    table = read_segment(segment).append_column("segment", pa.repeat(segment.name, segment.rows))
    yield from table.cast(LOG_SCHEMA).combine_chunks().to_batches(_BATCH_ROWS)


def failed(batch: pa.RecordBatch, row: int, error: PgoutputError) -> ChangeLogError:
    """Say of an error in one row of a batch of ``LOG_SCHEMA`` where it is: segment, seq, field path."""
    (entry,) = table_entries(pa.Table.from_batches([batch.slice(row, 1)]))
    return explain(entry, error)


def _groups(segments: Sequence[Segment]) -> list[list[Segment]]:
    groups: list[list[Segment]] = []
    rows = _TASK_ROWS
    for segment in segments:
        if rows + segment.rows > _TASK_ROWS:
            groups.append([])
            rows = 0
        groups[-1].append(segment)
        rows += segment.rows
    return groups
