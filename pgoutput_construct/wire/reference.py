"""The reference engine: the construct definitions, and the one place where their errors become ours."""

import struct
from collections.abc import Mapping
from io import BytesIO
from typing import Any

from construct import ConstructError, Struct

from pgoutput_construct.errors import DecodeError, EncodeError
from pgoutput_construct.wire.composites import record, wire_fields

__all__ = ["Reference", "payload_bytes"]

STRAY = (
    ConstructError,
    KeyError,
    TypeError,
    AttributeError,
    IndexError,
    struct.error,
    UnicodeError,
    OverflowError,
)
"""What construct lets escape on bad input."""


def payload_bytes(data: object) -> bytes:
    """Return any bytes-like object as bytes; raise DecodeError for anything else."""
    if isinstance(data, bytes):
        return data
    if isinstance(data, bytearray | memoryview):
        return bytes(data)
    raise DecodeError(f"a message must be bytes, not {type(data).__name__}")


class Reference:
    """Parses and builds the messages of one specification through its construct definitions."""

    def __init__(self, by_tag: Mapping[bytes, type], definitions: Mapping[type, Struct]) -> None:
        self.by_tag = by_tag
        self.definitions = definitions

    def parse(self, data: bytes, parameters: Mapping[str, Any]) -> Any:
        """Return the message object in data; raise DecodeError."""
        cls = self.by_tag.get(data[:1])
        if cls is None:
            raise DecodeError(self._unknown(data), offset=0)
        stream = BytesIO(data)
        try:
            return record(cls, self.definitions[cls].parse_stream(stream, **parameters))
        except STRAY as error:
            raise DecodeError(**_place(error, cls, stream)) from error

    def build(self, message: object, parameters: Mapping[str, Any]) -> bytes:
        """Return the bytes of a message object; raise EncodeError."""
        cls = type(message)
        if cls not in self.definitions:
            raise EncodeError(f"{message!r:.80} is no message: give an object of a message class")
        stream = BytesIO()
        try:
            self.definitions[cls].build_stream(wire_fields(message), stream, **parameters)
        except STRAY as error:
            raise EncodeError(**_place(error, cls, stream)) from error
        return stream.getvalue()

    def _unknown(self, data: bytes) -> str:
        if not data:
            return "there are no bytes: a message has at least its kind"
        kinds = " ".join(tag.decode("ascii") for tag in self.by_tag)
        return f"unknown message kind {data[:1]!r}: the kinds are {kinds}"


def _place(error: Exception, cls: type, stream: BytesIO) -> dict[str, Any]:
    """Return what an error of construct says, in our terms: ``(parsing) -> a -> [3] -> b`` is ``Message.a[3].b``."""
    steps = (getattr(error, "path", None) or "").split(" -> ")[1:]
    path = "".join(step if step.startswith("[") else f".{step}" for step in steps)
    offset = getattr(error, "offset", None)
    reason = getattr(error, "reason", None) or f"{type(error).__name__}: {error}"
    return {
        "reason": reason,
        "message": cls.__name__,
        "path": cls.__name__ + path,
        "offset": stream.tell() if offset is None else offset,
    }
