# Generated from spec/replication.yaml by: python -m tools.generate. Do not edit.

"""Streaming replication envelope: the fast engine, the same layouts as straight-line Python.

It raises one of fast.REJECTIONS for whatever it does not accept; the definitions then say what is wrong.
"""

from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any, Final

from pgoutput_construct.wire import frames as m
from pgoutput_construct.wire.codec_runtime import Reject, draft, number
from pgoutput_construct.wire.types import Lsn, Timestamp

__all__ = ["BUILDERS", "READERS"]

_HotStandbyFeedback = draft(m.HotStandbyFeedback)
_PrimaryKeepalive = draft(m.PrimaryKeepalive)
_PrimaryStatusRequest = draft(m.PrimaryStatusRequest)
_PrimaryStatusUpdate = draft(m.PrimaryStatusUpdate)
_StandbyStatusUpdate = draft(m.StandbyStatusUpdate)
_XLogData = draft(m.XLogData)
_pack_BQQQq = Struct(">BQQQq").pack
_pack_BQQQqB = Struct(">BQQQqB").pack
_pack_BQQq = Struct(">BQQq").pack
_pack_BQqB = Struct(">BQqB").pack
_pack_Bq = Struct(">Bq").pack
_pack_BqIIII = Struct(">BqIIII").pack
_unpack_xQQQq = Struct(">xQQQq").unpack_from
_unpack_xQQQqB = Struct(">xQQQqB").unpack_from
_unpack_xQQq = Struct(">xQQq").unpack_from
_unpack_xQqB = Struct(">xQqB").unpack_from
_unpack_xq = Struct(">xq").unpack_from
_unpack_xqIIII = Struct(">xqIIII").unpack_from


def _read_x_log_data(data: bytes, at: int, size: int) -> tuple[m.XLogData, int]:
    wal_start, wal_end, send_time = _unpack_xQQq(data, at)
    at += 25
    wal_start = number(Lsn, wal_start)
    wal_end = number(Lsn, wal_end)
    send_time = number(Timestamp, send_time)
    if at > size:
        raise Reject
    data_ = data[at:size]
    at = size
    message = _XLogData()
    message.wal_start = wal_start
    message.wal_end = wal_end
    message.send_time = send_time
    message.data = data_
    message.__class__ = m.XLogData
    return message, at


def _read_primary_keepalive(data: bytes, at: int, size: int) -> tuple[m.PrimaryKeepalive, int]:
    wal_end, send_time, reply_requested = _unpack_xQqB(data, at)
    at += 18
    wal_end = number(Lsn, wal_end)
    send_time = number(Timestamp, send_time)
    if reply_requested not in (0, 1):
        raise Reject
    message = _PrimaryKeepalive()
    message.wal_end = wal_end
    message.send_time = send_time
    message.reply_requested = reply_requested
    message.__class__ = m.PrimaryKeepalive
    return message, at


def _read_primary_status_update(data: bytes, at: int, size: int) -> tuple[m.PrimaryStatusUpdate, int]:
    lsn, oldest_full_xid, next_full_xid, send_time = _unpack_xQQQq(data, at)
    at += 33
    lsn = number(Lsn, lsn)
    send_time = number(Timestamp, send_time)
    message = _PrimaryStatusUpdate()
    message.lsn = lsn
    message.oldest_full_xid = oldest_full_xid
    message.next_full_xid = next_full_xid
    message.send_time = send_time
    message.__class__ = m.PrimaryStatusUpdate
    return message, at


def _read_standby_status_update(data: bytes, at: int, size: int) -> tuple[m.StandbyStatusUpdate, int]:
    write_lsn, flush_lsn, apply_lsn, send_time, reply_requested = _unpack_xQQQqB(data, at)
    at += 34
    write_lsn = number(Lsn, write_lsn)
    flush_lsn = number(Lsn, flush_lsn)
    apply_lsn = number(Lsn, apply_lsn)
    send_time = number(Timestamp, send_time)
    if reply_requested not in (0, 1):
        raise Reject
    message = _StandbyStatusUpdate()
    message.write_lsn = write_lsn
    message.flush_lsn = flush_lsn
    message.apply_lsn = apply_lsn
    message.send_time = send_time
    message.reply_requested = reply_requested
    message.__class__ = m.StandbyStatusUpdate
    return message, at


def _read_hot_standby_feedback(data: bytes, at: int, size: int) -> tuple[m.HotStandbyFeedback, int]:
    send_time, xmin, xmin_epoch, catalog_xmin, catalog_xmin_epoch = _unpack_xqIIII(data, at)
    at += 25
    send_time = number(Timestamp, send_time)
    message = _HotStandbyFeedback()
    message.send_time = send_time
    message.xmin = xmin
    message.xmin_epoch = xmin_epoch
    message.catalog_xmin = catalog_xmin
    message.catalog_xmin_epoch = catalog_xmin_epoch
    message.__class__ = m.HotStandbyFeedback
    return message, at


def _read_primary_status_request(data: bytes, at: int, size: int) -> tuple[m.PrimaryStatusRequest, int]:
    (send_time,) = _unpack_xq(data, at)
    at += 9
    send_time = number(Timestamp, send_time)
    message = _PrimaryStatusRequest()
    message.send_time = send_time
    message.__class__ = m.PrimaryStatusRequest
    return message, at


def build_x_log_data(message: Any) -> bytes:
    """Build XLogData."""
    pieces: list[bytes] = []
    if not isinstance(message.data, bytes):
        raise Reject
    pieces.append(_pack_BQQq(119, message.wal_start, message.wal_end, message.send_time))
    pieces.append(message.data)
    return b"".join(pieces)


def build_primary_keepalive(message: Any) -> bytes:
    """Build PrimaryKeepalive."""
    pieces: list[bytes] = []
    if message.reply_requested not in (0, 1):
        raise Reject
    pieces.append(_pack_BQqB(107, message.wal_end, message.send_time, message.reply_requested))
    return b"".join(pieces)


def build_primary_status_update(message: Any) -> bytes:
    """Build PrimaryStatusUpdate."""
    pieces: list[bytes] = []
    pieces.append(_pack_BQQQq(115, message.lsn, message.oldest_full_xid, message.next_full_xid, message.send_time))
    return b"".join(pieces)


def build_standby_status_update(message: Any) -> bytes:
    """Build StandbyStatusUpdate."""
    pieces: list[bytes] = []
    if message.reply_requested not in (0, 1):
        raise Reject
    pieces.append(
        _pack_BQQQqB(
            114, message.write_lsn, message.flush_lsn, message.apply_lsn, message.send_time, message.reply_requested
        )
    )
    return b"".join(pieces)


def build_hot_standby_feedback(message: Any) -> bytes:
    """Build HotStandbyFeedback."""
    pieces: list[bytes] = []
    pieces.append(
        _pack_BqIIII(
            104, message.send_time, message.xmin, message.xmin_epoch, message.catalog_xmin, message.catalog_xmin_epoch
        )
    )
    return b"".join(pieces)


def build_primary_status_request(message: Any) -> bytes:
    """Build PrimaryStatusRequest."""
    pieces: list[bytes] = []
    pieces.append(_pack_Bq(112, message.send_time))
    return b"".join(pieces)


READERS: Final[Mapping[int, Callable[..., tuple[Any, int]]]] = {
    119: _read_x_log_data,
    107: _read_primary_keepalive,
    115: _read_primary_status_update,
    114: _read_standby_status_update,
    104: _read_hot_standby_feedback,
    112: _read_primary_status_request,
}
"""What reads a message by its tag: ``(data, at, size, *parameters) -> message, end``.

It may read as far behind ``size`` as PAD is long; an ``end`` beyond ``size`` means that not all of it is there.
"""

BUILDERS: Final[Mapping[type, Callable[..., bytes]]] = {
    m.XLogData: build_x_log_data,
    m.PrimaryKeepalive: build_primary_keepalive,
    m.PrimaryStatusUpdate: build_primary_status_update,
    m.StandbyStatusUpdate: build_standby_status_update,
    m.HotStandbyFeedback: build_hot_standby_feedback,
    m.PrimaryStatusRequest: build_primary_status_request,
}
"""What builds an object of each class: ``(message, *parameters) -> bytes``."""
