"""When the rows of a log had which description: the transactions that wrote them, or the snapshot that has them."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog.copies import Snapshot, copies_of
from pgoutput_construct.changelog.index import SegmentIndex
from pgoutput_construct.changelog.planning import run_spans
from pgoutput_construct.changelog.usage import COPIED
from pgoutput_construct.wire import Lsn

__all__ = ["Use", "uses_of"]

_XIDS: Final = 2**32


@dataclass(frozen=True)
class Use:
    """The rows that have one description, and that count."""

    last: Lsn | Snapshot
    """Where the last of them was committed; or the snapshot, where they were copied."""
    xids: tuple[int, int] | None = None
    """The oldest and the newest top-level xid that wrote them; None where they were copied."""

    def precedes(self, xid: int) -> bool | None:
        """Tell whether they were written before what another transaction did to their table.

        None where it is not certain. An xid is as old as the first change of its transaction, and who alters a table
        waits for those that wrote to it: so what began earlier nearly always wrote earlier.
        """
        if isinstance(self.last, Snapshot):
            return bool(self.last.invisible(np.array([xid]))[0])
        oldest, newest = self.xids or (xid, xid)
        if _is_older(newest, xid):
            return True
        return False if _is_older(xid, oldest) else None


def uses_of(index: SegmentIndex) -> dict[int, Use]:
    """Return the uses of descriptions, by their seqs, from the index of a log."""
    rows = index.entries("rows")
    copied, sent = rows.filter(pc.equal(rows["span"], COPIED)), rows.filter(pc.not_equal(rows["span"], COPIED))
    found = dict(_sent_uses(index, sent))
    copies = sorted(copies_of(index), key=lambda copy: (copy.first_chunk, copy.last_chunk))
    firsts = [copy.first_chunk for copy in copies]
    for number, description in zip(copied["xid"].to_pylist(), copied["description"].to_pylist(), strict=True):
        place = bisect_right(firsts, number) - 1
        if place >= 0 and number <= copies[place].last_chunk:
            found[description] = Use(copies[place].snapshot)
    return found


def _sent_uses(index: SegmentIndex, rows: pa.Table) -> Iterator[tuple[int, Use]]:
    spans = run_spans(index)
    if not len(rows) or not len(spans.first_seq):
        return
    first, last, lsn, top = (
        np.asarray(each) for each in (spans.first_seq, spans.last_seq, spans.commit_lsn, spans.xid)
    )
    seqs, xids, described = (rows[name].to_numpy() for name in ("last_seq", "xid", "description"))
    places = np.searchsorted(first, seqs, "right") - 1
    counts = (places >= 0) & (seqs <= last[places])
    for place, aborted in spans.aborted.items():
        counts &= ~((places == place) & np.isin(xids, list(aborted)))
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
    ends = zip(((base + oldest) % _XIDS).tolist(), ((base + newest) % _XIDS).tolist(), strict=True)
    for seq, position, both in zip(known.tolist(), latest.tolist(), ends, strict=True):
        yield seq, Use(Lsn(position), both)


def _is_older(xid: int, than: int) -> bool:
    return 0 < (than - xid) % _XIDS < _XIDS // 2
