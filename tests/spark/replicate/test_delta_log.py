"""Entries of Delta Lake's log: those go that no retained version needs."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

import pgoutput_construct as pgo
from pgoutput_construct import lake as lake_tables
from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.spark import Retention, maintain, replicate
from pgoutput_construct.spark._table_formats.delta_sink import remove_expired_entries
from tests.postgres.shop import Shop
from tests.spark.replicate.rounds import check_equal

NOTHING_OLD = Retention(age=0, count=1, grace=0)
INTERVAL = 3
"""Commits between two checkpoints: the default is ten."""
CHECKPOINTS = {"delta.checkpointInterval": str(INTERVAL)}


@given(st.data())
def test_what_stays_is_a_log(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """From a checkpoint on, it has every commit; and each version that was current at the time, or later."""
    folder = tmp_path_factory.mktemp("log")
    versions = data.draw(st.integers(1, 40))
    checkpoints = data.draw(st.sets(st.integers(0, versions - 1)))
    first = min(checkpoints, default=0)
    for version in range(data.draw(st.integers(0, first)), versions):
        names = [f"{version:020}.json", f"{version:020}.crc", f".{version:020}.json.crc"]
        if version in checkpoints:
            names.append(f"{version:020}.checkpoint.parquet")
        for name in names:
            (folder / name).touch()
            os.utime(folder / name, (version, version))
    for name in ("_last_checkpoint", "00000000000000000001.00000000000000000002.compacted.json"):
        (folder / name).touch()
    before, latest = data.draw(st.integers(0, versions)), data.draw(st.integers(0, versions - 1))
    had = {path.name for path in folder.iterdir()}
    removed = remove_expired_entries(LocalStore(folder.parent), folder.name, before, latest)
    there = {path.name for path in folder.iterdir()}
    usable = [each for each in checkpoints if each <= min(before, latest)]
    assert bool(removed) == (there != had)
    if not usable:
        assert there == had
        return
    kept = range(max(usable), versions)
    assert {name for name in there if name.endswith(".json") and name.count(".") == 1} == {
        f"{v:020}.json" for v in kept
    }
    assert {name for name in there if "checkpoint" in name} == {
        "_last_checkpoint",
        *(f"{version:020}.checkpoint.parquet" for version in checkpoints if version >= max(usable)),
    }
    assert not any(name.startswith(f".{version:020}") for name in there for version in range(max(usable)))


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """A table in a log."""
    with Shop.create(server18, "delta_log", tmp_path / "log") as shop:
        shop.execute("CREATE TABLE t (id int PRIMARY KEY, note text)", "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        shop.capture(snapshot=True)
        yield shop


def _commits(place: Path) -> list[int]:
    return sorted(int(path.stem) for path in (place / "_delta_log").glob("*.json"))


@pytest.mark.server
@pytest.mark.spark
def test_a_table_that_spark_writes(lake: Any, shop: Shop, tmp_path: Path) -> None:
    """One with properties and partitions is created, appended to and merged in jobs of Spark."""
    warehouse, names = tmp_path / "wh", ["public.t"]
    options: dict[str, Any] = {"table_properties": {"delta.checkpointInterval": "50"}}
    with pytest.raises(pgo.ChangeLogError, match="cannot be partitioned by 'note': Delta Lake reads the empty text"):
        replicate(lake, shop.directory, warehouse, "delta", names, partition_by={"public.t": ["note"]}, **options)
    replicate(lake, shop.directory, warehouse, "delta", names, partition_by={"public.t": ["id"]}, **options)
    for statement in ("INSERT INTO t VALUES (3, 'c')", "UPDATE t SET note = 'changed' WHERE id = 1"):
        shop.execute(statement)
        shop.capture()
        replicate(lake, shop.directory, warehouse, "delta", names, **options)
    check_equal(lake, shop, warehouse, ["t"])


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.parametrize("write_mode", [None, "merge-on-read"], ids=["plain", "vectors"])
@pytest.mark.long
def test_maintenance(lake: Any, shop: Shop, tmp_path: Path, write_mode: str | None) -> None:
    """Commits of expired versions go, a session that has seen them continues, and so do readers of another library."""
    warehouse = tmp_path / "wh"
    place = warehouse / "public.t"
    options: dict[str, Any] = {"write_mode": write_mode, "table_properties": CHECKPOINTS}

    def change(batches: int) -> None:
        for number in range(batches):
            shop.execute(f"UPDATE t SET note = note || {number} WHERE id = 1")
            shop.capture()
            replicate(lake, shop.directory, warehouse, "delta", ["public.t"], **options)

    replicate(lake, shop.directory, warehouse, "delta", ["public.t"], **options)
    change(INTERVAL + 2)
    had = _commits(place)
    (report,) = maintain(lake, warehouse)  # a day, and ten minutes, are not over
    assert not report.error and not report.done["log entries removed"]
    assert had == _commits(place)[: len(had)] and had[0] == 0
    (report,) = maintain(lake, warehouse, retention=NOTHING_OLD)
    assert not report.error and report.done["log entries removed"] >= INTERVAL
    first = _commits(place)[0]
    assert first >= INTERVAL
    change(2)
    check_equal(lake, shop, warehouse, ["t"])
    assert lake.read.format("delta").load(str(place)).count() == 2
    if write_mode is None:
        assert DeltaTable(str(place)).version() == _commits(place)[-1]
        assert len(lake_tables.read(warehouse, "t")) == 2
    # Versions that are retained can be read.
    assert lake.read.format("delta").option("versionAsOf", _commits(place)[-2]).load(str(place)).count() == 2


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.long
def test_a_property_takes_precedence(lake: Any, shop: Shop, tmp_path: Path) -> None:
    """Where it was said how long commits are retained, Delta Lake itself removes them."""
    options: dict[str, Any] = {"table_properties": {"delta.logRetentionDuration": "interval 7 days", **CHECKPOINTS}}
    for number in range(INTERVAL + 1):
        replicate(lake, shop.directory, tmp_path / "wh", "delta", ["public.t"], **options)
        shop.execute(f"INSERT INTO t VALUES ({number + 3})")
        shop.capture()
    (report,) = maintain(lake, tmp_path / "wh", retention=NOTHING_OLD)
    assert not report.error and not report.done["log entries removed"]
    assert _commits(tmp_path / "wh" / "public.t")[0] == 0
