"""What every row's message begins with, without decoding the rest: its kind, its xid, its table."""

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.wire.engine import build
from pgoutput_construct.wire.messages import Delete, Insert, Truncate, Update

__all__ = ["ROWS", "TRUNCATE", "integers_at", "is_row", "relation_offset", "tags", "xid_offset"]

ROWS = np.frombuffer(b"".join(kind.TAG for kind in (Insert, Update, Delete, Truncate)), np.uint8)
"""The tags (first bytes) of messages that change rows."""

TRUNCATE = Truncate.TAG[0]
"""The kind whose tables do not stand at ``relation_offset``: there may be several."""

_XID, _OID = 0x1A2B3C4D, 0x5E6F7081


@cache
def _probe(in_stream: bool) -> bytes:
    """Return a row's message with numbers that can be found again: the layout comes from the definitions alone."""
    xid = _XID if in_stream else None
    return build(Insert(xid, _OID, ()), 2, "on" if in_stream else "off", in_stream)


def xid_offset() -> int:
    """Return at which byte a row's message has the xid of its (sub)transaction, inside a stream."""
    return _probe(True).index(_XID.to_bytes(4))


def relation_offset(in_stream: bool) -> int:
    """Return at which byte an Insert, Update or Delete has the OID of its table."""
    return _probe(in_stream).index(_OID.to_bytes(4))


def tags(payloads: pa.BinaryArray) -> NDArray[np.uint8]:
    """Return the first byte of each payload, 0 where there is none."""
    return _gather(payloads, np.zeros(len(payloads), np.int64), 1)[:, 0]


def is_row(payloads: pa.BinaryArray) -> NDArray[np.bool_]:
    """Tell of each payload whether its message changes rows."""
    return np.isin(tags(payloads), ROWS)


def integers_at(payloads: pa.BinaryArray, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the Int32 (unsigned) at one offset in each payload; bytes beyond a payload's end count as 0."""
    found = np.ascontiguousarray(_gather(payloads, offsets, 4))
    return found.view(">u4")[:, 0].astype(np.int64)


def _gather(payloads: pa.BinaryArray, offsets: NDArray[np.int64], width: int) -> NDArray[np.uint8]:
    _, ends, data = payloads.buffers()
    if not len(payloads):
        return np.zeros((0, width), np.uint8)
    width_of_offsets = np.int64 if pa.types.is_large_binary(payloads.type) else np.int32
    every: NDArray[Any] = np.frombuffer(ends, width_of_offsets)
    bounds = every[payloads.offset : payloads.offset + len(payloads) + 1]
    content = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    places = (bounds[:-1].astype(np.int64) + offsets)[:, None] + np.arange(width)
    inside = places < bounds[1:, None]
    return np.where(inside, content[np.minimum(places, len(content) - 1)], 0).astype(np.uint8)
