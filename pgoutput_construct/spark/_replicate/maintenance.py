"""Maintenance of the tables of a warehouse: small files are merged, expired snapshots removed.

A batch adds small files, marks of deleted rows and snapshots; each table stays right, and becomes slower to read and
larger with every one. Maintenance does what the formats' own procedures do: it rewrites small files, expires snapshots,
and removes files that no retained snapshot has; for Parquet, it writes the base of a table again. It changes no row,
and no version: a dataset's ``Version`` is that of the batch before (``Sink.maintain``, ``Sink.compacted``).

It runs between batches of the process that has the warehouse's lock, a dataset at a time, so that it never meets a
batch; it may be killed at any point, since each procedure commits as a batch does, and removes files afterwards.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import SparkSession

from pgoutput_construct.changelog._store.store import Address
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.spark._execution import reason_of
from pgoutput_construct.spark._replicate.sink import Retention, Sink
from pgoutput_construct.spark._replicate.sinks import existing_sink
from pgoutput_construct.spark._replicate.warehouse_notes import Dataset, Warehouse
from pgoutput_construct.spark.formats import check_format
from pgoutput_construct.stream.identifiers import normal_name

__all__ = ["MAINTAIN_EVERY", "MaintenanceReport", "TableMaintenance", "maintain"]

MAINTAIN_EVERY: Final = 50
"""After how many commits of a dataset it is maintained again."""
DEFAULT_RETENTION: Final = Retention()


@dataclass(frozen=True)
class MaintenanceReport:
    """What maintenance has done for one dataset."""

    table: str
    """The table, as SQL writes its name."""
    is_history: bool
    """Whether it was its history."""
    done: Mapping[str, int] = field(default_factory=dict)
    """How many files, snapshots or bytes, by what was done with them, in the words of the format's procedures."""
    seconds: float = 0.0
    """The duration."""
    error: str = ""
    """Why it failed; the dataset is as it was, or as a completed procedure left it."""


class TableMaintenance:
    """Maintains the datasets of a sink after a number of commits, one per call of ``maintain_one``."""

    def __init__(
        self,
        spark: SparkSession,
        sink: Sink,
        retention: Retention,
        report: Callable[[MaintenanceReport], None] = lambda report: None,
        every: int = MAINTAIN_EVERY,
        record: Callable[[Dataset], None] = lambda dataset: None,
    ) -> None:
        """Begin with no commits.

        Args:
            spark: The session.
            sink: The format of the datasets.
            retention: What is retained of former snapshots.
            report: Called with what was done for a dataset.
            every: The number of commits of a dataset after which it is maintained again.
            record: Called with a dataset whose note has changed.
        """
        self._spark = spark
        self._sink = sink
        self._retention = retention
        self._report = report
        self._every = every
        self._record = record
        self._commits: dict[str, int] = {}
        self._latest: dict[str, str] = {}
        """The dataset that was written last in each place."""

    def count(self, directories: Collection[str]) -> None:
        """Count a commit of each of some datasets."""
        for directory in directories:
            place = self._sink.place_of(directory)
            self._commits[place], self._latest[place] = self._commits.get(place, 0) + 1, directory

    def maintain_one(self) -> bool:
        """Maintain the dataset with the most commits since it was maintained; return whether one was due."""
        due = [place for place, commits in self._commits.items() if commits >= self._every]
        if not due:
            return False
        place = max(due, key=lambda each: self._commits[each])
        del self._commits[place]
        try:
            dataset = self._sink.warehouse.dataset(self._latest.pop(place))
        except PgoutputError:
            return True  # its note is damaged, which the next batch reports
        if dataset is not None:
            self._report(_maintained(self._spark, self._sink, dataset, self._retention, self._record))
        return True


def maintain(
    spark: SparkSession,
    warehouse: Address,
    tables: Collection[str] | None = None,
    retention: Retention = DEFAULT_RETENTION,
    seconds: float | None = None,
) -> Iterator[MaintenanceReport]:
    """Maintain the tables of a warehouse, and their histories, and yield what was done for each.

    No batch may run meanwhile: the warehouse is locked as ``replicate`` locks it. Tables that an interrupted batch left
    are maintained after the next complete one.

    Args:
        spark: The session; for Delta Lake and Iceberg as ``spark_session(into=...)`` makes it.
        warehouse: The address of the warehouse.
        tables: Their names (``schema.table``, as SQL writes them), None for all.
        retention: What is retained of former snapshots.
        seconds: After how many seconds no other table is begun; None for no limit.

    Raises:
        PgoutputError: There is no warehouse, or no such table in it; another process writes into it; the session lacks
            jars; or the last batch was interrupted.
    """
    place, began = Warehouse(warehouse), time.monotonic()
    progress = place.existing_progress()
    check_format(spark, progress.format)
    with place.store.lock("replicate") as lock:
        progress = place.existing_progress()
        if not progress.done:
            raise PgoutputError(f"{place.store}: its last batch was interrupted: run pgoutput replicate first")
        sink = existing_sink(place, progress)
        sink.prepare(spark)
        # Of datasets that share a place, one is enough.
        for dataset in {sink.place_of(each.directory): each for each in _chosen(place, tables)}.values():
            if seconds is not None and time.monotonic() - began > seconds:
                return
            lock.check()
            yield _maintained(spark, sink, dataset, retention)


def _chosen(place: Warehouse, tables: Collection[str] | None) -> list[Dataset]:
    found = list(place.datasets().values())
    if tables is None:
        return found
    names = set(map(normal_name, tables))
    if unknown := sorted(names - {each.version.table for each in found}):
        place.find(unknown[0])  # raises, with the tables that there are
    return [each for each in found if each.version.table in names]


def _maintained(
    spark: SparkSession,
    sink: Sink,
    dataset: Dataset,
    retention: Retention,
    record: Callable[[Dataset], None] = lambda dataset: None,
) -> MaintenanceReport:
    began, table = time.monotonic(), dataset.version.table
    done, error = dict[str, int](), ""
    try:
        if (compacted := sink.compacted(spark, dataset)) is not None:
            sink.warehouse.write_note(compacted)
            record(compacted)
            dataset, done["bases written"] = compacted, 1
        for what, number in sink.maintain(spark, dataset, retention):
            done[what] = done.get(what, 0) + number
    except Exception as problem:  # of any class: the table is right, and batches continue
        error = reason_of(problem)
    return MaintenanceReport(table, dataset.is_history, done, time.monotonic() - began, error)
