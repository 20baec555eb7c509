"""The tables of the attack on copies: their writers, and their expected contents."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from psycopg import sql

from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.changelog._facts.copies import latest_copies
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.postgres import connect
from tools.faults.replay import replay

__all__ = ["ALTERATIONS", "LATER", "TABLES", "WRITES", "differences", "published"]

_BIG: Final = "CASE WHEN g %% 50 = 0 THEN (SELECT string_agg(md5(g::text || i), '') FROM generate_series(1, 80) i) END"

TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "keyed": (
        "CREATE TABLE keyed (id int PRIMARY KEY, name text, big text)",
        f"INSERT INTO keyed SELECT g, 'name ' || g, {_BIG} FROM generate_series(1, {{rows}}) g".replace("%%", "%"),
    ),
    "keyless": (
        "CREATE TABLE keyless (a int, b text)",
        "INSERT INTO keyless SELECT g % 7, 'twice' FROM generate_series(1, {rows}) g",
    ),
    "whole": (
        "CREATE TABLE whole (a int, b text)",
        "ALTER TABLE whole REPLICA IDENTITY FULL",
        "CREATE INDEX ON whole (a)",
        "INSERT INTO whole SELECT g / 2, 'row' FROM generate_series(1, {rows}) g",
    ),
    "parts": (
        "CREATE TABLE parts (id int, part int, v text, PRIMARY KEY (id, part)) PARTITION BY LIST (part)",
        "CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1)",
        "CREATE TABLE parts_2 (v text, gone int, part int NOT NULL, id int NOT NULL, PRIMARY KEY (id, part))",
        "ALTER TABLE parts_2 DROP COLUMN gone",
        "ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES IN (2)",
        "INSERT INTO parts SELECT g, 1 + g % 2, 'part' FROM generate_series(1, {rows}) g",
    ),
    "filtered": (
        "CREATE TABLE filtered (id int PRIMARY KEY, v text)",
        "INSERT INTO filtered SELECT g, 'f' FROM generate_series(1, {rows}) g",
    ),
    "listed": (
        "CREATE TABLE listed (id int PRIMARY KEY, shown text, hidden text)",
        "INSERT INTO listed SELECT g, 's', 'h' FROM generate_series(1, {rows}) g",
    ),
    "generated": (
        "CREATE TABLE generated (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) STORED, v text)",
        "INSERT INTO generated (id, v) SELECT g, 'g' FROM generate_series(1, {rows}) g",
    ),
    'Odd "name" ü': (
        'CREATE TABLE "Odd ""name"" ü" ("a b" int PRIMARY KEY, "it\'s" text)',
        'INSERT INTO "Odd ""name"" ü" SELECT g, E\'tab\\t back\\\\ line\\n\' FROM generate_series(1, {rows}) g',
    ),
    "cleared": (
        "CREATE TABLE cleared (id serial PRIMARY KEY, v text)",
        "INSERT INTO cleared (v) SELECT 'c' FROM generate_series(1, {rows}) g",
    ),
    "altered": (
        "CREATE TABLE altered (id serial PRIMARY KEY, v text)",
        "INSERT INTO altered (v) SELECT 'a' FROM generate_series(1, {rows}) g",
    ),
    "empty": ("CREATE TABLE empty (id int PRIMARY KEY)",),
    "later": (
        "CREATE TABLE later (id int PRIMARY KEY, v text)",
        "INSERT INTO later SELECT g, 'l' FROM generate_series(1, {rows}) g",
    ),
}
"""Each by its name, with what makes it and its rows."""

_PUBLISHED: Final = {"filtered": "filtered WHERE (id % 2 = 0)", "listed": "listed (id, shown)"}
_COLUMNS: Final = {"listed": ["id", "shown"], "generated": ["id", "v"]}
_ROWS: Final = {"filtered": "id % 2 = 0"}
LATER: Final = "later"
"""It is published while others are copied."""

WRITES: Final = (
    "INSERT INTO keyed VALUES (-{n}, 'new', repeat('n', 3000))",
    "UPDATE keyed SET name = 'changed {n}' WHERE id = {row}",
    "UPDATE keyed SET id = 1000000000 - {n} WHERE id = {row}",
    "DELETE FROM keyed WHERE id = {row}",
    "INSERT INTO keyless SELECT {n}, 'new' FROM generate_series(1, 5)",
    "DELETE FROM whole WHERE ctid = (SELECT ctid FROM whole WHERE a = {row} LIMIT 1)",
    "UPDATE whole SET b = '{n}' WHERE a = {row}",
    "INSERT INTO whole VALUES ({row}, 'row')",
    "UPDATE parts SET v = '{n}' WHERE id = {row}",
    "UPDATE parts SET part = 3 - part WHERE id = {row}",
    "UPDATE filtered SET v = '{n}' WHERE id = {row}",
    "UPDATE filtered SET id = 1000000000 - {n} WHERE id = {row}",
    "UPDATE listed SET shown = '{n}' WHERE id = {row}",
    "INSERT INTO generated (id, v) VALUES (-{n}, 'g')",
    'DELETE FROM "Odd ""name"" ü" WHERE "a b" = {row}',
    "INSERT INTO cleared (v) VALUES ('{n}')",
    "UPDATE altered SET v = NULL WHERE id = {row}",
    "INSERT INTO altered DEFAULT VALUES",
    "UPDATE later SET v = '{n}' WHERE id = {row}",
    "INSERT INTO keyed SELECT -1000000000 - {n}00 - i, 'streamed' FROM generate_series(1, 50) i",
)
"""What one transaction or another does; ``n`` is another number each time, ``row`` one of the first rows."""

ALTERATIONS: Final = (
    "TRUNCATE cleared",
    "ALTER TABLE altered ADD COLUMN c{n} int",
    "ALTER TABLE altered ALTER id TYPE bigint",
    "ALTER TABLE altered ALTER id TYPE int",
    "TRUNCATE cleared RESTART IDENTITY",
    "VACUUM FULL altered",
)
"""What is done now and then, by itself."""


def published(names: tuple[str, ...]) -> str:
    """Return tables as a publication names them."""
    return ", ".join(_PUBLISHED.get(name) or '"' + name.replace('"', '""') + '"' for name in names)


def differences(dsn: str, log: ChangeLog) -> list[str]:
    """Say which tables of a log are not those of the source; raises ChangeLogError where one has no copy."""
    names = {copy.name: oid for oid, copy in latest_copies(log.index).items()}
    if missing := set(TABLES) - set(names):
        raise ChangeLogError(f"tables without a copy: {', '.join(sorted(missing))}")
    tables, found = replay(log), []
    for name in TABLES:
        source = _source(dsn, name)
        columns = source.pop("columns")
        logged = Counter(tuple(row.get(column) for column in columns) for row in tables[names[name]])
        more, less = logged - source["rows"], source["rows"] - logged
        if more or less:
            shown = f"{more.total()} rows too many {list(more)[:3]}, {less.total()} missing {list(less)[:3]}"
            found.append(f"{name}: {shown}")
    return found


def _source(dsn: str, name: str) -> dict[str, Any]:
    with connect(dsn, replication=False) as connection, connection.cursor() as cursor:
        query = "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"
        quoted = 'public."' + name.replace('"', '""') + '"'
        columns = _COLUMNS.get(name) or [row[0] for row in cursor.execute(query, [quoted])]
        copy_rows = sql.SQL("COPY (SELECT {} FROM {} WHERE {}) TO STDOUT").format(
            sql.SQL(", ").join(map(sql.Identifier, columns)),
            sql.Identifier("public", name),
            sql.SQL(_ROWS.get(name, "true")),
        )
        with cursor.copy(copy_rows) as copy:
            rows = Counter(tuple(None if value is None else value.encode() for value in row) for row in copy.rows())
    return {"columns": columns, "rows": rows}
