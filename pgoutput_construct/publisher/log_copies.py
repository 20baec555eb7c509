"""The copies of tables in a log, and where among its transactions they are served."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from pgoutput_construct.changelog.copies import TableCopy
from pgoutput_construct.changelog.index import SegmentIndex
from pgoutput_construct.changelog.wholeness import present_copies
from pgoutput_construct.publisher.feed import COPIED
from pgoutput_construct.stream.logged import EndedTransaction, LoggedTransaction

__all__ = ["Copied", "LogCopies"]

_NO_XID: Final = 0


class Copied(NamedTuple):
    """Copies that are served as one transaction."""

    place: int
    """Before which of the log's transactions, in the order of their ends."""
    copies: tuple[TableCopy, ...]

    @property
    def seq(self) -> int:
        """Where the log says that the last of them is complete."""
        return max(copy.seq for copy in self.copies)


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
        copies = (copy for copy in present_copies(index) if until is None or copy.snapshot.lsn <= until)
        latest = {copy.relation_oid: copy for copy in copies}
        xids = np.array([each.transaction.xid for each in ended], np.int64)
        self._invisible = {oid: set(xids[copy.snapshot.invisible(xids)].tolist()) for oid, copy in latest.items()}
        self._places = {oid: self._place(copy, xids) for oid, copy in latest.items()}
        groups: dict[int, list[TableCopy]] = {}
        for oid, copy in latest.items():
            groups.setdefault(self._places[oid], []).append(copy)
        self.groups = [Copied(place, tuple(copies)) for place, copies in sorted(groups.items())]
        """The copies in the order in which they are served."""

    @staticmethod
    def _place(copy: TableCopy, xids: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> int:
        found = np.flatnonzero(copy.snapshot.invisible(xids))
        return int(found[0]) if len(found) else len(xids)

    def merged(self) -> Iterator[EndedTransaction]:
        """Yield the transactions of the log with the copies at their places."""
        begin = 0
        for group in self.groups:
            yield from self._ended[begin : group.place]
            yield self._transaction(group)
            begin = group.place
        yield from self._ended[begin:]

    @property
    def until(self) -> int:
        """The seq of the latest copy, -1 for none."""
        return max((group.seq for group in self.groups), default=-1)

    def of(self, ended: EndedTransaction) -> tuple[TableCopy, ...]:
        """Return the copies that are served as a transaction."""
        return next(group.copies for group in self.groups if group.seq == ended.seq)

    def _transaction(self, group: Copied) -> EndedTransaction:
        """Return copies as a transaction that ends inside the commit record of the one before which it is served."""
        if group.place < len(self._ended):
            lsn = (self._ended[group.place].commit_lsn or 0) + 1
        else:
            lsn = max(copy.snapshot.lsn for copy in group.copies)
        return EndedTransaction(group.seq, COPIED, LoggedTransaction(_NO_XID), lsn, lsn, 0)

    def contain(self, relation_oid: int, ended: EndedTransaction) -> bool:
        """Tell whether a copy that was served before has what a transaction did to a table."""
        place = self._places.get(relation_oid)
        if place is None or ended.transaction.xid in self._invisible[relation_oid]:
            return False
        first = self._ended[place].seq if place < len(self._ended) else None
        return first is not None and ended.seq >= first
