"""Strategies for those who test a consumer: options, messages, payloads, frames, and damaged bytes."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from pgoutput_construct.testing import frame_strategies, strategies
from pgoutput_construct.wire.engine import build
from pgoutput_construct.wire.frames import Frame
from pgoutput_construct.wire.messages import PgoutputMessage
from pgoutput_construct.wire.options import combinations
from pgoutput_construct.wire.options import options as parse_options
from pgoutput_construct.wire.protocol import ParseOptions

__all__ = ["ParseOptions", "damaged", "frames", "messages", "options", "options_and_messages", "payloads"]


def options() -> SearchStrategy[ParseOptions]:
    """Return every protocol version, streaming option and stream state that PostgreSQL can combine."""
    return st.sampled_from(list(combinations()))


def messages(proto_version: int = 1, streaming: str = "off", in_stream: bool = False) -> SearchStrategy[Any]:
    """Return the messages that can be sent under the options, of all kinds alike."""
    given = parse_options(proto_version, streaming, in_stream)
    kinds = [
        make(*given.values)
        for cls, (since, make) in strategies.STRATEGIES.items()
        if proto_version >= since and given.refusal(cls) is None
    ]
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
