"""Logs of format 2: their copies have the snapshot alone, and what it sees is worked out when they are opened.

Xids are compared as distances from one commit of the log to the next, which are never as far as half of all xids: so a
log that is longer than that does not seem to begin again.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from pgoutput_construct.changelog.block import Flags, Numbers
from pgoutput_construct.changelog.commit_numbers import apart
from pgoutput_construct.changelog.commits import commits_of, walked
from pgoutput_construct.changelog.index import SegmentIndex
from pgoutput_construct.changelog.log_index import LogIndex
from pgoutput_construct.changelog.planning import LostEnd, committed, lost_ends
from pgoutput_construct.changelog.visibility import Snapshot, Visibility
from pgoutput_construct.wire import Lsn

__all__ = ["visibilities"]


def visibilities(index: SegmentIndex, copies: Collection[tuple[int, Snapshot]]) -> dict[int, Visibility]:
    """Return what copies contain of a log, by their seqs, given these and their snapshots."""
    if not copies:
        return {}
    commits, found = _Commits(LogIndex.over(index)), dict[Snapshot, Visibility]()
    for seq, snapshot in copies:
        if snapshot not in found:  # hundreds of tables may be copied under one
            found[snapshot] = commits.visibility(seq, snapshot)
    return {seq: found[snapshot] for seq, snapshot in copies}


class _Segment(NamedTuple):
    """The commits of one segment."""

    seqs: Numbers
    lsns: Numbers
    xids: Numbers
    walk: Numbers
    """How far the xid of each is from that of the first."""


class _Commits:
    """The commits of a log: of most segments numbers are enough."""

    def __init__(self, index: LogIndex) -> None:
        self._index = index
        self._lost: Sequence[LostEnd] = lost_ends(index)
        numbers = commits_of(index, self._lost)
        self._places = np.flatnonzero(numbers["commits"])
        self._numbers = {name: column[self._places] for name, column in numbers.items()}
        self._begins = walked(self._numbers) if len(self._places) else self._places
        """How far the first xid of each segment is from that of the first segment."""

    def visibility(self, seq: int, snapshot: Snapshot) -> Visibility:
        """Return what a copy contains that became complete at a seq."""
        if not len(self._places):
            return Visibility.at(snapshot.lsn)
        begins = self._begins + self._away(seq, snapshot)  # from here on distances from xmax
        least, most = begins + self._numbers["least_walk"], begins + self._numbers["most_walk"]
        unseen, seen = least >= 0, most < snapshot.xmin - snapshot.xmax
        lsns, xids, adds = [], [], []
        for at in np.flatnonzero(~unseen & ~seen).tolist():
            segment = self._segment(at)
            lsns.append(segment.lsns)
            xids.append(segment.xids)
            adds.append(_is_unseen(begins[at] + segment.walk, snapshot))
        mixed, is_unseen = _joined(lsns), np.concatenate([np.empty(0, np.bool_), *adds])
        until = 1 + max(_most(self._numbers["most_lsn"][seen]), _most(mixed[~is_unseen]))
        none = np.iinfo(np.int64).max
        place = min(_least(self._numbers["least_lsn"][unseen], none), _least(mixed[is_unseen], none))
        if place >= until:  # as nearly always: all that it contains comes first
            return Visibility.at(Lsn(place) if place < none else max(Lsn(until), snapshot.lsn))
        for at in np.flatnonzero(seen & (self._numbers["most_lsn"] >= place)).tolist():
            segment = self._segment(at)
            lsns.append(segment.lsns)
            xids.append(segment.xids)
            adds.append(np.zeros(len(segment.lsns), np.bool_))
        all_lsns, is_contained = _joined(lsns), ~np.concatenate(adds)
        contained = _joined(xids)[is_contained & (all_lsns >= place)]
        return Visibility(Lsn(place), frozenset(contained.tolist()), Lsn(until))

    def _away(self, seq: int, snapshot: Snapshot) -> int:
        """Return how far the first commit of the log is from ``xmax``: the copy is where its own time was."""
        at = min(int(np.searchsorted(self._numbers["last_commit"], seq)), len(self._places) - 1)
        segment = self._segment(at)
        here = min(int(np.searchsorted(segment.seqs, seq)), len(segment.xids) - 1)
        return int(apart(segment.xids[here] - snapshot.xmax)) - int(self._begins[at]) - int(segment.walk[here])

    def _segment(self, at: int) -> _Segment:
        transactions = committed(self._index.one(int(self._places[at])).transactions, self._lost)
        seqs, lsns, xids = (transactions[name].to_numpy() for name in ("seq", "commit_lsn", "xid"))
        return _Segment(seqs, lsns, xids, np.cumsum(apart(np.diff(xids, prepend=xids[0]))))


def _is_unseen(distances: Numbers, snapshot: Snapshot) -> Flags:
    """Return what a snapshot does not see, given how far transactions are from its ``xmax``."""
    running = np.array([xid - snapshot.xmax for xid in snapshot.xip], np.int64)
    unseen: Flags = (distances >= 0) | np.isin(distances, running)
    return unseen


def _joined(parts: Sequence[Numbers]) -> Numbers:
    return np.concatenate([np.empty(0, np.int64), *parts])


def _least(lsns: Numbers, none: int) -> int:
    return int(lsns.min(initial=none))


def _most(lsns: Numbers) -> int:
    return int(lsns.max(initial=0))
