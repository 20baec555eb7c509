"""Tables of Parquet in parts: a base, and what changes added and removed; and what reads them."""

import itertools
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pgoutput_construct as pgo
from pgoutput_construct import lake
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.lake._notes import Dataset, Warehouse
from pgoutput_construct.spark import MaintenanceReport, Retention, maintain, read_current, replicate
from pgoutput_construct.spark._replicate import read_history
from pgoutput_construct.spark._table_formats.parquet_sink import ParquetSink, first_merged
from tests.crashes import Moment, killed
from tests.postgres.shop import Shop
from tests.spark.replicate.rounds import ROUNDS, TABLES, check_equal

IN_PARTS: dict[str, Any] = {"write_mode": "merge-on-read"}
ROWS = 5_000


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """A table in a log, of which a change is a small part."""
    with Shop.create(server18, "parts", tmp_path / "log") as shop:
        shop.execute(
            "CREATE TABLE piece (id numeric(10, 2) PRIMARY KEY, note text, big text)",
            "ALTER TABLE piece ALTER big SET STORAGE EXTERNAL",
            f"INSERT INTO piece SELECT i, md5(i::text), md5(i::text) FROM generate_series(1, {ROWS}) i",
            "INSERT INTO piece VALUES ('NaN', 'no number', repeat('b', 3000))",
        )
        shop.capture(snapshot=True)
        yield shop


def _dataset(warehouse: Path, table: str = "public.piece") -> Dataset:
    return Warehouse(warehouse).find(table)


def _check(spark: Any, shop: Shop, warehouse: Path) -> None:
    check_equal(spark, shop, warehouse, ["piece"])
    assert _sorted(lake.read(warehouse, "piece")) == _sorted(read_current(spark, warehouse, "piece").toArrow())


def _sorted(rows: pa.Table) -> list[dict[str, Any]]:
    return sorted(rows.to_pylist(), key=lambda row: (row["_commit_lsn"], row["_seq"]))


@pytest.mark.server
@pytest.mark.spark
def test_changes_of_every_kind(spark: Any, shop: Shop, tmp_path: Path) -> None:
    """A key that moves, one that is a text, values that were not sent, rows that come and go, and come again."""
    warehouse = tmp_path / "wh"
    batches = (
        "UPDATE piece SET note = 'new' WHERE id < 4; UPDATE piece SET note = 'text' WHERE id = 'NaN'; "
        "UPDATE piece SET id = -1, note = 'moved' WHERE id = 3",
        "DELETE FROM piece WHERE id IN (5, 6); UPDATE piece SET id = 5 WHERE id = 'NaN'; "
        "INSERT INTO piece VALUES (6, 'again')",
        "INSERT INTO piece VALUES (-4, ''); DELETE FROM piece WHERE id = -4; "
        "INSERT INTO piece VALUES (-2, 'alone'), ('NaN', 'again')",
        "UPDATE piece SET note = 'gone' WHERE id = -2; DELETE FROM piece WHERE id IN (-2, 'NaN'); "
        "INSERT INTO piece VALUES (-3, '')",
    )
    replicate(spark, shop.directory, warehouse, **IN_PARTS)
    base = _dataset(warehouse).details["path"]
    for number, statements in enumerate(batches, 1):
        shop.execute(*statements.split("; "))
        shop.capture()
        replicate(spark, shop.directory, warehouse, **IN_PARTS)
        details = _dataset(warehouse).details
        assert details["path"] == base and len(details["changes"]) == number
        _check(spark, shop, warehouse)
    assert len(details["deleted"]) == 3  # none of the batch that finds no row


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.long
def test_parts_that_add_up(spark: Any, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are put together, at last with the base; readers of those before have them for a while."""
    monkeypatch.setattr("pgoutput_construct.spark._table_formats.parquet_sink._PARTS", 4)
    warehouse, counts = tmp_path / "wh", list[int]()
    replicate(spark, shop.directory, warehouse, **IN_PARTS)
    for number in range(7):
        shop.execute(f"UPDATE piece SET note = 'new {number}' WHERE id BETWEEN {number} AND {number + 2}")
        shop.capture()
        before = _sorted(read_current(spark, warehouse, "piece").toArrow())
        found = lake.locate(warehouse, "piece")
        replicate(spark, shop.directory, warehouse, **IN_PARTS)
        assert all((warehouse / file).exists() for file in (*found.files, *found.deleted))
        assert len(before) == ROWS + 1
        counts.append(len(_dataset(warehouse).details["changes"]))
        _check(spark, shop, warehouse)
    assert counts[:3] == [1, 2, 3] and max(counts) <= 4 and counts.count(3) + counts.count(2) > 2
    shop.execute("UPDATE piece SET note = md5(note)")
    shop.capture()
    replicate(spark, shop.directory, warehouse, **IN_PARTS)
    for number in range(2):  # the first batch writes all together, the second does not
        shop.execute(f"DELETE FROM piece WHERE id = {number + 1}")
        shop.capture()
        replicate(spark, shop.directory, warehouse, grace=0, **IN_PARTS)
        details = _dataset(warehouse).details
        assert len(details["changes"]) == len(details["deleted"]) == number
    there = {f"public.piece/{path.name}" for path in (warehouse / "public.piece").iterdir()}
    assert there == {details["path"], *details["changes"], *details["deleted"]}
    _check(spark, shop, warehouse)


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.long
def test_maintained_parts(spark: Any, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a tenth was replaced, the base is written again; batches of the same process continue with it."""
    warehouse, done = tmp_path / "wh", list[MaintenanceReport]()
    maintained: dict[str, Any] = {**IN_PARTS, "maintains": True, "on_maintenance": done.append}
    replicate(spark, shop.directory, warehouse, **IN_PARTS)
    first = _dataset(warehouse)
    for last in (ROWS // 20, ROWS // 8):
        shop.execute(f"UPDATE piece SET note = 'new' WHERE id < {last}")
        shop.capture()
        replicate(spark, shop.directory, warehouse, **maintained)
        there = _dataset(warehouse).details["path"]
        assert (there == first.details["path"]) == (last == ROWS // 20)
    assert [each.done.get("bases written") for each in done] == [None, 1] and not any(each.error for each in done)
    second = _dataset(warehouse)
    assert not second.details["changes"] and not second.details["deleted"] and second.version.batch == 3
    assert (warehouse / first.details["path"]).exists()  # for readers that began with it
    _check(spark, shop, warehouse)

    batches, turns = list[Any](), iter(range(3))

    def change(report: MaintenanceReport | None = None) -> None:
        for turn in itertools.islice(turns, 1):
            shop.execute(f"UPDATE piece SET note = '{turn}' WHERE id % 2 = 1 AND id < {ROWS // 4}")
            shop.capture()
        done.extend([report] if report is not None else [])

    done.clear()
    change()
    following: dict[str, Any] = {"maintain_every": 1, "on_maintenance": change, "on_batch": batches.append}
    replicate(
        spark, shop.directory, warehouse, once=False, grace=0, stop=lambda: len(done) == 3, **IN_PARTS, **following
    )
    assert [each.done.get("bases written") for each in done] == [1, 1, 1] and len(batches) == 3
    _check(spark, shop, warehouse)

    shop.execute(f"DELETE FROM piece WHERE id < {ROWS // 5}")
    shop.capture()
    replicate(spark, shop.directory, warehouse, **IN_PARTS)
    with killed(Moment.BEFORE_NOTE):
        list(maintain(spark, warehouse, ["piece"]))
    (warehouse / "public.piece" / "v1-rows-0123abcd").mkdir()
    names = {path.name for path in (warehouse / "public.piece").iterdir()}
    assert {"v7", "v7-deleted"} <= names and sum(name.startswith("v7-whole-") for name in names) == 1
    monkeypatch.setattr("pgoutput_construct.spark._table_formats.parquet_sink._SHARE_OF_MAINTENANCE", 1)
    (report,) = maintain(spark, warehouse, ["piece"])
    assert report.done == {"directories removed": 2}
    monkeypatch.setattr("pgoutput_construct.spark._table_formats.parquet_sink._NUMBERED", 0)
    _check(spark, shop, warehouse)


def _maintained_twice(spark: Any, shop: Shop, warehouse: Path, **options: Any) -> list[MaintenanceReport]:
    """Follow the log until a table was maintained twice; return what was done."""
    done, end = list[MaintenanceReport](), time.monotonic() + 300
    replicate(
        spark,
        shop.directory,
        warehouse,
        once=False,
        retention=Retention(grace=0),
        on_maintenance=done.append,
        stop=lambda: len(done) == 2 or time.monotonic() > end,
        **options,
    )
    return done


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.long
def test_an_idle_table(spark: Any, shop: Shop, tmp_path: Path) -> None:
    """It is maintained after a while, though few batches have changed it: nothing else removes what was replaced."""
    warehouse = tmp_path / "wh"
    options: dict[str, Any] = {**IN_PARTS, "tables": ["public.piece"], "grace": 0}
    replicate(spark, shop.directory, warehouse, **options)
    shop.execute(f"UPDATE piece SET note = 'new' WHERE id < {ROWS // 5}")
    shop.capture()
    done = _maintained_twice(spark, shop, warehouse, **options)
    assert [report.done for report in done] == [
        {"bases written": 1, "directories removed": 3},
        {"directories removed": 0},
    ]
    _check(spark, shop, warehouse)


@pytest.mark.server
@pytest.mark.spark
def test_what_is_still_retained(spark: Any, shop: Shop, tmp_path: Path) -> None:
    """It is removed later, though the table was maintained while its readers might still need it."""
    warehouse = tmp_path / "wh"
    options: dict[str, Any] = {"tables": ["public.piece"], "grace": 8}
    replicate(spark, shop.directory, warehouse, **options)
    shop.execute("UPDATE piece SET note = 'new' WHERE id = 1")
    shop.capture()
    done = _maintained_twice(spark, shop, warehouse, maintain_every=1, **options)
    assert [report.done for report in done] == [{"directories removed": 0}, {"directories removed": 1}]


@pytest.mark.server
@pytest.mark.spark
def test_a_note_without_an_answer(spark: Any, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is there, though its write failed: the parts that it names stay, and the batch is complete."""
    warehouse, writing = tmp_path / "wh", Warehouse.write_note
    replicate(spark, shop.directory, warehouse, tables=["public.piece"], **IN_PARTS)

    def fail(self: Warehouse, dataset: Dataset) -> None:
        writing(self, dataset)
        raise OSError("no answer")

    shop.execute("UPDATE piece SET note = 'new' WHERE id < 4")
    shop.capture()
    with monkeypatch.context() as patched:
        patched.setattr(Warehouse, "write_note", fail)
        done = replicate(spark, shop.directory, warehouse, tables=["public.piece"], **IN_PARTS)
    assert done is not None and not done.troubled and Warehouse(warehouse).existing_progress().done
    _check(spark, shop, warehouse)


@pytest.mark.server
@pytest.mark.spark
def test_a_base_that_cannot_be_written(spark: Any, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or that is not to be, since another process has written the table: what was replaced is removed all the same."""
    warehouse, chosen = tmp_path / "wh", ["public.piece"]
    replicate(spark, shop.directory, warehouse, tables=chosen, **IN_PARTS)
    shop.execute(f"UPDATE piece SET note = 'new' WHERE id < {ROWS // 5}")
    shop.capture()
    replicate(spark, shop.directory, warehouse, tables=chosen, **IN_PARTS)
    noted, compacting = _dataset(warehouse), ParquetSink.compacted

    def written_meanwhile(sink: ParquetSink, *arguments: Any) -> Dataset | None:
        sink.warehouse.write_note(replace(noted, version=replace(noted.version, seq=noted.version.seq + 1)))
        return compacting(sink, *arguments)

    def no_space(*_: object) -> None:
        raise OSError("no space left")

    for patch, problem in ((no_space, "no space left"), (written_meanwhile, "written by another process meanwhile")):
        (warehouse / "public.piece" / "v1-whole-0123abcd").mkdir()
        (warehouse / "public.piece" / "v9").mkdir()  # perhaps of a batch under way
        with monkeypatch.context() as patched:
            patched.setattr(ParquetSink, "compacted", patch)
            (report,) = maintain(spark, warehouse, chosen)
        assert problem in report.error and report.done["directories removed"] >= 1
        assert not (warehouse / "public.piece" / "v1-whole-0123abcd").exists()
        (warehouse / "public.piece" / "v9").rmdir()
        Warehouse(warehouse).write_note(noted)
    (report,) = maintain(spark, warehouse, chosen)
    assert report.done["bases written"] == 1 and not report.error
    _check(spark, shop, warehouse)


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.long
def test_rounds(spark: Any, server18: EmbeddedServer, tmp_path: Path) -> None:
    """Every alteration, with histories, in parts; read by Spark and without it."""
    with Shop.create(server18, "rounds_in_parts", tmp_path / "log") as shop:
        warehouse = tmp_path / "wh"
        for statements, names in zip(ROUNDS, TABLES, strict=True):
            shop.execute(*filter(str.strip, statements.split(";")))
            shop.capture(snapshot=True)
            replicate(spark, shop.directory, warehouse, history=True, **IN_PARTS)
            check_equal(spark, shop, warehouse, names)
            assert {*lake.tables(warehouse)} - {"public.item"} == {f"public.{name}" for name in names}
            for name in names:
                rows = read_history(spark, warehouse, f"public.{name}").toArrow()
                assert _by_text(lake.read(warehouse, name, history=True)) == _by_text(rows)


def _by_text(rows: pa.Table) -> list[str]:
    return sorted(map(str, rows.to_pylist()))


KEYS = ("${env:HOME}", "it's", "back\\slash", "zz", "")


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.parametrize("options", [IN_PARTS, {"into": "iceberg"}], ids=["parquet", "iceberg"])
@pytest.mark.long
def test_keys_of_every_kind(lake: Any, server18: EmbeddedServer, tmp_path: Path, options: dict[str, Any]) -> None:
    """The bounds of a batch's keys are part of a statement: texts are what they are, and times of no time zone."""
    with Shop.create(server18, "keys_of_parts", tmp_path / "log") as shop, shop.connect() as connection:
        shop.execute(
            "CREATE TABLE by_text (file text PRIMARY KEY, row int, v int)",
            "CREATE TABLE by_time (at timestamptz, day date, n timestamp, v int, PRIMARY KEY (at, day, n))",
            "INSERT INTO by_time SELECT t, t::date, t, 0 "
            "FROM unnest(array['0001-01-01 BC', '0001-01-01', '1500-03-01', "
            "'1969-12-31 23:59:59.999999', '2026-03-29 01:30+00', '12000-01-01', 'infinity']::timestamptz[]) t",
        )
        connection.execute("INSERT INTO by_text SELECT k, 0, 0 FROM unnest(%s::text[]) k", [list(KEYS)])
        shop.capture(snapshot=True)
        replicate(lake, shop.directory, tmp_path / "wh", **options)
        for key in KEYS[:2]:
            connection.execute("UPDATE by_text SET v = v + 1 WHERE file = %s", [key])
            shop.execute("UPDATE by_time SET v = v + 1 WHERE at < '1970-01-01'")
            shop.capture()
            replicate(lake, shop.directory, tmp_path / "wh", **options)
            check_equal(lake, shop, tmp_path / "wh", ["by_text", "by_time"])
        connection.execute("DELETE FROM by_text WHERE file <> 'zz'")
        shop.execute("UPDATE by_time SET v = v + 1", "DELETE FROM by_time WHERE day < '1600-01-01'")
        shop.capture()
        replicate(lake, shop.directory, tmp_path / "wh", **options)
        check_equal(lake, shop, tmp_path / "wh", ["by_text", "by_time"])


@pytest.mark.server
@pytest.mark.spark
def test_a_lost_note_of_the_progress(spark: Any, shop: Shop, tmp_path: Path) -> None:
    """Batches are not numbered from the start again: their numbers are those of the directories that are there."""
    warehouse = tmp_path / "wh"
    for number in range(3):
        replicate(spark, shop.directory, warehouse, **IN_PARTS)
        shop.execute(f"INSERT INTO piece VALUES ({-number - 1}, 'new')")
        shop.capture()
    (warehouse / "_warehouse.json").unlink()
    replicate(spark, shop.directory, warehouse, **IN_PARTS)
    _check(spark, shop, warehouse)
    parts = [*_dataset(warehouse).details["changes"]]
    assert [Path(part).name for part in parts] == ["v2", "v3", "v4"]
    (warehouse / parts[0]).rename(tmp_path / "away")
    with pytest.raises(pgo.PgoutputError, match="v2: no files here: the table was replaced meanwhile"):
        lake.read(warehouse, "piece")


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.long
def test_a_table_that_shrinks(spark: Any, shop: Shop, tmp_path: Path) -> None:
    """Its base is written again, and what was deleted is not kept."""
    warehouse = tmp_path / "wh"
    replicate(spark, shop.directory, warehouse, **IN_PARTS)
    for first in (1, 2):
        shop.execute(f"DELETE FROM piece WHERE id BETWEEN {first} AND {ROWS - 10 + first}")
        shop.capture()
        replicate(spark, shop.directory, warehouse, **IN_PARTS)
    details = _dataset(warehouse).details
    assert not details["deleted"] and not details["changes"]
    _check(spark, shop, warehouse)


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=300), st.integers(1, 10**6), st.booleans())
def test_parts_stay_few(batches: list[int], base: int, replaces: bool) -> None:
    """There are few, and what is written again grows with the logarithm of their number."""
    sizes, written = [base], 0
    for size in batches:
        first = first_merged(sizes, int(replaces), 10**9)
        sizes = [*sizes[:first], sum(sizes[first:]) + size]
        written += sizes[-1]
        assert len(sizes) <= 17
        if replaces and len(sizes) > 1:
            assert sum(sizes[1:-1]) * 3 < sizes[0]
    total = sum(batches)
    if base == max(base, 4 * total):  # the base is not written again
        assert written <= 12 * total


@pytest.mark.server
@pytest.mark.spark
def test_reading_without_spark(spark: Any, shop: Shop, tmp_path: Path) -> None:
    """Some columns, and what is not there."""
    warehouse = tmp_path / "wh"
    replicate(spark, shop.directory, warehouse, **IN_PARTS)
    found = lake.read(warehouse, "public.piece", ["note", "_seq"])
    assert found.schema.names == ["note", "_seq"] and len(found) == ROWS + 1
    with pytest.raises(pgo.PgoutputError, match="no column 'other': the table has 'id', 'note', 'big'"):
        lake.read(warehouse, "piece", ["other"])
    with pytest.raises(pgo.PgoutputError, match=r"no table public\.other: it has public\.item, public\.piece"):
        lake.read(warehouse, "public.other")
    with pytest.raises(pgo.PgoutputError, match=r"no history of the table public\.piece: it has none"):
        lake.read(warehouse, "piece", history=True)
    with pytest.raises(pgo.PgoutputError, match="no warehouse here"):
        lake.tables(tmp_path / "nothing")
