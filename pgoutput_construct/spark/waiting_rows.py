"""Rows that are there and that equal ones keep from going: they wait on the disk of the executor.

Nothing tells equal rows apart but their order: the first that came is the first that goes. So of each run of equal rows
those that come first are all that a number of changes can take away, if there are as many of them as changes. The rest
is in files, in order, and comes back as these are gone. Rows that were described with other columns, or that came after
a truncate, are not equal in this sense.
"""

import os
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from pgoutput_construct.changelog._segment.block import Flags, Numbers
from pgoutput_construct.spark.change_frames import PLACE, SIDE, TURN

__all__ = ["WaitingRows"]

_ORDER: Final = [(name, "ascending") for name in (TURN, *PLACE, SIDE)]


class WaitingRows:
    """The rows of one component that wait."""

    def __init__(self, equal: Callable[[pa.Table], Numbers], most: int) -> None:
        """``equal`` gives each row a number, equal ones the same; the first ``most`` of these need not wait."""
        self._equal, self._most = equal, most
        self._examples = list[pa.Table]()
        self._files = list[deque[Path]]()
        """The files of each run of equal rows, as its example."""
        self._written = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def put(self, rows: pa.Table, is_new: Flags) -> pa.Table:
        """Let rows wait, and those that are ``is_new`` where equal ones do; return the others."""
        numbers, found = self._numbered(rows)
        runs = {number: run for run, number in enumerate(found.tolist())}
        # Those that are not new came before all that wait.
        is_last = np.isin(numbers, found[[bool(files) for files in self._files]]) & is_new
        waits = is_last | (_ranks(numbers) >= self._most)
        for number in np.unique(numbers[waits]).tolist():
            mine = waits & (numbers == number)
            if number not in runs:
                runs[number] = len(self._files)
                self._examples.append(rows.slice(int(np.flatnonzero(mine)[0]), 1))
                self._files.append(deque())
            files = self._files[runs[number]]
            files.extendleft(reversed(self._write(rows.filter(pa.array(mine & ~is_last)))))
            files.extend(self._write(rows.filter(pa.array(mine & is_last))))
        return rows.filter(pa.array(~waits))

    def filled(self, rows: pa.Table, least: int) -> pa.Table:
        """Return rows and, where fewer than ``least`` of them are equal, those that wait for them."""
        if not any(self._files):
            return rows
        numbers, runs = self._numbered(rows)
        more = list[pa.Table]()
        for run, files in zip(runs.tolist(), self._files, strict=True):
            there = int(np.count_nonzero(numbers == run))
            while there < least and files:
                more.append(_read(files.popleft()))
                there += len(more[-1])
        return pa.concat_tables([rows, *more]).sort_by(_ORDER) if more else rows

    def rest(self) -> Iterator[pa.Table]:
        """Yield the rows that still wait; from then on none does."""
        for files in self._files:
            while files:
                yield _read(files.popleft())
        self._examples, self._files = [], []

    def close(self) -> None:
        """Remove the files."""
        if self._folder is not None:
            self._folder.cleanup()

    def _numbered(self, rows: pa.Table) -> tuple[Numbers, Numbers]:
        """Return the numbers of rows, and those of the runs that wait."""
        count = len(self._examples)
        numbers = self._equal(pa.concat_tables([*self._examples, rows]).combine_chunks())
        return numbers[count:], numbers[:count]

    def _write(self, rows: pa.Table) -> list[Path]:
        """Write rows into files, none of which has more than come back at once."""
        if self._folder is None:
            # Where Spark has what it spills, too; it removes that of a worker which was killed.
            local = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
            self._folder = tempfile.TemporaryDirectory(prefix="waiting-", dir=local or None)
        paths = list[Path]()
        for begin in range(0, len(rows), max(self._most, 1)):
            paths.append(Path(self._folder.name, str(self._written)))
            self._written += 1
            with pa.OSFile(str(paths[-1]), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
                writer.write_table(rows.slice(begin, max(self._most, 1)))
        return paths


def _read(path: Path) -> pa.Table:
    with pa.OSFile(str(path), "rb") as file:
        rows = pa.ipc.open_file(file).read_all()
    path.unlink()
    return rows


def _ranks(numbers: Numbers) -> Numbers:
    """Return how many of the same number are before each."""
    order = np.argsort(numbers, kind="stable")
    ranks, ordered = np.empty(len(numbers), np.int64), numbers[order]
    ranks[order] = np.arange(len(numbers)) - np.searchsorted(ordered, ordered)
    return ranks
