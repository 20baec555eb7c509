"""Which transactions the log holds completely: where to confirm, where to resume, and what was sent twice."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pgoutput_construct.changelog._segment.block import header_role
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
_REMEMBERED: Final = 256
_FEW: Final = 8
"""Messages that are taken in one by one as fast as all together."""


@dataclass(frozen=True)
class Admission:
    """What the tracker says of one batch."""

    kept: Flags
    """Whether each payload belongs into the log: not one whose transaction the log has already."""
    error: PgoutputError | None
    """What is wrong with the payload that follows those of ``kept``: a DecodeError or ProtocolError."""
    _controls: Numbers
    """Where the messages are that begin and end transactions and streams, -1 in front."""
    _quiet: Flags
    """Whether nothing is open behind each of them."""

    def is_quiet(self, place: int) -> bool:
        """Return whether no transaction and no stream is open before the payload at ``place``."""
        return bool(self._quiet[np.searchsorted(self._controls, place) - 1])

    def last_quiet(self) -> int | None:
        """Return behind how many of the payloads that are kept, at most, nothing is open; None where that is nowhere.

        Behind the last message that ends something there may be others that belong to nothing.
        """
        quiet = np.flatnonzero(self._quiet)
        if not len(quiet):
            return None
        return int(self.kept[: self._controls[quiet[-1]] + 1].sum())


class TransactionTracker:
    """Follows one connection's payloads through the messages that begin and end transactions and streams.

    Rows are not looked at: their tag says that they change no state. ``position`` is how far the log was
    complete when the connection began: a server that keeps to the protocol sends nothing again from before it, but for
    the ``overlap`` that it was asked for, which is compared with the log.
    """

    def __init__(self, position: Position, overlap: Overlap | None = None) -> None:
        self._overlap = overlap
        self._xid = 0
        self._lsn: Lsn | None = None
        self.gap: LogGapError | None = None
        """Why the server's history is not that of the log; nothing that was sent belongs into it then."""
        self._resume_lsn = position.complete_lsn
        self._state = StreamState(exact=True)
        self._skipping = False
        self._prepared = dict(position.prepared)
        self._finished = dict.fromkeys(position.finished)
        self.complete_lsn = position.complete_lsn
        """Everything that the server sends before this position was admitted (or was in the log before)."""
        self.transactions = 0
        """Transactions that were admitted completely and are committed."""
        self.dropped = 0
        """Transactions and messages that the log had already, and that were therefore not admitted."""

    @property
    def position(self) -> Position:
        """How far the log is complete with all that was admitted."""
        return Position(self.complete_lsn, dict(self._prepared), tuple(self._finished))

    @property
    def compared(self) -> bool:
        """True once all was sent that is compared with the log: the server's history is the log's."""
        return self._overlap is None and self.gap is None

    @property
    def proved(self) -> bool:
        """True once the server has sent the last transaction of the log, or where none must come again."""
        return self.compared or (self._overlap is not None and self._overlap.witness is None)

    @property
    def between(self) -> bool:
        """True outside of transactions and streams: nothing of what was sent is half here."""
        return self._state.between

    def admit(self, index: BatchIndex, refused: RowError | None = None) -> Admission:
        """Take a batch into account, up to the first message that is malformed, or cannot come there (``refused``)."""
        stop, error = (len(index), None) if refused is None else (refused.row, refused.error)
        controls = _controls(index, stop)
        if not index.valid[controls].all():
            stop = int(controls[~index.valid[controls]][0])
            controls, error = controls[controls < stop], index.error(stop)
        kept, done = np.ones(stop, np.bool_), 0
        places, quiet = [np.array([-1])], [np.array([self.between])]
        for rows, plain in self._runs(index, controls):
            self._skip(index, kept[done : rows[0]], done)
            at_once = plain and not self._skipping
            quiet.append(self._plain(index, rows) if at_once else self._others(index, rows, kept))
            places.append(rows)
            done = int(rows[-1]) + 1
        self._skip(index, kept[done:], done)
        return Admission(kept, error, np.concatenate(places), np.concatenate(quiet))

    def keepalive(self, wal_end: Lsn) -> None:
        """Take a keepalive that came between transactions into account: all before its position was sent."""
        self._pass_over(wal_end)
        self.complete_lsn = max(self.complete_lsn, wal_end)

    def _runs(self, index: BatchIndex, controls: Numbers) -> Iterator[tuple[Numbers, bool]]:
        """Yield runs of messages, each with whether they are Begins and Commits of transactions that are new."""
        plain = np.zeros(len(controls), np.bool_)
        for cls, role in ((PLAIN_BEGIN, "lsn"), (PLAIN_COMMIT, "end_lsn")):
            found = np.flatnonzero(index.tags[controls] == cls.TAG[0])
            # A transaction that begins where the log is complete is new, one that ends there is not.
            lsns = _numbers(index, controls[found], cls, role)
            plain[found] = lsns >= self._resume_lsn if cls is PLAIN_BEGIN else lsns > self._resume_lsn
        cuts = np.flatnonzero(plain[1:] != plain[:-1]) + 1
        for rows in np.split(controls, cuts) if len(controls) else ():
            yield rows, len(rows) >= _FEW and bool(plain[np.searchsorted(controls, rows[0])])

    def _skip(self, index: BatchIndex, kept: Flags, first: int) -> None:
        """Leave out what is inside a transaction that the log has, from the payload ``first`` on."""
        if self._skipping and self._state.stream_xid is not None:
            kept[:] = False  # what a stream describes counts for others only once it is committed
        elif self._skipping:
            # A server sends a table's Relation once a connection: later transactions need it, too.
            kept[:] = look_up(index.tags[first : first + len(kept)], _DESCRIPTIONS)

    def _plain(self, index: BatchIndex, rows: Numbers) -> Flags:
        """Take in Begins and Commits of transactions that the log does not have; tell behind which nothing is open."""
        self._pass_over(self._resume_lsn)
        commits: Flags = index.tags[rows] == _COMMIT
        ends = _numbers(index, rows[commits], PLAIN_COMMIT, "end_lsn")
        last_begin = rows[~commits][-1:].tolist()
        for row in dict.fromkeys([*last_begin, int(rows[-1])]):
            self._state.follow(index.message(row))
        self.transactions += len(ends)
        if len(ends):
            self.complete_lsn = max(self.complete_lsn, Lsn(int(ends.max())))
        return commits

    def _others(self, index: BatchIndex, rows: Numbers, kept: Flags) -> Flags:
        """Take in messages one by one, and what is between them; tell behind which nothing is open."""
        quiet, done = [], int(rows[0])
        for row in rows.tolist():
            self._skip(index, kept[done:row], done)
            kept[row] = self._take(index.message(row))
            quiet.append(self.between)
            done = row + 1
        return np.array(quiet)

    def _take(self, message: PgoutputMessage) -> bool:
        self._state.follow(message)
        match effect_of(message):
            case "begin":
                self._xid, self._lsn = said(message, "xid"), said(message, "lsn")
                lsn = self._lsn
                if lsn is not None and lsn >= self._resume_lsn:
                    self._pass_over(lsn)
                # One that does not say where it commits is known by its end.
                admitted = self._begin(lsn is not None and lsn < self._resume_lsn)
            case "begin_prepared":
                self._xid = said(message, "xid")
                admitted = self._begin(self._has(message))
            case "begin_segment":
                admitted = self._begin(self._overlap is not None and said(message, "xid") in self._overlap.streams)
            case "end_segment":
                admitted, self._skipping = not self._skipping, False
            case "abort":  # nothing of it counts, and nothing is complete with it: a server need not say where it is
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
        """Return where the record of an end ends; where that is not said, where it is."""
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
        self._pass_over(end_lsn)
        if effect in ("commit_prepared", "rollback_prepared"):
            self._finish(said(end, "gid"))
        self.transactions += effect != "rollback_prepared"
        self.complete_lsn = max(self.complete_lsn, end_lsn)
        return True

    def _prepare(self, prepare: PgoutputMessage) -> bool:
        self._skipping = False
        if self._has(prepare):
            self._compare(prepare)
            self.dropped += 1
            return False
        end_lsn = self._end_of(prepare)
        self._prepared[said(prepare, "gid")] = int(end_lsn)
        self.complete_lsn = max(self.complete_lsn, end_lsn)
        return True

    def _was_streamed_first(self, end: PgoutputMessage) -> bool:
        """Return whether streams were admitted that now end before the end of the log.

        The log has nothing of them: nothing in them is visible, or else the server's history is another one, which is
        about to show.
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

    def _pass_over(self, lsn: Lsn) -> None:
        """Note that all that ended up to a position was sent; beyond the end of the log nothing is compared."""
        if self._overlap is not None:
            try:
                self._overlap.pass_over(lsn)
            except LogGapError as gap:
                self.gap = self.gap or gap
            if lsn >= self._resume_lsn:
                self._overlap = None

    def _finish(self, gid: str) -> None:
        prepare_end = self._prepared.pop(gid, None)
        if prepare_end is not None:
            self._finished[prepare_end] = None
        if len(self._finished) > _REMEMBERED:
            del self._finished[next(iter(self._finished))]

    def _has(self, prepare: PgoutputMessage) -> bool:
        # Not by position: what was prepared before the slot had two_phase is sent late, before its commit.
        end_lsn = self._end_of(prepare)
        return self._prepared.get(said(prepare, "gid")) == end_lsn or end_lsn in self._finished

    def _message(self, message: Message) -> bool:
        if message.flags & MessageFlags.TRANSACTIONAL:
            return not self._skipping
        # Sent when it is decoded: all that committed before it was sent, so it is as good as an end.
        if message.lsn <= self._resume_lsn:
            self.dropped += 1
            return False
        self._pass_over(message.lsn)
        self.complete_lsn = max(self.complete_lsn, message.lsn)
        return True


def _numbers(index: BatchIndex, rows: Numbers, cls: type[PgoutputMessage], role: str) -> NDArray[Any]:
    """Return what valid messages of one class say in a role, 0 where they say nothing."""
    names = BOUNDS[cls].roles[role]
    if len(names) == 1:
        return _fields(index, rows, cls)[names[0]]
    _, read, fields = kernels.READERS[cls.TAG[0]]
    found: NDArray[Any] = header_role(cls, role, dict(index.read(rows, read, fields))).fill_null(0).to_numpy()
    return found


def _controls(index: BatchIndex, stop: int) -> Numbers:
    """Return the payloads before ``stop`` that may begin or end a transaction or a stream, and what is no message."""
    rows = np.flatnonzero(~look_up(index.tags[:stop], _INSIDE_ONLY))
    found = rows[(index.tags[rows] == _MESSAGE) & index.valid[rows]]
    flags = _fields(index, found, Message)["flags"]
    # As wide as the widest field of that name in any message, which numpy joins with plain numbers alone.
    inside = found[flags & int(MessageFlags.TRANSACTIONAL) != 0]
    return np.setdiff1d(rows, inside, assume_unique=True) if len(inside) else rows


def _fields(index: BatchIndex, rows: Numbers, cls: type[PgoutputMessage]) -> dict[str, NDArray[Any]]:
    """Return the numbers in the headers of valid messages of one class, by name."""
    _, read, fields = kernels.READERS[cls.TAG[0]]
    columns = read_columns(read, fields, kernels.MESSAGE_SCHEMA, index.given(rows), len(rows))
    return {column.name: column.values[0] for column in columns}


@dataclass
class Ending:
    """What may end a capture; the first that does is its reason."""

    until_lsn: Lsn | None = None
    """The position up to which all must be durable."""
    stop: Callable[[], bool] = lambda: False
    """Asked each time, and may not take long; True ends the capture."""
    signals: Sequence[str] = ()
    """A live list: the first name that appears in it ends the capture."""
    duration: float | None = None
    """Seconds after which the capture ends."""
    until_idle: float | None = None
    """Seconds without a change, with nothing left on the server, after which the capture ends."""
    activity: Callable[[], int] = lambda: 0
    """A number that changes with everything that is received."""
    check: Callable[[], None] = lambda: None
    """Called each time; raises what keeps the capture from going on."""
    settled: Callable[[bool], bool] = lambda first: True
    """Asked where all was received: whether nothing else is under way that the log is to have before the end.

    It is told whether this is the first time since there was more to receive.
    """
    _began: float = field(default_factory=time.monotonic)
    _active: float = field(default_factory=time.monotonic)
    _received: int = -1
    _waiting: Lsn | None = None
    _is_asking: bool = False

    @property
    def asks(self) -> bool:
        """True when the end depends on a position that only an answer of the server tells."""
        return self.until_lsn is not None or self.until_idle is not None

    def connected(self, server_lsn: Lsn) -> None:
        """Begin to wait for idleness again: a server has WAL up to ``server_lsn``."""
        self._active, self._waiting = time.monotonic(), server_lsn

    def reason(self, tracker: TransactionTracker | None = None) -> str | None:
        """Name what ends the capture now, None to go on; ``tracker`` is given while a stream runs.

        Raises what ``check`` and ``stop`` raise.
        """
        if self.signals:
            return self.signals[0]
        self.check()
        if tracker is not None and (reached := self._ended(tracker)):
            return reached
        if self.duration is not None and time.monotonic() - self._began >= self.duration:
            return "duration"
        return "stop" if self.stop() else None

    def _ended(self, tracker: TransactionTracker) -> str | None:
        reached, was_asking = self._reached(tracker), self._is_asking
        self._is_asking = reached is not None
        return reached if reached and self.settled(not was_asking) else None

    def _reached(self, tracker: TransactionTracker) -> str | None:
        until = self.until_lsn
        if not tracker.compared:  # the log may be another server's
            return None
        if until is not None and tracker.between and tracker.complete_lsn >= until:
            return "until_lsn"
        return "until_idle" if self.until_idle is not None and self._is_idle(tracker, self.until_idle) else None

    def _is_idle(self, tracker: TransactionTracker, seconds: float) -> bool:
        received, now = self.activity(), time.monotonic()
        if received != self._received:
            self._received, self._active = received, now
        # A server may be silent since it decodes what it does not send: then it has not reached this position.
        caught_up = self._waiting is not None and tracker.complete_lsn >= self._waiting
        return caught_up and now - self._active >= seconds
