"""Tables whose deleted rows stay, with ``_deleted_at``: the timestamp of the commit that deleted them.

Such a table is what its history ends with. ``table_history.intervals_after`` finds the rows that come and those that
end by changes. In a table with a key the last row of each key that changes touched is either present, or it was
deleted, has its last values, and the position of the change that deleted it. A TRUNCATE deletes all rows, and an UPDATE
that gives a row another key deletes the one with its former key. A row that is inserted again under its key replaces
the deleted one. These rows are merged into the table by their key (``_merged``), and nothing is ever deleted there.

Where that cannot be done, the table is written as a whole (``_whole``): the present rows as any other table has them
(``table_state.advance``), the rows that ended, and the deleted rows from before. So is a table that is written from
scratch, because it was altered or copied again: its deleted rows stay, and rows that have disappeared without a change
in the log are deleted as of the last commit.

Without a key no row is known to be the same one: each deleted row stays as a row of its own, and an UPDATE deletes
none. After another copy of such a table, deleted rows stay whose deletion the copy contains for certain.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.changelog._index.planning import last_commit
from pgoutput_construct.lake._directories import STAGED
from pgoutput_construct.lake._notes import Dataset
from pgoutput_construct.spark._log_view.added_columns import escaped
from pgoutput_construct.spark._log_view.change_columns import (
    INSERT,
    NEW,
    POSITION,
    STORED,
    TRUNCATE,
    TURN,
    column,
    text_array,
)
from pgoutput_construct.spark._log_view.replicated_tables import Table, plain_path
from pgoutput_construct.spark._replicate.table_history import END, intervals_after
from pgoutput_construct.spark._replicate.table_write import TableWrite
from pgoutput_construct.spark._state.copy_visibility import counted_changes, restore_copy_lsn
from pgoutput_construct.spark._state.demands import NO_DEMAND, demand_of
from pgoutput_construct.spark._state.equality import exact_key
from pgoutput_construct.spark._state.schema_evolution import stored_rows
from pgoutput_construct.spark._state.table_state import row_columns
from pgoutput_construct.spark._table_formats.dataset_columns import DELETED_AT, STATE, is_soft, with_renamed_columns
from pgoutput_construct.spark._table_formats.sink import NetChanges
from pgoutput_construct.stream.rows import OPERATIONS, SNAPSHOT
from pgoutput_construct.wire import Timestamp
from pgoutput_construct.wire.messages import Delete
from pgoutput_construct.wire.protocol import RelationReplicaIdentity
from pgoutput_construct.wire.types import UNIX_TO_POSTGRES

_DELETING: Final = (OPERATIONS[Delete], TRUNCATE)
_UPSERT: Final = "upsert"
_FOLDER: Final = ".soft"
"""The suffix of the directory of changed rows, after that of the table."""


class SoftWrite(TableWrite):
    """A table whose deleted rows stay, and the changes that come into it."""

    @property
    def is_keyed(self) -> bool:
        """Whether the table has a key that tells its rows apart."""
        return bool(self.table.key_columns) and self.table.replica_identity != RelationReplicaIdentity.FULL

    def _appended(self, before: Dataset) -> Dataset | None:
        rows = self.inserted_rows().withColumn(DELETED_AT, F.lit(None).cast("timestamp"))
        return self.sink.append(self.spark, self.step.dataset, self.naming.for_dataset(rows))

    def _merged(self, before: Dataset) -> Dataset | None:
        """Merge the rows that changes touched, by their key; return the dataset.

        They are stored first: Iceberg merges no rows that are made of those in the table (``IcebergSink.record``).
        """
        live = self.sink.read_for_replay(self.spark, before)
        rows = self._last_rows(self._intervals(live)).withColumns(
            {
                "_op": F.lit(_UPSERT),
                "_unchanged": F.array().cast("array<string>"),
                "_key": F.lit(None).cast("string"),
                "_missing": F.lit(0),
            }
        )
        folder = f"{STAGED}/{self.step.dataset.directory}{_FOLDER}"
        path, summary = f"{self.sink.warehouse.path}/{folder}", self.changes.summary
        rows.write.mode("overwrite").parquet(path)
        found = self.spark.read.schema(rows.schema).parquet(plain_path(path))
        bounds = {} if summary.untyped else summary.bounds
        merged = NetChanges(found, 2 * summary.changes, (), False, bounds, self.naming, NO_DEMAND, False)
        return self.sink.merge(self.spark, self.step.dataset, merged)

    def _whole(self, before: Dataset | None, reason: str) -> Dataset:
        """Write the table as a whole; return the dataset."""
        table, live = self.table, None if before is None else self.sink.read_for_replay(self.spark, before)
        present = self.advanced_rows(live)
        names = [*table.current, *STATE]
        rows = [present.select(*map(column, names)).withColumn(DELETED_AT, F.lit(None).cast("timestamp"))]
        ended = self._intervals(live).where(F.col("_ended_by").isNotNull())
        is_deleted = F.col("_ended_by").isin(list(_DELETING))
        rows.append(self._last_rows(ended) if self.is_keyed else self._rows(ended.where(is_deleted)))
        if (earlier := self._earlier_rows(before)) is not None:
            rows.append(earlier)
        found = self._without_replaced(rows) if self.is_keyed else reduce(DataFrame.unionByName, rows)
        return self.sink.replace(self.spark, self.step.dataset, self.naming.for_dataset(found), self.step.replaced)

    def _intervals(self, live: DataFrame | None) -> DataFrame:
        """Return the rows that come and end by the changes."""
        table = self.table
        demand = demand_of(table, self.on_missing, self.log.is_whole(table))
        before = (
            None
            if live is None
            else live.withColumns(
                {
                    "_op": F.when(_is_copied(table), SNAPSHOT).otherwise(INSERT),
                    "_commit_time": F.lit(None).cast("timestamp"),
                    "_unchanged": F.lit(None).cast("array<string>"),
                }
            )
        )
        counted = counted_changes(self.changes.rows, table)
        rows = intervals_after(before, counted, table, self.changes.summary, demand)
        if not (demand.values and self.is_keyed):
            return rows
        key = F.to_json(F.struct(*map(column, table.key_columns)))
        refused = demand.refuse_value(F.struct(*POSITION), key, F.col("_unchanged")[0])
        return rows.where(F.when(F.size("_unchanged") > 0, refused).otherwise(True))

    def _rows(self, intervals: DataFrame) -> DataFrame:
        """Return rows as the table has them: deleted ones have the position of the change that deleted them."""
        has_ended = F.col("_ended_by").isNotNull()
        rows = restore_copy_lsn(intervals, self.table)
        ends = {
            name: F.when(has_ended, F.col(end)).otherwise(F.col(name)) for name, end in zip(POSITION, END, strict=True)
        }
        deleted_at = F.when(has_ended, F.coalesce("_valid_to", F.current_timestamp()))
        with_ends = rows.withColumns(ends).withColumn(DELETED_AT, deleted_at)
        return with_ends.select(*row_columns(self.table.current), DELETED_AT)

    def _last_rows(self, intervals: DataFrame) -> DataFrame:
        """Return the last row of each key; those that changes made come after those from before."""
        order = [F.col(TURN) != STORED, *map(F.col, POSITION)]
        latest = Window.partitionBy(*self._key(intervals)).orderBy(*(each.desc() for each in order))
        last = intervals.withColumn("__rank", F.row_number().over(latest)).where("__rank = 1")
        return self._rows(last.drop("__rank"))

    def _key(self, rows: DataFrame) -> list[Column]:
        kinds = {name: rows.schema[name].dataType for name in self.table.key_columns}
        return [*exact_key(NEW.value, kinds), text_array([NEW.text(name) for name in kinds])]

    def _earlier_rows(self, continued: Dataset | None) -> DataFrame | None:
        """Return the deleted rows from before, and those that have disappeared; None for none.

        Args:
            continued: The dataset that the changes apply to; None where the table is written from scratch.
        """
        before, table = self.step.before, self.table
        if before is None or not is_soft(before):
            return None
        if before.version.shape.has_other_rules(self.step.dataset.version.shape):
            return None  # their values must not stay
        names = {escaped(name): escaped(other) for name, other in self.step.renamed.items()}
        there = with_renamed_columns(self.sink.read_all_for_replay(self.spark, before), names)
        rows = stored_rows(there, table, counted_changes(self.changes.rows, table), (DELETED_AT,))
        rows = restore_copy_lsn(rows, table)
        chosen = rows.select(*row_columns(table.current), DELETED_AT)
        is_deleted = F.col(DELETED_AT).isNotNull()
        if continued is not None:
            return chosen.where(is_deleted)
        if self.is_keyed:
            return chosen.withColumn(DELETED_AT, F.coalesce(DELETED_AT, self._last_commit_time()))
        if table.base is None:
            return None  # the log has all deletions
        return chosen.where(is_deleted & (F.col("_commit_lsn") < int(table.base.copy.visibility.place_lsn)))

    def _without_replaced(self, rows: Sequence[DataFrame]) -> DataFrame:
        """Return rows of which each has a key that none of those in the earlier frames has."""
        ordered = [each.withColumn("__turn", F.lit(number)) for number, each in enumerate(rows)]
        together = reduce(DataFrame.unionByName, ordered)
        first = Window.partitionBy(*self._key(together)).orderBy("__turn")
        kept = together.withColumn("__rank", F.row_number().over(first)).where("__rank = 1")
        return kept.drop("__turn", "__rank")

    def _last_commit_time(self) -> Column:
        index = self.log.opened.index
        last = last_commit(index, index.last_seq)
        time = Timestamp.now() if last is None else Timestamp(last["commit_time"])
        return F.timestamp_micros(F.lit(int(time) + UNIX_TO_POSTGRES))


def _is_copied(table: Table) -> Column:
    """Return whether stored rows are still as they were copied."""
    return F.lit(False) if table.base is None else table.base.has(F.col("_commit_lsn"), F.col("_seq"))
