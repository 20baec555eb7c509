"""Tracking of transactions, message by message: which are complete, and which were sent twice; without a server."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgoutput_construct.changelog.log_options import LogOptions
from pgoutput_construct.columnar.envelope import Frames
from pgoutput_construct.errors import DecodeError, ProtocolError
from pgoutput_construct.postgres import Position
from pgoutput_construct.postgres._capture.overlap import Overlap
from pgoutput_construct.postgres._capture.pump import Intake
from pgoutput_construct.postgres._capture.transaction_tracker import Ending, TransactionTracker
from pgoutput_construct.stream import Session
from pgoutput_construct.testing import streams
from pgoutput_construct.testing.streams import Sent
from pgoutput_construct.wire import (
    Begin,
    BeginPrepare,
    Commit,
    CommitPrepared,
    Insert,
    Lsn,
    Message,
    Prepare,
    PrimaryKeepalive,
    Relation,
    RollbackPrepared,
    StreamCommit,
    StreamPrepare,
    StreamStart,
    StreamStop,
    Timestamp,
    XLogData,
    build,
    build_frame,
)

T = Timestamp(0)
LAYOUT: dict[str, Any] = {"proto_version": 4, "streaming": "parallel"}
KEEPALIVE = build_frame(PrimaryKeepalive(Lsn(99), T, 0))
INSERT = Insert(None, 1, (b"1",))
INSERT_OF_0 = Insert(0, 1, (b"1",))
RELATION = Relation(None, 1, "public", "item", "d", ())


def _feed(
    resume: int, prepared: dict[str, int], *messages: Any, finished: tuple[int, ...] = ()
) -> tuple[list[bool], Intake]:
    """Take messages in one by one, and again all together: both say the same."""
    session = Session(**LAYOUT)
    frames = [build_frame(XLogData(Lsn(1), Lsn(1), T, session.build(message))) for message in messages]
    one_by_one, together = (Intake(LAYOUT, Position(Lsn(resume), prepared, finished)) for _ in range(2))
    kept = [bool(len(one_by_one.take(Frames.of(frame)).block)) for frame in frames]
    assert len(together.take(Frames.of(*frames)).block) == sum(kept)
    tracker = one_by_one.tracker
    assert tracker.position == together.tracker.position
    assert (tracker.transactions, tracker.dropped) == (together.tracker.transactions, together.tracker.dropped)
    return kept, one_by_one


def _transaction(start: int, end: int) -> list[Any]:
    return [Begin(Lsn(start), T, 5), RELATION, INSERT, Commit(Lsn(start), Lsn(end), T)]


def test_a_logged_transaction_is_dropped_except_its_relations() -> None:
    """Rows and ends go, Relations stay: the server sends each only once a connection."""
    kept, intake = _feed(20, {}, *_transaction(10, 20), *_transaction(20, 30))
    assert kept == [False, True, False, False, True, True, True, True]
    assert (intake.tracker.complete_lsn, intake.tracker.dropped, intake.tracker.transactions) == (30, 1, 1)


def test_a_transaction_is_complete_only_at_its_end() -> None:
    """Neither rows nor keepalives inside a transaction or a stream move the position."""
    _, intake = _feed(1, {}, Begin(Lsn(10), T, 5), INSERT)
    intake.take(Frames.of(KEEPALIVE))
    assert intake.tracker.complete_lsn == 1 and not intake.tracker.at_boundary
    _, intake = _feed(1, {}, StreamStart(5, 1))
    intake.take(Frames.of(KEEPALIVE))
    assert intake.tracker.complete_lsn == 1 and not intake.tracker.at_boundary
    _, intake = _feed(1, {}, StreamStart(5, 1), StreamStop())
    intake.take(Frames.of(KEEPALIVE))
    assert intake.tracker.complete_lsn == 99 and intake.tracker.at_boundary


def test_a_streamed_transaction_that_the_log_has_gets_no_second_end() -> None:
    """Its streams remain an incomplete copy, which readers void."""
    stream = (StreamStart(5, 1), StreamStop(), StreamCommit(5, Lsn(10), Lsn(20), T))
    assert _feed(20, {}, *stream)[0] == [True, True, False]
    assert _feed(19, {}, *stream)[0] == [True, True, True]


def test_a_prepared_transaction_is_identified_by_gid_and_lsn() -> None:
    """One that the log has is dropped; one prepared before the slot had two_phase comes late and is kept."""
    prepare = [
        BeginPrepare(Lsn(10), Lsn(20), T, 5, "g"),
        INSERT,
        Prepare(Lsn(10), Lsn(20), T, 5, "g"),
        CommitPrepared(Lsn(90), Lsn(95), T, 5, "g"),
    ]
    kept, intake = _feed(50, {}, *prepare)
    assert kept == [True] * 4 and intake.tracker.complete_lsn == 95 and intake.tracker.position.prepared == {}
    assert _feed(50, {"g": 19}, *prepare)[0] == [True] * 4
    kept, intake = _feed(50, {"g": 20}, *prepare)
    assert kept == [False, False, False, True] and intake.tracker.dropped == 1
    assert intake.tracker.position.finished == (20,)
    assert _feed(95, {}, *prepare, finished=(20,))[0] == [False] * 4
    kept, intake = _feed(50, {}, *prepare[:3])
    assert intake.tracker.position.prepared == {"g": 20} and intake.tracker.complete_lsn == 50


def test_a_streamed_prepare_and_both_its_ends() -> None:
    """Stream Prepare counts as an end; the rollback's end is its own position."""
    prepare = [StreamStart(5, 1), StreamStop(), StreamPrepare(Lsn(60), Lsn(70), T, 5, "g")]
    rollback = RollbackPrepared(Lsn(70), Lsn(80), T, T, 5, "g")
    kept, intake = _feed(50, {}, *prepare, rollback)
    assert kept == [True] * 4 and (intake.tracker.complete_lsn, intake.tracker.position.prepared) == (80, {})
    assert _feed(80, {"g": 70}, *prepare, rollback)[0] == [True, True, False, False]


def test_messages_outside_of_transactions_are_not_repeated() -> None:
    """A message that is not transactional is whole by itself; one inside a transaction goes with it."""
    outside = Message(None, 0, Lsn(30), "p", b"c")
    inside = Message(None, 1, Lsn(30), "p", b"c")
    kept, intake = _feed(20, {}, outside)
    assert kept == [True] and intake.tracker.complete_lsn == 30
    assert _feed(30, {}, outside)[0] == [False]
    begin, _, _, commit = _transaction(10, 40)
    assert _feed(20, {}, begin, inside, commit)[0] == [False, False, False]


def test_many_small_transactions_are_processed_together() -> None:
    """Those before the LSN are dropped, those after it complete."""
    kept, intake = _feed(40, {}, *(m for start in range(0, 400, 20) for m in _transaction(start, start + 20)))
    assert sum(kept) == 2 + 18 * 4
    assert (intake.tracker.complete_lsn, intake.tracker.transactions, intake.tracker.dropped) == (400, 18, 2)


PREPARED = [BeginPrepare(Lsn(10), Lsn(20), T, 5, "g"), INSERT, Prepare(Lsn(10), Lsn(20), T, 5, "g")]
STREAMED = [StreamStart(5, 1), Insert(6, 1, (b"1",)), StreamStop(), StreamCommit(5, Lsn(10), Lsn(20), T)]
REFUSED: dict[str, tuple[list[Any], int, str]] = {
    "commit of another": ([*_transaction(10, 20)[:3], Commit(Lsn(11), Lsn(20), T)], 3, "announced 0/A"),
    "commit of the one before": (
        [*_transaction(10, 20), Begin(Lsn(30), T, 6), Commit(Lsn(10), Lsn(40), T)],
        5,
        "Commit with the LSN 0/A after a Begin that announced 0/1E",
    ),
    "commit without a begin": ([Commit(Lsn(1), Lsn(2), T)], 0, "Commit with the LSN 0/1 without a Begin"),
    "commit again": ([*_transaction(10, 20), Commit(Lsn(10), Lsn(20), T)], 4, "without a Begin"),
    "commit after a stream": ([*STREAMED, Commit(Lsn(10), Lsn(20), T)], 4, "without a Begin"),
    "prepare of another": ([*PREPARED[:2], Prepare(Lsn(11), Lsn(20), T, 5, "g")], 2, "Prepare with the LSN 0/B"),
    "stream of 0": ([StreamStart(0, 1), StreamStop()], 0, "StreamStart of the transaction ID 0"),
    "insert of 0": ([StreamStart(5, 1), INSERT_OF_0, StreamStop()], 1, "Insert of the transaction ID 0"),
}
"""What an apply worker refuses: the stream, the first message that is refused, and a part of the error."""


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("size", [1, 2, 100])
def test_what_an_apply_worker_refuses_is_not_stored(name: str, size: int) -> None:
    """Whatever the batches: everything before it is admitted, nothing after it, and nothing of it is complete."""
    messages, refused, text = REFUSED[name]
    session = Session(**LAYOUT)
    frames = [
        build_frame(XLogData(Lsn(1), Lsn(1), T, session.build(message)))
        for message in [*messages, *_transaction(50, 60)]
    ]
    whole = Intake(LAYOUT, Position())
    if refused:
        whole.take(Frames.of(*frames[:refused]))
    intake, admitted = Intake(LAYOUT, Position()), 0
    for start in range(0, len(frames), size):
        taken = intake.take(Frames.of(*frames[start : start + size]))
        admitted += len(taken.block)
        if taken.error is not None:
            break
    assert isinstance(taken.error, ProtocolError) and text in str(taken.error) and "again" in str(taken.error)
    assert (admitted, intake.tracker.position) == (refused, whole.tracker.position)


def test_what_an_apply_worker_takes_is_stored() -> None:
    """A Prepare alone, which PostgreSQL 18 sends without changes; a Begin again after a lost one; a logical message."""
    alone = Prepare(Lsn(10), Lsn(20), T, 5, "g")
    again = [*_transaction(10, 20)[:3], *_transaction(30, 40)]
    for messages in ([*_transaction(2, 5), alone], [alone, *_transaction(30, 40)], again):
        assert all(_feed(1, {}, *messages)[0])
    message = Message(0, 1, Lsn(7), "p", b"c")
    assert all(_feed(1, {}, StreamStart(5, 1), message, StreamStop(), StreamCommit(5, Lsn(10), Lsn(20), T))[0])


def test_a_keepalive_counts_only_between_transactions() -> None:
    """Among the frames of one batch: inside a transaction it does not count, after its end it does."""
    frames = [build_frame(XLogData(Lsn(1), Lsn(1), T, build(message))) for message in _transaction(10, 20)]
    assert Intake(LAYOUT, Position()).take(Frames.of(KEEPALIVE)).reply_requested is False
    for place, complete in ((0, 99), (2, 20), (4, 99)):
        intake = Intake(LAYOUT, Position())
        assert len(intake.take(Frames.of(*frames[:place], KEEPALIVE, *frames[place:])).block) == 4
        assert intake.tracker.complete_lsn == complete


@pytest.mark.parametrize("bad", [b"?", b"B", b"E"])
def test_an_invalid_message_ends_the_batch_after_valid_ones(bad: bytes) -> None:
    """An unknown tag, a message cut short, and one that cannot come there: the same, and nothing after it counts."""
    payloads = [*map(build, _transaction(10, 20)), bad, *map(build, _transaction(20, 30))]
    intake = Intake(LAYOUT, Position())
    taken = intake.take(Frames.of(*(build_frame(XLogData(Lsn(1), Lsn(1), T, payload)) for payload in payloads)))
    assert isinstance(taken.error, DecodeError | ProtocolError)
    assert (len(taken.block), intake.tracker.complete_lsn) == (4, 20)


def test_a_payload_that_is_empty_is_counted_and_skipped() -> None:
    """PostgreSQL 13 sends one in place of an Origin whose name no longer exists; it is no message."""
    intake = Intake(LAYOUT, Position())
    taken = intake.take(Frames.of(build_frame(XLogData(Lsn(1), Lsn(1), T, b"")), KEEPALIVE))
    assert (taken.empty, len(taken.block), taken.error, intake.tracker.complete_lsn) == (1, 0, None, 99)


def test_the_memory_of_prepared_transactions_is_bounded() -> None:
    """Of those that are finished the latest are known, and no more."""
    intake = Intake(LAYOUT, Position())
    for number in range(1, 400):
        prepare = Prepare(Lsn(number), Lsn(number), T, 5, "g"), CommitPrepared(Lsn(number), Lsn(number), T, 5, "g")
        intake.take(Frames.of(*(build_frame(XLogData(Lsn(1), Lsn(1), T, build(m, **LAYOUT))) for m in prepare)))
    assert intake.tracker.position.finished == tuple(range(144, 400))


@pytest.mark.slow
@settings(max_examples=max(settings().max_examples // 4, 10))
@given(st.data(), streams(4, "parallel", two_phase=True), st.integers(1, 60))
def test_batch_boundaries_do_not_matter(data: st.DataObject, stream: list[Sent], size: int) -> None:
    """Any stream, resumed at the end of any of its transactions: the same by single messages and by batches."""
    frames = [build_frame(XLogData(Lsn(1), Lsn(1), T, sent.payload)) for sent in stream]
    ends = [Lsn(0), *(sent.message.end_lsn for sent in stream if isinstance(sent.message, Commit | StreamCommit))]
    resumed = Position(data.draw(st.sampled_from(ends)))
    single, batched = Intake(LAYOUT, resumed), Intake(LAYOUT, resumed)
    expected = [payload for frame in frames for payload in single.take(Frames.of(frame)).block.payloads.to_pylist()]
    cuts = [frames[place : place + size] for place in range(0, len(frames), size)]
    assert [payload for cut in cuts for payload in batched.take(Frames.of(*cut)).block.payloads.to_pylist()] == expected
    one, other = single.tracker, batched.tracker
    assert one.position == other.position and one.at_boundary == other.at_boundary
    assert (one.transactions, one.dropped) == (other.transactions, other.dropped)


def test_a_duration_counts_from_where_the_history_is_known() -> None:
    """Before that a capture has not begun: it would end as if the log were that of the server."""
    options = LogOptions(slot="s", publications=("p",), database="d", system_identifier="1", server_version=180000)
    unknown = TransactionTracker(Position(), Overlap(Lsn(0), Lsn(0), options))
    ending = Ending(duration=0.0)
    assert [ending.reason(), ending.reason(unknown), ending.has_begun] == [None, None, False]
    assert [ending.reason(TransactionTracker(Position())), ending.reason()] == ["duration"] * 2
    assert ending.has_begun
