"""The server's own identifiers: OIDs, transaction IDs, LSNs, tuple IDs, snapshots, and names in its catalog."""

import struct
from collections.abc import Mapping, Sequence
from typing import Final

from pgoutput_construct.pgtypes.builtin_types import TYPE_NAMES
from pgoutput_construct.pgtypes.family import Compiled, Family
from pgoutput_construct.pgtypes.numbers import integer_codec
from pgoutput_construct.pgtypes.value_codec import Codec
from pgoutput_construct.wire.types import Lsn

__all__ = ["FAMILY"]


def _tid_text(data: bytes) -> str:
    return "({},{})".format(*struct.unpack("!IH", data))


def _tid_binary(text: str) -> bytes:
    return struct.pack("!IH", *map(int, text.strip("()").split(",")))


def _snapshot_text(data: bytes) -> str:
    # pg_snapshot_send(): the number of xids in progress, xmin, xmax, the xids in progress.
    count, *xids = struct.unpack(f"!i{(len(data) - 4) // 8}q", data)
    if count != len(xids) - 2:
        raise ValueError("not a snapshot")
    return f"{xids[0]}:{xids[1]}:{','.join(map(str, xids[2:]))}"


def _snapshot_binary(text: str) -> bytes:
    first, last, between = text.split(":")
    xids = [int(xid) for xid in [first, last, *filter(None, between.split(","))]]
    return struct.pack(f"!i{len(xids)}q", len(xids) - 2, *xids)


def _vector(element: str, layout: str) -> Codec:
    """Return the codec of a vector: an array with lower bound 0 (int2vectorsend(), oidvectorsend())."""
    element_oid, header, item = TYPE_NAMES[element].oid, struct.Struct("!iiIii"), struct.Struct(f"!i{layout}")

    def text(data: bytes) -> str:
        dimensions, nulls, oid, _, lower = header.unpack_from(data)
        if (dimensions, nulls, oid, lower) != (1, 0, element_oid, 0):
            raise ValueError("not a vector")
        return " ".join(str(value) for _, value in item.iter_unpack(data[header.size :]))

    def binary(text: str) -> bytes:
        values = [int(word) for word in text.split()]
        items = b"".join(item.pack(item.size - 4, value) for value in values)
        return header.pack(1, 0, element_oid, len(values), 0) + items

    return Codec(text, binary)


def _compiled() -> Mapping[str, Sequence[Compiled]]:
    import pyarrow as pa

    from pgoutput_construct.pgtypes.kernels import planned_casts

    return {
        "oid": [Compiled(pa.types.is_integer, planned_casts.INTEGER_TEXT, planned_casts.big_endian(4, signed=False))]
    }


_XIDS: Final = Codec(_snapshot_text, _snapshot_binary)

FAMILY: Final = Family(
    {
        **dict.fromkeys(("oid", "xid", "cid"), integer_codec("!I")),
        **dict.fromkeys(("xid8", "oid8"), integer_codec("!Q")),
        "tid": Codec(_tid_text, _tid_binary),
        # As servers before 19 write it; later ones pad the second half with zeros to eight digits.
        "pg_lsn": Codec(lambda data: str(Lsn(int.from_bytes(data))), lambda text: int(Lsn(text)).to_bytes(8)),
        **dict.fromkeys(("txid_snapshot", "pg_snapshot"), _XIDS),
        "int2vector": _vector("int2", "h"),
        "oidvector": _vector("oid", "I"),
    },
    without_codec=[
        *("regproc", "regprocedure", "regoper", "regoperator", "regclass", "regtype", "regconfig", "regdictionary"),
        *("regnamespace", "regrole", "regcollation", "regdatabase", "aclitem"),
    ],
    compiled=_compiled,
)
