"""What a server sends, in short: control messages, and rows between them by their xid alone."""

from collections.abc import Iterable
from typing import Any

import pgoutput_construct as pgo
from pgoutput_construct.stream.state import ControlMessage
from tests.stream.spans import find_place, find_transactions

__all__ = [
    "Item",
    "Row",
    "begin",
    "commit",
    "controls",
    "rollback_prepared",
    "row",
    "segment",
    "stream_commit",
    "two_phase",
    "visible",
]

Row = tuple[str, int | None]
Item = pgo.PgoutputMessage | Row


def begin(xid: int, lsn: int) -> pgo.Begin:
    """A Begin."""
    return pgo.Begin(pgo.Lsn(lsn), pgo.Timestamp(lsn), xid)


def commit(lsn: int) -> pgo.Commit:
    """A Commit."""
    return pgo.Commit(pgo.Lsn(lsn), pgo.Lsn(lsn + 1), pgo.Timestamp(lsn))


def stream_commit(xid: int, lsn: int) -> pgo.StreamCommit:
    """A Stream Commit."""
    return pgo.StreamCommit(xid, pgo.Lsn(lsn), pgo.Lsn(lsn + 1), pgo.Timestamp(lsn))


def two_phase(kind: Any, xid: int, gid: str, lsn: int) -> Any:
    """A Begin Prepare, Prepare, Stream Prepare or Commit Prepared."""
    return kind(pgo.Lsn(lsn), pgo.Lsn(lsn + 1), pgo.Timestamp(lsn), xid, gid)


def rollback_prepared(xid: int, gid: str) -> pgo.RollbackPrepared:
    """A Rollback Prepared."""
    return pgo.RollbackPrepared(pgo.Lsn(1), pgo.Lsn(2), pgo.Timestamp(3), pgo.Timestamp(4), xid, gid)


def segment(xid: int, *subxids: int, first: bool = False) -> list[Item]:
    """One segment of a stream, a row of each subtransaction in it."""
    return [pgo.StreamStart(xid, int(first)), *(("row", subxid) for subxid in subxids), pgo.StreamStop()]


def row(xid: int | None = None) -> Row:
    """A row; inside a stream it has an xid."""
    return "row", xid


def controls(items: Iterable[Item]) -> list[ControlMessage]:
    """Number the items, and leave the control messages."""
    found, stream = [], None
    for seq, item in enumerate(items):
        if isinstance(item, tuple):
            continue
        if isinstance(item, pgo.Begin | pgo.BeginPrepare | pgo.StreamStart):
            stream = None  # of a connection that was lost
        found.append(ControlMessage(seq, stream, item))
        if isinstance(item, pgo.StreamStart):
            stream = item.xid
        elif isinstance(item, pgo.StreamStop):
            stream = None
    return found


def visible(items: list[Item]) -> list[tuple[int, int, int, int]]:
    """Return ``commit_lsn, position, xid, seq`` of every visible row, in order."""
    spans = find_transactions(controls(items))
    places = [(find_place(spans, seq, item[1]), seq) for seq, item in enumerate(items) if isinstance(item, tuple)]
    return sorted((place.commit_lsn, place.position, place.xid, seq) for place, seq in places if place is not None)
