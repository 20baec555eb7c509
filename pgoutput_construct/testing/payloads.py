"""Strategies for those who test a consumer: options, messages, payloads, frames, and damaged bytes."""

from typing import Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from pgoutput_construct.testing import frame_strategies, strategies
from pgoutput_construct.wire.engine import build
from pgoutput_construct.wire.frames import Frame
from pgoutput_construct.wire.messages import OPTION_VALUES, PROTOCOL_VERSIONS, PgoutputMessage

__all__ = ["ParseOptions", "damaged", "frames", "messages", "options", "options_and_messages", "payloads"]


class ParseOptions(NamedTuple):
    """The keywords of parse and build; ``**options._asdict()`` passes them on."""

    proto_version: int = 1
    streaming: str = "off"
    in_stream: bool = False


def options() -> SearchStrategy[ParseOptions]:
    """Return every protocol version, streaming option and stream state that PostgreSQL can combine."""
    allowed = {
        version: [s for s, first in OPTION_VALUES["streaming"].items() if version >= first]
        for version in PROTOCOL_VERSIONS
    }
    pairs = [(version, streaming) for version, some in allowed.items() for streaming in some]
    rows = [ParseOptions(v, s, inside) for v, s in pairs for inside in ((False,) if s == "off" else (False, True))]
    return st.sampled_from(rows)


def messages(proto_version: int = 1, streaming: str = "off", in_stream: bool = False) -> SearchStrategy[Any]:
    """Return the messages that can be sent under the options, of all kinds alike."""
    given = proto_version, in_stream, streaming == "parallel"
    kinds = [make(*given) for since, make in strategies.STRATEGIES.values() if proto_version >= since]
    return st.one_of(kinds)


def options_and_messages() -> SearchStrategy[tuple[ParseOptions, PgoutputMessage]]:
    """Return options, each with a message that can be sent under them."""
    return options().flatmap(lambda given: st.tuples(st.just(given), messages(*given)))


def payloads() -> SearchStrategy[tuple[ParseOptions, bytes]]:
    """Return options, each with the bytes of a message that can be sent under them."""
    return options_and_messages().map(lambda pair: (pair[0], build(pair[1], *pair[0])))


def frames() -> SearchStrategy[Frame]:
    """Return the frames of the envelope, of all kinds alike."""
    return st.one_of([make() for _, make in frame_strategies.STRATEGIES.values()])


@st.composite
def damaged(draw: st.DrawFn, whole: SearchStrategy[bytes]) -> bytes:
    """Return bytes with some of them replaced, removed or added."""
    data = bytearray(draw(whole))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(data)))
        data[place : place + draw(st.integers(0, 2))] = draw(st.binary(max_size=2))
    return bytes(data)
