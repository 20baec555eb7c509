"""Connections to a server: opened with fixed session settings, errors without secrets, and queries about the server."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias
from urllib.parse import quote

import psycopg
from psycopg import conninfo, sql
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Dumper, Loader

from pgoutput_construct.catalog_queries import FLUSHED_LSN, IS_STANDBY, CatalogQuery
from pgoutput_construct.errors import PgoutputError, ReplicationError
from pgoutput_construct.postgres._patience import Patience, PatientConnection, run_in_thread
from pgoutput_construct.wire import Lsn

__all__ = [
    "SESSION_SETTINGS",
    "Connection",
    "check_wal_level",
    "connect",
    "current_lsn",
    "describe_error",
    "encode_sql",
    "fetch",
    "fetch_named",
    "fetch_row",
    "fetch_value",
    "identify",
    "is_standby",
    "is_transient",
    "reading_answer",
    "redact",
    "run",
]


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
"""The settings of every connection, so that each value has one text; with this search_path regclass and the like print
qualified names. Of a database in SQL_ASCII that is the client_encoding, too. Warnings are enabled: PostgreSQL 18
reports with one that it skips a publication. (PostgreSQL documentation, section "Client Connection Defaults".)"""

_RAW: Final = "SQL_ASCII"
"""The encoding of databases whose bytes have no known encoding. As client_encoding, which it is for these databases, it
means no conversion; with UTF8 the server raises an error for text that is not UTF-8 (pg_server_to_any())."""

# Timeouts that a role or a database may set for its sessions are disabled: creating a slot, a table copy or a checksum
# may take long, an exported snapshot needs an idle transaction, and decoding runs in a transaction too
# (transaction_timeout, StartTransaction). The package has deadlines of its own. The values are the
# ``server_version_num`` that introduced each setting.
_TIMEOUTS: Mapping[str, int] = {
    "statement_timeout": 0,  # first, since it may be too short for setting the others
    "lock_timeout": 0,
    "idle_in_transaction_session_timeout": 0,
    "idle_session_timeout": 140000,
    "transaction_timeout": 170000,
}
_SECRETS = ("password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")
# With these a server that vanished from the network is detected in about a minute, instead of the system's two hours.
_KEEPALIVES = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "tcp_user_timeout": 60_000}
_TRANSIENT = re.compile("08...|40001|53...|55006|57P0[1-5]")
# libpq has no SQLSTATE for a failed connection, so the message text decides; unknown messages, for example in another
# language (lc_messages), count as transient, and are logged.
_FINAL = re.compile(
    r"password authentication failed|no password supplied|authentication failed for user|no pg_hba\.conf entry|"
    r"pg_hba\.conf rejects|role \".*\" does not exist|database \".*\" does not exist|is not permitted to log in|"
    r"permission denied|must be superuser or replication role|unrecognized configuration parameter|"
    r"invalid (value for parameter|command-line argument|connection option|\w+ value)|"
    r"server does not support SSL|does not support authentication|certificate verify failed|"
    r"certificate file .* does not exist|requires? peer authentication|unsupported frontend protocol"
)


def redact(dsn: str) -> str:
    """Return a connection string without its secrets, such as ``host=h port=5432 dbname=shop user=u``.

    A string that libpq cannot parse, or parses in an ambiguous way, is not shown at all: any part of it may be the
    password.
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

    A replication connection (``replication=database``) accepts SQL too, but only in the simple query protocol: its
    cursors insert parameters into the text on the client.

    Args:
        dsn: The connection string, as libpq reads it; its secrets appear in no error.
        replication: Whether to open a replication connection; False for an ordinary one.
        connect_timeout: Seconds per address, unless the connection string sets it.
        patience: How long to wait for an answer, here and later on the connection, and what may end the wait (then
            Stopped is raised). By default 60 seconds.

    Raises:
        ReplicationError: The server cannot be reached, or refuses the connection.
    """
    options = {"connect_timeout": connect_timeout, **_KEEPALIVES, **_read(dsn)}
    if replication:
        options["replication"] = "database"
    patience = patience or Patience()
    # libpq applies connect_timeout to each address in turn, so there is no limit for all together.
    whole = Patience(math.inf, patience.stop)
    try:
        with reading_answer(f"cannot connect to {redact(dsn)}"):
            connection = run_in_thread(lambda: _open(options), whole, PatientConnection.close)
            connection.patience = patience
            connection.execute(_settings(connection.info))
            if connection.info.encoding == _RAW_PYTHON:
                _read_any_text(connection.adapters)
    except psycopg.Error as error:
        raise _connection_error(dsn, error) from None
    return connection


def _open(options: dict[str, Any]) -> PatientConnection:
    return PatientConnection.connect(**options, autocommit=True, cursor_factory=psycopg.ClientCursor)


def _settings(info: psycopg.ConnectionInfo) -> sql.Composed:
    timeouts = {name: "0" for name, since in _TIMEOUTS.items() if info.server_version >= since}
    values = {**timeouts, **SESSION_SETTINGS}
    if info.parameter_status("server_encoding") == _RAW:
        values["client_encoding"] = _RAW
    pairs = (sql.SQL("SET {} = {}").format(sql.Identifier(name), value) for name, value in values.items())
    return sql.SQL("; ").join(pairs)


def describe_error(error: psycopg.Error, doing: str) -> ReplicationError:
    """Convert a psycopg error of an open connection to a ReplicationError; ``doing`` is the beginning of its text."""
    primary = error.diag.message_primary or str(error).strip()
    hint = f" Hint: {error.diag.message_hint}" if error.diag.message_hint else ""
    lost = isinstance(error, psycopg.OperationalError) and error.sqlstate is None
    transient = lost or is_transient(error.sqlstate)
    return ReplicationError(f"{doing}: {primary}{hint}", sqlstate=error.sqlstate, transient=transient)


def is_transient(sqlstate: str | None) -> bool:
    """Return whether a server's error is transient.

    These are: broken or terminated connections (08, 57P0), a conflict with recovery on a standby (40001), a lack of
    memory, disk space or connections (53), a slot that is in use (55006).
    """
    return sqlstate is not None and _TRANSIENT.fullmatch(sqlstate) is not None


def _read(dsn: str) -> dict[str, Any]:
    try:
        parts = conninfo.conninfo_to_dict(dsn)
    except (psycopg.Error, UnicodeError):
        # psycopg's text quotes the part that it cannot parse, which may be the password.
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
        text = "(the error text is not shown: it contains a secret)"
    sqlstate = error.sqlstate
    transient = isinstance(error, psycopg.OperationalError) and not _FINAL.search(str(error))
    server = redact(dsn) or "the server of libpq's environment"
    return ReplicationError(f"cannot connect to {server}: {text}", sqlstate=sqlstate, transient=transient)


def _secret_forms(parts: dict[str, Any]) -> set[str]:
    secrets = [str(parts[key]) for key in _SECRETS if parts.get(key)]
    return {form for secret in secrets for form in (secret, quote(secret, safe=""))}


_RAW_PYTHON: Final = "ascii"
"""What psycopg calls a client_encoding of SQL_ASCII, with which it returns text as bytes."""


def _read_any_text(adapters: AdaptersMap) -> None:
    """Let text that is not UTF-8 come as names on the wire do: the contract of ``wire``."""
    for name in ("text", "varchar", "bpchar", "name", '"char"', _OTHER_TYPES):
        adapters.register_loader(name, _TextLoader)
    for name in ("json", "jsonb"):
        adapters.register_loader(name, _JsonLoader)
    adapters.register_dumper(str, _TextDumper)


_OTHER_TYPES: Final = 0
"""The OID for types that psycopg has no loader for."""


class _TextLoader(Loader):
    def load(self, data: Buffer) -> str:
        return bytes(data).decode("utf-8", "surrogateescape")


class _JsonLoader(Loader):
    def load(self, data: Buffer) -> Any:
        return json.loads(bytes(data).decode("utf-8", "surrogateescape"))


class _TextDumper(Dumper):
    def dump(self, obj: str) -> bytes:
        return encode_sql(obj)


def encode_sql(text: str) -> bytes:
    """Return SQL as it is sent; names that are not UTF-8 have their bytes."""
    return text.encode("utf-8", "surrogateescape")


@contextmanager
def reading_answer(doing: str) -> Iterator[None]:
    """Read a server's answer in a block (or, as a decorator, in a function).

    A query determines which columns, types and JSON documents its answer has, so the code that reads them checks
    little. But bytes may be damaged on their way, and other programs than PostgreSQL may answer. Then psycopg's
    loaders, JSON's parser and that code raise errors of Python, which become ReplicationError here.

    Args:
        doing: The beginning of the error's text.

    Raises:
        ReplicationError: The answer cannot be read. Errors of this package and of psycopg pass.
    """
    try:
        yield
    except PgoutputError:
        raise
    except UnicodeEncodeError as error:  # what is sent is encoded; an answer is only decoded
        raise _unsendable(doing, error, error.object[error.start : error.end]) from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ReplicationError(
            f"{doing}: the server's answer is not one of PostgreSQL, or was damaged on its way "
            f"({type(error).__name__}: {error}); TLS (sslmode=require) detects damage"
        ) from error


def _unsendable(doing: str, error: UnicodeEncodeError, text: str) -> ReplicationError:
    return ReplicationError(f"{doing}: {text!r} cannot be sent to the server: it is not valid {error.encoding.upper()}")


Connection = psycopg.Connection[Any]
Arguments: TypeAlias = Sequence[Any] | Mapping[str, Any]


def fetch_named(connection: Connection, query: CatalogQuery, **arguments: Any) -> list[dict[str, Any]]:
    """Run one of ``catalog_queries``, and return its rows as dicts by column.

    Args:
        connection: An ordinary or a replication connection.
        query: The query.
        arguments: Its arguments, by name.

    Raises:
        ReplicationError: The query fails.
    """
    rows = fetch(connection, query.sql(connection.info.server_version), arguments, doing=query.purpose)
    with reading_answer(query.purpose):
        return [dict(zip(query.columns, row, strict=True)) for row in rows]


def fetch_value(connection: Connection, query: CatalogQuery, **arguments: Any) -> Any:
    """Run a query that returns one row with one column, and return the value; raises as ``fetch_named`` does."""
    found = fetch_named(connection, query, **arguments)
    with reading_answer(query.purpose):
        ((value,),) = (row.values() for row in found)
        return value


def fetch(
    connection: Connection, query: str, arguments: Arguments | None = None, *, doing: str = ""
) -> list[tuple[Any, ...]]:
    """Run a query and return its rows.

    Args:
        connection: An ordinary or a replication connection.
        query: The SQL.
        arguments: Its parameters.
        doing: The beginning of the error's text.

    Raises:
        ReplicationError: The query fails.
    """
    cursor = run(connection, query, arguments, doing=doing)
    try:
        with reading_answer(doing or _title(query)):
            return cursor.fetchall()
    except psycopg.Error as error:
        raise describe_error(error, doing or _title(query)) from error


def fetch_row(
    connection: Connection, query: str, arguments: Arguments | None = None, *, doing: str = ""
) -> tuple[Any, ...]:
    """Run a query as ``fetch`` does, and return its first row; raise ReplicationError if it fails or has no row."""
    rows = fetch(connection, query, arguments, doing=doing)
    if not rows:
        raise ReplicationError(f"{doing or query}: the server returned no row")
    return rows[0]


def run(
    connection: Connection,
    statement: str,
    arguments: Arguments | None = None,
    *,
    doing: str = "",
) -> "psycopg.Cursor[Any]":
    """Run a statement as ``fetch`` does, and return the cursor."""
    try:
        cursor = connection.cursor()
        if connection.info.encoding == _RAW_PYTHON:
            _read_any_text(cursor.adapters)
        return cursor.execute(encode_sql(statement), arguments)
    except UnicodeEncodeError as error:  # psycopg encodes the elements of lists one by one: this is the whole name
        raise _unsendable(doing or _title(statement), error, error.object) from None
    except psycopg.Error as error:
        raise describe_error(error, doing or _title(statement)) from error


def _title(statement: str) -> str:
    return f"{statement.partition('(')[0].strip()} failed"


_RAISED_SINCE = 190000


def identify(connection: Connection) -> dict[str, Any]:
    """Return the identity of a replication connection's server: the fields of LogOptions from IDENTIFY_SYSTEM."""
    row = fetch_row(connection, "IDENTIFY_SYSTEM")
    with reading_answer("IDENTIFY_SYSTEM failed"):
        system, timeline, _, database = row
        return {
            "server_version": connection.info.server_version,
            "system_identifier": str(system),
            "timeline": int(timeline),
            "database": str(database),
        }


def is_standby(connection: Connection) -> bool:
    """Return whether the server is in recovery, replaying WAL of a primary or an archive."""
    return bool(fetch_value(connection, IS_STANDBY))


@reading_answer(FLUSHED_LSN.purpose)
def current_lsn(connection: Connection) -> Lsn:
    """Return the end of the server's flushed WAL; of a standby, the end of the WAL that it has received or replayed."""
    return Lsn(int(fetch_value(connection, FLUSHED_LSN)))


def check_wal_level(connection: Connection) -> None:
    """Raise ReplicationError unless the server can decode its WAL, or will be able to with the first logical slot.

    Since PostgreSQL 19 a primary with ``wal_level = replica`` writes what decoding needs while it has a logical slot
    (EnsureLogicalDecodingEnabled); a standby depends on its primary. ``effective_wal_level`` shows it.
    """
    level = fetch_row(connection, "SHOW wal_level")[0]
    if level == "logical":
        return
    if connection.info.server_version < _RAISED_SINCE or level != "replica":
        raise ReplicationError(
            f"wal_level is {level}, but logical decoding needs logical; run ALTER SYSTEM SET wal_level = "
            "'logical' and restart the server"
        )
    if is_standby(connection) and fetch_row(connection, "SHOW effective_wal_level")[0] != "logical":
        raise ReplicationError(
            "the standby's primary does not write what logical decoding needs (effective_wal_level is replica); create "
            "a logical slot on the primary, or run ALTER SYSTEM SET wal_level = 'logical' there and restart it"
        )
