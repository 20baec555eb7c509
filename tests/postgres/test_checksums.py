"""What is compared of a server: the texts of values by their types there and in Arrow, and columns by their names."""

import pyarrow as pa
import pytest

from pgoutput_construct.columnar.row_checksums import ByHash
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres.checksums import SourceColumn, SourceServer, SourceTable, canonical
from tests.postgres.shop import Shop

DECIMAL = pa.decimal128(12, 10)
UUID = "00000000-0000-0000-0000-0000000000ff"


@pytest.mark.parametrize(
    ("literal", "kind", "element", "arrow", "text"),
    [
        ("12.5::numeric", "numeric", None, DECIMAL, "12.5000000000"),
        ("3::int4", "int4", None, DECIMAL, "3.0000000000"),
        ("'NaN'::numeric", "numeric", None, DECIMAL, "NaN"),
        ("0.12345678901", "numeric", None, DECIMAL, "0.12345678901"),
        ("100.5", "numeric", None, DECIMAL, "100.5"),
        ("NULL::numeric", "numeric", None, DECIMAL, None),
        ("'{1,NULL,2.5}'::numeric[]", "_numeric", "numeric", pa.list_(DECIMAL), "{1.0000000000,NULL,2.5000000000}"),
        ("'{1,NaN}'::numeric[]", "_numeric", "numeric", pa.list_(DECIMAL), "{1,NaN}"),
        ("'[0:0]={1}'::numeric[]", "_numeric", "numeric", pa.list_(DECIMAL), "[0:0]={1}"),
        ("'{}'::numeric[]", "_numeric", "numeric", pa.list_(DECIMAL), "{}"),
        (f"'{UUID}'::uuid", "uuid", None, pa.binary(), "\\x" + "00" * 15 + "ff"),
        (f"'{UUID}'::uuid", "uuid", None, pa.string(), UUID),
        ("1.5::float4", "float4", None, pa.float64(), "3ff8000000000000"),
        ("'{1.5,NULL,NaN}'::float4[]", "_float4", "float4", pa.list_(pa.float32()), "{3fc00000,NULL,NaN}"),
        ("'-0'::float8", "float8", None, pa.float64(), "8000000000000000"),
        ("true", "bool", None, pa.bool_(), "t"),
        ("'10.1.2.3'::inet", "inet", None, pa.string(), "10.1.2.3"),
        ("'ab'::char(4)", "bpchar", None, pa.string(), "ab  "),
        ("ROW(NULL, NULL)", "record", None, pa.string(), "(,)"),
    ],
)
@pytest.mark.server
def test_texts(
    server18: EmbeddedServer, literal: str, kind: str, element: str | None, arrow: pa.DataType, text: str | None
) -> None:
    """PostgreSQL's own, but for what Arrow's type makes of numbers and UUIDs."""
    with server18.connect() as connection:
        expression = canonical(SourceColumn("v", kind, element, arrow)).as_string(connection)
        assert connection.execute(f"SELECT {expression} FROM (SELECT {literal} AS v) rows".encode()).fetchone() == (
            text,
        )


@pytest.mark.server
def test_columns_that_have_other_names(shop: Shop) -> None:
    """Names that are exchanged, one that another column of the server has, and a filter by the names there."""
    shop.execute(
        "CREATE TABLE t (id int PRIMARY KEY, a text, b text, c text)",
        "INSERT INTO t VALUES (1, 'of a', 'of b', 'of c'), (2, 'x', 'y', 'of b')",
        "CREATE PUBLICATION partly FOR TABLE t WHERE (c = 'of c')",
    )
    columns = pa.schema({name: pa.string() for name in ("b", "a", "c")})
    with shop.connect() as connection, SourceServer(shop.dsn, ["partly"]).held() as held:
        (oid,) = connection.execute("SELECT 't'::regclass::oid::bigint").fetchone() or ()
        for sources, expected in (
            ({"b": "a", "a": "b"}, ("of a", "of b", "of c")),
            ({"b": "a", "a": "c", "c": "b"}, ("of a", "of c", "of b")),
            ({"b": "b"}, ("of b", "of a", "of c")),
        ):
            table = held.table(oid, columns, {}, sources)
            assert isinstance(table, SourceTable)
            ((texts, _),) = table.digests(ByHash(("a",), 1), 0, columns.names)
            assert texts == expected
        problem = held.table(oid, columns, {}, {"c": "d"})
    assert problem == "it was altered on the server: it no longer has the columns d"
