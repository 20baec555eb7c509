"""A replication connection whose text output is unambiguous, and whose errors never show a password."""

import math
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg import conninfo, sql

from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres.waiting import Patience, PatientConnection, in_background

__all__ = ["SESSION_SETTINGS", "connect", "describe_error", "is_transient", "redact"]

SESSION_SETTINGS: Mapping[str, str] = {
    "client_encoding": "UTF8",
    "datestyle": "ISO",
    "intervalstyle": "postgres",
    "extra_float_digits": "3",
    "timezone": "UTC",
    "bytea_output": "hex",
    "search_path": "pg_catalog",
    "client_min_messages": "warning",
}
"""What every connection sets, so that a value has one text; with this search_path regclass and its kin are
qualified. Warnings are wanted: with one PostgreSQL 18 says that it skips a publication. (PostgreSQL documentation,
section "Client Connection Defaults".)"""

# Limits that a role or a database may have for its own sessions: a slot is created after whatever time, a copy or a
# checksum takes what it takes, an exported snapshot is kept by an idle transaction, and a decoded transaction counts,
# too (transaction_timeout, StartTransaction). What is to end has a deadline of ours. By the release that has them.
_TIMEOUTS: Mapping[str, int] = {
    "statement_timeout": 0,  # the first: it may be shorter than what sets the others
    "lock_timeout": 0,
    "idle_in_transaction_session_timeout": 0,
    "idle_session_timeout": 140000,
    "transaction_timeout": 170000,
}
_SECRETS = ("password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")
# A server that vanished from the network is noticed in about a minute, not in the system's two hours.
_KEEPALIVES = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "tcp_user_timeout": 60_000}
_TRANSIENT = re.compile("08...|40001|53...|55006|57P0[1-5]")
# libpq gives no SQLSTATE for a connection that fails, so the words of the server and of libpq decide; what is not
# recognized, as in another language (lc_messages), is tried again, and the reason is logged.
_FINAL = re.compile(
    r"password authentication failed|no password supplied|authentication failed for user|no pg_hba\.conf entry|"
    r"pg_hba\.conf rejects|role \".*\" does not exist|database \".*\" does not exist|is not permitted to log in|"
    r"permission denied|must be superuser or replication role|unrecognized configuration parameter|"
    r"invalid (value for parameter|command-line argument|connection option|\w+ value)|"
    r"server does not support SSL|does not support authentication|certificate verify failed|"
    r"certificate file .* does not exist|requires? peer authentication|unsupported frontend protocol"
)


def redact(dsn: str) -> str:
    """Describe a connection string without its secrets, such as ``host=h port=5432 dbname=shop user=u``.

    A string that libpq cannot read, or reads otherwise than its author meant, is not shown at all: any part
    of it may be the password.
    """
    try:
        parts = _read(dsn)
    except ReplicationError:
        return "(unreadable connection string)"
    secrets = _secret_forms(parts)
    shown = {key: value for key, value in parts.items() if not any(form in str(value) for form in secrets)}
    return conninfo.make_conninfo(**shown)


def connect(
    dsn: str, *, replication: bool = True, connect_timeout: int = 10, patience: Patience | None = None
) -> PatientConnection:
    """Open an autocommit connection with ``SESSION_SETTINGS`` and no timeouts, by default for replication commands.

    A replication connection (``replication=database``) takes SQL too, but only in the simple query protocol:
    its cursors put parameters into the text themselves. ``dsn`` is a connection string of libpq;
    ``replication`` False opens an ordinary connection; ``connect_timeout`` is in seconds per address, where the
    connection string sets none. ``patience`` says how long an answer is waited for, here and later on the
    connection, and who may end the wait (then Stopped is raised). Raises ReplicationError without any secret in it.
    """
    options = {"connect_timeout": connect_timeout, **_KEEPALIVES, **_read(dsn)}
    if replication:
        options["replication"] = "database"
    patience = patience or Patience()
    # The addresses have deadlines of their own, one after the other.
    whole = Patience(math.inf, patience.asked)
    try:
        connection = in_background(lambda: _open(options), whole, PatientConnection.close)
        connection.patience = patience
        connection.execute(_settings(connection.info.server_version))
    except psycopg.Error as error:
        raise _connection_error(dsn, error) from None
    return connection


def _open(options: dict[str, Any]) -> PatientConnection:
    return PatientConnection.connect(**options, autocommit=True, cursor_factory=psycopg.ClientCursor)


def _settings(server_version: int) -> sql.Composed:
    timeouts = {name: "0" for name, since in _TIMEOUTS.items() if server_version >= since}
    values = {**timeouts, **SESSION_SETTINGS}
    pairs = (sql.SQL("SET {} = {}").format(sql.Identifier(name), value) for name, value in values.items())
    return sql.SQL("; ").join(pairs)


def describe_error(error: psycopg.Error, doing: str) -> ReplicationError:
    """Turn a psycopg error of an open connection into a ReplicationError; ``doing`` says what was tried."""
    primary = error.diag.message_primary or str(error).strip()
    hint = f" Hint: {error.diag.message_hint}" if error.diag.message_hint else ""
    lost = isinstance(error, psycopg.OperationalError) and error.sqlstate is None
    transient = lost or is_transient(error.sqlstate)
    return ReplicationError(f"{doing}: {primary}{hint}", sqlstate=error.sqlstate, transient=transient)


def is_transient(sqlstate: str | None) -> bool:
    """Tell whether a server's error may pass by itself.

    Its connections break or are ended (08, 57P0), a standby's replay was in the way (40001), it lacks memory, disk or
    connections (53), the slot is in use (55006).
    """
    return sqlstate is not None and _TRANSIENT.fullmatch(sqlstate) is not None


def _read(dsn: str) -> dict[str, Any]:
    try:
        parts = conninfo.conninfo_to_dict(dsn)
    except (psycopg.Error, UnicodeError):
        # psycopg's text quotes the part it stumbled over, and that may be the password.
        raise ReplicationError(
            "the connection string cannot be read (it is not shown: it may hold a password); write "
            "'host=... port=... dbname=... user=... password=...' or 'postgresql://user:password@host:port/dbname'"
        ) from None
    if any("@" in str(parts.get(key, "")) for key in ("hostaddr", "port", "dbname")) or _bad_ports(parts):
        raise ReplicationError(
            "the connection string is ambiguous (it is not shown: it may hold a password); write the "
            "characters / : @ ? # % of a user name or password percent-encoded, such as %2F for /"
        )
    return parts


def _bad_ports(parts: dict[str, Any]) -> bool:
    ports = str(parts.get("port") or "").split(",")
    return any(port and not port.isdecimal() for port in ports)


def _connection_error(dsn: str, error: psycopg.Error) -> ReplicationError:
    text = str(error).strip()
    if any(form in text for form in _secret_forms(_read(dsn))):
        text = "(its error text is withheld: it repeats a secret)"
    sqlstate = error.sqlstate
    transient = isinstance(error, psycopg.OperationalError) and not _FINAL.search(str(error))
    return ReplicationError(f"cannot connect to {redact(dsn)}: {text}", sqlstate=sqlstate, transient=transient)


def _secret_forms(parts: dict[str, Any]) -> set[str]:
    secrets = [str(parts[key]) for key in _SECRETS if parts.get(key)]
    return {form for secret in secrets for form in (secret, quote(secret, safe=""))}
