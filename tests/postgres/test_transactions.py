"""Which transactions are whole and which were sent twice, message by message; no server is needed."""

from typing import Any

from pgoutput_construct.postgres import Position
from pgoutput_construct.postgres.transactions import TransactionTracker
from pgoutput_construct.stream import Session
from pgoutput_construct.wire import (
    Begin,
    BeginPrepare,
    Commit,
    CommitPrepared,
    Insert,
    Lsn,
    Message,
    Prepare,
    Relation,
    RollbackPrepared,
    StreamCommit,
    StreamPrepare,
    StreamStart,
    StreamStop,
    Timestamp,
    build,
)

T = Timestamp(0)
INSERT = Insert(None, 1, (b"1",))
RELATION = Relation(None, 1, "public", "item", "d", ())


def _feed(
    resume: int, prepared: dict[str, int], *messages: Any, finished: tuple[int, ...] = ()
) -> tuple[list[bool], TransactionTracker]:
    session = Session(proto_version=4, streaming="parallel")
    tracker = TransactionTracker(session, Position(Lsn(resume), prepared, finished))
    kept = []
    for message in messages:
        payload = build(message, 4, "parallel", in_stream=tracker.session.in_stream)
        kept.append(tracker.admit(payload))
    return kept, tracker


def _transaction(start: int, end: int) -> list[Any]:
    return [Begin(Lsn(start), T, 5), RELATION, INSERT, Commit(Lsn(start), Lsn(end), T)]


def test_a_transaction_that_the_log_has_is_dropped_but_for_its_relations() -> None:
    """Rows and ends go, Relations stay: the server sends each only once a connection."""
    kept, tracker = _feed(20, {}, *_transaction(10, 20), *_transaction(20, 30))
    assert kept == [False, True, False, False, True, True, True, True]
    assert (tracker.complete_lsn, tracker.dropped, tracker.transactions) == (30, 1, 1)


def test_a_transaction_is_complete_only_at_its_end() -> None:
    """Neither rows nor keepalives inside a transaction or a stream move the position."""
    _, tracker = _feed(1, {}, Begin(Lsn(10), T, 5), INSERT)
    tracker.keepalive(Lsn(99))
    assert tracker.complete_lsn == 1 and not tracker.between
    _, tracker = _feed(1, {}, StreamStart(5, 1))
    tracker.keepalive(Lsn(99))
    assert tracker.complete_lsn == 1 and not tracker.between
    _, tracker = _feed(1, {}, StreamStart(5, 1), StreamStop())
    tracker.keepalive(Lsn(99))
    assert tracker.complete_lsn == 99 and tracker.between


def test_a_streamed_transaction_that_the_log_has_gets_no_second_end() -> None:
    """Its streams remain an incomplete copy, which readers void."""
    stream = (StreamStart(5, 1), StreamStop(), StreamCommit(5, Lsn(10), Lsn(20), T))
    assert _feed(20, {}, *stream)[0] == [True, True, False]
    assert _feed(19, {}, *stream)[0] == [True, True, True]


def test_a_prepared_transaction_is_known_by_its_name_and_position() -> None:
    """One that the log has is dropped; one prepared before the slot had two_phase comes late and is kept."""
    prepare = [
        BeginPrepare(Lsn(10), Lsn(20), T, 5, "g"),
        INSERT,
        Prepare(Lsn(10), Lsn(20), T, 5, "g"),
        CommitPrepared(Lsn(90), Lsn(95), T, 5, "g"),
    ]
    kept, tracker = _feed(50, {}, *prepare)
    assert kept == [True] * 4 and tracker.complete_lsn == 95 and tracker.position.prepared == {}
    assert _feed(50, {"g": 19}, *prepare)[0] == [True] * 4
    kept, tracker = _feed(50, {"g": 20}, *prepare)
    assert kept == [False, False, False, True] and tracker.dropped == 1
    assert tracker.position.finished == (20,)
    assert _feed(95, {}, *prepare, finished=(20,))[0] == [False] * 4
    kept, tracker = _feed(50, {}, *prepare[:3])
    assert tracker.position.prepared == {"g": 20} and tracker.complete_lsn == 50


def test_a_streamed_prepare_and_both_its_ends() -> None:
    """Stream Prepare counts as an end; the rollback's end is its own position."""
    prepare = [StreamStart(5, 1), StreamStop(), StreamPrepare(Lsn(60), Lsn(70), T, 5, "g")]
    rollback = RollbackPrepared(Lsn(70), Lsn(80), T, T, 5, "g")
    kept, tracker = _feed(50, {}, *prepare, rollback)
    assert kept == [True] * 4 and (tracker.complete_lsn, tracker.position.prepared) == (80, {})
    assert _feed(80, {"g": 70}, *prepare, rollback)[0] == [True, True, False, False]


def test_messages_outside_of_transactions_are_not_repeated() -> None:
    """A message that is not transactional is whole by itself; one inside a transaction goes with it."""
    outside = Message(None, 0, Lsn(30), "p", b"c")
    inside = Message(None, 1, Lsn(30), "p", b"c")
    kept, tracker = _feed(20, {}, outside)
    assert kept == [True] and tracker.complete_lsn == 30
    assert _feed(30, {}, outside)[0] == [False]
    begin, _, _, commit = _transaction(10, 40)
    assert _feed(20, {}, begin, inside, commit)[0] == [False, False, False]
