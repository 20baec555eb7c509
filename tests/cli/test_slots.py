"""``pgoutput slots``: the slots of a server, and their problems."""

import json
from typing import Any

import psycopg
import pytest

from tests.cli.conftest import Run
from tests.postgres.shop import Shop

pytestmark = pytest.mark.server


def test_a_slot_that_nobody_reads(run: Run, shop: Shop) -> None:
    """Its lag, retained WAL and lack of a reader; with --check a problem is exit status 1."""
    shop.execute("INSERT INTO item SELECT g, repeat('x', 300) FROM generate_series(1, 1000) g")
    shown = run("slots", shop.dsn, "--slot", shop.slot)
    assert shown.exit_code == 0 and shop.slot in shown.stdout and "nobody reads it" in shown.stdout
    assert run("slots", shop.dsn, "--slot", shop.slot, "--check").exit_code == 1
    assert "its lag is" in run("slots", shop.dsn, "--slot", shop.slot, "--max-lag", 1000).stdout
    slot = _slot(run, shop)
    assert slot["lag_bytes"] > 300_000 and slot["retained_bytes"] >= slot["lag_bytes"]
    assert slot["confirmed_flush_lsn"].count("/") == 1 and slot["wal_status"] == "reserved"
    assert len(slot["problems"]) == 1


def test_a_slot_that_is_read(run: Run, shop: Shop) -> None:
    """It has no problem; an open transaction that keeps WAL is named."""
    shop.execute("INSERT INTO item VALUES (1, 'a')")
    with shop.capturing() as outcome:
        while _slot(run, shop)["active_pid"] is None:
            assert not outcome.done()
        assert run("slots", shop.dsn, "--slot", shop.slot, "--check").exit_code == 0
        with shop.connect() as writer:
            writer.execute("BEGIN; INSERT INTO item VALUES (2, 'open')")
            assert "transaction" in _slot(run, shop)["held_by"]


def test_missing_slots(run: Run, shop: Shop) -> None:
    """A slot that is not there, and a server that refuses, are one line; no password is shown."""
    result = run("slots", shop.dsn, "--slot", "nobody")
    assert result.exit_code == 1 and "replication slot 'nobody' does not exist" in result.output
    dsn = psycopg.conninfo.make_conninfo(shop.dsn, password="hunter2", dbname="nowhere")
    result = run("slots", dsn)
    assert result.exit_code == 1 and "nowhere" in result.output and "hunter2" not in result.output


def _slot(run: Run, shop: Shop) -> dict[str, Any]:
    [slot] = map(json.loads, run("slots", shop.dsn, "--slot", shop.slot, "--json").stdout.splitlines())
    found: dict[str, Any] = slot
    return found
