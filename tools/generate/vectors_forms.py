"""The JSON encoding of field values in the vectors: the one that ``pgoutput decode`` prints."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

__all__ = ["NUMBERS", "text", "utf8"]


def utf8(data: bytes) -> str | None:
    """Return bytes as text, None if they are not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def text(data: bytes) -> Any:
    """Return the JSON value of a String without its NUL."""
    found = utf8(data)
    return {"hex": data.hex()} if found is None else found


def _lsn(value: int) -> str:
    return f"{value >> 32:X}/{value & 0xFFFFFFFF:X}"


def _timestamp(value: int) -> str:
    infinite = {(1 << 63) - 1: "infinity", -(1 << 63): "-infinity"}
    try:
        return infinite.get(value) or (datetime(2000, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)).isoformat()
    except OverflowError:
        return str(value)


NUMBERS: Final[Mapping[str, Callable[[int], Any]]] = {"int": int, "Lsn": _lsn, "Timestamp": _timestamp}
"""The JSON encoding of numbers, by the Python type of the field."""
