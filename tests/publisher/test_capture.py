"""Our capture, and our client, against a publisher with faults: whatever shows, each change comes once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pgoutput_construct as pgo
from pgoutput_construct import testing
from pgoutput_construct.changelog._facts.catalog_readings import publication_readings, table_readings
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres import _retry, stream
from pgoutput_construct.postgres.capture import capture
from pgoutput_construct.publisher._server.service import Settings
from pgoutput_construct.publisher.faults import FAULTS, Fault
from pgoutput_construct.publisher.log_feed import LogFeed
from pgoutput_construct.publisher.server import ThreadedPublisher
from pgoutput_construct.stream.transaction_reader import COMMITTED, EndedTransaction
from tests.postgres.shop import wait_until

ARGUMENTS: dict[str, dict[str, Any]] = {
    "stall": {"seconds": 1.0},
    "keepalive storm": {"count": 3000},
    "error": {"sqlstate": "57P01", "message": "terminating connection due to administrator command"},
}
PLACES: dict[str, tuple[int, ...]] = {"cut inside a message": (1, 2), "error": (0, 3), "stall": (2,)}
"""Where faults show that cost a pause before the next connection, which grows; others show at all four places."""
OPTIONS: dict[str, Any] = {"proto_version": 4, "streaming": "parallel", "two_phase": True, "messages": True}


@pytest.fixture
def shop() -> Iterator[testing.TestPublisher]:
    """A publisher with a publication and a slot."""
    with testing.publisher(publications=["shop"], creates_slots=False) as publisher:
        publisher.create_slot("captured", two_phase=True)
        yield publisher


def captured(publisher: testing.TestPublisher, log: Path, end: pgo.Lsn) -> list[int]:
    """Capture up to a position; return the ids of the rows that committed transactions of the log insert."""
    dsn = publisher.dsn + " user=me"
    given: dict[str, Any] = {"until_lsn": end, "duration": 60.0, "status_interval": 0.25, "handle_signals": False}
    given["new_log"] = True
    done = capture(dsn, "captured", ["shop"], log, **given, **OPTIONS)
    assert done.ended_by == "until_lsn"
    return inserted(log)


def inserted(log: Path) -> list[int]:
    """Return the ids of the rows that committed transactions of a log insert, in the order of their commits."""
    feed, found = LogFeed(log), list[int]()
    for ended in feed.order():
        assert isinstance(ended, EndedTransaction) and ended.outcome == COMMITTED
        for first, last in ended.transaction.spans:
            for fed in feed.read(first, last):
                message = fed.message
                if isinstance(message, pgo.Insert) and message.xid not in ended.transaction.aborted:
                    found.append(int(message.new[0]))
    return found


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The publisher is there all the time: who was cut off tries again at once."""
    monkeypatch.setattr(_retry, "_MIN_PAUSE", 0.05)
    monkeypatch.setattr(_retry, "_MAX_PAUSE", 0.4)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_each_change_once(shop: testing.TestPublisher, tmp_path: Path, name: str) -> None:
    """The fault shows between transactions, in a plain one, in streamed ones, in a prepared one."""
    table = shop.table("t", {"id": "int4", "note": "text"}, key=["id"])
    numbers = iter(range(1000))
    places = PLACES.get(name, (0, 1, 2, 3))
    faults = [[Fault(name, ARGUMENTS.get(name, {}))] if place in places else [] for place in range(4)]

    def rows(count: int) -> list[Any]:
        return [table.insert({"id": next(numbers), "note": "x"}) for _ in range(count)]

    shop.commit(rows(3))
    shop.commit(faults[0])
    shop.commit([*rows(2), *faults[1], *rows(2)])
    shop.commit([*rows(2), *faults[2], *rows(2)], streamed=True)
    shop.commit([*rows(1), *faults[3], *rows(1)], prepared="gid")
    shop.message("note", b"some", transactional=False)
    end = shop.commit(rows(1))
    assert captured(shop, tmp_path / "log", end) == list(range(next(numbers)))
    assert all(fault.shown for several in faults for fault in several)
    wait_until(lambda: (slot := shop.slot("captured")) is not None and slot.confirmed == end)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_each_change_once_by_the_client(name: str) -> None:
    """The fault shows between transactions, and in the middle of them; the live client gives each change once."""
    places = PLACES.get(name, (0, 1, 2))
    faults = [[Fault(name, ARGUMENTS.get(name, {}))] if place in places else [] for place in range(3)]
    numbers, found = iter(range(1000)), list[int]()
    with testing.publisher(publications=["shop"]) as publisher:
        table = publisher.table("t", {"id": "int4", "note": "text"}, key=["id"])

        def rows(count: int) -> list[Any]:
            return [table.insert({"id": next(numbers), "note": "x"}) for _ in range(count)]

        publisher.commit(rows(3))
        publisher.commit(faults[0])
        publisher.stray_stream_abort()  # PostgreSQL 18 sends one, also with streaming off
        publisher.commit([*rows(2), *faults[1], *rows(2)])
        publisher.commit([*rows(200), *faults[2], *rows(300)])
        end = publisher.commit(rows(1))
        dsn = publisher.dsn + " user=me"
        with stream(
            dsn, "mine", ["shop"], create_slot=True, status_interval=0.25, reconnect_seconds=60
        ) as transactions:
            for transaction in transactions:
                found += [change.new["id"] for change in transaction]
                transactions.confirm(transaction)
                if transaction.end_lsn == end:
                    break
        assert found == list(range(next(numbers)))
        assert all(fault.shown for several in faults for fault in several)
        wait_until(lambda: (slot := publisher.slot("mine")) is not None and slot.confirmed == end)


@pytest.mark.slow
def test_a_slot_that_a_capture_makes(tmp_path: Path) -> None:
    """It is kept by a publisher of a log, which begins again, and whose log grows meanwhile; nothing comes twice."""
    log, again, settings = tmp_path / "log", tmp_path / "again", Settings(slots_file=tmp_path / "slots.json")
    given: dict[str, Any] = {"create_slot": True, "handle_signals": False, **OPTIONS}
    with testing.publisher(publications=["shop"], creates_slots=False) as publisher:
        table = publisher.table("t", {"id": "int4"}, key=["id"])
        for number in range(2):
            given["until_lsn"] = publisher.commit([table.insert({"id": number})])
            capture(publisher.dsn, "one", ["shop"], log, **given)
            with ThreadedPublisher(LogFeed(log), settings) as second:
                done = capture(second.dsn, "two", ["shop"], again, **given)
                slot = second.publisher.slots.get("two")
                assert slot is not None
                assert (slot.confirmed, slot.two_phase) == (done.confirmed_lsn, True)
            assert inserted(again) == list(range(number + 1))


def test_a_publisher_of_any_publication(tmp_path: Path) -> None:
    """It has those that a capture names, with all tables that were created, before anything was committed to them."""
    names = ["shop", 'a "shop"']
    with testing.publisher() as publisher:
        table, other = (publisher.table(name, {"id": "int4"}, key=["id"]) for name in ("t", "other"))
        end = publisher.commit([table.insert({"id": 7})])
        capture(publisher.dsn, "one", names, tmp_path, create_slot=True, until_lsn=end, handle_signals=False, **OPTIONS)
        index = ChangeLog(tmp_path).index
        listed = {each.name: {table.name for table in each.tables.values()} for each in publication_readings(index)}
        assert listed == {name: {"t", "other"} for name in names}
        assert {each.name for several in table_readings(index).values() for each in several} == {"t", "other"}
        assert inserted(tmp_path) == [7]
        end = publisher.commit([other.insert({"id": 8})])
        capture(publisher.dsn, "one", names, tmp_path, until_lsn=end, handle_signals=False, **OPTIONS)
        assert inserted(tmp_path) == [7, 8]
        assert publisher.wait_confirmed("one", end).confirmed >= end


@pytest.mark.parametrize("has_slot", [False, True])
def test_no_tables_are_copied(tmp_path: Path, has_slot: bool) -> None:
    """A capture that is to copy tables is told what to do instead; it leaves no slot that was not there."""
    with testing.publisher(publications=["shop"], creates_slots=False) as publisher:
        table = publisher.table("t", {"id": "int4"}, key=["id"])
        publisher.commit([table.insert({"id": 1})])
        if has_slot:
            publisher.create_slot("captured")
        with pytest.raises(ReplicationError, match=r"serves a stream, and has no tables(?s:.*)without --snapshot"):
            given: dict[str, Any] = {"create_slot": True, "snapshot": True, "until_idle": 0.5, "new_log": has_slot}
            capture(publisher.dsn, "captured", ["shop"], tmp_path, **given)
        assert (publisher.slot("captured") is not None) == has_slot


def test_aborts_that_stray(shop: testing.TestPublisher, tmp_path: Path) -> None:
    """PostgreSQL 18's stray Stream Abort, and that of a subtransaction that sent nothing, take nothing away."""
    table = shop.table("t", {"id": "int4"}, key=["id"])
    shop.commit([table.insert({"id": 0})])
    shop.stray_stream_abort()
    shop.commit(
        [table.insert({"id": 1}), table.insert({"id": 2})], streamed=True, rolled_back=[table.insert({"id": 9})]
    )
    shop.interleaved([table.insert({"id": 3}), table.insert({"id": 4})], [table.insert({"id": 5})])
    shop.stray_stream_abort()
    end = shop.commit([table.insert({"id": 6})])
    assert captured(shop, tmp_path / "log", end) == [0, 1, 2, 3, 4, 5, 6]


def test_an_error_that_stays(shop: testing.TestPublisher, tmp_path: Path) -> None:
    """An error that does not pass ends the capture with its code; the next one goes on where it was."""
    table, log = shop.table("t", {"id": "int4"}, key=["id"]), tmp_path / "log"
    shop.commit([table.insert({"id": 0})])
    shop.commit([table.insert({"id": 1}), Fault("error", {"sqlstate": "42501"}), table.insert({"id": 2})])
    end = shop.commit([table.insert({"id": 3})])
    with pytest.raises(ReplicationError, match="an error on purpose") as caught:
        captured(shop, log, end)
    assert caught.value.sqlstate == "42501"
    assert captured(shop, log, end) == [0, 1, 2, 3]
    assert ChangeLog(log).complete_lsn >= end


@pytest.mark.parametrize(("name", "argument"), [("rain", "seconds"), ("stall", "minutes"), ("cut", "seconds")])
def test_unknown_faults(name: str, argument: str) -> None:
    """A name or an argument that is misspelled is refused where it is written, with those that there are."""
    with pytest.raises(pgo.PgoutputError, match=f"{name}.*: (choose from cut,.*|it has (seconds|none))$"):
        Fault(name, {argument: 1.0})
