"""A program that uses all of the public surface, for type checkers: never run."""

from typing import Any, assert_type

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import pgoutput_construct as pgo
from pgoutput_construct import changelog, columnar, forensics, lake, postgres, publisher, spark, testing
from pgoutput_construct.publisher.log_feed import LogFeed


def parse_and_build(payload: bytes) -> None:
    """One message and one frame, there and back; a stream of messages."""
    message = pgo.parse(payload, proto_version=4, streaming="parallel", in_stream=True)
    assert_type(message, pgo.PgoutputMessage)
    assert_type(pgo.build(message), bytes)
    assert_type(pgo.build_frame(pgo.parse_frame(payload)), bytes)
    session = pgo.Session(proto_version=2, streaming="on")
    assert_type(session.parse(payload), pgo.PgoutputMessage)
    if isinstance(message, pgo.Insert):
        assert_type(message.xid, int | None)
        assert_type(message.relation_oid, int)
    if isinstance(message, pgo.Begin):
        assert_type(message.final_lsn, pgo.Lsn)
        assert_type(message.commit_time, pgo.Timestamp)
    try:
        pgo.parse(b"")
    except pgo.DecodeError as error:
        assert_type(error.offset, int | None)


def read_live(dsn: str) -> None:
    """Transactions of changes, and of messages."""
    with postgres.stream(dsn, "mine", ["shop"], create_slot=True, handle_signals=True) as transactions:
        for transaction in transactions:
            for change in transaction:
                assert_type(change, postgres.CommittedChange)
                assert_type(change.new, dict[str, Any] | None)
            transactions.confirm(transaction)
            transactions.stop()
    with postgres.stream(dsn, "mine", ["shop"], messages=True) as raw:
        assert_type(next(iter(next(raw))), pgo.PgoutputMessage)


async def read_in_asyncio(dsn: str) -> None:
    """The same without waiting in this thread."""
    async with postgres.stream(dsn, "mine", ["shop"]) as transactions:
        async for transaction in transactions:
            assert_type(transaction.commit_lsn, pgo.Lsn)
            async for change in transaction:
                assert_type(change.unchanged, tuple[str, ...])


def capture_and_read(dsn: str) -> None:
    """A change log, what is in it, and its bytes."""
    progress = postgres.capture(dsn, "mine", ["shop"], "log", create_slot=True, snapshot=True, until_idle=1.0)
    assert_type(progress, postgres.CaptureProgress)
    log = changelog.ChangeLog("log")
    for entry in log.entries():
        assert_type(entry, changelog.LogEntry)
        assert_type(entry.payload, bytes)
    decoded = columnar.BatchDecoder(proto_version=2).decode([entry.payload for entry in log])
    assert_type(decoded, columnar.DecodedBatch)


def follow(session: SparkSession) -> None:
    """Tables in Spark and without it."""
    log = spark.open_log(session, "log")
    assert_type(log, spark.OpenLog)
    assert_type(log.state("public.orders"), DataFrame)
    assert_type(spark.replicate(session, "log", "lake", "parquet"), spark.Batch | None)
    assert_type(spark.read_current(session, "lake", "public.orders"), DataFrame)
    assert_type(lake.read("lake", "public.orders"), pa.Table)
    assert_type(lake.status("lake"), lake.WarehouseStatus)
    assert_type(lake.status("lake").tables[0].previous_log, bool)


def investigate(session: SparkSession) -> None:
    """What happened to a row, what takes it back, what was there before, and a test of it."""
    for touch in forensics.blame("log", "public.orders", {"id": 42}, since=pgo.Lsn("0/1")):
        assert_type(touch, forensics.RowTouch)
        assert_type(touch.xid, int | None)
    script = forensics.undo(changelog.ChangeLog("log"), xid=742, tables=["public.orders"])
    assert_type(script.text(partial=True), str)
    assert_type(script.transactions[0], forensics.UndoneTransaction)
    found = forensics.fixture("log", tables=["public.orders"], key=42, masks=[("public.orders.note", "null")])
    assert_type(found.shrunk(forensics.command_fails("my_client {file}", 10.0)), forensics.Fixture)
    found.save("case.jsonl")
    with testing.publisher() as served:
        assert_type(served.play("case.jsonl"), pgo.Lsn)
    assert_type(forensics.fork("log", pgo.Timestamp(0), "dbname=x", "lake", spark=session), forensics.Fork)


def test_a_consumer() -> None:
    """Streams to read, and a server that misbehaves."""
    assert_type(testing.streams(proto_version=1).example(), list[testing.Sent])
    with testing.publisher() as served:
        orders = served.table("orders", {"id": "int4"}, key=["id"])
        assert_type(orders, testing.FakeTable)
        assert_type(orders.insert({"id": 1}), testing.Change)
        end = served.commit([orders.insert({"id": 1})], streamed=True)
        assert_type(end, pgo.Lsn)
        assert_type(served.dsn, str)


def serve() -> None:
    """A change log as a publisher of PostgreSQL."""
    with publisher.ThreadedPublisher(LogFeed("log"), publisher.Settings(port=0)) as served:
        assert_type(served.dsn, str)
