"""The server that a log is brought into: what must be true of it before anything is created there."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg.sql import SQL

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.publisher.tables import TargetTable
from pgoutput_construct.stream.identifiers import quote_identifier

__all__ = ["SUBSCRIPTION", "ReplayError", "check_target", "connected"]

SUBSCRIPTION: Final = "pgoutput_replay"
"""The name of the subscription, and of its slot."""
_OLDEST: Final = 150000
_TABLES: Final = ("r", "p")
_FOUND: Final = """SELECT c.relkind, ARRAY(SELECT attname::text FROM pg_catalog.pg_attribute
    WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped)
    FROM pg_catalog.pg_class c WHERE c.oid = pg_catalog.to_regclass(%s)"""
# What a role has for its own sessions, such as lock_timeout, must not end a replay, which waits for a subscription.
_NO_TIMEOUTS: Final = """SELECT pg_catalog.set_config(name, '0', false) FROM pg_catalog.pg_settings
    WHERE name ~ '^(statement|lock|transaction|idle_session|idle_in_transaction_session)_timeout$'"""
_LEFT: Final = """SELECT FROM pg_catalog.pg_subscription s JOIN pg_catalog.pg_database d ON d.oid = s.subdbid
    WHERE s.subname = %s AND d.datname = pg_catalog.current_database()"""


class ReplayError(PgoutputError):
    """A log could not be brought into a server; the text says what to do."""


@contextmanager
def connected(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    """Yield a connection; what psycopg raises in the block is raised as ReplayError, and shows no password."""
    try:
        # Names and rows of any encoding: the server converts, or says what it cannot.
        with psycopg.connect(dsn, autocommit=True, client_encoding="UTF8") as connection:
            connection.execute(_NO_TIMEOUTS)
            yield connection
    except psycopg.ProgrammingError as error:
        if error.diag.message_primary is None:  # its text has a part of the connection string
            raise ReplayError("the connection string cannot be read: write it as libpq takes it") from None
        raise ReplayError(_told(error)) from error
    except psycopg.Error as error:
        raise ReplayError(_told(error)) from error


def check_target(connection: psycopg.Connection[Any], tables: Iterable[TargetTable]) -> None:
    """Check the server, and those of the tables that it has; raise ReplayError."""
    if connection.info.server_version < _OLDEST:
        raise ReplayError("the server is older than PostgreSQL 15, which does not tell of errors of subscriptions")
    if connection.execute(_LEFT, (SUBSCRIPTION,)).fetchone() is not None:
        alter = f"ALTER SUBSCRIPTION {SUBSCRIPTION}"
        raise ReplayError(
            "a replay is under way, or was cut off and has left its subscription; then remove that, empty the tables, "
            f"and begin again: {alter} DISABLE; {alter} SET (slot_name = NONE); DROP SUBSCRIPTION {SUBSCRIPTION}"
        )
    for table in tables:
        found = connection.execute(_FOUND, (table.qualified,)).fetchone()
        if found is not None:
            _check(connection, table, *found)


def _check(connection: psycopg.Connection[Any], table: TargetTable, kind: str, columns: list[str]) -> None:
    name = table.qualified
    if kind not in _TABLES:
        raise ReplayError(f"{name} is no table: rename it, or drop it, and the table is created")
    if missing := [column for column in table.columns if column not in columns]:
        named = ", ".join(map(quote_identifier, missing))
        raise ReplayError(f"{name} lacks what the log has in it: add {named}, or drop the table, and it is created")
    if connection.execute(SQL("SELECT FROM {} LIMIT 1").format(table.identifier)).fetchone() is not None:
        raise ReplayError(f"{name} has rows: replay into an empty table, or drop it, and it is created")


def _told(error: psycopg.Error) -> str:
    text = error.diag.message_primary or str(error).strip()
    return f"{text} Hint: {error.diag.message_hint}" if error.diag.message_hint else text
