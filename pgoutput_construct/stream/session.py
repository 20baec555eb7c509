"""A session: the options of START_REPLICATION, and whether the next message stands inside a stream."""

from pgoutput_construct.errors import PgoutputError, ProtocolError
from pgoutput_construct.wire.engine import build, parse
from pgoutput_construct.wire.messages import ENTERS, OPTION_VALUES, STATES, WITHIN, PgoutputMessage, StreamStart
from pgoutput_construct.wire.options import Streaming, options

__all__ = ["Session"]

_STREAM = next(state for state, sets in STATES.items() if sets == "in_stream")
_ANYWHERE = frozenset(kind for kind, within in WITHIN.items() if _STREAM in within and len(within) > 1)
"""The kinds that come inside streams as well as outside, and so tell nothing of them."""
_FIRST_VERSION = OPTION_VALUES["streaming"]
"""The protocol version that each value of streaming needs, as pgoutput_startup() checks it."""


class Session:
    """Parses (or builds) the messages of one replication connection in their order.

    Whether a message carries the xid of its transaction depends on the stream state, which only the messages before
    it tell; a session keeps that state, and no other. It raises ProtocolError where a message contradicts it: a
    Stream Stop without a Stream Start, or inside a stream what never stands there, such as a Commit. After any error
    its state is as before.
    """

    def __init__(self, proto_version: int = 1, streaming: Streaming = "off") -> None:
        """Raise PgoutputError for options that PostgreSQL would refuse."""
        options(proto_version, streaming)
        if proto_version < _FIRST_VERSION[streaming]:
            needed = _FIRST_VERSION[streaming]
            raise PgoutputError(f"streaming={streaming!r} needs proto_version {needed} or newer, not {proto_version}")
        self.proto_version = proto_version
        self.streaming = streaming
        self.stream_xid: int | None = None
        """The top-level xid of the stream that is open, None outside a stream."""

    @property
    def in_stream(self) -> bool:
        """Whether the next message stands between Stream Start and Stream Stop."""
        return self.stream_xid is not None

    def parse(self, payload: bytes | bytearray | memoryview) -> PgoutputMessage:
        """Return the next message; raise DecodeError or ProtocolError."""
        message = parse(payload, self.proto_version, self.streaming, self.stream_xid is not None)
        if type(message) not in _ANYWHERE:
            self._advance(message)
        return message

    def build(self, message: PgoutputMessage) -> bytes:
        """Return the bytes of the next message; raise EncodeError or ProtocolError."""
        data = build(message, self.proto_version, self.streaming, self.in_stream)
        self._advance(message)
        return data

    def _advance(self, message: PgoutputMessage) -> None:
        kind = type(message)
        within = WITHIN[kind]
        if self.in_stream and _STREAM not in within:
            raise ProtocolError(
                f"{kind.__name__} inside the stream of xid {self.stream_xid}: a Stream Stop must come before it"
            )
        if not self.in_stream and within == {_STREAM}:
            raise ProtocolError(f"{kind.__name__} outside a stream: a Stream Start must come before it")
        if isinstance(message, StreamStart):
            self.stream_xid = message.xid
        elif self.in_stream and ENTERS.get(kind, _STREAM) != _STREAM:
            self.stream_xid = None
