"""Keys that are not what they seem: each format has the rows that the server has.

Some Spark takes for equal and PostgreSQL for two, of others not all columns are published.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from psycopg import sql
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.postgres import snapshot
from pgoutput_construct.spark import plain_errors
from pgoutput_construct.spark._log_view.change_columns import POSITION
from pgoutput_construct.spark._replicate import read_current, replicate, step_writer
from pgoutput_construct.spark._state.demands import Demand
from tests.postgres.shop import PUBLICATION, Shop
from tests.table_formats import SHORT_IN_PARQUET

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.usefixtures("compiled")]

TABLES = (
    "CREATE TABLE one (f float8 PRIMARY KEY, v text, big text)",
    "CREATE TABLE two (f float4, g float8[], v text, big text, PRIMARY KEY (f, g))",
    "ALTER TABLE one ALTER big SET STORAGE EXTERNAL",
    "ALTER TABLE two ALTER big SET STORAGE EXTERNAL",
    "INSERT INTO one SELECT f, 'first', repeat('b', 3000) FROM unnest('{0.0,NaN,1.5,-Infinity}'::float8[]) f",
    """INSERT INTO two SELECT f, array[f, 0.0, NULL], 'first', repeat('b', 3000)
    FROM unnest('{0.0,NaN,1.5,-Infinity}'::float8[]) f""",
)
ROUNDS = (
    # To -0.0, with a value that is not sent; both keys are in the batch.
    ("UPDATE one SET f = '-0.0' WHERE f = 0", "UPDATE two SET f = '-0.0', g = '{-0.0,-0.0,NULL}' WHERE f = 0"),
    # And back, in part; NaN goes and comes, and gets another key.
    (
        "UPDATE one SET f = 0.0, v = 'back' WHERE f = 0",
        "UPDATE two SET g = '{0.0,-0.0,NULL}' WHERE f = 0",
        "DELETE FROM one WHERE f = 'NaN'",
        "INSERT INTO one VALUES ('NaN', 'again')",
        "UPDATE two SET f = 7 WHERE f = 'NaN'",
        "UPDATE one SET v = 'same key' WHERE f = 1.5",
    ),
    # A row goes, and one with the other zero comes.
    (
        "DELETE FROM one WHERE f = 0",
        "INSERT INTO one VALUES ('-0.0', 'other')",
        "UPDATE two SET g = '{NaN,-0.0}' WHERE f = 0",
        "UPDATE one SET v = NULL WHERE f = 'NaN'",
    ),
)


@pytest.fixture(params=["parquet", pytest.param("parquet, by Spark", marks=pytest.mark.long), *SHORT_IN_PARQUET[1:]])
def into(request: pytest.FixtureRequest, lake: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each format in turn, and both ways into Parquet."""
    if "," in request.param:
        monkeypatch.setattr(step_writer, "produce", lambda *_: {})
    return str(request.param).partition(",")[0]


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path, into: str) -> Iterator[Shop]:
    """A database with the tables, copied into a log."""
    with Shop.create(server18, "exact_keys", tmp_path / "log") as shop:
        shop.execute(*TABLES)
        shop.capture(snapshot=True)
        yield shop


def test_zeros_and_nan(lake: Any, shop: Shop, into: str, tmp_path: Path) -> None:
    """After each batch the keys are those of the server, to the sign of a zero."""
    replicate(lake, shop.directory, tmp_path / "wh", into)
    for statements in ROUNDS:
        shop.execute(*statements)
        shop.capture()
        assert set(replicate(lake, shop.directory, tmp_path / "wh", into).tables.values()) == {"changed"}
        for name, columns in (("one", ("f", "v", "big")), ("two", ("f", "g", "v", "big"))):
            found = read_current(lake, tmp_path / "wh", f"public.{name}").select(*columns)
            with shop.connect() as connection:
                query = f"SELECT {', '.join(columns)} FROM {name}"
                expected = connection.execute(query.encode()).fetchall()
            # repr: 0.0 == -0.0, and no NaN is equal to another
            assert sorted(repr(tuple(row)) for row in found.collect()) == sorted(map(repr, expected))


def test_a_key_that_is_not_published_as_a_whole(lake: Any, server18: EmbeddedServer, into: str, tmp_path: Path) -> None:
    """Rows that have the published part of their key in common are all there; then the whole key is published."""
    with Shop.create(server18, "partial_keys", tmp_path / "log") as shop:
        name = sql.Identifier(PUBLICATION).as_string()
        shop.execute(
            "CREATE TABLE t (a int, b int, c text, PRIMARY KEY (a, b))",
            f"DROP PUBLICATION {name}",
            f"CREATE PUBLICATION {name} FOR TABLE t (a, c)",
            "INSERT INTO t VALUES (1, 1, 'one')",
        )
        shop.capture(snapshot=True)
        replicate(lake, shop.directory, tmp_path / "wh", into)
        shop.execute("INSERT INTO t VALUES (1, 2, 'two'), (2, 1, 'three')", "INSERT INTO t VALUES (1, 3, 'one')")
        shop.capture()
        replicate(lake, shop.directory, tmp_path / "wh", into)
        found = read_current(lake, tmp_path / "wh", "public.t").select("a", "c")
        assert sorted(map(tuple, found.collect())) == [(1, "one"), (1, "one"), (1, "two"), (2, "three")]
        shop.execute(f"ALTER PUBLICATION {name} SET TABLE t", "UPDATE t SET c = 'zwei' WHERE b = 2")
        shop.capture(snapshot=True)
        replicate(lake, shop.directory, tmp_path / "wh", into)
        found = read_current(lake, tmp_path / "wh", "public.t").select("a", "b", "c")
        assert sorted(map(tuple, found.collect())) == [(1, 1, "one"), (1, 2, "zwei"), (1, 3, "one"), (2, 1, "three")]


def test_a_column_of_a_key_that_is_dropped(lake: Any, server18: EmbeddedServer, into: str, tmp_path: Path) -> None:
    """Changes by the whole key are followed by DROP COLUMN, which drops the key too, and sends nothing."""
    with Shop.create(server18, "dropped_keys", tmp_path / "log") as shop:
        shop.execute(
            "CREATE TABLE t (a int, b int, v text, PRIMARY KEY (a, b))",
            "INSERT INTO t VALUES (1, 1, 'one'), (2, 1, 'two'), (3, 1, 'three')",
        )
        shop.capture(snapshot=True)
        replicate(lake, shop.directory, tmp_path / "wh", into)
        shop.execute(
            "UPDATE t SET v = 'eins' WHERE a = 1", "DELETE FROM t WHERE a = 2", "INSERT INTO t VALUES (2, 2, 'zwei')"
        )
        shop.execute("ALTER TABLE t DROP COLUMN b")
        shop.capture()
        replicate(lake, shop.directory, tmp_path / "wh", into)
        found = read_current(lake, tmp_path / "wh", "public.t").select("a", "v")
        assert sorted(map(tuple, found.collect())) == [(1, "eins"), (2, "zwei"), (3, "three")]


@pytest.mark.long
def test_a_value_that_another_row_had_under_the_key(
    lake: Any, server18: EmbeddedServer, into: str, tmp_path: Path
) -> None:
    """A row leaves a row filter and enters it again in one batch: its unsent value is not that of before."""
    with Shop.create(server18, "filtered_keys", tmp_path / "log") as shop:
        name = sql.Identifier(PUBLICATION).as_string()
        shop.execute(
            "CREATE TABLE docs (id int, active bool, doc text, PRIMARY KEY (id, active))",
            "ALTER TABLE docs ALTER doc SET STORAGE EXTERNAL",
            f"DROP PUBLICATION {name}",
            f"CREATE PUBLICATION {name} FOR TABLE docs WHERE (active)",
            "INSERT INTO docs VALUES (1, true, repeat('a', 3000)), (2, true, 'b')",
        )
        shop.capture(snapshot=True)
        replicate(lake, shop.directory, tmp_path / "wh", into)
        shop.execute(
            "UPDATE docs SET active = false WHERE id = 1",
            "UPDATE docs SET doc = repeat('b', 3000) WHERE id = 1",
            "UPDATE docs SET active = true WHERE id = 1",
            "INSERT INTO docs VALUES (3, true, 'c')",
        )
        shop.capture()
        for _ in range(2):
            with pytest.raises(ChangeLogError, match=r"public\.docs: .*'doc'.*: copy the table again .*--table"):
                replicate(lake, shop.directory, tmp_path / "wh", into)
        replicate(lake, shop.directory, tmp_path / "reported", into, on_missing="report")
        found = read_current(lake, tmp_path / "reported", "public.docs").select("id", "doc")
        assert sorted(map(tuple, found.collect())) == [(1, None), (2, "b"), (3, "c")]
        snapshot(shop.dsn, shop.directory, ["public.docs"])
        replicate(lake, shop.directory, tmp_path / "wh", into)
        found = read_current(lake, tmp_path / "wh", "public.docs").select("id", "doc")
        assert sorted(map(tuple, found.collect())) == [(1, "b" * 3000), (2, "b"), (3, "c")]


def test_the_text_of_a_refused_plan_is_not_taken_for_an_error_of_ours(lake: Any) -> None:
    """A plan may have in it what it would fail with; Spark's own refusal says what is wrong."""
    refused = Demand(table="public.t").refuse_row(
        F.struct(*(F.lit(1).alias(name) for name in POSITION)), F.col("there_is_none")
    )
    with pytest.raises(AnalysisException, match="there_is_none"), plain_errors():
        lake.range(1).select(refused)
