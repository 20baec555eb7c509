"""The datasets of a warehouse as one process knows them: by their notes, which are settled where data may be ahead.

A note may be older than its data, or be missing, after an interruption or a failure. What is in doubt is settled before
a batch builds on it:

- **Moves** (``Progress.moving``) are completed or undone first, as the last paragraphs say.
- **A note that may be older** (``_unsure``) is compared with the version that the data have, which is the truth.
- **A note that could not be read** after its step failed (``_unread``) is read again. If it is there, the step has
  succeeded, and only the answer was lost.
- **A location without a note** may have files, or a table of a catalog: of a dataset that is being created, or removed.
  It is announced first (``Progress.unnoted``). If its table is still to have a dataset there, a batch writes that
  again; if not, since the table was dropped, renamed or is no longer chosen, what is there is removed. What is not of
  this warehouse stays.

What fails is settled by a later batch. Until then a table is in trouble; only logged is the failure to clear a
location, and what concerns no table of the log.

A dataset whose table was renamed is moved, where its format can do that without writing rows. A move is not one step:
the data come to their new location, the note of that location is written, the old note is removed, and what is left in
the old location is cleared. So that it is exact whatever is interrupted, moves are announced before they begin
(``Progress.moving``), and settled before the next batch does anything else:

- If the new location has a note, the data are there: the old note, and what is left, are removed.
- If only the old location has one, the sink says whether the data have moved (a catalog renames a table at once); if
  so, the move is completed, else what was begun is cleared, and the move is planned again. So only a move to a location
  where others have nothing is announced.

The version of a dataset is with its data, and moves with them; the name of its table is what the note says.
"""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from pyspark.sql import SparkSession

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.lake._directories import STAGED
from pgoutput_construct.lake._notes import Dataset, Moving, Progress, Unnoted, note_name
from pgoutput_construct.lake._versions import Version
from pgoutput_construct.spark._execution import reason_of
from pgoutput_construct.spark._log_view.replicated_tables import Table
from pgoutput_construct.spark._own_session import SparkSessions
from pgoutput_construct.spark._replicate.batch_plan import TableStep, latest_datasets
from pgoutput_construct.spark._replicate.dataset_names import DatasetNames
from pgoutput_construct.spark._replicate.troubles import WaitingError
from pgoutput_construct.spark._replicate.warehouse_reader import copy_missing, forget_missing
from pgoutput_construct.spark._table_formats.sink import Sink
from pgoutput_construct.spark._table_formats.table_description import undescribed

_LOG: Final = logging.getLogger("pgoutput_construct")


class _Move(NamedTuple):
    """What is to be moved."""

    dataset: Dataset
    """The dataset as it is."""
    moving: Moving
    """Where it goes."""


class KnownDatasets:
    """The datasets of a warehouse, how far it has come, and which tables failed in the present batch."""

    def __init__(self, spark: SparkSession, sink: Sink, sessions: SparkSessions, initial: Progress) -> None:
        """Read the notes of a warehouse; ``initial`` is how far a new one has come."""
        self._spark = spark
        self._sink = sink
        self._sessions = sessions
        self._warehouse = sink.warehouse
        self._noted = self._warehouse.progress()
        self.progress = self._noted or initial
        """How far the warehouse has come; parts of it may not be noted yet."""
        self._interrupted = None if self.progress.done else self.progress.batch
        """The number of the batch that was interrupted before this process; None for none."""
        self._recovered = set[str]()
        """The directories next to whose datasets it has left nothing any more."""
        self.datasets, self.damaged = self._warehouse.readable_datasets()
        """The datasets by directory; and the errors of damaged notes, by their names."""
        # Numbers are those of directories, too: a note of the progress that is lost must not start them again.
        latest = max((each.version.batch for each in self.datasets.values()), default=0)
        self.progress = replace(self.progress, batch=max(self.progress.batch, latest))
        self.failed: dict[int, tuple[str, Exception]] = {}
        """The tables that failed in this batch: their names and errors, by OID."""
        self._held = set[int]()
        """The OIDs of the tables whose moves could not be settled in this batch."""
        self.written = set[str]()
        """The directories of the datasets that this batch wrote."""
        self._unsure = set() if self._interrupted is None else set(self.datasets)
        """The datasets whose notes may be older than their data."""
        self._unread: dict[str, tuple[int, str]] = {}
        """The directories whose notes could not be read after a failed step, with the OIDs and names of the tables."""
        self._lasting = set[str]()
        """The locations without a note that could not be removed, once that was logged."""
        self._forget_noted()

    @property
    def own(self) -> dict[str, Dataset]:
        """The datasets that are of the present log, by directory."""
        foreign = self.progress.is_foreign
        return {name: each for name, each in self.datasets.items() if not foreign(each.version)}

    @property
    def names(self) -> DatasetNames:
        """The names of datasets."""
        return DatasetNames.of(self.progress)

    @property
    def are_settled(self) -> bool:
        """Whether no note is in doubt."""
        return not self._unread and self._unsure.isdisjoint(self.datasets)

    def note(self, progress: Progress) -> None:
        """Write how far the warehouse has come, unless that is what was written last."""
        if progress != self._noted:
            self._warehouse.write_progress(progress)
        self.progress = self._noted = progress

    def fail(self, oid: int, name: str, error: Exception) -> None:
        """Take the failure of a table; the first one of a batch counts."""
        self.failed.setdefault(oid, (name, error))

    def has_own_failure(self, oid: int) -> bool:
        """Return whether a table failed by itself, not because of another one."""
        return not isinstance(self.failed.get(oid, ("", None))[1], WaitingError | None)

    def begin(self) -> None:
        """Begin a batch: no table has failed; settle moves, and read the notes that could not be read."""
        self.failed, self.written = {}, set()
        if self._interrupted is not None:  # what it staged: else a batch that has nothing left to do would leave that
            self._warehouse.store.remove(STAGED)
        self._forget_noted()
        self._settle_moves()
        self._held = {*self.failed}
        for directory, (oid, name) in list(self._unread.items()):
            try:
                _take(self.datasets, directory, self._warehouse.dataset(directory))
            except Exception as error:
                self.fail(oid, name, error)
            else:
                self._unsure.add(directory)
                del self._unread[directory]

    def read_damaged(self) -> None:
        """Read the damaged notes again: the remedy may have been followed."""
        was = self.damaged
        found, self.damaged = self._warehouse.readable_datasets()
        mended = {name: each for name, each in found.items() if note_name(name) in was}
        self.datasets |= mended
        self._unsure |= mended.keys()

    def settle(
        self, tables: Iterable[Table], gone: Collection[int], waiting: Collection[int], resync: Collection[str]
    ) -> None:
        """Read the versions of data whose notes may be older; of a present table, data without one is written again.

        What interrupted batches left next to datasets of other tables is removed here: no step of theirs comes.

        Args:
            tables: The tables of the batch.
            gone: The OIDs of dropped tables whose datasets are removed.
            waiting: The OIDs of tables that the batch does not try.
            resync: The names of those that are written from scratch: it does not matter whether their data have one.
        """
        present, held = {table.relation_oid for table in tables if not table.dropped}, self._held.union(waiting)
        unsure = (self.datasets[name] for name in sorted(self._unsure & self.datasets.keys()))
        for dataset, version in self._sessions.run(
            [each for each in unsure if each.version.oid not in held], self._sink.version
        ):
            is_foreign, oid = self.progress.is_foreign(dataset.version), dataset.version.oid
            if isinstance(version, Exception) and oid in present and not is_foreign:
                if dataset.version.table not in resync:
                    self.fail(oid, dataset.version.table, version)
                    continue
            elif isinstance(version, Exception):  # nothing builds on its note
                _LOG.warning("%s: its note may be older than its data: %s", dataset.directory, reason_of(version))
            elif version is None and (oid not in gone or dataset.is_history or is_foreign):
                del self.datasets[dataset.directory]
            elif version is not None and _named_as(version, dataset) != dataset.version:
                settled = undescribed(self._sink, replace(dataset, version=_named_as(version, dataset)))
                # Now: if this batch does nothing for the table, the next one trusts the note.
                self._warehouse.write_note(settled)
                self.datasets[dataset.directory] = settled
            self._unsure.discard(dataset.directory)
        if self._interrupted is not None:
            others = present | held
            for dataset in self.datasets.values():
                if dataset.version.oid not in others and (dataset.version.oid not in gone or dataset.is_history):
                    self._recover_once(dataset.directory, dataset, None)

    def move_renamed(self, tables: Iterable[Table]) -> dict[str, str]:
        """Move the datasets of renamed tables where that can be; return the former names of these, by their present."""
        mine = [table for table in tables if table.relation_oid not in self.failed]
        latest = latest_datasets(self.own.values()).values()
        planned = [move for move in _planned_moves(mine, latest, self.datasets, self.names) if self._can_move(move)]
        if not planned:
            return {}
        unsettled = self.progress.moving
        moving = (*unsettled, *(move.moving for move in planned))
        self.note(replace(self.progress, done=False, moving=moving))
        found = dict[str, str]()
        for move in planned:
            if move.moving.after in self.datasets:  # it was to be moved before, and could not be
                continue
            try:
                if not self._sink.move(self._spark, move.dataset, move.moving.after):
                    continue
                moved = _complete_move(self._spark, self._sink, move)
            except Exception as error:
                self._fail_move(move.moving, error)
                unsettled = (*unsettled, move.moving)
                continue
            del self.datasets[move.dataset.directory]
            self._recovered.discard(move.dataset.directory)
            self.datasets[moved.directory] = moved
            found[moved.version.table] = move.dataset.version.table
        self.progress = replace(self.progress, moving=unsettled)
        return {name: was for name, was in found.items() if name != was}

    def announce(self, progress: Progress, datasets: Iterable[Dataset]) -> None:
        """Note how far the warehouse has come, with the locations of datasets that are to be written, and are new."""
        found = {each.directory: each for each in self.unnoted}
        for each in datasets:
            if each.directory not in self.datasets:
                was = found.get(each.directory)  # a removal that could not be finished is still to be
                found[each.directory] = Unnoted.from_dataset(each, was is not None and was.is_removed)
        self.note(replace(progress, unnoted=tuple(found.values())))

    def remove_unnoted(self, tables: Iterable[Table], has_histories: bool) -> None:
        """Remove what is in locations without a note that no table will have; where that fails, with the next batch.

        Args:
            tables: The tables of the batch.
            has_histories: Whether histories are recorded, too.
        """
        if not self.unnoted:
            return
        kinds = (False, True) if has_histories else (False,)
        wanted = {
            (self.names.directory(table, is_history), table.relation_oid)
            for table in tables
            for is_history in kinds
            if not table.dropped
        }
        kept = {*self._unread, *(name for each in self.progress.moving for name in (each.before, each.after))}
        locations = [
            location
            for location in self.unnoted
            if (location.is_removed or (location.directory, location.oid) not in wanted)
            and location.directory not in kept
        ]
        for location, error in self._sessions.run(locations, self._remove_location):
            if error is None:
                self._forget_location(location.directory)
                self._lasting.discard(location.directory)
            elif location.directory not in self._lasting:
                self._lasting.add(location.directory)
                _LOG.warning(
                    "%s: what a batch has left of %s stays until it can be removed: %s",
                    location.directory,
                    location.table,
                    reason_of(error),
                )

    def _remove_location(self, spark: SparkSession, location: Unnoted) -> None:
        # What this process knows may be older: another one may have written the note, or a write without an answer.
        if self._warehouse.dataset(location.directory) is not None:
            raise PgoutputError("it has a note")
        dataset = location.to_dataset()
        if self._is_alone(dataset):
            self._sink.remove_unnoted(spark, dataset)
            forget_missing(self._warehouse, dataset)

    def _is_alone(self, dataset: Dataset) -> bool:
        """Return whether the location of a dataset is that of no other one, by a name that differs in case."""
        if self._sink.schema_column:  # of a location, the rows of one schema are removed
            return True
        mine = self._sink.location_of(dataset.directory)
        others = (name for name in self.datasets if self._sink.location_of(name) != mine)
        same = next((name for name in others if self._sink.is_same_location(name, dataset.directory)), None)
        if same is not None:
            _LOG.warning("%s stays: it may be %s, where names are the same in any case", dataset.directory, same)
        return same is None

    @property
    def unnoted(self) -> tuple[Unnoted, ...]:
        """The locations that were announced, and have no note."""
        return tuple(each for each in self.progress.unnoted if each.directory not in self.datasets)

    def take_written(self, datasets: Collection[Dataset]) -> None:
        """Take datasets whose notes this batch has written."""
        self.datasets |= {each.directory: each for each in datasets}
        self.written |= {each.directory for each in datasets}
        self._unsure -= {each.directory for each in datasets}

    def take(self, dataset: Dataset) -> None:
        """Take a dataset whose note was written, but for what it says of the data."""
        self.datasets[dataset.directory] = dataset

    def settle_failed(self, step: TableStep, error: Exception) -> None:
        """Remove what a failed step has left; but if its note is there, all of it is, and only the answer was lost."""
        try:
            noted = self._warehouse.dataset(step.dataset.directory)
        except Exception:  # what the note says is there: nothing may be removed
            self.fail(step.oid, step.table, error)
            self._unread[step.dataset.directory] = step.oid, step.table
            return
        if noted is not None and noted.version == step.dataset.version:
            self.take_written([noted])
            return
        if noted is not None:  # of data without a version
            self.datasets.setdefault(noted.directory, noted)
        self.fail(step.oid, step.table, error)
        self._unsure.add(step.dataset.directory)
        try:
            self._sink.recover(step.dataset.directory, step.replaced, step.dataset.version.batch)
        except Exception as left:
            _LOG.warning("%s: what the batch has left there stays: %s", step.dataset.directory, reason_of(left))

    def recover(self, steps: Iterable[TableStep]) -> None:
        """Remove what an interrupted batch has left in the locations of steps."""
        for step in steps:
            self._recover_once(step.dataset.directory, step.replaced, step)

    def remove(self, datasets: Sequence[Dataset]) -> None:
        """Remove datasets; if the files of one cannot be removed, its table is in trouble."""
        if datasets:
            locations = (Unnoted.from_dataset(each, is_removed=True) for each in datasets)
            self.note(replace(self.progress, unnoted=(*self.unnoted, *locations)))
        for dataset in datasets:
            is_alone = self._is_alone(dataset)
            if not is_alone and self._warehouse.ignores_case:  # its note is that of the other one, too
                del self.datasets[dataset.directory]
                self._forget_location(dataset.directory)
                continue
            if not self._sink.schema_column:
                self._forget(dataset)
            try:
                forget_missing(self._warehouse, dataset)
                if is_alone:
                    self._sink.remove(self._spark, dataset)
                if self._sink.schema_column:  # rows without a note would stay among those of others
                    self._forget(dataset)
                self._forget_location(dataset.directory)
            except Exception as error:
                self.fail(dataset.version.oid, dataset.version.table, error)

    def _forget(self, dataset: Dataset) -> None:
        self._warehouse.remove_note(dataset.directory)
        del self.datasets[dataset.directory]
        self._unsure.discard(dataset.directory)

    def _forget_noted(self) -> None:
        """Forget the locations that have a note: their datasets may be moved, and others come there."""
        self.progress = replace(self.progress, unnoted=self.unnoted)

    def _forget_location(self, directory: str) -> None:
        left = tuple(each for each in self.progress.unnoted if each.directory != directory)
        self.progress = replace(self.progress, unnoted=left)

    def _recover_once(self, directory: str, noted: Dataset | None, step: TableStep | None) -> None:
        """Remove what the interrupted batch, or one before it, left in a directory, unless that was done.

        Args:
            directory: The directory.
            noted: The dataset whose note is there; None for none.
            step: What is about to be written there, None for nothing: then a failure is only logged.
        """
        if self._interrupted is None or directory in self._recovered:
            return
        self._recovered.add(directory)
        try:
            self._sink.recover(directory, noted, self._interrupted)
        except Exception as error:
            if step is None:
                _LOG.warning("%s: what a batch has left there stays: %s", directory, reason_of(error))
                return
            self._recovered.remove(directory)
            self.fail(step.oid, step.table, error)

    def _settle_moves(self) -> None:
        """Complete or undo the moves of an interrupted batch, or of one that failed."""
        failed = list[Moving]()
        for moving in self.progress.moving:
            try:
                self.datasets = _settle_move(self._spark, self._sink, moving, self._as_noted(moving))
                self._unsure = (self._unsure | {moving.before, moving.after}) & self.datasets.keys()
            except Exception as error:
                self._fail_move(moving, error)
                failed.append(moving)
        self.progress = replace(self.progress, moving=tuple(failed))

    def _as_noted(self, moving: Moving) -> dict[str, Dataset]:
        """Return the datasets, those of a move as their notes have them: of one that failed, the former may be gone."""
        found, after = dict(self.datasets), self._warehouse.dataset(moving.after)
        try:
            before = self._warehouse.dataset(moving.before)
        except PgoutputError:
            if after is None:
                raise
            before = None  # the data are in the other location
        for directory, noted in ((moving.before, before), (moving.after, after)):
            _take(found, directory, noted)
        return found

    def _can_move(self, move: _Move) -> bool:
        try:
            if self._sink.is_same_location(move.moving.before, move.moving.after):
                return False
            return self._sink.can_move(self._spark, move.dataset, move.moving.after)
        except Exception as error:
            self.fail(move.dataset.version.oid, move.moving.table, error)
            return False

    def _fail_move(self, moving: Moving, error: Exception) -> None:
        """Note the failure of a move, which the next batch settles."""
        known = [self.datasets[name] for name in (moving.before, moving.after) if name in self.datasets]
        for dataset in known:
            self.fail(dataset.version.oid, moving.table, error)
            self._unsure.add(dataset.directory)


def _take(datasets: dict[str, Dataset], directory: str, noted: Dataset | None) -> None:
    """Have the datasets by directory agree with a note, None for none."""
    if noted is None:
        datasets.pop(directory, None)
    else:
        datasets[directory] = noted


def _named_as(version: Version, dataset: Dataset) -> Version:
    """Return the version of data with the name that the note has: data that were moved do not know it."""
    return replace(version, table=dataset.version.table)


def _planned_moves(
    tables: Collection[Table], datasets: Collection[Dataset], taken: Collection[str], names: DatasetNames
) -> list[_Move]:
    """Return the moves of datasets whose tables have other names now, each to a location that is free by then.

    Tables that exchange their names, or take the one of another, are not among them.

    Args:
        tables: The tables.
        datasets: The latest dataset of each table, and of each history.
        taken: The directories of all datasets.
        names: The names of datasets.
    """
    by_oid = {table.relation_oid: table for table in tables if not table.dropped}
    wanted, found, taken = list[_Move](), list[_Move](), {*taken}
    for dataset in datasets:
        table = by_oid.get(dataset.version.oid)
        directory = table and names.directory(table, dataset.is_history)
        if table is not None and directory and directory != dataset.directory:
            wanted.append(_Move(dataset, Moving(dataset.directory, directory, table.qualified)))
    while free := [move for move in wanted if move.moving.after not in taken]:
        found.append(free[0])
        wanted.remove(free[0])
        taken ^= {free[0].moving.before, free[0].moving.after}
    return found


def _complete_move(spark: SparkSession, sink: Sink, move: _Move) -> Dataset:
    """Have the note of a dataset follow its data; return the dataset."""
    moved = sink.moved(move.dataset, move.moving.after)
    moved = replace(moved, version=replace(moved.version, table=move.moving.table))
    copy_missing(sink.warehouse, move.dataset, moved)
    sink.warehouse.write_note(moved)
    sink.warehouse.remove_note(move.dataset.directory)
    _clear(spark, sink, move.dataset)
    return moved


def _settle_move(
    spark: SparkSession, sink: Sink, moving: Moving, datasets: Mapping[str, Dataset]
) -> dict[str, Dataset]:
    """Complete or undo a move that was interrupted; return the datasets by directory."""
    found, there = dict(datasets), datasets.get(moving.after)
    # A later move may have brought another table into the old location.
    here = datasets.get(moving.before)
    if here is not None and there is not None and here.version.oid != there.version.oid:
        return found
    if there is None and here is not None:
        if not sink.has_moved(spark, here, moving.after):
            _clear(spark, sink, replace(here, directory=moving.after))
            return found
        del found[moving.before]
        return found | {moving.after: _complete_move(spark, sink, _Move(here, moving))}
    if there is not None:
        sink.warehouse.remove_note(moving.before)
        _clear(spark, sink, replace(there, directory=moving.before))
        found.pop(moving.before, None)
    return found


def _clear(spark: SparkSession, sink: Sink, dataset: Dataset) -> None:
    sink.clear_moved(spark, dataset)
    forget_missing(sink.warehouse, dataset)
