"""What Spark calls to read a log: as a stream of micro-batches, or as one batch; both plan tasks of a view."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark._source.micro_batches import (
    Limits,
    Offset,
    PollInterval,
    advance_reader,
    check_same_log,
    latest_seq,
    log_field,
    next_seq,
    offset_at,
    query_fields,
    register_reader,
)
from pgoutput_construct.spark._source.read_range import log_address, log_as_of, log_at, range_between, range_of
from pgoutput_construct.spark._source.source_options import SourceOptions
from pgoutput_construct.spark._source.views import view_of

__all__ = ["LogReader", "stream_reader"]

_POLL_SECONDS: Final = 0.1
"""The least seconds between two polls of a log that has nothing new."""


class LogStreamReader(DataSourceStreamReader):
    """Reads a log from an offset to the next.

    An offset is a seq of the log: everything that ended by it has been read. PySpark 4.1 asks for the latest offset
    without the query's current one, so the reader remembers the ends of the batches that it planned. The first batch
    after a restart, and with the trigger ``availableNow`` the only one, therefore has no limit.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self.options = options
        self.schema = schema
        self.limits = Limits(options.maxTransactionsPerTrigger, options.maxBytesPerTrigger)
        self._interval = PollInterval(_POLL_SECONDS)
        self._last: dict[str, Any] | None = None
        self._target: int | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name, as those below
        """Return where a new query begins: before the option fromSeq, or at the first seq that the log still has."""
        log = self._log()
        after = log.index.first_seq - 1 if self.options.fromSeq is None else self.options.fromSeq - 1
        register_reader(log, self.options.reader, after)
        self._last = Offset(after).to_json() | log_field(log)
        return self._last

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        """Return where the next micro-batch ends; the query's own offset if nothing is new."""
        last = self._last = start or self._last
        after = -1 if last is None else int(last["seq"])
        is_limited = last is not None and type(limit).__name__ != "ReadAllAvailable"
        limits = self.limits if is_limited else Limits()
        log, end = self._interval.poll(lambda: self._next(after, limits), lambda found: found[1] != after)
        return last if last is not None and end == after else self._offset(log, end)

    def _next(self, after: int, limits: Limits) -> tuple[ChangeLog, int]:
        log = self._log()
        check_same_log(log, *filter(None, [self._last]))
        end = next_seq(log, after, limits)
        return log, end if self._target is None else max(min(end, self._target), after)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Plan the tasks of a micro-batch.

        Raises ChangeLogError where the table has changed since the query began, or the log is not that of the query's
        checkpoint.
        """
        after, until = int(start["seq"]), int(end["seq"])
        log = self._log()
        check_same_log(log, start, end)
        log.check_kept(after + 1)
        self._last = end
        view, as_of = view_of(self.options), log.index.last_seq
        selected = range_between(log, after, until, self.options)
        return view.tasks(
            log,
            as_of,
            selected,
            query_fields(view.schema(log, as_of), self.schema, self.options, str(self.options.table)),
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Run a task."""
        return view_of(self.options).read(partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Advance the log's registered reader, if there is one: prune may then remove what was read."""
        if self.options.reader is not None:
            advance_reader(self._log(), self.options.reader, int(end["seq"]))

    def _log(self) -> ChangeLog:
        return log_at(log_address(self.options))

    def _offset(self, log: ChangeLog, seq: int) -> dict[str, Any]:
        return offset_at(log.index, seq).to_json() | log_field(log)


class _LimitedReader(LogStreamReader):
    """For PySpark 4.2 and later, which passes the query's offset, and asks for limits."""

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """Return whether there is a limit; ``latestOffset`` applies it."""
        limits = import_module("pyspark.sql.streaming.datasource")
        most = self.limits.transactions or self.limits.bytes
        return limits.ReadAllAvailable() if most is None else limits.ReadMaxRows(most)

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return the end of the log, for the progress of the query."""
        log = self._log()
        return self._offset(log, latest_seq(log.index))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember where the log ends now: later changes are left for another run."""
        self._target = latest_seq(self._log().index)


def stream_reader(options: SourceOptions, schema: StructType) -> LogStreamReader:
    """Return a reader with the methods that this version of PySpark calls."""
    try:
        limits = import_module("pyspark.sql.streaming.datasource")
    except ImportError:
        return LogStreamReader(options, schema)
    return type("LimitedReader", (_LimitedReader, limits.SupportsTriggerAvailableNow), {})(options, schema)


class LogReader(DataSourceReader):
    """Reads a log once; only the options and the schema are sent to executors."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self.options = options
        self.read_schema = schema

    def partitions(self) -> list[InputPartition]:
        """Plan the tasks; raises ChangeLogError for a damaged log, or one that lacks the table or position."""
        (log, as_of), view = log_as_of(self.options), view_of(self.options)
        schema = select_fields(view.schema(log, as_of), self.read_schema)
        return view.tasks(log, as_of, range_of(log, as_of, self.options), schema)

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Run a task; None where there is none."""
        return iter(()) if partition is None else view_of(self.options).read(partition)


def select_fields(known: pa.Schema, selected: StructType) -> pa.Schema:
    """Return the selected columns, in their order; raise ChangeLogError for one of another name or type."""
    kinds = {field.name: field.dataType for field in from_arrow_schema(known, prefer_timestamp_ntz=True)}
    for field in selected:
        if field.name not in kinds:
            raise ChangeLogError(f"there is no column {field.name!r}: the columns are {', '.join(known.names)}")
        if field.dataType != kinds[field.name]:
            kind, given = kinds[field.name].simpleString(), field.dataType.simpleString()
            raise ChangeLogError(f"the column {field.name!r} is {kind}, not {given}: omit the schema, or correct it")
    return pa.schema([known.field(field.name) for field in selected])
