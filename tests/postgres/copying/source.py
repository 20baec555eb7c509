"""What a source's tables hold, as COPY says it, to be compared with what a log says."""

from collections import Counter
from typing import Any

import psycopg
from psycopg import sql

from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.postgres import connect
from tools.faults.replay import replay

__all__ = ["logged_tables", "source_rows"]

Rows = Counter[tuple[bytes | None, ...]]


def source_rows(dsn: str, namespace: str, name: str, columns: tuple[str, ...], where: str = "true") -> Rows:
    """Return the rows of a table as texts, under the settings that a capture has."""
    listed = sql.SQL(", ").join(map(sql.Identifier, columns))
    query = sql.SQL("COPY (SELECT {} FROM {} WHERE ").format(listed, sql.Identifier(namespace, name))
    with connect(dsn, replication=False) as connection, connection.cursor() as cursor:
        with cursor.copy((query + sql.SQL(where) + sql.SQL(") TO STDOUT")).as_string(connection).encode()) as copy:  # type: ignore[arg-type]
            return Counter(tuple(None if v is None else v.encode() for v in row) for row in copy.rows())


def logged_tables(log: ChangeLog) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each table that was copied, by the name that it had then."""
    from pgoutput_construct.changelog.copies import latest_copies

    names = {oid: copy.name for oid, copy in latest_copies(log.index).items()}
    return {names[oid]: rows for oid, rows in replay(log).items()}


def check(
    dsn: str, log: ChangeLog, name: str, columns: tuple[str, ...], where: str = "true", schema: str = "public"
) -> int:
    """Compare a table with the log; return how many rows it has."""
    logged = Counter(tuple(row.get(column) for column in columns) for row in logged_tables(log)[name])
    expected = source_rows(dsn, schema, name, columns, where)
    assert logged == expected, (name, list((logged - expected).items())[:3], list((expected - logged).items())[:3])
    return expected.total()
