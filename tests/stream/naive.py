"""A simulated server whose actions are drawn numbers, and a reader of its stream that holds all rows in memory."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

import pgoutput_construct as pgo
from tests.stream.sent import Item, begin, commit, rollback_prepared, row, stream_commit, two_phase

__all__ = ["ACTIONS", "Naive", "Publisher"]


@dataclass
class Naive:
    """Reads everything in order and keeps the rows themselves."""

    rows: list[tuple[int, int | None]] = field(default_factory=list)
    streams: dict[int, list[tuple[int, int | None]]] = field(default_factory=dict)
    prepared: dict[str, list[tuple[int, int | None]]] = field(default_factory=dict)
    committed: dict[int, tuple[int, int]] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)

    def read(self, seq: int, item: Item) -> None:
        """Take in the next message or row."""
        match item:
            case tuple():
                self.rows.append((seq, item[1]))
            case pgo.Begin() | pgo.BeginPrepare():
                self.rows = []
            case pgo.StreamStart():
                self.rows = [] if item.first_segment else self.streams[item.xid]
                self.streams[item.xid] = self.rows
            case pgo.Commit():
                self._commit(self.rows, item.commit_lsn)
            case pgo.Prepare():
                self.prepared[item.gid] = self.rows
            case pgo.StreamCommit():
                self._commit(self.streams.pop(item.xid), item.commit_lsn)
            case pgo.StreamPrepare():
                self.prepared[item.gid] = self.streams.pop(item.xid)
            case pgo.StreamAbort():
                kept = [r for r in self.streams[item.xid] if item.subxid not in (item.xid, r[1])]
                self.streams[item.xid] = kept
            case pgo.CommitPrepared():
                self._commit(self.prepared.pop(item.gid), item.commit_lsn)
            case pgo.RollbackPrepared():
                self.prepared.pop(item.gid, None)

    def _commit(self, rows: list[tuple[int, int | None]], lsn: int) -> None:
        self.committed |= {seq: (lsn, number) for number, (seq, _) in enumerate(rows)}


@dataclass
class Publisher:
    """Sends what a server may send; drawn numbers choose the actions."""

    draw: Any
    items: list[Item] = field(default_factory=list)
    streams: dict[int, list[int]] = field(default_factory=dict)
    interrupted: dict[int, list[int]] = field(default_factory=dict)
    prepared: dict[str, int] = field(default_factory=dict)
    number: int = 0

    def next(self) -> int:
        """A new xid, subxid, gid or LSN."""
        self.number += 1
        return self.number

    def step(self, action: str) -> None:
        """Take one action; does nothing if the action is not possible now."""
        rows: list[Item] = [row() for _ in range(self.draw(st.integers(0, 3)))]
        lsn, lost = self.next(), self.draw(st.integers(0, 4)) == 0
        match action:
            case "small":
                self.items += [begin(self.next(), lsn), *rows, *([] if lost else [commit(lsn)])]
                self._lost(lost)
            case "prepare":
                xid, gid = self.next(), str(self.next())
                ending = [two_phase(pgo.Prepare, xid, gid, lsn)]
                self.items += [two_phase(pgo.BeginPrepare, xid, gid, lsn), *rows, *([] if lost else ending)]
                self.prepared |= {} if lost else {gid: xid}
                self._lost(lost)
            case "segment":
                self._segment(lost)
            case "finish" if self.streams:
                self._finish(lsn)
            case "settle" if self.prepared:
                gid, xid = self.prepared.popitem()
                rolled_back = self.draw(st.booleans())
                done = rollback_prepared(xid, gid) if rolled_back else two_phase(pgo.CommitPrepared, xid, gid, lsn)
                self.items.append(done)

    def _segment(self, lost: bool) -> None:
        known = self.draw(st.sampled_from([None, *self.streams]))
        again = self.interrupted.popitem() if self.interrupted and self.draw(st.booleans()) else None
        if known is None and again is not None:
            xid, self.streams[again[0]] = again[0], again[1]
        else:
            xid = self.next() if known is None else known
        subxids = self.streams.setdefault(xid, [xid])
        subxids += [self.next()] if self.draw(st.booleans()) else []
        chosen = self.draw(st.lists(st.sampled_from(subxids), max_size=4))
        rows: list[Item] = [row(subxid) for subxid in chosen]
        self.items += [pgo.StreamStart(xid, int(known is None)), *rows, *([] if lost else [pgo.StreamStop()])]
        self._lost(lost)

    def _finish(self, lsn: int) -> None:
        xid = self.draw(st.sampled_from(list(self.streams)))
        how = self.draw(st.sampled_from(["commit", "prepare", "abort", "sub", "sub"]))
        if how == "sub":
            if len(self.streams[xid]) > 1:
                self.items.append(pgo.StreamAbort(xid, self.streams[xid].pop()))
            return
        gid = str(self.next())
        del self.streams[xid]
        self.prepared |= {gid: xid} if how == "prepare" else {}
        endings = {"commit": stream_commit(xid, lsn), "abort": pgo.StreamAbort(xid, xid)}
        self.items.append(endings.get(how) or two_phase(pgo.StreamPrepare, xid, gid, lsn))

    def _lost(self, lost: bool) -> None:
        if lost:
            self.interrupted |= self.streams
            self.streams = {}


ACTIONS = ("small", "prepare", "segment", "segment", "finish", "settle")
