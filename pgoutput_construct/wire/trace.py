"""Which bytes are which field: the construct definitions parse, and a recorder notes what each primitive takes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import IO, Any, NamedTuple, Unpack

from pgoutput_construct.errors import DecodeError
from pgoutput_construct.wire.engine import FRAME_PARAMETERS, FRAMES, MESSAGES, explain, frame_parameters, refused
from pgoutput_construct.wire.fields import FIELDS
from pgoutput_construct.wire.frame_fields import FIELDS as FRAME_FIELDS
from pgoutput_construct.wire.options import MoreOptions, options
from pgoutput_construct.wire.primitives import Primitive
from pgoutput_construct.wire.reference import Reference, path_text, payload_bytes
from pgoutput_construct.wire.spec_metadata import Described
from pgoutput_construct.wire.structures import Kind

__all__ = ["FieldSpan", "Trace", "TraceFault", "trace", "trace_frame"]


class FieldSpan(NamedTuple):
    """The bytes of one field."""

    path: str
    """Where it is in the message, as errors write it: ``Insert.new.columns[0].data``."""
    key: str
    """Where it is in the specification, a key of ``Trace.fields``: ``Insert.new.columns[]:t.data``."""
    start: int
    end: int
    value: Any
    """As the primitive gives it: counts, lengths and tags too."""


class TraceFault(NamedTuple):
    """What ended the parsing, and the bytes of the field that was wrong: none where there were too few."""

    error: DecodeError
    key: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Trace:
    """The fields of a message in the order of its bytes: as far as it could be read."""

    data: bytes
    name: str | None
    """The class of the message, None where the first byte is no tag."""
    spans: tuple[FieldSpan, ...]
    """They cover the bytes up to ``fault.start``, or all of them, without gaps."""
    fault: TraceFault | None
    fields: Mapping[str, Described] = field(repr=False)
    """What the specification says, by key."""


def trace(
    payload: bytes | bytearray | memoryview,
    proto_version: int = 1,
    streaming: str = "off",
    in_stream: bool = False,
    **others: Unpack[MoreOptions],
) -> Trace:
    """Return the fields of a message; the arguments are those of parse. A message that parse refuses has a fault."""
    given, data = options(proto_version, streaming, in_stream, **others), payload_bytes(payload)
    if error := refused(data[:1], given):
        return Trace(data, error.message, (), TraceFault(error, "", 0, 0), FIELDS)
    found = _trace(MESSAGES, data, given.parameters(), FIELDS)
    if found.fault is None:
        return found
    return replace(found, fault=found.fault._replace(error=explain(data, given)))


def trace_frame(
    data: bytes | bytearray | memoryview,
    proto_version: int = 1,
    streaming: str = "off",
    **others: Unpack[MoreOptions],
) -> Trace:
    """Return the fields of a frame of the envelope, as trace does for a message; the options are of parse_frame."""
    given = dict(zip(FRAME_PARAMETERS, frame_parameters(proto_version, streaming, **others), strict=True))
    return _trace(FRAMES, payload_bytes(data), given, FRAME_FIELDS)


def _trace(reference: Reference, data: bytes, parameters: Mapping[str, Any], fields: Mapping[str, Described]) -> Trace:
    cls = reference.by_tag.get(data[:1])
    recorder = _Recorder("" if cls is None else cls.__name__)
    fault = None
    try:
        reference.parse(data, {**parameters, "recorder": recorder})
    except DecodeError as error:
        key, size = recorder.failed or ("", 0 if cls else 1)
        fault = _fault(error, key, size, data)
    return Trace(data, recorder.name or None, tuple(recorder.spans), fault, fields)


def _fault(error: DecodeError, key: str, size: int, data: bytes) -> TraceFault:
    start = error.offset or 0
    end = start + size
    return TraceFault(error, key, start, end if end <= len(data) else start)


class _Recorder:
    """Reads the primitives of a message, and notes what they take; one that takes nothing is no field."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.spans: list[FieldSpan] = []
        self.failed: tuple[str, int] | None = None
        """The key of the primitive that failed, and how many bytes it looked at."""
        self.tags: dict[str, str] = {}
        """The tags of the choices, by path."""

    def read(self, primitive: Primitive, stream: IO[bytes], context: Any, path: str) -> Any:
        """Return what a primitive reads at a path."""
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

    def _key(self, path: str) -> str:
        """Return the place in the specification: no numbers of items, and behind a choice the tag of its branch."""
        key, at, *steps = self.name, *path.split(" -> ")
        for step in steps:
            at += f" -> {step}"
            key += "[]" if step.startswith("[") else f".{step}"
            # A branch may be known by one value that is a choice itself: its tag stands behind that of the branch.
            key += "".join(f":{self.tags[place]}" for place in (f"{at}_kind", at) if place in self.tags)
        return key
