"""Small tables are brought up to date in Arrow, others by Spark: what either way makes of the same changes is equal."""

import random
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pytest

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.spark._replicate import replicate, step_writer
from pgoutput_construct.spark._replicate.arrow_writes import ProducedFiles, produce
from tests.postgres.shop import Shop
from tests.spark.differences import stored_rows

pytestmark = [pytest.mark.server, pytest.mark.spark]

BATCHES, CHANGES = 2, 25


class _Table(NamedTuple):
    """A table, and values that its columns may have; those of the key come first."""

    name: str
    definition: str
    keys: int
    values: dict[str, Sequence[str]]


_DAYS: Final = ("'infinity'", "'0044-03-15 BC'", "'0050-01-01'", "'1500-02-28'", "'2024-02-29'")
_TABLES: Final = (
    _Table(
        "long",
        "id numeric(10, 2) PRIMARY KEY, ok bool, n smallint, big text, doc bytea, amount numeric(20, 4)",
        1,
        {
            "id": [str(each / 4) for each in range(-4, 8)],
            "ok": ("true", "false", "NULL"),
            "n": ("1", "-32768", "NULL"),
            "big": ("repeat('b', 3000)", "repeat('c', 4000)", "'short'", "NULL"),
            "doc": ("convert_to(repeat('d', 3000), 'UTF8')", "''", "NULL"),
            "amount": ("1.5", "'NaN'", "-9999999999999999.9999", "NULL"),
        },
    ),
    _Table(
        "floats",
        "f float8, g float4, v float8, PRIMARY KEY (f, g)",
        2,
        {
            "f": ("0.0", "'-0.0'", "'NaN'", "0.1", "'-infinity'"),
            "g": ("'0.0'", "'-0.0'", "'NaN'", "'0.1'"),
            "v": ("0.0", "'-0.0'", "'NaN'", "NULL"),
        },
    ),
    _Table(
        "texts",
        "name text, at timestamptz, note text, days date[], PRIMARY KEY (name, at)",
        2,
        {
            "name": ("'a'", "'A'", "'ä'", "'a '", "''", "E'a\\u0308'"),
            "at": _DAYS,
            "note": ("'x'", "'\"'", "NULL"),
            "days": ("'{2020-01-01,NULL}'", "'{infinity}'", "'{}'", "'{{2020-01-01}}'", "NULL"),
        },
    ),
    _Table(
        "bytes",
        "id bytea PRIMARY KEY, day date, at timestamp, many numeric(5, 2)[], amount numeric(5, 2)",
        1,
        {
            "id": [f"'\\x{each:02x}'" for each in range(0, 256, 32)],
            "day": (*_DAYS, "NULL"),
            "at": (*_DAYS, "'1850-01-01 00:00:00.000001'", "NULL"),
            "many": ("'{1.5,NULL}'", "'{NaN}'", "NULL"),
            "amount": ("1", "'NaN'", "NULL"),
        },
    ),
    _Table(
        "whole",
        "n int, v float8, note text, big text",
        1,
        {
            "n": ("1", "2"),
            "v": ("0.0", "'-0.0'", "NULL"),
            "note": ("'x'", "NULL"),
            "big": ("repeat('b', 3000)", "NULL"),
        },
    ),
)


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.long)], ids=["two tables", "all tables"])
def tables(request: pytest.FixtureRequest) -> Sequence[_Table]:
    """All tables, or the first one and another."""
    return _TABLES if request.param else (_TABLES[0], random.choice(_TABLES[1:]))


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path, tables: Sequence[_Table]) -> Iterator[Shop]:
    """A database with the tables, all but the first of which have rows already."""
    with Shop.create(server18, "small", tmp_path / "log") as shop:
        for table in tables[1:]:
            shop.execute(f"CREATE TABLE {table.name} ({table.definition})")
            if "KEY" not in table.definition:
                shop.execute(f"ALTER TABLE {table.name} REPLICA IDENTITY FULL", *_external(table.name, "big"))
            shop.execute(*_changes(random.Random(1), table))
        yield shop


def test_both_ways_are_equal(
    spark: Any, shop: Shop, tables: Sequence[_Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any changes, batch by batch, of tables with and without a copy: each row, its text, its place, its history."""
    seed = random.randrange(1 << 32)
    chance, done = random.Random(seed), list[int]()
    names = [*(table.name for table in tables), "item"]  # which has no rows

    def together(*arguments: Any) -> Any:
        found = produce(*arguments)
        done.append(sum(isinstance(each, ProducedFiles) for each in found.values()))
        return found

    shop.capture(snapshot=True)
    shop.execute(f"CREATE TABLE long ({tables[0].definition})", *_external("long", "big", "doc"))
    for _ in range(BATCHES):
        shop.execute(*(line for table in tables for line in _changes(chance, table)))
        shop.capture(snapshot=True)
        for place, way in (("arrow", together), ("spark", lambda *_: {})):
            monkeypatch.setattr(step_writer, "produce", way)
            replicate(spark, shop.directory, tmp_path / place, history=True)
    for name, is_history in product(names, (False, True)):
        both = (
            stored_rows(spark, tmp_path / place, f"public.{name}", history=is_history) for place in ("arrow", "spark")
        )
        one, other = map(_rows, both)
        assert one == other, f"{name}, of the history: {is_history}, random.Random({seed})"
    assert done == [2 * len(names), *[2 * len(tables)] * (BATCHES - 1)]


def _external(table: str, *names: str) -> list[str]:
    return [f"ALTER TABLE {table} ALTER {name} SET STORAGE EXTERNAL" for name in names]


def _changes(chance: random.Random, table: _Table) -> Iterator[str]:
    """Yield statements; each is a transaction."""
    for _ in range(CHANGES):
        row = {name: chance.choice(values) for name, values in table.values.items()}
        keys, others = list(row)[: table.keys], list(row)[table.keys :]
        here = _equal({name: chance.choice(table.values[name]) for name in keys})
        some = ", ".join(f"{name} = {row[name]}" for name in chance.sample(others, chance.randint(1, len(others))))
        insert = f"INSERT INTO {table.name} VALUES ({', '.join(row.values())}) ON CONFLICT DO NOTHING"
        moved = ", ".join(f"{name} = {row[name]}" for name in keys)
        there = f"NOT EXISTS (SELECT FROM {table.name} WHERE {_equal({name: row[name] for name in keys})})"
        kinds = [
            insert,
            insert,
            f"UPDATE {table.name} SET {some} WHERE {here}",
            f"DELETE FROM {table.name} WHERE {here}",
        ]
        kinds.append(f"UPDATE {table.name} SET {moved} WHERE {here} AND {there}")
        if chance.random() < 0.02:
            yield f"TRUNCATE {table.name}"
        yield "; ".join(["BEGIN", *chance.choices(kinds, k=chance.randint(1, 3)), "COMMIT"])


def _equal(values: dict[str, str]) -> str:
    return " AND ".join(f"{name} = {value}" for name, value in values.items())


def _rows(rows: pa.Table) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows.to_pylist())
