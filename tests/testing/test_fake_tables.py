"""Tables of the test publisher: what is no row of theirs is refused by table, column and type."""

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from ipaddress import ip_address
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Json, Jsonb
from psycopg.types.range import Range

import pgoutput_construct as pgo
from pgoutput_construct import testing
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.testing import FakeTable
from pgoutput_construct.testing.value_texts import column_text

HOUR = timedelta(hours=1)
VALUES: list[tuple[str, Any]] = [
    ("bool", True),
    ("int2", -5),
    ("int8", 2**40),
    ("oid", 2**32 - 1),
    ("float4", 0.1),
    ("float8", 100000.0),
    ("float8", 1),
    ("float8", float("-inf")),
    ("numeric", Decimal("1E+5")),
    ("numeric", Decimal("1.50")),
    ("numeric", 1e20),
    ("text", "Straße"),
    ("varchar", ""),
    ("bytea", b"\x00\xff"),
    ("date", date(44, 3, 15)),
    ("time", time(12, 1)),
    ("timetz", time(12, 1, tzinfo=timezone(2 * HOUR))),
    ("timestamp", datetime(2026, 1, 1, 2, 0, 0, 500)),
    ("timestamptz", datetime(2026, 1, 1, 2, 0, tzinfo=timezone(2 * HOUR))),
    ("timestamptz", datetime(2026, 1, 1, 2, 0, 0, 100, tzinfo=UTC)),
    ("interval", timedelta(days=1, hours=2, microseconds=5)),
    ("interval", -HOUR),
    ("interval", timedelta()),
    ("uuid", UUID(int=7)),
    ("json", Json({"a": [1]})),
    ("jsonb", Jsonb({"a": [1]})),
    ("inet", ip_address("10.0.0.1")),
    ("int4range", Range(1, 5)),
    ("_int4", [1, None, 2]),
    ("_text", ["a b", '"']),
    ("_timestamptz", [datetime(2026, 1, 1, tzinfo=timezone(HOUR))]),
]
"""Types, each with a Python value."""


@pytest.mark.server
def test_values_are_as_the_server_writes_them(server18: EmbeddedServer) -> None:
    """Each is compared with what PostgreSQL writes of the same value; the text that it writes is a value, too."""
    with psycopg.connect(server18.dsn, autocommit=True, cursor_factory=psycopg.ClientCursor) as connection:
        connection.execute("SET TimeZone TO 'UTC'")
        for kind, value in VALUES:
            # The interval is sent by its seconds, since a timedelta of psycopg's is another one for negative days.
            sent = f"{value.days} days {value.seconds}.{value.microseconds:06} secs" if kind == "interval" else value
            # concat() calls the output function: a cast to text writes true for bool, and /32 after an inet.
            (written,) = connection.execute(f"SELECT concat((%s)::{kind})", [sent]).fetchone() or ()  # type: ignore[arg-type]
            assert column_text(value, kind, "") == written.encode(), (kind, value)
            assert column_text(written, kind, "") == written.encode(), (kind, written)


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("int4", "abc", "'abc' is not a value of int4: expected an int from -2^31 to 2^31 - 1, or its text as Post"),
        ("int4", 2**31, "2147483648 is not a value of int4: "),
        ("int4", True, "True is not a value of int4"),
        ("int4", 1.0, "1.0 is not a value of int4"),
        ("int4", "007", "(PostgreSQL writes it as '7'): expected an int"),
        ("oid", -1, "expected an int from 0 to 2^32 - 1"),
        ("bool", 1, "expected a bool"),
        ("text", 5, "5 is not a value of text: expected a str"),
        ("text", b"bytes", "b'bytes' is not a value of text: expected a str"),
        ("bytea", "bytes", "expected bytes"),
        ("date", datetime(2026, 1, 1), "expected a date"),
        ("timestamp", datetime(2026, 1, 1, tzinfo=UTC), "expected a datetime without a time zone"),
        ("timestamptz", datetime(2026, 1, 1), "expected a datetime with a time zone"),
        ("timestamptz", "2026-01-01 02:00:00+02", "is not a value of timestamptz"),
        ("uuid", "7", "expected a UUID"),
        ("jsonb", {"a": 1}, "{'a': 1} is not a value of jsonb: expected JSON as a str, or Jsonb of psycopg"),
        ("json", "{", "'{' is not a value of json"),
        ("json", 5, "5 is not a value of json"),
        ("_int4", [1, "x"], "expected a list of values of its elements' type"),
        ("_int4", 5, "5 is not a value of _int4"),
        ("int4range", "x", "expected a value that psycopg adapts to int4range"),
    ],
)
def test_a_value_of_another_type(kind: str, value: Any, said: str) -> None:
    """The error names table, column and the expected type; nothing is served."""
    table = FakeTable("orders", {"id": "int4", "v": kind}, ["id"])
    with pytest.raises(pgo.PgoutputError) as caught:
        table.insert({"id": 1, "v": value})
    assert str(caught.value).startswith("public.orders.v: ") and said in str(caught.value)


def test_a_row_of_another_table() -> None:
    """Unknown columns, a key without a value, and what is no row."""
    table = FakeTable("orders", {"id": "int4", "note": "text"}, ["id"])
    for refused, said in (
        (lambda: table.insert({"id": 1, "nope": 2}), "public.orders has no column 'nope': it has id, note"),
        (lambda: table.insert({"note": "x"}), "public.orders.id: a row needs a value of each key column"),
        (lambda: table.update({"id": 1}, {"note": "x"}), "public.orders.id: a row needs a value of each key column"),
        (lambda: table.delete({}), "public.orders.id: a row needs a value of each key column"),
        (lambda: table.delete(1), "public.orders: a row is a mapping of columns to values, not 1"),  # type: ignore[arg-type]
        (lambda: FakeTable("t", {"id": "int"}), "public.t.id: 'int' is not a built-in type as pg_type names it"),
        (lambda: FakeTable("t", {"id": "int4"}, "id"), r"public.t: key is a sequence of columns, such as \['id'\]"),
        (lambda: FakeTable("t", {"id": "int4"}, ["no"]), "public.t has no column 'no': it has id"),
        (lambda: FakeTable("t", ["id"]), "public.t: columns are a mapping of names to types"),  # type: ignore[arg-type]
    ):
        with pytest.raises(pgo.PgoutputError, match=said):
            refused()
    deleted = table.delete({"id": 1, "note": "x"}).message
    assert isinstance(deleted, pgo.Delete) and deleted.old == (b"1", None)


def test_arguments_of_the_publisher() -> None:
    """What it does not know, or cannot send, is refused at once, and its stream stays as it was."""
    for wrong, said in (
        ({"publications": "shop"}, r"publications are a sequence of names, such as \['shop'\]"),
        ({"nope": 1}, "a publisher has no setting 'nope': it has host, port, method"),
        ({"method": "md5"}, "method 'md5': choose from trust, password, scram-sha-256"),
        ({"port": "5432"}, "port '5432': it is an int from 0 to 65535"),
    ):
        with pytest.raises(pgo.PgoutputError, match=said), testing.publisher(**wrong):  # type: ignore[arg-type]
            pass
    with testing.publisher() as publisher:
        orders = publisher.table("orders", {"id": "int4"}, key=["id"])
        first: Any = orders.insert({"id": 1})
        for refused, said in (
            (lambda: publisher.commit(first), r"changes are a sequence, such as \[table\.insert"),
            (lambda: publisher.commit([first, {"id": 2}]), r"a change is what table\.insert\(\.\.\.\) and the like"),
            (lambda: publisher.commit([first], rolled_back=[1]), r"a change is what .* return, not 1"),
            (lambda: publisher.interleaved([first], first), r"changes are a sequence"),
            (lambda: publisher.prepare(first, "gid"), r"changes are a sequence"),
            (lambda: publisher.commit([first], origin="o", streamed=True), "an origin is sent with plain"),
            (lambda: publisher.message("p", "text"), "the content of a message is bytes, not 'text'"),
            (lambda: publisher.send(first), "is not a message: give an object of a message class"),
            (lambda: publisher.fault("nope"), "there is no fault 'nope': choose from cut"),
            (lambda: publisher.fault("cut", seconds=1), "the fault 'cut' has no argument 'seconds': it has none"),
        ):
            with pytest.raises(pgo.PgoutputError, match=said):
                refused()
        assert publisher.commit([first]) == pgo.Lsn(0x1000000 + 2 * 0x40)
