"""The JSON encoding of field values in the vectors: the one that ``pgoutput decode`` prints."""

import math
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

__all__ = ["NUMBERS", "QUIET_NAN", "text", "utf8"]


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


def _float(bits: int) -> Any:
    (value,) = struct.unpack(">d", bits.to_bytes(8, "big"))
    if math.isnan(value):
        return "NaN" if bits == QUIET_NAN else {"hex": f"{bits:016x}"}
    return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"


QUIET_NAN: Final = 0x7FF8000000000000
"""The bits of PostgreSQL's own NaN."""
NUMBERS: Final[Mapping[str, Callable[[int], Any]]] = {
    "int": int,
    "Lsn": _lsn,
    "Timestamp": _timestamp,
    "Float": _float,
}
"""The JSON encoding of numbers, by the Python type of the field; of one in floating point it gets the bits."""
