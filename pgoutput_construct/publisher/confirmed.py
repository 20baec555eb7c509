"""What of a script a client has that comes back."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from pgoutput_construct.publisher.feed import Fed
from pgoutput_construct.wire import messages as m

__all__ = ["confirmed"]

_ENDS: Final = (m.Commit, m.StreamCommit, m.Prepare, m.StreamPrepare, m.CommitPrepared, m.RollbackPrepared)
_OF_XID: Final = (m.StreamStart, m.StreamAbort, m.StreamCommit, m.StreamPrepare, m.CommitPrepared, m.RollbackPrepared)
"""The messages that stand outside of what they are about, and say its top-level xid."""


def confirmed(script: Iterable[Fed], after: int) -> set[int]:
    """Return the seqs of what ended at, or before, a position.

    A transaction that was prepared has two ends. Once its PREPARE is confirmed the rest comes alone
    (ReorderBufferSkipPrepare()): a server that has it prepared refuses to prepare it again.
    """
    had, open_ones, plain = set[int](), defaultdict[int | None, list[int]](list), None
    for seq, lsn, message, scope in script:
        if isinstance(message, m.Begin | m.BeginPrepare):
            plain = message.xid
        xid = _top_xid(message, plain if scope is None else scope)
        open_ones[xid].append(seq)
        if isinstance(message, m.Commit | m.Prepare):
            plain = None
        if _is_end(message) or xid is None:
            seqs = open_ones.pop(xid)
            had.update(seqs if (_end_of(message) or lsn) <= after else ())
    return had


def _top_xid(message: m.PgoutputMessage, around: int | None) -> int | None:
    """Return the xid of the transaction that a message belongs to, None for a message outside of transactions."""
    return message.xid if isinstance(message, _OF_XID) else around


def _is_end(message: m.PgoutputMessage) -> bool:
    return isinstance(message, _ENDS) or (isinstance(message, m.StreamAbort) and message.xid == message.subxid)


def _end_of(message: m.PgoutputMessage) -> int:
    """Return the position behind the record of a message that ends something, 0 where it does not say that."""
    end: int = getattr(message, "end_lsn", None) or getattr(message, "rollback_end_lsn", None) or 0
    return end
