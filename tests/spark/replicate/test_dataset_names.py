"""Names of datasets by templates: remembered, followed when tables are renamed, and refused where two have one."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pgoutput_construct as pgo
from pgoutput_construct import lake as lake_tables
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.lake._notes import Warehouse
from pgoutput_construct.spark._replicate import read_current, replicate
from pgoutput_construct.spark._replicate.dataset_names import DatasetNames
from tests.postgres.shop import Shop
from tests.spark.histories import table_of
from tests.spark.logs import write_orders
from tests.table_formats import SHORT_IN_PARQUET


@pytest.mark.parametrize(
    ("namespace", "name", "directory"),
    [
        (None, None, "public.t"),
        ("lake", None, "lake.t"),
        ("pg_{schema}", "{schema}__{table}", "pg_public.public__t"),
        (None, "x-{table}-{table}", "public.x-t-t"),
    ],
)
def test_templates(namespace: str | None, name: str | None, directory: str) -> None:
    """A schema or a table may itself be called like a field; a history is called after its table."""
    names, table = DatasetNames.parse(namespace, name), table_of(full=False)
    assert names.directory(table, is_history=False) == directory
    assert names.directory(table, is_history=True) == f"{directory}.history"
    odd = replace(table, namespace="{table}", name="a.b")
    assert DatasetNames.parse(None, "{schema}__{table}").directory(odd, False) == "%7Btable%7D.%7Btable%7D__a%2Eb"


def test_names_that_differ_in_case() -> None:
    """Where these are one, a table that has its dataset keeps it."""
    names, small = DatasetNames.parse(None, None), table_of(full=False)
    large = replace(small, name="T", relation_oid=2, relation_oids=(2,))
    assert not [*names.conflicts([small, large], {})]
    found = [*names.conflicts([small, large], {}, ignores_case=True)]
    assert len(found) == 2 and "would in another case: replicate only one of them" in str(found[0][1])
    owners = {names.directory(small, False): small.relation_oid}
    assert [table for table, _ in names.conflicts([small, large], owners, ignores_case=True)] == [large]


@pytest.mark.parametrize(
    ("namespace", "name", "said"),
    [
        ("a.b", None, r"namespace 'a\.b': it may have \{schema\}, \{table\}, letters"),
        ("", None, "namespace '': it may have"),
        (None, "{name}", r"table name '\{name\}': it may have"),
        (None, "orders", r"table name 'orders': it needs \{table\}"),
        ("{table}", None, r"namespace '\{table\}': it may have \{schema\}, not \{table\}"),
    ],
)
def test_templates_that_are_none(namespace: str | None, name: str | None, said: str) -> None:
    """They are refused before anything is read."""
    with pytest.raises(pgo.PgoutputError, match=said):
        DatasetNames.parse(namespace, name)


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """Two schemas with a table of one name each."""
    with Shop.create(server18, "dataset_names", tmp_path / "log") as shop:
        for schema in ("a", "b"):
            shop.execute(
                f"CREATE SCHEMA {schema}",
                f"CREATE TABLE {schema}.orders (id int PRIMARY KEY, v text)",
                f"INSERT INTO {schema}.orders VALUES (1, '{schema}')",
            )
        shop.execute("DROP TABLE item")
        shop.capture(snapshot=True)
        yield shop


def _values(spark: Any, warehouse: Path, table: str) -> list[str]:
    return sorted(row["v"] for row in read_current(spark, warehouse, table).collect())


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.parametrize("into", SHORT_IN_PARQUET)
def test_names_in_a_namespace(lake: Any, shop: Shop, tmp_path: Path, into: str) -> None:
    """Every table, and history, is in it; also one that is renamed. The names need not be given again."""
    warehouse, place = tmp_path / "wh", Warehouse(tmp_path / "wh")
    names = {"namespace": "lake", "table_name": "{schema}__{table}"}
    replicate(lake, shop.directory, warehouse, into, history=True, **names)
    both = {f"lake.{name}{suffix}" for name in ("a__orders", "b__orders") for suffix in ("", ".history")}
    assert place.datasets().keys() == both
    shop.execute("ALTER TABLE a.orders RENAME TO orders_2", "INSERT INTO a.orders_2 VALUES (2, 'new')")
    shop.capture(snapshot=True)
    done = replicate(lake, shop.directory, warehouse, into, history=True)
    assert done is not None and set(done.tables) == {"a.orders_2"} and set(done.removed) == {"a.orders"}
    assert place.datasets().keys() == {name.replace("a__orders", "a__orders_2") for name in both}
    assert _values(lake, warehouse, "a.orders_2") == ["a", "new"] and _values(lake, warehouse, "b.orders") == ["b"]
    if into == "parquet":
        assert lake_tables.read(warehouse, "a.orders_2")["v"].to_pylist() == ["a", "new"]
    for option in ("namespace", "table_name"):
        said = rf"named by --{option.replace('_', '-')} '.*', not '\w*\{{table\}}': omit .* \({option}=\), or choose"
        with pytest.raises(pgo.PgoutputError, match=said.replace(r"\{table\}", ".*")):
            replicate(
                lake, shop.directory, warehouse, into, **{option: "other" if option == "namespace" else "{table}"}
            )


@pytest.mark.server
@pytest.mark.spark
def test_two_tables_of_one_name(spark: Any, shop: Shop, tmp_path: Path) -> None:
    """Both are errors, and the others are not; one that has the name already keeps it, and the other waits for it."""
    shop.execute("CREATE TABLE a.other (id int PRIMARY KEY, v text)", "INSERT INTO a.other VALUES (1, 'x')")
    shop.capture(snapshot=True)
    said = r"a\.orders would be lake\.orders, as b\.orders would: replicate only one of them .*and 1 more: b\.orders"
    with pytest.raises(pgo.PgoutputError, match=said):
        replicate(spark, shop.directory, tmp_path / "wh", namespace="lake")
    assert _values(spark, tmp_path / "wh", "a.other") == ["x"]
    replicate(spark, shop.directory, tmp_path / "wh", tables=["b.orders"])
    shop.execute("INSERT INTO b.orders VALUES (2, 'c')")
    shop.capture()
    with pytest.raises(pgo.PgoutputError, match=r"^a\.orders would be lake\.orders, as b\.orders would"):
        replicate(spark, shop.directory, tmp_path / "wh")
    assert _values(spark, tmp_path / "wh", "b.orders") == ["b", "c"]
    shop.execute("DROP TABLE b.orders")
    shop.capture()
    done = replicate(spark, shop.directory, tmp_path / "wh")
    assert done is not None and "a.orders" in done.tables
    assert _values(spark, tmp_path / "wh", "a.orders") == ["a"]


@pytest.mark.spark
def test_a_damaged_note(spark: Any, tmp_path: Path) -> None:
    """Its name does not tell the table where templates make names; the error of the note is said all the same."""
    write_orders(tmp_path / "log", range(2))
    replicate(spark, tmp_path / "log", tmp_path / "wh", namespace="lake")
    note = tmp_path / "wh" / "_datasets" / "lake.orders.json"
    content = note.read_text()
    note.write_text("{}")
    with pytest.raises(pgo.PgoutputError, match=r"lake\.orders\.json: the note of a table, .* is damaged"):
        read_current(spark, tmp_path / "wh", "public.orders")
    with pytest.raises(pgo.ChangeLogError, match=r"public\.orders: .* the note of a table, .* is damaged"):
        replicate(spark, tmp_path / "log", tmp_path / "wh")
    replicate(spark, tmp_path / "log", tmp_path / "wh", resync=["public.orders"])
    assert json.loads(note.read_text())["shape"] == json.loads(content)["shape"]
