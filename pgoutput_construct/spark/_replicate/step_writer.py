"""The steps of a batch, as they are written: a group of tables at a time, several at the same time.

Of the ways to bring a table up to date, the cheapest that can be is taken: rows that are new are written by the tasks
that decode them (``new_rows``), small tables of Parquet by one job for all (``small_tables``), others from staged
changes, each in a session of its own (``table_write``, ``table_history``).
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from pyspark.sql import SparkSession

from pgoutput_construct.lake._notes import Dataset
from pgoutput_construct.spark._deferred_session import needed_by
from pgoutput_construct.spark._open_log import OpenLog
from pgoutput_construct.spark._own_session import SparkSessions
from pgoutput_construct.spark._replicate.batch_plan import Reporter, TableStep, UpdateMode
from pgoutput_construct.spark._replicate.new_rows import (
    NewRows,
    StagingNeededError,
    least_new_rows,
    new_rows_summary,
)
from pgoutput_construct.spark._replicate.parquet_sink import ParquetSink
from pgoutput_construct.spark._replicate.sink import Sink
from pgoutput_construct.spark._replicate.small_tables import advance_together
from pgoutput_construct.spark._replicate.staging import (
    ChangeRequest,
    StagedChanges,
    StagedRows,
    TableMasks,
    staging,
)
from pgoutput_construct.spark._replicate.table_description import describe
from pgoutput_construct.spark._replicate.table_history import record_history
from pgoutput_construct.spark._replicate.table_write import appends_new_rows, write_new_rows, write_table
from pgoutput_construct.spark._replicate.warehouse_reader import forget_missing, report_missing
from pgoutput_construct.spark._state.change_survey import ChangeSummary
from pgoutput_construct.spark._state.demands import OnMissing

_NOTES_AT_ONCE: Final = 8


class StepWriter:
    """Writes the tables of a batch, and their notes."""

    def __init__(
        self,
        log: OpenLog,
        spark: SparkSession,
        sink: Sink,
        sessions: SparkSessions,
        masks: TableMasks,
        on_missing: OnMissing,
        reporter: Reporter,
    ) -> None:
        """Begin with nothing written.

        Args:
            log: The log, opened as of the end of the batch, under the names of replays.
            spark: The session.
            sink: The format of the tables.
            sessions: The sessions of tables that are written at the same time.
            masks: The masks of columns.
            on_missing: As in ``OpenLog.state``.
            reporter: Knows how many changes tables have.
        """
        self._log = log
        self._spark = spark
        self._sink = sink
        self._warehouse = sink.warehouse
        self._sessions = sessions
        self._masks = masks
        self._on_missing = on_missing
        self._reporter = reporter
        self.missing: dict[str, int] = {}
        """How many changes of rows that do not exist were reported, by table."""
        self.reasons: dict[str, str] = {}
        """Why tables were written as a whole, by name."""
        self.seconds: dict[str, float] = {"stage": 0.0, "write": 0.0}
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
        with staging(self._log, self._warehouse, map(_request, others), self._masks) as staged:
            staged_at = time.monotonic()
            self.seconds["stage"] += staged_at - began

            def apply(spark: SparkSession, step: TableStep) -> Dataset:
                summary, request = new.get(step.dataset.directory), _request(step)
                if summary is None:
                    return self._write_step(spark, step, lambda: staged.changes(spark, request))
                rows = partial(NewRows.from_log, self._log, self._warehouse.store, request, summary, self._masks)
                return self._write_step(spark, step, rows)

            small = self._write_small(others, staged)
            yield from ((others[place], dataset) for place, dataset in small.items())
            left = [step for place, step in enumerate(others) if place not in small]
            with_new = [step for step in group if step.dataset.directory in new]
            yield from self._sessions.run([*with_new, *left], apply)
            self.seconds["write"] += time.monotonic() - staged_at

    def _with_new_rows(self, group: Sequence[TableStep]) -> dict[str, ChangeSummary]:
        """Return the summaries of changes that are new rows to append, by directory: these are not staged.

        Of a table with a history changes are needed twice.
        """
        found = dict[str, ChangeSummary]()
        requests = Counter(map(_request, group))
        least = least_new_rows(self._sink, len(group))
        for step in group if self._on_missing == "error" else ():
            count = self._reporter.rows_of([step])
            is_alone = requests[_request(step)] == 1 and count >= least
            if is_alone and self._reporter.has_inserts_alone(step):
                summary = new_rows_summary(count)
                if appends_new_rows(self._log, self._sink, step, summary):
                    found[step.dataset.directory] = summary
        return found

    def _write_small(self, steps: Sequence[TableStep], staged: StagedChanges) -> Mapping[int, Dataset | Exception]:
        """Bring small tables up to date together where the format can; return these by the places of their steps.

        One whose note cannot be written is an error of its table.
        """
        if not (isinstance(self._sink, ParquetSink) and self._sink.writes_small_as_whole):
            return {}
        try:
            done = advance_together(self._log, self._spark, self._sink, steps, staged, self._on_missing)
        except Exception:
            return {}  # one by one they show whose error it is
        with ThreadPoolExecutor(_NOTES_AT_ONCE, thread_name_prefix="note") as pool:
            modes = (steps[number].mode for number in done)
            return dict(zip(done, pool.map(self._noted, modes, done.values()), strict=True))

    def _noted(self, mode: UpdateMode, dataset: Dataset) -> Dataset | Exception:
        """Write a note, which waits for a disk or a network; return its dataset, or the error."""
        try:
            if mode is UpdateMode.WRITTEN:
                forget_missing(self._warehouse, dataset)
            self._warehouse.write_note(dataset)
        except Exception as error:
            return error
        return dataset

    def _write_step(self, spark: SparkSession, step: TableStep, opened: Callable[[], StagedRows | NewRows]) -> Dataset:
        with needed_by(step.table), self._sink.exclusive(step.dataset):
            dataset = self._written(spark, step, opened())
            self._warehouse.write_note(dataset)
        return dataset

    def _written(self, spark: SparkSession, step: TableStep, changes: StagedRows | NewRows) -> Dataset:
        """Write a table, or its history, as it is now; return its dataset."""
        before, sink = None if step.mode is UpdateMode.WRITTEN else step.before, self._sink
        if before is None and not step.dataset.is_history:
            forget_missing(self._warehouse, step.dataset)
        if isinstance(changes, NewRows):
            new = write_new_rows(self._log, spark, sink, step, changes)
            return describe(spark, sink, new, self._log.table(step.table))
        if step.dataset.is_history:
            return record_history(self._log, spark, sink, step, changes)
        if self._on_missing == "report":
            there = None if before is None else sink.read_for_replay(spark, before)
            found = report_missing(self._warehouse, step, self._log.missing_rows(step.table, changes.rows, there))
            self.missing |= {step.table: found} if found else {}
        written = write_table(self._log, spark, sink, step, changes, before, self._on_missing)
        if written.reason:
            self.reasons[step.table] = written.reason
        return describe(spark, sink, written.dataset, self._log.table(step.table))


def _request(step: TableStep) -> ChangeRequest:
    return ChangeRequest(step.table, step.after)
