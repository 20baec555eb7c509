"""Tables whose names go from one to another, without a row that would say so: what the catalog says counts."""

from pathlib import Path

import pytest

from pgoutput_construct.demo.server import EmbeddedServer
from pgoutput_construct.spark._log_view.log_tables import LogTables
from pgoutput_construct.spark._log_view.replicated_tables import Table
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
    return dict(LogTables.from_log(shop.log()).tables)


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


def test_a_column_that_takes_the_name_of_another(server18: EmbeddedServer, tmp_path: Path) -> None:
    """They are told apart by their numbers, also where the modifier of another column's type is 0."""
    with Shop.create(server18, "replaced", tmp_path / "log") as shop:
        shop.execute("CREATE TABLE t (id int PRIMARY KEY, c text)", "INSERT INTO t VALUES (1, 'x')")
        shop.capture()
        added = "ADD c int, ADD at timestamp(0) DEFAULT '2024-01-01'"
        shop.execute(f"ALTER TABLE t DROP c, {added}", "INSERT INTO t VALUES (2, 3, 'infinity')")
        shop.capture()
        table = _tables(shop)["public.t"]
        assert table.current == ("id", "c", "at") and table.columns.names == ["id", "c", "at", "c_dropped_2"]
        assert {"id", "c", "at"} in map(set, table.names.values())
