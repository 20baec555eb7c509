# Generated from spec/replication.yaml by: python -m tools.generate. Do not edit.

"""Streaming replication envelope: the construct definitions, which parse and build.

Source: PostgreSQL's documentation, protocol-replication.
"""

from collections.abc import Mapping
from typing import Final

from construct import Struct

from pgoutput_construct.wire import frames as m
from pgoutput_construct.wire.parameters import ParameterDefaults
from pgoutput_construct.wire.primitives import (
    Constant,
    Data,
    End,
    FullXid,
    OneOf,
    TimestampTz,
    UInt8,
    UInt32,
    Xid,
    XLogRecPtr,
)

__all__ = [
    "DEFINITIONS",
    "HotStandbyFeedback",
    "PrimaryKeepalive",
    "PrimaryStatusRequest",
    "PrimaryStatusUpdate",
    "StandbyStatusUpdate",
    "XLogData",
]

parameters: Final = ParameterDefaults()
"""The parameters, and what holds where one is left out."""

XLogData = parameters.definition(
    "tag" / Constant(b"w"),
    "wal_start" / XLogRecPtr,
    "wal_end" / XLogRecPtr,
    "send_time" / TimestampTz,
    "data" / Data(),
    End,
)

PrimaryKeepalive = parameters.definition(
    "tag" / Constant(b"k"),
    "wal_end" / XLogRecPtr,
    "send_time" / TimestampTz,
    "reply_requested" / OneOf(UInt8, 0, 1),
    End,
)

PrimaryStatusUpdate = parameters.definition(
    "tag" / Constant(b"s"),
    "lsn" / XLogRecPtr,
    "oldest_full_xid" / FullXid,
    "next_full_xid" / FullXid,
    "send_time" / TimestampTz,
    End,
)

StandbyStatusUpdate = parameters.definition(
    "tag" / Constant(b"r"),
    "write_lsn" / XLogRecPtr,
    "flush_lsn" / XLogRecPtr,
    "apply_lsn" / XLogRecPtr,
    "send_time" / TimestampTz,
    "reply_requested" / OneOf(UInt8, 0, 1),
    End,
)

HotStandbyFeedback = parameters.definition(
    "tag" / Constant(b"h"),
    "send_time" / TimestampTz,
    "xmin" / Xid,
    "xmin_epoch" / UInt32,
    "catalog_xmin" / Xid,
    "catalog_xmin_epoch" / UInt32,
    End,
)

PrimaryStatusRequest = parameters.definition(
    "tag" / Constant(b"p"),
    "send_time" / TimestampTz,
    End,
)

DEFINITIONS: Final[Mapping[type, Struct]] = {
    m.XLogData: XLogData,
    m.PrimaryKeepalive: PrimaryKeepalive,
    m.PrimaryStatusUpdate: PrimaryStatusUpdate,
    m.StandbyStatusUpdate: StandbyStatusUpdate,
    m.HotStandbyFeedback: HotStandbyFeedback,
    m.PrimaryStatusRequest: PrimaryStatusRequest,
}
"""The definition of each message class."""
