"""Rebuilds tables from a log in Spark, and compares them with the server."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark import OpenLog, compare, open_log, plain_errors, read_table, write_tables
from pgoutput_construct.wire import Lsn
from tools.faults.bank import Moment
from tools.faults.errors import FaultsError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Base", "Rebuilder"]


@dataclass(frozen=True)
class Base:
    """The changes that a reader has copied from a log before it was pruned."""

    directory: Path
    """The datasets of the tables; they may have more changes."""
    lsn: Lsn
    """Commits before this LSN are read from there."""
    next_seq: int
    """The first row of the log that the reader has not read."""


@dataclass
class Rebuilder:
    """Rebuilds and compares tables; ``comparisons`` counts how often all were equal."""

    spark: "SparkSession"
    comparisons: int = 0

    def open(self, log: Path) -> OpenLog:
        """Open a log as a reader does."""
        return open_log(self.spark, log)

    def take(self, log: OpenLog, directory: Path) -> Base:
        """Copy all changes of a log."""
        write_tables(log, directory)
        return Base(directory, log.log.complete_lsn, log.log.segments[-1].last_seq + 1)

    def check(self, log: OpenLog, moment: Moment, base: Base | None = None) -> int:
        """Rebuild all tables as they were at a moment; return their rows. Raises FaultsError where one is not equal.

        ``base`` has what the log lacks.
        """
        for name, source in moment.tables.items():
            changes = log.changes(name).persist()  # they are read several times
            try:
                self._check(log, name, self._whole(log, name, changes, base), moment.lsn, source)
            finally:
                changes.unpersist()
        self.comparisons += 1
        return sum(source.num_rows for source in moment.tables.values())

    def _check(self, log: OpenLog, name: str, changes: "DataFrame", lsn: Lsn, source: pa.Table) -> None:
        with plain_errors():
            state = log.state(name, changes.where(f"_commit_lsn < {int(lsn)}"))
            found = state.toArrow()
            if not _ordered(found).equals(_ordered(source)):
                raise FaultsError(f"{log.log.store}: {name} is not what it was at {lsn}: {compare(state, source)}")

    def count_refused(self, log: OpenLog, moment: Moment | None) -> int:
        """Return how many states are refused because of what was pruned.

        The others do not need it, as after a truncate: they are right as of a moment, None while the log grows.
        """
        refused = {name for name in log.tables if self._is_refused(log, name)}
        if moment is not None:
            for name in moment.tables.keys() - refused:
                self._check(log, name, log.changes(name), moment.lsn, moment.tables[name])
        return len(refused)

    def _is_refused(self, log: OpenLog, name: str) -> bool:
        try:
            log.state(name)
        except ChangeLogError as error:
            if "pruned" in str(error):
                return True
            raise
        return False

    def lacks(self, read: Callable[[], object]) -> int:
        """Return 1 if a reader that lacks pruned changes gets an error; raises FaultsError if it does not."""
        try:
            with plain_errors():
                read()
        except ChangeLogError as error:
            if "pruned" in str(error):
                return 1
            raise
        raise FaultsError("a reader lacks what was pruned, and got no error")

    def _whole(self, log: OpenLog, name: str, changes: "DataFrame", base: Base | None) -> "DataFrame":
        """Return the changes of a log, and before them those that a reader has taken out of it."""
        if base is None:
            return changes
        earlier = read_table(self.spark, base.directory / log.table(name).directory)
        lsn = int(base.lsn)
        return earlier.where(f"_commit_lsn < {lsn}").unionByName(changes.where(f"_commit_lsn >= {lsn}"))


def _ordered(table: pa.Table) -> pa.Table:
    """Return the rows in an order of their own; no value of these tables is untyped."""
    if table["_untyped"].null_count < table.num_rows:
        raise FaultsError(f"values are not of their type: {table['_untyped'].drop_null()[0]}")
    columns = [name for name in table.schema.names if name != "_untyped"]
    rows = table.select(columns).combine_chunks()
    return rows.sort_by([(name, "ascending") for name in columns])
