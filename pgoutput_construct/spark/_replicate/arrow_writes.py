"""Small tables of a batch, and few changes of larger ones, in Arrow: a job of Spark for each costs more than the rows.

Spark takes a second to plan and run a MERGE into a table of ten rows, and milliseconds are enough. Here a batch

- **prepares** each table that ``small_tables`` can bring up to date: ``Sink.new_files`` says which files it has, and
  how others become part of it, and refuses those that may be read in more than one way;
- **produces** the files of all, in tasks, or in this process if that takes less time: a task reads the changes of its
  tables, and the rows before, one table after the other;
- **commits** each table by itself, and writes its note.

A table is **written** from scratch, or new rows are **appended**, without reading any; else it is **overwritten** by
one file, where that is not more than what a merge would write. Where files can say which rows of others are gone
(Iceberg's position deletes, Parquet's deleted positions), a larger one gets a file of the rows that are new, and one of
these **deletes**; when it has many files, it is overwritten. Of one that is larger still, only the rows are read that
have a key of the changes, and the keys of the others; when it has many files, it is left to a merge.

A row keeps its ``_commit_lsn`` and ``_seq`` until it changes, and in a history until it ends, by which the rows that
are gone are found among those before. Rows of a copy are counted in another way than changes
(``dataset_columns.ROW_KEY``), so a change that commits at the LSN of the snapshot may have the position of a copied
row: then the table is overwritten. So is one whose deleted rows stay.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from pgoutput_construct.changelog._segment.block import Flags
from pgoutput_construct.changelog._store.store import LogStore
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.lake._notes import Dataset
from pgoutput_construct.lake._parquet_parts import deleted_rows
from pgoutput_construct.spark._deferred_session import is_closed, needed_by
from pgoutput_construct.spark._execution import plain_errors, reaches_files, reason_of, run_tasks
from pgoutput_construct.spark._heap import shown_bytes
from pgoutput_construct.spark._log_view.change_columns import POSITION
from pgoutput_construct.spark._open_log import OpenLog
from pgoutput_construct.spark._own_session import SparkSessions
from pgoutput_construct.spark._replicate.batch_plan import TableStep
from pgoutput_construct.spark._replicate.small_tables import (
    SmallTable,
    check_memory,
    content_of,
    read_files,
    read_rows_of_keys,
    tables_lacking_rows,
)
from pgoutput_construct.spark._replicate.staging import StagedChanges, hidden_reason, write_file
from pgoutput_construct.spark._replicate.write_ways import SparkNeededError, arrow_obstacle, can_append
from pgoutput_construct.spark._state.change_survey import ChangeSummary
from pgoutput_construct.spark._state.demands import OnMissing
from pgoutput_construct.spark._table_formats.sink import (
    TINY,
    DeletesFile,
    FilesUse,
    NewFiles,
    PresentFile,
    Sink,
    most_rows,
)
from pgoutput_construct.spark._table_formats.table_description import without_other_key

_FILES: Final = 64
"""A table of more files, those of deletes included, is overwritten, so that readers need not open many."""
_TASKS: Final = 32
_TABLES_OF_TASK: Final = 16
"""Tables of a task, if there are more than that many tasks."""
_REQUESTS: Final = 8
"""Tasks that run here at the same time, where files are in an object store."""
_RESULT: Final = pa.schema(
    {
        "table": pa.int32(),
        "bytes": pa.int64(),
        "delete_bytes": pa.int64(),
        "overwrites": pa.bool_(),
        "rows": pa.int64(),
        "reason": pa.string(),
        "is_error": pa.bool_(),
    }
)
"""What a task reports of each of its tables: the bytes of the file of rows and that of deletes, 0 for none; whether all
that the table has is in the former, and how many rows it has then; or why it is not done, and whether that is an error.
"""


@dataclass(frozen=True)
class ArrowWrite:
    """What a task does for a table."""

    number: int
    """The index of the table among the steps of the batch."""
    table: SmallTable
    use: FilesUse
    """What the file is to the table."""
    name: str
    """The name of the file in the warehouse."""
    schema: pa.Schema
    """Its columns."""
    codec: str
    """The compression of its pages, by Arrow's name."""
    present: tuple[PresentFile, ...]
    """The files that have all present rows."""
    deletes: DeletesFile | None = None
    """The file that can say which rows of these are gone; None for none."""
    finds_rows: bool = False
    """Whether rows before are found by the keys of changes: these alone are read."""
    is_secretive: bool = False
    """Whether values of its rows must not be shown, since columns are masked or excluded."""


@dataclass(frozen=True)
class ArrowTask:
    """Tables, and the store of their files."""

    store: LogStore
    writes: tuple[ArrowWrite, ...]


@dataclass(frozen=True)
class ProducedFiles:
    """The files of a table that were written, and are not part of it yet."""

    files: NewFiles
    added: Mapping[str, int]
    """The bytes of each by its name."""
    deletes: Mapping[str, int] | None
    """Those of files that say which rows are gone; None where no file says so."""
    rows: int | None
    """How many rows the table has then; None where it is not known."""

    def commit(self) -> Dataset:
        """Make the files part of the table; return the dataset."""
        return self.files.commit(self.added, self.deletes)


def produce(
    log: OpenLog,
    sink: Sink,
    sessions: SparkSessions,
    steps: Sequence[TableStep],
    staged: StagedChanges,
    on_missing: OnMissing,
) -> dict[int, ProducedFiles | Exception]:
    """Write the files of the tables that are small and simple; return these by the index of their steps.

    For a table that Spark is to write it is the reason, a SparkNeededError or what has failed.
    """
    lacking = tables_lacking_rows(log, on_missing)
    decoded = [number for number, step in enumerate(steps) if not staged.files[step.request].errors]

    def prepare(spark: SparkSession, number: int) -> tuple[ArrowWrite, NewFiles]:
        step = steps[number]
        changes = staged.files[step.request]
        if reason := arrow_obstacle(log, step, changes.summary):
            raise SparkNeededError(reason)
        table = SmallTable.from_step(log, sink, step, changes.names, changes.summary, lacking)
        with needed_by(step.what):
            use, files, finds_rows = _prepared(log, spark, sink, step, table, changes.summary)
        name = f"{files.folder}/part-{uuid4().hex}.parquet"
        present, deletes, hides_values = tuple(files.present), files.deletes, log.table(step.table).hides_values
        write = ArrowWrite(
            number, table, use, name, files.schema, files.codec, present, deletes, finds_rows, hides_values
        )
        return write, files

    found, prepared = dict[int, ProducedFiles | Exception](), dict[int, tuple[ArrowWrite, NewFiles]]()
    for step_number, each in sessions.run_grouped(decoded, prepare):
        if isinstance(each, Exception):
            found[step_number] = each
        else:
            prepared[step_number] = each
    writes = [write for write, _ in prepared.values()]
    # Tables with many changes are distributed first, each to another task.
    writes.sort(key=lambda write: -staged.files[steps[write.number].request].summary.changes)
    number = max(min(len(writes), _TASKS), -(-len(writes) // _TABLES_OF_TASK))
    store = sink.warehouse.store
    tasks = [ArrowTask(store, tuple(writes[index::number])) for index in range(number)]
    size, at_once = _size(log.spark, sink, staged, writes), 1 if sink.warehouse.is_local else _REQUESTS
    with plain_errors(), needed_by(f"{len(writes)} small tables"):
        rows = run_tasks(log.spark, tasks, write_files, _RESULT, size, at_once)
    return found | {row["table"]: _produced(*prepared[row["table"]], row) for row in rows}


def _prepared(
    log: OpenLog, spark: SparkSession, sink: Sink, step: TableStep, table: SmallTable, summary: ChangeSummary
) -> tuple[FilesUse, NewFiles, bool]:
    """Return how files become part of a table, and whether rows before are found by key.

    Raises SparkNeededError for a table that Spark is to write.
    """
    before, dataset = step.continued, step.dataset
    if before is None:
        files = sink.new_files(spark, dataset, table.stored_schema, step.replaced, FilesUse.REPLACE)
        if files is None:
            raise SparkNeededError(sink.needs_spark)
        return FilesUse.REPLACE, files, False
    is_here = before.directory == dataset.directory and sink.naming_of(before) == sink.naming_of(dataset)
    if not is_here or not sink.can_merge(dataset):
        raise SparkNeededError("it, its metadata columns or its partitions are called otherwise than before")
    most, uses = most_rows(before, 0), list[FilesUse]()
    has_few = most is None or sink.few_rows is None or most <= sink.few_rows
    has_keys = sink.key_bytes > 0 and table.has_keys and not summary.truncates
    if table.kind == "rows" and can_append(log, step, before.version, summary):
        uses.append(FilesUse.APPEND)
    if has_few or has_keys:
        uses.append(FilesUse.OVERWRITE)
    if uses and not dataset.is_history:
        before = without_other_key(spark, sink, before, log.table(step.table))
        dataset = step.continuing(before).dataset
    for use in uses:
        files = sink.new_files(spark, dataset, table.stored_schema, before, use)
        if files is not None:
            limit = sink.history_bytes if dataset.is_history and files.deletes is None else sink.few_bytes
            by_key = sink.key_bytes if has_keys and files.deletes is not None else 0
            size, count = sum(file.size for file in files.present), _file_count(files.present)
            if size <= limit and (has_few or use is FilesUse.APPEND):
                return use, files, False
            if size > max(limit, by_key):
                raise SparkNeededError(
                    f"its files have {shown_bytes(size)}, more than {shown_bytes(max(limit, by_key))}"
                )
            if size > by_key:
                break  # they are few bytes, of many rows
            if count >= _FILES:
                raise SparkNeededError(f"it has {count} files, more than {_FILES - 1}")
            return use, files, True
    raise SparkNeededError(sink.needs_spark if has_few or has_keys else f"{most:,} rows, more than {sink.few_rows:,}")


def _size(spark: SparkSession, sink: Sink, staged: StagedChanges, writes: Sequence[ArrowWrite]) -> int | None:
    """Return the bytes that tasks work on, by which they run here or in executors; None where only these can.

    The files that tables have are no reason to start Spark; nor to run a job of it, where tables are committed one by
    one in any case.
    """
    if staged.size is None or not reaches_files(spark, sink.warehouse.store):
        return None
    counts = sink.note_commits and not is_closed(spark)
    return staged.size + sum(file.size for write in writes if counts and not write.finds_rows for file in write.present)


def _produced(write: ArrowWrite, files: NewFiles, row: Any) -> ProducedFiles | Exception:
    if row["reason"] is not None:
        return ChangeLogError(row["reason"]) if row["is_error"] else SparkNeededError(row["reason"])
    added = {write.name: row["bytes"]} if row["bytes"] else {}
    deletes = {write.deletes.name: row["delete_bytes"]} if write.deletes and row["delete_bytes"] else {}
    rows = None if write.use is FilesUse.APPEND else row["rows"]
    return ProducedFiles(files, added, None if row["overwrites"] else deletes, rows)


def write_files(task: ArrowTask) -> Iterator[dict[str, Any]]:
    """Run a task; yields _RESULT: a table that is not done is left to Spark."""
    for write in task.writes:
        try:
            done = _write(task.store, write)
        except Exception as error:  # when Spark writes it, the error is that of the table
            reason = hidden_reason(error) if write.is_secretive else reason_of(error)
            done = {"reason": reason, "is_error": not isinstance(error, SparkNeededError)}
        yield {"table": write.number, **done}


def _write(store: LogStore, write: ArrowWrite) -> dict[str, Any]:
    """Write the files of a table; return what _RESULT has of them; raise SparkNeededError if Spark is to write it."""
    changes, table = write.table.read_changes(store), write.table
    before = None if write.use is not FilesUse.OVERWRITE else _rows_before(store, write, changes)
    after = table.after(None if before is None else before.rows, changes)
    new, gone = after, None
    if before is not None and not _is_overwritten(write, before.rows, changes):
        was, now = _positions(before.rows), _positions(after)
        if len(np.unique(was)) < len(was) or len(np.unique(now)) < len(now):
            raise SparkNeededError("two of its rows have one position")
        is_gone = ~np.isin(was, now)
        if write.finds_rows or is_gone.sum() <= len(was) // 2:
            new, gone = after.filter(pa.array(~np.isin(now, was))), is_gone
    if gone is None and write.finds_rows:
        raise SparkNeededError("a change may have the position of a row before")  # which was not read
    rows = len(after) + (0 if before is None else before.others)
    found: dict[str, Any] = {"overwrites": gone is None, "rows": rows, "bytes": 0, "delete_bytes": 0}
    if gone is None or new.num_rows:
        content = content_of(table.to_stored(new).cast(write.schema), write.codec)
        write_file(store, write.name, content)
        found["bytes"] = content.size
    if before is not None and write.deletes is not None and gone is not None and gone.any():
        content = _deletes_content(before, gone, write.deletes.schema, write.codec)
        write_file(store, write.deletes.name, content)
        found["delete_bytes"] = content.size
    return found


def _is_overwritten(write: ArrowWrite, before: pa.Table, changes: pa.Table) -> bool:
    """Return whether all rows are written again.

    So they are where a change may have the position of a row before: it is applied again, or the row was copied. Of
    rows that were deleted by a TRUNCATE, all have one.
    """
    is_tiny = not write.finds_rows and sum(file.size for file in write.present) <= TINY
    if is_tiny or write.deletes is None or write.table.kind == "soft" or _file_count(write.present) >= _FILES:
        return True
    return bool(np.isin(before[POSITION[0]].to_numpy(), changes[POSITION[0]].to_numpy()).any())


def _file_count(present: Sequence[PresentFile]) -> int:
    """Return the number of files, those of deletes included."""
    return len({*present, *(name for file in present for name in file.deletes)})


class _RowsBefore(NamedTuple):
    """The rows of a table, or those that changes may be of, and where they are."""

    rows: pa.Table
    files: tuple[PresentFile, ...]
    """Their files."""
    kept: tuple[Flags, ...]
    """Of each file, which of its rows these are."""
    others: int
    """How many rows the table has besides."""


def _rows_before(store: LogStore, write: ArrowWrite, changes: pa.Table) -> _RowsBefore:
    """Return the rows before; raise SparkNeededError where files are not as they are written now."""
    names = {name for file in write.present for name in file.deletes}
    if names and write.deletes is None:
        raise SparkNeededError("files say which of its rows are gone, as no file of its present write mode does")
    gone = deleted_rows(store, names, write.deletes.schema.names) if write.deletes is not None else {}
    keys = write.table.keys_of(changes) if write.finds_rows else None
    parts, kept, others = [write.schema.empty_table()], list[Flags](), 0
    for file in write.present:
        deleted = gone.get(file.address, np.zeros(0, np.int64))
        if keys is None:
            found = _without(read_files(store, [file.name], write.schema, most=file.size), deleted)
        else:
            found = read_rows_of_keys(store, file.name, write.schema, keys, deleted)
        parts.append(found[0])
        kept.append(found[1])
        others += len(found[1]) - len(deleted) - len(found[0])
        if keys is not None:
            check_memory(sum(part.nbytes for part in parts))
    rows = write.table.from_stored(pa.concat_tables(parts)).cast(write.table.schema)
    return _RowsBefore(rows, write.present, tuple(kept), others)


def _without(rows: pa.Table, deleted: Any) -> tuple[pa.Table, Flags]:
    """Return rows without those of some indexes, and which these are among all."""
    is_kept = np.ones(len(rows), np.bool_)
    is_kept[deleted] = False
    return rows.filter(pa.array(is_kept)), is_kept


def _positions(rows: pa.Table) -> Any:
    """Return the positions of rows, each as one value; in a history along with whether the row has ended."""
    columns = [rows[name].to_numpy() for name in POSITION]
    if "_ended_by" in rows.column_names:
        columns.append(rows["_ended_by"].is_valid().to_numpy().astype(np.int64))
    return np.ascontiguousarray(np.stack(columns, 1)).view([("", np.int64)] * len(columns)).ravel()


def _deletes_content(before: _RowsBefore, gone: Flags, schema: pa.Schema, codec: str) -> pa.Buffer:
    """Return which rows are gone, as a file."""
    addresses, indexes, start = list[list[str]](), list[int](), 0
    for file, kept in zip(before.files, before.kept, strict=True):
        there = np.flatnonzero(kept)
        lost = there[gone[start : start + len(there)]]
        start += len(there)
        addresses += [file.address.rsplit("/", len(schema) - 2)] * len(lost)
        indexes += lost.tolist()
    rows = pa.table([*map(pa.array, zip(*addresses, strict=True)), pa.array(indexes)], schema=schema)
    sink = pa.BufferOutputStream()
    rows = rows.sort_by([(name, "ascending") for name in schema.names])
    pq.write_table(rows, sink, compression=codec, store_schema=False)
    return sink.getvalue()
