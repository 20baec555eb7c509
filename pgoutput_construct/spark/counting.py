"""Which changes of a table count after its latest copy: those of transactions that its snapshot did not see."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.changelog.block import Flags, Numbers
from pgoutput_construct.changelog.commit_numbers import apart
from pgoutput_construct.changelog.commits import commits_of, walked
from pgoutput_construct.changelog.copies import Snapshot, TableCopy
from pgoutput_construct.changelog.log_index import LogIndex
from pgoutput_construct.changelog.planning import LostEnd, committed, lost_ends
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark.change_frames import BEFORE_ALL
from pgoutput_construct.spark.replicated_tables import Base, Table
from pgoutput_construct.stream.rows import OPERATIONS, SNAPSHOT
from pgoutput_construct.wire.messages import Insert

__all__ = ["Commits", "counted_rows", "counting", "near", "placed_rows", "unplaced_rows"]

_XIDS: Final = 2**32
_HALF: Final = _XIDS // 2


def counting(changes: DataFrame, table: Table, reach: tuple[int, int] | None) -> DataFrame:
    """Return the rows of the latest copy, as inserts before everything, and the changes that count in addition to them.

    They are of the table itself, not of others that had its name before. Without a copy all its changes count.
    ``reach`` is as ``near`` returns it. Raises ChangeLogError where there are several tables and the changes do not say
    which they are of.
    """
    op, base, changes = F.col("_op"), table.base, _own(changes, table)
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


def _own(changes: DataFrame, table: Table) -> DataFrame:
    if "_relation_oid" in changes.columns:
        return changes.where(F.col("_relation_oid") == table.relation_oid).drop("_relation_oid")
    if len(table.relation_oids) > 1:
        raise ChangeLogError(
            f"{table.qualified}: {len(table.relation_oids)} tables had this name, and the changes lack the column "
            "_relation_oid, which says whose they are: give them with it, as OpenLog.changes returns them"
        )
    return changes


def near(index: LogIndex, copy: TableCopy) -> tuple[int, int] | None:
    """Return the first and last position of the commits that are fewer than 2**31 transactions away from a copy.

    None: all are, which is as far as 32 bits of an xid tell before from after. In a longer log the order of its
    transactions tells: two that follow each other in it are never that far apart.
    """
    return Commits(index).near(copy)


class Commits:
    """The transactions that were committed in a log, for the copies of many tables."""

    def __init__(self, index: LogIndex) -> None:
        self._index = index
        self._lost = lost_ends(index)
        numbers = commits_of(index, self._lost)
        self._places = np.flatnonzero(numbers["commits"])
        self._commits = {name: column[self._places] for name, column in numbers.items()}
        self._begins = walked(self._commits) if len(self._places) else self._places
        """How far the first one of each segment is from that of the first segment."""

    def near(self, copy: TableCopy) -> tuple[int, int] | None:
        """Return what the function of this name does."""
        commits = self._commits
        if not len(self._places):
            return None
        begins = self._begins + self._away(copy)
        least, most = begins + commits["least_walk"], begins + commits["most_walk"]
        all_near, all_far = (least > -_HALF) & (most < _HALF), (least >= _HALF) | (most <= -_HALF)
        if all_near.all():
            return None
        found = [commits[name][all_near] for name in ("least_lsn", "most_lsn")]
        for place in np.flatnonzero(~all_near & ~all_far).tolist():
            _, _, lsns, walk = _walk(self._index, int(self._places[place]), self._lost)
            found.append(lsns[np.abs(begins[place] + walk) < _HALF])
        lsns = np.concatenate(found)
        return (int(lsns.min()), int(lsns.max())) if len(lsns) else None

    def _away(self, copy: TableCopy) -> int:
        """Return how far the first transaction is from what the snapshot of a copy sees last."""
        at = min(int(np.searchsorted(self._commits["last_commit"], copy.seq)), len(self._places) - 1)
        seqs, xids, _, walk = _walk(self._index, int(self._places[at]), self._lost)
        here = min(int(np.searchsorted(seqs, copy.seq)), len(xids) - 1)
        return int(apart(xids[here] - copy.snapshot.xmax)) - int(self._begins[at]) - int(walk[here])


def _walk(index: LogIndex, place: int, lost: Sequence[LostEnd]) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Return seqs, xids, and positions of what committed in a segment, and how far each is from the first of them."""
    transactions = committed(index.one(place).transactions, lost)
    seqs, xids, lsns = (transactions[name].to_numpy() for name in ("seq", "xid", "commit_lsn"))
    return seqs, xids, lsns, np.cumsum(apart(np.diff(xids, prepend=xids[0])))


def _invisible(snapshot: Snapshot, reach: tuple[int, int] | None) -> Column:
    """Return whether the snapshot has nothing of the transaction of a change: ``Snapshot.invisible`` in Spark."""
    xid, lsn = F.col("_xid"), F.col("_commit_lsn")
    found = F.pmod(xid - snapshot.xmax % _XIDS, F.lit(_XIDS)) < _XIDS // 2
    if snapshot.xip:
        found |= xid.isin([number % _XIDS for number in snapshot.xip])
    return found if reach is None else (lsn > reach[1]) | ((lsn >= reach[0]) & found)


def counted_rows(changes: pa.Table, base: Base | None, reach: tuple[int, int] | None, with_copy: bool) -> pa.Table:
    """Return what ``counting`` does, of changes in Arrow; the rows of the copy only where they are wanted."""
    is_copied = _flags(changes["_op"], SNAPSHOT)
    if base is None:
        return changes.filter(pa.array(~is_copied))
    lsn, xid = (changes[name].fill_null(0).to_numpy() for name in ("_commit_lsn", "_xid"))
    counts = base.copy.snapshot.invisible(xid)
    if reach is not None:
        counts = (lsn > reach[1]) | ((lsn >= reach[0]) & counts)
    of_copy = _is_of_copy(changes, base) if with_copy else np.zeros(len(changes), np.bool_)
    op = pc.if_else(pa.array(is_copied), OPERATIONS[Insert], changes["_op"])
    found = changes.set_column(changes.schema.get_field_index("_op"), "_op", op)
    return _with_lsn(found, np.where(is_copied, BEFORE_ALL, lsn)).filter(pa.array(of_copy | (~is_copied & counts)))


def unplaced_rows(rows: pa.Table, base: Base | None) -> pa.Table:
    """Put rows that are still as they were copied before all changes: ``_commit_lsn`` is BEFORE_ALL."""
    if base is None:
        return rows
    return _with_lsn(rows, np.where(_is_of_copy(rows, base), BEFORE_ALL, rows["_commit_lsn"].to_numpy()))


def placed_rows(rows: pa.Table, base: Base | None) -> pa.Table:
    """Say of copied rows where they are from: ``_commit_lsn`` is that of the snapshot."""
    if base is None:
        return rows
    lsn = rows["_commit_lsn"].to_numpy()
    return _with_lsn(rows, np.where(lsn == BEFORE_ALL, int(base.copy.snapshot.lsn), lsn))


def _is_of_copy(rows: pa.Table, base: Base) -> Flags:
    lsn, seq = (rows[name].to_numpy() for name in ("_commit_lsn", "_seq"))
    found: Flags = (lsn == int(base.copy.snapshot.lsn)) & (seq > base.after_seq) & (seq < base.copy.seq)
    return found & _flags(rows["_op"], SNAPSHOT) if "_op" in rows.column_names else found


def _with_lsn(rows: pa.Table, lsn: Numbers) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index("_commit_lsn"), "_commit_lsn", pa.array(lsn, pa.int64()))


def _flags(values: pa.ChunkedArray, wanted: str) -> Flags:
    return np.asarray(pc.equal(values, wanted).to_numpy(), np.bool_)
