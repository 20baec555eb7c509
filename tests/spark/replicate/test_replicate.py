"""Tables of a live server kept in Delta Lake and Iceberg, batch by batch; the demo keeps some in Parquet."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.spark._replicate import read_current, replicate
from tests.postgres.shop import Shop
from tests.spark.replicate.rounds import ROUNDS, TABLES, check_equal

pytestmark = [pytest.mark.server, pytest.mark.spark]

FORMATS: tuple[Any, ...] = (pytest.param("delta", marks=pytest.mark.long), "iceberg")


@pytest.fixture(params=FORMATS)
def into(request: pytest.FixtureRequest, lake: Any) -> str:
    """Each format in turn."""
    return str(request.param)


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path, into: str) -> Iterator[Shop]:
    """A database of its own."""
    with Shop.create(server18, f"lake_{into}", tmp_path / "log") as shop:
        yield shop


def _execute(shop: Shop, script: str) -> None:
    shop.execute(*filter(None, map(str.strip, script.split(";\n"))))
    shop.capture(snapshot=True)


def test_batch_by_batch(lake: Any, shop: Shop, into: str, tmp_path: Path) -> None:
    """After each batch every table equals its source; what did not change is left alone, and done once."""
    warehouse = tmp_path / "wh"
    for number, (script, names) in enumerate(zip(ROUNDS, TABLES, strict=True), 1):
        _execute(shop, script)
        batch = replicate(lake, shop.directory, warehouse, into)
        assert batch.number == number and batch.seq == shop.log().segments[-1].last_seq
        assert ("public.idle" in batch.tables) == (number == 1)
        check_equal(lake, shop, warehouse, names)
        again = replicate(lake, shop.directory, warehouse, into)
        assert (again.number, again.tables, again.removed) == (number, {}, ())
        if number == 2:
            assert set(batch.removed) == {"public.old_name", "public.gone"}
            with pytest.raises(pgo.PgoutputError, match=r"no table public\.gone: it has "):
                read_current(lake, warehouse, "public.gone")


@pytest.mark.long
def test_more_batches_than_a_checkpoint_has(lake: Any, server18: EmbeddedServer, tmp_path: Path) -> None:
    """Delta Lake writes a checkpoint with every tenth commit, which the session that wrote it reads next."""
    with Shop.create(server18, "checkpoints", tmp_path / "log") as shop:
        shop.execute("CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (0, 0)")
        for number in range(12):
            shop.execute(f"UPDATE t SET v = {number}", f"INSERT INTO t VALUES ({number + 1}, 0)")
            shop.capture(snapshot=True)
            batch = replicate(lake, shop.directory, tmp_path / "wh", "delta")
            assert batch is not None and dict(batch.tables).keys() >= {"public.t"}
        check_equal(lake, shop, tmp_path / "wh", ["t"])
