"""Where a stream is in a log: offsets that a person can read, and how far the next micro-batch goes."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from pgoutput_construct.changelog.copies import copies_of
from pgoutput_construct.changelog.index import SegmentIndex
from pgoutput_construct.changelog.planning import committed
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.spark.source.pieces import messages_of
from pgoutput_construct.wire import Lsn, Timestamp

__all__ = ["Limits", "Offset", "latest_seq", "needed_from", "next_seq", "offset_at"]

Numbers = NDArray[np.int64]

_NOTHING: Final = -1


@dataclass(frozen=True)
class Offset:
    """All that ended by a seq of the log was read."""

    seq: int
    """Only this counts; what follows is for people."""
    lsn: int | None = None
    """The position of the last commit by then."""
    time: int | None = None
    """When that was: microseconds since 2000-01-01 UTC."""
    final: int | None = None
    """All that committed before this time has been read: nothing that the log has behind the seq committed before it.

    It is the time of the last commit, or an earlier one. What the log does not have yet can be earlier by the moment
    in which a server writes a commit down after it took its time; by more where its clock is set back.
    """

    def json(self) -> dict[str, Any]:
        """Return what Spark keeps in a checkpoint, and shows in the progress of a query."""
        if self.lsn is None or self.time is None:
            return {"seq": self.seq}
        final = self.time if self.final is None else self.final
        times = {"commit_time": str(Timestamp(self.time)), "finalizedUntil": str(Timestamp(final))}
        return {"seq": self.seq, "commit_lsn": str(Lsn(self.lsn)), **times}


def offset_at(index: SegmentIndex, seq: int) -> Offset:
    """Return the offset of a seq."""
    place = int(np.searchsorted(index.table["first_seq"].to_numpy(), seq, "right"))
    # The segment of the last commit is near.
    for end in range(place, 0, -1):
        found = committed(SegmentIndex(index.table.slice(end - 1, 1)).transactions)
        found = found.filter(pc.less_equal(found["seq"], seq))
        if len(found):
            last = found.slice(len(found) - 1).select(["commit_lsn", "commit_time"]).to_pylist()[0]
            return Offset(seq, last["commit_lsn"], last["commit_time"], _final(index, place, seq, last["commit_time"]))
    return Offset(seq)


def _final(index: SegmentIndex, place: int, seq: int, time: int) -> int:
    """Return a time, or that of the earliest commit after a seq where it is earlier: clocks do not order commits."""
    later = committed(SegmentIndex(index.table.slice(max(place - 1, 0))).transactions)
    earliest: int | None = pc.min(later.filter(pc.greater(later["seq"], seq))["commit_time"]).as_py()
    return time if earliest is None else min(time, earliest)


def latest_seq(index: SegmentIndex, after: int = _NOTHING) -> int:
    """Return the last seq at which something ended or was told; ``after`` where nothing did later."""
    for end in range(len(index), 0, -1):
        part = SegmentIndex(index.table.slice(end - 1, 1))
        seqs = [pc.max(part.entries(name)["seq"]).as_py() for name in ("transactions", "events")]
        last = max((seq for seq in seqs if seq is not None), default=_NOTHING)
        if last > _NOTHING or part.first_seq <= after:
            return max(last, after)
    return after


@dataclass(frozen=True)
class Limits:
    """How much a micro-batch has at most; None: all that is there."""

    transactions: int | None = None
    bytes: int | None = None
    """Of payloads, as far as the sizes of segments tell; one transaction, or copy, may be more."""

    def __bool__(self) -> bool:
        return self.transactions is not None or self.bytes is not None


def next_seq(log: ChangeLog, after: int, limits: Limits) -> int:
    """Return up to which seq the micro-batch goes that begins after one; ``after`` itself where nothing is new."""
    place = max(log.segments.place(after + 1), 0)
    index = SegmentIndex(log.index.table.slice(place))
    if not limits:
        return latest_seq(index, after)
    seqs, rows, counts = _steps(index, after)
    if not len(seqs):
        return after
    end = len(seqs)
    if limits.transactions is not None:
        end = min(end, int(np.searchsorted(np.cumsum(counts), limits.transactions, "right")))
    if limits.bytes is not None:
        segments = log.segments[place:]
        size, total = sum(segment.payload_bytes for segment in segments), sum(segment.rows for segment in segments)
        end = min(end, int(np.searchsorted(np.cumsum(rows) * (size / max(total, 1)), limits.bytes, "right")))
    return int(seqs[max(end, 1) - 1])


def _steps(index: SegmentIndex, after: int) -> tuple[Numbers, Numbers, Numbers]:
    """Return where something ended or was told after a seq, how many rows it has, and whether it is a transaction."""
    transactions = committed(index.transactions)
    transactions = transactions.filter(pc.greater(transactions["seq"], after)).combine_chunks()
    lengths = messages_of(transactions)
    told = index.entries("events")["seq"]
    told = told.filter(pc.greater(told, after)).to_numpy()
    copied = {copy.seq: copy.rows for copy in copies_of(index)}
    seqs = np.concatenate([transactions["seq"].to_numpy(), told])
    rows = np.concatenate([lengths, [copied.get(seq, 0) for seq in told.tolist()]]).astype(np.int64)
    counts = np.concatenate([np.ones(len(transactions), np.int64), np.zeros(len(told), np.int64)])
    order = np.argsort(seqs, kind="stable")
    return seqs[order], rows[order], counts[order]


def needed_from(index: SegmentIndex, seq: int) -> int:
    """Return the first seq that who has read up to one still needs: what had begun by then may end later."""
    first = seq + 1
    for name in ("transactions", "open"):
        entries = index.entries(name)
        if name == "transactions":
            entries = entries.filter(pc.greater(entries["seq"], seq))
        starts = pc.struct_field(pc.list_flatten(entries["spans"]), "first")
        begun = [pc.min(starts).as_py(), *(entries["first_seq"].to_pylist() if name == "open" else ())]
        first = min([first, *(each for each in begun if each is not None)])
    return first
