"""A transaction as one client asked for it: streamed or whole, prepared or committed, with the relations it lacks."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pgoutput_construct.publisher.feed import Fed, Feed
from pgoutput_construct.stream.logged import ABORTED, COMMITTED, EndedTransaction, LoggedTransaction
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.protocol import CHANGES, ReplicationOptions
from pgoutput_construct.wire.types import Lsn, Timestamp

__all__ = ["Outgoing", "Renderer"]


class Outgoing(NamedTuple):
    """A message to send, and where it stands."""

    lsn: Lsn
    message: m.PgoutputMessage
    in_stream: bool = False


class Renderer:
    """Renders the transactions of a feed for one client, which has been sent nothing yet.

    PostgreSQL sends what describes a table once in a connection, and again when it changes; in a streamed transaction
    once more, because whoever applies it may be another process (maybe_send_schema() in pgoutput.c).
    """

    def __init__(self, feed: Feed, options: ReplicationOptions) -> None:
        self._feed = feed
        self._options = options
        self._known: dict[int, int] = {}
        """The seq of what the client was sent last of each OID, outside of streams."""

    def render(self, ended: EndedTransaction) -> Iterator[Outgoing]:
        """Yield the messages of a transaction; none where the client did not ask for it."""
        transaction = ended.transaction
        if ended.outcome == ABORTED or (ended.outcome != COMMITTED and not self._prepares(transaction)):
            return
        if self._options.origin == "none" and self._has_origin(transaction):
            return
        if transaction.streamed and self._options.streaming != "off":
            yield from self._streamed(ended)
        elif self._prepares(transaction):
            yield from self._prepared(ended)
        else:
            yield from self._whole(ended)

    def _prepares(self, transaction: LoggedTransaction) -> bool:
        return transaction.gid is not None and self._options.two_phase

    def _whole(self, ended: EndedTransaction) -> Iterator[Outgoing]:
        lsn, end, time = _numbers(ended)
        yield Outgoing(lsn, m.Begin(lsn, time, ended.transaction.xid))
        yield from self._changes(ended.transaction)
        yield Outgoing(end, m.Commit(lsn, end, time))

    def _prepared(self, ended: EndedTransaction) -> Iterator[Outgoing]:
        prepare = self._prepare(ended)
        numbers = prepare.prepare_lsn, prepare.end_lsn, prepare.prepare_time, prepare.xid, prepare.gid
        yield Outgoing(prepare.prepare_lsn, m.BeginPrepare(*numbers))
        yield from self._changes(ended.transaction)
        yield Outgoing(prepare.end_lsn, m.Prepare(*numbers))
        yield self._last(ended)

    def _streamed(self, ended: EndedTransaction) -> Iterator[Outgoing]:
        transaction, known = ended.transaction, dict[int, int]()
        for number, (first, last) in enumerate(transaction.spans):
            changes = list(self._feed.read(first, last))
            yield Outgoing(Lsn(0), m.StreamStart(transaction.xid, int(number == 0)))
            yield from self._described(self._wanted(changes, transaction), transaction, known, in_stream=True)
            yield Outgoing(Lsn(0), m.StreamStop())
        if self._prepares(transaction):
            prepare = self._prepare(ended)
            numbers = prepare.prepare_lsn, prepare.end_lsn, prepare.prepare_time, prepare.xid, prepare.gid
            yield Outgoing(prepare.end_lsn, m.StreamPrepare(*numbers))
            yield self._last(ended)
        else:
            lsn, end, time = _numbers(ended)
            yield Outgoing(end, m.StreamCommit(transaction.xid, lsn, end, time))
            self._known |= known

    def _last(self, ended: EndedTransaction) -> Outgoing:
        return next(Outgoing(fed.lsn, fed.message) for fed in self._feed.read(ended.seq, ended.seq))

    def _prepare(self, ended: EndedTransaction) -> m.Prepare | m.StreamPrepare:
        """Return what prepared a transaction: its end, or what follows the last segment of its stream."""
        last = ended.transaction.spans[-1][1]
        for fed in self._feed.read(last, ended.seq):
            if isinstance(fed.message, m.Prepare | m.StreamPrepare) and fed.message.gid == ended.transaction.gid:
                return fed.message
        raise AssertionError(f"what prepared {ended.transaction} is not in the feed")

    def _has_origin(self, transaction: LoggedTransaction) -> bool:
        first = transaction.spans[0][0]
        return any(isinstance(fed.message, m.Origin) for fed in self._feed.read(first, first + 1))

    def _changes(self, transaction: LoggedTransaction) -> Iterator[Outgoing]:
        for first, last in transaction.spans:
            wanted = self._wanted(self._feed.read(first, last), transaction)
            yield from self._described(wanted, transaction, self._known, in_stream=False)

    def _wanted(self, fed: Iterable[Fed], transaction: LoggedTransaction) -> Iterator[Fed]:
        """Yield what of a span the client gets: changes, origins, and messages where it asked for them."""
        for each in fed:
            cls = type(each.message)
            is_wanted = cls in CHANGES or cls is m.Origin or (cls is m.Message and self._options.messages)
            if is_wanted and getattr(each.message, "xid", None) not in transaction.aborted:
                yield each

    def _described(
        self, wanted: Iterable[Fed], transaction: LoggedTransaction, known: dict[int, int], in_stream: bool
    ) -> Iterator[Outgoing]:
        scope = transaction.xid if transaction.streamed else None
        for fed in wanted:
            xid = getattr(fed.message, "xid", None) or transaction.xid
            for oid in _tables(fed.message):
                description = self._feed.description(oid, fed.seq, scope)
                if known.get(oid) != description.seq:
                    known[oid] = description.seq
                    for message in (*description.types.values(), description.relation):
                        yield Outgoing(Lsn(0), _in_scope(message, xid if in_stream else None), in_stream)
            yield Outgoing(fed.lsn, _in_scope(fed.message, xid if in_stream else None), in_stream)


def _numbers(ended: EndedTransaction) -> tuple[Lsn, Lsn, Timestamp]:
    return Lsn(ended.commit_lsn or 0), Lsn(ended.end_lsn or 0), Timestamp(ended.time or 0)


def _tables(message: m.PgoutputMessage) -> tuple[int, ...]:
    """Return the OIDs of the tables that a change is about."""
    if type(message) not in CHANGES:
        return ()
    return getattr(message, "relation_oids", None) or (message.relation_oid,)  # type: ignore[union-attr]


def _in_scope(message: m.PgoutputMessage, xid: int | None) -> m.PgoutputMessage:
    """Return a message with the xid that it has in a stream, or without one."""
    if not hasattr(message, "xid") or message.xid == xid:
        return message
    return _replace(message, xid=xid)


def _replace(message: m.PgoutputMessage, **changes: int | None) -> m.PgoutputMessage:
    from dataclasses import replace

    return replace(message, **changes)  # type: ignore[arg-type]
