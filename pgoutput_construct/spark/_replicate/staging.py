"""The changes of a batch: the log is read once for all tables, and typed changes are stored as files, by table.

``staging`` plans tasks, each for a part of the log and the tables whose changes begin after the same seq; in an
executor ``stage`` decodes the part, masks the columns that are to be masked, and writes a file for each table that has
changes in it. Rows that cannot be decoded are the error of their table. The files are removed when the batch has used
them.

The values of a log are read nowhere else: whatever is made of changes is made of masked ones.
"""

import json
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import count
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from pgoutput_construct.changelog._index.planning import lost_histories
from pgoutput_construct.changelog._segment.block import Numbers
from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.changelog._store.store import LogStore, MissingFileError
from pgoutput_construct.columnar.column_masks import Mask, masked_batch
from pgoutput_construct.errors import ChangeLogError, EngineError, PgoutputError
from pgoutput_construct.lake._directories import STAGED
from pgoutput_construct.lake._notes import Warehouse
from pgoutput_construct.spark._deferred_session import needed_by
from pgoutput_construct.spark._execution import is_alive, plain_errors, reaches_files, reason_of, run_tasks, task_rows
from pgoutput_construct.spark._heap import Heap, heap_of, shown_bytes
from pgoutput_construct.spark._log_view.added_columns import MARK, escaped
from pgoutput_construct.spark._log_view.change_columns import DELETE, POSITION, TRUNCATE, changes_schema
from pgoutput_construct.spark._log_view.replicated_tables import Table, plain_path
from pgoutput_construct.spark._open_log import OpenLog
from pgoutput_construct.spark._parquet_file import RowsFile
from pgoutput_construct.spark._source.read_range import LogRange
from pgoutput_construct.spark._source.segment_rows import SegmentPart, decode_part, read_parts
from pgoutput_construct.spark._source.task_plan import (
    ReaderColumns,
    SegmentScanTask,
    columns_of_group,
    plan_described_segments,
    reader_columns,
)
from pgoutput_construct.spark._state.change_survey import ChangeSummary, combined_summary, summarize
from pgoutput_construct.wire import Lsn
from pgoutput_construct.wire.protocol import RelationReplicaIdentity

_NOTHING: Final = ChangeSummary(0, False, frozenset(), False, False, False, True)


class ChangeRequest(NamedTuple):
    """The changes of a table that a batch needs."""

    table: str
    """The name of the table."""
    after: int
    """The seq after which they ended."""


@dataclass(frozen=True)
class StagedRows:
    """Changes of a table, and their summary."""

    spark: SparkSession
    path: str
    """Where the warehouse is."""
    schema: pa.Schema
    """The columns of the rows."""
    files: tuple[str, ...]
    """The names of their files in the warehouse."""
    summary: ChangeSummary

    @cached_property
    def rows(self) -> DataFrame:
        """The changes as ``OpenLog.changes`` has them."""
        schema = from_arrow_schema(self.schema, prefer_timestamp_ntz=True)
        if not self.files:
            return self.spark.createDataFrame([], schema)
        return self.spark.read.schema(schema).parquet(*(plain_path(f"{self.path}/{name}") for name in self.files))


@dataclass(frozen=True)
class StagedFiles:
    """The files of the changes of a table."""

    schema: pa.Schema
    """The columns of the changes."""
    names: tuple[str, ...] = ()
    """The names of the files in the warehouse."""
    summary: ChangeSummary = _NOTHING
    errors: tuple[str, ...] = ()
    """Why changes could not be decoded."""


@dataclass(frozen=True)
class StagedChanges:
    """Changes of tables, as files."""

    path: str
    """Where the warehouse is."""
    files: Mapping[ChangeRequest, StagedFiles]
    size: int | None
    """The bytes of the messages that were read for them (``size_of``)."""

    def changes(self, spark: SparkSession, requested: ChangeRequest) -> StagedRows:
        """Return changes; raise ChangeLogError where they could not be decoded."""
        found = self.files[requested]
        for error in found.errors:
            raise ChangeLogError(error)
        return StagedRows(spark, self.path, found.schema, found.names, found.summary)


TableMasks: TypeAlias = Mapping[str, Mapping[str, Mask]]
"""The masks of columns, by the names of tables, and of columns."""
_NO_MASKS: Final[TableMasks] = MappingProxyType({})


@contextmanager
def staging(
    log: OpenLog, warehouse: Warehouse, requested: Iterable[ChangeRequest], masks: TableMasks = _NO_MASKS
) -> Iterator[StagedChanges]:
    """Yield changes of tables, stored in a warehouse while the block runs.

    Args:
        log: The log, opened as of the end of the batch.
        warehouse: The warehouse, which executors reach.
        requested: The changes.
        masks: The masks of columns; the log has these as strings.

    Raises:
        ChangeLogError: The log is damaged.
    """
    store = warehouse.store
    if isinstance(store, LocalStore):
        store = LocalStore(store.directory, durable=False, private=store.private)
    store.remove(STAGED)
    try:
        yield _stage_changes(log, warehouse.path, store, list(dict.fromkeys(requested)), masks)
    finally:
        store.remove(STAGED)


def _stage_changes(
    log: OpenLog, path: str, store: LogStore, requested: Sequence[ChangeRequest], masks: TableMasks
) -> StagedChanges:
    tables = [log.table(each.table) for each in requested]
    files = [StagedFiles(changes_schema(table.columns)) for table in tables]
    tasks = list[StagingTask]()
    try:
        tasks += staging_tasks(log, store, requested, tables, masks)
        results = _run_staging(log.spark, tasks)
    except (PgoutputError, OSError):
        raise
    except Exception:
        results = list(_stage_one_by_one(log, store, requested, tables, masks))
    for row in results:
        files[row["table"]] = _with(files[row["table"]], row)
    return StagedChanges(path, dict(zip(requested, files, strict=True)), size_of(log.spark, tasks))


def size_of(spark: SparkSession, tasks: Sequence["StagingTask"]) -> int | None:
    """Return the bytes of the messages that tasks read; None where only executors have the files of the warehouse."""
    is_here = all(reaches_files(spark, store) for store in {task.store for task in tasks})
    return sum(task.group.size for task in tasks) if is_here else None


@dataclass(frozen=True)
class StagedTable:
    """A table of a task."""

    number: int
    """Its index among the tables of the batch."""
    columns: pa.Schema
    """Its columns."""
    schema: pa.Schema
    """The columns of its changes."""
    keys: tuple[str, ...]
    """Those of its key; none where rows are told apart by all of them."""
    used: Mapping[int, ReaderColumns]
    """The Relations that describe its rows, by their seqs."""
    masks: Mapping[str, Mask] = field(default_factory=dict)
    """The masks of its columns."""
    is_secretive: bool = False
    """Whether values of its rows must not be shown, since columns are masked or excluded."""
    copied: Mapping[str, str] = field(default_factory=dict)
    """The columns that are copies of columns of changes."""
    name: str = ""
    """Its name, for messages,"""
    needs_types: bool = False
    """and whether a value that the type of its column cannot hold is an error."""
    heap: Heap | None = None
    """The heap that its rows go through; None where that is not known."""


@dataclass(frozen=True)
class StagingTask:
    """A part of the log, and the tables to stage from it."""

    number: int
    group: SegmentScanTask
    oids: tuple[int, ...]
    """The OIDs of the tables."""
    tables: tuple[StagedTable, ...]
    store: LogStore
    """The store of the files,"""
    folder: str
    """and their directory in it."""


def _run_staging(spark: SparkSession, tasks: Sequence[StagingTask]) -> list[Row]:
    size = size_of(spark, tasks)
    with plain_errors(), needed_by(f"a batch of {shown_bytes(size or 0)}"):
        return run_tasks(spark, tasks, stage, STAGING_RESULT, size)


def _stage_one_by_one(
    log: OpenLog, store: LogStore, requested: Sequence[ChangeRequest], tables: Sequence[Table], masks: TableMasks
) -> Iterator[Row]:
    """Stage tables one after the other, when planning or an executor fails with all of them, to find the one at fault.

    Errors of the log, or of files, are not those of a table.
    """
    for number, (each, table) in enumerate(zip(requested, tables, strict=True)):
        try:
            tasks = [
                replace(task, tables=tuple(replace(mine, number=number) for mine in task.tables))
                for task in staging_tasks(log, store, [each], [table], masks)
            ]
            yield from _run_staging(log.spark, tasks)
        except (PgoutputError, OSError):
            raise
        except Exception as error:
            if not is_alive(log.spark):
                raise
            yield Row(table=number, error=reason_of(error))


def staging_tasks(
    log: OpenLog,
    store: LogStore,
    requested: Sequence[ChangeRequest],
    tables: Sequence[Table],
    masks: TableMasks = _NO_MASKS,
) -> Iterator[StagingTask]:
    """Yield the tasks, each for tables whose changes begin after the same seq.

    Args:
        log: The log.
        store: The store of the files.
        requested: The changes,
        tables: and the table of each.
        masks: The masks of columns.
    """
    numbers, heap = count(), heap_of(log.spark)
    for after in sorted({each.after for each in requested}):
        mine = {number: tables[number] for number, each in enumerate(requested) if each.after == after}
        used = {number: reader_columns(log.opened, table) for number, table in mine.items()}
        oids = tuple(sorted({table.relation_oid for table in mine.values()}))
        range_ = LogRange(after, log.opened.as_of, lost=tuple(lost_histories(log.opened.index)))
        for group, described in plan_described_segments(log.opened, range_, oids):
            found = {number: columns_of_group(used[number], described) for number in mine}
            of_piece = tuple(
                _staged_table(number, mine[number], known, masks, heap) for number, known in found.items() if known
            )
            yield StagingTask(next(numbers), group, oids, of_piece, store, STAGED)


def _staged_table(
    number: int, table: Table, used: Mapping[int, ReaderColumns], masks: TableMasks, heap: Heap | None
) -> StagedTable:
    keys = () if table.replica_identity == RelationReplicaIdentity.FULL else table.key_columns
    known = tuple(name for name in keys if name in table.columns.names)
    mine = {escaped(name): mask for name, mask in masks.get(table.qualified, {}).items()}
    chosen = {name: mask for name, mask in mine.items() if name in table.columns.names}
    schema = changes_schema(table.columns)
    return StagedTable(
        number,
        table.columns,
        schema,
        known,
        used,
        chosen,
        table.hides_values,
        table.copied,
        table.qualified,
        table.needs_types,
        heap,
    )


def _with(files: StagedFiles, result: Row) -> StagedFiles:
    if result["error"] is not None:
        return replace(files, errors=(*files.errors, result["error"]))
    bounds = {name: (low, high) for name, (low, high) in json.loads(result["bounds"]).items()}
    fields = {name: result[name] for name in ChangeSummary._fields}
    summary = ChangeSummary(**fields | {"unsent": frozenset(result["unsent"]), "bounds": bounds})
    return replace(files, names=(*files.names, result["file"]), summary=combined_summary(files.summary, summary))


STAGING_RESULT: Final = pa.schema(
    {
        "table": pa.int32(),
        "file": pa.string(),
        "error": pa.string(),
        "changes": pa.int64(),
        "truncates": pa.bool_(),
        "unsent": pa.list_(pa.string()),
        "moved": pa.bool_(),
        "chained": pa.bool_(),
        "untyped": pa.bool_(),
        "inserts_only": pa.bool_(),
        "bounds": pa.string(),
    }
)
"""What a task reports of each table: the file of its changes and their summary, or an error."""


def stage(task: StagingTask) -> Iterator[dict[str, Any]]:
    """Run a task; yields STAGING_RESULT, a row per table. Raises ChangeLogError for damage."""
    files = {table.number: _ChangesFile(table) for table in task.tables}
    for part in read_parts(task.group, task.oids):
        for file in files.values():
            file.take(part)
    for number, file in files.items():
        if file.summary or file.error:
            name = f"{task.folder}/{number}-{task.number}.parquet"
            if file.summary:
                write_file(task.store, name, file.content())
            summary = reduce(combined_summary, file.summary, _NOTHING)
            report = summary._asdict() | {"unsent": [*summary.unsent], "bounds": json.dumps(dict(summary.bounds))}
            yield {"table": number, "file": name, "error": file.error, **report}


def masked_changes(log: OpenLog, table: Table, after: int, masks: TableMasks) -> DataFrame:
    """Return the changes of a table as they are staged, without storing them.

    Args:
        log: The log.
        table: The table, as the warehouse has it, under the names of replays.
        after: The seq after which they ended.
        masks: The masks of columns.
    """
    tasks = list(staging_tasks(log, log.log.store, [ChangeRequest(table.qualified, after)], [table], masks))
    schema = from_arrow_schema(changes_schema(table.columns), prefer_timestamp_ntz=True)
    return task_rows(log.spark, tasks, _staged_batches, schema)


def _staged_batches(task: StagingTask) -> Iterator[pa.RecordBatch]:
    for part in read_parts(task.group, task.oids):
        for table in task.tables:
            for batch in decode_part(part, table.columns, table.schema, table.used):
                yield stored_batch(batch, table)


def write_file(store: LogStore, name: str, content: pa.Buffer) -> None:
    """Write a file into a warehouse; raise ChangeLogError where that does not exist on the host of the task."""
    try:
        store.write(name, content)
    except MissingFileError as error:
        raise ChangeLogError(
            f"{store}: not found on the host {platform.node()}, where a task of Spark writes into it: give a warehouse "
            "on a file system that all executors share under this path, or at an address such as s3://bucket/folder"
        ) from error


def stored_batch(batch: pa.RecordBatch, table: StagedTable) -> pa.RecordBatch:
    """Return decoded changes as they are stored: masked, and with copies of their own columns.

    Raises ChangeLogError for a value that its type cannot hold, if there is no ``_untyped`` for it, and for a row that
    is too large for Spark.
    """
    found = masked_batch(batch, table.masks)
    if table.heap is not None:
        _check_sizes(table.name, found, table.heap)
    for name, source in table.copied.items():
        has_row = pc.invert(pc.is_in(found["_op"], pa.array([DELETE, TRUNCATE])))
        values = pc.if_else(has_row, found[source], pa.scalar(None, found[source].type))
        found = found.set_column(found.schema.get_field_index(name), name, values)
    if table.needs_types and len(untyped := found["_untyped"].keys):
        names = sorted({name.removeprefix("_before.").removeprefix(MARK) for name in pc.unique(untyped).to_pylist()})
        raise ChangeLogError(
            f"{table.name}: values of {', '.join(map(repr, names))} cannot be represented in the types of their "
            "columns, such as infinite times, and text that is not UTF-8: let tables have _untyped (--untyped needed, "
            "untyped=), or read them as texts, such as with --types timestamptz=string (types=)"
        )
    return found


def _check_sizes(table: str, batch: pa.RecordBatch, heap: Heap) -> None:
    """Raise ChangeLogError for a row that is too large for the heap that it would go through."""
    if batch.nbytes <= heap.largest_row:
        return
    sizes = {name: _sizes(batch.column(name)) for name in batch.schema.names}
    rows = np.sum([*sizes.values()], axis=0)
    row = int(np.argmax(rows))
    if (size := int(rows[row])) <= heap.largest_row:
        return
    name = max(sizes, key=lambda each: int(sizes[each][row]))
    own, needed = name.removeprefix(MARK), heap.gigabytes_for(size)
    raise ChangeLogError(
        f"{table}: a row of {shown_bytes(size)} at LSN {Lsn(batch.column(POSITION[0])[row].as_py())}, "
        f"{shown_bytes(int(sizes[name][row]))} of it in {own!r}, is too large for Spark's heap of {heap}: set "
        f"{heap.setting} (--conf {heap.setting}={needed}g), exclude the column (--exclude-columns), or mask it (--mask)"
    )


def _sizes(values: pa.Array) -> Numbers:
    """Return the bytes of the texts and binary values in each value of a column."""
    kind = values.type
    if pa.types.is_struct(kind):
        return sum(map(_sizes, values.flatten()), np.zeros(len(values), np.int64))
    if pa.types.is_map(kind) or pa.types.is_list(kind):
        inner = [values.keys, values.items] if pa.types.is_map(kind) else [values.values]
        return np.diff(np.append(0, np.cumsum(sum(map(_sizes, inner))))[values.offsets.to_numpy()])
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pc.fill_null(pc.binary_length(values), 0).to_numpy().astype(np.int64)
    return np.zeros(len(values), np.int64)


def hidden_reason(error: Exception) -> str:
    """Return an error without text that may have a value of a row; errors of the layout of messages have none."""
    if isinstance(error, PgoutputError) and not isinstance(error, EngineError):
        return reason_of(error)
    return f"{type(error).__name__} (its text is not shown, since columns of the table are masked or excluded)"


class _ChangesFile:
    """The changes of one table in a task."""

    def __init__(self, table: StagedTable) -> None:
        self._table = table
        self._sink = pa.BufferOutputStream()
        self._writer: RowsFile | None = None
        self.summary: list[ChangeSummary] = []
        self.error: str | None = None

    def take(self, part: SegmentPart) -> None:
        """Add the rows of the table in a part of the log; an error of decoding is the error of the table."""
        if self.error is not None or not any(each.seq in self._table.used for each, _ in part.described):
            return
        try:
            for batch in decode_part(part, self._table.columns, self._table.schema, self._table.used):
                self._write(stored_batch(batch, self._table))
        except Exception as error:  # of any class: the other tables of the task are still read
            self.error = hidden_reason(error) if self._table.is_secretive else reason_of(error)

    def content(self) -> pa.Buffer:
        """Return the file."""
        if self._writer is not None:
            self._writer.close()
        return self._sink.getvalue()

    def _write(self, batch: pa.RecordBatch) -> None:
        if self._writer is None:
            self._writer = RowsFile(self._sink, self._table.schema, group_bytes=0)  # many at once
        self._writer.write(batch)
        self.summary.append(summarize(batch, self._table.keys))
