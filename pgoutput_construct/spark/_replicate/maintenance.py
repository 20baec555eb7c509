"""Maintenance of the tables of a warehouse: small files are merged, expired snapshots removed.

A batch adds small files, marks of deleted rows and snapshots; each table stays right, and becomes slower to read and
larger with every one. Maintenance does what the formats' own procedures do: it rewrites small files, expires snapshots,
and removes files that no retained snapshot has; for Parquet, it writes the base of a table again. It changes no row,
and no version: a dataset's ``Version`` is that of the batch before (``Sink.maintain``, ``Sink.compacted``).

It runs between batches of the process that has the warehouse's lock, a dataset at a time, so that it never meets a
batch; it may be killed at any point, since each procedure commits as a batch does, and removes files afterwards. The
lock of an object store excludes nobody, but says who has it: so that is asked again before a note is written, and
before files are removed.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import SparkSession

from pgoutput_construct.changelog._store.store import Address
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.lake._notes import Dataset, Warehouse
from pgoutput_construct.spark._execution import reason_of
from pgoutput_construct.spark._own_session import active_session, own_session
from pgoutput_construct.spark._table_formats.sink import Retention, Sink
from pgoutput_construct.spark._table_formats.sinks import existing_sink
from pgoutput_construct.spark.formats import check_format
from pgoutput_construct.stream.identifiers import normal_name

__all__ = ["MAINTAIN_EVERY", "MOST_BETWEEN", "Maintenance", "MaintenanceReport", "TableMaintenance", "maintain"]

MAINTAIN_EVERY: Final = 50
"""After how many commits of a dataset it is maintained again."""
_BASES: Final = "bases written"
"""What a report says of datasets that were written again."""
MOST_BETWEEN: Final = 1 << 28
"""The most bytes of a dataset that is written again between batches, which wait for that some seconds."""
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


@dataclass
class TableMaintenance:
    """Maintains the datasets of a sink after a number of commits, one per call of ``maintain_one``."""

    step: "Maintenance"
    """What is done for each."""
    report: Callable[[MaintenanceReport], None]
    """Called with what was done for a dataset."""
    every: int
    """The number of commits of a dataset after which it is maintained again."""
    _commits: dict[str, int] = field(default_factory=dict)
    _latest: dict[str, str] = field(default_factory=dict)
    """The dataset that was written last at each location,"""
    _last: dict[str, float] = field(default_factory=dict)
    """and when that was, by a clock that only increases."""

    def count(self, directories: Collection[str], commits: int = 1) -> None:
        """Count commits of each of some datasets; 0 of those that are there in the beginning."""
        for directory in directories:
            location = self.step.sink.location_of(directory)
            self._commits[location], self._latest[location] = self._commits.get(location, 0) + commits, directory
            self._last[location] = time.monotonic()

    def maintain_one(self) -> bool:
        """Maintain the dataset with the most commits since it was maintained; return whether one was due.

        One is due after a number of commits. It is, too, without any for so long that all it has replaced has expired:
        nothing else would remove that.
        """
        sink = self.step.sink
        idle = time.monotonic() - sink.seconds_until_expired(self.step.retention)
        due = [each for each, commits in self._commits.items() if commits >= self.every or self._last[each] <= idle]
        if not due:
            return False
        location = max(due, key=lambda each: self._commits[each])
        if self._last[location] <= idle:
            del self._commits[location]
        else:  # what was replaced last is still retained
            self._commits[location] = 0
        try:
            dataset = sink.warehouse.dataset(self._latest[location])
        except PgoutputError:
            return True  # its note is damaged, which the next batch reports
        if dataset is not None:
            self.report(report := self.step.run(dataset))
            if report.done.get(_BASES):  # what that replaced is to be removed, too
                self._commits[location], self._last[location] = 0, time.monotonic()
        return True


def maintain(
    spark: SparkSession,
    warehouse: Address,
    tables: Collection[str] | None = None,
    retention: Retention = DEFAULT_RETENTION,
    seconds: float | None = None,
) -> Iterator[MaintenanceReport]:
    """Maintain the tables of a warehouse, and their histories, and yield what was done for each.

    No batch may run meanwhile: the warehouse is locked as ``replicate`` locks it. After one that was interrupted, or
    that failed in a table, tables that schemas share are not maintained: their commits are still needed.

    Args:
        spark: The session; for Delta Lake and Iceberg as ``spark_session(into=...)`` makes it.
        warehouse: The address of the warehouse.
        tables: Their names (``schema.table``, as SQL writes them), None for all.
        retention: What is retained of former snapshots.
        seconds: After how many seconds of maintenance no other table is begun; None for no limit.

    Raises:
        PgoutputError: There is no warehouse, or no such table in it; another process writes into it; the session lacks
            jars; or the last batch was interrupted while it moved tables.
    """
    opened, own = Warehouse(warehouse), own_session(spark, "maintain")
    progress = opened.existing_progress()
    check_format(own, progress.format)
    with opened.store.lock("replicate") as lock:
        progress = opened.existing_progress()
        if progress.moving:  # a catalog may have a table under another name than its note
            raise PgoutputError(
                f"{opened.store}: its last batch was interrupted while it moved renamed tables: run pgoutput replicate "
                "first"
            )
        sink = existing_sink(opened, progress)
        sink.prepare(own)
        # Of datasets that share a location, one is enough.
        step, began = Maintenance(own, sink, retention, lock.check), time.monotonic()
        for chosen in {sink.location_of(each.directory): each for each in _chosen(opened, tables)}.values():
            lock.check()
            if (dataset := opened.dataset(chosen.directory)) is not None:
                with active_session(own):
                    report = step.run(dataset)
                yield report
            if seconds is not None and time.monotonic() - began > seconds:
                return


def _chosen(warehouse: Warehouse, tables: Collection[str] | None) -> list[Dataset]:
    found = list(warehouse.datasets().values())
    if tables is None:
        return found
    names = set(map(normal_name, tables))
    if unknown := sorted(names - {each.version.table for each in found}):
        warehouse.find(unknown[0])  # raises, with the tables that there are
    return [each for each in found if each.version.table in names]


@dataclass(frozen=True)
class Maintenance:
    """What is done for a dataset."""

    spark: SparkSession
    sink: Sink
    retention: Retention
    check: Callable[[], None]
    """Raises PgoutputError if another process has the lock of the warehouse now."""
    most: int | None = None
    """The most bytes of a dataset that is written again, None for no limit."""
    record: Callable[[Dataset], None] = lambda dataset: None
    """Called with a dataset whose note has changed."""

    def run(self, dataset: Dataset) -> MaintenanceReport:
        """Maintain a dataset; what fails leaves the table right, and batches continue."""
        began, table, is_history = time.monotonic(), dataset.version.table, dataset.is_history
        done, errors = dict[str, int](), list[str]()
        try:
            if self._compact(dataset):
                done[_BASES] = 1
        except Exception as problem:  # of any class
            errors.append(reason_of(problem))
        try:
            self.check()
            # As its note has it now: another process may have written it, where the lock does not exclude one.
            present = self.sink.warehouse.dataset(dataset.directory)
            for what, number in self.sink.maintain(self.spark, present, self.retention) if present is not None else ():
                done[what] = done.get(what, 0) + number
        except Exception as problem:
            errors.append(reason_of(problem))
        return MaintenanceReport(table, is_history, done, time.monotonic() - began, "; ".join(errors))

    def _compact(self, dataset: Dataset) -> bool:
        """Write a dataset again, and its note, where that makes it cheaper to read; return whether it did."""
        found, warehouse = self.sink.compacted(self.spark, dataset, self.retention, self.most), self.sink.warehouse
        if found is None:
            return False
        self.check()
        if warehouse.dataset(dataset.directory) != dataset:
            raise PgoutputError(f"{dataset.version.table} was written by another process meanwhile: run only one")
        warehouse.write_note(found)
        self.record(found)
        return True
