# Generated from spec/replication.yaml by: python -m tools.generate. Do not edit.

"""Streaming replication envelope: the message classes, fields in wire order.

Constants, counts and lengths are on the wire and not here; what is absent on the wire is None.
Source: PostgreSQL's documentation, protocol-replication.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

from pgoutput_construct.wire.types import Lsn, Timestamp

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
    """

    TAG: ClassVar[bytes] = b"w"

    wal_start: Lsn
    """LSN of the message, 0/0 for Relation, Type and what an Origin follows."""
    wal_end: Lsn
    """In logical replication, the same as wal_start."""
    send_time: Timestamp
    """The server's clock when it sent this, in microseconds since 2000-01-01 UTC."""
    data: bytes
    """The payload, to the end."""


@dataclass(frozen=True, slots=True)
class PrimaryKeepalive:
    """Tells how far the server has read its WAL.

    Source: protocol-replication, Primary Keepalive.
    PostgreSQL 10 and newer, sent by the server.
    """

    TAG: ClassVar[bytes] = b"k"

    wal_end: Lsn
    """End of the WAL that the server has sent."""
    send_time: Timestamp
    """The server's clock when it sent this, in microseconds since 2000-01-01 UTC."""
    reply_requested: int
    """1 asks for a status update at once."""


@dataclass(frozen=True, slots=True)
class PrimaryStatusUpdate:
    """Answers a status request: how far the primary has come.

    Source: protocol-replication, Primary Status Update.
    PostgreSQL 19 and newer, sent by the server.
    """

    TAG: ClassVar[bytes] = b"s"

    lsn: Lsn
    """Latest WAL position of the primary."""
    oldest_full_xid: int
    """Oldest transaction that is committing on the primary."""
    next_full_xid: int
    """Next transaction ID to be assigned."""
    send_time: Timestamp
    """The server's clock when it sent this, in microseconds since 2000-01-01 UTC."""


@dataclass(frozen=True, slots=True)
class StandbyStatusUpdate:
    """Confirms what the client has received and made durable.

    Source: protocol-replication, Standby Status Update.
    PostgreSQL 10 and newer, sent by the client.
    """

    TAG: ClassVar[bytes] = b"r"

    write_lsn: Lsn
    """LSN after the last byte received."""
    flush_lsn: Lsn
    """LSN after the last byte made durable; only this moves the slot."""
    apply_lsn: Lsn
    """LSN after the last byte applied."""
    send_time: Timestamp
    """The client's clock when it sent this, in microseconds since 2000-01-01 UTC."""
    reply_requested: int
    """1 asks the server for a keepalive at once."""


@dataclass(frozen=True, slots=True)
class HotStandbyFeedback:
    """Tells which transactions a standby still needs.

    Source: protocol-replication, Hot Standby Feedback.
    PostgreSQL 10 and newer, sent by the client.
    """

    TAG: ClassVar[bytes] = b"h"

    send_time: Timestamp
    """The client's clock when it sent this, in microseconds since 2000-01-01 UTC."""
    xmin: int
    """Oldest transaction the standby needs, 0 when it needs none."""
    xmin_epoch: int
    """Epoch of xmin."""
    catalog_xmin: int
    """Oldest transaction its slots need in catalogs, 0 when they need none."""
    catalog_xmin_epoch: int
    """Epoch of catalog_xmin."""


@dataclass(frozen=True, slots=True)
class PrimaryStatusRequest:
    """Asks the primary for a status update.

    Source: protocol-replication, Primary Status Request.
    PostgreSQL 19 and newer, sent by the client.
    """

    TAG: ClassVar[bytes] = b"p"

    send_time: Timestamp
    """The client's clock when it sent this, in microseconds since 2000-01-01 UTC."""


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
