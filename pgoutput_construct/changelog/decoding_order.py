"""What a slot sends of a log, in order: transactions, PREPAREs, and table copies at their positions.

``timeline`` has the theory: where a copy stands, what it makes superfluous, and prepared transactions.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog._facts.copies import TableCopy
from pgoutput_construct.changelog._facts.visibility import Visibility
from pgoutput_construct.changelog._segment.block import Numbers
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.stream.transaction_reader import (
    FINISHED,
    PREPARED,
    EndedTransaction,
    LoggedTransaction,
)
from pgoutput_construct.wire import Lsn

__all__ = ["DecodingOrder", "PlacedCopies", "ended_transaction", "transaction_of"]

_INT64_MAX: Final = 2**63 - 1
_BLOCK: Final = 256
"""Transactions that become objects together."""


class PlacedCopies(NamedTuple):
    """Table copies that are applied as one transaction: mostly one, several where LSNs do not suffice."""

    seq: int
    """That of the last one."""
    end_lsn: int
    """The end LSN of that transaction, which orders it."""
    copies: tuple[TableCopy, ...]
    """The copies that are applied."""
    emptied: Mapping[int, bool]
    """Their tables, by OID, and whether something of each may have been applied before."""
    unserved: tuple[TableCopy, ...] = ()
    """Those that have this position, and of which transactions have all rows: they are not applied."""

    @property
    def relation_oids(self) -> set[int]:
        """The OIDs of the tables that are applied."""
        return {copy.relation_oid for copy in self.copies}

    @property
    def seqs(self) -> set[int]:
        """The seqs of all copies that stand here."""
        return {copy.seq for copy in (*self.copies, *self.unserved)}


class DecodingOrder:
    """What a slot sends of a log: transactions, PREPAREs where it has two phases, and copies at their positions.

    A million transactions are a table: each becomes an object when it is asked for.
    """

    def __init__(
        self,
        rows: pa.Table,
        others: Sequence[EndedTransaction] = (),
        copies: Sequence[TableCopy] = (),
        superfluous: Collection[int] = (),
        begun: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        """Put them in order; raise ChangeLogError where a copy has no position in the WAL.

        Args:
            rows: Transactions that are one item each, as the index has them (``COLUMNS["transactions"]``).
            others: Items of transactions that were prepared; those of one seq remain in their order.
            copies: Table copies that have a position.
            superfluous: The seqs of those that have a position but are not sent, since transactions have all of their
                rows: to send them would empty a table that may have rows which another one had by the same name.
            begun: The seqs from which on the log holds tables without a copy, by OID.
        """
        self.generation = 0
        """Another one where items are not what they were, with more after them."""
        self.begins = 0
        """What ended up to this LSN was pruned."""
        self.first_seq = 0
        """The seq of the first row of the log."""
        self._rows, self._others = rows, others
        seqs = np.concatenate([rows["seq"].to_numpy(), _column(others, "seq")])
        self._codes: Numbers = np.argsort(seqs, kind="stable")
        """Of each item its row, or after the rows its index in ``others``, or after these in ``copies``."""
        self._unpacked = lru_cache(maxsize=16)(self._unpack)
        self.copies: list[PlacedCopies] = []
        """The items that are copies."""
        self._superfluous = superfluous
        self._of_table = defaultdict[int, list[TableCopy]](list)
        for copy in copies:
            self._of_table[copy.relation_oid].append(copy)
        self._awaited = {
            oid: of_table[0]
            for oid, of_table in self._of_table.items()
            if of_table[0].seq not in superfluous and begun.get(oid, _INT64_MAX) > of_table[0].seq
        }
        """The first copies of tables, before which changes are withheld."""
        self._insert(copies)
        self.copied_until = max((item.seq for item in self.copies), default=-1)
        """The seq of the latest copy."""

    def _insert(self, copies: Sequence[TableCopy]) -> None:
        """Put copies before other items: see "Where a table copy stands" in ``timeline``."""
        indexes, count = self._indexes_of(copies), len(self)
        self._following = {seq: self.transaction(index).seq for seq, index in indexes.items() if index < count}
        """The seq of the transaction after each copy that has one."""
        self._preceding = {seq: self.transaction(index - 1).seq if index else -1 for seq, index in indexes.items()}
        """The seq of the transaction before each copy."""
        self._committed = {  # what is prepared is in a copy where its commit is
            self.transaction(first).seq: (self.transaction(last).commit_lsn or 0) if last < count else _INT64_MAX
            for first, last in self.prepared()
        }
        """The LSNs of the commits of what is prepared, by the seqs of the PREPAREs."""
        placed = [*self._items(copies, indexes)]
        self.copies = [item for _, item in placed]
        numbers = np.arange(len(placed)) + self._first_copy
        self._codes = np.insert(self._codes, [index for index, _ in placed], numbers)
        self.__dict__.pop("ends", None)

    def _indexes_of(self, copies: Iterable[TableCopy]) -> dict[int, int]:
        """Return the index of the transaction before which each copy stands, by seq, before any copy is inserted."""
        by_key = defaultdict[tuple[Visibility, Lsn], list[TableCopy]](list)
        for copy in copies:  # hundreds of tables may be copied under one snapshot
            by_key[copy.visibility, copy.snapshot.lsn].append(copy)
        found = dict[int, int]()
        if not by_key:
            return found
        commits, xids = self.commits_and_xids()
        prepared = sorted(self.prepared(), reverse=True)
        for (visibility, lsn), together in by_key.items():
            # No item before it may end after the snapshot's LSN: at that, or right after the item, the copy ends.
            is_after = np.flatnonzero(visibility.adds(commits, xids) | (self.ends > lsn))
            index = int(is_after[0]) if len(is_after) else len(self)
            for first, last in prepared:
                if first < index <= last:
                    index = first
            found |= {copy.seq: index for copy in together}
        return found

    def _items(self, copies: Iterable[TableCopy], indexes: Mapping[int, int]) -> Iterator[tuple[int, PlacedCopies]]:
        """Yield copies, with the indexes of the items before which they stand."""
        groups, end = list[tuple[int, int, list[TableCopy]]](), 0
        # Of those at one index what is copied later has the later position.
        for copy in sorted(copies, key=lambda copy: (indexes[copy.seq], copy.snapshot.lsn, copy.seq)):
            index = indexes[copy.seq]
            following = self.transaction(index) if index < len(self) else None
            before = max(end, self.transaction(index - 1).end_lsn or 0) if index else end
            found = _end(copy, before, following)
            if found is not None:
                end = found
                groups.append((index, end, [copy]))
            elif groups and groups[-1][0] == index:
                groups[-1][2].append(copy)
            else:
                raise ChangeLogError(f"the copy of {full_name(copy)} has no position in the WAL")
        for index, end, group in groups:
            sent = tuple(copy for copy in group if copy.seq not in self._superfluous)
            emptied = {
                copy.relation_oid: index > 0 or self._of_table[copy.relation_oid][0] is not copy for copy in sent
            }
            unserved = tuple(copy for copy in group if copy.seq in self._superfluous)
            yield index, PlacedCopies(max(copy.seq for copy in group), end, sent, emptied, unserved)

    def __len__(self) -> int:
        return len(self._codes)

    def __getitem__(self, index: int) -> EndedTransaction | PlacedCopies:
        code = int(self._codes[index])
        if code >= self._first_copy:
            return self.copies[code - self._first_copy]
        return self._transaction(code)

    def __iter__(self) -> Iterator[EndedTransaction | PlacedCopies]:
        return (self[index] for index in range(len(self)))

    def transaction(self, index: int) -> EndedTransaction:
        """Return the item at an index, which is not a copy."""
        return self._transaction(int(self._codes[index]))

    def _transaction(self, code: int) -> EndedTransaction:
        if code >= self._rows.num_rows:
            other: EndedTransaction = self._others[code - self._rows.num_rows]
            return other
        return ended_transaction(self._unpacked(code // _BLOCK)[code % _BLOCK])

    def _unpack(self, block: int) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._rows.slice(block * _BLOCK, _BLOCK).to_pylist()
        return rows

    @property
    def _first_copy(self) -> int:
        rows: int = self._rows.num_rows
        return rows + len(self._others)

    @cached_property
    def ends(self) -> Numbers:
        """The LSN at which each item ends."""
        return self._values("end_lsn", _column(self.copies, "end_lsn"))

    def commits_and_xids(self) -> tuple[Numbers, Numbers]:
        """Return the LSN of the commit record of each transaction, of a PREPARE that of its own; and top-level xids."""
        xids = np.array([each.transaction.xid for each in self._others], np.int64)
        of_rows: Numbers = self._rows["xid"].to_numpy()
        return self._values("commit_lsn", np.empty(0, np.int64)), np.concatenate([of_rows, xids])[self._codes]

    def _values(self, name: str, of_copies: Numbers) -> Numbers:
        of_rows: Numbers = self._rows[name].to_numpy()
        return np.concatenate([of_rows, _column(self._others, name), of_copies])[self._codes]

    @property
    def last_xid(self) -> int:
        """The greatest top-level xid, 0 for none."""
        others = max((each.transaction.xid for each in self._others), default=0)
        last: int = pc.max(self._rows["xid"]).as_py() or 0
        return max(last, others)

    @property
    def end(self) -> int:
        """The LSN at which the last item ends, 0 for none."""
        return int(self.ends[-1]) if len(self) else 0

    def after(self, lsn: int) -> int:
        """Return the index of the first item that ends after an LSN, the number of items where none does."""
        found = np.flatnonzero(self.ends > lsn)
        return int(found[0]) if len(found) else len(self)

    def placed(self) -> Iterator[tuple[int, PlacedCopies]]:
        """Yield the copies with their indexes."""
        for index in np.flatnonzero(self._codes >= self._first_copy).tolist():
            yield index, self.copies[int(self._codes[index]) - self._first_copy]

    def prepared(self) -> list[tuple[int, int]]:
        """Return the index of each PREPARE, and of its transaction's end: the number of items where it has none."""
        is_other = (self._codes >= self._rows.num_rows) & (self._codes < self._first_copy)
        begun, found = dict[str | None, int](), list[tuple[int, int]]()
        for index in np.flatnonzero(is_other).tolist():
            item = self.transaction(index)
            if item.outcome == PREPARED:
                begun[item.transaction.gid] = index
            elif item.outcome == FINISHED and item.transaction.gid in begun:
                found.append((begun.pop(item.transaction.gid), index))
        return [*found, *((index, len(self)) for index in begun.values())]

    def has_prepared(self, index: int) -> bool:
        """Return whether a transaction is prepared before an item, and ends with it or after it."""
        return any(prepared < index <= finished for prepared, finished in self.prepared())

    def contains(self, relation_oid: int, ended: EndedTransaction, without: Collection[int] = ()) -> bool:
        """Return whether a copy that was sent before has what a transaction did to a table.

        Args:
            relation_oid: The table.
            ended: The transaction.
            without: The seqs of copies that were not sent.
        """
        return any(
            copy.seq not in without
            and copy.seq not in self._superfluous
            and self._following.get(copy.seq, ended.seq + 1) <= ended.seq
            and not self._adds(copy, ended)
            for copy in self._of_table.get(relation_oid, ())
        )

    def _adds(self, copy: TableCopy, ended: EndedTransaction) -> bool:
        """Return whether a transaction counts in addition to a copy."""
        lsn, xid = self._committed.get(ended.seq, ended.commit_lsn or 0), ended.transaction.xid
        return bool(copy.visibility.adds(np.array([lsn]), np.array([xid]))[0])

    def awaited(self, relation_oid: int, ended: EndedTransaction) -> TableCopy | None:
        """Return the first copy of a table where it comes after a transaction: it has what that did to the table.

        None where it does not, or where the log holds the table from its first row on without a copy.

        Args:
            relation_oid: The table.
            ended: The transaction.
        """
        copy = self._awaited.get(relation_oid)
        return copy if copy is not None and self._following.get(copy.seq, _INT64_MAX) > ended.seq else None

    def follows_changes(self, copy: TableCopy, described: int | None) -> bool:
        """Return whether rows of its table may have been sent before a copy.

        Args:
            copy: The copy.
            described: The seq at which the stream describes the table first, before its first change; None: never.
        """
        is_first = self._of_table[copy.relation_oid][0] is copy
        return not is_first or (described is not None and described <= self._preceding[copy.seq])


def _end(copy: TableCopy, before: int, following: EndedTransaction | None) -> int | None:
    """Return the LSN at which a copy ends: after ``before``, and before the next item does; None for no room."""
    end = max(before + 1, int(copy.snapshot.lsn))
    if following is None or end < (following.end_lsn or 0):
        return end
    # It had committed before the snapshot was taken, and was not visible yet.
    end = max(before, following.commit_lsn or 0) + 1
    return end if end < (following.end_lsn or 0) else None


def _column(items: Sequence[EndedTransaction | PlacedCopies], name: str) -> Numbers:
    return np.array([getattr(item, name) or 0 for item in items], np.int64)


def ended_transaction(row: Mapping[str, Any]) -> EndedTransaction:
    """Return a transaction, given its entry among the ``transactions`` of an index."""
    numbers = row["commit_lsn"], row["end_lsn"], row["commit_time"]
    return EndedTransaction(row["seq"], row["outcome"], transaction_of(row), *numbers)


def transaction_of(row: Mapping[str, Any]) -> LoggedTransaction:
    """Return what the log has of a transaction, given its entry."""
    spans = [(span["first"], span["last"]) for span in row["spans"]]
    return LoggedTransaction(row["xid"], row["streamed"], gid=row["gid"], spans=spans, aborted=set(row["aborted"]))
