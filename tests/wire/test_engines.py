"""The fast engine and the reference agree on what they accept, what they refuse, and what they give."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pgoutput_construct as pgo
from pgoutput_construct import testing
from pgoutput_construct.testing import ParseOptions
from pgoutput_construct.wire import codec, frame_codec
from pgoutput_construct.wire.codec_runtime import REJECTIONS, read_whole
from pgoutput_construct.wire.engine import FRAMES, MESSAGES, engine
from pgoutput_construct.wire.options import options as checked
from tests.wire.samples import SAMPLES

REFUSED = "refused"


def outcome(call: Callable[[], Any]) -> str:
    """Return what a call gives, types of values included, or that it refuses."""
    try:
        return repr(call())
    except (pgo.DecodeError, pgo.EncodeError, *REJECTIONS):
        return REFUSED


def both_parse(data: bytes, options: ParseOptions) -> tuple[str, str]:
    """Return the outcomes of the fast engine and of the reference."""
    parameters = checked(**options._asdict()).parameters()
    fast = outcome(lambda: read_whole(codec.READERS, data, tuple(parameters.values())))
    return fast, outcome(lambda: MESSAGES.parse(data, parameters))


def both_build(message: Any, options: ParseOptions) -> tuple[str, str]:
    """Return the outcomes of the fast engine and of the reference."""
    parameters = checked(**options._asdict()).parameters()
    fast = outcome(lambda: codec.BUILDERS[type(message)](message, *parameters.values()))
    return fast, outcome(lambda: MESSAGES.build(message, parameters))


@pytest.mark.parametrize("name", SAMPLES)
def test_engines_agree_on_samples(name: str) -> None:
    """Samples, each prefix of them and each of them with a byte more, under their own options and under none."""
    options, data, message = SAMPLES[name]
    for given_options in (options, ParseOptions()):
        for size in range(len(data) + 1):
            fast, reference = both_parse(data[:size], given_options)
            assert fast == reference
        fast, reference = both_parse(data + b"\0", given_options)
        assert fast == reference == REFUSED
        fast, reference = both_build(message, given_options)
        assert fast == reference


@pytest.mark.parametrize("name", SAMPLES)
def test_engines_agree_on_every_byte_of_a_sample(name: str) -> None:
    """Each byte of a sample replaced by values that flags, tags and counts must not have: no check is missing."""
    options, data, _ = SAMPLES[name]
    for at in range(1, len(data)):
        for value in (0, 1, 2, 3, 4, 0x4E, 0x64, 0x7F, 0x80, 0xFF):
            changed = data[:at] + bytes([value]) + data[at + 1 :]
            fast, reference = both_parse(changed, options)
            assert fast == reference, f"byte {at} = {value}"


@pytest.mark.parametrize("name", [name for name, sample in SAMPLES.items() if sample[0] == ParseOptions()])
def test_kernels_agree_on_every_byte_of_a_sample(name: str) -> None:
    """The columnar kernels accept and refuse the same of them."""
    from pgoutput_construct.columnar import index_batch

    data = SAMPLES[name][1]
    changed = [
        data[:at] + bytes([value]) + data[at + 1 :]
        for at in range(1, len(data))
        for value in (0, 1, 2, 3, 4, 0x4E, 0x64, 0x7F, 0x80, 0xFF)
    ]
    expected = [both_parse(payload, ParseOptions())[1] != REFUSED for payload in changed]
    assert index_batch(changed).valid.tolist() == expected


@given(testing.payloads())
def test_engines_agree_on_valid_messages(pair: tuple[ParseOptions, bytes]) -> None:
    """What was built is accepted by both and gives the same object."""
    fast, reference = both_parse(pair[1], pair[0])
    assert fast == reference != REFUSED


@given(testing.options(), testing.damaged(testing.payloads().map(lambda pair: pair[1])))
def test_engines_agree_on_damaged_messages(options: ParseOptions, data: bytes) -> None:
    """Mutated bytes are refused by both, or give the same object."""
    fast, reference = both_parse(data, options)
    assert fast == reference


@given(testing.options(), testing.payloads(), st.integers(0, 200), st.binary(max_size=9))
def test_engines_agree_on_cut_and_extended_messages(
    options: ParseOptions, pair: tuple[ParseOptions, bytes], size: int, more: bytes
) -> None:
    """Cut and extended bytes are refused by both, or give the same object."""
    fast, reference = both_parse(pair[1][:size] + more, options)
    assert fast == reference


@given(testing.options(), st.sampled_from(sorted(codec.READERS)), st.binary(max_size=40))
def test_engines_agree_on_random_bytes(options: ParseOptions, kind: int, data: bytes) -> None:
    """Random bytes are refused by both, or give the same object."""
    fast, reference = both_parse(bytes([kind]) + data, options)
    assert fast == reference


JUNK = st.one_of(
    st.none(), st.integers(), st.floats(), st.text(max_size=4), st.binary(max_size=4), st.booleans(),
    st.lists(st.none() | st.integers() | st.binary(max_size=2) | st.text(max_size=2), max_size=3),
    st.lists(st.none() | st.just(pgo.UNCHANGED) | st.binary(max_size=2), max_size=3).map(tuple),
    st.sampled_from(["K", "O", "N", "d", "\0", "\ud800", "\udcc3\udca9", pgo.UNCHANGED, pgo.Binary(b"x")]),
    st.just((pgo.RelationColumn(0, "c", 1, -1),)), st.just((pgo.RelationColumn(2, "c", 1, -1),)),
    st.just(({"flags": 0, "name": "c", "type_oid": 1, "type_modifier": -1},)),
)  # fmt: skip


@given(testing.options(), testing.options_and_messages(), st.data())
def test_engines_agree_on_values_that_cannot_be(
    options: ParseOptions, pair: tuple[ParseOptions, Any], draw: st.DataObject
) -> None:
    """A message with any value in any field is refused by both, or gives the same bytes."""
    message = pair[1]
    values = {name: getattr(message, name) for name in message.__dataclass_fields__ if name != "TAG"}
    for name in draw.draw(st.sets(st.sampled_from(sorted(values)), max_size=2)) if values else ():
        values[name] = draw.draw(JUNK)
    fast, reference = both_build(type(message)(**values), options)
    assert fast == reference


@given(testing.damaged(testing.frames().map(pgo.build_frame)))
def test_engines_agree_on_frames(data: bytes) -> None:
    """Mutated frames are refused by both, or give the same object."""
    fast = outcome(lambda: read_whole(frame_codec.READERS, data))
    assert fast == outcome(lambda: FRAMES.parse(data, {}))


def test_disagreement_is_loud(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that only the reference accepts raises EngineError."""
    monkeypatch.setitem(engine(2)._readers, ord("E"), None)  # type: ignore[misc, arg-type]
    with pytest.raises(pgo.EngineError, match="please report"):
        pgo.parse(b"E", 2)
