"""Reads the tables of a warehouse that ``replicate`` wrote; Parquet without Spark, which would take longer."""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from pgoutput_construct import lake
from pgoutput_construct.lake._notes import Dataset, Warehouse
from pgoutput_construct.spark import read_current
from pgoutput_construct.spark._replicate import read_history

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["datasets_of", "rows_of"]


def datasets_of(warehouse: Path, is_history: bool) -> dict[int, Dataset]:
    """Return the datasets of tables by their OIDs."""
    found = Warehouse(warehouse).datasets().values()
    return {each.version.oid: each for each in found if each.is_history == is_history}


def rows_of(spark: "SparkSession", warehouse: Path, dataset: Dataset) -> pa.Table:
    """Return the rows of a dataset."""
    if "schema" in dataset.details:  # of Parquet alone the note says what it is
        return lake.read(warehouse, dataset.version.table, history=dataset.is_history)
    read = read_history if dataset.is_history else read_current
    return read(spark, warehouse, dataset.version.table).toArrow()
