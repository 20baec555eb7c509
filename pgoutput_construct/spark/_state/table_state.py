"""The state of a table, rebuilt in Spark from its changes; its net changes; its changes that found no row; comparison.

A table whose replica identity changes inside the log is replayed in *phases* (``identity_phases``), each by the
identity that was in force: a ``ReplayPhase`` is the rows before it, and its changes.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812

from pgoutput_construct.changelog._segment.block import Numbers
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.pgtypes.canonical_text import output_text
from pgoutput_construct.spark._execution import as_leaf, plain_errors
from pgoutput_construct.spark._log_view.change_columns import (
    BEFORE_ALL,
    CHANGE,
    EPOCH,
    POSITION,
    SHAPE,
    WORK_COLUMNS,
    column,
)
from pgoutput_construct.spark._log_view.replicated_tables import Table
from pgoutput_construct.spark._state.change_survey import ChangeSummary, ChangeSurvey, after_truncate, survey
from pgoutput_construct.spark._state.copy_visibility import counted_changes, restore_copy_lsn
from pgoutput_construct.spark._state.demands import NO_DEMAND, Demand, OnMissing, demand_of
from pgoutput_construct.spark._state.equality import exact
from pgoutput_construct.spark._state.identity_phases import PhaseReader, phase_changes, require_keys
from pgoutput_construct.spark._state.keyed_rows import KeyedLayout, advance_keyed, net_by_key, net_rows
from pgoutput_construct.spark._state.replay_tasks import replay_events, replay_rows
from pgoutput_construct.spark._state.row_replay import Replay, ReplayResult
from pgoutput_construct.spark._state.schema_evolution import shapes_of, stored_rows, with_shapes
from pgoutput_construct.wire.protocol import RelationReplicaIdentity

NET: Final = ("_untyped", "_commit_lsn", "_seq", "_key", "_op", "_unchanged", "_missing")
"""The columns that net changes have besides the table's own."""
_EXAMPLES: Final = 5
"""Rows of each side that a comparison shows."""


def current_state(
    changes: DataFrame, key_columns: Sequence[str], replica_identity: str, columns: Sequence[str] | None = None
) -> DataFrame:
    """Return the rows of a table after all changes: its columns, and ``_untyped`` as in the changes.

    With a key, the last change of a row counts, and an unsent TOASTed value is the one the row had. With the full row
    as identity rows are counted: equal rows may occur several times. With no identity there are inserts alone. Every
    change counts, and the changes must begin with the first row of the table: a delete of a row that does not exist
    does nothing, an update of one makes an action fail if it leaves a value open. ``OpenLog.state`` also knows table
    copies, changes of columns and of the replica identity, and other tables that had the name (``_relation_oid``).

    Args:
        changes: As ``OpenLog.changes`` gives them, or read back from Parquet: they are read more than once.
        key_columns: The columns of the replica identity.
        replica_identity: As relreplident in pg_class.
        columns: The columns that the table has now, None for all.
    """
    own = [name for name in changes.columns if name not in CHANGE]
    events = changes.withColumn(SHAPE, F.lit(0))
    names = tuple(own if columns is None else columns)
    step = ReplayPhase(None, events, tuple(key_columns), replica_identity, names, (frozenset(own),))
    return apply_phase(step, Demand()).drop("_commit_lsn", "_seq")


def net_changes(
    changes: DataFrame, key_columns: Sequence[str], columns: Sequence[str], summary: ChangeSummary | None = None
) -> DataFrame:
    """Return the net changes of a batch, one row a key, for a table that has the rows before.

    The columns are those of the table, ``_untyped``, ``_commit_lsn`` and ``_seq`` of the last change, and

    - ``_op``: ``upsert``, or ``delete`` of the row with this key (its other columns are null);
    - ``_unchanged``: columns that no change of the batch sent. Their values are those of the table's row with ``_key``:
      a struct of the key's columns, and ``_texts``, an array of what ``_untyped`` has of these columns, null for
      nothing. ``_key`` is null where nothing is to be looked up. ``_unchanged`` without ``_key`` means that no row can
      have had the values: changes are missing, or were applied twice;
    - ``_missing``: how many changes of the key found no row among the earlier ones. The first may be of the table's
      row; if the table has none, or for a higher number, changes are missing or were applied twice.

    All rows are looked up before any is changed. A truncate empties the table first (``survey(changes).truncated``).

    Args:
        changes: The changes of the batch that count.
        key_columns: The columns of the key.
        columns: The columns that the table has now.
        summary: What whoever decoded the changes reports of them; without it they are read once more.

    Raises:
        ChangeLogError: A column of the table is named as one of the above.
    """
    for name in columns:
        if name in NET:
            raise ChangeLogError(f"the column name {name!r} is reserved for net changes: rename the column")
    found = survey(changes, key_columns, columns, summary)
    layout = KeyedLayout.from_changes(changes, key_columns, columns, found)
    return net_rows(net_by_key(after_truncate(changes, found.truncated), layout, found), layout)


@dataclass(frozen=True)
class ReplayPhase:
    """Changes of a table whose rows one identity tells apart, and the rows before them."""

    before: DataFrame | None
    """All columns of the table, ``_untyped``, ``_commit_lsn``, ``_seq`` and ``__shape``; None for no rows."""
    changes: DataFrame
    """The changes, with ``__shape``."""
    key_columns: tuple[str, ...]
    """The columns of the replica identity."""
    replica_identity: str
    """As relreplident in pg_class."""
    columns: tuple[str, ...]
    """The columns of the rows after the changes."""
    shapes: tuple[frozenset[str], ...]
    """The different sets of columns with which changes and rows were described; ``__shape`` is the index."""
    summary: ChangeSummary | None = None
    """What whoever decoded the changes reports of them."""
    is_small: bool = False
    """Whether the rows before are so few that they may all be shuffled."""

    def __post_init__(self) -> None:
        for name in ({*self.changes.columns} - {SHAPE} | {*self.columns}).intersection(WORK_COLUMNS):
            raise ChangeLogError(f"the column name {name!r} is reserved for rebuilding a state: rename the column")

    @property
    def is_full(self) -> bool:
        """Whether rows are told apart by all their columns."""
        return self.replica_identity == RelationReplicaIdentity.FULL

    @cached_property
    def survey(self) -> ChangeSurvey:
        """What the changes contain; they are read once for it where no summary says it."""
        found = survey(self.changes, self.key_columns, self.columns, self.summary)
        has_stored = self.before is not None and (self.is_small or bool(found.unsent))
        return found._replace(untyped=True) if has_stored else found  # values of these rows may have texts

    @property
    def stored(self) -> DataFrame | None:
        """The rows before, unless a truncate removed them."""
        return None if self.survey.truncated is not None else self.before

    @property
    def counted(self) -> DataFrame:
        """The changes after the last truncate."""
        return after_truncate(self.changes, self.survey.truncated)

    def replay(self) -> Replay:
        """Return how the changes are replayed."""
        own = tuple(name for name in self.changes.columns if name not in (*CHANGE, SHAPE))
        unsent = tuple(name for name in own if name in self.survey.unsent)
        return Replay(own, None if self.is_full else self.key_columns, unsent, self.shapes)

    def by_keys(self) -> KeyedLayout:
        """Return the layout of the table as one with a key."""
        return KeyedLayout.from_changes(self.changes, self.key_columns, self.columns, self.survey)


def apply_phase(step: ReplayPhase, demand: Demand) -> DataFrame:
    """Return the rows after the changes of a phase: ``columns``, ``_untyped``, ``_commit_lsn`` and ``_seq``.

    Where a demand is not met, an action fails.
    """
    if step.is_full:
        return remaining_rows(step, demand)
    if step.key_columns:
        return advance_keyed(step.stored, step.counted, step.by_keys(), step.survey, demand, step.is_small)
    rows = step.counted.select(*row_columns(step.columns))
    return rows if step.stored is None else rows.unionAll(step.stored.select(*row_columns(step.columns)))


def row_columns(columns: Sequence[str]) -> list[Column]:
    """Return columns of rows, ``_untyped`` reduced to them (null for no text), ``_commit_lsn`` and ``_seq``."""
    mine = F.map_filter("_untyped", lambda name, _: name.isin(list(columns)))
    texts = F.when(F.size(mine) > 0, mine)
    return [*map(column, columns), texts.alias("_untyped"), *map(F.col, POSITION)]


def advance(
    before: DataFrame | None,
    changes: DataFrame,
    table: Table,
    on_missing: OnMissing = "error",
    summary: ChangeSummary | None = None,
    is_small: bool = False,
    is_whole: bool = False,
    within: PhaseReader | None = None,
) -> DataFrame:
    """Return the rows of a table after ``changes``: its columns, ``_untyped``, ``_commit_lsn`` and ``_seq``.

    The last two are of the change that made the row; of a copied row, the snapshot's LSN and its position in the log.
    An added column has its default in the rows before. Anything else needs a start from scratch, without ``before``: a
    new copy, other types, renamed columns, another table under the name (``Table.relation_oid``). Changes are applied
    in phases, each by the identity that was in force.

    An action fails if the log does not have the new key of a row (its columns were renamed, or got their values from
    ALTER TABLE, and the log does not say so), and if a change leaves a value open that no row has.

    Args:
        before: The rows before, as this function returns them; ``changes`` are then those since. Rows that few changes
            do not touch are not shuffled. Without them, the rows begin with the latest copy, or none.
        changes: The changes, each of them once.
        table: The table.
        on_missing: With ``error`` and ``is_whole`` an action also fails for an update or delete of a row that does not
            exist. With ``report`` neither fails: an open value is null, and the changes are among ``missing_rows``.
        summary: What whoever decoded the changes reports of them.
        is_small: Whether the rows before are so few that shuffling them costs less than finding those that are touched.
        is_whole: Whether the rows before and the changes are everything that the table had (``OpenLog.is_whole``).
        within: Reads the changes of one phase, where that costs less than reading all of them for each.

    Raises:
        ChangeLogError: As ``counted_changes`` does.
    """
    demand = demand_of(table, on_missing, is_whole)
    rows, _ = _walk(before, changes, table, summary, demand, within, is_small=is_small)
    return rows


def missing_rows(
    before: DataFrame | None,
    changes: DataFrame,
    table: Table,
    within: PhaseReader | None = None,
) -> DataFrame:
    """Return the changes of rows that should exist and do not, as ``advance`` with the same arguments meets them.

    They are updates and deletes: ``_commit_lsn, _seq, _op``; ``_row``, the key that they name, or the whole old row, as
    texts by column; ``_unchanged``, the unsent columns, whose values are unknown. A row that such an update changes
    exists from then on.

    Args:
        before: The rows before, None for none.
        changes: The changes.
        table: The table.
        within: As in ``advance``.
    """
    _, steps = _walk(before, changes, table, None, NO_DEMAND, within)
    return reduce(lambda one, other: as_leaf(one).unionAll(other), map(unmatched_changes, steps))


def _walk(
    before: DataFrame | None,
    changes: DataFrame,
    table: Table,
    summary: ChangeSummary | None,
    demand: Demand,
    within: PhaseReader | None,
    is_small: bool = False,
) -> tuple[DataFrame, list[ReplayPhase]]:
    """Return the rows after changes, and the phases that lead to them."""

    def replay_events(read: DataFrame) -> DataFrame:
        counted = counted_changes(read, table)
        return with_shapes(counted if before is None else counted.where(F.col("_commit_lsn") != BEFORE_ALL), table)

    shapes, events = shapes_of(table, before), replay_events(changes)
    phases = phase_changes(events, table, before, within and (lambda *ends: replay_events(within(*ends))))
    left, steps = None if before is None else stored_rows(before, table, events), list[ReplayPhase]()
    for number, (phase, mine) in enumerate(phases, 1):
        rows = None if left is None else require_keys(left, table, phase)
        is_last = number == len(phases)
        columns = table.current if is_last else tuple(table.columns.names)
        keys, identity = phase.key_columns, phase.replica_identity
        steps.append(ReplayPhase(rows, mine, keys, identity, columns, tuple(shapes), summary, is_small))
        left = apply_phase(steps[-1], demand)
        left = left if is_last else as_leaf(with_shapes(left, table))
    assert left is not None
    return restore_copy_lsn(left, table), steps


@dataclass(frozen=True)
class Comparison:
    """The differences between a rebuilt table and its source."""

    rows: int
    """Rows in the source."""
    rebuilt_rows: int
    """Rows in the rebuilt table."""
    missing: int
    """Rows of the source that were not rebuilt (equal rows are counted one by one)."""
    unexpected: int
    """Rebuilt rows that the source does not have."""
    examples: tuple[str, ...]
    """A few of both, each after a ``-`` (missing) or a ``+`` (unexpected)."""

    @property
    def equal(self) -> bool:
        """Whether both have the same rows."""
        return not (self.missing or self.unexpected)


def compare(state: DataFrame, source: pa.Table) -> Comparison:
    """Compare a rebuilt table with its source, both ways, row by row; rows that occur several times count as often.

    Values are the same as ``equality`` defines it: 0.0 is not -0.0. ``state`` is as ``OpenLog.state`` returns it,
    ``source`` has the same columns in Arrow's types, such as ``postgres.fetch_table`` returns them from the server.
    """
    with plain_errors():
        rows = state.sparkSession.createDataFrame(source.select(state.columns), state.schema)
        return _compare(_as_one_column(state, 1).unionAll(_as_one_column(rows, -1)))


def _as_one_column(rows: DataFrame, side: int) -> DataFrame:
    values = [
        exact(column(each.name), each.dataType).alias(each.name) for each in rows.schema if each.name != "_untyped"
    ]
    # Spark compares no maps.
    whole = F.struct(*values, F.array_sort(F.map_entries("_untyped")).alias("_untyped"))
    return rows.select(whole.alias("row"), F.lit(side).alias("side"))


def _compare(both: DataFrame) -> Comparison:
    """Compare in one pass: equal rows of both sides are one group, whose sides sum to 0."""
    groups = both.groupBy("row").agg(F.sum("side").alias("more"), F.count("side").alias("rows"))
    sums = ("(rows - more) div 2", "(rows + more) div 2", "greatest(-more, 0)", "greatest(more, 0)")
    totals = groups.agg(*(F.sum(F.expr(each)) for each in sums)).first()
    rows, rebuilt_rows, missing, unexpected = (total or 0 for total in totals or [0] * len(sums))
    differ = (groups.where(f"{sign}more > 0").take(_EXAMPLES) if missing or unexpected else () for sign in "-+")
    examples = [f"{sign} {row['row'].asDict()}" for sign, found in zip("-+", differ, strict=True) for row in found]
    return Comparison(rows, rebuilt_rows, missing, unexpected, tuple(examples))


_TEXTS = T.ArrayType(T.StringType())


def remaining_rows(step: ReplayPhase, demand: Demand) -> DataFrame:
    """Return the rows after the changes of a phase that are replayed in order; see ``apply_phase``.

    Rows before that no change touches are left where they are, unless they are few.
    """
    replay, names = step.replay(), step.columns
    events, left = replay_events(step.stored, step.counted, replay, step.survey, apart=not step.is_small)
    # What full rows are replayed by is in their columns.
    events = events.drop("_commit_time", EPOCH, *(["_unchanged"] if replay.keys is None else []))
    chosen = [*names, "_untyped", *POSITION]

    def emit(done: ReplayResult, is_end: bool) -> pa.Table:
        check_demand(done, demand)
        found = done.rows(done.open if is_end else done.open[:0], names)
        positions = {name: done.change_column(name, done.open if is_end else done.open[:0]) for name in POSITION}
        return pa.table({name: (found | positions)[name] for name in chosen})

    rows = replay_rows(events, replay, emit, T.StructType([events.schema[name] for name in chosen]))
    return rows if left is None else rows.unionAll(left.select(*row_columns(names)))


def check_demand(done: ReplayResult, demand: Demand) -> None:
    """Raise ChangeLogError where a demand is not met."""
    lost = np.flatnonzero(done.lost)[:1]
    if demand.values and len(lost):
        raise demand.unsent_row_error(*_position(done, lost))
    if demand.rows and len(done.missing):
        event = done.missing[:1]
        raise demand.row_error(*_position(done, event), _shown(done.old_rows(event), done.rule.identity))


def _position(done: ReplayResult, event: Numbers) -> tuple[int, int]:
    lsn, seq = (done.change_column(name, event)[0].as_py() for name in POSITION)
    return lsn, seq


def _shown(row: Mapping[str, pa.Array], names: Sequence[str]) -> str:
    texts = dict(row["_untyped"][0].as_py() or ())
    values = {name: texts.get(name, row[name][0].as_py()) for name in names}
    known = {name: value for name, value in values.items() if value is not None}
    return json.dumps(known, default=str, ensure_ascii=False, separators=(",", ":"))  # as Spark's to_json writes it


def unmatched_changes(step: ReplayPhase) -> DataFrame:
    """Return the updates and deletes of a phase that found no row: ``_commit_lsn, _seq, _op, _row, _unchanged``.

    ``_row`` is the key, or the row, that they name: texts by column.
    """
    replay = step.replay()
    events, _ = replay_events(step.stored, step.counted, replay, step.survey, apart=True)
    kept, names = (*POSITION, "_op", "_unchanged"), [*replay.identity, "_untyped"]

    def emit(done: ReplayResult, is_end: bool) -> pa.Table:
        old = done.old_rows(done.missing)
        arrays = [*(done.change_column(name, done.missing) for name in kept), *(old[name] for name in names)]
        return pa.Table.from_arrays(arrays, [*kept, *(f"c{number}" for number in range(len(names)))])

    fields = [T.StructField(f"c{number}", events.schema[name].dataType) for number, name in enumerate(names)]
    rows = replay_rows(events, replay, emit, T.StructType([*(events.schema[name] for name in kept), *fields]))
    texts, parts = F.col(f"c{len(replay.identity)}"), list[Column]()
    for number, name in enumerate(replay.identity):
        text = output_text(F.col(f"c{number}"), events.schema[name].dataType)
        parts += [F.lit(name), F.coalesce(texts[F.lit(name)], text)]
    row = F.create_map(*parts).cast("map<string,string>").alias("_row")
    open_columns = F.array(*map(F.lit, replay.open_columns)).cast(_TEXTS)
    unchanged = F.coalesce(F.array_intersect("_unchanged", open_columns), F.array().cast(_TEXTS))
    return rows.select(*POSITION, "_op", row, unchanged.alias("_unchanged"))
