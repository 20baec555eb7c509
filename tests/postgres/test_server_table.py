"""A table as the server has it, in the Arrow types of rows decoded from a log."""

from collections.abc import Iterator
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest
from psycopg.conninfo import make_conninfo

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.pgtypes.arrow_types import UNTYPED
from pgoutput_construct.postgres import fetch_table

COLUMNS = pa.schema(
    {
        "id": pa.int32(),
        "price": pa.decimal128(6, 2),
        "day": pa.date32(),
        "feeling": pa.string(),
        "code": pa.int32(),
        "words": pa.list_(pa.string()),
        "numbers": pa.list_(pa.int64()),
    }
)
"""The columns wanted of the table ``odd``, in another order than the table's, and one of them wider."""

TABLE = """
    CREATE TYPE mood AS ENUM ('glücklich');
    CREATE DOMAIN code AS int CHECK (value > 0);
    CREATE SCHEMA "Odd";
    CREATE TABLE "Odd"."t ""x" (feeling mood, id int, price numeric(6, 2), day date, code code, words text[],
        numbers int[], not_wanted text);
    INSERT INTO "Odd"."t ""x" VALUES
        ('glücklich', 1, 12.5, '2024-02-29', 7, '{a,NULL,"b,c"}', '{1,2}', 'x'),
        (NULL, 2, 'NaN', 'infinity', NULL, NULL, '[0:1]={1,2}', 'y');
"""


@pytest.fixture
def dsn(server: EmbeddedServer) -> Iterator[str]:
    """A database with one odd table."""
    with server.connect() as connection:
        connection.execute("CREATE DATABASE source")
        dsn = make_conninfo(server.dsn, dbname="source")
        with server.connect(dbname="source") as inside:
            inside.execute(TABLE)
        yield dsn
        connection.execute("DROP DATABASE source")


def test_fetch_table(dsn: str) -> None:
    """Values are typed; what a type cannot hold stands in _untyped as PostgreSQL's text; NULLs are null."""
    table = fetch_table(dsn, "Odd", 't "x', COLUMNS)
    assert table.schema.equals(COLUMNS.append(pa.field("_untyped", UNTYPED)))
    first, second = sorted(table.to_pylist(), key=lambda row: row["id"])
    assert list(first.values()) == [
        1,
        Decimal("12.50"),
        date(2024, 2, 29),
        "glücklich",
        7,
        ["a", None, "b,c"],
        [1, 2],
        None,
    ]
    assert dict(second["_untyped"]) == {"price": "NaN", "day": "infinity", "numbers": "[0:1]={1,2}"}
    assert [value for name, value in second.items() if name not in ("id", "_untyped")] == [None] * 6


def test_an_empty_table(dsn: str, server: EmbeddedServer) -> None:
    """A table without rows has its columns; so has one of which none is wanted."""
    with server.connect(dbname="source") as connection:
        connection.execute("CREATE TABLE empty (id int)")
        connection.execute("CREATE TABLE bare AS SELECT FROM generate_series(1, 3)")
    assert fetch_table(dsn, "public", "empty", pa.schema({"id": pa.int32()})).num_rows == 0
    assert fetch_table(dsn, "public", "bare", pa.schema([])).num_rows == 3


@pytest.mark.parametrize(
    ("namespace", "name", "columns", "said"),
    [
        (
            "Odd",
            "gone",
            {"id": pa.int32()},
            r'^"Odd"\.gone cannot be read: .* dropped or renamed since the log was read',
        ),
        ("gone", "t", {"id": pa.int32()}, r"^gone\.t cannot be read: .* since the log was read"),
        ("Odd", 't "x', {"gone": pa.int32()}, r"cannot be read: .* altered since the log was read; open the log again"),
    ],
)
def test_a_table_that_was_dropped(
    dsn: str, namespace: str, name: str, columns: dict[str, pa.DataType], said: str
) -> None:
    """Dropped, renamed or altered since: said with what to do, as an error of ours."""
    with pytest.raises(ReplicationError, match=said):
        fetch_table(dsn, namespace, name, pa.schema(columns))
