"""Rows that are new, written by the tasks that decode them: of a table that is loaded, or only inserted into.

Changes are staged in general: what is done with them depends on what they contain, and they are read several times.
Where the index of the log has nothing but inserts and copied rows of a table since its last version, and these are
appended, they are read once. So the tasks that decode them also write the data files of the table, where its format can
take files that others have written (``sink.NewFiles``): rows do not go through the JVM, where they would take as long
again. For other formats Spark writes them, as the tasks decode them.

The index counts messages by their tags, without what is in them. So a task checks what it decodes, and refuses
(``StagingNeededError``) what has to be applied in another way: an UPDATE of a row that enters a row filter is sent as
an INSERT, without its unchanged TOASTed values. Nothing of the table is written then, and its changes are staged.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Self
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from pgoutput_construct.changelog._store.store import LogStore
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.lake._notes import Dataset
from pgoutput_construct.spark._deferred_session import NEEDED_BY
from pgoutput_construct.spark._execution import plain_errors, run_tasks, task_rows
from pgoutput_construct.spark._log_view.added_columns import MARK
from pgoutput_construct.spark._log_view.change_columns import POSITION, changes_schema
from pgoutput_construct.spark._log_view.replicated_tables import BaseCopy
from pgoutput_construct.spark._open_log import OpenLog
from pgoutput_construct.spark._parquet_file import RowsFile
from pgoutput_construct.spark._replicate.batch_plan import TableStep
from pgoutput_construct.spark._replicate.staging import (
    ChangeRequest,
    StagingTask,
    TableMasks,
    hidden_reason,
    size_of,
    staging_tasks,
    stored_batch,
    write_file,
)
from pgoutput_construct.spark._source.segment_rows import decode_part, read_parts
from pgoutput_construct.spark._state.change_survey import ADDED, ChangeSummary
from pgoutput_construct.spark._state.copy_visibility import counted_changes_arrow, restore_copy_lsn_arrow
from pgoutput_construct.spark._table_formats.dataset_columns import Naming
from pgoutput_construct.spark._table_formats.sink import FilesUse, NewFiles, Sink, most_rows
from pgoutput_construct.spark._table_formats.table_description import commented, comments_of

_WRITTEN: Final = pa.schema({"file": pa.string(), "bytes": pa.int64()})


class StagingNeededError(ChangeLogError):
    """Changes that are not all new rows: nothing was written, and they can be staged."""


def new_rows_summary(count: int) -> ChangeSummary:
    """Return the summary of ``count`` new rows, as far as it is known before they are decoded."""
    return ChangeSummary(count, False, frozenset(), False, False, untyped=True, inserts_only=True)


@dataclass(frozen=True)
class _RowRule:
    """What makes new rows of the changes of a table."""

    oid: int
    """The OID of the table: others had its name before."""
    base: BaseCopy | None
    """The copy that the table begins with, None for none."""
    schema: pa.Schema
    """The columns of the rows."""


@dataclass(frozen=True)
class NewRows:
    """New rows of a table, which are decoded when they are written."""

    tasks: Sequence[StagingTask]
    rule: _RowRule
    store: LogStore
    """The store of the warehouse."""
    summary: ChangeSummary

    @classmethod
    def from_log(
        cls, log: OpenLog, store: LogStore, request: ChangeRequest, summary: ChangeSummary, masks: TableMasks
    ) -> Self:
        """Plan how rows are decoded: of a log that is opened as of the end of the batch, under the names of replays."""
        table = log.table(request.table)
        whole = changes_schema(table.columns)
        schema = pa.schema([whole.field(name).with_nullable(True) for name in (*table.current, "_untyped", *POSITION)])
        tasks = list(staging_tasks(log, store, [request], [table], masks))
        return cls(tasks, _RowRule(table.relation_oid, table.base, schema), store, summary)

    def frame(self, spark: SparkSession) -> DataFrame:
        """Return the rows as a DataFrame, whose actions fail with StagingNeededError where other changes are found."""
        kinds = from_arrow_schema(self.rule.schema, prefer_timestamp_ntz=True)
        return task_rows(spark, self.tasks, partial(_decoded, rule=self.rule), kinds)

    def schema_of(self, naming: Naming) -> pa.Schema:
        """Return the columns that a dataset has of the rows, under its names."""
        held = (field for field in self.rule.schema if naming.holds(field.name))
        return pa.schema([field.with_name(naming.reader_name(field.name)) for field in held])

    def write(self, spark: SparkSession, files: NewFiles, naming: Naming) -> dict[str, int]:
        """Write the rows as files; return the bytes of each by its name in the warehouse.

        Raises:
            StagingNeededError: Other changes are found.
            ChangeLogError: Rows cannot be decoded, or files not be written. Files that were written are removed.
        """
        names = tuple(name for name in self.rule.schema.names if naming.holds(name))
        prefix = f"{files.folder}/part-{uuid4().hex}"
        work = partial(_write, rule=self.rule, names=names, schema=files.schema, codec=files.codec, prefix=prefix)
        try:
            with plain_errors():
                works = [(self.store, _without_heap(task)) for task in self.tasks]
                written = run_tasks(spark, works, work, _WRITTEN, size_of(spark, self.tasks))
        except BaseException:
            for task in self.tasks:
                with suppress(ChangeLogError, OSError):
                    self.store.delete(_file_name(prefix, task))
            raise
        return {row["file"]: row["bytes"] for row in written}


def write_new_rows(log: OpenLog, spark: SparkSession, sink: Sink, step: TableStep, rows: NewRows) -> Dataset:
    """Append new rows to a dataset, or make it of them; return it. For steps of which ``appends_new_rows`` says True.

    Raises:
        StagingNeededError: There are other changes than new rows; nothing was written.
        ChangeLogError: Rows cannot be decoded.
    """
    naming, before = sink.naming_of(step.dataset), step.continued
    is_marked = any(name.startswith(MARK) for name in rows.rule.schema.names)  # their texts name other columns
    files, reason = None, "a column has the name of a metadata column" if is_marked else sink.needs_spark
    if not is_marked:
        use = FilesUse.REPLACE if before is None else FilesUse.APPEND
        files = sink.new_files(spark, step.dataset, rows.schema_of(naming), step.replaced, use)
    written = {} if files is None else rows.write(spark, files, naming)
    reason = reason if files is None else "it has no rows that files could be written of"
    if files is not None and written:
        done = files.commit(written)
    elif before is None:
        NEEDED_BY.set(f"{step.table} ({reason})")
        comments = comments_of(sink, log.table(step.table), naming)
        frame = commented(naming.for_dataset(rows.frame(spark)), comments)
        done = sink.replace(spark, step.dataset, frame, step.replaced)
    else:
        NEEDED_BY.set(f"{step.table} ({reason})")
        done = sink.append(spark, step.dataset, naming.for_dataset(rows.frame(spark)))
    added = rows.summary.changes
    return sink.with_most_rows(done, added if before is None else most_rows(before, added))


def _without_heap(task: StagingTask) -> StagingTask:
    """Return a task whose rows do not go through the JVM: Python writes the files, and reads what commits need."""
    return replace(task, tables=tuple(replace(table, heap=None) for table in task.tables))


def _file_name(prefix: str, task: StagingTask) -> str:
    return f"{prefix}-{task.number:05}.parquet"


def _decoded(task: StagingTask, rule: _RowRule) -> Iterator[pa.RecordBatch]:
    """Run a task for one table; yields its new rows."""
    if not task.tables:
        return  # segments without rows of the table
    (table,) = task.tables
    try:
        for part in read_parts(task.group, task.oids):
            for batch in decode_part(part, table.columns, table.schema, table.used):
                changes = _checked(stored_batch(batch, table), table.name, rule.oid)
                rows = restore_copy_lsn_arrow(counted_changes_arrow(changes, rule.base, with_copy=True), rule.base)
                yield from rows.select(rule.schema.names).cast(rule.schema).to_batches()
    except StagingNeededError:
        raise
    except Exception as error:
        if table.is_secretive:
            raise ChangeLogError(hidden_reason(error)) from None
        raise


def _checked(batch: pa.RecordBatch, name: str, oid: int) -> pa.Table:
    """Return the changes of a table in a batch; raise StagingNeededError where these are not all new rows."""
    changes = pa.Table.from_batches([batch])
    is_own = pc.equal(changes["_relation_oid"], oid)
    if not pc.all(is_own, min_count=0).as_py():
        changes = changes.filter(is_own)
    is_added, has_all = pc.is_in(changes["_op"], ADDED), pc.equal(pc.list_value_length(changes["_unchanged"]), 0)
    for flags in (is_added, pc.fill_null(has_all, True)):
        if not pc.all(flags, min_count=0).as_py():
            raise StagingNeededError(f"{name}: not all of its changes are new rows with all of their values")
    return changes


def _write(
    work: tuple[LogStore, StagingTask], rule: _RowRule, names: Sequence[str], schema: pa.Schema, codec: str, prefix: str
) -> Iterator[dict[str, Any]]:
    """Run a task for one table; yields ``_WRITTEN`` if there are new rows.

    Args:
        work: The store of the warehouse, and the task.
        rule: What makes new rows of changes.
        names: The columns of the files among those of the rows,
        schema: and what they are called there.
        codec: The compression of pages, by Arrow's name.
        prefix: The beginning of the names of files.
    """
    store, task = work
    sink, has_rows = pa.BufferOutputStream(), False
    with RowsFile(sink, schema, codec) as file:
        for batch in _decoded(task, rule):
            stored = pa.Table.from_batches([batch]).select(names).rename_columns(schema.names).cast(schema)
            has_rows |= batch.num_rows > 0
            for each in stored.to_batches():
                file.write(each)
    if has_rows:
        content, name = sink.getvalue(), _file_name(prefix, task)
        write_file(store, name, content)
        yield {"file": name, "bytes": content.size}
