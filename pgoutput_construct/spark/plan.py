"""What an executor must know to find, on its own, the committed rows in any part of the log."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.changelog.planning import committed_spans, relation_history
from pgoutput_construct.changelog.reader import ChangeLog, explain
from pgoutput_construct.columnar.descriptions import find_descriptions
from pgoutput_construct.columnar.times import FIRST_TIMESTAMP, LAST_TIMESTAMP
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.spark.rows import LoggedRows
from pgoutput_construct.stream.relations import RelationHistory
from pgoutput_construct.stream.transactions import Spans
from pgoutput_construct.wire.types import UNIX_TO_POSTGRES

__all__ = ["Numbers", "Plan", "Visible", "plan_of"]

Numbers = NDArray[np.int64]


class Visible(NamedTuple):
    """The rows that became visible; one entry a row and table (a truncate may have several tables)."""

    rows: Numbers
    """Index in the rows that were given."""
    spans: Numbers
    """Index in the spans."""
    descriptions: Numbers
    """Index in the history's descriptions, UNDESCRIBED for none: which table, as described for this row."""


@dataclass(frozen=True)
class Plan:
    """The transactions and relations of a log; broadcast once."""

    spans: Spans
    """The committed transactions."""
    history: RelationHistory
    """What describes each OID at each position."""

    def visible(self, rows: LoggedRows) -> Visible:
        """Find the committed rows, and what describes them."""
        spans, found = self.spans_at(rows.seqs, rows.xids)
        chosen = np.flatnonzero(found)
        descriptions = find_descriptions(self.history, rows.oids[chosen], rows.scopes[chosen], rows.seqs[chosen])
        return Visible(chosen, spans[chosen], descriptions)

    def spans_at(self, seqs: Numbers, xids: Numbers) -> tuple[Numbers, NDArray[np.bool_]]:
        """Return the span around each position, and whether a row there of a (sub)transaction is visible."""
        spans = np.searchsorted(self.column("first_seq"), seqs, "right") - 1
        found = spans >= 0
        found[found] = seqs[found] <= self.column("last_seq")[spans[found]]
        return spans, found & ~np.isin(spans << 32 | xids, self._aborted)

    def places(self, spans: Numbers, seqs: Numbers) -> dict[str, pa.Array]:
        """Return the columns that say where rows stand: ``_commit_lsn, _seq, _commit_time, _xid``.

        ``spans`` are indexes of the rows' spans, ``seqs`` their positions in the log.
        """
        times = self.column("commit_time")[spans]
        outside = (times < FIRST_TIMESTAMP) | (times > LAST_TIMESTAMP)
        unix = np.where(outside, 0, times) + UNIX_TO_POSTGRES
        return {
            "_commit_lsn": pa.array(self.column("commit_lsn")[spans]),
            "_seq": pa.array(self.positions(spans, seqs)),
            "_commit_time": pa.array(unix, mask=outside).cast(pa.timestamp("us", tz="UTC")),
            "_xid": pa.array(self.column("xid")[spans]),
        }

    def positions(self, spans: Numbers, seqs: Numbers) -> Numbers:
        """Return the position of rows in their transactions, given the indexes of their spans and their seqs."""
        return self.column("position")[spans] + seqs - self.column("first_seq")[spans]

    def column(self, name: str) -> Numbers:
        """Return a column of the spans."""
        return np.frombuffer(getattr(self.spans, name), np.int64)

    @cached_property
    def _aborted(self) -> Numbers:
        """The rolled-back subtransactions of each span: the index of the span above the 32 bits of the xid."""
        return np.array([span << 32 | xid for span, xids in self.spans.aborted.items() for xid in xids], np.int64)


def plan_of(log: ChangeLog) -> Plan:
    """Return the plan of a log, from its index; raise ChangeLogError for what of it does not fit together."""
    for fault in log.index.entries("faults").slice(0, 1).to_pylist():
        raise explain(log.entry(fault["seq"]), PgoutputError(fault["problem"]))
    return Plan(committed_spans(log.index), relation_history(log.index))
