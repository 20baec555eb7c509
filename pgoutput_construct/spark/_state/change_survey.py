"""What changes contain, as far as it decides how they are applied: truncates, moved keys, unsent values, texts.

``survey`` reads it from changes; whoever decoded them can report it instead (``summarize``), so that they are not read
once more.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import reduce
from operator import add
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.spark._execution import plain_errors
from pgoutput_construct.spark._log_view.change_columns import (
    BEFORE,
    CHANGE,
    DELETE,
    NEW,
    SHAPE,
    TRUNCATE,
    is_unsent,
    position,
    position_at,
)
from pgoutput_construct.spark._log_view.replicated_tables import ChangePosition
from pgoutput_construct.spark._state.equality import exact
from pgoutput_construct.stream.rows import OPERATIONS, SNAPSHOT
from pgoutput_construct.wire.messages import Insert, Truncate, Update

_BITS: Final = 62
"""Columns per 64-bit number of flags."""
ADDED: Final = pa.array([OPERATIONS[Insert], SNAPSHOT])
"""The operations that add rows."""
_FEW: Final = 200_000
"""The most changes whose keys are broadcast."""
KeyBounds: TypeAlias = tuple[int, int] | tuple[str, str]
"""The least and the greatest of values: texts, integers, or the days or microseconds since 1970 that times are."""


def moves_key(changes: DataFrame, key_columns: Sequence[str]) -> Column:
    """Return whether an update changed the key of its row; an unsent column of the key did not change."""
    same = F.lit(True)
    for name in key_columns:
        kind = changes.schema[name].dataType
        old, new = (exact(side.value(name), kind) for side in (BEFORE, NEW))
        same &= is_unsent(name) | (old.eqNullSafe(new) & BEFORE.text(name).eqNullSafe(NEW.text(name)))
    has_new = ~F.col("_op").isin(DELETE, TRUNCATE)
    return has_new & F.col("_before").isNotNull() & ~same


class ChangeSurvey(NamedTuple):
    """What changes contain; all but their number also counts those before the last truncate."""

    changes: int
    """Their number."""
    truncated: ChangePosition | None
    """The position of the last truncate, which removed all rows before it; None for none."""
    unsent: frozenset[str]
    """Columns that some update did not send: TOASTed values that it did not change."""
    moved: bool
    """Whether some row's key changed."""
    chained: bool
    """Whether one of these updates has unsent values, too, which are to be found under its old key."""
    untyped: bool
    """Whether ``_untyped`` is not null in some change."""

    def broadcast_if_few(self, touched: DataFrame) -> DataFrame:
        """Return the keys that changes touch, broadcast if they are few: rows joined with them are not shuffled.

        Spark does not know the size of a leaf of a plan.
        """
        return F.broadcast(touched) if self.changes <= _FEW else touched


class ChangeSummary(NamedTuple):
    """Upper bounds reported by whoever decoded the changes; the actual values may be lower.

    A rolled-back change, or one that a copy contains, may be among those that were decoded.
    """

    changes: int
    """Their number."""
    truncates: bool
    """Whether a truncate is among them."""
    unsent: frozenset[str]
    """Columns that some update did not send."""
    moved: bool
    """Whether some update has an old row or key."""
    chained: bool
    """Whether one of these has unsent values, too."""
    untyped: bool
    """Whether ``_untyped`` is not null in some change."""
    inserts_only: bool
    """Whether each is an insert, or a row of a table copy; unlike the others no upper bound, but certain where True."""
    bounds: Mapping[str, KeyBounds] = MappingProxyType({})
    """The least and the greatest value of columns of the key, of new and old rows, where some have one and their type
    is one of ``_ORDERED``; without values of which ``_untyped`` has texts.
    """


def survey(
    changes: DataFrame,
    key_columns: Sequence[str] = (),
    columns: Sequence[str] = (),
    summary: ChangeSummary | None = None,
) -> ChangeSurvey:
    """Survey changes of a table.

    Args:
        changes: The changes.
        key_columns: The columns of its key; without one only truncates are looked for.
        columns: The columns of its rows.
        summary: What whoever decoded the changes reports of them: it is enough unless there are truncates. Without it,
            few columns of the changes are read, once.
    """
    if summary is not None and not summary.truncates:
        return ChangeSurvey(summary.changes, None, *summary[2:6])
    others = F.array(*(F.lit(name) for name in columns if name not in key_columns)).cast("array<string>")
    left_out, own = F.size("_unchanged") > 0, [name for name in changes.columns if name not in (*CHANGE, SHAPE)]
    parts = [own[begin : begin + _BITS] for begin in range(0, len(own), _BITS)]
    moved = moves_key(changes, key_columns) if key_columns else F.lit(False)
    with plain_errors():
        (row,) = changes.agg(
            F.count("*").alias("changes"),
            F.max(F.when(F.col("_op") == TRUNCATE, position())).alias("truncated"),
            *(F.bit_or(F.when(left_out, _bits(part))).alias(f"unsent{index}") for index, part in enumerate(parts)),
            F.max(moved).alias("moved"),
            F.max(moved & left_out & F.arrays_overlap("_unchanged", others)).alias("chained"),
            F.max(F.size("_untyped") > 0).alias("untyped"),
        ).collect()
    truncated = None if row["truncated"] is None else (row["truncated"][0], row["truncated"][1])
    flags = [row[f"unsent{index}"] or 0 for index in range(len(parts))]
    found = frozenset(own[index] for index in range(len(own)) if flags[index // _BITS] >> index % _BITS & 1)
    return ChangeSurvey(
        row["changes"], truncated, found, *(bool(row[name]) for name in ("moved", "chained", "untyped"))
    )


def _bits(names: Sequence[str]) -> Column:
    """Return the unsent columns of a change, one bit each: unlike for sets of names, Spark generates code for bits."""
    is_out = (F.array_contains("_unchanged", name) for name in names)
    bits = (F.when(each, F.lit(1 << index).cast("bigint")).otherwise(0) for index, each in enumerate(is_out))
    return reduce(add, bits)


def after_truncate(changes: DataFrame, truncated: ChangePosition | None) -> DataFrame:
    """Return the changes after the last truncate."""
    return changes if truncated is None else changes.where(position() > position_at(truncated))


def combined_summary(one: ChangeSummary, other: ChangeSummary) -> ChangeSummary:
    """Return the summary of the changes of two."""
    moved, chained, untyped = (a or b for a, b in zip(one[3:6], other[3:6], strict=True))
    return ChangeSummary(
        one.changes + other.changes,
        one.truncates or other.truncates,
        one.unsent | other.unsent,
        moved,
        chained,
        untyped,
        one.inserts_only and other.inserts_only,
        {name: _joined(one.bounds.get(name), other.bounds.get(name)) for name in {**one.bounds, **other.bounds}},
    )


def _joined(one: KeyBounds | None, other: KeyBounds | None) -> KeyBounds:
    """Return the bounds of the values of both, of which one has some."""
    known: list[Any] = [each for each in (one, other) if each is not None]
    return min(low for low, _ in known), max(high for _, high in known)


_ORDERED: Final[Sequence[tuple[Callable[[pa.DataType], bool], pa.DataType | None]]] = (
    (pa.types.is_integer, None),
    (pa.types.is_string, None),
    (pa.types.is_date32, pa.int32()),
    (pa.types.is_timestamp, pa.int64()),
)
"""The types whose values Arrow, Spark and the statistics of files order in the same way, and what they are taken as."""


def _bounds(batch: pa.RecordBatch, keys: Collection[str]) -> Iterator[tuple[str, KeyBounds]]:
    """Yield the bounds of columns of the key in the new and the old rows of changes."""
    before = batch.column("_before") if "_before" in batch.schema.names else None
    for name in keys:
        kind = batch.schema.field(name).type
        taken = next(((kind if other is None else other) for matches, other in _ORDERED if matches(kind)), None)
        if taken is None:
            continue
        old = [] if before is None else [pc.struct_field(before, [before.type.get_field_index(name)])]
        for values in (batch.column(name), *old):
            found = pc.min_max(values.cast(taken)).as_py()
            if found["min"] is not None:
                yield name, (found["min"], found["max"])


def summarize(batch: pa.RecordBatch, keys: Collection[str] = ()) -> ChangeSummary:
    """Return the summary of a batch of changes; ``keys`` are the columns of the key."""
    op, unchanged = batch.column("_op"), batch.column("_unchanged")
    # Changes of a table without columns have no ``_before``.
    old = batch.column("_before") if "_before" in batch.schema.names else pa.nulls(len(batch))
    is_moved = pc.and_(pc.equal(op, OPERATIONS[Update]), old.is_valid())
    left_out = pc.fill_null(pc.greater(pc.list_value_length(unchanged), 0), False)
    truncates, moved, chained = (
        pc.any(flags, min_count=0).as_py()
        for flags in (pc.equal(op, OPERATIONS[Truncate]), is_moved, pc.and_(is_moved, left_out))
    )
    unsent = frozenset(pc.unique(unchanged.flatten()).to_pylist())
    inserts_only = pc.all(pc.is_in(op, ADDED), min_count=0).as_py()
    has_untyped = len(batch.column("_untyped").keys) > 0
    bounds: dict[str, KeyBounds] = {}
    for name, found in _bounds(batch, keys):
        bounds[name] = _joined(bounds.get(name), found)
    return ChangeSummary(batch.num_rows, truncates, unsent, moved, chained, has_untyped, inserts_only, bounds)
