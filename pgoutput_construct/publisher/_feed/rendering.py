"""A transaction as one client asked for it: streamed or whole, prepared or committed, with the relations it lacks."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from pgoutput_construct.errors import ProtocolError
from pgoutput_construct.publisher._feed.feed import COPIED, FINISHED, PREPARED, CopiedTable, Fed, Feed, Missed
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.stream.transaction_reader import EndedTransaction, LoggedTransaction
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.protocol import CHANGES, MessageFlags, ReplicationOptions
from pgoutput_construct.wire.types import Lsn, Timestamp

if TYPE_CHECKING:
    from pgoutput_construct.publisher.published_tables import PublishedScope

__all__ = [
    "Outgoing",
    "Renderer",
    "Withholding",
    "describing",
    "tables_of",
]


class Outgoing(NamedTuple):
    """A message to send, and where it stands."""

    lsn: Lsn
    message: m.PgoutputMessage
    in_stream: bool = False


class Withholding:
    """Copies that a client is not served, since they would remove rows that its publications never remove.

    An archive that subscribes to a publication without deletes and truncates retains what the source has removed. A
    copy comes by TRUNCATE and INSERTs where rows of its table were served before: that would leave the rows of the
    source. So such a copy is withheld, and so is each that comes late: it has no position of its own, by which a client
    that comes back could say that it has the rows.
    """

    def __init__(
        self, publications: Collection[str], seqs: Iterable[int], note: Callable[[str, int | None], None]
    ) -> None:
        """Begin with what was withheld before.

        Args:
            publications: Those that the client names.
            seqs: The seqs of the copies that were withheld.
            note: Called with what is withheld, for people, and the seq of a copy, before anything else is served.
        """
        self.publications = publications
        self.seqs = set(seqs)
        self._note = note

    def withhold(self, title: str, seq: int | None) -> None:
        """Withhold a copy, or rows that were sent when the client ignored them."""
        if seq in self.seqs:
            return
        self._note(title, seq)
        if seq is not None:
            self.seqs.add(seq)


class Renderer:
    """Renders the transactions of a feed for one client, which has been sent nothing yet.

    PostgreSQL sends what describes a table once in a connection, and again when it changes; in a streamed transaction
    once more, because whoever applies it may be another process (maybe_send_schema() in pgoutput.c).
    """

    def __init__(
        self,
        feed: Feed,
        options: ReplicationOptions,
        two_phase_at: int | None = None,
        has_pruned: bool = False,
        publications: Collection[str] = (),
        withholding: Withholding | None = None,
        after: int = 0,
    ) -> None:
        self._after = after
        self._feed = feed
        self._options = options
        self._two_phase_at = two_phase_at
        self._has_pruned = has_pruned
        self._publications = publications
        self._scope: PublishedScope | None = None
        """What the client's publications publish, as it is known when an item begins; None: all of it."""
        self._withholding = withholding
        self._known: dict[int, Description] = {}
        """What the client was sent last of each OID, outside of streams."""
        self._names: dict[int, tuple[str, str]] = {}
        """The present schemas and names of tables whose older rows are sent by them, too."""

    def render(self, ended: EndedTransaction) -> Iterator[Outgoing]:
        """Yield the messages of an item of the feed's order; none of what came from elsewhere to who wants no such."""
        transaction = ended.transaction
        self._find_scope()
        if ended.outcome == COPIED:
            yield from self._copied(ended)
        elif self._options.origin == "none" and self._has_origin(transaction):
            return
        elif ended.outcome == FINISHED:
            yield next(Outgoing(fed.lsn, fed.message) for fed in self._feed.read(ended.seq, ended.seq))
        elif transaction.streamed and self._options.streaming != "off" and not self.is_before(transaction):
            yield from self._streamed(ended)
        elif ended.outcome == PREPARED:
            yield from self._prepared(ended)
        else:
            yield from self._whole(ended, self._changes(ended), self._place(ended.transaction.spans[0][0]))

    def is_before(self, transaction: LoggedTransaction) -> bool:
        """Return whether all changes of a transaction are before the position from which the client begins.

        Then it is decoded again, and not streamed (ReorderBufferCanStartStreaming()).
        """
        last = transaction.spans[-1][1] - 1  # before Stream Stop
        return bool(self._after) and next(fed.lsn for fed in self._feed.read(last, last)) < self._after

    def messages(self, first: int, last: int, after: int) -> Iterator[Outgoing]:
        """Yield the messages outside of transactions between two seqs, where the client asked for messages.

        One begins where the record before it ends: a client that has confirmed that, ``after``, has not had it.
        """
        for fed in self._feed.read(first, last) if self._options.messages else ():
            message = fed.message
            if isinstance(message, m.Message) and not message.flags & MessageFlags.TRANSACTIONAL:
                yield from (Outgoing(fed.lsn, message),) if message.lsn >= after else ()

    def _place(self, seq: int) -> Lsn:
        """Return where a message stands: the first of a span is not at the commit (begin_cb_wrapper())."""
        return next(fed.lsn for fed in self._feed.read(seq, seq))

    def _whole(self, ended: EndedTransaction, changes: Iterator[Outgoing], opening: Lsn) -> Iterator[Outgoing]:
        lsn, end, time = _numbers(ended)
        yield Outgoing(opening, m.Begin(lsn, time, ended.transaction.xid))
        yield from changes
        yield Outgoing(end, m.Commit(lsn, end, time))

    def _copied(self, ended: EndedTransaction) -> Iterator[Outgoing]:
        """Yield copied rows as a transaction; a table of which something came before is emptied for them.

        Only its end has a position: a subscriber may confirm what it has received in the midst of a transaction.
        """
        emptied = self._feed.emptied(ended, self._two_phase_at)
        left = {oid for oid, is_again in emptied.items() if self._has_table(oid) and (is_again or self._has_pruned)}
        retained = self._retained(ended)
        withheld = self._withhold(each for each in retained if each.came_before or self._has_pruned)
        if not withheld >= emptied.keys():
            left -= {each.relation_oid for each in retained}
            yield from self._whole(ended, self._replacing(left, self._rows(ended, withheld), ended), Lsn(0))

    def late(self, ended: EndedTransaction, passed: int) -> Iterator[Outgoing]:
        """Yield copied rows as a transaction behind ``passed``: tables are emptied, and what followed is repeated."""
        self._find_scope()
        withheld = self._withhold(self._retained(ended, self._feed.last_seq))
        tables = set(filter(self._has_table, self._feed.emptied(ended, self._two_phase_at))) - withheld
        if tables:
            rows = self._replacing(set(tables), self._rows(ended, withheld), ended)
            yield from self._whole(ended, chain(rows, self._repeated(ended, tables, passed)), Lsn(0))

    def missed(self, table: Missed, passed: int) -> Iterator[Outgoing]:
        """Yield all that a client has ignored of a table, as a transaction behind ``passed``; it is emptied first."""
        self._find_scope()
        oid, copy, none = table.relation_oid, table.copy, LoggedTransaction(0)
        if self._withholds(table):
            return
        if table.name is not None:
            self._names[oid] = table.name
            self._known.pop(oid, None)  # what it was sent may have the older name
        ended = EndedTransaction(copy.seq if copy else self._feed.last_seq, COPIED, none, passed, passed, 0)
        copied = self._feed.copied(copy, self._two_phase_at) if copy else ()
        of_table = (each for fed in copied for each in _of_tables(fed, {oid}))
        rows = self._described(of_table, none.xid, self._known, in_stream=False)
        rows = self._replacing({oid}, (each._replace(lsn=Lsn(0)) for each in rows), ended)
        yield from self._whole(ended, chain(rows, self._repeated(copy, {oid}, passed)), Lsn(0))
        if self._names.pop(oid, None):
            self._known.pop(oid, None)

    def _retained(self, ended: EndedTransaction, seq: int | None = None) -> list[CopiedTable]:
        """Return the tables of a copy whose rows a client retains, though the source removes them.

        Args:
            ended: The copy.
            seq: At which seq the publications are looked at; None: at that of the copy.
        """
        if self._withholding is None:
            return []
        publications = self._withholding.publications
        tables = self._feed.copied_tables(ended, self._two_phase_at)
        at = ((each, each.seq if seq is None else seq) for each in tables)
        return [each for each, point in at if self._feed.is_retained(each.relation_oid, point, publications)]

    def _withhold(self, tables: Iterable[CopiedTable]) -> set[int]:
        found = set[int]()
        for each in tables:
            if self._withholding is not None and self._has_table(each.relation_oid):
                self._withholding.withhold(each.title, each.seq)
                found.add(each.relation_oid)
        return found

    def _withholds(self, table: Missed) -> bool:
        """Withhold what a client has ignored of a table whose rows it retains; return whether that is so."""
        if table.copy is not None:
            retained = self._retained(table.copy, self._feed.last_seq)
            return bool(self._withhold(each for each in retained if each.relation_oid == table.relation_oid))
        last, withholding = self._feed.last_seq, self._withholding
        if withholding is None or not self._feed.is_retained(table.relation_oid, last, withholding.publications):
            return False
        relation = self._feed.description(table.relation_oid, last, None).relation
        withholding.withhold(f"{full_name(relation)}, written to before it was subscribed to", None)
        return True

    def _rows(self, ended: EndedTransaction, without: Collection[int]) -> Iterator[Outgoing]:
        """Yield the rows of a copy, those of some tables excluded."""
        copied = self._feed.copied(ended, self._two_phase_at)
        if self._scope is not None or without:
            tables = (fed for fed in copied if not any(oid in without for oid in tables_of(fed.message)))
            copied = (fed for fed in tables if all(map(self._has_table, tables_of(fed.message))))
        described = self._described(copied, ended.transaction.xid, self._known, in_stream=False)
        return (each._replace(lsn=Lsn(0)) for each in described)

    def _repeated(self, copy: EndedTransaction | None, tables: set[int], passed: int) -> Iterator[Outgoing]:
        """Yield what committed up to a position did to tables behind their copies."""
        for ended in self._feed.committed_behind(copy, passed):
            if self._options.origin == "none" and self._has_origin(ended.transaction):
                continue
            for first, last in ended.transaction.spans:
                wanted = self._wanted(self._feed.read(first, last), ended)
                of_tables = (each for fed in wanted for each in _of_tables(fed, tables))
                described = self._described(of_tables, ended.transaction.xid, self._known, in_stream=False)
                yield from (each._replace(lsn=Lsn(0)) for each in described)

    def _find_scope(self) -> None:
        self._scope = self._feed.scope(self._publications) if self._publications else None

    @property
    def _unserved(self) -> Collection[int]:
        return self._withholding.seqs if self._withholding else ()

    def _has_table(self, oid: int) -> bool:
        return self._scope is None or self._scope.has_table(oid)

    def _replacing(self, left: set[int], rows: Iterator[Outgoing], ended: EndedTransaction) -> Iterator[Outgoing]:
        """Yield copied rows, each table of ``left`` emptied before its first one; those without rows in the end."""
        for outgoing in rows:
            for oid in left.intersection(tables_of(outgoing.message)):
                left.remove(oid)
                yield _emptying(oid)
            yield outgoing
        for oid in sorted(left):
            yield from self._describing_again(oid, ended)

    def _describing_again(self, oid: int, ended: EndedTransaction) -> Iterator[Outgoing]:
        """Yield what empties a table without rows; nothing where it was never described, so nothing was served."""
        try:
            self._known[oid] = description = self._description(oid, ended.seq, None)
        except ProtocolError:
            return
        yield from describing(description)
        yield _emptying(oid)

    def _description(self, oid: int, seq: int, scope: int | None) -> Description:
        description = self._feed.description(oid, seq, scope)
        if oid not in self._names:
            return description
        namespace, name = self._names[oid]
        return replace(description, relation=replace(description.relation, namespace=namespace, name=name))

    def _prepared(self, ended: EndedTransaction) -> Iterator[Outgoing]:
        lsn, end, time = _numbers(ended)
        numbers = lsn, end, time, ended.transaction.xid, ended.transaction.gid or ""
        yield Outgoing(self._place(ended.transaction.spans[0][0]), m.BeginPrepare(*numbers))
        yield from self._changes(ended)
        yield Outgoing(end, m.Prepare(*numbers))

    def _streamed(self, ended: EndedTransaction) -> Iterator[Outgoing]:
        transaction, known = ended.transaction, dict[int, Description]()
        for number, (first, last) in enumerate(transaction.spans):
            yield Outgoing(self._place(first), m.StreamStart(transaction.xid, int(number == 0)))
            wanted = self._wanted(self._feed.read(first, last), ended)
            yield from self._described(wanted, transaction.xid, known, in_stream=True)
            yield Outgoing(self._place(last), m.StreamStop())
        yield self.stream_end(ended)
        if ended.outcome != PREPARED:
            self._known |= known

    def stream_end(self, ended: EndedTransaction) -> Outgoing:
        """Return what follows the last segment of a transaction that is prepared, or committed."""
        (lsn, end, time), transaction = _numbers(ended), ended.transaction
        if ended.outcome == PREPARED:
            return Outgoing(end, m.StreamPrepare(lsn, end, time, transaction.xid, transaction.gid or ""))
        return Outgoing(end, m.StreamCommit(transaction.xid, lsn, end, time))

    def _has_origin(self, transaction: LoggedTransaction) -> bool:
        first = transaction.spans[0][0]
        return any(isinstance(fed.message, m.Origin) for fed in self._feed.read(first, first + 1))

    def _changes(self, ended: EndedTransaction) -> Iterator[Outgoing]:
        for first, last in ended.transaction.spans:
            wanted = self._wanted(self._feed.read(first, last), ended)
            yield from self._described(wanted, ended.transaction.xid, self._known, in_stream=False)

    def _wanted(self, fed: Iterable[Fed], ended: EndedTransaction) -> Iterator[Fed]:
        """Yield what of a span the client gets: changes, origins, and messages where it asked for them."""
        for each in fed:
            cls = type(each.message)
            is_wanted = cls in CHANGES or cls is m.Origin or (cls is m.Message and self._options.messages)
            if is_wanted and getattr(each.message, "xid", None) not in ended.transaction.aborted:
                yield from self._beside_copies(each, ended)

    def _beside_copies(self, fed: Fed, ended: EndedTransaction) -> Iterator[Fed]:
        """Yield a message for the tables whose copies do not have it."""
        oids, lsn = tables_of(fed.message), ended.commit_lsn or 0
        if self._scope is not None:
            oids = tuple(oid for oid in oids if self._scope.has(oid, fed.message, lsn))
        left = [oid for oid in oids if not self._feed.is_copied(oid, ended, self._two_phase_at, self._unserved)]
        if not tables_of(fed.message):
            yield fed
        yield from _of_tables(fed, left)

    def _described(
        self, wanted: Iterable[Fed], top_xid: int, known: dict[int, Description], in_stream: bool
    ) -> Iterator[Outgoing]:
        for fed in wanted:
            xid = getattr(fed.message, "xid", None) or top_xid
            for oid in tables_of(fed.message):
                description = self._description(oid, fed.seq, fed.scope)
                last, known[oid] = known.get(oid), description
                if last is None or _is_news(last, description):
                    yield from describing(description, xid if in_stream else None, in_stream)
            yield Outgoing(fed.lsn, in_scope(fed.message, xid if in_stream else None), in_stream)


def _of_tables(fed: Fed, tables: Collection[int]) -> Iterator[Fed]:
    """Yield a change for some of the tables that it is about."""
    left = tuple(oid for oid in tables_of(fed.message) if oid in tables)
    changed: Any = fed.message
    if left:
        yield fed if left == tables_of(fed.message) else fed._replace(message=replace(changed, relation_oids=left))


def _emptying(oid: int) -> Outgoing:
    return Outgoing(Lsn(0), m.Truncate(options=0, relation_oids=(oid,)))


def _numbers(ended: EndedTransaction) -> tuple[Lsn, Lsn, Timestamp]:
    return Lsn(ended.commit_lsn or 0), Lsn(ended.end_lsn or 0), Timestamp(ended.time or 0)


def _is_news(last: Description, description: Description) -> bool:
    """Return whether a client needs a description after another one.

    What the log has again it is sent again; but not what is only in the log because a stream describes it anew.
    """
    if last.seq == description.seq:
        return False
    is_of_stream = last.relation.xid is not None or description.relation.xid is not None
    return not is_of_stream or [*describing(last)] != [*describing(description)]


def describing(description: Description, xid: int | None = None, in_stream: bool = False) -> Iterator[Outgoing]:
    """Yield what describes a table, with the xid that it has in a stream."""
    messages: list[m.PgoutputMessage] = [*description.types.values(), description.relation]
    for message in messages:
        yield Outgoing(Lsn(0), in_scope(message, xid), in_stream)


def tables_of(message: m.PgoutputMessage) -> tuple[int, ...]:
    """Return the OIDs of the tables that a change is about."""
    match message:
        case m.Truncate():
            return message.relation_oids
        case m.Insert() | m.Update() | m.Delete():
            return (message.relation_oid,)
    return ()


def in_scope(message: m.PgoutputMessage, xid: int | None) -> m.PgoutputMessage:
    """Return a message with the xid that it has in a stream, or without one."""
    changed: Any = message
    return message if getattr(message, "xid", xid) == xid else replace(changed, xid=xid)
