"""The index against readers that read every message: the same transactions, rows and descriptions."""

import struct
import zlib
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pgoutput_construct as pgo
from pgoutput_construct import testing
from pgoutput_construct.changelog._index.index_builder import IndexBuilder
from pgoutput_construct.changelog._index.planning import relation_history
from pgoutput_construct.changelog._segment.block import Block
from pgoutput_construct.changelog._segment.events import CONNECTED, LogEvent
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex, struct_array
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.stream.relations import RelationHistory
from pgoutput_construct.stream.state import ControlMessage
from pgoutput_construct.stream.transaction_reader import TransactionReader
from pgoutput_construct.testing import Sent
from tests.changelog.test_block import block_of
from tests.live.recording import Recording
from tests.spark.logs import write_recording

NUMBERS = ("seq", "outcome", "xid", "gid", "commit_lsn", "end_lsn", "commit_time")
CHANGES = pgo.Insert | pgo.Update | pgo.Delete | pgo.Truncate


def ended_one_by_one(controls: Sequence[ControlMessage]) -> list[tuple[Any, ...]]:
    """Return the transactions that ended, found by reading every message."""
    reader = TransactionReader()
    for control in controls:
        reader.read(control)
    return [
        (seq, outcome, t.xid, t.gid, *numbers, t.spans, sorted(t.aborted), t.streamed)
        for seq, outcome, t, *numbers in reader.ended
    ]


def ended(index: SegmentIndex) -> list[tuple[Any, ...]]:
    """Return the same out of an index."""
    return [
        (*(t[name] for name in NUMBERS), [tuple(span.values()) for span in t["spans"]], t["aborted"], t["streamed"])
        for t in index.transactions.to_pylist()
    ]


def changed_one_by_one(controls: Sequence[ControlMessage]) -> Counter[tuple[Any, ...]]:
    """Count the rows by OID, tag, and the seq of the Relation that describes them, found by reading every message."""
    history, found = RelationHistory(), Counter[tuple[Any, ...]]()
    for control in controls:
        history.read(control)
    for seq, scope, message in controls:
        if isinstance(message, CHANGES):
            oids = message.relation_oids if isinstance(message, pgo.Truncate) else (message.relation_oid,)
            for oid in oids:
                found[oid, message.TAG[0], history.descriptions[history.index(oid, seq, scope)].seq] += 1
    return found


def changed(index: SegmentIndex) -> Counter[tuple[Any, ...]]:
    """Return the same out of an index."""
    found = Counter[tuple[Any, ...]]()
    for row in index.entries("rows").to_pylist():
        found[row["oid"], row["tag"], row["description"]] += row["count"]
    return found


def indexed(stream: Sequence[Sent], blocks: Sequence[int], cuts: Sequence[int], resume: bool) -> list[SegmentIndex]:
    """Return the indexes of a stream that is cut into blocks, and segments of these; builders resume from footers."""
    builder, indexes, open_xid = IndexBuilder(), list[SegmentIndex](), -1
    blocks, cuts = ([cut % (len(stream) + 1) for cut in some] for some in (blocks, cuts))
    bounds = sorted({0, len(stream), *blocks, *cuts})
    for first, end in pairwise(bounds):
        block = block_of(list(stream[first:end]), open_xid)
        open_xid = block.open_xid
        builder.add(block)
        if end in cuts or end == len(stream):
            indexes.append(SegmentIndex.from_bytes(builder.finish(end).to_bytes()))
            builder = IndexBuilder(indexes[-1], lambda seqs: sent_by(indexes, seqs)) if resume else builder
    return indexes


def sent_by(indexes: Sequence[SegmentIndex], seqs: Any) -> list[dict[str, Any]]:
    """Return the descriptions with some seqs."""
    wanted = set(seqs)
    return [row for row in SegmentIndex.concat(indexes).entries("descriptions").to_pylist() if row["seq"] in wanted]


def controls_of(stream: Sequence[Sent]) -> list[ControlMessage]:
    """Return all messages of a stream as readers of control messages take them."""
    return [ControlMessage(seq, sent.stream_xid, sent.message) for seq, sent in enumerate(stream)]


cuts = st.lists(st.integers(1, 300), max_size=5)


@pytest.mark.slow
@given(testing.streams(4, "parallel", two_phase=True), cuts, cuts, st.booleans())
def test_the_index_agrees_with_readers_of_messages(
    stream: list[Sent], blocks: list[int], cuts: list[int], resume: bool
) -> None:
    """Wherever the stream is cut, and whether or not the builder is made again from footers at each cut."""
    controls, indexes = controls_of(stream), indexed(stream, blocks, cuts, resume)
    whole = SegmentIndex.concat(indexes)
    assert ended(whole) == ended_one_by_one(controls)
    assert changed(whole) == changed_one_by_one(controls)
    assert whole.entries("faults").num_rows == 0
    assert [row["seq"] for row in whole.entries("descriptions").to_pylist()] == [
        seq for seq, _, message in controls if isinstance(message, pgo.Relation | pgo.Type)
    ]
    assert not stream or (whole.first_seq, whole.last_seq) == (0, len(stream) - 1)


@pytest.mark.slow
@given(testing.streams(4, "parallel", two_phase=True), st.integers(1, 200), cuts)
def test_transactions_of_a_lost_connection_are_void(stream: list[Sent], lost: int, cuts: list[int]) -> None:
    """The connection is lost anywhere, and all is sent again, with an event between or without: it counts once."""
    lost = min(lost, len(stream))
    doubled = [*stream[:lost], *stream]
    try:
        expected = ended_one_by_one(controls_of(doubled))
    except pgo.ProtocolError:
        return  # the same transaction prepared and ended twice, which no server sends
    assert ended(SegmentIndex.concat(indexed(doubled, [lost], cuts, True))) == expected
    builder = IndexBuilder()
    for part in (block_of(stream[:lost]), LogEvent(CONNECTED), block_of(stream)):
        builder.add(part)
    index = builder.finish(0)
    assert [entry["seq"] for entry in index.entries("events").to_pylist()] == [lost]
    assert [entry[1:7] for entry in ended(index)] == [entry[1:7] for entry in expected]


@pytest.mark.slow
@settings(max_examples=50)
@given(testing.streams(4, "parallel"), st.integers(1, 9))
def test_a_pruned_log_has_its_descriptions(stream: list[Sent], step: int) -> None:
    """Whichever segments go, as long as no open transaction needs them: each row has the Relation that it had."""
    controls, indexes = controls_of(stream), indexed(stream, [], range(0, len(stream), step), True)
    expected = RelationHistory()
    for control in controls:
        expected.read(control)
    for place, before in enumerate(indexes[:-1]):
        if before.open.num_rows == 0:
            kept = SegmentIndex.concat(indexes[place + 1 :])
            history = relation_history(kept)
            for seq, scope, message in controls[kept.first_seq :]:
                if isinstance(message, pgo.Insert | pgo.Update | pgo.Delete):
                    found, known = (h.index(message.relation_oid, seq, scope) for h in (history, expected))
                    assert history.descriptions[found] == expected.descriptions[known]


def test_an_open_transaction_has_its_start() -> None:
    """Position, time and seq of its begin, in every segment until its end."""
    begin, lsn = pgo.build(pgo.Begin(pgo.Lsn(9), pgo.Timestamp(0), 7)), pgo.Lsn(9)
    commit = pgo.build(pgo.Commit(lsn, pgo.Lsn(10), pgo.Timestamp(5)))
    builder = IndexBuilder()
    builder.add(Block.from_payloads([begin], [3], [4], {}, {}, [-1]))
    builder = IndexBuilder(builder.finish(0))
    builder.add(LogEvent("nothing"))
    index = builder.finish(0)
    (open_transaction,) = index.open.to_pylist()
    assert [open_transaction[name] for name in ("xid", "first_seq", "since_lsn", "since_time")] == [7, 0, 3, 4]
    builder = IndexBuilder(index)
    builder.add(Block.from_payloads([commit], [9], [9], {}, {}, [-1]))
    index = builder.finish(10)
    assert index.open.num_rows == 0 and ended(index)[0][7] == [(0, 2)] and index.complete_lsn == 10


def test_invalid_messages_are_faults_with_their_seq() -> None:
    """A malformed message and one that cannot come stop nothing: readers say it."""
    commit = pgo.build(pgo.Commit(pgo.Lsn(1), pgo.Lsn(1), pgo.Timestamp(0)))
    builder = IndexBuilder()
    builder.add(Block.from_payloads([b"B", commit, b"?"], [0] * 3, [0] * 3, {}, {}, [-1] * 3))
    faults = builder.finish(0).entries("faults").to_pylist()
    assert [fault["seq"] for fault in faults] == [0, 1, 2]
    assert "Begin.final_lsn" in faults[0]["problem"] and "unknown tag" in faults[2]["problem"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["16-v1-text", "18-v2-binary", "18-v4-text", "18-v4-immediate"])
def test_recordings(recordings: dict[str, Recording], tmp_path: Path, name: str) -> None:
    """What real servers sent, through a log: the same transactions and rows."""
    write_recording(tmp_path, recordings[name], rows=170)
    log, controls = ChangeLog(tmp_path), list[ControlMessage]()
    for entry in log:
        message = pgo.parse(entry.payload, **log.options.layout(), in_stream=entry.in_stream)
        controls.append(ControlMessage(entry.seq, entry.stream_xid, message))
    assert ended(log.index) == ended_one_by_one(controls)
    assert changed(log.index) == changed_one_by_one(controls)
    assert log.index.entries("faults").num_rows == 0


def test_lists_beyond_their_entries_are_refused() -> None:
    """Offsets that lead outside an index, with a checksum that fits, are damage: Arrow alone would end the process."""
    events = struct_array("events", [{"seq": seq, "payload": b"{}"} for seq in range(77)])
    text = SegmentIndex.from_lists(0, 76, 7, events=events).to_bytes().rpartition(b" ")[0]
    stream = pa.CompressedInputStream(pa.BufferReader(b64decode(text)), "zstd").read()
    before, bounds, after = stream.rpartition(struct.pack("<ii", 0, len(events)))  # the header has such bytes, too
    assert bounds
    for end in (len(events) + 1, 1 << 30, -1):
        packed = pa.compress(before + struct.pack("<ii", 0, end) + after, "zstd", asbytes=True)
        with pytest.raises(pa.ArrowInvalid):
            SegmentIndex.from_bytes(b"%s %08x" % (b64encode(packed), zlib.crc32(b64encode(packed))))
