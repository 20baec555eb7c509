"""Where the committed transactions of a log stand, for judging: found in its index, or by reading each message."""

from array import array
from collections.abc import Iterator
from dataclasses import fields
from operator import itemgetter
from typing import Any

from pgoutput_construct.changelog._index.planning import committed_transactions, lost_histories, spans_of
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex
from pgoutput_construct.stream.transaction_reader import COMMITTED, EndedTransaction, Spans, TransactionReader

__all__ = ["committed_spans", "spans_of_reader"]

_Span = tuple[int, int, int, int, int, int, int, frozenset[int]]
"""One span, in the order of the fields of Spans."""


def committed_spans(index: SegmentIndex) -> Spans:
    """Return where the committed transactions of a log stand, according to its index."""
    return spans_of(committed_transactions(index.transactions, lost_histories(index)))


def spans_of_reader(reader: TransactionReader) -> Spans:
    """Return the spans of all transactions that a reader has seen commit (those in its ``ended``)."""
    spans = sorted((span for ended in reader.ended for span in _spans(ended)), key=itemgetter(0))
    *columns, aborted = zip(*spans, strict=True) if spans else [()] * len(fields(Spans))
    by_index = {index: xids for index, xids in enumerate(aborted) if xids}
    entries: list[Any] = [*(array("q", column) for column in columns), by_index]
    return Spans(*entries)


def _spans(ended: EndedTransaction) -> Iterator[_Span]:
    transaction, position = ended.transaction, 0
    if ended.outcome != COMMITTED:
        return
    assert ended.commit_lsn is not None and ended.time is not None
    stream_xid = transaction.xid if transaction.streamed else -1
    for first, last in transaction.spans:
        where = first, last, stream_xid
        yield (*where, ended.commit_lsn, ended.time, transaction.xid, position, frozenset(transaction.aborted))
        position += last - first + 1
