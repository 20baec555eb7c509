"""How far a reader has come in a log that knows only up to which commit it has read."""

import numpy as np
import pyarrow.compute as pc

from pgoutput_construct.changelog.pruned import read_pruned
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.stream.logged import COMMITTED
from pgoutput_construct.wire import Lsn

__all__ = ["next_seq_at"]


def next_seq_at(log: ChangeLog, lsn: int) -> int:
    """Return the first seq that a reader needs who has read all that was committed before a position, and no more.

    Transactions that are open count as not read. Raises ChangeLogError where the log was pruned beyond the position,
    or does not reach it.
    """
    pruned, first = read_pruned(log.store), log.segments[0].first_seq
    if first and lsn < pruned.lsn:
        raise ChangeLogError(f"{log.store}: what was committed before {pruned.lsn} was pruned: {Lsn(lsn)} is too early")
    if lsn > log.complete_lsn:
        raise ChangeLogError(f"{log.store}: the log ends at {log.complete_lsn}: {Lsn(lsn)} is not reached yet")
    ended = log.transactions()
    ended = ended.filter(pc.equal(ended["outcome"], COMMITTED))
    is_read = ended["commit_lsn"].to_numpy() < lsn
    begins = pc.struct_field(pc.list_element(ended["spans"], 0), "first").to_numpy()
    seqs = ended["seq"].to_numpy()[is_read]
    after = int(seqs[-1]) + 1 if len(seqs) else first
    needed = np.concatenate([begins[~is_read], log.open_transactions()["first_seq"].to_numpy()])
    return max(first, min(after, int(needed.min()) if len(needed) else after))
