"""Which bytes are which field: the construct definitions parse, and each leaf writes down what it took.

The definitions that trace are copies of the generated ones, made when they are first needed: parsing itself pays
nothing for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import IO, Any, NamedTuple, Unpack

from construct import Construct, Renamed, Struct, Subconstruct

from pgoutput_construct.errors import DecodeError
from pgoutput_construct.wire import definitions, frame_definitions, frames, messages
from pgoutput_construct.wire.composites import Counted, Kind, Valued
from pgoutput_construct.wire.described import Described
from pgoutput_construct.wire.engine import explain, refused
from pgoutput_construct.wire.fields import FIELDS
from pgoutput_construct.wire.frame_fields import FIELDS as FRAME_FIELDS
from pgoutput_construct.wire.options import MoreOptions, options
from pgoutput_construct.wire.primitives import Absent, Leaf, Since
from pgoutput_construct.wire.reference import Reference, path_text, payload_bytes

__all__ = ["Fault", "Piece", "Trace", "trace", "trace_frame"]


class Piece(NamedTuple):
    """The bytes of one field."""

    path: str
    """Where it is in the message, as errors write it: ``Insert.new.columns[0].data``."""
    key: str
    """Where it is in the specification, a key of ``Trace.fields``: ``Insert.new.columns[]:t.data``."""
    start: int
    end: int
    value: Any
    """As the leaf gives it: counts, lengths and tags too."""


class Fault(NamedTuple):
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
    pieces: tuple[Piece, ...]
    """They cover the bytes up to ``fault.start``, or all of them, without gaps."""
    fault: Fault | None
    fields: Mapping[str, Described] = field(repr=False)
    """What the specification says, by key."""

    @property
    def unread(self) -> int:
        """Where the bytes begin that nobody has read; the size of data for a message without fault."""
        return len(self.data) if self.fault is None else self.fault.end


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
        return Trace(data, error.message, (), Fault(error, "", 0, 0), FIELDS)
    found = _trace(_messages(), data, given.parameters(), FIELDS)
    if found.fault is None:
        return found
    return replace(found, fault=found.fault._replace(error=explain(data, given)))


def trace_frame(data: bytes | bytearray | memoryview) -> Trace:
    """Return the fields of a frame of the envelope, as trace does for a message."""
    return _trace(_frames(), payload_bytes(data), {}, FRAME_FIELDS)


@cache
def _messages() -> Reference:
    return _tracing(messages.BY_TAG, definitions.DEFINITIONS)


@cache
def _frames() -> Reference:
    return _tracing(frames.BY_TAG, frame_definitions.DEFINITIONS)


def _tracing(by_tag: Mapping[bytes, type], plain: Mapping[type, Struct]) -> Reference:
    return Reference(by_tag, {cls: _copy(definition, cls.__name__) for cls, definition in plain.items()})


def _trace(reference: Reference, data: bytes, parameters: Mapping[str, Any], fields: Mapping[str, Described]) -> Trace:
    recorder = _Recorder([], [])
    cls = reference.by_tag.get(data[:1])
    fault = None
    try:
        reference.parse(data, {**parameters, "recorder": recorder})
    except DecodeError as error:
        key, size = recorder.failed[0] if recorder.failed else ("", 0 if cls else 1)
        fault = _fault(error, key, size, data)
    name = None if cls is None else cls.__name__
    pieces = [piece._replace(path=f"{name}{path_text(piece.path)}") for piece in recorder.pieces]
    return Trace(data, name, tuple(pieces), fault, fields)


def _fault(error: DecodeError, key: str, size: int, data: bytes) -> Fault:
    start = error.offset or 0
    end = start + size
    return Fault(error, key, start, end if end <= len(data) else start)


class _Recorder(NamedTuple):
    """What the leaves write down; a parameter of the parse, like its options."""

    pieces: list[Piece]
    failed: list[tuple[str, int]]
    """The key of the leaf that failed, and how many bytes it looked at."""


class _Traced(Subconstruct):
    """A leaf that writes down what it took; a leaf that takes nothing is no field."""

    def __init__(self, leaf: Leaf, key: str) -> None:
        super().__init__(leaf)
        self.key = key

    def _parse(self, stream: IO[bytes], context: Any, path: str) -> Any:
        recorder, start = context._params.recorder, stream.tell()
        try:
            value = self.subcon._parse(stream, context, path)
        except Exception:
            recorder.failed.append((self.key, _size(self.subcon)))
            raise
        if value is not None:
            recorder.pieces.append(Piece(path, self.key, start, stream.tell(), value))
        return value


def _size(leaf: Leaf) -> int:
    """Return how many bytes are wrong when a leaf is: those of a String or Data are too few instead."""
    return 1 if isinstance(leaf, Kind) else leaf.fixed_size or 0


def _copy(construct: Construct, key: str) -> Construct:
    """Return a construct of which every leaf is traced; ``key`` is its place in the specification."""
    if isinstance(construct, Leaf) and not isinstance(construct, Valued):
        return construct if construct is Absent or isinstance(construct, Since) else _Traced(construct, key)
    if isinstance(construct, Renamed):
        key += f".{construct.name}"
    elif isinstance(construct, Counted):
        key += "[]"
    twin = object.__new__(type(construct))
    vars(twin).update({name: _copy_part(part, key) for name, part in vars(construct).items()})
    return twin


def _copy_part(part: Any, key: str) -> Any:
    """Copy what a construct holds: constructs, lists of them, and the branches of a choice by their tags."""
    if isinstance(part, Construct):
        return _copy(part, key)
    if type(part) is list:
        return [_copy_part(each, key) for each in part]
    if type(part) is dict:
        return {tag: _copy(each, f"{key}:{tag}") if isinstance(each, Construct) else each for tag, each in part.items()}
    return part
