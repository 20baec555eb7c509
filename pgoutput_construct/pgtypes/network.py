"""Addresses: inet and cidr (network.c), macaddr and macaddr8 (mac.c, mac8.c)."""

from collections.abc import Mapping, Sequence
from functools import partial
from ipaddress import ip_address
from typing import Final

from pgoutput_construct.pgtypes.family import Compiled, Family
from pgoutput_construct.pgtypes.value_codec import Codec

__all__ = ["FAMILY"]

_IPV4_TAILS = {bytes(12): "::", bytes(10) + b"\xff\xff": "::ffff:"}  # inet_net_ntop.c
_FAMILIES = {4: 2, 6: 3}  # PGSQL_AF_INET and PGSQL_AF_INET6 in inet.h


def _address_text(data: bytes) -> str:
    # network_send(): family, bits, whether cidr, length, address.
    bits, cidr, address = data[1], data[2], ip_address(data[4:])
    if bits > address.max_prefixlen:
        raise ValueError(f"prefix length {bits} exceeds the address's {address.max_prefixlen} bits")
    lead = _IPV4_TAILS.get(data[4:16], "") if any(data[14:18]) else ""
    text = f"{lead}{ip_address(data[16:])}" if lead else str(address)
    return f"{text}/{bits}" if cidr or bits != address.max_prefixlen else text


def _address_binary(cidr: bool, text: str) -> bytes:
    words, _, bits = text.partition("/")
    address = ip_address(words)
    length = int(bits) if bits else address.max_prefixlen
    return bytes([_FAMILIES[address.version], length, cidr, len(address.packed)]) + address.packed


def _compiled() -> Mapping[str, Sequence[Compiled]]:
    import pyarrow as pa

    from pgoutput_construct.pgtypes.kernels import planned_casts, text_casts

    address = Compiled(pa.types.is_string, planned_casts.TEXT, text_casts.INET_BINARY)
    return {"inet": [address], "cidr": [address]}


_MAC: Final = Codec(lambda data: data.hex(":"), lambda text: bytes.fromhex(text.replace(":", "")))

FAMILY: Final = Family(
    {
        "cidr": Codec(_address_text, partial(_address_binary, True)),
        "inet": Codec(_address_text, partial(_address_binary, False)),
        **dict.fromkeys(("macaddr", "macaddr8"), _MAC),
    },
    compiled=_compiled,
)
