"""What is known of the transactions that committed in each segment without looking at them: some numbers."""

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.changelog.block import Numbers

__all__ = ["NUMBERS", "apart", "count_commits", "is_own", "messages_of"]

NUMBERS: Final = (
    "commits",  # how many transactions committed
    "own",  # how many of them are the segment's own: see ``is_own``
    "messages",  # how many the largest of its own ones has
    "first_commit",  # the seq of the first one's end
    "last_commit",
    "least_lsn",  # of their commits
    "most_lsn",
    "most_end_lsn",
    "least_time",
    "most_time",
    "first_xid",
    "last_xid",
    "walk",  # how far it is from the first xid to the last, from one to the next: see ``apart``
    "least_walk",
    "most_walk",
)
"""The numbers of a segment; all are 0 where nothing committed."""

_XIDS: Final = 2**32


def count_commits(transactions: pa.Table, places: Numbers, first_seqs: Numbers) -> dict[str, Numbers]:
    """Return the numbers of each segment, given the transactions that committed, in the order of the log.

    ``places`` are the segments in which they ended, ``first_seqs`` where each segment begins.
    """
    found = {name: np.zeros(len(first_seqs), np.int64) for name in NUMBERS}
    if not len(places):
        return found
    starts = np.flatnonzero(np.diff(places, prepend=-1))
    ends, groups = np.append(starts[1:], len(places)) - 1, places[starts]
    columns = ("seq", "commit_lsn", "end_lsn", "commit_time", "xid")
    seq, lsn, end_lsn, time, xid = (transactions[name].to_numpy() for name in columns)
    own, walk = is_own(transactions, first_seqs[places]), np.cumsum(apart(np.diff(xid, prepend=xid[0])))
    walked = walk - np.repeat(walk[starts], ends - starts + 1)
    numbers = {
        "commits": ends - starts + 1,
        "own": np.add.reduceat(own.astype(np.int64), starts),
        "messages": np.maximum.reduceat(np.where(own, messages_of(transactions), 0), starts),
        "first_commit": seq[starts],
        "last_commit": seq[ends],
        "least_lsn": np.minimum.reduceat(lsn, starts),
        "most_lsn": np.maximum.reduceat(lsn, starts),
        "most_end_lsn": np.maximum.reduceat(end_lsn, starts),
        "least_time": np.minimum.reduceat(time, starts),
        "most_time": np.maximum.reduceat(time, starts),
        "first_xid": xid[starts],
        "last_xid": xid[ends],
        "walk": walked[ends],
        "least_walk": np.minimum.reduceat(walked, starts),
        "most_walk": np.maximum.reduceat(walked, starts),
    }
    for name, values in numbers.items():
        found[name][groups] = values
    return found


def is_own(transactions: pa.Table, first_seqs: Numbers) -> NDArray[np.bool_]:
    """Tell of each committed transaction whether the segment in which it ended has all of it, and shows it plainly.

    ``first_seqs`` are those of the segments in which they ended. Of all others a task is told.
    """
    spans = transactions["spans"].combine_chunks()
    firsts = spans.flatten().field("first").to_numpy()[spans.offsets.to_numpy()[:-1] - spans.offsets[0].as_py()]
    plain = ~transactions["streamed"].to_numpy() & transactions["gid"].is_null().to_numpy()
    own: NDArray[np.bool_] = plain & (firsts >= first_seqs)
    return own


def messages_of(transactions: pa.Table) -> Numbers:
    """Return how many messages each transaction has."""
    spans = transactions["spans"].combine_chunks()
    flat, ends = spans.flatten(), spans.offsets.to_numpy() - spans.offsets[0].as_py()
    lengths = flat.field("last").to_numpy() - flat.field("first").to_numpy() + 1
    counts: Numbers = np.diff(np.append(0, np.cumsum(lengths))[ends])
    return counts


def apart(distance: Numbers) -> Numbers:
    """Return distances of xids that are 32 bits wide: the shorter way around."""
    return (distance + _XIDS // 2) % _XIDS - _XIDS // 2
