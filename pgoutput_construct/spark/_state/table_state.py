"""A table's rows, rebuilt in Spark from its changes, and what a batch of changes comes to.

A table whose replica identity changes inside the log is replayed in *phases*, each by the identity that it had then: a
``ReplayPhase`` is the rows before a phase, and its changes.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812

from pgoutput_construct.changelog._segment.block import Numbers
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark._execution import as_leaf, plain_errors
from pgoutput_construct.spark._log_view.change_columns import (
    BEFORE_ALL,
    CHANGE,
    EPOCH,
    POSITION,
    SHAPE,
    WORK_COLUMNS,
    column,
    merge_untyped,
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

__all__ = ["Comparison", "advance", "compare", "current_state", "missing_rows", "net_changes"]

NET: Final = ("_untyped", "_commit_lsn", "_seq", "_key", "_op", "_unchanged", "_missing")
"""The columns that net changes have besides the table's own."""

_EXAMPLES: Final = 5
"""Rows of each side that a comparison shows."""


def current_state(
    changes: DataFrame, key_columns: Sequence[str], replica_identity: str, columns: Sequence[str] | None = None
) -> DataFrame:
    """Return the rows that a table has after all changes: its columns, and ``_untyped`` as in the changes.

    ``changes`` is as ``OpenLog.changes`` gives it (or read back from Parquet: it is read more than once).
    ``key_columns`` are the columns of the replica identity, ``replica_identity`` is as relreplident in pg_class;
    ``columns`` are the columns that the table has now, None for all.

    With a key, the last change of a row counts, and a TOASTed value that was not sent is the one the row had. With the
    full row as identity rows are counted: equal rows may be there several times. Without any there are inserts alone.
    Every change counts, and the changes must hold the table from its first row: a delete of a row that never came does
    nothing, an update of one makes an action fail when it leaves a value open. ``OpenLog.state`` knows more: copies of
    the table, changes of its columns and of its replica identity, other tables that had its name (``_relation_oid``).
    """
    own = [name for name in changes.columns if name not in CHANGE]
    events = changes.withColumn(SHAPE, F.lit(0))
    names = tuple(own if columns is None else columns)
    step = ReplayPhase(None, events, tuple(key_columns), replica_identity, names, (frozenset(own),))
    return apply_phase(step, Demand()).drop("_commit_lsn", "_seq")


def net_changes(
    changes: DataFrame, key_columns: Sequence[str], columns: Sequence[str], summary: ChangeSummary | None = None
) -> DataFrame:
    """Return what a batch of changes of a table with a key comes to, one row a key, for a table with the rows before.

    Its columns are those of the table, ``_untyped``, ``_commit_lsn`` and ``_seq`` of the last change, and

    - ``_op``: ``upsert``, or ``delete`` of the row with this key (its other columns are null);
    - ``_unchanged``: columns that no change of the batch has sent. Their values are those of the table's row with
      ``_key``: a struct of the key's columns, and ``_texts``, an array of what ``_untyped`` has of these columns, null
      for nothing. ``_key`` is null where nothing is to be looked up. ``_unchanged`` without ``_key`` says that no row
      can have had the values: changes are missing, or were applied twice;
    - ``_missing``: how many changes of a row with this key found none among those before. The first one may be of the
      table's row; that the table has none then, or a higher number, says the same.

    All rows are looked up before any is changed. A truncate empties the table first (``survey(changes).truncated``).
    ``summary`` is what is known of the changes already; else they are read once to find it.
    Raises ChangeLogError for a column that is named as one of these.
    """
    for name in columns:
        if name in NET:
            raise ChangeLogError(f"the column {name!r} is named as one of the net changes: rename it")
    found = survey(changes, key_columns, columns, summary)
    layout = KeyedLayout.from_changes(changes, key_columns, columns, found)
    return net_rows(net_by_key(after_truncate(changes, found.truncated), layout, found), layout)


@dataclass(frozen=True)
class ReplayPhase:
    """Changes of a table that one identity tells apart, and the rows before them."""

    before: DataFrame | None
    """All columns of the table, ``_untyped``, ``_commit_lsn``, ``_seq`` and ``__shape``; None for no row."""
    changes: DataFrame
    """They have ``__shape`` too."""
    key_columns: tuple[str, ...]
    """The columns of the replica identity."""
    replica_identity: str
    """As relreplident in pg_class."""
    columns: tuple[str, ...]
    """The columns of the rows after the changes."""
    shapes: tuple[frozenset[str], ...]
    """Columns by name, with which changes and rows were described; ``__shape`` says with which of these."""
    summary: ChangeSummary | None = None
    """What is known of the changes already."""
    is_small: bool = False
    """Whether the rows before are so few that they may all be shuffled."""

    def __post_init__(self) -> None:
        for name in ({*self.changes.columns} - {SHAPE} | {*self.columns}).intersection(WORK_COLUMNS):
            raise ChangeLogError(f"the column {name!r} is named as one that rebuilding a state needs; rename it")

    @property
    def is_full(self) -> bool:
        """Whether rows are told apart by all their columns."""
        return self.replica_identity == RelationReplicaIdentity.FULL

    @cached_property
    def survey(self) -> ChangeSurvey:
        """What the changes have in them; they are read once for it where nobody has summary them."""
        found = survey(self.changes, self.key_columns, self.columns, self.summary)
        has_stored = self.before is not None and (self.is_small or bool(found.unsent))
        return found._replace(untyped=True) if has_stored else found  # values of these rows may have texts

    @property
    def stored(self) -> DataFrame | None:
        """The rows before, unless a truncate took them."""
        return None if self.survey.truncated is not None else self.before

    @property
    def counted(self) -> DataFrame:
        """The changes after the last truncate."""
        return after_truncate(self.changes, self.survey.truncated)

    def replay(self) -> Replay:
        """Return how the changes are replayed one by one."""
        own = tuple(name for name in self.changes.columns if name not in (*CHANGE, SHAPE))
        unsent = tuple(name for name in own if name in self.survey.unsent)
        return Replay(own, None if self.is_full else self.key_columns, unsent, self.shapes)

    def by_keys(self) -> KeyedLayout:
        """Return the table as rows that have keys."""
        return KeyedLayout.from_changes(self.changes, self.key_columns, self.columns, self.survey)


def apply_phase(step: ReplayPhase, demand: Demand) -> DataFrame:
    """Return the rows after changes: ``columns``, ``_untyped``, ``_commit_lsn`` and ``_seq``.

    What is demanded and is not so makes an action fail.
    """
    if step.is_full:
        apart = not step.is_small
        return remaining_rows(step.stored, step.counted, step.replay(), step.survey, step.columns, demand, apart)
    if step.key_columns:
        return advance_keyed(step.stored, step.counted, step.by_keys(), step.survey, demand, step.is_small)
    rows = step.counted.select(*_row(step.columns))
    return rows if step.stored is None else rows.unionAll(step.stored.select(*_row(step.columns)))


def _row(columns: Sequence[str]) -> list[Column]:
    """Return the columns of rows, and of ``_untyped`` what is theirs."""
    return [*map(column, columns), texts_within(columns).alias("_untyped"), F.col("_commit_lsn"), F.col("_seq")]


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

    The last two are of the change that a row is from; of a copied row, the snapshot's LSN and its position in the log.
    ``before`` are the rows before, as this function returns them, None for no row; ``changes`` are then those that
    came since. Rows that they do not touch are not shuffled where the changes are few. A column that was added has
    its default in the rows before. Anything else needs a start from scratch, without ``before``: a new
    copy, other types, renamed columns, another table under the name (``Table.relation_oid``).

    Without ``before`` the rows are those of the latest copy, and what the changes that count made of them. Changes
    are applied in phases, each by the identity the table had then. An action fails when the log does not have the new
    key of a row: when its columns were renamed, or got their values from ALTER TABLE, and the log does not say so;
    and when a change leaves a value open that no row has. Where ``is_whole`` says that the rows before and the
    changes, each of them once, are all that the table had (``OpenLog.is_whole``), it fails for every update and
    delete of a row that is not there. With ``on_missing`` ``report`` these do not fail: a value that no row has is
    null, and they are among ``missing_rows``. ``summary`` is what is known of the changes already. ``is_small`` says
    that the rows before are so few that shuffling them all costs less than looking for those that are touched.
    ``within`` reads the changes of a phase, where that costs less than to read all of them for each. Raises
    ChangeLogError as ``counted_changes`` does.
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
    """Return the changes of rows that must be there and are not, as ``advance`` with the same arguments meets them.

    They are updates and deletes, by ``_commit_lsn, _seq, _op``; ``_row`` is the key that they name, or the whole old
    row, as JSON; ``_unchanged`` are the columns that were left out, and so are not known. A row that an update
    changes is there from then on.
    """
    _, steps = _walk(before, changes, table, None, NO_DEMAND, within)
    found = (unmatched_changes(step.stored, step.counted, step.replay(), step.survey) for step in steps)
    return reduce(lambda one, other: as_leaf(one).unionAll(other), found)


def _walk(
    before: DataFrame | None,
    changes: DataFrame,
    table: Table,
    summary: ChangeSummary | None,
    demand: Demand,
    within: PhaseReader | None,
    is_small: bool = False,
) -> tuple[DataFrame, list[ReplayPhase]]:
    """Return the rows after changes, and the steps that lead to them, one a phase."""

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
    """How a rebuilt table and its source differ."""

    rows: int
    """Rows in the source."""
    rebuilt_rows: int
    """Rows in the rebuilt table."""
    missing: int
    """Rows of the source that were not rebuilt (equal rows are counted one by one)."""
    unexpected: int
    """Rebuilt rows that the source does not have."""
    examples: tuple[str, ...]
    """A few of both, each with a ``-`` (missing) or a ``+`` (unexpected) before it."""

    @property
    def equal(self) -> bool:
        """Whether both have the same rows."""
        return not (self.missing or self.unexpected)


def compare(state: DataFrame, source: pa.Table) -> Comparison:
    """Compare a rebuilt table with its source, both ways, row by row; rows that occur several times count as often.

    Values are the same as ``equality.py`` has it: 0.0 is not -0.0. ``state`` is as ``OpenLog.state`` returns it,
    ``source`` has the same columns in Arrow's types, such as ``postgres.fetch_table`` fetches them from the server.
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
    """Compare in one pass: equal rows of both sides meet in one group, whose sides come to 0."""
    groups = both.groupBy("row").agg(F.sum("side").alias("more"), F.count("side").alias("rows"))
    sums = ("(rows - more) div 2", "(rows + more) div 2", "greatest(-more, 0)", "greatest(more, 0)")
    totals = groups.agg(*(F.sum(F.expr(each)) for each in sums)).first()
    rows, rebuilt_rows, missing, unexpected = (total or 0 for total in totals or [0] * len(sums))
    differ = (groups.where(f"{sign}more > 0").take(_EXAMPLES) if missing or unexpected else () for sign in "-+")
    examples = [f"{sign} {row['row'].asDict()}" for sign, found in zip("-+", differ, strict=True) for row in found]
    return Comparison(rows, rebuilt_rows, missing, unexpected, tuple(examples))


_TEXTS = T.ArrayType(T.StringType())


def remaining_rows(
    before: DataFrame | None,
    changes: DataFrame,
    replay: Replay,
    found: ChangeSurvey,
    names: Sequence[str],
    demand: Demand,
    apart: bool,
) -> DataFrame:
    """Return the rows after changes: ``names``, ``_untyped``, ``_commit_lsn`` and ``_seq``; both have ``__shape``.

    With ``apart`` rows before that nothing touches are left where they are. What is demanded and is not so makes an
    action fail.
    """
    events, left = replay_events(before, changes, replay, found, apart)
    # What full rows are replayed by is in their columns.
    events = events.drop("_commit_time", EPOCH, *(["_unchanged"] if replay.keys is None else []))
    chosen = [*names, "_untyped", *POSITION]

    def emit(done: ReplayResult, is_end: bool) -> pa.Table:
        _check(done, demand)
        found = done.rows(done.open if is_end else done.open[:0], names)
        places = {name: done.change_column(name, done.open if is_end else done.open[:0]) for name in POSITION}
        return pa.table({name: (found | places)[name] for name in chosen})

    rows = replay_rows(events, replay, emit, T.StructType([events.schema[name] for name in chosen]))
    if left is None:
        return rows
    mine = F.map_filter("_untyped", lambda name, _: name.isin(list(names)))
    untyped = F.when(F.size(mine) > 0, mine).alias("_untyped")
    return rows.unionAll(left.select(*map(column, names), untyped, *POSITION))


def _check(done: ReplayResult, demand: Demand) -> None:
    """Raise ChangeLogError for what is demanded and is not so."""
    if demand.rows and len(done.missing):
        event = done.missing[:1]
        raise demand.row_error(*_place(done, event), _shown(done.old_rows(event), done.rule.identity))


def _place(done: ReplayResult, event: Numbers) -> tuple[int, int]:
    lsn, seq = (done.change_column(name, event)[0].as_py() for name in POSITION)
    return lsn, seq


def _shown(row: Mapping[str, pa.Array], names: Sequence[str]) -> str:
    texts = dict(row["_untyped"][0].as_py() or ())
    values = {name: texts.get(name, row[name][0].as_py()) for name in names}
    known = {name: value for name, value in values.items() if value is not None}
    return json.dumps(known, default=str, ensure_ascii=False, separators=(",", ":"))  # as Spark's to_json writes it


def unmatched_changes(before: DataFrame | None, changes: DataFrame, replay: Replay, found: ChangeSurvey) -> DataFrame:
    """Return the updates and deletes whose rows are not there: ``_commit_lsn, _seq, _op, _row, _unchanged``.

    ``_row`` is the key, or the row, that was to be found: texts by column.
    """
    events, _ = replay_events(before, changes, replay, found, apart=True)
    kept, names = (*POSITION, "_op", "_unchanged"), [*replay.identity, "_untyped"]

    def emit(done: ReplayResult, is_end: bool) -> pa.Table:
        old = done.old_rows(done.missing)
        arrays = [*(done.change_column(name, done.missing) for name in kept), *(old[name] for name in names)]
        return pa.Table.from_arrays(arrays, [*kept, *(f"c{number}" for number in range(len(names)))])

    fields = [T.StructField(f"c{number}", events.schema[name].dataType) for number, name in enumerate(names)]
    rows = replay_rows(events, replay, emit, T.StructType([*(events.schema[name] for name in kept), *fields]))
    texts, parts = F.col(f"c{len(replay.identity)}"), list[Column]()
    for number, name in enumerate(replay.identity):
        value, kind = F.col(f"c{number}"), events.schema[name].dataType
        text = F.hex(value) if isinstance(kind, T.BinaryType) else value.cast("string")
        parts += [F.lit(name), F.coalesce(texts[F.lit(name)], text)]
    row = F.create_map(*parts).cast("map<string,string>").alias("_row")
    open_columns = F.array(*map(F.lit, replay.open_columns)).cast(_TEXTS)
    unchanged = F.coalesce(F.array_intersect("_unchanged", open_columns), F.array().cast(_TEXTS))
    return rows.select(*POSITION, "_op", row, unchanged.alias("_unchanged"))


def texts_within(names: Collection[str], untyped: Column | None = None) -> Column:
    """Return of ``_untyped`` the texts of some columns; null for none."""
    given = F.col("_untyped") if untyped is None else untyped
    return merge_untyped(F.map_filter(given, lambda name, _: name.isin(list(names))))
