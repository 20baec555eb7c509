"""Tasks that the driver has planned, dealt out to executors: each is sent to the one that does it, and to no other."""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Row, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

__all__ = ["deal"]

_FEW: Final = 32
"""More tasks than this are dealt out one by one, so that none waits for another that takes long."""


def deal(
    spark: SparkSession, tasks: Sequence[Any], work: Callable[[Any], Iterable[dict[str, Any]]], schema: pa.Schema
) -> list[Row]:
    """Return the rows, of ``schema``, that ``work`` yields for each task; both are pickled. Raises what it raises."""
    if not tasks:
        return []
    rows = spark.createDataFrame(pa.table({"task": [pickle.dumps(task) for task in tasks]}))
    rows = rows.repartition(len(tasks)) if len(tasks) > _FEW else rows

    def done(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for pickled in batch.column(0).to_pylist():
                yield pa.RecordBatch.from_pylist(list(work(pickle.loads(pickled))), schema)

    return rows.mapInArrow(done, from_arrow_schema(schema)).collect()
