"""What can be read of a log: each view has columns, plans tasks, and does one of them."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.spark.source.batches_view import BatchesView
from pgoutput_construct.spark.source.changes_view import ChangesView
from pgoutput_construct.spark.source.index_views import EventsView, TransactionsView
from pgoutput_construct.spark.source.messages_view import MessagesView
from pgoutput_construct.spark.source.options import SourceOptions
from pgoutput_construct.spark.source.pieces import Range
from pgoutput_construct.spark.source.quarantine_view import QuarantineView
from pgoutput_construct.spark.source.table_view import TableView

__all__ = ["View", "view_of"]


class View(Protocol):
    """One of VIEWS, for a read with its options."""

    def __init__(self, options: SourceOptions) -> None: ...

    def schema(self, log: ChangeLog, as_of: int) -> pa.Schema:
        """Return the columns, as of a seq."""

    def tasks(self, log: ChangeLog, as_of: int, wanted: Range, schema: pa.Schema) -> list[InputPartition]:
        """Plan a read of some of the columns, as they are as of a seq."""

    def read(self, task: Any) -> Iterator[pa.RecordBatch]:
        """Do one of the tasks."""


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
