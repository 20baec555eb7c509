"""Strategies of whole streams: messages that a server could send after START_REPLICATION, in a possible order."""

from collections.abc import Callable
from typing import Any, Final, Unpack

from hypothesis import strategies as st

from pgoutput_construct.stream.session import Session
from pgoutput_construct.testing.change_stream import ChangeStream, Sent, Transaction
from pgoutput_construct.testing.random_tables import tables
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.protocol import OPTIONS, MoreOptions, Streaming

__all__ = ["Sent", "streams"]

_LONGEST: Final = 12
"""The most steps of a stream: transactions, segments of streamed ones, and their ends."""


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


class _Server(ChangeStream):
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
