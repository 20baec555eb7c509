"""Transactions that a slot sends again are compared with the log: a server that was reset is detected."""

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from pgoutput_construct.changelog._facts.lineage import lineage_of
from pgoutput_construct.changelog._index.planning import committed_transactions, lost_histories
from pgoutput_construct.changelog._notes.confirmation_note import read_note
from pgoutput_construct.changelog._segment.events import BEGUN_ANEW, OPTIONS_CHANGED
from pgoutput_construct.changelog.compact import CompactionLimits, compact
from pgoutput_construct.changelog.prune import prune
from pgoutput_construct.changelog.verify import verify
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.errors import ChangeLogError, PgoutputError
from pgoutput_construct.postgres import create_slot, drop_slot
from pgoutput_construct.postgres._capture.overlap import Overlap, find_overlap
from pgoutput_construct.wire import Lsn
from tests.postgres.lost import ids, invalidate, oid_of
from tests.postgres.shop import PUBLICATION, Shop, committed_ids, is_active, wait_until
from tools.faults.lost_histories import Volume
from tools.servers import missing_server, open_server

pytestmark = pytest.mark.server

_NUMBERS = itertools.count()
_SETTINGS = {"autovacuum": "off", "wal_keep_size": "64MB", "min_wal_size": "32MB"}
"""What a slot needs that is set back is kept; hardly more, since all of it is copied with the server's volume."""
ROWS = "INSERT INTO item SELECT g, 'x' FROM generate_series({}, {}) g"
QUOTED = '"' + PUBLICATION.replace('"', '""') + '"'
PUT_BACK = "the server was reset to an earlier state"
BIG = "INSERT INTO unpublished SELECT g, repeat('y', 100) FROM generate_series(1, 2000) g"
LAST = {
    "a plain one": (ROWS.format(11, 20),),
    "a streamed one": (ROWS.format(11, 3010),),
    "a streamed one with a savepoint": (f"BEGIN; {ROWS.format(11, 3010)}; SAVEPOINT s; {BIG}; ROLLBACK TO s; COMMIT",),
    "a prepared one": (ROWS.format(11, 20), f"BEGIN; {ROWS.format(21, 30)}; PREPARE TRANSACTION 'last'"),
    "a streamed prepared one": (ROWS.format(11, 20), f"BEGIN; {ROWS.format(21, 3020)}; PREPARE TRANSACTION 'last'"),
    "one that was prepared": (f"BEGIN; {ROWS.format(11, 20)}; PREPARE TRANSACTION 'last'", "COMMIT PREPARED 'last'"),
    "one that was rolled back": (
        ROWS.format(11, 20),
        f"BEGIN; {ROWS.format(21, 30)}; PREPARE TRANSACTION 'last'",
        "ROLLBACK PREPARED 'last'",
    ),
    "streams without a row": (ROWS.format(11, 20), BIG),
    "streams of which nothing is left": (
        ROWS.format(11, 20),
        f"BEGIN; SAVEPOINT s; {ROWS.format(21, 3020)}; ROLLBACK TO s; {BIG}; COMMIT",
    ),
    "a message": (ROWS.format(11, 20), "SELECT pg_logical_emit_message(true, 'a', 'b')"),
}
"""What the log has last, by what it is."""
ON_EACH = {"a streamed one with a savepoint", "a prepared one", "streams without a row"}
"""What servers of all releases send again by default; the rest where tests are long."""
REFUSED = {"a plain one", "a streamed one with a savepoint", "a streamed prepared one", "streams without a row"}
"""What a server that was reset lacks by default: one of each kind of message that ends what the log has."""


def _marked(names: Iterable[str], marked: Collection[str], mark: pytest.MarkDecorator) -> list[Any]:
    return [pytest.param(name, marks=[mark] if name in marked else []) for name in names]


@pytest.fixture(scope="module", params=[16, 18], ids="pg{}".format)
def volatile(request: pytest.FixtureRequest) -> Iterator[EmbeddedServer]:
    """A server that is stopped, killed, and reset."""
    if problem := missing_server(request.param):
        pytest.skip(problem)
    with open_server(request.param, _SETTINGS) as server:
        yield server


on_19_too = pytest.mark.parametrize("volatile", [16, 18, 19], indirect=True, ids="pg{}".format)
"""For one test of each kind: a server that was reset, one that crashed, one that lost its slot."""


@pytest.fixture
def shop(volatile: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """A shop there, with ten rows in its log, and a table that is not published."""
    with Shop.create(volatile, f"overlap{next(_NUMBERS)}", tmp_path / "log") as shop:
        shop.execute("CREATE TABLE unpublished (id bigint, name text)")
        publish_items(shop)
        shop.execute(ROWS.format(1, 10))
        shop.capture()
        yield shop
        with suppress(Exception):
            shop.execute("ROLLBACK PREPARED 'last'")


def publish_items(shop: Shop) -> None:
    """Let the publication have one of the tables."""
    shop.execute(f"DROP PUBLICATION {QUOTED}", f"CREATE PUBLICATION {QUOTED} FOR TABLE item")


def pass_the_end(shop: Shop) -> list[int]:
    """Write what the lost history does not have, until positions are beyond the log's end; return the ids."""
    end, first = shop.log().complete_lsn, 100_001
    while shop.execute(ROWS.format(first, first + 299)) <= end:
        first += 300
    return [*range(100_001, first + 300)]


def saved(shop: Shop) -> bytes:
    """Return the slot as a checkpoint saves it."""
    shop.execute("CHECKPOINT")
    return _state(shop).read_bytes()


def crash(shop: Shop, slot: bytes, reached: Lsn | None = None) -> None:
    """Kill the server, and have it forget where the slot was since it was saved; all else is as it was.

    The slot had reached the end of the log's segments, or a position since that only the note has.
    """
    shop.server.kill()
    _state(shop).write_bytes(slot)
    shop.server.start()
    assert shop.confirmed() < (reached or shop.log().complete_lsn)


def overlap(shop: Shop) -> Overlap:
    """Return what the slot is about to send again."""
    log = shop.log()
    found = find_overlap(log.store, shop.confirmed(), log.segments[-1].position, read_note(log.store))
    assert found is not None
    return found


def _state(shop: Shop) -> Path:
    return shop.server.data_directory / "pg_replslot" / shop.slot / "state"


@pytest.mark.parametrize("last", _marked(LAST, ON_EACH, pytest.mark.differs_by_version))
def test_a_crash_keeps_the_history(shop: Shop, last: str) -> None:
    """The slot is before the log's end, and what comes again is what the log has, whatever it is: nothing is twice."""
    slot = saved(shop)
    shop.execute(*LAST[last])
    shop.capture()
    before = committed_ids(shop.log())
    crash(shop, slot)
    assert overlap(shop).witness is not None and overlap(shop).known
    assert shop.capture().dropped
    crash(shop, slot)
    shop.execute(ROWS.format(100_001, 100_010))
    shop.capture()
    log = shop.log()
    assert committed_ids(log) == [*before, *range(100_001, 100_011)] and verify(log.store).problems == ()
    assert not [row for row in log.open_transactions().to_pylist() if row["gid"] is None]
    if "prepared" in last and shop.server.connect().execute("SELECT FROM pg_prepared_xacts").fetchall():
        shop.execute("COMMIT PREPARED 'last'")
        shop.capture()
        assert committed_ids(shop.log())[-10:] != [*range(100_001, 100_011)]


def test_a_transaction_streamed_again_at_its_commit(shop: Shop) -> None:
    """Its commit gives a new snapshot of the catalog to others that run, and the server streams what it has by then.

    The commit record is where the stream begins, and so no longer before it (ReorderBufferCanStartStreaming()).
    """
    slot = saved(shop)
    other = shop.server.connect(dbname=shop.dbname, autocommit=False)
    other.execute("INSERT INTO unpublished VALUES (1, 'open')")
    shop.execute(f"BEGIN; CREATE TABLE made (id int); {ROWS.format(11, 3010)}; COMMIT")
    shop.capture()
    before = committed_ids(shop.log())
    shop.execute(f"ALTER DATABASE {shop.dbname} SET debug_logical_replication_streaming = 'immediate'")
    crash(shop, slot)
    shop.execute(ROWS.format(100_001, 100_010))
    shop.capture()
    assert committed_ids(shop.log()) == [*before, *range(100_001, 100_011)] and verify(shop.log().store).problems == ()


_STREAMING: dict[str, tuple[int, dict[str, Any]]] = {
    "pg15-v2": (15, {"proto_version": 2, "streaming": "on", "two_phase": False}),
    "pg15-v3": (15, {"proto_version": 3, "streaming": "on"}),
    "pg16-v2": (16, {"proto_version": 2, "streaming": "on", "two_phase": False}),
    "pg16-v4": (16, {"proto_version": 4, "streaming": "parallel"}),
}
"""Where the server does not send at which LSN a streamed transaction was rolled back: up to protocol version 3, and
after a crash."""


def _rolled_back(default: str) -> pytest.MarkDecorator:
    """Run a test in all of these ways, of which one is not long."""
    marks = {default: [pytest.mark.differs_by_version]}
    ways = [pytest.param(*way, id=name, marks=marks.get(name, [])) for name, way in _STREAMING.items()]
    return pytest.mark.parametrize(("volatile", "options"), ways, indirect=["volatile"])


def roll_back_at_the_end(shop: Shop) -> None:
    """Let the log end with a streamed transaction that was rolled back, at a version 4 by a crash of the server."""
    with closing(shop.connect()) as connection:
        with shop.capturing():
            connection.execute(f"BEGIN; {ROWS.format(200_001, 203_000)}".encode())
            wait_until(lambda: bool(len(shop.log().open_transactions())))
            if shop.options["proto_version"] < 4:
                connection.execute("ROLLBACK")
                wait_until(lambda: not len(shop.log().open_transactions()))
        if shop.options["proto_version"] == 4:
            shop.server.kill()
            shop.server.start()
            shop.execute("CHECKPOINT")
    shop.capture()
    last = shop.log().transactions().to_pylist()[-1]
    assert last["outcome"] == "aborted" and not last["end_lsn"]


@_rolled_back("pg15-v3")
def test_a_crash_after_a_rolled_back_stream(shop: Shop, options: dict[str, Any]) -> None:
    """The slot is set back to before the log's last transaction, which is compared; the one after it says nothing."""
    shop.options |= options
    shop.capture()
    slot = saved(shop)
    shop.execute(ROWS.format(11, 20))
    roll_back_at_the_end(shop)
    crash(shop, slot)
    assert overlap(shop).witness is not None
    shop.execute(ROWS.format(100_001, 100_010))
    shop.capture()
    assert committed_ids(shop.log()) == [*range(1, 21), *range(100_001, 100_011)]
    assert verify(shop.log().store).problems == ()


@_rolled_back("pg16-v4")
def test_a_server_reset_to_before_a_rolled_back_stream(shop: Shop, options: dict[str, Any]) -> None:
    """Its WAL passes the log's end without a published row: refused, as it lacks the log's last commit."""
    shop.options |= options
    for _ in range(2):  # so that the slot is saved past the first transaction
        shop.execute("CHECKPOINT")
        shop.capture()
    with Volume.of(shop.server) as volume:
        shop.execute(ROWS.format(11, 20))
        roll_back_at_the_end(shop)
        volume.put_back()
        assert shop.confirmed() >= shop.log().transactions()["end_lsn"][0].as_py()
        small = "INSERT INTO unpublished SELECT g, 'y' FROM generate_series(1, 200) g"  # nothing of it is sent
        while shop.execute(*[small] * 50) <= shop.log().complete_lsn:
            pass
        confirmed = shop.confirmed()
        with pytest.raises(ChangeLogError, match=PUT_BACK):
            shop.capture()
        assert shop.confirmed() == confirmed and committed_ids(shop.log()) == [*range(1, 21)]


@pytest.mark.parametrize("last", _marked(LAST, LAST.keys() - REFUSED, pytest.mark.long))
def test_a_server_that_was_reset(shop: Shop, last: str) -> None:
    """It has written past the log's end since: refused, and nothing is confirmed, whatever the log has last."""
    with Volume.of(shop.server) as volume:
        shop.execute(*LAST[last])
        shop.capture()
        shop.capture()
        before = committed_ids(shop.log())
        volume.put_back()
        new, confirmed = pass_the_end(shop), shop.confirmed()
        others: Any = ({}, {"streaming": "off"}, {"until_idle": 0.1, "until": Lsn(1)}) if last == "a plain one" else ()
        for options in ({}, *others):
            with pytest.raises(ChangeLogError, match=PUT_BACK):
                shop.capture(**options)
        assert shop.confirmed() == confirmed and committed_ids(shop.log()) == before
        shop.capture(on_lost_slot="snapshot")
        shop.execute(ROWS.format(11, 15))
        shop.capture()
        log, oid = shop.log(), oid_of(shop)
        assert ids(log, oid) == [*range(1, 16), *new]
        assert sum(event.name == BEGUN_ANEW for event in log.events()) == 1
        assert not lineage_of(log.index).stale and verify(log.store).problems == ()


def _drop(shop: Shop) -> list[int]:
    with shop.connect() as connection:
        drop_slot(connection, shop.slot)
    return []


def _drop_past_the_end(shop: Shop) -> list[int]:
    written = pass_the_end(shop)
    return written + _drop(shop)


def _create_past_the_end(shop: Shop) -> list[int]:
    written = _drop_past_the_end(shop)
    with shop.connect() as connection:
        create_slot(connection, shop.slot, two_phase=True)
    return written


def _invalidate(shop: Shop) -> list[int]:
    invalidate(shop, 90_001)
    return [90_001]


@pytest.mark.parametrize(
    "lose",
    [
        pytest.param(_drop, marks=pytest.mark.long),
        pytest.param(_drop_past_the_end, marks=pytest.mark.long),
        _create_past_the_end,
        _invalidate,
    ],
)
def test_a_server_that_was_reset_and_lost_its_slot(shop: Shop, lose: Callable[[Shop], list[int]]) -> None:
    """Nothing compares its history with the log's: still no row that it lost is on top of the new copies."""
    with Volume.of(shop.server) as volume:
        for number in range(11, 41):
            shop.execute(ROWS.format(number, number))
        shop.capture()
        volume.put_back()
        written = lose(shop)
        with pytest.raises(PgoutputError, match="--on-lost-slot snapshot"):
            shop.capture()
        shop.capture(on_lost_slot="snapshot")
        shop.execute(ROWS.format(11, 15))
        shop.capture()
        log = shop.log()
        assert ids(log, oid_of(shop)) == sorted([*range(1, 16), *written])
        assert not lineage_of(log.index).stale and verify(log.store).problems == ()


@pytest.mark.parametrize(
    ("is_noted", "move"),
    [
        (False, "created"),
        (True, "advanced"),
        pytest.param(False, "advanced", marks=pytest.mark.long),
        pytest.param(True, "created", marks=pytest.mark.long),
    ],
)
def test_a_slot_moved_past_the_last_transaction(shop: Shop, move: str, is_noted: bool) -> None:
    """It is past the last transaction of the log and before its end, on a server that was reset: refused.

    So is one on a server that was not: nothing distinguishes them.
    """
    with Volume.of(shop.server) as volume:
        last = shop.execute(*(ROWS.format(number, number) for number in range(11, 41)))
        shop.capture()
        with shop.capturing(status_interval=0.1):
            wait_until(lambda: is_active(shop))
            end = shop.execute("SELECT pg_switch_wal()", "CREATE VIEW nothing AS SELECT 1")
            wait_until(lambda: shop.confirmed() >= end)
        if not is_noted:
            shop.capture()
            shop.capture(messages=False)  # a segment that says so
        volume.put_back()
        first = 100_001
        while shop.execute(ROWS.format(first, first + 99)) <= last:
            first += 100
        with shop.connect() as connection:
            if move == "created":
                drop_slot(connection, shop.slot)
                create_slot(connection, shop.slot, two_phase=True)
            else:
                connection.execute("SELECT pg_replication_slot_advance(%s, pg_current_wal_flush_lsn())", [shop.slot])
        shop.execute("SELECT pg_switch_wal()", "CREATE VIEW nothing AS SELECT 1", ROWS.format(90_001, 90_010))
        shop.execute("SELECT pg_switch_wal()", "CREATE VIEW other AS SELECT 1")
        confirmed = shop.confirmed()
        for _ in range(2):
            with pytest.raises(ChangeLogError, match=r"re-created, or moved .* the log has no later transaction"):
                shop.capture()
        assert shop.confirmed() == confirmed
        shop.capture(on_lost_slot="snapshot")
        shop.execute(ROWS.format(11, 15))
        shop.capture()
        log = shop.log()
        assert ids(log, oid_of(shop)) == [*range(1, 16), *range(90_001, 90_011), *range(100_001, first + 100)]
        assert not lineage_of(log.index).stale and verify(log.store).problems == ()


@on_19_too
def test_a_crash_resets_a_slot_to_an_lsn_of_the_note(shop: Shop) -> None:
    """No transaction of the log follows, but the capture has told the slot that position, and others since."""
    shop.execute(ROWS.format(11, 20))
    shop.capture()
    with shop.capturing(status_interval=0.1):
        wait_until(lambda: is_active(shop))
        end = shop.execute("CREATE VIEW one AS SELECT 1")
        wait_until(lambda: shop.confirmed() >= end)
        slot = saved(shop)
        later = shop.execute("CREATE VIEW two AS SELECT 1", "CREATE VIEW three AS SELECT 1")
        wait_until(lambda: shop.confirmed() >= later)
    crash(shop, slot, later)
    shop.execute(ROWS.format(21, 30))
    shop.capture()
    assert committed_ids(shop.log()) == [*range(1, 31)]


@on_19_too
def test_a_slot_that_was_dropped_alone(shop: Shop) -> None:
    """The server's history is the log's: all transactions of the log count as before, also after it continues."""
    shop.execute(ROWS.format(11, 20))
    shop.capture()
    before = shop.log().transactions()
    _drop(shop)
    shop.execute(ROWS.format(21, 30))
    shop.capture(on_lost_slot="snapshot")
    index = shop.log().index
    assert len(before) and lost_histories(index) == []
    assert (
        committed_transactions(index.transactions, lost_histories(index))["seq"].to_pylist()
        == before["seq"].to_pylist()
    )


def test_only_what_is_new_differs(shop: Shop) -> None:
    """The log has nothing of the lost history but its position: the server has a transaction before that."""
    with Volume.of(shop.server) as volume:
        with shop.capturing(status_interval=0.1):
            shop.execute(ROWS.format(11, 20))
            shop.execute("CREATE SEQUENCE nothing", "DROP SEQUENCE nothing", *[BIG] * 20)
            end = shop.execute("SELECT pg_logical_emit_message(false, 'a', 'b')")
            wait_until(lambda: shop.log().complete_lsn >= end)
        volume.put_back()
        shop.execute(ROWS.format(11, 20))
        pass_the_end(shop)
        with pytest.raises(ChangeLogError, match=PUT_BACK):
            shop.capture()


@on_19_too
def test_a_server_reset_during_a_capture(shop: Shop) -> None:
    """The same capture connects again, finds another history, and continues with copies of the tables."""
    with Volume.of(shop.server) as volume, shop.capturing(on_lost_slot="snapshot", status_interval=0.2) as outcome:
        end = shop.execute(ROWS.format(11, 3010))
        wait_until(lambda: shop.confirmed() >= end)
        volume.put_back()
        new = pass_the_end(shop)
        wait_until(lambda: outcome.done() or BEGUN_ANEW in [event.name for event in shop.log().events()])
        shop.execute(ROWS.format(11, 15))
    shop.capture(heartbeat=0.2)  # a copy waits until WAL before it is flushed, which an idle server does each 15 s
    log = shop.log()
    assert ids(log, oid_of(shop)) == [*range(1, 16), *new]
    assert not lineage_of(log.index).stale and verify(log.store).problems == ()


@pytest.mark.parametrize(
    "back", [pytest.param(False, id="crashed"), pytest.param(True, id="put back", marks=pytest.mark.long)]
)
def test_comparison_under_other_options(shop: Shop, back: bool, caplog: pytest.LogCaptureFixture) -> None:
    """The log's end is compared under the options with which it was captured; then the others are in force."""
    shop.execute("CREATE PUBLICATION others FOR TABLE unpublished")
    slot = saved(shop)
    with Volume.of(shop.server) as volume:
        shop.execute(ROWS.format(11, 20), BIG)
        shop.capture()
        if back:
            volume.put_back()
            pass_the_end(shop)
        else:
            crash(shop, slot)
        given: dict[str, Any] = {"publications": [PUBLICATION, "others"], "messages": False}
        if back:
            with pytest.raises(ChangeLogError, match=PUT_BACK):
                shop.capture(**given)
            return
        shop.execute("INSERT INTO unpublished VALUES (0, 'published')")
        shop.capture(**given)
        (changed,) = (event for event in shop.log().events() if event.name == OPTIONS_CHANGED)
        assert changed.details["messages"] == [True, False]
        log = shop.log()
        assert committed_ids(log) == [*range(1, 21), 0] and verify(log.store).problems == ()
        assert "by LSNs only" not in "\n".join(caplog.messages)


@pytest.mark.differs_by_version
def test_a_former_publication_that_was_dropped(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    """The server ends a stream of it after what the log has, from PostgreSQL 18 on before that is compared."""
    shop.execute("CREATE PUBLICATION others FOR TABLE item")
    slot = saved(shop)
    shop.execute(ROWS.format(11, 20))
    shop.capture()
    crash(shop, slot)
    shop.execute(f"DROP PUBLICATION {QUOTED}", ROWS.format(21, 30))
    shop.capture(publications=["others"])
    assert committed_ids(shop.log()) == [*range(1, 31)]
    assert ("by LSNs only" in "\n".join(caplog.messages)) == (shop.server.version >= 18)


def test_a_log_that_was_compacted_and_pruned(shop: Shop) -> None:
    """What is left of the log is compared."""
    with Volume.of(shop.server) as volume:
        for first in (11, 21, 31, 41):
            shop.execute(ROWS.format(first, first + 9))
            shop.capture()
        compact(shop.directory, CompactionLimits(least=2, grace=0))
        prune(shop.directory, shop.log().complete_lsn, states=False)
        assert shop.log().segments[0].first_seq
        volume.put_back()
        pass_the_end(shop)
        with pytest.raises(ChangeLogError, match=PUT_BACK):
            shop.capture()


def test_a_crash_after_a_prune(shop: Shop) -> None:
    """What the slot sends again was pruned, and no transaction is left to compare it with: it is known all the same."""
    slot = saved(shop)
    shop.execute(ROWS.format(11, 20))
    shop.capture()
    shop.capture()  # has no transaction, but that there was a connection
    prune(shop.directory, shop.log().complete_lsn, states=False)
    assert not len(shop.log().transactions())
    crash(shop, slot)
    shop.execute(ROWS.format(21, 30))
    shop.capture()
    assert committed_ids(shop.log()) == [*range(21, 31)]


@pytest.mark.parametrize("is_new", [True, False], ids=["new", "after a gap"])
def test_a_crash_after_a_log_has_begun(shop: Shop, is_new: bool, tmp_path: Path) -> None:
    """The slot is put before the position at which the log began, and the log has no transaction from there yet."""
    slot = saved(shop)
    shop.execute(ROWS.format(11, 20))
    before = [] if is_new else [*range(1, 11)]
    if is_new:
        shop.capture()
        shop.directory = tmp_path / "another"
    else:
        shop.execute(f"SELECT pg_replication_slot_advance('{shop.slot}', pg_current_wal_flush_lsn())")
    shop.capture(on_lost_slot="snapshot")
    shop.execute("SELECT pg_logical_emit_message(false, 'a', 'b')", "INSERT INTO unpublished VALUES (0, 'flushed')")
    shop.capture()
    crash(shop, slot)
    shop.execute(ROWS.format(21, 30))
    shop.capture()
    assert committed_ids(shop.log()) == [*before, *range(21, 31)]


@pytest.mark.parametrize("is_added", [True, False], ids=["added", "removed"])
def test_a_crash_after_a_table_was_published_amid_a_transaction(
    shop: Shop, is_added: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """How a transaction is decoded that was running meanwhile depends on where the stream began."""
    shop.execute("CREATE TABLE late (id bigint PRIMARY KEY, name text)")
    if not is_added:
        shop.execute(f"ALTER PUBLICATION {QUOTED} ADD TABLE late")
    shop.capture()
    slot = saved(shop)
    with shop.connect() as running, running.transaction():
        running.execute("INSERT INTO late VALUES (1000, 'before')")
        shop.execute(f"ALTER PUBLICATION {QUOTED} {'ADD' if is_added else 'DROP'} TABLE late")
        shop.execute("INSERT INTO late VALUES (1001, 'after')", ROWS.format(11, 20))
    shop.capture()
    before = committed_ids(shop.log())
    crash(shop, slot)
    shop.execute(ROWS.format(21, 30))
    shop.capture()
    assert committed_ids(shop.log()) == [*before, *range(21, 31)]
    assert "is not compared with the log" in "\n".join(caplog.messages)
