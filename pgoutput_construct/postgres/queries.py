"""Questions to a server, whose errors say what was asked."""

from collections.abc import Sequence
from typing import Any

import psycopg

from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres.connection import describe_error

__all__ = ["Connection", "fetch", "fetch_row", "run"]

Connection = psycopg.Connection[Any]


def fetch(
    connection: Connection, query: str, arguments: Sequence[Any] | None = None, *, doing: str = ""
) -> list[tuple[Any, ...]]:
    """Run a query and return its rows; ``doing`` names it in the ReplicationError that a failure raises."""
    return run(connection, query, arguments, doing=doing).fetchall()


def fetch_row(
    connection: Connection, query: str, arguments: Sequence[Any] | None = None, *, doing: str = ""
) -> tuple[Any, ...]:
    """Run a query and return its first row; raise ReplicationError when it fails, or has none."""
    rows = fetch(connection, query, arguments, doing=doing)
    if not rows:
        raise ReplicationError(f"{doing or query}: the server returned no row")
    return rows[0]


def run(
    connection: Connection, statement: str, arguments: Sequence[Any] | None = None, *, doing: str = ""
) -> "psycopg.Cursor[Any]":
    """Run a statement; ``doing`` names it in the ReplicationError that a failure raises."""
    try:
        return connection.execute(statement.encode(), arguments)
    except psycopg.Error as error:
        raise describe_error(error, doing or f"{statement.partition('(')[0].strip()} failed") from error
