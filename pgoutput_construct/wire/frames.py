# Generated from spec/replication.yaml by: python -m tools.generate. Do not edit.

"""Streaming replication envelope: the message classes, fields in wire order.

Constants, counts and lengths are on the wire and not here; what is absent on the wire is None.
Source: PostgreSQL's documentation, protocol-replication.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from pgoutput_construct.wire.types import (
    Lsn,
    Timestamp,
)

__all__ = [
    "Frame",
    "HotStandbyFeedback",
    "PrimaryKeepalive",
    "PrimaryStatusRequest",
    "PrimaryStatusUpdate",
    "StandbyStatusUpdate",
    "XLogData",
]


@dataclass(frozen=True, slots=True)
class XLogData:
    """A piece of WAL; in logical replication, one message. PostgreSQL 19 calls it WALData.

    Source: protocol-replication, XLogData.
    PostgreSQL 10 and newer, sent by the server.

    Attributes:
        wal_start: LSN of the message, 0/0 for Relation, Type and what an Origin follows.
        wal_end: In logical replication, the same as wal_start.
        send_time: The server's clock when it sent this, in microseconds since 2000-01-01 UTC.
        data: The payload, to the end.
    """

    TAG = b"w"

    wal_start: Lsn
    wal_end: Lsn
    send_time: Timestamp
    data: bytes


@dataclass(frozen=True, slots=True)
class PrimaryKeepalive:
    """Reports how far the server has read its WAL.

    Source: protocol-replication, Primary Keepalive.
    PostgreSQL 10 and newer, sent by the server.

    Attributes:
        wal_end: End of the WAL that the server has sent.
        send_time: The server's clock when it sent this, in microseconds since 2000-01-01 UTC.
        reply_requested: 1 asks for a status update at once.
    """

    TAG = b"k"

    wal_end: Lsn
    send_time: Timestamp
    reply_requested: int


@dataclass(frozen=True, slots=True)
class PrimaryStatusUpdate:
    """Answers a status request: how far the primary has come.

    Source: protocol-replication, Primary Status Update.
    PostgreSQL 19 and newer, sent by the server.

    Attributes:
        lsn: Latest WAL position of the primary.
        oldest_full_xid: Oldest transaction that is committing on the primary.
        next_full_xid: Next transaction ID to be assigned.
        send_time: The server's clock when it sent this, in microseconds since 2000-01-01 UTC.
    """

    TAG = b"s"

    lsn: Lsn
    oldest_full_xid: int
    next_full_xid: int
    send_time: Timestamp


@dataclass(frozen=True, slots=True)
class StandbyStatusUpdate:
    """Confirms what the client has received and made durable.

    Source: protocol-replication, Standby Status Update.
    PostgreSQL 10 and newer, sent by the client.

    Attributes:
        write_lsn: LSN after the last byte received.
        flush_lsn: LSN after the last byte made durable; only this moves the slot.
        apply_lsn: LSN after the last byte applied.
        send_time: The client's clock when it sent this, in microseconds since 2000-01-01 UTC.
        reply_requested: 1 asks the server for a keepalive at once.
    """

    TAG = b"r"

    write_lsn: Lsn
    flush_lsn: Lsn
    apply_lsn: Lsn
    send_time: Timestamp
    reply_requested: int


@dataclass(frozen=True, slots=True)
class HotStandbyFeedback:
    """Reports which transactions a standby still needs.

    Source: protocol-replication, Hot Standby Feedback.
    PostgreSQL 10 and newer, sent by the client.

    Attributes:
        send_time: The client's clock when it sent this, in microseconds since 2000-01-01 UTC.
        xmin: Oldest transaction the standby needs, 0 when it needs none.
        xmin_epoch: Epoch of xmin.
        catalog_xmin: Oldest transaction its slots need in catalogs, 0 when they need none.
        catalog_xmin_epoch: Epoch of catalog_xmin.
    """

    TAG = b"h"

    send_time: Timestamp
    xmin: int
    xmin_epoch: int
    catalog_xmin: int
    catalog_xmin_epoch: int


@dataclass(frozen=True, slots=True)
class PrimaryStatusRequest:
    """Asks the primary for a status update.

    Source: protocol-replication, Primary Status Request.
    PostgreSQL 19 and newer, sent by the client.

    Attributes:
        send_time: The client's clock when it sent this, in microseconds since 2000-01-01 UTC.
    """

    TAG = b"p"

    send_time: Timestamp


Frame: TypeAlias = (
    XLogData | PrimaryKeepalive | PrimaryStatusUpdate | StandbyStatusUpdate | HotStandbyFeedback | PrimaryStatusRequest
)
"""Any of the messages."""

BY_TAG: Final[Mapping[bytes, type[Frame]]] = {
    b"w": XLogData,
    b"k": PrimaryKeepalive,
    b"s": PrimaryStatusUpdate,
    b"r": StandbyStatusUpdate,
    b"h": HotStandbyFeedback,
    b"p": PrimaryStatusRequest,
}
"""The class of each first byte."""
