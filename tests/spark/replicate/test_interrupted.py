"""Batches that are killed before tables are dropped or renamed, and readers while a batch runs."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.lake._notes import Unnoted, Warehouse
from pgoutput_construct.spark._own_session import SparkSessions
from pgoutput_construct.spark._replicate import read_current, read_history, replicate
from pgoutput_construct.spark._replicate.known_datasets import KnownDatasets
from pgoutput_construct.spark._table_formats.iceberg_sink import IcebergSink
from pgoutput_construct.spark._table_formats.sink import Sink
from pgoutput_construct.spark._table_formats.sinks import open_sink
from tests.crashes import Moment, before, killed
from tests.postgres.shop import Shop
from tests.spark.replicate.rounds import check_equal
from tests.table_formats import SHORT_IN_PARQUET, SHORT_WITHOUT_DELTA

pytestmark = [pytest.mark.server, pytest.mark.spark]

TABLES = ("account", "entry")


@pytest.fixture(params=SHORT_WITHOUT_DELTA[1:])
def into(request: pytest.FixtureRequest, lake: Any) -> str:
    """Each format in turn."""
    return str(request.param)


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path, into: str) -> Iterator[Shop]:
    """Accounts with 100 in each, in a log."""
    with Shop.create(server18, f"killed_{into}", tmp_path / "log") as shop:
        shop.execute(
            "CREATE TABLE account (id int PRIMARY KEY, balance int, note text)",
            "CREATE TABLE entry (amount int)",
            "INSERT INTO account SELECT i, 100, 'x' FROM generate_series(1, 20) i",
            "INSERT INTO entry VALUES (0)",
        )
        shop.capture(snapshot=True)
        yield shop


def _move(shop: Shop, number: int) -> None:
    shop.execute(
        f"BEGIN; UPDATE account SET balance = balance - {number} WHERE id = 1; "
        f"UPDATE account SET balance = balance + {number} WHERE id = {number + 2}; "
        f"INSERT INTO entry VALUES ({number}); COMMIT",
        f"UPDATE account SET id = id + 100 WHERE id = {20 - number}",
    )
    shop.capture(snapshot=True)


@pytest.mark.parametrize("into", SHORT_IN_PARQUET)
def test_nothing_is_left_of_tables_without_a_note(
    lake: Any, shop: Shop, into: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before the first note of new tables, which are then dropped or renamed; and while they are removed."""
    warehouse = tmp_path / "wh"
    replicate(lake, shop.directory, warehouse, into)
    shop.execute(
        "CREATE TABLE gone (id int PRIMARY KEY); INSERT INTO gone VALUES (1)",
        "CREATE TABLE late (id int PRIMARY KEY); INSERT INTO late VALUES (1)",
        "CREATE SCHEMA staged CREATE TABLE kept (id int PRIMARY KEY); INSERT INTO staged.kept VALUES (1)",
    )
    shop.capture(snapshot=True)
    stored = _data(warehouse)
    with killed(Moment.BEFORE_NOTE):
        replicate(lake, shop.directory, warehouse, into)
    assert len(_data(warehouse)) > len(stored)
    shop.execute("DROP TABLE gone", "ALTER TABLE late RENAME TO found", "INSERT INTO found VALUES (2)")
    shop.capture(snapshot=True)
    with monkeypatch.context() as patched:
        patched.setattr(Sink, "remove_unnoted", _fail)
        replicate(lake, shop.directory, warehouse, into)
    assert {each.table for each in Warehouse(warehouse).existing_progress().unnoted} >= {"public.gone"}
    replicate(lake, shop.directory, warehouse, into)
    assert not Warehouse(warehouse).existing_progress().unnoted
    check_equal(lake, shop, warehouse, (*TABLES, "found"))
    assert read_current(lake, warehouse, "staged.kept").count() == 1

    shop.execute('ALTER TABLE found RENAME TO "Found"')
    shop.capture(snapshot=True)
    replicate(lake, shop.directory, warehouse, into)
    assert read_current(lake, warehouse, 'public."Found"').count() == 2
    shop.execute('DROP TABLE "Found", staged.kept')
    shop.capture(snapshot=True)
    with killed(before(type(open_sink(into, Warehouse(warehouse))), "remove")):
        replicate(lake, shop.directory, warehouse, into)
    assert len(_data(warehouse)) > len(stored)
    replicate(lake, shop.directory, warehouse, into)
    assert _data(warehouse) == stored


@pytest.mark.parametrize("into", SHORT_WITHOUT_DELTA)
def test_what_others_have_stays(
    lake: Any, shop: Shop, into: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """In the place of a table that is no longer chosen: files of another program, and a dataset whose note is there."""
    warehouse = tmp_path / "wh"
    notes = warehouse / ("public/entry" if into == "iceberg" else "public.entry") / "notes.txt"
    notes.parent.mkdir(parents=True)
    notes.write_text("mine")
    with pytest.raises(pgo.PgoutputError, match="entry exists already"):
        replicate(lake, shop.directory, warehouse, into)
    assert [each.table for each in Warehouse(warehouse).existing_progress().unnoted] == ["public.entry"]
    replicate(lake, shop.directory, warehouse, into, ["public.account"])
    assert notes.exists() and "entry, the location of public.entry, is not of this warehouse: it stays" in caplog.text
    progress = Warehouse(warehouse).existing_progress()
    assert not progress.unnoted

    sink = open_sink(into, Warehouse(warehouse))
    known = KnownDatasets(lake, sink, SparkSessions(lake, 1, sink.prepare), progress)
    place = Unnoted.from_dataset(known.datasets.pop("public.account"))
    known.progress = replace(progress, unnoted=(place,))
    known.remove_unnoted([], False)
    assert known.unnoted == (place,) and "stays until it can be removed: it has a note" in caplog.text
    check_equal(lake, shop, warehouse, ("account",))


@pytest.mark.parametrize("into", ["iceberg"])
def test_the_history_of_a_dropped_table_stays(
    lake: Any, shop: Shop, into: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if an interruption puts it in doubt, and other programs have let the version in its metadata expire."""
    warehouse = Warehouse(tmp_path / "wh")
    replicate(lake, shop.directory, warehouse.path, into, history=True)
    warehouse.write_progress(replace(warehouse.existing_progress(), done=False))
    shop.execute("DROP TABLE entry")
    shop.capture(snapshot=True)
    with monkeypatch.context() as patched:
        patched.setattr(IcebergSink, "version", lambda *_: None)
        done = replicate(lake, shop.directory, warehouse.path, into, history=True)
    assert done is not None and "public.entry" in done.removed
    assert "public.entry" not in warehouse.datasets()
    assert read_history(lake, warehouse.path, "public.entry").count() == 1


def _data(warehouse: Path) -> set[Path]:
    """Return the data files of a warehouse."""
    return {path for path in warehouse.rglob("*.parquet") if "_delta_log" not in path.parts}


def test_readers_see_whole_transactions(lake: Any, shop: Shop, into: str, tmp_path: Path) -> None:
    """Money is moved from account to account: whenever a reader looks, all of it is there."""
    warehouse, done, sums = tmp_path / "wh", threading.Event(), list[int]()
    replicate(lake, shop.directory, warehouse, into)

    def read() -> None:
        while not done.is_set():
            (row,) = read_current(lake, warehouse, "public.account").selectExpr("sum(balance) AS total").collect()
            sums.append(row["total"])

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for number in (1, 2):
            _move(shop, number)
            replicate(lake, shop.directory, warehouse, into, grace=60.0)
    finally:
        done.set()
        reader.join()
    assert set(sums) == {2000}


@pytest.mark.parametrize("into", ["parquet"], indirect=True)
def test_a_note_without_an_answer(
    lake: Any, shop: Shop, into: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its write failed, and it cannot be read then: what it describes may be there, and the other table is."""
    warehouse, writing, reading, threads = tmp_path / "wh", Warehouse.write_note, Warehouse.dataset, list[str]()

    def write(self: Warehouse, dataset: Any) -> None:
        writing(self, dataset)
        if dataset.directory == "public.account":
            threads.append(threading.current_thread().name)
            raise OSError("no answer")

    def read(self: Warehouse, directory: str) -> Any:
        return _fail() if directory == "public.account" else reading(self, directory)

    with (
        monkeypatch.context() as patched,
        pytest.raises(pgo.ChangeLogError, match=r"^public\.account: OSError: no answer; all other tables"),
    ):
        patched.setattr(Warehouse, "write_note", write)
        patched.setattr(Warehouse, "dataset", read)
        replicate(lake, shop.directory, warehouse, into)
    assert [name.partition("_")[0] for name in threads] == ["table"]
    progress = Warehouse(warehouse).existing_progress()
    assert not progress.done and progress.troubled.keys() == {"public.account"}
    check_equal(lake, shop, warehouse, TABLES)
    _move(shop, 1)
    replicate(lake, shop.directory, warehouse, into)
    assert Warehouse(warehouse).existing_progress().done
    check_equal(lake, shop, warehouse, TABLES)


def test_refusals(lake: Any, shop: Shop, into: str, tmp_path: Path) -> None:
    """Another format, a table that is not there, two at a time: said before anything is written."""
    warehouse = tmp_path / "wh"
    with pytest.raises(pgo.ChangeLogError, match=r"the log has no table public\.x: it has .*public\.account"):
        replicate(lake, shop.directory, warehouse, into, ["public.x"])
    assert not warehouse.exists()
    done = replicate(lake, shop.directory, warehouse, into, ["public.entry"])
    assert done is not None and set(done.tables) == {"public.entry"}
    other = "delta" if into == "parquet" else "parquet"
    with pytest.raises(pgo.PgoutputError, match=f"the tables there are {into}, not {other}: choose another"):
        replicate(lake, shop.directory, warehouse, other)
    with Warehouse(warehouse).store.lock("replicate"), pytest.raises(pgo.ChangeLogError, match="another replicate"):
        replicate(lake, shop.directory, warehouse, into)


def _fail(*_: object) -> None:
    raise OSError("no answer")
