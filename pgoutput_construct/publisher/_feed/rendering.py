"""A transaction as one client asked for it: streamed or whole, prepared or committed, with the relations it lacks."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pgoutput_construct.changelog.decoding_order import PlacedCopies
from pgoutput_construct.errors import ChangeLogError, ProtocolError
from pgoutput_construct.publisher._feed.feed import CopiedTable, Fed, Feed, Missed, OrderItem
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.stream.rows import tables_of, unread_problem
from pgoutput_construct.stream.transaction_reader import (
    COMMITTED,
    FINISHED,
    PREPARED,
    EndedTransaction,
    LoggedTransaction,
)
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.options import LAYOUT_OPTIONS
from pgoutput_construct.wire.options import options as asked
from pgoutput_construct.wire.protocol import (
    BEGINS,
    CHANGES,
    DESCRIPTIONS,
    ENDS,
    SINCE,
    UNREAD,
    MessageFlags,
    ReplicationOptions,
)
from pgoutput_construct.wire.types import Lsn, Timestamp

if TYPE_CHECKING:
    from pgoutput_construct.publisher.published_tables import PublishedScope

__all__ = ["Outgoing", "Renderer", "Withholding", "describing"]


class Outgoing(NamedTuple):
    """A message to send, and its LSN."""

    lsn: Lsn
    message: m.PgoutputMessage
    in_stream: bool = False


class Withholding:
    """Copies that a client is not served, since they would remove rows that its publications never remove.

    An archive that subscribes to a publication without deletes and truncates retains what the source has removed. A
    copy comes by TRUNCATE and INSERTs where rows of its table were served before: that would leave the rows of the
    source. So such a copy is withheld, and so is each that comes late: it has no LSN of its own, by which a client
    that comes back could say that it has the rows.
    """

    def __init__(
        self, publications: Collection[str], seqs: Iterable[int], note: Callable[[str, int | None], None]
    ) -> None:
        """Begin with what was withheld before.

        Args:
            publications: The publications that the client named.
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


_NO_XID: Final = 0


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
        layout = {name: getattr(options, name) for name in LAYOUT_OPTIONS}
        self._is_alike = feed.about.is_laid_out_by(layout)
        """Whether the client gets what begins and ends transactions as it was received."""
        given, version = asked(**layout), options.proto_version
        self._others = {each for each in _OTHERS if SINCE.get(each, 0) <= version and given.refusal(each) is None}
        """The messages that are sent under these options, and are about rows only by their place in a transaction."""
        self._two_phase_at = two_phase_at
        self._has_pruned = has_pruned
        self._publications = publications
        self._scope: PublishedScope | None = None
        """What the client's publications publish, as it is known when an item begins; None: all of it."""
        self._withholding = withholding
        self._known: dict[int, Description] = {}
        """What the client was sent last of each OID, outside of streams."""
        self._sent_rows = set[int]()
        """The OIDs of tables of which rows were sent in this stream."""
        self._retains: dict[tuple[int, int], bool] = {}
        """Whether the client retains the rows of a table at the seq of a copy."""
        self._names: dict[int, tuple[str, str]] = {}
        """The present schemas and names of tables whose older rows are sent by them, too."""

    def render(self, item: OrderItem) -> Iterator[Outgoing]:
        """Yield the messages of an item; skip transactions with an origin if the client excludes them."""
        self._find_scope()
        if isinstance(item, PlacedCopies):
            yield from self._copied(item)
        elif self._options.origin != "none" or not self._has_origin(item.transaction):
            yield from self._rendered(item)

    def _rendered(self, ended: EndedTransaction) -> Iterator[Outgoing]:
        transaction = ended.transaction
        if ended.outcome == FINISHED:
            yield next(Outgoing(fed.lsn, fed.message) for fed in self._feed.read(ended.seq, ended.seq))
        elif transaction.streamed and self._options.streaming != "off" and not self.is_before(transaction):
            yield from self._streamed(ended)
        elif ended.outcome == PREPARED:
            yield from self._prepared(ended)
        else:
            yield from self._whole(ended, self._changes(ended))

    def is_before(self, transaction: LoggedTransaction) -> bool:
        """Return whether all changes of a transaction are before the LSN from which the client begins.

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

    def _whole(self, ended: EndedTransaction, changes: Iterator[Outgoing]) -> Iterator[Outgoing]:
        lsn, end, time = _numbers(ended)
        first = ended.transaction.spans[0][0] if ended.transaction.spans else _MADE
        yield self._received(first, m.Begin(lsn, time, ended.transaction.xid))
        yield from changes
        yield self._received(ended.seq, m.Commit(lsn, end, time), end)

    def _received(self, seq: int, made: m.PgoutputMessage, lsn: Lsn | None = None) -> Outgoing:
        """Return a begin or an end as the feed has it, which may have more than ``made``; else that.

        It was not received where a transaction is sent in another way than it was received, or is a copy.

        Args:
            seq: Its seq; _MADE: that of a copy.
            made: What is sent instead.
            lsn: Its LSN; None: that of the feed, since what begins a span has another than the commit
                (begin_cb_wrapper()).
        """
        if seq == _MADE or (lsn is not None and not self._is_alike):
            return Outgoing(lsn or Lsn(0), made)
        fed = next(self._feed.read(seq, seq))
        is_received = self._is_alike and type(fed.message) is type(made)
        return Outgoing(fed.lsn if lsn is None else lsn, fed.message if is_received else made)

    def _whole_copy(self, end: int, rows: Iterator[Outgoing]) -> Iterator[Outgoing]:
        """Yield copied rows as a transaction that ends at an LSN, which no server has sent: without a time.

        Only its end has an LSN: a subscriber may confirm what it has received of an open transaction.
        """
        transaction = LoggedTransaction(_NO_XID)
        rows = (each._replace(lsn=Lsn(0)) for each in rows)
        yield from self._whole(EndedTransaction(_MADE, COMMITTED, transaction, end, end, 0), rows)

    def _copied(self, item: PlacedCopies) -> Iterator[Outgoing]:
        """Yield copied rows as a transaction; a table of which the client may have rows is emptied for them."""
        emptied = self._feed.emptied(item)
        repeated = {oid for oid, is_again in emptied.items() if is_again and (self._after or oid in self._sent_rows)}
        left = {oid for oid in emptied if self._has_table(oid) and (oid in repeated or self._has_pruned)}
        retained = self._retained(item)
        withheld = self._withhold(each for each in retained if each.came_before or self._has_pruned)
        if not withheld >= emptied.keys():
            left -= {each.relation_oid for each in retained}
            yield from self._whole_copy(item.end_lsn, self._replacing(left, self._rows(item, withheld), item.seq))

    def late(self, item: PlacedCopies, reached: int) -> Iterator[Outgoing]:
        """Yield copied rows as a transaction that ends at an LSN: tables are emptied, and what followed is repeated.

        Args:
            item: The copies.
            reached: The LSN that the client has reached: what committed after the copies up to it is repeated.
        """
        self._find_scope()
        withheld = self._withhold(self._retained(item, self._feed.last_seq))
        tables = set(filter(self._has_table, self._feed.emptied(item))) - withheld
        if tables:
            rows = self._replacing(set(tables), self._rows(item, withheld), item.seq)
            yield from self._whole_copy(item.end_lsn, chain(rows, self._repeated(item, tables, reached)))

    def missed(self, table: Missed, reached: int) -> Iterator[Outgoing]:
        """Yield all that a client has ignored of a table, as a transaction at the LSN that it has reached.

        The table is emptied first.
        """
        self._find_scope()
        oid, copy = table.relation_oid, table.copy
        if self._withholds(table):
            return
        if table.name is not None:
            self._names[oid] = table.name
            self._known.pop(oid, None)  # what it was sent may have the older name
        of_table = (each for fed in (self._feed.copied(copy) if copy else ()) for each in _of_tables(fed, {oid}))
        rows = self._described(of_table, _NO_XID, self._known, in_stream=False)
        rows = self._replacing({oid}, rows, copy.seq if copy else self._feed.last_seq)
        yield from self._whole_copy(reached, chain(rows, self._repeated(copy, {oid}, reached)))
        if self._names.pop(oid, None):
            self._known.pop(oid, None)

    def _retained(self, item: PlacedCopies, seq: int | None = None) -> list[CopiedTable]:
        """Return the tables of a copy whose rows a client retains, though the source removes them.

        Args:
            item: The copy.
            seq: The seq at which the publications are looked up; None: that of the copy.
        """
        if self._withholding is None:
            return []
        publications = self._withholding.publications
        tables = self._feed.copied_tables(item, self._two_phase_at)
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

    def _rows(self, item: PlacedCopies, without: Collection[int]) -> Iterator[Outgoing]:
        """Yield the rows of a copy, those of some tables excluded."""
        copied = self._feed.copied(item)
        if self._scope is not None or without:
            tables = (fed for fed in copied if not any(oid in without for oid in tables_of(fed.message)))
            copied = (fed for fed in tables if all(map(self._has_table, tables_of(fed.message))))
        return self._described(copied, _NO_XID, self._known, in_stream=False)

    def _repeated(self, copy: PlacedCopies | None, tables: set[int], reached: int) -> Iterator[Outgoing]:
        """Yield what transactions after a copy did to tables; those that committed up to an LSN."""
        for ended in self._feed.committed_after(copy, reached):
            if self._options.origin == "none" and self._has_origin(ended.transaction):
                continue
            for first, last in ended.transaction.spans:
                selected = self._selected(self._feed.read(first, last), ended)
                of_tables = (each for fed in selected for each in _of_tables(fed, tables))
                yield from self._described(of_tables, ended.transaction.xid, self._known, in_stream=False)

    def _find_scope(self) -> None:
        self._scope = self._feed.scope(self._publications) if self._publications else None

    @property
    def _unserved(self) -> Collection[int]:
        return self._withholding.seqs if self._withholding else ()

    def _has_table(self, oid: int) -> bool:
        return self._scope is None or self._scope.has_table(oid)

    def _replacing(self, left: set[int], rows: Iterator[Outgoing], seq: int) -> Iterator[Outgoing]:
        """Yield copied rows, each table of ``left`` emptied before its first row; tables without rows at the end.

        Args:
            left: The OIDs of tables that are to be emptied; they are removed from it as that is done.
            rows: The rows.
            seq: The seq at which tables without rows are described.
        """
        for outgoing in rows:
            for oid in left.intersection(tables_of(outgoing.message)):
                left.remove(oid)
                yield _emptying(oid)
            yield outgoing
        for oid in sorted(left):
            yield from self._describing_again(oid, seq)

    def _describing_again(self, oid: int, seq: int) -> Iterator[Outgoing]:
        """Yield what empties a table without rows; nothing where it was never described, so nothing was served."""
        try:
            self._known[oid] = description = self._description(oid, seq, None)
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
        first = ended.transaction.spans[0][0]
        yield self._received(first, m.BeginPrepare(*numbers))
        yield from self._changes(ended)
        yield self._received(ended.seq, m.Prepare(*numbers), end)

    def _streamed(self, ended: EndedTransaction) -> Iterator[Outgoing]:
        transaction, known = ended.transaction, dict[int, Description]()
        for number, (first, last) in enumerate(transaction.spans):
            yield self._received(first, m.StreamStart(transaction.xid, int(number == 0)))
            selected = self._selected(self._feed.read(first, last), ended)
            yield from self._described(selected, transaction.xid, known, in_stream=True)
            yield self._received(last, m.StreamStop())
        yield self.stream_end(ended)
        if ended.outcome != PREPARED:
            self._known |= known

    def stream_end(self, ended: EndedTransaction) -> Outgoing:
        """Return what follows the last segment of a transaction that is prepared, or committed."""
        (lsn, end, time), transaction = _numbers(ended), ended.transaction
        if ended.outcome == PREPARED:
            made: m.PgoutputMessage = m.StreamPrepare(lsn, end, time, transaction.xid, transaction.gid or "")
            return self._received(ended.seq, made, end)
        return self._received(ended.seq, m.StreamCommit(transaction.xid, lsn, end, time), end)

    def _has_origin(self, transaction: LoggedTransaction) -> bool:
        first = transaction.spans[0][0]
        return any(isinstance(fed.message, m.Origin) for fed in self._feed.read(first, first + 1))

    def _changes(self, ended: EndedTransaction) -> Iterator[Outgoing]:
        for first, last in ended.transaction.spans:
            selected = self._selected(self._feed.read(first, last), ended)
            yield from self._described(selected, ended.transaction.xid, self._known, in_stream=False)

    def _selected(self, fed: Iterable[Fed], ended: EndedTransaction) -> Iterator[Fed]:
        """Yield what of a span the client gets: changes, and all else but messages that it did not ask for."""
        counts = dict[int, bool]()
        for each in fed:
            cls = type(each.message)
            if cls in UNREAD:
                raise ChangeLogError(f"seq {each.seq}: {unread_problem(cls)}")
            is_asked = cls is not m.Message or self._options.messages
            is_selected = cls in CHANGES or (cls in self._others and is_asked)
            if is_selected and getattr(each.message, "xid", None) not in ended.transaction.aborted:
                yield from self._without_copied(each, ended, counts)

    def _without_copied(self, fed: Fed, ended: EndedTransaction, counts: dict[int, bool]) -> Iterator[Fed]:
        """Yield a message for those of its tables whose copies do not contain it.

        Args:
            fed: The message.
            ended: Its transaction.
            counts: Whether changes of this transaction count for each table, by OID, as far as that is known.
        """
        oids, lsn = tables_of(fed.message), ended.commit_lsn or 0
        if self._scope is not None:
            oids = tuple(oid for oid in oids if self._scope.has(oid, fed.message, lsn))
        for oid in oids:
            if oid not in counts:
                is_copied = self._feed.is_copied(oid, ended, self._two_phase_at, self._unserved)
                counts[oid] = not is_copied and not self._is_withheld(oid, ended)
        left = [oid for oid in oids if counts[oid]]
        if not tables_of(fed.message):
            yield fed
        yield from _of_tables(fed, left)

    def _is_withheld(self, oid: int, ended: EndedTransaction) -> bool:
        """Return whether the first copy of a table follows, and is sent to the client with what a transaction did."""
        seq = self._feed.awaited(oid, ended, self._two_phase_at)
        if seq is None or seq in self._unserved:
            return False
        withholding = self._withholding
        if withholding is not None and (oid, seq) not in self._retains:
            self._retains[oid, seq] = self._feed.is_retained(oid, seq, withholding.publications)
        return not self._retains.get((oid, seq), False)

    def _described(
        self, selected: Iterable[Fed], top_xid: int, known: dict[int, Description], in_stream: bool
    ) -> Iterator[Outgoing]:
        for fed in selected:
            xid = getattr(fed.message, "xid", None) or top_xid
            for oid in tables_of(fed.message):
                description = self._description(oid, fed.seq, fed.scope)
                last, known[oid] = known.get(oid), description
                self._sent_rows.add(oid)
                if last is None or _is_news(last, description):
                    yield from describing(description, xid if in_stream else None, in_stream)
            yield Outgoing(fed.lsn, in_scope(fed.message, xid if in_stream else None), in_stream)


_MADE: Final = -1
"""Instead of the seq of an end: nothing in the feed, but a copy, is sent as a transaction."""
_OTHERS: Final = frozenset(m.BY_TAG.values()) - CHANGES - BEGINS - ENDS - DESCRIPTIONS


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

    What the log has again it is sent again; but not what is in the log only because a stream describes it again.
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


def in_scope(message: m.PgoutputMessage, xid: int | None) -> m.PgoutputMessage:
    """Return a message with the xid that it has in a stream, or without one."""
    changed: Any = message
    return message if getattr(message, "xid", xid) == xid else replace(changed, xid=xid)
