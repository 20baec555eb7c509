"""The reference engine: parses and builds through the construct definitions, and translates their errors into ours."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING, Any

from pgoutput_construct.errors import DecodeError, EncodeError

if TYPE_CHECKING:
    from construct import Struct

__all__ = ["LARGEST", "Definitions", "IncompleteError", "Reference", "path_text", "payload_bytes"]

LARGEST = 1 << 30
"""1 GiB: every message is smaller, because PostgreSQL builds it in one StringInfo (MaxAllocSize)."""


class IncompleteError(DecodeError):
    """The bytes end before the message does; with more bytes it may be valid."""


class _PrefixStream(BytesIO):
    """Bytes of which a prefix is parsed; ``short``: the last read ran past the end, and more bytes may help."""

    short = False

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self.short = size is not None and len(data) < size < LARGEST
        return data


def payload_bytes(data: object) -> bytes:
    """Return bytes, a bytearray or a memoryview as bytes; raise DecodeError for anything else."""
    if isinstance(data, bytes):
        return data
    if isinstance(data, bytearray | memoryview):
        try:
            return bytes(data)
        except ValueError as error:
            raise DecodeError(f"the bytes cannot be read: {error}") from error
    remedy = ": bytes.fromhex() reads hexadecimal text" if isinstance(data, str) else ""
    raise DecodeError(f"a message must be bytes, not {type(data).__name__}{remedy}")


class Definitions(Mapping[type, "Struct"]):
    """The construct definitions of a generated module, imported when the first one is needed.

    Importing construct takes longer than importing the codecs, and a program that reads valid messages needs none.
    """

    def __init__(self, module: str) -> None:
        """Take the module's full name."""
        self._module = module

    @cached_property
    def _found(self) -> Mapping[type, "Struct"]:
        found: Mapping[type, Struct] = import_module(self._module).DEFINITIONS
        return found

    def __getitem__(self, cls: type) -> "Struct":
        return self._found[cls]

    def __iter__(self) -> Iterator[type]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


class Reference:
    """Parses and builds the messages of one specification through its construct definitions."""

    def __init__(self, by_tag: Mapping[bytes, type], definitions: Mapping[type, "Struct"]) -> None:
        self.by_tag = by_tag
        self.definitions = definitions

    def parse(self, data: bytes, parameters: Mapping[str, Any]) -> Any:
        """Return the message object in data; raise DecodeError."""
        cls = self.by_tag.get(data[:1])
        if cls is None:
            raise DecodeError(self._unknown(data), offset=0)
        return self._read(cls, BytesIO(data), parameters)

    def read(self, cls: type, data: bytes, parameters: Mapping[str, Any]) -> Any:
        """Return the message in data, which must be of this class; raise DecodeError."""
        return self._read(cls, BytesIO(data), parameters)

    def parse_prefix(self, data: bytes, start: int, parameters: Mapping[str, Any]) -> tuple[Any, int]:
        """Return the message that starts at ``start``, and its size in bytes; the bytes after it are not read.

        Args:
            data: Bytes with a message at ``start``.
            start: Offset of its first byte.
            parameters: The parameters of the layouts.

        Raises:
            IncompleteError: ``data`` ends before the message does.
            DecodeError: The bytes are not a message, whatever follows.
        """
        tag = data[start : start + 1]
        cls = self.by_tag.get(tag)
        if cls is None:
            raise (DecodeError if tag else IncompleteError)(self._unknown(tag), offset=0)
        # Closed explicitly: construct's contexts are reference cycles, which would keep the whole buffer alive until
        # the next garbage collection.
        with _PrefixStream(data) as stream:
            stream.seek(start)
            return self._read(cls, stream, {**parameters, "open_end": True}, start), stream.tell() - start

    def _read(self, cls: type, stream: BytesIO, parameters: Mapping[str, Any], start: int = 0) -> Any:
        from pgoutput_construct.wire.structures import record

        try:
            return record(cls, self.definitions[cls].parse_stream(stream, **parameters))
        except Exception as error:  # not ConstructError alone: construct passes on errors of struct and of callbacks
            incomplete = isinstance(stream, _PrefixStream) and stream.short
            raise (IncompleteError if incomplete else DecodeError)(**_translated(error, cls, stream, start)) from error

    def build(self, message: object, parameters: Mapping[str, Any]) -> bytes:
        """Return the bytes of a message object; raise EncodeError."""
        from pgoutput_construct.wire.primitives import shown
        from pgoutput_construct.wire.structures import wire_fields

        cls = type(message)
        if cls not in self.definitions:
            raise EncodeError(f"{shown(message)} is not a message: give an object of a message class")
        stream = BytesIO()
        try:
            self.definitions[cls].build_stream(wire_fields(message), stream, classes_only=True, **parameters)
        except Exception as error:  # as above; a user's object may raise anything
            raise EncodeError(**_translated(error, cls, stream)) from error
        return stream.getvalue()

    def _unknown(self, data: bytes) -> str:
        if not data:
            return "empty payload"
        tags = " ".join(chr(tag[0]) if 32 < tag[0] < 127 else f"{tag[0]:#04x}" for tag in self.by_tag)
        return f"unknown tag {data[:1]!r}: the tags are {tags}"


def _translated(error: Exception, cls: type, stream: BytesIO, start: int = 0) -> dict[str, Any]:
    """Return the arguments of our error for an error of construct: reason, message, path and offset."""
    offset = getattr(error, "offset", None)
    reason = getattr(error, "reason", None) or f"{type(error).__name__}: {error}"
    return {
        "reason": reason,
        "message": cls.__name__,
        "path": cls.__name__ + path_text(getattr(error, "path", None) or ""),
        "offset": (stream.tell() if offset is None else offset) - start,
    }


def path_text(path: str) -> str:
    """Return construct's path in our notation: ``(parsing) -> a -> [3] -> b`` becomes ``.a[3].b``."""
    return "".join(step if step.startswith("[") else f".{step}" for step in path.split(" -> ")[1:])
