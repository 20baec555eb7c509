"""Bad clients end at most their own connection; good ones of any driver are served meanwhile."""

import asyncio
import contextlib
import datetime
import socket
import ssl
import struct
import time
from itertools import product
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgoutput_construct import testing
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.postgres.capture import capture
from pgoutput_construct.publisher._feed.feed import About
from pgoutput_construct.publisher._feed.message_feed import Script
from pgoutput_construct.publisher._server.copy_both import CopyBothStream
from pgoutput_construct.publisher._server.service import Settings
from pgoutput_construct.publisher.refusals import Refusal
from pgoutput_construct.publisher.server import ThreadedPublisher
from pgoutput_construct.testing.scripted_publisher import TestPublisher
from pgoutput_construct.wire import connection_messages as m
from pgoutput_construct.wire.connection_engine import build_connection
from pgoutput_construct.wire.frames import StandbyStatusUpdate
from pgoutput_construct.wire.messages import Binary
from tests.postgres.shop import wait_until
from tests.publisher.asking import START, served, sqlstate
from tests.publisher.wire_client import WireClient

GARBAGE = {
    "random": bytes(range(256)) * 8,
    "http": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "2 GB": struct.pack(">i", 2**31 - 1),
    "negative": struct.pack(">i", -5) + bytes(100),
    "nothing": struct.pack(">i", 0) + bytes(100),
    "too short": struct.pack(">ii", 7, 196608),
    "version 2": struct.pack(">ii", 296, 2 << 16) + bytes(288),
    "no end": struct.pack(">ii", 20, 196608) + b"user\0nobody!",
    "tls": bytes.fromhex("16030100f6010000f20303") + bytes(200),
}


@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE)
def test_garbage_at_startup(publisher: testing.TestPublisher, data: bytes) -> None:
    """The connection ends, with an error or without; nothing is waited for."""
    with WireClient(publisher.port) as client:
        client.write(data)
        last = client.rest()
        assert [type(message) for message in last] in ([], [m.ErrorResponse])
    assert served(publisher)


GARBLED = (b"\0" * 64, b"Q\x7f\xff\xff\xff", b"Q\0\0\0\3", b"R\0\0\0\5\0", b"d\0\0\0\3")


@pytest.mark.parametrize(("data", "at"), [*product(GARBLED, ["idle", "copy"]), (b"d\0\0\0\x05\xff", "copy")])
def test_garbage_later(publisher: testing.TestPublisher, data: bytes, at: str) -> None:
    """What no client can say ends the connection, with PostgreSQL's code for it."""
    with WireClient(publisher.port, user="me", replication="database") as client:
        if at == "copy":
            client.start(START.format("garbled"))
        client.write(data)
        assert sqlstate(client.rest()[-1]) == "08P01"
    assert served(publisher)


def test_a_byte_at_a_time(publisher: testing.TestPublisher) -> None:
    """How a network cuts a client's messages makes no difference."""
    with WireClient(publisher.port, user="me", replication="database", piece=1) as client:
        rows = client.query("IDENTIFY_SYSTEM")
        assert rows[0][3] == b"postgres"


PUBLICATIONS = "SELECT t.pubname FROM pg_catalog.pg_publication t WHERE t.pubname IN"
REFUSED = {
    "SELECT nothing FROM nowhere": "0A000",
    "BASE_BACKUP": "0A000",
    "START_REPLICATION SLOT a LOGICAL": "42601",
    "START_REPLICATION SLOT a LOGICAL FFFFFFFFF/0 (x 'y')": "42601",
    START.format("a").replace("'1'", "'9'"): "0A000",
    START.format("a").replace("'1'", "'0'"): "0A000",
    START.format("a").replace("'1'", "'" + "9" * 5000 + "'"): "22023",
    START.format("a").replace("'1'", "'4294967296'"): "22023",
    START.format("a").replace("'1'", "'4294967295'"): "0A000",
    START.format("a").replace("'1'", "'00000000009'"): "0A000",
    START.format("a").replace("'1'", "'+1'"): "22023",
    START.format("a").replace("'1'", "'-1'"): "22023",
    START.format("a").replace(")", ", nonsense 'on')"): "42601",
    START.format("a").replace(")", ", binary 'perhaps')"): "42601",
    START.format("a").replace(")", ", proto_version '2')"): "42601",
    START.format("a").replace(")", ", streaming 'often')"): "42601",
    START.format("a").replace(")", ", origin 'here')"): "22023",
    START.format("a").replace(", publication_names 'shop'", ""): "22023",
    START.format("a").replace("'shop'", "'other'"): "42704",
    START.format("a").replace("'shop'", "'\"x'"): "42602",
    START.format("unknown"): "42704",
    START.format('"Not a name"'): "42704",
    "DROP_REPLICATION_SLOT unknown": "42704",
    "CREATE_REPLICATION_SLOT a LOGICAL pgoutput": "42710",
    'CREATE_REPLICATION_SLOT "A" LOGICAL pgoutput': "42602",
    "CREATE_REPLICATION_SLOT b LOGICAL wal2json": "58P01",
    "CREATE_REPLICATION_SLOT b PHYSICAL": "0A000",
    "CREATE_REPLICATION_SLOT b LOGICAL pgoutput EXPORT_SNAPSHOT": "0A000",
    "CREATE_REPLICATION_SLOT b LOGICAL pgoutput (SNAPSHOT 'use')": "0A000",
    "CREATE_REPLICATION_SLOT b LOGICAL pgoutput (NONSENSE)": "XX000",
    "CREATE_REPLICATION_SLOT b LOGICAL pgoutput (TWO_PHASE 'maybe')": "42601",
    "CREATE_REPLICATION_SLOT b TEMPORARY LOGICAL pgoutput (FAILOVER)": "0A000",
    "ALTER_REPLICATION_SLOT a": "42601",
    "ALTER_REPLICATION_SLOT a ()": "42601",
    "ALTER_REPLICATION_SLOT a FAILOVER": "42601",
    "ALTER_REPLICATION_SLOT a (TWO_PHASE 'maybe')": "42601",
    "ALTER_REPLICATION_SLOT a (TWO_PHASE 2)": "42601",
    "ALTER_REPLICATION_SLOT a (TWO_PHASE, two_phase)": "42601",
    "ALTER_REPLICATION_SLOT a (FAILOVER) WAIT": "42601",
    "ALTER_REPLICATION_SLOT a (SNAPSHOT 'nothing')": "XX000",
    "ALTER_REPLICATION_SLOT unknown (FAILOVER)": "42704",
    "ALTER_REPLICATION_SLOT unknown (NONSENSE)": "XX000",
    "SELECT pg_create_logical_replication_slot('a', 'pgoutput')": "42710",
    "SELECT pg_create_logical_replication_slot('b', 'wal2json')": "58P01",
    "SELECT pg_create_logical_replication_slot('b', 'pgoutput', nonsense => true)": "42883",
    "SELECT pg_create_logical_replication_slot('b', 'pgoutput'" + ", a" * 5000: "0A000",
    "SELECT pg_drop_replication_slot('unknown')": "42704",
    "READ_REPLICATION_SLOT a": "0A000",
    "TIMELINE_HISTORY 2": "58P01",
    "TIMELINE_HISTORY " + "1" * 5000: "42601",
    "SHOW nothing_of_that_name": "42704",
    "'": "42601",
    f"{PUBLICATIONS} (shop)": "0A000",
    f"{PUBLICATIONS} ('shop' 'other')": "0A000",
    f"{PUBLICATIONS} (lower('shop'))": "0A000",
    f"{PUBLICATIONS} (E'\\x73hop')": "0A000",
}


def test_commands_that_are_refused() -> None:
    """Each gets PostgreSQL's code, and the connection goes on."""
    with testing.publisher(publications=["shop"], creates_slots=False) as publisher:
        publisher.create_slot("a")
        with WireClient(publisher.port, user="me", replication="database") as client:
            found = {}
            for text in REFUSED:
                with pytest.raises(psycopg.Error) as caught:
                    client.query(text)
                found[text] = caught.value.sqlstate
            assert found == REFUSED
            assert client.query("SHOW server_version") == [(b"18.0",)]


@pytest.mark.parametrize(("version", "streaming", "refused"), [(150004, "parallel", True), (150004, "yes", False)])
def test_options_by_server_version(version: int, streaming: str, refused: bool) -> None:
    """A value that came with a later server is refused as that server refuses it; a switch has many names."""
    asked = START.format("a").replace("'1'", "'2'").replace(")", f", streaming '{streaming}')")
    with (
        testing.publisher(server_version=version) as publisher,
        WireClient(publisher.port, user="me", replication="database") as client,
    ):
        if refused:
            with pytest.raises(psycopg.errors.SyntaxError, match=r"streaming requires a Boolean value$"):
                client.query(asked)
        else:
            client.start(asked)


def test_commands_about_slots(publisher: testing.TestPublisher) -> None:
    """Slots are made in the old and the new syntax, read, dropped; a temporary one is its connection's alone."""
    with (
        WireClient(publisher.port, user="me", replication="database") as client,
        WireClient(publisher.port, user="me", replication="database") as other,
    ):
        made = client.query("CREATE_REPLICATION_SLOT kept LOGICAL pgoutput (SNAPSHOT 'nothing', TWO_PHASE)")
        assert made == [(b"kept", b"0/0", None, b"pgoutput")]
        client.query("CREATE_REPLICATION_SLOT old LOGICAL pgoutput NOEXPORT_SNAPSHOT TWO_PHASE")
        client.query("CREATE_REPLICATION_SLOT mine TEMPORARY LOGICAL pgoutput")
        kept = publisher.slot("kept")
        assert kept is not None
        assert kept.two_phase
        assert client.query("READ_REPLICATION_SLOT unknown") == [(None, None, None)]
        for command in ("DROP_REPLICATION_SLOT mine", START.format("mine")):
            with pytest.raises(psycopg.errors.ObjectInUse):
                other.query(command)
        client.query("DROP_REPLICATION_SLOT old WAIT")
        made = client.query("SELECT * FROM pg_create_logical_replication_slot('sql', 'pgoutput', false, true)")
        slot = publisher.slot("sql")
        assert slot is not None
        assert (made, slot.two_phase, slot.temporary) == ([(b"sql", b"0/0")], True, False)
        client.query("SELECT pg_drop_replication_slot('sql')")
        assert publisher.slot("sql") is None
        client.query("SELECT pg_create_logical_replication_slot('brief', 'pgoutput', temporary => true)")
        client.start(START.format("mine"))
    wait_until(lambda: publisher.slot("mine") is publisher.slot("brief") is None)
    assert publisher.slot("kept") is not None


def test_a_slot_is_altered(publisher: testing.TestPublisher) -> None:
    """By either option, as PostgreSQL 18 does: it waits for who reads from the slot; a temporary one has no copies."""
    alter = "ALTER_REPLICATION_SLOT altered ({})"
    with (
        WireClient(publisher.port, user="me", replication="database") as client,
        WireClient(publisher.port, user="me", replication="database") as other,
    ):
        client.query("CREATE_REPLICATION_SLOT altered LOGICAL pgoutput (SNAPSHOT 'nothing', TWO_PHASE)")
        slot = publisher.slot("altered")
        assert slot is not None
        found = []
        for options in ("FAILOVER", "TWO_PHASE false, FAILOVER 'off'", "two_phase 1", "TWO_PHASE 'off', FAILOVER true"):
            client.query(alter.format(options))
            found.append((slot.two_phase, slot.failover))
        assert found == [(True, True), (False, False), (True, False), (False, True)]
        other.start(START.format("altered"))
        client.say(m.Query(alter.format("TWO_PHASE")))
        assert served(publisher) and not slot.two_phase
        other.say(m.ClientCopyDone())
        other.until(m.ReadyForQuery)
        assert [type(each) for each in client.until(m.ReadyForQuery)] == [m.CommandComplete, m.ReadyForQuery]
        assert slot.two_phase
        other.start(START.format("altered"))
        client.write(build_connection(m.Query(alter.format("TWO_PHASE false"))))
        client.socket.shutdown(socket.SHUT_WR)
        assert client.rest() == []


@pytest.mark.parametrize(
    ("version", "options", "code"), [(160000, "FAILOVER", "42601"), (170000, "TWO_PHASE", "XX000")]
)
def test_servers_that_alter_no_slots(version: int, options: str, code: str) -> None:
    """The command came with PostgreSQL 17, and its option TWO_PHASE with 18."""
    with (
        testing.publisher(server_version=version) as publisher,
        WireClient(publisher.port, user="me", replication="database") as client,
    ):
        publisher.create_slot("a")
        with pytest.raises(psycopg.Error) as caught:
            client.query(f"ALTER_REPLICATION_SLOT a ({options})")
        assert caught.value.sqlstate == code


def test_an_error_drops_temporary_slots(publisher: testing.TestPublisher) -> None:
    """Those of the connection, as PostgreSQL does."""
    with WireClient(publisher.port, user="me", replication="database") as client:
        client.query("CREATE_REPLICATION_SLOT brief TEMPORARY LOGICAL pgoutput")
        assert publisher.slot("brief") is not None
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="for a temporary replication slot"):
            client.query("ALTER_REPLICATION_SLOT brief (FAILOVER)")
        assert publisher.slot("brief") is None


def test_a_slot_in_use(publisher: testing.TestPublisher) -> None:
    """A second client is refused it, and has it when the first one has said goodbye."""
    with WireClient(publisher.port, user="me", replication="database") as client:
        client.start(START.format("taken"))
        with WireClient(publisher.port, user="me", replication="database") as other:
            with pytest.raises(psycopg.errors.ObjectInUse, match="is active for PID"):
                other.query(START.format("taken"))
            client.say(m.ClientCopyDone())
            assert [type(each) for each in client.until(m.ReadyForQuery)][-3:] == [
                m.ServerCopyDone,
                m.CommandComplete,
                m.ReadyForQuery,
            ]
            other.start(START.format("taken"))
            other.say(m.CopyFail("enough"))
            other.until(m.ReadyForQuery)
            other.start(START.format("taken"))
            other.say(m.Terminate())
            other.rest()
        client.start(START.format("taken"))


@pytest.mark.parametrize("method", ["password", "scram-sha-256"])
def test_passwords(method: Any) -> None:
    """The right user with the right password is let in, by psycopg too; whoever has another gets an error."""
    with testing.publisher(method=method, user="me", password="geheim ü") as publisher:
        assert served(publisher, password="geheim ü")
        for user, password in (("me", "wrong"), ("me", ""), ("you", "geheim ü")):
            with pytest.raises(psycopg.OperationalError, match="password"):
                served(publisher, user=user, password=password)
        for answer in (
            ()
            if method == "password"
            else (m.SASLInitialResponse("SCRAM-SHA-256", b"garbage"), m.SASLInitialResponse("OTHER", None))
        ):
            with WireClient(publisher.port) as client:
                client.say(m.StartupMessage(0, (m.StartupParameter("user", "me"),)))
                client.until(m.AuthenticationSASL)
                client.say(answer)
                assert sqlstate(client.rest()[-1]) in ("28P01", "28000")


def challenge(publisher: testing.TestPublisher, user: str) -> tuple[str, str]:
    """Return salt and iterations that a user is sent."""
    with WireClient(publisher.port) as client:
        client.say(m.StartupMessage(0, (m.StartupParameter("user", user),)))
        client.until(m.AuthenticationSASL)
        client.say(m.SASLInitialResponse("SCRAM-SHA-256", b"n,,n=,r=nonce"))
        (asked,) = client.until(m.AuthenticationSASLContinue)
        assert isinstance(asked, m.AuthenticationSASLContinue)
        _, salt, iterations = asked.data.decode().split(",")
        return salt, iterations


@pytest.mark.parametrize("method", ["password", "scram-sha-256"])
def test_names_cannot_be_guessed(method: Any) -> None:
    """An unknown user has the exchange of a known one, salt included, and the same error."""
    with testing.publisher(method=method, user="me", password="geheim") as publisher:
        errors = {}
        for user in ("me", "you"):
            with pytest.raises(psycopg.OperationalError) as caught:
                served(publisher, user=user, password="wrong")
            errors[user] = str(caught.value).partition("FATAL:")[2].strip()
        assert errors == {user: f'password authentication failed for user "{user}"' for user in errors}
        if method == "scram-sha-256":
            salts = {user: challenge(publisher, user) for user in ("me", "you", "they")}
            assert salts == {user: challenge(publisher, user) for user in salts}
            assert len({salt for salt, _ in salts.values()}) == 3
            assert len({(len(salt), iterations) for salt, iterations in salts.values()}) == 1
    with (
        testing.publisher(user="me") as publisher,
        pytest.raises(psycopg.OperationalError, match='role "you" does not exist'),
    ):
        served(publisher, user="you")


def test_messages_in_transit_at_an_error(publisher: testing.TestPublisher) -> None:
    """What a client sent of a copy before it knew of an error is ignored, as PostgreSQL does."""
    table = publisher.table("t", {"v": "money"}, key=["v"])
    publisher.commit([table.insert({"v": Binary(bytes(8))})])
    with WireClient(publisher.port, user="me", replication="database") as client:
        client.start(START.format("late"))
        assert sqlstate(client.until(m.ErrorResponse)[-1]) == "0A000"
        client.write(b"".join(map(build_connection, (m.CopyData(b"x"), m.ClientCopyDone(), m.CopyFail("late")))))
        client.until(m.ReadyForQuery)
        assert client.query("IDENTIFY_SYSTEM")
        client.start(START.format("late"))


FORBIDDEN: dict[str, list[m.ConnectionMessage]] = {
    "fastpath function calls": [m.FunctionCall(1, (), (b"1", None), 0)],
    "extended query protocol": [m.Parse("", "SELECT 1", ()), m.Flush(), m.Query("SELECT 1"), m.Sync()],
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_what_a_walsender_does_not_do(publisher: testing.TestPublisher, what: str) -> None:
    """Function calls and the extended query protocol are refused, the latter up to its Sync; the session continues."""
    with WireClient(publisher.port, user="me", replication="database") as client:
        for message in FORBIDDEN[what]:
            client.say(message)
        error, ready = client.until(m.ReadyForQuery)
        assert isinstance(error, m.ErrorResponse)
        assert m.NoticeField("M", f"{what} not supported in a replication connection") in error.details
        assert (sqlstate(error), ready) == ("08P01", m.ReadyForQuery("I"))
        assert client.query("IDENTIFY_SYSTEM")


class EndedStream(CopyBothStream):
    """A stream of which the server has ended its side."""

    async def _send(self) -> None:
        await asyncio.Event().wait()

    async def _replied(self, status: StandbyStatusUpdate) -> None:
        raise AssertionError("the client sends no status")

    async def _watch(self) -> None:
        await asyncio.Event().wait()


class Impatient:
    """A client that sends a command without ending its side of the copy."""

    async def receive(self) -> m.ConnectionMessage:
        """Return the command."""
        return m.Query("IDENTIFY_SYSTEM")


def test_a_command_before_the_client_has_ended_the_copy() -> None:
    """It is no message of a standby, as for PostgreSQL."""
    client: Any = Impatient()
    with pytest.raises(Refusal, match='invalid standby message type "Q"') as refused:
        asyncio.run(EndedStream(client, {}).run())
    assert (refused.value.sqlstate, refused.value.fatal) == ("08P01", True)


def drain(client: WireClient) -> None:
    """Take what has come, and is coming now."""
    client.socket.settimeout(0.05)
    with contextlib.suppress(TimeoutError):
        while client.socket.recv(1 << 20):
            pass


@pytest.mark.slow
@pytest.mark.parametrize(("clients", "count"), [(2, 1_000_000), pytest.param(3, 10_000_000, marks=pytest.mark.long)])
def test_a_disconnect_is_not_an_error(clients: int, count: int) -> None:
    """Clients that say goodbye while they are sent keepalives are no mistake of the publisher's."""
    told: list[str] = []

    def tell(line: str) -> None:
        told.append(line)
        if "slot blocking: a client reads" in line:
            time.sleep(1)  # so that the loop finds each goodbye together with room for more keepalives

    script = Script(About(180000, "7", "postgres", 1, (), {}))
    with ThreadedPublisher(script, Settings(), tell) as running, contextlib.ExitStack() as open_:
        publisher = TestPublisher(running, script)
        going = range(clients)
        for _ in going:
            publisher.fault("keepalive storm", count=count)
        publisher.message("m", b"")
        *leaving, blocking = (
            open_.enter_context(WireClient(publisher.port, user="me", replication="database"))
            for _ in range(clients + 1)
        )
        for number, client in enumerate(leaving):
            client.start(START.format(f"stormy_{number}"))
        time.sleep(1)  # until no more fits into the buffers of the connections
        blocking.say(m.Query(START.format("blocking")))
        wait_until(lambda: "blocking" in told[-1])
        for client in leaving:
            client.write(build_connection(m.Terminate()))
            drain(client)
        wait_until(lambda: all(f"slot stormy_{number}: its client has disconnected" in told for number in going))
    assert not [line for line in told if "error" in line or "refused" in line]


def test_the_user_is_said(publisher: testing.TestPublisher) -> None:
    """A client that does not say who it is, or asks for physical replication, is refused."""
    for parameters, code in ({}, "28000"), ({"user": "me", "replication": "true"}, "0A000"):
        with WireClient(publisher.port) as client:
            pairs = tuple(m.StartupParameter(*pair) for pair in parameters.items())
            client.say(m.StartupMessage(0, pairs))
            assert sqlstate(client.rest()[-1]) == code


def test_tls(tmp_path: Path) -> None:
    """With a certificate clients that ask for TLS have it; without one they are refused it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_certificate(tmp_path))
    known: dict[str, Any] = {"method": "scram-sha-256", "user": "me", "password": "secret"}
    with testing.publisher(tls=context, publications=["shop"], **known) as publisher:
        publisher.create_slot("secret")
        table = publisher.table("t", {"id": "int4", "big": "text"}, key=["id"])
        end = publisher.commit([table.insert({"id": n, "big": "x" * 1000}) for n in range(3000)])
        dsn = psycopg.conninfo.make_conninfo(publisher.dsn, sslmode="require", password="secret")
        given: dict[str, Any] = {"until_lsn": end, "duration": 60, "handle_signals": False, "new_log": True}
        capture(dsn, "secret", ["shop"], tmp_path / "log", **given)
        assert ChangeLog(tmp_path / "log").complete_lsn >= end
        with psycopg.connect(publisher.dsn, sslmode="require", password="secret", autocommit=True) as connection:
            assert connection.pgconn.ssl_in_use
            assert connection.execute("SELECT 1").fetchone() == (1,)
        assert served(publisher, sslmode="disable", password="secret")
        with WireClient(publisher.port) as client:
            client.say(m.SSLRequest())
            assert client.socket.recv(1) == b"S"
            client.write(b"no handshake")
            client.rest()
    with testing.publisher() as publisher, pytest.raises(psycopg.OperationalError, match="SSL"):
        served(publisher, sslmode="require")


def _certificate(directory: Path) -> Path:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = directory / "certificate.pem"
    file.write_bytes(private + builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    return file
