"""The rows of a table whose identity is the full row: equal ones are counted, in the order of the changes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812

from pgoutput_construct.spark.alike import AlikeRows
from pgoutput_construct.spark.replay import replayed
from pgoutput_construct.spark.schemas import CHANGE
from pgoutput_construct.spark.survey import CAME, GONE, is_unsent
from pgoutput_construct.spark.values import BEFORE, NEW, exact, restored, texts, untyped_of, written

__all__ = ["Counted", "counted"]

_ORDER: Final = ("_turn", "_commit_lsn", "_seq", "_came")
"""Rows that were there before; then changes, and of one change the row that goes before the one that comes."""


@dataclass(frozen=True)
class Counted:
    """A table whose rows are told apart by all their columns. In frames its columns have numbers: ``c0``, ``c1``."""

    own: tuple[str, ...]
    """All columns that the changes have."""
    names: tuple[str, ...]
    """Those of the rows that are asked for."""
    kinds: Mapping[str, T.DataType]
    """Types, by column."""
    shapes: tuple[frozenset[str], ...]
    """The columns that changes, and rows before, were described with; their ``_shape`` says which of these."""
    unsent: frozenset[str]
    """The columns that some update left out, which ``_before`` has then."""

    @classmethod
    def of(
        cls, changes: DataFrame, names: Sequence[str], shapes: Sequence[frozenset[str]], unsent: frozenset[str]
    ) -> "Counted":
        """Return that of a table which now has the columns ``names``."""
        kinds = {field.name: field.dataType for field in changes.schema if field.name not in (*CHANGE, "_shape")}
        return cls(tuple(kinds), tuple(names), kinds, tuple(shapes), unsent)

    @cached_property
    def shared(self) -> tuple[str, ...]:
        """The columns that all rows were described with."""
        return tuple(name for name in self.own if all(name in shape for shape in self.shapes))

    def place(self, name: str) -> str:
        """Return what a column is called in frames."""
        return f"c{self.own.index(name)}"

    def compared(self, name: str) -> Column:
        """Return a column's value where it was described, else null."""
        value = exact(F.col(self.place(name)), self.kinds[name])
        return value if name in self.shared else F.when(self.has(name), value)

    def has(self, name: str) -> Column:
        """Tell whether a column was described."""
        return F.col("_shape").isin([number for number, shape in enumerate(self.shapes) if name in shape])


def counted(before: DataFrame | None, changes: DataFrame, table: Counted) -> DataFrame:
    """Return the rows after changes: the columns, ``_untyped``, ``_commit_lsn`` and ``_seq``, as ``before`` has them.

    Both have ``_shape``. An update takes a row away, and adds another; a delete takes the oldest of the rows that are
    equal in the columns which both were described with, and of these one that has most of them; or none. Rows before
    that no change takes away are left as they are.
    """
    events = _sides(changes, table)
    if before is None:
        return _left(events, table)
    stored = before.withColumn("_hash", _hash(table, NEW.value))
    taken = events.where(~F.col("_came")).select(_hash(table, lambda name: F.col(table.place(name))).alias("_hash"))
    touched = stored.join(taken, "_hash", "left_semi")
    own = [*map(NEW.value, table.names), "_untyped", "_commit_lsn", "_seq"]
    untouched = stored.join(taken, "_hash", "left_anti").select(*own)
    return untouched.unionAll(_left(events.unionByName(_stored(touched, table)), table))


def _hash(table: Counted, value: Callable[[str], Column]) -> Column:
    """Return a number that is the same for rows that may be equal."""
    return F.xxhash64(F.lit(0), *(value(name) for name in table.shared))


def _sides(changes: DataFrame, table: Counted) -> DataFrame:
    """Return the rows that come and go."""
    op, both = F.col("_op"), F.array(F.lit(False), F.lit(True))
    has_old = F.col("_before").isNotNull() if table.own else op != CAME
    came = F.when(op == GONE, F.array(F.lit(False))).when(has_old, both).otherwise(F.array(F.lit(True)))
    sides = changes.withColumn("_came", F.explode(came))

    def pick(name: str, new: Column, old: Column) -> Column:
        is_old = ~F.col("_came")
        if name in table.unsent:
            is_old |= is_unsent(name) & F.col("_before").isNotNull()
        return F.when(is_old, old).otherwise(new)

    return _events(
        sides,
        table,
        1,
        lambda name: pick(name, NEW.value(name), BEFORE.value(name)),
        lambda name: pick(name, NEW.text(name), BEFORE.text(name)),
    )


def _stored(rows: DataFrame, table: Counted) -> DataFrame:
    """Return rows that were there before as rows that come first."""
    return _events(rows.withColumn("_came", F.lit(True)), table, 0, NEW.value, NEW.text)


def _events(
    rows: DataFrame, table: Counted, turn: int, value: Callable[[str], Column], text: Callable[[str], Column]
) -> DataFrame:
    return rows.select(
        *(value(name).alias(table.place(name)) for name in table.own),
        F.when(F.col("_untyped").isNotNull(), texts([text(name) for name in table.own])).alias("_texts"),
        "_shape",
        F.lit(turn).alias("_turn"),
        "_commit_lsn",
        "_seq",
        "_came",
    )


def _left(events: DataFrame, table: Counted) -> DataFrame:
    if len(table.shapes) == 1:
        return _folded(events, table)
    alike = events.withColumn("_component", _hash(table, lambda name: F.col(table.place(name))))
    of_one = Window.partitionBy("_component")
    alike = alike.withColumn("_mixed", F.min("_shape").over(of_one) != F.max("_shape").over(of_one))
    return _folded(alike.where("NOT _mixed"), table).unionAll(_replayed(alike.where("_mixed"), table))


def _folded(events: DataFrame, table: Counted) -> DataFrame:
    """Return the rows that are left where equal ones have one shape: they are groups, and their changes are counted."""
    others = [table.place(name) for name in table.names if name not in table.shared]
    group = [table.compared(name).alias(f"g{number}") for number, name in enumerate(table.own)]
    known = F.transform(
        F.array(*(F.when(table.has(name), F.lit(name)) for name in table.own)).cast("array<string>"),
        lambda name, number: F.when(name.isNotNull(), F.col("_texts")[number]),
    )
    group.append(F.when(F.col("_texts").isNotNull(), known).alias("_known"))
    changes = F.array_sort(F.collect_list(F.struct(*_ORDER, *others, *(["_texts"] if others else []))))
    groups = (
        events.groupBy(*group, "_shape")
        .agg(changes.alias("_changes"))
        .withColumn("_count", F.aggregate("_changes", F.lit(0), _counted_on))
    )
    came = F.filter("_changes", lambda change: change["_came"])
    last = F.slice(came, F.size(came) - F.col("_count") + 1, F.col("_count"))
    left = groups.where("_count > 0").withColumn("_one", F.explode(last))
    values, all_texts = {}, {}
    for name in table.names:
        number = table.own.index(name)
        is_shared = name in table.shared
        values[name] = (
            restored(F.col(f"g{number}"), table.kinds[name]) if is_shared else F.col(f"_one.{table.place(name)}")
        )
        all_texts[name] = F.col("_known" if is_shared else "_one._texts")[number]
    return left.select(
        *(value.alias(name) for name, value in values.items()),
        untyped_of(all_texts).alias("_untyped"),
        "_one._commit_lsn",
        "_one._seq",
    )


def _counted_on(total: Column, change: Column) -> Column:
    return F.when(change["_came"], total + 1).otherwise(F.greatest(total - 1, F.lit(0)))


def _replayed(events: DataFrame, table: Counted) -> DataFrame:
    """Return the rows that are left where they were described with different columns: one change after the other."""
    texts_of = [
        part
        for number, name in enumerate(table.own)
        for part in (written(F.col(table.place(name)), table.kinds[name]), F.col("_texts")[number])
    ]
    changes = events.withColumns(
        {
            "_key": F.array(*texts_of).cast("array<string>"),
            "_former": F.lit(None).cast("array<string>"),
            "_unchanged": F.lit(None).cast("array<string>"),
            "_gone": ~F.col("_came"),
        }
    )
    positions = [frozenset(place for place, name in enumerate(table.own) if name in shape) for shape in table.shapes]
    columns = [*(table.place(name) for name in table.names), "_texts", "_commit_lsn", "_seq"]
    rows = replayed(changes, columns, _ORDER, lambda: AlikeRows(positions), pa.schema([]))
    untyped = untyped_of({name: F.col("_texts")[table.own.index(name)] for name in table.names})
    return rows.select(
        *(F.col(table.place(name)).alias(name) for name in table.names),
        untyped.alias("_untyped"),
        "_commit_lsn",
        "_seq",
    )
