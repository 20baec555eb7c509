"""Rounds of changes of a server, live or recorded, and its tables compared with a warehouse's."""

import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.columnar import UNTYPED
from pgoutput_construct.postgres import fetch_table
from pgoutput_construct.spark import open_log
from tests.postgres.shop import Shop
from tests.spark.differences import difference, stored_rows

__all__ = ["ROUNDS", "TABLES", "RecordedRounds", "check_equal", "open_differences", "record_rounds"]

ROUNDS = (
    """
    CREATE TABLE keyed (id int PRIMARY KEY, note text, big text);
    ALTER TABLE keyed ALTER big SET STORAGE EXTERNAL;
    CREATE TABLE endless (day timestamptz, part int, v numeric(5, 2), big text, PRIMARY KEY (day, part));
    ALTER TABLE endless ALTER big SET STORAGE EXTERNAL;
    CREATE TABLE whole (a int, b text);
    ALTER TABLE whole REPLICA IDENTITY FULL;
    CREATE TABLE added (a int, "b.c `d" text);
    CREATE TABLE old_name (id int PRIMARY KEY, v text);
    CREATE TABLE gone (id int PRIMARY KEY);
    CREATE TABLE idle (id int PRIMARY KEY, v text);
    INSERT INTO keyed SELECT i, 'row ' || i, repeat('b', 3000 + i) FROM generate_series(1, 20) i;
    INSERT INTO endless VALUES ('infinity', 1, 'NaN', repeat('b', 3000)), ('2020-01-01', 1, 1, repeat('c', 3000));
    INSERT INTO whole SELECT i % 3, 'same' FROM generate_series(1, 9) i;
    INSERT INTO added VALUES (1, 'x');
    INSERT INTO old_name VALUES (1, 'a'), (2, 'b');
    INSERT INTO gone VALUES (1);
    INSERT INTO idle VALUES (1, 'never changed again');
    """,
    """
    UPDATE keyed SET note = 'changed' WHERE id < 4;
    UPDATE keyed SET id = id + 100 WHERE id BETWEEN 3 AND 5;
    DELETE FROM keyed WHERE id = 6;
    INSERT INTO keyed VALUES (6, 'again', NULL), (30, 'new', 'short');
    UPDATE keyed SET id = 200, big = 'sent' WHERE id = 7;
    UPDATE keyed SET id = 0 WHERE id = 8;
    UPDATE keyed SET id = 8 WHERE id = 9;
    UPDATE keyed SET id = 9 WHERE id = 0;
    UPDATE endless SET v = 2;
    UPDATE endless SET part = 2 WHERE day = 'infinity';
    UPDATE whole SET b = 'other' WHERE ctid IN (SELECT ctid FROM whole LIMIT 4);
    DELETE FROM whole WHERE ctid IN (SELECT ctid FROM whole WHERE a = 1 LIMIT 1);
    INSERT INTO added VALUES (2, 'y'), (3, NULL);
    ALTER TABLE old_name RENAME TO new_name;
    INSERT INTO new_name VALUES (3, 'c');
    DROP TABLE gone;
    """,
    """
    ALTER TABLE keyed ADD COLUMN later date;
    UPDATE keyed SET later = '2020-02-02' WHERE id < 3;
    ALTER TABLE keyed ADD COLUMN given int DEFAULT 7;
    INSERT INTO keyed VALUES (40, 'last', 'x');
    ALTER TABLE endless DROP COLUMN v;
    UPDATE endless SET part = 3 WHERE day < 'infinity';
    ALTER TABLE new_name RENAME v TO w;
    UPDATE new_name SET w = 'renamed' WHERE id = 1;
    TRUNCATE added;
    INSERT INTO added VALUES (9, 'after');
    ALTER TABLE whole ADD COLUMN c text DEFAULT 'd';
    DELETE FROM whole WHERE a = 2;
    """,
)
"""What happens before each batch."""

TABLES = (
    ("keyed", "endless", "whole", "added", "old_name", "gone", "idle"),
    ("keyed", "endless", "whole", "added", "new_name", "idle"),
    ("keyed", "endless", "whole", "added", "new_name", "idle"),
)
"""The tables after each."""


class RecordedRounds(NamedTuple):
    """The log of a server after each round, and what its tables had then, by their full names."""

    logs: tuple[Path, ...]
    rows: tuple[Mapping[str, list[tuple[Any, ...]]], ...]


def record_rounds(shop: Shop, rounds: Sequence[Sequence[str]], tables: Sequence[Collection[str]]) -> RecordedRounds:
    """Run rounds of statements, and capture each; ``tables`` are those after each round, schema ``public`` left out."""
    logs, rows = list[Path](), list[Mapping[str, list[tuple[Any, ...]]]]()
    for number, (statements, names) in enumerate(zip(rounds, tables, strict=True)):
        shop.execute(*statements)
        shop.capture(snapshot=True)
        logs.append(shutil.copytree(shop.directory, shop.directory.with_name(f"log {number}")))
        with shop.connect() as connection:
            found = {name: connection.execute(f"SELECT * FROM {name}".encode()).fetchall() for name in names}
        rows.append({name if "." in name else f"public.{name}": each for name, each in found.items()})
    return RecordedRounds(tuple(logs), tuple(rows))


def check_equal(spark: Any, shop: Shop, warehouse: Path, names: Collection[str]) -> None:
    """Compare tables of a warehouse with those of the server, row by row."""
    opened = open_log(spark, shop.directory)
    for name in names:
        columns = opened.table(f"public.{name}").current_columns
        found = stored_rows(spark, warehouse, f"public.{name}")
        assert {"_commit_lsn", "_seq", "_untyped", *columns.names} == set(found.column_names)
        rows = found.select([*columns.names, "_untyped"])
        differs = difference(rows, fetch_table(shop.dsn, "public", name, columns))
        assert differs is None, f"{name}: {differs}"


def open_differences(spark: Any, shop: Shop, warehouse: Path, names: Iterable[str]) -> dict[str, str]:
    """Return how the rows that have not ended, of the histories of tables, differ from those of the server."""
    opened, found = open_log(spark, shop.directory), dict[str, str]()
    for name in names:
        columns = opened.table(f"public.{name}").current_columns
        rows = stored_rows(spark, warehouse, f"public.{name}", history=True)
        rows = rows.filter(pc.is_null(rows["_ended_by"]))
        chosen = rows.select(columns.names).append_column("_untyped", _texts_of(columns.names, rows["_untyped"]))
        if differs := difference(chosen, fetch_table(shop.dsn, "public", name, columns)):
            found[name] = differs
    return found


def _texts_of(names: Collection[str], untyped: pa.ChunkedArray) -> pa.Array:
    """Return ``_untyped`` of some columns: those that were dropped stay in a history."""
    texts = ([each for each in row or () if each[0] in names] or None for row in untyped.to_pylist())
    return pa.array(list(texts), UNTYPED)
