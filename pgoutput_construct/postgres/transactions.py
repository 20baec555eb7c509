"""Which transactions the log holds completely: where to confirm, where to resume, and what was sent twice."""

from pgoutput_construct.changelog.segments import Position
from pgoutput_construct.stream import Session
from pgoutput_construct.stream.state import INSIDE_ONLY, StreamState
from pgoutput_construct.wire import (
    Begin,
    BeginPrepare,
    Commit,
    CommitPrepared,
    Lsn,
    Message,
    Prepare,
    RollbackPrepared,
    StreamCommit,
    StreamPrepare,
)
from pgoutput_construct.wire.protocol import DESCRIPTIONS, MessageFlags

__all__ = ["TransactionTracker"]

_INSIDE_ONLY = frozenset(message.TAG[0] for message in INSIDE_ONLY)
_DESCRIPTIONS = frozenset(message.TAG[0] for message in DESCRIPTIONS)
_REMEMBERED = 256


class TransactionTracker:
    """Follows one connection's payloads through the messages that begin and end transactions and streams.

    Rows are not parsed: their tag says that they change no state. ``position`` is how far the log was
    complete when the connection began: a server that keeps to the protocol sends nothing again from before it.
    """

    def __init__(self, session: Session, position: Position) -> None:
        self.session = session
        """What parses the payloads; its state is that in which the next one is to be parsed."""
        self._resume_lsn = position.complete_lsn
        self._state = StreamState(exact=True)
        self._skipping = False
        self._prepared = dict(position.prepared)
        self._finished = list(position.finished)
        self.complete_lsn = position.complete_lsn
        """Everything that the server sends before this position was admitted (or was in the log before)."""
        self.transactions = 0
        """Transactions that were admitted completely and are committed."""
        self.dropped = 0
        """Transactions and messages that the log had already, and that were therefore not admitted."""

    @property
    def position(self) -> Position:
        """How far the log is complete with all that was admitted."""
        return Position(self.complete_lsn, dict(self._prepared), tuple(self._finished[-_REMEMBERED:]))

    @property
    def between(self) -> bool:
        """True outside of transactions and streams: nothing of what was sent is half here."""
        return self._state.between

    def admit(self, payload: bytes) -> bool:
        """Take one payload into account; False when the log has its transaction already.

        Raises DecodeError for invalid messages, ProtocolError for those that cannot come here.
        """
        if payload[0] in _INSIDE_ONLY:
            # A server sends a table's Relation once a connection: later transactions need it, too.
            return not self._skipping or payload[0] in _DESCRIPTIONS
        message = self.session.parse(payload)
        self._state.follow(message)
        match message:
            case Begin() as begin:
                admitted = self._begin(begin.final_lsn < self._resume_lsn)
            case BeginPrepare() as begin:
                admitted = self._begin(self._has(begin))
            case Commit() | StreamCommit() | CommitPrepared() | RollbackPrepared() as end:
                admitted = self._end(end)
            case Prepare() | StreamPrepare() as prepare:
                admitted = self._prepare(prepare)
            case Message():
                admitted = self._message(message)
            case _:
                admitted = not self._skipping
        return admitted

    def keepalive(self, wal_end: Lsn) -> None:
        """Take a keepalive into account: between transactions, everything before its position was sent."""
        if self.between:
            self.complete_lsn = max(self.complete_lsn, wal_end)

    def _begin(self, known: bool) -> bool:
        self._skipping = known
        return not known

    def _end(self, end: Commit | StreamCommit | CommitPrepared | RollbackPrepared) -> bool:
        skipped = self._skipping
        self._skipping = False
        end_lsn = end.rollback_end_lsn if isinstance(end, RollbackPrepared) else end.end_lsn
        if skipped or end_lsn <= self._resume_lsn:
            self.dropped += 1
            return False
        if isinstance(end, CommitPrepared | RollbackPrepared):
            self._finish(end.gid)
        self.transactions += not isinstance(end, RollbackPrepared)
        self.complete_lsn = max(self.complete_lsn, end_lsn)
        return True

    def _prepare(self, prepare: Prepare | StreamPrepare) -> bool:
        self._skipping = False
        if self._has(prepare):
            self.dropped += 1
            return False
        self._prepared[prepare.gid] = int(prepare.end_lsn)
        self.complete_lsn = max(self.complete_lsn, prepare.end_lsn)
        return True

    def _finish(self, gid: str) -> None:
        prepare_end = self._prepared.pop(gid, None)
        if prepare_end is not None:
            self._finished.append(prepare_end)

    def _has(self, prepare: BeginPrepare | Prepare | StreamPrepare) -> bool:
        # Not by position: what was prepared before the slot had two_phase is sent late, before its commit.
        return self._prepared.get(prepare.gid) == prepare.end_lsn or prepare.end_lsn in self._finished

    def _message(self, message: Message) -> bool:
        if message.flags & MessageFlags.TRANSACTIONAL:
            return not self._skipping
        # Sent when it is decoded: all that committed before it was sent, so it is as good as an end.
        if message.lsn <= self._resume_lsn:
            self.dropped += 1
            return False
        self.complete_lsn = max(self.complete_lsn, message.lsn)
        return True
