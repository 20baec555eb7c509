"""The dissector on live replication connections, as a network carries them."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import pgoutput_construct as pgo
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.wire.trace import trace, trace_frame
from tests.live.capture import MODES, Capture, emit_marker, slots, wait_for
from tests.postgres.shop import wait_until
from tests.wireshark.compared import assert_same
from tests.wireshark.pcap import Said, write_pcap
from tests.wireshark.relay import Relay, relay
from tests.wireshark.shown import NEEDS_TSHARK, ShownMessage, shown

if TYPE_CHECKING:
    import psycopg

pytestmark = [NEEDS_TSHARK, pytest.mark.server]

MODE = next(mode for mode in MODES if mode.name == "v4-text")
MARKER = b"the end of what is captured"
WORK = """
    BEGIN; INSERT INTO gauge VALUES (1, 'one'); COMMIT;
    BEGIN;
    INSERT INTO gauge SELECT i, repeat('long ', 20) FROM generate_series(2, 800) i;
    SAVEPOINT a; INSERT INTO gauge SELECT -i, repeat('back ', 20) FROM generate_series(0, 800) i; ROLLBACK TO a;
    DELETE FROM gauge WHERE id < 20;
    COMMIT;
    BEGIN; UPDATE gauge SET id = -id WHERE id = 30; PREPARE TRANSACTION 'gauge'; COMMIT PREPARED 'gauge';
    TRUNCATE gauge;
"""


@contextmanager
def database(server: EmbeddedServer) -> Iterator[str]:
    """Yield the name of a database with a published table; drop it at the end."""
    with server.connect() as admin:
        admin.execute("CREATE DATABASE wireshark")
        with server.connect(dbname="wireshark") as connection:
            connection.execute("CREATE TABLE gauge (id int PRIMARY KEY, note text)")
            connection.execute("CREATE PUBLICATION gauges FOR TABLE gauge")
        yield "wireshark"
        admin.execute("DROP DATABASE wireshark WITH (FORCE)")


def socket_of(server: EmbeddedServer) -> "AbstractContextManager[Relay]":
    """Return a relay in front of a server."""
    parts = conninfo_to_dict(server.dsn)
    return relay(f"{parts['host']}/.s.PGSQL.{parts.get('port', 5432)}")


def work(connection: "psycopg.Connection[tuple[object, ...]]") -> None:
    """Change the table in every way."""
    for statement in filter(str.strip, WORK.split(";")):
        connection.execute(statement.encode())
    emit_marker(connection, MARKER)


def replicate(server: EmbeddedServer, through: Relay, dbname: str) -> list[bytes]:
    """Read the changes over the relay; return the frames, the last of which is an answer of the client."""
    dsn = make_conninfo(server.dsn, host="127.0.0.1", port=through.port)
    answer = pgo.build_frame(pgo.StandbyStatusUpdate(pgo.Lsn(1), pgo.Lsn(1), pgo.Lsn(1), pgo.Timestamp(0), 0))
    with (
        server.connect(dbname=dbname) as connection,
        slots(connection, [MODE]) as names,
        closing(Capture(dsn, MODE, names[MODE], dbname, ["gauges"])) as capture,
    ):
        work(connection)
        wait_for([capture], MARKER)
        capture.send(answer)
        return [*capture.frames, answer]


@contextmanager
def dumpcap(port: int, path: Path) -> Iterator[str]:
    """Capture a port of the loopback interface until the marker is there; yield why not, where that is not allowed."""
    if shutil.which("dumpcap") is None:
        yield "it is not installed"
        return
    command = ["dumpcap", "-q", "-i", "lo", "-f", f"tcp port {port}", "-w", str(path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        told = []
        for line in process.stderr:
            told.append(line)
            if line.startswith("File:"):
                yield ""
                _wait_for_marker(path)
                process.terminate()
                return
        yield "".join(told)


def _wait_for_marker(path: Path) -> None:
    wait_until(lambda: MARKER in path.read_bytes())


def by_server(found: list[ShownMessage]) -> list[ShownMessage]:
    """Return what the server sent, up to the marker: what comes later not all that look on have seen."""
    sent = [message for message in found if not message.name.startswith("Standby")]
    return sent[: next(i for i, message in enumerate(sent) if message.name == "Message" and MARKER in message.data) + 1]


class Live(NamedTuple):
    """A connection: the frames that were received and sent, what the relay saw, what dumpcap captured or why not."""

    frames: list[bytes]
    relayed: Relay
    captured: Path
    problem: str


@pytest.fixture(scope="module")
def live(server18: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> Live:
    """Replicate once."""
    path = tmp_path_factory.mktemp("live") / "captured.pcap"
    with socket_of(server18) as through, dumpcap(through.port, path) as problem, database(server18) as dbname:
        frames = replicate(server18, through, dbname)
    return Live(frames, through, path, problem)


@pytest.fixture(scope="module")
def found(live: Live, tmp_path_factory: pytest.TempPathFactory) -> list[ShownMessage]:
    """Return what is shown of what the relay saw."""
    path = tmp_path_factory.mktemp("relayed") / "relayed.pcap"
    return shown(write_pcap(path, [Said(*each) for each in live.relayed.said]))


def test_a_live_connection(live: Live, found: list[ShownMessage]) -> None:
    """What a client receives is what is shown, and nothing of it is damaged or out of sequence."""
    session, expected = pgo.Session(MODE.proto_version, MODE.streaming), []
    last = next(i for i, frame in enumerate(live.frames) if frame.endswith(MARKER))
    for frame in live.frames[: last + 1]:
        expected.append(trace_frame(frame))
        if isinstance(parsed := pgo.parse_frame(frame), pgo.XLogData):
            expected.append(trace(parsed.data, **session.options, in_stream=session.in_stream))
            session.parse(parsed.data)
    for message, each in zip(by_server(found), expected, strict=True):
        assert_same(message, each)
    assert [message.data for message in found if message.name.startswith("Standby")] == live.frames[-1:]
    assert {"Stream Start", "Stream Abort", "Commit Prepared", "Truncate"} <= {message.name for message in found}
    assert [message.experts for message in found if message.experts] == []


def test_captured_by_dumpcap(live: Live, found: list[ShownMessage]) -> None:
    """What is captured on the network, at another port than 5432, is shown alike."""
    if live.problem:
        pytest.skip(f"dumpcap may not capture here: {live.problem}")
    captured = shown(live.captured, "-d", f"tcp.port=={live.relayed.port},pgsql")
    assert by_server(captured) == by_server(found)
