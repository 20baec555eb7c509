"""Changes read by tasks that the driver has planned: a data source starts processes to plan them again."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from pgoutput_construct.changelog.planning import lost_ends
from pgoutput_construct.spark.job import OpenLog
from pgoutput_construct.spark.schemas import changes_schema
from pgoutput_construct.spark.source.pieces import Range, TableRows
from pgoutput_construct.spark.source.planning import table_pieces
from pgoutput_construct.spark.source.reading import read_table_rows

__all__ = ["changes_of"]

_MOST: Final = 32
"""With more tasks planning again costs less than sending each of them to all."""


def changes_of(log: OpenLog, name: str, after: int = -1) -> DataFrame:
    """Return what ``OpenLog.changes`` does: what ended behind a seq."""
    table = log.table(name)
    schema = changes_schema(table.columns)
    wanted = Range(after, log.opened.as_of, lost=tuple(lost_ends(log.opened.index)))
    tasks = table_pieces(log.opened, table, wanted, table.columns, schema)
    if len(tasks) > _MOST:
        return log.changes(name, after)
    table.check_names(log.spark.conf.get("spark.sql.caseSensitive") == "true")
    numbers = log.spark.range(0, len(tasks), 1, max(len(tasks), 1))
    return numbers.mapInArrow(_Read(tasks), from_arrow_schema(schema, prefer_timestamp_ntz=True))


class _Read:
    """Does the tasks whose numbers it is given."""

    def __init__(self, tasks: Sequence[TableRows]) -> None:
        self._tasks = tasks

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from read_table_rows(self._tasks[number])
