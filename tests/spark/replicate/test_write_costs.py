"""What a batch writes, and what maintenance leaves: it depends on the changes, not on the table."""

import json
from collections.abc import Iterator
from dataclasses import replace
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.lake._notes import Moving, Warehouse
from pgoutput_construct.spark import MaintenanceReport, Retention, maintain, read_current, replicate
from pgoutput_construct.spark._table_formats import iceberg_sink
from pgoutput_construct.spark._table_formats.iceberg_sink import IcebergSink
from pgoutput_construct.spark._table_formats.sinks import open_sink
from tests.postgres.shop import Shop
from tests.spark.replicate.rounds import check_equal
from tests.table_formats import SHORT_WITHOUT_DELTA

pytestmark = [pytest.mark.server, pytest.mark.spark]

NAMES = ("article", "event")
ROWS = 20_000
NOTHING_OLD = Retention(age=0, count=1, grace=0)
LAKES = SHORT_WITHOUT_DELTA[1:]


@pytest.fixture(params=LAKES)
def into(request: pytest.FixtureRequest, lake: Any) -> str:
    """Each format in turn."""
    return str(request.param)


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path, into: str) -> Iterator[Shop]:
    """A table with a key, and one without, in a log."""
    with Shop.create(server18, f"costs_{into}", tmp_path / "log") as shop:
        shop.execute(
            "CREATE TABLE article (id int PRIMARY KEY, note text)",
            "CREATE TABLE event (at int, note text)",
            "ALTER TABLE event REPLICA IDENTITY FULL",
            f"INSERT INTO article SELECT i, md5(i::text) FROM generate_series(1, {ROWS}) i",
            "INSERT INTO event SELECT i, md5(i::text) FROM generate_series(1, 100) i",
        )
        shop.capture(snapshot=True)
        yield shop


def _files(warehouse: Path, name: str) -> dict[Path, int]:
    """Return the files of data of a table, and their sizes."""
    found = (path for path in warehouse.rglob("*.parquet") if f"public.{name}" in str(path) or f"/{name}/" in str(path))
    return {path: path.stat().st_size for path in found}


def _snapshots(lake: Any, warehouse: Path, name: str) -> list[dict[str, Any]]:
    """Return the operations of a table's snapshots or commits, and what they say of themselves, the oldest first."""
    table = _iceberg_table(lake, warehouse, name)
    rows = lake.sql(f"SELECT operation, summary FROM {table}.snapshots ORDER BY committed_at").collect()
    return [{"operation": row["operation"], **row["summary"]} for row in rows]


def _iceberg_table(lake: Any, warehouse: Path, name: str) -> str:
    sink = IcebergSink(Warehouse(warehouse))
    sink.prepare(lake)
    return sink._table(f"public.{name}")


@pytest.mark.parametrize("into", LAKES, indirect=True)
def test_a_batch_writes_what_has_changed(lake: Any, shop: Shop, into: str, tmp_path: Path) -> None:
    """Of a large table, with deletion vectors or position deletes; its commits have little to say of it."""
    warehouse = tmp_path / "wh"
    replicate(lake, shop.directory, warehouse, into, write_mode="merge-on-read")
    first = sum(_files(warehouse, "article").values())
    for number in range(2):
        shop.execute(f"UPDATE article SET note = 'new' WHERE id % {ROWS // 5} = {number}")
        shop.capture()
        replicate(lake, shop.directory, warehouse, into, write_mode="merge-on-read")
    assert first < sum(_files(warehouse, "article").values()) < 1.1 * first
    check_equal(lake, shop, warehouse, NAMES)
    if into == "iceberg":
        snapshots = _snapshots(lake, warehouse, "article")
        # Those of a data file stand in one file: a batch writes that again.
        counts = [[int(each.get(f"{what}-position-deletes", 0)) for what in ("added", "removed")] for each in snapshots]
        assert [added - removed for added, removed in counts] == [0, 5, 5]
        notes = [each["pgoutput.version"] for each in snapshots]
        assert all(isinstance(json.loads(note)["shape"], str) and len(note) < 300 for note in notes)


def test_inserts_are_appended(lake: Any, shop: Shop, into: str, tmp_path: Path) -> None:
    """A batch of inserts alone does not read the table, with a key or without; later ones are merged."""
    warehouse = tmp_path / "wh"
    replicate(lake, shop.directory, warehouse, into)
    before = {name: _files(warehouse, name) for name in NAMES}
    shop.execute(
        "BEGIN; SAVEPOINT a; INSERT INTO article VALUES (-2, 'rolled back'); ROLLBACK TO a; "
        "INSERT INTO article VALUES (-1, NULL); COMMIT",
        "INSERT INTO event VALUES (1, NULL), (1, NULL)",
    )
    shop.capture()
    replicate(lake, shop.directory, warehouse, into)
    check_equal(lake, shop, warehouse, NAMES)
    for name in NAMES:
        assert before[name].items() <= _files(warehouse, name).items()
    if into == "iceberg":
        assert [_snapshots(lake, warehouse, name)[-1]["operation"] for name in NAMES] == ["append"] * 2
    shop.execute(
        "DELETE FROM article WHERE id = -1", "DELETE FROM event WHERE at = 1", "INSERT INTO article VALUES (-1, 'x')"
    )
    shop.capture()
    replicate(lake, shop.directory, warehouse, into)
    check_equal(lake, shop, warehouse, NAMES)


def _check_merged(spark: Any, shop: Shop, warehouse: Path, into: str, mode: str | None = None) -> None:
    """Change a row, and check that it is merged into the table."""
    shop.execute("UPDATE article SET note = note || 'd' WHERE id = 2")
    shop.capture()
    done = replicate(spark, shop.directory, warehouse, into, ["public.article"], write_mode=mode)
    assert done is not None and done.tables == {"public.article": "changed"} and not done.reasons
    check_equal(spark, shop, warehouse, ["article"])


def _check_merged_without_former(spark: Any, shop: Shop, warehouse: Path, into: str) -> None:
    """Check merges after a column is dropped by which the table was partitioned before, and is no more."""
    names = ["public.article"]
    shop.execute("ALTER TABLE article ADD former int, ADD later int", "UPDATE article SET later = 1")
    shop.capture()
    for column in ("former", "later"):
        given = {names[0]: [column]}
        replicate(spark, shop.directory, warehouse, into, names, resync=names, partition_by=given)
    shop.execute("ALTER TABLE article DROP former")
    for number in range(2):
        shop.execute(f"UPDATE article SET note = note || '{number}' WHERE id = 2")
        shop.capture()
        replicate(spark, shop.directory, warehouse, into, names, partition_by=given)
        check_equal(spark, shop, warehouse, ["article"])
    shop.execute("ALTER TABLE article DROP later", "UPDATE article SET note = note || 'x' WHERE id = 2")
    for number in range(2):  # the option stays, as in the file of a service
        shop.capture()
        replicate(spark, shop.directory, warehouse, into, names, partition_by=given)
        check_equal(spark, shop, warehouse, ["article"])
        shop.execute(
            "UPDATE article SET note = note || 'y' WHERE id = 1", f"INSERT INTO article VALUES ({number - 9}, 'z')"
        )


@pytest.mark.long
def test_partitions_of_an_added_column(lake: Any, shop: Shop, into: str, tmp_path: Path) -> None:
    """Changes are merged."""
    given = {"partition_by": {"public.article": ["_seq"]}}
    shop.execute("DELETE FROM article WHERE id > 20")
    shop.capture()
    replicate(lake, shop.directory, tmp_path / "wh", into, ["public.article"], **given)  # type: ignore[arg-type]
    _check_merged(lake, shop, tmp_path / "wh", into)


@pytest.mark.parametrize("into", ["iceberg"], indirect=True)
@pytest.mark.long
def test_a_column_of_partitions_that_goes(
    lake: Any, shop: Shop, into: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The table is written again without it, and merged; one that was never there is refused with what there is."""
    warehouse, names = tmp_path / "wh", ["public.article"]
    shop.execute("DELETE FROM article WHERE id > 20", "ALTER TABLE article ADD part int")
    shop.capture()
    with pytest.raises(pgo.ChangeLogError, match=r"cannot be partitioned by other: it has no column 'other', but 'id'"):
        replicate(lake, shop.directory, warehouse, into, names, partition_by={names[0]: ["other"]})
    replicate(lake, shop.directory, warehouse, into, names, partition_by={names[0]: ["part"]})
    shop.execute("ALTER TABLE article DROP part", "UPDATE article SET note = 'c' WHERE id = 2")
    shop.capture(snapshot=True)
    replicate(lake, shop.directory, warehouse, into, names)
    assert "public.article is not partitioned by part: it has no such column" in caplog.messages
    check_equal(lake, shop, warehouse, ["article"])
    _check_merged(lake, shop, warehouse, into)


@pytest.mark.parametrize("into", ["delta", "iceberg"], indirect=True)
@pytest.mark.long
def test_partitions(lake: Any, shop: Shop, into: str, tmp_path: Path) -> None:
    """They are remembered, and go with their column; Delta Lake has none of texts, and none of what is not a column."""
    warehouse, names = tmp_path / "wh", ["public.article"]
    given: dict[str, Any] = {"partition_by": {"public.article": ["part"]}}
    shop.execute("ALTER TABLE article ADD part int", "UPDATE article SET part = id % 2 WHERE id < 100")
    for statement, options in (
        ("UPDATE article SET note = 'new' WHERE id < 3", given),
        ("UPDATE article SET part = 7 WHERE id = 5", {}),
        ("TRUNCATE article; INSERT INTO article VALUES (1, 'a', 1), (2, 'b', NULL)", {}),
        ("ALTER TABLE article DROP part; UPDATE article SET note = 'c' WHERE id = 2", {}),
    ):
        shop.execute(*statement.split("; "))
        shop.capture(snapshot=True)
        replicate(lake, shop.directory, warehouse, into, names, **options)
        check_equal(lake, shop, warehouse, ["article"])
        partitions = {path.parent.name for path in _files(warehouse, "article") if "part=" in str(path)}
        details = Warehouse(warehouse).find("public.article").details
        assert bool(partitions) and (details.get("partitions") == ["part"]) == ("DROP" not in statement)
    wrong = {"partition_by": {"public.article": ["note"]}, "resync": names}
    if into == "delta":
        with pytest.raises(
            pgo.ChangeLogError, match="cannot be partitioned by 'note': Delta Lake reads the empty text"
        ):
            replicate(lake, shop.directory, warehouse, into, names, **wrong)
    with pytest.raises(pgo.ChangeLogError, match=r"cannot be partitioned by other: it has no column 'other', but 'id'"):
        replicate(lake, shop.directory, tmp_path / "new", into, names, partition_by={names[0]: ["other"]})
    _check_merged(lake, shop, warehouse, into)
    replicate(lake, shop.directory, warehouse, into, names, resync=names, partition_by={names[0]: ["id"]})
    for mode in (None, "merge-on-read"):
        _check_merged(lake, shop, warehouse, into, mode)
    _check_merged_without_former(lake, shop, tmp_path / "other", into)
    with pytest.raises(pgo.ChangeLogError, match=r"the log has no table public\.other"):
        replicate(lake, shop.directory, warehouse, into, names, partition_by={"public.other": ["id"]})


@pytest.mark.parametrize("into", LAKES[1:], indirect=True)
def test_keys_whose_deletes_are_not_published(lake: Any, shop: Shop, into: str, tmp_path: Path) -> None:
    """They may be there already: the batch is merged, though the log has inserts alone."""
    warehouse, options = tmp_path / "wh", {"publications": ["partly"]}
    shop.execute("CREATE PUBLICATION partly FOR TABLE article WITH (publish = 'insert, update')")
    other = replace(shop, directory=tmp_path / "partly", slot="partly")
    other.capture(create_slot=True, snapshot=True, **options)
    replicate(lake, other.directory, warehouse, into)
    shop.execute("DELETE FROM article WHERE id < 3", "INSERT INTO article VALUES (1, 'again')")
    other.capture(**options)
    assert replicate(lake, other.directory, warehouse, into) is not None
    found = read_current(lake, warehouse, "article").where("id < 3").orderBy("id").select("id", "note").collect()
    assert [tuple(row) for row in found] == [(1, "again"), (2, md5(b"2").hexdigest())]
    shop.execute("SELECT pg_drop_replication_slot('partly')")


def _branches(lake: Any, warehouse: Path, name: str) -> list[str]:
    return [row["name"] for row in lake.sql(f"SELECT name FROM {_iceberg_table(lake, warehouse, name)}.refs").collect()]


@pytest.mark.parametrize("into", LAKES[1:], indirect=True)
def test_a_merge_in_two_parts(
    lake: Any, shop: Shop, into: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that come are appended, those that are there updated: readers see both at once, and no branch is left."""
    monkeypatch.setattr(iceberg_sink, "_LARGE_ROWS", 0)  # so are large tables
    monkeypatch.setattr(IcebergSink, "few_bytes", 0)
    monkeypatch.setattr(IcebergSink, "key_bytes", 0)
    warehouse = tmp_path / "wh"
    replicate(lake, shop.directory, warehouse, into)
    for number in range(2):
        shop.execute(
            f"BEGIN; UPDATE article SET note = 'changed' WHERE id < {5 + number}; DELETE FROM article WHERE id = 7; "
            f"INSERT INTO article VALUES ({-1 - number}, NULL), (-9, 'only here'); DELETE FROM article WHERE id = -9; "
            f"UPDATE article SET id = {-30 - number} WHERE id = {30 + number}; COMMIT"
        )
        shop.capture()
        replicate(lake, shop.directory, warehouse, into)
        check_equal(lake, shop, warehouse, NAMES)
        assert _branches(lake, warehouse, "article") == ["main"]
    operations = [each["operation"] for each in _snapshots(lake, warehouse, "article")]
    assert operations.count("append") == 3  # the load, and one of each batch


@pytest.mark.parametrize("into", LAKES[1:], indirect=True)
def test_a_row_that_is_lost_is_found_out(lake: Any, shop: Shop, into: str, tmp_path: Path) -> None:
    """The rows that the MERGE changes are counted before readers see them: the table stays, and the row is named."""
    warehouse = tmp_path / "wh"
    replicate(lake, shop.directory, warehouse, into)
    lake.sql(f"DELETE FROM {_iceberg_table(lake, warehouse, 'article')} WHERE id = 3")
    shop.execute("UPDATE article SET note = 'changed' WHERE id < 5", "INSERT INTO article VALUES (-1, 'new')")
    shop.capture()
    with pytest.raises(pgo.ChangeLogError, match=r'row \{"id":3\}: UPDATE or DELETE of a row that does not exist'):
        replicate(lake, shop.directory, warehouse, into, ["article"])
    assert read_current(lake, warehouse, "article").where("note = 'changed' OR id = -1").count() == 0
    assert _branches(lake, warehouse, "article") == ["main"]


@pytest.mark.parametrize("into", LAKES[1:], indirect=True)
@pytest.mark.long
def test_maintenance_between_batches(lake: Any, shop: Shop, into: str, tmp_path: Path) -> None:
    """In a session that has not seen the warehouse yet; Spark redacts what is called after secrets."""
    reports = list[MaintenanceReport]()
    shop.execute("CREATE TABLE hourly_tokens (id int PRIMARY KEY)", "INSERT INTO hourly_tokens VALUES (1)")
    for number in range(2):
        shop.capture(snapshot=True)
        session = lake.newSession()
        arguments: dict[str, Any] = {"maintains": True, "retention": NOTHING_OLD, "on_maintenance": reports.append}
        replicate(session, shop.directory, tmp_path / "wh", into, ["public.hourly_tokens"], **arguments)
        assert [(each.table, each.error) for each in reports] == [("public.hourly_tokens", "")] * (number + 1)
        shop.execute(f"INSERT INTO hourly_tokens VALUES ({number + 2})")
    sink = open_sink(into, Warehouse(tmp_path / "wh"))
    sink.prepare(lake)
    dataset = Warehouse(tmp_path / "wh").find("public.hourly_tokens")
    (report,) = maintain(lake, tmp_path / "wh", retention=NOTHING_OLD)
    assert not report.error and sink.version(lake, dataset) == dataset.version


@pytest.mark.parametrize("into", ["delta", "iceberg"], indirect=True)
@pytest.mark.long
def test_maintenance(lake: Any, shop: Shop, into: str, tmp_path: Path) -> None:
    """Files are put together and old ones removed; rows stay, and an interrupted batch still knows what it has done."""
    warehouse = tmp_path / "wh"
    for number in range(5):
        replicate(lake, shop.directory, warehouse, into, write_mode="merge-on-read")
        shop.execute(
            f"UPDATE article SET note = note || 'x' WHERE id = {number}", f"INSERT INTO event VALUES ({number})"
        )
        shop.capture()
    before = _files(warehouse, "event")
    reports = {each.table: each for each in maintain(lake, warehouse, retention=NOTHING_OLD)}
    assert not [each.error for each in reports.values() if each.error]
    assert reports.keys() >= {f"public.{name}" for name in NAMES}
    assert len(_files(warehouse, "event")) < len(before) and reports["public.event"].done
    # As after a kill between the data and the note: the version is that of the data.
    place = Warehouse(warehouse)
    progress, notes = place.existing_progress(), [place.find(f"public.{name}") for name in NAMES]
    replicate(lake, shop.directory, warehouse, into)
    list(maintain(lake, warehouse, ["public.event"], NOTHING_OLD))
    for note in notes:
        place.write_note(note)
    interrupted = replace(progress, done=False, batch=progress.batch + 1)
    place.write_progress(replace(interrupted, moving=(Moving("public.a", "public.b", "public.b"),)))
    with pytest.raises(pgo.PgoutputError, match="was interrupted while it moved renamed tables: run pgoutput"):
        list(maintain(lake, warehouse))
    place.write_progress(interrupted)
    assert not any(each.error for each in maintain(lake, warehouse, retention=NOTHING_OLD))
    assert len([*maintain(lake, warehouse, seconds=0.0)]) == 1  # what opening the tables takes does not count
    replicate(lake, shop.directory, warehouse, into)
    check_equal(lake, shop, warehouse, NAMES)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"write_mode": "never"}, "write mode 'never': it must be merge-on-read or copy-on-write"),
        ({"table_properties": {"write.merge.mode": "x"}}, r"'write\.merge\.mode' is set by replicate itself"),
        ({"table_properties": {"location": "s3://b"}}, r"'location' would give all tables one location"),
    ],
)
def test_options_that_are_refused(lake: Any, tmp_path: Path, options: Any, problem: str) -> None:
    """Before anything is written."""
    with pytest.raises(pgo.PgoutputError, match=problem):
        replicate(lake, tmp_path / "log", tmp_path / "wh", "iceberg", **options)
    with pytest.raises(pgo.PgoutputError, match="Parquet files have no table properties"):
        replicate(lake, tmp_path / "log", tmp_path / "wh", table_properties={"a": "b"})
    assert not (tmp_path / "wh").exists()


def test_retention() -> None:
    """Snapshots expire by age, and by number; those of the last minutes stay for their readers."""
    retention = Retention(age=1000, count=3, grace=100)
    now = 10_000.0
    assert retention.expired_before([9_500], now) == 9_000
    assert retention.expired_before([9_000 + each for each in range(0, 900, 100)], now) == 9_600
    assert retention.expired_before([now - each for each in range(10)], now) == 9_900
    with pytest.raises(pgo.PgoutputError, match="at least one snapshot"):
        Retention(count=0)
    with pytest.raises(pgo.PgoutputError, match="at least a day"):
        Retention(orphan_age=1)
