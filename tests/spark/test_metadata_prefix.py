"""Tables with columns that are called as those that are added: read, rebuilt, written, verified by another prefix."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner
from pyspark.sql import DataFrame

import pgoutput_construct as pgo
from pgoutput_construct.cli.group import cli
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import fetch_table
from pgoutput_construct.postgres.checksums import SourceServer
from pgoutput_construct.spark import open_log, read_table, register, write_tables
from pgoutput_construct.spark._replicate import replicate
from pgoutput_construct.spark._verify import VerifyOptions, verify
from tests.postgres.shop import PUBLICATION, Shop

pytestmark = [pytest.mark.server, pytest.mark.spark]

NAMES: Final = ("odd", "cased")
STATEMENTS: Final = (
    """CREATE TABLE odd (_seq int PRIMARY KEY, _op text, _commit_lsn numeric(5,2), _ended_by date, "_before.x" float4,
       "~_op" text, _before int, _unchanged text)""",
    "ALTER TABLE odd ALTER _op SET STORAGE EXTERNAL",
    """INSERT INTO odd SELECT i, repeat('b', 3000 + i), 'NaN', 'infinity', 'NaN', 'm', i, 'v'
       FROM generate_series(1, 6) i""",
    'CREATE TABLE cased (id int PRIMARY KEY, a int, "A" text)',
    "INSERT INTO cased VALUES (1, 2, 'b')",
    "CREATE TABLE texts (_untyped int PRIMARY KEY, v numeric(5,2))",
    "INSERT INTO texts VALUES (1, 'NaN'), (2, 0.5)",
)
CHANGES: Final = (
    "UPDATE odd SET _seq = _seq + 100 WHERE _seq < 3",
    "UPDATE odd SET _commit_lsn = 1, _ended_by = '2020-01-01' WHERE _seq = 3",
    "DELETE FROM odd WHERE _seq = 4",
    """UPDATE cased SET "A" = 'c'""",
)


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """Odd tables, copied and changed."""
    with Shop.create(server18, "metadata_prefix", tmp_path / "log") as shop:
        shop.execute(*STATEMENTS)
        shop.capture(snapshot=True)
        shop.execute(*CHANGES)
        shop.capture()
        yield shop


@pytest.fixture
def session(spark: Any) -> Iterator[Any]:
    """A session that tells names by their case."""
    spark.conf.set("spark.sql.caseSensitive", "true")
    yield spark
    spark.conf.unset("spark.sql.caseSensitive")


def _check_state(shop: Shop, log: Any, name: str, changes: DataFrame | None = None) -> None:
    """Compare a state with the server: ours is the last of its columns."""
    columns = log.table(f"public.{name}").current_columns
    state = log.state(f"public.{name}", changes)
    assert state.columns == [*columns.names, "pg_untyped"]
    expected = fetch_table(shop.dsn, "public", name, columns)
    # Arrow finds no column by a name that two have.
    texts = [None if row is None else dict(row) for row in expected.column(expected.num_columns - 1).to_pylist()]
    theirs = zip(*(expected.column(place).to_pylist() for place in range(len(columns))), texts, strict=True)
    ours = (tuple(row) for row in state.collect())
    assert sorted(map(repr, ours)) == sorted(map(repr, theirs))


def test_changes_and_states(session: Any, shop: Shop, tmp_path: Path) -> None:
    """Of a log with a prefix, also written and read back; without one the error names it."""
    usual = open_log(session, shop.directory)
    for read in usual.changes, usual.state:
        with pytest.raises(pgo.ChangeLogError, match=r"public\.odd: the column '_.*--metadata-prefix pg_"):
            read("odd")
    log = open_log(session, shop.directory, metadata_prefix="pg_")
    changes = log.changes("odd")
    found = changes.collect()
    assert changes.columns[-9:] == [f"pg_{name}" for name in (
        "op", "commit_lsn", "seq", "commit_time", "xid", "before", "unchanged", "untyped", "relation_oid",
    )]  # fmt: skip
    assert changes.schema["pg_before"].dataType.fieldNames() == changes.columns[:-9]
    moved = [row for row in found if (row["pg_op"], row["_seq"]) == ("update", 101)]
    assert [(row["pg_before"]["_seq"], row["pg_unchanged"]) for row in moved] == [(1, ["_op"])]
    assert dict(moved[0]["pg_untyped"]) == {"_commit_lsn": "NaN", "_ended_by": "infinity"}
    last = max(row["pg_commit_lsn"] for row in found)
    later = changes.where(f"pg_commit_lsn = {last} OR _seq > 100").collect()
    assert sorted(map(repr, later)) == sorted(
        repr(row) for row in found if row["pg_commit_lsn"] == last or row["_seq"] > 100
    )
    written = write_tables(log, tmp_path / "tables", ["public.odd"])["public.odd"]
    assert written.snapshot > 0 and written.update > 0
    _check_state(shop, log, "odd", read_table(session, written.path))
    assert log.missing_rows("odd").columns == ["pg_commit_lsn", "pg_seq", "pg_op", "pg_row", "pg_unchanged"]


def test_the_data_source(session: Any, shop: Shop) -> None:
    """The option of a batch, and of a stream; a live read has it, too. A prefix that is none is refused."""
    register(session)
    options = {"path": str(shop.directory), "table": "odd", "metadataPrefix": "pg_"}
    rows = session.read.format("pgoutput").options(**options).load()
    assert rows.where("pg_op = 'delete'").select("pg_before._seq").collect()[0][0] == 4
    some = session.read.format("pgoutput").options(**options, columns="_seq,_op").load()
    assert some.columns[:3] == ["_seq", "_op", "pg_op"] and some.count() == rows.count()
    # A filter by a column of the table is none by the position of a change.
    every = rows.collect()
    for name in "_seq", "pg_seq":
        value = every[0][name]
        assert rows.where(f"{name} = {value}").count() == sum(row[name] == value for row in every) > 0
    slot = "live_metadata_prefix"
    shop.execute(f"SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')", "DELETE FROM odd WHERE _seq = 5")
    live = {"dsn": shop.dsn, "slot": slot, "publications": json.dumps([PUBLICATION])}
    try:
        found = session.read.format("pgoutput").options(**live, table="odd", metadataPrefix="pg_").load()
        assert [(row["pg_op"], row["pg_before"]["_seq"]) for row in found.collect()] == [("delete", 5)]
        with pytest.raises(Exception, match=r"odd: the column '_.*the option metadataPrefix of the data source"):
            session.read.format("pgoutput").options(**live, table="odd").load()
    finally:
        shop.execute(f"SELECT pg_drop_replication_slot('{slot}')")
    with pytest.raises(Exception, match="invalid column prefix '1_'"):
        session.read.format("pgoutput").options(**options | {"metadataPrefix": "1_"}).load()
    with pytest.raises(Exception, match="applies only to the view table"):
        session.read.format("pgoutput").options(path=options["path"], view="events", metadataPrefix="pg_").load()


@pytest.mark.long
def test_a_stream(session: Any, shop: Shop, tmp_path: Path) -> None:
    """Micro-batches have the columns, and the rows, that a batch has; the next run has what came since."""
    register(session)
    for name in NAMES:
        _check_state(shop, open_log(session, shop.directory, metadata_prefix="pg_"), name)
    options = {"path": str(shop.directory), "table": "odd", "metadataPrefix": "pg_"}
    found, numbers = list[Any](), list[int]()

    def keep(rows: DataFrame, number: int) -> None:
        assert rows.columns[-1] == "pg_relation_oid"
        numbers.append(number)
        found.extend(rows.collect())

    for _ in range(2):
        source = session.readStream.format("pgoutput").options(**options).load()
        writer = source.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(120)
        every = session.read.format("pgoutput").options(**options).load()
        assert sorted(map(repr, found)) == sorted(map(repr, every.collect()))  # NaN is no NaN
        shop.execute("UPDATE odd SET _op = 'late', _commit_lsn = 'NaN' WHERE _seq = 5")
        shop.capture()
    assert len(numbers) == len(set(numbers)) == 2
    assert [row["pg_before"] for row in found if row["_op"] == "late"] == [None]


def test_the_option_of_tables(shop: Shop, tmp_path: Path) -> None:
    """``pgoutput tables`` refuses a prefix that columns cannot begin with."""
    result = CliRunner().invoke(
        cli, ["tables", str(shop.directory), "-o", str(tmp_path / "t"), "--metadata-prefix", "-"]
    )
    assert result.exit_code == 1 and "invalid column prefix '-'" in result.output


@pytest.mark.long
def test_verified(shop: Shop, session: Any, tmp_path: Path) -> None:
    """Verify compares the tables, whatever their columns are called."""
    warehouse = tmp_path / "wh"
    replicate(session, shop.directory, warehouse, metadata_prefix="pg_", tables=[*NAMES, "texts"])
    shop.execute("UPDATE odd SET _op = 'short' WHERE _seq = 5", "DELETE FROM odd WHERE _seq = 6")
    source = SourceServer(shop.dsn, shop.log().options.publications)
    with shop.capturing():
        found = list(verify(session, shop.directory, warehouse, source, options=VerifyOptions(wait=60)))
    assert [(each.table, each.equal, each.rows, each.problem) for each in found] == [
        ("public.cased", True, 1, ""),
        ("public.odd", True, 4, ""),
        ("public.texts", True, 2, ""),
    ]
