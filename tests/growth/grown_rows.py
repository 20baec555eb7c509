"""Rows out of messages: the index of a batch, tables, and what a capture and a reader keep."""

import json
import sys
from pathlib import Path
from typing import Any

from grown import (
    BEFORE,
    INSERTED,
    KEY,
    NOTE,
    OPTIONS,
    PAYLOADS,
    STREAM,
    TIME,
    UNTYPED,
)
from recorded import digest_of

import pgoutput_construct as pgo
from pgoutput_construct.changelog import Position
from pgoutput_construct.columnar import BatchDecoder, DecodedBatch, index_batch
from pgoutput_construct.columnar.envelope import Frames
from pgoutput_construct.postgres._capture.pump import Intake
from pgoutput_construct.stream.relations import RelationCache
from pgoutput_construct.stream.rows import RowReader


def check_index() -> None:
    """The index knows every message, its tables and its header; damage is flagged."""
    states = {name: [sent.states[name] for sent in STREAM] for name in ("in_stream", "in_block")}
    index = index_batch(PAYLOADS, **states, **OPTIONS)
    assert index.valid.all(), [str(index.error(row)) for row in index.malformed().tolist()]
    assert [index.message(place) for place in range(len(index))] == [sent.message for sent in STREAM]
    rows, oids = index.tables()
    assert rows.tolist() == [3, 4, 6, 7, 10, 11, 15, 17, 18, 19] and set(oids.tolist()) == {7}
    table = index.messages().to_pylist()
    assert [line["kind"] for line in table] == [type(sent.message).__name__ for sent in STREAM]
    assert (table[4]["change_number"], table[4]["label"], table[4]["comment"]) == (-1, "l", "c")
    assert (table[6]["block_seq"], table[12]["digest"], table[13]["worker"]) == (6, 255, 8)
    assert (table[1]["lag"], table[5]["block_number"], table[18]["xid"]) == (-5, 4, 702)
    for sent in STREAM:
        cut = [sent.payload[:size] for size in range(len(sent.payload))]
        states = {name: [value] * len(cut) for name, value in sent.states.items()}
        assert not index_batch(cut, **states, **OPTIONS).valid.any(), sent


def rows_of(decoded: DecodedBatch) -> list[tuple[str, Any, Any]]:
    """The rows of a decoded batch, in the stream's order."""
    assert not decoded.errors, decoded.errors
    numbered = [
        (place, line)
        for table in decoded.tables
        for place, line in zip(table.rows.tolist(), table.batch.to_pylist(), strict=True)
    ]
    return [line for _, line in sorted(numbered, key=lambda pair: pair[0])]  # type: ignore[misc]


def check_tables() -> None:
    """Rows are typed: text, binary format, and what the new tag brings; in batches of any size."""
    for size in (len(PAYLOADS), 1, 5):
        decoder = BatchDecoder(**OPTIONS)
        rows: list[Any] = []
        for start in range(0, len(PAYLOADS), size):
            decoded = decoder.decode(PAYLOADS[start : start + size])
            rows += rows_of(decoded)
            for table in decoded.tables:
                states = {STREAM[start + row].in_stream for row in table.rows.tolist()}
                assert states == {table.description.relation.xid is not None}
        assert [(line["_op"], line["id"], line["note"]) for line in rows] == INSERTED, rows
        assert [line["_untyped"] for line in rows] == UNTYPED
        assert [line["_before"] and line["_before"]["id"] for line in rows] == BEFORE, rows
        assert [place for place, line in enumerate(rows) if line["_unchanged"] == ["note"]] == [3, 5]


def check_reader() -> None:
    """RowReader has the same rows, of Python values; what came in a format of its own stays as it came."""
    reader, session = RowReader(), pgo.Session(**OPTIONS)
    found = [change for payload in PAYLOADS for change in reader.read(session.parse(payload))]
    news = [change.new or {} for change in found]
    assert news[2].pop("note") == pgo.Packed(b"b")
    assert [(c.op, n.get("id"), n.get("note")) for c, n in zip(found, news, strict=True)] == INSERTED, found
    assert [change.old and change.old["id"] for change in found] == BEFORE
    assert [change.xid for change in found] == [None] * 6 + [701, 701, 702, 702]
    assert found[3].unchanged == found[5].unchanged == ("note",)


def check_tracker() -> None:
    """What capture follows a connection with: states of every payload, and where nothing is open."""
    intake = Intake(OPTIONS, Position())
    tracker = intake.tracker
    for sent in STREAM:
        assert tracker.at_boundary is (type(sent.message) in (pgo.Begin, pgo.StreamStart, pgo.StreamCommit)), sent
        block = intake.take(framed(sent)).block
        states = {name: bool(state[0]) for name, state in block.index.states.items()}
        assert (states, int(block.stream_xid[0])) == (sent.states, 701 if sent.in_stream else -1), sent
    assert (tracker.transactions, tracker.complete_lsn, tracker.at_boundary) == (2, pgo.Lsn(64), True)
    again = Intake(OPTIONS, tracker.position).take(framed(*STREAM[:13])).block
    kept = [again.index.message(row) for row in range(len(again))]
    assert [type(message).__name__ for message in kept] == ["Publication", "Relation", "Relation"]


def framed(*stream: Any) -> Frames:
    """Return messages in frames."""
    return Frames.of(*(pgo.build_frame(pgo.XLogData(pgo.Lsn(1), pgo.Lsn(1), TIME, sent.payload)) for sent in stream))


def check_relations() -> None:
    """What describes is kept, and what only describes otherwise changes nothing."""
    cache, session = RelationCache(), pgo.Session(**OPTIONS)
    for payload in PAYLOADS:
        cache.update(session.parse(payload))
    assert cache.get(7).columns == (KEY, NOTE)


def check_recordings() -> None:
    """What real servers sent is parsed, built and decoded as before; decoded tables have their digest."""
    found = {path.stem: digest_of(path) for path in sorted(Path(sys.argv[1]).glob("*.txt"))}
    assert found == json.loads(Path("digests.json").read_text("utf-8"))
