"""The transactions of a change log, and where they were prepared, read as far as they are new."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog._index.log_index import LogIndex
from pgoutput_construct.changelog._index.planning import LostEnd, kept, lost_ends
from pgoutput_construct.changelog._index.segment_index import COLUMNS
from pgoutput_construct.changelog._segment.footer import Segment
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.publisher._feed.feed import PREPARED, served
from pgoutput_construct.publisher.log_order import LogOrder, ended_of, transaction_of
from pgoutput_construct.stream.bounds import said
from pgoutput_construct.stream.transaction_reader import ABORTED, COMMITTED, EndedTransaction, LoggedTransaction

if TYPE_CHECKING:
    from pgoutput_construct.wire.messages import PgoutputMessage

__all__ = ["LogItems", "Prepares"]

_PIECES: Final = 64
"""Into how many pieces the table of transactions may fall before it is put together."""

Prepares: TypeAlias = Callable[[Segment], Sequence[tuple[int, "PgoutputMessage"]]]
"""Reads what of a segment says that a transaction is prepared, with the seqs."""


class LogItems:
    """What of a log has an outcome, or is prepared."""

    def __init__(self, read_prepares: Prepares, until: int | None = None) -> None:
        """Begin with nothing; of what committed behind the position ``until`` nothing is taken in."""
        self._read_prepares = read_prepares
        self._until = until
        self._clear([], 0)

    def _clear(self, lost: list[LostEnd], begin: int) -> None:
        self._lost, self._begin = lost, begin
        self._rows = pa.Table.from_batches([], pa.schema(list(COLUMNS["transactions"])))
        self._next_seq = 0
        self._prepares: dict[tuple[int, str], tuple[int, PgoutputMessage]] = {}
        """What prepares a transaction, with its seq, by xid and gid."""
        self._unread: list[Segment] = []
        """Segments that may say that something is prepared."""
        self._open: list[dict[str, Any]] = []

    def update(self, log: ChangeLog) -> bool:
        """Take in what is new in a log; tell whether what was there before is no longer what it was."""
        lost, begin = lost_ends(log.index), log.segments[0].first_seq
        is_other = (lost, begin) != (self._lost, self._begin)
        if is_other:
            self._clear(lost, begin)
        first = max(log.segments.place(self._next_seq), 0)
        index = log.index.slice(first)
        self._rows = pa.concat_tables([self._rows, self._new(index)])
        if self._rows["seq"].num_chunks > _PIECES:
            self._rows = self._rows.combine_chunks()
        self._unread += [log.segments[first + place] for place in _places_of_gids(index)]
        self._open = [row for row in log.index.open.to_pylist() if row["gid"] is not None and row["since"] is None]
        self._next_seq = log.segments[-1].last_seq + 1
        return is_other

    def _new(self, index: LogIndex) -> pa.Table:
        rows = kept(index.transactions, self._lost)
        counts = pc.and_(pc.greater_equal(rows["seq"], self._next_seq), pc.not_equal(rows["outcome"], ABORTED))
        if self._until is not None:
            counts = pc.and_(counts, pc.less_equal(rows["commit_lsn"], self._until))
        return rows.filter(counts)

    def order(self, two_phase_at: int | None) -> LogOrder:
        """Return the transactions in order; see ``Feed.order``."""
        if two_phase_at is None:
            return LogOrder(self._rows.filter(pc.equal(self._rows["outcome"], COMMITTED)))
        for segment in self._unread:
            for seq, prepare in self._read_prepares(segment):
                self._prepares[said(prepare, "xid"), said(prepare, "gid")] = seq, prepare
        self._unread = []
        is_plain = pc.is_null(self._rows["gid"])
        beside = [item for row in self._with_gids(is_plain) for item in self._served(row, two_phase_at)]
        return LogOrder(self._rows.filter(is_plain), beside)

    def _with_gids(self, is_plain: pa.ChunkedArray) -> list[dict[str, Any]]:
        ended: list[dict[str, Any]] = self._rows.filter(pc.invert(is_plain)).to_pylist()
        return [*ended, *self._open]

    def _served(self, row: Mapping[str, Any], two_phase_at: int) -> Iterator[EndedTransaction]:
        """Yield the items of a transaction that was, or is, prepared."""
        prepare = self._prepared(transaction_of(row))
        if prepare is not None:
            yield from served(prepare, None, two_phase_at)
        if "outcome" in row:
            yield from served(ended_of(row), prepare, two_phase_at)

    def _prepared(self, transaction: LoggedTransaction) -> EndedTransaction | None:
        found = self._prepares.get((transaction.xid, transaction.gid or ""))
        if found is None:
            return None
        seq, prepare = found
        numbers = (int(said(prepare, role)) for role in ("lsn", "end_lsn", "time"))
        return EndedTransaction(seq, PREPARED, transaction, *numbers)


def _places_of_gids(index: LogIndex) -> list[int]:
    """Return the places of the segments in which a transaction may be prepared."""
    found = set[int]()
    for name in ("transactions", "open"):
        rows, places = index.located(name)
        found.update(np.asarray(places)[rows["gid"].is_valid().to_numpy()].tolist())
    return sorted(found)
