"""A script: messages and faults in one order, sent as they stand where the client asked for what they are."""

from collections.abc import Iterator

from pgoutput_construct.errors import ProtocolError
from pgoutput_construct.publisher.confirmed import confirmed
from pgoutput_construct.publisher.cursor import Cursor
from pgoutput_construct.publisher.faults import Fault
from pgoutput_construct.publisher.feed import About, Fed
from pgoutput_construct.publisher.message_feed import MessageFeed
from pgoutput_construct.publisher.rendering import Outgoing, in_scope, tables_of
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.protocol import ReplicationOptions
from pgoutput_construct.wire.types import Lsn, Timestamp

__all__ = ["Script", "ScriptCursor"]


class Script(MessageFeed):
    """Messages in memory, with faults between them."""

    def __init__(self, about: About) -> None:
        """Begin an empty one, which grows."""
        super().__init__(about, growing=True)
        self._faults: dict[int, list[Fault]] = {}

    def fault(self, fault: Fault) -> None:
        """Let a fault show before whatever is added next."""
        self._faults.setdefault(len(self), []).append(fault)

    def next_fault(self, seq: int) -> Fault | None:
        """Return a fault that shows before the message of a seq, and has not been shown."""
        due = (each for at in sorted(self._faults) if at <= seq for each in self._faults[at])
        return next((each for each in due if not each.shown), None)

    def cursor(self, options: ReplicationOptions, after: int, copied: int = -1) -> Cursor:
        """See Feed: as it stands, or transaction by transaction for a client that asked for something else."""
        streams = any(each.transaction.streamed for each in self.ended)
        prepares = any(each.transaction.gid is not None for each in self.ended)
        as_asked = (options.streaming != "off" or not streams) and (options.two_phase or not prepares)
        return (ScriptCursor if as_asked else Cursor)(self, options, after, copied)


class ScriptCursor(Cursor):
    """Goes through a script message by message, streams interleaved as they stand."""

    _feed: Script

    def __init__(self, feed: Script, options: ReplicationOptions, after: int, copied: int = -1) -> None:
        super().__init__(feed, options, after, copied)
        self._options = options
        self._seq = 0
        self._known: dict[tuple[int | None, int], int] = {}
        self._had = confirmed(feed.read(0, len(feed) - 1), after)
        self._ends = {each.seq: each.end_lsn or 0 for each in feed.ended}

    def _begin_next(self) -> bool:
        self._ends |= {each.seq: each.end_lsn or 0 for each in self._feed.ended[len(self._ends) :]}
        self.position = max(self.position, Lsn(self._ends.get(self._seq - 1, 0)))
        self._fault = self._feed.next_fault(self._seq)
        if self._fault is not None or self._seq >= len(self._feed):
            return False
        fed = next(self._feed.read(self._seq, self._seq))
        self._current = self._sent(fed) if self._seq not in self._had else iter(())
        self._seq += 1
        return True

    def _sent(self, fed: Fed) -> Iterator[Outgoing]:
        """Yield a message, and before it what describes its tables where the client has not had that."""
        message, in_stream = fed.message, fed.scope is not None
        if isinstance(message, m.Message) and not self._options.messages:
            return
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
            describing: list[m.PgoutputMessage] = [*description.types.values(), description.relation]
            xid = getattr(fed.message, "xid", None)
            yield from (Outgoing(Lsn(0), in_scope(each, xid), fed.scope is not None) for each in describing)

    def _abort(self, abort: m.StreamAbort, lsn: Lsn) -> m.StreamAbort:
        """Return a Stream Abort as the option streaming has it: with its position and time, or without."""
        if self._options.streaming != "parallel":
            return m.StreamAbort(abort.xid, abort.subxid)
        known = abort.abort_lsn, abort.abort_time
        return abort if None not in known else m.StreamAbort(abort.xid, abort.subxid, lsn, Timestamp.now())
