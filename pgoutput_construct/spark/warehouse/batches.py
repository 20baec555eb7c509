"""One batch: every table that was touched is brought up to a position of the log, tables side by side."""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from pgoutput_construct.changelog.commits import last_commit
from pgoutput_construct.changelog.wholeness import Lack, UnpublishedColumns
from pgoutput_construct.errors import ChangeLogError, PgoutputError
from pgoutput_construct.spark.job import OpenLog
from pgoutput_construct.spark.phases import OnMissing
from pgoutput_construct.spark.tables import Table
from pgoutput_construct.spark.warehouse.engine import advanced, has_key, net
from pgoutput_construct.spark.warehouse.histories import record_history
from pgoutput_construct.spark.warehouse.notes import Dataset, Progress
from pgoutput_construct.spark.warehouse.parquet import ParquetSink
from pgoutput_construct.spark.warehouse.reports import forget_missing, report_missing
from pgoutput_construct.spark.warehouse.sessions import Sessions
from pgoutput_construct.spark.warehouse.sink import MergingSink, Sink
from pgoutput_construct.spark.warehouse.small import advance_together
from pgoutput_construct.spark.warehouse.staging import Changes, Staged, Wanted, staging
from pgoutput_construct.spark.warehouse.steps import How, Step, abandoned, plan_steps
from pgoutput_construct.spark.warehouse.version import Version
from pgoutput_construct.wire import Lsn, Timestamp

__all__ = ["Batch", "Tables"]


@dataclass(frozen=True)
class Batch:
    """What a batch has done."""

    number: int
    """Its number: one more than that of the one before."""
    seq: int
    """All that ended in the log up to here is in the tables now."""
    commit_lsn: Lsn | None
    """The commit of the last transaction in them, None before the first."""
    commit_time: Timestamp | None
    """When that was committed, by the server's clock."""
    tables: Mapping[str, str]
    """The tables that it brought up to date, and how: ``changed`` or ``written``."""
    removed: tuple[str, ...]
    """The tables that were renamed, or are no more: their datasets were removed."""
    lacks: tuple[Lack, ...]
    """Why tables are not, or no longer, as they are at their source."""
    unpublished: tuple[UnpublishedColumns, ...]
    """The generated columns that tables have at their source, and not here, since they are not published."""
    missing: Mapping[str, int]
    """How many changes were reported of rows that are not there, by table; see ``read_missing``."""
    seconds: float
    """How long it took."""


class Tables:
    """The tables of a warehouse, batch by batch."""

    def __init__(
        self,
        spark: SparkSession,
        sink: Sink,
        chosen: Collection[str] | None,
        keep_dropped: bool,
        history: bool,
        workers: int,
        on_missing: OnMissing,
    ) -> None:
        """``chosen`` are tables by name, None for all; ``workers``: how many of them are written at a time."""
        self._on_missing = on_missing
        self._history = history
        self._spark = spark
        self._sink = sink
        self._warehouse = sink.warehouse
        self._chosen = chosen
        self._keep_dropped = keep_dropped
        self._sessions = Sessions(spark, workers, sink.prepare)
        self._progress = self._warehouse.progress() or Progress(sink.format)
        self._interrupted = None if self._progress.done else self._progress.batch
        self._datasets = self._warehouse.datasets()
        self._missing: dict[str, int] = {}
        if self._interrupted is not None:
            self._datasets = self._as_the_data_say(self._datasets.values())

    def apply(self, log: OpenLog) -> Batch:
        """Bring every table up to where a log ends, as it was opened; a table that is there already is left alone.

        Raises ChangeLogError for tables for which that cannot be done, when all others are there.
        """
        began, tables, number = time.monotonic(), self._tables(log), self._progress.batch + 1
        seq, self._missing = log.opened.as_of, {}
        steps = list(plan_steps(tables, self._datasets, number, seq))
        if self._history:
            steps += plan_steps(tables, self._datasets, number, seq, is_history=True)
        if steps:
            self._note(Progress(self._sink.format, number, seq, done=False))
            self._bring_all(log, steps)
        gone = list(abandoned(tables, self._datasets, self._keep_dropped))
        for dataset in gone:
            self._remove(dataset)
        if steps:
            self._note(replace(self._progress, done=True))
        done = {step.table: str(step.how) for step in reversed(steps)}
        lsn, moment = _last_commit(log)
        removed = tuple(each.version.table for each in gone)
        oids = {table.relation_oid for table in tables}
        lacks = tuple(lack for lack in log.lacks if lack.relation_oid in oids)
        unpublished = tuple(each for each in log.unpublished_columns if each.relation_oid in oids)
        spent = time.monotonic() - began
        return Batch(self._progress.batch, seq, lsn, moment, done, removed, lacks, unpublished, self._missing, spent)

    def _note(self, progress: Progress) -> None:
        self._warehouse.begin(progress)
        self._progress = progress

    def _as_the_data_say(self, datasets: Iterable[Dataset]) -> dict[str, Dataset]:
        """Return datasets as they are after a batch that was interrupted; what says nothing is written anew."""
        found = {}
        for dataset, version in self._sessions.run(list(datasets), self._sink.version):
            if isinstance(version, PgoutputError):
                raise version
            if version is not None:
                found[dataset.directory] = replace(dataset, version=version)
        return found

    def _bring_all(self, log: OpenLog, steps: Sequence[Step]) -> None:
        if self._interrupted is not None:
            for step in steps:
                self._sink.recover(step.replaced or step.dataset, self._interrupted)
        failed: dict[str, PgoutputError] = {}
        with staging(log, self._warehouse, (Wanted(step.table, step.after) for step in steps)) as staged:
            left = self._left_of_small(log, steps, staged)
            for step, done in self._sessions.run(left, lambda spark, step: self._bring(log, spark, step, staged)):
                if isinstance(done, PgoutputError):
                    failed.setdefault(step.table, done)
                else:
                    self._datasets[step.dataset.directory] = done
        self._interrupted = None
        if failed:
            raise _failure(failed)

    def _left_of_small(self, log: OpenLog, steps: Sequence[Step], staged: Staged) -> list[Step]:
        """Bring small tables up to date where the format can do that together; return the steps that are left."""
        done: Mapping[int, Dataset] = {}
        if isinstance(self._sink, ParquetSink):
            done = advance_together(log, self._spark, self._sink, steps, staged, self._on_missing)
        for place, dataset in done.items():
            if steps[place].how is How.WRITTEN:
                forget_missing(self._warehouse, dataset)
        self._warehouse.note_all(done.values())
        self._datasets |= {each.directory: each for each in done.values()}
        return [step for place, step in enumerate(steps) if place not in done]

    def _tables(self, log: OpenLog) -> list[Table]:
        found = [log.table(name) for name in log.tables]
        if self._chosen is None:
            return found
        known = {each.version.oid for each in self._datasets.values()}
        return [table for table in found if table.qualified in self._chosen or table.relation_oid in known]

    def _bring(self, log: OpenLog, spark: SparkSession, step: Step, staged: Staged) -> Dataset:
        dataset = self._written(log, spark, step, staged.changes(spark, Wanted(step.table, step.after)))
        self._warehouse.note(dataset)
        return dataset

    def _written(self, log: OpenLog, spark: SparkSession, step: Step, changes: Changes) -> Dataset:
        """Write a table as it is now, or its history; return its dataset."""
        if step.dataset.is_history:
            return record_history(log, spark, self._sink, step, changes)
        before = None if step.how is How.WRITTEN else step.before
        there = None if before is None else self._sink.read(spark, before)
        if before is None:
            forget_missing(self._warehouse, step.dataset)
        if self._on_missing == "report":
            found = report_missing(self._warehouse, step, log.missing_rows(step.table, changes.rows, there))
            self._missing |= {step.table: found} if found else {}
        if there is None or before is None:
            rows = advanced(log, step.table, None, changes, self._on_missing)
            return self._sink.replace(spark, step.dataset, rows, step.replaced)
        if isinstance(self._sink, MergingSink) and _can_merge(log, step, before.version, self._sink.alters):
            merged = net(log, step.table, changes, self._on_missing)
            if merged is not None:
                return self._sink.merge(spark, step.dataset, merged)
        rows = advanced(log, step.table, there, changes, self._on_missing, self._sink.is_small(before))
        return self._sink.replace(spark, step.dataset, rows, step.replaced)

    def _remove(self, dataset: Dataset) -> None:
        self._warehouse.forget(dataset.directory)
        forget_missing(self._warehouse, dataset)
        self._sink.remove(self._spark, dataset)
        del self._datasets[dataset.directory]


def _last_commit(log: OpenLog) -> tuple[Lsn | None, Timestamp | None]:
    """Return position and time of the last transaction that was committed in a log."""
    last = last_commit(log.opened.index, log.opened.index.last_seq)
    return (None, None) if last is None else (Lsn(last["commit_lsn"]), Timestamp(last["commit_time"]))


def _can_merge(log: OpenLog, step: Step, before: Version, alters: bool) -> bool:
    """Tell whether changes can be merged into the rows of a version, as far as one knows without reading them."""
    has_same = alters or before.shape.current == step.dataset.version.shape.current
    return has_same and not step.has_defaults and has_key(log.table(step.table), before)


def _failure(failed: Mapping[str, PgoutputError]) -> ChangeLogError:
    """Return one error for those of all tables that failed."""
    (name, first), *others = sorted(failed.items())
    more = f" (and {len(others)} more: {', '.join(other for other, _ in others)})" if others else ""
    text = str(first) if name in str(first) else f"{name}: {first}"
    return ChangeLogError(f"{text}{more}; all other tables are up to date")
