"""Slots: what their creation waits for, their health, and lost ones."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres import connect, create_slot, drop_slot, ensure_slot, slot_health
from pgoutput_construct.postgres._capture.slot_watch import HEARTBEAT_PREFIX
from pgoutput_construct.postgres._patience import Patience, Stopped
from pgoutput_construct.wire import Message
from tests.postgres.shop import Shop, is_active, messages, wait_until

pytestmark = pytest.mark.server


@contextmanager
def _writing(shop: Shop) -> Iterator["psycopg.Connection[Any]"]:
    """A transaction that has written, and is open until the block ends."""
    with shop.server.connect(dbname=shop.dbname, autocommit=False, application_name="slow") as writer:
        writer.execute("INSERT INTO item VALUES (0, 'a')")
        yield writer
        writer.rollback()


def test_slot_creation_reports_blockers_and_times_out(shop: Shop) -> None:
    """Open and prepared transactions are named within seconds; after the timeout nothing is left behind."""
    said: list[str] = []
    shop.execute("BEGIN", "INSERT INTO item VALUES (2, 'b')", "PREPARE TRANSACTION 'waits'")
    with shop.connect() as connection, _writing(shop):
        with pytest.raises(ReplicationError, match=r"not created in 2\.5 seconds.*(slow|waits)"):
            create_slot(connection, "late", timeout=2.5, on_wait=said.extend)
        assert not slot_health(connection, "late")
    assert "application slow, idle in transaction, open since" in said[0] or "prepared transaction 'waits'" in said[0]
    shop.execute("ROLLBACK PREPARED 'waits'")


def test_interrupted_slot_creation_leaves_no_slot(shop: Shop) -> None:
    """The statement is cancelled: the server would otherwise create the slot later, when nobody needs it."""
    asked = threading.Event()
    with (
        _writing(shop),
        connect(shop.dsn, patience=Patience(stop=lambda: "enough" if asked.is_set() else None)) as one,
    ):
        threading.Timer(0.5, asked.set).start()
        with pytest.raises(Stopped):
            create_slot(one, "stopped")
    with shop.connect() as connection:
        wait_until(lambda: not slot_health(connection, "stopped"))
        assert ensure_slot(connection, "stopped") and not ensure_slot(connection, "stopped")
        drop_slot(connection, "stopped")


def test_the_health_of_slots(shop: Shop) -> None:
    """Its reader, lag and retained WAL: by connection and by connection string."""
    (idle,) = slot_health(shop.dsn, shop.slot)
    assert (idle.active_pid, idle.wal_status, idle.problem) == (None, "reserved", None)
    assert idle.held_by.startswith("nobody reads it since ")
    shop.execute("INSERT INTO item SELECT g, repeat('x', 1000) FROM generate_series(1, 1000) g")
    with shop.capturing(), shop.connect() as connection, _writing(shop):
        wait_until(lambda: is_active(shop))
        health = {slot.name: slot for slot in slot_health(connection)}[shop.slot]
    assert f"pid {health.active_pid} (user postgres)" in health.held_by
    assert "transaction " in health.held_by and "user postgres, open since" in health.held_by
    assert idle.lag_bytes is not None and health.retained_bytes is not None
    assert health.retained_bytes > 1_000_000 > idle.lag_bytes


def test_a_lost_slot_is_reported_with_its_remedy(shop: Shop) -> None:
    """The server removed WAL that the slot needs: the capture says why, and what to do."""
    shop.execute("INSERT INTO item VALUES (1, 'a')")
    shop.capture()
    shop.execute("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'", "SELECT pg_reload_conf()")
    try:
        for _ in range(3):
            shop.execute("INSERT INTO item VALUES (2, 'b') ON CONFLICT DO NOTHING", "SELECT pg_switch_wal()")
        shop.execute("CHECKPOINT")
        with pytest.raises(ReplicationError, match=r"is lost \(wal_removed\).*start a new log"):
            shop.capture()
        (health,) = slot_health(shop.dsn, shop.slot)
        assert health.lost and health.wal_status == "lost"
    finally:
        shop.execute("ALTER SYSTEM RESET max_slot_wal_keep_size", "SELECT pg_reload_conf()")


def test_a_heartbeat_advances_the_slot_of_a_quiet_database(shop: Shop) -> None:
    """Nobody writes, and the slot moves; a role that may write nothing will do."""
    name = f"reader_{shop.dbname}"
    shop.execute(f"CREATE ROLE {name} LOGIN REPLICATION", f"ALTER ROLE {name} SET default_transaction_read_only = on")
    shop.path = lambda dsn: psycopg.conninfo.make_conninfo(dsn, user=name)
    start = shop.confirmed()
    with shop.capturing(heartbeat=0.05, transactional_heartbeat=True, status_interval=0.1):
        wait_until(lambda: shop.confirmed() > start and len(list(shop.directory.glob("segment*"))) > 0)
    beats = [message for _, message in messages(shop.log()) if isinstance(message, Message)]
    assert beats and {(beat.prefix, beat.flags, beat.content) for beat in beats} == {(HEARTBEAT_PREFIX, 1, b"")}
