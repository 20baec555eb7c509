"""What a batch has to do for each table, in which groups, and how far it has come.

A table is brought up to date by its changes, or written as a whole: ``BatchPlanner`` decides from its versions before
and now. The end of a batch is set by limits (``micro_batches.Limits``); but a table that is written as a whole needs
everything that the log has of it. After an ALTER of many tables, all of that would be staged at once. So the tables of
a batch are taken in groups, each of about as many bytes as a batch may have; a larger table is a group of its own. Each
table is noted when it is done, so that an interrupted batch resumes with the others.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from pgoutput_construct.changelog._index.segment_sizes import Sizes
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.lake._directories import HISTORY_SUFFIX
from pgoutput_construct.lake._notes import Dataset
from pgoutput_construct.lake._versions import NOWHERE, Version, VersionShape
from pgoutput_construct.spark._log_view.replicated_tables import Table
from pgoutput_construct.spark._open_log import OpenLog
from pgoutput_construct.spark._replicate.column_layout import ColumnLayout
from pgoutput_construct.spark._replicate.dataset_names import DatasetNames
from pgoutput_construct.spark._replicate.staging import ChangeRequest
from pgoutput_construct.spark._replicate.warehouse_log import Coverage
from pgoutput_construct.wire.messages import Insert


class UpdateMode(StrEnum):
    """How a table is brought up to date."""

    CHANGED = "changed"
    """By the changes since its last version."""
    WRITTEN = "written"
    """As a whole, from the log: ``TableStep.reason`` says why."""


@dataclass(frozen=True)
class TableStep:
    """What a batch does for one table."""

    dataset: Dataset
    """The dataset as it will be."""
    before: Dataset | None
    """The dataset that has its rows now; in another directory if the table was renamed."""
    replaced: Dataset | None
    """The present dataset in the directory of ``dataset``; another table's if that gave up the name."""
    mode: UpdateMode
    reason: str = ""
    """Why the dataset is written as a whole."""
    has_defaults: bool = False
    """Whether columns were added with a default, which changes do not say of older rows."""

    @property
    def table(self) -> str:
        """The name of the table as SQL writes it."""
        return self.dataset.version.table

    @property
    def what(self) -> str:
        """What is written, for messages."""
        return f"the history of {self.table}" if self.dataset.is_history else self.table

    @property
    def oid(self) -> int:
        """The OID of the table."""
        return self.dataset.version.oid

    @property
    def has_new_copy(self) -> bool:
        """Whether the state of the table begins with another copy than its present rows."""
        return self.before is not None and self.before.version.shape.copy != self.dataset.version.shape.copy

    @property
    def displaced(self) -> Dataset | None:
        """The dataset of another table that this one replaces."""
        return None if self.replaced is None or self.replaced.version.oid == self.oid else self.replaced

    @property
    def renamed(self) -> Mapping[str, str]:
        """The new names of columns that were renamed, by their present names."""
        return {} if self.before is None else self.before.version.shape.renamed_in(self.dataset.version.shape)

    @property
    def after(self) -> int:
        """Lower bound (exclusive) of the seqs to apply; -1 for a full rebuild."""
        is_rebuilt = self.has_new_copy if self.dataset.is_history else self.mode is UpdateMode.WRITTEN
        return -1 if self.before is None or is_rebuilt else self.before.version.seq

    @property
    def request(self) -> ChangeRequest:
        """The changes that the step needs."""
        return ChangeRequest(self.table, self.after)

    @property
    def continued(self) -> Dataset | None:
        """The dataset whose rows changes are applied to; None where it is written as a whole."""
        return self.before if self.mode is UpdateMode.CHANGED else None

    def continuing(self, before: Dataset) -> "TableStep":
        """Return the step after something else than rows of the dataset before has changed."""
        return replace(self, before=before, dataset=replace(self.dataset, details=before.details))


@dataclass(frozen=True)
class BatchPlanner:
    """Decides what a batch does for tables."""

    datasets: Mapping[str, Dataset]
    """The present datasets by their directories."""
    coverage: Coverage
    """What the log still has."""
    seq: int
    """Its end."""
    resync: Collection[str]
    """The tables to write from scratch."""
    layout: ColumnLayout
    """Which columns tables have in addition to their own."""

    @cached_property
    def _by_oid(self) -> dict[tuple[int, bool], Dataset]:
        """The datasets of the present log, by OID, and by whether they are histories."""
        is_foreign = self.coverage.progress.is_foreign
        return latest_datasets(each for each in self.datasets.values() if not is_foreign(each.version))

    def step(self, table: Table, is_history: bool = False) -> TableStep | None:
        """Return what to do for a table of the log, or for its history; None if it is up to date.

        A table that is written from scratch is made from everything that the log has of it. So is its history, unless
        the log has a copy that the history does not have: then it is continued with the copy.
        """
        if table.dropped:
            return None
        before = self._by_oid.get((table.relation_oid, is_history))
        version = self._version(table)
        if not is_history:
            version = _with_added(version, self.layout.kept_of(table, before))
        has_gap = before is not None and self.coverage.has_gap(before.version)
        if before is not None:
            version = self.coverage.next_version(before.version, version)
            version = replace(version, shape=version.shape.continuing(before.version.shape))
        directory = DatasetNames.of(self.coverage.progress).directory(table, is_history)
        dataset = Dataset(directory, version, before.details if before else {}, is_history)
        mode, reason = _mode(before, dataset)
        if has_gap:
            mode, reason = UpdateMode.WRITTEN, "changes were pruned before they were applied"
        if table.qualified in self.resync:
            mode, reason = UpdateMode.WRITTEN, "--resync"
            if is_history and before is not None and before.version.shape.copy == version.shape.copy:
                before = None
        if is_history and before is not None and before.version.shape.has_other_rules(version.shape):
            before = None  # the rows before would keep what is to be masked
        if mode is None:
            return None
        if is_history and before is not None:
            _check_names(before.version, version)
        if not is_history and mode is UpdateMode.WRITTEN:
            version = _with_added(version, self.layout.added(table))
            dataset = replace(dataset, version=version)
        is_changed = mode is UpdateMode.CHANGED and before is not None
        added = before.version.shape.added_in(version.shape) if is_changed and before is not None else ()
        has_defaults = not table.defaults.keys().isdisjoint(added)
        return TableStep(dataset, before, self.datasets.get(directory), mode, reason, has_defaults)

    def _version(self, table: Table) -> Version:
        """Return the version of a table as the log has it."""
        last = max((each.last for each in table.identities), default=NOWHERE)
        batch = self.coverage.progress.batch + 1
        return Version(table.qualified, table.relation_oid, batch, self.seq, last, shape_of(table))


def obsolete_datasets(
    tables: Collection[Table],
    datasets: Mapping[str, Dataset],
    keep_dropped: bool,
    names: DatasetNames,
    gone: Collection[int] = (),
) -> Iterator[Dataset]:
    """Yield the datasets of tables that have another name now, or were dropped; histories of dropped ones stay.

    The dataset of a table whose name another one has now is replaced by it.

    Args:
        tables: The tables.
        datasets: The datasets by their directories.
        keep_dropped: Whether those of dropped tables stay.
        names: The names of datasets.
        gone: The OIDs of dropped tables, also of such that could not be read.
    """
    by_oid = {oid: table for table in tables for oid in table.relation_oids}
    for dataset in datasets.values():
        oid, stays = dataset.version.oid, dataset.is_history or keep_dropped
        table = by_oid.get(oid)
        if table is None:
            if oid in gone and not stays:
                yield dataset
            continue
        is_renamed = names.directory(table, dataset.is_history) != dataset.directory
        if table.is_removed(oid):
            if (table.dropped or is_renamed) and not stays:
                yield dataset
        elif is_renamed:
            yield dataset


def latest_datasets(datasets: Iterable[Dataset]) -> dict[tuple[int, bool], Dataset]:
    """Return the datasets of tables by OID, and by whether they are histories.

    A batch that is interrupted while tables exchange their names can leave two of a table: the later one counts.
    """
    ordered = sorted(datasets, key=lambda each: each.version.batch)
    return {(each.version.oid, each.is_history): each for each in ordered}


def aside_directory(history: Dataset) -> str:
    """Return the directory of a copy of a history, which sorts before that of the history.

    It contains the OID: a table whose own history was copied already may give up the same name.
    """
    return f"{history.directory.removesuffix(HISTORY_SUFFIX)}.aside{history.version.oid}{HISTORY_SUFFIX}"


def _mode(before: Dataset | None, dataset: Dataset) -> tuple[UpdateMode | None, str]:
    """Return how a dataset is brought up to date, None if it is, and why as a whole."""
    version = dataset.version
    if before is None:
        return UpdateMode.WRITTEN, "it is new"
    if before.directory != dataset.directory:
        return UpdateMode.WRITTEN, f"{before.version.table} was renamed, and could not be moved"
    if reason := before.version.shape.obstacle_to(version.shape):
        return UpdateMode.WRITTEN, reason
    if before.version.last > version.last:
        return UpdateMode.WRITTEN, "the server has another history"
    was = before.version
    is_same = (was.last, was.shape.current, was.table) == (version.last, version.shape.current, version.table)
    is_same = is_same and not was.shape.widened_in(version.shape)
    return (None if is_same else UpdateMode.CHANGED), ""


def _with_added(version: Version, added: tuple[str, ...] | None) -> Version:
    return replace(version, shape=replace(version.shape, added=added))


def _check_names(before: Version, version: Version) -> None:
    """Raise ChangeLogError for a history with columns whose numbers the log did not have when they were stored."""
    was, shape = before.shape, version.shape
    own = (name for name in was.current if name not in was.copied)
    unknown = [name for name in own if name not in was.numbers and name not in shape.columns]
    if unknown and shape.numbers and was.copy == shape.copy:
        raise ChangeLogError(
            f"{version.table}: its history has columns that were renamed or dropped since, but not their numbers: "
            f"{', '.join(map(repr, unknown))}; write the table from scratch: --resync {version.table}"
        )


_INSERT_TAG: Final = ord(Insert.TAG)
"""The tag of inserts; rows of a copy are stored as such."""
BATCH_BYTES: Final = 1 << 30
"""The default limit of the bytes of payloads of a batch."""


@dataclass(frozen=True)
class BatchProgress:
    """How far a batch has come."""

    batch: int
    """Its number."""
    tables: int
    """How many tables, and histories, it brings up to date."""
    done: int = 0
    """How many of them are done."""
    rows: int = 0
    """About how many changes and copied rows they need."""
    done_rows: int = 0
    """How many of these are in the tables."""
    part: float = 0.0
    """The end of the batch as a part of the log at the beginning: from 0 to 1."""


@dataclass
class Reporter:
    """Deals out the tables of a batch, and reports its progress."""

    report: Callable[[BatchProgress], None] = lambda progress: None
    limit: int | None = BATCH_BYTES
    """Bytes of payloads of the tables that are brought up to date at a time; None for no limit."""
    target: int = -1
    """The seq that the batches lead to."""
    _progress: BatchProgress = BatchProgress(0, 0)
    _estimates: dict[ChangeRequest, "_WorkEstimate"] = field(default_factory=dict)
    _working: threading.Lock = field(default_factory=threading.Lock)

    def groups(self, log: OpenLog, batch: int, steps: Sequence[TableStep]) -> Iterator[list[TableStep]]:
        """Yield the steps in groups within the limit; the changes of a table and its history are read once."""
        self._estimates = _estimate_work(log, steps)
        part = (log.opened.as_of + 1) / (max(self.target, log.opened.as_of) + 1)
        total = self.rows_of(steps)
        self._progress = BatchProgress(batch, len(steps), rows=total, part=part)
        self.report(self._progress)
        group: list[TableStep] = []
        size = 0.0
        for key, together in _by_request(steps):
            if group and self.limit is not None and size + self._estimates[key].bytes > self.limit:
                yield group
                group, size = [], 0.0
            group += together
            size += self._estimates[key].bytes
        yield group

    def rows_of(self, steps: Iterable[TableStep]) -> int:
        """Estimate how many rows steps of the batch need."""
        return sum(self._estimates[step.request].rows for step in steps)

    def has_inserts_alone(self, step: TableStep) -> bool:
        """Return whether all that a step needs are inserts and copied rows, as far as the index of the log knows."""
        return self._estimates[step.request].has_inserts_alone

    def report_done(self, steps: Iterable[TableStep]) -> None:
        """Report that steps are done."""
        with self._working:
            done = list(steps)
            rows = self.rows_of(done)
            so_far = self._progress
            self._progress = replace(so_far, done=so_far.done + len(done), done_rows=so_far.done_rows + rows)
            if done:
                self.report(self._progress)


def _by_request(steps: Iterable[TableStep]) -> Iterator[tuple[ChangeRequest, list[TableStep]]]:
    """Yield the steps that need the same changes."""
    found: dict[ChangeRequest, list[TableStep]] = {}
    for step in steps:
        found.setdefault(step.request, []).append(step)
    yield from found.items()


class _WorkEstimate(NamedTuple):
    """What a table needs of the log, estimated."""

    rows: int
    bytes: float
    """Bytes of the payloads of these rows, whose length is taken as the average of their segments."""
    has_inserts_alone: bool
    """Whether they are all inserts, and copied rows."""


def _estimate_work(log: OpenLog, steps: Iterable[TableStep]) -> dict[ChangeRequest, _WorkEstimate]:
    """Estimate the changes that steps need: the index counts the rows of tables."""
    runs, segment_indexes = log.opened.index.located("rows")
    oids, counts, lasts, tags = (runs[name].to_numpy() for name in ("oid", "count", "last_seq", "tag"))
    # Messages that are no rows are short: all bytes of a segment are those of its rows.
    all_rows = np.bincount(segment_indexes, counts, len(log.opened.index))
    sizes = (
        counts
        * np.diff(Sizes.from_segments(log.log.segments[: len(log.opened.index)]).bytes)[segment_indexes]
        / all_rows[segment_indexes]
    )
    order = np.argsort(oids, kind="stable")
    oids, counts, lasts, tags, sizes = (each[order] for each in (oids, counts, lasts, tags, sizes))
    found = {}
    for step in steps:
        first, end = np.searchsorted(oids, [step.dataset.version.oid, step.dataset.version.oid + 1]).tolist()
        later = lasts[first:end] > step.after
        found[step.request] = _WorkEstimate(
            int(counts[first:end][later].sum()),
            float(sizes[first:end][later].sum()),
            bool((tags[first:end][later] == _INSERT_TAG).all()),
        )
    return found


def shape_of(table: Table) -> VersionShape:
    """Return the shape of a table as the log has it."""
    columns = {field.name: str(field.type) for field in table.columns}
    copy = table.base.copy.seq if table.base else None
    identity = table.key_columns, table.replica_identity
    return VersionShape(columns, table.current, *identity, copy, table.numbers, table.rules, copied=tuple(table.copied))
