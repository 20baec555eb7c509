"""``spark.readStream.format("pgoutput")``: each change once, in whole transactions, while the log grows."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest

import pgoutput_construct as pgo
from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.changelog.compact import CompactionLimits, compact
from pgoutput_construct.changelog.registry import readers
from pgoutput_construct.spark import open_log, register
from pgoutput_construct.spark._source.datasource import PgoutputSource
from pgoutput_construct.spark._source.micro_batches import Limits, next_seq
from tests.live.recording import Recording
from tests.spark.logs import log_options, write_log, write_orders, write_recording

pytestmark = pytest.mark.spark

ITEM = "public.item"


class Growing:
    """A log whose segments come one by one."""

    def __init__(self, source: Path, directory: Path) -> None:
        self.source, self.directory = sorted(source.glob("segment-*")), directory
        directory.mkdir()

    def grow(self, segments: int) -> ChangeLog:
        """Let the next segments come."""
        for path in self.source[:segments]:
            shutil.copy(path, self.directory)
        del self.source[:segments]
        return ChangeLog(self.directory)


@pytest.fixture(scope="module")
def whole(recordings: dict[str, Recording], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with streams and two-phase transactions, in several segments."""
    path = tmp_path_factory.mktemp("whole")
    write_recording(path, recordings["18-v4-text"], rows=50)
    return path


@pytest.fixture
def log(whole: Path, tmp_path: Path) -> Growing:
    """The same, with nothing in it yet."""
    return Growing(whole, tmp_path / "log")


class Collected:
    """A query whose micro-batches are collected; it can be stopped, and started again from its checkpoint."""

    def __init__(self, spark: Any, checkpoint: Path, **options: object) -> None:
        register(spark)
        self.spark, self.checkpoint = spark, checkpoint
        self.options = {name: str(value) for name, value in options.items()}
        self.batches: dict[int, list[Any]] = {}
        self.query: Any = None

    def start(self, **trigger: Any) -> Any:
        """Start it."""
        rows = self.spark.readStream.format("pgoutput").options(**self.options).load()
        writer = rows.writeStream.foreachBatch(self._keep).option("checkpointLocation", str(self.checkpoint))
        self.query = (writer.trigger(**trigger) if trigger else writer).start()
        return self.query

    def _keep(self, rows: Any, number: int) -> None:
        self.batches[number] = sorted(tuple(row) for row in rows.select("_commit_lsn", "_seq", "_op").collect())

    def run(self) -> None:
        """Read what is there now."""
        self.start(availableNow=True).awaitTermination()

    @property
    def rows(self) -> list[Any]:
        """All that came."""
        return sorted(row for batch in self.batches.values() for row in batch)


def test_a_log_that_grows(spark: Any, log: Growing, tmp_path: Path) -> None:
    """Each change comes once, whole transactions in the order of commits; a restart and a compaction change nothing."""
    log.grow(3)
    collected = Collected(spark, tmp_path / "checkpoint", path=log.directory, table=ITEM, reader="stream-1")
    collected.start()
    collected.query.processAllAvailable()
    log.grow(3)
    collected.query.processAllAvailable()
    progress = collected.query.lastProgress
    shown = ("seq", "commit_lsn", "commit_time", "finalizedUntil")
    assert all(name in str(progress["sources"][0]["endOffset"]) for name in shown)
    collected.query.stop()
    log.grow(3)
    assert compact(log.directory, CompactionLimits(least=2, grace=0)).merged
    (reader,) = readers(log.directory)
    assert reader.name == "stream-1" and 0 <= reader.next_seq <= 300
    collected.run()
    end = log.grow(99).index.last_seq
    collected.run()
    expected = open_log(spark, log.directory).changes(ITEM).select("_commit_lsn", "_seq", "_op").collect()
    assert collected.rows == sorted(map(tuple, expected)) and len(collected.batches) > 2
    for before, after in zip([*collected.batches.values()][:-1], [*collected.batches.values()][1:], strict=True):
        assert not before or not after or before[-1][0] < after[0][0]
    assert max(reader.next_seq for reader in readers(log.directory)) <= end + 1


@pytest.fixture
def reader(whole: Path) -> Callable[..., Any]:
    """What makes a reader of a stream without Spark."""

    def make(path: Path = whole, **options: object) -> Any:
        texts = {name: str(value) for name, value in options.items()}
        source = PgoutputSource({"path": str(path), "table": ITEM, **texts})
        return source.streamReader(source.schema())

    return make


def batches(reader: Any) -> Iterator[list[Any]]:
    """Yield the rows of each micro-batch, as Spark asks for them."""
    start = reader.initialOffset()
    while (end := reader.latestOffset(start)) != start:
        found = [
            row for task in reader.partitions(start, end) for batch in reader.read(task) for row in batch.to_pylist()
        ]
        yield sorted((row["_commit_lsn"], row["_seq"], row["_op"]) for row in found)
        reader.commit(end)
        start = end


def test_what_came_after_a_batch_that_was_interrupted(spark: Any, tmp_path: Path) -> None:
    """A query over all that is there begins with that batch, and goes on behind it."""
    register(spark)
    found = list[int]()

    def run(keep: Callable[[Any, int], None]) -> None:
        options = {"path": str(tmp_path / "log"), "table": "public.orders"}
        writer = spark.readStream.format("pgoutput").options(**options).load().writeStream.foreachBatch(keep)
        writer.option("checkpointLocation", str(tmp_path / "at")).trigger(availableNow=True).start().awaitTermination()

    def fail(_: Any, __: int) -> None:
        raise RuntimeError("interrupted")

    write_orders(tmp_path / "log", range(2))
    with pytest.raises(Exception, match="interrupted"):
        run(fail)
    write_orders(tmp_path / "log", range(2, 4))
    run(lambda rows, _: found.append(rows.count()))
    assert len(found) == 2 and sum(found) == open_log(spark, tmp_path / "log").changes("public.orders").count()


@pytest.mark.parametrize(
    "limit", [{"maxTransactionsPerTrigger": 1}, {"maxTransactionsPerTrigger": 7}, {"maxBytesPerTrigger": 2000}, {}]
)
def test_limits(reader: Callable[..., Any], whole: Path, limit: dict[str, int]) -> None:
    """However small the batches are, they have each change once, and none more than it may."""
    found = list(batches(reader(**limit)))
    (everything,) = batches(reader())
    assert [row for batch in found for row in batch] == everything
    committed = ChangeLog(whole).transactions().filter(ChangeLog(whole).transactions()["commit_lsn"].is_valid())
    if most := limit.get("maxTransactionsPerTrigger"):
        assert max(len({lsn for lsn, *_ in batch}) for batch in found) <= most
        assert len(found) >= len({lsn for lsn, *_ in everything}) / most
    assert len(found) == 1 or (limit and len(found) <= len(committed))


@pytest.mark.long
def test_limits_of_a_query(spark: Any, tmp_path: Path) -> None:
    """No micro-batch has more than it may: not the first with the backlog, nor that after a restart."""
    collected = Collected(
        spark, tmp_path / "at", path=tmp_path / "log", table="public.orders", maxTransactionsPerTrigger=2
    )
    for transactions in (range(7), range(7, 12)):
        write_orders(tmp_path / "log", transactions)
        collected.start().processAllAvailable()
        collected.query.stop()
    assert [len({lsn for lsn, *_ in rows}) for rows in collected.batches.values()] == [2, 2, 2, 1, 2, 2, 1]
    assert collected.rows == changed_rows(spark, tmp_path / "log")


@pytest.mark.long
def test_limits_of_what_is_available_now(spark: Any, tmp_path: Path) -> None:
    """Each micro-batch has a limit, or, in PySpark 4.1, the limit is refused before anything is read or left out."""
    options = {"path": tmp_path / "log", "table": "public.orders"}
    limited = Collected(spark, tmp_path / "at", **options, maxTransactionsPerTrigger=2)
    write_orders(tmp_path / "log", range(5))
    if not pyspark.__version__.startswith("4.1."):
        limited.run()
        assert len(limited.batches) == 3 and limited.rows == changed_rows(spark, tmp_path / "log")
        return
    refused = pytest.raises(pyspark.errors.StreamingQueryException, match=r"4\.1 cannot limit .* availableNow")
    with refused:
        limited.run()
    entire = Collected(spark, tmp_path / "at", **options)
    entire.run()
    write_orders(tmp_path / "log", range(5, 9))
    with refused:
        limited.run()
    entire.run()
    assert len(entire.batches) == 2 and not limited.batches
    assert entire.rows == changed_rows(spark, tmp_path / "log")


def changed_rows(spark: Any, log: Path) -> list[Any]:
    """Return what ``Collected`` has after all changes of orders."""
    changes = open_log(spark, log).changes("public.orders").select("_commit_lsn", "_seq", "_op")
    return sorted(map(tuple, changes.collect()))


def test_what_is_final(tmp_path: Path) -> None:
    """No commit behind an offset is earlier than its ``finalizedUntil``: their times are not quite in their order."""
    minutes, payloads = (10, 30, 20, 20, 40), list[Any]()
    for number, minute in enumerate(minutes, 1):
        lsn, time = pgo.Lsn(number), pgo.Timestamp(minute * 60_000_000)
        payloads += [pgo.Begin(lsn, time, number), pgo.Commit(lsn, pgo.Lsn(lsn + 1), time)]
    write_log(tmp_path, [pgo.build(payload) for payload in payloads], log_options(), rows=4)
    source = PgoutputSource({"path": str(tmp_path), "view": "transactions", "maxTransactionsPerTrigger": "1"})
    reader: Any = source.streamReader(source.schema())
    start, found = reader.initialOffset(), []
    assert "finalizedUntil" not in start
    while (end := reader.latestOffset(start)) != start:
        found.append((end["commit_time"], end["finalizedUntil"]))
        start = end
    expected = zip((10, 30, 20, 20, 40), (10, 20, 20, 20, 40), strict=True)
    assert found == [tuple(str(pgo.Timestamp(minute * 60_000_000)) for minute in pair) for pair in expected]


def test_a_byte_limit_is_near(whole: Path) -> None:
    """The batches of a limit are about as many as the bytes ask for; one transaction may be more than it."""
    log, seqs = ChangeLog(whole), [-1]
    size = sum(segment.payload_bytes for segment in log.segments)
    while (end := next_seq(log, seqs[-1], Limits(bytes=size // 5))) != seqs[-1]:
        seqs.append(end)
    assert 3 <= len(seqs) - 1 <= 12


def test_changes_of_the_table(reader: Callable[..., Any], whole: Path, tmp_path: Path) -> None:
    """A query stops where a column came, and says what to do; it goes on where that is ignored, or it starts again."""
    log = Growing(whole, tmp_path / "log")
    log.grow(1)
    name = "public.altered"
    while name not in tables(log.directory):
        log.grow(1)
    old = {"path": log.directory, "table": name}
    stopping, going = reader(**old), reader(**old, schemaChange="ignore")
    start = stopping.initialOffset()
    log.grow(99)
    end = stopping.latestOffset(start)
    with pytest.raises(
        pgo.ChangeLogError, match=r"public.altered: the column .* since the query began: restart the query"
    ):
        stopping.partitions(start, end)
    columns = going.schema.fieldNames()
    rows = [row for task in going.partitions(start, end) for batch in going.read(task) for row in batch.to_pylist()]
    assert [*rows[0]] == columns and len(rows) == sum(map(len, batches(reader(**old))))


def tables(directory: Path) -> tuple[str, ...]:
    """Return the tables of a log."""
    from pgoutput_construct.spark._log_view.log_tables import LogTables

    return tuple(LogTables.from_log(ChangeLog(directory)).tables)


def test_what_was_pruned(reader: Callable[..., Any], whole: Path, tmp_path: Path) -> None:
    """An offset before the first row that the log still has is refused."""
    log = Growing(whole, tmp_path / "log")
    log.grow(99)
    (log.directory / "pruned.json").write_text('{"first_seq": 100}')
    late = reader(path=log.directory)
    assert late.initialOffset()["seq"] == 99
    with pytest.raises(pgo.ChangeLogError, match="the seqs 50 to 99 were pruned before they were read"):
        late.partitions({**late.initialOffset(), "seq": 49}, late.latestOffset())
    with pytest.raises(pgo.ChangeLogError, match=r"of another log .* not say which: database is missing"):
        late.partitions({"seq": 49}, late.latestOffset())


def test_the_reason_of_an_end(spark: Any, tmp_path: Path) -> None:
    """It stands before the traceback."""
    write_orders(tmp_path / "log", range(3))
    collected = Collected(spark, tmp_path / "at", path=tmp_path / "log", table="public.orders")
    collected.run()
    write_orders(tmp_path / "log", range(3, 6))
    (tmp_path / "log" / "pruned.json").write_text('{"first_seq": 80}')
    with pytest.raises(pyspark.errors.StreamingQueryException) as caught:
        collected.run()
    begins, *_ = str(caught.value).split("Traceback")
    assert "were pruned before they were read" in begins


def test_an_object_store(reader: Callable[..., Any], recordings: dict[str, Recording], s3_address: str) -> None:
    """A log at an address is a stream as one in a directory is; tasks show no secret of the address."""
    write_recording(s3_address, recordings["18-v4-text"], rows=200)
    (everything,) = batches(reader())
    there = reader(path=s3_address, maxTransactionsPerTrigger=30)
    assert [row for batch in batches(there) for row in batch] == everything
    start = there.initialOffset()
    assert "secret" not in repr(there.partitions(start, there.latestOffset(start)))
