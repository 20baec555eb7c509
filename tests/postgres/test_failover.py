"""Failover to a standby, and captures of a standby: what continues, and what is refused."""

import itertools
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pgoutput_construct.changelog._facts.copies import copies_of
from pgoutput_construct.changelog._facts.lineage import lineage_of
from pgoutput_construct.changelog._segment.events import COPIED_CHUNKS, COPYING_TABLE, OPTIONS_CHANGED, events_of
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.postgres import ReplicationError, create_slot, slot_health
from pgoutput_construct.postgres._capture.preparation import parse_history
from pgoutput_construct.postgres._patience import Stopped
from pgoutput_construct.postgres._snapshot import copy_plans
from pgoutput_construct.postgres._snapshot.chunks import ChunkReader
from pgoutput_construct.wire import Lsn
from tests.postgres.lost import ids, oid_of
from tests.postgres.shop import Shop, committed_ids, wait_until
from tools.faults.standby import Standby

pytestmark = pytest.mark.server

_NUMBERS = itertools.count()
ROWS = "INSERT INTO item SELECT g, 'x' FROM generate_series({}, {}) g"


@pytest.fixture
def shop(own_server: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """A shop on a server that may be lost; its slot is synchronized to standbys."""
    with Shop.create(own_server, f"failover{next(_NUMBERS)}", tmp_path / "log", False, failover=True) as shop:
        yield shop


@pytest.mark.parametrize("own_server", [18, 19], indirect=True, ids="pg{}".format)
def test_an_old_primary_ahead_of_its_standby_is_refused(shop: Shop) -> None:
    """What the log has and the promoted standby never had: the log's end is not in the new primary's history."""
    with Standby.of(shop.server) as standby:
        there = _on(shop, standby)
        _create_on_standby(shop, there)
        shop.execute(ROWS.format(1, 10))
        standby.catch_up()
        standby.cut_off()
        shop.execute(ROWS.format(11, 110))
        shop.capture()
        ended = shop.log().complete_lsn
        shop.server.stop()
        standby.promote()
        for first in range(1001, 9001, 1000):
            there.execute(ROWS.format(first, first + 999))
        assert there.execute() > ended
        with pytest.raises(ChangeLogError, match=r"on timeline 1, but the server left .* for timeline 2.*initial copy"):
            there.capture()
        assert committed_ids(shop.log()) == [*range(1, 111)]
        there.capture(on_lost_slot="snapshot")
        there.execute(ROWS.format(11, 20))
        there.capture()
        assert ids(there.log(), oid_of(there)) == [*range(1, 21), *range(1001, 9001)]
        assert not lineage_of(there.log().index).stale
        shop.server.start()


def test_capture_continues_with_a_synchronized_slot_after_failover(shop: Shop) -> None:
    """The promoted standby has the slot and everything in the log: nothing is lost, and the log records it."""
    with Standby.of(shop.server, hot_standby_feedback="on", wal_receiver_status_interval="1") as standby:
        there = _on(shop, standby)
        shop.execute(ROWS.format(1, 10))
        shop.capture()
        wait_until(lambda: _is_synchronized(shop, standby))
        shop.execute(ROWS.format(11, 20))
        standby.catch_up()
        shop.server.stop()
        standby.promote()
        there.execute(ROWS.format(21, 30))
        there.capture()
        assert committed_ids(shop.log()) == [*range(1, 31)]
        (changed,) = (event for event in shop.log().events() if event.name == OPTIONS_CHANGED)
        assert changed.details["timeline"] == [1, 2]
        shop.server.start()
        shop.execute(ROWS.format(31, 1030))
        with pytest.raises(ChangeLogError, match="timeline 2, which is no ancestor of the server's timeline 1"):
            shop.capture()


@pytest.mark.long
def test_a_copy_goes_on_after_failover(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read on the old primary counts if the log has what its snapshot saw: the standby has the same pages."""
    monkeypatch.setattr(copy_plans, "CHUNK_PAGES", 2)
    shop.execute("INSERT INTO item SELECT g, repeat('x', 500) FROM generate_series(1, 2000) g")
    with Standby.of(shop.server, hot_standby_feedback="on", wal_receiver_status_interval="1") as standby:
        there, read, chunks, enough = _on(shop, standby), ChunkReader.read, itertools.count(), threading.Event()

        def read_some(*arguments: Any) -> None:
            if next(chunks) >= 20:
                enough.wait(120)
                raise Stopped("these are enough")
            read(*arguments)

        def is_read() -> bool:
            if any(events_of(shop.log().index, COPIED_CHUNKS)):
                enough.set()
            return enough.is_set()

        wait_until(lambda: _is_synchronized(shop, standby))
        with monkeypatch.context() as patched:
            patched.setattr(ChunkReader, "read", read_some)
            shop.capture(snapshot=True, stop=is_read)
        shop.execute("DELETE FROM item WHERE id BETWEEN 11 AND 20", "UPDATE item SET id = 9001 WHERE id = 21")
        wait_until(lambda: _is_synchronized(shop, standby))
        standby.catch_up()
        shop.server.stop()
        standby.promote()
        there.execute("DELETE FROM item WHERE id BETWEEN 31 AND 40")
        there.capture(snapshot=True)
        assert ids(there.log(), oid_of(there)) == [*range(1, 11), *range(22, 31), *range(41, 2001), 9001]
        assert len([*events_of(there.log().index, COPYING_TABLE)]) == 2
        (copy,) = copies_of(there.log().index)
        assert copy.void.rows >= 21 and copy.rows == 1979 + 1
        shop.server.start()


@pytest.mark.long
@pytest.mark.parametrize("own_server", [18, 19], indirect=True, ids="pg{}".format)
def test_two_standbys_promoted_to_the_same_timeline_number(shop: Shop) -> None:
    """Both were promoted to timeline 2, one after the other, and wrote: the log of one is not of the other."""
    with Standby.of(shop.server) as first, Standby.of(shop.server, "other") as second:
        here, there = _on(shop, first), _on(shop, second)
        for on_standby in (here, there):
            _create_on_standby(shop, on_standby)
        shop.execute(ROWS.format(1, 10))
        shop.capture()
        for standby in (first, second):
            standby.catch_up()
        second.cut_off()
        shop.execute(ROWS.format(11, 20))
        first.catch_up()
        shop.server.stop()
        first.promote()
        here.execute(ROWS.format(21, 320))
        # A copy under a snapshot that contains more transactions than the other history has.
        here.execute(*["SELECT txid_current()"] * 60)
        here.capture(snapshot=True)
        first.stop()
        second.promote()
        for number in range(2001, 4001, 500):
            there.execute(ROWS.format(number, number + 499))
        assert there.execute() > shop.log().complete_lsn
        with pytest.raises(
            ChangeLogError, match=r"timeline 2 that branched off timeline 1 at .*another standby was promoted"
        ):
            there.capture()
        assert committed_ids(shop.log()) == [*range(1, 321)]
        there.capture(on_lost_slot="snapshot")
        there.execute(ROWS.format(21, 30))
        there.capture()
        assert ids(there.log(), oid_of(there)) == [*range(1, 11), *range(21, 31), *range(2001, 4001)]
        assert not lineage_of(there.log().index).stale
        first.start()
        shop.server.start()


def test_a_timeline_without_its_history_file(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    """The log continues with a warning on its own timeline, and is refused on another one."""
    with Standby.of(shop.server) as standby:
        there = _on(shop, standby)
        _create_on_standby(shop, there)
        shop.execute(ROWS.format(1, 10))
        shop.capture()
        standby.catch_up()
        standby.promote()
        history = standby.data_directory / "pg_wal" / "00000002.history"
        away = history.rename(history.with_suffix(".away"))
        with pytest.raises(ReplicationError, match="history of timeline 2 cannot be read"):
            there.capture()
        away.rename(history)
        there.execute(ROWS.format(11, 20))
        there.capture()
        assert not [line for line in caplog.messages if "cannot be read" in line]
        history.rename(away)
        there.execute(ROWS.format(21, 30))
        there.capture()
        assert [line for line in caplog.messages if "cannot be read" in line]
        assert committed_ids(shop.log()) == [*range(1, 31)]


def test_a_standby_is_a_source_across_restarts(shop: Shop) -> None:
    """After a restart with an idle primary, and without a primary at all, the log continues."""
    with Standby.of(shop.server) as standby:
        there = _on(shop, standby)
        _create_on_standby(shop, there)
        shop.execute(ROWS.format(1, 10))
        standby.catch_up()
        there.capture(until=standby.replayed())
        with pytest.raises(ReplicationError, match="a standby, which cannot write a heartbeat"):
            there.capture(until=Lsn(1), heartbeat=1)
        standby.stop()
        standby.start()
        assert there.capture(until=Lsn(1)).ended_by == "until_lsn"
        standby.cut_off()
        standby.stop()
        standby.start()
        assert there.capture(until=Lsn(1)).ended_by == "until_lsn"
        assert committed_ids(shop.log()) == [*range(1, 11)]


def test_the_history_of_a_timeline() -> None:
    """Comments and empty lines are passed over; each line names a timeline and where it was left."""
    content = b'1\t0/3000148\tno recovery target specified\n\n# a remark\n2\t1/AB\tat restore point "x"\n'
    assert parse_history(content) == {1: Lsn("0/3000148"), 2: Lsn("1/AB")}


def _on(shop: Shop, standby: Standby) -> Shop:
    return replace(shop, server=standby)  # type: ignore[arg-type]


def _is_synchronized(shop: Shop, standby: Standby) -> bool:
    """Let the slot of the primary move past what the standby has no WAL of; then it is copied for good."""
    shop.execute("SELECT pg_log_standby_snapshot()")
    shop.capture()
    standby.catch_up()
    standby.execute("SELECT pg_sync_replication_slots()")
    return any(slot.synced and not slot.temporary for slot in slot_health(standby.dsn, shop.slot))


def _create_on_standby(shop: Shop, there: Shop) -> None:
    """A slot on a standby waits until its primary logs which transactions run."""
    said: list[str] = []

    def create() -> None:
        with there.connect() as connection:
            create_slot(connection, shop.slot, on_wait=said.extend)

    thread = threading.Thread(target=create)
    thread.start()
    wait_until(lambda: bool(said) or not thread.is_alive())
    shop.execute("SELECT pg_log_standby_snapshot()")
    thread.join(300)
    assert not thread.is_alive() and all("pg_log_standby_snapshot" in text for text in said)
