"""The transactions that ended in consecutive segments: they stay where they are until they are asked for."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from pgoutput_construct.changelog.index import COLUMNS

__all__ = ["LISTS", "Ended", "Held", "Source", "Stretch"]

LISTS: Final = pa.list_(COLUMNS["transactions"])
"""The transactions of each segment."""


class Source(Protocol):
    """What has the transactions of some segments."""

    def read(self, first: int, end: int) -> pa.ChunkedArray:
        """Return the LISTS of its segments from the ``first`` to the one before ``end``."""


class Stretch(NamedTuple):
    """Consecutive segments of which one source has the transactions."""

    source: Source
    first: int
    end: int


@dataclass(frozen=True)
class Held:
    """Transactions that are in memory."""

    column: pa.ChunkedArray

    def read(self, first: int, end: int) -> pa.ChunkedArray:
        """Return those of some segments."""
        return self.column[first:end]


@dataclass(frozen=True)
class Ended:
    """The transactions of segments, a list each."""

    stretches: tuple[Stretch, ...] = ()

    @classmethod
    def of(cls, source: Source, count: int) -> "Ended":
        """Return all that a source has: the transactions of so many segments."""
        return cls((Stretch(source, 0, count),))

    @classmethod
    def concat(cls, parts: Iterable["Ended"]) -> "Ended":
        """Put the lists of segments below one another."""
        return cls(tuple(stretch for part in parts for stretch in part.stretches))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @cached_property
    def _ends(self) -> list[int]:
        ends: list[int] = np.cumsum([end - first for _, first, end in self.stretches]).astype(int).tolist()
        return ends

    def __getitem__(self, of: slice) -> "Ended":
        first, end, _ = of.indices(len(self))
        found, number = list[Stretch](), bisect_right(self._ends, first)
        while first < end:
            source, _, last = self.stretches[number]
            offset = last - self._ends[number]  # from places here to those of the source
            until = min(end, self._ends[number])
            found.append(Stretch(source, first + offset, until + offset))
            first, number = until, number + 1
        return Ended(tuple(found))

    def lists(self) -> pa.ChunkedArray:
        """Return them all."""
        parts = (source.read(first, end) for source, first, end in self.stretches)
        return pa.chunked_array([chunk for part in parts for chunk in part.chunks], LISTS)
