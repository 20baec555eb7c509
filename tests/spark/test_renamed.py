"""Tables whose names go from one to another, without a row that would say so: what the catalog says counts."""

from pathlib import Path

import pytest

from pgoutput_construct.demo.server import EmbeddedServer
from pgoutput_construct.spark.opened import opened
from pgoutput_construct.spark.tables import Table
from tests.postgres.shop import Shop, wait_until

pytestmark = pytest.mark.server

TABLES = (
    "CREATE SCHEMA sales",
    "CREATE TABLE sales.moved (id int PRIMARY KEY)",
    "CREATE TABLE orders (id int PRIMARY KEY, v text)",
    "CREATE TABLE left_over (id int PRIMARY KEY)",
    "INSERT INTO sales.moved VALUES (1)",
    "INSERT INTO orders VALUES (1)",
    "INSERT INTO left_over VALUES (1)",
)
ALTERED = (
    "ALTER TABLE orders RENAME TO orders_old",
    "CREATE TABLE orders (id int PRIMARY KEY, w int)",
    "INSERT INTO orders VALUES (7)",
    'ALTER SCHEMA sales RENAME TO "Sales"',
    "DROP TABLE left_over",
)


def _tables(shop: Shop) -> dict[str, Table]:
    return dict(opened(shop.log()).tables)


def test_idle_tables_have_their_names(server18: EmbeddedServer, tmp_path: Path) -> None:
    """Renamed while another one takes the name, moved with the schema, dropped: noticed without a further change."""
    with Shop.create(server18, "renamed", tmp_path / "log") as shop:
        shop.execute(*TABLES)
        shop.capture()
        assert set(_tables(shop)) == {"public.left_over", "public.orders", "sales.moved"}
        with shop.capturing(status_interval=1.0):
            shop.execute(*ALTERED)
            wait_until(lambda: '"Sales".moved' in _tables(shop))
        tables = _tables(shop)
        expected = {'"Sales".moved', "public.left_over", "public.orders", "public.orders_old"}
        assert set(tables) == expected and [name for name in tables if tables[name].dropped] == ["public.left_over"]
        assert (tables["public.orders"].current, tables["public.orders_old"].current) == (("id", "w"), ("id", "v"))
