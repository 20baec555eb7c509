"""When each description was in use: the transactions that wrote rows with it, or the snapshot of a table copy."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog._facts.copies import copies_of
from pgoutput_construct.changelog._facts.partial_copies import attempts_of
from pgoutput_construct.changelog._facts.visibility import Snapshot
from pgoutput_construct.changelog._index.log_index import apart
from pgoutput_construct.changelog._index.planning import run_spans
from pgoutput_construct.changelog._index.row_counts import COPIED
from pgoutput_construct.changelog._segment.block import Flags, Numbers
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex
from pgoutput_construct.wire import Lsn

__all__ = ["DescriptionUse", "DescriptionUses", "uses_of"]

_XIDS: Final = 2**32
_USE_COLUMNS: Final = ("descriptions", "last", "oldest", "newest")


@dataclass(frozen=True)
class DescriptionUse:
    """The rows that have one description and count (were committed, or are in a complete copy)."""

    last: Lsn | Snapshot
    """The LSN of the last commit of such rows, or the snapshot if they were copied."""
    xids: tuple[int, int] | None = None
    """The oldest and the newest top-level xid that wrote them; None if they were copied."""

    def precedes(self, xid: int) -> bool | None:
        """Return whether the rows were written before another transaction altered their table; None if uncertain.

        An xid is assigned at the first change of a transaction, and ALTER TABLE waits for transactions that wrote to
        the table (AccessExclusiveLock): so the transaction with the older xid nearly always wrote first.
        """
        if isinstance(self.last, Snapshot):
            return bool(self.last.invisible(np.array([xid]))[0])
        oldest, newest = self.xids or (xid, xid)
        if _is_older(newest, xid):
            return True
        return False if _is_older(xid, oldest) else None


@dataclass(frozen=True)
class DescriptionUses:
    """The descriptions of a log that are in use: columns with one entry for each, ordered by seq."""

    descriptions: Numbers
    """The seqs of the descriptions."""
    last: Numbers
    """The LSN of the last commit of rows with the description; for copied rows, the seq of the event COPIED_TABLE, or
    of the attempt that read them if a later one completed the copy."""
    oldest: Numbers
    """The oldest top-level xid that wrote such rows; COPIED for copied rows."""
    newest: Numbers
    """The newest such xid; COPIED for copied rows."""
    copies: Mapping[int, Snapshot] = field(default_factory=dict)
    """The snapshots of copies, and of attempts to make them, by the seqs of their events."""

    def __iter__(self) -> Iterator[tuple[int, DescriptionUse]]:
        """Yield the seq of each description and its use."""
        columns = self.descriptions, self.last, self.oldest, self.newest
        for seq, last, oldest, newest in zip(*(column.tolist() for column in columns), strict=True):
            if oldest == COPIED:
                yield seq, DescriptionUse(self.copies[last])
            else:
                yield seq, DescriptionUse(Lsn(last), (oldest, newest))

    def since(self, before: "DescriptionUses") -> "DescriptionUses":
        """Return the uses that differ from those in ``before``, an earlier state of the log."""
        if not len(before.descriptions):
            return self
        indexes = np.searchsorted(before.descriptions, self.descriptions).clip(max=len(before.descriptions) - 1)
        mine, earlier = ([getattr(each, name) for name in _USE_COLUMNS] for each in (self, before))
        differs = np.logical_or.reduce([own != was[indexes] for own, was in zip(mine, earlier, strict=True)])
        return self.take(differs)

    def of(self, seqs: Sequence[int]) -> "DescriptionUses":
        """Return the uses of some descriptions, all of which are in use."""
        return self.take(self.descriptions.searchsorted(np.array(seqs, np.int64)))

    def last_lsn(self, seq: int) -> Lsn | None:
        """Return the LSN of the last use of a description; None if it is not in use."""
        index = int(self.descriptions.searchsorted(seq))
        if index == len(self.descriptions) or self.descriptions[index] != seq:
            return None
        last = int(self.last[index])
        return self.copies[last].lsn if self.oldest[index] == COPIED else Lsn(last)

    def take(self, selected: Numbers | Flags | slice) -> "DescriptionUses":
        """Return a selection, by indices, by a boolean mask or by a slice."""
        descriptions, last, oldest, newest = (getattr(self, name)[selected] for name in _USE_COLUMNS)
        return DescriptionUses(descriptions, last, oldest, newest, self.copies)

    def lost(self, before: "DescriptionUses") -> list[int]:
        """Return the seqs of descriptions that were in use in ``before`` and are no longer."""
        found: list[int] = np.setdiff1d(before.descriptions, self.descriptions, assume_unique=True).tolist()
        return found


def uses_of(index: SegmentIndex) -> DescriptionUses:
    """Return the uses of descriptions, from the index of a log.

    Any later segment may use a description again, and rows may stop counting (``lost_histories``): they are
    computed from scratch each time, vectorized over the index, which has a few entries per segment.
    """
    rows = index.entries("rows")
    is_copied = pc.equal(rows["span"], COPIED)
    sent = _sent_uses(index, rows.filter(pc.invert(is_copied)))
    copied, copies = _copied_uses(index, rows.filter(is_copied))
    uses = np.concatenate([copied, sent], axis=1)
    # Copied rows have descriptions of their own, so no description is in both.
    _, first = np.unique(uses[0], return_index=True)
    descriptions, last, oldest, newest = uses[:, first]
    return DescriptionUses(descriptions, last, oldest, newest, copies)


def _copied_uses(index: SegmentIndex, rows: pa.Table) -> tuple[Numbers, dict[int, Snapshot]]:
    copies = sorted(copies_of(index), key=lambda copy: (copy.first_chunk, copy.last_chunk))
    if not copies or not len(rows):
        return np.empty((4, 0), np.int64), {}
    numbers, descriptions, firsts = (rows[name].to_numpy() for name in ("xid", "description", "first_seq"))
    bounds = np.array([(copy.first_chunk, copy.last_chunk, copy.seq) for copy in copies], np.int64)
    copy_indexes = np.searchsorted(bounds[:, 0], numbers, "right") - 1
    is_complete = (copy_indexes >= 0) & (numbers <= bounds[copy_indexes, 1])
    events, snapshots = bounds[copy_indexes, 2], {copy.seq: copy.snapshot for copy in copies}
    for (first_chunk, last_chunk), attempts in attempts_of(index).items():
        of_earlier = (numbers >= first_chunk) & (numbers <= last_chunk)
        of_earlier &= (firsts >= attempts[0].seq) & (firsts < attempts[-1].seq)
        seqs = np.array([attempt.seq for attempt in attempts], np.int64)
        events[of_earlier] = seqs[np.searchsorted(seqs, firsts[of_earlier], "right") - 1]
        snapshots |= {attempt.seq: attempt.snapshot for attempt in attempts}
    marks = np.full((2, int(is_complete.sum())), COPIED, np.int64)
    return np.concatenate([np.stack([descriptions[is_complete], events[is_complete]]), marks]), snapshots


def _sent_uses(index: SegmentIndex, rows: pa.Table) -> Numbers:
    spans = run_spans(index)
    if not len(rows) or not len(spans.first_seq):
        return np.empty((4, 0), np.int64)
    first, last, lsn, top = (
        np.asarray(each) for each in (spans.first_seq, spans.last_seq, spans.commit_lsn, spans.xid)
    )
    seqs, xids, described = (rows[name].to_numpy() for name in ("last_seq", "xid", "description"))
    span_indexes = np.searchsorted(first, seqs, "right") - 1
    counts = (span_indexes >= 0) & (seqs <= last[span_indexes])
    for row in np.flatnonzero(np.isin(span_indexes, [*spans.aborted])).tolist():
        counts[row] &= int(xids[row]) not in spans.aborted[int(span_indexes[row])]
    span_indexes = span_indexes[counts]
    known, some, which = np.unique(described[counts], return_index=True, return_inverse=True)
    latest = np.zeros(len(known), np.int64)
    np.maximum.at(latest, which, lsn[span_indexes])
    # Xids wrap around: they are compared by their distance from one of them.
    base = top[span_indexes][some]
    distances = apart(top[span_indexes] - base[which])
    oldest, newest = np.zeros((2, len(known)), np.int64)
    np.minimum.at(oldest, which, distances)
    np.maximum.at(newest, which, distances)
    return np.stack([known, latest, (base + oldest) % _XIDS, (base + newest) % _XIDS])


def _is_older(xid: int, than: int) -> bool:
    return 0 < (than - xid) % _XIDS < _XIDS // 2
