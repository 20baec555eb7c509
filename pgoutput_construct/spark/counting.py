"""Which changes of a table count beside its latest copy: those of transactions that the copy's snapshot did not see."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.changelog.block import Numbers
from pgoutput_construct.changelog.commit_numbers import apart
from pgoutput_construct.changelog.commits import commits_of, walked
from pgoutput_construct.changelog.copies import Snapshot, TableCopy
from pgoutput_construct.changelog.log_index import LogIndex
from pgoutput_construct.changelog.planning import LostEnd, committed, lost_ends
from pgoutput_construct.spark.survey import BEFORE_ALL
from pgoutput_construct.spark.tables import Base
from pgoutput_construct.stream.rows import OPERATIONS, SNAPSHOT
from pgoutput_construct.wire.messages import Insert

__all__ = ["counting", "near"]

_XIDS: Final = 2**32
_HALF: Final = _XIDS // 2


def counting(changes: DataFrame, base: Base | None, reach: tuple[int, int] | None) -> DataFrame:
    """Return the rows of the latest copy, as inserts before everything, and the changes that count beside them.

    Without a copy all changes count. ``reach`` is as ``near`` returns it.
    """
    op = F.col("_op")
    if base is None:
        return changes.where(op != SNAPSHOT)
    snapshot, lsn, seq = base.copy.snapshot, F.col("_commit_lsn"), F.col("_seq")
    of_copy = (op == SNAPSHOT) & (lsn == int(snapshot.lsn)) & (seq > base.after_seq) & (seq < base.copy.seq)
    counts = (op != SNAPSHOT) & _invisible(snapshot, reach)
    found = changes.where(of_copy | counts)
    return found.withColumns(
        {
            "_op": F.when(op == SNAPSHOT, OPERATIONS[Insert]).otherwise(op),
            "_commit_lsn": F.when(op == SNAPSHOT, F.lit(BEFORE_ALL).cast("bigint")).otherwise(lsn),
        }
    )


def near(index: LogIndex, copy: TableCopy) -> tuple[int, int] | None:
    """Return the first and last position of the commits that are fewer than 2**31 transactions away from a copy.

    None: all are, which is as far as 32 bits of an xid tell before from after. In a longer log the order of its
    transactions tells: two that follow each other in it are never that far apart.
    """
    lost = lost_ends(index)
    numbers = commits_of(index, lost)
    places = np.flatnonzero(numbers["commits"])
    if not len(places):
        return None
    commits = {name: column[places] for name, column in numbers.items()}
    begins = walked(commits)
    at = min(int(np.searchsorted(commits["last_commit"], copy.seq)), len(places) - 1)
    seqs, xids, _, walk = _walk(index, int(places[at]), lost)
    here = min(int(np.searchsorted(seqs, copy.seq)), len(xids) - 1)
    begins += int(apart(xids[here] - copy.snapshot.xmax)) - begins[at] - walk[here]
    least, most = begins + commits["least_walk"], begins + commits["most_walk"]
    all_near, all_far = (least > -_HALF) & (most < _HALF), (least >= _HALF) | (most <= -_HALF)
    if all_near.all():
        return None
    found = [commits[name][all_near] for name in ("least_lsn", "most_lsn")]
    for place in np.flatnonzero(~all_near & ~all_far).tolist():
        _, _, lsns, walk = _walk(index, int(places[place]), lost)
        found.append(lsns[np.abs(begins[place] + walk) < _HALF])
    lsns = np.concatenate(found)
    return (int(lsns.min()), int(lsns.max())) if len(lsns) else None


def _walk(index: LogIndex, place: int, lost: Sequence[LostEnd]) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Return seqs, xids, and positions of what committed in a segment, and how far each is from the first of them."""
    transactions = committed(index.one(place).transactions, lost)
    seqs, xids, lsns = (transactions[name].to_numpy() for name in ("seq", "xid", "commit_lsn"))
    return seqs, xids, lsns, np.cumsum(apart(np.diff(xids, prepend=xids[0])))


def _invisible(snapshot: Snapshot, reach: tuple[int, int] | None) -> Column:
    """Tell whether the snapshot has nothing of the transaction of a change: ``Snapshot.invisible`` in Spark."""
    xid, lsn = F.col("_xid"), F.col("_commit_lsn")
    found = F.pmod(xid - snapshot.xmax % _XIDS, F.lit(_XIDS)) < _XIDS // 2
    if snapshot.xip:
        found |= xid.isin([number % _XIDS for number in snapshot.xip])
    return found if reach is None else (lsn > reach[1]) | ((lsn >= reach[0]) & found)
