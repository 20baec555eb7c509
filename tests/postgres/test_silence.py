"""Servers that do not answer or are down: every wait has a limit, and can be interrupted."""

import logging
import math
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from select import select
from typing import Any

import psycopg
import pytest
from pytest import LogCaptureFixture as Caplog

from pgoutput_construct.changelog.log_options import StreamOptions
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import (
    CaptureProgress,
    ReplicationError,
    ReplicationStream,
    capture,
    connect,
    create_slot,
)
from pgoutput_construct.postgres._patience import Patience, Stopped
from pgoutput_construct.postgres.replication import Silence, is_at_work
from pgoutput_construct.postgres.slot_peek import open_slot
from pgoutput_construct.wire import Lsn
from tests.postgres.proxy import Proxy
from tests.postgres.shop import PUBLICATION, Shop, committed_ids, is_active, wait_until
from tools.background import in_background

pytestmark = pytest.mark.server


@pytest.fixture
def proxy(shop: Shop) -> Iterator[Proxy]:
    """A path to the shop's server; the shop's captures take it."""
    with Proxy(shop.server) as proxy:
        shop.path = proxy.dsn
        yield proxy


def test_a_silent_connection_is_replaced(shop: Shop, proxy: Proxy, caplog: Caplog) -> None:
    """TCP acknowledges, but nobody answers: the capture reconnects, and resumes when the network is back."""
    caplog.set_level(logging.INFO, "pgoutput_construct")
    with shop.capturing(status_interval=0.2):
        wait_until(lambda: is_active(shop))
        shop.execute("INSERT INTO item VALUES (1, 'a')")
        proxy.silent = True
        wait_until(lambda: "the server has sent nothing for" in "\n".join(caplog.messages))
        shop.execute("INSERT INTO item VALUES (2, 'b')")
        proxy.silent = False
        proxy.cut()
        end = shop.execute()
        wait_until(lambda: shop.confirmed() >= end)
    assert committed_ids(shop.log()) == [1, 2]


def test_a_slow_message_is_not_silence(shop: Shop, proxy: Proxy) -> None:
    """While a large message arrives, the reader returns no frames, and the server does not count as silent."""
    shop.execute("INSERT INTO item SELECT 1, string_agg(md5(g::text), '') FROM generate_series(1, 40000) g")
    options = StreamOptions(slot=shop.slot, publications=(PUBLICATION,), proto_version=1, streaming="off")
    with ReplicationStream(connect(proxy.dsn(shop.dsn)), options, status_interval=0.1) as stream:
        proxy.pause = 0.05
        empty, largest = 0, 0
        while largest < 1_000_000:
            frames = stream.drain(0.05)
            empty, largest = empty + (not frames), max([largest, *map(len, frames)])
    assert empty > 5


def test_a_blocked_status_update_does_not_block_the_capture(shop: Shop, proxy: Proxy) -> None:
    """If the network accepts nothing, status updates wait, and the stream's owner, who checks signals, continues."""
    options = StreamOptions(slot=shop.slot, publications=(PUBLICATION,), proto_version=1, streaming="off")
    with ReplicationStream(connect(proxy.dsn(shop.dsn)), options, status_interval=0.3) as stream:
        proxy.stuck = True
        buffer = socket.socket(fileno=os.dup(stream._pgconn.socket))
        buffer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        with buffer:
            while select([], [buffer], [], 0)[1]:  # the buffers of two sockets
                stream.send_status()
            for _ in range(1000):  # and that of libpq
                stream.send_status()
        proxy.stuck = False
        stream.send_status(reply_requested=True)
        wait_until(lambda: len(stream.drain(0.1)) > 0)


def test_connecting_can_be_interrupted(shop: Shop, proxy: Proxy) -> None:
    """On a path that is silent from the start SIGTERM ends the process, long before the attempt is given up."""
    proxy.silent = True
    with shop.capturing_process() as process:
        wait_until(lambda: proxy.connections > 0)
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 0


def test_a_statement_can_be_interrupted_and_releases_the_gil(shop: Shop, proxy: Proxy) -> None:
    """A server that does not answer keeps neither other threads nor the one who asks for the end waiting."""
    asked = threading.Event()
    with connect(proxy.dsn(shop.dsn), patience=Patience(stop=lambda: "enough" if asked.is_set() else None)) as slow:
        proxy.silent = True
        threading.Timer(0.3, asked.set).start()  # only runs while the statement waits
        with pytest.raises(Stopped, match="enough"):
            slow.execute("SELECT 1")


def test_a_statement_has_a_deadline(shop: Shop, proxy: Proxy) -> None:
    """A server that does not answer in time counts as gone, which may pass."""
    from pgoutput_construct.postgres import current_lsn

    connection = connect(proxy.dsn(shop.dsn), patience=Patience(0.3))
    proxy.silent = True
    with pytest.raises(ReplicationError, match=r"has not answered for 0\.3 seconds") as caught:
        current_lsn(connection)
    assert caught.value.transient and connection.closed


def test_a_long_peek_has_no_time_limit(shop: Shop) -> None:
    """The server sends nothing until all is decoded; it is waited for while it is at work, here for a lock."""
    asked = Queue[bool]()
    with shop.connect() as connection:
        create_slot(connection, f"{shop.slot}_live")
    shop.execute("INSERT INTO item VALUES (1, 'a')")
    try:
        with open_slot(shop.dsn, f"{shop.slot}_live", [PUBLICATION]) as peek, shop.connect() as blocking:
            patience = peek._connection.patience
            is_working, patience.seconds = patience.is_working, 0.2
            assert is_working is not None

            def is_seen() -> bool:
                asked.put(is_working())
                return True

            patience.is_working = is_seen
            with blocking.transaction():
                blocking.execute("LOCK TABLE pg_publication IN ACCESS EXCLUSIVE MODE")
                with in_background(lambda _: peek.ends()) as (peeking,):
                    assert [asked.get(timeout=300) for _ in range(3)] == [True] * 3
                    blocking.execute("ROLLBACK")
            assert len(peeking.result()) == 1
    finally:
        shop.execute(f"SELECT pg_drop_replication_slot('{shop.slot}_live')")


def test_an_idle_process_is_not_active(shop: Shop) -> None:
    """One that waits for its client, or that there is not: a connection to it is dead, or its answer lost."""
    with shop.connect() as idle:
        assert not is_at_work(shop.dsn, idle.info.backend_pid)
    assert not is_at_work(shop.dsn, 0) and not is_at_work(shop.dsn.replace(shop.dbname, "nowhere"), 1)


def test_a_server_down_at_the_start_is_retried(shop: Shop, caplog: Caplog) -> None:
    """The first connection is retried like any other; the reason is logged once, and the capture can be stopped."""
    shop.execute("INSERT INTO item VALUES (1, 'a')")
    shop.server.stop()
    try:
        reports: list[CaptureProgress] = []
        with shop.capturing(on_progress=reports.append) as outcome:
            wait_until(lambda: bool(reports) and reports[-1].reconnects > 1)
            shop.server.start()
            end = shop.execute()
            wait_until(lambda: shop.confirmed() >= end or outcome.done())
    finally:
        shop.server.start()
    assert outcome.result().reconnects > 1
    assert 0 < "\n".join(caplog.messages).count("trying again") <= 3  # no server; then it starts up
    assert committed_ids(shop.log()) == [1]


def test_permanent_errors_end_at_once(shop: Shop) -> None:
    """A database that there is not is not waited for."""
    shop.path = lambda dsn: dsn.replace(shop.dbname, "nowhere")
    with pytest.raises(ReplicationError, match='database "nowhere" does not exist'):
        shop.capture(until=None, stop=lambda: False)


def test_the_silence_limit_doubles() -> None:
    """A server that is silent because it is busy is not interrupted forever; each reply is requested once."""
    limits = [Silence(10, silent_before=number).limit for number in (0, 1, 2, 20)]
    assert limits == [30, 60, 120, 30 * 2**20]
    silence = Silence(0)
    assert silence.should_ask()
    with pytest.raises(ReplicationError, match="sent nothing"):
        silence.check()


@pytest.mark.parametrize(("setting", "limit"), [("0", math.inf), ("5s", 30), ("20min", 1200)])
def test_a_stream_without_a_capture_waits_for_wal_sender_timeout(shop: Shop, setting: str, limit: float) -> None:
    """``wal_sender_timeout`` says how long a server may be silent; without one, TCP says whether it is there."""
    options = StreamOptions(slot=shop.slot, publications=(PUBLICATION,), proto_version=1, streaming="off")
    with ReplicationStream(connect(with_sender_timeout(shop.dsn, setting)), options) as stream:
        assert stream.silence.limit == limit


@pytest.mark.parametrize("setting", ["0", pytest.param("1h", marks=pytest.mark.long)])
def test_an_active_walsender_is_not_silent(
    server: EmbeddedServer, tmp_path: Path, setting: str, caplog: Caplog
) -> None:
    """A walsender that decodes what is not published sends nothing, here since it is stopped meanwhile."""
    with Shop.create(server, "working", tmp_path / "log", two_phase=False) as shop:
        shop.execute("CREATE TABLE other (id bigint)", "CREATE PUBLICATION without FOR TABLE item")
        shop.path = lambda dsn: with_sender_timeout(dsn, setting)
        shop.capture()
        options: Any = {"publications": ["without"], "status_interval": 0.6, "until": Lsn("FFFFFFFF/0")}
        with shop.capturing(**options) as outcome:
            wait_until(lambda: is_active(shop))
            end = shop.execute(
                "INSERT INTO other SELECT generate_series(1, 500000)", "INSERT INTO item VALUES (1, 'a')"
            )
            with stopped_at_work(shop):
                wait_until(lambda: outcome.done() or "its walsender is active" in "\n".join(caplog.messages))
                time.sleep(1.5)
            wait_until(lambda: outcome.done() or shop.confirmed() >= end)
        assert outcome.result().reconnects == 0 and committed_ids(shop.log()) == [1]


def test_a_hanging_idle_walsender_is_replaced(shop: Shop, caplog: Caplog) -> None:
    """It is not at work, and keeps the slot until it runs again; then it is ended, and the capture resumes."""
    with shop.capturing(status_interval=0.1):
        wait_until(lambda: is_active(shop))
        pid = walsender(shop)[0]
        os.kill(pid, signal.SIGSTOP)
        try:
            wait_until(lambda: "is being read by process" in "\n".join(caplog.messages))
        finally:
            os.kill(pid, signal.SIGCONT)
        end = shop.execute("INSERT INTO item VALUES (1, 'a')")
        wait_until(lambda: shop.confirmed() >= end)
        assert walsender(shop)[0] != pid
    assert committed_ids(shop.log()) == [1]


def test_a_dead_connection_does_not_occupy_the_slot(shop: Shop, proxy: Proxy) -> None:
    """A server without ``wal_sender_timeout`` never finds that its client is gone: that ends its own walsender."""
    end = shop.execute("INSERT INTO item VALUES (1, 'a')")
    shop.path = lambda dsn: with_sender_timeout(proxy.dsn(dsn), "0")
    with shop.capturing(status_interval=0.2) as outcome:
        wait_until(lambda: shop.confirmed() >= end)
        proxy.stall()
        end = shop.execute("INSERT INTO item VALUES (2, 'b')")
        wait_until(lambda: outcome.done() or shop.confirmed() >= end)
    assert committed_ids(shop.log()) == [1, 2]


def with_sender_timeout(dsn: str, setting: str) -> str:
    """Return a connection string under which a walsender has a ``wal_sender_timeout`` of its own."""
    return psycopg.conninfo.make_conninfo(dsn, options=f"-c wal_sender_timeout={setting}")


def walsender(shop: Shop) -> tuple[int, bool]:
    """Ask for the process that reads the shop's slot, and whether it waits for its client or for WAL."""
    query = """SELECT pid, coalesce(wait_event_type IN ('Activity', 'Client'), false)
        FROM pg_stat_activity JOIN pg_replication_slots ON active_pid = pid WHERE slot_name = %s"""
    with shop.connect() as connection:
        (row,) = connection.execute(query, [shop.slot]).fetchall()
        return row


@contextmanager
def stopped_at_work(shop: Shop) -> Iterator[None]:
    """Stop the walsender of the shop's slot while it decodes, for a block."""
    pid, _ = walsender(shop)
    try:
        os.kill(pid, signal.SIGSTOP)
        while walsender(shop)[1]:
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.01)
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_capture_ends_after_a_time_or_when_idle(shop: Shop) -> None:
    """``duration`` and ``until_idle`` end it with everything in the log; the reason is returned."""
    shop.execute("INSERT INTO item SELECT g, 'a' FROM generate_series(1, 2000) g")
    result = capture(shop.dsn, shop.slot, [PUBLICATION], shop.directory, until_idle=0.2, new_log=True)
    assert result.ended_by == "until_idle" and len(committed_ids(shop.log())) == 2000
    assert capture(shop.dsn, shop.slot, [PUBLICATION], shop.directory, duration=0.3).ended_by == "duration"
