"""The rows of a table after changes that one identity tells apart."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.spark.counted import Counted, counted
from pgoutput_construct.spark.keyed import advanced
from pgoutput_construct.spark.layout import Layout
from pgoutput_construct.spark.schemas import column
from pgoutput_construct.spark.survey import after, survey
from pgoutput_construct.wire.protocol import RelationReplicaIdentity

__all__ = ["stepped"]


def stepped(
    before: DataFrame | None,
    changes: DataFrame,
    key_columns: Sequence[str],
    replica_identity: str,
    columns: Sequence[str],
    shapes: Sequence[frozenset[str]],
    fails: bool = True,
) -> DataFrame:
    """Return the rows after changes by one identity: ``columns``, ``_untyped``, ``_commit_lsn`` and ``_seq``.

    ``before`` are the rows before, None for no row, with all columns of the table and these. ``changes`` and they have
    ``_shape``: which of ``shapes``, columns by name, they were described with. A value that no row has makes an action
    fail where ``fails`` is true, else it is null.
    """
    found = survey(changes, key_columns, columns)
    stored = None if found.truncated is not None else before
    if replica_identity == RelationReplicaIdentity.FULL:
        table = Counted.of(changes, columns, shapes, found.unsent)
        return counted(stored, after(changes, found.truncated), table)
    if key_columns:
        layout = Layout.of(changes, key_columns, columns, found)
        return advanced(stored, changes, layout, found, fails)
    rows = [after(changes, found.truncated), *([] if stored is None else [stored])]
    first, *others = (each.select(*_row(columns)) for each in rows)
    return first.unionAll(others[0]) if others else first


def _row(columns: Sequence[str]) -> list[Column]:
    """Return the columns of rows, and of ``_untyped`` what is theirs."""
    kept = F.map_filter("_untyped", lambda name, _: name.isin(list(columns)))
    untyped = F.when(F.size(kept) > 0, kept).alias("_untyped")
    return [*map(column, columns), untyped, F.col("_commit_lsn"), F.col("_seq")]
