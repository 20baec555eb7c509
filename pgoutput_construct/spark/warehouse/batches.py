"""One batch: every table that was touched is brought up to a position of the log, tables side by side."""

import logging
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import SparkSession

from pgoutput_construct.changelog.commits import last_commit
from pgoutput_construct.changelog.identity import identity_of
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.changelog.wholeness import Lack
from pgoutput_construct.errors import ChangeLogError, PgoutputError
from pgoutput_construct.spark.job import OpenLog
from pgoutput_construct.spark.phases import OnMissing
from pgoutput_construct.spark.tables import Table
from pgoutput_construct.spark.warehouse.adoption import adopted, adoption_of, check_same_log, partial_tables
from pgoutput_construct.spark.warehouse.engine import advanced, has_key, net
from pgoutput_construct.spark.warehouse.histories import record_history
from pgoutput_construct.spark.warehouse.loading import Reporter
from pgoutput_construct.spark.warehouse.notes import Dataset, Progress
from pgoutput_construct.spark.warehouse.parquet import ParquetSink
from pgoutput_construct.spark.warehouse.reports import forget_missing, report_missing
from pgoutput_construct.spark.warehouse.retention import (
    Coverage,
    advance_warehouse,
    reader_name,
    register_warehouse,
)
from pgoutput_construct.spark.warehouse.sessions import Sessions
from pgoutput_construct.spark.warehouse.sink import MergingSink, Sink
from pgoutput_construct.spark.warehouse.small import advance_together
from pgoutput_construct.spark.warehouse.staging import Changes, Staged, Wanted, staging
from pgoutput_construct.spark.warehouse.steps import How, Step, abandoned, plan_steps
from pgoutput_construct.spark.warehouse.version import Version
from pgoutput_construct.wire import Lsn, Timestamp

__all__ = ["Batch", "Tables"]

_LOG: Final = logging.getLogger("pgoutput_construct")


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
        reporter: Reporter,
    ) -> None:
        """``chosen`` are tables by name, None for all; ``workers``: how many of them are written at a time."""
        self._reporter = reporter
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

    @property
    def applied(self) -> int:
        """The seq up to which every table has all that ended in the log; -1 for none."""
        return -1 if self._progress.applied is None else self._progress.applied

    @property
    def least_seq(self) -> int:
        """The seq that the next batch must reach: a batch that was interrupted may have brought tables up to it."""
        return self._progress.seq

    def take(self, log: ChangeLog, adopt: bool) -> None:
        """Make a log that of the warehouse, which is registered as its reader from now on.

        Raises ChangeLogError where the tables are of another one, unless the warehouse is to ``adopt`` it; a warning
        then says what becomes of them.
        """
        plan = adoption_of(log, self._progress, self._warehouse) if adopt else None
        if plan is not None:
            _LOG.warning("%s", plan)
            self._note(adopted(log, self._progress))
        check_same_log(log, self._progress, self._warehouse)
        self._note(replace(self._progress, reader=self._progress.reader or reader_name(self._warehouse)))
        register_warehouse(log, self._progress.reader, self.applied)

    def apply(self, log: OpenLog, lacking: Collection[int] | None = None) -> Batch:
        """Bring every table up to where a log ends, as it was opened; a table that is there already is left alone.

        ``lacking`` are, where the log has more than that, the OIDs of the tables that it lacks rows of in the end. A
        table that it lacks rows of only so far, since its copy comes later, is not begun yet.

        Raises ChangeLogError for tables for which that cannot be done, when all others are there.
        """
        began, seq, self._missing = time.monotonic(), log.opened.as_of, {}
        check_same_log(log.log, replace(self._progress, seq=-1), self._warehouse)
        self._progress = replace(self._progress, log=identity_of(log.log))
        mine = [each for each in self._datasets.values() if not self._progress.is_foreign(each.version)]
        early = _early(log, mine, lacking)
        tables = [table for table in self._tables(log, mine) if table.relation_oid not in early]
        steps = self._bring_all(log, tables, mine)
        gone = list(abandoned(tables, self._datasets, self._progress, self._keep_dropped))
        for dataset in gone:
            self._remove(dataset)
        lacks = self._finish(log, tables, mine, is_early=bool(early))
        if lacking is not None:
            lacks = [lack for lack in lacks if lack.relation_oid in lacking]
        done = {step.table: str(step.how) for step in reversed(steps)}
        lsn, moment = _last_commit(log)
        removed = tuple(each.version.table for each in gone)
        spent = time.monotonic() - began
        return Batch(self._progress.batch, seq, lsn, moment, done, removed, tuple(lacks), self._missing, spent)

    def _finish(self, log: OpenLog, tables: Iterable[Table], before: Sequence[Dataset], is_early: bool) -> list[Lack]:
        """Note that tables are where a log ends, also in the log; return what it lacks of them.

        ``before`` are the datasets that there were; ``is_early`` says that the copies of some tables come later, which
        are not retained for anybody else.
        """
        coverage, seq = Coverage(self._progress, log.opened.index.first_seq), log.opened.as_of
        oids = {table.relation_oid for table in tables}
        lacks = [*coverage.reported((lack for lack in log.lacks if lack.relation_oid in oids), before)]
        if seq > self.applied or not self._progress.done:
            lacking = tuple(sorted(lack.relation_oid for lack in lacks if lack.stale_since is None))
            self._note(replace(self._progress, seq=seq, done=True, applied=seq, lacking=lacking))
        if not is_early:
            advance_warehouse(log, self._progress.reader, seq, oids)
        return lacks

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

    def _bring_all(self, log: OpenLog, tables: Sequence[Table], mine: Sequence[Dataset]) -> list[Step]:
        """Bring tables up to where a log ends; return what that took. Raises ChangeLogError for those that cannot."""
        coverage, seq = Coverage(self._progress, log.opened.index.first_seq), log.opened.as_of
        steps = list(plan_steps(tables, self._datasets, coverage, seq))
        if self._history:
            steps += plan_steps(tables, self._datasets, coverage, seq, is_history=True)
        failed: dict[str, PgoutputError] = {**coverage.refused(log, mine), **partial_tables(log, self._progress, steps)}
        steps = [step for step in steps if step.table not in failed]
        if steps:
            self._note(replace(self._progress, batch=self._progress.batch + 1, seq=seq, done=False))
            self._bring(log, steps, failed)
        if failed:
            raise _failure(failed)
        return steps

    def _bring(self, log: OpenLog, steps: Sequence[Step], failed: dict[str, PgoutputError]) -> None:
        """Do steps, and add those tables to ``failed`` for which that cannot be done."""
        if self._interrupted is not None:
            for step in steps:
                self._sink.recover(step.replaced or step.dataset, self._interrupted)
        for group in self._reporter.groups(log, self._progress.batch, steps):
            with staging(log, self._warehouse, (Wanted(step.table, step.after) for step in group)) as staged:
                left = self._left_of_small(log, group, staged)
                self._reporter.did([step for step in group if step not in left])
                for step, done in self._sessions.run(left, lambda spark, step: self._brought(log, spark, step, staged)):
                    if isinstance(done, PgoutputError):
                        failed.setdefault(step.table, done)
                    else:
                        self._datasets[step.dataset.directory] = done
                    self._reporter.did([step])
        self._interrupted = None

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

    def _tables(self, log: OpenLog, mine: Iterable[Dataset]) -> list[Table]:
        """Return the tables that are to be kept; those that have datasets may have other names now."""
        found = [log.table(name) for name in log.tables]
        if self._chosen is None:
            return found
        known = {each.version.oid for each in mine}
        return [table for table in found if table.qualified in self._chosen or table.relation_oid in known]

    def _brought(self, log: OpenLog, spark: SparkSession, step: Step, staged: Staged) -> Dataset:
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


def _early(log: OpenLog, datasets: Iterable[Dataset], lacking: Collection[int] | None) -> set[int]:
    """Return the OIDs of tables that the log lacks rows of as it was opened, but not in the end, and that are new."""
    if lacking is None:
        return set()
    known = {each.version.oid for each in datasets}
    found = {lack.relation_oid for lack in log.lacks if lack.stale_since is None}
    return found.difference(known, lacking)


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
