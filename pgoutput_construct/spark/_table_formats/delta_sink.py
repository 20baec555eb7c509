"""Tables of Delta Lake: each a directory, in whose log a commit has the version in its ``userMetadata``."""

import logging
import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace as with_values
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, StringType

from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.changelog._store.store import LogStore
from pgoutput_construct.errors import ChangeLogError, PgoutputError
from pgoutput_construct.lake._notes import Dataset, Warehouse
from pgoutput_construct.lake._versions import Version
from pgoutput_construct.spark._deferred_session import has_no_spark
from pgoutput_construct.spark._log_view.change_columns import column, quoted
from pgoutput_construct.spark._own_session import session_settings, settings_of
from pgoutput_construct.spark._parquet_file import codec_of
from pgoutput_construct.spark._table_formats.delta_files import (
    NTZ,
    DeltaCommit,
    PlainDeltaTable,
    commits_of,
    has_deltalake,
)
from pgoutput_construct.spark._table_formats.existing_tables import (
    ExistingTable,
    entries_of,
    existing_files,
    remove_entries,
    remove_replaced,
)
from pgoutput_construct.spark._table_formats.merge_statement import history_statement, merge_statements
from pgoutput_construct.spark._table_formats.reserved_names import (
    CHANGE_COLUMNS,
    DELTA,
    DELTA_WITH_CHANGES,
    ReservedNames,
)
from pgoutput_construct.spark._table_formats.sink import (
    DEFAULT_OPTIONS,
    PARTITIONS,
    FilesUse,
    NetChanges,
    NewFiles,
    PresentFile,
    Retention,
    Sink,
    WriteMode,
    WriteOptions,
    partition_fields,
)
from pgoutput_construct.spark._table_formats.table_description import comment_statements

_LOG: Final = logging.getLogger("pgoutput_construct")
_MAPPING: Final = "delta.columnMapping."
_MAPPED: Final = {f"{_MAPPING}mode": "name"}
_NEEDS_MAPPING: Final = re.compile(r"[ ,;{}()\n\t=]")
"""Characters that Delta Lake refuses in column names without column mapping: other names in files."""
_TROUBLE: Final = "which readers must support: some refuse such a table, some (delta-rs) read NULL in all columns"
_FEATURE: Final = "delta.feature."
"""How properties begin that give a table a feature."""
_WIDENING: Final = "delta.enableTypeWidening"
_VECTORS: Final = "delta.enableDeletionVectors"
_CHANGES: Final = "delta.enableChangeDataFeed"
_DEFAULTS: Final = "spark.databricks.delta.properties.defaults."
"""How settings of a session begin that give properties to new tables."""
_LEAST_FILE: Final = "spark.databricks.delta.optimize.minFileSize"
_FILE_BYTES: Final = 1 << 27
"""OPTIMIZE leaves files of this size as they are. Its own limit is 1 GB: it would write smaller tables each time."""
_LISTING: Final = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
"""By default 10,000, for object stores with as many directories."""
_RETENTION_CHECK: Final = "spark.databricks.delta.retentionDurationCheck.enabled"
_DETAIL: Final = "mapped_columns"
_LOG_FOLDER: Final = "_delta_log"
_ENTRY: Final = re.compile(r"(\d{20})\.(?:json|crc|checkpoint\.(?:.+\.)?(?:parquet|json))")
"""The name of an entry: a commit, its checksum, a checkpoint or a part of one; the number is that of the version."""
_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint\.parquet")
"""The name of a checkpoint that is one file, which exists as a whole."""
CLAIM: Final = "_pgoutput"
"""A file that this package writes into the directory of a table before all others; readers go by the log alone."""
_LOG_RETENTION: Final = "delta.logRetentionDuration"
_HISTORY: Final = 100
"""How many of the latest commits are searched for one of this program: others are of VACUUM or OPTIMIZE."""


class DeltaSink(Sink):
    """The version is in the metadata of the commit that wrote it."""

    format = "delta"
    reserved = DELTA
    has_comments = True
    commit_setting = "spark.databricks.delta.commitInfo.userMetadata"
    few_rows, few_bytes, history_bytes = 1 << 18, 1 << 24, 1 << 20  # a merge would write these files again, too
    # Projections are interpreted: tasks with Delta Lake's own log would generate code for each, of structs of all its
    # actions, which takes as long for a table of ten rows.
    few_rows_settings = MappingProxyType({"spark.sql.codegen.factoryMode": "NO_CODEGEN"})
    alters = False  # columns cannot be dropped without column mapping, which few readers know

    needs_spark = (
        "Spark writes tables of Delta Lake that have partitions, properties or further features, or are in an object "
        "store, and all where deltalake is not installed"
    )

    def __init__(self, warehouse: Warehouse, options: WriteOptions = DEFAULT_OPTIONS) -> None:
        """Take the warehouse, and how tables are written."""
        super().__init__(warehouse, options)
        self.overwrites_few = options.mode is None
        vectors = {} if options.mode is None else {_VECTORS: str(options.mode is WriteMode.MERGE_ON_READ).lower()}
        self._wanted = {**vectors, **options.properties}
        """The properties that were asked for."""

    def reserved_in(self, spark: SparkSession, dataset: Dataset) -> ReservedNames:
        """Return the names that are reserved; more of them where the table has, or will have, the change data feed."""
        if not CHANGE_COLUMNS & dataset.version.shape.columns.keys():
            return self.reserved
        whole = with_values(dataset, directory=self.location_of(dataset.directory))
        present = None if self.existing(spark, dataset) else self._properties(spark, whole)
        if present is None:  # those of a new table
            present = {_CHANGES: spark.conf.get(f"{_DEFAULTS}{_CHANGES.removeprefix('delta.')}", None) or ""}
        is_on = {**present, **self._wanted}.get(_CHANGES, "").lower() == "true"
        return DELTA_WITH_CHANGES if is_on else self.reserved

    def version(self, spark: SparkSession, dataset: Dataset) -> Version | None:
        """Return the version in the latest commit of this program."""
        if not self._exists(dataset):
            return None
        texts = (each.metadata for each in self._commits(spark, dataset, _HISTORY) if each.metadata is not None)
        text = next(texts, None)
        return None if text is None else self.warehouse.version_of_commit(text)

    def _commits(self, spark: SparkSession, dataset: Dataset, most: int) -> list[DeltaCommit]:
        """Return the latest commits of a table, the last one first."""
        path = self._local_path(dataset)
        if path is not None and has_deltalake() and (known := commits_of(path, most)) is not None:
            return known
        history = spark.sql(f"DESCRIBE HISTORY {self._table(dataset)} LIMIT {most}")
        rows = history.selectExpr("version", "unix_micros(timestamp) / 1e6", "userMetadata").collect()
        return sorted((DeltaCommit(*row) for row in rows), reverse=True)

    def describe(self, spark: SparkSession, dataset: Dataset, comments: Mapping[str, str]) -> None:
        """Give the table and its columns comments: commits of their own, which have the version of the data."""
        if (version := self.version(spark, dataset)) is None:
            return
        table = self._opened(dataset)
        if table is not None and table.describe(comments, self.warehouse.commit_text(version)):
            return
        with self._committing(spark, version):
            for statement in comment_statements(spark, self._table(dataset), comments):
                spark.sql(statement)

    def can_widen(self, spark: SparkSession, dataset: Dataset) -> bool:
        """Return whether the table has Delta Lake's type widening, which readers must know."""
        return (self._properties(spark, dataset) or {}).get(_WIDENING) == "true"

    def read(self, spark: SparkSession, dataset: Dataset) -> DataFrame:
        """Return the rows of the latest commit."""
        return spark.read.format("delta").load(self._path(dataset))

    def replace(self, spark: SparkSession, dataset: Dataset, rows: DataFrame, before: Dataset | None) -> Dataset:
        """Overwrite a table in one commit, with its columns; column mapping is used only where a name needs it."""
        adopted = self.check_location(spark, dataset, rows.schema) if before is None else None
        if before is None and adopted is None:
            self._claim(spark, dataset)
        names = mapped_names(rows.columns)
        fields = self._partition_columns(dataset, rows, is_new=before is None)
        wanted, present = {**self._wanted, **(_MAPPED if names else {})}, self._properties(spark, dataset)
        is_ntz = any("timestamp_ntz" in field.dataType.simpleString() for field in rows.schema)
        if present is not None and is_ntz and f"{_FEATURE}{NTZ}" not in present:
            wanted[f"{_FEATURE}{NTZ}"] = "supported"  # a new table gets the feature by itself, one that exists does not
        if present is None or (
            adopted is None and _is_mapped(present) == bool(names) and wanted.items() <= present.items()
        ):
            writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").options(**wanted)
            writer = writer.partitionBy(*fields) if fields else writer
            writer.option("userMetadata", self.warehouse.commit_text(dataset.version)).save(self._path(dataset))
        else:
            kept = _kept(present) if adopted is None else {}
            self._redefine(spark, dataset, rows, {**kept, **wanted}, fields)
        if adopted is not None:
            remove_replaced(self.warehouse.store, dataset.directory, adopted)
        done = _with_mapped_columns(dataset, names)
        return with_values(done, details={**done.details, PARTITIONS: fields}) if fields else done

    def new_files(
        self, spark: SparkSession, dataset: Dataset, schema: pa.Schema, before: Dataset | None, use: FilesUse
    ) -> NewFiles | None:
        """Return the files of a plain table (``delta_files``), for which no properties were asked."""
        is_plain = has_deltalake() and not self._wanted and not mapped_names(schema.names)
        is_new = use is FilesUse.REPLACE and before is None
        if not is_plain or partition_fields(dataset, self._partitions, schema.names, is_new):
            return None
        table = self._plain_table(spark, dataset, schema, before, use)
        present = {} if table is None or use is not FilesUse.OVERWRITE else table.files
        if table is None or present is None:
            return None
        return _DeltaTableFiles(self, dataset, table, codec_of(spark), use, schema, present)

    def _plain_table(
        self, spark: SparkSession, dataset: Dataset, schema: pa.Schema, before: Dataset | None, use: FilesUse
    ) -> PlainDeltaTable | None:
        """Return a table as ``new_files`` is asked for it, None where it is not a plain one."""
        if (path := self._local_path(dataset)) is None:
            return None
        if self._exists(dataset):
            is_ours = before is not None or self.existing(spark, dataset) is None
            table = PlainDeltaTable.opened(path) if is_ours else None
            is_fit = table is not None and (table.can_have(schema) if use is FilesUse.REPLACE else table.has(schema))
            return table if is_fit else None
        has_defaults = any(name.startswith(_DEFAULTS) for name in settings_of(spark))
        if use is not FilesUse.REPLACE or has_defaults or self.existing(spark, dataset):
            return None
        self._claim(spark, dataset)
        return PlainDeltaTable(path)

    def _opened(self, dataset: Dataset) -> PlainDeltaTable | None:
        """Return a table that is a plain one, where the library is installed; None for any other."""
        path = self._local_path(dataset)
        return None if path is None or not has_deltalake() else PlainDeltaTable.opened(path)

    def _local_path(self, dataset: Dataset) -> Path | None:
        """Return the directory of a table for ``deltalake``; None for one elsewhere."""
        store = self.warehouse.store
        path = store.directory.absolute() / dataset.directory if isinstance(store, LocalStore) else None
        return None if path is None or "%" in str(path) else path  # which the library decodes once too often

    def existing(self, spark: SparkSession, dataset: Dataset) -> ExistingTable | None:
        """Return the table, or the files, in a directory that has no claim of this package, and none of its commits."""
        entries = entries_of(self.warehouse.store, dataset.directory)
        if not entries or CLAIM in entries:
            return None
        if not self._exists(dataset):
            return existing_files(spark, self.warehouse, dataset.directory, entries, self.adopts)
        try:
            is_ours = self.version(spark, dataset) is not None
        except ChangeLogError:  # the store does not answer
            raise
        except PgoutputError:  # metadata of a commit that are none of ours
            is_ours = False
        return None if is_ours else ExistingTable(self._path(dataset), self.read(spark, dataset).schema)

    def _claim(self, spark: SparkSession, dataset: Dataset) -> None:
        """Write the claim of a new table before its first file, so that what an interruption leaves is known as ours.

        What one has left goes first.
        """
        claim = f"{dataset.directory}/{CLAIM}"
        if self.warehouse.store.has(claim) and self.version(spark, dataset) is None:
            self.remove(spark, dataset)
        self.warehouse.store.write(claim, b"")

    def _redefine(
        self,
        spark: SparkSession,
        dataset: Dataset,
        rows: DataFrame,
        properties: Mapping[str, str],
        partitions: list[str],
    ) -> None:
        """Replace a table, with its properties, in one commit: an overwrite keeps the former properties."""
        writer = rows.writeTo(self._table(dataset)).using("delta")
        for name, value in properties.items():
            writer = writer.tableProperty(name, value)
        if partitions:
            writer = writer.partitionedBy(*map(column, partitions))
        with self._committing(spark, dataset.version):
            writer.createOrReplace()

    def _partition_columns(self, dataset: Dataset, rows: DataFrame, is_new: bool) -> list[str]:
        """Return the columns of partitions; raise PgoutputError for one whose empty values would become NULL."""
        names = [each.column for each in partition_fields(dataset, self._partitions, rows.columns, is_new)]
        for name in names:
            if isinstance(rows.schema[name].dataType, StringType | BinaryType):
                raise PgoutputError(
                    f"{dataset.version.table} cannot be partitioned by {name!r}: Delta Lake reads the empty text of a "
                    "column of partitions as NULL; choose one of another type"
                )
        return names

    def _properties(self, spark: SparkSession, dataset: Dataset) -> Mapping[str, str] | None:
        """Return the properties of a table, its features among them; None if it does not exist."""
        if not self._exists(dataset):
            return None
        row = spark.sql(f"DESCRIBE DETAIL {self._table(dataset)}").select("properties", "tableFeatures").first()
        if row is None:
            return None
        return {**row["properties"], **{f"{_FEATURE}{name}": "supported" for name in row["tableFeatures"] or ()}}

    def _exists(self, dataset: Dataset) -> bool:
        return bool(self.warehouse.store.files(f"{dataset.directory}/{_LOG_FOLDER}"))

    def merge(self, spark: SparkSession, dataset: Dataset, changes: NetChanges) -> Dataset:
        """Merge in one commit."""
        table = self._table(dataset)
        with (
            merge_statements(
                spark, table, lambda: self.read(spark, dataset), changes, dataset.version.shape
            ) as statements,
            self._committing(spark, dataset.version),
        ):
            spark.sql(statements.whole(table)).collect()
        return dataset

    def append(self, spark: SparkSession, dataset: Dataset, rows: DataFrame) -> Dataset:
        """Append in one commit."""
        return self._save(spark, dataset, rows, "append")

    def overwrite(self, spark: SparkSession, dataset: Dataset, rows: DataFrame) -> Dataset:
        """Overwrite in one commit."""
        return self._save(spark, dataset, rows, "overwrite")

    def _save(self, spark: SparkSession, dataset: Dataset, rows: DataFrame, mode: str) -> Dataset:
        writer = rows.write.format("delta").mode(mode)
        writer.option("userMetadata", self.warehouse.commit_text(dataset.version)).save(self._path(dataset))
        return dataset

    def record(self, spark: SparkSession, dataset: Dataset, rows: DataFrame) -> Dataset:
        """Merge in one commit, as ``merge`` does."""
        with (
            history_statement(
                spark, self._table(dataset), self.read(spark, dataset), rows, self.naming_of(dataset)
            ) as statement,
            self._committing(spark, dataset.version),
        ):
            spark.sql(statement).collect()
        return dataset

    def maintain(self, spark: SparkSession, dataset: Dataset, retention: Retention) -> Iterator[tuple[str, int]]:
        """Put small files together (OPTIMIZE), and remove those of expired versions (VACUUM), as well as their commits.

        A plain table of one file needs no Spark for that. The commits of both have the version, too: the log forgets
        older ones. It is that of the data, since a note may be older after an interruption.
        """
        if (version := self.version(spark, dataset)) is None:
            raise PgoutputError(f"{dataset.version.table}: no version in its data: run pgoutput replicate first")
        if (table := self._opened(dataset)) is not None:
            table.write_checkpoint()  # before which commits can go; Spark itself writes one with every tenth
        now, commits = time.time(), self._commits(spark, dataset, retention.count + 1)
        before = retention.expired_before([each.at for each in commits], now)
        # VACUUM rounds to whole hours (VacuumCommand): ten minutes would be none.
        hours = math.ceil((now - before) / 3600)
        if table is not None and (has_no_spark(spark) or not _has_small_files(table)):
            table.vacuum(hours, self.warehouse.commit_text(version))
        else:
            yield from self._optimize(spark, dataset, version, hours)
        yield "log entries removed", self._remove_expired_entries(spark, dataset, before)

    def _optimize(
        self, spark: SparkSession, dataset: Dataset, version: Version, hours: int
    ) -> Iterator[tuple[str, int]]:
        """Put small files together, and remove those that no version of these hours has; yield what ``maintain`` does.

        The commits have a version.
        """
        # The check is for other writers: there are none. VACUUM lists a table in as many tasks as _LISTING has.
        settings = {_RETENTION_CHECK: "false", _LISTING: "16", _LEAST_FILE: str(_FILE_BYTES)}
        settings[self.commit_setting] = self.warehouse.commit_text(version)
        with session_settings(spark, settings):
            for row in spark.sql(f"OPTIMIZE {self._table(dataset)}").collect():
                yield "files added", row["metrics"]["numFilesAdded"]
                yield "files removed", row["metrics"]["numFilesRemoved"]
            spark.sql(f"VACUUM {self._table(dataset)} RETAIN {hours} HOURS").collect()

    def _remove_expired_entries(self, spark: SparkSession, dataset: Dataset, before: float) -> int:
        """Remove the commits of expired versions.

        Where the property was given that says how long they are retained, Delta Lake removes them.
        """
        is_plain = self._opened(dataset) is not None  # one without properties
        if not is_plain and _LOG_RETENTION in (self._properties(spark, dataset) or {}):
            return 0
        mine = [each.version for each in self._commits(spark, dataset, _HISTORY) if each.metadata is not None]
        store, folder = self.warehouse.store, f"{dataset.directory}/{_LOG_FOLDER}"
        return remove_expired_entries(store, folder, before, max(mine)) if mine else 0

    def remove(self, spark: SparkSession, dataset: Dataset) -> None:
        """Remove the directory, its claim last: what an interruption leaves is known as ours."""
        store = self.warehouse.store
        if (entries := entries_of(store, dataset.directory)) and CLAIM not in entries:
            store.write(f"{dataset.directory}/{CLAIM}", b"")  # a table that was taken over has none
        remove_entries(store, dataset.directory, entries - {CLAIM})
        store.remove(dataset.directory)

    def _path(self, dataset: Dataset) -> str:
        return f"{self.warehouse.path}/{dataset.directory}"

    def _table(self, dataset: Dataset) -> str:
        return f"delta.{quoted(self._path(dataset))}"


class _DeltaTableFiles(NewFiles):
    """Files of a plain table."""

    def __init__(
        self,
        sink: DeltaSink,
        dataset: Dataset,
        table: PlainDeltaTable,
        codec: str,
        use: FilesUse,
        schema: pa.Schema,
        present: Mapping[str, int],
    ) -> None:
        self.folder, self.schema, self.codec = dataset.directory, schema, codec
        self.present = [PresentFile(f"{self.folder}/{name}", size) for name, size in present.items()]
        self._sink, self._dataset, self._table, self._use = sink, dataset, table, use

    def commit(self, files: Mapping[str, int], deletes: Mapping[str, int] | None = None) -> Dataset:
        """Commit the files; the commit has the version."""
        warehouse, dataset, footers = self._sink.warehouse, self._dataset, dict[str, tuple[int, pq.FileMetaData]]()
        for name, size in files.items():
            with warehouse.store.open(name) as file:
                footers[name.removeprefix(f"{self.folder}/")] = size, pq.read_metadata(file)
        self._table.commit(self._use, footers, self.schema, warehouse.commit_text(dataset.version))
        return dataset if self._use is not FilesUse.REPLACE else with_values(dataset, details={})


def _has_small_files(table: PlainDeltaTable) -> bool:
    """Return whether a table has files that can be put together, as far as that is known."""
    files = table.files
    return files is None or sum(size < _FILE_BYTES for size in files.values()) > 1


def remove_expired_entries(store: LogStore, folder: str, before: float, latest: int) -> int:
    """Remove the entries of a log of Delta Lake that no retained version needs; return how many.

    Each commit is a file of the log. Delta Lake keeps them for 30 days (``delta.logRetentionDuration``), and counts
    whole days (its MetadataCleanup): a table with a batch each second would have 2.6 million.

    A version is read from the last checkpoint before it, and the commits since. So all entries before a checkpoint can
    go once every version that is retained is that of the checkpoint or a later one. They are removed from the oldest
    on: what an interruption leaves is still a log.

    Args:
        store: The store of the table.
        folder: The folder of the log.
        before: The time, in seconds since 1970, before which versions have expired.
        latest: The latest version whose commit must stay.
    """
    names = sorted(store.files(folder))
    checkpoints = [int(found[1]) for name in names if (found := _CHECKPOINT.fullmatch(name))]
    for checkpoint in sorted((each for each in checkpoints if each <= latest), reverse=True):
        # What was current at the time is this version, or a later one.
        if store.modified(f"{folder}/{checkpoint:020}.checkpoint.parquet") <= before:
            break
    else:
        return 0
    expired = [name for name in names if (found := _ENTRY.fullmatch(name)) and int(found[1]) < checkpoint]
    for name in expired:
        store.delete(f"{folder}/{name}")
        if isinstance(store, LocalStore):
            store.delete(f"{folder}/.{name}.crc")  # Hadoop's checksum
    return len(expired)


def mapped_names(names: Iterable[str]) -> list[str]:
    """Return the names of columns that need column mapping."""
    return [name for name in names if _NEEDS_MAPPING.search(name)]


def _is_mapped(properties: Mapping[str, str]) -> bool:
    return properties.get(f"{_MAPPING}mode", "none") != "none"


def _kept(properties: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in properties.items() if not name.startswith((_MAPPING, _FEATURE))}


def _with_mapped_columns(dataset: Dataset, names: list[str]) -> Dataset:
    """Return a dataset whose note has the mapped columns; log it when they changed."""
    if names and dataset.details.get(_DETAIL) != names:
        _LOG.warning(
            "%s is written with Delta Lake's column mapping, %s; rename %s to read it with any",
            f"{dataset.version.table}{'.history' if dataset.is_history else ''}",
            _TROUBLE,
            ", ".join(map(repr, names)),
        )
    return with_values(dataset, details={_DETAIL: names} if names else {})
