"""``pgoutput status`` on a live server, with a warehouse."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pgoutput_construct import lake
from pgoutput_construct.cli.group import cli
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from tests.postgres.shop import Shop, wait_until

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """A database of its own, with two tables that are replicated."""
    with Shop.create(server18, "status", tmp_path / "log") as shop:
        shop.execute("CREATE TABLE bad (id int PRIMARY KEY, v int)")
        shop.execute("INSERT INTO item VALUES (1)", "INSERT INTO bad VALUES (1, 1)")
        shop.capture(snapshot=True)
        yield shop


def _status(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["status", *map(str, arguments)])


def test_a_log_and_its_server(shop: Shop) -> None:
    """What the server has in addition, and a slot that nobody reads."""
    shop.execute("INSERT INTO item SELECT generate_series(2, 1000)")
    done = _status(shop.directory, "--dsn", shop.dsn, "--json", "--check")
    found = json.loads(done.output)
    assert done.exit_code == 1 and found["problems"] == [
        f"nobody reads the slot '{shop.slot}', and it retains WAL: start pgoutput capture"
    ]
    assert found["server"]["lag_bytes"] > 50_000 and found["server"]["slot"]["wal_status"] == "reserved"
    with shop.capturing(status_interval=0.2), shop.connect() as connection:
        query = "SELECT active FROM pg_replication_slots WHERE slot_name = %s"
        wait_until(lambda: connection.execute(query, [shop.slot]).fetchone() == (True,))
        assert json.loads(_status(shop.directory, "--dsn", shop.dsn, "--json", "--check").output)["problems"] == []
        wait_until(lambda: _server(shop)["lag_bytes"] == 0)
        complete = shop.log().complete_lsn
        shop.execute("SELECT pg_create_restore_point('here')")  # WAL with nothing for the log: it gets no segment
        wait_until(lambda: shop.execute() > complete)  # no commit flushes it: the WAL writer does, within 200 ms
        wait_until(lambda: _server(shop)["lag_bytes"] == 0)
        assert shop.log().complete_lsn == complete
        assert f"slot {shop.slot} active, reserved" in _status(shop.directory, "--dsn", shop.dsn).output
    with shop.connect() as connection:
        connection.execute("SELECT pg_drop_replication_slot(%s)", [shop.slot])
    assert f"the server has no slot '{shop.slot}'" in _status(shop.directory, "--dsn", shop.dsn).output


@pytest.mark.parametrize("history", [False, True])
@pytest.mark.long
def test_a_warehouse(spark: Any, shop: Shop, tmp_path: Path, history: bool) -> None:
    """Each table, its lag, and why one is in trouble; another log's is refused."""
    from pgoutput_construct.spark import replicate

    warehouse, kinds = tmp_path / "wh", (False, True) if history else (False,)
    replicate(spark, shop.directory, warehouse, history=history)
    seq = shop.log().index.last_seq
    first = json.loads(_status(shop.directory, "--warehouse", warehouse, "--json").output)
    assert [(each["table"], each["history"], each["seq"]) for each in first["warehouse"]["tables"]] == [
        (name, kind, seq) for name in ("public.bad", "public.item") for kind in kinds
    ]
    assert {each["lag_seconds"] for each in first["warehouse"]["tables"]} == {0.0} and not first["problems"]
    assert [each["unread_rows"] for each in first["readers"]] == [0]
    shop.execute("INSERT INTO item VALUES (2)", "SELECT pg_sleep(0.3)", "INSERT INTO item VALUES (3)")
    shop.capture()
    assert {each["lag_seconds"] > 0.3 for each in _tables(shop, warehouse)} == {True}
    late = _status(shop.directory, "--warehouse", warehouse, "--check", "--max-lag", 0.3)
    assert late.exit_code == 1 and "problem: public.item lags " in late.output
    assert _status(shop.directory, "--warehouse", warehouse, "--check", "--max-lag", 600).exit_code == 0
    assert "give --warehouse" in _status(shop.directory, "--check", "--max-lag", 600).output
    for path in (warehouse / "public.bad").glob("*/*.parquet"):
        path.unlink()
    shop.execute("UPDATE bad SET v = 2")
    shop.capture()
    with pytest.raises(ValueError, match=r"public\.bad"):
        replicate(spark, shop.directory, warehouse, history=history)
    done = _status(shop.directory, "--warehouse", warehouse, "--check")
    assert done.exit_code == 1 and "problem: public.bad: " in done.output and "in trouble" in done.output
    by_name = {each["table"]: each for each in _tables(shop, warehouse) if not each["history"]}
    assert by_name["public.item"]["lag_seconds"] == 0 and by_name["public.bad"]["seq"] == seq
    assert [each.table for each in lake.status(warehouse).tables if each.trouble] == ["public.bad" for _ in kinds]
    with Shop.create(shop.server, "status_other", tmp_path / "other") as other:
        other.capture(snapshot=True)
        refused = _status(other.directory, "--warehouse", warehouse)
    assert refused.exit_code == 1 and "its tables are of another log: " in refused.output
    assert "no warehouse here" in _status(shop.directory, "--warehouse", tmp_path / "none").output


def _server(shop: Shop) -> dict[str, Any]:
    return dict(json.loads(_status(shop.directory, "--dsn", shop.dsn, "--json").output)["server"])


def _tables(shop: Shop, warehouse: Path) -> list[dict[str, Any]]:
    found = json.loads(_status(shop.directory, "--warehouse", warehouse, "--json").output)
    return list(found["warehouse"]["tables"])


def test_credentials_are_not_shown(shop: Shop, s3_address: str) -> None:
    """Those of the warehouse's URL are in neither form of the report."""
    from pgoutput_construct.changelog._store.address import open_store

    progress = {"format": "parquet", "batch": 1, "seq": 0, "done": True}
    open_store(s3_address, private=False).write("_warehouse.json", json.dumps(progress).encode())
    assert "secret" not in lake.status(s3_address).address
    done = _status(shop.directory, "--warehouse", s3_address)
    assert done.exit_code == 0 and "secret" not in done.output
