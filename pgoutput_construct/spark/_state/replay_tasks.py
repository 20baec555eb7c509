"""Changes replayed in Spark: those of rows that may be the same come into one task, in their order.

A *component* is a hash of what such rows have in common: the key, or the full row. Tasks replay component by component,
in batches: between two batches of a component only its open rows are carried on. Equal rows, of which only the order
matters, are spilled to disk beyond what the next batch can take (``SpilledRows``), so that the memory of a task depends
neither on the size of a table nor on how many of its rows are equal.
"""

import os
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812

from pgoutput_construct.changelog._segment.block import Flags, Numbers
from pgoutput_construct.spark._execution import as_leaf
from pgoutput_construct.spark._log_view.change_columns import (
    BEFORE,
    CHANGED,
    COMPONENT,
    DELETE,
    EPOCH,
    INSERT,
    NEW,
    POSITION,
    SHAPE,
    SIDE,
    STORED,
    TURN,
    column,
    is_unsent,
)
from pgoutput_construct.spark._state.change_survey import ChangeSurvey, moves_key
from pgoutput_construct.spark._state.equality import exact_key
from pgoutput_construct.spark._state.row_replay import BOTH, COMES, GOES, LOST, Replay, ReplayResult

Emit = Callable[[ReplayResult, bool], pa.Table]
"""Makes the result of a replay: from rows that have ended, and, where nothing follows (True), from open ones."""
_Each = Callable[[pa.Table, bool], tuple[pa.Table, pa.Table, Numbers]]
"""Gives the result of events and, where the component continues (False), the rows that are carried on, with the
events by which they came.
"""
_ORDER: Final = (COMPONENT, TURN, "_commit_lsn", "_seq", SIDE)
_OF_CHANGES: Final = ("_op", "_commit_lsn", "_seq", "_commit_time", "_unchanged")
_OLD: Final = "_before."
"""The prefix of old values in ``_untyped``."""
_LEAST: Final = 1 << 15
"""Changes that are replayed at once, if there are as many: each replay takes some milliseconds."""
_MOST: Final = 1 << 18
"""The most changes of one component that are held at once."""
_ENDS: Final = 1 << 23
"""The product of changes and lists (see RowMatching) that is held at once: with many lists, changes are fewer,"""
_FEWEST: Final = 1 << 12
"""but not fewer than these."""


def replay_events(
    before: DataFrame | None,
    changes: DataFrame,
    replay: Replay,
    found: ChangeSurvey,
    apart: bool,
) -> tuple[DataFrame, DataFrame | None]:
    """Return rows before and changes as events, by component; and the rows before that no change touches.

    Args:
        before: The rows before; they may have columns of changes, such as ``_op``, and ``__turn``. None for none.
        changes: The changes.
        replay: How they are replayed.
        found: What they contain.
        apart: Whether to separate untouched rows, which is possible if no truncate removes all rows.
    """
    events = _routed_changes(changes, replay, found)
    stored = None if before is None else _stored_events(before, events, replay)
    if stored is None:
        return events, None
    if not apart or replay.truncates or replay.keys == ():
        return events.unionByName(stored), None
    touched = found.broadcast_if_few(as_leaf(events.select(COMPONENT).distinct()))  # both joins read it
    return events.unionByName(stored.join(touched, COMPONENT, "left_semi")), stored.join(
        touched, COMPONENT, "left_anti"
    )


def replay_rows(events: DataFrame, replay: Replay, emit: Emit, schema: T.StructType) -> DataFrame:
    """Return what ``emit`` makes of events.

    A task holds one batch and the open rows of its component; of equal ones no more than a batch takes.

    Args:
        events: The events, see ``replay_events``.
        replay: How they are replayed.
        emit: Makes the result.
        schema: Its columns.
    """
    names, most = events.columns, max(_FEWEST, min(_MOST, _ENDS // len(replay.matching.of_list)))

    def each(part: pa.Table, is_end: bool) -> tuple[pa.Table, pa.Table, Numbers]:
        done = replay.run(part, is_end)
        return emit(done, is_end), part.slice(0, 0) if is_end else done.carried(), done.open

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in replay_in_parts((batch.rename_columns(names) for batch in batches), each, replay.equal, most):
            yield from table.to_batches()

    # Not by the component itself: Spark takes such a shuffle for superfluous where a join by it comes before, and then
    # may change that join into one that leaves rows where they are (EnsureRequirements.scala, optimizeOutRepartition).
    ordered = events.repartition(F.xxhash64(COMPONENT)).sortWithinPartitions(*_ORDER)
    # PySpark looks the columns up by their names, which may have dots.
    return ordered.toDF(*(f"c{number}" for number in range(len(names)))).mapInArrow(run, schema)


def replay_in_parts(
    batches: Iterable[pa.RecordBatch], each: _Each, equal: Callable[[pa.Table], Numbers], most: int
) -> Iterator[pa.Table]:
    """Yield what ``each`` makes of whole components as soon as they are complete, of longer ones in parts.

    Args:
        batches: Events, ordered by component.
        each: Replays a table of them.
        equal: Numbers rows, equal ones alike: of these few are held, see SpilledRows.
        most: The most events of a component that are held.
    """
    held, spilled = list[pa.Table](), SpilledRows(equal, min(_LEAST, most))
    try:
        for batch in batches:
            if not batch.num_rows:
                continue
            held.append(pa.Table.from_batches([batch]))
            first, last = held[0][COMPONENT][0].as_py(), batch[COMPONENT][-1].as_py()
            size = sum(map(len, held))
            if first != last and size >= min(_LEAST, most):
                table = pa.concat_tables(_filled(held, spilled))
                begin = int(np.searchsorted(table[COMPONENT].to_numpy(), last))
                yield from _ended(table.slice(0, begin), each, spilled)
                held = [table.slice(begin)]
            elif first == last and size > most + 2 * len(held[0]):
                held = _filled(held, spilled)
                found, carried, events = each(pa.concat_tables(held), False)
                yield found
                carried = spilled.refilled(spilled.spill(carried, events >= len(held[0])), 1)
                held = [carried] if len(carried) else []
        if held:
            yield from _ended(pa.concat_tables(_filled(held, spilled)), each, spilled)
    finally:
        spilled.close()


class SpilledRows:
    """The open rows of one component that equal ones precede: they are in files on the executor's disk.

    Only their order tells equal rows apart: the first that came is the first that goes. So of each run of equal rows
    the first N are all that N changes can take. The others are in files, in order, and come back as these go. Rows that
    were described with other columns, or came after a truncate, are not equal in this sense.
    """

    def __init__(self, equal: Callable[[pa.Table], Numbers], most: int) -> None:
        """``equal`` gives each row a number, equal ones the same; the first ``most`` of these need not wait."""
        self._equal, self._most = equal, most
        self._examples = list[pa.Table]()
        self._files = list[deque[Path]]()
        """The files of each run of equal rows, as its example."""
        self._written = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def spill(self, rows: pa.Table, is_new: Flags) -> pa.Table:
        """Spill rows, and those that are ``is_new`` after equal spilled ones; return the others."""
        numbers, found = self._numbered(rows)
        runs = {number: run for run, number in enumerate(found.tolist())}
        # Those that are not new came before all that wait.
        is_last = np.isin(numbers, found[[bool(files) for files in self._files]]) & is_new
        waits = is_last | (_ranks(numbers) >= self._most)
        for number in np.unique(numbers[waits]).tolist():
            mine = waits & (numbers == number)
            if number not in runs:
                runs[number] = len(self._files)
                self._examples.append(rows.slice(int(np.flatnonzero(mine)[0]), 1))
                self._files.append(deque())
            files = self._files[runs[number]]
            files.extendleft(reversed(self._write(rows.filter(pa.array(mine & ~is_last)))))
            files.extend(self._write(rows.filter(pa.array(mine & is_last))))
        return rows.filter(pa.array(~waits))

    def refilled(self, rows: pa.Table, least: int) -> pa.Table:
        """Return rows and, where fewer than ``least`` of them are equal, spilled ones of their run."""
        if not any(self._files):
            return rows
        numbers, runs = self._numbered(rows)
        more = list[pa.Table]()
        for run, files in zip(runs.tolist(), self._files, strict=True):
            there = int(np.count_nonzero(numbers == run))
            while there < least and files:
                more.append(_read(files.popleft()))
                there += len(more[-1])
        return pa.concat_tables([rows, *more]).sort_by(_WAITING_ORDER) if more else rows

    def rest(self) -> Iterator[pa.Table]:
        """Yield the rows that are still spilled."""
        for files in self._files:
            while files:
                yield _read(files.popleft())
        self._examples, self._files = [], []

    def close(self) -> None:
        """Remove the files."""
        if self._folder is not None:
            self._folder.cleanup()

    def _numbered(self, rows: pa.Table) -> tuple[Numbers, Numbers]:
        """Return the numbers of rows, and those of the runs that wait."""
        count = len(self._examples)
        numbers = self._equal(pa.concat_tables([*self._examples, rows]).combine_chunks())
        return numbers[count:], numbers[:count]

    def _write(self, rows: pa.Table) -> list[Path]:
        """Write rows into files, none of which has more than come back at once."""
        if self._folder is None:
            # Where Spark has what it spills, too; it removes that of a worker which was killed.
            local = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
            self._folder = tempfile.TemporaryDirectory(prefix="waiting-", dir=local or None)
        paths = list[Path]()
        for begin in range(0, len(rows), max(self._most, 1)):
            paths.append(Path(self._folder.name, str(self._written)))
            self._written += 1
            with pa.OSFile(str(paths[-1]), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
                writer.write_table(rows.slice(begin, max(self._most, 1)))
        return paths


def _filled(held: Sequence[pa.Table], spilled: SpilledRows) -> list[pa.Table]:
    """Return open rows, and batches, with as many spilled rows as these may take."""
    going = (pc.and_(pc.not_equal(part["_op"], INSERT), pc.not_equal(part[SIDE], COMES)) for part in held[1:])
    return [spilled.refilled(held[0], sum(pc.sum(each).as_py() or 0 for each in going)), *held[1:]]


def _ended(events: pa.Table, each: _Each, spilled: SpilledRows) -> Iterator[pa.Table]:
    """Yield the result of components that are complete; spilled rows belong to the first of them."""
    yield each(events, True)[0]
    for rows in spilled.rest():
        yield each(rows, True)[0]


def _routed_changes(changes: DataFrame, replay: Replay, found: ChangeSurvey) -> DataFrame:
    """Return changes by component, those whose two rows are in different ones once for each."""
    kinds = {name: changes.schema[name].dataType for name in _component_columns(replay)}
    old, new = component_of(BEFORE.value, kinds), component_of(_new(replay), kinds)
    op, sides = F.col("_op"), F.array(F.lit(BOTH))
    twice = F.array(F.lit(GOES), F.lit(COMES))
    if replay.keys is None and replay.columns:
        goes = F.when(F.col("_before").isNull(), LOST)
        deleted = F.array(goes.otherwise(BOTH))
        sides = F.when(op == DELETE, deleted).when(op != INSERT, F.array(goes.otherwise(GOES), F.lit(COMES)))
        sides = sides.otherwise(F.array(F.lit(BOTH)))
    elif replay.keys is None:
        sides = F.when(~op.isin(INSERT, DELETE), twice).otherwise(sides)
    elif found.moved:
        sides = F.when(moves_key(changes, replay.keys), twice).otherwise(sides)
    if replay.keys == ():
        old = new = F.xxhash64("_commit_lsn", "_seq")
    events = changes.withColumn(SIDE, F.explode(sides))
    is_old = (op == DELETE) | F.col(SIDE).isin(GOES, LOST)
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

    A column that no event has is omitted: passing it into Python would cost as much as one with values.
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


def _stored_events(before: DataFrame, events: DataFrame, replay: Replay) -> DataFrame:
    """Return rows before as events."""
    kinds = {field.name: field.dataType for field in events.schema}
    identity = {name: kinds[name] for name in _component_columns(replay)}
    hashed = F.xxhash64("_commit_lsn", "_seq") if replay.keys == () else component_of(NEW.value, identity)
    made = {
        "_op": F.lit(INSERT),
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
    """Return what gives a column of the new row; an unsent one of the identity is in the old row."""

    def value(name: str) -> Column:
        if name not in replay.unsent:
            return NEW.value(name)
        return F.when(is_unsent(name) & F.col("_before").isNotNull(), BEFORE.value(name)).otherwise(NEW.value(name))

    return value


def _component_columns(replay: Replay) -> list[str]:
    """Return the columns by which components are hashed: those that all shapes of rows have."""
    shapes = replay.shapes if replay.keys is None else ()
    return [name for name in replay.identity if all(name in shape for shape in shapes)]


def component_of(value: Callable[[str], Column], kinds: Mapping[str, T.DataType]) -> Column:
    """Return a hash that equal keys, or rows, have in common; others with the same hash are replayed along with them.

    It is one of exact values (``equality``): Spark's own hash of 0.0 is that of -0.0, so that a key that changes from
    one to the other would not be seen as a link.
    """
    return F.xxhash64(F.lit(0), *exact_key(value, kinds))


_WAITING_ORDER: Final = [(name, "ascending") for name in (TURN, *POSITION, SIDE)]


def _read(path: Path) -> pa.Table:
    with pa.OSFile(str(path), "rb") as file:
        rows = pa.ipc.open_file(file).read_all()
    path.unlink()
    return rows


def _ranks(numbers: Numbers) -> Numbers:
    """Return how many of the same number are before each."""
    order = np.argsort(numbers, kind="stable")
    ranks, ordered = np.empty(len(numbers), np.int64), numbers[order]
    ranks[order] = np.arange(len(numbers)) - np.searchsorted(ordered, ordered)
    return ranks
