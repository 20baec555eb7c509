"""Which tables publications publish, out of the catalog's rows alone.

The view pg_publication_tables opens each table (pg_get_publication_tables() since PostgreSQL 15), and so waits for who
alters one: nothing that is asked beside a stream may wait for that.
"""

from collections.abc import Sequence

from pgoutput_construct.catalog_queries import PUBLISHED_TABLES, for_release
from pgoutput_construct.postgres.queries import Connection, ask, fetch

__all__ = ["read_members", "read_published"]

_MEMBERS = """WITH RECURSIVE {published}
    SELECT DISTINCT n.nspname, c.relname FROM branches b JOIN pg_class c ON c.oid = b.oid
    JOIN pg_namespace n ON n.oid = c.relnamespace"""


def read_published(connection: Connection, publications: Sequence[str]) -> dict[int, tuple[str, str]]:
    """Return the schema and the name of each table that is published, by the OID that the stream names it by."""
    rows = ask(connection, PUBLISHED_TABLES, publications=list(publications))
    return {row["oid"]: (row["schema"], row["name"]) for row in rows}


def read_members(connection: Connection, publications: Sequence[str]) -> set[tuple[str, str]]:
    """Return the schemas and the names of all tables that publications have: partitioned ones, and their partitions."""
    query, arguments = for_release(_MEMBERS, connection.info.server_version), {"publications": list(publications)}
    return set(fetch(connection, query, arguments, doing="the publications cannot be read"))
