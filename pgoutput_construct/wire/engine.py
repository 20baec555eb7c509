"""Parse and build: one message, or one frame of the envelope.

The fast engine decides, the reference explains: what the codec does not accept, the construct definitions read (or
build) again, and they raise the error with its path and offset.
"""

from typing import Any, NoReturn

from pgoutput_construct.errors import EngineError
from pgoutput_construct.wire import codec, definitions, frame_codec, frame_definitions, frames, messages
from pgoutput_construct.wire.fast import REJECTIONS, read_prefix
from pgoutput_construct.wire.frames import Frame
from pgoutput_construct.wire.messages import PgoutputMessage
from pgoutput_construct.wire.options import KNOWN, options
from pgoutput_construct.wire.reference import Reference, payload_bytes

__all__ = ["FRAMES", "MESSAGES", "build", "build_frame", "parse", "parse_frame", "parse_prefix"]

MESSAGES = Reference(messages.BY_TAG, definitions.DEFINITIONS)
"""The reference engine of messages."""
FRAMES = Reference(frames.BY_TAG, frame_definitions.DEFINITIONS)
"""The reference engine of frames."""

_PARSERS, _BUILDERS = codec.PARSERS, codec.BUILDERS


def parse(
    payload: bytes | bytearray | memoryview, proto_version: int = 1, streaming: str = "off", in_stream: bool = False
) -> PgoutputMessage:
    """Return the message in a payload (the data of one XLogData, or one row of the SQL interface).

    ``proto_version`` and ``streaming`` are the options given to START_REPLICATION; ``in_stream`` says whether the
    message stands between Stream Start and Stream Stop, which Session keeps track of.

    Strict: truncated, trailing or unknown bytes, values that PostgreSQL does not define, and messages that the
    protocol version does not have raise DecodeError with the field's path and offset in bytes.
    Source: PostgreSQL's documentation, "Logical Replication Message Formats".
    """
    data = payload if type(payload) is bytes else payload_bytes(payload)
    try:
        version, inside, parallel = KNOWN[proto_version, streaming, in_stream]
        message: PgoutputMessage = _PARSERS[data[0]](data, version, inside, parallel)
    except REJECTIONS:
        given = options(proto_version, streaming, in_stream)
        message = MESSAGES.parse(data, given.parameters())
        if type(in_stream) is bool:
            _disagree(data, message)
    return message


def parse_prefix(
    data: bytes, start: int = 0, proto_version: int = 1, streaming: str = "off", in_stream: bool = False
) -> tuple[PgoutputMessage, int]:
    """Return the message that starts at ``start``, and how many bytes it takes; whatever follows it is not looked at.

    The messages say themselves where they end: that is how a file without lengths, as pg_recvlogical writes it, is
    taken apart. Raises IncompleteError (a DecodeError) where data ends before the message does, DecodeError as parse
    does; both give offsets from the start of the message.
    """
    raw = data if type(data) is bytes else payload_bytes(data)
    try:
        return read_prefix(codec.READERS, raw, start, KNOWN[proto_version, streaming, in_stream])
    except REJECTIONS:
        given = options(proto_version, streaming, in_stream)
        return MESSAGES.parse_prefix(raw, start, given.parameters())


def build(message: PgoutputMessage, proto_version: int = 1, streaming: str = "off", in_stream: bool = False) -> bytes:
    """Return the bytes of a message, the inverse of parse under the same options.

    A value that the field, the options or the stream state cannot carry raises EncodeError with the field's path.
    """
    try:
        version, inside, parallel = KNOWN[proto_version, streaming, in_stream]
        data: bytes = _BUILDERS[type(message)](message, version, inside, parallel)
    except Exception:  # REJECTIONS, and whatever an object of the user raises
        given = options(proto_version, streaming, in_stream)
        data = MESSAGES.build(message, given.parameters())
        if type(in_stream) is bool:
            _disagree(message, data)
    return data


def parse_frame(data: bytes | bytearray | memoryview) -> Frame:
    """Return the frame in one CopyData of a replication connection, sent by either side; raise DecodeError.

    Source: PostgreSQL's documentation, "Streaming Replication Protocol", START_REPLICATION.
    """
    data = payload_bytes(data)
    try:
        frame: Frame = frame_codec.PARSERS[data[0]](data)
    except REJECTIONS:
        _disagree(data, FRAMES.parse(data, {}))
    return frame


def build_frame(frame: Frame) -> bytes:
    """Return the bytes of a frame, to be sent as one CopyData; raise EncodeError."""
    try:
        data: bytes = frame_codec.BUILDERS[type(frame)](frame)
    except Exception:  # REJECTIONS, and whatever an object of the user raises
        _disagree(frame, FRAMES.build(frame, {}))
    return data


def _disagree(given: Any, accepted: Any) -> NoReturn:
    text = given.hex() if isinstance(given, bytes) else repr(given)
    problem = "the fast engine refuses what the definitions accept; please report this"
    raise EngineError(f"{problem}: {text:.2000} gives {accepted!r:.2000}")
