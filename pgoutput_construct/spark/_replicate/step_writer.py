"""The steps of a batch, as they are written: a group of tables at a time, several at the same time.

Of the ways to bring a table up to date (``write_ways``), the cheapest that can be is taken: rows that are new are
written by the tasks that decode them (``new_rows``), small tables in Arrow (``arrow_writes``), others from staged
changes, each in a session of its own (``table_write``, ``soft_deletes``, ``table_history``).
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from pyspark.sql import SparkSession

from pgoutput_construct.lake._notes import Dataset
from pgoutput_construct.spark._deferred_session import has_no_spark, needed_by
from pgoutput_construct.spark._execution import reason_of
from pgoutput_construct.spark._open_log import OpenLog
from pgoutput_construct.spark._own_session import SparkSessions
from pgoutput_construct.spark._replicate.arrow_writes import ProducedFiles, produce
from pgoutput_construct.spark._replicate.batch_plan import Reporter, TableStep, UpdateMode
from pgoutput_construct.spark._replicate.new_rows import (
    NewRows,
    StagingNeededError,
    new_rows_summary,
    write_new_rows,
)
from pgoutput_construct.spark._replicate.soft_deletes import SoftWrite
from pgoutput_construct.spark._replicate.staging import (
    StagedChanges,
    StagedRows,
    TableMasks,
    staging,
)
from pgoutput_construct.spark._replicate.table_history import record_history
from pgoutput_construct.spark._replicate.table_write import TableWrite
from pgoutput_construct.spark._replicate.warehouse_reader import forget_missing, report_missing
from pgoutput_construct.spark._replicate.write_ways import SparkNeededError, appends_new_rows, least_new_rows
from pgoutput_construct.spark._state.change_survey import ChangeSummary
from pgoutput_construct.spark._state.demands import OnMissing
from pgoutput_construct.spark._table_formats.dataset_columns import is_soft
from pgoutput_construct.spark._table_formats.sink import Sink, most_rows
from pgoutput_construct.spark._table_formats.table_description import describe, without_other_key

_LOG: Final = logging.getLogger("pgoutput_construct")


@dataclass(frozen=True)
class StepWriter:
    """Writes the tables of a batch, and their notes."""

    log: OpenLog
    """The log, opened as of the end of the batch, under the names of replays."""
    sink: Sink
    sessions: SparkSessions
    """The sessions of tables that are written at the same time."""
    masks: TableMasks
    on_missing: OnMissing
    """As in ``OpenLog.state``."""
    reporter: Reporter
    """Knows how many changes tables have."""
    missing: dict[str, int] = field(default_factory=dict)
    """How many changes of rows that do not exist were reported, by table."""
    reasons: dict[str, str] = field(default_factory=dict)
    """Why tables were written as a whole, by name."""
    seconds: dict[str, float] = field(default_factory=lambda: {"stage": 0.0, "write": 0.0})
    """The durations of steps."""

    def write(self, group: Sequence[TableStep]) -> Iterator[tuple[TableStep, Dataset | Exception]]:
        """Bring the tables of a group up to date; yield each step with the dataset, whose note is written, or an error.

        A table that seemed to have new rows alone, and has other changes, is staged in the end.
        """
        new = self._with_new_rows(group)
        refused = list[TableStep]()
        for step, done in self._write_group(group, new):
            if isinstance(done, StagingNeededError):
                refused.append(step)
            else:
                yield step, done
        if refused:
            yield from self._write_group(refused, {})

    def _write_group(
        self, group: Sequence[TableStep], new: Mapping[str, ChangeSummary]
    ) -> Iterator[tuple[TableStep, Dataset | Exception]]:
        """Write tables, those of ``new`` rows without staging their changes."""
        others = [step for step in group if step.dataset.directory not in new]
        began = time.monotonic()
        with staging(self.log, self.sink.warehouse, (step.request for step in others), self.masks) as staged:
            staged_at = time.monotonic()
            self.seconds["stage"] += staged_at - began

            small = self._produced(others, staged)

            def apply(spark: SparkSession, step: TableStep) -> Dataset:
                summary, request = new.get(step.dataset.directory), step.request
                files = small.get(step.dataset.directory)
                if isinstance(files, ProducedFiles):
                    return self._commit(spark, step, files, staged.files[request].summary.changes)
                if summary is None:
                    return self._write_step(spark, step, lambda: staged.changes(spark, request), files)
                rows = partial(NewRows.from_log, self.log, self.sink.warehouse.store, request, summary, self.masks)
                return self._write_step(spark, step, rows)

            prepared = [step for step in others if isinstance(small.get(step.dataset.directory), ProducedFiles)]
            large = [step for step in group if not isinstance(small.get(step.dataset.directory), ProducedFiles)]
            yield from self.sessions.run_grouped(prepared, apply, large)
            self.seconds["write"] += time.monotonic() - staged_at

    def _with_new_rows(self, group: Sequence[TableStep]) -> dict[str, ChangeSummary]:
        """Return the summaries of changes that are new rows to append, by directory: these are not staged.

        Of a table with a history changes are needed twice.
        """
        found = dict[str, ChangeSummary]()
        requests = Counter(step.request for step in group)
        least = least_new_rows(self.sink, len(group))
        for step in group if self.on_missing == "error" else ():
            count = self.reporter.rows_of([step])
            is_alone = requests[step.request] == 1 and count >= least
            if is_alone and self.reporter.has_inserts_alone(step):
                summary = new_rows_summary(count)
                if appends_new_rows(self.log, self.sink, step, summary):
                    found[step.dataset.directory] = summary
        return found

    def _produced(self, steps: Sequence[TableStep], staged: StagedChanges) -> dict[str, ProducedFiles | Exception]:
        """Write the files of small tables, where the format has these written in Arrow; return them by directory.

        For others it is the reason, or the error.
        """
        if not self.sink.overwrites_few:
            reason = SparkNeededError(self.sink.needs_spark if self.sink.is_replaced else "--write-mode is given")
            return {step.dataset.directory: reason for step in steps}
        try:
            found = produce(self.log, self.sink, self.sessions, steps, staged, self.on_missing)
        except Exception as error:  # one by one they show whose it is
            return {step.dataset.directory: error for step in steps}
        return {steps[number].dataset.directory: files for number, files in found.items()}

    def _commit(self, spark: SparkSession, step: TableStep, files: ProducedFiles, changes: int) -> Dataset:
        """Make files part of a small table, or its history, and write its note; return its dataset."""
        rows = files.rows
        if rows is None and step.before is not None:
            rows = most_rows(step.before, changes)
        with needed_by(step.what):
            self._forget_missing(step)
            done = self.sink.with_most_rows(files.commit(), rows)
            if not done.is_history:
                done = describe(spark, self.sink, done, self.log.table(step.table))
        self.sink.warehouse.write_note(done)
        return done

    def _forget_missing(self, step: TableStep) -> None:
        """Remove the reports of a table that is written from scratch: its rows are no longer those that they are of."""
        if step.mode is UpdateMode.WRITTEN and not step.dataset.is_history:
            forget_missing(self.sink.warehouse, step.dataset)

    def _write_step(
        self,
        spark: SparkSession,
        step: TableStep,
        opened: Callable[[], StagedRows | NewRows],
        refusal: Exception | None = None,
    ) -> Dataset:
        """Write a table by Spark, and its note; return its dataset. ``refusal`` is why that is needed, if it is known.

        An error is no reason to start Spark: where it cannot be started, that is the error of the table.
        """
        what = step.what
        if isinstance(refusal, SparkNeededError):
            what = f"{what} ({refusal})"
        elif refusal is not None:
            _LOG.debug("%s could not be written without Spark: %s", what, reason_of(refusal))
            if has_no_spark(spark):
                raise refusal
        with needed_by(what), self.sink.exclusive(step.dataset):
            dataset = self._written(spark, step, opened())
            self.sink.warehouse.write_note(dataset)
        return dataset

    def _written(self, spark: SparkSession, step: TableStep, changes: StagedRows | NewRows) -> Dataset:
        """Write a table, or its history, as it is now; return its dataset."""
        before, sink, table = step.continued, self.sink, self.log.table(step.table)
        self._forget_missing(step)
        if step.dataset.is_history and isinstance(changes, StagedRows):
            return record_history(self.log, spark, sink, step, changes)
        if before is not None:
            step = step.continuing(without_other_key(spark, sink, before, table))
        if isinstance(changes, NewRows):
            return describe(spark, sink, write_new_rows(self.log, spark, sink, step, changes), table)
        if self.on_missing == "report":
            there = None if before is None else sink.read_for_replay(spark, before)
            if found := report_missing(sink.warehouse, step, self.log.missing_rows(step.table, changes.rows, there)):
                self.missing[step.table] = found
        kind = SoftWrite if is_soft(step.dataset) else TableWrite
        written = kind(self.log, spark, sink, step, changes, self.on_missing).run()
        if written.reason:
            self.reasons[step.table] = written.reason
        return describe(spark, sink, written.dataset, table)
