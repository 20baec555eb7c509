"""The segments of a log in their order, and none missing, while compaction and prune may replace and remove some."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Final, NamedTuple

from pgoutput_construct.changelog.footer import Segment, read_footer
from pgoutput_construct.changelog.index import SegmentIndex
from pgoutput_construct.changelog.manifest import Manifest, manifest_names, read_manifest
from pgoutput_construct.changelog.names import SegmentName, chosen
from pgoutput_construct.changelog.pruned import first_kept
from pgoutput_construct.changelog.store import LogStore, MissingFileError
from pgoutput_construct.errors import ChangeLogError

__all__ = ["Listing", "Merged", "list_log", "list_segments"]

_LISTINGS: Final = 5
"""How often a log is listed before segments count as lost: a compaction may have replaced them meanwhile."""
_INT64_MAX: Final = 2**63 - 1


class Merged(NamedTuple):
    """Where a manifest has the index of a segment."""

    manifest: Manifest
    row: int

    def follows(self, other: "Merged") -> bool:
        """Tell whether it is the next one in the same manifest."""
        return self.manifest is other.manifest and self.row == other.row + 1


class Listing(NamedTuple):
    """A log at one moment."""

    segments: tuple[Segment, ...]
    """The segments in their order, without gaps."""
    merged: dict[str, Merged]
    """Those of which manifests know, by name."""

    @property
    def manifests(self) -> list[Manifest]:
        """The manifests that know of any segment, in the order of the log."""
        return list({id(merged.manifest): merged.manifest for merged in self.merged.values()}.values())

    def indexes(self, without: Callable[[Segment], bool]) -> Iterator[SegmentIndex | Segment]:
        """Return what has the indexes, in order: a manifest's of many segments, or a segment that has its own.

        Segments ``without`` an index are left out.
        """
        run: list[Merged] = []
        for segment in self.segments:
            if without(segment):
                continue
            merged = self.merged.get(segment.name)
            if run and (merged is None or not merged.follows(run[-1])):
                yield _index(run)
                run = []
            if merged is None:
                yield segment
            else:
                run.append(merged)
        if run:
            yield _index(run)


def list_segments(store: LogStore) -> tuple[Segment, ...]:
    """Return the segments in order; raises as ``list_log``."""
    return list_log(store).segments


def list_log(store: LogStore) -> Listing:
    """Read what footers and manifests say of all segments in order; raise ChangeLogError for a damaged or missing one.

    Segments that were compacted or pruned away since they were listed are no loss: the log is listed again.
    """
    end = _INT64_MAX
    for _ in range(_LISTINGS - 1):
        try:
            return _listed(store, end)
        except _GapError as error:
            end = min(end, error.end)
        except MissingFileError:
            continue
    return _listed(store, end)


class _GapError(ChangeLogError):
    """Segments are missing, or came or were replaced while the log was listed.

    A list is no snapshot: of two files that come meanwhile, it may have the later one alone. The next list has all
    that was there before it: up to the ``end`` of this one it is whole.
    """

    def __init__(self, text: str, end: int) -> None:
        super().__init__(text)
        self.end = end


def _listed(store: LogStore, end: int) -> Listing:
    files = store.files()
    names = [name for name in _kept(chosen(files)[0], first_kept(store)) if name.first_seq <= end]
    _check_names(store, names)
    # The last one counts by its own footer: manifests do not have all of it.
    merged = _merged(store, files, {name.name for name in names[:-1]})
    known = {each.name: each for manifest in Listing((), merged).manifests for each in manifest.segments(store)}
    known = {name: known[name] for name in merged}
    unknown = [name for name in names if name.name not in known]
    with ThreadPoolExecutor(store.reads_at_once) as pool:
        read = pool.map(lambda name: read_footer(store, name, files[name.name]), unknown)
        known |= {segment.name: segment for segment in read}
    segments = tuple(known[name.name] for name in names)
    _check_order(store, segments)
    return Listing(segments, merged)


def _kept(names: list[SegmentName], first_seq: int) -> list[SegmentName]:
    """Leave out what was pruned, and is to be removed still."""
    return [name for name in names if name.last_seq is None or name.last_seq >= first_seq]


def _merged(store: LogStore, files: dict[str, int], wanted: set[str]) -> dict[str, Merged]:
    """Find what manifests have of segments that are there as they were; a manifest inside another is not read."""
    found: dict[str, Merged] = {}
    end = -1
    for name in manifest_names(files):
        if name.last_seq <= end:
            continue
        try:
            manifest = read_manifest(store, name.name)
        except ChangeLogError:  # damaged, or removed meanwhile: the footers say the same
            continue
        end = name.last_seq
        there = (segment in wanted and files.get(segment) == size for segment, size in manifest.sizes.items())
        rows = zip(manifest.sizes, there, range(len(manifest)), strict=True)
        found |= {segment: Merged(manifest, row) for segment, is_there, row in rows if is_there}
    return found


def _index(run: list[Merged]) -> SegmentIndex:
    return run[0].manifest.index(slice(run[0].row, run[-1].row + 1))


def _check_names(store: LogStore, names: list[SegmentName]) -> None:
    """Find gaps before any footer is read, as far as names tell."""
    if names and names[0].first_seq > (kept := first_kept(store)):
        raise _gap(store, kept, names[0], names[-1])
    for before, after in pairwise(names):
        if before.last_seq is not None and after.first_seq != before.last_seq + 1:
            raise _gap(store, before.last_seq + 1, after, names[-1])


def _check_order(store: LogStore, segments: tuple[Segment, ...]) -> None:
    for before, after in pairwise(segments):
        if after.first_seq != before.last_seq + 1:
            raise _gap(store, before.last_seq + 1, after, segments[-1])
        if before.options is after.options:
            continue
        if differences := before.options.differences(after.options, after.said_options):
            raise ChangeLogError(f"{after.place}: not of the same log as {before.name}: {'; '.join(differences)}")


def _gap(store: LogStore, first: int, after: SegmentName | Segment, last: SegmentName | Segment) -> _GapError:
    missing = f"the seqs {first} to {after.first_seq - 1} are missing before {after.name}"
    end = last.first_seq if last.last_seq is None else last.last_seq
    return _GapError(f"{store}: {missing}: restore the segments that were removed", end)
