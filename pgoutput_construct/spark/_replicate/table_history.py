"""Every row that a table had, with the times between which it existed: slowly changing dimensions of type 2.

A history is the intervals of ``_state/intervals``, written down as changes come: a row is added when it comes, and
completed when it ends.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import reduce
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812

from pgoutput_construct.lake._notes import Dataset
from pgoutput_construct.spark._deferred_session import NEEDED_BY
from pgoutput_construct.spark._execution import as_leaf, plain_errors
from pgoutput_construct.spark._log_view.added_columns import escaped
from pgoutput_construct.spark._log_view.change_columns import (
    BEFORE_ALL,
    CARRIED,
    CHANGED,
    POSITION,
    SHAPE,
    STORED,
    TRUNCATE,
    TURN,
    column,
    merge_untyped,
)
from pgoutput_construct.spark._log_view.replicated_tables import Identity, Table
from pgoutput_construct.spark._open_log import OpenLog
from pgoutput_construct.spark._replicate.batch_plan import TableStep
from pgoutput_construct.spark._replicate.staging import StagedRows
from pgoutput_construct.spark._state.change_survey import ChangeSummary
from pgoutput_construct.spark._state.copy_visibility import counted_changes, restore_copy_lsn
from pgoutput_construct.spark._state.demands import NO_DEMAND, Demand
from pgoutput_construct.spark._state.identity_phases import phase_changes, require_keys
from pgoutput_construct.spark._state.intervals import OPEN
from pgoutput_construct.spark._state.moved_values import with_moved_values
from pgoutput_construct.spark._state.replay_tasks import Emit, replay_events, replay_rows
from pgoutput_construct.spark._state.row_replay import ReplayResult
from pgoutput_construct.spark._state.schema_evolution import (
    cast_columns,
    shapes_of,
    stored_rows,
    with_defaults,
    with_shapes,
)
from pgoutput_construct.spark._state.table_state import ReplayPhase, check_demand
from pgoutput_construct.spark._table_formats.dataset_columns import HISTORY, ROW_KEY, with_renamed_columns
from pgoutput_construct.spark._table_formats.merge_statement import is_widened
from pgoutput_construct.spark._table_formats.sink import Sink, most_rows
from pgoutput_construct.stream.rows import SNAPSHOT


def record_history(log: OpenLog, spark: SparkSession, sink: Sink, step: TableStep, changes: StagedRows) -> Dataset:
    """Bring the history of a table up to the end of a log: add new rows, complete those that ended.

    Rows that a copy of the table supersedes end when the copy is applied; of the changes before it only those are
    recorded that an earlier batch applied.
    """
    table, before, naming = log.table(step.table), step.before, sink.naming_of(step.dataset)
    if before is not None and before.version.shape.current != step.dataset.version.shape.current:
        NEEDED_BY.set(f"{step.what} (columns were added or dropped)")
    most = changes.summary.changes if before is None else most_rows(before, changes.summary.changes)
    counted = counted_changes(changes.rows, table)
    names = {escaped(name): escaped(other) for name, other in step.renamed.items()}
    if before is None:
        rows = history(None, counted, table, step.has_new_copy, changes.summary)
        done = sink.replace(spark, step.dataset, naming.for_dataset(rows), step.replaced)
        return sink.with_most_rows(done, most)
    there = with_renamed_columns(sink.read_for_replay(spark, before), names)
    rows = history(there, counted, table, step.has_new_copy, changes.summary)
    rows.persist()  # they are read more than once
    try:
        return sink.with_most_rows(_write_into(spark, sink, step, before, there, rows, table), most)
    finally:
        rows.unpersist()


def _write_into(
    spark: SparkSession, sink: Sink, step: TableStep, before: Dataset, there: DataFrame, rows: DataFrame, table: Table
) -> Dataset:
    """Write rows into an existing history."""
    kinds = [(each.dataType, rows.schema[each.name].dataType) for each in there.schema if each.name in rows.columns]
    is_same = all(was == now or (sink.alters and is_widened(was, now)) for was, now in kinds)
    is_here, has_room = before.directory == step.dataset.directory, set(rows.columns) <= set(there.columns)
    naming = sink.naming_of(step.dataset)
    can_record = is_same and is_here and not step.has_defaults and not step.renamed and naming == sink.naming_of(before)
    if can_record and not sink.is_replaced and (sink.alters or has_room):
        return sink.record(spark, step.dataset, naming.for_dataset(rows))
    together = _with_replaced_rows(with_defaults(there, table), rows)
    return sink.replace(spark, step.dataset, naming.for_dataset(together), step.replaced)


def _with_replaced_rows(there: DataFrame, rows: DataFrame) -> DataFrame:
    """Return a history with rows replaced or added; dropped columns stay, in their present types."""
    keys, dropped = rows.select(*ROW_KEY), [name for name in there.columns if name not in rows.columns]
    if dropped:  # which the log no longer describes: rows that have ended since have their values there
        values = there.select(*ROW_KEY, *map(column, dropped), F.col("_untyped").alias("__texts"))
        texts = F.map_filter("__texts", lambda name, _: name.isin(dropped))
        rows = rows.join(values.join(keys, [*ROW_KEY], "left_semi"), [*ROW_KEY], "left")
        rows = rows.withColumn("_untyped", merge_untyped(F.col("_untyped"), texts)).drop("__texts")
    kinds = {field.name: field.dataType for field in rows.schema if field.name in there.columns}
    kept = cast_columns(there, {name: kind for name, kind in kinds.items() if name not in HISTORY})
    lasting = kept.join(keys, [*ROW_KEY], "left_anti").select(*map(column, kept.columns))  # joined, the key comes first
    return lasting.unionByName(rows, allowMissingColumns=True)


_FROM: Final = ("_op", "_commit_time", "_unchanged")
END: Final = ("__end_lsn", "__end_seq")
"""The position of the change that ended a row, null while it exists."""


def history(
    before: DataFrame | None, changes: DataFrame, table: Table, begins: bool, summary: ChangeSummary | None = None
) -> DataFrame:
    """Return the rows that are new in a table's history, and earlier ones that have ended since: with HISTORY.

    They have the present columns, and those that the history has, the log describes, and that were dropped.

    Args:
        before: The history, None for none.
        changes: The changes since that count, copied rows as inserts before all.
        table: The table.
        begins: Whether the table begins again with them, so that all earlier rows have ended.
        summary: What whoever decoded the changes reports of them.
    """
    opened = (
        None if before is None else before.where("_ended_by IS NULL").withColumnRenamed("_valid_from", "_commit_time")
    )
    there = () if before is None else before.columns
    dropped = tuple(name for name in table.columns.names if name in there and name not in table.current)
    rows = _history_rows(intervals_after(None if begins else opened, changes, table, summary), table, dropped)
    if opened is None or not begins:
        return rows
    # Changes that were recorded before the copy was complete, and that it does not contain, make their rows once more.
    superseded = opened.join(changes.select(*ROW_KEY), [*ROW_KEY], "left_anti")
    ended = superseded.withColumns({"_ended_by": F.lit(SNAPSHOT), "_valid_to": F.lit(None).cast("timestamp")})
    old = stored_rows(ended, table, with_shapes(changes, table), (*_FROM, "_valid_to", "_ended_by"))
    return rows.unionByName(_history_rows(old, table, dropped))


def intervals_after(
    before: DataFrame | None,
    changes: DataFrame,
    table: Table,
    summary: ChangeSummary | None,
    demand: Demand = NO_DEMAND,
) -> DataFrame:
    """Return the rows that come by changes, and those that end by them: columns, positions, and how they end.

    The columns are those of the table and of changes, ``_valid_to``, ``_ended_by``, END, ``__shape`` and ``__turn``.

    Args:
        before: The rows before, with ``_op``, ``_commit_time`` and ``_unchanged``; None for none.
        changes: The changes that count, copied rows as inserts before all.
        table: The table.
        summary: What whoever decoded the changes reports of them.
        demand: What must be true; where it is not, an action fails.
    """
    shapes, events = tuple(shapes_of(table, before)), with_shapes(changes, table)
    phases, left = phase_changes(events, table, before), None
    if before is not None:
        left = stored_rows(before, table, events, _FROM).withColumn(TURN, F.lit(STORED))
    found = list[DataFrame]()
    for number, (phase, mine) in enumerate(phases, 1):
        is_last = number == len(phases)
        rows = None if left is None else require_keys(left, table, phase)
        intervals = _intervals(rows, mine, table, phase, shapes, summary, demand, apart=len(phases) == 1)
        intervals = intervals if is_last else as_leaf(intervals)
        is_open = F.col("_ended_by").isNull()
        found.append(intervals.where((is_open & (F.col(TURN) != STORED)) | ~is_open if is_last else ~is_open))
        carried = F.when(F.col(TURN) == CHANGED, CARRIED).otherwise(F.col(TURN))
        left = intervals.where(is_open).withColumn(TURN, carried).drop("_valid_to", "_ended_by", *END)
    return reduce(lambda one, other: as_leaf(one).unionAll(other), found)


def _history_rows(rows: DataFrame, table: Table, dropped: Collection[str]) -> DataFrame:
    """Return rows with the columns of a history, ``dropped`` ones among them."""
    copied = F.when(F.col("_commit_lsn") == BEFORE_ALL, SNAPSHOT).otherwise(F.col("_op"))
    named = restore_copy_lsn(rows.withColumn("_op", copied), table).withColumnRenamed("_commit_time", "_valid_from")
    return named.select(*map(column, (*table.current, *dropped)), *HISTORY)


def _intervals(
    before: DataFrame | None,
    changes: DataFrame,
    table: Table,
    phase: Identity,
    shapes: Sequence[frozenset[str]],
    summary: ChangeSummary | None,
    demand: Demand,
    apart: bool,
) -> DataFrame:
    """Return the rows of one phase: columns, ``_valid_to``, ``_ended_by``, END, ``__shape`` and ``__turn``."""
    names = tuple(table.columns.names)
    step = ReplayPhase(before, changes, phase.key_columns, phase.replica_identity, names, tuple(shapes), summary)
    found = step.survey
    truncates = _truncates(changes) if found.truncated is not None else []
    positions = ((row["_commit_lsn"], row["_seq"]) for row in truncates)
    replay = replace(step.replay(), truncates=tuple(positions))
    rows = changes.where(F.col("_op") != TRUNCATE)
    if found.chained and replay.open_columns:
        rows = with_moved_values(before, rows, replay, found)
    events, _ = replay_events(before, rows, replay, found, apart)
    given = {field.name: field for field in events.schema}
    kept = [*names, "_untyped", *POSITION, *_FROM, SHAPE, TURN]
    ends = [T.StructField("_valid_to", T.TimestampType()), T.StructField("_ended_by", T.StringType())]
    ends += [T.StructField(name, T.LongType()) for name in END]
    schema = T.StructType([*(T.StructField(name, given[name].dataType) for name in kept), *ends])
    return replay_rows(events, replay, _emit(kept, truncates, demand), schema)


def _emit(kept: Sequence[str], truncates: Sequence[Row], demand: Demand) -> Emit:
    times = [row["_commit_time"] for row in truncates]
    positions = [(row["_commit_lsn"], row["_seq"]) for row in truncates]

    def emit(done: ReplayResult, is_end: bool) -> pa.Table:
        check_demand(done, demand)
        ended = done.intervals.ended
        chosen = np.flatnonzero(done.events.comes & ((ended != OPEN) | is_end))
        found = done.rows(chosen, done.rule.columns)
        arrays = [found[name] if name in found else done.change_column(name, chosen) for name in kept]
        of_truncates = {
            "_commit_time": pa.array(times, pa.timestamp("us", "UTC")),
            "_op": pa.array([TRUNCATE] * len(times), pa.string()),
            "_commit_lsn": pa.array([lsn for lsn, _ in positions], pa.int64()),
            "_seq": pa.array([seq for _, seq in positions], pa.int64()),
        }
        ends = [done.ends(name, chosen, each) for name, each in of_truncates.items()]
        return pa.Table.from_arrays([*arrays, *ends], [*kept, "_valid_to", "_ended_by", *END])

    return emit


def _truncates(changes: DataFrame) -> list[Row]:
    """Return the truncates, in order; few. Times are microseconds, which no session time zone shifts."""
    rows = changes.where(F.col("_op") == TRUNCATE)
    with plain_errors():
        found = rows.select(*POSITION, F.unix_micros("_commit_time").alias("_commit_time")).collect()
    return sorted(found, key=lambda row: (row["_commit_lsn"], row["_seq"]))
