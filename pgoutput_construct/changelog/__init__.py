"""The change log: durable Parquet segments of raw payloads, and back. Needs pyarrow; knows neither psycopg nor Spark.

In: blocks of payloads with their batch index, and events, appended by one writer (``LogWriter``). Out: entries, events
and Arrow tables of segments for any number of readers (``ChangeLog``), each entry with the stream state that it is
parsed in, so that rows decode in any order and in parallel.

Invariants:

- seqs are consecutive integers; a row keeps its seq for ever, through compaction and prune.
- Payloads are stored as received. A later version can decode old logs better, and ``spec/changelog.md`` lets anybody
  read them without this package.
- A segment is durable before its LSN is confirmed to the server: see ``writer``.
- One capture writes; readers need no lock, whatever capture, compaction and prune do meanwhile.

Start reading at ``writer`` and ``reader``. ``log_options`` are the options under which a log was captured; ``compact``,
``prune`` and ``verify`` maintain a log; ``registry`` has the readers that prune waits for; ``timeline`` is what a log
holds, in its order, and ``decoding_order`` what a slot sends of it. Rooms: ``_store`` (files), ``_segment`` (one file),
``_index`` (what is known without payloads), ``_facts`` (what the stream does not say), ``_notes`` (small files by which
processes coordinate). Public is what this module exports, ``registry``, and of ``compact``, ``prune`` and ``verify``
the functions of the same names, with what they take and return.
"""

from pgoutput_construct.extras import needing

with needing("changelog"):
    from pgoutput_construct.changelog._segment.block import Block
    from pgoutput_construct.changelog._segment.events import LogEvent
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
