"""A warehouse against its source while both change: what is equal, what is not, and what is not there yet."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pgoutput_construct.demo.server import EmbeddedServer
from pgoutput_construct.postgres.checksums import SourceServer
from pgoutput_construct.spark.verifying import Pace, TableVerdict, verify
from pgoutput_construct.spark.warehouse import replicate
from tests.postgres.shop import Shop, wait_until
from tools.beside import beside

pytestmark = [pytest.mark.server, pytest.mark.spark]

TABLES = """
CREATE TABLE orders (id bigint PRIMARY KEY, price numeric(12, 2), weight float8, note text, big text);
ALTER TABLE orders ALTER big SET STORAGE EXTERNAL;
CREATE TABLE named (code text, part int, amount numeric, PRIMARY KEY (code, part));
CREATE TABLE keyless (a int, b text);
ALTER TABLE keyless REPLICA IDENTITY FULL;
INSERT INTO orders SELECT i, i / 7.0, random(), 'order ' || i, repeat('x', 3000) FROM generate_series(1, 500) i;
INSERT INTO named SELECT 'Straße ' || i % 10, i, i / 3.0 FROM generate_series(1, 100) i;
INSERT INTO keyless SELECT i % 5, 'x' FROM generate_series(1, 50) i;
"""

WRITES = (
    "UPDATE orders SET price = price + 1 WHERE id % 10 = {0} % 10",
    "INSERT INTO orders VALUES (10000 + {0}, 'NaN', 'NaN', NULL, 'short')",
    "DELETE FROM orders WHERE id = {0}",
    "UPDATE named SET part = part + 1000 WHERE part = {0}",
    "UPDATE keyless SET b = b || {0} WHERE ctid IN (SELECT ctid FROM keyless LIMIT 2)",
    "DELETE FROM keyless WHERE ctid IN (SELECT ctid FROM keyless LIMIT 1)",
    "INSERT INTO keyless VALUES ({0}, NULL), ({0}, NULL)",
)


@pytest.fixture(scope="module")
def shop(server18: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Tables with rows, copied into a log."""
    with Shop.create(server18, "verifying", tmp_path_factory.mktemp("verify") / "log") as shop:
        shop.execute(*(statement for statement in TABLES.split(";\n") if statement))
        shop.execute(f"SELECT pg_drop_replication_slot('{shop.slot}')")
        shop.options |= {"snapshot": True, "create_slot": True}
        shop.capture()
        yield shop


@pytest.fixture(scope="module")
def warehouse(spark: Any, shop: Shop) -> Path:
    """What was replicated of it."""
    place = shop.directory.parent / "warehouse"
    replicate(spark, shop.directory, place, once=True)
    return place


def verdicts(spark: Any, shop: Shop, warehouse: Path, **options: Any) -> dict[str, TableVerdict]:
    """Verify, with small parts."""
    source = SourceServer(shop.dsn, shop.log().options.publications)
    pace = Pace(wait=options.pop("wait", 60.0), rows=60, parts=3)
    return {each.table: each for each in verify(spark, shop.directory, warehouse, source, pace=pace, **options)}


def _write(shop: Shop, done: threading.Event) -> None:
    with shop.connect() as connection:
        number = 0
        while not done.is_set():
            number += 1
            for statement in WRITES:
                connection.execute(statement.format(number).encode())
            if number % 3 == 0:
                with connection.transaction(force_rollback=number % 2 == 0):
                    for statement in WRITES[:3]:
                        connection.execute(statement.format(50_000 + number).encode())
            done.wait(0.02)


def test_equal_while_it_is_written_to(spark: Any, shop: Shop, warehouse: Path) -> None:
    """Writers write, and the log goes on, behind a warehouse that stays as it was: each table is found equal."""
    with shop.capturing(), beside(lambda done: _write(shop, done)):
        wait_until(lambda: shop.execute() > shop.log().complete_lsn)
        found = verdicts(spark, shop, warehouse)
    assert [(name, verdict.equal, verdict.problem) for name, verdict in found.items()] == [
        (f"public.{name}", True, "") for name in ("item", "keyless", "named", "orders")
    ]
    assert found["public.orders"].parts > 6 and found["public.named"].parts == 2
    assert not (warehouse / "_verify.json").exists()
