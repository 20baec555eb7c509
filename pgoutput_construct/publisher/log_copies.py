"""The copies of tables in a log, and where among its transactions they are served."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Final

import numpy as np

from pgoutput_construct.changelog._facts.copies import TableCopy
from pgoutput_construct.changelog._index.planning import LostEnd
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.publisher._feed.feed import COPIED
from pgoutput_construct.publisher.log_order import LogOrder
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.stream.transaction_reader import EndedTransaction, LoggedTransaction

__all__ = ["LogCopies", "settled"]

_NO_XID: Final = 0
_NEVER: Final = 2**63 - 1
"""The LSN of a commit that is not there."""


def settled(
    copies: Iterable[TableCopy], complete_lsn: int, begins: int = 0, lost: Iterable[LostEnd] = ()
) -> list[TableCopy]:
    """Return the copies whose places are known: the stream has come to where their snapshots were made.

    A copy stands in the log before transactions that it contains, where the stream lags behind. Left out are those of
    which what followed was pruned, and those of a history of the server that was lost.

    Args:
        copies: The copies of a log, in the order in which they became complete.
        complete_lsn: Up to where the log is complete.
        begins: Up to where it was pruned.
        lost: What it says of lost histories.
    """
    known, lost = takewhile(lambda copy: copy.snapshot.lsn <= complete_lsn, copies), list(lost)
    return [copy for copy in known if copy.since_lsn >= begins and not _is_lost(copy, lost)]


def _is_lost(copy: TableCopy, lost: Iterable[LostEnd]) -> bool:
    return any(copy.seq < seq and copy.snapshot.lsn > end for seq, end in lost)


class LogCopies:
    """The copies of tables, put into the order of a log.

    A copy stands before the first item of which it has nothing, or that ended behind its snapshot: what precedes that
    is in it, or is replaced by it. Of the items behind it those that it contains are left out for its table.

    Its position, between the ends of the items around it, stays what it is when the log grows: a client that has
    confirmed it is not served the copy again.
    """

    def __init__(self, copies: Sequence[TableCopy], order: LogOrder, superfluous: Collection[int] = ()) -> None:
        """Find the places of the copies, and put them into the order; raises ChangeLogError where one has no room.

        Args:
            copies: The copies.
            order: The order.
            superfluous: The seqs of those that have a place but are not served: transactions have all of their rows. To
                serve them would empty a table that may have rows which another one had by the same name.
        """
        self._superfluous = superfluous
        # Hundreds of tables may be copied under one snapshot.
        of_snapshot = {copy.snapshot: copy for copy in copies}
        places = {snapshot: _place(copy, order) for snapshot, copy in of_snapshot.items()}
        self._places = {copy.seq: places[copy.snapshot] for copy in copies}
        self._behind = {seq: order[place].seq for seq, place in self._places.items() if place < len(order)}
        """The seq of the item behind each copy that has one."""
        self._before = {seq: order[place - 1].seq if place else -1 for seq, place in self._places.items()}
        """The seq of the last transaction before each copy."""
        self._of_table = defaultdict[int, list[TableCopy]](list)
        for copy in copies:
            self._of_table[copy.relation_oid].append(copy)
        ends = ((order[begin].seq, order[end] if end < len(order) else None) for begin, end in order.prepared())
        self._finished = {seq: _NEVER if end is None else end.commit_lsn or 0 for seq, end in ends}
        """The LSNs of the commits of what is prepared, by the seqs at which it was."""
        self._together: dict[int, list[TableCopy]] = {}
        """What is served as one transaction, by the seq of the last."""
        order.insert(self._placed(copies, order))

    def of(self, ended: EndedTransaction) -> Sequence[TableCopy]:
        """Return the copies that are served as a transaction."""
        return [copy for copy in self._group(ended) if copy.seq not in self._superfluous]

    def seqs_of(self, ended: EndedTransaction) -> set[int]:
        """Return the seqs of the copies that stand where a transaction does, served or not."""
        return {copy.seq for copy in self._group(ended)}

    def _group(self, ended: EndedTransaction) -> Sequence[TableCopy]:
        found = self._together.get(ended.seq)
        # One more may have joined those that had a position meanwhile.
        return found or next(group for group in self._together.values() if ended.seq in {copy.seq for copy in group})

    def tables_of(self, ended: EndedTransaction) -> set[int]:
        """Return the OIDs of the tables whose copies are served as a transaction."""
        return {copy.relation_oid for copy in self.of(ended)}

    def emptied(self, ended: EndedTransaction) -> Mapping[int, bool]:
        """Return of each table of a transaction whether something of it may have been served before."""
        return {
            copy.relation_oid: self._places[copy.seq] > 0 or self._of_table[copy.relation_oid][0] is not copy
            for copy in self.of(ended)
        }

    def follows_changes(self, copy: TableCopy, described: int | None) -> bool:
        """Return whether rows of its table may have been served before a copy.

        Args:
            copy: The copy.
            described: The seq at which the stream describes the table first, before its first change; None: never.
        """
        is_first = self._of_table[copy.relation_oid][0] is copy
        return not is_first or (described is not None and described <= self._before[copy.seq])

    def contain(self, relation_oid: int, ended: EndedTransaction, without: Collection[int] = ()) -> bool:
        """Return whether a copy that was served before has what a transaction did to a table.

        The copies of the seqs in ``without`` were not served.
        """
        return any(
            copy.seq not in without
            and copy.seq not in self._superfluous
            and self._behind.get(copy.seq, ended.seq + 1) <= ended.seq
            and not self._adds(copy, ended)
            for copy in self._of_table.get(relation_oid, ())
        )

    def _placed(self, copies: Sequence[TableCopy], order: LogOrder) -> list[tuple[int, EndedTransaction]]:
        """Return the copies as transactions, with their places."""
        placed, end = list[tuple[int, EndedTransaction]](), 0
        for copy in sorted(copies, key=self._rank):
            place = self._places[copy.seq]
            following = order[place] if place < len(order) else None
            before = max(end, order[place - 1].end_lsn or 0) if place else end
            found, together = _end(copy, before, following), [copy]
            if found is None:  # there is no room for one more: it comes with the one before
                if not placed or placed[-1][0] != place:
                    raise ChangeLogError(f"the copy of {full_name(copy)} has no position in the WAL")
                found, together = end, [*self._together.pop(placed.pop()[1].seq), copy]
            end, seq = found, max(each.seq for each in together)
            self._together[seq] = together
            placed.append((place, EndedTransaction(seq, COPIED, LoggedTransaction(_NO_XID), end, end, 0)))
        return placed

    def _rank(self, copy: TableCopy) -> tuple[int, int, int]:
        """Return what orders copies: of those at one place what is copied later has the later position."""
        return self._places[copy.seq], copy.snapshot.lsn, copy.seq

    def _adds(self, copy: TableCopy, ended: EndedTransaction) -> bool:
        """Return whether a transaction counts in addition to a copy: for what is prepared its commit decides."""
        lsn, xid = self._finished.get(ended.seq, ended.commit_lsn or 0), ended.transaction.xid
        return bool(copy.visibility.adds(np.array([lsn]), np.array([xid]))[0])


def _end(copy: TableCopy, before: int, following: EndedTransaction | None) -> int | None:
    """Return the position of a copy, between ``before`` and the end of the item that follows it; None for no room."""
    end = max(before + 1, copy.snapshot.lsn)
    if following is None or end < (following.end_lsn or 0):
        return end
    # It was committed before the snapshot was made, and was not visible yet.
    end = max(before, following.commit_lsn or 0) + 1
    return end if end < (following.end_lsn or 0) else None


def _place(copy: TableCopy, order: LogOrder) -> int:
    """Return where a copy stands: where nothing is prepared, for what others change is not emptied."""
    adds = copy.visibility.adds(order.commits, order.xids)
    found = np.flatnonzero(adds | (order.ends > copy.snapshot.lsn))
    place = int(found[0]) if len(found) else len(order)
    for prepared, finished in sorted(order.prepared(), reverse=True):
        if prepared < place <= finished:
            place = prepared
    return place
