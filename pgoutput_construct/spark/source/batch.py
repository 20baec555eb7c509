"""A batch read of a log: planned in the driver out of the index, done by tasks."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark.source.options import SourceOptions
from pgoutput_construct.spark.source.ranges import log_of, range_of
from pgoutput_construct.spark.source.views import view_of

__all__ = ["LogReader", "chosen_fields"]


class LogReader(DataSourceReader):
    """Reads what the options ask for; only they, and the schema, are sent to executors."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self.options = options
        self.wanted = schema

    def partitions(self) -> list[InputPartition]:
        """Plan the tasks; raises ChangeLogError for a log that is damaged, or lacks what is asked for."""
        (log, as_of), view = log_of(self.options), view_of(self.options)
        schema = chosen_fields(view.schema(log, as_of), self.wanted)
        return view.tasks(log, as_of, range_of(log, as_of, self.options), schema)

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Do one of the tasks; there may be none."""
        return iter(()) if partition is None else view_of(self.options).read(partition)


def chosen_fields(known: pa.Schema, wanted: StructType) -> pa.Schema:
    """Return the columns that are wanted, in their order; raise ChangeLogError for one that is not known so."""
    kinds = {field.name: field.dataType for field in from_arrow_schema(known, prefer_timestamp_ntz=True)}
    for field in wanted:
        if field.name not in kinds:
            raise ChangeLogError(f"there is no column {field.name!r}: there are {', '.join(known.names)}")
        if field.dataType != kinds[field.name]:
            kind, given = kinds[field.name].simpleString(), field.dataType.simpleString()
            raise ChangeLogError(
                f"the column {field.name!r} is {kind}, not {given}: leave out the schema, or correct it"
            )
    return pa.schema([known.field(field.name) for field in wanted])
