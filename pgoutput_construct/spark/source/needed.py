"""What of a segment a task needs: the wanted transactions in it, and the rows that they, and copies, have there."""

from array import array

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.changelog._facts.copies import TableCopy
from pgoutput_construct.changelog._index.index import SegmentIndex
from pgoutput_construct.changelog._index.log_index import is_own
from pgoutput_construct.changelog._index.planning import spans_of
from pgoutput_construct.changelog._index.usage import COPIED
from pgoutput_construct.changelog._segment.footer import Segment
from pgoutput_construct.spark.source.pieces import Piece
from pgoutput_construct.stream.transaction_reader import SPAN_COLUMNS, Spans

__all__ = ["NeededRows"]

Numbers = NDArray[np.int64]
Ranges = tuple[Numbers, Numbers]
"""The first and the last seqs of ranges, in the order of both."""


class NeededRows:
    """The rows of some relations, None for all, that a piece wants in one of its segments: all of them, and few more.

    The index says between which seqs of the segment a relation has rows. There the wanted transactions are
    needed, and the wanted chunks of copies.
    """

    def __init__(self, piece: Piece, segment: Segment, oids: tuple[int, ...] | None) -> None:
        self.piece, self.segment, self.oids = piece, segment, oids
        self._spans: Spans | None = None

    def __call__(self, index: SegmentIndex) -> Ranges:
        """Return where they stand, by the index of the segment."""
        runs = index.entries("rows")
        if self.oids is not None:
            runs = runs.filter(pa.array(np.isin(runs["oid"].to_numpy(), np.array(self.oids, np.int64))))
        copied = runs["span"].to_numpy() == COPIED
        first, last, chunks = (runs[name].to_numpy() for name in ("first_seq", "last_seq", "xid"))
        wanted = copied & _are_of(self.piece.copies, chunks)
        sent = _clipped(_ranges(self.spans(index)), first[~copied], last[~copied])
        return _together(sent, (first[wanted], last[wanted]))

    def spans(self, index: SegmentIndex) -> Spans:
        """Return the wanted transactions: the segment's own, and those that the piece has."""
        if self._spans is None:
            self._spans = _wanted(self.piece, self.segment, index)
        return self._spans


def _are_of(copies: tuple[TableCopy, ...], chunks: Numbers) -> NDArray[np.bool_]:
    """Tell of chunks, by their numbers, whether some copy has them."""
    found = np.zeros(len(chunks), np.bool_)
    for copy in copies:
        found |= (chunks >= copy.first_chunk) & (chunks <= copy.last_chunk)
    return found


def _ranges(spans: Spans) -> Ranges:
    return np.frombuffer(spans.first_seq, np.int64), np.frombuffer(spans.last_seq, np.int64)


def _clipped(ranges: Ranges, firsts: Numbers, lasts: Numbers) -> Ranges:
    """Return what of ranges is between the least of ``firsts`` and the greatest of ``lasts``."""
    if not len(firsts):
        return firsts, lasts
    first, last = np.maximum(ranges[0], firsts.min()), np.minimum(ranges[1], lasts.max())
    return first[first <= last], last[first <= last]


def _together(one: Ranges, other: Ranges) -> Ranges:
    """Put ranges together: a transaction may continue after a chunk of a copy."""
    first, last = np.append(one[0], other[0]), np.append(one[1], other[1])
    order = np.argsort(first, kind="stable")
    return first[order], np.maximum.accumulate(last[order])


def _wanted(piece: Piece, segment: Segment, index: SegmentIndex) -> Spans:
    transactions = piece.range.transactions(index)
    # A segment that covers one that was compacted away has more of them.
    own = is_own(transactions, np.full(len(transactions), segment.first_seq, np.int64))
    own &= transactions["seq"].to_numpy() <= segment.last_seq
    mine = spans_of(transactions.filter(pa.array(own)))
    return _merged(mine, piece.spans) if piece.spans is not None and len(piece.spans.xid) else mine


def _merged(own: Spans, others: Spans) -> Spans:
    """Put the spans of two together; those of a segment's own transactions have no rolled-back subtransactions."""
    first = np.concatenate([np.frombuffer(own.first_seq, np.int64), np.frombuffer(others.first_seq, np.int64)])
    order = np.argsort(first, kind="stable")
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    columns = {name: _taken(getattr(own, name), getattr(others, name), order) for name in SPAN_COLUMNS}
    aborted = {int(places[len(own.xid) + place]): xids for place, xids in others.aborted.items()}
    return Spans(**columns, aborted=aborted)


def _taken(own: "array[int]", others: "array[int]", order: Numbers) -> "array[int]":
    both = np.concatenate([np.frombuffer(own, np.int64), np.frombuffer(others, np.int64)])
    return array("q", both[order].tobytes())
