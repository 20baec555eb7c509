"""One pass over a log in executors: its control messages, and its rows in runs that share table and transaction.

Between two control messages all rows stand in one transaction, and each table has one Relation. So a run of rows is
enough to know, once the transactions are known, whether they are visible, and what describes them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from pgoutput_construct.changelog.options import LogOptions
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.changelog.segments import Segment
from pgoutput_construct.columnar.gather import tag_table
from pgoutput_construct.columnar.index import IS_ROW
from pgoutput_construct.spark.log import LOG_SCHEMA, failed, map_segments, segment_batches
from pgoutput_construct.spark.rows import LoggedRows, bounds_of_runs, index_log, rows_of
from pgoutput_construct.wire.messages import Message
from pgoutput_construct.wire.protocol import CHANGES

__all__ = ["Scan", "scan_log"]

Numbers = NDArray[np.int64]

_NUMBERS = ("row_seq", "row_scope", "row_xid", "row_oid", "last_seq", "rows")
_SCHEMA = pa.schema([*(field.with_nullable(True) for field in LOG_SCHEMA), *((name, pa.int64()) for name in _NUMBERS)])
"""A control message as in ``LOG_SCHEMA``, or the numbers of a run of rows."""

_IS_CONTROL = ~tag_table({*CHANGES, Message})


@dataclass(frozen=True)
class Scan:
    """What the driver needs of a log to plan its reading."""

    controls: pa.Table
    """The messages other than those of rows and logical messages, in order, of ``LOG_SCHEMA``."""
    runs: LoggedRows
    """The first row of each run."""
    segments: Numbers
    """Index in the log of the segment of each run."""
    last_seqs: Numbers
    """Position in the log of the last row of each run."""
    counts: Numbers
    """How many rows each run has (truncates count as one a table)."""


def scan_log(spark: SparkSession, log: ChangeLog) -> Scan:
    """Scan a log; raise ChangeLogError (inside Spark's exception) for damage, and for malformed control messages."""
    options = log.options
    found = map_segments(spark, log.segments, lambda segment: _scan(options, segment), _SCHEMA).toArrow()
    is_run = found["rows"].is_valid()
    of_rows = found.filter(is_run)
    *first, last_seqs, counts = (of_rows[name].to_numpy() for name in _NUMBERS)
    controls = found.filter(found["rows"].is_null()).select(LOG_SCHEMA.names).cast(LOG_SCHEMA).sort_by("seq")
    runs = LoggedRows(*first)
    segments = np.searchsorted([segment.first_seq for segment in log.segments], runs.seqs, "right") - 1
    return Scan(controls, runs, segments, last_seqs, counts)


def _scan(options: LogOptions, segment: Segment) -> Iterator[pa.RecordBatch]:
    for batch in segment_batches(segment):
        index = index_log(options, batch)
        for row in np.flatnonzero(~index.valid & ~IS_ROW[index.tags]).tolist():
            raise failed(batch, row, index.error(row))
        controls = batch.take(pa.array(np.flatnonzero(_IS_CONTROL[index.tags])))
        empty = [pa.nulls(controls.num_rows, pa.int64())] * len(_NUMBERS)
        yield pa.RecordBatch.from_arrays([*controls.columns, *empty], schema=_SCHEMA)
        places, rows = rows_of(batch, index)
        yield _united(np.cumsum(_IS_CONTROL[index.tags], dtype=np.int64)[places], rows)


def _united(between: Numbers, rows: LoggedRows) -> pa.RecordBatch:
    """Unite the rows that have the same table and the same xid; ``between`` numbers the control messages before."""
    keys = np.stack([between, rows.xids, rows.oids])
    order = np.lexsort(keys)  # it is stable: the rows of a run stay in their order
    first, last = bounds_of_runs(keys[:, order])
    numbers = [*(column[order[first]] for column in rows), rows.seqs[order[last]], last - first + 1]
    nothing = [pa.nulls(len(first), field.type) for field in LOG_SCHEMA]
    return pa.RecordBatch.from_arrays([*nothing, *map(pa.array, numbers)], schema=_SCHEMA)
