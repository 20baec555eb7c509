"""How far a client has been sent what a publisher serves: chunks of bytes, ready for its socket.

A script is read message by message, in the layout that the client requested.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, Final, NamedTuple

from pgoutput_construct.changelog.decoding_order import PlacedCopies
from pgoutput_construct.errors import ChangeLogError, EncodeError, ProtocolError
from pgoutput_construct.publisher._feed.encodings import UTF8, ClientEncoding, Formats, StreamEncoder
from pgoutput_construct.publisher._feed.feed import Fed, Feed, Order, Pace
from pgoutput_construct.publisher._feed.message_feed import Script
from pgoutput_construct.publisher._feed.rendering import Outgoing, Renderer, Withholding, describing
from pgoutput_construct.publisher.faults import Fault
from pgoutput_construct.publisher.refusals import Refusal
from pgoutput_construct.stream.bounds import OPENERS
from pgoutput_construct.stream.rows import tables_of
from pgoutput_construct.stream.transaction_reader import COMMITTED, FINISHED, EndedTransaction
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.connection_engine import build_connection
from pgoutput_construct.wire.connection_messages import CopyData
from pgoutput_construct.wire.engine import build_frame, engine
from pgoutput_construct.wire.frames import XLogData
from pgoutput_construct.wire.options import LAYOUT_OPTIONS
from pgoutput_construct.wire.protocol import CHANGES, ReplicationOptions
from pgoutput_construct.wire.types import Lsn, Timestamp

__all__ = ["Cursor", "ScriptCursor", "confirmed", "cursor_for"]


_BYTES: Final = 64 << 10
"""Bytes of a chunk, or one message where that is larger."""


class _Chunk(NamedTuple):
    """What is sent next."""

    data: bytes
    """CopyData messages."""
    changes: int
    """The number of changes of rows in it."""
    position: Lsn
    """End of the last transaction that is completely sent with it."""
    fault: Fault | None = None
    """What shows after it, on purpose."""
    pause: float = 0.0
    """Seconds until what follows is due."""


class Cursor:
    """Goes through a feed for one client."""

    def __init__(
        self,
        feed: Feed,
        options: ReplicationOptions,
        after: int,
        copied: int = -1,
        two_phase_at: int | None = None,
        *,
        pace: Pace | None = None,
        encoding: ClientEncoding = UTF8,
        missed: Collection[int] = (),
        publications: Collection[str] = (),
        withholding: Withholding | None = None,
    ) -> None:
        """Begin after what ended up to an LSN.

        Args:
            feed: What is served.
            options: What the client requested.
            after: The LSN, 0 for a client that has nothing.
            copied: The client has been served the copies of tables up to this seq that stand before that.
            two_phase_at: What was prepared after this LSN is sent as prepared; None: when it has committed.
            pace: When each is due; None: at once.
            encoding: The encoding of all text that the client gets.
            missed: The OIDs of tables of which the client has ignored all before that.
            publications: What the client named; none: it gets all that the feed has.
            withholding: Which copies the client is not served; None: it is served all.
        """
        self._feed = feed
        self._pace = pace
        self._pause = 0.0
        self.copied = copied
        """The seq up to which copies of tables have been served, or will be."""
        self._late: list[PlacedCopies] = []
        """Copies that became complete after the client had passed their positions."""
        self._out_of_order = set[int]()
        """Their seqs: they are not served at their positions, too."""
        scope = feed.scope(publications) if publications else None
        own = [oid for oid in missed if after and (scope is None or scope.has_table(oid))]
        found = [each for oid in own if (each := feed.missed(oid, after, two_phase_at)) is not None]
        self._missed = [each for each in found if not each.lack]
        """Tables that the client gets again: before anything else, or as soon as nothing comes by an older name."""
        self.lacking = [each.lack for each in found if each.lack]
        """What it does not get again, and why."""
        self._late_ends: list[int] = []
        """The LSNs at which those ended that were sent."""
        self.confirmed = after
        """The LSN that the client has confirmed."""
        self.told = 0
        """The LSN of the last keepalive: the client knows that nothing else ended up to it."""
        order = feed.order(two_phase_at)
        # What it had of a table may have been pruned.
        has_pruned = bool(after and order.begins)
        self._renderer = Renderer(feed, options, two_phase_at, has_pruned, publications, withholding, after)
        self._two_phase_at = two_phase_at
        self._after = self._end = after
        self._generation = order.generation
        self._index = order.after(after)
        passed = (order[index] for index in range(self._index - 1, -1, -1))
        self._seq = next((item.seq for item in passed if not isinstance(item, PlacedCopies)), -1)
        """The seq up to which messages outside of transactions have been sent."""
        self._formats = Formats(options.binary)
        self._encoder = StreamEncoder(encoding, self._formats.relations)
        layout = self._layout = {name: getattr(options, name) for name in LAYOUT_OPTIONS}
        self._engines = {inside: engine(**layout, in_stream=inside) for inside in (False, True)}
        self._current: Iterator[Outgoing] = iter(())
        self._fault: Fault | None = None
        self.position = Lsn(after)
        """End of the last transaction that was completely sent."""
        self.clock = 0.0
        """Seconds by which the server's clock is wrong."""

    def next_chunk(self, most_changes: int | None = None) -> _Chunk | None:
        """Return what comes next, of at most ``most_changes`` changes; None if the feed has nothing more now.

        Raises Refusal for a value that the client cannot get in the format or encoding that it requested, once all
        before it was returned.
        """
        pieces: list[bytes] = []
        size = changes = 0
        while size < _BYTES and (most_changes is None or changes < most_changes):
            outgoing = next(self._current, None)
            if outgoing is None:
                if not self._begin_next():
                    break
                continue
            try:
                pieces.append(self._encoded(outgoing))
            except Refusal:
                if not pieces:
                    raise
                self._current = chain((outgoing,), self._current)
                break
            size += len(pieces[-1])
            changes += type(outgoing.message) in CHANGES
        (fault, pause), self._fault, self._pause = (self._fault, self._pause), None, 0.0
        return _Chunk(b"".join(pieces), changes, self.position, fault, pause) if pieces or fault or pause else None

    def _begin_next(self) -> bool:
        """Begin the next item; return whether there is one."""
        self.position = max(self.position, Lsn(self._end))
        last_seq = self._feed.last_seq  # asked before: what ends meanwhile has a later seq
        order = self._feed.order(self._two_phase_at)
        self._find_index(order)
        self._seq = max(self._seq, order.first_seq - 1)
        if self._begin_late(order):
            return True
        if self._index >= len(order):
            return self._send_messages(last_seq)
        following = order[self._index]
        self._fault = self._feed.next_fault(following.seq)
        is_copy = isinstance(following, PlacedCopies)
        if self._fault is not None or (not is_copy and self._send_messages(following.seq - 1)):
            return self._fault is None
        self._pause = self._pace.wait(following) if self._pace and (following.end_lsn or 0) > self._after else 0.0
        if self._pause:
            return False
        self._index += 1
        if is_copy and following.seq in self._out_of_order:
            return True
        self._end = following.end_lsn or 0
        if self._end > self._after:
            self._current = self._renderer.render(following)
        return True

    def _send_messages(self, last: int) -> bool:
        """Send the messages outside of transactions up to a seq; return whether that was not done yet."""
        first, self._seq = self._seq + 1, max(last, self._seq)
        if first <= last:
            self._current = self._renderer.messages(first, last, self._after)
        return first <= last

    def _find_index(self, order: Order) -> None:
        """Find the next item again in an order that has changed: a table was copied, or the log was pruned."""
        if self._generation != order.generation:
            self._generation = order.generation
            self._index = order.after(self._end)
            if 0 < self._passed() < order.begins:
                raise ChangeLogError(
                    f"transactions after {Lsn(self._end)} were pruned before this client received them"
                )
        passed = self._passed()
        late = [each for each in order.copies if each.seq > self.copied and (each.end_lsn or 0) <= passed]
        self._late += late
        self._out_of_order |= {each.seq for each in late}
        self.copied = max(self.copied, order.copied_until)

    def _begin_late(self, order: Order) -> bool:
        """Begin a copy whose position the client had passed when it became complete, or a table that it had ignored.

        Return whether there is one. Why there can be: "Why a client may have passed the position of a copy" in
        ``changelog/timeline.py``.

        It ends at the LSN that the client has reached, which so is not that of anything else: a client that confirms a
        later one has the copy. One that comes back before gets it again, which empties the table once more.
        """
        passed = self._passed()
        # To the client, rows that it has by an older name are those of another table.
        ready = next((each for each in self._missed if each.renamed_at <= passed), None)
        if not (ready or self._late) or order.has_prepared(self._index):
            return False
        self._late_ends.append(passed)  # before it is taken away: others ask has_late meanwhile
        if ready is not None:
            self._missed.remove(ready)
            self._current = self._renderer.missed(ready, passed)
            return True
        late = self._late.pop(0)
        self._current = self._renderer.late(late._replace(end_lsn=passed), passed)
        return True

    def _passed(self) -> int:
        return max(self._end, self._after, self.told)

    @property
    def has_late(self) -> bool:
        """Whether copies that come late have not been confirmed yet."""
        return bool(self._missed or self._late) or any(end >= self.confirmed for end in self._late_ends)

    def _encoded(self, outgoing: Outgoing) -> bytes:
        message = self._encoder.encoded(self._formats.asked(outgoing.message))
        try:
            payload = self._engines[outgoing.in_stream].build(message)
        except EncodeError as error:
            hint = "Use an older protocol version, or omit the newer options."
            problem = f"this publisher cannot send {error.path or error.message} with these options: {error.reason}"
            raise Refusal("0A000", problem, hint=hint) from error
        now = Timestamp.from_datetime(datetime.now(UTC) + timedelta(seconds=self.clock))
        frame = XLogData(outgoing.lsn, outgoing.lsn, now, payload)
        return build_connection(CopyData(build_frame(frame, **self._layout)))


_TWO_PHASE: Final = (m.Prepare, m.StreamPrepare, m.CommitPrepared, m.RollbackPrepared)


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
        **others: Any,
    ) -> None:
        super().__init__(feed, options, after, copied, two_phase_at, **others)
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
            return seq == self._feed.last_seq and type(self._read(seq)) not in OPENERS
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
        if type(fed.message) not in OPENERS:
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


def cursor_for(feed: Feed) -> type[Cursor]:
    """Return the class of the cursors of a feed."""
    return ScriptCursor if isinstance(feed, Script) else Cursor
