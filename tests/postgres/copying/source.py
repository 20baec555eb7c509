"""The rows of a source's tables, as COPY prints them, to compare with those of a log."""

from collections import Counter
from typing import Any

from psycopg import sql

from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.changelog._facts.copies import latest_copies
from pgoutput_construct.postgres import connect
from tools.faults.replay import replay

__all__ = ["assert_equal", "logged_tables"]


def logged_tables(log: ChangeLog) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each table that was copied, by the name that it had then."""
    names = {oid: copy.name for oid, copy in latest_copies(log.index).items()}
    return {names[oid]: rows for oid, rows in replay(log).items()}


def assert_equal(
    dsn: str, tables: dict[str, list[dict[str, Any]]], name: str, columns: str, where: str = "true"
) -> None:
    """Compare a table of the schema public with what a log says of it; ``columns`` are separated by spaces."""
    names = columns.split()
    logged = Counter(tuple(row.get(column) for column in names) for row in tables[name])
    source = _source_rows(dsn, name, names, where)
    assert logged == source, (name, list((logged - source).items())[:3], list((source - logged).items())[:3])


def _source_rows(dsn: str, name: str, columns: list[str], where: str) -> Counter[tuple[bytes | None, ...]]:
    query = sql.SQL("COPY (SELECT {} FROM {} WHERE {}) TO STDOUT").format(
        sql.SQL(", ").join(map(sql.Identifier, columns)),
        sql.Identifier("public", name),
        sql.SQL(where),  # type: ignore[arg-type]
    )
    with connect(dsn, replication=False) as connection, connection.cursor() as cursor, cursor.copy(query) as copy:
        return Counter(tuple(None if value is None else value.encode() for value in row) for row in copy.rows())
