# Generated from spec/replication.yaml by: python -m tools.generate. Do not edit.

"""Streaming replication envelope: what the specification says of each place in a message."""

from collections.abc import Mapping
from typing import Final

from pgoutput_construct.wire.spec_metadata import Described

__all__ = ["FIELDS"]

FIELDS: Final[Mapping[str, Described]] = {
    "XLogData": Described(
        "XLogData", "A piece of WAL; in logical replication, one message. PostgreSQL 19 calls it WALData."
    ),
    "XLogData.tag": Described("Byte1('w')", "Marks an XLogData."),
    "XLogData.wal_start": Described(
        "Int64 (XLogRecPtr)", "LSN of the message, 0/0 for Relation, Type and what an Origin follows."
    ),
    "XLogData.wal_end": Described("Int64 (XLogRecPtr)", "In logical replication, the same as wal_start."),
    "XLogData.send_time": Described(
        "Int64 (TimestampTz)", "The server's clock when it sent this, in microseconds since 2000-01-01 UTC."
    ),
    "XLogData.data": Described("Byten", "The payload, to the end."),
    "PrimaryKeepalive": Described("Primary Keepalive", "Tells how far the server has read its WAL."),
    "PrimaryKeepalive.tag": Described("Byte1('k')", "Marks a keepalive."),
    "PrimaryKeepalive.wal_end": Described("Int64 (XLogRecPtr)", "End of the WAL that the server has sent."),
    "PrimaryKeepalive.send_time": Described(
        "Int64 (TimestampTz)", "The server's clock when it sent this, in microseconds since 2000-01-01 UTC."
    ),
    "PrimaryKeepalive.reply_requested": Described(
        "Int8", "1 asks for a status update at once.", values={0: "no reply is needed", 1: "reply at once"}
    ),
    "PrimaryStatusUpdate": Described(
        "Primary Status Update", "Answers a status request: how far the primary has come."
    ),
    "PrimaryStatusUpdate.tag": Described("Byte1('s')", "Marks a primary status update."),
    "PrimaryStatusUpdate.lsn": Described("Int64 (XLogRecPtr)", "Latest WAL position of the primary."),
    "PrimaryStatusUpdate.oldest_full_xid": Described(
        "Int64 (FullTransactionId)", "Oldest transaction that is committing on the primary."
    ),
    "PrimaryStatusUpdate.next_full_xid": Described("Int64 (FullTransactionId)", "Next transaction ID to be assigned."),
    "PrimaryStatusUpdate.send_time": Described(
        "Int64 (TimestampTz)", "The server's clock when it sent this, in microseconds since 2000-01-01 UTC."
    ),
    "StandbyStatusUpdate": Described(
        "Standby Status Update", "Confirms what the client has received and made durable."
    ),
    "StandbyStatusUpdate.tag": Described("Byte1('r')", "Marks a standby status update."),
    "StandbyStatusUpdate.write_lsn": Described("Int64 (XLogRecPtr)", "LSN after the last byte received."),
    "StandbyStatusUpdate.flush_lsn": Described(
        "Int64 (XLogRecPtr)", "LSN after the last byte made durable; only this moves the slot."
    ),
    "StandbyStatusUpdate.apply_lsn": Described("Int64 (XLogRecPtr)", "LSN after the last byte applied."),
    "StandbyStatusUpdate.send_time": Described(
        "Int64 (TimestampTz)", "The client's clock when it sent this, in microseconds since 2000-01-01 UTC."
    ),
    "StandbyStatusUpdate.reply_requested": Described(
        "Int8", "1 asks the server for a keepalive at once.", values={0: "no reply is needed", 1: "reply at once"}
    ),
    "HotStandbyFeedback": Described("Hot Standby Feedback", "Tells which transactions a standby still needs."),
    "HotStandbyFeedback.tag": Described("Byte1('h')", "Marks a hot standby feedback."),
    "HotStandbyFeedback.send_time": Described(
        "Int64 (TimestampTz)", "The client's clock when it sent this, in microseconds since 2000-01-01 UTC."
    ),
    "HotStandbyFeedback.xmin": Described(
        "Int32 (TransactionId)", "Oldest transaction the standby needs, 0 when it needs none."
    ),
    "HotStandbyFeedback.xmin_epoch": Described("Int32", "Epoch of xmin."),
    "HotStandbyFeedback.catalog_xmin": Described(
        "Int32 (TransactionId)", "Oldest transaction its slots need in catalogs, 0 when they need none."
    ),
    "HotStandbyFeedback.catalog_xmin_epoch": Described("Int32", "Epoch of catalog_xmin."),
    "PrimaryStatusRequest": Described("Primary Status Request", "Asks the primary for a status update."),
    "PrimaryStatusRequest.tag": Described("Byte1('p')", "Marks a primary status request."),
    "PrimaryStatusRequest.send_time": Described(
        "Int64 (TimestampTz)", "The client's clock when it sent this, in microseconds since 2000-01-01 UTC."
    ),
}
"""The rows by key, in wire order."""
