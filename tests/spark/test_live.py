"""A real server's workload through the whole job: the rebuilt tables equal the source."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg.conninfo import make_conninfo

from pgoutput_construct.columnar.row_checksums import ByHash
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import fetch_table
from pgoutput_construct.postgres.checksums import SourceServer
from pgoutput_construct.spark import OpenLog, compare, open_log, read_table, write_tables
from pgoutput_construct.spark._verify.part_checksums import TEXTS, checksums
from pgoutput_construct.wire.messages import BY_TAG
from tests.live import workload
from tests.live.capture import drop_slot
from tests.spark.differences import difference
from tests.spark.logs import capturing

pytestmark = [pytest.mark.server, pytest.mark.spark]

TABLES = """
CREATE TABLE chain (id int PRIMARY KEY, note text, big text, grid int[]);
ALTER TABLE chain ALTER big SET STORAGE EXTERNAL, ALTER grid SET STORAGE EXTERNAL;
CREATE TABLE evolve (id int PRIMARY KEY, n int, v text);
CREATE TABLE cases (id int PRIMARY KEY, "A" int, a int);
CREATE TABLE endless (day date, n numeric(5, 2));
ALTER TABLE endless REPLICA IDENTITY FULL;
CREATE TABLE turns (id int PRIMARY KEY, code text NOT NULL UNIQUE, big text);
ALTER TABLE turns ALTER big SET STORAGE EXTERNAL;
CREATE TABLE anew (id int PRIMARY KEY, v text);
ALTER PUBLICATION pub ADD TABLE chain, evolve, cases, endless, turns, anew;
"""

CHANGES = """
INSERT INTO chain SELECT i, 'row ' || i, repeat('b', 3000 + i),
    array_fill(i, ARRAY[30, 30]) FROM generate_series(1, 5) i;
UPDATE chain SET id = 10 WHERE id = 1;
UPDATE chain SET id = 1 WHERE id = 2;
UPDATE chain SET id = 2 WHERE id = 10;
UPDATE chain SET id = 11, note = 'moved' WHERE id = 3;
UPDATE chain SET id = 12 WHERE id = 11;
UPDATE chain SET note = 'and changed' WHERE id = 12;
DELETE FROM chain WHERE id = 4;
INSERT INTO chain VALUES (4, 'again', 'short', NULL);
UPDATE chain SET note = 'short' WHERE id = 4;
INSERT INTO evolve VALUES (1, 1, 'one'), (2, 2, 'two');
ALTER TABLE evolve ALTER n TYPE bigint;
ALTER TABLE evolve ADD extra text;
UPDATE evolve SET extra = 'x' WHERE id = 1;
ALTER TABLE evolve DROP v;
INSERT INTO evolve VALUES (3, 30000000000, 'y');
ALTER TABLE evolve RENAME TO evolved;
UPDATE evolved SET n = n + 1;
INSERT INTO cases VALUES (1, 2, 3);
INSERT INTO endless VALUES ('infinity', 'NaN'), ('infinity', 'NaN'), ('-infinity', 1), ('0044-03-15 BC', NULL);
DELETE FROM endless WHERE n = 1;
UPDATE endless SET day = 'infinity' WHERE n IS NULL;
INSERT INTO turns SELECT i, 'code ' || i, repeat('b', 3000 + i) FROM generate_series(1, 6) i;
UPDATE turns SET id = 7 WHERE id = 1;
ALTER TABLE turns REPLICA IDENTITY USING INDEX turns_code_key;
UPDATE turns SET id = id + 10;
UPDATE turns SET code = 'moved' WHERE id = 12;
DELETE FROM turns WHERE id = 13;
ALTER TABLE turns REPLICA IDENTITY FULL;
UPDATE turns SET id = id + 10 WHERE id > 14;
DELETE FROM turns WHERE id = 14;
BEGIN;
UPDATE turns SET code = code || '!';
ALTER TABLE turns REPLICA IDENTITY DEFAULT;
UPDATE turns SET id = id + 1 WHERE id = 12;
DELETE FROM turns WHERE id = 25;
COMMIT;
INSERT INTO anew VALUES (1, 'old'), (2, 'old');
DROP TABLE anew;
CREATE TABLE anew (id int PRIMARY KEY, v text);
ALTER PUBLICATION pub ADD TABLE anew;
INSERT INTO anew VALUES (2, 'new');
"""

ODD = '"Odd schema.ü"."Straße ""x"". 表"'
EQUAL = ("public.chain", "public.turns", "public.typed", ODD)
"""Tables that are published whole, of most kinds;"""
ALIKE = (
    "public.evolved",
    "public.endless",
    "public.cases",
    "public.anew",
    "public.rooted",
    "public.no_columns",
    "public.item",
    "public.by_index",
    "public.full_row",
    "public.listed",
    "public.generated",
    "public.leafed_2",
    "public.child",
)
"""and others, some of which differ from these for the server alone. The workload's others hide rows or columns, or get
values from ALTER TABLE."""

SUMMED = ("public.typed", "public.full_row", "public.no_columns", ODD)
"""Tables that Spark compares, and whose checksums are compared: one with every type, one without a key, one without a
column, odd names."""


def _execute(connection: "psycopg.Connection[Any]", script: str) -> None:
    for statement in script.split(";\n"):
        connection.execute(statement.encode())


@pytest.fixture(scope="module")
def dsn(server18: EmbeddedServer) -> Iterator[str]:
    """A database of its own with the workload's tables and ours, and a two-phase slot."""
    dbname = "spark_workload"

    def connect() -> "psycopg.Connection[Any]":
        return server18.connect(dbname=dbname)

    with server18.connect() as admin:
        admin.execute(f"CREATE DATABASE {dbname}".encode())
    workload.create_schema(connect, 18)
    with connect() as connection:
        _execute(connection, TABLES)
        connection.execute("SELECT pg_create_logical_replication_slot('spark_workload', 'pgoutput', false, true)")
    yield make_conninfo(server18.dsn, dbname=dbname)
    with connect() as connection:
        drop_slot(connection, "spark_workload")


@pytest.fixture(scope="module")
def log(spark: Any, server18: EmbeddedServer, dsn: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenLog]:
    """The workload, captured while it runs."""
    directory = tmp_path_factory.mktemp("live") / "log"
    with capturing(dsn, "spark_workload", workload.PUBLICATIONS, directory) as catch_up:
        hooks = {"record": lambda: None, "sync": catch_up}
        workload.run("workload.sql", lambda: server18.connect(dbname="spark_workload"), 18, hooks)
        with server18.connect(dbname="spark_workload") as connection:
            _execute(connection, CHANGES)
    spark.conf.set("spark.sql.caseSensitive", "true")
    yield open_log(spark, directory)
    spark.conf.set("spark.sql.caseSensitive", "false")


@pytest.mark.parametrize("names", [EQUAL, pytest.param(ALIKE, marks=pytest.mark.long)], ids=["most kinds", "others"])
def test_rebuilt_tables_equal_the_source(log: OpenLog, dsn: str, tmp_path: Path, names: Sequence[str]) -> None:
    """Streamed, rolled back, prepared, key-changing and TOASTed: row by row what SELECT gives."""
    written = write_tables(log, tmp_path, names)
    for name in names:
        table = log.table(name)
        state = log.state(name, read_table(log.spark, written[name].path))
        source = fetch_table(dsn, table.namespace, table.name, table.current_columns)
        if name in SUMMED:
            comparison = compare(state, source)
            assert comparison.equal and comparison.rows == comparison.rebuilt_rows, f"{name}: {comparison}"
        else:
            assert difference(state.toArrow(), source) is None, name


def test_the_log_has_every_kind(log: OpenLog) -> None:
    """All nineteen messages were captured: streams and prepares, committed and rolled back."""
    assert {entry.payload[:1] for entry in log.log} == set(BY_TAG)


def test_a_difference_is_found(log: OpenLog, dsn: str) -> None:
    """One row less, and one that was changed behind our back."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        state, columns = log.state("public.no_key").persist(), log.table("public.no_key").current_columns
        assert compare(state, fetch_table(dsn, "public", "no_key", columns)).equal
        connection.execute("UPDATE no_key SET a = 2")
        comparison = compare(state, fetch_table(dsn, "public", "no_key", columns))
        assert (comparison.missing, comparison.unexpected, comparison.rows) == (1, 1, 1)
        assert [text[0] for text in comparison.examples] == ["-", "+"]


@pytest.mark.long
def test_checksums_agree(log: OpenLog, dsn: str) -> None:
    """Of every type, and of those by choice: Spark and the server compute one checksum of equal rows."""
    chosen = open_log(log.spark, log.log.store.address, types="numeric=decimal(38,10),uuid=binary")
    kinds = dict(
        zip(chosen.table("public.typed").columns.names, chosen.table("public.typed").columns.types, strict=True)
    )
    assert (kinds["uid"], kinds["num"], str(kinds["nums"].value_type)) == (
        pa.binary(), pa.decimal128(38, 10), "decimal128(38, 10)"
    )  # fmt: skip
    with SourceServer(dsn, workload.PUBLICATIONS).held() as held:
        for opened, name in [*((log, name) for name in SUMMED), (chosen, "public.typed")]:
            table = opened.table(name)
            source = held.table(table.relation_oid, table.current_columns)
            state = opened.state(name).withColumnRenamed("_untyped", TEXTS).persist()
            assert not isinstance(source, str)
            division = ByHash(table.key_columns or table.current, 3)
            assert dict(source.checksums(division)) == checksums(state, division), name
            state.unpersist()
