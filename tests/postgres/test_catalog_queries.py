"""The named catalog queries: servers of each release have their columns, and a publisher answers them."""

from contextlib import nullcontext
from typing import Any

import psycopg
import pytest

from pgoutput_construct import catalog_queries, testing
from pgoutput_construct.catalog_queries import PUBLISHED_TABLES, CatalogQuery
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres.connection import connect, fetch_named
from pgoutput_construct.publisher._server.answers import REPLIES
from tests.postgres.shop import Shop

QUERIES = {name: value for name, value in vars(catalog_queries).items() if isinstance(value, CatalogQuery)}
ARGUMENTS: dict[str, Any] = {"publications": ["o'k", 'a "b', "c\\d"], "slot": None, "oids": [1, 16384], "pid": -1}

each_query = pytest.mark.parametrize("name", QUERIES)


@each_query
@pytest.mark.differs_by_version
def test_columns_of_a_query_on_a_server(server: EmbeddedServer, name: str) -> None:
    """A result has as many columns as the table of queries says, of these types."""
    query = QUERIES[name]
    with server.connect() as plain, connect(server.dsn, replication=False) as connection:
        fetch_named(connection, query, **ARGUMENTS)
        sql = query.sql(connection.info.server_version).encode()
        with psycopg.ClientCursor(plain) as cursor:
            cursor.execute(sql, ARGUMENTS)
            oids = [column.type_code for column in cursor.description or ()]
        named = dict(plain.execute("SELECT oid::bigint, typname FROM pg_type").fetchall())
    assert [named[oid] for oid in oids] == list(query.columns.values())


@each_query
@pytest.mark.parametrize("version", [150000, 160003, 180001, 190000])
def test_a_publisher_recognises_a_query(name: str, version: int) -> None:
    """A publisher of any release answers it, or says that it has no copies."""
    query, refused = QUERIES[name], pytest.raises(ReplicationError, match="nothing can be copied")
    with (
        testing.publisher(publications=["o'k"], server_version=version) as publisher,
        connect(publisher.dsn, replication=False) as connection,
        refused if query is PUBLISHED_TABLES else nullcontext(),
    ):
        assert connection.info.server_version == version
        assert all(row.keys() == query.columns.keys() for row in fetch_named(connection, query, **ARGUMENTS))


def test_each_query_has_a_reply() -> None:
    """Nothing is asked of servers that a publisher does not know."""
    assert {*QUERIES.values()} == {*REPLIES}


@pytest.mark.slow
def test_what_holds_a_slot(shop: Shop) -> None:
    """A prepared transaction that holds WAL is named by its identifier and owner."""
    shop.execute("BEGIN", "INSERT INTO item VALUES (2, 'b')", "PREPARE TRANSACTION 'waits'")
    with shop.connect() as connection:
        (row,) = fetch_named(connection, catalog_queries.BLOCKING_WRITER)
    shop.execute("ROLLBACK PREPARED 'waits'")
    assert "of the prepared transaction 'waits' of postgres, open since" in row["writer"]
