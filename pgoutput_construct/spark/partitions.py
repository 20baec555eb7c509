"""Changes replayed in Spark: those of rows that may be the same come into one task, in their order."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812

from pgoutput_construct.spark.change_frames import (
    BEFORE,
    CAME,
    CHANGED,
    COMPONENT,
    EPOCH,
    GONE,
    NEW,
    SHAPE,
    SIDE,
    STORED,
    TURN,
    Survey,
    column,
    is_unsent,
    moves,
)
from pgoutput_construct.spark.changed import BOTH, COMES, GOES, Replay, Replayed
from pgoutput_construct.spark.components import connect
from pgoutput_construct.spark.equality import exact_key
from pgoutput_construct.spark.execution import as_leaf

__all__ = ["Emit", "component_of", "events_of", "in_parts", "labels_of", "netted", "replayed"]

Emit = Callable[[Replayed, bool], pa.Table]
"""Makes what is asked for of a replay: of what has ended, and, where nothing follows (True), of what is open."""

_Each = Callable[[pa.Table, bool], tuple[pa.Table, pa.Table]]
"""Gives the result of events, and the rows that are carried on where more of their component comes (False)."""

_ORDER: Final = (COMPONENT, TURN, "_commit_lsn", "_seq", SIDE)
_OF_CHANGES: Final = ("_op", "_commit_lsn", "_seq", "_commit_time", "_unchanged")
_OLD: Final = "_before."
"""How the names of old values begin in ``_untyped``."""
_LEAST: Final = 1 << 15
"""Changes that are replayed at once, where there are as many: each time costs some milliseconds."""
_MOST: Final = 1 << 18
"""Changes of one component that are held at once, unless its rows are more."""
_ENDS: Final = 1 << 23
"""How often a change may be the first row of a list (see Alike): where there are many lists, changes are fewer."""
_FEWEST: Final = 1 << 12
"""But not fewer than these."""


def events_of(
    before: DataFrame | None,
    changes: DataFrame,
    replay: Replay,
    found: Survey,
    apart: bool,
    labels: DataFrame | None = None,
) -> tuple[DataFrame, DataFrame | None]:
    """Return rows before and changes by the component that they belong to, and the rows before that nothing touches.

    ``found`` is what the changes have in them. Rows before are told apart from others only where that is asked for,
    ``apart``, and no truncate ends them all. They may have columns of changes, such as ``_op``, and ``__turn``.
    ``labels`` are those of ``labels_of``, where somebody has them already.
    """
    events = _routed(changes, replay, found)
    stored = None if before is None else _stored(before, events, replay)
    if found.chained and replay.open_ones:
        labels = labels_of(changes, replay) if labels is None else labels
        events = _labelled(events, labels)
        stored = None if stored is None else _labelled(stored, labels)
    if stored is None:
        return events, None
    if not apart or replay.truncates or replay.keys == ():
        return events.unionByName(stored), None
    touched = found.few(as_leaf(events.select(COMPONENT).distinct()))  # both joins read it
    return events.unionByName(stored.join(touched, COMPONENT, "left_semi")), stored.join(
        touched, COMPONENT, "left_anti"
    )


def replayed(events: DataFrame, replay: Replay, emit: Emit, schema: T.StructType) -> DataFrame:
    """Return what ``emit`` makes of events, with a schema; a task holds the rows of one component, and a batch."""

    def each(part: pa.Table, is_end: bool) -> tuple[pa.Table, pa.Table]:
        done = replay.run(part, is_end)
        return emit(done, is_end), part.slice(0, 0) if is_end else done.carried()

    return _in_tasks(events, each, max(_FEWEST, min(_MOST, _ENDS // len(replay.alike.of_list))), schema)


def netted(events: DataFrame, replay: Replay, schema: T.StructType) -> DataFrame:
    """Return what events come to (``Replay.net``); a task holds one component, and a batch."""
    names = schema.names

    def each(part: pa.Table, is_end: bool) -> tuple[pa.Table, pa.Table]:
        return replay.net(part).select(names), part.slice(0, 0)

    return _in_tasks(events, each, sys.maxsize, schema)


def labels_of(changes: DataFrame, replay: Replay) -> DataFrame:
    """Return ``__named``, a component, and ``__label``, what it is called with all that chains connect with it."""
    return connect(_links(changes, replay)).withColumnsRenamed({"_key": "__named", "_label": "__label"})


def _in_tasks(events: DataFrame, each: _Each, most: int, schema: T.StructType) -> DataFrame:
    names = events.columns

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in in_parts((batch.rename_columns(names) for batch in batches), each, most):
            yield from table.to_batches()

    # Not by the component itself: Spark takes such a shuffle for superfluous where a join by it comes before, and then
    # may change that join into one that leaves rows where they are (EnsureRequirements.scala, optimizeOutRepartition).
    ordered = events.repartition(F.xxhash64(COMPONENT)).sortWithinPartitions(*_ORDER)
    # PySpark looks the columns up by their names, which may have dots.
    return ordered.toDF(*(f"c{number}" for number in range(len(names)))).mapInArrow(run, schema)


def in_parts(batches: Iterable[pa.RecordBatch], each: _Each, most: int) -> Iterator[pa.Table]:
    """Yield what ``each`` makes of whole components, as soon as they are there; of longer ones in pieces."""
    held = list[pa.Table]()
    for batch in batches:
        if not batch.num_rows:
            continue
        held.append(pa.Table.from_batches([batch]))
        first, last = held[0][COMPONENT][0].as_py(), batch[COMPONENT][-1].as_py()
        size = sum(map(len, held))
        if first != last and size >= min(_LEAST, most):
            table = pa.concat_tables(held)
            begin = int(np.searchsorted(table[COMPONENT].to_numpy(), last))
            yield each(table.slice(0, begin), True)[0]
            held = [table.slice(begin)]
        elif first == last and size > most + 2 * len(held[0]):
            found, carried = each(pa.concat_tables(held), False)
            yield found
            held = [carried] if len(carried) else []
    if held:
        yield each(pa.concat_tables(held), True)[0]


def _routed(changes: DataFrame, replay: Replay, found: Survey) -> DataFrame:
    """Return changes by component, those whose two rows are in different ones once for each."""
    kinds = {name: changes.schema[name].dataType for name in _hashed(replay)}
    old, new = component_of(BEFORE.value, kinds), component_of(_new(replay), kinds)
    op, sides = F.col("_op"), F.array(F.lit(BOTH))
    twice = F.array(F.lit(GOES), F.lit(COMES))
    if replay.keys is None:
        sides = F.when(~op.isin(CAME, GONE), twice).otherwise(sides)
    elif found.moved:
        is_apart = moves(changes, replay.keys)
        if found.chained:
            is_apart &= ~_leaves_open(replay)
        sides = F.when(is_apart, twice).otherwise(sides)
    if replay.keys == ():
        old = new = F.xxhash64("_commit_lsn", "_seq")
    events = changes.withColumn(SIDE, F.explode(sides))
    is_old = (op == GONE) | (F.col(SIDE) == GOES)
    if replay.keys is None and replay.columns:
        events = events.where(~is_old | F.col("_before").isNotNull())
    return events.select(
        *(_rows_of(events, replay, is_old, found.untyped)),
        *_OF_CHANGES,
        F.col(SHAPE) if SHAPE in changes.columns else F.lit(0).alias(SHAPE),
        SIDE,
        F.when(is_old, old).otherwise(new).alias(COMPONENT),
        F.lit(CHANGED).alias(TURN),
        F.lit(None).cast("bigint").alias(EPOCH),
    )


def _rows_of(events: DataFrame, replay: Replay, is_old: Column, untyped: bool) -> list[Column]:
    """Return the rows of events: new ones, and what is needed of ``_before``; of full rows each event has one.

    What no event has is not there: it would cost as much as what is on the way into Python.
    """
    new = _new(replay)
    if replay.keys is not None or not replay.columns:
        before = F.struct(*(BEFORE.value(name).alias(name) for name in replay.identity), F.lit(True).alias("__is"))
        # Of a table that never had columns there is no ``_before``.
        has_old = F.col("_before").isNotNull() if "_before" in events.columns else F.lit(False)
        needed = has_old & ((F.col(SIDE) != COMES) | (F.size("_unchanged") > 0))
        values = [F.when(~is_old, column(name)).alias(name) for name in replay.columns]
        return [*values, "_untyped", F.when(needed, before).alias("_before")]
    values = [F.when(is_old, BEFORE.value(name)).otherwise(new(name)).alias(name) for name in replay.columns]
    if not untyped:  # Spark generates no code for the functions of maps, nor for what stands next to them
        return [*values, F.lit(None).cast("map<string,string>").alias("_untyped")]
    olds = F.map_filter("_untyped", lambda name, _: name.startswith(_OLD))
    texts = F.transform_keys(olds, lambda name, _: F.substr(name, F.lit(len(_OLD) + 1)))
    kept = F.map_concat(
        F.map_filter("_untyped", lambda name, _: ~name.startswith(_OLD)),
        F.map_filter(texts, lambda name, _: F.array_contains("_unchanged", name)),
    )
    return [*values, F.when(is_old, texts).otherwise(kept).alias("_untyped")]


def _stored(before: DataFrame, events: DataFrame, replay: Replay) -> DataFrame:
    """Return rows before as events."""
    kinds = {field.name: field.dataType for field in events.schema}
    identity = {name: kinds[name] for name in _hashed(replay)}
    hashed = F.xxhash64("_commit_lsn", "_seq") if replay.keys == () else component_of(NEW.value, identity)
    made = {
        "_op": F.lit(CAME),
        "_unchanged": F.array().cast("array<string>"),
        TURN: F.lit(STORED),
        SIDE: F.lit(BOTH),
        COMPONENT: hashed,
    }

    def value(name: str) -> Column:
        has = name in before.columns and name not in (COMPONENT, SIDE)
        if name == "_unchanged" and has:
            return F.coalesce(column(name), made[name])
        return column(name) if has else made.get(name, F.lit(None))

    return before.select(*(value(name).cast(kinds[name]).alias(name) for name in events.columns))


def _new(replay: Replay) -> Callable[[str], Column]:
    """Return what gives a column of the new row; one of the identity that was left out is in the old one."""

    def value(name: str) -> Column:
        if name not in replay.unsent:
            return NEW.value(name)
        return F.when(is_unsent(name) & F.col("_before").isNotNull(), BEFORE.value(name)).otherwise(NEW.value(name))

    return value


def _hashed(replay: Replay) -> list[str]:
    """Return the columns that rows which may be the same have in common."""
    shapes = replay.shapes if replay.keys is None else ()
    return [name for name in replay.identity if all(name in shape for shape in shapes)]


def component_of(value: Callable[[str], Column], kinds: Mapping[str, T.DataType]) -> Column:
    """Return a number that rows which may be the same have in common; with others they are replayed together, too.

    Spark's hash of 0.0 is that of -0.0: where a key goes from one to the other, no link would be seen.
    """
    return F.xxhash64(F.lit(0), *exact_key(value, kinds))


def _leaves_open(replay: Replay) -> Column:
    names = F.array(*map(F.lit, replay.open_ones)).cast("array<string>")
    return F.coalesce(F.arrays_overlap("_unchanged", names), F.lit(False))


def _links(changes: DataFrame, replay: Replay) -> DataFrame:
    """Return the components that updates connect: a row takes values along when its key changes."""
    assert replay.keys is not None
    chained = changes.where(moves(changes, replay.keys) & _leaves_open(replay))
    kinds = {name: changes.schema[name].dataType for name in _hashed(replay)}
    return chained.select(
        component_of(BEFORE.value, kinds).alias("_old"), component_of(_new(replay), kinds).alias("_new")
    )


def _labelled(rows: DataFrame, labels: DataFrame) -> DataFrame:
    found = rows.join(labels, F.col(COMPONENT) == F.col("__named"), "left")
    return found.withColumn(COMPONENT, F.coalesce("__label", COMPONENT)).drop("__named", "__label")
