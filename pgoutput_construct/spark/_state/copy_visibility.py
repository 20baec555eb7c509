"""Which changes count in addition to a table copy, in Spark and in Arrow; and how rows of a copy are ordered.

A copied row has the LSN of its snapshot as ``_commit_lsn``, which says nothing of its order among changes: what decides
whether a change counts is visibility (the theory is in ``changelog/_facts/visibility.py``). While changes are replayed,
copied rows come before all of them (``BEFORE_ALL``); afterwards they have their LSN again.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.changelog._segment.block import Flags, Numbers
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark._log_view.change_columns import BEFORE_ALL
from pgoutput_construct.spark._log_view.replicated_tables import BaseCopy, Table
from pgoutput_construct.stream.rows import OPERATIONS, SNAPSHOT
from pgoutput_construct.wire.messages import Insert


def counted_changes(changes: DataFrame, table: Table) -> DataFrame:
    """Return the rows of the latest table copy, as inserts before all changes, and the changes that count.

    These are of the table itself, not of others that had its name before. Without a copy all of its changes count.
    Raises ChangeLogError where several tables had the name and the changes lack ``_relation_oid``.
    """
    op, base, changes = F.col("_op"), table.base, _own_changes(changes, table)
    if base is None:
        return changes.where(op != SNAPSHOT)
    lsn = F.col("_commit_lsn")
    of_copy = (op == SNAPSHOT) & base.has(lsn, F.col("_seq"))
    counts = (op != SNAPSHOT) & base.copy.visibility.adds(lsn, F.col("_xid"), Column.isin)
    found = changes.where(of_copy | counts)
    return found.withColumns(
        {
            "_op": F.when(op == SNAPSHOT, OPERATIONS[Insert]).otherwise(op),
            "_commit_lsn": F.when(op == SNAPSHOT, F.lit(BEFORE_ALL).cast("bigint")).otherwise(lsn),
        }
    )


def _own_changes(changes: DataFrame, table: Table) -> DataFrame:
    if "_relation_oid" in changes.columns:
        return changes.where(F.col("_relation_oid") == table.relation_oid).drop("_relation_oid")
    if len(table.relation_oids) > 1:
        raise ChangeLogError(
            f"{table.qualified}: {len(table.relation_oids)} tables had this name, and the changes lack the column "
            "_relation_oid, which says whose they are: give them with it, as OpenLog.changes returns them"
        )
    return changes


def counted_changes_arrow(changes: pa.Table, base: BaseCopy | None, with_copy: bool) -> pa.Table:
    """Return what ``counted_changes`` does, for changes in Arrow.

    Args:
        changes: The changes of the table itself.
        base: The copy that it begins with, None for none.
        with_copy: Whether rows of the copy are included.
    """
    is_copied = _flags(changes["_op"], SNAPSHOT)
    if base is None:
        return _kept(changes, ~is_copied)
    lsn, xid = (changes[name].fill_null(0).to_numpy() for name in ("_commit_lsn", "_xid"))
    counts = base.copy.visibility.adds(lsn, xid)
    of_copy = _is_of_copy(changes, base) if with_copy else np.zeros(len(changes), np.bool_)
    op = pc.if_else(pa.array(is_copied), OPERATIONS[Insert], changes["_op"])
    found = changes.set_column(changes.schema.get_field_index("_op"), "_op", op)
    return _kept(_with_lsn(found, np.where(is_copied, BEFORE_ALL, lsn)), of_copy | (~is_copied & counts))


def move_copy_first_arrow(rows: pa.Table, base: BaseCopy | None) -> pa.Table:
    """Give stored rows that are still as they were copied the ``_commit_lsn`` BEFORE_ALL."""
    if base is None:
        return rows
    return _with_lsn(rows, np.where(_is_of_copy(rows, base), BEFORE_ALL, rows["_commit_lsn"].to_numpy()))


def restore_copy_lsn_arrow(rows: pa.Table, base: BaseCopy | None) -> pa.Table:
    """Give copied rows the LSN of their snapshot as ``_commit_lsn``."""
    if base is None:
        return rows
    lsn = rows["_commit_lsn"].to_numpy()
    return _with_lsn(rows, np.where(lsn == BEFORE_ALL, int(base.copy.snapshot.lsn), lsn))


def _is_of_copy(rows: pa.Table, base: BaseCopy) -> Flags:
    lsn, seq = (rows[name].to_numpy() for name in ("_commit_lsn", "_seq"))
    found = base.has(lsn, seq)
    return found & _flags(rows["_op"], SNAPSHOT) if "_op" in rows.column_names else found


def _kept(rows: pa.Table, flags: Flags) -> pa.Table:
    """Return the rows that have a flag; a filter would copy them where all have."""
    return rows if flags.all() else rows.filter(pa.array(flags))


def _with_lsn(rows: pa.Table, lsn: Numbers) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index("_commit_lsn"), "_commit_lsn", pa.array(lsn, pa.int64()))


def _flags(values: pa.ChunkedArray, value: str) -> Flags:
    return np.asarray(pc.equal(values, value).to_numpy(), np.bool_)


def move_copy_first(rows: DataFrame, table: Table) -> DataFrame:
    """Give stored rows that are still as they were copied the ``_commit_lsn`` BEFORE_ALL."""
    if table.base is None:
        return rows
    lsn = F.col("_commit_lsn")
    copied = table.base.has(lsn, F.col("_seq"))
    if "_op" in rows.columns:
        copied &= F.col("_op") == SNAPSHOT
    return rows.withColumn("_commit_lsn", F.when(copied, F.lit(BEFORE_ALL).cast("bigint")).otherwise(lsn))


def restore_copy_lsn(rows: DataFrame, table: Table) -> DataFrame:
    """Give copied rows the LSN of their snapshot as ``_commit_lsn``."""
    if table.base is None:
        return rows
    lsn, snapshot = F.col("_commit_lsn"), F.lit(int(table.base.copy.snapshot.lsn)).cast("bigint")
    return rows.withColumn("_commit_lsn", F.when(lsn == BEFORE_ALL, snapshot).otherwise(lsn))
