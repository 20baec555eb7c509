"""A warehouse against its source while both change: what is equal, what is not, and what is not there yet."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.cli.commands.verify_command import _lines
from pgoutput_construct.cli.group import cli
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.lake._notes import Warehouse
from pgoutput_construct.pgtypes.arrays import spark_quoted
from pgoutput_construct.postgres.checksums import SourceServer
from pgoutput_construct.spark._replicate import replicate
from pgoutput_construct.spark._table_formats.sinks import open_sink
from pgoutput_construct.spark._verify import TableVerdict, VerificationRecord, VerifyOptions, verify
from pgoutput_construct.spark._verify.expected_rows import near_the_end
from tests.postgres.shop import Shop, wait_until
from tools.background import in_background

pytestmark = [pytest.mark.server, pytest.mark.spark]

TABLES = """
CREATE TABLE orders (id bigint PRIMARY KEY, price numeric(12, 2), weight float8, note text, big text);
ALTER TABLE orders ALTER big SET STORAGE EXTERNAL;
CREATE TABLE named (code text, part int, amount numeric, PRIMARY KEY (code, part));
CREATE TABLE keyless (a int, b text);
ALTER TABLE keyless REPLICA IDENTITY FULL;
INSERT INTO orders SELECT i, i / 7.0, random(), 'order ' || i, repeat('x', 3000) FROM generate_series(1, 500) i;
INSERT INTO named SELECT 'Straße ' || i % 10, i, i / 3.0 FROM generate_series(1, 150) i;
INSERT INTO keyless SELECT i % 5, 'x' FROM generate_series(1, 50) i;
"""

WRITES = (
    "UPDATE orders SET price = price + 1 WHERE id % 10 = {0} % 10",
    "INSERT INTO orders VALUES (10000 + {0}, 'NaN', 'NaN', NULL, 'short')",
    "DELETE FROM orders WHERE id = {0} % 300",  # the tests tamper with rows behind these
    "UPDATE named SET part = part + 1000 WHERE part = {0}",
    "UPDATE keyless SET b = b || {0} WHERE ctid IN (SELECT ctid FROM keyless LIMIT 2)",
    "DELETE FROM keyless WHERE ctid IN (SELECT ctid FROM keyless LIMIT 1)",
    "INSERT INTO keyless VALUES ({0}, NULL), ({0}, NULL)",
)


@pytest.fixture(scope="module")
def shop(server18: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Tables with rows, copied into a log."""
    with Shop.create(server18, "verifying", tmp_path_factory.mktemp("verify") / "log") as shop:
        shop.execute(*(statement for statement in TABLES.split(";\n") if statement))
        shop.execute(f"SELECT pg_drop_replication_slot('{shop.slot}')")
        shop.options |= {"snapshot": True, "create_slot": True}
        shop.capture()
        yield shop


@pytest.fixture(scope="module")
def warehouse(spark: Any, shop: Shop) -> Path:
    """What was replicated of it."""
    place = shop.directory.parent / "warehouse"
    replicate(spark, shop.directory, place, once=True)
    return place


def verdicts(spark: Any, shop: Shop, warehouse: Path, **options: Any) -> dict[str, TableVerdict]:
    """Verify, with small parts."""
    source = SourceServer(shop.dsn, shop.log().options.publications)
    told = {"on_progress": options.pop("on_progress")} if "on_progress" in options else {}
    pace = VerifyOptions(wait=options.pop("wait", 60.0), rows=100, parts=6, **told)
    return {each.table: each for each in verify(spark, shop.directory, warehouse, source, options=pace, **options)}


def _write(shop: Shop, done: threading.Event) -> None:
    with shop.connect() as connection:
        number = 0
        while not done.is_set():
            number += 1
            for statement in WRITES:
                connection.execute(statement.format(number).encode())
            if number % 3 == 0:
                with connection.transaction(force_rollback=number % 2 == 0):
                    for statement in WRITES[:3]:
                        connection.execute(statement.format(50_000 + number).encode())
            done.wait(0.02)


@pytest.mark.parametrize(
    "tables",
    [["public.keyless", "public.orders"], pytest.param(None, marks=pytest.mark.long)],
    ids=["some tables", "all tables"],
)
def test_equal_while_it_is_written_to(spark: Any, shop: Shop, warehouse: Path, tables: list[str] | None) -> None:
    """Writers write, and the log goes on, behind a warehouse that stays as it was: each table is found equal."""
    progress = list[tuple[str, int, int]]()
    with shop.capturing(), in_background(lambda done: _write(shop, done)):
        wait_until(lambda: shop.execute() > shop.log().complete_lsn)
        found = verdicts(spark, shop, warehouse, on_progress=lambda *each: progress.append(each), tables=tables)
    names = tables or [f"public.{name}" for name in ("item", "keyless", "named", "orders")]
    assert [(name, verdict.equal, verdict.problem) for name, verdict in found.items()] == [
        (name, True, "") for name in names
    ]
    compared = {table: rows for table, rows, _ in progress}  # the last one of each
    assert compared == {name: found[name].rows for name in compared} and "public.orders" in compared
    assert found["public.orders"].parts > 4
    assert tables or ("public.named" in compared and found["public.named"].parts == 2)
    assert not (warehouse / "_verify.json").exists()


def _tamper(spark: Any, warehouse: Path) -> None:
    """Take a row out of a table in the warehouse, change two, and add one."""
    place = Warehouse(warehouse)
    sink = open_sink("parquet", place)
    (dataset,) = (each for each in place.datasets().values() if each.version.table == "public.orders")
    rows = sink.read(spark, dataset)
    price = F.when(F.col("id") == 407, F.lit(1).cast("decimal(12,2)")).otherwise(F.col("price"))
    note = F.when(F.col("id") == 401, "another").otherwise(F.col("note"))
    more = rows.where("id = 411").withColumn("id", F.lit(77_777).cast("bigint"))
    changed = rows.where("id <> 409").withColumns({"price": price, "note": note}).unionAll(more)
    later = replace(dataset, version=replace(dataset.version, batch=dataset.version.batch + 1))
    place.write_note(sink.replace(spark, later, changed, dataset))


@pytest.fixture
def altered(spark: Any, shop: Shop, tmp_path: Path) -> Path:
    """A warehouse in which rows are not those of the server."""
    shop.capture()
    replicate(spark, shop.directory, tmp_path / "wh", tables=["public.orders"])
    _tamper(spark, tmp_path / "wh")
    shop.execute("UPDATE orders SET note = 'late' WHERE id = 413")
    return tmp_path / "wh"


def test_what_differs_is_named(spark: Any, shop: Shop, altered: Path) -> None:
    """By its key, with the columns that differ; what was begun is not compared again."""
    with shop.capturing():
        found = verdicts(spark, shop, altered, tables=["public.orders"])["public.orders"]
    assert (found.equal, found.different_rows) == (False, 4) and 1 < found.different_parts < 5
    said = {int(each.key["id"] or 0): (each.kind, each.columns) for each in found.examples}
    assert said == {
        407: ("changed", ("price",)), 409: ("missing", ()), 401: ("changed", ("note",)), 77_777: ("unexpected", ())
    }  # fmt: skip
    assert next(each for each in found.examples if each.columns == ("note",)).warehouse == {"note": "another"}
    record = VerificationRecord(open_store(shop.directory.parent), "resume.json")
    record.record(found)
    earlier = verdicts(spark, shop, altered, tables=["public.orders"], record=record)["public.orders"]
    assert earlier == replace(found, is_earlier=True) and "was interrupted (--restart " in _lines(earlier)[0]
    record.restart()
    assert record.done("public.orders") is None
    record.record(replace(found, different_parts=0, different_rows=0, examples=()), after="405")
    with shop.capturing():
        again = verdicts(spark, shop, altered, tables=["public.orders"], record=record)["public.orders"]
    assert [each.kind for each in again.examples] == ["changed", "missing", "unexpected"]
    assert not (shop.directory.parent / "resume.json").exists()


@pytest.mark.long
def test_the_command_says_what_to_do(spark: Any, shop: Shop, altered: Path) -> None:
    """It shows rows that differ, what it waits for, and how a table is made right."""
    arguments = ["verify", shop.directory, "--dsn", shop.dsn, "--warehouse", altered, "--table", "public.orders"]
    with pytest.MonkeyPatch.context() as patch, shop.capturing():
        patch.setattr("pgoutput_construct.spark.spark_session", lambda *_, **__: nullcontext(spark))
        result = CliRunner().invoke(cli, [*map(str, arguments)])
    first, *rows = result.stdout.splitlines()
    begin, *waits, last = result.stderr.splitlines()
    assert result.exit_code == 1 and first.startswith("public.orders: DIFFERS: 4 rows in ")
    assert begin == "starting Spark (local[*]): this takes 10 to 30 seconds"
    assert all(re.match(r"the log is at \S+, waiting for |public\.orders: .*; waiting", each) for each in waits)
    assert (
        "  id = '401': note: 'order 401' on the server, 'another' in the warehouse" in rows
        and "  id = '409': missing in the warehouse" in rows
    )
    assert "run pgoutput snapshot DSN LOG --table public.orders to copy it again, and" in last


def test_what_cannot_be_compared(spark: Any, shop: Shop, warehouse: Path, tmp_path: Path) -> None:
    """A log that does not go on; a table that is gone; a warehouse or table that is none."""
    shop.execute("INSERT INTO item VALUES (7001, 'not captured')")
    with pytest.raises(PgoutputError, match="is its capture running"):
        verdicts(spark, shop, warehouse, wait=0.1)
    shop.execute("ALTER TABLE named RENAME COLUMN amount TO total")
    with shop.capturing():
        found = verdicts(spark, shop, warehouse, tables=["public.named"], wait=20.0)["public.named"]
    assert not found.equal and re.match(r".* altered.* run pgoutput replicate", found.problem)
    with pytest.raises(PgoutputError, match=r"no table public\.nothing: it has .*public\.item"):
        verdicts(spark, shop, warehouse, tables=["public.nothing"])
    with pytest.raises(PgoutputError, match="no warehouse here"):
        verdicts(spark, shop, tmp_path)


@pytest.mark.long
def test_generated_columns_that_are_not_published(spark: Any, shop: Shop, tmp_path: Path) -> None:
    """replicate, verify and log name them; nothing differs, and none of the commands fails."""
    shop.execute(
        "CREATE TABLE billed (id int PRIMARY KEY, price int, gross int GENERATED ALWAYS AS (price * 2) STORED,"
        "net int GENERATED ALWAYS AS (price / 2) VIRTUAL)",
        "INSERT INTO billed VALUES (1, 10), (2, 20)",
    )
    shop.capture()
    into = ["--warehouse", tmp_path / "warehouse", "--table", "public.billed"]
    text = "public.billed is in the log without its generated columns, which are not published: gross, net; compute"
    with pytest.MonkeyPatch.context() as patch, shop.capturing():
        for module in ("pgoutput_construct.spark", "pgoutput_construct.spark.formats"):
            patch.setattr(f"{module}.spark_session", lambda *_, **__: nullcontext(spark))
        done = {
            command: CliRunner().invoke(cli, [command, str(shop.directory), *map(str, arguments)])
            for command, arguments in {
                "replicate": ["--into", "parquet", "--once", "--json", "--spark", "always", *into],
                "verify": ["--dsn", shop.dsn, *into],
                "log": [],
            }.items()
        }
    for command, result in done.items():
        assert (result.exit_code, result.output.count(f"note: {text}")) == (0, 1), (command, result.output)
        assert ("starting Spark (local[*]): " in result.stderr) == (command != "log"), result.output
    assert "public.billed: equal: 2 rows" in done["verify"].stdout
    batch = json.loads(done["replicate"].stdout)
    assert (batch["event"], batch["tables"], batch["troubled"]) == ("batch", {"public.billed": "written"}, {})
    assert batch["unpublished"][0]["columns"] == ["gross", "net"] and "/" in batch["commit_lsn"]


ODD = """
CREATE SCHEMA "Odd.Schema";
CREATE TABLE "Odd.Schema"."a ""b"" `c`.d"
    ("k 1" int, "_lsn" text, "c.d`e" numeric, day date, PRIMARY KEY ("k 1", "_lsn"));
INSERT INTO "Odd.Schema"."a ""b"" `c`.d" SELECT i, '_' || i, 'NaN', 'infinity' FROM generate_series(1, 9) i;
CREATE TABLE plain (id int PRIMARY KEY, _valid_to text);
INSERT INTO plain VALUES (1, 'a'), (2, 'b');
CREATE TABLE op (id int PRIMARY KEY, _op text);
INSERT INTO op VALUES (1, 'a')
"""


@pytest.mark.long
def test_odd_names(spark: Any, server18: EmbeddedServer, tmp_path: Path) -> None:
    """Names in quotes, another prefix, histories; a column called ``_op``."""
    odd = '"Odd.Schema"."a ""b"" `c`.d"'
    with Shop.create(server18, "verifying_names", tmp_path / "log") as shop:
        shop.execute(*ODD.split(";\n"))
        shop.capture(snapshot=True)
        replicate(spark, shop.directory, tmp_path / "wh", history=True, metadata_prefix="pg_")
        shop.execute(f"""UPDATE {odd} SET "c.d`e" = 2.50 WHERE "k 1" < 4""", "UPDATE plain SET _valid_to = NULL")
        shop.capture()
        replicate(spark, shop.directory, tmp_path / "wh", history=True)
        shop.execute(f"""DELETE FROM {odd} WHERE "k 1" = 3""", "INSERT INTO plain VALUES (3, 'c')")
        with shop.capturing():
            found = verdicts(spark, shop, tmp_path / "wh")
            assert [(name, each.equal, each.rows) for name, each in found.items() if not each.problem] == [
                (odd, True, 8), ("public.item", True, 0), ("public.op", True, 1), ("public.plain", True, 3)
            ]  # fmt: skip
            place = Warehouse(tmp_path / "wh")
            dataset = next(
                each for each in place.datasets().values() if each.version.table == odd and not each.is_history
            )
            sink = open_sink("parquet", place)
            rows = sink.read(spark, dataset).where("`k 1` <> 5")
            later = replace(dataset, version=replace(dataset.version, batch=dataset.version.batch + 1))
            place.write_note(sink.replace(spark, later, rows, dataset))
            (wrong,) = verdicts(spark, shop, tmp_path / "wh", tables=[odd])[odd].examples
            assert (wrong.kind, wrong.key) == ("missing", {"k 1": "5", "_lsn": "_5"})


def test_quotes_of_elements(spark: Any, server18: EmbeddedServer) -> None:
    """An element is quoted as array_out() does it, also before what ends a line for Java, and not for PostgreSQL."""
    ends = ("", *"\n\r\x0b\x0c\x1c\x85\xa0\u2028\u2029", "\r\n", "\u2028\u2028")
    texts = [f"{text}{end}" for text in ("", "null", "NuLL", "nulls", "a", "{", '"', "\\") for end in ends]
    with server18.connect() as connection:
        lists = connection.execute("SELECT concat(ARRAY[t]) FROM unnest(%s::text[]) t", [texts]).fetchall()
    rows = spark.createDataFrame([(text,) for text in texts], "text string")
    found = rows.select(spark_quoted(F.col("text")).alias("quoted")).collect()
    assert [f"{{{row['quoted']}}}" for row in found] == [text for (text,) in lists]


def test_transactions_that_are_not_visible_yet() -> None:
    """Xids before the snapshot and after it, around the end of an epoch, and more than half of one ago."""
    half = 2**31
    assert near_the_end(np.array([5, half - 10, 2**32 - 20, 3]), 2**32 + 10).tolist() == [False, False, True, True]
    assert near_the_end(np.array([90, 100, 95]), 98).tolist() == [True, True, True]
