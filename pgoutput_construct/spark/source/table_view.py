"""The view ``table``: the changes of one table, typed."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark.change_frames import CHANGE, changes_schema
from pgoutput_construct.spark.metadata import Prefix
from pgoutput_construct.spark.replicated_tables import Table
from pgoutput_construct.spark.source.known import opened_at
from pgoutput_construct.spark.source.options import SourceOptions
from pgoutput_construct.spark.source.pieces import Range, TableRows
from pgoutput_construct.spark.source.planning import table_pieces
from pgoutput_construct.spark.source.reading import read_table_rows

__all__ = ["TableView"]


class TableView:
    """The changes of a table under the options of a read."""

    def __init__(self, options: SourceOptions) -> None:
        assert options.table is not None
        self.options = options
        self.name = options.table
        self.prefix = Prefix(options.metadataPrefix)
        self.keeps_bad = options.badRecords != "fail"

    def schema(self, log: ChangeLog, as_of: int) -> pa.Schema:
        """Return the table's columns, or those of them that are asked for, and those of CHANGE."""
        table = opened_at(log, as_of, self.options.types, self.keeps_bad).table(self.name)
        self.prefix.check(table.qualified, table.columns.names, case_sensitive=True)  # Spark itself minds what is set
        names = self.options.columns
        columns = table.columns if names is None else _columns(table, names)
        return self.prefix.schema(changes_schema(self.prefix.columns(columns)))

    def tasks(self, log: ChangeLog, as_of: int, wanted: Range, schema: pa.Schema) -> list[InputPartition]:
        """Plan a read of those of the table's rows that are wanted, into columns of ``schema``."""
        opened = opened_at(log, as_of, self.options.types, self.keeps_bad)
        table, inner = self.prefix.table(opened.table(self.name)), self.prefix.inner(schema)
        columns = pa.schema([field for field in inner if field.name not in CHANGE])
        return [*table_pieces(opened, table, wanted, columns, inner, self.keeps_bad, self.prefix)]

    def read(self, task: TableRows) -> Iterator[pa.RecordBatch]:
        """Read the rows of one task."""
        return read_table_rows(task)


def _columns(table: Table, names: Sequence[str]) -> pa.Schema:
    """Return some of a table's columns; raise ChangeLogError for one that it does not have."""
    for name in names:
        if name not in table.columns.names:
            raise ChangeLogError(f"{table.qualified} has no column {name!r}: it has {', '.join(table.columns.names)}")
    return pa.schema([table.columns.field(name) for name in names])
