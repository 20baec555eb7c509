"""Tables of Iceberg: in a catalog of files in the warehouse, or in one of the session."""

import json
from hashlib import sha256
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from pgoutput_construct.spark._log_view.change_columns import quoted
from pgoutput_construct.spark._log_view.replicated_tables import plain_path
from pgoutput_construct.spark._replicate.merge_statement import history_statement, merge_statement
from pgoutput_construct.spark._replicate.sink import MergingSink, NetChanges
from pgoutput_construct.spark._replicate.warehouse_notes import STAGED, Dataset, Version, Warehouse

__all__ = ["IcebergSink"]

_PROPERTY: Final = "pgoutput.version"
_SNAPSHOT: Final = "spark.sql.iceberg.snapshot-property."
_CATALOG: Final = "org.apache.iceberg.spark.SparkCatalog"
_SETTINGS: Final = {
    "": _CATALOG,
    ".type": "hadoop",
    ".cache-enabled": "false",  # else each session keeps reading the snapshot that it saw first
}
_MISSING: Final = "TABLE_OR_VIEW_NOT_FOUND"


class IcebergSink(MergingSink):
    """The version is a property of the snapshot that wrote it."""

    format = "iceberg"

    def __init__(self, warehouse: Warehouse, catalog: str | None = None) -> None:
        """``catalog``: the name of one of the session; None for files in the warehouse (``type=hadoop``)."""
        super().__init__(warehouse)
        self._own = catalog is None
        self._catalog = catalog or f"pgoutput_{sha256(warehouse.path.encode()).hexdigest()[:12]}"

    def prepare(self, spark: SparkSession) -> None:
        """Configure the warehouse's catalog."""
        if self._own:
            place = f"spark.sql.catalog.{self._catalog}"
            for key, value in (_SETTINGS | {".warehouse": self.warehouse.path}).items():
                spark.conf.set(place + key, value)

    def version(self, spark: SparkSession, dataset: Dataset) -> Version | None:
        """Return the version in the latest snapshot of this program."""
        table = self._table(dataset.directory)
        value = f"summary['{_PROPERTY}']"
        latest = f"SELECT {value} AS value FROM {table}.snapshots WHERE {value} IS NOT NULL ORDER BY committed_at DESC"
        try:
            found = spark.sql(latest).take(1)
        except AnalysisException as error:
            if error.getCondition() != _MISSING:
                raise
            return None
        return Version.from_json(json.loads(found[0]["value"])) if found else None

    def read(self, spark: SparkSession, dataset: Dataset) -> DataFrame:
        """Return the rows of the latest snapshot."""
        return spark.table(self._table(dataset.directory))

    def replace(self, spark: SparkSession, dataset: Dataset, rows: DataFrame, before: Dataset | None) -> Dataset:
        """Replace a table in one commit, with its columns; earlier snapshots stay readable."""
        namespace, _ = self._names(dataset.directory)
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quoted(self._catalog)}.{quoted(namespace)}")
        spark.conf.set(_SNAPSHOT + _PROPERTY, dataset.version.to_text())
        rows.writeTo(self._table(dataset.directory)).tableProperty("format-version", "2").createOrReplace()
        return dataset

    def merge(self, spark: SparkSession, dataset: Dataset, changes: NetChanges) -> Dataset:
        """Merge in one commit; changes of columns are a commit of their own, which makes no snapshot."""
        table = self._table(dataset.directory)
        with merge_statement(
            spark, table, lambda: self.read(spark, dataset), changes, dataset.version.shape
        ) as statement:
            spark.conf.set(_SNAPSHOT + _PROPERTY, dataset.version.to_text())
            spark.sql(statement).collect()
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
            with history_statement(
                spark, table, self.read(spark, dataset), found, self.naming_of(dataset)
            ) as statement:
                spark.conf.set(_SNAPSHOT + _PROPERTY, dataset.version.to_text())
                spark.sql(statement).collect()
        finally:
            self.warehouse.store.remove(folder)
        return dataset

    def remove(self, spark: SparkSession, dataset: Dataset) -> None:
        """Drop the table, with its files."""
        self.prepare(spark)
        spark.sql(f"DROP TABLE IF EXISTS {self._table(dataset.directory)} PURGE")

    def _table(self, directory: str) -> str:
        return ".".join(map(quoted, (self._catalog, *self._names(directory))))

    def _names(self, directory: str) -> tuple[str, str]:
        """Return namespace and name; a shortened directory may have lost the dot between them."""
        namespace, _, name = directory.partition(".")
        return (namespace, name) if name else ("_", namespace)
