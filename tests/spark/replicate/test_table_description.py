"""Comments of tables and columns, and keys as identifier fields, go along with the rows."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pgoutput_construct import lake as lake_tables
from pgoutput_construct.catalog_queries import COMMENTS
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres._catalog import table_catalog
from pgoutput_construct.spark._replicate import read_current, replicate, step_writer
from tests.crashes import before, killed
from tests.postgres.shop import Shop
from tests.spark.replicate.rounds import check_equal

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """Two tables, of which one has comments; the keys of both are of types that hold every value."""
    with Shop.create(server18, "table_description", tmp_path / "log") as shop:
        shop.execute(
            'CREATE TABLE said (id int, code bigint, "a.b" date, PRIMARY KEY (id, code))',
            "COMMENT ON TABLE said IS 'it''s a \\ table'",
            "COMMENT ON COLUMN said.id IS 'the number'",
            "COMMENT ON COLUMN said.\"a.b\" IS 'a day'",
            "INSERT INTO said VALUES (1, 10, '2026-01-01'), (2, 20, NULL)",
            "CREATE TABLE dated (day date PRIMARY KEY, v text)",
            "INSERT INTO dated VALUES ('infinity', 'x'), ('2026-01-01', 'y')",
            "CREATE TABLE worded (code text PRIMARY KEY)",
            "INSERT INTO worded VALUES ('x')",
        )
        shop.capture(snapshot=True)
        yield shop


def _comments(spark: Any, warehouse: Path, table: str) -> dict[str, str]:
    fields = read_current(spark, warehouse, table).schema
    return {field.name: field.metadata["comment"] for field in fields if field.metadata.get("comment")}


def _key(warehouse: Path, table: str) -> set[str]:
    """Return the identifier fields in the metadata of a table of Iceberg, all of which are required, and no others."""
    metadata = json.loads(Path(lake_tables.locate(warehouse, table).path.removeprefix("file://")).read_text())
    schema = next(each for each in metadata["schemas"] if each["schema-id"] == metadata["current-schema-id"])
    found = {field["name"] for field in schema["fields"] if field["id"] in schema.get("identifier-field-ids", ())}
    assert found == {field["name"] for field in schema["fields"] if field["required"]}
    return found


@pytest.mark.parametrize("into", ["iceberg", pytest.param("delta", marks=pytest.mark.long)])
def test_comments(lake: Any, shop: Shop, tmp_path: Path, into: str) -> None:
    """They come with the table, change with its next batch, are kept when it is written as a whole, and go."""
    warehouse = tmp_path / "wh"
    place = f"delta.`{warehouse / 'public.said'}`"

    def run() -> dict[str, str]:
        shop.capture(snapshot=True)
        replicate(lake, shop.directory, warehouse, into)
        check_equal(lake, shop, warehouse, ["said", "dated"])
        return _comments(lake, warehouse, "public.said")

    assert run() == {"id": "the number", "a.b": "a day"} and not _comments(lake, warehouse, "public.dated")
    if into == "delta":
        rows = lake.sql(f"DESCRIBE TABLE EXTENDED {place}").collect()
        assert "it's a \\ table" in {row["data_type"] for row in rows if row["col_name"] == "Comment"}
    shop.execute("COMMENT ON COLUMN said.id IS 'a number'", 'UPDATE said SET "a.b" = NULL WHERE id = 1')
    assert run() == {"id": "a number", "a.b": "a day"}
    shop.execute("COMMENT ON COLUMN said.code IS 'no row has changed'", "INSERT INTO dated VALUES ('2026-01-02', 'z')")
    assert run() == {"id": "a number", "a.b": "a day", "code": "no row has changed"}
    shop.execute("COMMENT ON COLUMN said.code IS NULL")
    assert run() == {"id": "a number", "a.b": "a day"}
    shop.execute("TRUNCATE said", "INSERT INTO said VALUES (3, 30, NULL)")
    assert run() == {"id": "a number", "a.b": "a day"}
    shop.execute(
        'COMMENT ON COLUMN said."a.b" IS NULL', "COMMENT ON TABLE said IS NULL", "INSERT INTO said VALUES (4, 40, NULL)"
    )
    assert run() == {"id": "a number"}
    if into == "delta":
        rows = lake.sql(f"DESCRIBE TABLE EXTENDED {place}").collect()
        assert not {row["data_type"] for row in rows if row["col_name"] == "Comment"} - {""}


@pytest.mark.parametrize("into", ["iceberg", "delta"])
@pytest.mark.long
def test_killed_before_the_description(lake: Any, shop: Shop, tmp_path: Path, into: str) -> None:
    """The rows are there, the comments and the key are not: the next batch describes the table."""
    warehouse = tmp_path / "wh"
    for statement in (None, "INSERT INTO said VALUES (3, 30, NULL)", "TRUNCATE said"):
        if statement:
            shop.execute("COMMENT ON TABLE said IS NULL", "COMMENT ON COLUMN said.code IS 'after'", statement)
            shop.capture(snapshot=True)
        with killed(before(step_writer, "describe")):
            replicate(lake, shop.directory, warehouse, into)
        replicate(lake, shop.directory, warehouse, into)
        check_equal(lake, shop, warehouse, ["said", "dated"])
        found = {"id": "the number", "a.b": "a day"} | ({"code": "after"} if statement else {})
        assert _comments(lake, warehouse, "public.said") == found
        if into == "iceberg":
            assert _key(warehouse, "public.said") == {"id", "code"}


def test_a_log_of_an_earlier_version(
    lake: Any, server18: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no comments; those that are there come once this version captures into it."""
    warehouse = tmp_path / "wh"
    with Shop.create(server18, "earlier_description", tmp_path / "earlier") as shop:
        shop.execute("CREATE TABLE said (id int PRIMARY KEY)", "COMMENT ON COLUMN said.id IS 'the number'")
        shop.execute("INSERT INTO said VALUES (1)")
        with monkeypatch.context() as earlier:
            nothing = replace(COMMENTS, text="SELECT 0::bigint, '[]'::json WHERE false")
            earlier.setattr(table_catalog, "COMMENTS", nothing)
            shop.capture(snapshot=True)
            replicate(lake, shop.directory, warehouse, "iceberg")
        assert not _comments(lake, warehouse, "public.said")
        shop.execute("INSERT INTO said VALUES (2)")
        shop.capture(snapshot=True)
        replicate(lake, shop.directory, warehouse, "iceberg")
        assert _comments(lake, warehouse, "public.said") == {"id": "the number"}


@pytest.mark.long
def test_identifier_fields(lake: Any, shop: Shop, tmp_path: Path) -> None:
    """Columns that are never NULL; when a table has no key any more, NULL can be written into them."""
    warehouse = tmp_path / "wh"

    def run(*statements: str) -> None:
        shop.execute(*statements)
        shop.capture(snapshot=True)
        replicate(lake, shop.directory, warehouse, "iceberg")
        check_equal(lake, shop, warehouse, ["said", "dated"])

    run()
    assert _key(warehouse, "public.said") == {"id", "code"} and not _key(warehouse, "public.dated")
    assert not _key(warehouse, "public.worded")
    run("UPDATE said SET id = 5 WHERE id = 1", "DELETE FROM said WHERE id = 2", "INSERT INTO said VALUES (7, 70, NULL)")
    assert _key(warehouse, "public.said") == {"id", "code"}
    run("TRUNCATE said", "INSERT INTO said SELECT i, i, NULL FROM generate_series(1, 9) i")
    assert _key(warehouse, "public.said") == {"id", "code"}
    run(
        "ALTER TABLE said DROP CONSTRAINT said_pkey",
        "ALTER TABLE said ALTER id DROP NOT NULL",
        "ALTER TABLE said ALTER code DROP NOT NULL",
        "INSERT INTO said VALUES (NULL, NULL, NULL)",
    )
    assert not _key(warehouse, "public.said")


@pytest.mark.long
def test_the_fields_of_a_table_whose_deleted_rows_stay(lake: Any, shop: Shop, tmp_path: Path) -> None:
    """They are taken back, too, before rows with NULL in them are appended."""
    warehouse, names = tmp_path / "wh", ["public.said"]
    shop.capture(snapshot=True)
    replicate(lake, shop.directory, warehouse, "iceberg", names, soft_delete=True)
    assert _key(warehouse, "public.said") == {"id", "code"}
    shop.execute(
        "ALTER TABLE said DROP CONSTRAINT said_pkey",
        "ALTER TABLE said ALTER id DROP NOT NULL",
        "ALTER TABLE said ALTER code DROP NOT NULL",
        "INSERT INTO said VALUES (NULL, NULL, NULL)",
    )
    shop.capture()
    replicate(lake, shop.directory, warehouse, "iceberg", names)
    assert not _key(warehouse, "public.said")
    assert read_current(lake, warehouse, "public.said").where("id IS NULL AND _deleted_at IS NULL").count() == 1
