"""A table's current rows, rebuilt in Spark from its changes, and what a batch of changes comes to."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark.change_frames import (
    CHANGE,
    SHAPE,
    WORK,
    Seen,
    Survey,
    after,
    column,
    survey,
    texts_within,
)
from pgoutput_construct.spark.changed import Replay
from pgoutput_construct.spark.equality import exact
from pgoutput_construct.spark.execution import Demand, plain_errors
from pgoutput_construct.spark.keyed import advanced, net_rows, netted
from pgoutput_construct.spark.layout import Layout
from pgoutput_construct.spark.outcomes import remaining
from pgoutput_construct.wire.protocol import RelationReplicaIdentity

__all__ = ["NET", "Comparison", "Step", "compare", "current_state", "net_changes", "stepped"]

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
    step = Step(None, events, tuple(key_columns), replica_identity, names, (frozenset(own),))
    return stepped(step, Demand()).drop("_commit_lsn", "_seq")


def net_changes(
    changes: DataFrame, key_columns: Sequence[str], columns: Sequence[str], seen: Seen | None = None
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
    ``seen`` is what is known of the changes already; else they are read once to find it.
    Raises ChangeLogError for a column that is named as one of these.
    """
    for name in columns:
        if name in NET:
            raise ChangeLogError(f"the column {name!r} is named as one of the net changes: rename it")
    found = survey(changes, key_columns, columns, seen)
    layout = Layout.of(changes, key_columns, columns, found)
    return net_rows(netted(after(changes, found.truncated), layout, found), layout)


@dataclass(frozen=True)
class Step:
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
    seen: Seen | None = None
    """What is known of the changes already."""
    is_small: bool = False
    """Whether the rows before are so few that they may all be shuffled."""

    def __post_init__(self) -> None:
        for name in ({*self.changes.columns} - {SHAPE} | {*self.columns}).intersection(WORK):
            raise ChangeLogError(f"the column {name!r} is named as one that rebuilding a state needs; rename it")

    @property
    def is_full(self) -> bool:
        """Whether rows are told apart by all their columns."""
        return self.replica_identity == RelationReplicaIdentity.FULL

    @cached_property
    def survey(self) -> Survey:
        """What the changes have in them; they are read once for it where nobody has seen them."""
        found = survey(self.changes, self.key_columns, self.columns, self.seen)
        has_stored = self.before is not None and (self.is_small or bool(found.unsent))
        return found._replace(untyped=True) if has_stored else found  # values of these rows may have texts

    @property
    def stored(self) -> DataFrame | None:
        """The rows before, unless a truncate took them."""
        return None if self.survey.truncated is not None else self.before

    @property
    def counted(self) -> DataFrame:
        """The changes after the last truncate."""
        return after(self.changes, self.survey.truncated)

    def replay(self) -> Replay:
        """Return how the changes are replayed one by one."""
        own = tuple(name for name in self.changes.columns if name not in (*CHANGE, SHAPE))
        unsent = tuple(name for name in own if name in self.survey.unsent)
        return Replay(own, None if self.is_full else self.key_columns, unsent, self.shapes)

    def by_keys(self) -> Layout:
        """Return the table as rows that have keys."""
        return Layout.of(self.changes, self.key_columns, self.columns, self.survey)


def stepped(step: Step, demand: Demand) -> DataFrame:
    """Return the rows after changes: ``columns``, ``_untyped``, ``_commit_lsn`` and ``_seq``.

    What is demanded and is not so makes an action fail.
    """
    replay = step.replay()
    if step.is_full:
        apart = not step.is_small
        return remaining(step.stored, step.counted, replay, step.survey, step.columns, demand, apart)
    if step.key_columns:
        return advanced(step.stored, step.counted, step.by_keys(), step.survey, demand, step.is_small)
    rows = step.counted.select(*_row(step.columns))
    return rows if step.stored is None else rows.unionAll(step.stored.select(*_row(step.columns)))


def _row(columns: Sequence[str]) -> list[Column]:
    """Return the columns of rows, and of ``_untyped`` what is theirs."""
    return [*map(column, columns), texts_within(columns).alias("_untyped"), F.col("_commit_lsn"), F.col("_seq")]


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
