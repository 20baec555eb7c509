"""When the rows of a log had which description: the transactions that wrote them, or the snapshot that has them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog._facts.copies import copies_of
from pgoutput_construct.changelog._facts.visibility import Snapshot
from pgoutput_construct.changelog._index.planning import run_spans
from pgoutput_construct.changelog._index.row_counts import COPIED
from pgoutput_construct.changelog._index.segment_index import SegmentIndex
from pgoutput_construct.changelog._segment.block import Flags, Numbers
from pgoutput_construct.wire import Lsn

__all__ = ["DescriptionUse", "DescriptionUses", "uses_of"]

_XIDS: Final = 2**32
_USE_COLUMNS: Final = ("descriptions", "last", "oldest", "newest")


@dataclass(frozen=True)
class DescriptionUse:
    """The rows that have one description, and that count."""

    last: Lsn | Snapshot
    """Where the last of them was committed; or the snapshot, where they were copied."""
    xids: tuple[int, int] | None = None
    """The oldest and the newest top-level xid that wrote them; None where they were copied."""

    def precedes(self, xid: int) -> bool | None:
        """Return whether they were written before what another transaction did to their table.

        None where it is not certain. An xid is as old as the first change of its transaction, and who alters a table
        waits for those that wrote to it: so what began earlier nearly always wrote earlier.
        """
        if isinstance(self.last, Snapshot):
            return bool(self.last.invisible(np.array([xid]))[0])
        oldest, newest = self.xids or (xid, xid)
        if _is_older(newest, xid):
            return True
        return False if _is_older(xid, oldest) else None


@dataclass(frozen=True)
class DescriptionUses:
    """Which descriptions of a log are in use, and by what: columns with an entry for each, in the order of the seqs."""

    descriptions: Numbers
    """Their seqs."""
    last: Numbers
    """The LSN of the last commit of rows with the description; of copied rows, the seq of what says they are copied."""
    oldest: Numbers
    """The oldest top-level xid that wrote such rows; COPIED for copied ones."""
    newest: Numbers
    """The newest one; COPIED for copied ones."""
    copies: Mapping[int, Snapshot] = field(default_factory=dict)
    """The snapshots of copies, by the seqs of what says that they are complete."""

    def __iter__(self) -> Iterator[tuple[int, DescriptionUse]]:
        """Yield the seq of each description, and its use."""
        columns = self.descriptions, self.last, self.oldest, self.newest
        for seq, last, oldest, newest in zip(*(column.tolist() for column in columns), strict=True):
            if oldest == COPIED:
                yield seq, DescriptionUse(self.copies[last])
            else:
                yield seq, DescriptionUse(Lsn(last), (oldest, newest))

    def since(self, before: "DescriptionUses") -> "DescriptionUses":
        """Return those that are not the same in ``before``, uses of an earlier time."""
        if not len(before.descriptions):
            return self
        places = np.searchsorted(before.descriptions, self.descriptions).clip(max=len(before.descriptions) - 1)
        mine, earlier = ([getattr(each, name) for name in _USE_COLUMNS] for each in (self, before))
        differs = np.logical_or.reduce([own != was[places] for own, was in zip(mine, earlier, strict=True)])
        return self.take(differs)

    def of(self, seqs: Sequence[int]) -> "DescriptionUses":
        """Return those of some descriptions, all of which are in use."""
        return self.take(self.descriptions.searchsorted(np.array(seqs, np.int64)))

    def take(self, places: Numbers | Flags | slice) -> "DescriptionUses":
        """Return those at some places, in the order of these."""
        descriptions, last, oldest, newest = (getattr(self, name)[places] for name in _USE_COLUMNS)
        return DescriptionUses(descriptions, last, oldest, newest, self.copies)

    def lost(self, before: "DescriptionUses") -> list[int]:
        """Return the seqs of descriptions that were in use ``before``, and no longer are."""
        found: list[int] = np.setdiff1d(before.descriptions, self.descriptions, assume_unique=True).tolist()
        return found


def uses_of(index: SegmentIndex) -> DescriptionUses:
    """Return the uses of descriptions from the index of a log, which has a few entries for each segment.

    A description may be used again by any later segment, and rows may count no more (``lost_ends``): so they are found
    from scratch each time, without a loop over entries.
    """
    rows = index.entries("rows")
    is_copied = pc.equal(rows["span"], COPIED)
    sent = _sent_uses(index, rows.filter(pc.invert(is_copied)))
    copied, copies = _copied_uses(index, rows.filter(is_copied))
    uses = np.concatenate([copied, sent], axis=1)
    # What was copied has descriptions of its own.
    _, first = np.unique(uses[0], return_index=True)
    descriptions, last, oldest, newest = uses[:, first]
    return DescriptionUses(descriptions, last, oldest, newest, copies)


def _copied_uses(index: SegmentIndex, rows: pa.Table) -> tuple[Numbers, dict[int, Snapshot]]:
    copies = sorted(copies_of(index), key=lambda copy: (copy.first_chunk, copy.last_chunk))
    if not copies or not len(rows):
        return np.empty((4, 0), np.int64), {}
    numbers, descriptions = rows["xid"].to_numpy(), rows["description"].to_numpy()
    bounds = np.array([(copy.first_chunk, copy.last_chunk, copy.seq) for copy in copies], np.int64)
    places = np.searchsorted(bounds[:, 0], numbers, "right") - 1
    is_complete = (places >= 0) & (numbers <= bounds[places, 1])
    found = descriptions[is_complete], bounds[places[is_complete], 2]
    marks = np.full((2, len(found[0])), COPIED, np.int64)
    return np.concatenate([np.stack(found), marks]), {copy.seq: copy.snapshot for copy in copies}


def _sent_uses(index: SegmentIndex, rows: pa.Table) -> Numbers:
    spans = run_spans(index)
    if not len(rows) or not len(spans.first_seq):
        return np.empty((4, 0), np.int64)
    first, last, lsn, top = (
        np.asarray(each) for each in (spans.first_seq, spans.last_seq, spans.commit_lsn, spans.xid)
    )
    seqs, xids, described = (rows[name].to_numpy() for name in ("last_seq", "xid", "description"))
    places = np.searchsorted(first, seqs, "right") - 1
    counts = (places >= 0) & (seqs <= last[places])
    for row in np.flatnonzero(np.isin(places, [*spans.aborted])).tolist():
        counts[row] &= int(xids[row]) not in spans.aborted[int(places[row])]
    places = places[counts]
    known, some, which = np.unique(described[counts], return_index=True, return_inverse=True)
    latest = np.zeros(len(known), np.int64)
    np.maximum.at(latest, which, lsn[places])
    # Xids wrap around: they are compared as distances from one that is near.
    base = top[places][some]
    distances = (top[places] - base[which] + _XIDS // 2) % _XIDS - _XIDS // 2
    oldest, newest = np.zeros((2, len(known)), np.int64)
    np.minimum.at(oldest, which, distances)
    np.maximum.at(newest, which, distances)
    return np.stack([known, latest, (base + oldest) % _XIDS, (base + newest) % _XIDS])


def _is_older(xid: int, than: int) -> bool:
    return 0 < (than - xid) % _XIDS < _XIDS // 2
