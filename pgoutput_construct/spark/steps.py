"""The rows of a table after changes that one identity tells apart."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

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
from pgoutput_construct.spark.execution import Demand
from pgoutput_construct.spark.keyed import advanced
from pgoutput_construct.spark.layout import Layout
from pgoutput_construct.spark.outcomes import remaining
from pgoutput_construct.wire.protocol import RelationReplicaIdentity

__all__ = ["Step", "stepped"]


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
    if step.is_full or (step.is_small and step.survey.chained and replay.open_ones):
        apart = not step.is_small
        return remaining(step.stored, step.counted, replay, step.survey, step.columns, demand, apart)
    if step.key_columns:
        return advanced(step.stored, step.counted, step.by_keys(), step.survey, demand, step.is_small)
    rows = step.counted.select(*_row(step.columns))
    return rows if step.stored is None else rows.unionAll(step.stored.select(*_row(step.columns)))


def _row(columns: Sequence[str]) -> list[Column]:
    """Return the columns of rows, and of ``_untyped`` what is theirs."""
    return [*map(column, columns), texts_within(columns).alias("_untyped"), F.col("_commit_lsn"), F.col("_seq")]
