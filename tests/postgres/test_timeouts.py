"""Timeouts that a role sets for its sessions do not affect a capture, which has deadlines of its own."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import ReplicationError, connect, create_slot, drop_slot, slot_health
from pgoutput_construct.postgres.checksums import SourceServer
from pgoutput_construct.postgres.slot_peek import open_slot
from tests.postgres.lost import ids, oid_of
from tests.postgres.shop import PUBLICATION, Shop, committed_ids, is_active, wait_until
from tools.faults.obstacles import TIMEOUTS, create_limited_role

pytestmark = pytest.mark.server

LONG = 1.3  # seconds: longer than each of them


@pytest.fixture
def limited(server: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """A shop whose captures connect as a role that has every timeout."""
    with (
        Shop.create(server, "limited", tmp_path / "log", two_phase=False) as shop,
        shop.connect() as admin,
        create_limited_role(admin, "limited") as shop.path,
    ):
        yield shop


@contextmanager
def writing(shop: Shop, row: int) -> Iterator[None]:
    """Keep a transaction open that writes, for a block; then commit."""
    with shop.server.connect(dbname=shop.dbname, autocommit=False) as writer:
        writer.execute("INSERT INTO item VALUES (%s, 'open')", [row])
        yield


@pytest.mark.differs_by_version
@pytest.mark.parametrize("replication", [False, True], ids=["ordinary", "replication"])
def test_timeouts_of_the_role_are_disabled(limited: Shop, replication: bool) -> None:
    """On every connection, whatever the server's release has."""
    with connect(limited.path(limited.dsn), replication=replication) as connection:
        assert connection.info.user == "limited"
        for name, since in TIMEOUTS.items():
            if connection.info.server_version >= since:
                assert connection.execute(f"SHOW {name}".encode()).fetchall() == [("0",)]


@pytest.mark.parametrize(
    "snapshot", [pytest.param(False, id="slot", marks=pytest.mark.long), pytest.param(True, id="snapshot")]
)
def test_a_slot_is_created_however_long_it_takes(limited: Shop, snapshot: bool) -> None:
    """The server waits for a transaction that writes; the copies, the stream and what looks at them outlive theirs."""
    oid, rows = oid_of(limited), [1, *range(3, 20_003), 30_000]
    limited.execute("INSERT INTO item SELECT 1, 'a'")
    with limited.connect() as connection:
        drop_slot(connection, limited.slot)
    with limited.capturing(create_slot=True, snapshot=snapshot, status_interval=0.3, heartbeat=0.5) as outcome:
        with writing(limited, 2):
            wait_until(lambda: outcome.done() or is_active(limited))
            time.sleep(LONG)
            assert not outcome.done()
        wait_until(lambda: outcome.done() or is_created(limited))
        limited.execute("INSERT INTO item SELECT g, repeat('x', 100) FROM generate_series(3, 20002) g")
        time.sleep(LONG)
        end = limited.execute("INSERT INTO item VALUES (30000, 'z')")
        wait_until(lambda: outcome.done() or limited.confirmed() >= end)
    assert outcome.result().reconnects == 0
    if snapshot:
        assert ids(limited.log(), oid) == sorted([2, *rows])
    else:
        assert committed_ids(limited.log()) == rows[1:]


def is_created(shop: Shop) -> bool:
    """Return whether the slot has come to the position from which it sends changes."""
    return any(slot.confirmed_lsn is not None for slot in slot_health(shop.dsn, shop.slot))


def test_one_transaction_is_decoded_however_long_it_takes(limited: Shop) -> None:
    """A decoded transaction is one of the walsender, too (transaction_timeout, PostgreSQL 17)."""
    if limited.server.version >= 17:
        limited.execute("ALTER ROLE limited SET transaction_timeout = '100ms'")
    limited.execute("INSERT INTO item SELECT g, repeat('x', 300) FROM generate_series(1, 40000) g")
    result = limited.capture(proto_version=1, streaming="off")
    assert result.reconnects == 0 and len(committed_ids(limited.log())) == 40_000


def test_a_snapshot_is_held_and_read_however_long_it_takes(limited: Shop) -> None:
    """As a verification does it; a slot that is read live, too."""
    with SourceServer(limited.path(limited.dsn), [PUBLICATION]).held() as held:
        time.sleep(LONG)
        held.connection.execute(f"SELECT pg_sleep({LONG})")
        held.connection.execute("SELECT count(*) FROM public.item")
    with limited.connect() as connection:
        create_slot(connection, "limited_live")
    try:
        with open_slot(limited.path(limited.dsn), "limited_live") as slot:
            limited.execute("INSERT INTO item SELECT g, 'a' FROM generate_series(1, 60000) g")
            time.sleep(LONG)
            assert len(slot.ends()) == 1
    finally:
        limited.execute("SELECT pg_drop_replication_slot('limited_live')")


def test_slot_timeout_still_ends_the_creation(limited: Shop) -> None:
    """``slot_timeout`` is what says for how long a slot may be waited for."""
    with limited.connect() as connection:
        drop_slot(connection, limited.slot)
    with writing(limited, 1), pytest.raises(ReplicationError, match=r"was not created in 0\.5 seconds"):
        limited.capture(create_slot=True, slot_timeout=0.5)
