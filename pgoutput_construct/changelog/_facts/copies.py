"""Copies of tables: the rows that they had at one moment, and which later changes count in addition to them."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any, NamedTuple

import numpy as np

from pgoutput_construct.changelog._facts.visibility import Snapshot, Visibility
from pgoutput_construct.changelog._index.log_index import LogIndex, apart
from pgoutput_construct.changelog._index.planning import (
    LostHistory,
    commit_stats,
    committed_transactions,
    lost_histories,
    xid_distances,
)
from pgoutput_construct.changelog._segment.block import Flags, Numbers
from pgoutput_construct.changelog._segment.events import COPIED_TABLE, LogEvent, events_of
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.wire import Lsn

__all__ = ["TableCopy", "copies_of", "latest_copies", "snapshot_command"]


@dataclass(frozen=True)
class TableCopy:
    """A table that was copied into the log as a whole."""

    seq: int
    """Where the log says that it is complete."""
    relation_oid: int
    """The table, as its Relation names it."""
    namespace: str
    """Its schema then."""
    name: str
    """Its name then."""
    snapshot: Snapshot
    """What its rows contain."""
    first_chunk: int
    """The number of its first chunk: the column ``snapshot`` of the log has it. Chunks of a copy that did not become
    complete are of no copy, and count nothing."""
    last_chunk: int
    """That of its last one; lower than the first for a table without rows."""
    rows: int
    """How many rows it had."""
    is_requested: bool = False
    """Whether somebody asked for it; else it was made since the log had no copy of the table."""
    known_visibility: Visibility | None = None
    """Which transactions its rows contain; None where that is not known (yet): see ``visibility``."""

    @property
    def visibility(self) -> Visibility:
        """Which transactions its rows contain, of a copy that ``copies_of`` returned; others raise ChangeLogError."""
        if self.known_visibility is None:
            raise ChangeLogError(
                f"seq {self.seq}: the copy of {full_name(self)} does not say which transactions it contains"
            )
        return self.known_visibility

    @property
    def since_lsn(self) -> Lsn:
        """The LSN from which on commits must be in the log, for its rows and these to be those of the table.

        Where the log was pruned, what a copy of format 2 contains is worked out from what is left: its snapshot's LSN
        is then what is certain.
        """
        return min(self.visibility.place_lsn, self.snapshot.lsn)

    @classmethod
    def of(cls, event: LogEvent) -> "TableCopy":
        """Read an event COPIED_TABLE; of log format 2 it says nothing of LSNs."""
        told = event.details
        snapshot = Snapshot(told["xmin"], told["xmax"], tuple(told["xip"]), event.lsn)
        first, last = told["chunks"]
        named = event.seq, told["oid"], told["schema"], told["table"]
        is_requested, visibility = bool(told.get("requests")), Visibility.read(told)
        return cls(*named, snapshot, first, last, told["rows"], is_requested, visibility)

    def said(self) -> dict[str, Any]:
        """Return the details of the event that says it; the position of that is the snapshot's."""
        snapshot, chunks = self.snapshot, [self.first_chunk, self.last_chunk]
        told = {"oid": self.relation_oid, "schema": self.namespace, "table": self.name, "chunks": chunks}
        told |= {"rows": self.rows, "xmin": snapshot.xmin, "xmax": snapshot.xmax, "xip": list(snapshot.xip)}
        return told | (self.known_visibility.details() if self.known_visibility else {})


def copies_of(index: SegmentIndex) -> Iterator[TableCopy]:
    """Yield the copies that are complete, in the order in which they became so.

    What those of log format 2 contain is worked out from the transactions of ``index``, which must be that of the log.
    """
    copies = [*map(TableCopy.of, events_of(index, COPIED_TABLE))]
    unknown = [(copy.seq, copy.snapshot) for copy in copies if copy.known_visibility is None]
    worked_out = _visibilities(index, unknown)
    for copy in copies:
        yield replace(copy, known_visibility=worked_out[copy.seq]) if copy.seq in worked_out else copy


def latest_copies(index: SegmentIndex) -> dict[int, TableCopy]:
    """Return the latest copy of each table, by its OID."""
    return {copy.relation_oid: copy for copy in copies_of(index)}


def snapshot_command(*tables: str) -> str:
    """Return the command that copies tables, by qualified name, into a log: as a shell reads it, for remedies."""
    return " ".join(["pgoutput snapshot DSN LOG", *(f"--table {quote(table)}" for table in tables)])


def _visibilities(index: SegmentIndex, copies: Collection[tuple[int, Snapshot]]) -> dict[int, Visibility]:
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
        self._lost: Sequence[LostHistory] = lost_histories(index)
        numbers = commit_stats(index, self._lost)
        self._places = np.flatnonzero(numbers["commits"])
        self._numbers = {name: column[self._places] for name, column in numbers.items()}
        self._begins = xid_distances(self._numbers) if len(self._places) else self._places
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
        transactions = committed_transactions(self._index.one(int(self._places[at])).transactions, self._lost)
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
