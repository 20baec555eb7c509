"""Tables of Delta Lake: each a directory whose log says what each commit was, the position among it."""

import json
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.spark.warehouse.merging import merging, quoted, recording
from pgoutput_construct.spark.warehouse.notes import Dataset
from pgoutput_construct.spark.warehouse.sink import MergingSink, Net
from pgoutput_construct.spark.warehouse.version import Version

__all__ = ["DeltaSink"]

_SAID: Final = "spark.databricks.delta.commitInfo.userMetadata"
_FEATURES: Final = {"delta.columnMapping.mode": "name"}  # else names of columns may have no spaces
_HISTORY: Final = 100
"""Among how many of the latest commits ours is looked for: others may have been vacuumed or optimized since."""


class DeltaSink(MergingSink):
    """The version stands in the metadata of the commit that wrote it."""

    format = "delta"
    alters = False  # ALTER TABLE of Delta Lake 4.1.0 needs a class that Spark 4.1.0 had and 4.1.4 has not

    def prepare(self, spark: SparkSession) -> None:
        """Do nothing: tables are found by their paths."""

    def version(self, spark: SparkSession, dataset: Dataset) -> Version | None:
        """Return what the latest commit of ours says."""
        if not self.warehouse.store.files(f"{dataset.directory}/_delta_log"):
            return None
        history = spark.sql(f"DESCRIBE HISTORY {self._table(dataset)} LIMIT {_HISTORY}")
        said = history.where("userMetadata IS NOT NULL").orderBy("version", ascending=False).select("userMetadata")
        for row in said.take(1):
            return _read(row["userMetadata"])
        return None

    def read(self, spark: SparkSession, dataset: Dataset) -> DataFrame:
        """Return the rows of the latest commit."""
        return spark.read.format("delta").load(self._path(dataset))

    def replace(self, spark: SparkSession, dataset: Dataset, rows: DataFrame, before: Dataset | None) -> Dataset:
        """Overwrite a table in one commit, with its columns."""
        writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").options(**_FEATURES)
        writer.option("userMetadata", dataset.version.to_text()).save(self._path(dataset))
        return dataset

    def merge(self, spark: SparkSession, dataset: Dataset, changes: Net) -> Dataset:
        """Merge in one commit."""
        with merging(
            spark, self._table(dataset), lambda: self.read(spark, dataset), changes, dataset.version.shape
        ) as statement:
            spark.conf.set(_SAID, dataset.version.to_text())
            spark.sql(statement).collect()
        return dataset

    def record(self, spark: SparkSession, dataset: Dataset, rows: DataFrame) -> Dataset:
        """Merge in one commit, as ``merge`` does."""
        with recording(spark, self._table(dataset), self.read(spark, dataset), rows, self.naming) as statement:
            spark.conf.set(_SAID, dataset.version.to_text())
            spark.sql(statement).collect()
        return dataset

    def remove(self, spark: SparkSession, dataset: Dataset) -> None:
        """Remove the directory."""
        self.warehouse.store.remove(dataset.directory)

    def _path(self, dataset: Dataset) -> str:
        return f"{self.warehouse.path}/{dataset.directory}"

    def _table(self, dataset: Dataset) -> str:
        return f"delta.{quoted(self._path(dataset))}"


def _read(text: str) -> Version:
    try:
        return Version.from_json(json.loads(text))
    except (ValueError, KeyError, TypeError) as error:
        raise PgoutputError(f"a commit of Delta Lake that is not this program's: {text!r:.80}: {error}") from None
