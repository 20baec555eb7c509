"""Whole sessions with PostgreSQL: every message of both sides is parsed in its state, and built again byte for byte.

psycopg and a client of the tests speak through a relay, which records both sides in the order in which they were sent.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.wire import connection_codec
from pgoutput_construct.wire import connection_messages as m
from pgoutput_construct.wire.connection_engine import (
    FIRST_STATE,
    Role,
    build_connection,
    message_size,
    next_state,
    parse_connection,
)
from tests.postgres.shop import wait_until
from tests.publisher.wire_client import WireClient
from tests.wireshark.relay import relay

pytestmark = pytest.mark.server

Connection = psycopg.Connection[Any]
Talk = Callable[[Connection], None]
DATABASE = "sessions"
METHODS = {"password": "scram-sha-256", "md5": "md5", "scram-sha-256": "scram-sha-256"}
"""The methods of authentication, and how the server stores the password for each."""


@pytest.fixture(scope="module")
def server(server18: EmbeddedServer) -> Iterator[EmbeddedServer]:
    """Return a server with a database for sessions, and a role for each method of authentication."""
    rules = server18.data_directory / "pg_hba.conf"
    before = rules.read_text("utf-8")
    with server18.connect() as admin:
        admin.execute(f"CREATE DATABASE {DATABASE}")
        for method, stored in METHODS.items():
            admin.execute(f"SET password_encryption = '{stored}'")
            admin.execute(f"CREATE ROLE \"by {method}\" LOGIN PASSWORD 'secret'")
        lines = "".join(f'local all "by {method}" {method}\n' for method in METHODS)
        rules.write_text(lines + before, "utf-8")
        admin.execute("SELECT pg_reload_conf()")
        with server18.connect(dbname=DATABASE) as connection:
            connection.execute("CREATE TABLE spoken (id int PRIMARY KEY, word text)")
        yield server18
        rules.write_text(before, "utf-8")
        admin.execute("SELECT pg_reload_conf()")
        admin.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")
        for method in METHODS:
            admin.execute(f'DROP ROLE "by {method}"')


@contextmanager
def recorded(server: EmbeddedServer, found: list[m.ConnectionMessage], ends: str = "closed") -> Iterator[int]:
    """Yield the port of a relay to the server; what was said becomes messages when the client has hung up.

    Args:
        server: The server.
        found: Gets the messages of both sides.
        ends: The state in which the connection ends.
    """
    parts = conninfo_to_dict(server.dsn)
    with relay(f"{parts['host']}/.s.PGSQL.{parts.get('port', 5432)}") as through:
        yield through.port
    found += followed(through.said, ends)


def followed(said: list[tuple[bool, bytes]], ends: str) -> Iterator[m.ConnectionMessage]:
    """Yield the messages of a connection in order; each is built again, and leads into the state of the next one."""
    state = FIRST_STATE
    buffers: dict[Role, bytes] = {"client": b"", "server": b""}
    for by_client, data in said:
        sender: Role = "client" if by_client else "server"
        buffers[sender] += data
        while (size := message_size(buffers[sender], sender, state)) is not None and size <= len(buffers[sender]):
            piece, buffers[sender] = buffers[sender][:size], buffers[sender][size:]
            message = parse_connection(piece, sender, state)
            assert build_connection(message) == piece
            state = next_state(message, sender, state)
            yield message
    assert (state, buffers) == (ends, {"client": b"", "server": b""})


def spoken(server: EmbeddedServer, talk: Talk, **options: Any) -> list[m.ConnectionMessage]:
    """Return the messages of a session of psycopg, from the startup on."""
    found: list[m.ConnectionMessage] = []
    with recorded(server, found) as port:
        dsn = make_conninfo(server.dsn, host="127.0.0.1", port=port, dbname=DATABASE)
        with psycopg.connect(dsn, **{"autocommit": True, **options}) as connection:
            talk(connection)
    return found


def queries(connection: Connection) -> None:
    """Ask by the extended and the simple query protocol, with notices and errors, also inside of a transaction."""
    connection.execute("SELECT %s::int, %s::text, %b::int8", (1, None, 3))
    for number in range(3):
        connection.execute("SELECT %s::int", (number,), prepare=True, binary=True)
    connection.execute("DEALLOCATE ALL")
    connection.execute("DO $$ BEGIN RAISE NOTICE 'heard'; END $$")
    connection.execute("SELECT 1; SELECT 2; SET application_name = 'sessions'")
    connection.execute("")
    connection.execute("INSERT INTO spoken VALUES (%s, %s)", (1, "one"))
    with pytest.raises(psycopg.errors.UniqueViolation), connection.transaction():
        connection.execute("INSERT INTO spoken VALUES (%s, %s)", (2, "two"))
        connection.execute("INSERT INTO spoken VALUES (%s, %s)", (1, "one"))
    with connection.transaction():
        connection.execute("INSERT INTO spoken VALUES (%s, %s)", (2, "two"))
        with pytest.raises(psycopg.errors.DivisionByZero), connection.transaction():
            connection.execute("SELECT 1 / %s", (0,))
    with connection.transaction(), connection.cursor("named") as cursor:
        cursor.execute("SELECT generate_series(1, %s)", (10,))
        assert len(cursor.fetchmany(3)) == 3
    connection.pgconn.prepare(b"kept", b"SELECT $1::int")
    connection.pgconn.describe_prepared(b"kept")
    connection.pgconn.close_prepared(b"kept")


def pipelines(connection: Connection) -> None:
    """Send series of messages without waiting for their answers, of which some are errors."""
    with connection.pipeline():
        for number in range(50):
            connection.execute("INSERT INTO spoken VALUES (%s, repeat('x', 3000))", (100 + number,))
    with pytest.raises(psycopg.errors.UniqueViolation), connection.pipeline():
        connection.execute("INSERT INTO spoken VALUES (%s)", (100,))
        connection.execute("INSERT INTO spoken VALUES (%s)", (200,))
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO spoken VALUES (%s)", [(number,) for number in range(300, 330)])
    libpq = connection.pgconn
    libpq.enter_pipeline_mode()
    libpq.send_query_params(b"SELECT pg_sleep(0.2)", None)  # all others are sent before its answer arrives
    libpq.pipeline_sync()
    for number in range(20):
        libpq.send_query_params(b"SELECT 100 / ($1::int - 5)", [b"%d" % number])
        libpq.pipeline_sync()
    for _ in range(21):
        while (result := libpq.get_result()) is None or result.status != psycopg.pq.ExecStatus.PIPELINE_SYNC:
            pass
    libpq.exit_pipeline_mode()


def copies(connection: Connection) -> None:
    """Copy in both directions, in both formats, by both query protocols, and break copies off on either side."""
    cursor = connection.cursor()
    with cursor.copy("COPY spoken FROM STDIN") as copy:
        for number in range(1000, 1100):
            copy.write_row((number, "row"))
    with cursor.copy("COPY spoken TO STDOUT (FORMAT binary)") as copy:
        assert len(list(copy)) > 100
    with pytest.raises(LookupError), cursor.copy("COPY spoken FROM STDIN") as copy:
        copy.write_row((2000, "given up"))
        raise LookupError("no more rows")
    with pytest.raises(psycopg.errors.InvalidTextRepresentation), cursor.copy("COPY spoken FROM STDIN") as copy:
        for _ in range(50):
            copy.write("no number\tx\n" * 1000)
    libpq = connection.pgconn
    libpq.exec_params(b"COPY spoken FROM STDIN", None)
    libpq.put_copy_data(b"3000\tby libpq\n")
    libpq.put_copy_end()
    _finish(connection)
    libpq.exec_params(b"COPY spoken TO STDOUT", None)
    _finish(connection)
    libpq.send_query(b"SELECT 1; COPY spoken TO STDOUT; SELECT 2; COPY spoken FROM STDIN; SELECT 3")
    _finish(connection)


def _finish(connection: Connection) -> None:
    """Read all results; a copy from the client ends without a row."""
    libpq = connection.pgconn
    while (result := libpq.get_result()) is not None:
        if result.status == psycopg.pq.ExecStatus.COPY_OUT:
            while libpq.get_copy_data(0)[0] > 0:
                pass
        elif result.status == psycopg.pq.ExecStatus.COPY_IN:
            libpq.put_copy_end()
        assert not result.error_message


SAID: dict[str, set[type[m.ConnectionMessage]]] = {
    "queries": {
        m.SSLRequest, m.EncryptionRefused, m.StartupMessage, m.AuthenticationOk, m.ParameterStatus, m.BackendKeyData,
        m.ReadyForQuery, m.Query, m.Parse, m.Bind, m.Describe, m.Execute, m.Close, m.Sync, m.Terminate, m.ParseComplete,
        m.BindComplete, m.CloseComplete, m.ParameterDescription, m.NoData, m.RowDescription, m.DataRow,
        m.CommandComplete, m.EmptyQueryResponse, m.ErrorResponse, m.NoticeResponse,
    },
    "pipelines": {m.Parse, m.Bind, m.Sync, m.ErrorResponse},
    "copies": {
        m.CopyInResponse, m.CopyOutResponse, m.CopyData, m.ClientCopyDone, m.ServerCopyDone, m.CopyFail, m.ErrorResponse
    },
    "notifications": {m.NotificationResponse},
    "password": {m.AuthenticationCleartextPassword, m.PasswordMessage},
    "md5": {m.AuthenticationMD5Password, m.PasswordMessage},
    "scram-sha-256": {
        m.AuthenticationSASL, m.SASLInitialResponse, m.AuthenticationSASLContinue, m.SASLResponse,
        m.AuthenticationSASLFinal,
    },
    "a client of ours": {
        m.GSSENCRequest, m.NegotiateProtocolVersion, m.FunctionCall, m.FunctionCallResponse, m.Flush, m.PortalSuspended,
        m.CopyOutResponse,
    },
    "cancelled": {m.CancelRequest},
    "replication": {m.CopyBothResponse, m.CopyData, m.ClientCopyDone, m.ServerCopyDone},
    "not here: it needs a certificate, GSSAPI, SSPI or Kerberos": {
        m.EncryptionAccepted, m.GSSEncryptionAccepted, m.AuthenticationKerberosV5, m.AuthenticationGSS,
        m.AuthenticationGSSContinue, m.AuthenticationSSPI, m.GSSResponse,
    },
}  # fmt: skip
"""Messages that each of the sessions has."""


def test_no_message_is_left_out() -> None:
    """Each message is one of a session of these tests, or it says why not."""
    assert set().union(*SAID.values()) == set(connection_codec.BUILDERS)


@pytest.mark.parametrize("talk", [queries, pipelines, copies], ids=lambda talk: talk.__name__)
def test_sessions_of_psycopg(talk: Talk, server: EmbeddedServer) -> None:
    """What psycopg and the server say is parsed and built again."""
    found = spoken(server, talk)
    assert SAID[talk.__name__] <= {*map(type, found)}
    # A pipeline has several series whose answers have not arrived.
    series = accumulate(isinstance(message, m.Sync) - isinstance(message, m.ReadyForQuery) for message in found)
    assert (max(series) > 1) == (talk is pipelines)


def test_notifications(server: EmbeddedServer) -> None:
    """Notifications arrive with the answer to a query, and while the server waits for a command."""

    def listen(connection: Connection) -> None:
        connection.execute("LISTEN news")
        connection.execute("NOTIFY news, 'own'")
        with server.connect(dbname=DATABASE) as other:
            other.execute("NOTIFY news, 'of another'")
        assert [note.payload for note in connection.notifies(timeout=60, stop_after=2)] == ["own", "of another"]

    found = spoken(server, listen)
    assert SAID["notifications"] <= {*map(type, found)}


@pytest.mark.parametrize("method", METHODS)
def test_logins(method: str, server: EmbeddedServer) -> None:
    """A server requests the password by each method."""
    found = spoken(server, lambda connection: None, user=f"by {method}", password="secret")
    assert SAID[method] <= {*map(type, found)}


def test_a_login_that_fails(server: EmbeddedServer) -> None:
    """The server ends a connection with an error in the middle of the authentication."""
    found: list[m.ConnectionMessage] = []
    with recorded(server, found, ends="authentication") as port:
        dsn = make_conninfo(server.dsn, host="127.0.0.1", port=port, dbname=DATABASE, user="by md5", password="wrong")
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(dsn)
    assert isinstance(found[-1], m.ErrorResponse)


def started(client: WireClient, minor: int, **parameters: str) -> list[m.ConnectionMessage]:
    """Begin a session with a version of the protocol; return the answers."""
    given = {"user": "postgres", "database": DATABASE, **parameters}
    client.say(m.StartupMessage(minor, tuple(m.StartupParameter(*pair) for pair in given.items())))
    return client.until(m.ReadyForQuery)


def test_what_libpq_does_not_send(server: EmbeddedServer) -> None:
    """Function calls, portals that are suspended, Flush, and two kinds of query without waiting for answers."""
    found: list[m.ConnectionMessage] = []
    with recorded(server, found) as port, WireClient(port) as client:
        client.say(m.GSSENCRequest())
        assert client.receive() == m.EncryptionRefused()
        assert m.NegotiateProtocolVersion(3 << 16 | 2, ("_pq_.unknown",)) in started(
            client, 9999, **{"_pq_.unknown": ""}
        )
        client.say(m.FunctionCall(_oid(client, "int4pl"), (1,), (bytes([0, 0, 0, 1]), bytes([0, 0, 0, 2])), 1))
        assert m.FunctionCallResponse(bytes([0, 0, 0, 3])) in client.until(m.ReadyForQuery)
        client.say(m.FunctionCall(_oid(client, "int4pl"), (), (b"1", None), 0))
        assert m.FunctionCallResponse(None) in client.until(m.ReadyForQuery)
        client.say(m.Parse("", "SELECT generate_series(1, $1)", (23,)))
        client.say(m.Bind("", "", (), (b"3",), ()))
        client.say(m.Describe("P", ""))
        for _ in range(2):
            client.say(m.Execute("", 2))
            client.say(m.Flush())
            client.until(m.PortalSuspended, m.CommandComplete)
        client.say(m.Close("S", "nothing of that name"))
        for _ in range(2):
            client.say(m.Query("SELECT 1; COPY (SELECT 2) TO STDOUT"))
            client.say(m.Parse("", "COPY (SELECT 3) TO STDOUT", ()))
            client.say(m.Bind("", "", (), (), ()))
            client.say(m.Execute("", 0))
            client.say(m.Sync())
        for _ in range(4):
            client.until(m.ReadyForQuery)
        for command in (m.Query("SELECT 4"), m.Close("P", "")):  # while the server copies
            client.say(m.Query("COPY (SELECT 5) TO STDOUT"))
            client.until(m.CopyOutResponse)
            client.say(command)
            assert m.ServerCopyDone() in client.until(m.ReadyForQuery)
            client.say(m.Sync())
            for _ in range(1 + isinstance(command, m.Query)):
                client.until(m.ReadyForQuery)
        client.say(m.Terminate())
        client.rest()
    assert SAID["a client of ours"] <= {*map(type, found)}


def _oid(client: WireClient, name: str) -> int:
    ((oid,),) = client.query(f"SELECT '{name}'::regproc::oid")
    return int(oid or b"")


def test_a_key_of_32_bytes_cancels_a_query(server: EmbeddedServer) -> None:
    """PostgreSQL 18 has longer keys from version 3.2 of the protocol on; a CancelRequest carries one."""
    found: list[m.ConnectionMessage] = []
    asked: list[m.ConnectionMessage] = []
    with recorded(server, found) as port, WireClient(port) as client:
        (key,) = (message for message in started(client, 2) if isinstance(message, m.BackendKeyData))
        client.say(m.Query("SELECT pg_sleep(600)"))
        sleeping = "SELECT FROM pg_stat_activity WHERE pid = %s AND wait_event = 'PgSleep'"
        with server.connect() as watching:  # a request that comes before the query cancels nothing
            wait_until(lambda: bool(watching.execute(sleeping, [key.process_id]).fetchall()))
        with recorded(server, asked) as second, WireClient(second) as other:
            other.say(m.CancelRequest(key.process_id, key.secret_key))
            assert other.rest() == []
        (error, _) = client.until(m.ReadyForQuery)[-2:]
        assert isinstance(error, m.ErrorResponse)
        assert m.NoticeField("C", "57014") in error.details
        client.say(m.Terminate())
        client.rest()
    assert len(key.secret_key) == 32
    assert asked == [m.CancelRequest(key.process_id, key.secret_key)]


def test_replication(server: EmbeddedServer) -> None:
    """Both sides of a copy in both directions end it, and the session continues."""
    found: list[m.ConnectionMessage] = []
    with recorded(server, found) as port, WireClient(port) as client:
        started(client, 0, replication="database")
        client.query("CREATE_REPLICATION_SLOT sessions TEMPORARY LOGICAL pgoutput")
        client.start("START_REPLICATION SLOT sessions LOGICAL 0/0 (proto_version '1', publication_names 'none')")
        client.status(1)
        client.say(m.ClientCopyDone())
        client.until(m.ReadyForQuery)
        client.query("IDENTIFY_SYSTEM")
        client.say(m.Terminate())
        client.rest()
    assert SAID["replication"] <= {*map(type, found)}
