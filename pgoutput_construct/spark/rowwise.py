"""Rows that come and go where the full row is the identity, and what they are compared by."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812

from pgoutput_construct.spark.schemas import CHANGE, SHAPE
from pgoutput_construct.spark.survey import CAME, GONE, is_unsent
from pgoutput_construct.spark.values import BEFORE, NEW, exact, texts

__all__ = ["ORDER", "Counted", "component", "events_of"]

ORDER: Final = ("_turn", "_commit_lsn", "_seq", "_came")
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
    """The columns that changes, and rows before, were described with; their ``__shape`` says which of these."""
    unsent: frozenset[str]
    """The columns that some update left out, which ``_before`` has then."""

    @classmethod
    def of(
        cls, changes: DataFrame, names: Sequence[str], shapes: Sequence[frozenset[str]], unsent: frozenset[str]
    ) -> "Counted":
        """Return that of a table which now has the columns ``names``."""
        kinds = {field.name: field.dataType for field in changes.schema if field.name not in (*CHANGE, SHAPE)}
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


def events_of(before: DataFrame | None, changes: DataFrame, table: Counted) -> tuple[DataFrame, DataFrame | None]:
    """Return what comes and goes in frames, and the rows ``before`` that no change can take away.

    Both have ``__shape``. An update takes a row away, and adds another. Rows that may be taken come first.
    """
    events = _sides(changes, table)
    if before is None:
        return events, None
    stored = before.withColumn("__hash", _hash(table, NEW.value))
    taken = events.where(~F.col("_came")).select(component(table).alias("__hash"))
    touched = stored.join(taken, "__hash", "left_semi")
    return events.unionByName(_stored(touched, table)), stored.join(taken, "__hash", "left_anti").drop("__hash")


def component(table: Counted) -> Column:
    """Return a number that is the same for all rows of frames that may be equal."""
    return _hash(table, lambda name: F.col(table.place(name)))


def _hash(table: Counted, value: Callable[[str], Column]) -> Column:
    """Return a number that is the same for rows that may be equal."""
    return F.xxhash64(F.lit(0), *(value(name) for name in table.shared))


def _sides(changes: DataFrame, table: Counted) -> DataFrame:
    """Return the rows that come and go."""
    op, both = F.col("_op"), F.array(F.lit(False), F.lit(True))
    has_old = F.col("_before").isNotNull() if table.own else op != CAME
    came = F.when(op == GONE, F.array(F.lit(False))).when(has_old, both).otherwise(F.array(F.lit(True)))
    sides = changes.withColumn("__came", F.explode(came))

    def pick(name: str, new: Column, old: Column) -> Column:
        is_old = ~F.col("__came")
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
    return _events(rows.withColumns({"__came": F.lit(True), "_op": F.lit(CAME)}), table, 0, NEW.value, NEW.text)


def _events(
    rows: DataFrame, table: Counted, turn: int, value: Callable[[str], Column], text: Callable[[str], Column]
) -> DataFrame:
    return rows.select(
        *(value(name).alias(table.place(name)) for name in table.own),
        F.when(F.col("_untyped").isNotNull(), texts([text(name) for name in table.own])).alias("_texts"),
        F.col(SHAPE).alias("_shape"),
        F.lit(turn).alias("_turn"),
        "_commit_lsn",
        "_seq",
        "_op",
        F.col("__came").alias("_came"),
    )
