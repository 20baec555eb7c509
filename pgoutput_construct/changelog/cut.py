"""Where a log can be cut: which of its oldest segments nobody needs."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog.block import Numbers
from pgoutput_construct.changelog.log_index import LogIndex
from pgoutput_construct.changelog.needed import Need
from pgoutput_construct.changelog.registry import RegisteredReader
from pgoutput_construct.wire import Lsn, Timestamp

__all__ = ["Cut", "find_cut"]

_INT64_MIN = -(2**63)
_OPEN = 2**63 - 1


class Cut(NamedTuple):
    """How many segments can go."""

    segments: int
    """The number of the oldest segments that nobody needs."""
    holds: tuple[str, ...]
    """What retains the others, the first of them last."""


def find_cut(
    index: LogIndex, before: Lsn | Timestamp, readers: Sequence[RegisteredReader], needs: Sequence[Need] = ()
) -> Cut:
    """Find the segments that hold only what ended before a position, and what retains the first of the others."""
    starts = index.table["first_seq"].to_pylist()
    latest = _latest_ends(index, before)
    late = np.flatnonzero(latest > int(before))
    old = min(int(late[0]) if len(late) else len(index), len(index) - 1)
    cut, holds = old, list[str]()
    for reader in readers:
        if reader.next_seq < starts[cut]:
            holds.append(f"reader {reader.name!r} has read all before seq {reader.next_seq} only")
            cut = _place(starts, reader.next_seq)
    needed_first = min(needs, default=None)
    if needed_first is not None and needed_first.seq < starts[cut]:
        more = sum(need.seq < starts[cut] for need in needs) - 1
        others = f"; so it is with {more:,} more tables" if more else ""
        holds.append(f"{needed_first.words}: all from seq {needed_first.seq} on{others}")
        cut = _place(starts, needed_first.seq)
    first, last, names = _lasting(index)
    clean = int(np.flatnonzero(_crossed(starts, first, last)[: cut + 1] == 0)[-1])
    if (needed := _needed(first, last, starts[cut])) is not None:
        end = "is open" if last[needed] == _OPEN else f"ended at seq {last[needed]}"
        holds.append(f"transaction {names[needed].as_py()} began at seq {first[needed]}, and {end}")
        earliest = _needed(first, last, starts[clean + 1])
        if earliest is not None and (more := _place(starts, int(first[needed])) - clean):
            holds.append(
                f"{more:,} segments before it each begin inside of an earlier transaction, the first of which, "
                f"{names[earliest].as_py()}, began at seq {first[earliest]}"
            )
    if clean == old:
        holds.append(_too_new(starts[old], int(latest[old]), before))
    return Cut(clean, tuple(holds))


def _too_new(seq: int, latest: int, before: Lsn | Timestamp) -> str:
    """Describe a segment that is retained for its own sake; ``latest`` is the last end in it."""
    if latest <= before:
        return f"the newest segment always stays: it begins at seq {seq}"
    return f"the segment from seq {seq} on has changes up to {type(before)(latest)}, which is after {before}"


def _crossed(starts: list[int], first: Numbers, last: Numbers) -> Numbers:
    """Return inside of how many transactions each segment begins."""
    after, end = (np.searchsorted(starts, seqs, "right") for seqs in (first, last))
    steps = np.bincount(after, minlength=len(starts) + 1) - np.bincount(end, minlength=len(starts) + 1)
    return np.cumsum(steps)[: len(starts)]


def _latest_ends(index: LogIndex, before: Lsn | Timestamp) -> Numbers:
    """Return of each segment the last position, or time, at which something ended in it; the least for nothing."""
    name = "commit_time" if isinstance(before, Timestamp) else "end_lsn"
    latest = np.full(len(index), _INT64_MIN, np.int64)
    for first, part in index.parts():
        transactions, places = part.located("transactions")
        # Without the option streaming=parallel an abort does not say its position, nor its time.
        np.maximum.at(latest, first + places, transactions[name].fill_null(_INT64_MIN).to_numpy())
    if not isinstance(before, Timestamp):
        latest = np.maximum(latest, index.table["complete_lsn"].to_numpy())
    return latest


def _lasting(index: LogIndex) -> tuple[Numbers, Numbers, pa.ChunkedArray]:
    """Return where transactions begin and end that lie in several segments, and their xids; also a few others.

    Those without an outcome are among them.
    """
    ended, opened = index.marked, index.open  # the others are each in one segment
    ended = ended.filter(pc.greater(pc.list_value_length(ended["spans"]), 0))
    begins = pc.struct_field(pc.list_element(ended["spans"], 0), "first").to_numpy()
    first = np.concatenate([begins, opened["first_seq"].to_numpy()])
    last = np.concatenate([ended["seq"].to_numpy(), np.full(len(opened), _OPEN)])
    return first, last, pa.chunked_array([*ended["xid"].chunks, *opened["xid"].chunks], pa.int64())


def _needed(first: Numbers, last: Numbers, cut_seq: int) -> int | None:
    """Return the transaction that began first of those on both sides of a cut."""
    across = np.flatnonzero((first < cut_seq) & (last >= cut_seq))
    return int(across[np.argmin(first[across])]) if len(across) else None


def _place(starts: list[int], seq: int) -> int:
    return max(0, bisect_right(starts, seq) - 1)
