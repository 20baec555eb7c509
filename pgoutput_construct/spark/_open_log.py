"""``open_log``: a change log as DataFrames; changes, state and missing rows of each table."""

import json
import warnings
from collections.abc import Mapping
from copy import copy
from functools import cached_property
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from pgoutput_construct.changelog._facts.completeness import (
    IncompleteTableWarning,
    Lack,
    UnpublishedColumns,
    lacks_of,
    publishes_all_operations,
    unpublished_columns,
    whole_tables,
)
from pgoutput_construct.changelog._facts.copies import snapshot_command
from pgoutput_construct.changelog._index.log_index import LogPoint
from pgoutput_construct.changelog._segment.prune_note import read_pruned
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark._log_view.added_columns import DEFAULT_PREFIX, PREFIX, Prefix, check_prefix
from pgoutput_construct.spark._log_view.change_columns import changes_schema
from pgoutput_construct.spark._log_view.log_tables import LogTables
from pgoutput_construct.spark._log_view.replicated_tables import ChangePosition, Table
from pgoutput_construct.spark._source.datasource import PgoutputSource, register
from pgoutput_construct.spark._state.demands import OnMissing, check_on_missing
from pgoutput_construct.spark._state.identity_phases import PhaseReader
from pgoutput_construct.spark._state.table_state import advance, current_state, missing_rows


class OpenLog:
    """A change log as tables; made by ``open_log``."""

    def __init__(self, spark: SparkSession, opened: LogTables, prefix: Prefix = DEFAULT_PREFIX) -> None:
        self.spark = spark
        self.log = opened.log
        self.opened = opened
        """The tables of the log, as of the seq for which it was opened."""
        self.prefix = prefix
        """The prefix of added columns."""

    @cached_property
    def lacks(self) -> tuple[Lack, ...]:
        """The tables without all of their rows in the log, and tables rewritten outside the stream.

        Each says so as text, with the remedy; ``state`` of such a table warns with it.
        """
        return tuple(lacks_of(self.opened.index))

    @cached_property
    def unpublished_columns(self) -> tuple[UnpublishedColumns, ...]:
        """The generated columns that tables have at their source, and not here, because they are not published."""
        return tuple(unpublished_columns(self.opened.index))

    @property
    def tables(self) -> tuple[str, ...]:
        """All tables with committed changes or a copy: ``schema.table``, in double quotes where SQL needs them."""
        return tuple(sorted((*self.opened.tables, *self.opened.refused)))

    def table(self, name: str) -> Table:
        """Return the table ``name``; raise ChangeLogError where the log does not have it."""
        return self.opened.table(name)

    def changes(self, name: str, after: int | None = None) -> DataFrame:
        """Return the committed changes of the table ``name``: ``changes_schema``, rows in no particular order.

        With ``after`` only those of transactions and copies that ended after this seq of the log. They are of all
        tables that had the name last (``Table.relation_oids``); ``_relation_oid`` is the one that each is of.

        Their order is ``(_commit_lsn, _seq)``. They include the rows of all complete copies of the table, ``_op``
        ``snapshot``: their ``_commit_lsn`` is that of the snapshot, their ``_seq`` the position in the log, ``_xid``
        and ``_commit_time`` are null. Executors decode when an action runs; in a damaged log the action fails with an
        error that names segment, seq and field (see ``plain_errors``).
        """
        return self._changes(name, {} if after is None else {"fromSeq": str(after + 1)})

    def _changes(self, name: str, limits: Mapping[str, str]) -> DataFrame:
        """Return ``changes`` within limits: options of the data source."""
        table = self.table(name)
        self.check_names(table)
        register(self.spark)
        columns = self.prefix.reader_schema(changes_schema(self.prefix.replay_columns(table.columns)))
        schema = from_arrow_schema(columns, prefer_timestamp_ntz=True)
        options = {
            "path": self.log.store.address,
            "table": json.dumps([name]),  # in ASCII: a name need not be UTF-8
            "asOfSeq": str(self.opened.point),
            "types": self.opened.types,
            "metadataPrefix": self.prefix.prefix,
            **limits,
        }
        return self.spark.read.format(PgoutputSource.name()).schema(schema).options(**options).load()

    def state(self, name: str, changes: DataFrame | None = None, on_missing: OnMissing = "error") -> DataFrame:
        """Return the current rows of the table ``name``.

        They are those of the latest copy, and what the changes that it does not contain made of them, each replayed by
        the replica identity that was in force; see ``advance``. An action fails, with table, key and position, for a
        change of a row that should exist and does not: any update or delete where the log has all rows of the table
        (``is_whole``), of other tables an update that leaves a value open. (An update that sends all of a row is right
        without it, and a delete of none does nothing.) Warns (IncompleteTableWarning) of a table among ``lacks``. A
        dropped table has no rows.

        Args:
            name: The table.
            changes: Its changes, each of them once, such as read back from Parquet; None for those of the log.
            on_missing: With ``report`` such a change is no error: the row is as the update says, with null for open
                values, and the change is among ``missing_rows``.

        Raises:
            ChangeLogError: The state cannot be rebuilt; or older changes were pruned and no copy came after them,
                unless ``changes`` are given, which must have them then.
        """
        check_on_missing(on_missing)
        table, found = self.replay_input(name, changes)
        if table.dropped:
            removed = current_state(found, (), table.replica_identity, table.current)
            return self.prefix.for_reader(removed, "_untyped")
        for lack in self.lacks:
            if lack.relation_oid == table.relation_oid:
                warnings.warn(str(lack), IncompleteTableWarning, stacklevel=2)
        within = None if changes is not None else self.phase_reader(table)
        rows = advance(None, found, table, on_missing, is_whole=self.is_whole(table), within=within)
        return self.prefix.for_reader(rows.drop("_commit_lsn", "_seq"), "_untyped")

    def missing_rows(self, name: str, changes: DataFrame | None = None, before: DataFrame | None = None) -> DataFrame:
        """Return the changes of rows that should exist and do not, as ``state`` with the same arguments meets them.

        Each is an update or delete: ``_commit_lsn``, ``_seq`` and ``_op`` of the change, ``_row`` (the key that it
        names, or the whole old row: texts by column), ``_unchanged`` (the unsent columns, whose values are unknown;
        ``state`` with ``on_missing="report"`` has null there). In a table among ``lacks`` they are expected: the rows
        are older than the log. Raises ChangeLogError as ``state`` does.

        Args:
            name: The table.
            changes: Its changes; None for those of the log.
            before: The rows before the changes, as ``advance`` returns them, None for none.
        """
        table, found = self.replay_input(name, changes)
        there = None if before is None else self.prefix.for_replay(before)
        within = None if changes is not None or table.dropped else self.phase_reader(table)
        rows = missing_rows(there, found, table, within)
        return self.prefix.for_reader(rows, "_row", "_unchanged")

    def phase_reader(self, table: Table) -> PhaseReader:
        """Return what reads changes of a table (of ``replay_input``) between positions, and little more of the log.

        The rows of its copy are among those without a first position: they come before all changes.
        """
        copied = 0 if table.base is None else int(table.base.copy.snapshot.lsn)

        def read(first: ChangePosition | None, end: ChangePosition | None) -> DataFrame:
            limits = {} if first is None else {"fromLsn": str(first[0])}
            if end is not None:
                limits["untilLsn"] = str(end[0] if first is not None else max(end[0], copied))
            return self.prefix.for_replay(self._changes(table.qualified, limits))

        return read

    def replay_input(self, name: str, changes: DataFrame | None = None) -> tuple[Table, DataFrame]:
        """Return a table, and the changes that its state is built from: none if it was dropped.

        Both have the names of replays (``added_columns``).
        """
        table = self.table(name)
        if changes is None:
            changes = self.changes(name)
            self.check_retained(table)
        changes = self.prefix.for_replay(changes)
        return self.prefix.replay_table(table), changes.where("false") if table.dropped else changes

    def with_session(self, spark: SparkSession) -> "OpenLog":
        """Return the same log, read by another session."""
        found = copy(self)
        found.spark = spark
        return found

    def check_names(self, table: Table) -> None:
        """Raise ChangeLogError where a column has the name of an added one, or of another of its table."""
        is_sensitive = self.spark.conf.get("spark.sql.caseSensitive") == "true"
        self.prefix.check(table.qualified, table.columns.names, is_sensitive)

    def is_whole(self, table: Table) -> bool:
        """Return whether the log has all rows of a table: a change of another row is an error.

        So it is of a table that is not among ``lacks`` while its publications publish inserts and updates.
        """
        return table.relation_oid in self._whole

    @cached_property
    def _whole(self) -> frozenset[int]:
        return whole_tables(self.opened.index, self.lacks)

    @cached_property
    def publishes_all(self) -> bool:
        """Whether every operation was published at all times, as far as it is known, and sent from every origin."""
        return self.log.options.origin == "any" and publishes_all_operations(self.opened.index)

    def is_retained(self, table: Table) -> bool:
        """Return whether the log has all changes that a table's state needs: none of them were pruned."""
        pruned = read_pruned(self.log.store)
        if not pruned.first_seq:
            return True
        if table.base is not None:
            return pruned.lsn <= table.base.copy.since_lsn
        return table.relation_oid not in {lack.relation_oid for lack in self.lacks}

    def check_retained(self, table: Table) -> None:
        """Raise ChangeLogError when changes were pruned that a table's state needs."""
        if self.is_retained(table):
            return
        first_seq = read_pruned(self.log.store).first_seq
        raise ChangeLogError(
            f"{self.log.store}: changes before seq {first_seq} were pruned, so the rows of {table.qualified} cannot be "
            "derived from the log alone: pass all changes from its first one on (those stored before the prune, and "
            f"the log's), or copy the table again: {snapshot_command(table.qualified)}"
        )


def open_log(
    spark: SparkSession,
    directory: str | Path,
    as_of: LogPoint | int | None = None,
    types: str = "",
    known: ChangeLog | None = None,
    metadata_prefix: str = PREFIX,
) -> OpenLog:
    """Open a change log: read its transactions and relations, and find its tables, from its index alone.

    Args:
        spark: What reads it.
        directory: The log's directory or address; it must be the same on every executor.
        as_of: Open it as of this seq: exactly the transactions that ended by then, with the copies that were complete,
            and the tables and columns that the catalog had. None: as it is.
        types: Types that columns have by choice, such as ``numeric=decimal(38,10),uuid=binary``: see
            ``columnar.chosen_types``.
        known: The ``log`` of an earlier one: what that has of the same log is not read again.
        metadata_prefix: How the names of the columns begin that are added to a table's own, such as ``pg_`` for
            ``pg_op``: of ``changes``, also where they are given to ``state``, and of all that is made of them.

    Raises:
        PgoutputError: ``metadata_prefix`` is none.
        ChangeLogError: The log is damaged, has bytes that are no message (with the field), or messages that do not fit
            together; it says segment and seq. Or it does not have the seq.
    """
    return OpenLog(
        spark, LogTables.from_log(ChangeLog(directory, known), as_of, types), Prefix(check_prefix(metadata_prefix))
    )
