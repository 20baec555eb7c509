"""The spans of a list of messages, and the span of one row."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from pgoutput_construct.stream.state import ControlMessage
from pgoutput_construct.stream.transaction_reader import Spans, TransactionReader
from tools.faults.committed_spans import spans_of_reader


class Place(NamedTuple):
    """The transaction of one row, and the row's position in it."""

    commit_lsn: int
    """LSN of the commit record (of the COMMIT PREPARED): transactions are in the order of these."""
    position: int
    """Increases in the order in which the server sent the transaction; all of its messages are counted."""
    commit_time: int
    """Microseconds since 2000-01-01 UTC."""
    xid: int
    """Top-level transaction ID."""


def find_place(spans: Spans, seq: int, xid: int | None = None) -> Place | None:
    """Return the position of the row at ``seq``, None if it never became visible.

    ``xid`` is the one in the row's message, None outside a stream.
    """
    index = bisect_right(spans.first_seq, seq) - 1
    if index < 0 or seq > spans.last_seq[index] or xid in spans.aborted.get(index, ()):
        return None
    position = spans.position[index] + seq - spans.first_seq[index]
    return Place(spans.commit_lsn[index], position, spans.commit_time[index], spans.xid[index])


def find_transactions(controls: Iterable[ControlMessage]) -> Spans:
    """Return the spans of the committed transactions of a log, given its control messages in order."""
    reader = TransactionReader()
    for control in controls:
        reader.read(control)
    return spans_of_reader(reader)
