"""A change log becomes tables; a damaged one becomes a clear error."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import pgoutput_construct as pgo
from pgoutput_construct.changelog import SCHEMA
from pgoutput_construct.changelog._segment.segment_reader import read_segment
from pgoutput_construct.postgres import ChangeLog
from pgoutput_construct.spark import IncompleteTableWarning, OpenLog, open_log, plain_errors, read_table, write_tables
from pgoutput_construct.spark._log_view.change_columns import CHANGE
from pgoutput_construct.stream import RowReader
from tests.live.recording import Recording
from tests.spark.logs import log_options, write_log, write_recording

pytestmark = pytest.mark.spark

NAME = "18-v4-text"


@pytest.fixture(scope="module")
def directory(recordings: dict[str, Recording], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with streams and two-phase transactions, in several segments."""
    path = tmp_path_factory.mktemp("log")
    write_recording(path, recordings[NAME])
    return path


@pytest.fixture(scope="module")
def log(spark: Any, directory: Path) -> OpenLog:
    """The same, opened."""
    return open_log(spark, directory)


def test_tables(log: OpenLog) -> None:
    """Tables with committed changes, odd names quoted; partitions stand under the name they are published as."""
    assert '"Odd schema.ü"."Straße ""x"". 表"' in log.tables
    assert "public.rooted" in log.tables
    assert "public.rooted_old" not in log.tables
    with pytest.raises(pgo.ChangeLogError, match=r"no table public\.nothing"):
        log.table("public.nothing")


def test_schema(log: OpenLog) -> None:
    """The table's columns, typed, then those of the change."""
    changes = log.changes("public.item")
    assert changes.columns == ["id", "name", "amount", "big", *CHANGE]
    assert dict(changes.dtypes)["amount"] == "decimal(12,2)"
    kinds = {"_commit_lsn": "bigint", "_seq": "bigint", "_commit_time": "timestamp", "_xid": "bigint"}
    assert kinds.items() <= dict(changes.dtypes).items()
    assert log.table("public.altered").columns.names == ["id", "b", "c", "a"]


def test_a_state_that_may_lack_rows(log: OpenLog) -> None:
    """The log has no copy of the table: that is said, with the remedy."""
    with pytest.warns(
        IncompleteTableWarning, match=r"no snapshot of public\.item: pgoutput snapshot DSN LOG --table pub"
    ):
        log.state("public.item")


def test_changes_in_order(log: OpenLog, recordings: dict[str, Recording]) -> None:
    """They are those of the same workload read one by one from a log without streams, in the same order."""
    reader, expected = RowReader(), []
    for payload in recordings["18-v1-text"].payloads:
        for change in reader.read(pgo.parse(payload)):
            if change.relation.name == "item":
                expected.append((change.op, change.new and change.new["id"], change.unchanged))
    rows = log.changes("public.item").orderBy("_commit_lsn", "_seq").collect()
    assert [(row._op, row.id, tuple(row._unchanged)) for row in rows] == expected
    (moved,) = [row for row in rows if row._before is not None and row.id == 21]
    assert (moved._before.id, moved.big, moved._unchanged) == (20, None, ["big"])


def test_truncates(log: OpenLog) -> None:
    """A truncate is a row of every table that it emptied."""
    counts = {}
    for name in ("parent", "child", "altered", "full_row"):
        counts[name] = log.changes(f"public.{name}").where("_op = 'truncate'").count()
    assert counts == {"parent": 4, "child": 5, "altered": 1, "full_row": 1}


def test_write_tables(log: OpenLog, tmp_path: Path) -> None:
    """One dataset a table, and what it holds; nothing is overwritten unless asked for."""
    names = ["public.item", "public.no_columns", '"Odd schema.ü"."Straße ""x"". 表"']
    written = write_tables(log, tmp_path, names)
    item = written["public.item"]
    assert sum(item.counts.values()) == log.table("public.item").rows
    assert Path(item.path) == tmp_path / "public.item"
    for name, table in written.items():
        read, changes = read_table(log.spark, table.path), log.changes(name)
        assert read.schema == changes.schema and read.count() == log.table(name).rows
        one, other = (rows.orderBy("_commit_lsn", "_seq").toArrow() for rows in (read, changes))
        assert one == other
    with pytest.raises(Exception, match="already exists"):
        write_tables(log, tmp_path, names)


def test_days_long_ago(spark: Any, tmp_path: Path) -> None:
    """Days before the calendar of today are written as Spark reads them, and numbers, and a row without any value."""
    kinds = {"day": (1082, -1), "moment": (1114, -1), "stamp": (1184, -1), "price": (1700, (12 << 16 | 2) + 4)}
    columns = tuple(pgo.RelationColumn(0, name, *kind) for name, kind in kinds.items())
    relation = pgo.Relation(None, 7, "public", "old", "d", columns)
    values = b"0044-03-15", b"1066-10-14 09:00:00", b"1582-10-04 23:59:59.999999+00", b"-1234567890.05"
    rows = [pgo.Insert(None, 7, values), pgo.Insert(None, 7, (None,) * 4)]
    lsn, time = pgo.Lsn(5), pgo.Timestamp(6)
    messages: list[Any] = [pgo.Begin(lsn, time, 7), relation, *rows, pgo.Commit(lsn, pgo.Lsn(6), time)]
    write_log(tmp_path / "log", [pgo.build(message) for message in messages], log_options())
    (written,) = write_tables(open_log(spark, tmp_path / "log"), tmp_path / "tables").values()
    assert written.insert == 2
    found = spark.read.parquet(written.path).orderBy("_seq").selectExpr(*(f"cast({name} AS string)" for name in kinds))
    old, none = (tuple(row) for row in found.collect())
    assert old == ("0044-03-15", "1066-10-14 09:00:00", "1582-10-04 23:59:59.999999", "-1234567890.05")
    assert none == (None,) * 4


def flipped(directory: Path, copy: Path, place: float) -> Path:
    """Copy a log, flip a bit somewhere in its third segment, and return that."""
    shutil.copytree(directory, copy)
    segment = sorted(copy.glob("*.parquet"))[2]
    data = bytearray(segment.read_bytes())
    data[int(place * (len(data) - 1))] ^= 0x10
    segment.write_bytes(data)
    return segment


def payload_of(recording: Recording, kind: type[Any], containing: bytes = b"") -> int:
    """Return the seq of the first message of a kind with some bytes in it."""
    return next(i for i, p in enumerate(recording.payloads) if p[:1] == kind.TAG and containing in p)


@pytest.mark.parametrize(
    ("kind", "containing", "at", "flip", "field"),
    [
        (pgo.Insert, b"large 1000", 12, 0x40, r"Insert\.new"),
        (pgo.Insert, b"large 1000", 5, 0xFF, "no Relation has described the relation OID"),
        (pgo.Update, b"changed", 6, 0x08, r"Update\.new|Update"),
        (pgo.Truncate, b"", 1, 0x80, "Truncate"),
        (pgo.Begin, b"", 0, 0x80, "unknown tag"),
        (pgo.Commit, b"", 1, 0x01, r"Commit\.flags"),
        (pgo.Relation, b"item", 0, 0x80, "unknown tag"),
        (pgo.Message, b"", 1, 0x80, r"Message\.flags"),
        (pgo.StreamStop, b"", 0, 0x80, "unknown tag"),
    ],
)
def test_a_flipped_byte_in_a_payload(
    spark: Any,
    tmp_path: Path,
    recordings: dict[str, Recording],
    kind: type[Any],
    containing: bytes,
    at: int,
    flip: int,
    field: str,
) -> None:
    """Where checksums agree with the bytes, decoding finds it: segment, seq, field."""
    recording = recordings[NAME]
    seq = payload_of(recording, kind, containing)
    damaged = bytearray(recording.payloads[seq])
    damaged[at] ^= flip
    write_recording(tmp_path / "log", recording, errors={seq: bytes(damaged)})
    with pytest.raises(pgo.PgoutputError, match=rf"segment segment-{seq - seq % 100:020d}\S+, seq {seq} .*{field}"):
        write_tables(open_log(spark, tmp_path / "log"), tmp_path / "tables", ["public.item"])


def test_a_flipped_byte_in_a_lazy_read(spark: Any, tmp_path: Path, recordings: dict[str, Recording]) -> None:
    """Spark's own exception has the text; ``plain_errors`` makes it ours."""
    seq = payload_of(recordings[NAME], pgo.Insert, b"large 1000")
    damaged = recordings[NAME].payloads[seq][:-1] + b"t"
    write_recording(tmp_path, recordings[NAME], errors={seq: damaged})
    changes = open_log(spark, tmp_path).changes("public.item")
    with pytest.raises(Exception, match=rf"seq {seq} .*Insert.new") as caught:
        changes.collect()
    assert not isinstance(caught.value, pgo.PgoutputError)
    with plain_errors(), pytest.raises(Exception, match="Insert"):
        changes.collect()
    with pytest.raises(pgo.ChangeLogError, match=rf"^segment \S+, seq {seq} .*Insert\.new"), plain_errors():
        changes.collect()


@pytest.mark.parametrize("place", [0.9, 1.0])
def test_a_flipped_byte_in_a_file(spark: Any, directory: Path, tmp_path: Path, place: float) -> None:
    """In the footer, at the end: the checksums find it when the log is opened, and the error names the segment."""
    segment = flipped(directory, tmp_path / "log", place)
    with pytest.raises(pgo.ChangeLogError, match=segment.name):
        open_log(spark, segment.parent)


def test_a_flipped_byte_anywhere(directory: Path, tmp_path: Path) -> None:
    """It is found, or it says nothing (Parquet repeats itself): what is read is never other than what was written."""
    expected = read_segment(ChangeLog(directory).segments[2])
    found = 0
    for place in range(0, 100, 2):
        segment = flipped(directory, tmp_path / str(place), place / 100)
        try:
            read = read_segment(ChangeLog(segment.parent).segments[2])
        except pgo.ChangeLogError as error:
            found += segment.name in str(error)
        else:
            assert read.equals(expected)
            found += 1
    assert found == 50


def test_damaged_payloads_name_seqs_and_field(spark: Any, directory: Path, tmp_path: Path) -> None:
    """Inside the column of payloads it says which seqs, and which field."""
    path = sorted(directory.glob("*.parquet"))[2]
    payloads = pq.read_metadata(path).row_group(0).column(len(SCHEMA) - 1)
    middle = payloads.data_page_offset + payloads.total_compressed_size // 2
    segment = flipped(directory, tmp_path / "log", middle / path.stat().st_size)
    with (
        pytest.raises(pgo.ChangeLogError, match=rf"^segment .*{segment.name}, seq 200 to 299, field payload: "),
        plain_errors(),
    ):
        open_log(spark, segment.parent).changes("public.item").collect()


def test_an_empty_log_of_rows(spark: Any, tmp_path: Path) -> None:
    """A log without any transaction has no tables."""
    message = pgo.build(pgo.Message(None, 0, pgo.Lsn(1), "p", b"x"))
    write_log(tmp_path, [message], log_options())
    log = open_log(spark, tmp_path)
    assert log.tables == ()
    assert write_tables(log, tmp_path / "tables") == {}


def test_each_segment_is_decoded_under_its_own_options(
    spark: Any, tmp_path: Path, recordings: dict[str, Recording]
) -> None:
    """A log that goes on with another protocol version, streams and binary values."""
    for name in ("16-v1-text", "18-v2-binary", NAME):
        write_recording(tmp_path, recordings[name], rows=300)
    log, counts = open_log(spark, tmp_path), []
    assert len({segment.options.proto_version for segment in log.log.segments}) == 3
    for name in ("16-v1-text", "18-v2-binary", NAME):
        write_recording(tmp_path / name, recordings[name], rows=300)
        counts.append(open_log(spark, tmp_path / name).table("public.item").rows)
    assert log.changes("public.item").count() == log.table("public.item").rows == sum(counts)


def test_rows_without_a_relation(spark: Any, tmp_path: Path) -> None:
    """An Insert whose Relation is missing is an error that names its seq."""
    lsn, time = pgo.Lsn(5), pgo.Timestamp(6)
    messages: list[Any] = [pgo.Begin(lsn, time, 7), pgo.Insert(None, 1, (b"1",)), pgo.Commit(lsn, pgo.Lsn(6), time)]
    write_log(tmp_path, [pgo.build(message) for message in messages], log_options())
    with pytest.raises(pgo.PgoutputError, match=r"seq 1.*no Relation has described the relation OID 1"):
        open_log(spark, tmp_path)
