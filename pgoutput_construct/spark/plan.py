"""What an executor must know to find, on its own, the committed rows in any part of the log."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.changelog.options import LogOptions
from pgoutput_construct.columnar import headers
from pgoutput_construct.columnar.descriptions import OUTSIDE, UNDESCRIBED, find_descriptions
from pgoutput_construct.errors import PgoutputError, ProtocolError
from pgoutput_construct.spark.log import failed
from pgoutput_construct.stream.relations import RelationHistory
from pgoutput_construct.stream.transactions import Spans
from pgoutput_construct.wire.engine import parse
from pgoutput_construct.wire.messages import PgoutputMessage, Truncate

__all__ = ["Plan", "Visible", "parse_row"]

Numbers = NDArray[np.int64]


class Visible(NamedTuple):
    """The rows of a batch that became visible; one entry a row and table (a truncate may have several tables)."""

    rows: Numbers
    """Index in the batch."""
    spans: Numbers
    """Index in the spans."""
    versions: Numbers
    """Index in the timeline's descriptions: which table, as described for this row."""


@dataclass(frozen=True)
class Plan:
    """The transactions and relations of a log; broadcast once."""

    options: LogOptions
    """The options of the capture."""
    spans: Spans
    """The committed transactions."""
    timeline: RelationHistory
    """What describes each OID at each position."""

    def visible(self, batch: pa.RecordBatch) -> Visible:
        """Find the committed rows in a batch of ``LOG_SCHEMA``; raise ChangeLogError for a row without Relation."""
        seqs = batch.column(0).to_numpy()
        spans = np.searchsorted(self._first, seqs, "right") - 1
        found = headers.is_row(batch.column("payload")) & (spans >= 0)
        found[found] = seqs[found] <= self._last[spans[found]]
        found &= ~self._aborted(batch, spans, found)
        rows = np.flatnonzero(found)
        rows, versions = self._versions(batch, rows)
        return Visible(rows, spans[rows], versions)

    def places(self, spans: Numbers, seqs: Numbers) -> dict[str, pa.Array]:
        """Return the columns that say where rows stand: ``_commit_lsn, _seq, _commit_time, _xid``."""
        numbers = {name: np.array(getattr(self.spans, name), np.int64)[spans] for name in _PLACES}
        unix = numbers["commit_time"].astype(object) + _EPOCH
        moments = [moment if _FIRST_MOMENT <= moment <= _LAST_MOMENT else None for moment in unix]
        return {
            "_commit_lsn": pa.array(numbers["commit_lsn"]),
            "_seq": pa.array(numbers["position"] + seqs - self._first[spans]),
            "_commit_time": pa.array(moments, pa.int64()).cast(pa.timestamp("us", tz="UTC")),
            "_xid": pa.array(numbers["xid"]),
        }

    @cached_property
    def _first(self) -> Numbers:
        return np.array(self.spans.first_seq, np.int64)

    @cached_property
    def _last(self) -> Numbers:
        return np.array(self.spans.last_seq, np.int64)

    def _aborted(self, batch: pa.RecordBatch, spans: Numbers, found: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Tell which rows belong to a rolled-back subtransaction of the span they stand in."""
        gone = np.zeros(len(spans), bool)
        touched = [span for span in np.unique(spans[found]) if int(span) in self.spans.aborted]
        if touched:
            xids = headers.integers_at(batch.column("payload"), np.full(len(spans), headers.xid_offset()))
            for span in touched:
                gone |= (spans == span) & np.isin(xids, list(self.spans.aborted[int(span)]))
        return gone

    def _versions(self, batch: pa.RecordBatch, rows: Numbers) -> tuple[Numbers, Numbers]:
        """Return the rows, each as often as it has tables, and the version of each."""
        rows, oids = self._tables(batch, rows)
        scopes = batch.column("stream_xid").fill_null(OUTSIDE).to_numpy()[rows]
        seqs = batch.column("seq").to_numpy()[rows]
        versions = find_descriptions(self.timeline, oids, scopes, seqs)
        for place in np.flatnonzero(versions == UNDESCRIBED).tolist():
            row = int(rows[place])
            parse_row(self.options, batch, row)  # bytes that are no message explain it better
            scope = None if scopes[place] == OUTSIDE else int(scopes[place])
            try:
                self.timeline.index(int(oids[place]), int(seqs[place]), scope)
            except ProtocolError as error:
                raise failed(batch, row, error) from error
        return rows, versions

    def _tables(self, batch: pa.RecordBatch, rows: Numbers) -> tuple[Numbers, Numbers]:
        """Return the rows, each as often as it has tables, and the OID of each table."""
        payloads = batch.column("payload")
        inside = batch.column("in_stream").to_numpy(zero_copy_only=False)
        offsets = np.where(inside, headers.relation_offset(True), headers.relation_offset(False))
        oids, truncates = headers.integers_at(payloads, offsets), headers.tags(payloads) == headers.TRUNCATE
        pairs = [(row, oid) for row in rows[truncates[rows]].tolist() for oid in self._truncated(batch, row)]
        changes = rows[~truncates[rows]]
        more = np.array(pairs, np.int64).reshape(-1, 2)
        all_rows = np.concatenate([changes, more[:, 0]])
        order = np.argsort(all_rows, kind="stable")
        return all_rows[order], np.concatenate([oids[changes], more[:, 1]])[order]

    def _truncated(self, batch: pa.RecordBatch, row: int) -> tuple[int, ...]:
        message = parse_row(self.options, batch, row)
        assert isinstance(message, Truncate)
        return message.relation_oids


_PLACES = ("commit_lsn", "commit_time", "xid", "position")
_EPOCH = 946_684_800_000_000  # microseconds from 1970 to 2000
_FIRST_MOMENT, _LAST_MOMENT = -62_135_596_800_000_000, 253_402_300_799_999_999  # the years 1 to 9999


def parse_row(options: LogOptions, batch: pa.RecordBatch, row: int) -> PgoutputMessage:
    """Parse the payload in one row of a batch of ``LOG_SCHEMA``; raise ChangeLogError with segment, seq, field."""
    payload, in_stream = batch.column("payload")[row].as_py(), batch.column("in_stream")[row].as_py()
    try:
        return parse(payload, options.proto_version, options.streaming, in_stream)
    except PgoutputError as error:
        raise failed(batch, row, error) from error
