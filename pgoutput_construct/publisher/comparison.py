"""The tables of two servers, compared by the number of their rows and a checksum."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import psycopg
from psycopg.sql import SQL, Identifier

from pgoutput_construct.publisher.tables import TargetTable
from pgoutput_construct.publisher.target import connected

__all__ = ["Compared", "compare_tables"]


class Compared(NamedTuple):
    """One table in both servers."""

    table: str
    """Its name in SQL."""
    rows: int
    """How many rows it has here."""
    source_rows: int
    equal: bool
    """Whether the rows are the same, in any order."""


def compare_tables(here: str, source: str, tables: Iterable[TargetTable]) -> Iterator[Compared]:
    """Yield how each table compares, in the columns that it had in the end.

    Args:
        here: A server: a connection string of libpq.
        source: The other one.
        tables: The tables, which both have.

    Raises ReplayError for a server that cannot be reached, or has no such table.
    """
    with connected(here) as one, connected(source) as other:
        for connection in (one, other):
            connection.execute("SET datestyle = ISO; SET timezone = 'UTC'; SET extra_float_digits = 3")
        for table in tables:
            mine, theirs = _checksum(one, table), _checksum(other, table)
            yield Compared(table.qualified, mine[0], theirs[0], mine == theirs)


def _checksum(connection: psycopg.Connection[Any], table: TargetTable) -> tuple[int, int]:
    """Return the number of rows, and the sum of their hashes, which no order changes.

    Hashes are of bytes: those of UTF-8 say the same characters, whatever the encodings of the two databases.
    """
    hashed = "hashtextextended(encode(sha256(convert_to(ROW({})::text, 'UTF8')), 'hex'), 0)"
    query = SQL(f"SELECT count(*), coalesce(sum({hashed}::numeric), 0) FROM {{}}")
    columns = SQL(", ").join(map(Identifier, table.current))
    row = connection.execute(query.format(columns, table.identifier)).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])
