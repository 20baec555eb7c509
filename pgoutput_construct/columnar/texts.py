"""PostgreSQL's text for values that came in binary format, by type OID.

Only what can be written exactly as the server would: no locale, no catalog, no guess. A value without a text here is
kept as ``\\x`` and hexadecimal digits.
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from ipaddress import ip_address
from typing import Final
from uuid import UUID

from pgoutput_construct.columnar import times
from pgoutput_construct.stream.values import ValueLoader
from pgoutput_construct.wire.messages import Binary
from pgoutput_construct.wire.types import Lsn

__all__ = ["CANNOT", "TEXTS", "hexadecimal", "label", "pieces", "utf8"]

CANNOT: Final = (ValueError, ArithmeticError, struct.error, LookupError, RecursionError, NameError, TypeError)
"""What a writer of text raises for bytes that are not of its type."""

_VALUES = ValueLoader()
_EMPTY, _LOWER_IN, _UPPER_IN, _LOWER_FREE, _UPPER_FREE = 1, 2, 4, 8, 16  # rangetypes.h
_QUOTED = frozenset('"\\()[], \t\n\r\v\f')


def hexadecimal(data: bytes) -> str:
    """Write bytes as bytea does: ``\\x`` and hexadecimal digits."""
    return "\\x" + data.hex()


def utf8(data: bytes) -> str:
    """Read text; raise UnicodeDecodeError (a ValueError) for what is not UTF-8."""
    return data.decode("utf-8")


def label(data: bytes) -> str:
    """Read a value of a type that is not built in, if it looks like an enum's; raise ValueError for others.

    enum_send() sends the label itself. Composites, ranges and arrays hold lengths, and these hold zero bytes.
    """
    text = utf8(data)
    if not text or not text.isprintable():
        raise ValueError("this is no label")
    return text


def _number(form: str, data: bytes) -> str:
    return str(struct.unpack(form, data)[0])


def _char(data: bytes) -> str:
    # charout(): a byte of the upper half is written in octal, zero as nothing.
    (code,) = data
    return f"\\{code:03o}" if code > 127 else data.decode("ascii").rstrip("\0")


def _versioned(data: bytes) -> str:
    if data[:1] != b"\x01":  # jsonb_send(), jsonpath_send(): version 1
        raise ValueError("unknown version")
    return utf8(data[1:])


def _numeric(data: bytes) -> str:
    value = _VALUES.load(Binary(data), 1700)
    if not isinstance(value, Decimal):
        raise ValueError("this is no numeric")
    return str(value) if not value.is_finite() else f"{value:f}"


def _address(data: bytes, network: bool) -> str:
    # network_send(): family, bits, whether cidr, length, address.
    bits, address = data[1], ip_address(data[4:])
    return f"{address}/{bits}" if network or bits != address.max_prefixlen else str(address)


def _bits(data: bytes) -> str:
    (count,) = struct.unpack_from("!i", data)
    return "".join(f"{byte:08b}" for byte in data[4:])[:count]


def _tid(data: bytes) -> str:
    return "({},{})".format(*struct.unpack("!IH", data))


def _bounded(text: str) -> str:
    if text and not _QUOTED.intersection(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '""') + '"'


def pieces(data: bytes) -> Iterator[bytes | None]:
    """Split what arrays and ranges are made of: 4 bytes length, then as many bytes; -1 for NULL."""
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("!i", data, at)
        at += 4
        if not -1 <= length <= len(data) - at:
            raise ValueError("a length beyond the end")
        yield None if length < 0 else data[at : at + length]
        at += max(length, 0)


def _range(bound: Callable[[bytes], str], data: bytes) -> str:
    flags, bounds = data[0], pieces(data[1:])
    if flags & _EMPTY:
        return "empty"
    lower = "" if flags & _LOWER_FREE else _bounded(bound(next(bounds, None) or b""))
    upper = "" if flags & _UPPER_FREE else _bounded(bound(next(bounds, None) or b""))
    return f"{'(['[flags & _LOWER_IN > 0]}{lower},{upper}{')]'[flags & _UPPER_IN > 0]}"


def _multirange(bound: Callable[[bytes], str], data: bytes) -> str:
    return "{" + ",".join(_range(bound, piece or b"") for piece in pieces(data[4:])) + "}"


_SIMPLE: dict[int, Callable[[bytes], str]] = {
    16: lambda data: "ft"[data[0]],
    17: hexadecimal,
    18: _char,
    **dict.fromkeys((19, 25, 114, 142, 705, 1042, 1043), utf8),
    20: partial(_number, "!q"),
    21: partial(_number, "!h"),
    23: partial(_number, "!i"),
    **dict.fromkeys((26, 28, 29), partial(_number, "!I")),
    27: _tid,
    650: partial(_address, network=True),
    869: partial(_address, network=False),
    **dict.fromkeys((774, 829), lambda data: data.hex(":")),
    1082: times.date_text,
    1083: times.time_text,
    1114: times.timestamp_text,
    1184: times.timestamptz_text,
    1186: times.interval_text,
    1266: times.timetz_text,
    **dict.fromkeys((1560, 1562), _bits),
    1700: _numeric,
    2950: lambda data: str(UUID(bytes=data)),
    3220: lambda data: str(Lsn(int.from_bytes(data))),
    **dict.fromkeys((3802, 4072), _versioned),
    5069: partial(_number, "!Q"),
}

_RANGES = {3904: (4451, 23), 3906: (4532, 1700), 3908: (4533, 1114), 3910: (4534, 1184), 3912: (4535, 1082)}
_RANGES |= {3926: (4536, 20)}
"""Range types: their multirange, and the type of the bounds."""

TEXTS: Final[Mapping[int, Callable[[bytes], str]]] = {
    **_SIMPLE,
    **{oid: partial(_range, _SIMPLE[bound]) for oid, (_, bound) in _RANGES.items()},
    **{oid: partial(_multirange, _SIMPLE[bound]) for oid, bound in _RANGES.values()},
}
"""By OID in pg_type: bytes of the binary format -> PostgreSQL's text; raises one of ``CANNOT``."""
