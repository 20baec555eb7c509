"""``spark.read.format("pgoutput")``: tables, views, positions, and what is not read."""

import pickle
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pgoutput_construct as pgo
from pgoutput_construct.changelog import SCHEMA, ChangeLog
from pgoutput_construct.changelog.compact import CompactionLimits, compact
from pgoutput_construct.spark import open_log, plain_errors, register
from pgoutput_construct.spark._log_view.change_columns import CHANGE
from pgoutput_construct.spark._log_view.log_tables import LogTables
from pgoutput_construct.spark._source import task_plan
from pgoutput_construct.spark._source.datasource import PgoutputSource
from pgoutput_construct.spark._source.read_range import log_as_of
from pgoutput_construct.spark._source.views import view_of
from tests.live.recording import Recording
from tests.spark.logs import write_recording

pytestmark = pytest.mark.spark

ITEM = "public.item"


@pytest.fixture(scope="module")
def log(recordings: dict[str, Recording], tmp_path_factory: pytest.TempPathFactory) -> ChangeLog:
    """A log with streams and two-phase transactions, in several segments."""
    path = tmp_path_factory.mktemp("log")
    write_recording(path, recordings["18-v4-text"], rows=50)
    return ChangeLog(path)


def read(log: ChangeLog, **options: object) -> pa.Table:
    """Read a log as the data source does, without Spark."""
    source = PgoutputSource({"path": log.store.address, **{name: str(value) for name, value in options.items()}})
    reader: Any = source.reader(source.schema())
    tasks = [pickle.loads(pickle.dumps(task)) for task in reader.partitions()]
    batches = [batch for task in tasks for batch in reader.read(task)]
    return pa.Table.from_batches(batches, to_arrow(source))


def to_arrow(source: PgoutputSource) -> pa.Schema:
    """Return the schema of what a source reads."""
    return view_of(source.given).schema(*log_as_of(source.given))


def places(rows: pa.Table) -> list[tuple[int, int, str]]:
    """Return where changes stand, and what they are."""
    return sorted(zip(*(rows[name].to_pylist() for name in ("_commit_lsn", "_seq", "_op")), strict=True))


def load(spark: Any, log: ChangeLog, **options: str) -> Any:
    """Load a log through Spark."""
    return spark.read.format("pgoutput").options(path=log.store.address, **options).load()


def test_with_spark(spark: Any, log: ChangeLog) -> None:
    """A table, some of its columns, and the changes of all: what is read without Spark, filtered by Spark."""
    register(spark)
    rows, lsn = load(spark, log, table=ITEM), log.transactions()["commit_lsn"][7].as_py()
    opened = open_log(spark, log.store.address)
    assert rows.schema == opened.changes(ITEM).schema
    everything = sorted(tuple(row) for row in rows.select("_commit_lsn", "_seq", "_op").collect())
    assert everything == places(read(log, table=ITEM))
    time = read(log, table=ITEM)["_commit_time"][60].as_py()
    since = rows.where(f"_commit_lsn > {lsn} AND _commit_time <= timestamp'{time}'").count()
    later = read(log, table=ITEM, fromLsn=lsn + 1)
    assert 0 < since == sum(each <= time for each in later["_commit_time"].to_pylist())
    with pytest.raises(Exception, match=r"no option 'tabel': did you mean table\?"):
        load(spark, log, tabel=ITEM)
    with pytest.raises(pgo.ChangeLogError, match=r"^the log has no table public\.nothing: it has "), plain_errors():
        load(spark, log, table="public.nothing")


def test_a_filter_is_of_what_it_is_applied_to(spark: Any, log: ChangeLog) -> None:
    """What else reads the same DataFrame, in one plan or later, has all rows, whatever Spark hands to sources."""
    register(spark)
    pushdown = "spark.sql.python.filterPushdown.enabled"
    was = spark.conf.get(pushdown)
    spark.conf.set(pushdown, "true")
    try:
        rows, lsn = load(spark, log, table=ITEM), log.transactions()["commit_lsn"][7].as_py()
        first, last = rows.where(f"_commit_lsn <= {lsn}"), rows.where(f"_commit_lsn > {lsn}")
        counts = [each.count() for each in (first, rows, first.unionAll(last), last)]
    finally:
        spark.conf.set(pushdown, was)
    everything = len(read(log, table=ITEM))
    assert counts == [everything - counts[-1], everything, everything, counts[-1]] and 0 < counts[-1] < everything


def test_some_columns(log: ChangeLog) -> None:
    """These alone are decoded, with those of the change."""
    everything, some = read(log, table=ITEM), read(log, table=ITEM, columns="id,big")
    assert some.column_names == ["id", "big", *CHANGE]
    assert [field.name for field in some.schema.field("_before").type] == ["id", "big"]
    for name in {*some.column_names} - {"_before"}:
        assert some[name].equals(everything[name])
    with pytest.raises(pgo.ChangeLogError, match=r"public\.item has no column 'nothing'"):
        read(log, table=ITEM, columns="id,nothing")


def test_positions(log: ChangeLog) -> None:
    """As of an LSN, a time or a seq it is exactly what had committed by then; from an LSN on, the rest of it."""
    everything = places(read(log, table=ITEM))
    for middle in log.transactions().to_pylist()[3::9]:
        lsn = pgo.Lsn(middle["commit_lsn"])
        by_then = [place for place in everything if place[0] <= lsn]
        assert places(read(log, table=ITEM, asOfLsn=lsn)) == places(read(log, table=ITEM, untilLsn=lsn)) == by_then
        assert places(read(log, table=ITEM, asOfSeq=middle["seq"])) == by_then
        assert places(read(log, table=ITEM, fromLsn=int(lsn) + 1)) == everything[len(by_then) :]
        assert places(read(log, table=ITEM, fromSeq=middle["seq"] + 1)) == everything[len(by_then) :]
        time = str(pgo.Timestamp(middle["commit_time"]))
        assert places(read(log, table=ITEM, asOfTime=time)) == by_then
        one = read(log, table=ITEM, fromLsn=lsn, asOfLsn=lsn)
        assert places(one) == [place for place in by_then if place[0] == lsn]
    with pytest.raises(pgo.ChangeLogError, match="is complete only up to 0/"):
        read(log, table=ITEM, asOfLsn="FF/0")
    with pytest.raises(pgo.ChangeLogError, match="the log begins after 1999"):
        read(log, table=ITEM, asOfTime="1999-01-01")


def planned(log: ChangeLog, **options: object) -> list[int]:
    """Return the first seqs of the segments that a read is planned to look at."""
    source = PgoutputSource({"path": log.store.address, **{name: str(value) for name, value in options.items()}})
    tasks: Any = source.reader(source.schema()).partitions()
    return [segment.first_seq for task in tasks for segment in task.group.segments]


def test_tasks_are_even(log: ChangeLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each segment is in one task, in order; none has more than its part and half of a segment at either end."""
    wanted, most = {"path": log.store.address, "view": "messages"}, max(segment.rows for segment in log.segments)
    for rows, processors in ((2 * most, 1), (10 * sum(each.rows for each in log.segments), 3), (1, 64)):
        monkeypatch.setattr(task_plan, "_TASK_ROWS", rows)
        monkeypatch.setattr(task_plan, "_LEAST", 1 / 100)
        monkeypatch.setattr(task_plan, "cpu_count", lambda processors=processors: processors)
        source = PgoutputSource(wanted)
        tasks = [task.group.segments for task in source.reader(source.schema()).partitions()]
        assert [each.first_seq for task in tasks for each in task] == [each.first_seq for each in log.segments]
        sizes = [sum(each.rows for each in task) for task in tasks]
        assert max(sizes) <= max(rows, sum(sizes) / processors) + most
        assert len(tasks) >= min(processors, len(log.segments) // 2)


def test_positions_leave_out_segments(log: ChangeLog) -> None:
    """Of one transaction those that it stands in are read."""
    everything, lsn = planned(log, table=ITEM), read(log, table=ITEM)["_commit_lsn"][70].as_py()
    assert 0 < len(planned(log, table=ITEM, fromLsn=lsn, asOfLsn=lsn)) < len(everything)
    assert planned(log, table=ITEM, fromLsn=lsn + 1, asOfLsn=lsn) == []
    assert planned(log, table=ITEM, fromLsn=lsn + 1, untilLsn=lsn) == []


@pytest.fixture(scope="module")
def grouped(log: ChangeLog, tmp_path_factory: pytest.TempPathFactory) -> ChangeLog:
    """The same in few segments, each of many groups of rows."""
    path = tmp_path_factory.mktemp("grouped") / "log"
    shutil.copytree(log.store.address, path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pgoutput_construct.changelog.compact._GROUP_ROWS", 16)
        compact(path, CompactionLimits(rows=250, least=2, grace=0))
    return ChangeLog(path)


@pytest.fixture(params=[0, 1 << 30])
def groups(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> list[int]:
    """How many groups of rows are read of each segment that is opened; whether of its file only these are."""
    monkeypatch.setattr("pgoutput_construct.changelog._segment.segment_reader._LARGE", request.param)
    found, real = list[int](), pq.ParquetFile.read_row_groups

    def read_row_groups(file: pq.ParquetFile, groups: list[int], **options: Any) -> pa.Table:
        found.append(len(groups))
        return real(file, groups, **options)

    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", read_row_groups)
    return found


def test_positions_leave_out_groups_of_rows(grouped: ChangeLog, groups: list[int]) -> None:
    """Of each segment only groups are read that may have rows which are asked for; and none is left out."""
    rows = read(grouped, view="changes")
    segments, most = len(groups), sum(groups)
    assert segments >= 3 and most > 5 * segments
    lsns = sorted({*rows["_commit_lsn"].to_pylist()})
    for name, first, last in (
        ("one transaction", lsns[7], lsns[7]),
        ("some transactions", lsns[7], lsns[9]),
        ("the first ones", 0, lsns[5]),
        ("the last ones", lsns[-4], lsns[-1]),
    ):
        groups.clear()
        found = places(read(grouped, view="changes", fromLsn=first, asOfLsn=last))
        assert found == [place for place in places(rows) if first <= place[0] <= last] != [], name
        assert 0 < sum(groups) <= most // 3 and len(groups) < segments, name
    groups.clear()
    assert not len(read(grouped, view="changes", fromLsn=lsns[-1] + 1)) and not groups


def test_only_groups_of_the_table(grouped: ChangeLog, groups: list[int]) -> None:
    """A table that is in a small part of a segment, and the views of its index, do not read the rest of it."""
    read(grouped, view="changes")
    everything = sum(groups)
    groups.clear()
    small = min(LogTables.from_log(grouped).tables.values(), key=lambda table: table.rows)
    assert len(read(grouped, table=small.qualified)) == small.rows
    assert 0 < sum(groups) < everything // 3
    groups.clear()
    assert len(read(grouped, view="transactions")) and len(groups) > 0 and sum(groups) == 0
    assert len(read(grouped, view="messages", fromSeq=100, asOfSeq=109)) == 10 and sum(groups) <= 2


@pytest.mark.usefixtures("groups")
def test_damage_in_a_group_of_rows(grouped: ChangeLog, tmp_path: Path) -> None:
    """Pages have checksums of their own: damage of what is read is found, with the seqs of its group."""
    shutil.copytree(grouped.store.address, tmp_path / "log")
    log = ChangeLog(tmp_path / "log")
    path = tmp_path / "log" / log.segments[0].name
    column = pq.read_metadata(path).row_group(5).column(len(SCHEMA) - 1)
    data = bytearray(path.read_bytes())
    data[column.data_page_offset + column.total_compressed_size // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(pgo.ChangeLogError, match="seq 80 to 95, field payload: "):
        read(log, view="messages", fromSeq=90, asOfSeq=91)
    assert len(read(log, view="messages", fromSeq=200, asOfSeq=201)) == 2


def test_the_view_of_all_changes(log: ChangeLog) -> None:
    """Each change of each table once, in texts as PostgreSQL writes them, without what was not sent."""
    known, changes = LogTables.from_log(log), read(log, view="changes").to_pylist()
    assert len(changes) == sum(table.rows for table in known.tables.values())
    own = [
        row | {"before": pairs(row["before"]), "after": pairs(row["after"])} for row in changes if row["_table"] == ITEM
    ]
    assert sorted((row["_commit_lsn"], row["_seq"], row["_op"]) for row in own) == places(read(log, table=ITEM))
    (moved,) = (row for row in own if row["before"] == {"id": "20"})
    assert (moved["after"], moved["_unchanged"]) == (
        {"id": "21", "name": "big is unchanged", "amount": "1.00"},
        ["big"],
    )
    (came,) = (row for row in own if row["_op"] == "insert" and row["after"]["id"] == "10")
    assert (came["before"], came["after"]) == (None, {"id": "10", "name": "", "amount": None, "big": ""})
    gone = [row for row in changes if row["_op"] == "delete"]
    assert gone and all(row["before"] and row["after"] is None for row in gone)
    assert all(len(row["before"]) > 1 for row in gone if row["_table"] == "public.full_row")


def pairs(row: list[tuple[str, str | None]] | None) -> dict[str, str | None] | None:
    """Return a map of Arrow as a dict."""
    return None if row is None else dict(row)


def test_the_other_views(log: ChangeLog, recordings: dict[str, Recording]) -> None:
    """Transactions are those of the index; every message is there, with the fields of its class."""
    transactions = read(log, view="transactions").sort_by("seq").to_pylist()
    expected = [row for row in log.transactions().to_pylist() if row["outcome"] == "committed"]
    for name in ("seq", "xid", "commit_lsn"):
        assert [row[name] for row in transactions] == [row[name] for row in expected]
    messages = read(log, view="messages").to_pylist()
    assert [row["payload"] for row in messages] == list(recordings["18-v4-text"].payloads)
    assert {row["kind"] for row in messages} >= {"Begin", "Commit", "Relation", "StreamStart", "CommitPrepared"}
    commits = [row["commit_lsn"] for row in messages if row["kind"] == "Commit"]
    assert set(commits) <= {row["commit_lsn"] for row in expected}
    (batch,) = read(log, view="batches").to_pylist()
    assert (batch["after_seq"], batch["seq"]) == (-1, log.index.last_seq)
    assert read(log, view="events").num_rows == 0


def test_a_segment_that_an_executor_does_not_find(log: ChangeLog, tmp_path: Path) -> None:
    """It is no damage: the error names the host, and says what to do."""
    source = PgoutputSource({"path": log.store.address, "table": ITEM})
    reader: Any = source.reader(source.schema())
    task = pickle.loads(pickle.dumps(reader.partitions()[0]))
    for segment in task.group.segments:
        segment.store.directory = tmp_path / "elsewhere"
    with pytest.raises(pgo.ChangeLogError, match=r"not found on the host .* not damaged: .* s3://") as caught:
        list(reader.read(task))
    assert "Restore" not in str(caught.value)


def test_damaged_payloads(tmp_path: Path, recordings: dict[str, Recording]) -> None:
    """They fail a read with segment, seq and field; or the other rows are there, and they stand apart with reasons."""
    recording = recordings["18-v4-text"]
    first, second = [i for i, p in enumerate(recording.payloads) if b"large 10" in p][:2]
    errors = {first: recording.payloads[first][:-1] + b"t", second: recording.payloads[second][:3]}
    write_recording(tmp_path, recording, errors={first: errors[first]})
    with pytest.raises(pgo.ChangeLogError, match=rf"^segment \S+, seq {first} .*Insert\.new"):
        read(ChangeLog(tmp_path), table=ITEM)
    write_recording(tmp_path / "two", recording, errors=errors)
    log = ChangeLog(tmp_path / "two")
    with pytest.raises(pgo.ChangeLogError, match=rf"^segment \S+, seq {second} .*Insert"):
        read(log, table=ITEM)
    write_recording(tmp_path / "none", recording)
    whole = read(ChangeLog(tmp_path / "none"), table=ITEM)
    assert read(log, table=ITEM, badRecords="quarantine").num_rows == whole.num_rows - 2
    assert read(log, view="changes", badRecords="quarantine").num_rows > whole.num_rows - 2
    bad = sorted(read(log, view="quarantine").to_pylist(), key=lambda row: row["seq"])
    assert [(row["seq"], row["payload"]) for row in bad] == [*errors.items()]
    assert "Insert.new" in bad[0]["reason"] and "Insert" in bad[1]["reason"]
    assert bad[0]["_commit_lsn"] == bad[1]["_commit_lsn"] > 0 and bad[1]["_relation_oid"] == 0
