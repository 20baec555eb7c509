"""Views of a log: each has columns, plans tasks in the driver, and runs one of them in an executor."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from pgoutput_construct.changelog._index.log_index import LogMoment
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark._log_view.added_columns import Prefix
from pgoutput_construct.spark._log_view.committed_rows import timestamps
from pgoutput_construct.spark._log_view.replicated_tables import Table
from pgoutput_construct.spark._source.change_images import form_of
from pgoutput_construct.spark._source.micro_batches import offset_at
from pgoutput_construct.spark._source.raw_views import EventsView, MessagesView, TransactionsView
from pgoutput_construct.spark._source.read_range import LogRange, tables_at
from pgoutput_construct.spark._source.row_views import ChangesView, QuarantineView
from pgoutput_construct.spark._source.segment_rows import read_table_rows
from pgoutput_construct.spark._source.source_options import SourceOptions
from pgoutput_construct.spark._source.task_plan import TableScanTask, table_tasks


class View(Protocol):
    """One of VIEWS, for a read with its options."""

    def __init__(self, options: SourceOptions) -> None: ...

    def schema(self, log: ChangeLog, as_of: LogMoment) -> pa.Schema:
        """Return the columns as of a moment."""

    def tasks(self, log: ChangeLog, as_of: LogMoment, selected: LogRange, schema: pa.Schema) -> list[InputPartition]:
        """Plan a read.

        Args:
            log: The log.
            as_of: The moment as of which it is read.
            selected: The range to read.
            schema: The columns to return, some of those of ``schema``.
        """

    def read(self, task: Any) -> Iterator[pa.RecordBatch]:
        """Run a task."""


class TableView:
    """The view ``table``: the typed changes of one table."""

    def __init__(self, options: SourceOptions) -> None:
        assert options.table is not None
        self.options = options
        self.name = options.table
        self.prefix = Prefix(options.metadataPrefix)
        self.skips_malformed = options.badRecords != "fail"
        self.form = form_of(options)

    def schema(self, log: ChangeLog, as_of: LogMoment) -> pa.Schema:
        """Return the requested columns of the table, or all, and those of a change."""
        table = tables_at(log, as_of, self.options.types, self.skips_malformed).table(self.name)
        # Spark itself applies spark.sql.caseSensitive.
        self.prefix.check(table.qualified, table.columns.names, case_sensitive=True, added=self.form.added)
        names = self.options.columns
        columns = table.columns if names is None else _columns(table, names)
        return self.prefix.reader_schema(self.form.schema(self.prefix.replay_columns(columns)))

    def tasks(self, log: ChangeLog, as_of: LogMoment, selected: LogRange, schema: pa.Schema) -> list[InputPartition]:
        """Plan a read of the selected rows into the columns of ``schema``."""
        opened = tables_at(log, as_of, self.options.types, self.skips_malformed)
        table = self.prefix.replay_table(opened.table(self.name))
        inner = self.prefix.replay_schema(schema, self.form.added)
        columns = pa.schema([field for field in inner if field.name not in self.form.added])
        planned = table_tasks(
            opened, table, selected, columns, inner, self.skips_malformed, self.prefix, self.form.has_images
        )
        return [*planned]

    def read(self, task: TableScanTask) -> Iterator[pa.RecordBatch]:
        """Read the rows of one task."""
        return read_table_rows(task)


_BATCHES = pa.schema(
    [
        ("after_seq", pa.int64()),
        ("seq", pa.int64()),
        ("commit_lsn", pa.int64()),
        ("commit_time", pa.timestamp("us", tz="UTC")),
    ]
)


@dataclass
class _BatchTask(InputPartition):
    batch: pa.RecordBatch


class BatchesView:
    """The view ``batches``: a row per micro-batch, for programs that apply the range of a log by other means.

    It has everything that ended after ``after_seq``, up to ``seq``; ``commit_lsn`` is the last commit by then.
    """

    def __init__(self, options: SourceOptions) -> None:
        self.options = options

    def schema(self, log: ChangeLog, as_of: LogMoment) -> pa.Schema:
        """Return the columns."""
        return _BATCHES

    def tasks(self, log: ChangeLog, as_of: LogMoment, selected: LogRange, schema: pa.Schema) -> list[InputPartition]:
        """Return a task that holds the row."""
        offset = offset_at(log.index, selected.until)
        time = timestamps(np.array([offset.time or 0], np.int64))
        columns = {
            "after_seq": pa.array([selected.after], pa.int64()),
            "seq": pa.array([selected.until], pa.int64()),
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
    """Return the view that options name."""
    return _VIEWS[options.view](options)


def _columns(table: Table, names: Sequence[str]) -> pa.Schema:
    """Return some of a table's columns; raise ChangeLogError for one that it does not have."""
    for name in names:
        if name not in table.columns.names:
            raise ChangeLogError(f"{table.qualified} has no column {name!r}: it has {', '.join(table.columns.names)}")
    return pa.schema([table.columns.field(name) for name in names])
