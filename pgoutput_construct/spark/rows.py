"""The rows of a part of the log, out of the part's index: where each stands, and which table it changes."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.changelog.columns import scopes_of
from pgoutput_construct.changelog.options import LogOptions
from pgoutput_construct.columnar.descriptions import copy_scope
from pgoutput_construct.columnar.index import IS_ROW, LISTS_TABLES, BatchIndex, index_batch
from pgoutput_construct.pgtypes.dates import FIRST_TIMESTAMP, LAST_TIMESTAMP
from pgoutput_construct.wire.options import STATE_PARAMETERS
from pgoutput_construct.wire.types import UNIX_TO_POSTGRES

__all__ = ["LoggedRows", "bounds_of_runs", "index_log", "rows_of", "timestamps"]

Numbers = NDArray[np.int64]


class LoggedRows(NamedTuple):
    """Rows of the log as columns; a truncate is there once for each of its tables."""

    seqs: Numbers
    """Position of each row in the log."""
    scopes: Numbers
    """In whose scope it is described: the top-level xid of the stream around it, OUTSIDE, or ``copy_scope``."""
    xids: Numbers
    """The xid in its message, 0 outside a stream."""
    oids: Numbers
    """The relation OID of its table, 0 where the payload is malformed before it."""

    @property
    def chunks(self) -> Numbers:
        """The number of the chunk that each copied row is of, a negative number for what the stream sent."""
        return copy_scope(0) - self.scopes


def index_log(options: LogOptions, batch: pa.RecordBatch) -> BatchIndex:
    """Walk the payloads of a batch of the log's SCHEMA once."""
    states = {name: batch.column(name) for name in STATE_PARAMETERS}
    return index_batch(batch.column("payload"), **states, **options.layout())


def rows_of(batch: pa.RecordBatch, index: BatchIndex) -> tuple[Numbers, LoggedRows]:
    """Return the rows of a batch of the log's SCHEMA, malformed ones too: indexes in the batch, and what they are."""
    rows, oids = index.tables()
    malformed = np.flatnonzero(IS_ROW[index.tags] & ~index.valid)
    rows, oids = np.append(rows, malformed), np.append(oids, index.rows["relation_oid"][malformed].astype(np.int64))
    order = np.argsort(rows, kind="stable")
    rows = rows[order]
    scopes, seqs = scopes_of(batch), batch.column("seq").to_numpy()
    return rows, LoggedRows(seqs[rows], scopes[rows], _xids(index)[rows], oids[order])


def _xids(index: BatchIndex) -> Numbers:
    xids = index.rows["xid"].astype(np.int64)
    for row in np.flatnonzero(index.valid & LISTS_TABLES[index.tags]).tolist():
        xids[row] = getattr(index.message(row), "xid", None) or 0
    return xids


def timestamps(times: Numbers) -> pa.Array:
    """Return microseconds since 2000-01-01 UTC as timestamps, null outside the years 1 to 9999."""
    outside = (times < FIRST_TIMESTAMP) | (times > LAST_TIMESTAMP)
    unix = np.where(outside, 0, times) + UNIX_TO_POSTGRES
    return pa.array(unix, mask=outside).cast(pa.timestamp("us", tz="UTC"))


def bounds_of_runs(keys: Numbers) -> tuple[Numbers, Numbers]:
    """Return where runs of equal columns begin and end (the last column of each), in a two-dimensional array."""
    first = np.flatnonzero(np.append(True, (np.diff(keys) != 0).any(axis=0))[: keys.shape[1]])
    return first, np.append(first[1:], keys.shape[1])[: len(first)] - 1
