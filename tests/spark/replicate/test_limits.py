"""Batches with a limit: many of them lead to the same tables, each is right by itself, and none is done twice."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pgoutput_construct.changelog import registry
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.lake._notes import Warehouse
from pgoutput_construct.spark import open_log, read_current, replicate
from pgoutput_construct.spark._replicate import Batch, staging
from pgoutput_construct.spark._replicate.batch_plan import BatchProgress
from tests.crashes import Moment, killed
from tests.postgres.shop import Shop
from tests.spark.logs import orders_after, write_orders
from tests.spark.replicate.rounds import check_equal

pytestmark = pytest.mark.spark

TABLES = tuple(f"t{number}" for number in range(4))


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """Tables that had rows before their log, were copied while they changed, and changed again."""
    with Shop.create(server18, "limits", tmp_path / "log") as shop:
        for name in TABLES:
            shop.execute(
                f"CREATE TABLE {name} (id int PRIMARY KEY, v text, big text)",
                f"ALTER TABLE {name} ALTER big SET STORAGE EXTERNAL",
                f"INSERT INTO {name} SELECT i, 'old', repeat('b', 3000) FROM generate_series(1, 20) i",
            )
        shop.execute(f"SELECT pg_drop_replication_slot('{shop.slot}')")
        shop.capture(create_slot=True)
        for name in TABLES:
            shop.execute(f"UPDATE {name} SET v = 'new' WHERE id < 5", f"DELETE FROM {name} WHERE id = 20")
        shop.capture()
        shop.capture(snapshot=True)
        for name in TABLES:
            shop.execute(f"UPDATE {name} SET id = id + 100 WHERE id = 19", f"INSERT INTO {name} VALUES (40, 'x', 'y')")
        shop.capture()
        yield shop


def test_batches_of_transactions(spark: Any, tmp_path: Path) -> None:
    """As many as fit, from the first one on; the tables come out as with one batch."""
    log, seen = tmp_path / "log", list[Batch]()
    write_orders(log, range(9))
    done = replicate(spark, log, tmp_path / "wh", batch_transactions=2, on_batch=seen.append)
    assert [batch.number for batch in seen] == [1, 2, 3, 4, 5] and seen[-1] == done
    assert [batch.tables["public.orders"] for batch in seen] == ["written", *["changed"] * 4]
    rows = read_current(spark, tmp_path / "wh", "public.orders").collect()
    assert {row["id"]: None if row["total"] is None else str(row["total"]) for row in rows} == orders_after(range(9))


@pytest.mark.server
@pytest.mark.long
def test_a_table_is_begun_with_its_copy(spark: Any, shop: Shop, tmp_path: Path) -> None:
    """However batches are cut: none has a table without the rows of its copy, and none warns of one."""
    warehouse, seen = tmp_path / "wh", list[Batch]()

    def check(batch: Batch) -> None:
        seen.append(batch)
        log = open_log(spark, shop.directory, batch.seq)
        there = {each.version.table for each in Warehouse(warehouse).datasets().values()}
        assert not batch.lacks or {lack.name for lack in batch.lacks}.isdisjoint(there)
        for name in there & {f"public.{name}" for name in TABLES}:
            found = read_current(spark, warehouse, name).select("id", "v", "big").collect()
            assert sorted(map(tuple, found)) == sorted(map(tuple, log.state(name).select("id", "v", "big").collect()))

    replicate(spark, shop.directory, warehouse, batch_bytes=20_000, on_batch=check)
    assert len(seen) >= len(TABLES) and not seen[-1].lacks
    check_equal(spark, shop, warehouse, TABLES)
    (reader,) = registry.readers(shop.directory)
    assert reader.next_seq > seen[0].seq


@pytest.mark.server
def test_a_first_load_that_was_killed(spark: Any, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It resumes with the tables that are left; of these few lie beside the tables at a time."""
    warehouse, together, stage = tmp_path / "wh", list[int](), staging._stage_changes

    def staged(log: Any, path: str, store: Any, wanted: Any, masks: Any) -> Any:
        together.append(len(wanted))
        return stage(log, path, store, wanted, masks)

    monkeypatch.setattr(staging, "_stage_changes", staged)
    one = shop.log().segments[-1].last_seq
    limits: dict[str, Any] = {"batch_bytes": 60_000, "workers": 1}
    monkeypatch.setattr("pgoutput_construct.spark._replicate.batch_loop._batch_end", lambda *_: one)
    with killed(Moment.BEFORE_NOTE, skip=2):
        replicate(spark, shop.directory, warehouse, **limits)
    noted = {each.version.table for each in Warehouse(warehouse).datasets().values()}
    shown = list[BatchProgress]()
    done = replicate(spark, shop.directory, warehouse, on_progress=shown.append, **limits)
    left = len(TABLES) + 1 - 2  # there is an empty table, too
    assert done is not None and noted.isdisjoint(done.tables) and len(done.tables) == left
    assert max(together) <= 2
    check_equal(spark, shop, warehouse, TABLES)
    assert [(each.done, each.tables) for each in shown] == [(number, left) for number in range(left + 1)]
    assert shown[0].rows == shown[-1].done_rows > 0 and shown[-1].part == 1.0
