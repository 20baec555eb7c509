"""A session: the options of START_REPLICATION, and whether the next message is inside a stream."""

from typing import TYPE_CHECKING, Any, Final, Unpack

from pgoutput_construct.stream.state import CHANGES_SCOPE, StreamState
from pgoutput_construct.wire.engine import Engine, engine
from pgoutput_construct.wire.protocol import STATES, TRANSITIONS, MoreOptions, Streaming

if TYPE_CHECKING:
    from pgoutput_construct.wire.messages import PgoutputMessage

__all__ = ["Session"]

_FOLLOWED: Final = frozenset(
    cls
    for cls, steps in TRANSITIONS.items()
    if cls in CHANGES_SCOPE or {STATES[state] for state in steps} != set(STATES.values())
)
"""The messages that change the stream state or are not permitted in every one; others need no state transition."""


class Session:
    """Parses (or builds) the messages of one replication connection in their order.

    Whether a message carries the xid of its transaction depends on the stream state, which follows from the messages
    before it. A session keeps that state and nothing else. A message that contradicts it raises ProtocolError: a Stream
    Stop without a Stream Start, or a Commit inside a stream. An error leaves the state unchanged.

    >>> session = Session(proto_version=2, streaming="on")
    >>> session.parse(bytes.fromhex("53 000002bc 01"))
    StreamStart(xid=700, first_segment=1)
    >>> session.in_stream
    True
    >>> session.parse(bytes.fromhex("49 000002bc 00004001 4e 0001 74 00000001 35")).xid
    700
    """

    def __init__(self, proto_version: int = 1, streaming: Streaming = "off", **others: Unpack[MoreOptions]) -> None:
        """Start a session; raise PgoutputError for options that PostgreSQL would refuse.

        Args:
            proto_version: The option proto_version of START_REPLICATION.
            streaming: The option streaming of START_REPLICATION.
            others: Options that later versions of the protocol added.
        """
        self.proto_version = proto_version
        self.streaming: Streaming = streaming
        self.others = others
        """Options that later versions of the protocol added."""
        self.state = StreamState()
        """The stream state before the next message."""
        self._engine = self._engine_here()

    @property
    def options(self) -> dict[str, Any]:
        """The options as keywords of ``parse``, without the stream state."""
        return {"proto_version": self.proto_version, "streaming": self.streaming, **self.others}

    @property
    def in_stream(self) -> bool:
        """Whether the next message is between Stream Start and Stream Stop."""
        return self.state.in_stream

    @property
    def stream_xid(self) -> int | None:
        """The top-level xid of the open stream, None outside of streams."""
        return self.state.stream_xid

    def parse(self, payload: bytes | bytearray | memoryview) -> "PgoutputMessage":
        """Parse the next message; raise DecodeError or ProtocolError."""
        message = self._engine.parse(payload)
        if type(message) in _FOLLOWED:
            self._advance(message)
        return message

    def build(self, message: "PgoutputMessage") -> bytes:
        """Build the next message; raise EncodeError or ProtocolError."""
        data = self._engine.build(message)
        self._advance(message)
        return data

    def follow(self, payload: bytes | bytearray | memoryview) -> None:
        """Continue after a message that the state does not permit, as if the connection had been lost before it."""
        self.state.follow(self._engine.parse(payload))
        self._engine = self._engine_here()

    def _advance(self, message: "PgoutputMessage") -> None:
        self.state.advance(message)
        if type(message) in CHANGES_SCOPE:
            self._engine = self._engine_here()

    def _engine_here(self) -> Engine:
        return engine(**self.options | self.state.parameters)
