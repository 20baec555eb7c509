"""Which transactions of a log committed, and where and when: most of that is known without looking at them."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyarrow.compute as pc

from pgoutput_construct.changelog.block import Numbers
from pgoutput_construct.changelog.commit_numbers import NUMBERS, apart, count_commits
from pgoutput_construct.changelog.log_index import LogIndex
from pgoutput_construct.changelog.planning import LostEnd, committed

__all__ = ["commits_of", "earliest_after", "last_commit", "walked"]


def commits_of(index: LogIndex, lost: Collection[LostEnd] = ()) -> dict[str, Numbers]:
    """Return the NUMBERS of each segment, without what committed in a history of the server that was ``lost``."""
    numbers: dict[str, Numbers] = {name: index.table[name].to_numpy() for name in NUMBERS}
    has_lost = np.zeros(len(index), np.bool_)
    for seq, end in lost:
        has_lost |= (numbers["commits"] > 0) & (numbers["first_commit"] < seq) & (numbers["most_end_lsn"] > end)
    if has_lost.any():
        numbers = {name: column.copy() for name, column in numbers.items()}
    for place in np.flatnonzero(has_lost).tolist():
        one = index.one(place)
        found = committed(one.transactions, lost)
        first_seqs = np.array([one.first_seq], np.int64)
        for name, (number,) in count_commits(found, np.zeros(len(found), np.int64), first_seqs).items():
            numbers[name][place] = number
    return numbers


def last_commit(index: LogIndex, seq: int) -> dict[str, Any] | None:
    """Return the last transaction that committed up to a seq, None where none did."""
    numbers = commits_of(index)
    for place in np.flatnonzero((numbers["commits"] > 0) & (numbers["first_commit"] <= seq))[-1:].tolist():
        found = committed(index.one(place).transactions)
        found = found.filter(pc.less_equal(found["seq"], seq))
        last: dict[str, Any] = found.slice(len(found) - 1).to_pylist()[0]
        return last
    return None


def earliest_after(index: LogIndex, seq: int) -> int | None:
    """Return the least time of what committed after a seq, None where nothing did."""
    numbers = commits_of(index)
    is_later = (numbers["commits"] > 0) & (numbers["first_commit"] > seq)
    found = numbers["least_time"][is_later].tolist()
    for place in np.flatnonzero((numbers["first_commit"] <= seq) & (numbers["last_commit"] > seq)).tolist():
        some = committed(index.one(place).transactions)
        found.append(pc.min(some.filter(pc.greater(some["seq"], seq))["commit_time"]).as_py())
    return min(found, default=None)


def walked(commits: Mapping[str, Numbers]) -> Numbers:
    """Return how far it is from the first xid of all to the first of each segment, from one to the next.

    Each segment must have some that committed. 2**31 and more away is what 32 bits do not tell before from after.
    """
    steps = commits["walk"][:-1] + apart(commits["first_xid"][1:] - commits["last_xid"][:-1])
    return np.append(0, np.cumsum(steps))
