"""What decides layouts from outside the bytes: one check for all who take options, and errors that name the mistake."""

from collections.abc import Callable
from typing import Any

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.changelog import StreamOptions
from pgoutput_construct.columnar import BatchDecoder
from pgoutput_construct.stream import RowReader
from pgoutput_construct.wire import engine, parse_prefix
from pgoutput_construct.wire import options as wire_options
from pgoutput_construct.wire.engine import FRAMES, MESSAGES
from pgoutput_construct.wire.options import Options, combinations, options

INSERT = pgo.Insert(None, 16385, (b"5",))
STREAMED = pgo.Insert(7, 16385, (b"5",))
PAYLOAD = pgo.build(INSERT)
START = pgo.build(pgo.StreamStart(7, 1), 2, "on")
FRAME = pgo.build_frame(pgo.XLogData(pgo.Lsn(1), pgo.Lsn(1), pgo.Timestamp(0), PAYLOAD))


def stream_options(proto_version: Any, streaming: Any) -> StreamOptions:
    """Options of a capture."""
    return StreamOptions(slot="s", publications=("p",), proto_version=proto_version, streaming=streaming)


TAKERS: dict[str, Callable[[Any, Any], Any]] = {
    "parse": lambda version, streaming: pgo.parse(PAYLOAD, version, streaming, False),
    "build": lambda version, streaming: pgo.build(INSERT, version, streaming, False),
    "Session": pgo.Session,
    "BatchDecoder": BatchDecoder,
    "StreamOptions": stream_options,
}


@pytest.mark.parametrize("take", TAKERS.values(), ids=TAKERS)
@pytest.mark.parametrize(
    ("version", "streaming", "problem"),
    [
        (1, "on", "streaming='on' needs proto_version 2"),
        (2, "parallel", "streaming='parallel' needs proto_version 4"),
        (2, "onn", "streaming must be 'off', 'on' or 'parallel', not 'onn'"),
        (99, "off", "proto_version must be one of"),
        (True, "off", "proto_version must be one of"),
        (2, ["on"], "must be"),
    ],
)
def test_refused_alike(take: Callable[[Any, Any], Any], version: Any, streaming: Any, problem: str) -> None:
    """Whatever takes options refuses what PostgreSQL would refuse, in the same words."""
    with pytest.raises(pgo.PgoutputError, match=problem):
        take(version, streaming)


@pytest.mark.parametrize("take", TAKERS.values(), ids=TAKERS)
def test_accepted_alike(take: Callable[[Any, Any], Any]) -> None:
    """Every combination that PostgreSQL has is taken."""
    for given in combinations():
        take(given.proto_version, given.streaming)


@pytest.mark.parametrize("message", [STREAMED, INSERT], ids=["inside", "outside"])
def test_stream_state_must_be_said_where_it_matters(message: pgo.Insert) -> None:
    """With streams allowed, a message that is laid out by the state is refused until the state is said."""
    inside = message.xid is not None
    payload = pgo.build(message, 2, "on", inside)
    with pytest.raises(pgo.DecodeError, match="use Session, or pass in_stream"):
        pgo.parse(payload, 2, "on")
    with pytest.raises(pgo.EncodeError, match="use Session, or pass in_stream"):
        pgo.build(message, 2, "on")
    assert pgo.parse(payload, 2, "on", inside) == message


def test_stream_state_may_be_left_out_where_it_cannot_matter() -> None:
    """Without streaming no message is in a stream, and a Begin has the same layout everywhere."""
    begin = pgo.Begin(pgo.Lsn(1), pgo.Timestamp(2), 3)
    assert pgo.parse(PAYLOAD, 4) == INSERT
    assert pgo.parse(pgo.build(begin, 4, "parallel"), 4, "parallel") == begin


def test_stream_start_needs_streaming() -> None:
    """Parse and Session refuse a Stream Start under streaming off; one error names all required options."""
    for version, remedy in ((1, "pass proto_version=2, streaming='on'"), (2, "is on: pass streaming='on'")):
        for parse in (pgo.Session(version).parse, lambda data, version=version: pgo.parse(data, version)):
            with pytest.raises(pgo.DecodeError, match=f"{remedy}$"):
                parse(START)


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: pgo.parse(FRAME), r"an XLogData frame: parse_frame\(data\)\.data"),
        (lambda: pgo.parse_frame(PAYLOAD), "Insert is a message: parse reads"),
        (lambda: pgo.parse(PAYLOAD.hex().encode()), r"hexadecimal text: bytes\.fromhex"),
        (lambda: pgo.parse(b"\\x" + PAYLOAD.hex().encode()), r"hexadecimal text: bytes\.fromhex"),
        (lambda: pgo.parse(PAYLOAD.hex()), r"not str: bytes\.fromhex"),  # type: ignore[arg-type]
        (lambda: pgo.parse_frame(FRAME.hex().encode()), r"hexadecimal text: bytes\.fromhex"),
        (lambda: pgo.parse(pgo.build(STREAMED, 2, "on", True), 2, "on", False), "in_stream=True .*inside a stream"),
        (lambda: pgo.parse(PAYLOAD, 2, "on", True), "in_stream=False .*outside a stream"),
    ],
)
def test_errors_name_the_likely_mistake(call: Callable[[], Any], hint: str) -> None:
    """A frame, a payload, hexadecimal text, a message of the other stream state: the error has a hint."""
    with pytest.raises(pgo.DecodeError, match=hint):
        call()


@pytest.mark.parametrize("payload", [b"", b"4", b"zz", b"w", b"\\x", PAYLOAD[:-1]])
def test_no_hint_where_none_fits(payload: bytes) -> None:
    """Nothing is guessed of bytes that are just damaged."""
    with pytest.raises(pgo.DecodeError) as caught:
        pgo.parse(payload)
    assert not any(word in str(caught.value) for word in ("hexadecimal", "frame", "inside a stream"))


def test_hints_name_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state that is not a stream is named as what it is, and only what must change."""
    given = options(2, "on", True)
    more = Options((*given.values, False), given.off, given.unsaid)
    monkeypatch.setattr(wire_options, "PARAMETERS", (*wire_options.PARAMETERS, "in_bulk"))  # type: ignore[attr-defined]
    monkeypatch.setattr(engine, "STATE_PARAMETERS", ("in_stream", "in_bulk"))
    monkeypatch.setattr(engine, "STATES", {"idle": (), "stream": ("in_stream",), "bulk": ("in_stream", "in_bulk")})
    monkeypatch.setattr(engine, "_accepts", lambda reference, data, parameters: parameters["in_bulk"])
    hint = engine.hint_for_message(PAYLOAD, more, MESSAGES, FRAMES)
    assert hint == "with in_bulk=True these bytes are a valid Insert: inside a bulk?"


def test_unknown_option() -> None:
    """An option that the specification does not have is refused by name."""
    with pytest.raises(pgo.PgoutputError, match="unknown option 'compression': the options are proto_version"):
        options(1, "off", None, compression=True)


@pytest.mark.parametrize(
    "call",
    [
        lambda: pgo.parse(PAYLOAD, 2, "on", "no"),  # type: ignore[arg-type]
        lambda: parse_prefix(PAYLOAD, -3),
        lambda: parse_prefix(PAYLOAD, "a"),  # type: ignore[arg-type]
        lambda: StreamOptions(slot="s", publications=5),  # type: ignore[arg-type]
        lambda: StreamOptions(slot="s", publications="p"),  # type: ignore[arg-type]
        lambda: RowReader().read(None),  # type: ignore[arg-type]
        lambda: pgo.Session().build(5),  # type: ignore[arg-type]
    ],
)
def test_nothing_else_escapes(call: Callable[[], Any]) -> None:
    """What is no option, no position and no message is refused with an error of ours."""
    with pytest.raises(pgo.PgoutputError):
        call()
