"""Tables that schemas share: those of one name are the rows of one table, and a column of it has the schema of each.

A dataset is one table of the source here, too: it has its own note and its own version, and is replayed, verified and
read by itself. Its directory is that of the shared table, ``@``, and the schema. What differs is how a sink finds its
rows:

- The shared table is partitioned by the column of the schema. A dataset is replaced by an overwrite of its partition,
  merged with the schema in the condition, and removed by a DELETE: each is one commit, with rows of one schema alone.
- A commit has the version of one dataset. So the version of a dataset is in the latest commit of its table, and without
  such a commit in the note. A note is older than its data only if the last batch was interrupted, and the commits of
  that are there: maintenance, which lets commits expire, waits until a batch is complete.
- A dataset is removed before its note, since rows without one would stay among those of others. An interruption
  between the two is repeated.
- The columns of the shared table are those of all its datasets; rows have NULL in the columns of others. They are added
  when a dataset has them, and never dropped: notes may be older than data, so that another dataset may need them. Of
  two types of a column, the shared table has the one that is wider (``is_widened``); others are refused.
- One thread at a time writes into a shared table (``exclusive``): an alteration invalidates the plans of others.
"""

import re
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace as with_values
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.lake._directories import SHARED, STAGED
from pgoutput_construct.lake._notes import Dataset
from pgoutput_construct.lake._versions import Version
from pgoutput_construct.spark._log_view.change_columns import column, quoted
from pgoutput_construct.spark._log_view.replicated_tables import plain_path
from pgoutput_construct.spark._table_formats.delta_sink import CLAIM, DeltaSink, mapped_names
from pgoutput_construct.spark._table_formats.existing_tables import ExistingTable, entries_of
from pgoutput_construct.spark._table_formats.iceberg_sink import WAREHOUSE_PROPERTY, IcebergSink
from pgoutput_construct.spark._table_formats.merge_statement import (
    MergeStatements,
    is_widened,
    literal,
    merge_statements,
)
from pgoutput_construct.spark._table_formats.sink import FilesUse, NetChanges, NewFiles, Retention, Sink

_DECIMAL: Final = re.compile(r"decimal128\((\d+, -?\d+)\)")
_KINDS: Final = {"int16": "smallint", "int32": "int", "int64": "bigint", "float": "float", "double": "double"}
"""Types of Arrow that may be narrower in a dataset than in the shared table, as Spark's SQL has them."""
_PARTS: Final = {T.ArrayType: ("element",), T.MapType: ("key", "value")}
"""What the formats call what is in an array, and in a map."""
_UNDISTRIBUTED: Final = {f"write.{each}distribution-mode": "none" for each in ("", "delete.", "update.", "merge.")}
"""Properties of Iceberg, without which it would bring all rows of a partition, here of a write, into one task."""


def schema_of(dataset: Dataset) -> str:
    """Return the schema of a dataset that shares its table; raise PgoutputError for one that Spark cannot have."""
    name = unquote(dataset.directory.partition(SHARED)[2], errors="surrogateescape")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise PgoutputError(
            f"{dataset.version.table}: the name of its schema is not UTF-8: exclude the table"
        ) from None
    return name


class SharedTables(Sink):
    """What the formats share: several datasets in a table, by the column ``schema_column``."""

    alters = False  # a dataset whose columns change is replaced: others have them still
    has_comments = has_keys = False

    def can_widen(self, spark: SparkSession, dataset: Dataset) -> bool:
        """Return False: the dataset is replaced, and the column of the shared table altered with it."""
        return False

    def can_move(self, spark: SparkSession, dataset: Dataset, directory: str) -> bool:
        """Return False: the rows of a renamed table are written into another one."""
        return False

    def read(self, spark: SparkSession, dataset: Dataset) -> DataFrame:
        """Return the rows of the dataset alone, with its own columns."""
        naming, shape = self.naming_of(dataset), dataset.version.shape
        kinds = {name: kind for name, each in shape.columns.items() if (kind := _narrow_kind(each))}
        rows = spark.table(self._table_of(dataset)).where(self._condition(dataset))
        own = (column(name).cast(kinds[name]).alias(name) if name in kinds else column(name) for name in shape.current)
        return rows.select(*own, *(column(naming.added_name(name)) for name in naming.added))

    def version(self, spark: SparkSession, dataset: Dataset) -> Version | None:
        """Return the version in the latest commit of the dataset's table, else that of its note."""
        if not self._has_table(spark, dataset):
            return None
        found = self._commit_of(spark, dataset)
        return dataset.version if found is None else self.warehouse.version_of_commit(found)

    def replace(self, spark: SparkSession, dataset: Dataset, rows: DataFrame, before: Dataset | None) -> Dataset:
        """Replace the rows of the dataset in one commit; columns that the shared table lacks are added first."""
        adopted = self.check_location(spark, dataset, rows.schema) if before is None else None
        if adopted is not None:
            super().remove(spark, self._whole(dataset))
        self._check_columns(dataset, rows)
        if not self._has_table(spark, dataset):
            whole = T.StructType([T.StructField(self.schema_column, T.StringType()), *rows.schema])
            self._check_whole(dataset, whole)
            self._create(spark, dataset, whole)
        self._overwrite(spark, dataset, rows)
        return with_values(dataset, details={})

    def overwrite(self, spark: SparkSession, dataset: Dataset, rows: DataFrame) -> Dataset:
        """Replace the rows of the dataset in one commit."""
        self._check_columns(dataset, rows)
        self._overwrite(spark, dataset, rows)
        return dataset

    def new_files(
        self, spark: SparkSession, dataset: Dataset, schema: pa.Schema, before: Dataset | None, use: FilesUse
    ) -> NewFiles | None:
        """Return None: files would lack the column of the schema."""
        return None

    def append(self, spark: SparkSession, dataset: Dataset, rows: DataFrame) -> Dataset:
        """Append in one commit."""
        table = self._table_of(dataset)
        with self._committing(spark, dataset.version):
            self._with_schema(spark, dataset, rows).writeTo(table).append()
        return dataset

    def merge(self, spark: SparkSession, dataset: Dataset, changes: NetChanges) -> Dataset:
        """Merge in one commit: the dataset has the columns that it had."""
        table, name = self._table_of(dataset), self.schema_column
        schema = literal(schema_of(dataset))
        with merge_statements(
            spark, table, lambda: self.read(spark, dataset), changes, dataset.version.shape
        ) as statements:
            found = statements.expressions
            others = {each for each in spark.table(table).columns if each not in found.inserted}
            inserted = {**found.inserted, **dict.fromkeys(sorted(others), "NULL"), name: schema}
            on = f"t.{quoted(name)} = {schema} AND {found.on}"
            within = statements._replace(expressions=found._replace(on=on, inserted=inserted))
            with self._committing(spark, dataset.version):
                self._merge(spark, table, within)
        return dataset

    def remove(self, spark: SparkSession, dataset: Dataset) -> None:
        """Delete the rows of the dataset in one commit; of the last one, remove the table."""
        with self.exclusive(dataset):
            # A damaged note may be that of another dataset in the table.
            if not (self.warehouse.readable_datasets()[1] or self._has_noted(dataset)):
                super().remove(spark, self._whole(dataset))
            elif self._has_table(spark, dataset):
                spark.sql(f"DELETE FROM {self._table_of(dataset)} WHERE {self._condition(dataset)}").collect()

    def remove_unnoted(self, spark: SparkSession, dataset: Dataset) -> None:
        """Remove the rows of a dataset without a note, or the table; a table that is not of this warehouse stays."""
        with self.exclusive(dataset):
            super().remove_unnoted(spark, dataset)

    def _has_noted(self, dataset: Dataset) -> bool:
        """Return whether another dataset that has a note is in the shared table."""
        noted, _ = self.warehouse.readable_datasets()
        others = (name for name in noted if name != dataset.directory)
        return any(self.is_same_location(name, dataset.directory) for name in others)

    def check_location(self, spark: SparkSession, dataset: Dataset, columns: T.StructType) -> ExistingTable | None:
        """Return what is to be taken over; None where other datasets of this warehouse are in the shared table.

        Raises PgoutputError as ``Sink.check_location`` does, and while a note is damaged: its dataset may be there.
        """
        if self._has_noted(dataset):
            return None
        there = super().check_location(spark, dataset, columns)
        for error in self.warehouse.readable_datasets()[1].values() if there is not None else ():
            raise error
        return there

    def maintain(self, spark: SparkSession, dataset: Dataset, retention: Retention) -> Iterator[tuple[str, int]]:
        """Maintain the shared table; raise PgoutputError unless the last batch is complete: its commits are needed."""
        if not self.warehouse.existing_progress().done:
            location = self.location_of(dataset.directory)
            raise PgoutputError(f"{location}: its last batch is not complete: a table failed, or it was interrupted")
        yield from super().maintain(spark, self._whole(dataset), retention)

    def _whole(self, dataset: Dataset) -> Dataset:
        """Return the shared table of a dataset as if it were its own."""
        return with_values(dataset, directory=self.location_of(dataset.directory))

    def _condition(self, dataset: Dataset) -> str:
        return f"{quoted(self.schema_column)} = {literal(schema_of(dataset))}"

    def _check_columns(self, dataset: Dataset, rows: DataFrame) -> None:
        """Raise PgoutputError for a table that has a column with the name of the one for the schema."""
        if self.schema_column.lower() in map(str.lower, rows.columns):
            raise PgoutputError(
                f"{dataset.version.table} has a column {self.schema_column!r} itself: exclude that "
                "(--exclude-columns), give it another name (--rename-column), or choose another --schema-column in "
                "another warehouse"
            )

    def _check_whole(self, dataset: Dataset, columns: T.StructType) -> None:
        """Raise PgoutputError for columns of which a table of the format cannot have all, though each dataset can."""
        parts = {field.name: _PARTS.get(type(field.dataType), ()) for field in columns}
        for name, reason in self.reserved.refusals(columns.names, parts):
            remedy = (
                "exclude the column of the two that this schema adds (--exclude-columns), give it another name "
                "(--rename-column), or replicate the table into another warehouse"
            )
            raise PgoutputError(
                f"{dataset.version.table}: {self.reserved.format} cannot have the column {name!r} in the table "
                f"{self.location_of(dataset.directory)}, which schemas share: {reason}; "
                f"{'choose another --schema-column' if name == self.schema_column else remedy}"
            )

    def _overwrite(self, spark: SparkSession, dataset: Dataset, rows: DataFrame) -> None:
        """Replace the rows of the dataset; these may be made from the present ones.

        They are stored before the table is altered: Spark refuses a plan of what was read before that.
        """
        statements = list(self._alterations(spark, dataset, rows.schema))
        folder = f"{STAGED}/{dataset.directory}"
        try:
            if statements:
                path = f"{self.warehouse.path}/{folder}"
                rows.write.mode("overwrite").parquet(path)
                rows = spark.read.schema(rows.schema).parquet(plain_path(path))
            for statement in statements:
                spark.sql(statement)
            with self._committing(spark, dataset.version):
                self._write_partition(spark, dataset, self._with_schema(spark, dataset, rows))
        finally:
            if statements:
                self.warehouse.store.remove(folder)

    def _alterations(self, spark: SparkSession, dataset: Dataset, schema: T.StructType) -> Iterator[str]:
        """Yield the statements after which the shared table can have the rows of a dataset.

        Raises PgoutputError for a column whose type is another one than in the shared table, and for one that the
        shared table cannot have.
        """
        table = self._table_of(dataset)
        present = spark.table(table).schema
        there = {field.name: field.dataType for field in present}
        if added := [field for field in schema if field.name not in there]:
            self._check_whole(dataset, T.StructType([*present, *added]))
            yield f"ALTER TABLE {table} ADD COLUMNS ({_definitions(T.StructType(added))})"
        for field in schema:
            was, kind = there.get(field.name), field.dataType
            if was is None or self._stored(was) == self._stored(kind) or is_widened(kind, was):
                continue
            if not (is_widened(was, kind) and self._can_alter_types(spark, dataset)):
                raise self._conflict(dataset, field, was)
            yield f"ALTER TABLE {table} ALTER COLUMN {quoted(field.name)} TYPE {kind.simpleString()}"

    def _conflict(self, dataset: Dataset, field: T.StructField, was: T.DataType) -> PgoutputError:
        location, mine = self.location_of(dataset.directory), dataset.version.shape.columns.get(field.name)
        noted = self.warehouse.readable_datasets()[0].values()
        others = sorted(
            each.version.table
            for each in noted
            if self.location_of(each.directory) == location
            and each.directory != dataset.directory
            and each.version.shape.columns.get(field.name, mine) != mine
        )
        whose = others[0] if others else "the rows of other schemas"
        return PgoutputError(
            f"{dataset.version.table}: its column {field.name!r} is {field.dataType.simpleString()}, and in {whose} "
            f"{was.simpleString()}, which share the table {location}: alter one of them at the source, exclude the "
            "column (--exclude-columns), give it another name (--rename-column), or replicate one into another "
            "warehouse"
        )

    def _with_schema(self, spark: SparkSession, dataset: Dataset, rows: DataFrame) -> DataFrame:
        """Return rows with the columns of the shared table."""
        values = {name: column(name) for name in rows.columns} | {self.schema_column: F.lit(schema_of(dataset))}
        fields = spark.table(self._table_of(dataset)).schema
        return rows.select(
            *(values.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name) for field in fields)
        )

    @abstractmethod
    def _table_of(self, dataset: Dataset) -> str:
        """Return the shared table as SQL has it."""

    @abstractmethod
    def _has_table(self, spark: SparkSession, dataset: Dataset) -> bool:
        """Return whether the shared table exists."""

    @abstractmethod
    def _commit_of(self, spark: SparkSession, dataset: Dataset) -> str | None:
        """Return the metadata of the latest commit with the version of the dataset's table; None for none."""

    @abstractmethod
    def _create(self, spark: SparkSession, dataset: Dataset, schema: T.StructType) -> None:
        """Create the shared table with the column of the schema, and those of a dataset."""

    @abstractmethod
    def _write_partition(self, spark: SparkSession, dataset: Dataset, rows: DataFrame) -> None:
        """Replace the rows of the dataset in one commit."""

    def _merge(self, spark: SparkSession, table: str, statements: MergeStatements) -> None:
        """Run the statements of a merge."""
        spark.sql(statements.whole(table)).collect()

    def _can_alter_types(self, spark: SparkSession, dataset: Dataset) -> bool:
        """Return whether types of the shared table can be made wider."""
        return True

    def _stored(self, kind: T.DataType) -> str:
        """Return a type as the format has it."""
        return kind.simpleString()


class SharedIceberg(SharedTables, IcebergSink):
    """Tables of Iceberg that schemas share."""

    def existing(self, spark: SparkSession, dataset: Dataset) -> ExistingTable | None:
        """Return a table of the catalog that this warehouse did not create, or files at the location of a table."""
        table = self._table_of(dataset)
        if not self._has_table(spark, dataset):
            return IcebergSink.existing(self, spark, self._whole(dataset))
        is_ours = self._properties(spark, table).get(WAREHOUSE_PROPERTY) == self._identity
        return None if is_ours else ExistingTable(table, spark.table(table).schema)

    def _table_of(self, dataset: Dataset) -> str:
        return self._table(self.location_of(dataset.directory))

    def _has_table(self, spark: SparkSession, dataset: Dataset) -> bool:
        return spark.catalog.tableExists(self._table_of(dataset))

    def _commit_of(self, spark: SparkSession, dataset: Dataset) -> str | None:
        return self._latest_commit(spark, self._table_of(dataset), dataset.version.table)

    def _create(self, spark: SparkSession, dataset: Dataset, schema: T.StructType) -> None:
        self._create_namespace(spark, self.location_of(dataset.directory))
        columns = _definitions(schema)
        properties = {**_UNDISTRIBUTED, **self._new_properties, WAREHOUSE_PROPERTY: self._identity}
        pairs = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties.items())
        spark.sql(
            f"CREATE TABLE IF NOT EXISTS {self._table_of(dataset)} ({columns}) USING iceberg "
            f"PARTITIONED BY ({quoted(self.schema_column)}) TBLPROPERTIES ({pairs})"
        )

    def _write_partition(self, spark: SparkSession, dataset: Dataset, rows: DataFrame) -> None:
        self._alter(spark, self._whole(dataset))
        rows.writeTo(self._table_of(dataset)).overwrite(column(self.schema_column) == F.lit(schema_of(dataset)))

    def _merge(self, spark: SparkSession, table: str, statements: MergeStatements) -> None:
        if not self._merge_in_parts(spark, table, statements):
            super()._merge(spark, table, statements)

    def _stored(self, kind: T.DataType) -> str:
        return kind.simpleString().replace("smallint", "int")


class SharedDelta(SharedTables, DeltaSink):
    """Tables of Delta Lake that schemas share."""

    def existing(self, spark: SparkSession, dataset: Dataset) -> ExistingTable | None:
        """Return the table, or the files, in a directory that has no claim of this package."""
        whole = self._whole(dataset)
        if not (entries := entries_of(self.warehouse.store, whole.directory)) or CLAIM in entries:
            return None
        if not self._exists(whole):
            return DeltaSink.existing(self, spark, whole)
        return ExistingTable(self._path(whole), spark.table(self._table(whole)).schema)

    def _check_columns(self, dataset: Dataset, rows: DataFrame) -> None:
        super()._check_columns(dataset, rows)
        if mapped := mapped_names(rows.columns):
            raise PgoutputError(
                f"{dataset.version.table}: Delta Lake has the column {mapped[0]!r} only with column mapping, which "
                "--schema-column does not support: exclude it (--exclude-columns), give it another name "
                "(--rename-column), or choose iceberg"
            )

    def _table_of(self, dataset: Dataset) -> str:
        return self._table(self._whole(dataset))

    def _has_table(self, spark: SparkSession, dataset: Dataset) -> bool:
        return self._exists(self._whole(dataset))

    def _commit_of(self, spark: SparkSession, dataset: Dataset) -> str | None:
        history = spark.sql(f"DESCRIBE HISTORY {self._table_of(dataset)}")
        mine = history.where(f"get_json_object(userMetadata, '$.table') = {literal(dataset.version.table)}")
        latest = mine.orderBy("version", ascending=False).select("userMetadata").first()
        return None if latest is None else str(latest[0])

    def _create(self, spark: SparkSession, dataset: Dataset, schema: T.StructType) -> None:
        whole = self._whole(dataset)
        self.warehouse.store.write(f"{whole.directory}/{CLAIM}", b"")
        empty = spark.createDataFrame([], schema)
        writer = empty.write.format("delta").mode("append").partitionBy(self.schema_column)
        writer.options(**self._wanted).save(self._path(whole))

    def _write_partition(self, spark: SparkSession, dataset: Dataset, rows: DataFrame) -> None:
        writer = rows.write.format("delta").mode("overwrite").option("replaceWhere", self._condition(dataset))
        writer.save(self._path(self._whole(dataset)))

    def _can_alter_types(self, spark: SparkSession, dataset: Dataset) -> bool:
        return DeltaSink.can_widen(self, spark, self._whole(dataset))


def _narrow_kind(kind: str) -> str | None:
    """Return a type of Arrow as Spark's SQL has it, if the shared table may have a wider one."""
    found = _DECIMAL.fullmatch(kind)
    return f"decimal({found[1]})" if found else _KINDS.get(kind)


def _definitions(schema: T.StructType) -> str:
    return ", ".join(f"{quoted(field.name)} {field.dataType.simpleString()}" for field in schema)
