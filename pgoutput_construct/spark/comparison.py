"""A rebuilt state against the source, row by row."""

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.spark.failures import plain_errors
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
    state = state.persist()
    try:
        with plain_errors():
            rows = state.sparkSession.createDataFrame(source.select(state.columns), state.schema).persist()
            return _compare(_comparable(state), _comparable(rows))
    finally:
        state.unpersist()


def _comparable(rows: DataFrame) -> DataFrame:
    # Spark compares no maps.
    entries = F.array_sort(F.map_entries("_untyped")).alias("_untyped")
    return rows.select(*(column(name) for name in rows.columns if name != "_untyped"), entries)


def _compare(state: DataFrame, source: DataFrame) -> Comparison:
    missing, unexpected = source.exceptAll(state).persist(), state.exceptAll(source).persist()
    examples = [f"- {row.asDict()}" for row in missing.take(_EXAMPLES)]
    examples += [f"+ {row.asDict()}" for row in unexpected.take(_EXAMPLES)]
    comparison = Comparison(source.count(), state.count(), missing.count(), unexpected.count(), tuple(examples))
    for frame in (missing, unexpected):
        frame.unpersist()
    return comparison
