# Generated from spec/replication.yaml by: python -m tools.generate. Do not edit.

"""Streaming replication envelope: the fast engine, the same layouts as straight-line Python.

It raises one of fast.REJECTIONS for whatever it does not accept; the definitions then say what is wrong.
"""

from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any, Final

from pgoutput_construct.wire import frames as m
from pgoutput_construct.wire.fast import PAD, Reject, new, number, setters
from pgoutput_construct.wire.types import Lsn, Timestamp

__all__ = ["BUILDERS", "PARSERS"]

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

(
    _x_log_data_wal_start,
    _x_log_data_wal_end,
    _x_log_data_send_time,
    _x_log_data_data,
) = setters(m.XLogData)
(
    _primary_keepalive_wal_end,
    _primary_keepalive_send_time,
    _primary_keepalive_reply_requested,
) = setters(m.PrimaryKeepalive)
(
    _primary_status_update_lsn,
    _primary_status_update_oldest_full_xid,
    _primary_status_update_next_full_xid,
    _primary_status_update_send_time,
) = setters(m.PrimaryStatusUpdate)
(
    _standby_status_update_write_lsn,
    _standby_status_update_flush_lsn,
    _standby_status_update_apply_lsn,
    _standby_status_update_send_time,
    _standby_status_update_reply_requested,
) = setters(m.StandbyStatusUpdate)
(
    _hot_standby_feedback_send_time,
    _hot_standby_feedback_xmin,
    _hot_standby_feedback_xmin_epoch,
    _hot_standby_feedback_catalog_xmin,
    _hot_standby_feedback_catalog_xmin_epoch,
) = setters(m.HotStandbyFeedback)
(_primary_status_request_send_time,) = setters(m.PrimaryStatusRequest)


def parse_x_log_data(data: bytes) -> m.XLogData:
    """Parse XLogData."""
    size = len(data)
    data += PAD
    wal_start, wal_end, send_time = _unpack_xQQq(data, 0)
    at = 25
    wal_start = number(Lsn, wal_start)
    wal_end = number(Lsn, wal_end)
    send_time = number(Timestamp, send_time)
    if at > size:
        raise Reject
    data_ = data[at:size]
    at = size
    if at != size:
        raise Reject
    message = new(m.XLogData)
    _x_log_data_wal_start(message, wal_start)
    _x_log_data_wal_end(message, wal_end)
    _x_log_data_send_time(message, send_time)
    _x_log_data_data(message, data_)
    return message


def parse_primary_keepalive(data: bytes) -> m.PrimaryKeepalive:
    """Parse PrimaryKeepalive."""
    if len(data) != 18:
        raise Reject
    wal_end, send_time, reply_requested = _unpack_xQqB(data, 0)
    wal_end = number(Lsn, wal_end)
    send_time = number(Timestamp, send_time)
    if reply_requested not in (0, 1):
        raise Reject
    message = new(m.PrimaryKeepalive)
    _primary_keepalive_wal_end(message, wal_end)
    _primary_keepalive_send_time(message, send_time)
    _primary_keepalive_reply_requested(message, reply_requested)
    return message


def parse_primary_status_update(data: bytes) -> m.PrimaryStatusUpdate:
    """Parse PrimaryStatusUpdate."""
    if len(data) != 33:
        raise Reject
    lsn, oldest_full_xid, next_full_xid, send_time = _unpack_xQQQq(data, 0)
    lsn = number(Lsn, lsn)
    send_time = number(Timestamp, send_time)
    message = new(m.PrimaryStatusUpdate)
    _primary_status_update_lsn(message, lsn)
    _primary_status_update_oldest_full_xid(message, oldest_full_xid)
    _primary_status_update_next_full_xid(message, next_full_xid)
    _primary_status_update_send_time(message, send_time)
    return message


def parse_standby_status_update(data: bytes) -> m.StandbyStatusUpdate:
    """Parse StandbyStatusUpdate."""
    if len(data) != 34:
        raise Reject
    write_lsn, flush_lsn, apply_lsn, send_time, reply_requested = _unpack_xQQQqB(data, 0)
    write_lsn = number(Lsn, write_lsn)
    flush_lsn = number(Lsn, flush_lsn)
    apply_lsn = number(Lsn, apply_lsn)
    send_time = number(Timestamp, send_time)
    if reply_requested not in (0, 1):
        raise Reject
    message = new(m.StandbyStatusUpdate)
    _standby_status_update_write_lsn(message, write_lsn)
    _standby_status_update_flush_lsn(message, flush_lsn)
    _standby_status_update_apply_lsn(message, apply_lsn)
    _standby_status_update_send_time(message, send_time)
    _standby_status_update_reply_requested(message, reply_requested)
    return message


def parse_hot_standby_feedback(data: bytes) -> m.HotStandbyFeedback:
    """Parse HotStandbyFeedback."""
    if len(data) != 25:
        raise Reject
    send_time, xmin, xmin_epoch, catalog_xmin, catalog_xmin_epoch = _unpack_xqIIII(data, 0)
    send_time = number(Timestamp, send_time)
    message = new(m.HotStandbyFeedback)
    _hot_standby_feedback_send_time(message, send_time)
    _hot_standby_feedback_xmin(message, xmin)
    _hot_standby_feedback_xmin_epoch(message, xmin_epoch)
    _hot_standby_feedback_catalog_xmin(message, catalog_xmin)
    _hot_standby_feedback_catalog_xmin_epoch(message, catalog_xmin_epoch)
    return message


def parse_primary_status_request(data: bytes) -> m.PrimaryStatusRequest:
    """Parse PrimaryStatusRequest."""
    if len(data) != 9:
        raise Reject
    (send_time,) = _unpack_xq(data, 0)
    send_time = number(Timestamp, send_time)
    message = new(m.PrimaryStatusRequest)
    _primary_status_request_send_time(message, send_time)
    return message


def build_x_log_data(message: m.XLogData) -> bytes:
    """Build XLogData."""
    pieces: list[bytes] = []
    pieces.append(_pack_BQQq(119, message.wal_start, message.wal_end, message.send_time))
    if not isinstance(message.data, bytes):
        raise Reject
    pieces.append(message.data)
    return b"".join(pieces)


def build_primary_keepalive(message: m.PrimaryKeepalive) -> bytes:
    """Build PrimaryKeepalive."""
    pieces: list[bytes] = []
    if message.reply_requested not in (0, 1):
        raise Reject
    pieces.append(_pack_BQqB(107, message.wal_end, message.send_time, message.reply_requested))
    return b"".join(pieces)


def build_primary_status_update(message: m.PrimaryStatusUpdate) -> bytes:
    """Build PrimaryStatusUpdate."""
    pieces: list[bytes] = []
    pieces.append(_pack_BQQQq(115, message.lsn, message.oldest_full_xid, message.next_full_xid, message.send_time))
    return b"".join(pieces)


def build_standby_status_update(message: m.StandbyStatusUpdate) -> bytes:
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


def build_hot_standby_feedback(message: m.HotStandbyFeedback) -> bytes:
    """Build HotStandbyFeedback."""
    pieces: list[bytes] = []
    pieces.append(
        _pack_BqIIII(
            104, message.send_time, message.xmin, message.xmin_epoch, message.catalog_xmin, message.catalog_xmin_epoch
        )
    )
    return b"".join(pieces)


def build_primary_status_request(message: m.PrimaryStatusRequest) -> bytes:
    """Build PrimaryStatusRequest."""
    pieces: list[bytes] = []
    pieces.append(_pack_Bq(112, message.send_time))
    return b"".join(pieces)


PARSERS: Final[Mapping[int, Callable[..., Any]]] = {
    119: parse_x_log_data,
    107: parse_primary_keepalive,
    115: parse_primary_status_update,
    114: parse_standby_status_update,
    104: parse_hot_standby_feedback,
    112: parse_primary_status_request,
}
"""What parses each first byte."""

BUILDERS: Final[Mapping[type, Callable[..., Any]]] = {
    m.XLogData: build_x_log_data,
    m.PrimaryKeepalive: build_primary_keepalive,
    m.PrimaryStatusUpdate: build_primary_status_update,
    m.StandbyStatusUpdate: build_standby_status_update,
    m.HotStandbyFeedback: build_hot_standby_feedback,
    m.PrimaryStatusRequest: build_primary_status_request,
}
"""What builds each class."""
