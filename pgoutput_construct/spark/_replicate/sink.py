"""What a format of tables must do, so that ``replicate`` can write it; and the names of columns in datasets."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import ClassVar, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.spark._log_view.added_columns import (
    MARK,
    PREFIX,
    Prefix,
    escaped,
    escaped_table,
    rename_columns,
    rename_references,
)
from pgoutput_construct.spark._open_log import OpenLog
from pgoutput_construct.spark._replicate.warehouse_notes import Dataset, Version, Warehouse
from pgoutput_construct.spark._state.demands import Demand

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
_LEAST_ORPHAN_AGE: Final = 86_400.0
"""As Iceberg's remove_orphan_files demands it."""
_STATE: Final = ("_untyped", "_commit_lsn", "_seq")
_NAMING: Final = ("_untyped", "_unchanged")
"""The added columns that name others."""


@dataclass(frozen=True)
class Naming(Prefix):
    """The names of added columns in a warehouse, or in one of its datasets."""

    def for_version(self, version: Version, is_history: bool) -> "Naming":
        """Return the names in a dataset: with more underscores where the table itself has one of the names.

        A history also has dropped columns. The version alone decides, which is stored with the data.
        """
        names = {name.lower() for name in (version.shape.columns if is_history else version.shape.current)}
        found = self
        while not names.isdisjoint({found.added_name(name).lower() for name in _added_names(is_history)}):
            found = replace(found, prefix=found.prefix + PREFIX)
        return found

    def for_dataset(self, rows: DataFrame) -> DataFrame:
        """Return rows under the names of datasets."""
        return rename_columns(self.unescape(rows), {name: self.reader_name(name) for name in rows.columns})

    def unescape(self, rows: DataFrame) -> DataFrame:
        """Return rows whose ``_untyped`` and ``_unchanged`` name columns as datasets do."""
        if not any(name.startswith(MARK) for name in rows.columns):
            return rows
        return unescape_references(rows, *(name for name in _NAMING if name in rows.columns))

    def from_dataset(self, rows: DataFrame, is_history: bool) -> DataFrame:
        """Return rows of a dataset under the names of replays."""
        ours = {self.added_name(name): name for name in _added_names(is_history)}
        found = rename_columns(rows, {name: ours.get(name, escaped(name)) for name in rows.columns})
        if not any(name.startswith(MARK) for name in found.columns):
            return found
        marked = f"^([{MARK}{PREFIX}])"
        naming = (name for name in _NAMING if name in _added_names(is_history))
        return rename_references(found, lambda name: F.regexp_replace(name, marked, f"{MARK}$1"), *naming)

    def arrow_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return a schema under the names of datasets."""
        return pa.schema([field.with_name(self.reader_name(field.name)) for field in schema])


class WriteMode(StrEnum):
    """What a merge does with a data file that has rows which it changes."""

    MERGE_ON_READ = "merge-on-read"
    """It stays, and another file says which of its rows are gone: a batch writes what has changed, and readers have
    more to do."""
    COPY_ON_WRITE = "copy-on-write"
    """It is written again without them: a batch writes many rows that have not changed, and readers have less to do."""


@dataclass(frozen=True)
class WriteOptions:
    """How a format writes its tables."""

    mode: WriteMode | None = None
    """None for the format's own: merge-on-read for Iceberg, copy-on-write for Delta Lake, since not all its readers
    know deletion vectors."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Further properties of the tables, as the format calls them."""
    grace: float = 600.0
    """For how many seconds replaced Parquet files are retained for their readers."""


DEFAULT_OPTIONS: Final = WriteOptions()


@dataclass(frozen=True)
class Retention:
    """What maintenance retains of former snapshots."""

    age: float = 86_400.0
    """Seconds after which a replaced snapshot expires."""
    count: int = 100
    """The most snapshots that are retained, for formats that can tell (Iceberg): older ones expire earlier."""
    grace: float = 600.0
    """Seconds for which each is retained in any case, for readers that began with it."""
    orphan_age: float = 3 * 86_400.0
    """Seconds after which a file is removed that no snapshot has: a write that was interrupted left it."""

    def __post_init__(self) -> None:
        """Raise PgoutputError for a retention under which what is still needed would be removed."""
        if self.count < 1:
            raise PgoutputError("maintenance must retain at least one snapshot")
        if self.orphan_age < _LEAST_ORPHAN_AGE:
            raise PgoutputError(
                "files that no snapshot has may be those of a write under way: retain them for at least a day"
            )

    def expired_before(self, committed: Collection[float], now: float) -> float:
        """Return the time, in seconds since 1970, before which snapshots expire.

        Args:
            committed: When the snapshots were committed.
            now: The present time.
        """
        latest = sorted(committed, reverse=True)
        surplus = latest[self.count - 1] if len(latest) > self.count else 0.0
        return min(now - self.grace, max(now - self.age, surplus))


class NetChanges(NamedTuple):
    """The net changes of a table."""

    rows: DataFrame
    """As ``net_changes`` returns them."""
    may_move_values: bool
    """Whether an unsent value may be that of a row with another key."""
    naming: Naming
    """The names of columns in the table: ``rows`` have those of replays."""
    demand: Demand
    """What must be true, else the merge fails: where rows must exist, ``_missing`` of 1 demands the row in the table,
    and more cannot be.
    """


class Sink(ABC):
    """Datasets of one format in a warehouse. Different datasets may be used from several threads.

    DataFrames belong to the session that is passed with them, which no other thread uses meanwhile.
    """

    format: ClassVar[str]
    """The name of the format."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse
        self.naming = Naming()
        """The names of added columns in datasets whose tables have none of them themselves."""

    def naming_of(self, dataset: Dataset) -> Naming:
        """Return the names of columns in a dataset, as ``read`` returns rows, and ``replace`` takes them."""
        return self.naming.for_version(dataset.version, dataset.is_history)

    @abstractmethod
    def prepare(self, spark: SparkSession) -> None:
        """Configure a session to find the tables; raise PgoutputError if it cannot be used for the format."""

    def read_for_replay(self, spark: SparkSession, dataset: Dataset) -> DataFrame:
        """Return the present rows, under the names of replays."""
        return self.naming_of(dataset).from_dataset(self.read(spark, dataset), dataset.is_history)

    @abstractmethod
    def version(self, spark: SparkSession, dataset: Dataset) -> Version | None:
        """Return the version that the data have; None where they have none."""

    @abstractmethod
    def read(self, spark: SparkSession, dataset: Dataset) -> DataFrame:
        """Return the present rows."""

    @abstractmethod
    def replace(self, spark: SparkSession, dataset: Dataset, rows: DataFrame, before: Dataset | None) -> Dataset:
        """Write all rows of a dataset: readers see the former ones or these. Return it with its details.

        Args:
            spark: The session of the rows.
            dataset: The dataset as it will be.
            rows: Its rows, under the names of datasets; they may be made from the present ones.
            before: The dataset that is replaced, None for none.
        """

    @abstractmethod
    def remove(self, spark: SparkSession, dataset: Dataset) -> None:
        """Remove a dataset whose note was removed; it need not exist."""

    def recover(self, dataset: Dataset, batch: int) -> None:  # noqa: B027 - most formats leave nothing over
        """Remove what an interrupted batch left next to a dataset, which need not exist."""

    def maintain(self, spark: SparkSession, dataset: Dataset, retention: Retention) -> Iterator[tuple[str, int]]:
        """Put together and remove what batches have left of a dataset; its rows and its version stay.

        A format that leaves nothing, or removes it with the next batch, does nothing here.

        Args:
            spark: A session.
            dataset: The dataset, as its note has it.
            retention: What is retained.

        Yields:
            What was done, in the words of the format's procedures, and how often.
        """
        return iter(())

    def is_small(self, dataset: Dataset) -> bool:
        """Return whether a dataset is small; False unless a format can tell."""
        return False


class MergingSink(Sink):
    """A format whose tables changes can be merged into; others are replaced."""

    alters: ClassVar[bool] = True
    """Whether changes may come with other columns."""

    @abstractmethod
    def merge(self, spark: SparkSession, dataset: Dataset, changes: NetChanges) -> Dataset:
        """Merge net changes into a dataset, in one commit. Return it with its details.

        Args:
            spark: The session of the changes.
            dataset: The dataset as it will be.
            changes: The net changes.
        """

    @abstractmethod
    def append(self, spark: SparkSession, dataset: Dataset, rows: DataFrame) -> Dataset:
        """Add rows to a dataset, in one commit, without reading it. Return it with its details.

        Args:
            spark: The session of the rows.
            dataset: The dataset as it will be, with the columns that it has.
            rows: The rows, under the names of datasets.
        """

    @abstractmethod
    def record(self, spark: SparkSession, dataset: Dataset, rows: DataFrame) -> Dataset:
        """Put rows of a history into a dataset, in one commit: those that exist have ended. Return it with its details.

        Args:
            spark: The session of the rows.
            dataset: The dataset as it will be.
            rows: The rows that are new, or have ended (``history``).
        """


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


def _added_names(is_history: bool) -> tuple[str, ...]:
    return HISTORY if is_history else _STATE
