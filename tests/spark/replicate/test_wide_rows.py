"""A log whose later rows are a thousand times wider: batches, and what lies besides the tables, keep to their limit."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.spark import replicate
from pgoutput_construct.spark._replicate import staging
from pgoutput_construct.spark._source.micro_batches import Limits, next_seq
from tests.postgres.shop import Shop

pytestmark = [pytest.mark.server, pytest.mark.spark]

NARROW = tuple(f"public.narrow{number}" for number in range(3))
WIDE = tuple(f"public.wide{number}" for number in range(4))
LIMIT = 600_000


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """Tables with many rows of some bytes, and then others with few of 20,000."""
    with Shop.create(server18, "wide_rows", tmp_path / "log") as shop:
        shop.execute(*(f"CREATE TABLE {name} (id int PRIMARY KEY, v text)" for name in (*NARROW, *WIDE)))
        shop.capture(snapshot=True)
        for name in NARROW:
            shop.execute(f"INSERT INTO {name} SELECT i, 'v' FROM generate_series(1, 4000) i")
        shop.capture()
        for number in range(20):
            shop.execute(*(f"INSERT INTO {name} VALUES ({number}, repeat('w', 20000))" for name in WIDE))
        shop.capture()
        yield shop


def _bytes(shop: Shop) -> Iterator[tuple[int, str | None, int]]:
    """Yield the seq, the table and the bytes of each row."""
    log = shop.log()
    with shop.connect() as connection:
        oids = {
            connection.execute(f"SELECT '{name}'::regclass::oid::bigint".encode()).fetchone(): name
            for name in WIDE + NARROW
        }
    names = {oid[0]: name for oid, name in oids.items() if oid is not None}
    for segment in log.segments:
        for row in log.table(segment).select(["seq", "relation_oid", "payload"]).to_pylist():
            yield row["seq"], names.get(row["relation_oid"]), len(row["payload"])


def test_batches(shop: Shop) -> None:
    """None has more than the limit, and none is far below it."""
    log, ends, after = shop.log(), list[int](), -1
    while (end := next_seq(log, after, Limits(bytes=LIMIT))) != after:
        ends.append(end)
        after = end
    found = Counter[int]()
    for seq, _, size in _bytes(shop):
        found[sum(end < seq for end in ends)] += size
    total = sum(found.values())
    assert max(found.values()) <= LIMIT * 1.1 and len(ends) <= total / LIMIT + 3
    assert total > 3 * LIMIT


def test_what_lies_besides_the_tables(spark: Any, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables of a batch are taken in groups of no more than the limit, unless one alone has more."""
    groups, stage = list[tuple[str, ...]](), staging._stage_changes

    def staged(log: Any, path: str, store: Any, wanted: Any, masks: Any) -> Any:
        groups.append(tuple(each.table for each in wanted))
        return stage(log, path, store, wanted, masks)

    monkeypatch.setattr(staging, "_stage_changes", staged)
    last = shop.log().segments[-1].last_seq
    monkeypatch.setattr("pgoutput_construct.spark._replicate.batch_loop._batch_end", lambda *_: last)
    replicate(spark, shop.directory, tmp_path / "wh", batch_bytes=LIMIT)
    sizes = Counter[str | None]()
    for _, name, size in _bytes(shop):
        sizes[name] += size
    assert all(sizes[name] > LIMIT / 2 for name in WIDE) and sum(sizes[name] for name in NARROW) < LIMIT
    together = [sum(sizes[name] for name in group) for group in groups]
    assert max(together) <= LIMIT and len(groups) == len(WIDE) + 1
