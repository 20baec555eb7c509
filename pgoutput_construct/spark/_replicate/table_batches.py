"""One batch: every table that was touched is brought up to a seq of the log, several tables at a time.

**Each change is applied exactly once**, whatever fails when. That needs no transaction over several tables:

- A dataset's ``Version`` says up to which seq of the log it has everything that ended. It is written in the same commit
  as the rows: Delta Lake has it in the commit's ``userMetadata``, Iceberg in a property of the snapshot; a Parquet
  dataset is the directories that its note names, and the note is written last, atomically. So rows and seq never
  disagree, and a batch reads for each table the changes after that table's own seq.
- A batch is announced before it begins: ``Progress.batch`` and ``seq`` with ``done=False``. It is done when every note
  says what its data are; then ``applied`` is the seq.
- After an interruption the notes may be older than the data, or missing. They are no longer trusted
  (``known_datasets``): the version is read from the data of each table. A table whose commit succeeded has nothing
  left to do; any other one is done again from its own seq.
- A dataset whose table was renamed is moved before anything else of a batch; ``known_datasets`` says how that is exact.
- The batch that follows an interruption ends at or after the seq of the interrupted one (``least_seq``): some tables
  are there already, and no table goes back.
- What else a batch writes is derived, and written again under the same name: staged changes (removed before and after),
  reports of missing rows (named after the seq that the table's changes begin after).
- One process writes: ``replicate`` holds the warehouse's lock. ``maintenance`` runs between its batches, or under the
  same lock; its commits change no rows, and the version that the data say of themselves stays what it was.
- The log retains what is needed: the warehouse is advanced as its reader (``warehouse_log``) after the notes are
  written, and a table in trouble is held before, so that prune never removes changes that are still to be applied.

A table's failure is noted (``troubles``), its dataset stays at its last version, and ``Progress.own_seqs`` has its seq;
a later batch begins there.
"""

import logging
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple
from uuid import uuid4

from pyspark.sql import SparkSession

from pgoutput_construct.changelog._facts.completeness import Lack, UnpublishedColumns
from pgoutput_construct.changelog._index.planning import last_commit
from pgoutput_construct.changelog.reader import ChangeLog, identity_of
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.lake._notes import Dataset, Progress, note_name
from pgoutput_construct.spark._log_view.added_columns import escaped_table
from pgoutput_construct.spark._log_view.log_tables import LogTables
from pgoutput_construct.spark._log_view.replicated_tables import Table
from pgoutput_construct.spark._open_log import OpenLog
from pgoutput_construct.spark._own_session import SparkSessions
from pgoutput_construct.spark._replicate.batch_plan import (
    BatchPlanner,
    Reporter,
    TableStep,
    aside_directory,
    latest_datasets,
    obsolete_datasets,
)
from pgoutput_construct.spark._replicate.known_datasets import KnownDatasets
from pgoutput_construct.spark._replicate.replicate_options import ReplicateOptions
from pgoutput_construct.spark._replicate.staging import TableMasks
from pgoutput_construct.spark._replicate.step_writer import StepWriter
from pgoutput_construct.spark._replicate.troubles import Troubles, WaitingError
from pgoutput_construct.spark._replicate.warehouse_log import (
    Coverage,
    adopted_progress,
    adoption_message,
    advance_warehouse,
    check_same_log,
    hold_tables,
    reader_name,
    register_warehouse,
    release_tables,
)
from pgoutput_construct.spark._table_formats.dataset_columns import escape_log
from pgoutput_construct.spark._table_formats.sink import Sink
from pgoutput_construct.spark._table_formats.table_description import describe, has_other_comments
from pgoutput_construct.wire import Lsn, Timestamp

_LOG: Final = logging.getLogger("pgoutput_construct")


@dataclass(frozen=True)
class Batch:
    """The result of a batch."""

    number: int
    """Its number, counted from 1."""
    seq: int
    """Everything that ended in the log up to this seq is in the tables, except those in trouble."""
    commit_lsn: Lsn | None
    """The LSN of the last commit in them, None before the first."""
    commit_time: Timestamp | None
    """Its timestamp, by the server's clock."""
    tables: Mapping[str, str]
    """The tables that it brought up to date, and how: ``changed`` or ``written``; ``renamed`` if nothing else was."""
    removed: tuple[str, ...]
    """The tables that were renamed or dropped, whose datasets it removed."""
    lacks: tuple[Lack, ...]
    """Why tables are not complete, or no longer equal their source."""
    unpublished: tuple[UnpublishedColumns, ...]
    """The generated columns that tables have at their source, and not here, because they are not published."""
    missing: Mapping[str, int]
    """How many changes of rows that do not exist were reported, by table; see ``read_missing``."""
    troubled: Mapping[str, str]
    """Tables that could not be brought up to date, each with the reason; they are as an earlier batch left them."""
    seconds: float
    """Its duration."""
    trouble_kinds: Mapping[str, str] = field(default_factory=dict)
    """The classes of the errors of tables in trouble; they contain no data."""
    rows: int = 0
    """About how many changes and copied rows it brought into tables and histories."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why tables were written as a whole, by name: also of some that are ``changed``, where their rows before were
    written again with the changes.
    """
    began: float = 0.0
    """When it began, in seconds since 1970: the log had its changes then."""
    step_seconds: Mapping[str, float] = field(default_factory=dict)
    """The durations of its steps: ``stage`` the changes, ``write`` the tables."""


class _BatchTables(NamedTuple):
    """What a batch is about."""

    before: Collection[Dataset]
    """The datasets that the warehouse had of the log."""
    tables: Sequence[Table]
    """The tables to replicate, also those with a dataset that were renamed, or dropped, since."""
    due: Sequence[Table]
    """Those of them that are tried now: another one is in trouble, and its pause is not over."""
    early: set[int]
    """The OIDs of tables whose copies come later."""
    gone: set[int]
    """The OIDs of dropped tables whose datasets are removed."""

    @property
    def untried(self) -> set[int]:
        """The OIDs of the tables that are not tried."""
        tried = {table.relation_oid for table in self.due}
        others = (table for table in self.tables if table.relation_oid not in tried)
        return self.early.union(oid for table in others for oid in table.relation_oids)


class WarehouseTables:
    """The tables of a warehouse, batch by batch."""

    def __init__(self, spark: SparkSession, sink: Sink, options: ReplicateOptions, reporter: Reporter) -> None:
        """Read the notes of a warehouse."""
        self._warehouse = sink.warehouse
        self._rules = options.rules_in(self._warehouse)
        self._layout = options.layout_in(self._warehouse)
        self._on_missing = options.on_missing
        self._reporter = reporter
        self._history = options.history
        self._spark = spark
        self._sink = sink
        self._chosen = options.chosen
        self._keep_dropped = options.keep_dropped
        self._sessions = SparkSessions(spark, options.workers, sink.prepare)
        names = options.names_in(self._warehouse)
        initial = Progress(
            sink.format,
            prefix=sink.naming.prefix,
            catalog=sink.catalog,
            namespace=names.namespace,
            table_name=names.table,
            schema_column=names.schema_column,
            identity=uuid4().hex,
        )
        self.known = KnownDatasets(spark, sink, self._sessions, initial)
        """Its datasets."""
        self._missing: dict[str, int] = {}
        self._resync = {*options.from_scratch}
        self._is_registered = False
        self.troubles = Troubles()
        """The tables that could not be brought up to date."""
        self._reasons: dict[str, str] = {}
        self._step_seconds: dict[str, float] = {}

    @property
    def applied(self) -> int:
        """The seq up to which every table in no trouble has everything that ended in the log; -1 for none."""
        return self.known.progress.applied

    @property
    def least_seq(self) -> int:
        """The seq that the next batch must reach: an interrupted one may have brought tables up to it."""
        return self.known.progress.seq

    def attach(self, log: ChangeLog, adopt: bool) -> None:
        """Make a log that of the warehouse, and register the warehouse as its reader.

        Raises ChangeLogError if the tables are of another log, unless the warehouse is to ``adopt`` this one; a warning
        then says what becomes of them.
        """
        plan = adoption_message(log, self.known.progress, self._warehouse) if adopt else None
        if plan is not None:
            _LOG.warning("%s", plan)
            self._rules = self._rules.forget_tables()
            self.known.note(adopted_progress(log, self.known.progress))
        check_same_log(log, self.known.progress, self._warehouse)
        reader = self.known.progress.reader or reader_name(self._warehouse)
        rules, layout = self._rules.to_notes(), self._layout.to_notes()
        progress = replace(self.known.progress, rules=rules, layout=layout, grace=self._sink.grace)
        self.known.note(replace(progress, reader=reader))
        self._is_registered = register_warehouse(log, reader, self.applied)
        if self._rules.has_unseen:
            for warning in self._rules.check(LogTables.from_log(log)):
                _LOG.warning("%s", warning)

    def apply(self, log: OpenLog, lacking: Collection[int] | None = None, tries_all: bool = False) -> Batch:
        """Bring every table up to the end of a log as it was opened.

        A table that fails stays as it was, is in trouble, and is retried by a later call, after a pause that grows.
        Raises only what concerns all tables: a log that is damaged, or another one; a warehouse that cannot be written.

        Args:
            log: The log, opened as of the end of the batch.
            lacking: The OIDs of the tables that the log does not have completely in the end, if the log has more than
                the batch. A table that is incomplete only now, because its copy comes later, is not begun yet.
            tries_all: Whether tables in trouble are retried before their pause is over.
        """
        began, began_at = time.monotonic(), time.time()
        self._missing, self._reasons, self._step_seconds = {}, {}, {"stage": 0.0, "write": 0.0}
        self.known.begin()
        log, masks = self._with_rules(log)
        coverage = Coverage(self.known.progress, log.opened.index.first_seq)
        found = self._found(log, coverage, lacking, tries_all)
        self.known.settle(found.due, found.gone, found.untried, self._resync)
        self.known.remove_unnoted(found.tables, self._history)
        moved = self.known.move_renamed(found.due)
        steps = self._write(log, coverage, found, masks)
        removed = self._remove_obsolete(found)
        lacks = self._finish(log, coverage, found)
        if lacking is not None:
            lacks = [lack for lack in lacks if lack.relation_oid in lacking]
        done = dict.fromkeys(moved, "renamed")
        done |= {step.table: str(step.mode) for step in reversed(steps) if step.oid not in self.known.failed}
        lsn, time_of_commit = _last_commit(log)
        there = {table.qualified for table in found.tables if not table.dropped}
        oids = {table.relation_oid for table in found.tables}
        return Batch(
            number=self.known.progress.batch,
            seq=log.opened.as_of,
            commit_lsn=lsn,
            commit_time=time_of_commit,
            tables=done,
            removed=tuple(name for name in (*moved.values(), *removed) if name not in there),
            lacks=tuple(lacks),
            unpublished=tuple(each for each in log.unpublished_columns if each.relation_oid in oids),
            missing=self._missing,
            troubled=self.troubles.reasons,
            trouble_kinds=self.troubles.kinds,
            rows=self._reporter.rows_of(step for step in steps if step.oid not in self.known.failed),
            seconds=time.monotonic() - began,
            reasons={name: reason for name, reason in self._reasons.items() if name in done},
            began=began_at,
            step_seconds=self._step_seconds,
        )

    def _with_rules(self, log: OpenLog) -> tuple[OpenLog, TableMasks]:
        """Return a log with the columns that tables of the warehouse have, and the masks of these."""
        check_same_log(log.log, replace(self.known.progress, seq=-1), self._warehouse)
        ruled = self._rules.applied_to(log)
        self._rules = ruled.rules
        identity, rules = identity_of(log.log), self._rules.to_notes()
        self.known.progress = replace(self.known.progress, log=identity, rules=rules)
        return self._layout.applied_to(ruled.log, self._sink.naming.prefix), ruled.masks

    def _found(
        self, log: OpenLog, coverage: Coverage, lacking: Collection[int] | None, tries_all: bool
    ) -> _BatchTables:
        """Return the tables of a batch, after those that cannot be brought up to date are noted."""
        mine = self.known.own.values()
        early = _awaiting_copies(log, mine, lacking)
        tables = [table for table in self._tables(log, mine) if table.relation_oid not in early]
        self._refuse(log, coverage)
        self._refuse_damaged(log, tables)
        self._refuse_equal_names(tables)
        due = [table for table in tables if tries_all or self.troubles.may_retry(table.relation_oid)]
        gone = set[int]() if self._keep_dropped else _dropped_oids(log, due, self._chosen)
        return _BatchTables(mine, tables, due, early, gone)

    def _write(self, log: OpenLog, coverage: Coverage, found: _BatchTables, masks: TableMasks) -> Sequence[TableStep]:
        """Write what is to be written of the tables, and describe the others; return the steps of that."""
        plans = BatchPlanner(self.known.datasets, coverage, log.opened.as_of, self._resync, self._layout)
        steps = self._without_blocked(log, [step for table in found.due for step in self._steps(log, table, plans)])
        self._reasons = {step.table: step.reason for step in steps if step.reason and not step.dataset.is_history}
        if steps:
            progress = self.known.progress
            progress = replace(progress, batch=progress.batch + 1, seq=log.opened.as_of, done=False)
            self.known.announce(progress, [step.dataset for step in steps])
            self._apply_steps(escape_log(log), steps, masks)
        self._describe_others(found.due, {step.oid for step in steps})
        return steps

    def _remove_obsolete(self, found: _BatchTables) -> list[str]:
        """Remove the datasets of renamed and dropped tables, and note which tables failed; return their names."""
        present = {table.relation_oid for table in found.tables if not table.dropped}
        waiting = {oid for oid in present if oid in self.troubles} - {table.relation_oid for table in found.due}
        failing = waiting | self.known.failed.keys()
        obsolete = obsolete_datasets(found.tables, self.known.own, self._keep_dropped, self.known.names, found.gone)
        removed = [each for each in obsolete if each.version.oid not in failing]
        self.known.remove(removed)
        for oid, (name, error) in self.known.failed.items():
            self.troubles.note(oid, name, error)
        self.troubles.retain_only(waiting | self.known.failed.keys())
        self._resync -= {table.qualified for table in found.due if table.relation_oid not in self.known.failed}
        return [each.version.table for each in removed]

    def _refuse(self, log: OpenLog, coverage: Coverage) -> None:
        """Note the tables that cannot be brought up to date from the log."""
        unreadable = _dropped_oids(log, (), None)
        for oid, (name, refusal) in coverage.pruned_tables(log, self.known.own.values()).items():
            if oid not in unreadable:
                self.known.fail(oid, name, refusal)
        known = {each.version.oid for each in self.known.own.values()}
        for name, refused in log.opened.refused.items():
            is_mine = self._chosen is None or name in self._chosen or refused.relation_oid in known
            if not refused.dropped and is_mine:
                self.known.fail(refused.relation_oid, name, refused.error)

    def _refuse_damaged(self, log: OpenLog, tables: Iterable[Table]) -> None:
        """Note the tables whose notes are damaged, except those to write from scratch.

        Raises PgoutputError for a damaged note of an unknown table.
        """
        if not self.known.damaged:
            return
        self.known.read_damaged()
        mine, unknown = {table.relation_oid for table in tables}, dict(self.known.damaged)
        for table in log.opened.tables.values():
            for is_history in (False, True):
                error = unknown.pop(note_name(self.known.names.directory(table, is_history)), None)
                is_due = table.relation_oid in mine and (self._history or not is_history)
                if error is not None and is_due and table.qualified not in self._resync:
                    self.known.fail(table.relation_oid, table.qualified, error)
        for error in unknown.values():
            raise error

    def _refuse_equal_names(self, tables: Collection[Table]) -> None:
        """Note the tables that would have the name of another one's dataset."""
        owners = {name: each.version.oid for name, each in self.known.own.items()}
        ignores_case = self._sink.ignores_case(self._spark)
        for table, error in self.known.names.conflicts(tables, owners, ignores_case):
            self.known.fail(table.relation_oid, table.qualified, error)

    def _finish(self, log: OpenLog, coverage: Coverage, found: _BatchTables) -> list[Lack]:
        """Note where the tables are, also in the log: it retains what a table in trouble has not applied.

        Returns:
            What the log lacks of the tables.
        """
        oids, tried = ({table.relation_oid for table in each} for each in (found.tables, found.due))
        found_lacks = [each for each in log.lacks if each.relation_oid in oids]
        lacks = [*coverage.reported_lacks(found_lacks, found.before)]
        before, end, troubled = self.known.progress, log.opened.as_of, self.troubles.names
        own_seqs = {oid: before.own_seqs.get(oid, self.applied) for oid in troubled}
        own_seqs |= {oid: seq for oid, seq in before.own_seqs.items() if oid not in tried and _exists(log, oid)}
        lacking = {
            lack.relation_oid for lack in lacks if lack.stale_since is None and lack.relation_oid not in own_seqs
        }
        lacking |= own_seqs.keys() & set(before.lacking)
        now = replace(before, done=self.known.are_settled, troubled=self.troubles.reasons, seq=end, applied=end)
        now = replace(now, own_seqs=own_seqs, lacking=tuple(sorted(lacking)), unnoted=self.known.unnoted)
        if self._is_registered:  # before the note: an interruption here is repeated
            hold_tables(log.log, now.reader, {oid: troubled[oid] for oid in own_seqs.keys() - before.own_seqs.keys()})
        self.known.note(now)
        if self._is_registered and not found.early:  # no other reader retains what comes later
            advance_warehouse(log, now.reader, self.applied, {each.version.oid for each in self.known.own.values()})
        if self._is_registered and before.own_seqs.keys() - own_seqs.keys():
            release_tables(log.log, now.reader, own_seqs)
        return lacks

    def _steps(self, log: OpenLog, table: Table, plans: BatchPlanner) -> list[TableStep]:
        """Return what to do for a table; nothing if it fails."""
        if table.relation_oid in self.known.failed:
            return []
        kinds = (False, True) if self._history else (False,)
        try:
            found = [step for is_history in kinds if (step := plans.step(table, is_history)) is not None]
            for step in found:
                self._warn_of_prefix(step)
                naming = self._sink.naming_of(step.dataset)
                reserved = self._sink.reserved_in(self._spark, step.dataset)
                reserved.check(step.dataset, naming, has_table=step.before is not None)
                check_whole(log, self.known.progress, step)
        except Exception as error:
            self.known.fail(table.relation_oid, table.qualified, error)
            return []
        return found

    def _warn_of_prefix(self, step: TableStep) -> None:
        prefix, before = self._sink.naming_of(step.dataset).prefix, step.before
        was = None if before is None else self._sink.naming_of(before).prefix
        if prefix not in (self._sink.naming.prefix, was):
            _LOG.warning(
                "%s has a column with the name of an added one: added columns begin with %r there", step.what, prefix
            )

    def _without_blocked(self, log: OpenLog, steps: Sequence[TableStep]) -> list[TableStep]:
        """Return the steps that can be done now; the tables of the others wait.

        A table waits if the last good version of a table in trouble, or of one that waits, stands in its directory. A
        table in trouble itself does not wait for one that waits, perhaps for it.
        """
        displaced: dict[int, set[int]] = {}
        for step in steps:
            if other := self._displaced(log, step):
                displaced.setdefault(step.oid, set()).add(other.version.oid)
        known = {oid for others in displaced.values() for oid in others} | displaced.keys()
        troubled = {oid for oid in known if self.troubles.has_own(oid) or self.known.has_own_failure(oid)}
        waiting, more = set[int](), set[int]()
        while True:
            held = {oid: troubled if oid in troubled else troubled | waiting for oid in displaced}
            more = {oid for oid, others in displaced.items() if oid not in waiting and others & held[oid]}
            if not more:
                break
            waiting |= more
        for step in steps:
            if step.oid in waiting:
                waits = WaitingError(
                    f"{step.table}: the table that had this name before could not be updated yet, and its dataset is "
                    "in this directory: it is replaced once that table is updated, or dropped"
                )
                self.known.fail(step.oid, step.table, waits)
        return [step for step in steps if step.oid not in self.known.failed]

    def _displaced(self, log: OpenLog, step: TableStep) -> Dataset | None:
        """Return the dataset that a step replaces, of another table that still exists."""
        other = step.displaced
        if other is None or self.known.progress.is_foreign(other.version):
            return None
        return None if other.version.oid in log.table(step.table).relation_oids else other

    def _apply_steps(self, log: OpenLog, steps: Sequence[TableStep], masks: TableMasks) -> None:
        self.known.recover(steps)
        steps = self._without_blocked(log, self._with_copies(log, steps))
        writer = StepWriter(log, self._sink, self._sessions, masks, self._on_missing, self._reporter)
        for group in self._reporter.groups(log, self.known.progress.batch, steps) if steps else ():
            for step, done in writer.write(group):
                if isinstance(done, Exception):
                    self.known.settle_failed(step, done)
                else:
                    self.known.take_written([done])
                self._reporter.report_done([step])
        self._missing, self._step_seconds = writer.missing, writer.seconds
        self._reasons |= writer.reasons

    def _with_copies(self, log: OpenLog, steps: Sequence[TableStep]) -> list[TableStep]:
        """Copy histories out of the way of other tables that take their directories; return the steps, to read these
        copies.

        The copies are datasets of their tables under another name, and removed as such when these are up to date. A
        history that cannot be copied stays where it is: its table is in trouble.
        """
        known, copies = latest_datasets(self.known.datasets.values()), dict[str, Dataset]()
        names = {step.oid: step.table for step in steps}
        before = {step.oid: step.before for step in steps if step.dataset.is_history}
        displaced = [other for step in steps if (other := self._displaced(log, step)) and other.is_history]
        moving = [each for each in displaced if before.get(each.version.oid, known[each.version.oid, True]) == each]
        if moving:
            self.known.announce(self.known.progress, map(_aside, moving))
        for history, done in self._sessions.run(moving, self._copy_history):
            oid = history.version.oid
            if isinstance(done, Exception):
                self.known.failed[oid] = names.get(oid, history.version.table), done
            else:
                self.known.take_written([done])
                copies[history.directory] = done
        return [
            replace(step, before=copies.get(step.before.directory, step.before)) if step.before else step
            for step in steps
            if step.oid not in self.known.failed
        ]

    def _copy_history(self, spark: SparkSession, history: Dataset) -> Dataset:
        written = self._sink.replace(spark, _aside(history), self._sink.read(spark, history), None)
        self._warehouse.write_note(written)
        return written

    def _tables(self, log: OpenLog, mine: Iterable[Dataset]) -> list[Table]:
        """Return the tables to replicate, also those with a dataset that were renamed, or dropped, since.

        A dropped one is among them even if a table that was not chosen has its name now.
        """
        if self._chosen is None:
            return [*log.opened.tables.values()]
        known, found = {each.version.oid for each in mine}, list[Table]()
        for table in log.opened.tables.values():
            former = tuple(oid for oid in table.relation_oids if oid in known)
            if table.qualified in self._chosen or table.relation_oid in known or (former and table.dropped):
                found.append(table)
            elif former:
                found.append(replace(table, relation_oid=former[-1], relation_oids=former, dropped=True))
        return found

    def _describe_others(self, tables: Iterable[Table], written: Collection[int]) -> None:
        """Describe the tables that a batch has not written, and whose comments have changed."""
        datasets = latest_datasets(each for each in self.known.own.values() if not each.is_history)
        for table in tables:
            dataset = datasets.get((table.relation_oid, False))
            if dataset is None or table.dropped or table.relation_oid in {*written, *self.known.failed}:
                continue
            if has_other_comments(self._sink, dataset, found := escaped_table(table)):
                described = describe(self._spark, self._sink, dataset, found)
                self._warehouse.write_note(described)
                self.known.take(described)


def _aside(history: Dataset) -> Dataset:
    return replace(history, directory=aside_directory(history))


def _exists(log: OpenLog, oid: int) -> bool:
    """Return whether a log has a table that was not dropped."""
    known = {table.relation_oid for table in log.opened.tables.values() if not table.dropped}
    return oid in known | {refused.relation_oid for refused in log.opened.refused.values() if not refused.dropped}


def _dropped_oids(log: OpenLog, tables: Iterable[Table], chosen: Collection[str] | None) -> set[int]:
    """Return the OIDs of dropped tables: of some, and of all whose names have tables that cannot be read.

    Args:
        log: The log.
        tables: Tables that can be read.
        chosen: The names of the tables to replicate; None for all.
    """
    found = {oid for table in tables for oid in table.relation_oids if table.is_removed(oid)}
    for name, refused in log.opened.refused.items():
        if refused.dropped:
            found.update(refused.relation_oids)
        elif chosen is not None and name not in chosen:
            found.update({*refused.relation_oids} - {refused.relation_oid})
    return found


def _awaiting_copies(log: OpenLog, datasets: Iterable[Dataset], lacking: Collection[int] | None) -> set[int]:
    """Return the OIDs of new tables whose copies the log has only later."""
    if lacking is None:
        return set()
    known = {each.version.oid for each in datasets}
    found = {lack.relation_oid for lack in log.lacks if lack.stale_since is None}
    return found.difference(known, lacking)


def _last_commit(log: OpenLog) -> tuple[Lsn | None, Timestamp | None]:
    """Return LSN and timestamp of the last commit in a log."""
    last = last_commit(log.opened.index, log.opened.index.last_seq)
    return (None, None) if last is None else (Lsn(last["commit_lsn"]), Timestamp(last["commit_time"]))


def check_whole(log: OpenLog, progress: Progress, step: TableStep) -> None:
    """Raise ChangeLogError for an incomplete table of the log that would replace one of an earlier log."""
    lacks = {lack.relation_oid: lack for lack in log.lacks}
    lack, replaced = lacks.get(step.dataset.version.oid), step.replaced
    if lack is not None and replaced is not None and progress.is_foreign(replaced.version):
        raise ChangeLogError(f"{step.table}: keeping its rows from the previous log: {lack}")
