"""Deleted rows that stay: what triggers of the server have recorded of them is what tables have, batch by batch."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import snapshot
from pgoutput_construct.postgres.checksums import SourceServer
from pgoutput_construct.spark._replicate import read_current, replicate, write_ways
from pgoutput_construct.spark._verify import VerifyOptions, verify
from tests.postgres.shop import Shop
from tests.spark.differences import stored_rows
from tests.table_formats import SHORT_IN_PARQUET

pytestmark = [pytest.mark.server, pytest.mark.spark]

TABLES = {"keyed": ("id",), "pair": ("day", "part"), "whole": ()}
"""The tables, and their keys."""
RECORDED = """
CREATE TABLE deleted (number bigserial PRIMARY KEY, name text, key text, old jsonb);
CREATE FUNCTION record() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE keys text[] := CASE TG_TABLE_NAME WHEN 'keyed' THEN '{id}' WHEN 'whole' THEN '{}' ELSE '{day,part}' END;
    was text; now text;
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        EXECUTE format('INSERT INTO deleted (name, key, old) SELECT %L, (SELECT string_agg(to_jsonb(t) ->> k, '','')'
            ' FROM unnest(%L::text[]) k), to_jsonb(t) FROM %I t', TG_TABLE_NAME, keys, TG_TABLE_NAME);
        RETURN NULL;
    END IF;
    SELECT string_agg(to_jsonb(OLD) ->> k, ',') INTO was FROM unnest(keys) k;
    IF TG_OP = 'UPDATE' THEN
        SELECT string_agg(to_jsonb(NEW) ->> k, ',') INTO now FROM unnest(keys) k;
        IF was IS NOT DISTINCT FROM now THEN RETURN NULL; END IF;
    END IF;
    INSERT INTO deleted (name, key, old) VALUES (TG_TABLE_NAME, was, to_jsonb(OLD));
    RETURN NULL;
END $$;
"""
ROUNDS: Sequence[Sequence[str]] = (
    (
        "INSERT INTO keyed SELECT i, 'row ' || i, repeat('b', 3000 + i) FROM generate_series(1, 20) i",
        "INSERT INTO pair VALUES ('infinity', 1, 'a'), ('2020-01-01', 1, 'b'), ('2020-01-01', 2, 'c')",
        "INSERT INTO whole SELECT i % 3, 'same' FROM generate_series(1, 9) i",
    ),
    (
        "UPDATE keyed SET note = 'last' WHERE id < 4",
        "DELETE FROM keyed WHERE id IN (2, 3, 4)",
        "INSERT INTO keyed VALUES (50, 'came and went', repeat('c', 3000)), (51, 'stays', NULL)",
        "UPDATE keyed SET note = 'changed, and went' WHERE id = 50",
        "DELETE FROM keyed WHERE id = 50",
        "UPDATE keyed SET id = id + 100 WHERE id BETWEEN 5 AND 7",
        "UPDATE keyed SET id = 108, note = 'moved twice' WHERE id = 105",
        "DELETE FROM pair WHERE day = 'infinity'",
        "UPDATE pair SET part = 7 WHERE part = 2",
        "DELETE FROM whole WHERE ctid IN (SELECT ctid FROM whole WHERE a = 1 LIMIT 2)",
        "UPDATE whole SET b = 'other' WHERE a = 2",
    ),
    (
        "INSERT INTO keyed VALUES (2, 'again', 'x'), (5, 'another', NULL)",
        "DELETE FROM keyed WHERE id = 5",
        "DELETE FROM keyed WHERE id = 106",
        "INSERT INTO pair VALUES ('infinity', 1, 'again')",
        "INSERT INTO whole VALUES (7, NULL), (7, NULL)",
        "DELETE FROM whole WHERE ctid IN (SELECT ctid FROM whole WHERE a = 7 LIMIT 1)",
    ),
    ("INSERT INTO keyed VALUES (3, 'inserts alone', NULL), (60, 'new', 'y')", "INSERT INTO whole VALUES (8, 'new')"),
    (
        "ALTER TABLE keyed ADD COLUMN later date",
        "UPDATE keyed SET later = '2020-02-02' WHERE id IN (2, 60)",
        "DELETE FROM keyed WHERE id = 60",
        "TRUNCATE pair",
        "INSERT INTO pair VALUES ('2020-01-01', 1, 'after')",
        "TRUNCATE whole",
        "INSERT INTO whole VALUES (9, 'after')",
    ),
    (
        "ALTER TABLE keyed RENAME note TO remark",
        "UPDATE keyed SET remark = 'renamed' WHERE id = 1",
        "DELETE FROM keyed WHERE id = 9",
        "ALTER TABLE pair RENAME TO couple",
        "DELETE FROM couple",
    ),
)
"""What happens before each batch."""
FEWER: Sequence[Sequence[str]] = (ROUNDS[0], (*ROUNDS[1], *ROUNDS[2]), ROUNDS[3], (*ROUNDS[4], *ROUNDS[5]))
"""The same in fewer batches, for the one table that is replicated each time."""


@pytest.fixture(params=[("keyed",), pytest.param(tuple(TABLES), marks=pytest.mark.long)], ids=["one", "all"])
def names(request: pytest.FixtureRequest) -> list[str]:
    """The tables that are replicated."""
    return list(request.param)


def _qualified(names: Sequence[str]) -> list[str]:
    return [f"public.{name}" for name in names]


@pytest.fixture(params=SHORT_IN_PARQUET)
def into(request: pytest.FixtureRequest, lake: Any) -> str:
    """Each format in turn."""
    return str(request.param)


@pytest.fixture(params=["arrow", "spark"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What writes the tables: Spark does where too much has changed."""
    if request.param == "spark":
        monkeypatch.setattr(write_ways, "ARROW_CHANGES", -1)
    return str(request.param)


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path, into: str, way: str) -> Iterator[Shop]:
    """Tables whose deleted rows triggers record."""
    with Shop.create(server18, f"soft_{into}_{way}", tmp_path / "log") as shop:
        shop.execute(
            RECORDED,
            "CREATE TABLE keyed (id int PRIMARY KEY, note text, big text)",
            "ALTER TABLE keyed ALTER big SET STORAGE EXTERNAL",
            "CREATE TABLE pair (day timestamptz, part int, v text, PRIMARY KEY (day, part))",
            "CREATE TABLE whole (a int, b text)",
            "ALTER TABLE whole REPLICA IDENTITY FULL",
        )
        for name, keys in TABLES.items():
            rows = "DELETE OR UPDATE" if keys else "DELETE"
            shop.execute(
                f"CREATE TRIGGER of_rows AFTER {rows} ON {name} FOR EACH ROW EXECUTE FUNCTION record()",
                f"CREATE TRIGGER of_all BEFORE TRUNCATE ON {name} EXECUTE FUNCTION record()",
            )
        yield shop


def _expected(shop: Shop, name: str) -> tuple[list[str], list[str]]:
    """Return the rows of a table, and its deleted rows: as JSON of texts."""
    first = {"couple": "pair"}.get(name, name)
    keys = TABLES[first]
    with shop.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        rows = [row for (row,) in connection.execute(f"SELECT to_jsonb(t) FROM {name} t").fetchall()]
        gone = connection.execute("SELECT key, old FROM deleted WHERE name IN (%s, %s) ORDER BY number", [first, name])
        found = gone.fetchall()
    if keys:
        present = {",".join(str(row[key]) for key in keys) for row in rows}
        found = [(key, row) for key, row in {key: (key, row) for key, row in found}.values() if key not in present]
    return sorted(map(_text, rows)), sorted(_text(row) for _, row in found)


def _text(row: dict[str, Any]) -> str:
    named = {{"note": "remark"}.get(key, key): value for key, value in row.items()}
    return json.dumps({key: str(value)[:19] for key, value in named.items() if value is not None}, sort_keys=True)


def _stored(spark: Any, warehouse: Path, name: str) -> tuple[list[str], list[str]]:
    rows = stored_rows(spark, warehouse, f"public.{name}")
    names = ["_deleted_at", "_untyped", *(each for each in rows.column_names if not each.startswith("_"))]
    found: tuple[list[str], list[str]] = [], []
    for given in rows.select(names).to_pylist():
        deleted_at, untyped = given.pop("_deleted_at"), dict(given.pop("_untyped") or {})
        times = {key: value.isoformat() for key, value in given.items() if isinstance(value, datetime)}
        found[deleted_at is not None].append(_text({**given, **times, **untyped}))
    return sorted(found[0]), sorted(found[1])


def _check(spark: Any, shop: Shop, warehouse: Path, names: Sequence[str]) -> None:
    for name in names:
        assert _stored(spark, warehouse, name) == _expected(shop, name), name


def test_batch_by_batch(lake: Any, shop: Shop, into: str, tmp_path: Path, names: list[str]) -> None:
    """Also rows that came and went in one batch, keys that moved, truncates, altered tables."""
    warehouse = tmp_path / "wh"
    rounds = ROUNDS if len(names) > 1 else FEWER
    for number, statements in enumerate(rounds):
        shop.execute(*statements)
        shop.capture(snapshot=True)
        names = [{"pair": "couple"}.get(name, name) for name in names] if number == len(rounds) - 1 else names
        options: dict[str, Any] = {"history": True, "soft_delete": None if number else True}
        done = replicate(lake, shop.directory, warehouse, into, _qualified(names), **options)
        assert done is not None and not done.troubled
        _check(lake, shop, warehouse, names)
    for name in names:
        history = stored_rows(lake, warehouse, name, history=True).to_pylist()
        times = {row["_valid_to"] for row in history if row["_ended_by"]}
        gone = [row for row in stored_rows(lake, warehouse, name).to_pylist() if row["_deleted_at"]]
        assert {row["_deleted_at"] for row in gone} <= times
        assert all(row["_commit_lsn"] > 0 for row in gone)


@pytest.mark.parametrize("into", SHORT_IN_PARQUET, indirect=True)
@pytest.mark.long
def test_copies(lake: Any, shop: Shop, into: str, tmp_path: Path, names: list[str]) -> None:
    """Deleted rows stay when a table is copied again or written from scratch; what disappeared meanwhile is deleted."""
    warehouse, tables = tmp_path / "wh", _qualified(names)
    for statements in ROUNDS[:2]:
        shop.execute(*statements)
        shop.capture(snapshot=True)
        replicate(lake, shop.directory, warehouse, into, tables, soft_delete=True)
    _check(lake, shop, warehouse, names)
    before = _stored(lake, warehouse, "keyed")
    replicate(lake, shop.directory, warehouse, into, tables, resync=names)
    assert _stored(lake, warehouse, "keyed") == before
    _check(lake, shop, warehouse, names)
    began = datetime.now(UTC).replace(tzinfo=None)
    shop.execute("ALTER TABLE keyed ALTER id TYPE bigint", "DELETE FROM keyed WHERE id = 11")
    snapshot(shop.dsn, shop.directory, ["public.keyed", "public.whole"])
    shop.capture()
    replicate(lake, shop.directory, warehouse, into, tables)
    _check(lake, shop, warehouse, names)
    replicate(lake, shop.directory, warehouse, into, tables, soft_delete=False)
    assert "_deleted_at" not in read_current(lake, warehouse, "keyed").columns
    replicate(lake, shop.directory, warehouse, into, tables, soft_delete=True)
    found = read_current(lake, warehouse, "keyed").where("_deleted_at IS NOT NULL").collect()
    assert {row["id"] for row in found} <= {11} and began is not None


@pytest.mark.parametrize("into", ["parquet"], indirect=True)
@pytest.mark.long
def test_verify_and_missing_rows(spark: Any, shop: Shop, into: str, tmp_path: Path, names: list[str]) -> None:
    """Rows that are not deleted are compared; a change of a deleted row is one of a row that does not exist."""
    warehouse, tables = tmp_path / "wh", _qualified(names)
    for statements in ROUNDS[:2]:
        shop.execute(*statements)
        shop.capture(snapshot=True)
        replicate(spark, shop.directory, warehouse, "parquet", tables, soft_delete=True)
    shop.execute(*ROUNDS[2])
    source = SourceServer(shop.dsn, shop.log().options.publications)
    with shop.capturing():
        verdicts = list(verify(spark, shop.directory, warehouse, source, options=VerifyOptions(60.0, 60)))
    assert [(each.table, each.problem) for each in verdicts if not each.equal] == [] and len(verdicts) == len(names)
