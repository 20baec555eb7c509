"""What a batch has to do: which tables were touched, and whether their changes are enough to bring them up to date."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np

from pgoutput_construct.changelog._upkeep.sizes import Sizes
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark._log_view.replicated_tables import Table
from pgoutput_construct.spark._open_log import OpenLog
from pgoutput_construct.spark._replicate.warehouse_log import Coverage
from pgoutput_construct.spark._replicate.warehouse_notes import HISTORY_SUFFIX, Dataset, Version

__all__ = [
    "BATCH_BYTES",
    "BatchPlanner",
    "BatchProgress",
    "Reporter",
    "TableStep",
    "UpdateMode",
    "aside_directory",
    "directory_of",
    "latest_datasets",
    "obsolete_datasets",
]


class UpdateMode(StrEnum):
    """How a table is brought up to date."""

    CHANGED = "changed"
    """By the changes since its last version."""
    WRITTEN = "written"
    """As a whole, from the log: it is new, was copied again, or altered."""


@dataclass(frozen=True)
class TableStep:
    """One table of a batch."""

    dataset: Dataset
    """What is to be."""
    before: Dataset | None
    """What its rows are now; in another directory when the table was renamed."""
    replaced: Dataset | None
    """What stands in the directory of ``dataset`` now; another table's when that gave up its name."""
    mode: UpdateMode
    has_defaults: bool = False
    """Whether columns were added with a default, which rows have that no change is of."""

    @property
    def table(self) -> str:
        """The name of the table as SQL writes it."""
        return self.dataset.version.table

    @property
    def oid(self) -> int:
        """The OID of the table."""
        return self.dataset.version.oid

    @property
    def has_new_copy(self) -> bool:
        """Whether the state of the table begins with another copy than that of its rows."""
        return self.before is not None and self.before.version.shape.copy != self.dataset.version.shape.copy

    @property
    def displaced(self) -> Dataset | None:
        """The dataset of another table whose place it takes."""
        return None if self.replaced is None or self.replaced.version.oid == self.oid else self.replaced

    @property
    def renamed(self) -> Mapping[str, str]:
        """What columns of the rows are to be called, by their names now, where these are others."""
        return {} if self.before is None else self.before.version.shape.renamed_in(self.dataset.version.shape)

    @property
    def after(self) -> int:
        """The changes that ended after this seq lead to what is to be; with those of a history, to all of it."""
        is_rebuilt = self.has_new_copy if self.dataset.is_history else self.mode is UpdateMode.WRITTEN
        return -1 if self.before is None or is_rebuilt else self.before.version.seq


class BatchPlanner:
    """What is to be done for tables, given the datasets that are there, by their directories."""

    def __init__(self, datasets: Mapping[str, Dataset], coverage: Coverage, seq: int, resync: Collection[str]) -> None:
        """``coverage`` is what the log still has, ``seq`` where it ends; ``resync`` are begun from scratch."""
        self._datasets = datasets
        mine = (each for each in datasets.values() if not coverage.progress.is_foreign(each.version))
        self._by_oid = latest_datasets(mine)
        self._coverage = coverage
        self._seq = seq
        self._resync = resync

    def step(self, table: Table, is_history: bool = False) -> TableStep | None:
        """Return what is to be done for a table of the log, or for its history; None where it is as it was.

        A table that is begun from scratch is written from all that the log has of it. Its history is, too, unless the
        log has a copy which that has not: then the history is continued with the copy.
        """
        if table.dropped:
            return None
        version, before = self._version(table), self._by_oid.get((table.relation_oid, is_history))
        has_gap = before is not None and self._coverage.has_gap(before.version)
        if before is not None:
            version = self._coverage.next_version(before.version, version)
            version = replace(version, shape=version.shape.continuing(before.version.shape))
        mode = UpdateMode.WRITTEN if has_gap else _mode(before, version)
        directory = directory_of(table, is_history)
        details, replaced = before.details if before else {}, self._datasets.get(directory)
        if table.qualified in self._resync:
            mode = UpdateMode.WRITTEN
            if is_history and before is not None and before.version.shape.copy == version.shape.copy:
                before = None
        if mode is None:
            return None
        if is_history and before is not None:
            _check_names(before.version, version)
        added = _added_columns(before, version) if mode is UpdateMode.CHANGED else ()
        has_defaults = not table.defaults.keys().isdisjoint(added or ())
        return TableStep(Dataset(directory, version, details, is_history), before, replaced, mode, has_defaults)

    def _version(self, table: Table) -> Version:
        return Version.from_table(table, self._coverage.progress.batch + 1, self._seq)


def obsolete_datasets(
    tables: Collection[Table], datasets: Mapping[str, Dataset], keep_dropped: bool
) -> Iterator[Dataset]:
    """Yield the datasets of tables that have another name now, or are no more; the histories of these stay.

    That of a table whose name another one has now is replaced by it.
    """
    by_oid = {oid: table for table in tables for oid in table.relation_oids}
    for dataset in datasets.values():
        table = by_oid.get(dataset.version.oid)
        if table is None:
            continue
        is_renamed = directory_of(table, dataset.is_history) != dataset.directory
        if table.is_removed(dataset.version.oid):
            if (table.dropped or is_renamed) and not (dataset.is_history or keep_dropped):
                yield dataset
        elif is_renamed:
            yield dataset


def latest_datasets(datasets: Iterable[Dataset]) -> dict[tuple[int, bool], Dataset]:
    """Return the datasets of tables by OID, and by whether they are histories.

    Of two, which a batch leaves that is interrupted while tables exchange their names, it is the one written later.
    """
    ordered = sorted(datasets, key=lambda each: each.version.batch)
    return {(each.version.oid, each.is_history): each for each in ordered}


def directory_of(table: Table, is_history: bool) -> str:
    """Return the name of the directory of a table's dataset, or of its history's."""
    return f"{table.directory}{HISTORY_SUFFIX if is_history else ''}"


def aside_directory(history: Dataset) -> str:
    """Return the directory of a copy of a history; sorted, it comes before that.

    The OID is part of it: a table whose own history stands aside already may give up the same name.
    """
    return f"{history.directory.removesuffix(HISTORY_SUFFIX)}.aside{history.version.oid}{HISTORY_SUFFIX}"


def _mode(before: Dataset | None, version: Version) -> UpdateMode | None:
    added = _added_columns(before, version)
    if before is None or before.version.table != version.table or added is None:
        return UpdateMode.WRITTEN
    if before.version.last > version.last:
        return UpdateMode.WRITTEN  # another history of the server
    is_same = before.version.last == version.last and before.version.shape.current == version.shape.current
    return None if is_same else UpdateMode.CHANGED


def _check_names(before: Version, version: Version) -> None:
    """Raise ChangeLogError for a history with columns of which an earlier version did not note what they are."""
    was, shape = before.shape, version.shape
    unknown = [name for name in was.current if name not in was.numbers and name not in shape.columns]
    if unknown and shape.numbers and was.copy == shape.copy:
        raise ChangeLogError(
            f"{version.table}: its history has columns that were renamed or dropped since, and does not tell which: "
            f"{', '.join(map(repr, unknown))}; begin the table from scratch: --resync {version.table}"
        )


def _added_columns(before: Dataset | None, version: Version) -> tuple[str, ...] | None:
    return before.version.shape.added_in(version.shape) if before is not None else None


BATCH_BYTES: Final = 1 << 30
"""How many bytes of payloads a batch has, unless another limit is given."""


@dataclass(frozen=True)
class BatchProgress:
    """How far a batch has come."""

    batch: int
    """Its number."""
    tables: int
    """How many tables, and histories, it brings up to date."""
    done: int = 0
    """How many of them it has brought up to date."""
    rows: int = 0
    """About how many changes and copied rows these are of, in all tables."""
    done_rows: int = 0
    """How many of them are in the tables."""
    part: float = 0.0
    """The part of the log that the batch leads to, of all that was there when it began: from 0 to 1."""


@dataclass
class Reporter:
    """Deals out the tables of a batch, and says how far it has come."""

    report: Callable[[BatchProgress], None] = lambda progress: None
    limit: int | None = BATCH_BYTES
    """Bytes of payloads of the tables that are brought up to date at a time; None: all at once."""
    target: int = -1
    """The seq that the batches lead to."""
    _progress: BatchProgress = BatchProgress(0, 0)
    _needs: dict[tuple[str, int], "_WorkEstimate"] = field(default_factory=dict)
    _working: threading.Lock = field(default_factory=threading.Lock)

    def groups(self, log: OpenLog, batch: int, steps: Sequence[TableStep]) -> Iterator[list[TableStep]]:
        """Yield the steps of a batch in groups within the limit; what a table and its history need is read once."""
        self._needs = _estimate_work(log, steps)
        part = (log.opened.as_of + 1) / (max(self.target, log.opened.as_of) + 1)
        total = self.rows_of(steps)
        self._progress = BatchProgress(batch, len(steps), rows=total, part=part)
        self.report(self._progress)
        group: list[TableStep] = []
        size = 0.0
        for wanted, together in _by_request(steps):
            if group and self.limit is not None and size + self._needs[wanted].bytes > self.limit:
                yield group
                group, size = [], 0.0
            group += together
            size += self._needs[wanted].bytes
        yield group

    def rows_of(self, steps: Iterable[TableStep]) -> int:
        """Return about how many rows steps of the batch are of."""
        return sum(self._needs[_request_key(step)].rows for step in steps)

    def report_done(self, steps: Iterable[TableStep]) -> None:
        """Report that steps are done."""
        with self._working:
            done = list(steps)
            rows = self.rows_of(done)
            so_far = self._progress
            self._progress = replace(so_far, done=so_far.done + len(done), done_rows=so_far.done_rows + rows)
            if done:
                self.report(self._progress)


def _request_key(step: TableStep) -> tuple[str, int]:
    return step.table, step.after


def _by_request(steps: Iterable[TableStep]) -> Iterator[tuple[tuple[str, int], list[TableStep]]]:
    """Yield the steps that need the same changes."""
    found: dict[tuple[str, int], list[TableStep]] = {}
    for step in steps:
        found.setdefault(_request_key(step), []).append(step)
    yield from found.items()


class _WorkEstimate(NamedTuple):
    """What a table needs of the log, about."""

    rows: int
    bytes: float
    """Of the payloads of these rows, which are as long as those of their segments are on average."""


def _estimate_work(log: OpenLog, steps: Iterable[TableStep]) -> dict[tuple[str, int], _WorkEstimate]:
    """Return what steps need, as the index counts it: the rows of their tables after their seqs."""
    runs, places = log.opened.index.located("rows")
    oids, counts, lasts = (runs[name].to_numpy() for name in ("oid", "count", "last_seq"))
    # Messages that are no rows are short: all bytes of a segment are those of its rows.
    all_rows = np.bincount(places, counts, len(log.opened.index))
    sizes = counts * np.diff(Sizes.of(log.log.segments[: len(log.opened.index)]).bytes)[places] / all_rows[places]
    order = np.argsort(oids, kind="stable")
    oids, counts, lasts, sizes = oids[order], counts[order], lasts[order], sizes[order]
    found = {}
    for step in steps:
        first, end = np.searchsorted(oids, [step.dataset.version.oid, step.dataset.version.oid + 1]).tolist()
        later = lasts[first:end] > step.after
        found[_request_key(step)] = _WorkEstimate(
            int(counts[first:end][later].sum()), float(sizes[first:end][later].sum())
        )
    return found
