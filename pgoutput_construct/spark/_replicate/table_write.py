"""How staged changes come into the dataset of a table, in the ways of ``write_ways`` that are jobs of Spark."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql.pandas.types import from_arrow_schema

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.lake._notes import Dataset
from pgoutput_construct.spark._deferred_session import NEEDED_BY
from pgoutput_construct.spark._execution import reaches_files
from pgoutput_construct.spark._log_view.change_columns import POSITION, column
from pgoutput_construct.spark._log_view.replicated_tables import Table
from pgoutput_construct.spark._open_log import OpenLog
from pgoutput_construct.spark._own_session import session_settings
from pgoutput_construct.spark._replicate.batch_plan import TableStep
from pgoutput_construct.spark._replicate.small_tables import SmallTable, tables_lacking_rows
from pgoutput_construct.spark._replicate.staging import StagedRows
from pgoutput_construct.spark._replicate.write_ways import (
    FEW_BYTES,
    SparkNeededError,
    Way,
    arrow_obstacle,
    begins_with_inserts,
    staged_ways,
)
from pgoutput_construct.spark._state.change_survey import survey
from pgoutput_construct.spark._state.copy_visibility import counted_changes, restore_copy_lsn
from pgoutput_construct.spark._state.demands import OnMissing, demand_of
from pgoutput_construct.spark._state.table_state import advance, net_changes
from pgoutput_construct.spark._table_formats.dataset_columns import Naming
from pgoutput_construct.spark._table_formats.sink import FilesUse, NetChanges, Sink, most_rows
from pgoutput_construct.spark._table_formats.table_description import commented, comments_of

_TOO_MUCH: Final = "is bigger than spark.driver.maxResultSize"
"""What Spark's error says of rows of more bytes than the driver takes, which a MERGE does not need there
(TaskSetManager.canFetchMoreResults)."""


class WrittenTable(NamedTuple):
    """What was written."""

    dataset: Dataset
    """The dataset as it is now."""
    reason: str = ""
    """Why its rows before were written again with the changes; "" where they were not."""


@dataclass(frozen=True)
class TableWrite:
    """One table, and the changes that come into its dataset."""

    log: OpenLog
    """The log, under the names of replays."""
    spark: SparkSession
    sink: Sink
    step: TableStep
    """What is done for the table."""
    changes: StagedRows
    """The changes since the rows before; without these, all that the log has of the table."""
    on_missing: OnMissing
    """As in ``OpenLog.state``."""

    @property
    def table(self) -> Table:
        """The table, under the names of replays."""
        return self.log.table(self.step.table)

    @property
    def naming(self) -> Naming:
        """The names of columns in the dataset."""
        return self.sink.naming_of(self.step.dataset)

    def run(self) -> WrittenTable:
        """Bring the changes into the dataset, in the first way that can be.

        Raises:
            ChangeLogError: Changes that the state needs were pruned, or one changes a row that does not exist.
        """
        before = self.step.continued
        ways, reason = staged_ways(self.log, self.spark, self.sink, self.step, self.changes.summary)
        written = {Way.APPENDED: self._appended, Way.OVERWRITTEN: self._overwritten, Way.MERGED: self._merged}
        if before is not None:
            for way in ways:
                if (done := written[way](before)) is not None:
                    return WrittenTable(done)
        return WrittenTable(self._whole(before, reason), reason)

    def _appended(self, before: Dataset) -> Dataset | None:
        rows = self.naming.for_dataset(self.inserted_rows())
        done = self.sink.append(self.spark, self.step.dataset, rows)
        return self.sink.with_most_rows(done, most_rows(before, self.changes.summary.changes))

    def _overwritten(self, before: Dataset) -> Dataset | None:
        """Overwrite a table of few rows, which Spark reads and writes; return its dataset, None for another way."""
        spark, sink, step, store = self.spark, self.sink, self.step, self.sink.warehouse.store
        lacking = tables_lacking_rows(self.log, self.on_missing)
        can_be = sink.overwrites_few and reaches_files(spark, store)
        if not can_be or arrow_obstacle(self.log, step, self.changes.summary):
            return None
        few = SmallTable.from_step(self.log, sink, step, self.changes.files, self.changes.summary, lacking)
        try:
            changes = few.read_changes(store)
        except SparkNeededError:
            return None
        # If its files could be written in Arrow, they are too many bytes, or a change needs a merge.
        if sink.new_files(spark, step.dataset, few.stored_schema, before, FilesUse.OVERWRITE):
            return None
        with session_settings(spark, sink.few_rows_settings):
            rows = _rows_in_driver(sink.read_for_replay(spark, before), few.schema.names)
            if rows is None or rows.nbytes > FEW_BYTES:
                return None
            try:
                found = few.after(rows.cast(few.schema), changes)
            except (PgoutputError, pa.ArrowException):
                return None  # a merge says what is wrong
            kinds = from_arrow_schema(found.schema, prefer_timestamp_ntz=True)
            frame = self.naming.for_dataset(spark.createDataFrame(found, kinds).coalesce(1))
            return sink.with_most_rows(sink.overwrite(spark, step.dataset, frame), found.num_rows)

    def _merged(self, before: Dataset) -> Dataset | None:
        changes = self._net_changes()
        if changes is None:
            return None
        done = self.sink.merge(self.spark, self.step.dataset, changes)
        return self.sink.with_most_rows(done, most_rows(before, self.changes.summary.changes))

    def _whole(self, before: Dataset | None, reason: str) -> Dataset:
        sink, most = self.sink, self.changes.summary.changes
        if reason:
            NEEDED_BY.set(f"{self.step.table} ({reason})")
        if before is not None:
            rows = self.advanced_rows(sink.read_for_replay(self.spark, before), sink.is_small(before))
        elif begins_with_inserts(self.log, self.step, self.changes.summary):
            rows = self.inserted_rows()
        else:
            rows = self.advanced_rows(None)
        rows = commented(self.naming.for_dataset(rows), comments_of(sink, self.table, self.naming))
        done = sink.replace(self.spark, self.step.dataset, rows, self.step.replaced)
        return sink.with_most_rows(done, most if before is None else most_rows(before, most))

    def inserted_rows(self) -> DataFrame:
        """Return the rows that inserts add to the table: its columns, ``_untyped``, ``_commit_lsn`` and ``_seq``."""
        table, rows = self.table, self.changes.rows
        if not self.changes.summary.untyped:  # it need not be read
            rows = rows.withColumn("_untyped", F.lit(None).cast(rows.schema["_untyped"].dataType))
        found = counted_changes(rows, table).select(*map(column, table.current), "_untyped", *POSITION)
        return restore_copy_lsn(found, table)

    def advanced_rows(self, before: DataFrame | None, is_small: bool = False) -> DataFrame:
        """Return the rows of the table after the changes: its columns, ``_untyped``, ``_commit_lsn`` and ``_seq``.

        Args:
            before: The rows before, None for none: then the changes are all that the log has of it.
            is_small: Whether the rows before are few.

        Raises:
            ChangeLogError: Without rows before, changes that the state needs were pruned.
        """
        table = self.table
        if before is None:
            self.log.check_retained(table)
        return advance(
            before,
            self.changes.rows,
            table,
            self.on_missing,
            summary=self.changes.summary,
            is_small=is_small,
            is_whole=self.log.is_whole(table),
        )

    def _net_changes(self) -> NetChanges | None:
        """Return the net changes of the table; None if a truncate is among them."""
        table, found = self.table, self.changes.summary
        counted = counted_changes(self.changes.rows, table)
        if survey(counted, summary=found).truncated is not None:
            return None
        demand = demand_of(table, self.on_missing, self.log.is_whole(table))
        rows = net_changes(counted, table.key_columns, table.current, found)
        if demand.rows:
            key = F.to_json(F.struct(*map(column, table.key_columns)))
            refused = demand.refuse_row(F.struct("_commit_lsn", "_seq"), key).cast("bigint")
            rows = rows.withColumn("_missing", F.when(F.col("_missing") > 1, refused).otherwise(F.col("_missing")))
        bounds = {} if found.untyped else found.bounds  # it has no bounds of values that are texts
        may_move_values = found.moved and bool(found.unsent)
        is_published = self.log.publishes_all
        return NetChanges(rows, found.changes, found.unsent, may_move_values, bounds, self.naming, demand, is_published)


def _rows_in_driver(rows: DataFrame, names: Sequence[str]) -> pa.Table | None:
    """Return rows that have these columns; None where they have others, or are more than the driver takes."""
    if {*rows.columns} != {*names}:
        return None
    try:
        return rows.select(*map(column, names)).toArrow()
    except Exception as error:
        if _TOO_MUCH not in str(error):
            raise
        return None
