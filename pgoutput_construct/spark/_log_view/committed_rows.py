"""The committed and the copied rows in any part of a log: what an executor needs to find them by itself."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from pgoutput_construct.changelog._facts.completeness import present_copies
from pgoutput_construct.changelog._facts.copies import TableCopy
from pgoutput_construct.changelog._facts.void_rows import VoidRows
from pgoutput_construct.changelog._index.log_index import LogIndex
from pgoutput_construct.changelog._index.planning import relation_history, run_spans
from pgoutput_construct.changelog._segment.block import NO_XID, Flags, Numbers
from pgoutput_construct.changelog._segment.segment_schema import scopes_of
from pgoutput_construct.changelog.log_options import LogOptions
from pgoutput_construct.changelog.reader import ChangeLog, refuse_faults
from pgoutput_construct.columnar.descriptions import copy_scope, find_descriptions
from pgoutput_construct.columnar.index import IS_ROW, LISTS_TABLES, BatchIndex, index_batch
from pgoutput_construct.pgtypes.dates import FIRST_TIMESTAMP, LAST_TIMESTAMP
from pgoutput_construct.stream.relations import RelationHistory
from pgoutput_construct.stream.transaction_reader import Spans
from pgoutput_construct.wire.options import STATE_PARAMETERS
from pgoutput_construct.wire.types import UNIX_TO_POSTGRES

_COPY_VALUES: Final = {"first_seq": 0, "position": 0, "xid": NO_XID, "commit_time": FIRST_TIMESTAMP - 1}
"""What copied rows have instead of the columns of spans: their position is their seq, and they have no time."""


class LoggedRows(NamedTuple):
    """Rows of the log as columns; a truncate occurs once for each of its tables."""

    seqs: Numbers
    """The seq of each row."""
    scopes: Numbers
    """The scope that describes it: the top-level xid of the stream around it, OUTSIDE, or ``copy_scope``."""
    xids: Numbers
    """The xid in its message, 0 outside a stream."""
    oids: Numbers
    """The relation OID of its table, 0 where the payload is malformed before it."""

    @property
    def chunks(self) -> Numbers:
        """The number of the chunk of each copied row, a negative number for rows of the stream."""
        return copy_scope(0) - self.scopes


class CommittedRows(NamedTuple):
    """The rows that were committed or copied, one entry for each row and table (a truncate may have several tables)."""

    rows: Numbers
    """Index in the given rows."""
    origins: Numbers
    """The transaction or copy of each, see ``LogPlan.origins_at``."""
    descriptions: Numbers
    """Index in the history's descriptions, UNDESCRIBED for none: which table, as described for this row."""


@dataclass(frozen=True)
class LogPlan:
    """The transactions, copies and relations of a log; sent to executors once."""

    spans: Spans
    """The committed transactions."""
    history: RelationHistory
    """What describes each OID at each position."""
    copies: tuple[TableCopy, ...] = ()
    """The complete copies of tables that have rows, in the order of their chunks."""

    def committed(self, rows: LoggedRows) -> CommittedRows:
        """Find the committed and the copied rows, and what describes them."""
        origins, found = self.origins_at(rows.seqs, rows.xids, rows.chunks)
        for number, void in self._void_rows.items():
            some = found & (origins == number)
            found[some] = ~void.has(rows.seqs[some])
        chosen = np.flatnonzero(found)
        descriptions = find_descriptions(self.history, rows.oids[chosen], rows.scopes[chosen], rows.seqs[chosen])
        return CommittedRows(chosen, origins[chosen], descriptions)

    def origins_at(self, seqs: Numbers, xids: Numbers, chunks: Numbers) -> tuple[Numbers, Flags]:
        """Return the transaction or copy of each row, and whether that was committed, or is complete.

        Origins are indexes: of spans first, of copies after these. Of a copy rows may not count, nevertheless.

        Args:
            seqs: The seq of each row.
            xids: Its (sub)transaction.
            chunks: The number of its chunk, negative for rows of the stream.
        """
        spans, committed = self._spans_at(seqs, xids)
        copies, complete = self._copies_at(chunks)
        is_copied = chunks >= 0
        return np.where(is_copied, copies + len(self.spans.xid), spans), np.where(is_copied, complete, committed)

    def position_columns(self, origins: Numbers, seqs: Numbers) -> dict[str, pa.Array]:
        """Return the columns of positions: ``_commit_lsn, _seq, _commit_time, _xid``.

        Args:
            origins: The transaction or copy of each row.
            seqs: Its seq in the log.
        """
        xids = self.column("xid")[origins]
        return {
            "_commit_lsn": pa.array(self.column("commit_lsn")[origins]),
            "_seq": pa.array(self.positions(origins, seqs)),
            "_commit_time": timestamps(self.column("commit_time")[origins]),
            "_xid": pa.array(xids, mask=xids == NO_XID),
        }

    def positions(self, origins: Numbers, seqs: Numbers) -> Numbers:
        """Return the position of rows in their transactions, of copied rows in the log."""
        return self.column("position")[origins] + seqs - self.column("first_seq")[origins]

    def column(self, name: str) -> Numbers:
        """Return a column of the spans, followed by what copies have instead."""
        return self._columns[name]

    @cached_property
    def _columns(self) -> dict[str, Numbers]:
        lsns = [int(copy.snapshot.lsn) for copy in self.copies]
        of_copies = {"commit_lsn": lsns, **{name: [value] * len(lsns) for name, value in _COPY_VALUES.items()}}
        return {name: np.append(self._of_spans(name), np.array(each, np.int64)) for name, each in of_copies.items()}

    def _of_spans(self, name: str) -> Numbers:
        return np.frombuffer(getattr(self.spans, name), np.int64)

    def _spans_at(self, seqs: Numbers, xids: Numbers) -> tuple[Numbers, Flags]:
        """Return the span around each seq, and whether a row there of a (sub)transaction was committed."""
        spans = np.searchsorted(self._of_spans("first_seq"), seqs, "right") - 1
        found = spans >= 0
        found[found] = seqs[found] <= self._of_spans("last_seq")[spans[found]]
        return spans, found & ~np.isin(spans << 32 | xids, self._aborted)

    def _copies_at(self, chunks: Numbers) -> tuple[Numbers, Flags]:
        """Return the copy of each chunk, and whether there is one."""
        first, last = self._chunks
        copies = np.searchsorted(first, chunks, "right") - 1
        found = copies >= 0
        found[found] = chunks[found] <= last[copies[found]]
        return copies, found

    @cached_property
    def _void_rows(self) -> dict[int, VoidRows]:
        """The rows of copies that do not count, by their origins."""
        numbered = enumerate(self.copies, len(self.spans.xid))
        return {number: copy.void for number, copy in numbered if copy.void.rows}

    @cached_property
    def _chunks(self) -> tuple[Numbers, Numbers]:
        numbers = np.array([(copy.first_chunk, copy.last_chunk) for copy in self.copies], np.int64).reshape(-1, 2)
        return numbers[:, 0], numbers[:, 1]

    @cached_property
    def _aborted(self) -> Numbers:
        """The rolled-back subtransactions of each span: the index of the span above the 32 bits of the xid."""
        return np.array([span << 32 | xid for span, xids in self.spans.aborted.items() for xid in xids], np.int64)


def log_plan(log: ChangeLog, index: LogIndex | None = None) -> LogPlan:
    """Return the plan of a log, from its index; raise ChangeLogError for messages that do not fit together.

    It has only the transactions in which runs of rows begin or end: a few per segment, however many there are.
    ``index`` is that of the log as of an earlier seq (``index_as_of``), None for all of it.
    """
    index = log.index if index is None else index
    refuse_faults(log, index)
    copies = sorted((copy for copy in present_copies(index) if copy.rows), key=lambda copy: copy.first_chunk)
    return LogPlan(run_spans(index), relation_history(index), tuple(copies))


def index_payloads(options: LogOptions, batch: pa.RecordBatch) -> BatchIndex:
    """Index the payloads of a batch of the log's SCHEMA."""
    states = {name: batch.column(name) for name in STATE_PARAMETERS}
    return index_batch(batch.column("payload"), **states, **options.layout())


def logged_rows(batch: pa.RecordBatch, index: BatchIndex) -> tuple[Numbers, LoggedRows]:
    """Return the rows of a batch of the log's SCHEMA, malformed ones too: their indexes in the batch, and the rows."""
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


def run_bounds(keys: Numbers) -> tuple[Numbers, Numbers]:
    """Return the first and the last index of runs of equal columns in a two-dimensional array."""
    first = np.flatnonzero(np.append(True, (np.diff(keys) != 0).any(axis=0))[: keys.shape[1]])
    return first, np.append(first[1:], keys.shape[1])[: len(first)] - 1
