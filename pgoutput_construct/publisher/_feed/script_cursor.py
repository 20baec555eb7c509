"""How far a client has been sent a script: message by message, where the client asked for what they are."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from pgoutput_construct.errors import ProtocolError
from pgoutput_construct.publisher._feed.cursor import Cursor
from pgoutput_construct.publisher._feed.encodings import UTF8, ClientEncoding
from pgoutput_construct.publisher._feed.feed import Fed, Feed, Pace
from pgoutput_construct.publisher._feed.message_feed import Script
from pgoutput_construct.publisher._feed.rendering import Outgoing, Withholding, describing, tables_of
from pgoutput_construct.stream.transaction_reader import COMMITTED, FINISHED, EndedTransaction
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.protocol import ReplicationOptions
from pgoutput_construct.wire.types import Lsn, Timestamp

__all__ = ["ScriptCursor", "confirmed", "cursor_of"]


_OPENING: Final = (m.Begin, m.BeginPrepare, m.StreamStart)
_TWO_PHASE: Final = (m.Prepare, m.StreamPrepare, m.CommitPrepared, m.RollbackPrepared)


def cursor_of(
    feed: Feed,
    options: ReplicationOptions,
    after: int,
    copied: int,
    two_phase_at: int | None,
    pace: Pace | None = None,
    encoding: ClientEncoding = UTF8,
    missed: Collection[int] = (),
    publications: Collection[str] = (),
    withholding: Withholding | None = None,
) -> Cursor:
    """Return what goes through a feed for one client; see ``Cursor``. A script has its pace from who writes it."""
    if isinstance(feed, Script):
        return ScriptCursor(feed, options, after, copied, two_phase_at, encoding)
    return Cursor(feed, options, after, copied, two_phase_at, pace, encoding, missed, publications, withholding)


class ScriptCursor(Cursor):
    """Goes through a script as it stands, streams interleaved.

    A transaction that is something which the client did not ask for is withheld, and sent as a whole at its end.
    """

    _feed: Script

    def __init__(
        self,
        feed: Script,
        options: ReplicationOptions,
        after: int,
        copied: int = -1,
        two_phase_at: int | None = None,
        encoding: ClientEncoding = UTF8,
    ) -> None:
        super().__init__(feed, options, after, copied, two_phase_at, encoding=encoding)
        self._options = options
        self._at = 0
        """The seq of the next message."""
        self._known: dict[tuple[int | None, int], int] = {}
        self._had = confirmed(feed.read(0, feed.last_seq), after, two_phase_at)
        streamed = (item.transaction for item in feed.order(two_phase_at) if item.transaction.streamed)
        self._before = {each.xid for each in streamed if self._renderer.is_before(each)}
        """The top-level xids of transactions that were streamed, and are not when they come again."""
        self._surroundings = _Surroundings()
        self._withheld = set[int]()
        """The top-level xids of transactions that are sent as a whole."""
        self._streamed = set[int]()
        """Those of transactions whose streams the client got."""
        self._items: dict[int, list[EndedTransaction]] = {}
        """Of the feed's order, by their seqs."""
        self._taken = 0

    def _begin_next(self) -> bool:
        self.position = max(self.position, Lsn(self._end))
        self._fault = self._feed.next_fault(self._at)
        if self._fault is not None or not self._is_there(self._at):
            return False
        self._take_items()
        fed = next(self._feed.read(self._at, self._at))
        xid = self._surroundings.xid_of(fed)
        if xid is not None and self._is_unasked(fed):
            self._withheld.add(xid)
        self._current = iter(()) if self._at in self._had else self._sent(fed, xid)
        self._end = max(self._end, *(item.end_lsn or 0 for item in self._items.get(self._at, ())), 0)
        self._at += 1
        return True

    def _is_there(self, seq: int) -> bool:
        """Return whether a message is there, and, after one that opens a transaction, the Origin that may follow."""
        if seq >= self._feed.last_seq and self._options.origin == "none":
            return seq == self._feed.last_seq and not isinstance(self._read(seq), _OPENING)
        return seq <= self._feed.last_seq

    def _read(self, seq: int) -> m.PgoutputMessage:
        return next(fed.message for fed in self._feed.read(seq, seq))

    def _take_items(self) -> None:
        order = self._feed.order(self._two_phase_at)
        for index in range(self._taken, len(order)):
            self._items.setdefault(order[index].seq, []).append(order[index])
            self._taken += 1

    def _is_unasked(self, fed: Fed) -> bool:
        """Return whether a message opens a transaction that the client gets otherwise, or not at all."""
        if not isinstance(fed.message, _OPENING):
            return False
        if self._options.origin == "none" and isinstance(self._read(fed.seq + 1), m.Origin):
            return True
        if isinstance(fed.message, m.BeginPrepare):
            return not self._is_two_phase(fed.message.end_lsn)
        if not isinstance(fed.message, m.StreamStart):
            return False
        return self._options.streaming == "off" or fed.message.xid in self._before

    def _is_two_phase(self, prepared_at: int) -> bool:
        return self._two_phase_at is not None and prepared_at > self._two_phase_at

    def _sent(self, fed: Fed, xid: int | None) -> Iterator[Outgoing]:
        """Yield what a message comes to for the client."""
        items = self._items.get(fed.seq, [])
        if xid in self._withheld:
            for item in items:
                yield from self._renderer.render(item)
        elif isinstance(fed.message, _TWO_PHASE):
            yield from self._two_phase(fed, items)
        else:
            yield from self._as_it_stands(fed)

    def _two_phase(self, fed: Fed, items: list[EndedTransaction]) -> Iterator[Outgoing]:
        """Yield what prepares or finishes a transaction, or commits one of which the client got the streams."""
        for item in items:
            if item.outcome == FINISHED or isinstance(fed.message, m.Prepare | m.StreamPrepare):
                yield from self._as_it_stands(fed)
            elif item.transaction.streamed:
                yield self._renderer.stream_end(item)
            elif item.outcome == COMMITTED:
                yield from self._renderer.render(item)
        if not items and isinstance(fed.message, m.RollbackPrepared) and fed.message.xid in self._streamed:
            abort = m.StreamAbort(fed.message.xid, fed.message.xid)
            yield Outgoing(fed.lsn, self._abort(abort, fed.lsn))

    def _as_it_stands(self, fed: Fed) -> Iterator[Outgoing]:
        """Yield a message, and before it what describes its tables where the client has not had that."""
        message, in_stream = fed.message, fed.scope is not None
        if isinstance(message, m.Message) and not self._options.messages:
            return
        if isinstance(message, m.StreamStart):
            self._streamed.add(message.xid)
        if isinstance(message, m.Relation):
            self._known[fed.scope, message.relation_oid] = fed.seq
        for oid in tables_of(message):
            yield from self._describing(oid, fed)
        if isinstance(message, m.StreamAbort):
            message = self._abort(message, fed.lsn)
        yield Outgoing(fed.lsn, message, in_stream)

    def _describing(self, oid: int, fed: Fed) -> Iterator[Outgoing]:
        try:
            description = self._feed.description(oid, fed.seq, fed.scope)
        except ProtocolError:
            return  # a Relation that comes late, on purpose
        if self._known.setdefault((fed.scope, oid), -1) != description.seq:
            self._known[fed.scope, oid] = description.seq
            yield from describing(description, getattr(fed.message, "xid", None), fed.scope is not None)

    def _abort(self, abort: m.StreamAbort, lsn: Lsn) -> m.StreamAbort:
        """Return a Stream Abort as the option streaming has it: with its position and time, or without."""
        if self._options.streaming != "parallel":
            return m.StreamAbort(abort.xid, abort.subxid)
        known = abort.abort_lsn, abort.abort_time
        return abort if None not in known else m.StreamAbort(abort.xid, abort.subxid, lsn, Timestamp.now())


_ENDS: Final = (m.Commit, m.StreamCommit, m.CommitPrepared, m.RollbackPrepared)
_OF_XID: Final = (m.StreamStart, m.StreamAbort, m.StreamCommit, m.StreamPrepare, m.CommitPrepared, m.RollbackPrepared)
"""The messages that stand outside of what they are about, and say its top-level xid."""


class _Surroundings:
    """Tells of which transaction each message of a script is, in their order."""

    def __init__(self) -> None:
        self._plain: int | None = None

    def xid_of(self, fed: Fed) -> int | None:
        """Return the top-level xid, None for a message outside of transactions."""
        message = fed.message
        if isinstance(message, m.Begin | m.BeginPrepare):
            self._plain = message.xid
        around = self._plain if fed.scope is None else fed.scope
        if isinstance(message, m.Commit | m.Prepare):
            self._plain = None
        return message.xid if isinstance(message, _OF_XID) else around


def confirmed(script: Iterable[Fed], after: int, two_phase_at: int | None) -> set[int]:
    """Return the seqs of what ended at, or before, a position.

    A transaction that was prepared after the LSN ``two_phase_at`` has two ends. Once its PREPARE is confirmed the
    rest comes alone (ReorderBufferSkipPrepare()): a server that has it prepared refuses to prepare it again.
    """
    had, open_ones, around = set[int](), defaultdict[int | None, list[int]](list), _Surroundings()
    without_lsn = list[int]()
    for fed in script:
        xid = around.xid_of(fed)
        open_ones[xid].append(fed.seq)
        if xid is None or _is_end(fed.message, two_phase_at):
            seqs, lsn = [*without_lsn, *open_ones.pop(xid)], _end_of(fed.message) or fed.lsn
            # The line of a Stream Abort may have no LSN: then that of what ends next decides.
            without_lsn = [] if lsn else seqs
            had.update(seqs if 0 < lsn <= after else ())
    return had


def _is_end(message: m.PgoutputMessage, two_phase_at: int | None) -> bool:
    if isinstance(message, m.Prepare | m.StreamPrepare):
        return two_phase_at is not None and message.end_lsn > two_phase_at
    return isinstance(message, _ENDS) or (isinstance(message, m.StreamAbort) and message.xid == message.subxid)


def _end_of(message: m.PgoutputMessage) -> int:
    """Return the end LSN of a message that ends a transaction, 0 if it has none."""
    end: int = getattr(message, "end_lsn", None) or getattr(message, "rollback_end_lsn", None) or 0
    return end
