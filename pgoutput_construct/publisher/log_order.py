"""The order of what a change log serves: transactions out of its index, and where they were prepared."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pgoutput_construct.changelog._segment.block import Numbers
from pgoutput_construct.publisher._feed.feed import FINISHED, PREPARED, Order
from pgoutput_construct.stream.transaction_reader import EndedTransaction, LoggedTransaction

__all__ = ["LogOrder", "ended_of", "transaction_of"]

_BLOCK: Final = 256
"""Rows that are unpacked together."""


class LogOrder(Order):
    """Some of the transactions of an index, and items beside them, in the order of their seqs.

    A million transactions are a table: each becomes an object when it is asked for.
    """

    def __init__(self, rows: pa.Table, beside: Sequence[EndedTransaction] = ()) -> None:
        """Put them in order; those ``beside`` with one seq remain in theirs."""
        self._rows = rows
        self._beside = list(beside)
        seqs = np.concatenate([rows["seq"].to_numpy(), _column(beside, "seq")])
        self._codes: Numbers = np.argsort(seqs, kind="stable")
        """Of each place a row, or behind the rows one of those beside them."""
        self._unpacked = lru_cache(maxsize=16)(self._unpack)

    def __len__(self) -> int:
        return len(self._codes)

    def __getitem__(self, place: int) -> EndedTransaction:
        code = int(self._codes[place])
        if code >= self._rows.num_rows:
            found: EndedTransaction = self._beside[code - self._rows.num_rows]
            return found
        return ended_of(self._unpacked(code // _BLOCK)[code % _BLOCK])

    def _unpack(self, block: int) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._rows.slice(block * _BLOCK, _BLOCK).to_pylist()
        return rows

    @cached_property
    def commits(self) -> Numbers:
        """The LSN of the commit record of each item: of one that is prepared, of its PREPARE."""
        rows: Numbers = self._rows["commit_lsn"].to_numpy()
        return np.concatenate([rows, _column(self._beside, "commit_lsn")])[self._codes]

    @cached_property
    def xids(self) -> Numbers:
        """The top-level xid of each item."""
        beside = np.array([ended.transaction.xid for ended in self._beside], np.int64)
        numbers: Numbers = np.concatenate([self._rows["xid"].to_numpy(), beside])[self._codes]
        return numbers

    @property
    def last_xid(self) -> int:
        """See Order."""
        return int(self.xids.max(initial=0))

    def behind(self, position: int) -> int:
        """See Order."""
        found = np.flatnonzero(self.ends > position)
        return int(found[0]) if len(found) else len(self)

    def prepared(self) -> list[tuple[int, int]]:
        """Return the places where a transaction is prepared, and where it ends: behind all where it does not."""
        places = np.flatnonzero(self._codes >= self._rows.num_rows)
        begun, found = dict[str | None, int](), list[tuple[int, int]]()
        for place in places.tolist():
            item = self[place]
            if item.outcome == PREPARED:
                begun[item.transaction.gid] = place
            elif item.outcome == FINISHED and item.transaction.gid in begun:
                found.append((begun.pop(item.transaction.gid), place))
        return [*found, *((place, len(self)) for place in begun.values())]

    @cached_property
    def ends(self) -> Numbers:
        """Where each item ends."""
        rows: Numbers = self._rows["end_lsn"].to_numpy()
        return np.concatenate([rows, _column(self._beside, "end_lsn")])[self._codes]

    def placed(self) -> Iterator[tuple[int, EndedTransaction]]:
        """Yield the copies with their places."""
        first = self._rows.num_rows + len(self._beside) - len(self.copies)
        for place in np.flatnonzero(self._codes >= first).tolist():
            yield place, self[place]

    def has_prepared(self, place: int) -> bool:
        """See Order."""
        return any(prepared < place <= finished for prepared, finished in self.prepared())

    def insert(self, copies: Sequence[tuple[int, EndedTransaction]]) -> None:
        """Put copies of tables before the items that are at their places now; those of one place remain in order."""
        at = [place for place, _ in copies]
        self.copies = [copy for _, copy in copies]
        self.copied_until = max((copy.seq for copy in self.copies), default=-1)
        first = self._rows.num_rows + len(self._beside)
        self._beside += self.copies
        self._codes = np.insert(self._codes, at, np.arange(first, first + len(at)))
        for name in ("commits", "xids", "ends"):
            self.__dict__.pop(name, None)


def _column(items: Sequence[EndedTransaction], name: str) -> Numbers:
    return np.array([getattr(item, name) or 0 for item in items], np.int64)


def ended_of(row: Mapping[str, Any]) -> EndedTransaction:
    """Return a row of the transactions of an index as an object."""
    numbers = row["commit_lsn"], row["end_lsn"], row["commit_time"]
    return EndedTransaction(row["seq"], row["outcome"], transaction_of(row), *numbers)


def transaction_of(row: Mapping[str, Any]) -> LoggedTransaction:
    """Return the transaction of a row of an index."""
    spans = [(span["first"], span["last"]) for span in row["spans"]]
    return LoggedTransaction(row["xid"], row["streamed"], gid=row["gid"], spans=spans, aborted=set(row["aborted"]))
