"""A session knows its options and whether it is inside a stream."""

import pytest

import pgoutput_construct as pgo
from pgoutput_construct import Begin, Insert, Lsn, Session, StreamStart, StreamStop, Timestamp

START = StreamStart(753, 1)
INSIDE = Insert(754, 16385, (b"1",))
OUTSIDE = Insert(None, 16385, (b"1",))


def test_session_follows_the_stream() -> None:
    """The xid is read inside a stream and not outside; stream_xid is the top-level transaction's."""
    writer, reader = Session(2, "on"), Session(2, "on")
    payloads = [writer.build(message) for message in (OUTSIDE, START, INSIDE, StreamStop(), OUTSIDE)]
    seen = []
    for payload in payloads:
        message = reader.parse(payload)
        seen.append((message, reader.stream_xid))
    assert seen == [(OUTSIDE, None), (START, 753), (INSIDE, 753), (StreamStop(), None), (OUTSIDE, None)]


def test_stream_stop_without_a_start_is_refused() -> None:
    """A Stream Stop outside a stream cannot be."""
    with pytest.raises(pgo.ProtocolError, match="StreamStop outside a stream"):
        Session(2, "on").parse(b"E")


@pytest.mark.parametrize("message", [START, Begin(Lsn(1), Timestamp(0), 1), pgo.StreamAbort(1, 1)])
def test_message_never_sent_in_a_stream_is_refused_there(message: pgo.PgoutputMessage) -> None:
    """What cannot come inside a stream means that a Stream Stop was lost; the state stays as it was."""
    session = Session(2, "on")
    session.parse(pgo.build(START, 2))
    with pytest.raises(pgo.ProtocolError, match="inside the stream of xid 753"):
        session.parse(pgo.build(message, 2, "on", in_stream=True))
    assert session.stream_xid == 753
    assert session.parse(b"E") == StreamStop()


def test_error_leaves_the_state_as_it_was() -> None:
    """After a damaged Stream Start the session is still outside."""
    session = Session(2, "on")
    with pytest.raises(pgo.DecodeError):
        session.parse(b"S\0\0\0\1\2")
    assert not session.in_stream


@pytest.mark.parametrize(("version", "streaming"), [(1, "on"), (1, "parallel"), (3, "parallel")])
def test_options_that_postgresql_refuses_are_refused(version: int, streaming: str) -> None:
    """streaming needs version 2, and parallel version 4."""
    with pytest.raises(pgo.PgoutputError, match="needs proto_version"):
        Session(version, streaming)  # type: ignore[arg-type]
