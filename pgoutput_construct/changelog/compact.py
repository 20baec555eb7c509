"""Compaction: merges small segments into large ones while a capture and readers run.

How segments are replaced without a reader noticing:

1. The rows of consecutive small segments are written as one large segment. They keep their seqs, payloads and
   checksums; the index is merged (``_merge_indexes``) and equals the one that would be built from the rows.
2. When the large segment is durable, it is read back with every check: from now on it may be the only copy. From then
   on it counts instead of the small ones, since of two segments that begin at the same seq the longer one counts
   (``_segment.footer.chosen``). A reader that lists the log sees either the small ones or the large one, never a gap.
3. Manifests are rewritten, so that they have the large segment's footer.
4. After some seconds of grace, the small files are removed. A reader that has listed them before and opens one now gets
   MissingFileError, and reads its rows from the segment that covers them (``_segment.segment_reader``).

A crash at any point leaves a readable log: before step 2 nothing has changed, after it the small files are superfluous,
and the next compaction removes them. The newest segment is never merged, since a capture that resumes reads it;
segments of different options stay apart. One compaction or prune runs at a time (``lock_for_maintenance``); captures
and readers need no lock.
"""

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog._index.indexes import index_of, indexes_of, rewrite_manifests
from pgoutput_construct.changelog._index.listing import Listing, list_log
from pgoutput_construct.changelog._index.row_counts import copied_rows, settled
from pgoutput_construct.changelog._segment.footer import Segment, chosen
from pgoutput_construct.changelog._segment.segment_index import COLUMNS, SegmentIndex, first_faults, struct_array
from pgoutput_construct.changelog._segment.segment_reader import read_segment
from pgoutput_construct.changelog._segment.segment_writer import GROUP_ROWS, write_segment
from pgoutput_construct.changelog._segment.size_limits import check_limits
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
_LEASE: Final = 600.0  # seconds after the last renewal for which a lease in an object store excludes others
_GROUP_ROWS: Final = 8 * GROUP_ROWS


@dataclass(frozen=True)
class CompactionLimits:
    """How large segments become, and when merging is worthwhile."""

    rows: int = 1_000_000
    """The maximum number of rows in a merged segment, at most 1,500,000."""
    payload_bytes: int = 128 * 2**20
    """The maximum bytes of payload in a merged segment, at most 128 MB; compaction holds one in memory, and its Parquet
    file."""
    least: int = 8
    """Fewer small segments than this are not merged yet, unless they fill a large one."""
    grace: float = 10.0
    """Seconds for which the small segments stay after the large one is written, for readers of other programs."""

    def __post_init__(self) -> None:
        if self.rows < 1 or self.payload_bytes < 1 or self.least < 2 or self.grace < 0:
            raise ChangeLogError(
                "limits of a compaction: rows and payload_bytes must be at least 1, least at least 2, grace at least 0"
            )
        check_limits(self.rows, self.payload_bytes)


@dataclass(frozen=True)
class Compaction:
    """The progress and the result of a compaction."""

    before: int = 0
    """The number of segments when it began."""
    merged: int = 0
    """The number of segments that were merged."""
    written: int = 0
    """The number of large segments written."""
    rows: int = 0
    """Rows in the large segments."""
    removed: int = 0
    """Files removed, including those that earlier compactions left."""
    freed_bytes: int = 0
    """The sum of the sizes of removed files, in bytes."""

    @property
    def after(self) -> int:
        """The number of segments now, without those that a capture added meanwhile."""
        return self.before - self.merged + self.written


OnProgress = Callable[[Compaction], None]


def compact(
    address: Address | LogStore, limits: CompactionLimits | None = None, on_progress: OnProgress | None = None
) -> Compaction:
    """Merge small segments, oldest first, and remove the merged ones.

    Args:
        address: The address of the log: a path, a URL, or a store.
        limits: How large segments become; CompactionLimits() by default.
        on_progress: Called after each large segment is written, and after files are removed.

    Returns:
        What was done.

    Raises:
        ChangeLogError: There is no log, a segment is damaged, or another compaction or prune is running.
    """
    store, limits = open_store(address), limits or CompactionLimits()
    with lock_for_maintenance(store) as lock:
        run = _Compaction(store, limits, lock, on_progress or (lambda done: None))
        return run.run()


def plan_compaction(address: Address | LogStore, limits: CompactionLimits | None = None) -> Compaction:
    """Dry run of ``compact``; raises the same errors."""
    store, limits = open_store(address), limits or CompactionLimits()
    with lock_for_maintenance(store):
        listing, files = list_log(store), store.files()
        groups = list(_groups(listing[:-1], limits))
    merged = [segment for group in groups for segment in group]
    removed = {name.name for name in chosen(files)[1]} | {segment.name for segment in merged}
    rows, freed = sum(segment.rows for segment in merged), sum(files.get(name, 0) for name in removed)
    return Compaction(len(listing), len(merged), len(groups), rows, len(removed), freed)


def lock_for_maintenance(store: LogStore) -> LogLock:
    """Lock out other compactions and prunes; raises ChangeLogError if there is no log, or one is running."""
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
        # Not the newest segment: a capture that resumes reads it.
        groups = list(_groups(listing[:-1], self.limits))
        for group in groups:
            first = listing.find(group[0].first_seq)
            self._merge(group, listing[first - 1] if first else None)
        if groups:
            rewrite_manifests(self.store, groups[-1][-1].last_seq)
        self._remove_covered()
        return self.done

    def _merge(self, group: Listing, before: Segment | None) -> None:
        self.lock.check()
        with ThreadPoolExecutor(self.store.reads_at_once) as pool:
            table = pa.concat_tables(pool.map(read_segment, group))
        # What is open and in force at the end is in the footer of the last one, and in no manifest.
        indexes = SegmentIndex.concat([indexes_of(group[:-1]).whole(), index_of(group[-1])])
        index = _merge_indexes(indexes, index_of(before) if before else None)
        last = group[-1]
        written = write_segment(self.store, table, last.options, last.position, index, _GROUP_ROWS)
        read_segment(written)  # it is about to become the only copy
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
        """Wait until a time, at most ``grace`` seconds, since the store's clock may differ."""
        time.sleep(min(max(0.0, until - time.time()), self.limits.grace))


def _groups(segments: Listing, limits: CompactionLimits) -> Iterator[Listing]:
    """Yield runs of segments to merge: consecutive, with the same options."""
    group: list[Segment] = []
    start = rows = payload_bytes = 0
    for segment_index, segment in enumerate(segments):
        rows, payload_bytes = rows + segment.rows, payload_bytes + segment.payload_bytes
        is_full = rows > limits.rows or payload_bytes > limits.payload_bytes
        if group and (is_full or not _may_follow(group[-1], segment)):
            if len(group) >= (2 if is_full else limits.least):
                yield segments[start : start + len(group)]
            group, rows, payload_bytes = [], segment.rows, segment.payload_bytes
        if _is_small(segment, limits):
            start = start if group else segment_index
            group.append(segment)
    if len(group) >= limits.least:
        yield segments[start : start + len(group)]


def _may_follow(last: Segment, segment: Segment) -> bool:
    return last.last_seq + 1 == segment.first_seq and last.options == segment.options


def _is_small(segment: Segment, limits: CompactionLimits) -> bool:
    """Return whether a segment is at most half full: larger ones are not copied again and again."""
    return segment.rows <= limits.rows // 2 and segment.payload_bytes <= limits.payload_bytes // 2


_LAST = ("open", "in_force")
_ONE_AFTER_THE_OTHER = ("transactions", "descriptions", "changes", "events")


def _merge_indexes(index: SegmentIndex, before: SegmentIndex | None) -> SegmentIndex:
    """Return the index of one segment with the rows of consecutive segments.

    Args:
        index: The index of the segments.
        before: The index of the segment before them; None if the log begins with them, or was pruned up to them (then
            no stream is open there).
    """
    first, last = index.first_seq, index.last_seq
    in_force = None if before is None else {(row["stream_xid"], row["seq"]) for row in _in_force(before)}
    lists = {name: _entries(index, name, slice(len(index) - 1, None)) for name in _LAST}
    lists |= {name: _entries(index, name) for name in _ONE_AFTER_THE_OTHER}
    faults = index.entries("faults").to_pylist()
    lists["faults"] = first_faults({row["problem"]: row["seq"] for row in reversed(faults)})
    lists["inherited"] = struct_array("inherited", _inherited(index, in_force))
    lists["rows"] = settled([index.entries("rows")], _plain(index, first))
    lists["snapshots"] = copied_rows(lists["rows"])
    return SegmentIndex.from_lists(first, last, index.complete_lsn, **lists)


def _in_force(index: SegmentIndex) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = index.entries("in_force", slice(len(index) - 1, None)).to_pylist()
    return found


def _entries(index: SegmentIndex, name: str, of: slice | None = None) -> pa.Array:
    chunks = index.entries(name, of).to_struct_array().chunks
    return pa.concat_arrays(chunks).cast(COLUMNS[name]) if chunks else pa.array([], COLUMNS[name])


def _inherited(index: SegmentIndex, in_force: set[tuple[int | None, int]] | None) -> list[dict[str, Any]]:
    """Return the descriptions from before the segments that their rows need, each one once."""
    found: dict[tuple[int | None, int], dict[str, Any]] = {}
    for row in index.entries("inherited").to_pylist():
        if row["seq"] < index.first_seq:
            for scope in _scopes(row, in_force):
                found.setdefault((scope, row["seq"]), row | {"stream_xid": scope})
    return list(found.values())


def _scopes(row: dict[str, Any], in_force: set[tuple[int | None, int]] | None) -> list[int | None]:
    """Return the scopes in which an inherited description was in force before the segments.

    It may have entered another scope within them: a Relation sent in a stream is in force for all after its commit.
    """
    if in_force is None:
        return [row["stream_xid"]]
    return [scope for scope, seq in in_force if seq == row["seq"]]


def _plain(index: SegmentIndex, first: int) -> Any:
    """Return the first seqs of transactions that are PLAIN in the merged segment, though they span several of these."""
    ended = index.transactions
    is_plain = pc.and_(pc.equal(ended["outcome"], COMMITTED), pc.and_not(ended["gid"].is_null(), ended["streamed"]))
    begins = pc.struct_field(pc.list_element(ended.filter(is_plain)["spans"], 0), "first").to_numpy()
    return begins[begins >= first]
