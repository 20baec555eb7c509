"""The rows that a batch writes: of a table as a whole, or made of those before and the changes since."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.spark.change_frames import column, survey
from pgoutput_construct.spark.counting import counting
from pgoutput_construct.spark.log_view import OpenLog
from pgoutput_construct.spark.metadata import escaped
from pgoutput_construct.spark.replicated_tables import Table
from pgoutput_construct.spark.table_state import OnMissing, advance, demand_of, net_changes
from pgoutput_construct.spark.warehouse.naming import Naming
from pgoutput_construct.spark.warehouse.sink import Net
from pgoutput_construct.spark.warehouse.staging import Changes
from pgoutput_construct.spark.warehouse.version import Version
from pgoutput_construct.wire.protocol import RelationReplicaIdentity

__all__ = ["advanced", "has_key", "net"]


def advanced(
    log: OpenLog,
    name: str,
    before: DataFrame | None,
    changes: Changes,
    on_missing: OnMissing,
    is_small: bool = False,
) -> DataFrame:
    """Return the rows of a table after changes: its columns, ``_untyped``, ``_commit_lsn`` and ``_seq``.

    ``before`` are those before, and whether they are few; None for all that the log has: it raises ChangeLogError where
    the log no longer does.
    """
    table = log.table(name)
    if before is None:
        log.check_kept(table)
    return advance(
        before,
        changes.rows,
        table,
        on_missing,
        seen=changes.seen,
        is_small=is_small,
        is_whole=log.is_whole(table),
    )


def has_key(table: Table, version: Version) -> bool:
    """Return whether the rows of a table, all described as one key, can be found by it since a version."""
    keys = {tuple(each.key_columns) for each in table.identities if each.last > version.last}
    return (
        table.replica_identity != RelationReplicaIdentity.FULL
        and bool(table.key_columns)
        and set(table.key_columns) <= set(table.current)  # DROP COLUMN takes the key along, which no message says
        and keys <= {table.key_columns}
        and tuple(map(escaped, version.shape.key_columns)) == table.key_columns
    )


def net(log: OpenLog, name: str, changes: Changes, on_missing: OnMissing, naming: Naming) -> Net | None:
    """Return what changes come to, one row a key; None where a truncate is among them."""
    table = log.table(name)
    counted = counting(changes.rows, table)
    if survey(counted, seen=changes.seen).truncated is not None:
        return None
    demand = demand_of(table, on_missing, log.is_whole(table))
    rows = net_changes(counted, table.key_columns, table.current, changes.seen)
    if demand.rows:
        key = F.to_json(F.struct(*map(column, table.key_columns)))
        refused = demand.refuse_row(F.struct("_commit_lsn", "_seq"), key).cast("bigint")
        rows = rows.withColumn("_missing", F.when(F.col("_missing") > 1, refused).otherwise(F.col("_missing")))
    return Net(rows, changes.seen.moved and bool(changes.seen.unsent), naming, demand)
