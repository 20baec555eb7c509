"""Which positions of a log belong to which committed transaction, from its control messages alone.

Rows are not looked at: a log of millions of rows is described by a few spans of positions, small enough to be given
to every machine that decodes a part of the log. Each row then finds its transaction by itself.
"""

from array import array
from dataclasses import dataclass, field, fields
from operator import itemgetter
from typing import Any

from pgoutput_construct.errors import ProtocolError
from pgoutput_construct.stream.state import ControlMessage, StreamState
from pgoutput_construct.wire import messages as m

__all__ = ["Spans", "TransactionReader"]

_INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Spans:
    """The committed transactions of a log as columns: entry ``i`` of each describes one span; in log order.

    Spans do not overlap. A transaction that was streamed has one for each of its segments.
    """

    first_seq: "array[int]"
    """Position in the log of the message that opens the span: Begin, Begin Prepare or Stream Start."""
    last_seq: "array[int]"
    """Position of the message that closes it: Commit, Prepare or Stream Stop."""
    stream_xid: "array[int]"
    """Top-level xid of the stream whose segment it is, -1 for a span that was not streamed."""
    commit_lsn: "array[int]"
    """LSN of the commit record."""
    commit_time: "array[int]"
    """Microseconds since 2000-01-01 UTC."""
    xid: "array[int]"
    """Top-level transaction ID."""
    position: "array[int]"
    """How many messages of the transaction the earlier spans hold."""
    aborted: dict[int, frozenset[int]]
    """Subtransactions that were rolled back, by the index of the span."""


@dataclass(slots=True)
class _Transaction:
    """A transaction that has not committed yet."""

    xid: int
    stream_xid: int = -1
    begin: m.Begin | m.BeginPrepare | None = None
    segments: list[tuple[int, int]] = field(default_factory=list)
    aborted: set[int] = field(default_factory=set)
    complete: bool = True
    """False when the connection was lost inside a segment."""


_Ending = m.Commit | m.StreamCommit | m.CommitPrepared
_Span = tuple[int, int, int, int, int, int, int, frozenset[int]]
"""One span, in the order of the fields of Spans."""


class TransactionReader:
    """Reads the control messages of a log in order and collects the spans of the transactions that committed.

    What a lost connection left half in the log is void, because the server sends it again from its start: a
    transaction when another one or a stream opens before its end, a stream when a Stream Start with
    ``first_segment`` opens it again. What has no end yet, and what is prepared and neither committed nor rolled
    back, is not visible. Anything else that does not fit together raises ProtocolError with the seq.
    """

    def __init__(self) -> None:
        self._state = StreamState(exact=True)
        self._open: _Transaction | None = None
        self._since = 0
        self._streams: dict[int, _Transaction] = {}
        self._prepared: dict[str, _Transaction] = {}
        self._spans: list[_Span] = []

    def read(self, control: ControlMessage) -> None:
        """Take in the next control message; rows, messages and descriptions may come too and change nothing."""
        seq, _, message = control
        match message:
            case m.Begin() | m.BeginPrepare():
                self._enter(seq, message, _Transaction(message.xid, begin=message))
            case m.StreamStart():
                self._enter(seq, message, self._segment(seq, message))
            case m.StreamStop():
                self._leave(seq, message)
            case m.Commit() | m.Prepare():
                self._end(seq, message)
            case m.StreamCommit():
                self._publish(seq, self._streamed(seq, message.xid), message)
            case m.StreamPrepare():
                self._prepared[message.gid] = self._streamed(seq, message.xid)
            case m.StreamAbort():
                self._abort(message)
            case m.CommitPrepared():
                self._publish(seq, self._commit_prepared(seq, message), message)
            case m.RollbackPrepared():
                self._rollback_prepared(message)

    def spans(self) -> Spans:
        """Return the spans of all transactions that have committed so far."""
        spans = sorted(self._spans, key=itemgetter(0))
        *columns, aborted = zip(*spans, strict=True) if spans else [()] * len(fields(Spans))
        by_index = {index: xids for index, xids in enumerate(aborted) if xids}
        entries: list[Any] = [*(array("q", column) for column in columns), by_index]
        return Spans(*entries)

    def _enter(self, seq: int, message: m.Begin | m.BeginPrepare | m.StreamStart, transaction: _Transaction) -> None:
        self._state.follow(message)
        if self._open is not None:
            self._open.complete = False
        self._open, self._since = transaction, seq

    def _leave(self, seq: int, message: m.Commit | m.Prepare | m.StreamStop) -> _Transaction:
        try:
            self._state.advance(message)
        except ProtocolError as error:
            raise ProtocolError(f"seq {seq}: {error}") from None
        transaction = self._open
        assert transaction is not None
        transaction.segments.append((self._since, seq))
        self._open = None
        return transaction

    def _end(self, seq: int, message: m.Commit | m.Prepare) -> None:
        transaction = self._leave(seq, message)
        # pgoutput_begin_txn() and pgoutput_commit_txn() send the same position, so do the two of a prepare.
        match transaction.begin, message:
            case m.Begin() as begin, m.Commit() if begin.final_lsn == message.commit_lsn:
                self._publish(seq, transaction, message)
            case m.BeginPrepare() as begin, m.Prepare() if (begin.xid, begin.gid) == (message.xid, message.gid):
                self._prepared[message.gid] = transaction
            case begin, _:
                raise ProtocolError(f"seq {seq}: {message} is not the end of {begin}")

    def _segment(self, seq: int, start: m.StreamStart) -> _Transaction:
        if start.first_segment:
            self._streams[start.xid] = _Transaction(start.xid, stream_xid=start.xid)
            return self._streams[start.xid]
        return self._known(seq, start.xid, self._streams.get(start.xid))

    def _streamed(self, seq: int, xid: int) -> _Transaction:
        return self._known(seq, xid, self._streams.pop(xid, None))

    def _known(self, seq: int, xid: int, transaction: _Transaction | None) -> _Transaction:
        if transaction is None or not transaction.complete or transaction is self._open:
            raise ProtocolError(f"seq {seq}: of the streamed transaction {xid} an earlier segment is missing")
        return transaction

    def _abort(self, abort: m.StreamAbort) -> None:
        # PostgreSQL 18 may send this for what it never streamed (ReorderBufferCheckAndTruncateAbortedTXN()).
        if abort.xid == abort.subxid:
            self._streams.pop(abort.xid, None)
        elif abort.xid in self._streams:
            self._streams[abort.xid].aborted.add(abort.subxid)

    def _commit_prepared(self, seq: int, commit: m.CommitPrepared) -> _Transaction:
        transaction = self._prepared.pop(commit.gid, None)
        if transaction is None or transaction.xid != commit.xid:
            # What was prepared before the slot knew of two phases is sent completely before this, too.
            raise ProtocolError(
                f"seq {seq}: transaction {commit.xid}, prepared as {commit.gid!r}, is committed but was never sent"
            )
        return transaction

    def _rollback_prepared(self, rollback: m.RollbackPrepared) -> None:
        prepared = self._prepared.get(rollback.gid)
        if prepared is not None and prepared.xid == rollback.xid:
            del self._prepared[rollback.gid]

    def _publish(self, seq: int, transaction: _Transaction, end: _Ending) -> None:
        if end.commit_lsn > _INT64_MAX:
            raise ProtocolError(f"seq {seq}: no server has reached the position {end.commit_lsn}")
        aborted, position = frozenset(transaction.aborted), 0
        for first, last in transaction.segments:
            where, lsn, time = (first, last, transaction.stream_xid), int(end.commit_lsn), int(end.commit_time)
            self._spans.append((*where, lsn, time, transaction.xid, position, aborted))
            position += last - first + 1
