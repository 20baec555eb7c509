"""The index of a log: what is in memory of it does not grow with the transactions that ended."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pgoutput_construct.changelog.commit_numbers import NUMBERS, count_commits, is_own
from pgoutput_construct.changelog.ended import LISTS, Ended, Held
from pgoutput_construct.changelog.index import INDEX_SCHEMA, SegmentIndex
from pgoutput_construct.stream.logged import COMMITTED

__all__ = ["LOG_SCHEMA", "PART_TRANSACTIONS", "LogIndex", "parts_of"]

LOG_SCHEMA: Final = pa.schema(
    [
        *(column for column in INDEX_SCHEMA if column.name != "transactions"),
        ("ended", pa.int64()),  # how many transactions ended
        *((name, pa.int64()) for name in NUMBERS),
        ("marked", LISTS),
    ]
)
"""A row of the index of a log: what it says of one segment."""

PART_TRANSACTIONS: Final = 1 << 15
"""Transactions that are unpacked at once, as far as segments let."""


@dataclass(frozen=True)
class LogIndex(SegmentIndex):
    """The indexes of consecutive segments, of whose transactions only some are at hand, and numbers of all.

    ``table`` is of LOG_SCHEMA. The transactions are where ``ended`` finds them when they are asked for; that may raise
    ChangeLogError.
    """

    ended: Ended = field(default_factory=Ended)

    @classmethod
    def over(cls, index: SegmentIndex, ended: Ended | None = None) -> "LogIndex":
        """Return the index of segments; ``ended`` has their transactions, None: ``index`` holds them."""
        if isinstance(index, LogIndex):
            return index
        column = index.table["transactions"]
        transactions, places = index.located("transactions")
        is_committed = pc.equal(transactions["outcome"], COMMITTED).to_numpy()
        first_seqs = index.table["first_seq"].to_numpy()
        commits, of_commits = transactions.filter(pa.array(is_committed)), places[is_committed]
        marked = _marked(index, transactions, is_committed, is_own(commits, first_seqs[of_commits]))
        known = {
            **{name: index.table[name] for name in INDEX_SCHEMA.names},
            "ended": pc.list_value_length(column).cast(pa.int64()),
            **count_commits(commits, of_commits, first_seqs),
            "marked": _lists(transactions.filter(pa.array(marked)), places[marked], len(index)),
        }
        table = pa.table([known[name] for name in LOG_SCHEMA.names], LOG_SCHEMA)
        return cls(table, Ended.of(Held(column), len(index)) if ended is None else ended)

    @classmethod
    def concat(cls, indexes: Iterable[SegmentIndex]) -> "LogIndex":
        """Put the indexes of segments below one another, in the order of the log."""
        parts = [cls.over(index) for index in indexes]
        table = pa.concat_tables([pa.Table.from_batches([], LOG_SCHEMA), *(part.table for part in parts)])
        return cls(table, Ended.concat(part.ended for part in parts))

    @property
    def marked(self) -> pa.Table:
        """Those of the transactions that planning needs: some of each segment, however many there are.

        They are those that are not of one segment alone, or not plainly (``is_own``), and those in which runs of the
        index's ``rows`` begin or end.
        """
        return self.entries("marked")

    def slice(self, first: int, end: int | None = None) -> "LogIndex":
        """Return the index of some of the segments, by their places."""
        of = slice(first, end)
        return LogIndex(self.table[of], self.ended[of])

    def whole(self) -> SegmentIndex:
        """Return the same with all transactions in memory."""
        columns = [self._lists(name, None) for name in INDEX_SCHEMA.names]
        return SegmentIndex(pa.table(columns, INDEX_SCHEMA))

    def one(self, place: int) -> SegmentIndex:
        """Return the index of one of the segments, its transactions in memory."""
        return self.slice(place, place + 1).whole()

    def parts(self) -> Iterator[tuple[int, SegmentIndex]]:
        """Yield it in parts, each with the place of its first segment: so that not all is in memory at once."""
        for first, end in parts_of(self.table["ended"].to_numpy()):
            yield first, self.slice(first, end).whole()

    def to_bytes(self) -> bytes:
        """Return it as text for a Parquet footer."""
        return self.whole().to_bytes()

    def _lists(self, name: str, of: Any) -> pa.ChunkedArray:
        if name != "transactions":
            return super()._lists(name, of)
        return (self.ended if of is None else self.ended[of]).lists()


def parts_of(counts: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield the first place, and the one after the last, of parts that have about PART_TRANSACTIONS each."""
    _, firsts = np.unique(np.cumsum(counts) // PART_TRANSACTIONS, return_index=True)
    yield from pairwise([*firsts.tolist(), len(counts)])


def _marked(
    index: SegmentIndex, transactions: pa.Table, is_committed: NDArray[np.bool_], own: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Tell which transactions are ``LogIndex.marked``; ``own`` tells it of those that committed."""
    lengths = pc.list_value_length(transactions["spans"]).to_numpy()
    marked: NDArray[np.bool_] = lengths > 0
    runs = index.entries("rows")
    ends = np.unique(np.concatenate([runs[name].to_numpy() for name in ("first_seq", "last_seq")]))
    begins = pc.struct_field(pc.list_flatten(transactions["spans"]), "first").to_numpy()
    first, last = begins[(np.cumsum(lengths) - lengths)[is_committed][own]], transactions["seq"].to_numpy()
    has_end = np.searchsorted(ends, last[is_committed][own], "right") > np.searchsorted(ends, first)
    marked[np.flatnonzero(is_committed)[own]] = has_end
    return marked


def _lists(entries: pa.Table, places: NDArray[np.int64], count: int) -> pa.Array:
    """Return entries as the lists of so many segments; ``places`` are those that they are of."""
    chunks = entries.to_struct_array().chunks
    array = pa.concat_arrays(chunks).cast(LISTS.value_type) if chunks else pa.array([], LISTS.value_type)
    offsets = np.searchsorted(places, np.arange(count + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), array)
