"""Which rows of a log belong to which committed transaction."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pgoutput_construct as pgo
from pgoutput_construct.stream.state import ControlMessage
from tests.live.recording import Recording
from tests.stream.naive import ACTIONS, Naive, Publisher
from tests.stream.sent import (
    Item,
    begin,
    commit,
    controls,
    rollback_prepared,
    row,
    segment,
    stream_commit,
    two_phase,
    visible,
)
from tests.stream.spans import find_place, find_transactions


def test_transactions_one_after_the_other() -> None:
    """Each row gets its own transaction and its position in it; what is between transactions belongs to none."""
    items = [begin(7, 10), row(), row(), commit(10), row(), begin(8, 20), row(), commit(20), row()]
    assert visible(items) == [(10, 1, 7, 1), (10, 2, 7, 2), (20, 1, 8, 6)]


def test_incomplete_at_the_end() -> None:
    """What has no end yet is not visible."""
    assert visible([begin(7, 10), row()]) == []
    assert visible([*segment(7, 7, first=True), pgo.StreamStart(7, 0), row(7)]) == []


def test_reconnection_inside_a_transaction() -> None:
    """A Begin, a stream or a prepare after a Begin without Commit: the first copy is void."""
    again = [begin(7, 10), row(), commit(10)]
    assert visible([begin(7, 10), row(), *again]) == [(10, 1, 7, 3)]
    streamed = [*segment(9, 9, first=True), stream_commit(9, 5)]
    assert visible([begin(7, 10), row(), *streamed, *again]) == [(5, 1, 9, 3), (10, 1, 7, 7)]
    prepared = two_phase(pgo.BeginPrepare, 7, "g", 1)
    assert visible([prepared, row(), prepared, row(), two_phase(pgo.Prepare, 7, "g", 1)]) == []


def test_interleaved_streams() -> None:
    """Segments of one transaction add up to one count; transactions are in the order of their commits."""
    items = [
        *segment(7, 7, first=True),
        *segment(8, 8, 8, first=True),
        begin(9, 5),
        row(),
        commit(5),
        *segment(7, 7),
        stream_commit(8, 10),
        *segment(7, 7),
        stream_commit(7, 20),
    ]
    seen = visible(items)
    assert [(lsn, xid) for lsn, _, xid, _ in seen] == [(5, 9), (10, 8), (10, 8), (20, 7), (20, 7), (20, 7)]
    assert [position for lsn, position, _, _ in seen if lsn == 20] == [1, 4, 7]


def test_rolled_back_streams() -> None:
    """An abort of the transaction takes back all of it, of a subtransaction only its rows."""
    abort_all, abort_some = pgo.StreamAbort(7, 7), pgo.StreamAbort(7, 71)
    assert visible([*segment(7, 7, first=True), abort_all]) == []
    items = [*segment(7, 7, 71, first=True), abort_some, *segment(7, 72, 71, 7), stream_commit(7, 20)]
    assert [seq for *_, seq in visible(items)] == [1, 6, 8]


def test_abort_of_what_was_never_streamed() -> None:
    """PostgreSQL 18 may send it: it means nothing."""
    assert len(visible([pgo.StreamAbort(7, 7), pgo.StreamAbort(8, 81), begin(7, 9), row(), commit(9)])) == 1


def test_stream_sent_again() -> None:
    """A first segment voids the segments, and the aborts, of an earlier copy."""
    copy = [*segment(7, 7, 71, first=True), pgo.StreamAbort(7, 71), pgo.StreamStart(7, 0), row(7)]
    items = [*copy, *segment(7, 7, 71, first=True), stream_commit(7, 20)]
    assert [seq for *_, seq in visible(items)] == [8, 9]


def test_stream_sent_again_at_once() -> None:
    """After a reconnection the server may find that the transaction fits into memory, or has committed."""
    assert [seq for *_, seq in visible([*segment(7, 7, first=True), begin(7, 9), row(), commit(9)])] == [4]


def test_reused_xid() -> None:
    """After a wraparound the same number is another transaction."""
    once = [*segment(7, 7, 71, first=True), pgo.StreamAbort(7, 71)]
    items = [*once, stream_commit(7, 10), *segment(7, 7, 71, first=True), stream_commit(7, 20)]
    assert [(lsn, seq) for lsn, *_, seq in visible(items)] == [(10, 1), (20, 7), (20, 8)]


def test_prepared() -> None:
    """Prepared rows become visible with the position and time of Commit Prepared, others in between stay theirs."""
    prepare = [two_phase(pgo.BeginPrepare, 7, "g", 5), row(), two_phase(pgo.Prepare, 7, "g", 5)]
    between = [begin(8, 10), row(), commit(10)]
    assert visible([*prepare, *between]) == [(10, 1, 8, 4)]
    items = [*prepare, *between, two_phase(pgo.CommitPrepared, 7, "g", 20)]
    assert visible(items) == [(10, 1, 8, 4), (20, 1, 7, 1)]
    assert visible([*prepare, *between, rollback_prepared(7, "g")]) == [(10, 1, 8, 4)]


def test_streamed_and_prepared() -> None:
    """Streams too, without the subtransactions that were rolled back; a name can be used again."""
    streamed = [*segment(7, 7, 71, first=True), pgo.StreamAbort(7, 71), two_phase(pgo.StreamPrepare, 7, "g", 5)]
    again = [two_phase(pgo.BeginPrepare, 8, "g", 6), row(), two_phase(pgo.Prepare, 8, "g", 6)]
    items = [*streamed, rollback_prepared(7, "g"), *again, two_phase(pgo.CommitPrepared, 8, "g", 20)]
    assert [(lsn, xid) for lsn, _, xid, _ in visible(items)] == [(20, 8)]
    assert len(visible([*streamed, two_phase(pgo.CommitPrepared, 7, "g", 20)])) == 1


def test_prepared_without_changes() -> None:
    """PostgreSQL 18 sends the Prepare alone, 15 to 17 only what becomes of it; others keep their rows."""
    alone, end = two_phase(pgo.Prepare, 7, "g", 5), two_phase(pgo.CommitPrepared, 7, "g", 20)
    for items in ([alone, end], [end], [alone, rollback_prepared(7, "g")]):
        assert visible([begin(6, 3), row(), commit(3), *items, begin(8, 30), row(), commit(30)]) == [
            (3, 1, 6, 1),
            (30, 1, 8, 4 + len(items)),
        ]


def test_rollback_of_a_prepare_never_seen() -> None:
    """It may come, and leaves a prepare of the same name by another transaction alone."""
    prepare = [two_phase(pgo.BeginPrepare, 7, "g", 5), row(), two_phase(pgo.Prepare, 7, "g", 5)]
    items = [rollback_prepared(3, "x"), *prepare, rollback_prepared(3, "g"), two_phase(pgo.CommitPrepared, 7, "g", 9)]
    assert len(visible(items)) == 1


UNSAID: Any = None
"""What says nothing; no version of today's specification leaves such a field out."""


@pytest.mark.parametrize(
    "items",
    [
        [commit(10)],
        [pgo.StreamStop()],
        [begin(7, 10), commit(11)],
        [begin(7, 10), pgo.StreamStop()],
        segment(7, 7),
        [stream_commit(7, 10)],
        [*segment(7, first=True), pgo.StreamStart(7, 0), begin(8, 10), commit(10), *segment(7)],
        [pgo.StreamStart(7, 1), begin(8, 10), commit(10), stream_commit(7, 20)],
        [two_phase(pgo.Prepare, 8, "g", 5), two_phase(pgo.CommitPrepared, 7, "g", 20)],
        [begin(7, 10), two_phase(pgo.Prepare, 7, "g", 5)],
        [two_phase(pgo.BeginPrepare, 7, "g", 5), two_phase(pgo.Prepare, 8, "g", 5)],
        [begin(7, 2**63), commit(2**63)],
        [*segment(7, 7, first=True), pgo.StreamStart(7, UNSAID)],
    ],
)
def test_what_cannot_be(items: list[Item]) -> None:
    """Messages that do not fit together are a ProtocolError that names the seq."""
    with pytest.raises(pgo.ProtocolError, match=r"seq \d"):
        find_transactions(controls(items))


def test_recordings_agree(recordings: dict[str, Recording]) -> None:
    """Streamed or not, prepared or not: a server's transactions make the same rows visible."""
    for version in (16, 18):
        counts = {len(_visible_rows(r)) for r in recordings.values() if r.server_version == version}
        assert len(counts) == 1


def _visible_rows(recording: Recording) -> list[int]:
    session = pgo.Session(recording.mode.proto_version, recording.mode.streaming)
    found = []
    for seq, payload in enumerate(recording.payloads):
        stream = session.stream_xid
        found.append(ControlMessage(seq, stream, session.parse(payload)))
    spans = find_transactions(found)
    rows = [c for c in found if isinstance(c.message, pgo.Insert | pgo.Update | pgo.Delete)]
    return [c.seq for c in rows if find_place(spans, c.seq, c.message.xid) is not None]


@given(st.data())
def test_against_a_naive_reader(data: st.DataObject) -> None:
    """Spans place every row where a reader that keeps all rows in memory places it, in the same order."""
    publisher, naive = Publisher(data.draw), Naive()
    for action in data.draw(st.lists(st.sampled_from(ACTIONS), max_size=25)):
        publisher.step(action)
    for seq, item in enumerate(publisher.items):
        naive.read(seq, item)
    seen = visible(publisher.items)
    assert {seq: lsn for lsn, _, _, seq in seen} == {seq: lsn for seq, (lsn, _) in naive.committed.items()}
    assert [seq for *_, seq in seen] == sorted(naive.committed, key=naive.committed.__getitem__)


def test_spans_are_columns() -> None:
    """All columns have one entry a span, in order; streams have theirs."""
    spans = find_transactions(controls([*segment(7, 7, first=True), begin(8, 5), commit(5), stream_commit(7, 9)]))
    assert (len(spans.first_seq), list(spans.first_seq), list(spans.stream_xid)) == (2, [0, 3], [7, -1])
