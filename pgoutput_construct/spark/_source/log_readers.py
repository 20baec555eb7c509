"""A log as a stream: each micro-batch is a range of whole transactions in the order of their commits."""

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

_LOOK: Final = 0.1
"""Seconds between two looks at a log in which nothing is new, at least."""


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
        self._pace = PollInterval(_LOOK)
        self._last: dict[str, Any] | None = None
        self._target: int | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name, as those below
        """Return where a new query begins: before the option fromSeq, or the first row that the log still has."""
        log = self._log()
        after = log.index.first_seq - 1 if self.options.fromSeq is None else self.options.fromSeq - 1
        register_reader(log, self.options.reader, after)
        self._last = Offset(after).to_json() | log_field(log)
        return self._last

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        """Return up to where the next micro-batch goes: where the query is, as it is said there, if nothing is new."""
        last = self._last = start or self._last
        after = -1 if last is None else int(last["seq"])
        is_limited = last is not None and type(limit).__name__ != "ReadAllAvailable"
        limits = self.limits if is_limited else Limits()
        log, end = self._pace.ask(lambda: self._next(after, limits), lambda found: found[1] != after)
        return last if last is not None and end == after else self._offset(log, end)

    def _next(self, after: int, limits: Limits) -> tuple[ChangeLog, int]:
        log = self._log()
        check_same_log(log, *filter(None, [self._last]))
        end = next_seq(log, after, limits)
        return log, end if self._target is None else max(min(end, self._target), after)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Plan the tasks of a micro-batch.

        Raises ChangeLogError where the table has changed since the query began, and where the log is not that of the
        query's checkpoint.
        """
        after, until = int(start["seq"]), int(end["seq"])
        log = self._log()
        check_same_log(log, start, end)
        log.check_kept(after + 1)
        self._last = end
        view, as_of = view_of(self.options), log.index.last_seq
        wanted = range_between(log, after, until, self.options)
        return view.tasks(
            log,
            as_of,
            wanted,
            query_fields(view.schema(log, as_of), self.schema, self.options, str(self.options.table)),
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Do one of the tasks."""
        return view_of(self.options).read(partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Let go of what was read: the log's registered reader, where there is one, is advanced to it."""
        if self.options.reader is not None:
            advance_reader(self._log(), self.options.reader, int(end["seq"]))

    def _log(self) -> ChangeLog:
        return log_at(log_address(self.options))

    def _offset(self, log: ChangeLog, seq: int) -> dict[str, Any]:
        return offset_at(log.index, seq).to_json() | log_field(log)


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


class LogReader(DataSourceReader):
    """Reads what the options ask for; only they, and the schema, are sent to executors."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self.options = options
        self.wanted = schema

    def partitions(self) -> list[InputPartition]:
        """Plan the tasks; raises ChangeLogError for a log that is damaged, or lacks what is asked for."""
        (log, as_of), view = log_as_of(self.options), view_of(self.options)
        schema = select_fields(view.schema(log, as_of), self.wanted)
        return view.tasks(log, as_of, range_of(log, as_of, self.options), schema)

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Do one of the tasks; there may be none."""
        return iter(()) if partition is None else view_of(self.options).read(partition)


def select_fields(known: pa.Schema, wanted: StructType) -> pa.Schema:
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
