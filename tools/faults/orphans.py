"""What maintenance leaves in a warehouse: after kills, no file may be there that no table has."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from pgoutput_construct.lake._directories import STAGED
from pgoutput_construct.lake._notes import Dataset, Warehouse
from pgoutput_construct.lake._parquet_parts import Parts
from pgoutput_construct.spark import Retention, maintain
from pgoutput_construct.spark._table_formats.sinks import existing_sink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["orphans"]

_OLD: Final = 7 * 86_400
"""Seconds: files of this age are not those of a write under way."""
_OTHERS: Final = {STAGED, "missing"}
"""Directories of a warehouse that are no table's: of staged changes, and of reports of missing rows."""
_NOTHING: Final = Retention(age=0, count=1, grace=0)


def orphans(spark: "SparkSession", warehouse: Path) -> list[str]:
    """Maintain the tables of a warehouse as if all of its files were old; return the files of data that no table has.

    Errors of maintenance are returned, too.
    """
    then = time.time() - _OLD
    for path in warehouse.rglob("*"):
        if path.is_file():
            os.utime(path, (then, then))
    found = [f"{each.table}: {each.error}" for each in maintain(spark, warehouse, retention=_NOTHING) if each.error]
    place = Warehouse(warehouse)
    into = place.existing_progress().format
    sink = existing_sink(place, place.existing_progress())
    sink.prepare(spark)
    folders = set[Path]()
    for dataset in place.datasets().values():
        folder = warehouse / (sink.location_of(dataset.directory) if into != "iceberg" else _iceberg_folder(dataset))
        known = {"parquet": _parquet, "delta": _delta, "iceberg": _iceberg}[into](spark, warehouse, dataset)
        there = {path for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts}
        found += [f"{dataset.version.table}: no table has {path}" for path in sorted(there - set(known))]
        folders.add(folder)
    tops = (path for path in warehouse.iterdir() if not path.name.startswith("_") and path.name not in _OTHERS)
    others = (path for top in tops for path in top.rglob("*.parquet") if folders.isdisjoint(path.parents))
    return [*found, *(f"no table is in the place of {path}" for path in sorted(others))]


def _parquet(spark: "SparkSession", warehouse: Path, dataset: Dataset) -> Iterator[Path]:
    for part in (*Parts.of(dataset).directories, *dataset.details["replaced"]):  # the latter are retained for a while
        yield from (warehouse / part).glob("*")


def _delta(spark: "SparkSession", warehouse: Path, dataset: Dataset) -> Iterator[Path]:
    files = spark.read.format("delta").load(str(warehouse / dataset.directory)).inputFiles()
    yield from map(_path, files)


def _iceberg(spark: "SparkSession", warehouse: Path, dataset: Dataset) -> Iterator[Path]:
    table = spark.read.format("iceberg").load(f"{warehouse / _iceberg_folder(dataset)}#all_files")
    yield from (_path(row["file_path"]) for row in table.select("file_path").collect())


def _iceberg_folder(dataset: Dataset) -> str:
    return dataset.directory.replace(".", "/", 1)


def _path(address: str) -> Path:
    return Path(unquote(address.removeprefix("file:").replace("//", "/")))
