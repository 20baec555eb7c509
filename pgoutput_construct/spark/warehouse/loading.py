"""How much of a batch is brought into the tables at a time, and how far it has come.

Where a batch ends is decided by the log (``Limits``). A table that is written as a whole needs all that the log has of
it, however: many of them in one batch, such as after a change of all tables, would all be stored at once. So
the tables of a batch are taken in groups, each of about as many bytes as a batch may have; a table that alone has more
is a group. What is done is noted table by table, so that a batch that was interrupted resumes with those that are left.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np

from pgoutput_construct.changelog._index.segment_sizes import Sizes
from pgoutput_construct.spark.log_view import OpenLog
from pgoutput_construct.spark.warehouse.steps import Step

__all__ = ["BATCH_BYTES", "BatchProgress", "Reporter"]

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
    _needs: dict[tuple[str, int], "_Need"] = field(default_factory=dict)
    _working: threading.Lock = field(default_factory=threading.Lock)

    def groups(self, log: OpenLog, batch: int, steps: Sequence[Step]) -> Iterator[list[Step]]:
        """Yield the steps of a batch in groups within the limit; what a table and its history need is read once."""
        self._needs = _needs_of(log, steps)
        part = (log.opened.as_of + 1) / (max(self.target, log.opened.as_of) + 1)
        total = self.rows_of(steps)
        self._progress = BatchProgress(batch, len(steps), rows=total, part=part)
        self.report(self._progress)
        group: list[Step] = []
        size = 0.0
        for wanted, together in _together(steps):
            if group and self.limit is not None and size + self._needs[wanted].bytes > self.limit:
                yield group
                group, size = [], 0.0
            group += together
            size += self._needs[wanted].bytes
        yield group

    def rows_of(self, steps: Iterable[Step]) -> int:
        """Return about how many rows steps of the batch are of."""
        return sum(self._needs[_wanted(step)].rows for step in steps)

    def did(self, steps: Iterable[Step]) -> None:
        """Report that steps are done."""
        with self._working:
            done = list(steps)
            rows = self.rows_of(done)
            so_far = self._progress
            self._progress = replace(so_far, done=so_far.done + len(done), done_rows=so_far.done_rows + rows)
            if done:
                self.report(self._progress)


def _wanted(step: Step) -> tuple[str, int]:
    return step.table, step.after


def _together(steps: Iterable[Step]) -> Iterator[tuple[tuple[str, int], list[Step]]]:
    """Yield the steps that need the same changes."""
    found: dict[tuple[str, int], list[Step]] = {}
    for step in steps:
        found.setdefault(_wanted(step), []).append(step)
    yield from found.items()


class _Need(NamedTuple):
    """What a table needs of the log, about."""

    rows: int
    bytes: float
    """Of the payloads of these rows, which are as long as those of their segments are on average."""


def _needs_of(log: OpenLog, steps: Iterable[Step]) -> dict[tuple[str, int], _Need]:
    """Return what steps need, as the index counts it: the rows of their tables after their seqs."""
    runs, places = log.opened.index.located("rows")
    oids, counts, lasts = (runs[name].to_numpy() for name in ("oid", "count", "last_seq"))
    # Messages that are no rows are short: all bytes of a segment are those of its rows.
    all_rows = np.bincount(places, counts, len(log.opened.index))
    sizes = (
        counts
        * np.diff(Sizes.from_segments(log.log.segments[: len(log.opened.index)]).bytes)[places]
        / all_rows[places]
    )
    order = np.argsort(oids, kind="stable")
    oids, counts, lasts, sizes = oids[order], counts[order], lasts[order], sizes[order]
    found = {}
    for step in steps:
        first, end = np.searchsorted(oids, [step.dataset.version.oid, step.dataset.version.oid + 1]).tolist()
        later = lasts[first:end] > step.after
        found[_wanted(step)] = _Need(int(counts[first:end][later].sum()), float(sizes[first:end][later].sum()))
    return found
