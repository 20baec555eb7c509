"""Values that consist of one thing: words, whole numbers, bytes, addresses, identifiers, bits."""

import struct
from functools import partial
from ipaddress import ip_address
from typing import Final

from pgoutput_construct.pgtypes.builtin_types import TYPE_NAMES
from pgoutput_construct.pgtypes.form import Form, hexadecimal, utf8
from pgoutput_construct.wire.types import Lsn

__all__ = ["SCALARS"]

_IPV4_TAILS = {bytes(12): "::", bytes(10) + b"\xff\xff": "::ffff:"}  # inet_net_ntop.c
_FAMILIES = {4: 2, 6: 3}  # PGSQL_AF_INET and PGSQL_AF_INET6 in inet.h
_UUID_SIZE = TYPE_NAMES["uuid"].size
_OCTAL = 4
"""Characters of a byte that "char" writes as an octal number."""


def _number(form: str) -> Form:
    packed = struct.Struct(form)
    return Form(lambda data: str(packed.unpack(data)[0]), lambda text: packed.pack(int(text)))


def _char_text(data: bytes) -> str:
    # charout(): a byte of the upper half is written in octal, zero as nothing.
    (code,) = data
    return f"\\{code:03o}" if code > 127 else data.decode("ascii").rstrip("\0")


def _char_binary(text: str) -> bytes:
    return bytes([int(text[1:], 8)]) if len(text) == _OCTAL else text.encode("ascii") or b"\0"


def _versioned_text(data: bytes) -> str:
    if data[:1] != b"\x01":  # jsonb_send(), jsonpath_send(): version 1
        raise ValueError("unknown version")
    return utf8(data[1:])


def _address_text(data: bytes) -> str:
    # network_send(): family, bits, whether cidr, length, address.
    bits, cidr, address = data[1], data[2], ip_address(data[4:])
    if bits > address.max_prefixlen:
        raise ValueError("more bits than the address has")
    lead = _IPV4_TAILS.get(data[4:16], "") if any(data[14:18]) else ""
    text = f"{lead}{ip_address(data[16:])}" if lead else str(address)
    return f"{text}/{bits}" if cidr or bits != address.max_prefixlen else text


def _address_binary(cidr: bool, text: str) -> bytes:
    words, _, bits = text.partition("/")
    address = ip_address(words)
    length = int(bits) if bits else address.max_prefixlen
    return bytes([_FAMILIES[address.version], length, cidr, len(address.packed)]) + address.packed


def _bits_text(data: bytes) -> str:
    (count,) = struct.unpack_from("!i", data)
    if len(data) != 4 - -count // 8:
        raise ValueError("so many bits it does not have")
    return "".join(f"{byte:08b}" for byte in data[4:])[:count]


def _bits_binary(text: str) -> bytes:
    # varbit_send(): how many, then bytes, the last one filled with zeros.
    size = -(-len(text) // 8)
    return struct.pack("!i", len(text)) + int(text.ljust(size * 8, "0") or "0", 2).to_bytes(size)


def _tid_text(data: bytes) -> str:
    return "({},{})".format(*struct.unpack("!IH", data))


def _tid_binary(text: str) -> bytes:
    return struct.pack("!IH", *map(int, text.strip("()").split(",")))


def _hexadecimal_binary(text: str) -> bytes:
    if not text.startswith("\\x"):
        raise ValueError("bytea_output is not hex")
    return bytes.fromhex(text[2:])


def _uuid_text(data: bytes) -> str:
    if len(data) != _UUID_SIZE:
        raise ValueError("this is no uuid")
    digits = data.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _snapshot_text(data: bytes) -> str:
    # pg_snapshot_send(): how many are in progress, xmin, xmax, those in progress.
    count, *xids = struct.unpack(f"!i{(len(data) - 4) // 8}q", data)
    if count != len(xids) - 2:
        raise ValueError("this is no snapshot")
    return f"{xids[0]}:{xids[1]}:{','.join(map(str, xids[2:]))}"


def _snapshot_binary(text: str) -> bytes:
    first, last, between = text.split(":")
    xids = [int(xid) for xid in [first, last, *filter(None, between.split(","))]]
    return struct.pack(f"!i{len(xids)}q", len(xids) - 2, *xids)


def _vector(element: str, form: str) -> Form:
    """Return the form of a vector, which is an array whose index begins at 0 (int2vectorsend(), oidvectorsend())."""
    element_oid, header, item = TYPE_NAMES[element].oid, struct.Struct("!iiIii"), struct.Struct(f"!i{form}")

    def text(data: bytes) -> str:
        dimensions, nulls, oid, _, lower = header.unpack_from(data)
        if (dimensions, nulls, oid, lower) != (1, 0, element_oid, 0):
            raise ValueError("this is no vector")
        return " ".join(str(value) for _, value in item.iter_unpack(data[header.size :]))

    def binary(text: str) -> bytes:
        values = [int(word) for word in text.split()]
        items = b"".join(item.pack(item.size - 4, value) for value in values)
        return header.pack(1, 0, element_oid, len(values), 0) + items

    return Form(text, binary)


_TEXT: Final = Form(utf8, str.encode)
_XIDS: Final = Form(_snapshot_text, _snapshot_binary)
_MAC: Final = Form(lambda data: data.hex(":"), lambda text: bytes.fromhex(text.replace(":", "")))
_VERSIONED: Final = Form(_versioned_text, lambda text: b"\x01" + text.encode())

SCALARS: Final = {
    "bool": Form({b"\0": "f", b"\1": "t"}.__getitem__, lambda text: bytes(["ft".index(text)])),
    "bytea": Form(hexadecimal, _hexadecimal_binary),
    "char": Form(_char_text, _char_binary),
    **dict.fromkeys(("name", "text", "json", "xml", "bpchar", "varchar", "refcursor"), _TEXT),
    "int8": _number("!q"),
    "int2": _number("!h"),
    "int4": _number("!i"),
    **dict.fromkeys(("oid", "xid", "cid"), _number("!I")),
    **dict.fromkeys(("xid8", "oid8"), _number("!Q")),
    "tid": Form(_tid_text, _tid_binary),
    "cidr": Form(_address_text, partial(_address_binary, True)),
    "inet": Form(_address_text, partial(_address_binary, False)),
    **dict.fromkeys(("macaddr", "macaddr8"), _MAC),
    **dict.fromkeys(("bit", "varbit"), Form(_bits_text, _bits_binary)),
    "uuid": Form(_uuid_text, lambda text: bytes.fromhex(text.replace("-", ""))),
    # Servers before 19 write a position so; later ones fill up its second half with zeros, to eight digits.
    "pg_lsn": Form(lambda data: str(Lsn(int.from_bytes(data))), lambda text: int(Lsn(text)).to_bytes(8)),
    **dict.fromkeys(("jsonb", "jsonpath"), _VERSIONED),
    **dict.fromkeys(("txid_snapshot", "pg_snapshot"), _XIDS),
    "int2vector": _vector("int2", "h"),
    "oidvector": _vector("oid", "I"),
}
"""By name in pg_type."""
