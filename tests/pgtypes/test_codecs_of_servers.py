"""Both formats of values, judged by PostgreSQL: text of what it sends, and binary of what it writes."""

import random
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES, TYPE_NAMES
from pgoutput_construct.pgtypes.type_registry import CODECS

_COUNT: Final = 2000
_WORDS: Final = ("", "a", "two words", "NULL", "null", 'q"u\\o', "{x,y};(z)", "[1", "tab\tand\nline", "grün 🐘", "it's")
_INTS: Final = ("0", "1", "-1", "32767", "-32768")
_FLOATS: Final = (
    *("0", "-0", "1", "-1.5", "0.1", "123456", "1234567", "0.0001", "0.00001234", "1e15", "1e14", "123456789012345678"),
    *("1e23", "9007199254740993", "1e-45", "3.4028235e38", "1.17549435e-38", "9.5367431640625e-07"),
    *("NaN", "Infinity", "-Infinity"),
)
_NUMERICS: Final = (
    *("0", "0.000", "1", "-1.50", "10000", "100000000", "12345678.9", "0.0001", "0.00001234", "1e40", "1e-40", "NaN"),
    *("99999999999999999999.99999999999999999999", "-0.1", "Infinity", "-Infinity", "9999", "10000.0001"),
)
_DATES: Final = (
    "2000-01-01",
    "1999-12-31",
    "0001-01-01",
    "0001-12-31 BC",
    "4713-01-01 BC",
    "5874897-12-31",
    "infinity",
)
_TIMESTAMPS: Final = (
    *("2000-01-01", "2026-02-28 23:59:59.999999", "1999-12-31 00:00:00.5", "0001-01-01", "0044-03-15 12:00 BC"),
    *("4713-01-01 BC", "294276-12-31 23:59:59.999999", "10000-01-01", "infinity", "-infinity", "2400-02-29 00:00:00.1"),
)
_INTERVALS: Final = (
    *(
        "0",
        "1 day",
        "-1 day",
        "1 mon",
        "-13 mons",
        "2 years 1 mon -3 days 04:05:06.789",
        "-1 years 1 day -00:00:00.000001",
    ),
    *("100000:00:00", "-10 mons 3 days -04:05:06", "1 year", "178000000 years", "30 days", "00:00:01.5"),
)
_NETS: Final = ("10.0.0.1", "10.0.0.0/8", "0.0.0.0/0", "::", "::1", "fe80::1:0:0:1", "::ffff:1.2.3.4", "2001:db8::/32")
_RANGES: Final = ("empty", "[{0},{1})", "({0},{1}]", "[{0},]", "(,{1})", "(,)", "[{0},{0}]")
_BOUNDS: Final[Mapping[str, Sequence[str]]] = {
    "int4": ("-5", "7"),
    "int8": ("-5", "5000000000"),
    "numeric": ("-1.50", "2.25"),
    "date": ("1999-12-31", "2026-01-31"),
    "timestamp": ("0044-03-15 12:00 BC", "2026-01-31 12:00:00.5"),
    "timestamptz": ("1999-12-31 23:00", "infinity"),
}

VALUES: Final[Mapping[str, Sequence[str]]] = {
    "bool": ("t", "f"),
    "bytea": ("", "\\x00ff", "\\x5c22"),
    "char": ("a", "", "\\377", "\\"),
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "refcursor"), _WORDS),
    "int2": _INTS,
    "int4": (*_INTS, "2147483647", "-2147483648"),
    "int8": (*_INTS, "9223372036854775807", "-9223372036854775808"),
    **dict.fromkeys(("oid", "xid", "cid"), ("0", "7", "4294967295")),
    **dict.fromkeys(("xid8", "oid8"), ("0", "18446744073709551615")),
    "tid": ("(0,0)", "(4294967295,65535)"),
    "int2vector": ("", "1", "1 -2 32767"),
    "oidvector": ("", "1", "1 4294967295"),
    "json": ("{}", ' {"a" : [1, null, "x\\ty"] }', '"grün"'),
    "jsonb": ("{}", '{"a" : [1, null, "x\\ty"] }', '"grün"', "1.50"),
    "jsonpath": ("$.a[*] ? (@ > 1)", "strict $"),
    "point": ("(0,0)", "(-1.5,1e300)", "(NaN,Infinity)"),
    "lseg": ("[(0,0),(1,1.25)]",),
    "path": ("((0,0),(1,1),(2,0))", "[(0,0),(1,1)]"),
    "box": ("(1,1),(0,0)", "(2.5,3),(-1,-1)"),
    "polygon": ("((0,0),(1,1),(2,0))",),
    "line": ("{1,-1,0}",),
    "circle": ("<(0,0),2.5>",),
    **dict.fromkeys(("inet", "cidr"), _NETS),
    "macaddr": ("08:00:2b:01:02:03",),
    "macaddr8": ("08:00:2b:01:02:03:04:05",),
    "float4": _FLOATS,
    "float8": (*_FLOATS, "5e-324", "1.7976931348623157e308", "2.2250738585072014e-308", "5.684341886080801e-14"),
    "numeric": _NUMERICS,
    "date": (*_DATES, "-infinity"),
    "time": ("00:00", "23:59:59.999999", "24:00", "12:30:00.5"),
    "timetz": ("00:00+00", "12:30:00.5+05:30", "23:59:59.999999-08", "24:00+15:59:59", "01:00-00:00:01"),
    **dict.fromkeys(("timestamp", "timestamptz"), _TIMESTAMPS),
    "interval": _INTERVALS,
    **dict.fromkeys(("bit", "varbit"), ("1", "0", "10101", "0000000011111111", "101010101")),
    "uuid": ("00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    **dict.fromkeys(("txid_snapshot", "pg_snapshot"), ("10:10:", "10:20:10,14,15")),
    "pg_lsn": ("0/0", "16/B374D848", "FFFFFFFF/FFFFFFFF"),
    "tsvector": ("", "a fat 'it''s' 'b\\\\s' 'two words'", "'cat':3A,4B,5C,6 'grün':16383"),
    "tsquery": (
        *("", "a", "'it''s' & 'b\\\\s'", "a & b | c", "a & (b | c)", "!(a | b)", "!!a & !b", "a <-> b <-> c", "a:*AB"),
        *("a <-> (b <3> c)", "(a & b) <-> c", "!(a <-> b)", "fat:ab & cat:*", "(a | b) & (c | d) <-> e", "a:d"),
    ),
}
"""By name of the type, values as they are written in SQL; of ranges and multiranges there are ``_RANGES``."""


def values_of(name: str, server_version: int) -> Sequence[str]:
    """Return the values of a type as they are written in SQL."""
    if name in VALUES:
        return (*VALUES[name], *(("infinity", "-infinity") if name == "interval" and server_version >= 170000 else ()))
    subtype = BUILTIN_TYPES[TYPE_NAMES[name].subtype_oid].name
    if subtype in _BOUNDS:
        return [each.format(*(f'"{bound}"' for bound in _BOUNDS[subtype])) for each in _RANGES]
    parts = [each for each in values_of(subtype, server_version) if each != "empty"]
    return ["{}", "{empty}", *(f"{{{each}}}" for each in parts), f"{{{parts[-1]},{parts[0]}}}"]


NAMES: Final = sorted(name for name in CODECS if not name.startswith("_") and name != "xml")
"""Embedded servers are built without XML."""
DIFFERENT: Final = {"interval", "oid8", "pg_lsn"}
"""Of these, servers of different releases have other values, or write them otherwise."""


@pytest.fixture(scope="module")
def connection(server: EmbeddedServer) -> Iterator[psycopg.Connection[Any]]:
    """A connection whose settings are those of a walsender for a subscription."""
    with server.connect() as connected:
        connected.execute("SET extra_float_digits = 3; SET timezone = 'UTC'; SET bytea_output = hex")
        yield connected


def _sent(connection: psycopg.Connection[Any], query: Any, *values: Any) -> list[tuple[bytes, bytes]]:
    """Return what a query of one column selects: binary format and text of each row."""
    results = []
    for is_binary in (True, False):
        result = connection.cursor(binary=is_binary).execute(query, values).pgresult
        assert result is not None
        results.append([result.get_value(row, 0) or b"" for row in range(result.ntuples)])
    return list(zip(*results, strict=True))


def _check(name: str, sent: Sequence[tuple[bytes, bytes]]) -> None:
    codec = CODECS[name]
    texts = [text.decode() for _, text in sent]
    if name.endswith("pg_lsn"):  # which 19 writes with zeros
        texts = [re.sub("/0{1,7}(?=[0-9A-F])", "/", text) for text in texts]
    assert [codec.text(binary) for binary, _ in sent] == texts
    if codec.binary is not None:
        assert [codec.binary(text.decode()).hex(" ") for _, text in sent] == [binary.hex(" ") for binary, _ in sent]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.differs_by_version] if name in DIFFERENT else []) for name in NAMES],
)
def test_values(connection: psycopg.Connection[Any], name: str) -> None:
    """Values of each type, one by one and in arrays: with NULLs, of two dimensions, with other bounds."""
    if name == "oid8" and connection.info.server_version < 190000:
        pytest.skip("oid8 came with PostgreSQL 19")
    kind, array = SQL("pg_catalog.{}").format(Identifier(name)), SQL("pg_catalog.{}").format(Identifier(f"_{name}"))
    # bit is bit(1), into which nothing longer goes.
    cast = SQL("v::varbit::bit(9)") if name == "bit" else SQL("v::{}").format(kind)
    each = SQL("SELECT {} FROM unnest(%s::text[]) AS v").format(cast)
    values = list(values_of(name, connection.info.server_version))
    _check(name, _sent(connection, each, values))
    arrays = SQL(
        "WITH a AS MATERIALIZED (SELECT ARRAY({each}) AS a)"
        " SELECT '{{}}'::{array} UNION ALL SELECT a FROM a UNION ALL SELECT a || NULL::{kind} FROM a"
        " UNION ALL SELECT ARRAY[a, a] FROM a"
        " UNION ALL SELECT ('[0:' || cardinality(a) - 1 || ']=' || a::text)::{array} FROM a"
    )
    _check(f"_{name}", _sent(connection, arrays.format(each=each, kind=kind, array=array), values))


def test_floats(connection: psycopg.Connection[Any]) -> None:
    """Floats of any bits, and those around powers of two and ten, have the digits that PostgreSQL writes."""
    bits = random.Random(1)
    for name, code, size, least, most in (("float4", "!f", 4, -38, 38), ("float8", "!d", 8, -307, 308)):
        powers = [base**power for base in (2.0, 10.0) for power in range(least, most)]
        near = [int.from_bytes(struct.pack(code, power)) + step for power in powers for step in (-1, 0, 1)]
        data = [each.to_bytes(size) for each in near] + [bits.randbytes(size) for _ in range(_COUNT)]
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE TEMP TABLE floats (n int, value {name})")
            with cursor.copy("COPY floats FROM STDIN (FORMAT binary)") as copy:
                copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8))
                copy.write(b"".join(struct.pack("!hiii", 2, 4, n, size) + each for n, each in enumerate(data)))
                copy.write(b"\xff\xff")
            texts = cursor.execute("SELECT value::text FROM floats ORDER BY n").fetchall()
            cursor.execute("DROP TABLE floats")
        assert [(CODECS[name].text(each),) for each in data] == texts
