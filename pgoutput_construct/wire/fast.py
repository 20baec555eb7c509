"""What the generated codecs share. They only say yes or no: the reference reads the same input again and explains."""

import struct
from collections.abc import Callable
from dataclasses import fields
from typing import Any

__all__ = ["PAD", "REJECTIONS", "Reject", "new", "number", "setters", "string_bytes"]

PAD = bytes(8)
"""Stands behind a payload, so that one read may take a tag and the length after it, also where there is no length."""

new: Callable[[type], Any] = object.__new__
number: Callable[[type, int], Any] = int.__new__


class Reject(Exception):  # noqa: N818 - a signal between the engines, which no user sees
    """The codec does not accept this input."""


REJECTIONS = (Reject, struct.error, IndexError, KeyError, ValueError, TypeError, AttributeError, OverflowError)
"""What a codec lets out for input that it does not accept."""


def setters(cls: type) -> Any:
    """Return the functions that set the fields of a frozen class, in their order: the quick way to fill an object."""
    return tuple(vars(cls)[field.name].__set__ for field in fields(cls))


def string_bytes(value: str) -> bytes:
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
