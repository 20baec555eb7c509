"""What can be read of a log: each view has columns, plans tasks, and does one of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark._log_view.added_columns import Prefix
from pgoutput_construct.spark._log_view.change_columns import CHANGE, changes_schema
from pgoutput_construct.spark._log_view.replicated_tables import Table
from pgoutput_construct.spark._log_view.visible_rows import timestamps
from pgoutput_construct.spark._source.micro_batches import offset_at
from pgoutput_construct.spark._source.raw_views import EventsView, MessagesView, TransactionsView
from pgoutput_construct.spark._source.read_range import LogRange, tables_at
from pgoutput_construct.spark._source.row_views import ChangesView, QuarantineView
from pgoutput_construct.spark._source.segment_rows import read_table_rows
from pgoutput_construct.spark._source.source_options import SourceOptions
from pgoutput_construct.spark._source.task_plan import TableTask, table_tasks

__all__ = ["view_of"]


class View(Protocol):
    """One of VIEWS, for a read with its options."""

    def __init__(self, options: SourceOptions) -> None: ...

    def schema(self, log: ChangeLog, as_of: int) -> pa.Schema:
        """Return the columns, as of a seq."""

    def tasks(self, log: ChangeLog, as_of: int, wanted: LogRange, schema: pa.Schema) -> list[InputPartition]:
        """Plan a read of some of the columns, as they are as of a seq."""

    def read(self, task: Any) -> Iterator[pa.RecordBatch]:
        """Do one of the tasks."""


class TableView:
    """The changes of a table under the options of a read."""

    def __init__(self, options: SourceOptions) -> None:
        assert options.table is not None
        self.options = options
        self.name = options.table
        self.prefix = Prefix(options.metadataPrefix)
        self.skips_malformed = options.badRecords != "fail"

    def schema(self, log: ChangeLog, as_of: int) -> pa.Schema:
        """Return the table's columns, or those of them that are asked for, and those of CHANGE."""
        table = tables_at(log, as_of, self.options.types, self.skips_malformed).table(self.name)
        self.prefix.check(table.qualified, table.columns.names, case_sensitive=True)  # Spark itself minds what is set
        names = self.options.columns
        columns = table.columns if names is None else _columns(table, names)
        return self.prefix.reader_schema(changes_schema(self.prefix.replay_columns(columns)))

    def tasks(self, log: ChangeLog, as_of: int, wanted: LogRange, schema: pa.Schema) -> list[InputPartition]:
        """Plan a read of those of the table's rows that are wanted, into columns of ``schema``."""
        opened = tables_at(log, as_of, self.options.types, self.skips_malformed)
        table, inner = self.prefix.replay_table(opened.table(self.name)), self.prefix.replay_schema(schema)
        columns = pa.schema([field for field in inner if field.name not in CHANGE])
        return [*table_tasks(opened, table, wanted, columns, inner, self.skips_malformed, self.prefix)]

    def read(self, task: TableTask) -> Iterator[pa.RecordBatch]:
        """Read the rows of one task."""
        return read_table_rows(task)


@dataclass
class _BatchTask(InputPartition):
    batch: pa.RecordBatch


class BatchesView:
    """The range of each micro-batch: what ended after one seq, up to another, and the last commit by then."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options

    def schema(self, log: ChangeLog, as_of: int) -> pa.Schema:
        """Return the columns."""
        return _BATCHES

    def tasks(self, log: ChangeLog, as_of: int, wanted: LogRange, schema: pa.Schema) -> list[InputPartition]:
        """Return a task that has the row."""
        offset = offset_at(log.index, wanted.until)
        time = timestamps(np.array([offset.time or 0], np.int64))
        columns = {
            "after_seq": pa.array([wanted.after], pa.int64()),
            "seq": pa.array([wanted.until], pa.int64()),
            "commit_lsn": pa.array([offset.lsn], pa.int64()),
            "commit_time": time if offset.time is not None else pa.nulls(1, time.type),
        }
        return [_BatchTask(pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema))]

    def read(self, task: _BatchTask) -> Iterator[pa.RecordBatch]:
        """Return the row."""
        yield task.batch


_VIEWS: Final[Mapping[str, type[View]]] = {
    "table": TableView,
    "changes": ChangesView,
    "transactions": TransactionsView,
    "messages": MessagesView,
    "events": EventsView,
    "batches": BatchesView,
    "quarantine": QuarantineView,
}


def view_of(options: SourceOptions) -> View:
    """Return the view that options ask for."""
    return _VIEWS[options.view](options)


def _columns(table: Table, names: Sequence[str]) -> pa.Schema:
    """Return some of a table's columns; raise ChangeLogError for one that it does not have."""
    for name in names:
        if name not in table.columns.names:
            raise ChangeLogError(f"{table.qualified} has no column {name!r}: it has {', '.join(table.columns.names)}")
    return pa.schema([table.columns.field(name) for name in names])


_BATCHES = pa.schema(
    [
        ("after_seq", pa.int64()),
        ("seq", pa.int64()),
        ("commit_lsn", pa.int64()),
        ("commit_time", pa.timestamp("us", tz="UTC")),
    ]
)
