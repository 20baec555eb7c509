"""Where a stream is in a log: offsets that a person can read, and how far the next micro-batch goes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pgoutput_construct.changelog._facts.copies import copies_of
from pgoutput_construct.changelog._index.log_index import LogIndex
from pgoutput_construct.changelog._index.planning import committed, earliest_after, last_commit
from pgoutput_construct.changelog._index.segment_index import SegmentIndex
from pgoutput_construct.changelog._index.segment_sizes import Sizes
from pgoutput_construct.changelog.reader import ChangeLog, LogIdentity, identity_of
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.wire import Lsn, Timestamp

__all__ = ["Limits", "Offset", "check_same_log", "latest_seq", "needed_from", "next_seq", "of_log", "offset_at"]

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
    """All that committed before this time has been read: nothing that the log has after the seq committed before it.

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


def of_log(log: ChangeLog) -> dict[str, Any]:
    """Return the part of an offset that says which log it is a position of."""
    return {"log": identity_of(log).to_json()}


def check_same_log(log: ChangeLog, *offsets: Mapping[str, Any]) -> None:
    """Raise ChangeLogError where offsets are positions of another log; those of earlier versions do not say it."""
    identity = identity_of(log)
    for offset in offsets:
        if "log" in offset and (different := LogIdentity.from_json(offset["log"]).differences(identity)):
            raise ChangeLogError(
                f"{log.store}: the checkpoint of the query is of another log ({'; '.join(different)}): give that log, "
                "or begin the query from scratch, with another checkpointLocation and an empty table to write into"
            )


def offset_at(index: LogIndex, seq: int) -> Offset:
    """Return the offset of a seq."""
    last = last_commit(index, seq)
    if last is None:
        return Offset(seq)
    return Offset(seq, last["commit_lsn"], last["commit_time"], _final(index, seq, last["commit_time"]))


def _final(index: LogIndex, seq: int, time: int) -> int:
    """Return a time, or that of the earliest commit after a seq where it is earlier: clocks do not order commits."""
    earliest = earliest_after(index, seq)
    return time if earliest is None else min(time, earliest)


def latest_seq(index: LogIndex, after: int = _NOTHING) -> int:
    """Return the last seq at which something ended or was told; ``after`` where nothing did later."""
    for end in range(len(index), 0, -1):
        part = index.one(end - 1)
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
    index = log.index.slice(place)
    if not limits:
        return latest_seq(index, after)
    last, passed = None, np.zeros(2, np.int64)
    sizes = None if limits.bytes is None else Sizes.from_segments(log.segments[place:])
    for seqs, steps in _steps(index, after, sizes):
        totals = passed + np.cumsum(steps, 0)
        if (end := _end(totals, limits)) < len(seqs):
            return last if not end and last is not None else int(seqs[max(end, 1) - 1])
        last, passed = int(seqs[-1]), totals[-1]
    return after if last is None else last


def _end(totals: Numbers, limits: Limits) -> int:
    """Return how many steps are within limits, given how many transactions and bytes there are with each."""
    end = len(totals)
    for column, limit in enumerate((limits.transactions, limits.bytes)):
        if limit is not None:
            end = min(end, int(np.searchsorted(totals[:, column], limit, "right")))
    return end


def _steps(index: LogIndex, after: int, sizes: Sizes | None) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield in parts where something ended or was told after a seq, and of each how many transactions and bytes.

    Bytes are 0 where nobody asks for them, without ``sizes``.
    """
    copied = {} if sizes is None else _copies(index, sizes)
    for _, part in index.parts():
        seqs, steps = _steps_of(part, after, copied, sizes)
        if len(seqs):
            yield seqs, steps


def _steps_of(
    index: SegmentIndex, after: int, copied: Mapping[int, int], sizes: Sizes | None
) -> tuple[Numbers, Numbers]:
    transactions = committed(index.transactions)
    transactions = transactions.filter(pc.greater(transactions["seq"], after)).combine_chunks()
    ends = transactions["seq"].to_numpy()
    told = index.entries("events")["seq"]
    told = told.filter(pc.greater(told, after)).to_numpy()
    seqs = np.concatenate([ends, told])
    own = np.zeros(len(ends), np.int64) if sizes is None else _bytes(transactions, sizes)
    lengths = np.concatenate([own, [copied.get(seq, 0) for seq in told.tolist()]]).astype(np.int64)
    counts = np.concatenate([np.ones(len(ends), np.int64), np.zeros(len(told), np.int64)])
    order = np.argsort(seqs, kind="stable")
    return seqs[order], np.stack([counts, lengths], 1)[order]


def _bytes(transactions: pa.Table, sizes: Sizes) -> Numbers:
    """Return about how many bytes of payloads each transaction has."""
    spans = transactions["spans"].combine_chunks()
    starts, flat = spans.offsets.to_numpy() - spans.offsets[0].as_py(), spans.flatten()
    first, last = (flat.field(name).to_numpy() for name in ("first", "last"))
    of_spans = (last - first + 1) * sizes.mean(first, last)
    found: Numbers = np.diff(np.append(0, np.cumsum(of_spans))[starts]).astype(np.int64)
    return found


def _copies(index: LogIndex, sizes: Sizes) -> dict[int, int]:
    """Return about how many bytes of payloads the rows of each copy have, by where the log says that it is complete."""
    chunks, places = index.located("snapshots")
    order = np.argsort(chunks["number"].to_numpy(), kind="stable")
    numbers, rows = (chunks[name].to_numpy()[order] for name in ("number", "rows"))
    before = np.stack([np.append(0, np.cumsum(each)) for each in (rows, rows * sizes.means[places[order]])])
    found = {}
    for copy in copies_of(index):
        first, end = np.searchsorted(numbers, [copy.first_chunk, copy.last_chunk + 1]).tolist()
        known, length = (before[:, max(first, end)] - before[:, first]).tolist()
        # Those that were read before are as long as the others.
        found[copy.seq] = int(copy.rows * length / known) if known else 0
    return found


def needed_from(index: LogIndex, seq: int) -> int:
    """Return the first seq that who has read up to one still needs: what had begun by then may end later."""
    place = max(int(np.searchsorted(index.table["first_seq"].to_numpy(), seq, "right")) - 1, 0)
    # What lies in one segment alone has not begun by then, but for those of the segment that has the seq.
    ended = pa.concat_tables([index.marked, index.slice(place, place + 1).transactions])
    later, opened = ended.filter(pc.greater(ended["seq"], seq)), index.open
    starts = [pc.struct_field(pc.list_flatten(entries["spans"]), "first") for entries in (later, opened)]
    begun = [pc.min(each).as_py() for each in (*starts, opened["first_seq"])]
    return min([seq + 1, *(each for each in begun if each is not None)])
