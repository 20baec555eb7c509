"""The messages of a connection: the engines agree on what they build, and on what they refuse."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgoutput_construct.errors import DecodeError, EncodeError, PgoutputError
from pgoutput_construct.testing.payloads import connection_messages, damaged
from pgoutput_construct.wire import connection_codec as codec
from pgoutput_construct.wire import connection_messages as m
from pgoutput_construct.wire.codec_runtime import PAD, REJECTIONS
from pgoutput_construct.wire.connection_definitions import DEFINITIONS
from pgoutput_construct.wire.connection_engine import (
    FIRST_STATE,
    begun,
    build_connection,
    message_size,
    next_state,
    parse_connection,
    states_of,
)
from pgoutput_construct.wire.reference import Reference

REFERENCE = Reference({}, DEFINITIONS)
PLACES = [(state, sender) for (state, sender), classes in m.FOLLOWING.items() if classes]


@given(message=connection_messages())
def test_engines_build_the_same_bytes_and_read_them_back(message: m.ConnectionMessage) -> None:
    """What one engine builds is what the other builds, and both read the message back."""
    data = build_connection(message)
    assert data == REFERENCE.build(message, {}) == codec.BUILDERS[type(message)](message)
    assert codec.READERS[type(message)](data + PAD, 0, len(data)) == (message, len(data))
    assert REFERENCE.read(type(message), data, {}) == message


@given(message=connection_messages(), data=st.data())
def test_sender_and_state_identify_a_message(message: m.ConnectionMessage, data: st.DataObject) -> None:
    """In each state that permits it, its bytes are that message, and message_size returns their length."""
    places = [place for place in PLACES if type(message) in m.FOLLOWING[place]]
    state, sender = data.draw(st.sampled_from(places))
    payload = build_connection(message)
    assert parse_connection(payload, sender, state) == message
    assert message_size(payload + b"more", sender, state) == len(payload)
    with pytest.raises(DecodeError):
        parse_connection(payload + b"\0", sender, state)


@given(message=connection_messages(), data=st.data())
def test_engines_refuse_the_same_bytes(message: m.ConnectionMessage, data: st.DataObject) -> None:
    """Damaged bytes are refused by both engines or read alike by both."""
    cls, payload = type(message), data.draw(damaged(st.just(build_connection(message))))
    try:
        found, end = codec.READERS[cls](payload + PAD, 0, len(payload))
        accepted = found if end == len(payload) else None
    except REJECTIONS:
        accepted = None
    try:
        explained = REFERENCE.read(cls, payload, {})
    except DecodeError:
        explained = None
    # Whoever reads has chosen the class by the tag, which the codec therefore skips.
    if payload.startswith(cls.TAG):
        assert accepted == explained


CALLS: dict[str, Callable[[Any, Any], object]] = {
    "parse_connection": lambda sender, state: parse_connection(b"Z", sender, state),
    "message_size": lambda sender, state: message_size(b"Z", sender, state),
    "next_state": lambda sender, state: next_state(m.Terminate(), sender, state),
    "begun": lambda sender, state: begun(b"Z", sender, state),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_unknown_senders_and_states(call: Callable[[Any, Any], object]) -> None:
    """They are refused by name, with those that exist."""
    with pytest.raises(PgoutputError, match=r"^sender must be one of server, client, not 'backend'$"):
        call("backend", FIRST_STATE)
    with pytest.raises(PgoutputError, match=f"^state must be one of {FIRST_STATE}, .*, not 'nowhere'$"):
        call("server", "nowhere")
    with pytest.raises(PgoutputError, match=r"^sender must be"):
        states_of(b"Z", "backend")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (m.AuthenticationSASL(("", "SCRAM-SHA-256")), r"mechanisms\[0\].*must not begin with a zero byte"),
        (m.DataRow((b"1", "2")), r"row\[1\].*must be bytes"),  # type: ignore[arg-type]
        (m.ErrorResponse((m.NoticeField("?", "x"),)), r"details\[0\]\.code"),
        (m.StartupMessage(0, (m.StartupParameter("a\0b", "c"),)), r"parameters\[0\]\.name.*without NUL"),
    ],
)
def test_errors_of_build_have_the_path(message: m.ConnectionMessage, problem: str) -> None:
    """A message that cannot be encoded is refused, and the error has the path."""
    with pytest.raises(EncodeError, match=problem):
        build_connection(message)


@pytest.mark.parametrize(
    ("data", "sender", "state", "problem"),
    [
        (b"GET / HTTP/1.1\r\n", "client", "startup", "no message of a client in the state 'startup'"),
        (b"D\0\0\0\x0a\0\x01\xff\xff\xff\xfe", "server", "query", r"has the length -2: it must be -1, or at least 0"),
        (b"Z\0\0\0\x06I", "server", "query", "is 6 bytes, but 5 bytes are left"),
        (b"Z\0\0\0\x05?", "server", "query", r"status"),
        (b"Q\0\0\0\x05\0", "server", "query", "no message of a server"),
        (b"", "client", "idle", "no message of a client"),
    ],
)
def test_bytes_that_are_no_message_are_refused(data: bytes, sender: str, state: str, problem: str) -> None:
    """Bytes that the sender cannot send in a state are refused with the reason."""
    with pytest.raises(PgoutputError, match=problem):
        parse_connection(data, sender, state)  # type: ignore[arg-type]
