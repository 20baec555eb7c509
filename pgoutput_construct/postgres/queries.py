"""Questions to a server, whose errors say what was asked."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import psycopg

from pgoutput_construct.catalog_queries import CatalogQuery
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres.connection import describe_error

__all__ = ["Connection", "ask", "ask_one", "fetch", "fetch_row", "run"]

Connection = psycopg.Connection[Any]
Arguments: TypeAlias = Sequence[Any] | Mapping[str, Any]


def ask(connection: Connection, query: CatalogQuery, **arguments: Any) -> list[dict[str, Any]]:
    """Ask one of the queries that have names, and return its rows by column.

    Args:
        connection: An ordinary connection, or one for replication.
        query: What is asked, in the form for the server's release.
        arguments: The query's, by name.

    Raises:
        ReplicationError: When it fails.
    """
    rows = fetch(connection, query.sql(connection.info.server_version), arguments, doing=query.purpose)
    return [dict(zip(query.columns, row, strict=True)) for row in rows]


def ask_one(connection: Connection, query: CatalogQuery, **arguments: Any) -> Any:
    """Ask a query with one row of one column, as ``ask`` does, and return its value."""
    ((value,),) = (row.values() for row in ask(connection, query, **arguments))
    return value


def fetch(
    connection: Connection, query: str, arguments: Arguments | None = None, *, doing: str = ""
) -> list[tuple[Any, ...]]:
    """Run a query and return its rows; ``doing`` names it in the ReplicationError that a failure raises."""
    return run(connection, query, arguments, doing=doing).fetchall()


def fetch_row(
    connection: Connection, query: str, arguments: Arguments | None = None, *, doing: str = ""
) -> tuple[Any, ...]:
    """Run a query and return its first row; raise ReplicationError when it fails, or has none."""
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
    """Run a statement; ``doing`` names it in the ReplicationError that a failure raises."""
    try:
        return connection.execute(statement.encode(), arguments)
    except psycopg.Error as error:
        raise describe_error(error, doing or f"{statement.partition('(')[0].strip()} failed") from error
