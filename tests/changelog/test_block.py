"""Blocks, events and names: what a segment consists of; no server is needed."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pgoutput_construct as pgo
from pgoutput_construct import testing
from pgoutput_construct.changelog._segment.block import NO_XID, Block
from pgoutput_construct.changelog._segment.events import LogEvent, log_events
from pgoutput_construct.changelog._segment.footer import FileName, chosen, segment_name
from pgoutput_construct.changelog._segment.segment_schema import SCHEMA, Part, coalesced, segment_table
from pgoutput_construct.changelog.reader import table_entries
from pgoutput_construct.columnar.descriptions import OUTSIDE
from pgoutput_construct.testing import Sent
from pgoutput_construct.wire import Begin, BeginPrepare, Commit, Prepare, StreamStart

LAYOUT = {"proto_version": 4, "streaming": "parallel"}


def block_of(stream: list[Sent], open_xid: int = NO_XID) -> Block:
    """Return sent messages as one block."""
    scopes = [OUTSIDE if sent.stream_xid is None else sent.stream_xid for sent in stream]
    numbers = list(range(len(stream)))
    states = {"in_stream": [sent.in_stream for sent in stream]}
    return Block.from_payloads([sent.payload for sent in stream], numbers, numbers, LAYOUT, states, scopes, open_xid)


def xids_one_by_one(stream: list[Sent]) -> list[int]:
    """Return the xid of each message, found one by one."""
    found, open_xid = [], NO_XID
    for sent in stream:
        message = sent.message
        if isinstance(message, Begin | BeginPrepare | StreamStart):
            open_xid = NO_XID if isinstance(message, StreamStart) else message.xid
        own = getattr(message, "xid", None)
        found.append(own if own is not None else NO_XID if sent.in_stream else open_xid)
        if isinstance(message, Commit | Prepare):
            open_xid = NO_XID
    return found


@pytest.mark.slow
@given(testing.streams(4, "parallel", two_phase=True), st.integers(0, 200))
def test_each_payload_has_the_xid_of_its_transaction(stream: list[Sent], cut: int) -> None:
    """In the message, or in the Begin before it, which may stand in an earlier block."""
    before = block_of(stream[:cut])
    after = block_of(stream[cut:], before.open_xid)
    assert [*before.xid.tolist(), *after.xid.tolist()] == xids_one_by_one(stream)


@pytest.mark.slow
@given(testing.streams(4, "parallel"), st.data())
def test_some_payloads_of_a_block(stream: list[Sent], data: st.DataObject) -> None:
    """A slice, indexes and flags choose the same of every column, and of the index."""
    block = block_of(stream)
    first = data.draw(st.integers(0, len(block)))
    chosen_rows = np.arange(first, len(block))
    for rows in (slice(first, None), chosen_rows, np.arange(len(block)) >= first):
        some = block.take(rows)
        assert some.payloads.to_pylist() == [sent.payload for sent in stream[first:]]
        assert some.index.tags.tolist() == block.index.tags[first:].tolist()
        assert [some.index.message(row) for row in range(len(some))] == [sent.message for sent in stream[first:]]
        assert some.wal_start.tolist() == chosen_rows.tolist() and some.xid.tolist() == block.xid[first:].tolist()


@pytest.mark.slow
@given(testing.streams(4, "parallel"), st.lists(st.integers(0, 30), max_size=9))
def test_small_blocks_become_one(stream: list[Sent], lengths: list[int]) -> None:
    """Blocks put together are the block of all; an event stays between those that it came between."""
    whole = block_of(stream)
    bounds = [0, *sorted(length % (len(stream) + 1) for length in lengths), len(stream)]
    parts: list[Part] = [whole.take(slice(*some)) for some in pairwise(bounds)]
    (together,) = coalesced([*parts, whole.take(slice(0, 0))])
    assert segment_table([together], 0).equals(segment_table([whole], 0))
    event = LogEvent("between")
    assert list(coalesced([parts[0], event, parts[-1]]))[1] == event


def test_events_are_rows_that_readers_of_messages_skip() -> None:
    """Blocks and events become one table: seqs go on, an event has no tag, and comes back as it was."""
    block = Block.from_payloads([pgo.build(pgo.Begin(pgo.Lsn(5), pgo.Timestamp(6), 7))], [1], [2], {}, {}, [OUTSIDE])
    event = LogEvent("noticed", pgo.Lsn(9), pgo.Timestamp(-3), {"table": "ü\udcff", "rows": 3})
    table = segment_table([block, event, block], 10)
    assert table.schema == SCHEMA and table["seq"].to_pylist() == [10, 11, 12]
    assert table["tag"].to_pylist() == [ord("B"), None, ord("B")] and table["xid"].to_pylist() == [7, None, 7]
    (found,) = log_events(table)
    assert (found.seq, found.name, found.lsn, found.time) == (11, "noticed", 9, -3) and found.details == event.details
    assert [entry.seq for entry in table_entries(table, "s")] == [10, 12]


def test_an_invalid_event() -> None:
    """JSON of another shape is damage, and says where."""
    for payload in (b"[]", b"{}", b'{"event": 1}', b"\xff"):
        with pytest.raises(ValueError, match=r"seq 3|utf-8"):
            LogEvent.parse(3, 0, 0, payload)


def test_the_segments_that_count(tmp_path: Path) -> None:
    """Of files that cover each other the longest counts."""
    new = [segment_name(*bounds) for bounds in ((0, 8), (5, 6), (7, 8), (9, 12), (13, 13))]
    counted, covered = chosen([*new, "pruned.json", ".segment.tmp", "segment-1.parquet"])
    assert [segment.name for segment in counted] == [new[0], new[3], new[4]]
    assert {segment.name for segment in covered} == {new[1], new[2]}
    assert chosen(["segment-é0000000000000000000.parquet", f"segment-{10**19}.parquet"]) == ([], [])
    assert chosen([new[1]]) == ([FileName(5, 6, new[1])], [])
