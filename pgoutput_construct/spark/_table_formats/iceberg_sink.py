"""Tables of Iceberg: in a catalog of files in the warehouse, or in one of the session."""

import json
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace as with_values
from datetime import UTC, datetime
from hashlib import sha256
from threading import Lock
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.lake._directories import STAGED
from pgoutput_construct.lake._notes import Dataset, Warehouse
from pgoutput_construct.lake._versions import Version
from pgoutput_construct.spark._log_view.change_columns import column, quoted
from pgoutput_construct.spark._log_view.replicated_tables import plain_path
from pgoutput_construct.spark._table_formats.existing_tables import (
    ExistingTable,
    entries_of,
    existing_files,
    remove_replaced,
)
from pgoutput_construct.spark._table_formats.iceberg_files import DELETES, IcebergTable
from pgoutput_construct.spark._table_formats.merge_statement import (
    MergeStatements,
    history_statement,
    literal,
    merge_statements,
)
from pgoutput_construct.spark._table_formats.reserved_names import ICEBERG
from pgoutput_construct.spark._table_formats.sink import (
    DEFAULT_OPTIONS,
    MOST_ROWS,
    PARTITIONS,
    TINY,
    DeletesFile,
    FilesUse,
    NetChanges,
    NewFiles,
    PartitionField,
    PresentFile,
    Retention,
    Sink,
    WriteMode,
    WriteOptions,
    partition_fields,
)
from pgoutput_construct.spark._table_formats.table_description import comment_statements

_PROPERTY: Final = "pgoutput.version"
WAREHOUSE_PROPERTY: Final = "pgoutput.warehouse"
"""The property of a table that says whose it is."""
_CATALOG: Final = "org.apache.iceberg.spark.SparkCatalog"
_FORMER: Final = "former"
"""Where a note has the directories that a table had before it was renamed."""
_OF_FILES: Final = "hadoop"
"""The type of a catalog that is a directory, and cannot rename a table."""
_SETTINGS: Final = {
    "": _CATALOG,
    ".type": _OF_FILES,
    ".cache-enabled": "false",  # else each session keeps reading the snapshot that it saw first
}
_LARGE_ROWS: Final = 1_000_000
"""Tables of more rows are merged into in two parts."""
_BRANCH: Final = "pgoutput"
"""The branch of a table that has a batch until it is published."""
_PLAIN_NAME: Final = re.compile(r"[\w-][\w.-]*", re.ASCII)
"""A name that is the same in the address of a file."""
_FOLDERS: Final = {"data", "metadata"}
"""Those of a table, in a catalog of files."""
_OF_CATALOG: Final = re.compile(r"\d{5,7}-.*\.metadata\.json")
"""The metadata files of a table that another catalog has."""
_MISSING: Final = "TABLE_OR_VIEW_NOT_FOUND"
_MODES: Final = ("write.delete.mode", "write.update.mode", "write.merge.mode")
_EVER: Final = "partitioned_by"
"""Where a note has all columns by which a table was ever partitioned."""
_LOST: Final = "lost_partitions"
"""Where a note says that a table no longer has one of these: merge-on-read fails for it in Iceberg, which reads the
partitions of each row, of all former specifications, too.
"""
_DEFAULTS: Final = {
    "format-version": "2",  # 3 has deletion vectors, which few readers know yet
    # Each commit writes a metadata file, which has all snapshots: it retains these of the last ones.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
}
"""Properties of new tables; options take precedence."""
_CODEC: Final = "write.parquet.compression-codec"
_CODECS: Final = {"zstd": "zstd", "gzip": "gzip", "snappy": "snappy", "uncompressed": "none"}
"""Iceberg's names of codecs of pages, and Arrow's."""
_KNOWN: Final = {_CODEC, *_MODES, *_DEFAULTS}
"""The properties about writing that data files of new rows heed, or need not."""
_REWRITES: Final = {
    "rewrite_data_files": {"min-input-files": "5", "delete-ratio-threshold": "0.3", "remove-dangling-deletes": "true"},
    "rewrite_position_delete_files": {"min-input-files": "2"},
}
"""Iceberg's procedures that put small files together, each with its options."""


class IcebergSink(Sink):
    """The version is a property of the snapshot that wrote it."""

    format = "iceberg"
    reserved = ICEBERG
    has_comments = True
    has_keys = True
    commit_setting = f"spark.sql.iceberg.snapshot-property.{_PROPERTY}"
    few_rows, few_bytes, history_bytes, key_bytes = 1 << 15, 1 << 20, 1 << 20, 1 << 26

    needs_spark = "it is partitioned, in a catalog, or has properties about writing"

    def __init__(self, warehouse: Warehouse, options: WriteOptions = DEFAULT_OPTIONS) -> None:
        """Take the warehouse, and how tables are written; without a catalog it is of files there (``type=hadoop``)."""
        super().__init__(warehouse, options)
        mode = options.mode or WriteMode.MERGE_ON_READ
        self.overwrites_few = options.mode is None
        self._new_properties = {**_DEFAULTS, **dict.fromkeys(_MODES, str(mode)), **options.properties}
        self._asked = {**({} if options.mode is None else dict.fromkeys(_MODES, str(mode))), **options.properties}
        """What the caller asked for, which tables that exist get, too."""
        self.altered = set[str]()
        """The directories of tables that have what was asked for."""
        self._own = self.catalog is None
        self._known_identity = ""
        self._catalog = self.catalog or f"pgoutput_{sha256(warehouse.path.encode()).hexdigest()[:12]}"
        self._namespaces, self._creating = set[str](), Lock()
        """The namespaces that exist."""
        own = _SETTINGS | {".warehouse": warehouse.path} if self._own else {}
        self._settings = {f"spark.sql.catalog.{self._catalog}{key}": value for key, value in own.items()}
        """Those of the catalog in a session."""

    def prepare(self, spark: SparkSession) -> None:
        """Configure the warehouse's catalog; raise PgoutputError if the session does not define the one that was named.

        That may be set in the caller's session alone: the sessions of threads do not inherit its settings.
        """
        prefix = f"spark.sql.catalog.{self._catalog}"
        if not self._own and not self._settings:
            known = spark.conf.getAll
            self._settings = {key: known[key] for key in known if key == prefix or key.startswith(f"{prefix}.")}
            if prefix not in self._settings:
                raise PgoutputError(
                    f"the Spark session has no catalog {self._catalog!r}: set {prefix} and its properties (--conf), as "
                    "Iceberg's documentation has them for Spark"
                )
        for key, value in self._settings.items():
            spark.conf.set(key, value)

    def version(self, spark: SparkSession, dataset: Dataset) -> Version | None:
        """Return the version in the latest snapshot of this program; after maintenance, in the table's properties.

        Snapshots that a batch has not published are not in the table's history.
        """
        table = self._table(dataset.directory)
        try:
            found = self._latest_commit(spark, table)
        except AnalysisException as error:
            if error.getCondition() != _MISSING:
                raise
            return None
        if found is None and (kept := self._properties(spark, table).get(_PROPERTY)):
            found = bytes.fromhex(kept).decode()
        return self.warehouse.version_of_commit(found) if found else None

    def _latest_commit(self, spark: SparkSession, table: str, source: str | None = None) -> str | None:
        """Return the version, as it was written, in the latest snapshot that has one, or that of a source table."""
        value = f"s.summary['{_PROPERTY}']"
        condition = "" if source is None else f" AND get_json_object({value}, '$.table') = {literal(source)}"
        published = f"{table}.snapshots s LEFT SEMI JOIN {table}.history h ON s.snapshot_id = h.snapshot_id"
        chosen = f"SELECT {value} AS value FROM {published} WHERE {value} IS NOT NULL{condition}"
        latest = spark.sql(f"{chosen} ORDER BY s.committed_at DESC").first()
        return None if latest is None else str(latest["value"])

    def _properties(self, spark: SparkSession, table: str) -> dict[str, str]:
        return {row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES {table}").collect()}

    def _set_properties(self, spark: SparkSession, table: str, properties: Mapping[str, str]) -> None:
        """Set properties of a table: a commit without a snapshot."""
        pairs = ", ".join(f"{literal(name)} = {literal(value)}" for name, value in properties.items())
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({pairs})")

    def read(self, spark: SparkSession, dataset: Dataset) -> DataFrame:
        """Return the rows of the latest snapshot."""
        return spark.table(self._table(dataset.directory))

    def replace(self, spark: SparkSession, dataset: Dataset, rows: DataFrame, before: Dataset | None) -> Dataset:
        """Replace a table in one commit, with its columns; earlier snapshots stay readable."""
        adopted = self.check_location(spark, dataset, rows.schema) if before is None else None
        self._create_namespace(spark, dataset.directory)
        writer = rows.writeTo(self._table(dataset.directory))
        for name, value in self._new_properties.items():
            writer = writer.tableProperty(name, value)
        writer = writer.tableProperty(WAREHOUSE_PROPERTY, self._identity)
        if before is None and not self._own and (location := self._other_location(spark, dataset)):
            writer = writer.tableProperty("location", location)
        wanted = partition_fields(dataset, self._partitions, rows.columns, is_new=before is None)
        partitions = _with_partitions(wanted, rows.columns, self._ever_partitioned_by(spark, dataset, before, adopted))
        if fields := partitions.get(PARTITIONS):
            writer = writer.partitionedBy(*(_partition(PartitionField.parse(each)) for each in fields))
        if partitions.get(_LOST):
            for name in _MODES:
                writer = writer.tableProperty(name, "copy-on-write")
        with self._committing(spark, dataset.version):
            writer.createOrReplace()
        if adopted is not None:
            remove_replaced(self.warehouse.store, "/".join(self._names(dataset.directory)), adopted)
        self.altered.add(dataset.directory)
        kept = {name: each for name, each in dataset.details.items() if name == _FORMER}
        return with_values(dataset, details={**kept, **partitions})

    def _ever_partitioned_by(
        self, spark: SparkSession, dataset: Dataset, before: Dataset | None, adopted: ExistingTable | None
    ) -> set[str | None]:
        """Return the columns by which the table of a dataset ever was partitioned, None for lost ones."""
        found = set[str | None]()
        if before is not None:
            fields = map(PartitionField.parse, before.details.get(PARTITIONS, ()))
            found |= {*before.details.get(_EVER, ()), *(each.column for each in fields)}
            found |= {None} if before.details.get(_LOST) else set()
        name = self._table(dataset.directory)
        if adopted is not None and spark.catalog.tableExists(name):
            found |= IcebergTable(spark, name).ever_partitioned_by
        return found

    def can_merge(self, dataset: Dataset) -> bool:
        """Return whether changes can be merged into a dataset: it has, or is known to have lost, what it was ever
        partitioned by.
        """
        ever = {*dataset.details.get(_EVER, ())}
        return super().can_merge(dataset) and (dataset.details.get(_LOST, False) or ever <= self._names_in(dataset))

    def _create_namespace(self, spark: SparkSession, directory: str) -> None:
        """Create the namespace of a dataset: one thread at a time, since of two, catalogs may refuse one."""
        namespace, _ = self._names(directory)
        with self._creating:
            if namespace not in self._namespaces:
                spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quoted(self._catalog)}.{quoted(namespace)}")
                self._namespaces.add(namespace)

    def _other_location(self, spark: SparkSession, dataset: Dataset) -> str | None:
        """Return where to put a new table whose name a renamed one had, which has its files at the usual location.

        Of two tables at one location, each would take the files of the other one for orphans.
        """
        for each in self.warehouse.readable_datasets()[0].values():
            if dataset.directory in each.details.get(_FORMER, ()):
                rows = spark.sql(f"DESCRIBE TABLE EXTENDED {self._table(each.directory)}").collect()
                location = next(row["data_type"] for row in rows if row["col_name"] == "Location")
                return f"{location}-{dataset.version.oid}"
        return None

    def new_files(
        self, spark: SparkSession, dataset: Dataset, schema: pa.Schema, before: Dataset | None, use: FilesUse
    ) -> NewFiles | None:
        """Return the files of a table in the warehouse that is neither partitioned nor written in another way."""
        names = self._names(dataset.directory)
        is_plain = self._own and all(map(_PLAIN_NAME.fullmatch, names))
        is_new = use is FilesUse.REPLACE and before is None
        was_partitioned = before is not None and before.details.get(_EVER)
        if not is_plain or was_partitioned or partition_fields(dataset, self._partitions, schema.names, is_new):
            return None
        if use is FilesUse.REPLACE:
            if before is None and (self.existing(spark, dataset) or self._other_location(spark, dataset)):
                return None
            self._create_namespace(spark, dataset.directory)
            asked = {**self._new_properties, WAREHOUSE_PROPERTY: self._identity}
            table = IcebergTable.creating(spark, self._catalog, names, schema, asked)
        else:
            self._alter(spark, dataset)
            table = IcebergTable(spark, self._table(dataset.directory))
        kinds = [(each.name, each.dataType.jsonValue()) for each in table.columns]
        wanted = [(each.name, each.dataType.jsonValue()) for each in _as_stored(schema)]
        properties, folder = table.properties, "/".join(names)
        is_other = any(name.startswith("write.") and name not in _KNOWN for name in properties)
        codec = _CODECS.get(properties.get(_CODEC, "").lower())
        if is_other or codec is None or table.is_partitioned or kinds != wanted:
            return None
        is_large = use is FilesUse.OVERWRITE and table.total_bytes > self.key_bytes  # its files are not even listed
        if is_large or not table.location.endswith(f"/{folder}"):
            return None
        present = table.files(f"{folder}/data") if use is FilesUse.OVERWRITE else []
        if present is None or (not table.takes_deletes and sum(file.size for file in present) > TINY):
            return None
        return _IcebergTableFiles(self, dataset, table, f"{folder}/data", codec, use, schema, present)

    def existing(self, spark: SparkSession, dataset: Dataset) -> ExistingTable | None:
        """Return a table of the catalog that this warehouse did not create, or files at the location of a table.

        A first batch that was interrupted before its note may have written it: the table has the identity of the
        warehouse then, or is data without metadata. Metadata that the catalog does not see are those of another one.
        """
        table = self._table(dataset.directory)
        if spark.catalog.tableExists(table):
            is_ours = self._properties(spark, table).get(WAREHOUSE_PROPERTY) == self._identity
            is_ours = is_ours or (self._own and self.version(spark, dataset) is not None)
            return None if is_ours else ExistingTable(table, spark.table(table).schema)
        if not self._own:
            return None
        folder = "/".join(self._names(dataset.directory))
        others = entries_of(self.warehouse.store, folder) - _FOLDERS
        if others or any(map(_OF_CATALOG.match, self.warehouse.store.files(f"{folder}/metadata"))):
            return existing_files(spark, self.warehouse, folder, others, self.adopts)
        return None

    @property
    def _identity(self) -> str:
        """The owner, as a table property: the warehouse's identity, in hexadecimal, which Spark never redacts.

        Before its first batch a warehouse has its path alone, which one of another machine may have, too.
        """
        if not self._known_identity:  # it does not change, and the note is large where many tables are begun
            progress = self.warehouse.progress()
            by_path = sha256(self.warehouse.path.encode()).hexdigest()[:32]
            self._known_identity = by_path if progress is None else progress.identity or by_path
        return self._known_identity

    def ignores_case(self, spark: SparkSession) -> bool:
        """Return whether the catalog is one that has names in small letters: Hive's or Glue's."""
        if self._own:
            return super().ignores_case(spark)
        name = f"spark.sql.catalog.{self._catalog}"
        kind = spark.conf.get(f"{name}.type", "") or spark.conf.get(f"{name}.catalog-impl", "") or "hive"
        return "hive" in kind.lower() or "glue" in kind.lower()

    def can_move(self, spark: SparkSession, dataset: Dataset, directory: str) -> bool:
        """Return whether the catalog can rename tables, which one of files cannot, and has no other with the name."""
        kind = spark.conf.get(f"spark.sql.catalog.{self._catalog}.type", "")
        can_rename = not self._own and kind != _OF_FILES
        return can_rename and self.existing(spark, with_values(dataset, directory=directory)) is None

    def move(self, spark: SparkSession, dataset: Dataset, directory: str) -> bool:
        """Rename the table; its files stay where they are."""
        names = ".".join(map(quoted, self._names(directory)))
        if spark.catalog.tableExists(self._table(directory)):
            return False
        self._create_namespace(spark, directory)
        spark.sql(f"ALTER TABLE {self._table(dataset.directory)} RENAME TO {names}")
        return True

    def describe(self, spark: SparkSession, dataset: Dataset, comments: Mapping[str, str]) -> None:
        """Give the table and its columns comments: commits of their own, which make no snapshot."""
        for statement in comment_statements(spark, self._table(dataset.directory), comments):
            spark.sql(statement)

    def identify(self, spark: SparkSession, dataset: Dataset, key: Sequence[str]) -> None:
        """Make columns the identifier fields of the table, a commit of its own."""
        IcebergTable(spark, self._table(dataset.directory)).identify(key)

    def moved(self, dataset: Dataset, directory: str) -> Dataset:
        """Return a dataset whose note says where its files are."""
        former = [*dataset.details.get(_FORMER, ()), dataset.directory]
        return with_values(dataset, directory=directory, details={**dataset.details, _FORMER: former})

    def has_moved(self, spark: SparkSession, dataset: Dataset, directory: str) -> bool:
        """Return whether there is a table under the other name alone, and it is that of the dataset."""
        if spark.catalog.tableExists(self._table(dataset.directory)):
            return False
        version = self.version(spark, with_values(dataset, directory=directory))
        return version is not None and version.oid == dataset.version.oid

    def merge(self, spark: SparkSession, dataset: Dataset, changes: NetChanges) -> Dataset:
        """Merge in one commit; changes of columns are a commit of their own, which makes no snapshot."""
        table = self._table(dataset.directory)
        self._alter(spark, dataset)
        with (
            merge_statements(
                spark, table, lambda: self.read(spark, dataset), changes, dataset.version.shape
            ) as statements,
            self._committing(spark, dataset.version),
        ):
            if not self._merge_in_parts(spark, table, statements, dataset.details.get(MOST_ROWS)):
                spark.sql(statements.whole(table)).collect()
        return dataset

    def _merge_in_parts(
        self, spark: SparkSession, table: str, statements: MergeStatements, most: int | None = None
    ) -> bool:
        """Write, audit and publish a merge in two parts; return False, with nothing published, where it is to be whole.

        In parts, the rows of the table are not shuffled: for small tables a shuffle is cheaper than several commits.
        The table has at most ``most`` rows, if that is known. The parts are snapshots of a branch, which readers do not
        see. ``main`` is moved to the second one when it has changed as many rows as it must. Else the whole statement
        says which row does not exist.
        """
        if most is not None and most <= _LARGE_ROWS:
            return False
        opened = IcebergTable(spark, table)
        if opened.rows <= _LARGE_ROWS or (parts := statements.in_parts()) is None:
            return False
        if not parts.is_there:
            spark.sql(statements.insert(table)).collect()
            return True
        branch = f"{table}.{quoted(f'branch_{_BRANCH}')}"
        opened.create_branch(_BRANCH)
        try:
            if parts.comes:
                spark.sql(statements.insert(branch)).collect()
            spark.sql(statements.update(branch)).collect()
            is_right = opened.merged_rows(_BRANCH) == parts.is_there
            if is_right:
                opened.fast_forward(_BRANCH)
        finally:
            opened.drop_branch(_BRANCH)
        return is_right

    def append(self, spark: SparkSession, dataset: Dataset, rows: DataFrame) -> Dataset:
        """Append in one commit."""
        self._alter(spark, dataset)
        with self._committing(spark, dataset.version):
            rows.writeTo(self._table(dataset.directory)).append()
        return dataset

    def overwrite(self, spark: SparkSession, dataset: Dataset, rows: DataFrame) -> Dataset:
        """Overwrite in one commit."""
        self._alter(spark, dataset)
        with self._committing(spark, dataset.version):
            rows.writeTo(self._table(dataset.directory)).overwrite(F.lit(True))
        return dataset

    def record(self, spark: SparkSession, dataset: Dataset, rows: DataFrame) -> Dataset:
        """Merge in one commit, as ``merge`` does.

        The rows are made of those in the table, by expressions that Spark takes for non-deterministic. Spark 4.1 merges
        neither: "No plan for TableReference" (SPARK-57539, solved in 4.2), INVALID_NON_DETERMINISTIC_EXPRESSIONS. So
        they are written as files first, and merged from there.
        """
        table, folder = self._table(dataset.directory), f"{STAGED}/{dataset.directory}"
        path = f"{self.warehouse.path}/{folder}"
        try:
            rows.write.mode("overwrite").parquet(path)
            found = spark.read.schema(rows.schema).parquet(plain_path(path))
            with (
                history_statement(spark, table, self.read(spark, dataset), found, self.naming_of(dataset)) as statement,
                self._committing(spark, dataset.version),
            ):
                spark.sql(statement).collect()
        finally:
            self.warehouse.store.remove(folder)
        return dataset

    def _alter(self, spark: SparkSession, dataset: Dataset) -> None:
        """Give a table that exists the properties that were asked for, once; a commit of its own if they differ."""
        if dataset.directory in self.altered or not self._asked:
            return
        table = self._table(dataset.directory)
        present = self._properties(spark, table)
        kept = _MODES if dataset.details.get(_LOST) else ()
        asked = {name: value for name, value in self._asked.items() if name not in kept}
        if changed := {name: value for name, value in asked.items() if present.get(name) != value}:
            self._set_properties(spark, table, changed)
        self.altered.add(dataset.directory)

    def maintain(self, spark: SparkSession, dataset: Dataset, retention: Retention) -> Iterator[tuple[str, int]]:
        """Rewrite small files and position deletes, expire snapshots, remove files that no snapshot has.

        Snapshots of a rewrite do not have the version. So that the one which has it may expire, it becomes a property
        of the table first: that of the data, since a note may be older after an interruption.
        """
        table = self._table(dataset.directory)
        if (version := self.version(spark, dataset)) is None:
            raise PgoutputError(f"{dataset.version.table}: no version in its data: run pgoutput replicate first")
        IcebergTable(spark, table).drop_branch(_BRANCH)  # of an interrupted batch: its snapshots would not expire
        # Spark redacts values of properties that look like secrets, such as the name of a table of tokens.
        self._set_properties(spark, table, {_PROPERTY: self.warehouse.commit_text(version).encode().hex()})
        for procedure, options in _REWRITES.items():
            pairs = ", ".join(f"{literal(name)}, {literal(value)}" for name, value in options.items())
            yield from _counts(self._call(spark, procedure, table, f"options => map({pairs})"))
        committed = spark.sql(f"SELECT unix_micros(committed_at) / 1e6 AS at FROM {table}.snapshots").collect()
        now = time.time()
        before = retention.expired_before([float(row["at"]) for row in committed], now)
        expired = f"older_than => {_timestamp(before)}, retain_last => 1"
        yield from _counts(self._call(spark, "expire_snapshots", table, expired))
        if _FORMER in dataset.details:  # another program may have put a table with the former name there
            return
        orphans = f"older_than => {_timestamp(now - retention.orphan_age)}"
        yield "orphan files removed", self._call(spark, "remove_orphan_files", table, orphans).count()

    def _call(self, spark: SparkSession, procedure: str, table: str, arguments: str) -> DataFrame:
        """Call a procedure of Iceberg; return its result."""
        return spark.sql(f"CALL {quoted(self._catalog)}.system.{procedure}(table => {literal(table)}, {arguments})")

    def remove(self, spark: SparkSession, dataset: Dataset) -> None:
        """Drop the table, with its files; in a warehouse also those that an interruption has left without metadata."""
        self.prepare(spark)
        table = self._table(dataset.directory)
        if not self._own:
            spark.sql(f"DROP TABLE IF EXISTS {table} PURGE")
            return
        folder, store = "/".join(self._names(dataset.directory)), self.warehouse.store
        # The catalog fails if this names a version that is missing, as it would after an interrupted DROP.
        store.delete(f"{folder}/metadata/version-hint.text")
        spark.sql(f"DROP TABLE IF EXISTS {table}")
        store.remove(folder)

    def _table(self, directory: str) -> str:
        return ".".join(map(quoted, (self._catalog, *self._names(directory))))

    def _names(self, directory: str) -> tuple[str, str]:
        """Return namespace and name; a shortened directory may have lost the dot between them."""
        namespace, _, name = directory.partition(".")
        return (namespace, name) if name else ("_", namespace)


class _IcebergTableFiles(NewFiles):
    """Files of a table in the warehouse."""

    def __init__(
        self,
        sink: IcebergSink,
        dataset: Dataset,
        table: IcebergTable,
        folder: str,
        codec: str,
        use: FilesUse,
        schema: pa.Schema,
        present: Sequence[PresentFile],
    ) -> None:
        self.folder, self.schema, self.codec, self.present = folder, table.with_ids(schema), codec, present
        self.deletes = DeletesFile(f"{folder}/deletes-{uuid4().hex}.parquet", DELETES) if table.takes_deletes else None
        self._sink, self._dataset, self._table, self._use = sink, dataset, table, use

    def commit(self, files: Mapping[str, int], deletes: Mapping[str, int] | None = None) -> Dataset:
        """Add the files; the snapshot has the version."""
        warehouse, dataset = self._sink.warehouse, self._dataset
        paths, others = ([f"{warehouse.path}/{name}" for name in each] for each in (files, deletes or {}))
        version = {_PROPERTY: warehouse.commit_text(dataset.version)}
        if deletes is not None:
            self._table.change(paths, others, version)
        else:
            self._table.commit(paths, version, is_overwrite=self._use is FilesUse.OVERWRITE)
        if self._use is not FilesUse.REPLACE:
            return dataset
        self._sink.altered.add(dataset.directory)
        return with_values(dataset, details={name: each for name, each in dataset.details.items() if name == _FORMER})


def _counts(result: DataFrame) -> Iterator[tuple[str, int]]:
    """Yield the counts in the result of a procedure that are not 0."""
    for row in result.collect():
        for name, number in row.asDict().items():
            if number:
                yield name.replace("_", " ").removesuffix(" count"), int(number)


def _as_stored(schema: pa.Schema) -> T.StructType:
    """Return columns as a table of Iceberg has them, which has no shorter integers than ``int``."""
    kinds = from_arrow_schema(schema, prefer_timestamp_ntz=True).json()
    return T.StructType.fromJson(json.loads(re.sub(r'"type":"(byte|short)"', '"type":"integer"', kinds)))


def _with_partitions(
    fields: Sequence[PartitionField], columns: Collection[str], former: Collection[str | None]
) -> dict[str, Any]:
    """Return what the note of a table that is written as a whole says of its partitions.

    Args:
        fields: How it is partitioned now.
        columns: Its columns now.
        former: The columns by which it ever was partitioned, None for lost ones.
    """
    ever = {*former, *(each.column for each in fields)}
    known = sorted(name for name in ever if name is not None)
    found = {PARTITIONS: list(map(str, fields)), _EVER: known, _LOST: not ever <= {*columns}}
    return {name: value for name, value in found.items() if value}


def _partition(each: PartitionField) -> Column:
    value = column(each.column)
    match each.transform:
        case "identity":
            return value
        case "bucket":
            return F.partitioning.bucket(each.buckets, value)
        case transform:
            return getattr(F.partitioning, f"{transform}s")(value)


def _timestamp(seconds: float) -> str:
    """Return a time, in seconds since 1970, as a literal of Spark's SQL."""
    return f"TIMESTAMP '{datetime.fromtimestamp(max(seconds, 0.0), UTC).isoformat(' ')}'"
