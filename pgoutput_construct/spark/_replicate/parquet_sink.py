"""Tables as plain Parquet files: each version in a directory of its own, and a note that names the one that counts."""

import time
from dataclasses import replace
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from pgoutput_construct.spark._log_view.replicated_tables import plain_path
from pgoutput_construct.spark._replicate.sink import Sink
from pgoutput_construct.spark._replicate.warehouse_notes import Dataset, Version, Warehouse

__all__ = ["SMALL", "ParquetSink"]

SMALL: Final = 1 << 22
"""The most bytes of the files of a small table."""


class ParquetSink(Sink):
    """The note is the table: readers see the version that it names; replaced ones are retained for a while."""

    format = "parquet"

    def __init__(self, warehouse: Warehouse, grace: float = 600.0) -> None:
        """``grace``: for how many seconds a replaced version is retained for its readers."""
        super().__init__(warehouse)
        self._grace = grace

    def prepare(self, spark: SparkSession) -> None:
        """Do nothing: every session has Parquet."""

    def version(self, spark: SparkSession, dataset: Dataset) -> Version | None:
        """Return the version in the note, which is written last."""
        return dataset.version

    def read(self, spark: SparkSession, dataset: Dataset) -> DataFrame:
        """Return the rows of the version that the note names."""
        schema = StructType.fromJson(dataset.details["schema"])
        return spark.read.schema(schema).parquet(plain_path(f"{self.warehouse.path}/{dataset.details['path']}"))

    def replace(self, spark: SparkSession, dataset: Dataset, rows: DataFrame, before: Dataset | None) -> Dataset:
        """Write a version next to the others."""
        rows.write.mode("overwrite").parquet(f"{self.warehouse.path}/{self.path(dataset)}")
        return self.replaced(dataset, rows.schema, before)

    def path(self, dataset: Dataset) -> str:
        """Return the directory of the version that a dataset will have."""
        return _path(dataset.directory, dataset.version.batch)

    def replaced(self, dataset: Dataset, schema: StructType, before: Dataset | None) -> Dataset:
        """Return a dataset whose version is written; remove former versions whose grace is over."""
        details = {"path": self.path(dataset), "schema": schema.jsonValue(), "replaced": self._replaced(before)}
        return replace(dataset, details=details)

    def remove(self, spark: SparkSession, dataset: Dataset) -> None:
        """Remove all versions."""
        self.warehouse.store.remove(dataset.directory)

    def recover(self, dataset: Dataset, batch: int) -> None:
        """Remove an incomplete version."""
        if dataset.details.get("path") != (path := _path(dataset.directory, batch)):
            self.warehouse.store.remove(path)

    def is_small(self, dataset: Dataset) -> bool:
        """Return whether the files are small."""
        return sum(self.warehouse.store.files(dataset.details["path"]).values()) <= SMALL

    def _replaced(self, before: Dataset | None) -> dict[str, float]:
        """Return the retained former versions, and when they were replaced (seconds since 1970)."""
        if before is None:
            return {}
        now = time.time()
        for path, replaced_at in before.details["replaced"].items():
            if replaced_at + self._grace <= now:
                self.warehouse.store.remove(path)
        retained = {path: each for path, each in before.details["replaced"].items() if each + self._grace > now}
        return retained | {before.details["path"]: now}


def _path(directory: str, batch: int) -> str:
    return f"{directory}/v{batch}"
