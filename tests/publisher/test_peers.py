"""Clients of other people read from the publisher what they read from the server whose change log it serves."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

import pgoutput_construct as pgo
from pgoutput_construct.changelog.log_options import StreamOptions
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres.capture import capture
from pgoutput_construct.postgres.connection import connect
from pgoutput_construct.postgres.replication import ReplicationStream
from pgoutput_construct.publisher.log_feed import LogFeed
from pgoutput_construct.publisher.server import ThreadedPublisher
from tests.publisher.subscriber import database
from tools.benchmark.harness import CLIENTS, Harness, built, missing

pytestmark = pytest.mark.server

TABLES = """
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE orders (id int PRIMARY KEY, note text, feeling mood, amount numeric(10,2), big text);
CREATE TABLE pairs (a int, b text); ALTER TABLE pairs REPLICA IDENTITY FULL;
CREATE PUBLICATION shop FOR ALL TABLES;
"""
CHANGES = """
INSERT INTO orders SELECT n, 'first', 'ok', n / 3.0, NULL FROM generate_series(1, 100) n;
BEGIN; INSERT INTO orders VALUES (1000, E'with\\nlines', NULL, 1, repeat('x', 9000)); SAVEPOINT s;
INSERT INTO pairs VALUES (0, 'never'); ROLLBACK TO s; INSERT INTO pairs VALUES (1, 'one'), (2, NULL); COMMIT;
UPDATE orders SET note = 'changed' WHERE id IN (7, 1000); UPDATE orders SET id = 2000 WHERE id = 8;
UPDATE pairs SET b = 'zwei' WHERE a = 2; DELETE FROM orders WHERE id = 9; DELETE FROM pairs WHERE a = 1;
SELECT pg_logical_emit_message(true, 'noted', 'in a transaction');
ALTER TABLE orders ADD COLUMN extra int DEFAULT 7; INSERT INTO orders (id, extra) VALUES (3000, 8);
BEGIN; INSERT INTO orders SELECT n, 'large', 'sad', n FROM generate_series(10000, 13000) n; COMMIT;
TRUNCATE pairs; INSERT INTO pairs VALUES (99, 'last');
"""
VERSIONS: dict[int, dict[str, str]] = {1: {}, 2: {"streaming": "on"}, 4: {"streaming": "parallel"}}
"""The protocol versions that the peers ask for, and the options with them."""


class Served(NamedTuple):
    """The same stream from the server and from the publisher, and what it is."""

    server: str
    publisher: str
    slots: dict[str, str]
    """A slot of the server for each client."""
    end: pgo.Lsn
    """The position behind the last commit."""
    messages: dict[int, list[bytes]]
    """What psycopg gets from the server, by protocol version."""


class _Enough(Exception):  # noqa: N818 - nothing has failed
    pass


def _psycopg(dsn: str, slot: str, version: int, end: pgo.Lsn) -> list[bytes]:
    """Read with psycopg 3: its libpq, and a stream of ours over it."""
    options = StreamOptions(slot=slot, publications=("shop",), proto_version=version, **VERSIONS[version])
    session, found = pgo.Session(proto_version=version, streaming=options.streaming), list[bytes]()
    with connect(dsn) as connection:
        stream = ReplicationStream(connection, options)
        for frame in stream:
            if isinstance(frame, pgo.XLogData):
                found.append(frame.data)
                if getattr(session.parse(frame.data), "end_lsn", 0) == end:
                    break
        stream.close()
    return found


def _psycopg2(dsn: str, slot: str, version: int, end: pgo.Lsn) -> list[bytes]:
    """Read with psycopg2's replication cursor."""
    import psycopg2
    from psycopg2.extras import LogicalReplicationConnection

    options = {"proto_version": str(version), "publication_names": "shop"} | VERSIONS[version]
    found = list[bytes]()

    def take(message: Any) -> None:
        found.append(message.payload)
        message.cursor.send_feedback(flush_lsn=message.data_start)
        if found[-1][:1] in (pgo.Commit.TAG, pgo.StreamCommit.TAG) and pgo.parse(found[-1], version).end_lsn == end:
            raise _Enough

    with closing(psycopg2.connect(dsn, connection_factory=LogicalReplicationConnection)) as connection:
        cursor = connection.cursor()
        cursor.start_replication(slot_name=slot, options=options, decode=False)
        with pytest.raises(_Enough):
            cursor.consume_stream(take, keepalive_interval=1)
    return found


def _pg_recvlogical(dsn: str, slot: str, version: int, end: pgo.Lsn) -> list[bytes]:
    """Read with PostgreSQL's own program: what it writes, as it is."""
    program = shutil.which("pg_recvlogical")
    if program is None:
        pytest.skip("no pg_recvlogical on the PATH: it comes with PostgreSQL's client programs")
    options = {"proto_version": str(version), "publication_names": "shop"} | VERSIONS[version]
    given = [part for pair in options.items() for part in ("-o", "=".join(pair))]
    command = [program, "--dbname", dsn, "--slot", slot, "--start", "--no-loop", "--endpos", str(end), *given]
    done = subprocess.run([*command, "--file", "-"], capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return [done.stdout]


PROGRAMS: dict[str, Callable[[str, str, int, pgo.Lsn], list[bytes]]] = {
    "psycopg": _psycopg,
    "psycopg2": _psycopg2,
    "pg_recvlogical": _pg_recvlogical,
}


@pytest.fixture(scope="module")
def served(server18: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A stream of a server, its change log, and a publisher that serves it."""
    log = tmp_path_factory.mktemp("peers") / "log"
    clients = [*PROGRAMS, *(client.name for client in CLIENTS)]
    slots = {f"{name}{version}": f"peer_{n}_{version}" for n, name in enumerate(clients) for version in VERSIONS}
    with database(server18, "peers") as source:
        for statement in TABLES.split(";"):
            source.execute(statement)
        for slot in (*slots.values(), "peer_log"):
            source.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (slot,))
        for statement in CHANGES.split(";"):
            source.execute(statement)
        dsn = psycopg.conninfo.make_conninfo(server18.dsn, dbname="peers")
        options: Any = {"proto_version": 4, "streaming": "parallel"}
        capture(dsn, "peer_log", ["shop"], log, until_idle=1.0, handle_signals=False, new_log=True, **options)
        feed = LogFeed(log)
        end = pgo.Lsn(feed.order().end)
        with ThreadedPublisher(feed) as publisher:
            messages = {version: _psycopg(dsn, slots[f"psycopg{version}"], version, end) for version in VERSIONS}
            yield Served(dsn, publisher.dsn + " user=me", slots, end, messages)
        for slot in (*slots.values(), "peer_log"):
            source.execute("SELECT pg_drop_replication_slot(%s)", (slot,))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_same_from_both(served: Served, program: str, version: int) -> None:
    """Byte for byte the same payloads, in the same order."""
    read, slot = PROGRAMS[program], served.slots[f"{program}{version}"]
    expected = served.messages[version] if program == "psycopg" else read(served.server, slot, version, served.end)
    assert len(b"".join(expected)) > 100_000
    assert read(served.publisher, slot, version, served.end) == expected


def _run(client: Harness, folder: Path, dsn: str, *arguments: object) -> list[str]:
    parts = {"port": "5432", **psycopg.conninfo.conninfo_to_dict(dsn)}
    server = [str(parts[name]) for name in ("host", "port", "user", "dbname")]
    program = str(folder / client.run[0]) if "/" in client.run[0] else client.run[0]
    command = [program, *client.run[1:], *server, *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_the_same_in_other_languages(served: Served, client: Harness, version: int) -> None:
    """What a client's library makes of each message is the same, too."""
    if version > 1 and not client.streaming:
        pytest.skip(f"{client.name} does not know streamed transactions")
    folder = built(client)
    if folder is None:
        pytest.skip(missing(client))
    arguments = served.slots[f"{client.name}{version}"], "shop", version, len(served.messages[version])
    expected = _run(client, folder, served.server, *arguments)
    assert len(expected) >= len(served.messages[version])
    assert _run(client, folder, served.publisher, *arguments) == expected
