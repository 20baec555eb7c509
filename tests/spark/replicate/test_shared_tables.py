"""Tables that schemas share: one table for those of a name, with a column for the schema; compared with the server."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import types as T  # noqa: N812 - as Spark's documentation has it

import pgoutput_construct as pgo
from pgoutput_construct import lake as lake_tables
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.lake._directories import SHARED as SHARED_MARK
from pgoutput_construct.lake._notes import Dataset, Warehouse
from pgoutput_construct.lake._versions import Version, VersionShape
from pgoutput_construct.postgres import fetch_table, snapshot
from pgoutput_construct.postgres.checksums import SourceServer
from pgoutput_construct.spark import open_log
from pgoutput_construct.spark._replicate import Batch, Retention, maintain, read_current, replicate
from pgoutput_construct.spark._replicate.dataset_names import DatasetNames
from pgoutput_construct.spark._table_formats.shared_tables import SharedDelta, SharedIceberg, SharedTables
from pgoutput_construct.spark._table_formats.sink import WriteOptions
from pgoutput_construct.spark._verify import verify
from tests.crashes import Moment, after, before, killed
from tests.postgres.shop import Shop
from tests.spark.differences import difference
from tests.spark.histories import table_of
from tests.spark.logs import write_orders

SINKS = {"delta": SharedDelta, "iceberg": SharedIceberg}
FORMATS = (pytest.param("delta", marks=pytest.mark.long), "iceberg")
SHARED: Any = {"namespace": "lake", "schema_column": "tenant"}


class Tenants(NamedTuple):
    """A warehouse, and the schemas of a server."""

    spark: Any
    shop: Shop
    warehouse: Path
    into: str

    def replicate(self, **options: Any) -> Batch:
        """Bring the tables up to the log."""
        done = replicate(self.spark, self.shop.directory, self.warehouse, self.into, **SHARED | options)
        assert done is not None
        return done

    def execute(self, *statements: str) -> None:
        """Change the source, and capture it."""
        self.shop.execute(*statements)
        self.shop.capture(snapshot=True)

    def table(self, name: str = "orders") -> Any:
        """Return the shared table as any reader finds it."""
        place = self.warehouse / f"lake.{name}"
        if self.into == "delta":
            return self.spark.read.format("delta").load(str(place))
        return self.spark.read.format("iceberg").load(str(self.warehouse / "lake" / name))

    def check(self, columns: str, *schemas: str, name: str = "orders") -> None:
        """Compare the shared table with the union of the schemas at the server, and each schema with its own rows."""
        names = columns.split(", ")
        texts = ", ".join(f"{name}::text" for name in names)
        queries = (f"SELECT '{schema}', {texts} FROM {schema}.{name}" for schema in schemas)
        with self.shop.connect() as connection:
            expected = connection.execute(" UNION ALL ".join(queries).encode()).fetchall()
        found = self.table(name).selectExpr("tenant", *(f"CAST({each} AS string)" for each in names)).collect()
        assert sorted(map(repr, map(tuple, found))) == sorted(map(repr, expected))
        noted = {each.version.table for each in Warehouse(self.warehouse).datasets().values()}
        assert {f"{schema}.{name}" for schema in schemas} == {each for each in noted if each.endswith(name)}
        for schema in schemas:
            own = open_log(self.spark, self.shop.directory).table(f"{schema}.{name}").current_columns
            mine = read_current(self.spark, self.warehouse, f"{schema}.{name}").select(*own.names, "_untyped")
            differs = difference(mine.toArrow(), fetch_table(self.shop.dsn, schema, name, own))
            assert differs is None, f"{schema}: {differs}"


@pytest.fixture(params=FORMATS)
def tenants(request: pytest.FixtureRequest, lake: Any, server18: EmbeddedServer, tmp_path: Path) -> Iterator[Tenants]:
    """Three schemas of one shape; of one of them a table is larger than what is overwritten rather than merged."""
    into = str(request.param)
    with Shop.create(server18, f"shared_{into}", tmp_path / "log") as shop:
        shop.execute("DROP TABLE item")
        for schema in ("a", "b", "c"):
            shop.execute(*_schema(schema))
        shop.capture(snapshot=True)
        yield Tenants(lake, shop, tmp_path / "wh", into)


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.parametrize("tenants", ["iceberg", pytest.param("delta", marks=pytest.mark.long)], indirect=True)
def test_another_prefix(tenants: Tenants) -> None:
    """Rows of a schema are read under the names that the warehouse gives to added columns."""
    tenants.replicate(metadata_prefix="pg_")
    found = read_current(tenants.spark, tenants.warehouse, "a.orders")
    assert found.columns == ["id", "v", "big", "pg_untyped", "pg_commit_lsn", "pg_seq"]
    assert sorted(row["v"] for row in found.collect()) == ["a1", "a2", "a3", "a4", "a5"]


def _schema(name: str) -> list[str]:
    return [
        f"CREATE SCHEMA {name}",
        f"CREATE TABLE {name}.orders (id int PRIMARY KEY, v text, big text)",
        f"ALTER TABLE {name}.orders ALTER big SET STORAGE EXTERNAL",
        f"INSERT INTO {name}.orders SELECT i, '{name}' || i, repeat('{name}', 3000) FROM generate_series(1, 5) i",
    ]


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.long
def test_schemas_that_change(tenants: Tenants) -> None:
    """Rows and columns of one change, another one comes and goes in a batch that is killed, and one is in trouble."""
    tenants.replicate()
    tenants.execute(
        "UPDATE a.orders SET v = 'changed' WHERE id = 1",
        "UPDATE a.orders SET id = 20 WHERE id = 2",
        "DELETE FROM a.orders WHERE id = 3",
        "ALTER TABLE b.orders ADD COLUMN w smallint",
        "INSERT INTO b.orders VALUES (6, 'six', NULL, 6)",
        *_schema("d"),
    )
    with killed(Moment.BEFORE_NOTE):
        tenants.replicate()
    (report,) = maintain(tenants.spark, tenants.warehouse)
    assert report.error is not None and "its last batch is not complete" in report.error
    tenants.execute(
        "DROP SCHEMA d CASCADE",
        "DROP SCHEMA c CASCADE",
        "UPDATE b.orders SET w = 1 WHERE id = 1",
        "ALTER TABLE a.orders ADD COLUMN w text",
        "INSERT INTO a.orders VALUES (6, 'six', NULL, 'text')",
    )
    with pytest.raises(pgo.PgoutputError, match=r"^a\.orders: its column 'w' is string, and in b\.orders .*int, which"):
        tenants.replicate()
    tenants.execute(
        "ALTER TABLE a.orders DROP COLUMN w",
        "INSERT INTO a.orders VALUES (7, 'seven', NULL)",
        "TRUNCATE b.orders",
        "INSERT INTO b.orders VALUES (1, 'again', NULL, 1)",
    )
    tenants.replicate()
    (report,) = maintain(tenants.spark, tenants.warehouse, retention=Retention(age=0, grace=0))
    assert not report.error
    tenants.check("id, v", "a", "b")
    found = tenants.table().where("w IS NOT NULL").select("tenant", "id", "w").collect()
    assert [tuple(row) for row in found] == [("b", 1, 1)]
    with pytest.raises(pgo.PgoutputError, match=r"a\.orders is in the table lake\.orders, which schemas share: .*'ten"):
        lake_tables.read(tenants.warehouse, "a.orders")


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("write_mode", [None, "merge-on-read"])
def test_changes_of_one_schema(tenants: Tenants, write_mode: str | None) -> None:
    """Inserts, updates, deletes, truncates and copies change its rows alone; schemas come, are renamed, and go."""
    tenants.replicate(write_mode=write_mode)
    chosen = "id, v"
    tenants.check(chosen, "a", "b", "c")
    tenants.execute(
        "INSERT INTO a.orders VALUES (6, 'new', NULL)",
        "UPDATE a.orders SET v = 'changed' WHERE id = 1",
        "UPDATE a.orders SET id = 20 WHERE id = 2",
        "DELETE FROM a.orders WHERE id = 3",
        "INSERT INTO b.orders VALUES (3, 'three', NULL) ON CONFLICT (id) DO UPDATE SET v = 'of b'",
    )
    done = tenants.replicate(write_mode=write_mode)
    assert done.tables == {"a.orders": "changed", "b.orders": "changed"} and not done.reasons
    tenants.check(chosen, "a", "b", "c")
    found = tenants.table().selectExpr("tenant", "id", "length(big) AS size").where("tenant = 'a'").collect()
    assert {row["id"]: row["size"] for row in found} == {1: 3000, 4: 3000, 5: 3000, 20: 3000, 6: None}
    tenants.execute("TRUNCATE b.orders", "INSERT INTO b.orders VALUES (1, 'again', NULL)", *_schema("d"))
    tenants.replicate(write_mode=write_mode)
    tenants.check(chosen, "a", "b", "c", "d")
    tenants.execute(
        "DROP SCHEMA c CASCADE", "ALTER SCHEMA d RENAME TO e", "UPDATE e.orders SET v = 'in e' WHERE id = 2"
    )
    tenants.replicate(write_mode=write_mode)
    tenants.check(chosen, "a", "b", "e")
    shop = tenants.shop
    shop.execute("UPDATE a.orders SET v = 'before the copy' WHERE id = 5")
    shop.capture()
    snapshot(shop.dsn, shop.directory, ["a.orders"])
    tenants.execute("UPDATE a.orders SET v = 'after it' WHERE id = 4", "INSERT INTO b.orders VALUES (9, 'nine', NULL)")
    done = tenants.replicate(write_mode=write_mode)
    assert done.reasons == {"a.orders": "it was copied again"}
    tenants.check(chosen, "a", "b", "e")
    with shop.capturing():
        source = SourceServer(shop.dsn, shop.log().options.publications)
        found = list(verify(tenants.spark, shop.directory, tenants.warehouse, source))
    assert {each.table: (each.equal, each.problem) for each in found} == dict.fromkeys(
        ("a.orders", "b.orders", "e.orders"), (True, "")
    )
    with pytest.raises(
        pgo.PgoutputError, match=r"a\.orders is in the table lake\.orders, which schemas share: .*'tenant'"
    ):
        lake_tables.read(tenants.warehouse, "a.orders")


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.long
def test_columns_of_several_shapes(tenants: Tenants) -> None:
    """The shared table has those of all; a type that differs is an error of its table, which names the other one."""
    tenants.replicate()
    tenants.execute(
        "ALTER TABLE a.orders ADD COLUMN w int",
        "UPDATE a.orders SET w = id, v = 'with w' WHERE id < 3",
        "ALTER TABLE b.orders DROP COLUMN v",
        "UPDATE b.orders SET id = 30 WHERE id = 3",
    )
    tenants.replicate()
    rows = tenants.table().selectExpr("tenant", "id", "v", "w").collect()
    found = {(row["tenant"], row["id"]): (row["v"], row["w"]) for row in rows}
    assert found["a", 1] == ("with w", 1) and found["a", 4] == ("a4", None)
    assert found["b", 30] == (None, None) and found["c", 1] == ("c1", None) and len(found) == 15
    assert "v" not in read_current(tenants.spark, tenants.warehouse, "b.orders").columns
    tenants.execute("ALTER TABLE c.orders ADD COLUMN w text", "INSERT INTO c.orders VALUES (6, 'c6', NULL, 'text')")
    said = (
        r"^c\.orders: its column 'w' is string, and in a\.orders int, which share the table lake\.orders: alter one of "
        "them at the source, exclude the column"
    )
    with pytest.raises(pgo.PgoutputError, match=said):
        tenants.replicate()
    assert read_current(tenants.spark, tenants.warehouse, "c.orders").count() == 5
    tenants.replicate(rename_columns={"c.orders.w": "w_text"})
    found = tenants.table().where("w_text IS NOT NULL").select("tenant", "id", "w", "w_text").collect()
    assert [tuple(row) for row in found] == [("c", 6, None, "text")]
    tenants.execute("ALTER TABLE c.orders DROP COLUMN w", "UPDATE c.orders SET v = 'x' WHERE id = 1")
    tenants.replicate()
    tenants.check("id", "a", "b", "c")
    tenants.execute('CREATE TABLE a.own (id int PRIMARY KEY, "Tenant" text)', "INSERT INTO a.own VALUES (1, 'x')")
    with pytest.raises(pgo.PgoutputError, match=r"^a\.own has a column 'tenant' itself: exclude that"):
        tenants.replicate()


@pytest.mark.parametrize(
    ("sink", "columns", "expected"),
    [
        (
            SharedIceberg,
            {"tenant": "s", "arr": "a", "arr.element": "s"},
            "'arr.element' in .*what the column 'arr' con",
        ),
        (SharedIceberg, {"tenant": "s", "m.key": "s", "m": "m"}, "'m.key' in .*what the column 'm' contains"),
        (SharedIceberg, {"tenant": "s", "1a": "s", "_1a": "s"}, "'_1a' in .*exclude the column of the two that this"),
        (SharedIceberg, {"_file": "s", "id": "s"}, "'_file' in .*; choose another --schema-column"),
        (SharedIceberg, {"tenant": "s", "x": "s", "X": "s"}, None),
        (SharedDelta, {"tenant": "s", "x": "s", "X": "s"}, "'X' in the table lake.t, which schemas share: .*'x'"),
        (SharedDelta, {"tenant": "s", "arr": "a", "arr.element": "s", "1a": "s", "_1a": "s"}, None),
    ],
)
def test_columns_of_the_whole(
    tmp_path: Path, sink: Callable[..., SharedTables], columns: dict[str, str], expected: str | None
) -> None:
    """Columns that schemas have by themselves, and the format not in one table, are refused with what to do."""
    text = T.StringType()
    kinds = {"s": text, "a": T.ArrayType(text), "m": T.MapType(text, text)}
    whole = T.StructType([T.StructField(name, kinds[kind]) for name, kind in columns.items()])
    shape = VersionShape({}, (), (), "d", None)
    dataset = Dataset(f"lake.t{SHARED_MARK}b", Version("b.t", 1, 1, 1, (1, 1), shape))
    shared = sink(Warehouse(tmp_path), WriteOptions(schema_column=next(iter(columns))))
    with nullcontext() if expected is None else pytest.raises(pgo.PgoutputError, match=f"^b.t: .*{expected}"):
        shared._check_whole(dataset, whole)


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.long
def test_columns_that_the_whole_cannot_have(tenants: Tenants) -> None:
    """They are the error of the schema that adds the second one; the others are brought up to date."""
    one, two = ("1a", "_1a") if tenants.into == "iceberg" else ("x", "X")
    tenants.execute(f'ALTER TABLE a.orders ADD COLUMN "{one}" text', "UPDATE a.orders SET v = 'new' WHERE id = 1")
    tenants.replicate()
    for number in range(2):
        tenants.execute(
            *([f'ALTER TABLE b.orders ADD COLUMN "{two}" text'] if number == 0 else []),
            *(f"UPDATE {schema}.orders SET v = '{number}' WHERE id = 2" for schema in ("a", "b", "c")),
        )
        with pytest.raises(pgo.PgoutputError, match=rf"b\.orders: .* cannot have the column '{two}' in the table"):
            tenants.replicate()
        found = tenants.table().where("id = 2").select("tenant", "v").collect()
        assert sorted(map(tuple, found)) == [("a", str(number)), ("b", "b2"), ("c", str(number))]


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.long
def test_wider_types(tenants: Tenants) -> None:
    """A schema at a time, as migrations do it: the shared table has the wider type, rows of others are as they were."""
    tenants.replicate()
    tenants.execute(
        "ALTER TABLE a.orders ALTER id TYPE bigint", "INSERT INTO a.orders VALUES (3000000000, 'big', NULL)"
    )
    if tenants.into == "delta":
        with pytest.raises(pgo.PgoutputError, match=r"^a\.orders: its column 'id' is bigint, and in b\.orders int"):
            tenants.replicate()
        return
    tenants.replicate()
    tenants.check("id, v", "a", "b", "c")
    tenants.execute("UPDATE b.orders SET v = 'narrow' WHERE id = 1", "DELETE FROM b.orders WHERE id = 2")
    done = tenants.replicate(write_mode="merge-on-read")
    assert done.tables == {"b.orders": "changed"} and not done.reasons
    tenants.check("id, v", "a", "b", "c")
    assert dict(read_current(tenants.spark, tenants.warehouse, "b.orders").dtypes)["id"] == "int"


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.long
def test_killed(tenants: Tenants) -> None:
    """While the shared table is created, and while the rows of a dropped one are removed from it."""
    sink = SINKS[tenants.into]
    for point in (before(sink, "_create"), after(sink, "_create")):
        with killed(point):
            tenants.replicate(workers=1)
    tenants.replicate()
    tenants.check("id, v", "a", "b", "c")
    for owner, name in ((sink, "remove"), (Warehouse, "remove_note")):
        for point in (before(owner, name), after(owner, name)):
            tenants.execute("DROP TABLE IF EXISTS c.orders", "UPDATE b.orders SET v = v || '+'")
            with killed(point):
                tenants.replicate()
    tenants.replicate()
    tenants.check("id, v", "a", "b")


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.long
def test_killed_before_a_drop(tenants: Tenants, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first rows of a schema are there, their note is not, and its table goes before the batch is repeated."""
    tenants.replicate()
    tenants.execute(*_schema("d"))
    with killed(Moment.BEFORE_NOTE):
        tenants.replicate()
    assert {row["tenant"] for row in tenants.table().collect()} == {"a", "b", "c", "d"}
    tenants.execute("DROP SCHEMA d CASCADE", "UPDATE a.orders SET v = 'changed' WHERE id = 1")
    with monkeypatch.context() as patched:
        patched.setattr(SharedTables, "remove", _raising_error)
        tenants.replicate()
    assert [each.table for each in Warehouse(tenants.warehouse).existing_progress().unnoted] == ["d.orders"]
    tenants.replicate()
    assert not Warehouse(tenants.warehouse).existing_progress().unnoted
    tenants.check("id, v", "a", "b", "c")


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.long
def test_a_note_that_cannot_be_read(tenants: Tenants, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its write had no answer, and it cannot be read then: what it describes may be there, and is not removed."""
    tenants.replicate()
    tenants.execute(*_schema("d"))
    writing = Warehouse.write_note

    def fail(self: Warehouse, dataset: Any) -> None:
        writing(self, dataset)
        raise OSError("no answer")

    with monkeypatch.context() as patched, pytest.raises(pgo.ChangeLogError, match="no answer"):
        patched.setattr(Warehouse, "write_note", fail)
        patched.setattr(Warehouse, "dataset", _raising_error)
        tenants.replicate()
    assert not Warehouse(tenants.warehouse).existing_progress().done
    assert {row["tenant"] for row in tenants.table().collect()} == {"a", "b", "c", "d"}
    tenants.execute("UPDATE d.orders SET v = 'changed' WHERE id = 1")
    tenants.replicate()
    tenants.check("id, v", "a", "b", "c", "d")


def _raising_error(*_: object) -> None:
    raise pgo.PgoutputError("no answer either")


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.long
def test_maintenance(tenants: Tenants) -> None:
    """It is that of the shared table, once for all schemas; versions of those that have not changed are known after."""
    tenants.replicate()
    for number in range(10, 13):
        tenants.execute(f"INSERT INTO a.orders VALUES ({number}, 'x', NULL)")
        tenants.replicate()
    reports = list(maintain(tenants.spark, tenants.warehouse, retention=Retention(age=0, grace=0)))
    assert len(reports) == 1 and not reports[0].error
    tenants.execute("UPDATE b.orders SET v = 'after' WHERE id = 1")
    warehouse = Warehouse(tenants.warehouse)
    with killed(Moment.BEFORE_NOTE):
        tenants.replicate()
    assert not warehouse.existing_progress().done
    tenants.replicate()
    tenants.check("id, v", "a", "b", "c")


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.parametrize("tenants", ["iceberg", pytest.param("delta", marks=pytest.mark.long)], indirect=True)
def test_a_table_of_others(tenants: Tenants) -> None:
    """It is refused, or replaced as a whole."""
    place = tenants.warehouse / ("lake.orders" if tenants.into == "delta" else "lake/orders")
    place.mkdir(parents=True)
    (place / "mine.txt").write_text("mine")
    with pytest.raises(pgo.PgoutputError, match="is not of this warehouse"):
        tenants.replicate()
    assert (place / "mine.txt").exists()
    tenants.replicate(adopt=True)
    tenants.check("id, v", "a", "b", "c")
    assert not (place / "mine.txt").exists()


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.long
def test_odd_names(tenants: Tenants) -> None:
    """A schema may be called anything: in statements, as a partition, and in the names of files."""
    odd = "it's @ \\ a.b/c=%41 é"
    tenants.execute(f'CREATE SCHEMA "{odd}"', f'CREATE TABLE "{odd}".orders (id int PRIMARY KEY, v text, big text)')
    for number in (1, 2):
        tenants.execute(
            f"INSERT INTO \"{odd}\".orders VALUES ({number}, 'odd', NULL)",
            f"UPDATE \"{odd}\".orders SET v = v || '+'",
            f"INSERT INTO a.orders VALUES ({number + 10}, 'x', NULL)",
        )
        tenants.replicate(write_mode="merge-on-read")
        rows = tenants.table().where("v LIKE 'odd%'").select("tenant", "id", "v").collect()
        expected = {1: [(1, "odd+")], 2: [(1, "odd++"), (2, "odd+")]}
        assert sorted(map(tuple, rows)) == [(odd, *each) for each in expected[number]]
    tenants.execute(f'DROP SCHEMA "{odd}" CASCADE')
    tenants.replicate()
    tenants.check("id, v", "a", "b", "c")


def test_names() -> None:
    """A schema is part of the directory of a dataset, however it is called."""
    names = DatasetNames.parse("lake", None, "tenant")
    assert names.directory(table_of(full=False), is_history=False) == "lake.t@public"
    for namespace, column, said in [
        (None, "tenant", r"'tenant' of the schema is for tables that schemas share: give --namespace"),
        ("lake", "a b", "schema column 'a b': it may have letters"),
        ("lake", "", "schema column '': it may have letters"),
    ]:
        with pytest.raises(pgo.PgoutputError, match=said):
            DatasetNames.parse(namespace, None, column)


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.parametrize(
    ("into", "options", "said"),
    [
        ("parquet", {}, r"tables of Parquet are not shared by schemas \(--schema-column\): choose delta or iceberg"),
        ("iceberg", {"history": True}, r"\(--schema-column\) have no --history \(history=\)"),
        ("iceberg", {"soft_delete": True}, r"\(--schema-column\) have no --soft-delete \(soft_delete=\)"),
        ("iceberg", {"partition_by": {"a.orders": ["id"]}}, r"have no --partition-by \(partition_by=\)"),
    ],
)
def test_what_they_have_not(lake: Any, tmp_path: Path, into: str, options: dict[str, Any], said: str) -> None:
    """It is refused before anything is written."""
    write_orders(tmp_path / "log", range(2))
    given = {name: value for name, value in options.items() if name != "partition_by"}
    if "partition_by" in options:
        given["partition_by"] = {"public.orders": ["id"]}
    with pytest.raises(pgo.PgoutputError, match=said):
        replicate(lake, tmp_path / "log", tmp_path / "wh", into, **SHARED | given)
    assert Warehouse(tmp_path / "wh").progress() is None
