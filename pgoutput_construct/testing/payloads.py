"""Strategies for tests of a consumer: options, messages, payloads, frames, and damaged bytes."""

from collections.abc import Collection
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Unpack

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.testing.strategies import any_of
from pgoutput_construct.wire.connection_definitions import DEFINITIONS as CONNECTION
from pgoutput_construct.wire.connection_messages import ConnectionMessage
from pgoutput_construct.wire.definitions import DEFINITIONS
from pgoutput_construct.wire.engine import FRAME_PARAMETERS, build, frame_parameters
from pgoutput_construct.wire.frame_definitions import DEFINITIONS as FRAMES
from pgoutput_construct.wire.options import Options, combinations
from pgoutput_construct.wire.options import options as parse_options
from pgoutput_construct.wire.protocol import SINCE, MoreOptions, ParseOptions, Streaming

if TYPE_CHECKING:
    from pgoutput_construct.wire.frames import Frame
    from pgoutput_construct.wire.messages import PgoutputMessage

__all__ = [
    "ParseOptions",
    "connection_messages",
    "damaged",
    "frames",
    "messages",
    "options",
    "options_and_messages",
    "payloads",
]


def options() -> SearchStrategy[ParseOptions]:
    """Return every protocol version, streaming option and stream state that PostgreSQL can combine."""
    return st.sampled_from(list(combinations()))


def messages(
    proto_version: int = 1,
    streaming: Streaming = "off",
    in_stream: bool = False,
    *,
    kinds: Collection[type["PgoutputMessage"] | str] | None = None,
    **others: Unpack[MoreOptions],
) -> SearchStrategy[Any]:
    """Return the messages that can be sent under the options, each class with the same probability.

    Args:
        proto_version: The option proto_version of START_REPLICATION.
        streaming: The option streaming of START_REPLICATION.
        in_stream: Whether the messages are between Stream Start and Stream Stop.
        kinds: The requested classes, or their names; None: all that the options permit.
        others: Options that later versions of the protocol added.

    Raises PgoutputError for an unknown class, or one that is not sent under the options.

    >>> updates = messages(2, "on", in_stream=True, kinds=["Update"])
    >>> type(hypothesis.find(updates, lambda message: True)).__name__
    'Update'
    """
    given = parse_options(proto_version, streaming, in_stream, **others)
    requested = _KINDS if kinds is None else [_kind(kind) for kind in kinds]
    can = [cls for cls in requested if given.refusal(cls) is None and proto_version >= SINCE.get(cls, 0)]
    missing = [cls.__name__ for cls in requested if cls not in can]
    if kinds is not None and missing:
        under = f"proto_version={proto_version}, streaming={streaming!r}"
        raise PgoutputError(f"{' and '.join(missing)} cannot be sent under {under}: request other kinds")
    return _one_of(tuple(can), given)


@lru_cache(maxsize=1024)
def _one_of(classes: tuple[type["PgoutputMessage"], ...], given: Options) -> SearchStrategy[Any]:
    """Return the messages of some classes; streams ask for the same ones again for each message that they draw."""
    return st.one_of([any_of(cls, DEFINITIONS[cls], given.parameters()) for cls in classes])


_KINDS = tuple(DEFINITIONS)


def _kind(kind: type["PgoutputMessage"] | str) -> type["PgoutputMessage"]:
    for cls in _KINDS:
        if kind in (cls, cls.__name__):
            return cls
    raise PgoutputError(f"{kind!r} is not a message: write one of {', '.join(cls.__name__ for cls in _KINDS)}")


def options_and_messages() -> SearchStrategy[tuple[ParseOptions, "PgoutputMessage"]]:
    """Return options, each with a message that can be sent under them."""
    return options().flatmap(lambda given: st.tuples(st.just(given), messages(**given._asdict())))


def payloads() -> SearchStrategy[tuple[ParseOptions, bytes]]:
    """Return options, each with the bytes of a message that can be sent under them."""
    return options_and_messages().map(lambda pair: (pair[0], build(pair[1], **pair[0]._asdict())))


def frames(
    proto_version: int = 1, streaming: Streaming = "off", **others: Unpack[MoreOptions]
) -> "SearchStrategy[Frame]":
    """Return the frames of the envelope, each class with the same probability; the options are those of parse_frame."""
    given = dict(zip(FRAME_PARAMETERS, frame_parameters(proto_version, streaming, **others), strict=True))
    return st.one_of([any_of(cls, definition, given) for cls, definition in FRAMES.items()])


def connection_messages() -> SearchStrategy[ConnectionMessage]:
    """Return the frontend and backend messages of a connection, each class with the same probability."""
    return st.one_of([any_of(cls, definition, {}) for cls, definition in CONNECTION.items()])


@st.composite
def damaged(draw: st.DrawFn, whole: SearchStrategy[bytes]) -> bytes:
    """Return bytes of ``whole`` with some of them replaced, removed or added."""
    data = bytearray(draw(whole))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=2))
    return bytes(data)
