"""The change log: durable Parquet segments of raw payloads, and back. Needs pyarrow, and neither psycopg nor Spark."""

from pgoutput_construct.extras import needing

with needing("changelog"):
    from pgoutput_construct.changelog._facts.events import LogEvent
    from pgoutput_construct.changelog._segment.block import Block
    from pgoutput_construct.changelog._segment.footer import Position, Segment
    from pgoutput_construct.changelog._segment.segment_schema import SCHEMA
    from pgoutput_construct.changelog.log_options import LogOptions, StreamOptions, best_proto_version
    from pgoutput_construct.changelog.reader import ChangeLog, LogEntry, explain
    from pgoutput_construct.changelog.writer import LogWriter, SegmentLimits

__all__ = [
    "SCHEMA",
    "Block",
    "ChangeLog",
    "LogEntry",
    "LogEvent",
    "LogOptions",
    "LogWriter",
    "Position",
    "Segment",
    "SegmentLimits",
    "StreamOptions",
    "best_proto_version",
    "explain",
]
