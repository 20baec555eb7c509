"""The index of a whole log, out of its manifests and footers."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from types import MappingProxyType
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog._index.index_builder import IndexBuilder
from pgoutput_construct.changelog._index.listing import Listing, Run, list_log
from pgoutput_construct.changelog._index.log_index import Ended, LogIndex, Stretch
from pgoutput_construct.changelog._index.manifest import Manifest, manifest_names, read_manifest
from pgoutput_construct.changelog._segment.block import Numbers
from pgoutput_construct.changelog._segment.footer import DAMAGE, FileName, Segment, damaged, read_footer
from pgoutput_construct.changelog._segment.segment_descriptions import Sent
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex
from pgoutput_construct.changelog._store.store import LogStore
from pgoutput_construct.errors import ChangeLogError

__all__ = ["SMALL", "ManifestKeeper", "builder_after", "index_of", "indexes_of", "rewrite_manifests"]


_FOOTERS: Final = 4
"""Indexes of footers that are unpacked at a time."""


def indexes_of(listing: Listing) -> LogIndex:
    """Return the index of consecutive segments; raises ChangeLogError for a damaged one.

    The transactions stay in manifests and footers.
    """
    index = LogIndex.concat(_known(listing.store, listing.runs()))
    return replace(index, inherited_events=listing.inherited_events)


def _known(store: LogStore, runs: Iterable[Run | Segment]) -> Iterator[LogIndex]:
    for is_footer, together in groupby(runs, lambda run: isinstance(run, Segment)):
        parts = [*together]
        if not is_footer:
            yield from (_of_manifest(store, run) for run in parts if isinstance(run, Run))
            continue
        segments = [part for part in parts if isinstance(part, Segment)]
        for first in range(0, len(segments), _FOOTERS):
            some = segments[first : first + _FOOTERS]
            ended = Ended(tuple(Stretch(_Footer(segment), 0, 1) for segment in some))
            index = LogIndex.over(SegmentIndex.concat(map(index_of, some)), ended)
            # As slices of what was unpacked its columns would keep all of it.
            yield replace(index, table=index.table.take(np.arange(len(index))))


@dataclass(frozen=True)
class _Footer:
    """The transactions of one segment, in its footer."""

    segment: Segment

    def read(self, first: int, end: int) -> pa.ChunkedArray:
        """Return them."""
        return index_of(self.segment).table["transactions"][first:end]


def _of_manifest(store: LogStore, run: Run) -> LogIndex:
    index = run.manifest.index(run.rows)
    bounds = index.table["first_seq"].to_numpy(), index.table["last_seq"].to_numpy()
    return LogIndex(index.table, Ended.of(_CachedTransactions(store, index.ended, *bounds), len(index)))


@dataclass(frozen=True)
class _CachedTransactions:
    """The transactions that a manifest has, also when it is replaced by another one: then segments say the same."""

    store: LogStore
    ended: Ended
    first_seqs: Numbers
    last_seqs: Numbers

    def read(self, first: int, end: int) -> pa.ChunkedArray:
        """Return those of some segments; raise ChangeLogError where they were pruned since, or are damaged."""
        try:
            return self.ended[first:end].lists()
        except ChangeLogError:
            return self._reload(first, end)

    def _reload(self, first: int, end: int) -> pa.ChunkedArray:
        """Read them from the footers of the segments that have them now: compaction may have put these together."""
        begin, last = int(self.first_seqs[first]), int(self.last_seqs[end - 1])
        listing = list_log(self.store)
        if not listing or listing[0].first_seq > begin:
            raise ChangeLogError(f"{self.store}: seq {begin} was pruned since the log was opened: open it again")
        segments = listing[listing.find(begin) : listing.find(last) + 1]
        footers = SegmentIndex.concat(index_of(replace(segment, index=None)) for segment in segments)
        column = pa.concat_arrays(footers.table["transactions"].chunks)
        seqs = pc.struct_field(column.flatten(), "seq").to_numpy()
        offsets = np.searchsorted(seqs, np.append(self.first_seqs[first:end], last + 1)).astype(np.int32)
        return pa.chunked_array([pa.ListArray.from_arrays(pa.array(offsets), column.flatten())])


def index_of(segment: Segment) -> SegmentIndex:
    """Return the index in a segment's footer; raise ChangeLogError where it is damaged."""
    content = segment.index
    if content is None:  # a manifest has it, but not all of it
        name = FileName(segment.first_seq, segment.last_seq, segment.name)
        content = read_footer(segment.store, name, segment.size).index
    assert content is not None
    try:
        index = SegmentIndex.from_bytes(content)
        if (len(index), index.first_seq, index.last_seq) != (1, segment.first_seq, segment.last_seq):
            raise ValueError(f"its index is of seq {index.first_seq} to {index.last_seq}")
    except DAMAGE as error:
        raise damaged(segment.path, error) from error
    return index


def builder_after(segments: Listing, sent: Mapping[int, Sent] = MappingProxyType({})) -> IndexBuilder:
    """Return what builds the index of what comes after these segments.

    ``sent`` are descriptions in force, by seq, as far as they are known (``IndexBuilder.sent``): others are looked for.
    """
    if not segments:
        return IndexBuilder()
    return IndexBuilder(index_of(segments[-1]), lambda seqs: _sent_by(segments, seqs, sent))


def _sent_by(segments: Listing, seqs: Iterable[int], sent: Mapping[int, Sent]) -> Iterator[Sent]:
    """Find descriptions among those that are known, or in the footers of the segments in which they stand."""
    wanted = set(seqs)
    yield from (sent[seq] for seq in wanted.intersection(sent))
    wanted -= sent.keys()
    segment_indexes = sorted({segment_index for segment_index in map(segments.find, wanted) if segment_index >= 0})
    for segment_index in segment_indexes:
        descriptions = index_of(segments[segment_index]).entries("descriptions")
        yield from (row for row in descriptions.to_pylist() if row["seq"] in wanted)


SMALL: Final = 128
"""Segments in a small manifest, and small ones in a large one: the most footers, and small ones, that are read."""
_LARGE: Final = SMALL * SMALL


class ManifestKeeper:
    """Writes manifests for the one who writes segments."""

    def __init__(self, store: LogStore, listing: Listing) -> None:
        """Resume: write the missing manifests at the end of the log, except for the last few segments."""
        self._store = store
        self._pending: list[tuple[Segment, SegmentIndex]] = []
        self._small = [manifest.name for manifest in listing.manifests if len(manifest) < _LARGE]
        for segment in listing[listing.known_until :]:
            self.add(segment, index_of(segment))

    def add(self, segment: Segment, index: SegmentIndex) -> None:
        """Take in the next segment, which is durable; at times this writes a manifest."""
        self._pending.append((segment, index))
        if len(self._pending) < SMALL:
            return
        segments, indexes = zip(*self._pending, strict=True)
        self._small.append(Manifest.from_segments(segments, SegmentIndex.concat(indexes)).write(self._store))
        self._pending = []
        if len(self._small) >= SMALL:
            self._merge()

    def _merge(self) -> None:
        small, self._small = self._small, []
        try:
            Manifest.concat(read_manifest(self._store, name.name) for name in small).write(self._store)
        except ChangeLogError:  # a compaction has replaced them, or one is damaged: a missing cache entry is harmless
            return
        _remove(self._store, small)


def rewrite_manifests(store: LogStore, last_seq: int) -> None:
    """Write the manifests of a log again up to a seq, after segments were replaced or removed."""
    listing = list_log(store)
    segments = listing[: int(np.searchsorted(listing.last_seqs, last_seq, "right"))]
    parts = (segments[first : first + _LARGE] for first in range(0, len(segments), _LARGE))
    written = [Manifest.from_segments(part, indexes_of(part)).write(store) for part in parts]
    old = manifest_names(store.files())
    _remove(store, [name for name in old if name.last_seq <= last_seq and name not in written])


def _remove(store: LogStore, names: list[FileName]) -> None:
    for name in names:
        store.delete(name.name)
