"""Lists the consecutive segments of a log, none missing, while compaction and prune replace and remove files.

Listing a directory or a bucket is no snapshot: files come and go meanwhile. That is harmless for three reasons. A
compaction writes the large segment before it removes the small ones, so each seq is in some file at any time; of two
segments that begin at the same seq, the longer one counts. A prune writes from which seq on the log is kept before it
removes the first file, so a missing beginning is no gap. And a capture only appends: whatever a listing has up to its
own end is complete if the next listing has no gap there either. So a gap, or a file that has disappeared, is a reason
to list again, and an error only after several attempts.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Final, NamedTuple, overload

import numpy as np

from pgoutput_construct.changelog._index.manifest import Manifest, manifest_names, read_manifest
from pgoutput_construct.changelog._segment.block import Numbers
from pgoutput_construct.changelog._segment.footer import (
    FileName,
    NamedSegments,
    Segment,
    chosen_segments,
    read_footer,
)
from pgoutput_construct.changelog._segment.prune_note import read_pruned
from pgoutput_construct.changelog._segment.segment_index import InheritedEvent
from pgoutput_construct.changelog._store.store import LogStore, MissingFileError
from pgoutput_construct.changelog.log_options import LogOptions
from pgoutput_construct.errors import ChangeLogError

__all__ = [
    "Listing",
    "Run",
    "list_log",
]


_LISTINGS: Final = 5
"""How often a log is listed before segments count as missing: a compaction may have replaced them meanwhile."""
_INT64_MAX: Final = 2**63 - 1


def list_log(store: LogStore, known: "Listing | None" = None) -> "Listing":
    """List the segments of a log, with what footers and manifests say of them.

    Args:
        store: The store of the log.
        known: An earlier listing: files that have not changed since are not read again.

    Raises:
        ChangeLogError: A segment is damaged, missing, or of another log.
    """
    end = _INT64_MAX
    known = Listing.from_segments(store, ()) if known is None else known
    for _ in range(_LISTINGS - 1):
        try:
            return _listed(store, end, known)
        except _GapError as error:
            end = min(end, error.end)
        except MissingFileError:
            continue
    return _listed(store, end, known)


class _GapError(ChangeLogError):
    """Segments are missing, or were added or replaced while the log was listed.

    Of two files that are added meanwhile, a listing may have only the later one. The next listing has every file that
    existed before it began, so up to the ``end`` of this one it must have no gap.
    """

    def __init__(self, text: str, end: int) -> None:
        super().__init__(text)
        self.end = end


def _listed(store: LogStore, end: int, known: "Listing") -> "Listing":
    files, pruned = store.files(), read_pruned(store)
    kept = pruned.first_seq
    counted, _ = chosen_segments(files)
    # Pruned segments may still exist.
    named = counted[(counted.last_seq >= kept) & (counted.first_seq <= end)]
    if len(named) and named.first_seq[0] > kept:
        raise _gap(store, kept, named, 0)
    _check_gaps(store, named, named.last_seq)  # before any footer is read, as far as names tell
    listing = _known(store, named, _manifests(store, files, known), known)
    _check_gaps(store, named, listing.last_seqs)
    _check_options(listing)
    return replace(listing, inherited_events=pruned.publications if len(named) and named.first_seq[0] == kept else ())


def _manifests(store: LogStore, files: Mapping[str, int], known: "Listing") -> tuple[Manifest, ...]:
    """Read the manifests; skips damaged ones, and ones covered by a larger one (they contain the same footers)."""
    names, read = manifest_names(files), dict[str, Manifest | None]()
    cached = {(manifest.name, manifest.size): manifest for manifest in known.manifests}
    while True:
        ends = accumulate((name.last_seq for name in names), max, initial=-1)
        outer = [name for name, end in zip(names, ends, strict=False) if name.last_seq > end]
        new = [name for name in outer if name.name not in read]
        with ThreadPoolExecutor(store.reads_at_once) as pool:
            found = pool.map(lambda name: cached.get((name, files[name.name])) or _manifest(store, name.name), new)
            read |= {name.name: manifest for name, manifest in zip(new, found, strict=True)}
        names = [name for name in names if read.get(name.name, name) is not None]
        if all(read[name.name] is not None for name in new):
            return tuple(manifest for name in outer if (manifest := read[name.name]) is not None)


def _manifest(store: LogStore, name: str) -> Manifest | None:
    try:
        return read_manifest(store, name)
    except MissingFileError:  # merged into a larger one meanwhile: the log is listed again
        raise
    except ChangeLogError:
        return None


def _known(store: LogStore, named: NamedSegments, manifests: tuple[Manifest, ...], known: "Listing") -> "Listing":
    """Find the source of each segment's footer: a manifest, if the file has not changed since, else the file."""
    numbers, rows = np.full(len(named), _NO_MANIFEST, np.int64), np.zeros(len(named), np.int64)
    for number, manifest in enumerate(manifests):
        # The last segment is read from its own footer: a manifest lacks what is open and in force at its end.
        indexes, found = _matching(named, manifest, len(named) - 1)
        numbers[indexes], rows[indexes] = number, found
    unknown = np.flatnonzero(numbers == _NO_MANIFEST).tolist()
    with ThreadPoolExecutor(store.reads_at_once) as pool:
        read = pool.map(lambda each: _footer(store, named.name(each), int(named.size[each]), known), unknown)
        footers = {segment.first_seq: segment for segment in read}
    lasts = named.last_seq.copy()
    lasts[unknown] = [segment.last_seq for segment in footers.values()]
    return Listing(store, named.first_seq, lasts, manifests, numbers, rows, footers)


def _footer(store: LogStore, name: FileName, size: int, known: "Listing") -> Segment:
    kept = known.footers.get(name.first_seq)
    is_same = kept is not None and (kept.name, kept.size) == (name.name, size)
    return kept if kept is not None and is_same else read_footer(store, name, size)


def _matching(named: NamedSegments, manifest: Manifest, end: int) -> tuple[Numbers, Numbers]:
    """Return the indices, below ``end``, of segments that a manifest has with the same size, and their rows in it."""
    first, last, size = manifest.numbers("first_seq"), manifest.numbers("last_seq"), manifest.numbers("size")
    indexes = np.searchsorted(named.first_seq[: max(end, 0)], first)
    rows = np.flatnonzero(indexes < end)
    at = indexes[rows]
    same = (named.first_seq[at] == first[rows]) & (named.last_seq[at] == last[rows]) & (named.size[at] == size[rows])
    return at[same], rows[same]


def _check_gaps(store: LogStore, named: NamedSegments, lasts: Numbers) -> None:
    gaps = named.first_seq[1:] != lasts[:-1] + 1
    for segment_index in np.flatnonzero(gaps)[:1].tolist():
        raise _gap(store, int(lasts[segment_index]) + 1, named, segment_index + 1)


def _gap(store: LogStore, first: int, named: NamedSegments, segment_index: int) -> _GapError:
    after = named.name(segment_index)
    missing = f"the seqs {first} to {after.first_seq - 1} are missing before {after.name}"
    end = max(int(named.first_seq[-1]), int(named.last_seq[-1]))
    return _GapError(f"{store}: {missing}: restore the removed segments", end)


def _check_options(listing: "Listing") -> None:
    """Raise ChangeLogError if a segment cannot be of the same log as the one before."""
    before: LogOptions | None = None
    for segment_index, options in _options(listing):
        if before is not None and options != before:
            after = listing[segment_index]
            if differences := before.differences(options, after.said_options):
                earlier = listing[segment_index - 1].name
                raise ChangeLogError(f"{after.path}: not of the same log as {earlier}: {'; '.join(differences)}")
        before = options


def _options(listing: "Listing") -> Iterator[tuple[int, LogOptions]]:
    """Yield the index of a segment, and the options from that segment on; equal ones may follow each other."""
    segment_index = 0
    for run in listing.runs():
        if isinstance(run, Segment):
            yield segment_index, run.options
            segment_index += 1
        else:
            yield from ((segment_index + offset, options) for offset, options in run.manifest.options(run.rows))
            segment_index += run.rows.stop - run.rows.start


_NO_MANIFEST = -1
"""Instead of a manifest's number: the segment's own footer was read."""


class Run(NamedTuple):
    """Consecutive segments in one manifest."""

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
    """The manifests in use."""
    numbers: Numbers
    """The index of the manifest that has each segment; NO_MANIFEST for none."""
    rows: Numbers
    """The row of the segment in its manifest."""
    footers: Mapping[int, Segment]
    """The segments that are in no manifest, by first seq."""
    inherited_events: tuple[InheritedEvent, ...] = ()
    """The facts of pruned segments that are in force where these begin (``Pruned.publications``)."""
    _made: dict[int, Segment] = field(default_factory=dict)

    @classmethod
    def from_segments(cls, store: LogStore, segments: Iterable[Segment]) -> "Listing":
        """Return the listing of segments whose footers were read."""
        footers = {segment.first_seq: segment for segment in segments}
        bounds = np.array([(each.first_seq, each.last_seq) for each in footers.values()], np.int64).reshape(-1, 2)
        none = np.full(len(bounds), _NO_MANIFEST, np.int64)
        return cls(store, bounds[:, 0], bounds[:, 1], (), none, none, footers)

    def __len__(self) -> int:
        return len(self.first_seqs)

    @overload
    def __getitem__(self, index: int) -> Segment: ...

    @overload
    def __getitem__(self, index: slice) -> "Listing": ...

    def __getitem__(self, index: int | slice) -> "Segment | Listing":
        """Return one segment, or the listing of consecutive ones."""
        if isinstance(index, slice):
            first, last, numbers, rows = (
                column[index] for column in (self.first_seqs, self.last_seqs, self.numbers, self.rows)
            )
            inherited = () if index.indices(len(self))[0] else self.inherited_events
            return Listing(self.store, first, last, self.manifests, numbers, rows, self.footers, inherited)
        index = range(len(self))[index]
        if index not in self._made:
            (self._made[index],) = self[index : index + 1]
        return self._made[index]

    def __iter__(self) -> Iterator[Segment]:
        for run in self.runs():
            if isinstance(run, Segment):
                yield run
            else:
                yield from run.manifest.segments(self.store, run.rows)

    def runs(self) -> Iterator[Run | Segment]:
        """Yield the segments in order: runs of them that are in one manifest, and single ones."""
        continues = (np.diff(self.numbers) == 0) & (np.diff(self.rows) == 1) & (self.numbers[1:] != _NO_MANIFEST)
        starts = np.flatnonzero(np.concatenate([[True], ~continues])[: len(self)]).tolist()
        for start, end in zip(starts, [*starts[1:], len(self)], strict=bool(starts)):
            if self.numbers[start] == _NO_MANIFEST:
                yield self.footers[int(self.first_seqs[start])]
            else:
                row = int(self.rows[start])
                yield Run(self.manifests[self.numbers[start]], slice(row, row + end - start))

    def find(self, seq: int) -> int:
        """Return the index of the last segment that begins at or before a seq; -1 for none."""
        return bisect_right(self.first_seqs, seq) - 1

    @property
    def known_until(self) -> int:
        """The index after the last segment that is in a manifest."""
        known = np.flatnonzero(self.numbers != _NO_MANIFEST)
        return int(known[-1]) + 1 if len(known) else 0

    @property
    def messages(self) -> int:
        """The number of rows that are messages."""
        events = (run.events if isinstance(run, Segment) else run.manifest.events(run.rows) for run in self.runs())
        return int((self.last_seqs - self.first_seqs + 1).sum()) - sum(events)
