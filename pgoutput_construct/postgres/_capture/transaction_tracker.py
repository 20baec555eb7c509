"""Tracking of transactions in a stream: which are complete, which were sent twice, and up to which LSN to confirm.

Rows are not looked at: only the messages that begin and end transactions and streams change the state (the generated
tables of ``stream.state``). Of these, Begins and Commits of new transactions are processed a batch at a time.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pgoutput_construct.changelog._segment.block import Block, header_role
from pgoutput_construct.changelog._segment.footer import Position
from pgoutput_construct.columnar import kernels
from pgoutput_construct.columnar.batch_arrays import look_up, tag_table
from pgoutput_construct.columnar.header_columns import read_columns
from pgoutput_construct.columnar.index import BatchIndex
from pgoutput_construct.columnar.row_schema import RowError
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.postgres._capture.gaps import LogGapError
from pgoutput_construct.postgres._capture.overlap import Overlap
from pgoutput_construct.stream.bounds import PLAIN_BEGIN, PLAIN_COMMIT, effect_of, said
from pgoutput_construct.stream.state import INSIDE_ONLY, StreamState
from pgoutput_construct.wire import Lsn, Message
from pgoutput_construct.wire.messages import PgoutputMessage
from pgoutput_construct.wire.protocol import BOUNDS, DESCRIPTIONS, MessageFlags

__all__ = ["Admission", "Ending", "TransactionTracker"]


Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_INSIDE_ONLY: Final = tag_table(INSIDE_ONLY)
_DESCRIPTIONS: Final = tag_table(DESCRIPTIONS)
_COMMIT: Final = PLAIN_COMMIT.TAG[0]
_MESSAGE: Final = Message.TAG[0]
_MAX_FINISHED: Final = 256
_VECTORIZED_FROM: Final = 8
"""Shorter runs of Begins and Commits are processed one by one, which is as fast."""


@dataclass(frozen=True)
class Admission:
    """Which payloads of a batch are appended to the log, and where no transaction is open."""

    admitted: Flags
    """Whether each payload is appended: not if the log has its transaction already."""
    error: PgoutputError | None
    """The DecodeError or ProtocolError of the payload that follows those of ``admitted``."""
    _control_rows: Numbers
    """The indexes of the messages that begin and end transactions and streams, after a first -1."""
    _boundaries: Flags
    """Whether no transaction and no stream is open after each of them."""

    def is_boundary(self, index: int) -> bool:
        """Return whether no transaction and no stream is open before the payload at ``index``."""
        return bool(self._boundaries[np.searchsorted(self._control_rows, index) - 1])

    def last_boundary(self) -> int | None:
        """Return the index after the last admitted payload at which no transaction and no stream is open, or None.

        The index counts admitted payloads. It is that of the last boundary message: messages outside of transactions
        that follow it are not included.
        """
        boundaries = np.flatnonzero(self._boundaries)
        if not len(boundaries):
            return None
        return int(self.admitted[: self._control_rows[boundaries[-1]] + 1].sum())


class TransactionTracker:
    """Tracks the transactions of one connection, batch by batch."""

    def __init__(self, position: Position, overlap: Overlap | None = None) -> None:
        """Begin a connection.

        Args:
            position: How far the log is complete. A server that follows the protocol sends nothing again from before
                it, other than ``overlap``.
            overlap: The last transactions of the log, which the server sends again, to be compared with the log.
        """
        self._overlap = overlap
        self._xid = 0
        self._lsn: Lsn | None = None
        self.gap: LogGapError | None = None
        """Why the server's history is not that of the log; then nothing that was sent may be appended."""
        self._resume_lsn = position.complete_lsn
        self._state = StreamState(exact=True)
        self._skipping = False
        self._prepared = dict(position.prepared)
        self._finished = dict.fromkeys(position.finished)
        self.complete_lsn = position.complete_lsn
        """Everything that the server sends before this LSN was admitted, or was in the log already."""
        self.transactions = 0
        """The number of committed transactions that were admitted."""
        self.dropped = 0
        """The number of transactions and messages that the log had already."""

    @property
    def position(self) -> Position:
        """How far the log is complete once everything that was admitted is durable."""
        return Position(self.complete_lsn, dict(self._prepared), tuple(self._finished))

    @property
    def is_compared(self) -> bool:
        """Whether the comparison with the log is complete: the server's history is the log's."""
        return self._overlap is None and self.gap is None

    @property
    def is_proved(self) -> bool:
        """Whether the server has sent the last transaction of the log, or none must come again."""
        return self.is_compared or (self._overlap is not None and self._overlap.witness is None)

    @property
    def at_boundary(self) -> bool:
        """Whether no transaction and no stream is open."""
        return self._state.between

    def admit(self, block: Block, refused: RowError | None = None) -> Admission:
        """Process a batch up to the first message that is malformed, or cannot come there (``refused``)."""
        index = block.index
        stop, error = (len(index), None) if refused is None else (refused.row, refused.error)
        controls = _control_rows(index, stop)
        if not index.valid[controls].all():
            stop = int(controls[~index.valid[controls]][0])
            controls, error = controls[controls < stop], index.error(stop)
        admitted, done = np.ones(stop, np.bool_), 0
        rows_seen, boundaries = [np.array([-1])], [np.array([self.at_boundary])]
        for rows, plain in self._runs(block, controls):
            self._skip(index, admitted[done : rows[0]], done)
            at_once = plain and not self._skipping
            boundaries.append(
                self._take_plain(index, rows) if at_once else self._take_one_by_one(index, rows, admitted)
            )
            rows_seen.append(rows)
            done = int(rows[-1]) + 1
        self._skip(index, admitted[done:], done)
        return Admission(admitted, error, np.concatenate(rows_seen), np.concatenate(boundaries))

    def keepalive(self, wal_end: Lsn) -> None:
        """Process a keepalive that came outside of transactions: everything before its ``wal_end`` was sent."""
        self._advance_overlap(wal_end)
        self.complete_lsn = max(self.complete_lsn, wal_end)

    def _runs(self, block: Block, controls: Numbers) -> Iterator[tuple[Numbers, bool]]:
        """Yield runs of messages, each with whether it consists of Begins and Commits of new transactions."""
        plain = np.zeros(len(controls), np.bool_)
        for cls, role in ((PLAIN_BEGIN, "lsn"), (PLAIN_COMMIT, "end_lsn")):
            found = np.flatnonzero(block.index.tags[controls] == cls.TAG[0])
            if not len(found):
                continue
            # A transaction whose commit record begins at the log's end is new; one whose record ends there is not.
            lsns = header_role(cls, role, block.header(cls)[1]).fill_null(0).to_numpy()[: len(found)]
            plain[found] = lsns >= self._resume_lsn if cls is PLAIN_BEGIN else lsns > self._resume_lsn
        cuts = np.flatnonzero(plain[1:] != plain[:-1]) + 1
        for rows in np.split(controls, cuts) if len(controls) else ():
            yield rows, len(rows) >= _VECTORIZED_FROM and bool(plain[np.searchsorted(controls, rows[0])])

    def _skip(self, index: BatchIndex, admitted: Flags, first: int) -> None:
        """Do not admit the content of a logged transaction, from the payload ``first`` on."""
        if self._skipping and self._state.stream_xid is not None:
            admitted[:] = False  # descriptions inside a stream are for that transaction, until it commits
        elif self._skipping:
            # A server sends a table's Relation once per connection: later transactions need it too.
            admitted[:] = look_up(index.tags[first : first + len(admitted)], _DESCRIPTIONS)

    def _take_plain(self, index: BatchIndex, rows: Numbers) -> Flags:
        """Process Begins and Commits of new transactions; return after which of them nothing is open."""
        self._advance_overlap(self._resume_lsn)
        commits: Flags = index.tags[rows] == _COMMIT
        ends = _numbers(index, rows[commits], PLAIN_COMMIT, "end_lsn")
        last_begin = rows[~commits][-1:].tolist()
        for row in dict.fromkeys([*last_begin, int(rows[-1])]):
            self._state.follow(index.message(row))
        self.transactions += len(ends)
        if len(ends):
            self.complete_lsn = max(self.complete_lsn, Lsn(int(ends.max())))
        return commits

    def _take_one_by_one(self, index: BatchIndex, rows: Numbers, admitted: Flags) -> Flags:
        """Process messages one by one, and what is between them; return after which of them nothing is open."""
        boundaries, done = [], int(rows[0])
        for row in rows.tolist():
            self._skip(index, admitted[done:row], done)
            admitted[row] = self._take(index.message(row))
            boundaries.append(self.at_boundary)
            done = row + 1
        return np.array(boundaries)

    def _take(self, message: PgoutputMessage) -> bool:
        self._state.follow(message)
        match effect_of(message):
            case "begin":
                self._xid, self._lsn = said(message, "xid"), said(message, "lsn")
                lsn = self._lsn
                if lsn is not None and lsn >= self._resume_lsn:
                    self._advance_overlap(lsn)
                # A Begin without the LSN of its commit is recognised by its Commit.
                admitted = self._begin(lsn is not None and lsn < self._resume_lsn)
            case "begin_prepared":
                self._xid = said(message, "xid")
                admitted = self._begin(self._is_logged(message))
            case "begin_segment":
                admitted = self._begin(self._overlap is not None and said(message, "xid") in self._overlap.streams)
            case "end_segment":
                admitted, self._skipping = not self._skipping, False
            case "abort":  # its LSN may be absent, or 0/0: it completes nothing
                self.dropped += self._skipping
                admitted, self._skipping = not self._skipping, False
            case "commit" | "commit_streamed" | "commit_prepared" | "rollback_prepared":
                admitted = self._end(message)
            case "prepare" | "prepare_streamed":
                admitted = self._prepare(message)
            case _:
                admitted = self._message(message) if isinstance(message, Message) else not self._skipping
        return admitted

    def _end_of(self, end: PgoutputMessage) -> Lsn:
        """Return the end LSN of the message that ends a transaction; if it has none, the LSN of its record."""
        own = said(end, "end_lsn"), said(end, "lsn"), self._lsn, 0
        return Lsn(next(lsn for lsn in own if lsn is not None))

    def _begin(self, known: bool) -> bool:
        self._skipping = known
        return not known

    def _end(self, end: PgoutputMessage) -> bool:
        skipped, effect, end_lsn = self._skipping, effect_of(end), self._end_of(end)
        self._skipping = False
        if (skipped or end_lsn <= self._resume_lsn) and not self._was_streamed_first(end):
            self._compare(end)
            self.dropped += 1
            return False
        self._advance_overlap(end_lsn)
        if effect in ("commit_prepared", "rollback_prepared"):
            self._finish_prepared(said(end, "gid"))
        self.transactions += effect != "rollback_prepared"
        self.complete_lsn = max(self.complete_lsn, end_lsn)
        return True

    def _prepare(self, prepare: PgoutputMessage) -> bool:
        self._skipping = False
        if self._is_logged(prepare):
            self._compare(prepare)
            self.dropped += 1
            return False
        end_lsn = self._end_of(prepare)
        self._prepared[said(prepare, "gid")] = int(end_lsn)
        self.complete_lsn = max(self.complete_lsn, end_lsn)
        return True

    def _was_streamed_first(self, end: PgoutputMessage) -> bool:
        """Return whether a Stream Commit before the log's end is of streams that were admitted as new.

        The log does not have the transaction: either nothing in it is committed, or the server's history is another
        one, which the comparison is about to find.
        """
        if self._overlap is None or effect_of(end) != "commit_streamed" or self._end_of(end) <= self._overlap.start_lsn:
            return False
        return said(end, "xid") not in self._overlap.streams

    def _compare(self, end: PgoutputMessage) -> None:
        if self._overlap is not None:
            try:
                xid = said(end, "xid")
                self._overlap.compare(end, int(self._end_of(end)), self._xid if xid is None else xid)
            except LogGapError as gap:
                self.gap = self.gap or gap

    def _advance_overlap(self, lsn: Lsn) -> None:
        """Note that everything that ends up to ``lsn`` was sent; beyond the log's end nothing is compared."""
        if self._overlap is not None:
            try:
                self._overlap.advance(lsn)
            except LogGapError as gap:
                self.gap = self.gap or gap
            if lsn >= self._resume_lsn:
                self._overlap = None

    def _finish_prepared(self, gid: str) -> None:
        prepare_end = self._prepared.pop(gid, None)
        if prepare_end is not None:
            self._finished[prepare_end] = None
        if len(self._finished) > _MAX_FINISHED:
            del self._finished[next(iter(self._finished))]

    def _is_logged(self, prepare: PgoutputMessage) -> bool:
        # Not by LSN alone: a transaction that was prepared before the slot's two_phase_at is sent late, right before
        # its Commit Prepared.
        end_lsn = self._end_of(prepare)
        return self._prepared.get(said(prepare, "gid")) == end_lsn or end_lsn in self._finished

    def _message(self, message: Message) -> bool:
        if message.flags & MessageFlags.TRANSACTIONAL:
            return not self._skipping
        # It is sent when it is decoded, after everything that committed before it: its LSN is as good as an end LSN.
        if message.lsn <= self._resume_lsn:
            self.dropped += 1
            return False
        self._advance_overlap(message.lsn)
        self.complete_lsn = max(self.complete_lsn, message.lsn)
        return True


def _numbers(index: BatchIndex, rows: Numbers, cls: type[PgoutputMessage], role: str) -> NDArray[Any]:
    """Return a role's value in valid messages of one class, 0 if it is absent."""
    names = BOUNDS[cls].roles[role]
    if len(names) == 1:
        return _fields(index, rows, cls)[names[0]]
    _, read, fields = kernels.READERS[cls.TAG[0]]
    found: NDArray[Any] = header_role(cls, role, dict(index.read(rows, read, fields))).fill_null(0).to_numpy()
    return found


def _control_rows(index: BatchIndex, stop: int) -> Numbers:
    """Return the indexes, before ``stop``, of payloads that begin or end a transaction or stream, or are invalid."""
    rows = np.flatnonzero(~look_up(index.tags[:stop], _INSIDE_ONLY))
    found = rows[(index.tags[rows] == _MESSAGE) & index.valid[rows]]
    flags = _fields(index, found, Message)["flags"]
    # The field is as wide as the widest of that name in any message: compare it with a plain int.
    inside = found[flags & int(MessageFlags.TRANSACTIONAL) != 0]
    return np.setdiff1d(rows, inside, assume_unique=True) if len(inside) else rows


def _fields(index: BatchIndex, rows: Numbers, cls: type[PgoutputMessage]) -> dict[str, NDArray[Any]]:
    """Return the numeric header fields of valid messages of one class, by name."""
    _, read, fields = kernels.READERS[cls.TAG[0]]
    columns = read_columns(read, fields, kernels.MESSAGE_SCHEMA, index.given(rows), len(rows))
    return {column.name: column.values[0] for column in columns}


@dataclass
class Ending:
    """The conditions that end a capture; the first one that holds is the reason.

    ``until_lsn``, ``until_idle`` and ``duration`` count from where the capture begins: a stream runs, and the server's
    history is known to be that of the log. A capture that does not get there ends with the error that prevents it, or
    by a signal or ``stop``; what is transient is retried for a limited time (``is_bounded``, ``Retry``).
    """

    until_lsn: Lsn | None = None
    """Everything before this LSN was received."""
    stop: Callable[[], bool] = lambda: False
    """Called often, so it must return quickly; True ends the capture."""
    signals: Sequence[str] = ()
    """A live list: the first name that appears in it ends the capture."""
    duration: float | None = None
    """Seconds after which the capture ends, from where it began."""
    until_idle: float | None = None
    """Seconds without a change, while the server has nothing more to send, after which the capture ends."""
    activity: Callable[[], int] = lambda: 0
    """Returns a number that changes with everything that is received."""
    check: Callable[[], None] = lambda: None
    """Called often; raises the error for which the capture must end."""
    is_settled: Callable[[bool], bool] = lambda first: True
    """Called once ``until_lsn`` or ``until_idle`` holds: whether table copies and catalog events are complete too.

    The argument is True the first time since there was more to receive.
    """
    _began: float = math.inf
    _active: float = field(default_factory=time.monotonic)
    _received: int = -1
    _waiting: Lsn | None = None
    _was_reached: bool = False

    @property
    def needs_replies(self) -> bool:
        """Whether the end depends on an LSN that only a keepalive of the server shows."""
        return self.until_lsn is not None or self.until_idle is not None

    @property
    def is_bounded(self) -> bool:
        """Whether the capture ends by itself."""
        return self.needs_replies or self.duration is not None

    @property
    def has_begun(self) -> bool:
        """Whether a stream has run, and the server's history was known to be that of the log."""
        return self._began < math.inf

    def restart_idle_timer(self, server_lsn: Lsn) -> None:
        """Start waiting for idleness again, on a server whose WAL ends at ``server_lsn``."""
        self._active, self._waiting = time.monotonic(), server_lsn

    def reason(self, tracker: TransactionTracker | None = None) -> str | None:
        """Return the condition that ends the capture now, or None; ``tracker`` is given while a stream runs.

        Raises the errors of ``check`` and ``stop``.
        """
        if self.signals:
            return self.signals[0]
        self.check()
        now = time.monotonic()
        if tracker is not None:
            if tracker.is_compared:
                self._began = min(self._began, now)
            if reached := self._ended(tracker):
                return reached
        if self.duration is not None and now - self._began >= self.duration:
            return "duration"
        return "stop" if self.stop() else None

    def _ended(self, tracker: TransactionTracker) -> str | None:
        reached, was_reached = self._reached(tracker), self._was_reached
        self._was_reached = reached is not None
        return reached if reached and self.is_settled(not was_reached) else None

    def _reached(self, tracker: TransactionTracker) -> str | None:
        until = self.until_lsn
        if not tracker.is_compared:  # the log may belong to another server
            return None
        if until is not None and tracker.at_boundary and tracker.complete_lsn >= until:
            return "until_lsn"
        return "until_idle" if self.until_idle is not None and self._is_idle(tracker, self.until_idle) else None

    def _is_idle(self, tracker: TransactionTracker, seconds: float) -> bool:
        received, now = self.activity(), time.monotonic()
        if received != self._received:
            self._received, self._active = received, now
        # A silent server may be decoding what it does not send: then it has not reached this LSN.
        caught_up = self._waiting is not None and tracker.complete_lsn >= self._waiting
        return caught_up and now - self._active >= seconds
