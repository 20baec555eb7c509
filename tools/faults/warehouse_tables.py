"""Reads the tables of a warehouse that ``replicate`` wrote; Parquet without Spark, which would take longer."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from pgoutput_construct.spark import read_current
from pgoutput_construct.spark._replicate import read_history
from pgoutput_construct.spark._replicate.warehouse_notes import Dataset, Warehouse

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
        return _read_parquet(warehouse / dataset.details["path"], dataset.details["schema"])
    read = read_history if dataset.is_history else read_current
    return read(spark, warehouse, dataset.version.table).toArrow()


def _read_parquet(path: Path, schema: Mapping[str, Any]) -> pa.Table:
    """Read what Spark wrote with a schema: instants are in UTC, though Parquet's INT96 does not say so."""
    table = pq.read_table(path, coerce_int96_timestamp_unit="us")
    for place, field_ in enumerate(schema["fields"]):
        match field_["type"]:
            case "timestamp":
                kind = pa.timestamp("us", "UTC")
            case {"type": "array", "elementType": "timestamp"}:
                kind = pa.list_(pa.timestamp("us", "UTC"))
            case _:
                continue
        table = table.set_column(place, field_["name"], table.column(place).cast(kind))
    return table
