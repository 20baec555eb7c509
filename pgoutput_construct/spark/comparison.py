"""A rebuilt state against the source, row by row."""

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.spark.execution import plain_errors
from pgoutput_construct.spark.schemas import column

__all__ = ["Comparison", "compare"]

_EXAMPLES = 5


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

    ``state`` is as ``OpenLog.state`` returns it. ``source`` has the same columns in Arrow's types, such as
    ``postgres.fetch_table`` fetches them from the server.
    """
    with plain_errors():
        rows = state.sparkSession.createDataFrame(source.select(state.columns), state.schema)
        return _compare(_as_one_column(state, 1).unionAll(_as_one_column(rows, -1)))


def _as_one_column(rows: DataFrame, side: int) -> DataFrame:
    # Spark compares no maps.
    entries = F.array_sort(F.map_entries("_untyped")).alias("_untyped")
    whole = F.struct(*(column(name) for name in rows.columns if name != "_untyped"), entries)
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
