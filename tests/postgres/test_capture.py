"""From a live server into the log: the same bytes as by other ways, once, whatever is killed."""

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.postgres import (
    CaptureProgress,
    LogWriter,
    ReplicationError,
    ReplicationStream,
    SegmentLimits,
    create_slot,
    drop_slot,
)
from pgoutput_construct.postgres import capture as capture_function
from pgoutput_construct.wire import Lsn
from tests.postgres.shop import (
    ENDS,
    PUBLICATION,
    Shop,
    committed_ids,
    end_lsn,
    ends,
    is_active,
    messages,
    notes,
    wait_until,
)

if TYPE_CHECKING:
    from pgoutput_construct.demo.server import EmbeddedServer

pytestmark = pytest.mark.server

CAPTURE_MODULE = __import__("sys").modules[capture_function.__module__]
TINY = SegmentLimits(rows=7, seconds=0.05)

MODES: dict[str, dict[str, Any]] = {
    "v1": {"proto_version": 1, "two_phase": False},
    "v2-streaming": {"proto_version": 2, "streaming": "on", "two_phase": False, "binary": True},
    "best": {"two_phase": True},
}


def _mixed(shop: Shop, first: int = 0) -> None:
    """Two large transactions interleaved, one of them rolled back in part; prepared ones; messages; small ones."""
    with shop.connect() as one, shop.connect() as two, shop.connect() as three:
        one.execute("BEGIN")
        two.execute("BEGIN")
        for step in range(4):
            for connection, offset in ((one, 1000), (two, 2000)):
                connection.execute("SAVEPOINT s")
                start = first + offset + step * 100
                rows = f"SELECT g, repeat('x', 300) FROM generate_series({start}, {start + 99}) g"
                connection.execute(f"INSERT INTO item {rows}".encode())
                if step == 2:
                    connection.execute("ROLLBACK TO s")
            three.execute(f"INSERT INTO item VALUES ({first + step}, 'small')".encode())
            three.execute(f"SELECT pg_logical_emit_message(false, 'note', '{first + step}')".encode())
        two.execute("COMMIT")
        one.execute(f"PREPARE TRANSACTION 'large {first}'".encode())
        three.execute("BEGIN")
        three.execute(f"INSERT INTO item VALUES ({first + 10}, 'prepared')".encode())
        three.execute(f"PREPARE TRANSACTION 'small {first}'".encode())
        three.execute(f"COMMIT PREPARED 'large {first}'".encode())
        three.execute(f"ROLLBACK PREPARED 'small {first}'".encode())


def _table_ids(shop: Shop) -> list[int]:
    with shop.connect() as connection:
        return [row[0] for row in connection.execute("SELECT id FROM item ORDER BY id")]


def _assert_exact(shop: Shop) -> None:
    """Nothing lost, nothing twice: transactions by their ends, rows by the table."""
    log = shop.log()
    assert sorted(committed_ids(log)) == _table_ids(shop)
    repeated = {end: count for end, count in ends(log).items() if count != 1}
    assert not repeated


def _wait_for_more(shop: Shop) -> None:
    """Wait for the next segment."""
    before = len(list(shop.directory.glob("segment*")))
    wait_until(lambda: len(list(shop.directory.glob("segment*"))) > before)


@contextmanager
def _writing(shop: Shop) -> Iterator[None]:
    """Write small and large transactions all the while."""
    done = threading.Event()

    def write() -> None:
        number = 10_000_000
        while not done.is_set():
            number += 10_000
            _mixed(shop, number)
            time.sleep(0.1)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(30)


def _sql_payloads(shop: Shop, slot: str, mode: dict[str, Any]) -> list[bytes]:
    pairs = {
        "proto_version": mode.get("proto_version", 4),
        "publication_names": '"' + PUBLICATION.replace('"', '""') + '"',
        "messages": "true",
        "streaming": mode.get("streaming", "off" if mode.get("proto_version") == 1 else "parallel"),
        "binary": str(mode.get("binary", False)).lower(),
    }
    arguments = [str(text) for pair in pairs.items() for text in pair]
    marks = ", ".join(["%s"] * len(arguments))
    query = f"SELECT data FROM pg_logical_slot_peek_binary_changes(%s, NULL, NULL, {marks})"
    with shop.connect() as connection:
        return [row[0] for row in connection.execute(query.encode(), [slot, *arguments])]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", [16, 18])
def test_the_log_equals_what_the_sql_function_gives(
    version: int, mode: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The same workload through the replication protocol and through SQL: the same payloads in the same order."""
    server: EmbeddedServer = request.getfixturevalue(f"server{version}")
    options = MODES[mode]
    dbname = f"equal_{mode.replace('-', '_')}"
    with Shop.create(server, dbname, tmp_path / "log", two_phase=options["two_phase"]) as shop:
        twin = f"{shop.slot}_twin"
        with shop.connect() as connection:
            create_slot(connection, twin, two_phase=options["two_phase"])
            _mixed(shop)
            result = shop.capture(limits=SegmentLimits(rows=100), **options)
            expected = _sql_payloads(shop, twin, options)
            drop_slot(connection, twin)
        log = shop.log()
        assert [entry.payload for entry in log] == expected
        assert result.rows == len(expected) and result.segments == len(log.segments) > 1
        assert any(entry.in_stream for entry in log) == (mode != "v1")
        assert set(notes(log).values()) == {1}
        if not options.get("binary"):
            _assert_exact(shop)


@pytest.mark.parametrize("version", [1, 2])
def test_a_two_phase_slot_is_captured_in_any_version(shop: Shop, version: int) -> None:
    """The server sends prepared transactions unasked: they are in the log, and their rows in the tables."""
    _mixed(shop)
    assert shop.capture(proto_version=version, two_phase=False).rows
    prepared = {entry.payload[:1] for entry in ChangeLog(shop.directory)} & {b"b", b"P", b"K", b"r"}
    assert prepared == {b"b", b"P", b"K", b"r"}
    _assert_exact(shop)


def test_a_capture_goes_on_where_the_log_ends(shop: Shop) -> None:
    """Three calls, the last without anything to do: one log, each transaction and message once."""
    for first in (0, 5000):
        _mixed(shop, first)
        result = shop.capture(limits=TINY)
        assert result.ended_by == "until_lsn" and result.confirmed_lsn == shop.log().complete_lsn
    assert shop.capture().rows == 0
    _assert_exact(shop)
    assert set(notes(shop.log()).values()) == {1}
    assert shop.log().segments[-1].position.prepared == {}


def test_the_log_survives_kill_9_of_its_capture(shop: Shop) -> None:
    """A capture killed at any moment, again and again, loses nothing and repeats no whole transaction."""
    moments = random.Random(5)
    with _writing(shop):
        for _ in range(4):
            with shop.capturing_process(limits="SegmentLimits(rows=50, seconds=0.02)"):
                _wait_for_more(shop)
                time.sleep(moments.random() * 0.3)
    shop.capture()
    _assert_exact(shop)
    assert set(notes(shop.log()).values()) == {1}


def test_the_capture_survives_kill_9_of_the_server(shop: Shop) -> None:
    """A server killed and started again, then restarted: the capture connects again, and the log is exact."""
    reports: list[CaptureProgress] = []
    with shop.capturing(limits=TINY, on_progress=reports.append) as outcome:
        _mixed(shop, 0)
        wait_until(lambda: bool(reports) and reports[-1].transactions > 2)
        shop.server.kill()
        shop.server.start()
        wait_until(lambda: reports[-1].reconnects >= 1)
        _mixed(shop, 5000)
        wait_until(lambda: is_active(shop))
        _wait_for_more(shop)
        shop.server.restart()
        end = shop.execute("INSERT INTO item VALUES (9999, 'last')")
        wait_until(lambda: reports[-1].confirmed_lsn >= end)
    assert outcome["result"].ended_by == "stop" and outcome["result"].reconnects >= 2
    _assert_exact(shop)


def test_a_server_that_stays_away_ends_the_capture(shop: Shop) -> None:
    """Connecting again is bounded; what was received before is in the log."""
    with shop.capturing(limits=TINY, reconnect_seconds=0.5) as outcome:
        shop.execute("INSERT INTO item VALUES (1, 'a')")
        wait_until(lambda: bool(list(shop.directory.glob("segment*"))))
        shop.server.kill()
        wait_until(lambda: bool(outcome))
    shop.server.start()
    assert isinstance(outcome["error"], ReplicationError)
    assert committed_ids(shop.log()) == [1]


def test_a_server_can_shut_down_while_rows_wait_in_memory(shop: Shop) -> None:
    """A server that shuts down asks; the rows are published and confirmed at once, not at the segment's limit."""
    reports: list[CaptureProgress] = []
    with shop.capturing(limits=SegmentLimits(seconds=3600), on_progress=reports.append) as outcome:
        shop.execute("INSERT INTO item VALUES (1, 'a')")
        wait_until(lambda: bool(reports) and reports[-1].payload_bytes > 0)
        began = time.monotonic()
        shop.server.restart()
        assert time.monotonic() - began < 10
    assert outcome["result"].ended_by == "stop"
    assert committed_ids(shop.log()) == [1]


def test_the_slot_never_passes_what_is_durable(shop: Shop) -> None:
    """At every look, all transactions that ended before the confirmed position were already in the log."""
    looks: list[tuple[Lsn, int]] = []
    with _writing(shop), shop.capturing(limits=SegmentLimits(rows=20, seconds=0.1), status_interval=0.05):
        deadline = time.monotonic() + 60
        while len({confirmed for confirmed, _ in looks}) <= 10 and time.monotonic() < deadline:
            confirmed = shop.confirmed()
            segments = sorted(shop.directory.glob("segment*"))
            looks.append((confirmed, int(segments[-1].stem.split("-")[1]) if segments else -1))
            time.sleep(0.01)
    log = shop.log()
    last_seq = {segment.first_seq: segment.last_seq for segment in log.segments} | {-1: -1}
    placed = _end_seqs(shop)
    assert len({confirmed for confirmed, _ in looks}) > 5
    for confirmed, newest in looks:
        assert all(seq <= last_seq[newest] for end, seq in placed if end <= confirmed)


def _end_seqs(shop: Shop) -> list[tuple[Lsn, int]]:
    return [(end_lsn(message), entry.seq) for entry, message in messages(shop.log()) if isinstance(message, ENDS)]


def test_what_the_server_sends_again_is_dropped(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slot that was never moved, read from its beginning: the log still has each transaction once."""

    class Forgetful(ReplicationStream):
        def __init__(self, connection: Any, options: Any, start_lsn: Any = None, **others: Any) -> None:
            super().__init__(connection, options, Lsn(0), **others)

        def confirm(self, lsn: Lsn) -> None:
            pass

    monkeypatch.setattr(CAPTURE_MODULE, "ReplicationStream", Forgetful)
    _mixed(shop, 0)
    shop.execute("BEGIN", "INSERT INTO item VALUES (78, 'late')", "PREPARE TRANSACTION 'late'")
    shop.capture()
    assert shop.log().segments[-1].position.prepared.keys() == {"late"}
    shop.execute("COMMIT PREPARED 'late'")
    _mixed(shop, 5000)
    result = shop.capture()
    assert result.dropped > 5
    _assert_exact(shop)
    assert set(notes(shop.log()).values()) == {1}


def _reply(shop: Shop, sent: Lsn) -> str | None:
    """Ask when the reader of the slot last replied, if all up to a position was sent to it."""
    query = """SELECT reply_time::text FROM pg_stat_replication r JOIN pg_replication_slots s ON r.pid = s.active_pid
               WHERE slot_name = %s AND sent_lsn >= %s::pg_lsn"""
    with shop.connect() as connection:
        row = connection.execute(query.encode(), [shop.slot, str(sent)]).fetchone()
        return row[0] if row else None


def _replied_after(shop: Shop, sent: Lsn, before: str | None) -> bool:
    return _reply(shop, sent) not in (None, before)


def _wait_until_read(shop: Shop, sent: Lsn) -> None:
    """A reader that has replied twice since has read in between."""
    for _ in range(2):
        before = _reply(shop, sent)
        wait_until(partial(_replied_after, shop, sent, before), 60)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_finishes_the_segment_and_confirms(shop: Shop, number: signal.Signals) -> None:
    """The process ends by itself with status 0; what it had in memory is in the log and confirmed."""
    with shop.capturing_process(limits="SegmentLimits(seconds=3600)", status_interval=0.2) as process:
        wait_until(lambda: is_active(shop))
        end = shop.execute("INSERT INTO item VALUES (1, 'a')")
        _wait_until_read(shop, end)
        assert not list(shop.directory.glob("segment*"))
        process.send_signal(number)
        assert process.wait(30) == 0
    assert committed_ids(shop.log()) == [1]
    wait_until(lambda: shop.confirmed() >= end, 2)


def test_a_slow_disk_and_slow_callbacks_do_not_starve_the_stream(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an fsync of 3 s, on_progress of 1.1 s and wal_sender_timeout of 2 s a large transaction comes once."""
    fsync, calls = os.fsync, list[int]()

    def slow(descriptor: int) -> None:
        time.sleep(3 if len(calls) < 2 else 0)
        calls.append(descriptor)
        fsync(descriptor)

    insert = "INSERT INTO item SELECT g, repeat(md5(g::text), 30) FROM generate_series(1, 20000) g"
    end = shop.execute(insert)
    dsn = psycopg.conninfo.make_conninfo(shop.dsn, options="-c wal_sender_timeout=2s")
    with LogWriter(shop.directory):
        pass
    monkeypatch.setattr(os, "fsync", slow)
    reports: list[int] = []

    def report(progress: CaptureProgress) -> None:
        time.sleep(1.1)
        reports.append(progress.rows)

    limits = SegmentLimits(payload_bytes=2**20)
    result = capture_function(
        dsn, shop.slot, [PUBLICATION], shop.directory, until_lsn=end, limits=limits, on_progress=report
    )
    assert len(calls) > 2 and reports[-1] == result.rows
    assert (result.reconnects, result.transactions, result.confirmed_lsn >= end) == (0, 1, True)
    assert sorted(committed_ids(shop.log())) == list(range(1, 20001))


def test_a_commit_that_waits_for_the_capture_cuts_a_segment(shop: Shop) -> None:
    """As a synchronous standby the capture confirms each commit at once, not at the limit of the segment."""
    warnings: list[str] = []
    with shop.connect() as admin:
        admin.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        admin.execute("SELECT pg_reload_conf()")
        try:
            with shop.capturing(limits=SegmentLimits(seconds=3600), status_interval=0.2), shop.connect() as writer:
                writer.add_notice_handler(lambda notice: warnings.append(str(notice.message_primary)))
                writer.execute("SET statement_timeout = '20s'")  # the server then says that it has not waited
                query = "SELECT FROM pg_stat_replication WHERE sync_state = 'sync'"
                wait_until(lambda: bool(admin.execute(query).fetchall()))
                for number in range(3):
                    writer.execute("INSERT INTO item VALUES (%s, 'waits')", [number])
        finally:
            admin.execute("ALTER SYSTEM RESET synchronous_standby_names")
            admin.execute("SELECT pg_reload_conf()")
    assert warnings == []
    assert sorted(committed_ids(shop.log())) == [0, 1, 2] and len(shop.log().segments) >= 3
