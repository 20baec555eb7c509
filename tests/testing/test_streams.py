"""Generated streams are what a server could send: every reader of the package takes them."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

import pgoutput_construct as pgo
from pgoutput_construct import testing
from pgoutput_construct.columnar import BatchDecoder
from pgoutput_construct.stream.rows import RowReader
from pgoutput_construct.stream.state import ControlMessage, StreamState
from pgoutput_construct.stream.transaction_reader import TransactionReader
from pgoutput_construct.testing import Sent
from pgoutput_construct.wire.definitions import DEFINITIONS
from pgoutput_construct.wire.protocol import CHANGES, DESCRIPTIONS, OPTIONS, PROTOCOL_VERSIONS
from tools.faults.committed_spans import spans_of_reader

Stream = tuple[dict[str, Any], list[Sent]]


@st.composite
def any_stream(draw: st.DrawFn) -> Stream:
    """Return the options of a session, and a stream under them."""
    version = draw(st.sampled_from(list(PROTOCOL_VERSIONS)))
    allowed = [name for name, value in OPTIONS["streaming"].values.items() if version >= value.since]
    options: dict[str, Any] = {"proto_version": version, "streaming": draw(st.sampled_from(allowed))}
    return options, draw(testing.streams(**options, two_phase=draw(st.booleans()), binary=draw(st.booleans())))


@given(any_stream())
def test_session_reads_what_was_sent(stream: Stream) -> None:
    """Each payload is its message, and ``in_stream`` is right."""
    options, sent = stream
    session, state = pgo.Session(**options), StreamState(exact=True)
    for payload, message, stream_xid in sent:
        assert session.stream_xid == stream_xid
        assert session.parse(payload) == message
        state.advance(message)


@given(any_stream())
def test_each_message_decodes_by_itself(stream: Stream) -> None:
    """The stream state that comes with a payload is all that parse needs."""
    options, sent = stream
    for each in sent:
        assert pgo.parse(each.payload, **options, in_stream=each.in_stream) == each.message


@given(any_stream())
def test_transactions_are_complete(stream: Stream) -> None:
    """The reader of transactions finds no gap, and publishes in the order of the commits."""
    reader = TransactionReader()
    ends = []
    for seq, (_, message, stream_xid) in enumerate(stream[1]):
        if type(message) not in CHANGES | DESCRIPTIONS:
            reader.read(ControlMessage(seq, stream_xid, message))
        if isinstance(message, pgo.Commit | pgo.StreamCommit | pgo.CommitPrepared):
            ends.append(message.commit_lsn)
    assert ends == sorted(set(ends))
    assert set(spans_of_reader(reader).commit_lsn) == set(ends)


@given(any_stream())
def test_rows_fit_their_relations(stream: Stream) -> None:
    """Every row is described before it comes, and its values are of its columns' types."""
    reader = RowReader()
    for _, message, _ in stream[1]:
        changes = list(reader.read(message))
        assert bool(changes) == (type(message) in CHANGES)


@given(any_stream())
def test_batches_have_no_errors(stream: Stream) -> None:
    """The decoder of batches gives a typed row of each change."""
    options, sent = stream
    decoded = BatchDecoder(**options).decode([each.payload for each in sent])
    assert decoded.errors == ()
    expected = sum(len(m.relation_oids) if isinstance(m, pgo.Truncate) else type(m) in CHANGES for _, m, _ in sent)
    assert sum(table.batch.num_rows for table in decoded.tables) == expected
    assert all(not any(table.batch.column("_untyped").to_pylist()) for table in decoded.tables)


@pytest.mark.slow
def test_all_messages_occur() -> None:
    """A few hundred streams, or fewer, have every message, and every way in which a transaction can end."""
    missing = set(DEFINITIONS)

    def complete(sent: list[Sent]) -> bool:
        missing.difference_update(type(each.message) for each in sent)
        return not missing

    with suppress(NoSuchExample):
        find(
            testing.streams(4, "parallel", two_phase=True),
            complete,
            settings=settings(max_examples=300, derandomize=True, database=None, phases=[Phase.generate]),
        )
    assert missing == set()


@pytest.mark.slow
def test_streams_interleave() -> None:
    """Segments of one transaction are between those of another."""

    def interleaved(sent: list[Sent]) -> bool:
        starts = [m.xid for _, m, _ in sent if isinstance(m, pgo.StreamStart)]
        return any(a == c != b for a, b, c in zip(starts, starts[1:], starts[2:], strict=False))

    find(
        testing.streams(2, "on"),
        interleaved,
        settings=settings(database=None, max_examples=1000, phases=[Phase.generate]),
    )
