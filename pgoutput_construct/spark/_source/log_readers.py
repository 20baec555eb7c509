"""What Spark calls to read a log: as a stream of micro-batches, or as one batch; both plan tasks of a view."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from pgoutput_construct.changelog._index.log_index import LogPoint
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark._execution import leading_reason
from pgoutput_construct.spark._source.micro_batches import (
    Limits,
    Offset,
    PollInterval,
    QueryOffset,
    advance_reader,
    check_same_log,
    is_unlimited,
    latest_seq,
    log_field,
    next_seq,
    offset_at,
    query_fields,
    read_limit,
    register_reader,
)
from pgoutput_construct.spark._source.read_range import log_address, log_as_of, log_at, range_between, range_of
from pgoutput_construct.spark._source.source_options import SourceOptions
from pgoutput_construct.spark._source.views import view_of

_POLL_SECONDS: Final = 0.1
"""The least seconds between two polls of a log that has nothing new."""


class LogStreamReader(DataSourceStreamReader):
    """Reads a log from an offset to the next; an offset is a seq: everything that ended by it has been read."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self.options = options
        self.schema = schema
        self.limits = Limits(options.maxTransactionsPerTrigger, options.maxBytesPerTrigger)
        self._interval = PollInterval(_POLL_SECONDS)
        self._query = QueryOffset(self._first_offset, bool(self.limits))
        self._target: int | None = None

    @leading_reason()
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name, as those below
        """Return where a new query begins: before the option fromSeq, or at the first seq that the log still has."""
        return self._query.initial()

    def _first_offset(self) -> dict[str, Any]:
        log = self._log()
        after = log.index.first_seq - 1 if self.options.fromSeq is None else self.options.fromSeq - 1
        register_reader(log, self.options.reader, after)
        return Offset(after).to_json() | log_field(log)

    @leading_reason()
    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        """Return where the next micro-batch ends; the query's own offset if nothing is new."""
        last = start or self._query.current()
        after = -1 if last is None else int(last["seq"])
        limits = Limits() if is_unlimited(limit) else self.limits
        log, end = self._interval.poll(lambda: self._next(last, after, limits), lambda found: found[1] != after)
        return last if last is not None and end == after else self._offset(log, end)

    def _next(self, last: Mapping[str, Any] | None, after: int, limits: Limits) -> tuple[ChangeLog, int]:
        log = self._log()
        check_same_log(log, *filter(None, [last]))
        end = next_seq(log, after, limits)
        return log, end if self._target is None else max(min(end, self._target), after)

    @leading_reason()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Plan the tasks of a micro-batch.

        Raises ChangeLogError where the table has changed since the query began, or the log is not that of the query's
        checkpoint.
        """
        self._query.plan(end)
        after, until = int(start["seq"]), int(end["seq"])
        log = self._log()
        check_same_log(log, start, end)
        log.check_kept(after + 1)
        view, as_of = view_of(self.options), LogPoint(log.index.last_seq)
        selected = range_between(log, after, until, self.options)
        return view.tasks(
            log,
            as_of,
            selected,
            query_fields(view.schema(log, as_of), self.schema, self.options, str(self.options.table)),
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Run a task."""
        with leading_reason():
            yield from view_of(self.options).read(partition)

    @leading_reason()
    def commit(self, end: dict[str, Any]) -> None:
        """Advance the log's registered reader, if there is one: prune may then remove what was read."""
        if self.options.reader is not None:
            advance_reader(self._log(), self.options.reader, int(end["seq"]))

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """Return whether there is a limit, for PySpark 4.2 and later, as the two below."""
        return read_limit(self.limits.transactions or self.limits.bytes)

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return the end of the log, for the progress of the query."""
        log = self._log()
        return self._offset(log, latest_seq(log.index))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember where the log ends now: later changes are left for another run."""
        self._target = latest_seq(self._log().index)

    def _log(self) -> ChangeLog:
        return log_at(log_address(self.options))

    def _offset(self, log: ChangeLog, seq: int) -> dict[str, Any]:
        return offset_at(log.index, seq).to_json() | log_field(log)


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
