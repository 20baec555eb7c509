"""A slot that is read without a capture: nothing is lost, nothing comes twice, and nobody sees the password."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import pgoutput_construct as pgo
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import slot_peek
from pgoutput_construct.postgres.slot_peek import SlotPeek, open_slot
from pgoutput_construct.spark import register
from pgoutput_construct.spark._source.datasource import PgoutputSource
from tests.live.capture import drop_slot

pytestmark = [pytest.mark.server, pytest.mark.spark]

SECRET = "not-to-be-seen"
NAME = "live_source"
TABLE = 'public."Order items"'


@pytest.fixture
def shop(server18: EmbeddedServer) -> Iterator[str]:
    """A database with a table, a publication and a slot; the connection string has a password, of which no one asks."""
    with server18.connect() as admin:
        admin.execute(f"CREATE DATABASE {NAME}")
    dsn = make_conninfo(server18.dsn, dbname=NAME, password=SECRET)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute('CREATE TABLE "Order items" (id int PRIMARY KEY, amount numeric(6, 2), note text)')
        connection.execute('CREATE PUBLICATION pub FOR TABLE "Order items"')
        connection.execute(f"SELECT pg_create_logical_replication_slot('{NAME}', 'pgoutput')")
        yield dsn
        drop_slot(connection, NAME)
    with server18.connect() as admin:
        admin.execute(f"DROP DATABASE {NAME} WITH (FORCE)")


@pytest.fixture
def execute(shop: str) -> Iterator[Callable[[str], Any]]:
    """What runs a statement on the server."""
    with psycopg.connect(shop, autocommit=True) as connection:
        yield lambda statement: connection.execute(statement.encode())


def source(dsn: str, **options: str) -> PgoutputSource:
    """Return the data source for a live read."""
    return PgoutputSource({"dsn": dsn, "slot": NAME, "table": TABLE, **options})


def rows(reader: Any, tasks: list[Any]) -> list[tuple[Any, ...]]:
    """Return what a reader's tasks read, in order."""
    found = [row for task in tasks for batch in reader.read(task) for row in batch.to_pylist()]
    found.sort(key=lambda row: (row["_commit_lsn"], row["_seq"]))
    return [(row["_op"], row["id"], row["amount"] and float(row["amount"])) for row in found]


def test_batches_of_a_slot(shop: str, execute: Callable[[str], Any]) -> None:
    """Until Spark has committed a batch it can be read again; then the slot goes on."""
    execute('INSERT INTO "Order items" VALUES (1, 1.5), (2, 2)')
    execute('UPDATE "Order items" SET id = 3 WHERE id = 2')
    made: Any = source(shop, maxTransactionsPerTrigger="1")
    reader = made.streamReader(made.schema())
    assert rows(made.reader(made.schema()), made.reader(made.schema()).partitions()) == [
        ("insert", 1, 1.5),
        ("insert", 2, 2.0),
        ("update", 3, 2.0),
    ]
    start = reader.initialOffset()
    end = reader.latestOffset(start)
    assert end["commit_time"] >= end["finalizedUntil"] > "20"
    first = [("insert", 1, 1.5), ("insert", 2, 2.0)]
    assert rows(reader, reader.partitions(start, end)) == first == rows(reader, reader.partitions(start, end))
    reader.commit(end)
    execute('DELETE FROM "Order items" WHERE id = 1')
    execute('TRUNCATE "Order items"')
    later, found = reader.latestOffset(end), []
    while later != end:
        found += rows(reader, reader.partitions(end, later))
        reader.commit(later)
        end, later = later, reader.latestOffset(later)
    assert found[-2:] == [("delete", None, None), ("truncate", None, None)]
    confirmed = execute(f"SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = '{NAME}'").fetchone()[
        0
    ]
    assert pgo.Lsn(confirmed) >= pgo.Lsn(end["end_lsn"])
    execute('ALTER TABLE "Order items" ADD more int')
    execute('INSERT INTO "Order items" VALUES (5, 5, NULL, 5)')
    with pytest.raises(pgo.ChangeLogError, match="the column 'more' was added"):
        reader.partitions(end, reader.latestOffset(end))
    ignoring: Any = source(shop, schemaChange="ignore").streamReader(reader.schema)
    assert rows(ignoring, ignoring.partitions(end, ignoring.latestOffset(end))) == [("insert", 5, 5.0)]


def test_a_batch_reads_to_the_end(shop: str, execute: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of changes of one peek is for micro-batches, which go on after it; a batch has all transactions."""
    monkeypatch.setattr(SlotPeek.ends, "__defaults__", (0, 1))
    for key in range(1, 5):
        execute(f'INSERT INTO "Order items" VALUES ({key}, {key})')
    with open_slot(shop, NAME) as slot:
        assert len(slot.ends()) == 1
    made: Any = source(shop)
    reader = made.reader(made.schema())
    assert rows(reader, reader.partitions()) == [("insert", key, float(key)) for key in range(1, 5)]


def test_a_stream_reads_on_after_a_full_peek(
    shop: str, execute: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark advances the slot when it plans the next batch: the limit of a peek may end with what was read."""
    monkeypatch.setattr(SlotPeek.ends, "__defaults__", (0, 1))
    for key in range(1, 7):
        execute(f'INSERT INTO "Order items" VALUES ({key}, {key})')
    made: Any = source(shop)
    reader = made.streamReader(made.schema())
    end = reader.initialOffset()
    for keys in (1,), (2, 3), (4, 5), (6,):  # a peek has twice the changes until it has new ones
        start, end = end, reader.latestOffset(end)
        assert rows(reader, reader.partitions(start, end)) == [("insert", key, float(key)) for key in keys]
    assert reader.latestOffset(end) == end


def test_the_backlog_without_an_offset(
    shop: str, execute: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """PySpark 4.1 requests the end of a query's first batch without its offset: without limits it is read in parts."""
    monkeypatch.setattr(SlotPeek.ends, "__defaults__", (0, 1))
    monkeypatch.setattr(slot_peek, "_PART_BYTES", 1)
    monkeypatch.setattr(slot_peek, "_FETCH", "FETCH 2 FROM pgoutput_peek")
    for key in range(1, 5):
        execute(f'INSERT INTO "Order items" VALUES ({key}, {key}), (-{key}, {key})')
    made: Any = source(shop)
    reader = made.streamReader(made.schema())
    end = reader.latestOffset()
    found = rows(reader, reader.partitions(reader.initialOffset(), end))
    assert found == [("insert", key, float(abs(key))) for each in range(1, 5) for key in (each, -each)]
    with open_slot(shop, NAME) as slot:
        parts = [*slot.payloads(pgo.Lsn(end["end_lsn"]))]
    assert len(parts) == 4 and {part[-1][:1] for part in parts} == {b"C"}
    execute('INSERT INTO "Order items" VALUES (5, 5)')
    later = reader.latestOffset()
    assert rows(reader, reader.partitions(end, later)) == [("insert", 5, 5.0)]
    limited: Any = source(shop, maxTransactionsPerTrigger="1").streamReader(reader.schema)
    one = limited.latestOffset()
    assert rows(limited, limited.partitions(limited.initialOffset(), one)) == found[:2]


def test_renamed_since(shop: str, execute: Callable[[str], Any]) -> None:
    """Rows that were sent under another name of the table are its rows; a column's other name is an error, not null."""
    execute('INSERT INTO "Order items" VALUES (1, 1, NULL)')
    execute('ALTER TABLE "Order items" RENAME TO u')
    execute("INSERT INTO u VALUES (2, 2, NULL)")
    execute("ALTER TABLE u ADD more int")
    execute("ALTER TABLE u DROP note")
    execute("ALTER TABLE u DROP more")
    made: Any = source(shop, table="u")
    reader = made.reader(made.schema())
    assert rows(reader, reader.partitions()) == [("insert", 1, 1.0), ("insert", 2, 2.0)]
    execute("ALTER TABLE u RENAME amount TO price")
    renamed: Any = source(shop, table="u")
    reader = renamed.reader(renamed.schema())
    with pytest.raises(pgo.ChangeLogError, match=r"public\.u: rows .* have 'amount', .* lack 'price'.* change log"):
        rows(reader, reader.partitions())
    some: Any = source(shop, table="u", columns="id")
    reader = some.reader(some.schema())
    assert [row["id"] for batch in reader.read(reader.partitions()[0]) for row in batch.to_pylist()] == [1, 2]
    stream: Any = renamed.streamReader(renamed.schema())
    end = stream.latestOffset(stream.initialOffset())
    execute("INSERT INTO u VALUES (3, 3)")
    tasks = stream.partitions(end, {"end_lsn": "7FFFFFFF/0"})
    found = [row for task in tasks for batch in stream.read(task) for row in batch.to_pylist()]
    assert [(row["id"], float(row["price"])) for row in found] == [(3, 3.0)]


def test_what_cannot_be_read_live(shop: str, execute: Callable[[str], Any]) -> None:
    """The error says what to run, and no password."""
    with pytest.raises(pgo.ReplicationError, match=r"none of the publications .pub. has table public\.other"):
        PgoutputSource({"dsn": shop, "slot": NAME, "table": "public.other"}).schema()
    execute("SELECT pg_create_logical_replication_slot('two', 'pgoutput', false, true)")
    with pytest.raises(pgo.ReplicationError, match="'two' has two_phase") as caught:
        PgoutputSource({"dsn": shop, "slot": "two", "table": TABLE}).schema()
    assert SECRET not in str(caught.value)
    execute("SELECT pg_drop_replication_slot('two')")


def test_with_spark(spark: Any, shop: str, execute: Callable[[str], Any], tmp_path: Path) -> None:
    """A query sees each change once over a restart; neither plan, progress nor checkpoint has the password."""
    register(spark)
    options = {"dsn": shop, "slot": NAME, "table": TABLE}
    found: dict[int, list[Any]] = {}

    def keep(batch: Any, number: int) -> None:
        found[number] = sorted(row["id"] for row in batch.collect())

    said = []
    for keys in ((1, 2), (3, 4), ()):
        for key in keys:
            execute(f'INSERT INTO "Order items" VALUES ({key}, {key}, NULL)')
        stream = spark.readStream.format("pgoutput").options(**options).load()
        writer = stream.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        said += [str(query.lastProgress), str(stream._jdf.queryExecution())]
    assert sorted(key for keys in found.values() for key in keys) == [1, 2, 3, 4] and all(found.values())
    batch = spark.read.format("pgoutput").options(**options).load()
    said.append(str(batch._jdf.queryExecution()))
    assert not [text for text in said if SECRET in text]
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert kept and not [path for path in kept if SECRET.encode() in path.read_bytes()]
