"""What of a script a client has that comes back."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from pgoutput_construct.publisher.feed import Fed
from pgoutput_construct.wire import messages as m

__all__ = ["Surroundings", "confirmed"]

_ENDS: Final = (m.Commit, m.StreamCommit, m.CommitPrepared, m.RollbackPrepared)
_OF_XID: Final = (m.StreamStart, m.StreamAbort, m.StreamCommit, m.StreamPrepare, m.CommitPrepared, m.RollbackPrepared)
"""The messages that stand outside of what they are about, and say its top-level xid."""


class Surroundings:
    """Tells of which transaction each message of a script is, in their order."""

    def __init__(self) -> None:
        self._plain: int | None = None

    def xid_of(self, fed: Fed) -> int | None:
        """Return the top-level xid, None for a message outside of transactions."""
        message = fed.message
        if isinstance(message, m.Begin | m.BeginPrepare):
            self._plain = message.xid
        around = self._plain if fed.scope is None else fed.scope
        if isinstance(message, m.Commit | m.Prepare):
            self._plain = None
        return message.xid if isinstance(message, _OF_XID) else around


def confirmed(script: Iterable[Fed], after: int, two_phase_at: int | None) -> set[int]:
    """Return the seqs of what ended at, or before, a position.

    A transaction that was prepared behind the position ``two_phase_at`` has two ends. Once its PREPARE is confirmed the
    rest comes alone (ReorderBufferSkipPrepare()): a server that has it prepared refuses to prepare it again.
    """
    had, open_ones, around = set[int](), defaultdict[int | None, list[int]](list), Surroundings()
    for fed in script:
        xid = around.xid_of(fed)
        open_ones[xid].append(fed.seq)
        if xid is None or _is_end(fed.message, two_phase_at):
            seqs = open_ones.pop(xid)
            had.update(seqs if (_end_of(fed.message) or fed.lsn) <= after else ())
    return had


def _is_end(message: m.PgoutputMessage, two_phase_at: int | None) -> bool:
    if isinstance(message, m.Prepare | m.StreamPrepare):
        return two_phase_at is not None and message.end_lsn > two_phase_at
    return isinstance(message, _ENDS) or (isinstance(message, m.StreamAbort) and message.xid == message.subxid)


def _end_of(message: m.PgoutputMessage) -> int:
    """Return the position behind the record of a message that ends something, 0 where it does not say that."""
    end: int = getattr(message, "end_lsn", None) or getattr(message, "rollback_end_lsn", None) or 0
    return end
