"""Databases whose text is not UTF-8: in SQL_ASCII, of no known encoding, and in encodings that a server converts."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgoutput_construct.columnar import BatchDecoder
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.forensics import undo
from pgoutput_construct.postgres import slot_health, stream
from tests.postgres.shop import PUBLICATION, Shop

pytestmark = pytest.mark.server

NAME, COLUMN, COMMENT = "K\udcf6ln", "Stra\udcdfe", "f\udcfcr"
"""Names in Latin 1, as messages have them."""


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """A database in SQL_ASCII."""
    with Shop.create(server18, "raw", tmp_path / "log", two_phase=False, encoding="SQL_ASCII") as shop:
        _execute(
            shop,
            "CREATE TYPE mood AS ENUM ('ok', 'b\udcf6se')",
            "CREATE TABLE t (id text PRIMARY KEY, note text, m mood DEFAULT 'b\udcf6se')",
            f'CREATE TABLE "{NAME}" (id int PRIMARY KEY, "{COLUMN}" text)',
            f"COMMENT ON TABLE t IS '{COMMENT}'",
        )
        yield shop


def _execute(shop: Shop, *statements: str) -> None:
    with shop.connect() as connection:
        connection.execute("SET client_encoding = SQL_ASCII")
        for statement in statements:
            connection.execute(statement.encode("utf-8", "surrogateescape"))


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_the_log_has_the_bytes(shop: Shop, binary: bool) -> None:
    """Of rows that are copied, and of the stream; readers get what is not UTF-8 in ``_untyped``."""
    shop.options |= {"binary": binary}
    _execute(
        shop,
        "INSERT INTO t VALUES ('a\udce4', 'caf\udce9', DEFAULT), ('a\udcf6', 'caf\u00e9', 'ok')",
        f'INSERT INTO "{NAME}" VALUES (1)',
    )
    shop.capture(snapshot=True)
    _execute(shop, "ALTER TABLE t ADD extra text DEFAULT '\udcff'", "UPDATE t SET note = 'x' WHERE id = 'a\udce4'")
    _execute(shop, "DELETE FROM t WHERE id = 'a\udcf6'", "SELECT pg_logical_emit_message(true, 'p\udce4', 'x')")
    shop.capture(snapshot=True)
    options = shop.log().options
    payloads = [entry.payload for entry in shop.log() if entry.payload[:1] in b"RYIUD"]
    decoded = BatchDecoder(options.proto_version, options.streaming).decode(payloads)
    rows = [row for each in decoded.tables if each.description.relation.name == "t" for row in each.batch.to_pylist()]
    first = {"id": "\\x61e4", "note": "\\x636166e9", "m": "\\x62f67365"}
    assert [dict(row["_untyped"] or {}) for row in rows if row["_op"] == "insert"][:2] == [first, {"id": "\\x61f6"}]
    assert [dict(row["_untyped"]) for row in rows if row["_op"] == "update"] == [
        {"id": "\\x61e4", "m": "\\x62f67365", "extra": "\\xff"}
    ]
    assert [dict(row["_untyped"]) for row in rows if row["_op"] == "delete"] == [{"_before.id": "\\x61f6"}]
    assert any(b"K\xf6ln\0" in payload and b"Stra\xdfe\0" in payload for payload in payloads)


def test_facts_of_the_catalog(shop: Shop) -> None:
    """Names and comments come as names do, as does what connections of other programs read."""
    shop.capture(snapshot=True)
    facts = [event.details for event in shop.log().events() if event.name == "table"]
    assert COMMENT in json.dumps(facts, ensure_ascii=False) and NAME in {each.get("name") for each in facts}
    with shop.server.connect(dbname=shop.dbname) as connection:
        assert connection.info.encoding == "ascii"  # as psycopg connects
        assert slot_health(connection, shop.slot)[0].database == shop.dbname


def test_a_program_reads_the_bytes(shop: Shop) -> None:
    """Values in Python are text as names are."""
    _execute(shop, "INSERT INTO t VALUES ('a', 'caf\udce9', 'ok')")
    with stream(shop.dsn, shop.slot, [PUBLICATION]) as transactions:
        (change,) = next(iter(transactions))
    assert change.new is not None and change.new["note"] == "caf\udce9"


def test_a_change_that_is_not_taken_back(shop: Shop) -> None:
    """A script of SQL is UTF-8: what it cannot have is reported with its row; the rest of the transaction is undone."""
    _execute(shop, "INSERT INTO t VALUES ('a\udce4'), ('b')")
    shop.capture()
    _execute(shop, "UPDATE t SET note = 'x'")
    shop.capture()
    last = shop.log().transactions().to_pylist()[-1]
    script = undo(str(shop.directory), xid=last["xid"])
    assert "not UTF-8" in str(script)


def test_characters_that_utf8_lacks(server18: EmbeddedServer, tmp_path: Path) -> None:
    """The server cannot send them, whatever the capture does: the error says how to go on, and that does."""
    with Shop.create(server18, "converted", tmp_path / "log", two_phase=False, encoding="WIN1252") as shop:
        with shop.connect() as connection:
            connection.execute("SET client_encoding = WIN1252")
            connection.execute(b"INSERT INTO item VALUES (1, 'caf\xe9'), (2, '\x81')")
        with pytest.raises(ReplicationError, match=r"has no equivalent.*correct the row.*--on-lost-slot snapshot"):
            shop.capture()
        shop.execute("UPDATE item SET name = 'x' WHERE id = 2")
        with shop.connect() as connection:
            connection.execute("SELECT pg_drop_replication_slot(%s)", [shop.slot])
        shop.capture(snapshot=True, create_slot=True, on_lost_slot="snapshot")
        assert b"caf\xc3\xa9" in b"".join(entry.payload for entry in shop.log())
