"""Small segments into large ones, while a capture and readers run.

A segment that covers others is durable before they go, and counts in their place from then on: what a crash leaves
behind is read as before, and removed by the next compaction.
"""

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog._index.index import COLUMNS, SegmentIndex, struct_array
from pgoutput_construct.changelog._index.indexes import index_of, indexes_of, rewrite_manifests
from pgoutput_construct.changelog._index.listing import Listing, list_log
from pgoutput_construct.changelog._index.usage import copied_rows, settled
from pgoutput_construct.changelog._segment.footer import Segment, chosen
from pgoutput_construct.changelog._segment.reading import read_segment
from pgoutput_construct.changelog._segment.segments import GROUP_ROWS, write_segment
from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog._store.store import Address, LogLock, LogStore
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.stream.transaction_reader import COMMITTED

__all__ = [
    "Compaction",
    "CompactionLimits",
    "compact",
    "lock_for_maintenance",
    "plan_compaction",
]


_MAINTENANCE: Final = "maintenance"
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
    return store.lock(_MAINTENANCE, _LEASE)


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
        index = _merge_indexes(indexes, index_of(before) if before else None)
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
    """Return whether a segment has room for others; one that is more than half full is not copied again and again."""
    return segment.rows <= limits.rows // 2 and segment.payload_bytes <= limits.payload_bytes // 2


_LAST = ("open", "in_force")
_ONE_AFTER_THE_OTHER = ("transactions", "descriptions", "changes", "events", "faults")


def _merge_indexes(index: SegmentIndex, before: SegmentIndex | None) -> SegmentIndex:
    """Return the index of all rows of consecutive segments as that of one segment.

    ``before`` is the index of the segment before them; None where there is none: the log begins with them, or is
    pruned up to them, and then no stream is open.
    """
    first, last = index.first_seq, index.last_seq
    in_force = None if before is None else {(row["stream_xid"], row["seq"]) for row in _in_force(before)}
    lists = {name: _entries(index, name, slice(len(index) - 1, None)) for name in _LAST}
    lists |= {name: _entries(index, name) for name in _ONE_AFTER_THE_OTHER}
    lists["inherited"] = struct_array("inherited", _inherited(index, in_force))
    lists["rows"] = settled([index.entries("rows")], _plain(index, first))
    lists["snapshots"] = copied_rows(lists["rows"])
    return SegmentIndex.of(first, last, index.complete_lsn, **lists)


def _in_force(index: SegmentIndex) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = index.entries("in_force", slice(len(index) - 1, None)).to_pylist()
    return found


def _entries(index: SegmentIndex, name: str, of: slice | None = None) -> pa.Array:
    chunks = index.entries(name, of).to_struct_array().chunks
    return pa.concat_arrays(chunks).cast(COLUMNS[name]) if chunks else pa.array([], COLUMNS[name])


def _inherited(index: SegmentIndex, in_force: set[tuple[int | None, int]] | None) -> list[dict[str, Any]]:
    """Return what is in force before all segments, and their rows need, each description once."""
    found: dict[tuple[int | None, int], dict[str, Any]] = {}
    for row in index.entries("inherited").to_pylist():
        if row["seq"] < index.first_seq:
            for scope in _scopes(row, in_force):
                found.setdefault((scope, row["seq"]), row | {"stream_xid": scope})
    return list(found.values())


def _scopes(row: dict[str, Any], in_force: set[tuple[int | None, int]] | None) -> list[int | None]:
    """Return in which scopes an inherited description was in force before all segments.

    It may have come into another one in them: what a stream described holds for all once its transaction committed.
    """
    if in_force is None:
        return [row["stream_xid"]]
    return [scope for scope, seq in in_force if seq == row["seq"]]


def _plain(index: SegmentIndex, first: int) -> Any:
    """Return where transactions begin that lie in the segments as a whole, though not in one of them."""
    ended = index.transactions
    is_plain = pc.and_(pc.equal(ended["outcome"], COMMITTED), pc.and_not(ended["gid"].is_null(), ended["streamed"]))
    begins = pc.struct_field(pc.list_element(ended.filter(is_plain)["spans"], 0), "first").to_numpy()
    return begins[begins >= first]
