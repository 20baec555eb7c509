"""Small tables of a batch, brought up to date by one job of Spark: a job for each costs more than their rows."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from pgoutput_construct.spark.arrow_state import Rule
from pgoutput_construct.spark.counting import Commits
from pgoutput_construct.spark.dealing import deal
from pgoutput_construct.spark.failures import plain_errors
from pgoutput_construct.spark.job import OpenLog
from pgoutput_construct.spark.metadata import MARK
from pgoutput_construct.spark.phases import OnMissing
from pgoutput_construct.spark.rows_file import codec_of
from pgoutput_construct.spark.schemas import changes_schema
from pgoutput_construct.spark.survey import Seen
from pgoutput_construct.spark.tables import Table
from pgoutput_construct.spark.warehouse.notes import Dataset
from pgoutput_construct.spark.warehouse.parquet import ParquetSink
from pgoutput_construct.spark.warehouse.small_tasks import DONE, SmallTable, SmallTask, advance_small
from pgoutput_construct.spark.warehouse.staging import Staged, Wanted
from pgoutput_construct.spark.warehouse.steps import How, Step
from pgoutput_construct.wire.protocol import RelationReplicaIdentity

__all__ = ["advance_together"]

_CHANGES: Final = 50_000
"""The most changes of a table that may be a task's; more are work enough for a job."""
_TASKS: Final = 32
_TOGETHER: Final = 16
"""Tables of a task, where there are more than that many tasks."""


def advance_together(
    log: OpenLog, spark: SparkSession, sink: ParquetSink, steps: Sequence[Step], staged: Staged, on_missing: OnMissing
) -> dict[int, Dataset]:
    """Write new versions of the tables that are small and simple; return these by the places of their steps."""
    # What is to be reported is found in the other way.
    lacking = {lack.relation_oid for lack in log.lacks} if on_missing == "error" else set()
    tables = list(_tables(log, sink, steps, staged, lacking))
    # Those with many changes are dealt out first, each to another task.
    tables.sort(key=lambda table: -staged.seen(_wanted(steps[table.number])).changes)
    number = max(min(len(tables), _TASKS), -(-len(tables) // _TOGETHER))
    codec, store = codec_of(spark), sink.warehouse.store
    tasks = [SmallTask(store, codec, tuple(tables[place::number])) for place in range(number)]
    with plain_errors():
        done = {row["table"] for row in deal(spark, tasks, advance_small, DONE) if row["done"]}
    return {table.number: _dataset(sink, steps[table.number], table) for table in tables if table.number in done}


def _dataset(sink: ParquetSink, step: Step, table: SmallTable) -> Dataset:
    kinds = from_arrow_schema(sink.naming_of(step.dataset).arrow(table.schema), prefer_timestamp_ntz=True)
    return sink.replaced(step.dataset, kinds, step.replaced)


def _tables(
    log: OpenLog, sink: ParquetSink, steps: Sequence[Step], staged: Staged, lacking: Collection[int]
) -> Iterator[SmallTable]:
    commits = Commits(log.opened.index)
    for number, step in enumerate(steps):
        table, wanted = log.table(step.table), _wanted(step)
        if _is_simple(log, step, table, staged):
            seen, before = staged.seen(wanted), step.before if step.how is How.CHANGED else None
            there = before.details["path"] if before is not None else None
            rule = _rule(table, seen, commits, table.relation_oid in lacking)
            changed, path = changes_schema(table.columns), sink.path(step.dataset)
            small = SmallTable(number, path, there, staged.files(wanted), changed, rule, (), step.dataset.is_history)
            named = tuple(map(sink.naming_of(step.dataset).outer, small.schema.names))
            if before is None or {*named} == {field["name"] for field in before.details["schema"]["fields"]}:
                yield replace(small, named=named)


def _rule(table: Table, seen: Seen, commits: Commits, lacks_rows: bool) -> Rule:
    unsent = tuple(name for name in table.current if name in seen.unsent)
    reach = commits.near(table.base.copy) if table.base else None
    keys = None if table.replica_identity == RelationReplicaIdentity.FULL else table.key_columns
    return Rule(table.current_columns, keys, unsent, table.base, reach, lacks_rows)


def _is_simple(log: OpenLog, step: Step, table: Table, staged: Staged) -> bool:
    """Return whether nothing but rows that one identity tells apart came, changed or went, and these are few."""
    wanted = _wanted(step)
    return (
        not (step.dataset.is_history and step.how is How.WRITTEN and step.before is not None)
        and staged.seen(wanted).changes <= _CHANGES
        and not staged.errors(wanted)
        and _has_one_identity(step, table)
        and _is_same(step)
        and not any(name.startswith(MARK) for name in table.columns.names)
        and (step.how is How.CHANGED or log.is_kept(table))
    )


def _has_one_identity(step: Step, table: Table) -> bool:
    """Return whether all changes since the rows before, or all that the log has, tell rows apart by one identity.

    By the full row they do while the table has no other columns.
    """
    since = step.before.version.last if step.before is not None and step.how is How.CHANGED else None
    mine = [each for each in table.identities if since is None or each.last > since]
    known = {(each.replica_identity, each.key_columns) for each in mine}
    named = table.columns.names if table.base is None else table.base.columns
    is_full = table.replica_identity == RelationReplicaIdentity.FULL
    own = {frozenset(named), *(columns for _, columns in table.shapes)}
    return (
        (bool(table.key_columns) or is_full)
        and known <= {(table.replica_identity, table.key_columns)}
        and {*table.key_columns} <= {*named}
        and (not is_full or own == {frozenset(table.current)})
    )


def _is_same(step: Step) -> bool:
    """Return whether rows before, if they count, are described as those to come."""
    if step.how is How.WRITTEN or step.before is None:
        return True
    one, other = step.before.version.shape, step.dataset.version.shape
    is_described = (one.columns, one.current) == (other.columns, other.current)
    return is_described and (one.key_columns, one.replica_identity) == (other.key_columns, other.replica_identity)


def _wanted(step: Step) -> Wanted:
    return Wanted(step.table, step.after)
