"""Which changes of a table count beside its latest copy: those of transactions that the copy's snapshot did not see."""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.changelog.copies import Snapshot, TableCopy
from pgoutput_construct.changelog.index import SegmentIndex
from pgoutput_construct.changelog.planning import committed, lost_ends
from pgoutput_construct.spark.survey import BEFORE_ALL
from pgoutput_construct.spark.tables import Base
from pgoutput_construct.stream.rows import OPERATIONS, SNAPSHOT
from pgoutput_construct.wire.messages import Insert

__all__ = ["counted_rows", "counting", "near", "placed_rows", "unplaced_rows"]

_XIDS: Final = 2**32


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


def near(index: SegmentIndex, copy: TableCopy) -> tuple[int, int] | None:
    """Return the first and last position of the commits that are fewer than 2**31 transactions away from a copy.

    None: all are, which is as far as 32 bits of an xid tell before from after. In a longer log the order of its
    transactions tells: two that follow each other in it are never that far apart.
    """
    transactions = committed(index.transactions, lost_ends(index))
    if not len(transactions):
        return None
    seqs, xids, lsns = (transactions[name].to_numpy() for name in ("seq", "xid", "commit_lsn"))
    walk = np.append(0, np.cumsum(_apart(np.diff(xids))))
    here = min(int(np.searchsorted(seqs, copy.seq)), len(xids) - 1)
    away = walk - walk[here] + _apart(xids[here] - copy.snapshot.xmax)
    is_near = np.abs(away) < _XIDS // 2
    return None if is_near.all() or not is_near.any() else (int(lsns[is_near].min()), int(lsns[is_near].max()))


def _apart(distance: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Return distances of xids that are 32 bits wide: the shorter way around."""
    return (distance + _XIDS // 2) % _XIDS - _XIDS // 2


def _invisible(snapshot: Snapshot, reach: tuple[int, int] | None) -> Column:
    """Tell whether the snapshot has nothing of the transaction of a change: ``Snapshot.invisible`` in Spark."""
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
    of_copy = is_copied & _is_of_copy(changes, base) if with_copy else np.zeros(len(changes), np.bool_)
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


def _is_of_copy(rows: pa.Table, base: Base) -> NDArray[np.bool_]:
    lsn, seq = (rows[name].to_numpy() for name in ("_commit_lsn", "_seq"))
    found: NDArray[np.bool_] = (lsn == int(base.copy.snapshot.lsn)) & (seq > base.after_seq) & (seq < base.copy.seq)
    return found


def _with_lsn(rows: pa.Table, lsn: NDArray[np.int64]) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index("_commit_lsn"), "_commit_lsn", pa.array(lsn, pa.int64()))


def _flags(values: pa.ChunkedArray, wanted: str) -> NDArray[np.bool_]:
    return np.asarray(pc.equal(values, wanted).to_numpy(), np.bool_)
