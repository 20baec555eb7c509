"""Logs with the new messages, and one of before."""

from pathlib import Path

from grown import (
    BEFORE,
    INSERTED,
    OPTIONS,
    PAYLOADS,
    STATE,
    STREAM,
    TIME,
    log_options,
)

import pgoutput_construct as pgo
from pgoutput_construct.changelog import ChangeLog, LogWriter, Position
from pgoutput_construct.changelog._segment.block import Block


def write_log(directory: Path, segment_rows: int = 7) -> None:
    """Write the stream as a log."""
    session = pgo.Session(**OPTIONS)
    with LogWriter(directory) as writer:
        writer.use(log_options(row_filters=("a",)))
        for seq, payload in enumerate(PAYLOADS):
            states = {name: [state] for name, state in session.state.parameters.items()}
            scope = -1 if session.stream_xid is None else session.stream_xid
            writer.append(Block.from_payloads([payload], [seq], [TIME], OPTIONS, states, [scope]))
            session.parse(payload)
            if writer.pending >= segment_rows:
                writer.publish(Position())
        writer.publish(Position())


def check_log() -> None:
    """The log carries the states, so that each entry is read by itself."""
    write_log(Path("log"))
    Path("stream.hex").write_text("".join(f"{payload.hex()}\n" for payload in PAYLOADS), "ascii")
    Path("stream.bin").write_bytes(b"".join(payload + b"\n" for payload in PAYLOADS))
    log = ChangeLog("log")
    assert len(log.segments) == 4 and log.options == log_options(row_filters=("a",))
    for entry, sent in zip(log, STREAM, strict=True):
        assert entry.states == sent.states
        assert pgo.parse(entry.payload, **log.options.layout(), **entry.states) == sent.message
    assert log.entry(19).states == STREAM[19].states


def check_old_log() -> None:
    """A log that was written before the change reads, and goes on, as before."""
    log = ChangeLog("old-log")
    count = len(log)
    for entry in log:
        pgo.parse(entry.payload, **log.options.layout(), **entry.states)
    with LogWriter("old-log") as writer:
        writer.use(log.options)
        writer.append(Block.from_payloads(PAYLOADS[:1], [1], [TIME], log.options.layout(), {}, [-1]))
        writer.publish(writer.position)
    log = ChangeLog("old-log")
    assert len(log) == count + 1 and log.options.proto_version == 4
    assert log.entry(count).states == {"in_stream": False, "in_block": False}


def check_spark() -> None:
    """Changes and state of a table out of a log."""
    from pgoutput_construct.spark import open_log, spark_session, write_tables

    write_log(Path("spark-log"))
    spark = spark_session("local[1]", {"spark.sql.shuffle.partitions": "1", "spark.ui.enabled": "false"}, "growth")
    try:
        log = open_log(spark, "spark-log")
        changes = log.changes("public.t").orderBy("_commit_lsn", "_seq").collect()
        assert [(line["_op"], line["id"], line["note"]) for line in changes] == INSERTED, changes
        assert changes[2]["_untyped"] == {"note": "packed \\x62"}
        assert [line["_before"] and line["_before"]["id"] for line in changes] == BEFORE
        state = log.state("public.t").orderBy("id").collect()
        assert [(line["id"], line["note"]) for line in state] == STATE, state
        counts = write_tables(log, "tables")["public.t"].counts
        assert counts == {"snapshot": 0, "insert": 4, "update": 1, "delete": 1, "truncate": 1, "upsert": 3}, counts
        old = open_log(spark, "old-log")
        for name in old.tables:
            old.changes(name).count()
    finally:
        spark.stop()
