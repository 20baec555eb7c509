"""The copies of tables in a log, and where among its transactions they are served."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from pgoutput_construct.changelog.copies import TableCopy
from pgoutput_construct.changelog.index import SegmentIndex
from pgoutput_construct.changelog.wholeness import present_copies
from pgoutput_construct.publisher.feed import COPIED
from pgoutput_construct.stream.logged import EndedTransaction, LoggedTransaction

__all__ = ["LogCopies"]

_NO_XID: Final = 0


class LogCopies:
    """The latest copy of each table.

    A copy is served before the first transaction that its snapshot does not contain. What the others do to its table
    after that is in the copy; what they did before goes when the table is emptied for it.
    """

    def __init__(self, index: SegmentIndex, ended: Sequence[EndedTransaction], until: int | None = None) -> None:
        """Find the copies of a log, and their places among its transactions.

        Of copies that were made after the position ``until`` nothing is served.
        """
        self._ended = ended
        copies = [copy for copy in present_copies(index) if until is None or copy.snapshot.lsn <= until]
        self._latest = {copy.relation_oid: copy for copy in copies}
        """By OID."""
        self._by_seq = {copy.seq: copy for copy in self._latest.values()}
        self._again = {copy.seq for copy in self._by_seq.values() if _is_copied_before(copy, copies)}
        xids = np.array([each.transaction.xid for each in ended], np.int64)
        self._places = {copy.seq: _place(copy, xids) for copy in self._by_seq.values()}
        self._is_invisible = lru_cache(maxsize=4096)(self._look)

    @property
    def until(self) -> int:
        """The seq of the latest copy, -1 for none."""
        return max(self._by_seq, default=-1)

    def of(self, ended: EndedTransaction) -> TableCopy:
        """Return the copy that is served as a transaction."""
        return self._by_seq[ended.seq]

    def empties(self, ended: EndedTransaction) -> bool:
        """Tell whether something of its table may have been served before a copy."""
        return self._places[ended.seq] > 0 or ended.seq in self._again

    def merged(self) -> Iterator[EndedTransaction]:
        """Yield the transactions of the log with the copies at their places."""
        begin, end = 0, 0
        # Those at one place in the order of their snapshots: what is copied later has the later position.
        for copy in sorted(
            self._by_seq.values(), key=lambda copy: (self._places[copy.seq], copy.snapshot.lsn, copy.seq)
        ):
            place = self._places[copy.seq]
            yield from self._ended[begin:place]
            end = self._end(copy, place, max(end, self._ended[place - 1].end_lsn or 0) if place else end)
            yield EndedTransaction(copy.seq, COPIED, LoggedTransaction(_NO_XID), end, end, 0)
            begin = place
        yield from self._ended[begin:]

    def contain(self, relation_oid: int, ended: EndedTransaction) -> bool:
        """Tell whether a copy that was served before has what a transaction did to a table."""
        copy = self._latest.get(relation_oid)
        if copy is None or self._places[copy.seq] >= len(self._ended):
            return False
        is_behind = ended.seq >= self._ended[self._places[copy.seq]].seq
        return is_behind and not self._is_invisible(copy.seq, ended.transaction.xid)

    def _end(self, copy: TableCopy, place: int, before: int) -> int:
        """Return the position of a copy, between ``before`` and the end of the transaction that follows it.

        It stays what it is when the log grows: a client that has confirmed it is not served the copy again.
        """
        end = max(before + 1, copy.snapshot.lsn)
        following = self._ended[place] if place < len(self._ended) else None
        if following is None or end < (following.end_lsn or 0):
            return end
        # It was committed before the snapshot was made, and was not visible yet.
        return max(before, following.commit_lsn or 0) + 1

    def _look(self, seq: int, xid: int) -> bool:
        return bool(self._by_seq[seq].snapshot.invisible(np.array([xid], np.int64))[0])


def _place(copy: TableCopy, xids: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> int:
    found = np.flatnonzero(copy.snapshot.invisible(xids))
    return int(found[0]) if len(found) else len(xids)


def _is_copied_before(copy: TableCopy, copies: Sequence[TableCopy]) -> bool:
    return any(each.relation_oid == copy.relation_oid and each.seq < copy.seq for each in copies)
