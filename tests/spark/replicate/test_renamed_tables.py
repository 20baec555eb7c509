"""Tables that are renamed at the source: moved rather than written again, exactly once, whatever is interrupted."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pgoutput_construct.changelog.prune import prune
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.lake._notes import Warehouse
from pgoutput_construct.spark._replicate import (
    Batch,
    Retention,
    maintain,
    read_current,
    read_history,
    read_missing,
    replicate,
)
from pgoutput_construct.spark._table_formats.delta_sink import DeltaSink
from pgoutput_construct.spark._table_formats.iceberg_sink import IcebergSink
from pgoutput_construct.spark._table_formats.parquet_sink import ParquetSink
from pgoutput_construct.wire import Lsn
from tests.crashes import after, before, killed
from tests.postgres.shop import Shop
from tests.spark.replicate.rounds import check_equal, open_differences
from tests.table_formats import SHORT_IN_PARQUET
from tools.rest_catalog import missing_rest_catalog, rest_catalog

pytestmark = [pytest.mark.server, pytest.mark.spark]

SINKS = {"parquet": ParquetSink, "delta": DeltaSink, "iceberg": IcebergSink}


class Lake(NamedTuple):
    """A warehouse, and how it is written."""

    spark: Any
    shop: Shop
    warehouse: Path
    into: str
    catalog: str | None

    def replicate(self, **options: Any) -> Batch:
        """Bring the tables up to the log."""
        done = replicate(
            self.spark, self.shop.directory, self.warehouse, self.into, catalog=self.catalog, history=True, **options
        )
        assert done is not None
        return done

    def execute(self, *statements: str) -> None:
        """Change the source, and capture it."""
        self.shop.execute(*statements)
        self.shop.capture(snapshot=True)

    def check(self, *names: str) -> None:
        """Compare tables and histories with the server; nothing else is noted, or left."""
        place = Warehouse(self.warehouse)
        noted = {f"public.{name}{suffix}" for name in names for suffix in ("", ".history")}
        assert {*place.datasets()} == noted
        assert place.existing_progress().moving == () and place.existing_progress().done
        if self.into != "iceberg":
            assert {path.name for path in self.warehouse.glob("public.*")} == noted
        check_equal(self.spark, self.shop, self.warehouse, names)
        assert not open_differences(self.spark, self.shop, self.warehouse, names)


@pytest.fixture(params=SHORT_IN_PARQUET)
def place(request: pytest.FixtureRequest, lake: Any, server18: EmbeddedServer, tmp_path: Path) -> Iterator[Lake]:
    """A warehouse of each format; of Iceberg in a REST catalog: one of files cannot rename tables."""
    into = str(request.param)
    with Shop.create(server18, f"renamed_{into}", tmp_path / "log") as shop:
        shop.execute(
            "DROP TABLE item",
            "CREATE TABLE a (id int PRIMARY KEY, v text, big text)",
            "ALTER TABLE a ALTER big SET STORAGE EXTERNAL",
            "INSERT INTO a SELECT i, 'v' || i, repeat('b', 3000) FROM generate_series(1, 5) i",
            "CREATE TABLE b (id int PRIMARY KEY, v text)",
            "INSERT INTO b VALUES (1, 'b')",
        )
        shop.capture(snapshot=True)
        if into != "iceberg":
            yield Lake(lake, shop, tmp_path / "wh", into, None)
            return
        if problem := missing_rest_catalog():
            pytest.skip(problem)
        with rest_catalog(tmp_path / "server") as address:
            name = f"renaming_{address.rpartition(':')[2]}"
            settings = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "rest", ".uri": address}
            for key, value in (settings | {".cache-enabled": "false"}).items():
                lake.conf.set(f"spark.sql.catalog.{name}{key}", value)
            yield Lake(lake, shop, tmp_path / "wh", into, name)


def test_moves(place: Lake) -> None:
    """With changes before and after, without any, in a chain; also where the log has only what came since."""
    place.replicate()
    place.execute("UPDATE a SET v = 'once more' WHERE id = 5")
    place.replicate()  # of a there are more commits than of the table that takes its name
    place.execute(
        "UPDATE a SET v = 'before' WHERE id = 1",
        "ALTER TABLE a RENAME TO c",
        "UPDATE c SET v = 'after' WHERE id = 2",
        "DELETE FROM c WHERE id = 3",
        "ALTER TABLE b RENAME TO a",
    )
    done = place.replicate()
    assert done.tables == {"public.c": "changed", "public.a": "renamed"} and not done.reasons
    assert done.removed == ("public.b",)
    place.check("a", "c")
    ended = read_history(place.spark, place.warehouse, "public.c").where("_ended_by IS NOT NULL")
    assert sorted(map(tuple, ended.select("id", "v", "_ended_by").collect())) == [
        (1, "v1", "update"),
        (2, "v2", "update"),
        (3, "v3", "delete"),
        (5, "v5", "update"),
    ]
    assert prune(place.shop.directory, Lsn(2**62), states=False).segments
    place.execute("INSERT INTO a VALUES (2, 'more')", "ALTER TABLE c RENAME TO d", "UPDATE d SET v = 'x' WHERE id = 4")
    done = place.replicate()
    assert done.tables == {"public.d": "changed", "public.a": "changed"} and done.removed == ("public.c",)
    place.check("a", "d")


@pytest.mark.long
def test_killed_while_moving(place: Lake) -> None:
    """At every step of a move; the table may also be renamed once more before the next batch."""
    place.replicate()
    sink, name = SINKS[place.into], "a"
    points = (
        before(sink, "move"),
        after(sink, "move"),
        before(Warehouse, "write_note"),
        after(Warehouse, "write_note"),
        after(Warehouse, "remove_note"),
        after(sink, "clear_moved"),
    )
    for number, point in enumerate(points):
        place.execute(
            f"UPDATE {name} SET v = 'in round {number}' WHERE id = {number % 5 + 1}",
            f"ALTER TABLE {name} RENAME TO round_{number}",
            f"INSERT INTO round_{number} VALUES ({number + 10}, 'new', NULL)",
        )
        name = f"round_{number}"
        with killed(point):
            place.replicate()
        if number % 2:
            place.execute(f"ALTER TABLE {name} RENAME TO again_{number}", f"DELETE FROM again_{number} WHERE id = 10")
            name = f"again_{number}"
        done = place.replicate()
        assert done.tables == {f"public.{name}": "changed"} and not done.reasons, (number, done)
        place.check(name, "b")


def test_an_error_while_moving(place: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is that of the table, also where the data have moved; the next batch settles it."""
    place.replicate()
    sink = SINKS[place.into]
    moving = sink.move

    def fail(*arguments: Any) -> bool:
        moving(*arguments)
        raise OSError("no answer")

    place.execute("ALTER TABLE a RENAME TO c", "INSERT INTO c VALUES (6, 'six', NULL)", "INSERT INTO b VALUES (2, 'x')")
    with monkeypatch.context() as patched:
        patched.setattr(sink, "move", fail)
        with pytest.raises(Exception, match="no answer"):
            place.replicate()
    assert read_current(place.spark, place.warehouse, "public.b").count() == 2
    done = place.replicate()
    assert done.tables == {"public.c": "changed"} and not done.reasons
    place.check("b", "c")


def test_an_error_while_clearing(place: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data are in their new place, and the former one is partly gone: the next batch of the process knows it."""
    place.replicate()
    sink, calls, batches = SINKS[place.into], list[str](), list[Batch]()
    clearing = sink.clear_moved

    def fail(self: Any, spark: Any, dataset: Any) -> None:
        calls.append(dataset.directory)
        clearing(self, spark, dataset)
        if len(calls) == 1:
            raise OSError("busy")

    place.execute("ALTER TABLE a RENAME TO c", "INSERT INTO c VALUES (6, 'six', NULL)")
    monkeypatch.setattr(sink, "clear_moved", fail)
    end = time.monotonic() + 60
    place.replicate(
        once=False,
        on_batch=batches.append,
        stop=lambda: (len(batches) > 1 and not batches[-1].troubled) or time.monotonic() > end,
    )
    assert batches[0].troubled.keys() == {"public.c"} and not batches[-1].troubled
    place.check("b", "c")


def test_what_cannot_be_moved(place: Lake) -> None:
    """Into the place of another table that was dropped: that is replaced at once, and the batch says why."""
    place.replicate()
    place.execute("DROP TABLE b", "ALTER TABLE a RENAME TO b", "UPDATE b SET v = 'x' WHERE id = 1")
    done = place.replicate()
    assert done.tables == {"public.b": "written"}
    assert done.reasons == {"public.b": "public.a was renamed, and could not be moved"}
    check_equal(place.spark, place.shop, place.warehouse, ["b"])


def test_a_place_of_others(place: Lake) -> None:
    """What others have under the new name stays, and the renamed table is in trouble until that is gone."""
    place.replicate()
    other = place.warehouse / "public.c"
    if place.catalog:
        place.spark.sql(f"CREATE TABLE {place.catalog}.public.c (mine int) USING iceberg")
    else:
        other.mkdir()
        (other / "mine.txt").write_text("mine")
    place.execute("ALTER TABLE a RENAME TO c", "ALTER TABLE b RENAME TO a", "INSERT INTO a VALUES (2, 'x')")
    with pytest.raises(PgoutputError, match="is not of this warehouse"):
        place.replicate()
    assert read_current(place.spark, place.warehouse, "public.a").count() == 2
    if place.catalog:
        assert place.spark.table(f"{place.catalog}.public.c").columns == ["mine"]
        place.spark.sql(f"DROP TABLE {place.catalog}.public.c")
    else:
        assert [path.name for path in other.iterdir()] == ["mine.txt"]
        (other / "mine.txt").unlink()
        other.rmdir()
    assert place.replicate().tables == {"public.c": "written"}
    place.check("a", "c")


def test_reports_of_missing_rows_move(place: Lake) -> None:
    """They are read under the new name."""
    place.replicate(on_missing="report")
    (note,) = (place.warehouse / "_datasets").glob("public.a.json")
    content = json.loads(note.read_text())
    place.execute("UPDATE a SET v = 'x' WHERE id = 1")
    place.replicate(on_missing="report")
    assert not read_missing(place.spark, place.warehouse, "public.a").count() and content["table"] == "public.a"
    folder = place.warehouse / "missing" / "public.a" / "after-1"
    place.spark.createDataFrame(
        [(1, 1, "update", {"id": "9"}, None)],
        "_commit_lsn bigint, _seq bigint, _op string, _row map<string, string>, _unchanged array<string>",
    ).write.parquet(str(folder))
    place.execute("ALTER TABLE a RENAME TO c", "UPDATE c SET v = 'x' WHERE id = 2")
    place.replicate(on_missing="report")
    assert read_missing(place.spark, place.warehouse, "public.c").count() == 1 and not folder.parent.exists()


@pytest.mark.parametrize("place", [pytest.param("iceberg", marks=pytest.mark.long)], indirect=True)
def test_a_new_table_with_the_former_name(place: Lake) -> None:
    """The files of the renamed one stay in their place: the new one has another, and neither loses any."""
    place.replicate()
    place.execute("ALTER TABLE a RENAME TO c")
    place.replicate()
    place.execute("CREATE TABLE a (id int PRIMARY KEY, n int)", "INSERT INTO a VALUES (1, 1)")
    place.replicate()
    places = {}
    for name in ("a", "c", "b"):
        rows = place.spark.sql(f"DESCRIBE TABLE EXTENDED {place.catalog}.public.{name}").collect()
        places[name] = next(row["data_type"] for row in rows if row["col_name"] == "Location")
    assert len({*places.values()}) == 3 and places["a"].startswith(f"{places['c']}-")
    for report in maintain(place.spark, place.warehouse, retention=Retention(age=0, grace=0, orphan_age=86_400.0)):
        assert not report.error and ("orphan files removed" in report.done) == (report.table != "public.c")
    place.check("a", "b", "c")


@pytest.mark.long
def test_reasons(place: Lake) -> None:
    """A batch says of each table that is written as a whole why it is."""
    assert place.replicate().reasons == {"public.a": "it is new", "public.b": "it is new"}
    place.execute("ALTER TABLE b DROP CONSTRAINT b_pkey, ADD PRIMARY KEY (v)", "UPDATE b SET id = 2")
    assert place.replicate().reasons == {"public.b": "its rows have no key that all changes have"}
    place.execute("TRUNCATE b", "INSERT INTO b VALUES (3, 'c')")
    assert place.replicate(write_mode="merge-on-read").reasons == {"public.b": "it was truncated"}
    place.execute("ALTER TABLE a RENAME v TO w", "UPDATE a SET w = 'x' WHERE id = 1")
    assert place.replicate().reasons == {"public.a": "columns were renamed: 'v' to 'w'"}
    assert place.replicate(resync=["public.a"]).reasons == {"public.a": "--resync"}
