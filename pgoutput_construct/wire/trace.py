"""Which bytes are which field: the construct definitions parse, and a recorder notes what each primitive reads."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import IO, Any, NamedTuple, Unpack

from pgoutput_construct.errors import DecodeError
from pgoutput_construct.wire.connection_engine import CONNECTION, Role, begun, message_size
from pgoutput_construct.wire.connection_fields import FIELDS as CONNECTION_FIELDS
from pgoutput_construct.wire.engine import FRAME_PARAMETERS, FRAMES, MESSAGES, explain, frame_parameters, refused
from pgoutput_construct.wire.fields import FIELDS
from pgoutput_construct.wire.frame_fields import FIELDS as FRAME_FIELDS
from pgoutput_construct.wire.options import MoreOptions, options
from pgoutput_construct.wire.primitives import Primitive
from pgoutput_construct.wire.reference import Reference, path_text, payload_bytes
from pgoutput_construct.wire.spec_metadata import Described
from pgoutput_construct.wire.structures import Kind, Length

__all__ = ["FieldSpan", "Trace", "TraceFault", "trace", "trace_connection", "trace_frame"]


class FieldSpan(NamedTuple):
    """The bytes of one field."""

    path: str
    """The path in the message, as in errors: ``Insert.new.columns[0].data``."""
    key: str
    """The key of its description in ``Trace.fields``: ``Insert.new.columns[]:t.data``."""
    start: int
    end: int
    value: Any
    """The value that the primitive parsed; counts, lengths and tags have one, too."""


class TraceFault(NamedTuple):
    """The error that ended parsing, and the range of the offending bytes; empty if the bytes were too few."""

    error: DecodeError
    key: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Trace:
    """The fields of a message in the order of its bytes, as far as it could be parsed."""

    data: bytes
    name: str | None
    """The class of the message, None if the first byte is not a tag."""
    spans: tuple[FieldSpan, ...]
    """The fields; they cover the bytes without gaps, up to ``fault.start`` if there is a fault."""
    fault: TraceFault | None
    fields: Mapping[str, Described] = field(repr=False)
    """The specification's descriptions, by key."""


def trace(
    payload: bytes | bytearray | memoryview,
    proto_version: int = 1,
    streaming: str = "off",
    in_stream: bool = False,
    **others: Unpack[MoreOptions],
) -> Trace:
    """Return the fields of a message; if parse refuses it, those before the error, and a fault.

    Args:
        payload: As of ``parse``.
        proto_version: As of ``parse``.
        streaming: As of ``parse``.
        in_stream: As of ``parse``.
        others: As of ``parse``.
    """
    given, data = options(proto_version, streaming, in_stream, **others), payload_bytes(payload)
    fields = _fields(proto_version)
    if error := refused(data[:1], given):
        return Trace(data, error.message, (), TraceFault(error, "", 0, 0), fields)
    found = _trace(MESSAGES, data, given.parameters(), fields)
    if found.fault is None:
        return found
    return replace(found, fault=found.fault._replace(error=explain(data, given)))


def trace_frame(
    data: bytes | bytearray | memoryview,
    proto_version: int = 1,
    streaming: str = "off",
    **others: Unpack[MoreOptions],
) -> Trace:
    """Return the fields of a frame of the envelope, as ``trace`` does for a message.

    Args:
        data: As of ``parse_frame``.
        proto_version: As of ``parse_frame``.
        streaming: As of ``parse_frame``.
        others: As of ``parse_frame``.
    """
    given = dict(zip(FRAME_PARAMETERS, frame_parameters(proto_version, streaming, **others), strict=True))
    return _trace(FRAMES, payload_bytes(data), given, _fields(proto_version, of_frames=True))


@cache
def _fields(version: int, of_frames: bool = False) -> Mapping[str, Described]:
    """Return the descriptions as of a protocol version."""
    return {key: described.at(version) for key, described in (FRAME_FIELDS if of_frames else FIELDS).items()}


def trace_connection(data: bytes | bytearray | memoryview, sender: Role, state: str) -> Trace:
    """Return the fields of a message of a connection, as ``trace`` does for a message.

    If its length differs from the number of bytes, the fields after the length are read as far as both reach.

    Args:
        data: As of ``parse_connection``.
        sender: As of ``parse_connection``.
        state: As of ``parse_connection``.
    """
    raw = payload_bytes(data)
    try:
        cls = begun(raw, sender, state)
    except DecodeError as error:
        return Trace(raw, None, (), TraceFault(error, "", 0, min(len(raw), 1)), CONNECTION_FIELDS)
    found = _trace(CONNECTION, raw, {}, CONNECTION_FIELDS, cls)
    size = message_size(raw, sender, state)
    if found.fault is None or size is None or found.fault.start != cls.LENGTH_AT:
        return found
    shown = raw[:size]
    inside = _trace(CONNECTION, shown, {}, CONNECTION_FIELDS, cls, _LenientRecorder(cls.__name__))
    fault = inside.fault or found.fault._replace(start=len(shown), end=len(shown))
    return replace(inside, data=raw, fault=fault)


def _trace(
    reference: Reference,
    data: bytes,
    parameters: Mapping[str, Any],
    fields: Mapping[str, Described],
    cls: type | None = None,
    recorder: "_Recorder | None" = None,
) -> Trace:
    """Return the fields of a message of the class; without one, of that of the tag."""
    cls = cls or reference.by_tag.get(data[:1])
    recorder = recorder or _Recorder("" if cls is None else cls.__name__)
    fault = None
    try:
        if cls is None:
            reference.parse(data, parameters)  # raises the error of an unknown tag
        else:
            reference.read(cls, data, {**parameters, "recorder": recorder})
    except DecodeError as error:
        key, size = recorder.failed or ("", 0 if cls else 1)
        fault = _fault(error, key, size, data)
    return Trace(data, recorder.name or None, tuple(recorder.spans), fault, fields)


def _fault(error: DecodeError, key: str, size: int, data: bytes) -> TraceFault:
    start = error.offset or 0
    end = start + size
    return TraceFault(error, key, start, end if end <= len(data) else start)


class _Recorder:
    """Records the bytes and value of each primitive that construct parses; primitives without bytes are no fields."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.spans: list[FieldSpan] = []
        self.failed: tuple[str, int] | None = None
        """The key of the primitive that failed, and the number of bytes that it read."""
        self.tags: dict[str, str | int] = {}
        """The tags of the choices, by path."""

    def read(self, primitive: Primitive, stream: IO[bytes], context: Any, path: str) -> Any:
        """Parse a primitive at a path, record it, and return its value."""
        start, key = stream.tell(), self._key(path)
        try:
            value = primitive._parse(stream, context, path)
        except Exception:
            self.failed = key, 1 if isinstance(primitive, Kind) else primitive.fixed_size or 0
            raise
        if value is not None:
            self.spans.append(FieldSpan(self.name + path_text(path), key, start, stream.tell(), value))
            if isinstance(primitive, Kind):
                self.tags[path] = value
        return value

    def ended(self, stream: IO[bytes], path: str) -> None:
        """Record the zero byte that ends a repeat, which has just been read."""
        end = stream.tell()
        self.spans.append(FieldSpan(f"{self.name}{path_text(path)}.end", f"{self._key(path)}.end", end - 1, end, 0))

    def missing(self, path: str) -> None:
        """Note that a part has fewer bytes than its length says."""
        self.failed = self._key(path), 0

    def _key(self, path: str) -> str:
        """Return the key of a path: without indexes, and with the tag of the branch after each choice."""
        key, at, *steps = self.name, *path.split(" -> ")
        for step in steps:
            at += f" -> {step}"
            key += "[]" if step.startswith("[") else f".{step}"
            # A branch may consist of a single value that is a choice itself: then both tags follow, the outer one
            # first.
            key += "".join(f":{self.tags[choice]}" for choice in (f"{at}_kind", at) if choice in self.tags)
        return key


class _LenientRecorder(_Recorder):
    """Records a message's length whatever the number of its bytes."""

    def read(self, primitive: Primitive, stream: IO[bytes], context: Any, path: str) -> Any:
        return super().read(primitive.number if isinstance(primitive, Length) else primitive, stream, context, path)
