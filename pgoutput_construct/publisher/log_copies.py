"""The copies of tables in a log, and where among its transactions they are served."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from pgoutput_construct.changelog.copies import TableCopy
from pgoutput_construct.publisher.log_order import LogOrder
from pgoutput_construct.publisher.order import COPIED
from pgoutput_construct.stream.logged import EndedTransaction, LoggedTransaction

__all__ = ["LogCopies"]

_NO_XID: Final = 0


class LogCopies:
    """The latest copy of each table, put into the order of a log.

    A copy stands before the first item of which it has nothing: what precedes that is in it, or is replaced by it. Of
    the items behind it those that it contains are left out for its table.
    """

    def __init__(self, copies: Sequence[TableCopy], order: LogOrder) -> None:
        """Find the places of the copies, and put them into the order."""
        self._latest = {copy.relation_oid: copy for copy in copies}
        """By OID."""
        self._by_seq = {copy.seq: copy for copy in self._latest.values()}
        self._again = {copy.seq for copy in self._by_seq.values() if _is_copied_before(copy, copies)}
        self._places = {copy.seq: _place(copy, order) for copy in self._by_seq.values()}
        self._behind = {seq: order[place].seq for seq, place in self._places.items() if place < len(order)}
        """The seq of the item behind each copy that has one."""
        self._is_invisible = lru_cache(maxsize=4096)(self._look)
        order.insert(self._placed(order))

    def of(self, ended: EndedTransaction) -> TableCopy:
        """Return the copy that is served as a transaction."""
        return self._by_seq[ended.seq]

    def empties(self, ended: EndedTransaction) -> bool:
        """Tell whether something of its table may have been served before a copy."""
        return self._places[ended.seq] > 0 or ended.seq in self._again

    def contain(self, relation_oid: int, ended: EndedTransaction) -> bool:
        """Tell whether a copy that was served before has what a transaction did to a table."""
        copy = self._latest.get(relation_oid)
        if copy is None or ended.seq < self._behind.get(copy.seq, ended.seq + 1):
            return False
        return not self._is_invisible(copy.seq, ended.transaction.xid)

    def _placed(self, order: LogOrder) -> list[tuple[int, EndedTransaction]]:
        """Return the copies as transactions, with their places."""
        placed, end = list[tuple[int, EndedTransaction]](), 0
        # Those at one place in the order of their snapshots: what is copied later has the later position.
        for copy in sorted(self._by_seq.values(), key=self._rank):
            place = self._places[copy.seq]
            before = max(end, order[place - 1].end_lsn or 0) if place else end
            end = _end(copy, before, order[place] if place < len(order) else None)
            placed.append((place, EndedTransaction(copy.seq, COPIED, LoggedTransaction(_NO_XID), end, end, 0)))
        return placed

    def _rank(self, copy: TableCopy) -> tuple[int, int, int]:
        return self._places[copy.seq], copy.snapshot.lsn, copy.seq

    def _look(self, seq: int, xid: int) -> bool:
        return bool(self._by_seq[seq].snapshot.invisible(np.array([xid], np.int64))[0])


def _end(copy: TableCopy, before: int, following: EndedTransaction | None) -> int:
    """Return the position of a copy, between ``before`` and the end of the item that follows it.

    It stays what it is when the log grows: a client that has confirmed it is not served the copy again.
    """
    end = max(before + 1, copy.snapshot.lsn)
    if following is None or end < (following.end_lsn or 0):
        return end
    # It was committed before the snapshot was made, and was not visible yet.
    return max(before, following.commit_lsn or 0) + 1


def _place(copy: TableCopy, order: LogOrder) -> int:
    """Return where a copy stands: where nothing is prepared, since a table is not emptied while others change it."""
    found = np.flatnonzero(copy.snapshot.invisible(order.xids))
    place = int(found[0]) if len(found) else len(order)
    for prepared, finished in sorted(order.prepared(), reverse=True):
        if prepared < place <= finished:
            place = prepared
    return place


def _is_copied_before(copy: TableCopy, copies: Sequence[TableCopy]) -> bool:
    return any(each.relation_oid == copy.relation_oid and each.seq < copy.seq for each in copies)
