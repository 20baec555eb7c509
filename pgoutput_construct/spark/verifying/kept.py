"""What a warehouse has of a table, at one moment."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from pgoutput_construct.changelog._store.store import Address
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.spark.formats import check_format
from pgoutput_construct.spark.warehouse.naming import Naming
from pgoutput_construct.spark.warehouse.notes import Dataset, Progress, Warehouse, damaged_of
from pgoutput_construct.spark.warehouse.sink import Sink
from pgoutput_construct.spark.warehouse.sinks import open_sink
from pgoutput_construct.stream.identifiers import normal_name

__all__ = ["Kept", "chosen_tables", "format_of", "read_kept"]


@dataclass(frozen=True)
class Kept:
    """A table as a warehouse has it."""

    dataset: Dataset
    """With the version that the rows are."""
    rows: DataFrame
    """Under the names of replays (``metadata.py``). They are persisted: whatever is written meanwhile, they stay."""


def format_of(warehouse: Address) -> str:
    """Return the format of the tables of a warehouse; raises PgoutputError where there is none."""
    return _progress(warehouse).format


def chosen_tables(warehouse: Address, tables: Collection[str] | None = None) -> list[str]:
    """Return tables of a warehouse by their names, sorted, None for all; raises PgoutputError for one that it lacks.

    Among them are those whose notes are damaged: ``read_kept`` raises the error of each.
    """
    format_of(warehouse)
    place = Warehouse(warehouse)
    datasets, damaged = place.readable_datasets()
    known = {each.version.table for each in datasets.values() if not each.is_history}
    known |= {each.table for each in map(damaged_of, damaged) if not each.is_history}
    if not known:
        raise PgoutputError(f"{place.store}: the warehouse has no table yet: run pgoutput replicate first")
    chosen = known if tables is None else {each if each in known else normal_name(each) for each in tables}
    if unknown := chosen - known:
        raise PgoutputError(f"{place.store}: no table {min(unknown)}: it has {', '.join(sorted(known))}")
    return sorted(chosen)


def read_kept(spark: SparkSession, address: Address, name: str) -> Kept:
    """Read a table of a warehouse as it is now; raises PgoutputError where it is gone, or its note is damaged."""
    warehouse, progress = Warehouse(address), _progress(address)
    check_format(spark, progress.format)
    sink = open_sink(progress.format, warehouse)
    sink.naming = Naming(progress.prefix)
    sink.prepare(spark)
    while True:
        dataset = warehouse.find(name)
        known = _truly(spark, sink, dataset)
        rows = sink.replayed(spark, known).persist()
        rows.count()
        if _truly(spark, sink, dataset) == known:
            return Kept(known, rows)
        rows.unpersist()


def _progress(warehouse: Address) -> Progress:
    place = Warehouse(warehouse)
    if (progress := place.progress()) is None:
        raise PgoutputError(f"{place.store}: no warehouse here (no table was replicated into it)")
    return progress


def _truly(spark: SparkSession, sink: Sink, dataset: Dataset) -> Dataset:
    """Return a dataset with the version that its data say that they are."""
    version = sink.version(spark, dataset)
    return dataset if version is None else replace(dataset, version=version)
