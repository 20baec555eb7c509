"""Properties of every message under every option: round trips, and refusal of everything else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.vendor.pretty import pretty

import pgoutput_construct as pgo
from pgoutput_construct import testing
from pgoutput_construct.testing import ParseOptions
from pgoutput_construct.wire.options import options as parse_options

Pair = tuple[ParseOptions, bytes]


@given(testing.options_and_messages())
def test_parse_gives_back_what_was_built(pair: tuple[ParseOptions, pgo.PgoutputMessage]) -> None:
    """parse(build(message)) == message, types of values included."""
    options, message = pair
    again = pgo.parse(pgo.build(message, **options._asdict()), **options._asdict())
    assert repr(again) == repr(message)
    assert again == message


@given(testing.options_and_messages().map(lambda pair: pair[1]) | testing.frames())
def test_what_hypothesis_prints_can_be_pasted(message: pgo.PgoutputMessage | pgo.Frame) -> None:
    """The text of a failing example is an expression that makes the same message, types of values included."""
    pasted = eval(pretty(message), vars(pgo))
    assert repr(pasted) == repr(message)
    assert pasted == message


@given(testing.payloads())
def test_build_gives_back_what_was_parsed(pair: Pair) -> None:
    """build(parse(data)) == data."""
    options, data = pair
    assert pgo.build(pgo.parse(data, **options._asdict()), **options._asdict()) == data


@given(testing.payloads(), st.data())
def test_truncations_are_refused(pair: Pair, draw: st.DataObject) -> None:
    """No proper prefix of a message is a message."""
    options, data = pair
    size = draw.draw(st.integers(0, len(data) - 1))
    _refused(data[:size], options)


@given(testing.payloads(), st.binary(min_size=1, max_size=8))
def test_extensions_are_refused(pair: Pair, more: bytes) -> None:
    """No message followed by anything is a message."""
    options, data = pair
    _refused(data + more, options)


@given(testing.options(), testing.damaged(testing.payloads().map(lambda pair: pair[1])))
def test_damaged_bytes_rebuild_or_are_refused(options: ParseOptions, data: bytes) -> None:
    """Mutated bytes are refused, or are a message that builds to the same bytes."""
    _rebuilt_or_refused(data, options)


@given(testing.options(), st.binary(max_size=64))
def test_random_bytes_rebuild_or_are_refused(options: ParseOptions, data: bytes) -> None:
    """Random bytes are refused, or are a message that builds to the same bytes."""
    _rebuilt_or_refused(data, options)


@given(testing.options(), st.sampled_from(sorted("BMCORYIUDTSEcAbPKrp")), st.binary(max_size=64))
def test_random_bytes_of_a_known_kind_rebuild_or_are_refused(options: ParseOptions, kind: str, data: bytes) -> None:
    """Random bytes after a known tag are refused, or are a message that builds to the same bytes."""
    _rebuilt_or_refused(kind.encode() + data, options)


@given(testing.options(), testing.options_and_messages())
def test_message_under_other_options_builds_or_is_refused(
    options: ParseOptions, pair: tuple[ParseOptions, pgo.PgoutputMessage]
) -> None:
    """A message that other options cannot carry is an EncodeError; one that they can comes back as it was."""
    try:
        data = pgo.build(pair[1], **options._asdict())
    except pgo.EncodeError as error:
        assert error.path.startswith(type(pair[1]).__name__)
        return
    if parse_options(**options._asdict()).refusal(
        type(pair[1])
    ):  # who builds decides what comes; who parses has requested it
        with pytest.raises(pgo.DecodeError, match=r"is sent only if|belongs to protocol version"):
            pgo.parse(data, **options._asdict())
        return
    assert pgo.parse(data, **options._asdict()) == pair[1]


@given(testing.frames())
def test_frames_come_back(frame: pgo.Frame) -> None:
    """parse_frame(build_frame(frame)) == frame."""
    assert pgo.parse_frame(pgo.build_frame(frame)) == frame


@given(testing.damaged(testing.frames().map(pgo.build_frame)))
def test_damaged_frames_rebuild_or_are_refused(data: bytes) -> None:
    """Mutated frames are refused, or build to the same bytes."""
    try:
        frame = pgo.parse_frame(data)
    except pgo.DecodeError:
        return
    assert pgo.build_frame(frame) == data


def _refused(data: bytes, options: ParseOptions) -> None:
    try:
        message = pgo.parse(data, **options._asdict())
    except pgo.DecodeError as error:
        assert error.offset is not None
        assert 0 <= error.offset <= len(data)
        return
    raise AssertionError(f"{data.hex()} was taken for {message}")


def _rebuilt_or_refused(data: bytes, options: ParseOptions) -> None:
    try:
        message = pgo.parse(data, **options._asdict())
    except pgo.DecodeError:
        return
    assert pgo.build(message, **options._asdict()) == data
