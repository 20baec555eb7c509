# Generated from spec/replication.yaml by: python -m tools.generate. Do not edit.

"""Streaming replication envelope: kernels that walk a batch of payloads once.

Offsets are bytes from the start of data; a walk returns the offset after what it walks, -1 if that is
malformed. No length or count is used before it was compared with what is left. Names that begin with an
underscore are fields; a parameter that a state sets has a value for each row (``_by_row``).
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa

from pgoutput_construct.compiled.jit import kernel, prefetch, u8, u32, u64

__all__ = ["MESSAGE_SCHEMA", "READERS", "ROW_FIELDS", "ROW_PARAMETERS", "ROW_TAGS", "TUPLES", "index"]

TAG_XLogData = 0x77  # w
TAG_PrimaryKeepalive = 0x6B  # k
TAG_PrimaryStatusUpdate = 0x73  # s
TAG_StandbyStatusUpdate = 0x72  # r
TAG_HotStandbyFeedback = 0x68  # h
TAG_PrimaryStatusRequest = 0x70  # p

ROW_FIELDS: Final[Mapping[str, type]] = {}
"""The fields that the index stores of messages with tuples: numbers, and the offsets of the tuples (-1 for none)."""

ROW_PARAMETERS: Final[tuple[str, ...]] = ()
"""The parameters that states set: they have a value for each row."""

ROW_TAGS: Final[tuple[int, ...]] = ()
"""The tags of changes with tuples."""

MESSAGE_SCHEMA: Final = pa.schema(
    [
        ("kind", pa.string()),
        ("wal_start", pa.uint64()),
        ("wal_end", pa.uint64()),
        ("send_time", pa.int64()),
        ("data", pa.binary()),
        ("reply_requested", pa.uint8()),
        ("lsn", pa.uint64()),
        ("oldest_full_xid", pa.uint64()),
        ("next_full_xid", pa.uint64()),
        ("write_lsn", pa.uint64()),
        ("flush_lsn", pa.uint64()),
        ("apply_lsn", pa.uint64()),
        ("xmin", pa.uint32()),
        ("xmin_epoch", pa.uint32()),
        ("catalog_xmin", pa.uint32()),
        ("catalog_xmin_epoch", pa.uint32()),
    ]
)
"""The columns of a messages batch: the kind, and the header fields of all messages, null if a message has none."""


@kernel
def walk_x_log_data(data: Any, at: int, end: int) -> int:
    if end - at < 25:
        return -1
    at += 25
    at = end
    return at


@kernel
def walk_primary_keepalive(data: Any, at: int, end: int) -> int:
    if end - at < 18:
        return -1
    if u8(data, at + 17) not in (0, 1):  # reply_requested
        return -1
    at += 18
    return at


@kernel
def walk_primary_status_update(data: Any, at: int, end: int) -> int:
    if end - at < 33:
        return -1
    at += 33
    return at


@kernel
def walk_standby_status_update(data: Any, at: int, end: int) -> int:
    if end - at < 34:
        return -1
    if u8(data, at + 33) not in (0, 1):  # reply_requested
        return -1
    at += 34
    return at


@kernel
def walk_hot_standby_feedback(data: Any, at: int, end: int) -> int:
    if end - at < 25:
        return -1
    at += 25
    return at


@kernel
def walk_primary_status_request(data: Any, at: int, end: int) -> int:
    if end - at < 9:
        return -1
    at += 9
    return at


@kernel
def index(data: Any, starts: Any, ends: Any, tags: Any, valid: Any) -> None:
    """Index a batch: the tag of each payload, whether it is a message, and what is kept of rows."""
    for row in range(len(starts)):
        at, end = starts[row], ends[row]
        prefetch(data, at)
        if at >= end:
            tags[row] = valid[row] = 0
            continue
        tag = u8(data, at)
        tags[row] = tag
        if tag == TAG_XLogData:
            at = walk_x_log_data(data, at, end)
        elif tag == TAG_PrimaryKeepalive:
            at = walk_primary_keepalive(data, at, end)
        elif tag == TAG_PrimaryStatusUpdate:
            at = walk_primary_status_update(data, at, end)
        elif tag == TAG_StandbyStatusUpdate:
            at = walk_standby_status_update(data, at, end)
        elif tag == TAG_HotStandbyFeedback:
            at = walk_hot_standby_feedback(data, at, end)
        elif tag == TAG_PrimaryStatusRequest:
            at = walk_primary_status_request(data, at, end)
        else:
            at = -1
        valid[row] = at == end


@kernel
def read_x_log_data(
    data: Any,
    starts: Any,
    ends: Any,
    _wal_start: Any,
    _wal_end: Any,
    _send_time: Any,
    _data_START: Any,
    _data_SIZE: Any,
) -> None:
    for row in range(len(starts)):
        at, end = starts[row], ends[row]
        _wal_start[row] = u64(data, at + 1)
        _wal_end[row] = u64(data, at + 9)
        _send_time[row] = u64(data, at + 17)
        at += 25
        _data_START[row] = at
        at = end
        _data_SIZE[row] = at - _data_START[row]


@kernel
def read_primary_keepalive(
    data: Any, starts: Any, ends: Any, _wal_end: Any, _send_time: Any, _reply_requested: Any
) -> None:
    for row in range(len(starts)):
        at = starts[row]
        _wal_end[row] = u64(data, at + 1)
        _send_time[row] = u64(data, at + 9)
        _reply_requested[row] = u8(data, at + 17)
        at += 18


@kernel
def read_primary_status_update(
    data: Any, starts: Any, ends: Any, _lsn: Any, _oldest_full_xid: Any, _next_full_xid: Any, _send_time: Any
) -> None:
    for row in range(len(starts)):
        at = starts[row]
        _lsn[row] = u64(data, at + 1)
        _oldest_full_xid[row] = u64(data, at + 9)
        _next_full_xid[row] = u64(data, at + 17)
        _send_time[row] = u64(data, at + 25)
        at += 33


@kernel
def read_standby_status_update(
    data: Any,
    starts: Any,
    ends: Any,
    _write_lsn: Any,
    _flush_lsn: Any,
    _apply_lsn: Any,
    _send_time: Any,
    _reply_requested: Any,
) -> None:
    for row in range(len(starts)):
        at = starts[row]
        _write_lsn[row] = u64(data, at + 1)
        _flush_lsn[row] = u64(data, at + 9)
        _apply_lsn[row] = u64(data, at + 17)
        _send_time[row] = u64(data, at + 25)
        _reply_requested[row] = u8(data, at + 33)
        at += 34


@kernel
def read_hot_standby_feedback(
    data: Any,
    starts: Any,
    ends: Any,
    _send_time: Any,
    _xmin: Any,
    _xmin_epoch: Any,
    _catalog_xmin: Any,
    _catalog_xmin_epoch: Any,
) -> None:
    for row in range(len(starts)):
        at = starts[row]
        _send_time[row] = u64(data, at + 1)
        _xmin[row] = u32(data, at + 9)
        _xmin_epoch[row] = u32(data, at + 13)
        _catalog_xmin[row] = u32(data, at + 17)
        _catalog_xmin_epoch[row] = u32(data, at + 21)
        at += 25


@kernel
def read_primary_status_request(data: Any, starts: Any, ends: Any, _send_time: Any) -> None:
    for row in range(len(starts)):
        at = starts[row]
        _send_time[row] = u64(data, at + 1)
        at += 9


READERS: Final[Mapping[int, tuple[str, Callable[..., None] | None, tuple[tuple[str, str], ...]]]] = {
    TAG_XLogData: (
        "XLogData",
        read_x_log_data,
        (
            ("wal_start", "number"),
            ("wal_end", "number"),
            ("send_time", "number"),
            ("data", "bytes"),
        ),
    ),
    TAG_PrimaryKeepalive: (
        "PrimaryKeepalive",
        read_primary_keepalive,
        (
            ("wal_end", "number"),
            ("send_time", "number"),
            ("reply_requested", "number"),
        ),
    ),
    TAG_PrimaryStatusUpdate: (
        "PrimaryStatusUpdate",
        read_primary_status_update,
        (
            ("lsn", "number"),
            ("oldest_full_xid", "number"),
            ("next_full_xid", "number"),
            ("send_time", "number"),
        ),
    ),
    TAG_StandbyStatusUpdate: (
        "StandbyStatusUpdate",
        read_standby_status_update,
        (
            ("write_lsn", "number"),
            ("flush_lsn", "number"),
            ("apply_lsn", "number"),
            ("send_time", "number"),
            ("reply_requested", "number"),
        ),
    ),
    TAG_HotStandbyFeedback: (
        "HotStandbyFeedback",
        read_hot_standby_feedback,
        (
            ("send_time", "number"),
            ("xmin", "number"),
            ("xmin_epoch", "number"),
            ("catalog_xmin", "number"),
            ("catalog_xmin_epoch", "number"),
        ),
    ),
    TAG_PrimaryStatusRequest: ("PrimaryStatusRequest", read_primary_status_request, (("send_time", "number"),)),
}
"""By tag: the message's name, the kernel that reads its header, and the column and kind of each of its fields."""

TUPLES: Final[Mapping[str, Callable[..., bool]]] = {}
"""The kernels that locate the values of tuples, by part; they return whether all have ``columns`` values."""
