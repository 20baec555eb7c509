"""The index of a log, whose memory does not grow with the number of transactions that ended."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pgoutput_construct.changelog._segment.block import Numbers
from pgoutput_construct.changelog._segment.segment_index import COLUMNS, INDEX_SCHEMA, SegmentIndex
from pgoutput_construct.stream.transaction_reader import COMMITTED
from pgoutput_construct.wire import Lsn

__all__ = [
    "LISTS",
    "LOG_SCHEMA",
    "NUMBERS",
    "PART_TRANSACTIONS",
    "AsOf",
    "Ended",
    "LogIndex",
    "LogPoint",
    "Stretch",
    "apart",
    "count_commits",
    "is_own",
    "messages_of",
    "parts_of",
]


NUMBERS: Final = (
    "commits",  # how many transactions committed
    "own",  # how many of them are the segment's own: see ``is_own``
    "messages",  # how many the largest of its own ones has
    "first_commit",  # the seq of the first one's end
    "last_commit",
    "least_lsn",  # of their commits
    "most_lsn",
    "most_end_lsn",
    "least_time",
    "most_time",
    "first_xid",
    "last_xid",
    "walk",  # how far it is from the first xid to the last, from one to the next: see ``apart``
    "most_walk",
)
"""The numbers of a segment; all are 0 where nothing committed."""

_XIDS: Final = 2**32


def count_commits(transactions: pa.Table, segment_indexes: Numbers, first_seqs: Numbers) -> dict[str, Numbers]:
    """Return the numbers of each segment, given the transactions that committed, in the order of the log.

    ``segment_indexes`` says in which segment each ended, ``first_seqs`` where each segment begins.
    """
    found = {name: np.zeros(len(first_seqs), np.int64) for name in NUMBERS}
    if not len(segment_indexes):
        return found
    starts = np.flatnonzero(np.diff(segment_indexes, prepend=-1))
    ends, groups = np.append(starts[1:], len(segment_indexes)) - 1, segment_indexes[starts]
    columns = ("seq", "commit_lsn", "end_lsn", "commit_time", "xid")
    seq, lsn, end_lsn, time, xid = (transactions[name].to_numpy() for name in columns)
    own, walk = is_own(transactions, first_seqs[segment_indexes]), np.cumsum(apart(np.diff(xid, prepend=xid[0])))
    xid_distances = walk - np.repeat(walk[starts], ends - starts + 1)
    numbers = {
        "commits": ends - starts + 1,
        "own": np.add.reduceat(own.astype(np.int64), starts),
        "messages": np.maximum.reduceat(np.where(own, messages_of(transactions), 0), starts),
        "first_commit": seq[starts],
        "last_commit": seq[ends],
        "least_lsn": np.minimum.reduceat(lsn, starts),
        "most_lsn": np.maximum.reduceat(lsn, starts),
        "most_end_lsn": np.maximum.reduceat(end_lsn, starts),
        "least_time": np.minimum.reduceat(time, starts),
        "most_time": np.maximum.reduceat(time, starts),
        "first_xid": xid[starts],
        "last_xid": xid[ends],
        "walk": xid_distances[ends],
        "most_walk": np.maximum.reduceat(xid_distances, starts),
    }
    for name, values in numbers.items():
        found[name][groups] = values
    return found


def is_own(transactions: pa.Table, first_seqs: Numbers) -> NDArray[np.bool_]:
    """Return for each committed transaction whether the segment in which it ended has all of it, and shows it plainly.

    ``first_seqs`` are those of the segments in which they ended. All other transactions are passed to the tasks.
    """
    spans = transactions["spans"].combine_chunks()
    firsts = spans.flatten().field("first").to_numpy()[spans.offsets.to_numpy()[:-1] - spans.offsets[0].as_py()]
    plain = ~transactions["streamed"].to_numpy() & transactions["gid"].is_null().to_numpy()
    own: NDArray[np.bool_] = plain & (firsts >= first_seqs)
    return own


def messages_of(transactions: pa.Table) -> Numbers:
    """Return how many messages each transaction has."""
    spans = transactions["spans"].combine_chunks()
    flat, ends = spans.flatten(), spans.offsets.to_numpy() - spans.offsets[0].as_py()
    lengths = flat.field("last").to_numpy() - flat.field("first").to_numpy() + 1
    counts: Numbers = np.diff(np.append(0, np.cumsum(lengths))[ends])
    return counts


def apart(distance: Numbers) -> Numbers:
    """Return distances of xids that are 32 bits wide: the shorter way around."""
    return (distance + _XIDS // 2) % _XIDS - _XIDS // 2


LISTS: Final = pa.list_(COLUMNS["transactions"])
"""The transactions of each segment."""


class _Source(Protocol):
    """What has the transactions of some segments."""

    def read(self, first: int, end: int) -> pa.ChunkedArray:
        """Return the LISTS of its segments from the ``first`` to the one before ``end``."""


class Stretch(NamedTuple):
    """Consecutive segments of which one source has the transactions."""

    source: _Source
    first: int
    end: int


@dataclass(frozen=True)
class _Held:
    """Transactions that are in memory."""

    column: pa.ChunkedArray

    def read(self, first: int, end: int) -> pa.ChunkedArray:
        """Return those of some segments."""
        return self.column[first:end]


@dataclass(frozen=True)
class Ended:
    """The transactions of segments, a list each."""

    stretches: tuple[Stretch, ...] = ()

    @classmethod
    def of(cls, source: _Source, count: int) -> "Ended":
        """Return all that a source has: the transactions of ``count`` segments."""
        return cls((Stretch(source, 0, count),))

    @classmethod
    def concat(cls, parts: Iterable["Ended"]) -> "Ended":
        """Put the lists of segments below one another."""
        return cls(tuple(stretch for part in parts for stretch in part.stretches))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @cached_property
    def _ends(self) -> list[int]:
        ends: list[int] = np.cumsum([end - first for _, first, end in self.stretches]).astype(int).tolist()
        return ends

    def __getitem__(self, of: slice) -> "Ended":
        first, end, _ = of.indices(len(self))
        found, number = list[Stretch](), bisect_right(self._ends, first)
        while first < end:
            source, _, last = self.stretches[number]
            offset = last - self._ends[number]  # from indexes here to those of the source
            until = min(end, self._ends[number])
            found.append(Stretch(source, first + offset, until + offset))
            first, number = until, number + 1
        return Ended(tuple(found))

    def lists(self) -> pa.ChunkedArray:
        """Return them all."""
        parts = (source.read(first, end) for source, first, end in self.stretches)
        return pa.chunked_array([chunk for part in parts for chunk in part.chunks], LISTS)


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


class LogPoint(NamedTuple):
    """The point as of which a log is read; as text ``seq``, ``seq@lsn`` or ``seq@lsn@known``."""

    seq: int
    """The last seq: transactions that ended by then count, and copies that were complete."""
    lsn: Lsn | None = None
    """What the catalog said counts if it was true by this LSN; None: before the next commit after ``seq``."""
    known: int | None = None
    """The last seq of the log that is known, so that each read finds the same while the log grows; None: all of it."""

    @classmethod
    def parse(cls, text: str) -> "LogPoint":
        """Read the text; raise ValueError for anything else."""
        seq, lsn, known, *more = *text.split("@"), "", ""
        if not seq.isdecimal() or (known and not known.isdecimal()) or any(more):
            raise ValueError("it is the seq of a row of the log")
        return cls(int(seq), Lsn(lsn) if lsn else None, int(known) if known else None)

    def __str__(self) -> str:
        return "@".join("" if each is None else str(each) for each in self).rstrip("@")


@dataclass(frozen=True)
class AsOf:
    """What readings of the catalog are true of an index that ends before its log: see ``catalog_readings``."""

    log: "LogIndex"
    """The index of the whole log."""
    seq: int
    """The last seq of the index."""
    lsn: int
    """Readings that stand up to ``seq`` are of then if their LSN is at most this one."""
    certain_lsn: int
    """The same for those that stand after it: the index surely has all that committed up to this LSN."""
    history: range
    """The seqs of the history of the server in which it is, as far as the log is known: LSNs of a later one cannot be
    compared with these."""
    lost: tuple[tuple[int, int, int], ...] = ()
    """The histories that were lost by then: the seq at which the log was restarted, the LSN up to which it counts, and
    the LSN at which the log was restarted."""

    def has(self, seq: int, lsn: int) -> bool | None:
        """Return whether a reading at a seq was true by then, given its LSN; None if it is not of this history.

        After a restart, a capture does not repeat what the log says already. So what was read in a history that was
        lost is true since the restart, as far as no later reading differs.
        """
        if seq >= self.history.stop:
            return None
        is_lost = False
        for before_seq, after_lsn, restart_lsn in self.lost:
            if seq < before_seq and lsn > after_lsn:
                lsn, is_lost = restart_lsn + 1, True
        is_true = lsn <= (self.lsn if seq <= self.seq else self.certain_lsn)
        return True if is_true else None if is_lost else False


@dataclass(frozen=True)
class LogIndex(SegmentIndex):
    """The indexes of consecutive segments: a few of their transactions are in memory, and statistics of all.

    ``table`` is of LOG_SCHEMA. The transactions are where ``ended`` finds them when they are asked for; that may raise
    ChangeLogError.
    """

    ended: Ended = field(default_factory=Ended)
    as_of: AsOf | None = field(default=None, kw_only=True)
    """As of when it is, if the log continues; None: readings of the catalog are those that stand in it."""

    @classmethod
    def over(cls, index: SegmentIndex, ended: Ended | None = None) -> "LogIndex":
        """Return the index of segments; ``ended`` has their transactions, None: ``index`` holds them."""
        if isinstance(index, LogIndex):
            return index
        column = index.table["transactions"]
        transactions, segment_indexes = index.located("transactions")
        is_committed = pc.equal(transactions["outcome"], COMMITTED).to_numpy()
        first_seqs = index.table["first_seq"].to_numpy()
        commits, of_commits = transactions.filter(pa.array(is_committed)), segment_indexes[is_committed]
        marked = _marked(index, transactions, is_committed, is_own(commits, first_seqs[of_commits]))
        known = {
            **{name: index.table[name] for name in INDEX_SCHEMA.names},
            "ended": pc.list_value_length(column).cast(pa.int64()),
            **count_commits(commits, of_commits, first_seqs),
            "marked": _lists(transactions.filter(pa.array(marked)), segment_indexes[marked], len(index)),
        }
        table = pa.table([known[name] for name in LOG_SCHEMA.names], LOG_SCHEMA)
        return cls(table, Ended.of(_Held(column), len(index)) if ended is None else ended)

    @classmethod
    def concat(cls, indexes: Iterable[SegmentIndex]) -> "LogIndex":
        """Put the indexes of segments below one another, in the order of the log."""
        parts = [cls.over(index) for index in indexes]
        table = pa.concat_tables([pa.Table.from_batches([], LOG_SCHEMA), *(part.table for part in parts)])
        inherited = parts[0].inherited_events if parts else ()
        return cls(table, Ended.concat(part.ended for part in parts), inherited_events=inherited)

    @property
    def marked(self) -> pa.Table:
        """Those of the transactions that planning needs: some of each segment, however many there are.

        They are those that are not of one segment alone, or not plainly (``is_own``), and those in which runs of the
        index's ``rows`` begin or end.
        """
        return self.entries("marked")

    def slice(self, first: int, end: int | None = None) -> "LogIndex":
        """Return the index of segments ``first`` to ``end`` (exclusive); None: to the last one."""
        of = slice(first, end)
        return LogIndex(self.table[of], self.ended[of], inherited_events=() if first else self.inherited_events)

    def whole(self) -> SegmentIndex:
        """Return the same with all transactions in memory."""
        columns = [self._lists(name, None) for name in INDEX_SCHEMA.names]
        return SegmentIndex(pa.table(columns, INDEX_SCHEMA))

    def one(self, segment_index: int) -> SegmentIndex:
        """Return the index of one of the segments, its transactions in memory."""
        return self.slice(segment_index, segment_index + 1).whole()

    def parts(self) -> Iterator[tuple[int, SegmentIndex]]:
        """Yield it in parts, each with the offset of its first segment: so that not all is in memory at once."""
        for first, end in parts_of(self.table["ended"].to_numpy()):
            yield first, self.slice(first, end).whole()

    def _lists(self, name: str, of: Any) -> pa.ChunkedArray:
        if name != "transactions":
            return super()._lists(name, of)
        return (self.ended if of is None else self.ended[of]).lists()


def parts_of(counts: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield the start and the end (exclusive) of parts that have about PART_TRANSACTIONS each."""
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


def _lists(entries: pa.Table, segment_indexes: NDArray[np.int64], count: int) -> pa.Array:
    """Return entries as one list for each of ``count`` segments; ``segment_indexes`` says of which each entry is."""
    chunks = entries.to_struct_array().chunks
    array = pa.concat_arrays(chunks).cast(LISTS.value_type) if chunks else pa.array([], LISTS.value_type)
    offsets = np.searchsorted(segment_indexes, np.arange(count + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), array)
