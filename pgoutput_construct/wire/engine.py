"""Parse and build: one message, or one frame of the CopyData envelope.

The fast engine decides, the reference explains. A generated codec reads the bytes first. If it rejects them, the
construct definitions read the same bytes and raise DecodeError with path and offset, to which this module adds a hint
at the likely mistake (hexadecimal text, a whole frame, the wrong stream state). If the definitions accept what the
codec rejects, the two disagree, and that is reported as EngineError. Building works alike.

Options are checked once: an ``Engine`` binds the parameters of the layouts into the codec's functions, and engines are
cached by their options.
"""

from __future__ import annotations  # so that help(parse) names PgoutputMessage instead of listing its classes

from functools import lru_cache
from inspect import signature
from typing import TYPE_CHECKING, Any, Final

from pgoutput_construct.errors import DecodeError, EncodeError, PgoutputError
from pgoutput_construct.wire import codec, frame_codec, frames, messages
from pgoutput_construct.wire.codec_runtime import PAD, REJECTIONS, Reject, bound, read_prefix, read_whole
from pgoutput_construct.wire.options import STATE_PARAMETERS, Options, noun, options
from pgoutput_construct.wire.protocol import LAID_OUT_BY_STATE, STATES
from pgoutput_construct.wire.reference import Definitions, Reference, payload_bytes
from pgoutput_construct.wire.spec_engines import disagree

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Unpack

    from pgoutput_construct.wire.frames import Frame
    from pgoutput_construct.wire.messages import PgoutputMessage
    from pgoutput_construct.wire.protocol import MoreOptions, Streaming

__all__ = [
    "FRAMES",
    "FRAME_PARAMETERS",
    "MESSAGES",
    "Engine",
    "build",
    "build_frame",
    "engine",
    "explain",
    "frame_parameters",
    "parse",
    "parse_frame",
    "parse_prefix",
    "refused",
]

MESSAGES: Final = Reference(messages.BY_TAG, Definitions(f"{__package__}.definitions"))
"""The reference engine of messages."""
FRAMES: Final = Reference(frames.BY_TAG, Definitions(f"{__package__}.frame_definitions"))
"""The reference engine of frames."""
FRAME_PARAMETERS: Final = tuple(signature(next(iter(frame_codec.READERS.values()))).parameters)[3:]
"""The parameters of the frames' layouts, in the order of the codec's arguments; empty if no field has a condition."""


class Engine:
    """The fast engine for one set of options; ``engine`` creates and caches them."""

    __slots__ = ("_builders", "_readers", "options")

    def __init__(self, given: Options) -> None:
        self.options = given
        """The options, checked."""
        said = [cls for cls in messages.BY_TAG.values() if _unsaid(given, cls) is None]
        # Options that the client did not request matter to parse alone: whoever builds decides what is sent.
        self._builders = {cls: bound(codec.BUILDERS[cls], given.values) for cls in said}
        tags = [cls.TAG[0] for cls in said if given.refusal(cls) is None]
        self._readers = {tag: bound(codec.READERS[tag], given.values) for tag in tags}

    def parse(self, payload: bytes | bytearray | memoryview) -> PgoutputMessage:
        """Return the message in a payload; see the function ``parse``."""
        data = payload if type(payload) is bytes else payload_bytes(payload)
        try:
            message: PgoutputMessage
            message, end = self._readers[data[0]](data + PAD, 0, len(data))
            if end != len(data):
                raise Reject
        except REJECTIONS:
            raise explain(data, self.options) from None
        return message

    def parse_prefix(self, data: bytes, start: int) -> tuple[PgoutputMessage, int]:
        """Return the message at an offset, and its size in bytes; see the function ``parse_prefix``."""
        if type(start) is not int or start < 0:
            raise PgoutputError(f"start must be an offset in data, an int of at least 0, not {start!r:.40}")
        raw = data if type(data) is bytes else payload_bytes(data)
        try:
            return read_prefix(self._readers, raw, start)
        except REJECTIONS:
            if refusal := refused(raw[start : start + 1], self.options):
                raise refusal from None
            return MESSAGES.parse_prefix(raw, start, self.options.parameters())

    def build(self, message: PgoutputMessage) -> bytes:
        """Return the bytes of a message; see the function ``build``."""
        try:
            data: bytes = self._builders[type(message)](message)
        except Exception:  # REJECTIONS, and whatever a user's object raises
            cls = type(message)
            if cls in codec.BUILDERS and (reason := _unsaid(self.options, cls)):
                raise EncodeError(reason, message=cls.__name__) from None
            disagree(message, MESSAGES.build(message, self.options.parameters()))
        return data


_engine: Final = lru_cache(maxsize=1024, typed=True)(Engine)

_KNOWN: Final[dict[tuple[int, str, bool | None], Engine]] = {}
"""Fast-path cache of engines, keyed by raw arguments: skips the validation in ``options``."""


def _known(proto_version: int, streaming: str, in_stream: bool | None, others: Mapping[str, Any]) -> Engine:
    try:
        found = _KNOWN[proto_version, streaming, in_stream]
    except (KeyError, TypeError):  # TypeError: an unhashable argument, which ``options`` refuses
        return engine(proto_version, streaming, in_stream, **others)
    plain = type(proto_version) is int and not others
    return found if plain else engine(proto_version, streaming, in_stream, **others)


def engine(
    proto_version: int = 1,
    streaming: str = "off",
    in_stream: bool | None = None,
    **others: Unpack[MoreOptions],
) -> Engine:
    """Return the fast engine for the options of ``parse``; raise PgoutputError for options that PostgreSQL refuses.

    Args:
        proto_version: As of ``parse``.
        streaming: As of ``parse``.
        in_stream: As of ``parse``.
        others: As of ``parse``.
    """
    found = _engine(options(proto_version, streaming, in_stream, **others))
    if not others and in_stream in (None, False, True):
        _KNOWN[proto_version, streaming, in_stream] = found
    return found


def parse(
    payload: bytes | bytearray | memoryview,
    proto_version: int = 1,
    streaming: Streaming = "off",
    in_stream: bool | None = None,
    **others: Unpack[MoreOptions],
) -> PgoutputMessage:
    """Return the message in a payload (the data of one XLogData, or one row of the SQL interface).

    Strict: truncated, trailing or unknown bytes, values that PostgreSQL does not define, and messages that are not sent
    under the options are errors.

    Args:
        payload: The bytes of one message.
        proto_version: The option proto_version of START_REPLICATION.
        streaming: The option streaming of START_REPLICATION.
        in_stream: Whether the message is between Stream Start and Stream Stop, which Session keeps track of. Required
            only if the message's layout depends on it: with streaming, and not for messages laid out alike.
        others: Options and stream states that later versions of the protocol added.

    Raises:
        DecodeError: With the path of the field and the offset in bytes.
        PgoutputError: Options that PostgreSQL refuses.

    Source: PostgreSQL's documentation, "Logical Replication Message Formats".

    Examples:
        >>> parse(bytes.fromhex("49 00004001 4e 0002 74 00000001 35 6e"))
        Insert(xid=None, relation_oid=16385, new=(b'5', None))
    """
    return _known(proto_version, streaming, in_stream, others).parse(payload)


def parse_prefix(
    data: bytes,
    start: int = 0,
    proto_version: int = 1,
    streaming: Streaming = "off",
    in_stream: bool | None = None,
    **others: Unpack[MoreOptions],
) -> tuple[PgoutputMessage, int]:
    """Return the message that starts at ``start``, and its size in bytes; the bytes after it are not read.

    Every message determines its own end, so a file without lengths, such as pg_recvlogical writes, can be split.

    Args:
        data: Bytes that contain a message at ``start``, with anything before and after it.
        start: Offset of its first byte.
        proto_version: As of ``parse``.
        streaming: As of ``parse``.
        in_stream: As of ``parse``.
        others: As of ``parse``.

    Raises:
        IncompleteError: ``data`` ends before the message does; a DecodeError.
        DecodeError: As of ``parse``; offsets count from the start of the message.

    Examples:
        >>> parse_prefix(bytes.fromhex("49 00004001 4e 0001 6e") + b"what follows")
        (Insert(xid=None, relation_oid=16385, new=(None,)), 9)
    """
    return _known(proto_version, streaming, in_stream, others).parse_prefix(data, start)


def build(
    message: PgoutputMessage,
    proto_version: int = 1,
    streaming: Streaming = "off",
    in_stream: bool | None = None,
    **others: Unpack[MoreOptions],
) -> bytes:
    """Return the bytes of ``message``, the inverse of parse under the same options.

    Args:
        message: An object of a message class.
        proto_version: As of ``parse``.
        streaming: As of ``parse``.
        in_stream: As of ``parse``.
        others: As of ``parse``.

    Raises:
        EncodeError: A value that the field, the options or the stream state cannot carry, with the field's path.

    Examples:
        >>> build(messages.Insert(xid=None, relation_oid=16385, new=(b"5", None))).hex(" ", -4)
        '49000040 014e0002 74000000 01356e'
    """
    return _known(proto_version, streaming, in_stream, others).build(message)


def parse_frame(
    data: bytes | bytearray | memoryview,
    proto_version: int = 1,
    streaming: Streaming = "off",
    **others: Unpack[MoreOptions],
) -> Frame:
    """Return the frame in one CopyData of a replication connection, sent by either side; raise DecodeError.

    Args:
        data: The whole content of the CopyData.
        proto_version: As of ``parse``.
        streaming: As of ``parse``.
        others: As of ``parse``.

    Source: PostgreSQL's documentation, "Streaming Replication Protocol", START_REPLICATION.

    Examples:
        >>> parse_frame(bytes.fromhex("6b 0000000001000028 0002d79883d20000 01")).wal_end
        Lsn('0/1000028')
    """
    data, given = payload_bytes(data), frame_parameters(proto_version, streaming, **others)
    try:
        frame: Frame = read_whole(frame_codec.READERS, data, given)
    except REJECTIONS:
        try:
            accepted = FRAMES.parse(data, dict(zip(FRAME_PARAMETERS, given, strict=True)))
        except DecodeError as error:
            raise _hinted(error, hint_for_frame(data)) from error
        disagree(data, accepted)
    return frame


def build_frame(
    frame: Frame, proto_version: int = 1, streaming: Streaming = "off", **others: Unpack[MoreOptions]
) -> bytes:
    """Return the bytes of a frame, to be sent as one CopyData; raise EncodeError.

    Args:
        frame: An object of a frame class.
        proto_version: As of ``parse``.
        streaming: As of ``parse``.
        others: As of ``parse``.
    """
    given = frame_parameters(proto_version, streaming, **others)
    try:
        data: bytes = frame_codec.BUILDERS[type(frame)](frame, *given)
    except Exception:  # REJECTIONS, and whatever a user's object raises
        disagree(frame, FRAMES.build(frame, dict(zip(FRAME_PARAMETERS, given, strict=True))))
    return data


def frame_parameters(proto_version: int = 1, streaming: str = "off", **others: Any) -> tuple[int, ...]:
    """Return the values of FRAME_PARAMETERS under options; raise PgoutputError for options that are refused."""
    try:
        return _frame_parameters(proto_version, streaming, **others)
    except TypeError:  # an unhashable argument, which ``options`` refuses
        return _frame_values(proto_version, streaming, **others)


def _frame_values(proto_version: int, streaming: str, **others: Any) -> tuple[int, ...]:
    given = options(proto_version, streaming, **others).parameters()
    return tuple(given[name] for name in FRAME_PARAMETERS)


_frame_parameters: Final = lru_cache(maxsize=1024, typed=True)(_frame_values)


def explain(data: bytes, given: Options) -> DecodeError:
    """Return the definitions' error for bytes that the codec rejected; raise EngineError if they accept them."""
    if refusal := refused(data[:1], given):
        return refusal
    try:
        accepted = MESSAGES.parse(data, given.parameters())
    except DecodeError as error:
        return _hinted(error, hint_for_message(data, given, MESSAGES, FRAMES))
    return disagree(data, accepted)


def refused(tag: bytes, given: Options) -> DecodeError | None:
    """Return why a message with this tag is refused under the options before its bytes are read, None if it is not."""
    cls = messages.BY_TAG.get(tag)
    reason = None if cls is None else _unsaid(given, cls) or given.refusal(cls)
    return None if cls is None or reason is None else DecodeError(reason, message=cls.__name__, offset=0)


def _unsaid(given: Options, cls: type[PgoutputMessage]) -> str | None:
    unsaid = sorted(LAID_OUT_BY_STATE.get(cls, frozenset()) & given.unsaid)
    said = " and ".join(unsaid)
    return f"its layout depends on the stream state: use Session, or pass {said}" if unsaid else None


def _hinted(error: DecodeError, hint: str | None) -> DecodeError:
    if hint is None:
        return error
    return type(error)(f"{error.reason}; {hint}", message=error.message, path=error.path, offset=error.offset)


_DIGITS = frozenset(b"0123456789abcdefABCDEF")


def hint_for_message(data: bytes, given: Options, reference: Reference, envelope: Reference) -> str | None:
    """Return the likely mistake if a payload is not a message, such as a whole frame; None if none is recognised."""
    cls = messages.BY_TAG.get(data[:1])
    if cls is None:
        frame = frames.BY_TAG.get(data[:1])
        if frame is not None and _accepts(envelope, data, {}):
            rest = ": parse_frame(data).data is the message" if "data" in frame.__dataclass_fields__ else ""
            article = "an" if frame.__name__[0] in "AEIOX" else "a"
            return f"this is {article} {frame.__name__} frame{rest}"
        return _hexadecimal(data, messages.BY_TAG)
    before = given.parameters()
    for sets in dict.fromkeys(STATES.values()) if cls in LAID_OUT_BY_STATE else ():
        others = {name: name in sets for name in STATE_PARAMETERS if (name in sets) != before[name]}
        if others and _accepts(reference, data, before | others):
            said = ", ".join(f"{name}={value}" for name, value in others.items())
            where = " and ".join(f"{'inside' if on else 'outside'} a {noun(name)}" for name, on in others.items())
            return f"with {said} these bytes are a valid {cls.__name__}: {where}?"
    return None


def hint_for_frame(data: bytes) -> str | None:
    """Return the likely mistake if bytes are not a frame, such as a bare message; None if none is recognised."""
    if data[:1] in messages.BY_TAG and data[:1] not in frames.BY_TAG:
        return f"{messages.BY_TAG[data[:1]].__name__} is a message: parse reads the data of an XLogData frame"
    return _hexadecimal(data, frames.BY_TAG)


def _hexadecimal(data: bytes, by_tag: Mapping[bytes, type]) -> str | None:
    digits = data.removeprefix(b"\\x")
    if len(digits) < 2 or not _DIGITS.issuperset(digits[:64]) or bytes([int(digits[:2], 16)]) not in by_tag:
        return None
    return "this is hexadecimal text: bytes.fromhex() gives the bytes"


def _accepts(reference: Reference, data: bytes, parameters: Mapping[str, Any]) -> bool:
    try:
        reference.parse(data, parameters)
    except PgoutputError:
        return False
    return True
