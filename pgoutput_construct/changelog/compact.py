"""Small segments into large ones, while a capture and readers run.

A segment that covers others is durable before they go, and counts in their place from then on: what a crash leaves
behind is read as before, and removed by the next compaction.
"""

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from pgoutput_construct.changelog.address import open_store
from pgoutput_construct.changelog.footer import Segment
from pgoutput_construct.changelog.index import SegmentIndex
from pgoutput_construct.changelog.indexes import index_of, indexes_of
from pgoutput_construct.changelog.keeper import rewrite_manifests
from pgoutput_construct.changelog.listed import Listing
from pgoutput_construct.changelog.listing import list_log
from pgoutput_construct.changelog.merge import merge_indexes
from pgoutput_construct.changelog.names import chosen
from pgoutput_construct.changelog.reading import read_segment
from pgoutput_construct.changelog.segments import GROUP_ROWS, write_segment
from pgoutput_construct.changelog.store import Address, LogLock, LogStore
from pgoutput_construct.errors import ChangeLogError

__all__ = ["MAINTENANCE", "Compaction", "CompactionLimits", "compact", "lock_for_maintenance", "plan_compaction"]

MAINTENANCE: Final = "maintenance"
_LEASE: Final = 600.0  # seconds: how long an object store keeps others out after the last sign of life
_GROUP_ROWS: Final = 8 * GROUP_ROWS


@dataclass(frozen=True)
class CompactionLimits:
    """How large segments become, and what is worth it."""

    rows: int = 1_000_000
    """Most rows in a segment that is made of others."""
    payload_bytes: int = 128 * 2**20
    """Most bytes of such a segment in memory: compaction holds one of them, and what it is written as."""
    least: int = 8
    """Fewer segments are left alone until there are more, unless they fill a large one."""
    grace: float = 10.0
    """Seconds for which the small ones stay beside the large one, for readers of other programs."""

    def __post_init__(self) -> None:
        if self.rows < 1 or self.payload_bytes < 1 or self.least < 2 or self.grace < 0:
            raise ChangeLogError(
                "the limits of a compaction are at least one row, one byte, two segments and no seconds"
            )


@dataclass(frozen=True)
class Compaction:
    """What a compaction has done so far."""

    before: int = 0
    """Segments when it began."""
    merged: int = 0
    """How many of them are in larger ones now."""
    written: int = 0
    """How many larger ones there are."""
    rows: int = 0
    """Rows in these."""
    removed: int = 0
    """Files that were removed, those of earlier compactions too."""
    freed_bytes: int = 0
    """Bytes of these, without those that were written."""

    @property
    def after(self) -> int:
        """Segments that count now, beside those that a capture wrote meanwhile."""
        return self.before - self.merged + self.written


OnProgress = Callable[[Compaction], None]


def compact(
    address: Address | LogStore, limits: CompactionLimits | None = None, on_progress: OnProgress | None = None
) -> Compaction:
    """Merge small segments, oldest first, and remove what was merged; returns what was done.

    Segments of different options stay apart; the newest one stays as it is. ``on_progress``
    is called after each segment that is written.

    Raises:
        ChangeLogError: There is no log, a segment is damaged, or another compaction or prune is at it.
    """
    store, limits = open_store(address), limits or CompactionLimits()
    with lock_for_maintenance(store) as lock:
        run = _Compaction(store, limits, lock, on_progress or (lambda done: None))
        return run.run()


def plan_compaction(address: Address | LogStore, limits: CompactionLimits | None = None) -> Compaction:
    """Return what ``compact`` would do, and do nothing; raises as it."""
    store, limits = open_store(address), limits or CompactionLimits()
    with lock_for_maintenance(store):
        listing, files = list_log(store), store.files()
        groups = list(_groups(listing[:-1], limits))
    merged = [segment for group in groups for segment in group]
    gone = {name.name for name in chosen(files)[1]} | {segment.name for segment in merged}
    rows, freed = sum(segment.rows for segment in merged), sum(files.get(name, 0) for name in gone)
    return Compaction(len(listing), len(merged), len(groups), rows, len(gone), freed)


def lock_for_maintenance(store: LogStore) -> LogLock:
    """Let one compaction or prune work at a time; raises ChangeLogError when there is no log, or one at work."""
    if not chosen(store.files())[0]:
        raise ChangeLogError(f"{store}: no change log here (no segment-*.parquet)")
    return store.lock(MAINTENANCE, _LEASE)


@dataclass
class _Compaction:
    store: LogStore
    limits: CompactionLimits
    lock: LogLock
    on_progress: OnProgress
    done: Compaction = Compaction()

    def run(self) -> Compaction:
        listing = list_log(self.store)
        self.done = replace(self.done, before=len(listing))
        # Not the newest: a capture that resumes goes on from it.
        groups = list(_groups(listing[:-1], self.limits))
        for group in groups:
            place = listing.place(group[0].first_seq)
            self._merge(group, listing[place - 1] if place else None)
        if groups:
            rewrite_manifests(self.store, groups[-1][-1].last_seq)
        self._remove_covered()
        return self.done

    def _merge(self, group: Listing, before: Segment | None) -> None:
        self.lock.check()
        with ThreadPoolExecutor(self.store.reads_at_once) as pool:
            table = pa.concat_tables(pool.map(read_segment, group))
        # What is open and in force at the end is in the last one's own footer.
        indexes = SegmentIndex.concat([indexes_of(group[:-1]).whole(), index_of(group[-1])])
        index = merge_indexes(indexes, index_of(before) if before else None)
        last = group[-1]
        written = write_segment(self.store, table, last.options, last.position, index, _GROUP_ROWS)
        read_segment(written)  # before its only copy is what was just written
        self.done = replace(
            self.done,
            merged=self.done.merged + len(group),
            written=self.done.written + 1,
            rows=self.done.rows + written.rows,
        )
        self.on_progress(self.done)

    def _remove_covered(self) -> None:
        files = self.store.files()
        counted, covered = chosen(files)
        firsts = [each.first_seq for each in counted]
        large = {counted[bisect_right(firsts, small.first_seq) - 1].name for small in covered}
        self._wait(max(map(self.store.modified, large), default=0.0) + self.limits.grace)
        for small in covered:
            self.lock.check()
            self.store.delete(small.name)
            freed = self.done.freed_bytes + files[small.name]
            self.done = replace(self.done, removed=self.done.removed + 1, freed_bytes=freed)
        self.on_progress(self.done)

    def _wait(self, until: float) -> None:
        """Wait, for the time of grace at most: clocks may differ."""
        time.sleep(min(max(0.0, until - time.time()), self.limits.grace))


def _groups(segments: Listing, limits: CompactionLimits) -> Iterator[Listing]:
    """Yield the segments that make a large one: they follow each other, and have the same options."""
    group: list[Segment] = []
    start = rows = payload_bytes = 0
    for place, segment in enumerate(segments):
        rows, payload_bytes = rows + segment.rows, payload_bytes + segment.payload_bytes
        is_full = rows > limits.rows or payload_bytes > limits.payload_bytes
        if group and (is_full or not _goes_with(group[-1], segment)):
            if len(group) >= (2 if is_full else limits.least):
                yield segments[start : start + len(group)]
            group, rows, payload_bytes = [], segment.rows, segment.payload_bytes
        if _is_small(segment, limits):
            start = start if group else place
            group.append(segment)
    if len(group) >= limits.least:
        yield segments[start : start + len(group)]


def _goes_with(last: Segment, segment: Segment) -> bool:
    return last.last_seq + 1 == segment.first_seq and last.options == segment.options


def _is_small(segment: Segment, limits: CompactionLimits) -> bool:
    """Tell whether a segment has room for others; one that is more than half full is not copied again and again."""
    return segment.rows <= limits.rows // 2 and segment.payload_bytes <= limits.payload_bytes // 2
