"""PostgreSQL's text for values that came in binary format, by the name of their type.

Only what can be written exactly as the server would: no locale, no catalog, no guess. A value without a text here is
kept as ``\\x`` and hexadecimal digits.
"""

import struct
from collections.abc import Callable, Mapping
from functools import partial
from ipaddress import ip_address
from typing import Final
from uuid import UUID

from pgoutput_construct.columnar import times
from pgoutput_construct.stream.builtin_types import BUILTIN_TYPES
from pgoutput_construct.stream.values import pieces
from pgoutput_construct.wire.types import Lsn

__all__ = ["CANNOT", "NEGATIVE", "TEXTS", "hexadecimal", "label", "utf8"]

CANNOT: Final = (ValueError, ArithmeticError, struct.error, LookupError, RecursionError, NameError, TypeError)
"""What a writer of text raises for bytes that are not of its type."""

Writer = Callable[[bytes], str]

_EMPTY, _LOWER_IN, _UPPER_IN, _LOWER_FREE, _UPPER_FREE = 1, 2, 4, 8, 16  # rangetypes.h
NEGATIVE: Final = 0x4000
"""NUMERIC_NEG in numeric.c."""
_NOT_FINITE, _SIGNS = {0xC000: "NaN", 0xD000: "Infinity", 0xF000: "-Infinity"}, {0: "", NEGATIVE: "-"}
_IPV4_TAILS = {bytes(12): "::", bytes(10) + b"\xff\xff": "::ffff:"}  # inet_net_ntop.c
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
    # numeric_send(): digits to base 10,000, the weight of the first, a sign, and how many decimals are written.
    count, weight, sign, scale = struct.unpack_from("!HhHH", data)
    groups = struct.unpack(f"!{count}H", data[8:])
    if sign in _NOT_FINITE:
        return _NOT_FINITE[sign]
    if sign not in _SIGNS or max(groups, default=0) > 9999:
        raise ValueError("this is no numeric")
    digits, point = "".join(f"{group:04}" for group in groups), 4 * (weight + 1)
    digits = digits.rjust(len(digits) - min(point, 0), "0").ljust(point, "0")
    whole, decimals = digits[: max(point, 0)].lstrip("0") or "0", digits[max(point, 0) :].ljust(scale, "0")[:scale]
    return f"{_SIGNS[sign]}{whole}.{decimals}" if scale else f"{_SIGNS[sign]}{whole}"


def _address(data: bytes) -> str:
    # network_send(): family, bits, whether cidr, length, address.
    bits, cidr, address = data[1], data[2], ip_address(data[4:])
    if bits > address.max_prefixlen:
        raise ValueError("more bits than the address has")
    lead = _IPV4_TAILS.get(data[4:16], "") if any(data[14:18]) else ""
    text = f"{lead}{ip_address(data[16:])}" if lead else str(address)
    return f"{text}/{bits}" if cidr or bits != address.max_prefixlen else text


def _bits(data: bytes) -> str:
    (count,) = struct.unpack_from("!i", data)
    return "".join(f"{byte:08b}" for byte in data[4:])[:count]


def _tid(data: bytes) -> str:
    return "({},{})".format(*struct.unpack("!IH", data))


def _bounded(text: str) -> str:
    if text and not _QUOTED.intersection(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '""') + '"'


def _range(bound: Writer, data: bytes) -> str:
    flags, bounds = data[0], pieces(data[1:])
    if flags & _EMPTY:
        return "empty"
    lower = "" if flags & _LOWER_FREE else _bounded(bound(next(bounds, None) or b""))
    upper = "" if flags & _UPPER_FREE else _bounded(bound(next(bounds, None) or b""))
    return f"{'(['[flags & _LOWER_IN > 0]}{lower},{upper}{')]'[flags & _UPPER_IN > 0]}"


def _multirange(one: Writer, data: bytes) -> str:
    return "{" + ",".join(one(piece or b"") for piece in pieces(data[4:])) + "}"


_SIMPLE: dict[str, Writer] = {
    "bool": lambda data: "ft"[data[0]],
    "bytea": hexadecimal,
    "char": _char,
    **dict.fromkeys(("name", "text", "json", "xml", "bpchar", "varchar", "refcursor"), utf8),
    "int8": partial(_number, "!q"),
    "int2": partial(_number, "!h"),
    "int4": partial(_number, "!i"),
    **dict.fromkeys(("oid", "xid", "cid"), partial(_number, "!I")),
    "tid": _tid,
    **dict.fromkeys(("cidr", "inet"), _address),
    **dict.fromkeys(("macaddr", "macaddr8"), lambda data: data.hex(":")),
    "date": times.date_text,
    "time": times.time_text,
    "timestamp": times.timestamp_text,
    "timestamptz": partial(times.timestamp_text, zone="+00"),
    "interval": times.interval_text,
    "timetz": times.timetz_text,
    **dict.fromkeys(("bit", "varbit"), _bits),
    "numeric": _numeric,
    "uuid": lambda data: str(UUID(bytes=data)),
    "pg_lsn": lambda data: str(Lsn(int.from_bytes(data))),
    **dict.fromkeys(("jsonb", "jsonpath"), _versioned),
    "xid8": partial(_number, "!Q"),
}


def _over(write: Callable[[Writer, bytes], str], parts: Mapping[str, Writer]) -> dict[str, Writer]:
    """Return the writers of the types that are made of ``parts``: ranges of their bounds, multiranges of ranges."""
    subtypes = {row.name: BUILTIN_TYPES[row.subtype_oid].name for row in BUILTIN_TYPES.values() if row.subtype_oid}
    return {name: partial(write, parts[subtype]) for name, subtype in subtypes.items() if subtype in parts}


_RANGES = _over(_range, _SIMPLE)

TEXTS: Final[Mapping[str, Writer]] = {**_SIMPLE, **_RANGES, **_over(_multirange, _RANGES)}
"""By name in pg_type: bytes of the binary format -> PostgreSQL's text; raises one of ``CANNOT``."""
