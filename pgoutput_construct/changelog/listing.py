"""The segments of a log in their order, and none missing, while compaction and prune may replace and remove some."""

from itertools import pairwise
from typing import Final

from pgoutput_construct.changelog.names import SegmentName, chosen
from pgoutput_construct.changelog.pruned import first_kept
from pgoutput_construct.changelog.segments import Segment, read_footer
from pgoutput_construct.changelog.store import LogStore, MissingFileError
from pgoutput_construct.errors import ChangeLogError

__all__ = ["list_segments"]

_LISTINGS: Final = 3
"""How often a log is listed before segments count as lost: a compaction may have replaced them meanwhile."""


def list_segments(store: LogStore) -> tuple[Segment, ...]:
    """Read the footers of all segments in order; raise ChangeLogError for a damaged or missing one.

    Segments that were compacted or pruned away since they were listed are no loss: the log is listed again.
    """
    for _ in range(_LISTINGS - 1):
        try:
            return _listed(store)
        except (MissingFileError, _GapError):
            continue
    return _listed(store)


class _GapError(ChangeLogError):
    """Segments are missing, or were replaced by one that covers them while the log was listed."""


def _listed(store: LogStore) -> tuple[Segment, ...]:
    names, _ = chosen(store.files())
    _check_names(store, names)
    segments = tuple(read_footer(store, segment) for segment in names)
    for before, after in pairwise(segments):
        if after.first_seq != before.last_seq + 1:
            raise _gap(store, before.last_seq + 1, after)
        if differences := before.options.differences(after.options, after.said_options):
            raise ChangeLogError(f"{after.place}: not of the same log as {before.name}: {'; '.join(differences)}")
    return segments


def _check_names(store: LogStore, names: list[SegmentName]) -> None:
    """Find gaps before any footer is read, as far as names tell."""
    if names and names[0].first_seq > (kept := first_kept(store)):
        raise _gap(store, kept, names[0])
    for before, after in pairwise(names):
        if before.last_seq is not None and after.first_seq != before.last_seq + 1:
            raise _gap(store, before.last_seq + 1, after)


def _gap(store: LogStore, first: int, after: SegmentName | Segment) -> _GapError:
    missing = f"the seqs {first} to {after.first_seq - 1} are missing before {after.name}"
    return _GapError(f"{store}: {missing}: restore the segments that were removed")
