"""Slots that are dropped, moved or invalidated, and other histories: refused with a remedy, or the log is restarted."""

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pgoutput_construct.changelog._facts.completeness import lacks_of
from pgoutput_construct.changelog._facts.lineage import lineage_of
from pgoutput_construct.changelog._segment.events import BEGUN_ANEW, COPIED_TABLE
from pgoutput_construct.changelog.log_options import LogOptions, StreamOptions
from pgoutput_construct.changelog.verify import verify
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.postgres import ReplicationError, ReplicationStream, connect, create_slot, drop_slot
from pgoutput_construct.postgres._capture import capture_session
from pgoutput_construct.postgres._snapshot.copier import Copier
from pgoutput_construct.wire import Lsn
from tests.postgres.lost import ids, invalidate, oid_of
from tests.postgres.shop import PUBLICATION, Shop, committed_ids, is_active, wait_until
from tools.faults.obstacles import break_decoding

pytestmark = pytest.mark.server

ROWS = "INSERT INTO item SELECT g, 'x' FROM generate_series({}, {}) g"


@pytest.fixture
def either(server: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """A shop on each of the servers, with ten rows in its log."""
    with Shop.create(server, "losing", tmp_path / "log") as shop:
        shop.execute(ROWS.format(1, 10))
        shop.capture()
        yield shop


def check(shop: Shop, oid: int, last: int, gaps: int = 1) -> None:
    """Assert that the log has the rows 1 to ``last``, and how often it was restarted."""
    log = shop.log()
    assert ids(log, oid) == [*range(1, last + 1)]
    assert sum(event.name == BEGUN_ANEW for event in log.events()) == gaps
    assert not lineage_of(log.index).stale and verify(log.store).problems == ()


def test_a_slot_that_was_dropped(either: Shop) -> None:
    """What was written without a slot is copied; then the stream continues, and so does the next capture."""
    oid = oid_of(either)
    with either.connect() as connection:
        drop_slot(connection, either.slot)
    either.execute(ROWS.format(11, 20))
    with pytest.raises(ChangeLogError, match=r"slot .* no longer exists.*--on-lost-slot snapshot"):
        either.capture()
    either.capture(on_lost_slot="snapshot")
    check(either, oid, 20)
    either.execute(ROWS.format(21, 30))
    either.capture()
    check(either, oid, 30)
    with either.connect() as connection:
        drop_slot(connection, either.slot)
        either.execute(ROWS.format(31, 40))
        create_slot(connection, either.slot, two_phase=True)
    either.execute(ROWS.format(41, 50))
    with pytest.raises(ChangeLogError, match="re-created, or moved"):
        either.capture()
    either.capture(on_lost_slot="snapshot", on_rewrite="stop")
    check(either, oid, 50, gaps=2)


def test_transactions_prepared_before_the_gap_are_void(either: Shop) -> None:
    """A transaction that was prepared when the slot was lost is in the copy, or comes again with the new slot."""
    oid = oid_of(either)
    prepared = ("BEGIN", ROWS.format(11, 20), "PREPARE TRANSACTION 'losing'")
    either.execute("; ".join(prepared))
    either.capture()
    with either.connect() as connection:
        drop_slot(connection, either.slot)
    either.execute("COMMIT PREPARED 'losing'", ROWS.format(21, 30))
    either.capture(on_lost_slot="snapshot")
    check(either, oid, 30)
    assert not len(either.log().open_transactions())


@pytest.mark.parametrize("own_server", [18, 19], indirect=True, ids="pg{}".format)
@pytest.mark.parametrize("running", [False, True], ids=["stopped", "running"])
def test_a_slot_that_was_invalidated(shop: Shop, running: bool) -> None:
    """The server removed what the slot needs, also while it is read: a new one is created, and the log continues."""
    oid = oid_of(shop)
    shop.execute(ROWS.format(1, 10))
    shop.capture()
    if not running:
        invalidate(shop, 11)
        with pytest.raises(ReplicationError, match=r"is lost.*--on-lost-slot snapshot"):
            shop.capture()
        shop.capture(on_lost_slot="snapshot")
    else:
        with shop.capturing(on_lost_slot="snapshot", status_interval=0.1) as outcome, shop.connect() as writer:
            wait_until(lambda: is_active(shop))
            with writer.transaction():  # the slot cannot move past its begin
                writer.execute("INSERT INTO item VALUES (12, 'a')")
                invalidate(shop, 11)
            wait_until(lambda: outcome.done() or BEGUN_ANEW in [event.name for event in shop.log().events()])
        # A copy waits until WAL before it is flushed: the heartbeat does that on a server that is idle.
        shop.capture(on_lost_slot="snapshot", heartbeat=0.2)
    shop.execute(ROWS.format(13 if running else 12, 20))
    shop.capture()
    check(shop, oid, 20)


def test_a_slot_that_cannot_be_decoded(either: Shop) -> None:
    """The server never says that it is lost: after a few attempts the error names the remedy, or a new one is made."""
    oid = oid_of(either)
    break_decoding(either.server, either.dbname, 11)
    either.execute(ROWS.format(13, 20))
    with pytest.raises(ReplicationError, match=r"could not map filenumber.*each time.*--on-lost-slot snapshot") as said:
        either.capture()
    assert said.value.sqlstate == "XX000" and not said.value.transient
    assert committed_ids(either.log()) == [*range(1, 11)]
    either.capture(on_lost_slot="snapshot")
    check(either, oid, 20)
    (event,) = (event for event in either.log().events() if event.name == BEGUN_ANEW)
    assert "could not map filenumber" in str(event.details["reason"])
    either.execute(ROWS.format(21, 30))
    either.capture()
    check(either, oid, 30)


@pytest.mark.parametrize("on_lost_slot", ["stop", "snapshot"])
def test_an_output_plugin_that_cannot_be_loaded(shop: Shop, on_lost_slot: str) -> None:
    """The server's installation is at fault: the slot is not dropped, whatever on_lost_slot is."""
    shop.execute(f"ALTER DATABASE {shop.dbname} SET dynamic_library_path = '/nowhere'")
    with pytest.raises(ReplicationError, match=r"refused .*could not access file.*dynamic_library_path") as said:
        shop.capture(on_lost_slot=on_lost_slot)
    assert said.value.sqlstate == "58P01" and not said.value.transient
    shop.execute(f"ALTER DATABASE {shop.dbname} RESET dynamic_library_path", ROWS.format(1, 10))
    shop.capture()
    assert committed_ids(shop.log()) == [*range(1, 11)]


@pytest.mark.parametrize("running", [False, True], ids=["empty", "running"])
def test_a_slot_that_cannot_be_decoded_and_a_new_log(either: Shop, tmp_path: Path, running: bool) -> None:
    """The log may be empty when its slot cannot be decoded, or the capture may have run for long: the log continues."""
    oid, either.directory = oid_of(either), tmp_path / "new"
    if not running:
        break_decoding(either.server, either.dbname, 11)
        either.capture(on_lost_slot="snapshot", new_log=True, snapshot=True)
    else:
        with either.capturing(on_lost_slot="snapshot", new_log=True, snapshot=True) as outcome:
            wait_until(lambda: outcome.done() or logged(either, COPIED_TABLE))
            break_decoding(either.server, either.dbname, 11)
            wait_until(lambda: outcome.done() or logged(either, BEGUN_ANEW))
    either.execute(ROWS.format(13, 20))
    either.capture(snapshot=True)
    check(either, oid, 20)


def test_the_servers_error_is_raised_after_the_stream_ended(either: Shop) -> None:
    """A status that is due when the server has ended the stream does not hide why it did."""
    either.execute(ROWS.format(11, 20))
    break_decoding(either.server, either.dbname, 21)
    options = StreamOptions(slot=either.slot, publications=(PUBLICATION,), proto_version=1, streaming="off")
    with ReplicationStream(connect(either.dsn), options) as stream:
        time.sleep(1)  # so that the frames and the end usually come together
        with pytest.raises(ReplicationError, match="could not map filenumber"):
            while stream.drain(5):
                stream.send_status()


def test_replacing_undecodable_slots_is_limited(either: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each slot that replaces another one cannot be decoded either the capture ends."""
    either.execute("CREATE TABLE other (LIKE item)", "CREATE PUBLICATION without FOR TABLE item")
    either.capture()
    whole = Copier.start

    def start(copier: Copier, options: LogOptions, complete_lsn: Lsn) -> None:
        break_decoding(either.server, either.dbname, next(numbers), "other")
        whole(copier, options, complete_lsn)

    numbers = itertools.count()
    monkeypatch.setattr(Copier, "start", start)
    monkeypatch.setattr(capture_session, "_MAX_REPLACED", 2)
    with pytest.raises(ReplicationError, match=r"could not map filenumber.*It replaced 2 others"):
        either.capture(on_lost_slot="snapshot", publications=["without"], until=Lsn("FFFFFFFF/0"))
    assert sum(event.name == BEGUN_ANEW for event in either.log().events()) == 2


def logged(shop: Shop, name: str) -> bool:
    """Return whether the log has an event already."""
    try:
        return any(event.name == name for event in shop.log().events())
    except ChangeLogError:  # it has no segment yet
        return False


def test_a_table_created_while_no_slot_existed(shop: Shop) -> None:
    """All tables are published, and no publication had it before: still the log does not have its first rows."""
    shop.execute("CREATE PUBLICATION everything FOR ALL TABLES")
    given: dict[str, Any] = {"publications": ["everything"], "create_slot": True, "snapshot": False}
    shop.capture(**given)
    shop.execute(ROWS.format(1, 10))
    shop.capture(**given)
    with shop.connect() as connection:
        drop_slot(connection, shop.slot)
    shop.execute("CREATE TABLE amid (id int PRIMARY KEY)", "INSERT INTO amid VALUES (1)")
    shop.capture(**given, on_lost_slot="snapshot")
    shop.execute(
        "CREATE TABLE later (id int PRIMARY KEY)", "INSERT INTO later VALUES (1)", "INSERT INTO amid VALUES (2)"
    )
    shop.capture(**given)
    assert [str(lack).partition(":")[0] for lack in lacks_of(shop.log().index)] == [
        "the log has no snapshot of public.amid"
    ]
