"""What the generated codecs share. They only say yes or no: the reference reads the same input again and explains."""

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
    "read_prefix",
    "read_whole",
    "string_bytes",
]

PAD: Final = bytes(9)
"""Stands behind bytes that are read ahead: one read takes a value and the head of the next one, its tag and length.

It is as long as the longest head (a tag and an Int64), and a read ahead begins at the latest where the last value
ends: so it finds bytes also there. It cannot accept what is not there: what was read ahead counts only once the
position has passed it, the position never goes back, and in the end it is compared with the size of the bytes.
"""

NEAR: Final = 8192
"""Bytes at the end of a buffer that are copied in front of PAD, to be read as if they were all of it."""

NOTHING: Final[Any] = [None]
"""A list of as many values as it is multiplied by, before they are read."""

number: Callable[[type, int], Any] = int.__new__


class Reject(Exception):  # noqa: N818 - a signal between the engines, which no user sees
    """The codec does not accept this input."""


REJECTIONS = (Reject, struct.error, IndexError, KeyError, ValueError, TypeError, AttributeError, OverflowError)
"""What a codec lets out for input that it does not accept."""


def draft(cls: type) -> Any:
    """Return a class of the same layout that is not frozen: its objects are filled, then given the class ``cls``.

    That is the quickest way to fill an object of a frozen class, twice as fast as setting its fields one by one and
    four times as fast as its ``__init__``.
    """
    return type(cls.__name__, cls.__bases__, {"__slots__": vars(cls)["__slots__"]})


Readers: TypeAlias = Mapping[int, Callable[..., tuple[Any, int]]]
"""The table READERS of a codec."""


def bound(function: Any, parameters: Sequence[int]) -> Any:
    """Return a function of a codec that has its last arguments: as their defaults, which cost nothing in a call."""
    return FunctionType(function.__code__, function.__globals__, function.__name__, tuple(parameters))


def read_whole(readers: Readers, data: bytes, parameters: Sequence[int] = ()) -> Any:
    """Return the message that the bytes are, neither less nor more; raise one of REJECTIONS."""
    message, end = readers[data[0]](data + PAD, 0, len(data), *parameters)
    if end != len(data):
        raise Reject
    return message


def read_prefix(readers: Readers, data: bytes, start: int, parameters: Sequence[int] = ()) -> tuple[Any, int]:
    """Return the message that starts at ``start``, and how many bytes it takes; raise one of REJECTIONS.

    It copies the bytes near the end of ``data`` alone, where PAD must follow them. A message that is longer than these
    and ends with ``data`` can be rejected although it is valid.
    """
    size = len(data)
    if size - start < NEAR:
        data, start, size = data[start:] + PAD, 0, size - start
    message, end = readers[data[start]](data, start, size, *parameters)
    if end > size:
        raise Reject
    return message, end - start


def string_bytes(value: str | None) -> bytes:
    """Return a String as it is on the wire, its NUL included."""
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
