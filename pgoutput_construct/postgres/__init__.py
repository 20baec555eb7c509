"""A live server's changes, through the replication protocol, into a durable change log (extra ``postgres``).

What comes in: a connection string, the names of a slot and of publications, the address of a change log. What leaves:
segments of the log (messages, copied rows, events about the catalog), and LSNs confirmed to the server. Nothing here
knows Spark.

- ``capture`` runs ``_capture``: checks, the stream, and what is confirmed when.
- ``client`` gives the transactions of a slot to a program, without a log.
- ``snapshot`` requests table copies (``_snapshot``, which explains how a copy joins the stream).
- ``_catalog`` records what the stream does not say: tables, columns, publications, as events.
- ``replication_slots``, ``publications`` and ``connection`` create and check what a capture needs, with errors that
  name the SQL to run; ``replication`` is one stream, for programs that handle frames themselves.
- ``checksums`` and ``server_table`` read tables for comparison; ``slot_peek`` reads a slot without a capture.
- ``_frames`` and ``_patience`` receive data and wait, with deadlines, for all of them.

Start reading at ``capture``, then ``_capture``.

Invariants: an LSN is confirmed only after everything before it is durable in the log; no wait is without a deadline or
a way to stop it; no secret of a connection string appears in errors or logs; the catalog queries that a publisher must
answer are those of ``catalog_queries``.

Public is what this module exports; modules and names that begin with ``_`` are not.
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
    from pgoutput_construct.postgres._capture.capture_options import CaptureOptions
    from pgoutput_construct.postgres._capture.pump import CaptureProgress
    from pgoutput_construct.postgres._snapshot.jobs import CopyProgress
    from pgoutput_construct.postgres.capture import capture
    from pgoutput_construct.postgres.client import CommittedChange, CommittedTransaction, TransactionStream, stream
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
    from pgoutput_construct.postgres.server_table import fetch_table
    from pgoutput_construct.postgres.snapshot import snapshot

__all__ = [
    "SCHEMA",
    "SESSION_SETTINGS",
    "CaptureOptions",
    "CaptureProgress",
    "ChangeLog",
    "CommittedChange",
    "CommittedTransaction",
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
    "TransactionStream",
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
    "stream",
]
