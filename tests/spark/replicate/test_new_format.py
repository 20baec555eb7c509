"""A format that is none of the package's, whose tables can only be replaced: ``_table_formats`` says how to add one."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.lake._notes import Warehouse
from pgoutput_construct.spark import formats
from pgoutput_construct.spark._replicate import maintain, read_current, read_history, replicate
from pgoutput_construct.spark._table_formats import sinks
from pgoutput_construct.spark.formats import TableFormat
from tests.crashes import before, killed
from tests.postgres.shop import Shop
from tests.spark.replicate.json_sink import JsonSink
from tests.spark.replicate.rounds import ROUNDS, TABLES
from tests.spark.replicate.test_table_readers import TABLES as ALL_TYPES

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.fixture(autouse=True)
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the format where the package says so."""
    monkeypatch.setitem(sinks.SINKS, "json", JsonSink)
    every: Any = formats.FORMATS
    monkeypatch.setitem(every, "json", TableFormat({}, "", {}))


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """A database, and its log."""
    with Shop.create(server18, "new_format", tmp_path / "log") as shop:
        yield shop


def _check(spark: Any, warehouse: Path, names: Collection[str]) -> None:
    """Compare tables with those of Parquet, exactly; also their histories."""
    for name in names:
        for read in (read_current, read_history):
            one, other = (read(spark, place, f"public.{name}") for place in (warehouse, warehouse.with_name("parquet")))
            assert [(each.name, each.dataType) for each in one.schema] == [
                (each.name, each.dataType) for each in other.schema
            ]
            rows, expected = map(_texts, (one, other))
            assert rows == expected, (name, read)


def _texts(rows: Any) -> Counter[str]:
    """Return rows as texts: Python has no times before the year 1."""
    names = [f"`{name.replace('`', '``')}`" for name in rows.columns]
    return Counter(map(repr, rows.selectExpr(*(f"CAST({name} AS string)" for name in names)).collect()))


FEW = (
    "CREATE TABLE t (id int PRIMARY KEY, v text, w text); INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'y')",
    "UPDATE t SET v = 'c' WHERE id = 1; DELETE FROM t WHERE id = 2; INSERT INTO t VALUES (3, 'd', 'z')",
    "ALTER TABLE t DROP v; UPDATE t SET w = 'w' WHERE id = 1",
)
"""What happens before each batch: as few as show it."""


@pytest.mark.parametrize(
    ("rounds", "names"),
    [(FEW, ["t"]), (ROUNDS, TABLES[-1])],
    ids=["few", "of every kind"],
)
@pytest.mark.long
def test_rounds(spark: Any, shop: Shop, tmp_path: Path, rounds: Sequence[str], names: Sequence[str]) -> None:
    """It has the rows that Parquet has, also after a batch that was killed before its notes."""
    warehouse, tables = tmp_path / "json", [f"public.{name}" for name in names] if rounds is FEW else None
    for number, statements in enumerate(rounds):
        shop.execute(*statements.split(";"))
        shop.capture(snapshot=True)
        if number == 1:
            with killed(before(Warehouse, "write_note")):
                replicate(spark, shop.directory, warehouse, "json", tables, history=True, workers=1)
        replicate(spark, shop.directory, warehouse, "json", tables, history=True)
        replicate(spark, shop.directory, tmp_path / "parquet", tables=tables, history=True)
    _check(spark, warehouse, names)
    assert not any(each.error for each in maintain(spark, warehouse))
    for directory, dataset in Warehouse(warehouse).datasets().items():
        left = {each.name for each in (warehouse / directory).iterdir()}
        assert left == {dataset.details["folder"], *dataset.details["replaced"]}


@pytest.mark.long
def test_all_types(spark: Any, shop: Shop, tmp_path: Path) -> None:
    """Values of all types come back as they were."""
    shop.execute(*ALL_TYPES)
    shop.capture(snapshot=True)
    for into in ("json", "parquet"):
        replicate(spark, shop.directory, tmp_path / into, into, history=True)
    _check(spark, tmp_path / "json", ('"Select"', '"Mapped"', "item"))
