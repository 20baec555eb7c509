"""Columns that are renamed, or replaced by others of their names, between batches: tables and histories follow."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.spark._replicate import replicate
from tests.postgres.shop import Shop
from tests.spark.differences import stored_rows
from tests.spark.replicate.rounds import check_equal, open_differences
from tests.table_formats import ALL_FORMATS

pytestmark = [pytest.mark.server, pytest.mark.spark]

TABLES = ("plain", "keyed", "whole", "again")
ROUNDS = (
    """
    CREATE TABLE plain (id int PRIMARY KEY, v text, w text);
    INSERT INTO plain SELECT i, 'v' || i, 'w' || i FROM generate_series(1, 4) i;
    CREATE TABLE keyed (id int PRIMARY KEY, v text, big text);
    ALTER TABLE keyed ALTER big SET STORAGE EXTERNAL;
    INSERT INTO keyed SELECT i, 'v' || i, repeat('b', 3000 + i) FROM generate_series(1, 5) i;
    CREATE TABLE whole (a int, b text);
    ALTER TABLE whole REPLICA IDENTITY FULL;
    INSERT INTO whole VALUES (1, 'x'), (1, 'x'), (2, NULL);
    CREATE TABLE again (id int PRIMARY KEY, day timestamptz);
    INSERT INTO again VALUES (1, 'infinity'), (2, 'infinity'), (3, '2020-01-01')
    """,
    """
    ALTER TABLE plain RENAME v TO x;
    UPDATE plain SET x = 'changed' WHERE id = 1;
    DELETE FROM plain WHERE id = 2;
    ALTER TABLE keyed RENAME id TO code;
    UPDATE keyed SET v = 'changed' WHERE code = 1;
    UPDATE keyed SET code = 20 WHERE code = 2;
    DELETE FROM keyed WHERE code = 3;
    ALTER TABLE whole RENAME b TO c;
    DELETE FROM whole WHERE ctid = '(0,1)';
    ALTER TABLE again DROP COLUMN day;
    INSERT INTO again VALUES (4);
    -- the capture sees it
    ALTER TABLE again ADD COLUMN day timestamptz;
    UPDATE again SET day = '-infinity' WHERE id = 1
    """,
    """
    ALTER TABLE plain RENAME x TO y;
    ALTER TABLE plain RENAME w TO x;
    ALTER TABLE plain RENAME y TO w;
    UPDATE plain SET w = NULL WHERE id = 3;
    ALTER TABLE keyed RENAME v TO "_v";
    UPDATE keyed SET code = 21 WHERE code = 20;
    ALTER TABLE whole RENAME a TO b;
    DELETE FROM again WHERE id = 2
    """,
)
"""What happens before each batch."""


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """A database of its own."""
    with Shop.create(server18, "renamed_columns", tmp_path / "log") as shop:
        yield shop


def _execute(shop: Shop, script: str) -> None:
    for part in script.split("-- the capture sees it"):
        shop.execute(*part.strip().removesuffix(";").split(";\n"))
        shop.capture(snapshot=True)


def _ended(spark: Any, warehouse: Path, table: str, *columns: str) -> list[tuple[Any, ...]]:
    found = stored_rows(spark, warehouse, table, history=True).to_pylist()
    return sorted(tuple(row[name] for name in (*columns, "_ended_by")) for row in found if row["_ended_by"])


@pytest.mark.parametrize(
    ("into", "names"),
    [("parquet", TABLES[1::2]), *(pytest.param(into, TABLES, marks=pytest.mark.long) for into in ALL_FORMATS)],
    ids=["two tables", *ALL_FORMATS],
)
def test_columns_are_followed(lake: Any, shop: Shop, tmp_path: Path, into: str, names: Sequence[str]) -> None:
    """Key columns, names that are exchanged, a column dropped and made again: what is open is the source's."""
    chosen = [f"public.{name}" for name in names]
    for number, script in enumerate(ROUNDS, 1):
        _execute(shop, script)
        replicate(lake, shop.directory, tmp_path / "wh", into, chosen, history=True)
        assert not (found := open_differences(lake, shop, tmp_path / "wh", names)), f"round {number}: {found}"
    check_equal(lake, shop, tmp_path / "wh", names)
    if "plain" in names:
        assert _ended(lake, tmp_path / "wh", "public.plain", "id", "w", "x") == [
            (1, "v1", "w1", "update"),
            (2, "v2", "w2", "delete"),
            (3, "v3", "w3", "update"),
        ]
    assert _ended(lake, tmp_path / "wh", "public.keyed", "code", "_v", "big") == [
        (1, "v1", "b" * 3001, "update"),
        (2, "v2", "b" * 3002, "update"),
        (3, "v3", "b" * 3003, "delete"),
        (20, "v2", "b" * 3002, "update"),
    ]
    history = stored_rows(lake, tmp_path / "wh", "public.again", history=True).to_pylist()
    texts = [(row["id"], dict(row["_untyped"] or ()), row["_ended_by"]) for row in history]
    rows = [(id_, untyped.get("day"), untyped.get("day_dropped_2"), by) for id_, untyped, by in texts]
    assert sorted(rows, key=str) == [
        (1, "-infinity", None, None),
        (1, None, "infinity", "update"),
        (2, None, "infinity", "delete"),
        (3, None, None, None),
        (4, None, None, None),
    ]


@pytest.mark.long
def test_a_history_that_does_not_tell(spark: Any, shop: Shop, tmp_path: Path) -> None:
    """Where the log did not say the numbers of columns, the table is in trouble once one is renamed, until --resync."""
    _execute(shop, ROUNDS[0])
    replicate(spark, shop.directory, tmp_path / "wh", history=True)
    note = tmp_path / "wh" / "_datasets" / "public.plain.history.json"
    content = json.loads(note.read_text())
    assert content["shape"].pop("numbers") == {"id": 1, "v": 2, "w": 3}
    note.write_text(json.dumps(content))
    _execute(shop, ROUNDS[1])
    with pytest.raises(
        pgo.ChangeLogError, match=r"public\.plain: its history has columns .*'v'.*--resync public\.plain"
    ):
        replicate(spark, shop.directory, tmp_path / "wh", history=True)
    assert not open_differences(spark, shop, tmp_path / "wh", TABLES[1:])
    replicate(spark, shop.directory, tmp_path / "wh", history=True, resync=["public.plain"])
    assert not open_differences(spark, shop, tmp_path / "wh", TABLES)


@pytest.mark.parametrize(
    ("rename", "name"),
    [("ALTER TABLE t RENAME w TO x", "x"), pytest.param("SELECT", "w", marks=pytest.mark.long)],
    ids=["whole", "recorded"],
)
def test_the_values_of_a_dropped_column(spark: Any, shop: Shop, tmp_path: Path, rename: str, name: str) -> None:
    """A history keeps those of rows that end, or have come, in the batch that drops it; also if it is written again."""
    _execute(
        shop, "CREATE TABLE t (id int PRIMARY KEY, v text, w text); INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'y')"
    )
    replicate(spark, shop.directory, tmp_path / "wh", history=True)
    insert = "INSERT INTO t VALUES (3, 'c', 'w')"
    _execute(shop, f"{insert}; ALTER TABLE t DROP v; {rename}; UPDATE t SET {name} = 'z' WHERE id = 1")
    replicate(spark, shop.directory, tmp_path / "wh", history=True)
    found = stored_rows(spark, tmp_path / "wh", "public.t", history=True)
    rows = found.select(["id", "v", name, "_ended_by"]).to_pylist()
    assert sorted(map(tuple, map(dict.values, rows)), key=str) == [
        (1, "a", "x", "update"),
        (1, None, "z", None),
        (2, "b", "y", None),
        (3, "c", "w", None),
    ]
    assert found.column_names[0] == "id"
