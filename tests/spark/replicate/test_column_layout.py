"""Tables with other added columns than usual, or none: exactly once all the same, also after another choice."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pgoutput_construct as pgo
from pgoutput_construct.columnar import UNTYPED
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.lake._notes import Warehouse
from pgoutput_construct.postgres import fetch_table
from pgoutput_construct.postgres.checksums import SourceServer
from pgoutput_construct.spark import open_log
from pgoutput_construct.spark._replicate import read_current, read_history, replicate
from pgoutput_construct.spark._replicate.column_layout import DEFAULT_LAYOUT
from pgoutput_construct.spark._verify import VerifyOptions, verify
from tests.crashes import Moment, killed
from tests.postgres.shop import Shop
from tests.spark.differences import difference, stored_rows
from tests.spark.replicate.rounds import ROUNDS, TABLES, open_differences
from tests.table_formats import ALL_FORMATS, SHORT_IN_PARQUET

pytestmark = [pytest.mark.server, pytest.mark.spark]

NUMBERS = ("CREATE TABLE numbers (id int PRIMARY KEY, n bigint, b bool)", "INSERT INTO numbers VALUES (1, 2, true)")


@pytest.fixture(params=SHORT_IN_PARQUET)
def into(request: pytest.FixtureRequest, lake: Any) -> str:
    """Each format in turn."""
    return str(request.param)


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path, into: str) -> Iterator[Shop]:
    """A database of its own."""
    with Shop.create(server18, f"layout_{into}", tmp_path / "log") as shop:
        yield shop


def _execute(shop: Shop, script: str) -> None:
    shop.execute(*filter(None, map(str.strip, script.split(";\n"))))
    shop.capture(snapshot=True)


def _check(spark: Any, shop: Shop, warehouse: Path, names: Collection[str], *added: str, types: str = "") -> None:
    """Compare tables of a warehouse with those of the server, and their added columns with what they should be."""
    opened = open_log(spark, shop.directory, types=types)
    for name in names:
        columns = opened.table(f"public.{name}").current_columns
        found = stored_rows(spark, warehouse, f"public.{name}")
        others = {*found.column_names} - {*columns.names}
        needs = {"_untyped"} if "_untyped" in added and name not in ("numbers", "gone") else set()
        assert others - {"_untyped"} == {*added} - {"_untyped"} and needs <= others, name
        rows = found if "_untyped" in others else found.append_column("_untyped", pa.nulls(len(found), UNTYPED))
        chosen = rows.select([*columns.names, "_untyped"])
        differs = difference(chosen, fetch_table(shop.dsn, "public", name, columns))
        assert differs is None, f"{name}: {differs}"


@pytest.mark.parametrize(
    ("into", "chosen", "options"),
    [
        pytest.param(into, chosen, options, id=f"{into}-{'few' if chosen else 'all'}-{options['metadata_columns']}")
        for options in ({"metadata_columns": "none", "untyped": "needed"}, {"metadata_columns": "all"})
        for chosen in (("keyed", "endless"), ())
        for into in ALL_FORMATS
        if into == "parquet" or (chosen == ()) == (options["metadata_columns"] == "all")  # these take minutes
    ],
    indirect=["into"],
)
@pytest.mark.long
def test_batch_by_batch(
    lake: Any, shop: Shop, into: str, tmp_path: Path, options: dict[str, str], chosen: tuple[str, ...]
) -> None:
    """Keys, full rows, infinite values, altered and renamed tables; killed on the way; verified in the end."""
    warehouse, is_all = tmp_path / "wh", options["metadata_columns"] == "all"
    added = ["_untyped", *(["_commit_lsn", "_seq", "_commit_time", "_xid"] if is_all else [])]
    shop.execute(*NUMBERS)
    for number, (script, names) in enumerate(zip(ROUNDS, TABLES, strict=True)):
        _execute(shop, script)
        own = {*(chosen or names), "numbers"}
        tables = [f"public.{name}" for name in own] if chosen else None
        given: dict[str, Any] = {"history": True, "tables": tables, **({} if number else options)}
        if number == 1:
            with killed(Moment.BEFORE_NOTE):
                replicate(lake, shop.directory, warehouse, into, **given)
        replicate(lake, shop.directory, warehouse, into, **given)
        _check(lake, shop, warehouse, own, *added)
        assert not open_differences(lake, shop, warehouse, own - {"added"})
        assert ("_untyped" in read_current(lake, warehouse, "numbers").columns) == is_all
        shop.execute("UPDATE numbers SET n = n + 1, b = NOT b", f"INSERT INTO numbers VALUES ({number + 2})")
    with shop.capturing():
        source = SourceServer(shop.dsn, shop.log().options.publications)
        verdicts = list(verify(lake, shop.directory, warehouse, source, options=VerifyOptions(60.0, 60)))
    assert [(each.table, each.problem) for each in verdicts if not each.equal] == []
    if is_all:
        rows = read_current(lake, warehouse, "keyed").where("id = 40").collect()
        history = read_history(lake, warehouse, "keyed").where("id = 40").collect()
        assert (
            rows[0]["_xid"] > 0 and rows[0]["_commit_time"] == history[0]["_valid_from"] == history[0]["_commit_time"]
        )


@pytest.mark.parametrize("into", SHORT_IN_PARQUET, indirect=True)
def test_own_columns_alone(lake: Any, shop: Shop, into: str, tmp_path: Path) -> None:
    """A value that a type cannot hold is an error of its table, with the remedy; another choice writes tables again."""
    warehouse = tmp_path / "wh"
    shop.execute(
        "CREATE TABLE t (id int PRIMARY KEY, at timestamptz, amount numeric, big text)",
        "ALTER TABLE t ALTER big SET STORAGE EXTERNAL",
        "INSERT INTO t SELECT i, now(), i / 4.0, repeat('b', 3000) FROM generate_series(1, 9) i",
        *NUMBERS,
    )
    for number, statements in enumerate(
        (
            (),
            (
                "UPDATE t SET id = -id WHERE id = 3",
                "DELETE FROM t WHERE id = 4",
                "UPDATE t SET amount = 9 WHERE id < 3",
            ),
        )
    ):
        shop.execute(*statements)
        shop.capture(snapshot=True)
        replicate(lake, shop.directory, warehouse, into, metadata_columns=None if number else "none")
        assert read_current(lake, warehouse, "t").columns == ["id", "at", "amount", "big"]
        _check(lake, shop, warehouse, ("t", "numbers"))
    shop.execute("INSERT INTO t VALUES (20, 'infinity', 1, 'x')", "UPDATE numbers SET n = 7")
    shop.capture()
    with pytest.raises(pgo.ChangeLogError, match=r"public\.t: values of 'at' cannot be represented .*--untyped needed"):
        replicate(lake, shop.directory, warehouse, into)
    _check(lake, shop, warehouse, ("numbers",))
    types = "timestamptz=string,numeric=decimal(38,10)"
    replicate(lake, shop.directory, warehouse, into, types=types)
    _check(lake, shop, warehouse, ("t", "numbers"), types=types)
    assert read_current(lake, warehouse, "t").schema["amount"].dataType.simpleString() == "decimal(38,10)"
    replicate(lake, shop.directory, warehouse, into, metadata_columns="lsn", types="")
    _check(lake, shop, warehouse, ("t", "numbers"), "_untyped", "_commit_lsn", "_seq")
    assert replicate(lake, shop.directory, warehouse, into).tables == {}  # type: ignore[union-attr]


@pytest.mark.parametrize("into", ["parquet"], indirect=True)
def test_names_and_rows_that_do_not_exist(spark: Any, shop: Shop, into: str, tmp_path: Path) -> None:
    """A table may have columns of these names; without positions a change of a row that does not exist is one, too."""
    warehouse = tmp_path / "wh"
    shop.execute(
        'CREATE TABLE t (id int PRIMARY KEY, _xid text, "_Commit_Time" text)', "INSERT INTO t VALUES (1, 'a', 'b')"
    )
    shop.capture(snapshot=True)
    replicate(spark, shop.directory, warehouse, metadata_columns="all")
    (row,) = read_current(spark, warehouse, "t").collect()
    assert (row["_xid"], row["_Commit_Time"], row["__xid"], row["__commit_time"]) == ("a", "b", None, None)
    with pytest.raises(pgo.PgoutputError, match="metadata_columns is 'many': it is one of none, lsn, all"):
        replicate(spark, shop.directory, warehouse, metadata_columns="many")
    with pytest.raises(pgo.PgoutputError, match="types: 'number' is not the name"):
        replicate(spark, shop.directory, warehouse, types="number=string")


@pytest.mark.parametrize("into", SHORT_IN_PARQUET[1:], indirect=True)
def test_merged_rows_that_do_not_exist(lake: Any, shop: Shop, into: str, tmp_path: Path) -> None:
    """Without positions, too, a MERGE fails for a change of a row that the table should have."""
    warehouse = tmp_path / "wh"
    shop.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t SELECT i, 'x' FROM generate_series(1, 5000) i"
    )
    shop.capture(snapshot=True)
    replicate(lake, shop.directory, warehouse, into, metadata_columns="none")
    shop.execute("UPDATE t SET v = 'y' WHERE id < 3")
    shop.capture()
    replicate(lake, shop.directory, warehouse, into)
    rows = read_current(lake, warehouse, "t").where("id <> 7").toArrow()
    from pgoutput_construct.spark._table_formats.sinks import open_sink

    sink = open_sink(into, Warehouse(warehouse))
    sink.prepare(lake)
    sink.overwrite(lake, Warehouse(warehouse).find("public.t"), lake.createDataFrame(rows))  # type: ignore[attr-defined]
    shop.execute("UPDATE t SET v = 'z' WHERE id = 7")
    shop.capture()
    with pytest.raises(pgo.ChangeLogError, match=r"public\.t.*\"id\":7.*UPDATE or DELETE of a row that does not exist"):
        replicate(lake, shop.directory, warehouse, into)


def test_what_is_given_again_changes_nothing() -> None:
    """Other metadata columns imply what becomes of ``_untyped``, the same ones do not."""
    made = DEFAULT_LAYOUT.chosen(metadata="none", untyped="needed")
    assert made.chosen(metadata="none") == made.chosen() == made
    assert DEFAULT_LAYOUT.chosen(metadata="none").untyped == "never"
    assert made.chosen(metadata="all").untyped == "always"
