"""The columns of datasets: what is added to a table's own, under which names, and names that are escaped meanwhile."""

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.lake._notes import Dataset
from pgoutput_construct.lake._versions import Version
from pgoutput_construct.spark._log_view.added_columns import (
    MARK,
    PREFIX,
    Prefix,
    escaped,
    escaped_table,
    rename_columns,
    rename_references,
)
from pgoutput_construct.spark._log_view.change_columns import column
from pgoutput_construct.spark._open_log import OpenLog

HISTORY: Final = ("_untyped", "_op", "_commit_lsn", "_seq", "_unchanged", "_valid_from", "_valid_to", "_ended_by")
"""The columns of a history besides the table's own.

``_op`` made the row, at ``_commit_lsn`` and ``_seq``; ``_valid_from`` is the timestamp of that commit, null for copied
rows. ``_valid_to`` is the timestamp of the commit that ended it, ``_ended_by`` its kind: update, delete, truncate, or
snapshot (the table was copied again, and had changed outside of the log); both are null while the row exists.
``_unchanged`` are columns with unknown values: TOASTed values that an update did not send, of a row that the log does
not have; null for none.
"""
ROW_KEY: Final = ("_commit_lsn", "_seq", "_op")
"""The columns that identify a row of a history: a transaction may commit at the LSN of a snapshot, and a copied row
have the number of one of its changes, since ``_seq`` counts in the log for the one, in the transaction for the other.
"""
DELETED_AT: Final = "_deleted_at"
"""The column of tables whose deleted rows stay: the time of the commit that deleted a row, null while it exists."""
STATE: Final = ("_untyped", "_commit_lsn", "_seq")
"""The columns that tables have in addition to their own, unless they are chosen."""
_NAMING: Final = ("_untyped", "_unchanged")
"""The added columns that name others."""


def is_soft(dataset: Dataset) -> bool:
    """Return whether the deleted rows of a table stay."""
    return DELETED_AT in (dataset.version.shape.added or ())


@dataclass(frozen=True)
class Naming(Prefix):
    """The names of added columns in a warehouse, or in one of its datasets."""

    added: tuple[str, ...] = STATE
    """The added columns, as replays call them."""

    def for_version(self, version: Version, is_history: bool) -> "Naming":
        """Return the names in a dataset: with more underscores where the table itself has one of the names.

        A history also has dropped columns. The version alone decides, which is stored with the data.
        """
        names = {name.lower() for name in (version.shape.columns if is_history else version.shape.current)}
        own = STATE if version.shape.added is None else version.shape.added
        found = replace(self, added=HISTORY if is_history else own)
        while not names.isdisjoint({found.added_name(name).lower() for name in found.added}):
            found = replace(found, prefix=found.prefix + PREFIX)
        return found

    def holds(self, name: str) -> bool:
        """Return whether a dataset has a column, as replays call it: one of the table, or an added one."""
        return not name.startswith(PREFIX) or name in self.added

    def for_dataset(self, rows: DataFrame) -> DataFrame:
        """Return rows under the names of datasets, without added columns that these do not have."""
        chosen = {name: self.reader_name(name) for name in rows.columns if self.holds(name)}
        found = self.unescape(rows)
        if len(chosen) == len(rows.columns):
            return rename_columns(found, chosen)
        return found.select(*(column(name).alias(other) for name, other in chosen.items()))

    def unescape(self, rows: DataFrame) -> DataFrame:
        """Return rows whose ``_untyped`` and ``_unchanged`` name columns as datasets do."""
        if not any(name.startswith(MARK) for name in rows.columns):
            return rows
        return unescape_references(rows, *(name for name in _NAMING if name in rows.columns))

    def from_dataset(self, rows: DataFrame) -> DataFrame:
        """Return rows of a dataset under the names of replays; all with ``_untyped``, null where datasets lack it."""
        ours = {self.added_name(name): name for name in self.added}
        found = rename_columns(rows, {name: ours.get(name, escaped(name)) for name in rows.columns})
        if "_untyped" not in self.added:
            return found.withColumn("_untyped", F.lit(None).cast("map<string,string>"))
        if not any(name.startswith(MARK) for name in found.columns):
            return found
        marked = f"^([{MARK}{PREFIX}])"
        naming = (name for name in _NAMING if name in self.added)
        return rename_references(found, lambda name: F.regexp_replace(name, marked, f"{MARK}$1"), *naming)


def unescape_references(rows: DataFrame, *columns: str) -> DataFrame:
    """Return rows with a table's own column names in columns that name some."""
    return rename_references(rows, lambda name: F.regexp_replace(name, f"^{MARK}", ""), *columns)


def with_renamed_columns(rows: DataFrame, names: Mapping[str, str]) -> DataFrame:
    """Return rows whose columns have other names, also in the columns that name some."""
    if not names:
        return rows
    others = F.create_map(*(F.lit(part) for pair in names.items() for part in pair))
    found = rename_columns(rows, {name: names.get(name, name) for name in rows.columns})
    naming = (name for name in _NAMING if name in rows.columns)
    return rename_references(found, lambda name: F.coalesce(others[name], name), *naming)


def escape_log(log: OpenLog) -> OpenLog:
    """Return a log whose tables have escaped names of columns."""
    found = copy(log)  # with what is known of it already
    tables = {name: escaped_table(table) for name, table in log.opened.tables.items()}
    found.opened = replace(log.opened, tables=tables)
    return found
