"""Which positions of a log belong to which committed transaction, from its control messages alone.

Rows are not looked at: a log of millions of rows is described by a few spans of positions, small enough to be given
to every machine that decodes a part of the log. Each row then finds its transaction by itself.
"""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from operator import itemgetter
from typing import Any, Final

from pgoutput_construct.errors import ProtocolError
from pgoutput_construct.stream.logged import ABORTED, COMMITTED, ROLLED_BACK, EndedTransaction, LoggedTransaction
from pgoutput_construct.stream.state import ControlMessage, StreamState
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.protocol import StreamStartFirstSegment
from pgoutput_construct.wire.types import Lsn, Timestamp

__all__ = ["SPAN_COLUMNS", "Spans", "TransactionReader"]

_INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Spans:
    """The committed transactions of a log as columns: entry ``i`` of each describes one span; in log order.

    Spans do not overlap. A transaction that was streamed has one for each of its segments.
    """

    first_seq: "array[int]"
    """Position in the log of the message that opens the span: Begin, Begin Prepare or Stream Start.

    A transaction that was prepared without changes has neither: it stands where its Prepare, or Commit Prepared, is.
    """
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


SPAN_COLUMNS: Final = tuple(field.name for field in fields(Spans) if field.name != "aborted")
"""The fields of Spans that are columns, one entry a span."""

_Ending = m.Commit | m.StreamCommit | m.CommitPrepared
_Opening = m.Begin | m.BeginPrepare | m.StreamStart
_Span = tuple[int, int, int, int, int, int, int, frozenset[int]]
"""One span, in the order of the fields of Spans."""


class TransactionReader:
    """Reads the control messages of a log in order and collects the spans of the transactions that committed.

    What a lost connection left half in the log is void, because the server sends it again from its start: a
    transaction when another one or a stream opens before its end, a stream when a Stream Start with
    ``first_segment`` opens it again. What has no end yet, and what is prepared and neither committed nor rolled
    back, is not visible. Anything else that does not fit together raises ProtocolError with the seq.
    """

    def __init__(self, unfinished: Iterable[LoggedTransaction] = ()) -> None:
        """Begin a log, or go on with one that has these ``unfinished`` transactions."""
        self._state = StreamState(exact=True)
        self._open: LoggedTransaction | None = None
        self._streams: dict[int, LoggedTransaction] = {}
        self._prepared: dict[str, LoggedTransaction] = {}
        self.ended: list[EndedTransaction] = []
        """The transactions that ended, in the order of their ends; who takes them away may empty the list."""
        for transaction in unfinished:
            self._resume(transaction)

    def read(self, control: ControlMessage) -> None:
        """Take in the next control message; rows, messages and descriptions may come too and change nothing."""
        seq, _, message = control
        match message:
            case m.Begin():
                self._enter(message, LoggedTransaction(message.xid, final_lsn=int(message.final_lsn), since=seq))
            case m.BeginPrepare():
                self._enter(message, LoggedTransaction(message.xid, gid=message.gid, since=seq))
            case m.StreamStart():
                self._enter(message, self._segment(seq, message), seq)
            case m.StreamStop():
                self._leave(seq, message)
            case m.Prepare() if self._open is None:
                # PostgreSQL 18 sends no Begin Prepare where there are no changes (ReorderBufferPrepare()).
                self._prepared[message.gid] = LoggedTransaction(message.xid, gid=message.gid, spans=[(seq, seq)])
            case m.Commit() | m.Prepare():
                self._end(seq, message)
            case m.StreamCommit():
                self._publish(seq, self._streamed(seq, message.xid), message)
            case m.StreamPrepare():
                self._prepared[message.gid] = self._streamed(seq, message.xid)
                self._prepared[message.gid].gid = message.gid
            case m.StreamAbort():
                self._abort(seq, message)
            case m.CommitPrepared():
                self._publish(seq, self._commit_prepared(seq, message), message)
            case m.RollbackPrepared():
                self._rollback_prepared(seq, message)

    def interrupt(self) -> None:
        """Void the piece that is open, as what opens another one does."""
        self._void()
        self._state = StreamState(exact=True)

    def reconnect(self) -> None:
        """Void all that has no end and is not prepared: a new connection begins, which sends it from its start."""
        self.interrupt()
        self._streams.clear()

    def forget(self) -> None:
        """Void all that has no end, what is prepared, too."""
        self.reconnect()
        self._prepared.clear()

    @property
    def since(self) -> int | None:
        """Where the piece begins that is open, None between pieces."""
        return None if self._open is None else self._open.since

    def prepared(self, gid: str) -> LoggedTransaction:
        """Return the transaction that is prepared under a name; raise KeyError for none."""
        return self._prepared[gid]

    def unfinished(self) -> list[LoggedTransaction]:
        """Return the transactions without an outcome: open, streamed, or prepared."""
        plain = [self._open] if self._open is not None and not self._open.streamed else []
        return [*plain, *self._streams.values(), *self._prepared.values()]

    def spans(self) -> Spans:
        """Return the spans of all transactions that have committed so far."""
        spans = sorted((span for ended in self.ended for span in _spans(ended)), key=itemgetter(0))
        *columns, aborted = zip(*spans, strict=True) if spans else [()] * len(fields(Spans))
        by_index = {index: xids for index, xids in enumerate(aborted) if xids}
        entries: list[Any] = [*(array("q", column) for column in columns), by_index]
        return Spans(*entries)

    def _resume(self, transaction: LoggedTransaction) -> None:
        if transaction.since is not None:
            self._open = transaction
            self._state.follow(_opening(transaction))
        if transaction.streamed and transaction.gid is None:
            self._streams[transaction.xid] = transaction
        elif transaction.since is None and transaction.gid is not None:
            self._prepared[transaction.gid] = transaction

    def _enter(self, message: _Opening, transaction: LoggedTransaction, seq: int | None = None) -> None:
        self._state.follow(message)
        self._void()
        if seq is not None:
            transaction.since = seq
        self._open = transaction

    def _void(self) -> None:
        if self._open is not None and self._streams.get(self._open.xid) is self._open:
            del self._streams[self._open.xid]
        self._open = None

    def _leave(self, seq: int, message: m.Commit | m.Prepare | m.StreamStop) -> LoggedTransaction:
        try:
            self._state.advance(message)
        except ProtocolError as error:
            raise ProtocolError(f"seq {seq}: {error}") from None
        transaction = self._open
        assert transaction is not None and transaction.since is not None
        transaction.spans.append((transaction.since, seq))
        self._open, transaction.since = None, None
        return transaction

    def _end(self, seq: int, message: m.Commit | m.Prepare) -> None:
        transaction = self._leave(seq, message)
        # pgoutput_begin_txn() and pgoutput_commit_txn() send the same position, so do the two of a prepare.
        match message:
            case m.Commit() if transaction.final_lsn == message.commit_lsn:
                self._publish(seq, transaction, message)
            case m.Prepare() if (transaction.xid, transaction.gid) == (message.xid, message.gid):
                self._prepared[message.gid] = transaction
            case _:
                raise ProtocolError(f"seq {seq}: {message} is not the end of {transaction}")

    def _segment(self, seq: int, start: m.StreamStart) -> LoggedTransaction:
        if start.first_segment:
            self._streams[start.xid] = LoggedTransaction(start.xid, streamed=True)
            return self._streams[start.xid]
        return self._known(seq, start.xid, self._streams.get(start.xid))

    def _streamed(self, seq: int, xid: int) -> LoggedTransaction:
        return self._known(seq, xid, self._streams.pop(xid, None))

    def _known(self, seq: int, xid: int, transaction: LoggedTransaction | None) -> LoggedTransaction:
        if transaction is None or transaction is self._open:
            raise ProtocolError(f"seq {seq}: of the streamed transaction {xid} an earlier segment is missing")
        return transaction

    def _abort(self, seq: int, abort: m.StreamAbort) -> None:
        # PostgreSQL 18 may send this for what it never streamed (ReorderBufferCheckAndTruncateAbortedTXN()).
        if abort.xid != abort.subxid:
            if abort.xid in self._streams:
                self._streams[abort.xid].aborted.add(abort.subxid)
        elif (transaction := self._streams.pop(abort.xid, None)) is not None:
            lsn, time = abort.abort_lsn, abort.abort_time
            self.ended.append(EndedTransaction(seq, ABORTED, transaction, _number(lsn), _number(lsn), _number(time)))

    def _commit_prepared(self, seq: int, commit: m.CommitPrepared) -> LoggedTransaction:
        # What was prepared before the slot knew of two phases is sent completely before this, too. PostgreSQL 15 to 17
        # send nothing else of a transaction without changes (ReorderBufferReplay()).
        empty = LoggedTransaction(commit.xid, gid=commit.gid, spans=[(seq, seq)])
        transaction = self._prepared.pop(commit.gid, None) or empty
        if transaction.xid != commit.xid:
            raise ProtocolError(
                f"seq {seq}: transaction {commit.xid} is committed, but the one prepared as {commit.gid!r} is "
                f"{transaction.xid}"
            )
        return transaction

    def _rollback_prepared(self, seq: int, end: m.RollbackPrepared) -> None:
        prepared = self._prepared.get(end.gid)
        if prepared is not None and prepared.xid == end.xid:
            del self._prepared[end.gid]
            numbers = int(end.prepare_end_lsn), int(end.rollback_end_lsn), int(end.rollback_time)
            self.ended.append(EndedTransaction(seq, ROLLED_BACK, prepared, *numbers))

    def _publish(self, seq: int, transaction: LoggedTransaction, end: _Ending) -> None:
        if end.commit_lsn > _INT64_MAX:
            raise ProtocolError(f"seq {seq}: no server has reached the position {end.commit_lsn}")
        numbers = int(end.commit_lsn), int(end.end_lsn), int(end.commit_time)
        self.ended.append(EndedTransaction(seq, COMMITTED, transaction, *numbers))


def _opening(transaction: LoggedTransaction) -> _Opening:
    """Return a message that opens a piece of a transaction; its positions say nothing."""
    xid, lsn, time = transaction.xid, Lsn(0), Timestamp(0)
    if transaction.streamed:
        return m.StreamStart(xid, StreamStartFirstSegment.FIRST_SEGMENT)
    if transaction.gid is not None:
        return m.BeginPrepare(lsn, lsn, time, xid, transaction.gid)
    return m.Begin(lsn, time, xid)


def _number(value: int | None) -> int | None:
    return None if value is None else int(value)


def _spans(ended: EndedTransaction) -> Iterator[_Span]:
    transaction, position = ended.transaction, 0
    if ended.outcome != COMMITTED:
        return
    assert ended.commit_lsn is not None and ended.time is not None
    for first, last in transaction.spans:
        where = first, last, transaction.stream_xid
        yield (*where, ended.commit_lsn, ended.time, transaction.xid, position, frozenset(transaction.aborted))
        position += last - first + 1
