"""The rows that a batch writes: of a table as a whole, or made of those before and the changes since."""

from copy import copy

from pyspark.sql import DataFrame, SparkSession

from pgoutput_construct.spark.counting import counting
from pgoutput_construct.spark.job import OpenLog
from pgoutput_construct.spark.state import advance, net_changes
from pgoutput_construct.spark.survey import survey
from pgoutput_construct.spark.tables import Table
from pgoutput_construct.spark.warehouse.direct import changes_of
from pgoutput_construct.spark.warehouse.version import Version
from pgoutput_construct.wire.protocol import RelationReplicaIdentity

__all__ = ["advanced", "has_key", "in_session", "net", "whole"]


def in_session(log: OpenLog, spark: SparkSession) -> OpenLog:
    """Return an open log whose DataFrames belong to another session."""
    found = copy(log)
    found.spark = spark
    return found


def whole(log: OpenLog, name: str) -> DataFrame:
    """Return all rows of a table as the log has it: its columns, ``_untyped``, ``_commit_lsn`` and ``_seq``.

    Raises ChangeLogError where the log no longer has what they are made of.
    """
    table = log.table(name)
    log.check_kept(table)
    return advance(None, changes_of(log, name), table, log.reach(table))


def advanced(log: OpenLog, name: str, before: DataFrame, version: Version) -> DataFrame:
    """Return the same, made of the rows of a version and the changes since."""
    table = log.table(name)
    return advance(before, changes_of(log, name, version.seq), table, log.reach(table))


def has_key(table: Table, version: Version) -> bool:
    """Tell whether the rows of a table, all described as one key, can be found by it since a version."""
    keys = {tuple(each.key_columns) for each in table.identities if each.last > version.last}
    return (
        table.replica_identity != RelationReplicaIdentity.FULL
        and bool(table.key_columns)
        and keys <= {table.key_columns}
        and version.shape.key_columns == table.key_columns
    )


def net(log: OpenLog, name: str, version: Version) -> DataFrame | None:
    """Return what the changes since a version come to, one row a key; None where a truncate is among them."""
    table = log.table(name)
    changes = counting(changes_of(log, name, version.seq), table.base, log.reach(table))
    if survey(changes).truncated is not None:
        return None
    return net_changes(changes, table.key_columns, table.current)
