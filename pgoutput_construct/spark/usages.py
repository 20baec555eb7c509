"""How each Relation is used in each segment, and by which visible rows: out of the index of a log alone."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.changelog.index import SegmentIndex
from pgoutput_construct.changelog.usage import COPIED
from pgoutput_construct.spark.plan import Numbers, Plan
from pgoutput_construct.spark.replicated_tables import Usage
from pgoutput_construct.spark.rows import bounds_of_runs

__all__ = ["Runs", "find_usages", "visible_runs"]


@dataclass(frozen=True)
class Runs:
    """Rows that are visible, together as far as they share segment, table, Relation and fate."""

    table: pa.Table
    """Entries of the index's ``rows``."""
    segments: Numbers
    """Index in the log of the segment of each run."""
    first_origins: Numbers
    """Where the first row of each comes from, see ``Plan.origins_at``."""
    last_origins: Numbers
    """The same of its last row."""

    def column(self, name: str) -> Numbers:
        """Return one of the numbers of each run."""
        numbers: Numbers = self.table[name].to_numpy()
        return numbers

    def take(self, wanted: NDArray[np.bool_]) -> "Runs":
        """Return some of the runs."""
        columns = self.segments, self.first_origins, self.last_origins
        return Runs(self.table.filter(pa.array(wanted)), *(column[wanted] for column in columns))


def visible_runs(index: SegmentIndex, plan: Plan) -> Runs:
    """Return the runs of rows of committed transactions, and of complete copies."""
    table, segments = index.located("rows")
    first_seq, last_seq, xids = (table[name].to_numpy() for name in ("first_seq", "last_seq", "xid"))
    chunks = np.where(table["span"].to_numpy() == COPIED, xids, -1)
    origins, found = plan.origins_at(first_seq, xids, chunks)
    last_origins, _ = plan.origins_at(last_seq, xids, chunks)
    return Runs(table.filter(pa.array(found)), segments[found], origins[found], last_origins[found])


def find_usages(runs: Runs, plan: Plan) -> Iterator[Usage]:
    """Yield how each description is used in each segment; all rows must be described."""
    if not len(runs.segments):
        return
    known = np.array([description.seq for description in plan.history.descriptions], np.int64)
    keys = np.stack([runs.segments, np.searchsorted(known, runs.column("description"))])
    first_lsns, last_lsns = (plan.column("commit_lsn")[each] for each in (runs.first_origins, runs.last_origins))
    first = plan.positions(runs.first_origins, runs.column("first_seq"))
    last = plan.positions(runs.last_origins, runs.column("last_seq"))
    by_first, by_last = np.lexsort((first, first_lsns, *keys)), np.lexsort((last, last_lsns, *keys))
    starts, ends = bounds_of_runs(keys[:, by_first])
    counts = np.add.reduceat(runs.column("count")[by_first], starts)
    head, tail = by_first[starts], by_last[ends]
    numbers = [column.tolist() for column in (*keys[:, head], counts)]
    firsts = zip(first_lsns[head].tolist(), first[head].tolist(), strict=True)
    lasts = zip(last_lsns[tail].tolist(), last[tail].tolist(), strict=True)
    copied = runs.first_origins[head] >= len(plan.spans.xid)
    yield from map(Usage, *numbers, firsts, lasts, copied.tolist())
