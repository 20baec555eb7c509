"""The transitions of the specification, executed: what comes where, and what a lost connection leaves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pgoutput_construct as pgo
from pgoutput_construct import testing
from pgoutput_construct.stream.state import CHANGES_SCOPE, INSIDE_ONLY, StreamState
from pgoutput_construct.wire.options import STATE_PARAMETERS
from pgoutput_construct.wire.protocol import BEGINS, STATES, TRANSITIONS

BEGIN = pgo.Begin(pgo.Lsn(1), pgo.Timestamp(0), 1)
COMMIT = pgo.Commit(pgo.Lsn(1), pgo.Lsn(2), pgo.Timestamp(0))
INSERT = pgo.Insert(None, 1, ())
START, STOP = pgo.StreamStart(7, 1), pgo.StreamStop()

MESSAGES = {type(m): m for m in (BEGIN, COMMIT, INSERT, START, STOP, pgo.StreamAbort(7, 7), pgo.StreamAbort(7, 8))}


@given(st.lists(st.sampled_from(list(MESSAGES.values())), max_size=12))
def test_exact_state_is_a_walk_over_the_table(messages: list[pgo.PgoutputMessage]) -> None:
    """A message is accepted exactly where the table has a step for it; where it has none the state stays."""
    state, here = StreamState(exact=True), next(iter(STATES))
    for message in messages:
        step = TRANSITIONS[type(message)].get(here)
        assert state.permits(type(message)) == (step is not None)
        if step is None:
            with pytest.raises(pgo.ProtocolError):
                state.advance(message)
        else:
            state.advance(message)
            here = step
        assert state.parameters == {name: name in STATES[here] for name in STATE_PARAMETERS}
        assert state.between == (here == next(iter(STATES)))


@given(st.lists(st.sampled_from(list(MESSAGES.values())), max_size=12))
def test_who_begins_in_the_middle_refuses_no_more(messages: list[pgo.PgoutputMessage]) -> None:
    """What the exact state accepts the other one accepts too, with the same layouts."""
    exact, lenient = StreamState(exact=True), StreamState()
    for message in messages:
        if exact.permits(type(message)):
            exact.advance(message)
            lenient.advance(message)
            assert lenient.parameters == exact.parameters and lenient.stream_xid == exact.stream_xid


@given(testing.streams(4, "parallel", two_phase=True))
def test_whole_streams_are_walks(stream: list[testing.Sent]) -> None:
    """What a server may send is accepted, and each payload's stream is the one it was sent in."""
    state = StreamState(exact=True)
    for sent in stream:
        assert state.stream_xid == sent.stream_xid
        state.advance(sent.message)


@pytest.mark.parametrize(
    ("messages", "between", "xid"),
    [
        ((BEGIN, BEGIN), False, None),
        ((BEGIN, INSERT, START), False, 7),
        ((START, pgo.StreamStart(8, 1)), False, 8),
        ((START, BEGIN, COMMIT), True, None),
        ((STOP,), True, None),
        ((BEGIN, STOP), False, None),
        ((BEGIN, pgo.StreamAbort(7, 7)), False, None),
        ((INSERT, COMMIT), True, None),
    ],
)
def test_lost_connections(messages: tuple[pgo.PgoutputMessage, ...], between: bool, xid: int | None) -> None:
    """In a log, what opens a transaction or a stream begins again; anything else out of place leaves the state."""
    state = StreamState(exact=True)
    for message in messages:
        state.follow(message)
    assert (state.between, state.stream_xid) == (between, xid)


def test_errors_say_what_must_come_before() -> None:
    """Inside and outside of streams, and between transactions."""
    state = StreamState(exact=True)
    with pytest.raises(
        pgo.ProtocolError, match="Insert in the state idle: it is permitted only in the state transaction or"
    ):
        state.advance(INSERT)
    with pytest.raises(pgo.ProtocolError, match="StreamStop outside a stream: a Stream Start must come before it"):
        state.advance(STOP)
    state.advance(START)
    with pytest.raises(pgo.ProtocolError, match="Begin inside the stream of xid 7: a Stream Stop must come before it"):
        state.advance(BEGIN)


def test_groups_of_messages_follow_from_the_table() -> None:
    """What changes layouts, and what stands inside only, is read off the transitions."""
    assert {pgo.StreamStart, pgo.StreamStop} == CHANGES_SCOPE
    assert {pgo.Insert, pgo.Update, pgo.Delete, pgo.Truncate, pgo.Relation, pgo.Type, pgo.Origin} == INSIDE_ONLY
    assert not BEGINS & INSIDE_ONLY
