"""A live server's changes, through the replication protocol, into a durable change log. Needs the extra
``postgres``.
"""

from pgoutput_construct.extras import needing

with needing("postgres"):
    from pgoutput_construct.changelog import (
        SCHEMA,
        ChangeLog,
        LogEntry,
        LogOptions,
        LogWriter,
        Position,
        SegmentLimits,
        StreamOptions,
        best_proto_version,
        explain,
    )
    from pgoutput_construct.errors import ReplicationError
    from pgoutput_construct.postgres._capture.pump import CaptureProgress
    from pgoutput_construct.postgres._snapshot.jobs import CopyProgress
    from pgoutput_construct.postgres._snapshot.snapshot_request import snapshot
    from pgoutput_construct.postgres.capture import capture
    from pgoutput_construct.postgres.connection import (
        SESSION_SETTINGS,
        check_wal_level,
        connect,
        current_lsn,
        identify,
        redact,
    )
    from pgoutput_construct.postgres.publications import (
        NewPublication,
        PublicationFacts,
        check_publications,
        check_tables,
        ensure_publication,
        read_publications,
    )
    from pgoutput_construct.postgres.replication import ReplicationStream
    from pgoutput_construct.postgres.replication_slots import (
        SlotHealth,
        check_slot,
        create_slot,
        drop_slot,
        ensure_slot,
        slot_health,
    )
    from pgoutput_construct.postgres.source import fetch_table

__all__ = [
    "SCHEMA",
    "SESSION_SETTINGS",
    "CaptureProgress",
    "ChangeLog",
    "CopyProgress",
    "LogEntry",
    "LogOptions",
    "LogWriter",
    "NewPublication",
    "Position",
    "PublicationFacts",
    "ReplicationError",
    "ReplicationStream",
    "SegmentLimits",
    "SlotHealth",
    "StreamOptions",
    "best_proto_version",
    "capture",
    "check_publications",
    "check_slot",
    "check_tables",
    "check_wal_level",
    "connect",
    "create_slot",
    "current_lsn",
    "drop_slot",
    "ensure_publication",
    "ensure_slot",
    "explain",
    "fetch_table",
    "identify",
    "read_publications",
    "redact",
    "slot_health",
    "snapshot",
]
