"""Silent, slow and many clients take no memory and no place for long; what they confirmed outlasts a crash."""

import contextlib
import json
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import pgoutput_construct as pgo
from pgoutput_construct import testing
from pgoutput_construct.wire import Lsn, Timestamp
from pgoutput_construct.wire import connection_messages as m
from pgoutput_construct.wire.connection_engine import build_connection
from pgoutput_construct.wire.json_lines import Decoded, format_line
from tests.postgres.shop import wait_until
from tests.publisher.asking import START, allowed, can_start, served, sqlstate
from tests.publisher.wire_client import WireClient

pytestmark = pytest.mark.slow


def test_who_does_not_say_who_it_is() -> None:
    """Is disconnected after a while, and keeps nobody out meanwhile."""
    with (
        testing.publisher(authentication_timeout=0.5, max_connections=1) as publisher,
        WireClient(publisher.port) as half,
    ):
        half.write(b"\0")
        assert served(publisher)
        assert sqlstate(half.rest()[-1]) == "57014"


def test_silent_clients_are_disconnected() -> None:
    """Who does not answer, or does not read, is disconnected; its place, and its slot, are free again."""
    with testing.publisher(wal_sender_timeout=0.5, max_connections=2) as publisher, contextlib.ExitStack() as open_:
        table = publisher.table("t", {"id": "int4", "big": "text"}, key=["id"])
        publisher.commit([table.insert({"id": n, "big": "x" * 10_000}) for n in range(2000)])
        mute, deaf = (
            open_.enter_context(WireClient(publisher.port, user="me", replication="database")) for _ in range(2)
        )
        mute.start(START.format("mute"))
        deaf.start(START.format("deaf"))
        assert sqlstate(mute.rest()[-1]) == "57P05"
        wait_until(lambda: allowed(publisher))
        other = open_.enter_context(WireClient(publisher.port, user="me", replication="database"))
        wait_until(lambda: can_start(other, "deaf"))


def test_a_flood_of_connections() -> None:
    """More than are allowed are refused with PostgreSQL's code; then all is as before."""
    with testing.publisher(max_connections=5) as publisher, contextlib.ExitStack() as open_:
        clients = [open_.enter_context(WireClient(publisher.port, user="me")) for _ in range(5)]
        with pytest.raises(psycopg.OperationalError, match="too many clients already"):
            served(publisher)
        assert clients[0].query("SELECT 1") == [(b"1",)]
        clients[1].close()
        wait_until(lambda: allowed(publisher))


def test_a_flood_of_silent_sockets() -> None:
    """Clients with a password are let in, however many connections say nothing, or stop amid the exchange."""
    known: dict[str, Any] = {"method": "scram-sha-256", "user": "me", "password": "secret"}
    with testing.publisher(max_connections=10, **known) as publisher, contextlib.ExitStack() as open_:
        first = open_.enter_context(psycopg.connect(publisher.dsn, password="secret", autocommit=True))
        flood = []
        for number in range(500):
            flood.append(open_.enter_context(WireClient(publisher.port)))
            if number % 2:
                flood[-1].say(m.StartupMessage(0, (m.StartupParameter("user", "me"),)))
        for _ in range(9):
            open_.enter_context(psycopg.connect(publisher.dsn, password="secret", connect_timeout=10))
        with pytest.raises(psycopg.OperationalError, match="too many clients already"):
            served(publisher, password="secret")
        wait_until(lambda: sum(each.is_open() for each in flood[::2]) <= 20)
        assert first.execute("SELECT 1").fetchone() == (1,)


def test_slow_readers_take_no_memory() -> None:
    """Clients that ask for much and read nothing hold a few buffers each; others are served meanwhile."""
    with testing.publisher() as publisher, contextlib.ExitStack() as open_:
        table = publisher.table("t", {"id": "int4", "big": "text"}, key=["id"])
        end = publisher.commit([table.insert({"id": n, "big": "x" * 10_000}) for n in range(800)])
        clients = [open_.enter_context(WireClient(publisher.port, user="me", replication="database")) for _ in range(9)]
        tracemalloc.start()
        for number, client in enumerate(clients[:6]):
            client.start(START.format(f"slow_{number}"))
        for client in clients[6:8]:
            client.query("SET a.long = '" + "x" * 10_000 + "'")
            client.write(build_connection(m.Query("SHOW a.long")) * 2000)
        clients[8].start(START.format("fast"))
        received = 0
        while received < 8_000_000:
            (message,) = clients[8].until(m.CopyData)[-1:]
            assert isinstance(message, m.CopyData)
            received += len(message.data)
        clients[8].status(end)
        wait_until(lambda: (slot := publisher.slot("fast")) is not None and slot.confirmed == end)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000  # the stream is 8 MB, for each of them
        tracemalloc.stop()


@contextlib.contextmanager
def serving(source: Path) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """Run ``pgoutput serve``; yield its port and process."""
    command = [sys.executable, "-m", "pgoutput_construct.cli", "serve", str(source), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline().rpartition(":")[2]), process
        finally:
            process.kill()


@pytest.mark.parametrize(
    "ends",
    [
        (signal.SIGKILL, signal.SIGTERM),
        pytest.param((signal.SIGTERM, signal.SIGKILL, signal.SIGTERM), marks=pytest.mark.long),
    ],
    ids=["crash", "both"],
)
def test_positions_survive_a_restart_and_a_crash(tmp_path: Path, ends: tuple[signal.Signals, ...]) -> None:
    """What a client has confirmed is not sent again by the next process, however the last one ended."""
    source, kept = tmp_path / "lines.jsonl", tmp_path / "lines.jsonl.slots.json"
    source.write_bytes(b"".join(_lines()))
    for number, end in enumerate(ends):
        with serving(source) as (port, process), WireClient(port, user="me", replication="database") as client:
            client.start(START.format("lasting"))
            first = next(data for data in iter(client.payload, None) if data.startswith(pgo.Begin.TAG))
            assert pgo.parse(first).xid == 701 + number
            confirmed = 0x1000 * (number + 2)
            client.status(confirmed)
            if end == signal.SIGKILL:
                wait_until(lambda at=confirmed: json.loads(kept.read_text())["lasting"]["confirmed"] == at)
            else:
                client.say(m.ClientCopyDone())
                client.until(m.ReadyForQuery)
            process.send_signal(end)
            process.wait(300)


def _lines() -> Iterator[bytes]:
    for number in range(4):
        lsn, end = Lsn(0x1000 * (number + 1)), Lsn(0x1000 * (number + 2))
        for message in (pgo.Begin(lsn, Timestamp(0), 701 + number), pgo.Commit(lsn, end, Timestamp(0))):
            yield format_line(Decoded(message, b"", {"proto_version": 1}))
