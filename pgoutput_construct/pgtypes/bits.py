"""Bit strings: bit and varbit (varbit.c)."""

import struct
from typing import Final

from pgoutput_construct.pgtypes.family import Family
from pgoutput_construct.pgtypes.value_codec import Codec

__all__ = ["FAMILY"]


def _bits_text(data: bytes) -> str:
    (count,) = struct.unpack_from("!i", data)
    if len(data) != 4 - -count // 8:
        raise ValueError(f"bit count {count} does not match {len(data) - 4} bytes")
    return "".join(f"{byte:08b}" for byte in data[4:])[:count]


def _bits_binary(text: str) -> bytes:
    # varbit_send(): the bit count, then the bytes, the last one padded with zero bits.
    size = -(-len(text) // 8)
    return struct.pack("!i", len(text)) + int(text.ljust(size * 8, "0") or "0", 2).to_bytes(size)


FAMILY: Final = Family(dict.fromkeys(("bit", "varbit"), Codec(_bits_text, _bits_binary)))
