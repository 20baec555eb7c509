"""What the generated codecs import: rejection, padding, and the helpers that build message objects.

A codec accepts input or rejects it, without saying why: the reference engine reads rejected input again and explains.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, Final, TypeAlias

__all__ = [
    "NOTHING",
    "PAD",
    "REJECTIONS",
    "Reject",
    "bound",
    "draft",
    "number",
    "part_bytes",
    "read_prefix",
    "read_whole",
    "string_bytes",
]

PAD: Final = bytes(9)
"""Zeros appended to the data, so that a codec can read ahead past its end: one ``unpack`` reads a value together with
the tag and length of the next one.

As long as the longest head that is read ahead (a tag and an Int64). A read ahead starts at the end of the last value at
the latest, so it never leaves the padded buffer. Padding is never accepted as data: the position only grows, and the
final position is compared with the size of the data without the padding.
"""

NEAR: Final = 8192
"""A message that starts within this many bytes of the end of a buffer is read from a padded copy of these bytes."""

NOTHING: Final[Any] = [None]
"""``NOTHING * n`` preallocates a list of n slots."""

number: Callable[[type, int], Any] = int.__new__


class Reject(Exception):  # noqa: N818 - a signal between the engines, never raised to users
    """The codec does not accept this input."""


REJECTIONS = (Reject, struct.error, IndexError, KeyError, ValueError, TypeError, AttributeError, OverflowError)
"""The exceptions with which a codec rejects input."""


def draft(cls: type) -> Any:
    """Return a class with the same slots that is not frozen: codecs fill its objects, then assign ``__class__ = cls``.

    This is the fastest way to build an object of a frozen dataclass: twice as fast as ``object.__setattr__`` for each
    field, and four times as fast as ``__init__``.
    """
    return type(cls.__name__, cls.__bases__, {"__slots__": vars(cls)["__slots__"]})


Readers: TypeAlias = Mapping[int, Callable[..., tuple[Any, int]]]
"""The table READERS of a codec."""


def bound(function: Any, parameters: Sequence[int]) -> Any:
    """Bind trailing arguments of a codec's function as its defaults: unlike ``partial`` they cost nothing."""
    return FunctionType(function.__code__, function.__globals__, function.__name__, tuple(parameters))


def read_whole(readers: Readers, data: bytes, parameters: Sequence[int] = ()) -> Any:
    """Return the message that fills ``data`` exactly; raise one of REJECTIONS.

    Args:
        readers: The codec's table READERS.
        data: The bytes of one message.
        parameters: The parameters of the layouts, in the codec's order.
    """
    message, end = readers[data[0]](data + PAD, 0, len(data), *parameters)
    if end != len(data):
        raise Reject
    return message


def read_prefix(readers: Readers, data: bytes, start: int, parameters: Sequence[int] = ()) -> tuple[Any, int]:
    """Return the message at ``start`` and its size in bytes; raise one of REJECTIONS.

    Only the last NEAR bytes are copied, to append PAD. A valid message that starts before them and ends with ``data``
    may therefore be rejected; the caller then asks the reference.

    Args:
        readers: The codec's table READERS.
        data: Any bytes, with a message at ``start``.
        start: Offset of its first byte.
        parameters: The parameters of the layouts, in the codec's order.
    """
    size = len(data)
    if size - start < NEAR:
        data, start, size = data[start:] + PAD, 0, size - start
    message, end = readers[data[start]](data, start, size, *parameters)
    if end > size:
        raise Reject
    return message, end - start


def part_bytes(build: Callable[..., None], part: Any, *parameters: int) -> bytes:
    """Return the bytes of a part whose length is written before it; raise one of REJECTIONS."""
    pieces: list[bytes] = []
    build(part, pieces, *parameters)
    return b"".join(pieces)


def string_bytes(value: str | None) -> bytes:
    """Return a String's bytes on the wire, including the terminating NUL; raise Reject."""
    if not isinstance(value, str):
        raise Reject
    try:
        data = value.encode()
    except UnicodeEncodeError:
        data = value.encode("utf-8", "surrogateescape")
        if data.decode("utf-8", "surrogateescape") != value:
            raise Reject from None
    if 0 in data:
        raise Reject
    return data + b"\0"
