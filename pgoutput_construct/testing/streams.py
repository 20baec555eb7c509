"""Strategies of whole streams: messages that a server could send after START_REPLICATION, in a possible order."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar, Unpack

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from pgoutput_construct.stream.session import Session
from pgoutput_construct.stream.state import StreamState
from pgoutput_construct.testing.random_tables import RandomTable, tables
from pgoutput_construct.testing.strategies import any_of
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.definitions import DEFINITIONS
from pgoutput_construct.wire.messages import PgoutputMessage  # noqa: TC001 - typing.get_type_hints() finds it
from pgoutput_construct.wire.options import options
from pgoutput_construct.wire.protocol import (
    BEGINS,
    CHANGES,
    DESCRIPTIONS,
    ENDS,
    OPTIONS,
    PARAMETERS,
    SINCE,
    TRANSITIONS,
    DeleteOldKind,
    MessageFlags,
    MoreOptions,
    Streaming,
    UpdateOldKind,
)
from pgoutput_construct.wire.types import Extended, Lsn, Timestamp

__all__ = ["Sent", "streams"]

T = TypeVar("T")
_LONGEST: Final = 12
"""The most steps of a stream: transactions, segments of streamed ones, and their ends."""
_START: Final = 800_000_000_000_000
"""The time at which streams start: microseconds since 2000-01-01 UTC, in May 2025."""

_STANDALONE: Final[tuple[type, ...]] = tuple(
    cls
    for cls, steps in TRANSITIONS.items()
    if cls not in CHANGES | DESCRIPTIONS | BEGINS | ENDS | {m.Message, m.Origin}
    and all(before == after for before, after in steps.items())
)
"""Messages that neither depend on others nor affect them, and that nothing else here sends: those of later versions."""


class Sent(NamedTuple):
    """One message of a stream."""

    payload: bytes
    """The message as the server sends it: the data of one XLogData."""
    message: "PgoutputMessage"
    """The message."""
    stream_xid: int | None
    """Top-level xid of the stream that it is in, None outside; a Stream Start is outside, a Stream Stop inside."""

    @property
    def in_stream(self) -> bool:
        """Whether it is between Stream Start and Stream Stop: the keyword of parse and build."""
        return self.stream_xid is not None


@st.composite
def streams(
    draw: st.DrawFn,
    proto_version: int = 1,
    streaming: Streaming = "off",
    *,
    two_phase: bool = False,
    binary: bool = False,
    **others: Unpack[MoreOptions],
) -> list[Sent]:
    """Return streams that a server could send under these options, from the start of a replication connection.

    Transactions are sent as a whole, in the order of their commits. With ``streaming``, others are sent in interleaved
    segments, with subtransactions, and end by a commit, an abort or a prepare. With ``two_phase``, transactions are
    prepared, and committed or rolled back later. Types and Relations precede the rows that they describe, and are
    repeated where PostgreSQL does so. Rows fit their Relation, in text or, with ``binary``, in binary format. A stream
    may end between any two steps, so streamed and prepared transactions may be open at its end.

    The messages are those of the released versions of PostgreSQL, with the fields that later options add, and
    standalone messages of later versions. Other new messages (changes, descriptions, begins and ends) are not included;
    ``messages`` generates those one by one.

    Args:
        proto_version: The option proto_version of START_REPLICATION.
        streaming: The option streaming of START_REPLICATION.
        two_phase: Whether the slot has two_phase; servers then send prepared transactions in every version.
        binary: The option binary of START_REPLICATION.
        others: Options that later versions of the protocol added.

    Raises PgoutputError for options that PostgreSQL refuses.

    >>> @hypothesis.settings(max_examples=1, database=None)
    ... @hypothesis.given(streams(2, "on"))
    ... def test_my_consumer(stream):
    ...     session = pgoutput_construct.Session(2, "on")
    ...     for sent in stream:
    ...         assert session.parse(sent.payload) == sent.message
    >>> test_my_consumer()
    """
    server = _Server(draw, Session(proto_version, streaming, **others), two_phase, binary)
    for _ in range(draw(st.integers(1, _LONGEST))):
        draw(st.sampled_from(server.steps()))()
    return server.sent


@dataclass(eq=False)
class Transaction:
    """A transaction that is open or prepared."""

    xid: int
    streamed: bool = False
    subxids: list[int] = field(default_factory=list)
    """Subtransactions of a streamed transaction that were not rolled back; each has changes in the stream."""
    described: set[int] = field(default_factory=set)
    """OIDs whose Relation was sent in its stream."""
    gid: str = ""
    prepare: dict[str, Any] = field(default_factory=dict)
    """The fields of its Prepare."""


class _ChangeStream:
    """Sends single messages, and the changes of transactions; subclasses send what encloses them."""

    def __init__(self, draw: st.DrawFn, session: Session, binary: bool) -> None:
        self.draw = draw
        self.session = session
        self.state = StreamState(exact=True)
        self.binary = binary
        self.sent: list[Sent] = []
        self.tables = [draw(tables(number)) for number in range(draw(st.integers(1, 3)))]
        self.described: set[int] = set()
        """OIDs whose Relation was sent for transactions that are not streamed."""
        self._last_xid = 700
        self._lsn = Lsn(0x1000000)
        self._skeletons: dict[tuple[Any, ...], Any] = {}

    def begin(self) -> Transaction:
        """Return a new transaction."""
        return Transaction(self.next_xid())

    def body(self, transaction: Transaction, first: bool = True) -> None:
        """Send the changes of a transaction, or of a segment of it; ``first``: and perhaps an Origin before them."""
        if first and self.draw(st.integers(0, 4)) == 4:
            # The origin's LSN is in the commit record, which does not exist yet when a transaction is streamed.
            self.send(m.Origin, origin_lsn=Lsn(0) if transaction.streamed else self.next_lsn())
        for _ in range(self.draw(st.integers(0, 4))):
            changes = [self._insert, self._truncate, self._inside_message]
            changes += [self._update, self._delete] if any(table.key for table in self.tables) else []
            changes += [self._other_inside] if self.others() else []
            self.draw(st.sampled_from(changes))(transaction)

    def others(self) -> list[type]:
        """Return the standalone messages that are permitted in the current state."""
        given = options(**self.session.options | self.session.state.parameters)
        known = (cls for cls in _STANDALONE if SINCE.get(cls, 0) <= self.session.proto_version)
        return [cls for cls in known if self.state.permits(cls) and given.refusal(cls) is None]

    def other(self) -> None:
        """Send a standalone message outside of transactions."""
        self.send(self.draw(st.sampled_from(self.others())))

    def _other_inside(self, transaction: Transaction) -> None:
        cls = self.draw(st.sampled_from(self.others()))
        self.send(cls, **{f.name: transaction.xid for f in fields(cls) if f.name == "xid"})

    def _insert(self, transaction: Transaction) -> None:
        table, xid = self._one_of(self.tables, transaction)
        self.send(m.Insert, xid=xid, relation_oid=table.oid, new=self.draw(table.row(self.binary)))

    def _update(self, transaction: Transaction) -> None:
        table, xid = self._one_of([table for table in self.tables if table.key], transaction)
        kind = self.draw(st.sampled_from([UpdateOldKind.ROW] if table.full else [None, UpdateOldKind.KEY]))
        old = None if kind is None else self.draw(table.old(self.binary))
        new = self.draw(table.row(self.binary, updated=True))
        self.send(m.Update, xid=xid, relation_oid=table.oid, old_kind=kind and kind.value, old=old, new=new)

    def _delete(self, transaction: Transaction) -> None:
        table, xid = self._one_of([table for table in self.tables if table.key], transaction)
        kind, old = DeleteOldKind.ROW if table.full else DeleteOldKind.KEY, self.draw(table.old(self.binary))
        self.send(m.Delete, xid=xid, relation_oid=table.oid, old_kind=kind.value, old=old)

    def _one_of(self, some: list[RandomTable], transaction: Transaction) -> tuple[RandomTable, int]:
        table = self.draw(st.sampled_from(some))
        return table, self._described_for(transaction, [table])

    def _truncate(self, transaction: Transaction) -> None:
        some = self.draw(st.lists(st.sampled_from(self.tables), min_size=1, max_size=2, unique=True))
        xid = self._described_for(transaction, some)
        self.send(m.Truncate, xid=xid, relation_oids=tuple(table.oid for table in some))

    def _inside_message(self, transaction: Transaction) -> None:
        # In a stream it carries the top-level xid, also from a subtransaction (ReorderBufferApplyMessage()).
        self.send(m.Message, xid=transaction.xid, flags=int(MessageFlags.TRANSACTIONAL), lsn=self.next_lsn())

    def _described_for(self, transaction: Transaction, some: list[RandomTable]) -> int:
        """Send missing Relations and Types of tables; return the xid of the (sub)transaction that changes them."""
        xid = self._changing(transaction)
        described = transaction.described if transaction.streamed else self.described
        for table in some:
            if table.oid in described:
                continue
            for _ in range(table.types.count("custom")):  # PostgreSQL sends a Type for each column
                self.send(m.Type, xid=xid, type_oid=table.custom_oid, namespace="public", name="custom")
            names = {"namespace": table.namespace, "name": table.name, "replica_identity": table.replica_identity}
            self.send(m.Relation, xid=xid, relation_oid=table.oid, columns=table.columns, **names)
            described.add(table.oid)
        return xid

    def _changing(self, transaction: Transaction) -> int:
        """Return the xid for a change: that of the transaction, or of a subtransaction if it is streamed."""
        known = [transaction.xid, *transaction.subxids]
        xid = self.draw(st.sampled_from([*known, None])) if transaction.streamed else transaction.xid
        if xid is None:
            xid = self.next_xid()
            transaction.subxids.append(xid)
        return xid

    def send(self, cls: type, **values: Any) -> None:
        """Send a message; fields that are not given are drawn, and fields that the options do not carry are omitted."""
        skeleton = self._skeleton(cls)
        absent = {f.name for f in fields(cls) if f.default is None and getattr(skeleton, f.name) is None}
        said = {name: value for name, value in values.items() if name not in absent}
        shaped = {name: _shaped(value, getattr(skeleton, name)) for name, value in said.items() if value is not None}
        message = replace(skeleton, **said | shaped)
        stream_xid = self.session.stream_xid
        self.state.advance(message)  # raises if the specification's transitions do not permit it
        self.sent.append(Sent(self.session.build(message), message, stream_xid))

    def _skeleton(self, cls: type) -> Any:
        """Return a drawn message of a class, the same for the whole stream, whose fields ``send`` replaces."""
        states = self.session.state.parameters
        key = cls, *states.values()
        if key not in self._skeletons:
            given = options(**self.session.options | states)
            self._skeletons[key] = self.draw(_strategy(cls, given.values))
        return self._skeletons[key]

    def pop_random(self, some: list[T]) -> T:
        """Remove and return a random element."""
        return some.pop(self.draw(st.integers(0, len(some) - 1)))

    def next_xid(self) -> int:
        """Return the xid of a new transaction or subtransaction."""
        self._last_xid += 1
        return self._last_xid

    def next_lsn(self) -> Lsn:
        """Return the LSN of a new record, after all others."""
        self._lsn = Lsn(self._lsn + 8 * self.draw(st.integers(1, 1000)))
        return self._lsn

    def time(self) -> Timestamp:
        """Return the time of the latest record; it increases with the LSN."""
        return Timestamp(_START + self._lsn)


class _Server(_ChangeStream):
    """Sends transactions in steps, after each of which any other step is possible."""

    def __init__(self, draw: st.DrawFn, session: Session, two_phase: bool, binary: bool) -> None:
        super().__init__(draw, session, binary)
        self.two_phase = two_phase
        self.open: list[Transaction] = []
        self.prepared: list[Transaction] = []

    def steps(self) -> list[Callable[[], None]]:
        """Return the steps that are possible now, between transactions and segments."""
        steps = [self.transaction, self.outside_message, *([self.prepare] if self.two_phase else [])]
        whole = self.session.streaming == OPTIONS["streaming"].default
        steps += [self.stray_abort] if whole else [self.segment, self.segment]
        if self.open:
            steps += [self.segment, self.stream_commit, self.stream_abort, self.subtransaction_abort]
            steps += [self.stream_prepare] if self.two_phase else []
        else:
            steps.append(self.alter)
        steps += [self.other] if self.others() else []
        return steps + ([self.commit_prepared, self.rollback_prepared] if self.prepared else [])

    def record(self, name: str) -> dict[str, Any]:
        """Return the fields for a new commit or prepare record: its LSN, the LSN after it, and its time."""
        return {f"{name}_lsn": self.next_lsn(), "end_lsn": self.next_lsn(), f"{name}_time": self.time()}

    def transaction(self) -> None:
        """Send a committed transaction."""
        ending = self.record("commit")
        transaction = self.begin()
        self.send(m.Begin, final_lsn=ending["commit_lsn"], commit_time=ending["commit_time"], xid=transaction.xid)
        self.body(transaction)
        self.send(m.Commit, **ending)

    def prepare(self) -> None:
        """Send a prepared transaction; if it has no changes, PostgreSQL 18 sends the Prepare alone, others nothing."""
        transaction = self.begin()
        self.say_prepared(transaction)
        if self.draw(st.integers(0, 4)) < 4:
            self.send(m.BeginPrepare, **transaction.prepare)
            self.body(transaction)
            self.send(m.Prepare, **transaction.prepare)
        elif self.draw(st.booleans()):
            self.send(m.Prepare, **transaction.prepare)

    def say_prepared(self, transaction: Transaction) -> None:
        transaction.gid = f"gid {transaction.xid}"
        transaction.prepare = self.record("prepare") | {"xid": transaction.xid, "gid": transaction.gid}
        self.prepared.append(transaction)

    def commit_prepared(self) -> None:
        transaction = self.pop_random(self.prepared)
        self.send(m.CommitPrepared, **self.record("commit"), xid=transaction.xid, gid=transaction.gid)

    def rollback_prepared(self) -> None:
        transaction = self.pop_random(self.prepared)
        prepared = {name: transaction.prepare[name] for name in ("prepare_time", "xid", "gid")}
        lsns = {"prepare_end_lsn": transaction.prepare["end_lsn"], "rollback_end_lsn": self.next_lsn()}
        self.send(m.RollbackPrepared, **prepared, **lsns, rollback_time=self.time())

    def segment(self) -> None:
        """Send a segment of a streamed transaction, sometimes the first one of a new transaction."""
        transaction = self.draw(st.sampled_from([*self.open, None]))
        first = transaction is None
        if transaction is None:
            transaction = self.begin()
            transaction.streamed = True
            self.open.append(transaction)
        self.send(m.StreamStart, xid=transaction.xid, first_segment=int(first))
        self.body(transaction, first)
        self.send(m.StreamStop)

    def stream_commit(self) -> None:
        transaction = self.pop_random(self.open)
        self.described |= transaction.described
        self.send(m.StreamCommit, xid=transaction.xid, **self.record("commit"))

    def stream_prepare(self) -> None:
        transaction = self.pop_random(self.open)
        self.say_prepared(transaction)
        self.send(m.StreamPrepare, **transaction.prepare)

    def stream_abort(self) -> None:
        transaction = self.pop_random(self.open)
        self.abort(transaction.xid, transaction.xid)

    def subtransaction_abort(self) -> None:
        transaction = self.draw(st.sampled_from(self.open))
        if transaction.subxids:
            self.abort(transaction.xid, self.pop_random(transaction.subxids))
            # PostgreSQL forgets having sent them (cleanup_rel_sync_cache()), also for a subtransaction.
            transaction.described.clear()

    def stray_abort(self) -> None:
        """Send what PostgreSQL 18 may send without streaming, too (ReorderBufferCheckAndTruncateAbortedTXN())."""
        transaction = self.begin()
        self.abort(transaction.xid, self.next_xid())

    def abort(self, xid: int, subxid: int) -> None:
        self.send(m.StreamAbort, xid=xid, subxid=subxid, abort_lsn=self.next_lsn(), abort_time=self.time())

    def outside_message(self) -> None:
        self.send(m.Message, flags=0, lsn=self.next_lsn())

    def alter(self) -> None:
        """Alter a table, or invalidate its cache entry: its Relation is sent again."""
        number = self.draw(st.integers(0, len(self.tables) - 1))
        self.tables[number] = self.draw(st.one_of(st.just(self.tables[number]), tables(number)))
        self.described.discard(self.tables[number].oid)


@cache
def _strategy(cls: type, parameters: tuple[int, ...]) -> SearchStrategy[Any]:
    return any_of(cls, DEFINITIONS[cls], dict(zip(PARAMETERS, parameters, strict=True)), complete=True)


def _shaped(value: Any, like: Any) -> Any:
    """Return a value with the further fields that the options add to it, taken from ``like``, a drawn value."""
    if isinstance(like, Extended):
        changed: Any = {like.PRINCIPAL: _shaped(value, getattr(like, like.PRINCIPAL))}
        return replace(like, **changed)  # type: ignore[type-var]
    if isinstance(like, tuple):
        return tuple(_shaped(item, like[0]) for item in value)
    if is_dataclass(like):
        given = {f.name: getattr(value, f.name) for f in fields(like)}
        return replace(like, **{name: each for name, each in given.items() if each is not None})  # type: ignore[type-var]
    return value
