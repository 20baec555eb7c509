"""A log at one moment: its segments in order, each described when it is asked for; manifests know of most."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, overload

import numpy as np

from pgoutput_construct.changelog.block import Numbers
from pgoutput_construct.changelog.footer import Segment
from pgoutput_construct.changelog.manifest import Manifest
from pgoutput_construct.changelog.store import LogStore

__all__ = ["NO_MANIFEST", "Listing", "Run"]

NO_MANIFEST = -1
"""In place of a manifest's number: the segment's own footer was read."""


class Run(NamedTuple):
    """Consecutive segments of which one manifest knows."""

    manifest: Manifest
    rows: slice


@dataclass(frozen=True, eq=False, repr=False)
class Listing(Sequence[Segment]):
    """Consecutive segments of a log, without a gap."""

    store: LogStore
    first_seqs: Numbers
    """The seq of the first row of each segment."""
    last_seqs: Numbers
    """The seq of the last row of each."""
    manifests: tuple[Manifest, ...]
    """Those that know of any."""
    numbers: Numbers
    """Which of the manifests knows of each segment; NO_MANIFEST for none."""
    rows: Numbers
    """In which of its rows."""
    footers: Mapping[int, Segment]
    """The segments of which no manifest knows, by their first seqs."""
    _made: dict[int, Segment] = field(default_factory=dict)

    @classmethod
    def of(cls, store: LogStore, segments: Iterable[Segment]) -> "Listing":
        """Return the listing of segments that are known from their footers."""
        footers = {segment.first_seq: segment for segment in segments}
        bounds = np.array([(each.first_seq, each.last_seq) for each in footers.values()], np.int64).reshape(-1, 2)
        none = np.full(len(bounds), NO_MANIFEST, np.int64)
        return cls(store, bounds[:, 0], bounds[:, 1], (), none, none, footers)

    def __len__(self) -> int:
        return len(self.first_seqs)

    @overload
    def __getitem__(self, place: int) -> Segment: ...

    @overload
    def __getitem__(self, place: slice) -> "Listing": ...

    def __getitem__(self, place: int | slice) -> "Segment | Listing":
        """Return one segment, or the listing of consecutive ones."""
        if isinstance(place, slice):
            first, last, numbers, rows = (
                column[place] for column in (self.first_seqs, self.last_seqs, self.numbers, self.rows)
            )
            return Listing(self.store, first, last, self.manifests, numbers, rows, self.footers)
        place = range(len(self))[place]
        if place not in self._made:
            (self._made[place],) = self[place : place + 1]
        return self._made[place]

    def __iter__(self) -> Iterator[Segment]:
        for run in self.runs():
            if isinstance(run, Segment):
                yield run
            else:
                yield from run.manifest.segments(self.store, run.rows)

    def runs(self) -> Iterator[Run | Segment]:
        """Yield what knows of the segments, in order: a manifest of many of them, or the footer of one."""
        goes_on = (np.diff(self.numbers) == 0) & (np.diff(self.rows) == 1) & (self.numbers[1:] != NO_MANIFEST)
        starts = np.flatnonzero(np.concatenate([[True], ~goes_on])[: len(self)]).tolist()
        for start, end in zip(starts, [*starts[1:], len(self)], strict=bool(starts)):
            if self.numbers[start] == NO_MANIFEST:
                yield self.footers[int(self.first_seqs[start])]
            else:
                row = int(self.rows[start])
                yield Run(self.manifests[self.numbers[start]], slice(row, row + end - start))

    def place(self, seq: int) -> int:
        """Return the place of the last segment that begins at a seq or before it; -1 for none."""
        return bisect_right(self.first_seqs, seq) - 1

    @property
    def known_until(self) -> int:
        """The place after the last segment that a manifest knows."""
        known = np.flatnonzero(self.numbers != NO_MANIFEST)
        return int(known[-1]) + 1 if len(known) else 0

    @property
    def messages(self) -> int:
        """How many rows of the segments are messages."""
        events = (run.events if isinstance(run, Segment) else run.manifest.events(run.rows) for run in self.runs())
        return int((self.last_seqs - self.first_seqs + 1).sum()) - sum(events)
