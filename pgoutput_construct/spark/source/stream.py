"""A log as a stream: each micro-batch is a range of whole transactions in the order of their commits."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.columnar import unify
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark.source.bounds import Bounds
from pgoutput_construct.spark.source.known import log_at
from pgoutput_construct.spark.source.offsets import Limits, Offset, latest_seq, next_seq, offset_at
from pgoutput_construct.spark.source.options import SourceOptions
from pgoutput_construct.spark.source.ranges import range_between
from pgoutput_construct.spark.source.readers import advance_reader, register_reader
from pgoutput_construct.spark.source.views import view_of

__all__ = ["LogStreamReader", "stream_reader"]


class LogStreamReader(DataSourceStreamReader):
    """Reads a log from an offset to the next.

    An offset is a seq of the log: all that ended by it has been read. PySpark 4.1 asks for the latest offset without
    saying where the query is. The reader keeps the ends of the batches that it planned; so the first batch after a
    restart, and with the trigger ``availableNow`` the only one, has no limit.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self.options = options
        self.schema = schema
        self.limits = Limits(options.maxTransactionsPerTrigger, options.maxBytesPerTrigger)
        self._after: int | None = None
        self._target: int | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name, as those below
        """Return where a new query begins: before the option fromSeq, or the first row that the log still has."""
        log = self._log()
        self._after = log.index.first_seq - 1 if self.options.fromSeq is None else self.options.fromSeq - 1
        register_reader(log, self.options.reader, self._after)
        return Offset(self._after).json()

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        """Return up to where the next micro-batch goes."""
        log = self._log()
        after = self._after if start is None else int(start["seq"])
        is_limited = bool(self.limits) and after is not None and type(limit).__name__ != "ReadAllAvailable"
        end = next_seq(log, after if after is not None else -1, self.limits if is_limited else Limits())
        if self._target is not None:
            end = max(min(end, self._target), after or 0)
        return self._offset(log, end)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Plan the tasks of a micro-batch; raises ChangeLogError where the table has changed since the query began."""
        after, until = int(start["seq"]), int(end["seq"])
        log = log_at(self.options.path, until)
        log.check_kept(after + 1)
        self._after = until
        view, as_of = view_of(self.options), log.index.last_seq
        wanted = range_between(log, after, until, self.options, Bounds())
        return view.tasks(log, as_of, wanted, self._columns(view.schema(log, as_of)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Do one of the tasks."""
        return view_of(self.options).read(partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Let go of what was read: the log's registered reader, where there is one, goes on to it."""
        if self.options.reader is not None:
            advance_reader(log_at(self.options.path, int(end["seq"])), self.options.reader, int(end["seq"]))

    def _log(self) -> ChangeLog:
        return log_at(self.options.path)

    def _offset(self, log: ChangeLog, seq: int) -> dict[str, Any]:
        return offset_at(log.index, seq).json()

    def _columns(self, now: pa.Schema) -> pa.Schema:
        """Return the columns of the query, whatever the log's are ``now``.

        Raises ChangeLogError where rows have what they have no room for, unless that is to be ignored: then columns
        that came are left out, and values that do not fit stand in ``_untyped``.
        """
        columns = to_arrow_schema(self.schema)
        for field in now if self.options.schemaChange == "fail" else ():
            if field.name not in columns.names and self.options.columns is None:
                raise self._changed(f"the column {field.name!r} was added or renamed")
            if field.name in columns.names and not _holds(columns.field(field.name).type, field.type):
                raise self._changed(f"the column {field.name!r} is {field.type} now")
        same = {
            field.name for field in from_arrow_schema(now, prefer_timestamp_ntz=True) if field in self.schema.fields
        }
        return pa.schema([now.field(name) if name in same else columns.field(name) for name in columns.names])

    def _changed(self, what: str) -> ChangeLogError:
        return ChangeLogError(
            f"{self.options.table}: {what}, since the query began: start the query again, it goes on from its "
            "checkpoint with the columns of now; with the option schemaChange=ignore it would go on without"
        )


class _LimitedReader(LogStreamReader):
    """The same for PySpark 4.2 and later, which says where the query is, and asks for limits."""

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """Return whether there is a limit; what it is, ``latestOffset`` knows."""
        limits = import_module("pyspark.sql.streaming.datasource")
        most = self.limits.transactions or self.limits.bytes
        return limits.ReadAllAvailable() if most is None else limits.ReadMaxRows(most)

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return how far the log is, for the progress of the query."""
        log = self._log()
        return self._offset(log, latest_seq(log.index))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Keep where the log ends now: later changes are for another run."""
        self._target = latest_seq(self._log().index)


def stream_reader(options: SourceOptions, schema: StructType) -> LogStreamReader:
    """Return a reader with what this version of PySpark can ask for."""
    try:
        limits = import_module("pyspark.sql.streaming.datasource")
    except ImportError:
        return LogStreamReader(options, schema)
    return type("LimitedReader", (_LimitedReader, limits.SupportsTriggerAvailableNow), {})(options, schema)


def _holds(column: pa.DataType, now: pa.DataType) -> bool:
    """Tell whether a column of the query has room for a type."""
    if pa.types.is_struct(column):  # _before has the columns, which are looked at by themselves
        return True
    return bool(column == now or unify(column, now) == column)
