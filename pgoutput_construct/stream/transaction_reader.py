"""Which seqs of a log belong to which transaction, and how it ended; read from the control messages alone.

Rows are not read. A log of millions of rows is described by a few spans of seqs, small enough to be sent to every
machine that decodes a part of the log, where each row finds its transaction by its seq.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pgoutput_construct.errors import ProtocolError
from pgoutput_construct.stream.bounds import CLOSES, effect_of, having, said
from pgoutput_construct.stream.state import ControlMessage
from pgoutput_construct.wire.messages import PgoutputMessage
from pgoutput_construct.wire.protocol import BEGINS, ENDS, STATES, TRANSITIONS
from pgoutput_construct.wire.types import Lsn

if TYPE_CHECKING:
    from array import array

__all__ = [
    "ABORTED",
    "COMMITTED",
    "FINISHED",
    "PREPARED",
    "ROLLED_BACK",
    "SPAN_COLUMNS",
    "EndedTransaction",
    "LoggedTransaction",
    "Spans",
    "TransactionReader",
    "decoded",
]

_INT64_MAX: Final = 2**63 - 1
_INITIAL: Final = next(iter(STATES))


@dataclass(slots=True)
class LoggedTransaction:
    """A transaction of a log, as far as it has been read."""

    xid: int
    """Top-level transaction ID."""
    streamed: bool = False
    """Whether it was streamed in segments, before its end."""
    final_lsn: int | None = None
    """The LSN of its commit record, from its Begin; None if it was streamed or prepared."""
    gid: str | None = None
    """The global identifier under which it is, or is being, prepared."""
    spans: list[tuple[int, int]] = field(default_factory=list)
    """The first and last seq of each of its pieces."""
    aborted: set[int] = field(default_factory=set)
    """Its subtransactions that were rolled back."""
    since: int | None = None
    """The first seq of the piece that is open now; None between pieces."""

    @property
    def first_seq(self) -> int:
        """Its first seq in the log."""
        return min(first for first, _ in (*self.spans, *([] if self.since is None else [(self.since, 0)])))


COMMITTED: Final = "committed"
ABORTED: Final = "aborted"
ROLLED_BACK: Final = "rolled back"
PREPARED: Final = "prepared"
"""The outcome of a transaction where it was prepared; its LSNs and time are those of its PREPARE."""
FINISHED: Final = "finished"
"""The outcome of a transaction that was sent as prepared before: its COMMIT PREPARED, or ROLLBACK PREPARED."""


class EndedTransaction(NamedTuple):
    """A transaction with its outcome."""

    seq: int
    """The seq of the message that ended it."""
    outcome: str
    """COMMITTED; ABORTED; ROLLED_BACK for ROLLBACK PREPARED. What a slot sends of a transaction that was prepared
    (``decoded``) is PREPARED, then FINISHED."""
    transaction: LoggedTransaction
    """The transaction."""
    commit_lsn: int | None
    """LSN of the commit or abort record.

    Of one that is ABORTED the server sends neither LSN nor time (None) unless it streams in parallel, and then zeros if
    the server crashed while the transaction ran (ReorderBufferAbortOld).
    """
    end_lsn: int | None
    """LSN of the end of that record."""
    time: int | None
    """Time of that record: microseconds since 2000-01-01 UTC."""


def decoded(
    ended: EndedTransaction, prepare: EndedTransaction | None, two_phase_at: int | None
) -> Iterator[EndedTransaction]:
    """Yield what a slot sends where a transaction ended, or was prepared.

    What was prepared before the slot had two phases is sent completely before its COMMIT PREPARED, as
    ReorderBufferFinishPrepared() does; so is a transaction without changes, of which PostgreSQL 15 to 17 send nothing
    else (ReorderBufferReplay()).

    Args:
        ended: The end of the transaction, or where it was prepared.
        prepare: Of one that ended: where it was prepared; None where that is not known, or it never was.
        two_phase_at: The LSN after which what is prepared is sent as prepared; None: nothing is.
    """
    if two_phase_at is None or ended.transaction.gid is None:
        yield from (ended,) if ended.outcome == COMMITTED else ()
    elif ended.outcome == PREPARED:
        yield from (ended,) if (ended.end_lsn or 0) > two_phase_at else ()
    else:
        if ended.outcome == COMMITTED and (prepare is None or (prepare.end_lsn or 0) <= two_phase_at):
            # Within the record of the commit: what is before that may end where it begins.
            yield ended._replace(outcome=PREPARED, end_lsn=(ended.commit_lsn or 0) + 1)
        yield ended._replace(outcome=FINISHED)


@dataclass(frozen=True, slots=True)
class Spans:
    """The committed transactions of a log as columns: entry ``i`` of each describes one span; in log order.

    Spans do not overlap. A streamed transaction has one for each of its segments.
    """

    first_seq: "array[int]"
    """The seq of the message that opens the span: Begin, Begin Prepare or Stream Start.

    A transaction prepared without changes has none of them: its span is its Prepare, or its Commit Prepared.
    """
    last_seq: "array[int]"
    """The seq of the message that closes the span: Commit, Prepare or Stream Stop."""
    stream_xid: "array[int]"
    """Top-level xid of the stream that the span is a segment of, -1 if it was not streamed."""
    commit_lsn: "array[int]"
    """LSN of the commit record."""
    commit_time: "array[int]"
    """Microseconds since 2000-01-01 UTC."""
    xid: "array[int]"
    """Top-level transaction ID."""
    position: "array[int]"
    """The number of messages of the transaction in its earlier spans."""
    aborted: dict[int, frozenset[int]]
    """Subtransactions that were rolled back, by the index of the span."""


SPAN_COLUMNS: Final = tuple(column.name for column in fields(Spans) if column.name != "aborted")
"""The fields of Spans that are columns, with one entry for each span."""


class TransactionReader:
    """Reads the control messages of a log in order, and collects the transactions with their outcomes.

    A lost connection may leave a partial transaction in the log. It is void, because the server sends the transaction
    again from its start: a transaction is void if another one or a stream opens before its end, and a stream if a
    Stream Start with ``first_segment`` opens it again. Transactions without an end, and prepared ones that were neither
    committed nor rolled back, are not visible. Any other inconsistency raises ProtocolError with the seq.
    """

    def __init__(self, unfinished: Iterable[LoggedTransaction] = ()) -> None:
        """Start at the beginning of a log, or resume after a part of it with these ``unfinished`` transactions."""
        self._open: LoggedTransaction | None = None
        self._opened_by: frozenset[type[PgoutputMessage]] = frozenset()
        """The message that opened the current piece; after resuming, all messages that may have."""
        self._streams: dict[int, LoggedTransaction] = {}
        self._prepared: dict[str, LoggedTransaction] = {}
        self.ended: list[EndedTransaction] = []
        """The transactions that ended, in that order; the caller may empty the list."""
        self._effects: Mapping[str, Callable[[int, PgoutputMessage], object]] = {
            "begin": self._begin,
            "begin_prepared": self._begin_prepared,
            "begin_segment": self._begin_segment,
            "begin_inner": self._inner,
            "commit": self._commit,
            "prepare": self._prepare,
            "abort": self._abort,
            "end_segment": self._leave,
            "end_inner": self._inner,
            "commit_streamed": self._commit_streamed,
            "prepare_streamed": self._prepare_streamed,
            "abort_streamed": self._abort_streamed,
            "commit_prepared": self._commit_prepared,
            "rollback_prepared": self._rollback_prepared,
        }
        for transaction in unfinished:
            self._resume(transaction)

    def read(self, control: ControlMessage) -> None:
        """Process the next control message; rows, logical messages and descriptions are permitted, and ignored."""
        seq, _, message = control
        effect = effect_of(message)
        if effect is not None:
            self._effects[effect](seq, message)
        elif type(message) in BEGINS | ENDS:
            raise ProtocolError(f"seq {seq}: the effect of {type(message).__name__} on transactions is unknown")

    def _begin(self, seq: int, message: PgoutputMessage) -> None:
        lsn = _number(said(message, "lsn"))
        self._enter(message, LoggedTransaction(_said(seq, message, "xid"), final_lsn=lsn, since=seq))

    def _begin_prepared(self, seq: int, message: PgoutputMessage) -> None:
        xid, gid = _said(seq, message, "xid"), _said(seq, message, "gid")
        self._enter(message, LoggedTransaction(xid, gid=gid, since=seq))

    def _begin_segment(self, seq: int, message: PgoutputMessage) -> None:
        self._enter(message, self._segment(seq, message), seq)

    def _commit(self, seq: int, message: PgoutputMessage) -> None:
        self._publish(seq, self._end(seq, message), message)

    def _prepare(self, seq: int, message: PgoutputMessage) -> None:
        gid = _said(seq, message, "gid")
        if self._open is None and _INITIAL in TRANSITIONS[type(message)]:
            # PostgreSQL 18 sends no Begin Prepare if the transaction has no changes (ReorderBufferPrepare()).
            transaction = LoggedTransaction(_said(seq, message, "xid"), spans=[(seq, seq)])
        else:
            transaction = self._end(seq, message)
        transaction.gid = gid
        self._prepared[gid] = transaction

    def _abort(self, seq: int, message: PgoutputMessage) -> None:
        transaction = self._leave(seq, message)
        _check_same(seq, message, {"xid": transaction.xid, "gid": transaction.gid}, transaction)
        transaction.gid = None  # it was never prepared
        self._end_aborted(seq, transaction, message)

    def _commit_streamed(self, seq: int, message: PgoutputMessage) -> None:
        self._publish(seq, self._streamed(seq, _said(seq, message, "xid")), message)

    def _prepare_streamed(self, seq: int, message: PgoutputMessage) -> None:
        transaction, gid = self._streamed(seq, _said(seq, message, "xid")), _said(seq, message, "gid")
        transaction.gid = gid
        self._prepared[gid] = transaction

    def _inner(self, seq: int, message: PgoutputMessage) -> None:
        if self._open is None:
            raise ProtocolError(f"seq {seq}: {type(message).__name__} outside of a transaction or stream")

    def interrupt(self) -> None:
        """Discard the open piece, as the begin of another one does."""
        if self._open is not None and self._streams.get(self._open.xid) is self._open:
            del self._streams[self._open.xid]
        self._open = None

    def reconnect(self) -> None:
        """Discard all transactions without an end, except prepared ones: a new connection sends them from the start."""
        self.interrupt()
        self._streams.clear()

    def forget(self) -> None:
        """Discard all transactions without an end, including prepared ones."""
        self.reconnect()
        self._prepared.clear()

    @property
    def since(self) -> int | None:
        """The first seq of the open piece, None between pieces."""
        return None if self._open is None else self._open.since

    def prepared(self, gid: str) -> LoggedTransaction:
        """Return the transaction prepared under a gid; raise KeyError if there is none."""
        return self._prepared[gid]

    def unfinished(self) -> list[LoggedTransaction]:
        """Return the transactions without an outcome: open, streamed, or prepared."""
        plain = [self._open] if self._open is not None and not self._open.streamed else []
        return [*plain, *self._streams.values(), *self._prepared.values()]

    def _resume(self, transaction: LoggedTransaction) -> None:
        if transaction.since is not None:
            prepared = "begin" if transaction.gid is None else "begin_prepared"
            self._open = transaction
            self._opened_by = having("begin_segment" if transaction.streamed else prepared)
        if transaction.streamed and transaction.gid is None:
            self._streams[transaction.xid] = transaction
        elif transaction.since is None and transaction.gid is not None:
            self._prepared[transaction.gid] = transaction

    def _enter(self, message: PgoutputMessage, transaction: LoggedTransaction, seq: int | None = None) -> None:
        self.interrupt()
        if seq is not None:
            transaction.since = seq
        self._open, self._opened_by = transaction, frozenset({type(message)})

    def _leave(self, seq: int, message: PgoutputMessage) -> LoggedTransaction:
        transaction, begins = self._open, CLOSES[type(message)]
        if transaction is None or transaction.since is None or not begins & self._opened_by:
            now = "nothing is open" if transaction is None else f"{_names(self._opened_by)} is open"
            raise ProtocolError(f"seq {seq}: {type(message).__name__} must follow {_names(begins)}, but {now}")
        transaction.spans.append((transaction.since, seq))
        self._open, transaction.since = None, None
        return transaction

    def _end(self, seq: int, message: PgoutputMessage) -> LoggedTransaction:
        transaction = self._leave(seq, message)
        # pgoutput_begin_txn() and pgoutput_commit_txn() send the same position, so do the two of a prepare.
        known = {"xid": transaction.xid, "gid": transaction.gid, "lsn": transaction.final_lsn}
        _check_same(seq, message, known, transaction)
        return transaction

    def _segment(self, seq: int, start: PgoutputMessage) -> LoggedTransaction:
        xid = _said(seq, start, "xid")
        if _said(seq, start, "first"):
            self._streams[xid] = LoggedTransaction(xid, streamed=True)
            return self._streams[xid]
        return self._known(seq, xid, self._streams.get(xid))

    def _streamed(self, seq: int, xid: int) -> LoggedTransaction:
        return self._known(seq, xid, self._streams.pop(xid, None))

    def _known(self, seq: int, xid: int, transaction: LoggedTransaction | None) -> LoggedTransaction:
        if transaction is None or transaction is self._open:
            raise ProtocolError(f"seq {seq}: an earlier segment of the streamed transaction {xid} is missing")
        return transaction

    def _abort_streamed(self, seq: int, abort: PgoutputMessage) -> None:
        # PostgreSQL 18 may send this for a transaction never streamed (ReorderBufferCheckAndTruncateAbortedTXN()).
        xid, subxid = _said(seq, abort, "xid"), _said(seq, abort, "subxid")
        if xid != subxid:
            if xid in self._streams:
                self._streams[xid].aborted.add(subxid)
        elif (transaction := self._streams.pop(xid, None)) is not None:
            self._end_aborted(seq, transaction, abort)

    def _end_aborted(self, seq: int, transaction: LoggedTransaction, abort: PgoutputMessage) -> None:
        lsn, time = _number(said(abort, "lsn")), _number(said(abort, "time"))
        end = _number(said(abort, "end_lsn"))
        self.ended.append(EndedTransaction(seq, ABORTED, transaction, lsn, lsn if end is None else end, time))

    def _commit_prepared(self, seq: int, commit: PgoutputMessage) -> None:
        # A transaction prepared before the slot had two_phase is sent as a whole before this message, as well.
        # PostgreSQL 15 to 17 send this message alone for a transaction without changes (ReorderBufferReplay()).
        xid, gid = _said(seq, commit, "xid"), _said(seq, commit, "gid")
        empty = LoggedTransaction(xid, gid=gid, spans=[(seq, seq)])
        transaction = self._prepared.pop(gid, None) or empty
        if transaction.xid != xid:
            raise ProtocolError(
                f"seq {seq}: COMMIT PREPARED {gid!r} has xid {xid}, but transaction {transaction.xid} was prepared so"
            )
        self._publish(seq, transaction, commit)

    def _rollback_prepared(self, seq: int, end: PgoutputMessage) -> None:
        gid = _said(seq, end, "gid")
        prepared = self._prepared.get(gid)
        if prepared is not None and prepared.xid == _said(seq, end, "xid"):
            del self._prepared[gid]
            self.ended.append(EndedTransaction(seq, ROLLED_BACK, prepared, *_record(seq, prepared, end)))

    def _publish(self, seq: int, transaction: LoggedTransaction, end: PgoutputMessage) -> None:
        self.ended.append(EndedTransaction(seq, COMMITTED, transaction, *_record(seq, transaction, end)))


def _record(seq: int, transaction: LoggedTransaction, end: PgoutputMessage) -> tuple[int, int, int]:
    """Return the LSN of the record that ended a transaction, the LSN after it (if not sent, the same), and its time."""
    lsn = said(end, "lsn")
    lsn = transaction.final_lsn if lsn is None else int(lsn)
    if lsn is None:
        lsn = _said(seq, end, "lsn")
    if lsn > _INT64_MAX:
        raise ProtocolError(f"seq {seq}: the LSN {Lsn(lsn)} exceeds the 63 bits that a log stores")
    end_lsn = _number(said(end, "end_lsn"))
    return lsn, lsn if end_lsn is None else end_lsn, int(_said(seq, end, "time"))


def _check_same(seq: int, end: PgoutputMessage, known: Mapping[str, object], transaction: LoggedTransaction) -> None:
    """Raise ProtocolError if an end contradicts its begin in xid, gid or LSN."""
    both = ((value, said(end, role)) for role, value in known.items())
    if any(None not in pair and pair[0] != pair[1] for pair in both):
        raise ProtocolError(f"seq {seq}: {end} is not the end of {transaction}")


def _said(seq: int, message: PgoutputMessage, role: str) -> Any:
    """Return the value that a message has for a role; raise ProtocolError if it has none."""
    value = said(message, role)
    if value is None:
        raise ProtocolError(f"seq {seq}: {type(message).__name__} has no {role} of its transaction")
    return value


def _names(classes: Iterable[type]) -> str:
    return " or ".join(sorted(cls.__name__ for cls in classes)) or "nothing"


def _number(value: int | None) -> int | None:
    return None if value is None else int(value)
