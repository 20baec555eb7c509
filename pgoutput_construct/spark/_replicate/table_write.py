"""How changes come into the dataset of a table: appended, merged, or with the table written as a whole.

- **Appended**, where all changes are inserts of rows that cannot be there: no row is read.
- **Overwritten** with what the driver makes of them, where the table has few rows and its format a log of commits:
  that is cheaper than to plan a merge.
- **Merged**, where the rows before can be found by the key that all changes have, and the columns are the same or the
  format alters them: what is written is about what has changed.
- **As a whole** otherwise: the rows before are replayed with the changes. ``WrittenTable.reason`` says why.
"""

from dataclasses import replace as with_values
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql.pandas.types import from_arrow_schema

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.lake._notes import Dataset
from pgoutput_construct.lake._versions import Version
from pgoutput_construct.spark._deferred_session import NEEDED_BY
from pgoutput_construct.spark._execution import reaches_files
from pgoutput_construct.spark._log_view.added_columns import MARK, escaped
from pgoutput_construct.spark._log_view.change_columns import POSITION, column
from pgoutput_construct.spark._log_view.replicated_tables import Table
from pgoutput_construct.spark._open_log import OpenLog
from pgoutput_construct.spark._own_session import session_settings
from pgoutput_construct.spark._replicate.batch_plan import TableStep
from pgoutput_construct.spark._replicate.new_rows import NewRows
from pgoutput_construct.spark._replicate.small_tables import SmallTable, tables_lacking_rows
from pgoutput_construct.spark._replicate.soft_deletes import SoftWrite, is_soft
from pgoutput_construct.spark._replicate.staging import StagedRows
from pgoutput_construct.spark._state.change_survey import ChangeSummary, survey
from pgoutput_construct.spark._state.copy_visibility import counted_changes, restore_copy_lsn
from pgoutput_construct.spark._state.demands import OnMissing, demand_of
from pgoutput_construct.spark._state.table_state import advance, net_changes
from pgoutput_construct.spark._table_formats.dataset_columns import DELETED_AT, Naming
from pgoutput_construct.spark._table_formats.sink import FilesUse, NetChanges, Sink, most_rows
from pgoutput_construct.spark._table_formats.table_description import commented, comments_of, without_other_key
from pgoutput_construct.wire.protocol import RelationReplicaIdentity

_FEWEST: Final = 2_000
"""The most rows of a table that Spark overwrites, with those that the driver has, and"""
_FEWEST_BYTES: Final = 1 << 18
"""the most bytes of them in memory: what a commit of Spark writes about itself is as much."""
_TOO_MUCH: Final = "is bigger than spark.driver.maxResultSize"
"""What Spark's error says of rows of more bytes than the driver takes, which a MERGE does not need there
(TaskSetManager.canFetchMoreResults)."""


class WrittenTable(NamedTuple):
    """What was written."""

    dataset: Dataset
    """The dataset as it is now."""
    reason: str = ""
    """Why its rows before were written again with the changes; "" where they were not."""


def write_table(
    log: OpenLog,
    spark: SparkSession,
    sink: Sink,
    step: TableStep,
    changes: StagedRows,
    before: Dataset | None,
    on_missing: OnMissing,
) -> WrittenTable:
    """Bring changes into the dataset of a table, in the cheapest way that gives the same rows.

    Args:
        log: The log.
        spark: The session.
        sink: What writes the format.
        step: The dataset to write.
        changes: The changes since the rows before; without any, all that the log has of the table.
        before: The dataset that the changes apply to; None to write the table from scratch.
        on_missing: As in ``OpenLog.state``.

    Raises:
        ChangeLogError: Changes that the state needs were pruned, or one changes a row that does not exist.
    """
    naming = sink.naming_of(step.dataset)
    if is_soft(step.dataset):
        NEEDED_BY.set(f"{step.table} (its deleted rows stay)")
        return _write_soft_table(SoftWrite(log, spark, sink, step, changes, before, on_missing))
    if before is None:
        if _begins_with_inserts(log, step, changes.summary):
            rows = _inserted_rows(log, step.table, changes)
        else:
            rows = _advanced_table(log, step.table, None, changes, on_missing)
        comments = comments_of(sink, log.table(step.table), naming)
        done = sink.replace(spark, step.dataset, commented(naming.for_dataset(rows), comments), step.replaced)
        return WrittenTable(sink.with_most_rows(done, changes.summary.changes))
    before = without_other_key(spark, sink, before, log.table(step.table))
    step = with_values(step, dataset=with_values(step.dataset, details=before.details))
    obstacle = _obstacle(log, spark, sink, step, before)
    if naming == sink.naming_of(before) and sink.can_merge(step.dataset):
        changed = _changed_dataset(log, spark, sink, step, changes, before, on_missing, can_merge=not obstacle)
        if changed is not None:
            return WrittenTable(changed)
    reason = obstacle or "it was truncated"
    NEEDED_BY.set(f"{step.table} ({reason})")
    there = sink.read_for_replay(spark, before)
    rows = _advanced_table(log, step.table, there, changes, on_missing, sink.is_small(before))
    rows = commented(naming.for_dataset(rows), comments_of(sink, log.table(step.table), naming))
    done = sink.replace(spark, step.dataset, rows, step.replaced)
    return WrittenTable(sink.with_most_rows(done, most_rows(before, changes.summary.changes)), reason)


def appends_new_rows(log: OpenLog, sink: Sink, step: TableStep, summary: ChangeSummary) -> bool:
    """Return whether ``write_table`` reads changes once and nothing else: their rows are appended, or are the table."""
    if step.dataset.is_history or is_soft(step.dataset):
        return False
    before = step.continued
    if before is None:
        return _begins_with_inserts(log, step, summary)
    is_same = sink.can_merge(step.dataset) and sink.naming_of(step.dataset) == sink.naming_of(before)
    return is_same and can_append(log, step, before.version, summary)


def write_new_rows(log: OpenLog, spark: SparkSession, sink: Sink, step: TableStep, rows: NewRows) -> Dataset:
    """Append new rows to a dataset, or make it of them; return it. For steps of which ``appends_new_rows`` says True.

    Raises:
        StagingNeededError: There are other changes than new rows; nothing was written.
        ChangeLogError: Rows cannot be decoded.
    """
    naming, before = sink.naming_of(step.dataset), step.continued
    if before is not None:
        before = without_other_key(spark, sink, before, log.table(step.table))
        step = with_values(step, dataset=with_values(step.dataset, details=before.details))
    is_marked = any(name.startswith(MARK) for name in rows.rule.schema.names)  # their texts name other columns
    files = None
    if not is_marked:
        use = FilesUse.REPLACE if before is None else FilesUse.APPEND
        files = sink.new_files(spark, step.dataset, rows.schema_of(naming), step.replaced, use)
    written = {} if files is None else rows.write(spark, files, naming)
    if files is not None and written:
        done = files.commit(written)
    elif before is None:
        comments = comments_of(sink, log.table(step.table), naming)
        frame = commented(naming.for_dataset(rows.frame(spark)), comments)
        done = sink.replace(spark, step.dataset, frame, step.replaced)
    else:
        done = sink.append(spark, step.dataset, naming.for_dataset(rows.frame(spark)))
    added = rows.summary.changes
    return sink.with_most_rows(done, added if before is None else most_rows(before, added))


def _write_soft_table(work: SoftWrite) -> WrittenTable:
    """Bring changes into a table whose deleted rows stay."""
    log, step, sink, before, changes = work.log, work.step, work.sink, work.before, work.changes
    if before is None:
        return WrittenTable(work.written())
    reason, naming = _obstacle(log, work.spark, sink, step, before), sink.naming_of(step.dataset)
    if naming == sink.naming_of(before) and sink.can_merge(step.dataset):
        # A key that is inserted may be that of a deleted row.
        if not log.table(step.table).key_columns and can_append(log, step, before.version, changes.summary):
            rows = _inserted_rows(log, step.table, changes).withColumn(DELETED_AT, F.lit(None).cast("timestamp"))
            return WrittenTable(sink.append(work.spark, step.dataset, naming.for_dataset(rows)))
        if not reason and not changes.summary.truncates:
            return WrittenTable(work.merged(before))
    return WrittenTable(work.written(), reason or "it was truncated")


def _changed_dataset(
    log: OpenLog,
    spark: SparkSession,
    sink: Sink,
    step: TableStep,
    changes: StagedRows,
    before: Dataset,
    on_missing: OnMissing,
    can_merge: bool,
) -> Dataset | None:
    """Change a dataset, rather than write it as a whole; return it, None where that cannot be."""
    naming, most = sink.naming_of(step.dataset), most_rows(before, changes.summary.changes)
    if can_append(log, step, before.version, changes.summary):
        rows = naming.for_dataset(_inserted_rows(log, step.table, changes))
        return sink.with_most_rows(sink.append(spark, step.dataset, rows), most)
    few_rows = min(_FEWEST, sink.few_rows or 0)
    if most is not None and most <= few_rows + changes.summary.changes:
        lacking = tables_lacking_rows(log, on_missing)
        few = SmallTable.from_step(log, sink, step, changes.files, changes.summary, lacking)
        written = None if few is None else _overwritten(spark, sink, step, before, few)
        if written is not None:
            return written
    if can_merge:
        merged = _net_of_step(log, step.table, changes, on_missing, naming)
        if merged is not None:
            return sink.with_most_rows(sink.merge(spark, step.dataset, merged), most)
    return None


def _overwritten(spark: SparkSession, sink: Sink, step: TableStep, before: Dataset, few: SmallTable) -> Dataset | None:
    """Overwrite a table of few rows, which Spark reads and writes; return its dataset, None for a merge."""
    store = sink.warehouse.store
    changes = few.read_changes(store) if sink.overwrites_few and reaches_files(spark, store) else None
    # If its files could be written in Arrow, they are too many bytes, or a change needs a merge.
    if changes is None or sink.new_files(spark, step.dataset, few.stored_schema, before, FilesUse.OVERWRITE):
        return None
    with session_settings(spark, sink.few_rows_settings):
        there = sink.read_for_replay(spark, before)
        if {*there.columns} != {*few.schema.names}:
            return None
        try:
            rows = there.select(*map(column, few.schema.names)).toArrow()
        except Exception as error:
            if _TOO_MUCH not in str(error):
                raise
            return None
        try:
            found = few.after(rows.cast(few.schema), changes) if rows.nbytes <= _FEWEST_BYTES else None
        except (PgoutputError, pa.ArrowException):
            found = None  # a merge says what is wrong
        if found is None:
            return None
        kinds = from_arrow_schema(found.schema, prefer_timestamp_ntz=True)
        frame = sink.naming_of(step.dataset).for_dataset(spark.createDataFrame(found, kinds).coalesce(1))
        return sink.with_most_rows(sink.overwrite(spark, step.dataset, frame), found.num_rows)


def _obstacle(log: OpenLog, spark: SparkSession, sink: Sink, step: TableStep, before: Dataset) -> str:
    """Return why changes cannot be merged into a dataset, as far as is known without reading it; "" if they can."""
    was, shape = before.version.shape, step.dataset.version.shape
    if sink.naming_of(step.dataset) != sink.naming_of(before):
        return "its metadata columns have other names"
    if not sink.can_merge(step.dataset):
        return "its format has no merge" if sink.is_replaced else "a former partition column was dropped"
    if not sink.alters and was.current != shape.current:
        return f"columns were added or dropped, which {sink.format} is not altered for"
    if (widened := was.widened_in(shape)) and not sink.can_widen(spark, before):
        return f"columns have wider types, which {sink.format} is not altered for: {', '.join(map(repr, widened))}"
    if step.has_defaults:
        return "columns were added with a default"
    return "" if _has_key(log.table(step.table), before.version) else "its rows have no key that all changes have"


def can_append(log: OpenLog, step: TableStep, before: Version, summary: ChangeSummary) -> bool:
    """Return whether the rows of changes are new rows of a version, which so need not be read.

    A key that is inserted may be there already in a table of which the log does not have everything, or whose deletes
    or truncates were not sent: such changes are merged.
    """
    was, shape = before.shape, step.dataset.version.shape
    has_same = was.current == shape.current and not was.widened_in(shape)
    return has_same and _are_new_rows(log, log.table(step.table), summary)


def _begins_with_inserts(log: OpenLog, step: TableStep, summary: ChangeSummary) -> bool:
    """Return whether all that the log has of a table are its present rows, as a copy that has not changed since is.

    Rows of other columns than the present ones may lack values, which a replay knows.
    """
    table = log.table(step.table)
    described = {columns for _, columns in table.shapes} | {frozenset(table.base.columns if table.base else ())}
    current, all_columns = (frozenset(names).difference(table.copied) for names in (table.current, table.columns.names))
    is_same = described - {frozenset()} == {current} == {all_columns}
    return is_same and log.is_retained(table) and _are_new_rows(log, table, summary)


def _are_new_rows(log: OpenLog, table: Table, summary: ChangeSummary) -> bool:
    """Return whether changes are inserts of rows that cannot be there, with all of their values.

    An UPDATE of a row that enters a row filter is sent as an INSERT, without its unchanged TOASTed values.
    """
    is_new = not table.key_columns or log.publishes_all
    return summary.inserts_only and not summary.unsent and log.is_whole(table) and is_new


def _inserted_rows(log: OpenLog, name: str, changes: StagedRows) -> DataFrame:
    """Return the rows that inserts add to a table: its columns, ``_untyped``, ``_commit_lsn`` and ``_seq``."""
    table, rows = log.table(name), changes.rows
    if not changes.summary.untyped:  # it need not be read
        rows = rows.withColumn("_untyped", F.lit(None).cast(rows.schema["_untyped"].dataType))
    found = counted_changes(rows, table).select(*map(column, table.current), "_untyped", *POSITION)
    return restore_copy_lsn(found, table)


def _advanced_table(
    log: OpenLog,
    name: str,
    before: DataFrame | None,
    changes: StagedRows,
    on_missing: OnMissing,
    is_small: bool = False,
) -> DataFrame:
    """Return the rows of a table after changes: its columns, ``_untyped``, ``_commit_lsn`` and ``_seq``.

    Args:
        log: The log.
        name: The table.
        before: The rows before, None for none: then the changes are all that the log has of it.
        changes: The changes.
        on_missing: As in ``OpenLog.state``.
        is_small: Whether the rows before are few.

    Raises:
        ChangeLogError: Without rows before, changes that the state needs were pruned.
    """
    table = log.table(name)
    if before is None:
        log.check_retained(table)
    return advance(
        before,
        changes.rows,
        table,
        on_missing,
        summary=changes.summary,
        is_small=is_small,
        is_whole=log.is_whole(table),
    )


def _has_key(table: Table, version: Version) -> bool:
    """Return whether the rows of a version can be found by the key with which all later changes are described."""
    keys = {tuple(each.key_columns) for each in table.identities if each.last > version.last}
    return (
        table.replica_identity != RelationReplicaIdentity.FULL
        and bool(table.key_columns)
        and set(table.key_columns) <= set(table.current)  # DROP COLUMN drops the key too, and sends no message
        and keys <= {table.key_columns}
        and tuple(map(escaped, version.shape.key_columns)) == table.key_columns
    )


def _net_of_step(
    log: OpenLog, name: str, changes: StagedRows, on_missing: OnMissing, naming: Naming
) -> NetChanges | None:
    """Return the net changes of a table; None if a truncate is among them.

    Args:
        log: The log.
        name: The table.
        changes: Its changes.
        on_missing: As in ``OpenLog.state``.
        naming: The names of columns in its dataset.
    """
    table = log.table(name)
    counted = counted_changes(changes.rows, table)
    if survey(counted, summary=changes.summary).truncated is not None:
        return None
    demand = demand_of(table, on_missing, log.is_whole(table))
    rows = net_changes(counted, table.key_columns, table.current, changes.summary)
    if demand.rows:
        key = F.to_json(F.struct(*map(column, table.key_columns)))
        refused = demand.refuse_row(F.struct("_commit_lsn", "_seq"), key).cast("bigint")
        rows = rows.withColumn("_missing", F.when(F.col("_missing") > 1, refused).otherwise(F.col("_missing")))
    found = changes.summary
    bounds = {} if found.untyped else found.bounds  # it has no bounds of values that are texts
    may_move_values = found.moved and bool(found.unsent)
    return NetChanges(rows, found.changes, found.unsent, may_move_values, bounds, naming, demand, log.publishes_all)
