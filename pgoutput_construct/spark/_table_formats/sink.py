"""What a format of tables must do, so that ``replicate`` can write it."""

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum, auto
from threading import RLock
from types import MappingProxyType
from typing import Any, ClassVar, Final, NamedTuple, Self

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql.types import StructType

from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.lake._directories import SHARED
from pgoutput_construct.lake._notes import Dataset, Warehouse
from pgoutput_construct.lake._versions import Version
from pgoutput_construct.spark._log_view.change_columns import POSITION
from pgoutput_construct.spark._own_session import session_settings
from pgoutput_construct.spark._state.change_survey import KeyBounds
from pgoutput_construct.spark._state.demands import Demand
from pgoutput_construct.spark._table_formats.dataset_columns import DELETED_AT, Naming
from pgoutput_construct.spark._table_formats.existing_tables import ExistingTable, link_folder, refusal
from pgoutput_construct.spark._table_formats.reserved_names import ReservedNames

_LOG: Final = logging.getLogger("pgoutput_construct")
_PARTITION: Final = re.compile(
    r"(year|month|day|hour)\(([^()]+)\)|(bucket)\((\d+)\s*,\s*([^()]+)\)|([^()]+)", re.IGNORECASE
)
_LEAST_ORPHAN_AGE: Final = 86_400.0
"""As Iceberg's remove_orphan_files demands it."""


class WriteMode(StrEnum):
    """What a merge does with a data file that has rows which it changes."""

    MERGE_ON_READ = "merge-on-read"
    """It stays, and another file says which of its rows are gone: a batch writes what has changed, and readers have
    more to do."""
    COPY_ON_WRITE = "copy-on-write"
    """It is written again without them: a batch writes many rows that have not changed, and readers have less to do."""


class PartitionField(NamedTuple):
    """What one level of partitions is made of."""

    transform: str
    """``identity``, or a transform of Iceberg: ``year``, ``month``, ``day``, ``hour``, ``bucket``."""
    column: str
    """The name of a column."""
    buckets: int = 0
    """Their number, for ``bucket``."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``column``, ``day(column)`` or ``bucket(16, column)``; raise PgoutputError for anything else.

        The name of a column is as the table has it, or in quotes as SQL writes it.
        """
        found = _PARTITION.fullmatch(text.strip())
        if found is None:
            raise PgoutputError(
                f"invalid partition expression {text!r}: give column, year(column), month(column), day(column), "
                "hour(column) or bucket(16, column)"
            )
        of_time, its_column, bucket, buckets, in_buckets, plain = found.groups()
        transform = (of_time or bucket or "identity").lower()
        column = (its_column or in_buckets or plain).strip()
        if len(column) > 2 and column[0] == column[-1] == '"':
            column = column[1:-1].replace('""', '"')
        return cls(transform, column, int(buckets or 0))

    def __str__(self) -> str:
        column = self.column
        if column.startswith('"') and column.endswith('"'):  # they would be those of SQL
            column = f'"{column.replace(chr(34), chr(34) * 2)}"'
        if self.transform == "identity":
            return column
        return f"{self.transform}({f'{self.buckets}, ' if self.buckets else ''}{column})"


TINY: Final = 1 << 17
"""The most bytes of a table that is always overwritten: a merge would write as much, counting what a commit adds."""
MOST_ROWS: Final = "most_rows"
"""Where a note has how many rows its dataset has at most."""


def most_rows(before: Dataset, changes: int) -> int | None:
    """Return how many rows a dataset has at most after some changes; None where its note does not say."""
    known = before.details.get(MOST_ROWS)
    return None if known is None else int(known) + changes


PARTITIONS: Final = "partitions"
"""Where a note has how its table is partitioned."""


def partition_fields(
    dataset: Dataset,
    partitions: Mapping[str, tuple[PartitionField, ...]],
    columns: Collection[str],
    is_new: bool = False,
) -> tuple[PartitionField, ...]:
    """Return how a table is to be partitioned that is written as a whole: as requested, else as it was.

    Args:
        dataset: The dataset.
        partitions: The requested fields, by the names of tables.
        columns: The columns that the table has; a field of another one, which was dropped, is left out.
        is_new: Whether there is no table yet.

    Raises:
        PgoutputError: A field is of a column that a new table lacks.
    """
    if dataset.is_history:
        return ()
    known = tuple(map(PartitionField.parse, dataset.details.get(PARTITIONS, ())))
    wanted = partitions.get(dataset.version.table, known)
    for each in wanted:
        if each.column not in columns and is_new:
            raise PgoutputError(
                f"{dataset.version.table} cannot be partitioned by {each}: it has no column {each.column!r}, but "
                f"{', '.join(map(repr, columns))}; correct --partition-by (partition_by=)"
            )
        if each.column not in columns:
            _LOG.warning("%s is not partitioned by %s: it has no such column", dataset.version.table, each)
    return tuple(each for each in wanted if each.column in columns)


@dataclass(frozen=True)
class WriteOptions:
    """How a format writes its tables."""

    mode: WriteMode | None = None
    """None for the format's own: merge-on-read for Iceberg and Parquet (small tables of which are written as a whole),
    copy-on-write for Delta Lake, since not all its readers know deletion vectors.
    """
    properties: Mapping[str, str] = field(default_factory=dict)
    """Further properties of the tables, as the format calls them."""
    grace: float = 600.0
    """For how many seconds replaced Parquet files are retained for their readers."""
    catalog: str | None = None
    """The session's catalog that has the tables of Iceberg; None for files in the warehouse."""
    partitions: Mapping[str, tuple[PartitionField, ...]] = field(default_factory=dict)
    """How tables are partitioned, by their names."""
    schema_column: str = ""
    """The column that has the schema, where tables of several schemas share one."""


DEFAULT_OPTIONS: Final = WriteOptions()


@dataclass(frozen=True)
class Retention:
    """What maintenance retains of former snapshots."""

    age: float = 86_400.0
    """Seconds after which a replaced snapshot expires."""
    count: int = 100
    """The most snapshots that are retained: older ones expire earlier."""
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
    most: int
    """Their number, or more."""
    unsent: Collection[str]
    """The columns whose value some change did not send."""
    may_move_values: bool
    """Whether an unsent value may be that of a row with another key."""
    bounds: Mapping[str, KeyBounds]
    """The least and the greatest value of columns of the key, of all rows that the changes can be of."""
    naming: Naming
    """The names of columns in the table: ``rows`` have those of replays."""
    demand: Demand
    """What must be true, else the merge fails: where rows must exist, ``_missing`` of 1 demands the row in the table,
    and more cannot be.
    """
    are_all_published: bool
    """Whether every operation on the table was published: then the table has no row of a key that is inserted."""


class FilesUse(Enum):
    """What files that are written without Spark are to a dataset."""

    APPEND = auto()
    """Rows in addition to those that it has."""
    OVERWRITE = auto()
    """All of its rows; its columns stay."""
    REPLACE = auto()
    """All of its rows, with columns of their own; it need not exist."""


class PresentFile(NamedTuple):
    """A data file that a dataset has."""

    name: str
    """Its name in the warehouse."""
    size: int
    """Its bytes."""
    address: str = ""
    """What files of deletes call it."""
    deletes: tuple[str, ...] = ()
    """The names of the files that say which of its rows are gone."""


class DeletesFile(NamedTuple):
    """A file that says which rows of others are gone."""

    name: str
    """Its name in the warehouse."""
    schema: pa.Schema
    """Its columns: the address of a file, perhaps in parts that a ``/`` separates, and the index of a row in it."""


class NewFiles(ABC):
    """Data files that are written without Spark, and how they become part of a dataset."""

    folder: str
    """Their directory in the warehouse."""
    schema: pa.Schema
    """Their columns."""
    codec: str
    """The compression of their pages, by Arrow's name."""
    present: Sequence[PresentFile] = ()
    """The files that they overwrite, which have all present rows."""
    deletes: "DeletesFile | None" = None
    """The file that can say which rows of ``present`` are gone, instead of overwriting these; None for none."""

    @abstractmethod
    def commit(self, files: Mapping[str, int], deletes: Mapping[str, int] | None = None) -> Dataset:
        """Make files part of the dataset, in one commit. Return it with its details.

        Args:
            files: The bytes of each, by its name in the warehouse.
            deletes: Those of a file that says which rows are gone, where the others overwrite nothing.
        """


class Sink(ABC):
    """Datasets of one format in a warehouse. Different datasets may be used from several threads.

    DataFrames belong to the session that is passed with them, which no other thread uses meanwhile. Methods that write
    a dataset take it as its note will have it, and rows under the names of datasets; the others take it as its note has
    it.
    """

    format: ClassVar[str]
    """The name of the format."""
    is_replaced: ClassVar[bool] = False
    """Whether its tables can only be replaced: it has no ``merge``, ``append`` and ``record``, and nothing that is said
    below about small tables and altered columns concerns it."""
    reserved: ReservedNames
    """The names of columns that its tables cannot have: ``ReservedNames(NAME)`` for none."""
    has_comments: ClassVar[bool] = False
    """Whether tables and columns have comments."""
    has_keys: ClassVar[bool] = False
    """Whether tables say which columns identify a row."""
    commit_setting: ClassVar[str] = ""
    """The setting of a session whose value its commits have; "" where tables have none (``note_commits``)."""
    alters: ClassVar[bool] = True
    """Whether changes may come with other columns."""
    overwrites_few: bool = False
    """Whether small tables are written in Arrow (``arrow_writes``), rather than by a MERGE of Spark."""
    needs_spark: str = "its format is written by Spark"
    """Why a table is not, where ``new_files`` returns None."""
    few_rows: ClassVar[int | None] = None
    """The most rows of such a table, None where they are not counted;"""
    few_bytes: ClassVar[int] = 0
    """the most bytes of its files,"""
    history_bytes: ClassVar[int] = 0
    """and of those of a history that is overwritten: a merge leaves files whose rows have all ended."""
    key_bytes: ClassVar[int] = 0
    """The most bytes of a table whose rows are found by key, where files say which rows of others are gone."""
    few_rows_settings: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Settings of a session with which few rows are read and written at less cost."""

    def __init__(self, warehouse: Warehouse, options: WriteOptions = DEFAULT_OPTIONS) -> None:
        """Take the warehouse, and how tables are written; ``write_options_of`` refuses what a format does not have."""
        self.warehouse = warehouse
        self.grace = options.grace
        """For how many seconds replaced files are retained for their readers, where it is the note that commits."""
        self.catalog = options.catalog
        """The catalog of the session that has the tables; None where they are in the warehouse."""
        self.schema_column = options.schema_column
        """The column that has the schema, where several datasets share one location: "" where none do."""
        self._partitions = options.partitions
        self._locks: dict[str, RLock] = {}
        self.naming = Naming()
        """The names of added columns in datasets whose tables have none of them themselves."""
        self.adopts = False
        """Whether tables of others are replaced that exist where a dataset is to be written."""

    @property
    def note_commits(self) -> bool:
        """Whether files become those of a table by its note: its format has no commits.

        Then the tables of a batch may be written together, as none is seen before its note.
        """
        return not self.commit_setting

    def naming_of(self, dataset: Dataset) -> Naming:
        """Return the names of columns in a dataset, as ``read`` returns rows, and ``replace`` takes them."""
        return self.naming.for_version(dataset.version, dataset.is_history)

    def reserved_in(self, spark: SparkSession, dataset: Dataset) -> ReservedNames:
        """Return the names of columns that a dataset cannot have, as it will be."""
        return self.reserved

    def prepare(self, spark: SparkSession) -> None:  # noqa: B027 - most find tables by their paths
        """Configure a session to find the tables; raise PgoutputError if it cannot be used for the format."""

    def read_for_replay(self, spark: SparkSession, dataset: Dataset) -> DataFrame:
        """Return the present rows, under the names of replays, without those that were deleted and stay."""
        rows = self.read_all_for_replay(spark, dataset)
        return rows.where(F.col(DELETED_AT).isNull()).drop(DELETED_AT) if DELETED_AT in rows.columns else rows

    def read_all_for_replay(self, spark: SparkSession, dataset: Dataset) -> DataFrame:
        """Return the rows of a dataset, under the names of replays.

        Where it does not have the position of each, they have that of the last change in it: all rows come before the
        changes that are to be applied, and have the columns of that time.
        """
        rows = self.naming_of(dataset).from_dataset(self.read(spark, dataset))
        last = zip(POSITION, dataset.version.last, strict=True)
        lacking = {name: F.lit(value).cast("bigint") for name, value in last if name not in rows.columns}
        return rows.withColumns(lacking) if lacking else rows

    @abstractmethod
    def version(self, spark: SparkSession, dataset: Dataset) -> Version | None:
        """Return the version that the data have; None where they have none, so that they are written again.

        Where it is the note that commits, it is that of the note: ``dataset.version``.
        """

    @abstractmethod
    def read(self, spark: SparkSession, dataset: Dataset) -> DataFrame:
        """Return the present rows."""

    @abstractmethod
    def existing(self, spark: SparkSession, dataset: Dataset) -> ExistingTable | None:
        """Return what exists where a dataset without a note is, and is not of this warehouse; None for nothing.

        What an interrupted batch wrote before the note is of this warehouse. It is known by what only this package
        writes: a name of a directory, a file, a property of the table, metadata of a commit.
        """

    def check_location(self, spark: SparkSession, dataset: Dataset, columns: StructType) -> ExistingTable | None:
        """Return what is to be taken over at the location of a dataset without a note; None for nothing.

        Args:
            spark: A session.
            dataset: The dataset as it will be.
            columns: The columns that are to be written.

        Raises:
            PgoutputError: A table of others is there, and ``adopts`` is False.
        """
        there = self.existing(spark, dataset)
        if there is not None and not self.adopts:
            raise refusal(there, columns)
        if there is not None:
            _LOG.warning("%s, which is not of this warehouse, is replaced by %s", there.location, dataset.version.table)
        return there

    @abstractmethod
    def replace(self, spark: SparkSession, dataset: Dataset, rows: DataFrame, before: Dataset | None) -> Dataset:
        """Write all rows of a dataset: readers see the former ones or these. Return it with its details.

        Details are what the note says of the dataset for the format alone, as JSON. The number of the batch,
        ``version.batch``, is larger than that of any data in the warehouse. Where it is the note that commits, what
        ``before`` names stays: readers see it until the note is written.

        Args:
            spark: The session of the rows.
            dataset: The dataset as it will be, with the details of the one that has its rows now, perhaps in another
                directory.
            rows: Its rows, under the names of datasets; they may be made from the present ones.
            before: The dataset that is replaced, in the same directory; perhaps that of another table, which gave up
                the name. None for none: then call ``check_location`` before anything is written, and
                ``remove_replaced`` for what it returns once all is.
        """

    def new_files(
        self, spark: SparkSession, dataset: Dataset, schema: pa.Schema, before: Dataset | None, use: FilesUse
    ) -> NewFiles | None:
        """Return how files are written without Spark; None where Spark is to write their rows.

        Args:
            spark: The session.
            dataset: The dataset as it will be.
            schema: The columns of the rows, under the names of datasets.
            before: The dataset that is replaced; None for none.
            use: What the files are to it.
        """
        return None

    def describe(self, spark: SparkSession, dataset: Dataset, comments: Mapping[str, str]) -> None:
        """Give a table and its columns comments, where the format ``has_comments``; others are removed.

        Comments are keyed by the name of the column, that of the table by "".
        """
        raise NotImplementedError

    def identify(self, spark: SparkSession, dataset: Dataset, key: Sequence[str]) -> None:
        """Say which columns identify a row, where the format ``has_keys``: they are required then, and no others are.

        With an empty key no columns identify a row.
        """
        raise NotImplementedError

    def can_move(self, spark: SparkSession, dataset: Dataset, directory: str) -> bool:
        """Return whether a dataset can be moved to another directory, where nothing is but what this warehouse wrote.

        It is asked before the move is announced: what an interrupted move has left in the other directory is removed.
        """
        return self.warehouse.is_local and self.existing(spark, replace(dataset, directory=directory)) is None

    def move(self, spark: SparkSession, dataset: Dataset, directory: str) -> bool:
        """Move the data of a dataset to an unused directory; ``known_datasets`` says when.

        They may be in the former one, too, until ``clear_moved``: readers see them in the one that a note names. This
        implementation makes hard links to the files, none of which contains the path of its directory.

        Returns:
            False where the store or the catalog cannot do it after all.
        """
        return link_folder(self.warehouse.store, dataset.directory, directory)

    def moved(self, dataset: Dataset, directory: str) -> Dataset:
        """Return a dataset as its note has it after it was moved to a directory, which its details may name, too."""
        return replace(dataset, directory=directory)

    def has_moved(self, spark: SparkSession, dataset: Dataset, directory: str) -> bool:
        """Return whether an interrupted move has taken the data to another directory, so that they are only there."""
        return False

    def clear_moved(self, spark: SparkSession, dataset: Dataset) -> None:
        """Remove what a move has left in the directory of a dataset, which is elsewhere; a catalog leaves nothing."""
        if self.catalog is None:
            self.remove(spark, dataset)

    def location_of(self, directory: str) -> str:
        """Return the directory that the data of a dataset are in, which several may share."""
        return directory.partition(SHARED)[0]

    def ignores_case(self, spark: SparkSession) -> bool:
        """Return whether names of tables that differ in case alone are known to be one: by the file system here."""
        return self.warehouse.ignores_case

    def is_same_location(self, directory: str, other: str) -> bool:
        """Return whether two directories are one location, or may be: file systems and catalogs may ignore case."""
        one, two = self.location_of(directory), self.location_of(other)
        if one == two or one.casefold() != two.casefold():
            return one == two
        if self.catalog is not None or not isinstance(store := self.warehouse.store, LocalStore):
            return self.catalog is not None
        for separator in ".", "/":  # the latter in Iceberg's catalog of files
            paths = [store.directory / name.replace(".", separator, 1) for name in (one, two)]
            if all(path.exists() for path in paths):
                return paths[0].samefile(paths[1])
        return False

    def exclusive(self, dataset: Dataset) -> AbstractContextManager[Any]:
        """Have no other thread write where a dataset is, while the block runs."""
        return self._locks.setdefault(self.location_of(dataset.directory), RLock())

    def remove(self, spark: SparkSession, dataset: Dataset) -> None:
        """Remove the data of a dataset, which need not exist."""
        self.warehouse.store.remove(dataset.directory)

    def _committing(self, spark: SparkSession, version: Version) -> AbstractContextManager[None]:
        """Have the commits of a session a version while the block runs: a later one, such as ALTER TABLE, has none."""
        return session_settings(spark, {self.commit_setting: self.warehouse.commit_text(version)})

    def remove_unnoted(self, spark: SparkSession, dataset: Dataset) -> None:
        """Remove what is at the location of a dataset without a note, unless any of it is not of this warehouse."""
        there = self.existing(spark, dataset)
        if there is None:
            self.remove(spark, dataset)
        else:
            wanted = dataset.version.table
            _LOG.warning("%s, the location of %s, is not of this warehouse: it stays", there.location, wanted)

    def recover(self, directory: str, noted: Dataset | None, batch: int) -> None:  # noqa: B027 - most leave nothing
        """Remove what interrupted batches, and failed steps, left in the directory of a dataset.

        That is what later batches than that of the note wrote, and it does not name; without a note, what this batch
        wrote, and later ones.

        Args:
            directory: The directory.
            noted: The dataset whose note is there; None for none.
            batch: The number of the last batch that was interrupted, or failed.
        """

    def maintain(self, spark: SparkSession, dataset: Dataset, retention: Retention) -> Iterator[tuple[str, int]]:
        """Put together and remove what batches have left of a dataset; its rows and its version stay.

        A format that leaves nothing, or removes it with the next batch of the table, does nothing here.

        Yields:
            What was done, in the words of the format's procedures, and how often.
        """
        return iter(())

    def seconds_until_expired(self, retention: Retention) -> float:
        """Return after how many seconds what a commit has replaced has expired."""
        return retention.age

    def compacted(
        self, spark: SparkSession, dataset: Dataset, retention: Retention, most: int | None
    ) -> Dataset | None:
        """Write a dataset again that its note describes, where readers then have less to do; its rows stay.

        The result is current once its note is written. None where there is little to gain, and for formats whose notes
        do not say what files a dataset has: ``maintain`` puts these together.

        Args:
            spark: A session.
            dataset: The dataset, as its note has it.
            retention: What is retained.
            most: The most bytes of a dataset that is written again, None for no limit.
        """
        return None

    def with_most_rows(self, dataset: Dataset, most: int | None) -> Dataset:
        """Return a dataset whose note says how many rows it has at most, where that decides how it is written."""
        others = {name: each for name, each in dataset.details.items() if name != MOST_ROWS}
        is_needed = self.overwrites_few and self.few_rows is not None and most is not None
        return replace(dataset, details={**others, MOST_ROWS: most} if is_needed else others)

    def is_small(self, dataset: Dataset) -> bool:
        """Return whether a dataset is small; False unless a format can tell."""
        return False

    def can_widen(self, spark: SparkSession, dataset: Dataset) -> bool:
        """Return whether the types of columns can be made wider without writing rows."""
        return self.alters

    def can_merge(self, dataset: Dataset) -> bool:
        """Return whether changes can be merged into a dataset as it will be: it has what it is partitioned by."""
        fields = map(PartitionField.parse, dataset.details.get(PARTITIONS, ()))
        return not self.is_replaced and {each.column for each in fields} <= self._names_in(dataset)

    def _names_in(self, dataset: Dataset) -> set[str]:
        """Return the names of the columns that a dataset will have."""
        naming = self.naming_of(dataset)
        return {*dataset.version.shape.current, *map(naming.added_name, naming.added)}

    def merge(self, spark: SparkSession, dataset: Dataset, changes: NetChanges) -> Dataset:
        """Merge net changes into a dataset, in one commit. Return it with its details."""
        raise NotImplementedError

    def append(self, spark: SparkSession, dataset: Dataset, rows: DataFrame) -> Dataset:
        """Add rows to a dataset, in one commit, without reading it; its columns stay. Return it with its details."""
        raise NotImplementedError

    def overwrite(self, spark: SparkSession, dataset: Dataset, rows: DataFrame) -> Dataset:
        """Replace all rows of a dataset, in one commit; its columns stay. Return it with its details."""
        return self.replace(spark, dataset, rows, dataset)

    def record(self, spark: SparkSession, dataset: Dataset, rows: DataFrame) -> Dataset:
        """Put rows of a history into a dataset, in one commit. Return it with its details.

        The rows are new, or have ended (``table_history.history``): those that have ended exist already.
        """
        raise NotImplementedError
