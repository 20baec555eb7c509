"""Connections: session settings, checks with remedies, and secrets that appear nowhere."""

import logging
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import (
    SESSION_SETTINGS,
    ReplicationError,
    ReplicationStream,
    StreamOptions,
    best_proto_version,
    capture,
    check_publications,
    check_slot,
    connect,
    create_slot,
    drop_slot,
    redact,
)
from pgoutput_construct.postgres._capture import capture_session
from tests.postgres.shop import Shop

SECRET = "s3cr3tPa55"

UNREADABLE = [
    f"host=/nowhere password='{SECRET}",
    f"host=/nowhere {SECRET}=1",
    f"password {SECRET}",
    f"postgresql://u:{SECRET}@[::1/db",
    f"postgresql://u:{SECRET}%zz@h/db",
    f"postgresql://u:{SECRET}/x@localhost/db",
    f"postgresql://u:x/{SECRET}@localhost/db",
    f"postgresql://u:x#/{SECRET}@localhost/db",
    f"postgresql://localhost:{SECRET}/db",
]

UNREACHABLE = [
    f"postgresql://u:x:{SECRET}@localhost:1/db",
    f"postgresql://u:x?{SECRET}@localhost:1/db",
    f"host=/nowhere dbname=shop user=u password={SECRET}",
    f"host=localhost port=1 dbname=shop user=u password={SECRET} sslpassword={SECRET}",
    f"postgresql://u:{SECRET}@localhost:1/shop?sslpassword={SECRET}",
    f"postgresql://u:{SECRET}@no-such-host.invalid/shop",
    f"host={SECRET}.invalid dbname=shop user=u password={SECRET}",
    f"postgresql:///shop?host=/nowhere&user=u&password={SECRET}",
]


@pytest.mark.parametrize("dsn", UNREADABLE + UNREACHABLE)
def test_no_error_shows_the_password(dsn: str, caplog: pytest.LogCaptureFixture) -> None:
    """Neither the error nor its traceback nor a log line repeats the password, where psycopg's own do."""
    with caplog.at_level(logging.DEBUG), pytest.raises(ReplicationError) as caught:
        connect(dsn, connect_timeout=2)
    printed = "".join(traceback.format_exception(caught.value))
    assert SECRET not in printed
    assert SECRET not in caplog.text


def test_an_error_text_that_repeats_the_password_is_withheld() -> None:
    """Where the password is also the host's name, neither libpq's words nor the description show it."""
    dsn = f"host={SECRET}.invalid dbname=shop user=u password={SECRET}"
    with pytest.raises(ReplicationError, match=r"user=u dbname=shop: \(the error text is not shown"):
        connect(dsn, connect_timeout=2)


@pytest.mark.parametrize("dsn", UNREADABLE)
def test_an_unreadable_connection_string_is_not_described(dsn: str) -> None:
    """What libpq cannot read, or reads otherwise than meant, is not shown at all."""
    assert redact(dsn) == "(unreadable connection string)"


def test_a_connection_string_is_described_without_its_secrets() -> None:
    """Host, database and user remain, in libpq's own form."""
    assert redact(f"postgresql://u:{SECRET}@h:5432/shop?sslpassword={SECRET}") == (
        "user=u dbname=shop host=h port=5432"
    )


@pytest.mark.parametrize(("version", "best"), [(130016, 1), (140001, 2), (150018, 3), (160000, 4), (190000, 4)])
def test_the_best_protocol_version_of_each_server(version: int, best: int) -> None:
    """As LOGICALREP_PROTO_MAX_VERSION_NUM of each release."""
    assert best_proto_version(version) == best


def test_options_that_no_server_accepts_are_refused() -> None:
    """Impossible combinations are refused before a server sees them."""
    for wrong in (
        {"streaming": "on"},
        {"streaming": "parallel", "proto_version": 3},
        {"two_phase": True, "proto_version": 2},
        {"streaming": "maybe"},
        {"publications": ()},
        {"slot": ""},
    ):
        with pytest.raises(ReplicationError):
            StreamOptions(**{"slot": "s", "publications": ("p",), **wrong})  # type: ignore[arg-type]
    with pytest.raises(ReplicationError, match="origin needs PostgreSQL 16"):
        StreamOptions(slot="s", publications=("p",), origin="none").check_server(150000)
    with pytest.raises(ReplicationError, match="choose 1 to 3"):
        StreamOptions(slot="s", publications=("p",), proto_version=4).check_server(150000)


@pytest.mark.server
def test_the_session_settings_make_text_unambiguous(own_server: EmbeddedServer) -> None:
    """Each setting holds in a replication connection, whatever the database says."""
    with own_server.connect() as admin:
        admin.execute("ALTER DATABASE postgres SET datestyle = 'German'")
        with connect(own_server.dsn) as connection:
            shown = {name: connection.execute(f"SHOW {name}".encode()).fetchall()[0][0] for name in SESSION_SETTINGS}
        admin.execute("ALTER DATABASE postgres RESET datestyle")
    assert shown.pop("datestyle").startswith("ISO,")
    assert shown == {name: value for name, value in SESSION_SETTINGS.items() if name != "datestyle"}


@pytest.mark.server
def test_errors_about_missing_objects_have_remedies(shop: Shop) -> None:
    """A missing publication or slot, and a slot of another kind or database, say what to run."""
    with shop.connect() as connection:
        with pytest.raises(ReplicationError, match='run CREATE PUBLICATION "we""ird" FOR TABLE'):
            check_publications(connection, ['we"ird'])
        with pytest.raises(ReplicationError, match=r"pg_create_logical_replication_slot\('none', 'pgoutput'\)"):
            check_slot(connection, "none")
        with pytest.raises(ReplicationError, match=r"exists already: capture\(\) resumes it, drop_slot\(\) removes it"):
            create_slot(connection, shop.slot)
        connection.execute("SELECT pg_create_physical_replication_slot('physical')")
        with pytest.raises(ReplicationError, match="is a physical slot"):
            check_slot(connection, "physical")
        drop_slot(connection, "physical")
        with pytest.raises(ReplicationError, match=r"replication slot .* does not exist"):
            drop_slot(connection, "physical")
        drop_slot(connection, "physical", missing_ok=True)
    with shop.server.connect() as other, pytest.raises(ReplicationError, match="belongs to database"):
        check_slot(other, shop.slot)


@pytest.fixture
def replica_server() -> Iterator[EmbeddedServer]:
    """A server whose wal_level is too low."""
    with EmbeddedServer(18, {"wal_level": "replica"}) as server:
        yield server


@pytest.mark.server
def test_a_wal_level_that_is_too_low_is_named(
    replica_server: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says which setting to change, before a first capture compiles anything, which takes half a minute."""
    with replica_server.connect() as connection, pytest.raises(ReplicationError, match="ALTER SYSTEM SET wal_level"):
        create_slot(connection, "s")
    monkeypatch.setattr(capture_session, "compile_kernels", lambda: pytest.fail("compiled"))
    with pytest.raises(ReplicationError, match="ALTER SYSTEM SET wal_level"):
        capture(replica_server.dsn, "s", ["p"], tmp_path, create_slot=True)


@pytest.mark.server
def test_the_server_refusing_the_stream_is_a_clear_error(shop: Shop) -> None:
    """A slot that does not exist, and one that is in use, surface with the server's words and a remedy."""
    options = StreamOptions(slot="nowhere", publications=("p",))
    with connect(shop.dsn) as connection, pytest.raises(ReplicationError, match="does not exist") as caught:
        ReplicationStream(connection, options)
    assert caught.value.sqlstate == "42704"
    options = StreamOptions(slot=shop.slot, publications=("p",))
    with (
        ReplicationStream(connect(shop.dsn), options),
        connect(shop.dsn) as connection,
        pytest.raises(ReplicationError, match="is active") as caught,
    ):
        ReplicationStream(connection, options)
    assert caught.value.transient
