"""Values for which a log in binary format has no text, because it depends on the server's locale or catalog."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from pgoutput_construct.columnar import BatchDecoder
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres.checksums import SourceServer, canonical
from tests.postgres.shop import PUBLICATION, Shop

pytestmark = pytest.mark.server

COLUMNS = {"price": "money", "prices": "money[]", "place": "regclass", "own": "domain_of_money"}
TEXTS = {"price": "-$12.34", "prices": "{$1.00,NULL}", "place": "pg_class", "own": "$5.00"}


@pytest.fixture(params=[False, True], ids=["text", "binary"])
def shop(request: pytest.FixtureRequest, server18: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """A database with a row of them, captured in each format: one row is copied, one comes from the stream."""
    with Shop.create(server18, "bytes_without_text", tmp_path / "log") as shop:
        columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
        values = ", ".join(f"$${text}$$" for text in TEXTS.values())
        shop.execute("CREATE DOMAIN domain_of_money AS money", f"CREATE TABLE t (id serial PRIMARY KEY, {columns})")
        shop.execute(f"INSERT INTO t ({', '.join(COLUMNS)}) VALUES ({values})")
        shop.options |= {"binary": request.param}
        shop.capture(snapshot=True)
        shop.execute(f"INSERT INTO t ({', '.join(COLUMNS)}) VALUES ({values})")
        shop.capture(snapshot=True)
        yield shop


def test_values_without_text_in_the_log(shop: Shop) -> None:
    """PostgreSQL's text in a log of text; in one of binary values the bytes, in hexadecimal; so has ``verify``."""
    options = shop.log().options
    payloads = [entry.payload for entry in shop.log() if entry.payload[:1] in b"RYI"]
    decoded = BatchDecoder(options.proto_version, options.streaming).decode(payloads)
    tables = [each.batch for each in decoded.tables if each.description.relation.name == "t"]
    found = (row for table in tables for row in table.to_pylist())
    rows = [{name: row[name] for name in COLUMNS} | dict(row["_untyped"] or {}) for row in found]
    expected = {**TEXTS, "prices": ["$1.00", None]}
    if options.binary:
        with shop.connect() as connection:
            query = "SELECT cash_send(price), array_send(prices), regclasssend(place), cash_send(own) FROM t LIMIT 1"
            (sent,) = connection.execute(query).fetchall()
        expected = {name: f"\\x{value.hex()}" for name, value in zip(COLUMNS, sent, strict=True)}
        assert expected["price"] == f"\\x{(-1234).to_bytes(8, signed=True).hex()}"
    assert rows == [expected] * len(rows) and rows
    texts = {**expected, "prices": expected["prices"] if options.binary else TEXTS["prices"]}
    assert _compared(shop, tables[0].schema, options.binary) == [tuple(texts.values())] * 2


def _compared(shop: Shop, schema: pa.Schema, binary: bool) -> list[tuple[str, ...]]:
    """Return the texts of the columns that a warehouse is compared with."""
    with shop.connect() as connection:
        ((oid,),) = connection.execute("SELECT 't'::regclass::oid::bigint").fetchall()
        with SourceServer(shop.dsn, [PUBLICATION], binary=binary).held() as held:
            source = held.table(oid, pa.schema([schema.field(name) for name in COLUMNS]))
            assert not isinstance(source, str)
            texts = [canonical(column).as_string(connection) for column in source.columns]
        return connection.execute(f"SELECT {', '.join(texts)} FROM t".encode()).fetchall()
