"""A warehouse and the prune of its log: nothing goes that it has not applied, and what went all the same is noticed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.changelog import registry
from pgoutput_construct.changelog.prune import prune
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import snapshot
from pgoutput_construct.spark import read_current, replicate
from tests.postgres.shop import Shop
from tests.spark.logs import write_orders
from tests.spark.replicate.rounds import check_equal

pytestmark = [pytest.mark.server, pytest.mark.spark]

ALL = pgo.Lsn(2**63 - 1)


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """A database with two tables that are captured."""
    with Shop.create(server18, "pruned_log", tmp_path / "log") as shop:
        shop.execute(
            "CREATE TABLE orders (id int PRIMARY KEY, total int)",
            "CREATE TABLE entry (amount int)",
            "ALTER TABLE entry REPLICA IDENTITY FULL",
        )
        yield shop


def _change(shop: Shop, number: int, **options: Any) -> None:
    shop.execute(
        f"INSERT INTO orders SELECT {number} * 10 + i, i FROM generate_series(0, 4) i",
        f"INSERT INTO entry VALUES ({number}), ({number})",
        f"UPDATE orders SET total = total + 1 WHERE id < {number} * 10",
        "DELETE FROM entry WHERE ctid IN (SELECT ctid FROM entry ORDER BY amount LIMIT 1)",
    )
    shop.capture(**options)


def _reader(shop: Shop) -> registry.RegisteredReader:
    (reader,) = registry.readers(shop.directory)
    return reader


def test_prune_waits_for_the_warehouse(spark: Any, shop: Shop, tmp_path: Path) -> None:
    """What it has not applied stays; what it has applied may go, with the copies, and the tables stay right."""
    warehouse = tmp_path / "wh"
    _change(shop, 1, snapshot=True)
    replicate(spark, shop.directory, warehouse)
    reader = _reader(shop)
    assert reader.name.startswith("wh-") and reader.next_seq <= shop.log().segments[-1].last_seq + 1
    for number in range(2, 5):
        _change(shop, number)
        planned = prune(shop.directory, ALL, states=False)
        assert planned.first_seq <= _reader(shop).next_seq
        done = replicate(spark, shop.directory, warehouse)
        assert done is not None and set(done.tables.values()) == {"changed"} and not done.lacks
        check_equal(spark, shop, warehouse, ("orders", "entry"))
    assert shop.log().segments[0].first_seq > 0
    # Nothing of the tables is in the log any more: they are what they were.
    shop.execute("INSERT INTO item VALUES (1, 'x')")
    shop.capture()
    assert prune(shop.directory, ALL, states=False).segments
    shop.execute("INSERT INTO item VALUES (2, 'y')")
    shop.capture()
    done = replicate(spark, shop.directory, warehouse)
    assert done is not None and set(done.tables) == {"public.item"}
    assert read_current(spark, warehouse, "public.orders").count() == 20


def test_what_was_pruned_before_it_was_applied(spark: Any, shop: Shop, tmp_path: Path) -> None:
    """A table that lacks changes is refused with the remedy, and stays as it was, until it is copied again."""
    warehouse = tmp_path / "wh"
    _change(shop, 1)
    replicate(spark, shop.directory, warehouse)
    _change(shop, 2)
    _change(shop, 3)
    registry.forget(shop.directory, _reader(shop).name)
    assert prune(shop.directory, ALL).segments  # without copies there is no state that would retain anything
    for _ in range(2):
        with pytest.raises(
            pgo.ChangeLogError, match=r"public\.entry: .*pruned.* --table public\.entry.*more: public\.o"
        ):
            replicate(spark, shop.directory, warehouse)
    assert read_current(spark, warehouse, "public.orders").count() == 5
    snapshot(shop.dsn, shop.directory, ["public.orders", "public.entry"])
    _change(shop, 4)
    done = replicate(spark, shop.directory, warehouse)
    assert done is not None and {done.tables[f"public.{name}"] for name in ("orders", "entry")} == {"written"}
    check_equal(spark, shop, warehouse, ("orders", "entry"))


def test_a_log_that_replicate_may_not_write(spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The tables are brought up to date; a warning says that prune does not wait for them."""
    write_orders(tmp_path / "log", range(2))
    (tmp_path / "log" / "readers").write_text("no directory")  # root may write wherever a mode forbids it
    done = replicate(spark, tmp_path / "log", tmp_path / "wh")
    assert done is not None and done.tables == {"public.orders": "written"}
    assert "prune does not wait for this warehouse" in "\n".join(caplog.messages)
