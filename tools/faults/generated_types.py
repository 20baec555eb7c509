"""The types of generated tables, with values that are easily confused with each other."""

import random
from dataclasses import dataclass
from typing import Final

__all__ = ["KEY_KINDS", "KINDS", "USER_TYPES", "Kind", "kinds_for", "literal"]

NULL: Final = "NULL"


def literal(text: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def _toasted(seed: str) -> str:
    """Return an expression of 6,400 digits that hardly compress: they are stored out of line."""
    return f"(SELECT string_agg(md5(i::text || {literal(seed)}), '') FROM generate_series(1, 200) i)"


@dataclass(frozen=True)
class Kind:
    """A type, and some of its values."""

    name: str
    """As CREATE TABLE takes it."""
    values: tuple[str, ...]
    """Expressions of SQL."""
    is_key: bool = True
    """Whether it has an order, so that a unique index can have it."""
    since: int = 14
    """The first release of PostgreSQL that has it, or its values."""

    def value(self, chance: random.Random, nulls: float = 0.15) -> str:
        """Return one of the values, or NULL with this probability."""
        return NULL if chance.random() < nulls else chance.choice(self.values)


def _kind(name: str, *texts: str, is_key: bool = True, since: int = 14) -> Kind:
    return Kind(name, tuple(map(literal, texts)), is_key, since)


_TIMES: Final = (
    *("2024-02-29 23:59:59.999999", "2024-02-29 23:59:59.999", "2024-02-29 23:59:59.9991", "1970-01-01 00:00:00"),
    *("0001-01-01 00:00:00", "0044-03-15 12:00:00.000001 BC", "infinity", "-infinity", "9999-12-31 23:59:59.999999"),
    *("12345-06-07 08:09:10", "1582-10-10 00:00:00", "1900-01-01 00:00:00.5"),
)
_FLOATS: Final = ("0", "-0", "NaN", "Infinity", "-Infinity", "1.1", "1e-5", "1e20", "123456.789", "-1.5")
_NUMERICS: Final = (
    "0",
    "0.0",
    "0.000",
    "1",
    "1.0",
    "1.00",
    "-1",
    "NaN",
    "100",
    "1e2",
    "12345678901234567890.123456789",
)
_TEXTS: Final = (
    *("", "a", "A", " a", "a ", "null", "NULL", "é", "e\u0301", "ß", "\U0001f418", "it's", 'say "so"', "back\\slash"),
    *("tab\tnew\nline\r", "\u2028after", "{a,b}", "(1,2)", "%s $1 ?", "\\N", "\x01", "_", "a,b"),
)

USER_TYPES: Final = (
    "CREATE TYPE mood AS ENUM ('sad', 'ok', 'so, so', 'it''s \"fine\"')",
    "CREATE TYPE pair AS (a int, b text)",
    "CREATE TYPE nested AS (p pair, t timestamp)",
    "CREATE DOMAIN positive AS int CHECK (VALUE > 0)",
    "CREATE DOMAIN small AS positive CHECK (VALUE < 1000)",
    "CREATE DOMAIN price AS numeric(10, 2)",
    "CREATE DOMAIN dear AS price CHECK (VALUE > 10)",
    "CREATE DOMAIN instant AS timestamptz(3)",
    "CREATE DOMAIN words AS text[]",
)
"""What makes the types that tables of a history share."""

KINDS: Final = (
    _kind("smallint", "0", "-32768", "32767", "7"),
    _kind("integer", "0", "-2147483648", "2147483647", "42"),
    _kind("bigint", "0", "-9223372036854775808", "9223372036854775807", "9007199254740993"),
    _kind("real", *_FLOATS, "3.4028235e38", "1.17549435e-38"),
    _kind("double precision", *_FLOATS, "1.7976931348623157e308", "5e-324", "0.1", "0.30000000000000004"),
    _kind("numeric", *_NUMERICS, "1e-20"),
    _kind("numeric", "Infinity", "-Infinity", "1"),
    _kind("numeric(12, 3)", "0", "1.5", "1.500", "-999999999.999", "NaN", "100"),
    _kind("numeric(38, 10)", "1", "9999999999999999999999999999.9999999999", "-0.0000000001", "NaN"),
    _kind("numeric(40, 2)", "1", "99999999999999999999999999999999999999.99"),
    _kind("numeric(5, -2)", "12300", "45600", "0", since=15),
    _kind("boolean", "t", "f"),
    _kind("text", *_TEXTS),
    _kind("varchar(12)", *(text for text in _TEXTS if len(text) <= 12)),
    _kind("char(6)", "a", "a ", "b", "", "é"),
    _kind('"char"', "a", "Z", ""),
    _kind("name", "a", "B c", ""),
    _kind('text COLLATE "C"', "a", "B", "_", "é"),
    _kind("bytea", "\\x", "\\x00", "\\x00ff", "\\xff", "\\x5c", "\\x276122"),
    _kind("date", "2024-02-29", "0001-01-01", "0044-03-15 BC", "infinity", "-infinity", "9999-12-31", "1582-10-10"),
    _kind("time", "00:00:00", "23:59:59.999999", "24:00:00", "12:00:00.5"),
    _kind("timetz", "00:00:00+00", "12:00:00+02", "10:00:00+00", "23:59:59.999999-15:59"),
    _kind("timestamp", *_TIMES),
    _kind("timestamp(0)", "2024-02-29 23:59:58.5", "2024-02-29 23:59:59", "infinity"),
    _kind("timestamptz", *_TIMES, "2024-03-31 02:30:00 Europe/Berlin"),
    _kind("interval", "1 mon", "30 days", "720 hours", "-00:00:01.5", "1 year 2 mons -3 days", "0"),
    _kind("uuid", "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-4fff-bfff-ffffffffffff"),
    _kind("json", '{"a": 1}', '{"a":1}', '{"b": [null, "x"]}', "1", is_key=False),
    _kind("jsonb", '{"a": 1, "b": 2}', '{"n": 1.0}', '{"n": 1.00}', '"x"', "null", "[]"),
    _kind("inet", "10.0.0.1", "10.0.0.1/24", "::1", "10.0.0.1/32"),
    _kind("cidr", "10.0.0.0/8", "::/0"),
    _kind("macaddr", "08:00:2b:01:02:03"),
    _kind("macaddr8", "08:00:2b:01:02:03:04:05", "08:00:2b:ff:fe:01:02:03"),
    _kind("int4range", "[1,5)", "[1,4]", "empty", "(,)", "[3,)"),
    _kind("int8range", "[-9223372036854775808,9223372036854775807)", "(0,2]", "empty"),
    _kind("numrange", "[1.0,2.00)", "[1,2)", "(-Infinity,NaN)", "empty"),
    _kind("daterange", "[2024-02-28,2024-02-29]", "(-infinity,infinity)", "[,0044-03-15 BC)", "empty"),
    _kind("tsrange", '["2024-02-29 23:59:59.999999",infinity)', "(,)", "empty"),
    _kind("int4multirange", "{[1,2),[5,7)}", "{}", "{(,)}"),
    _kind("datemultirange", "{[2024-02-29,2024-03-01),[2024-03-05,)}", "{}"),
    _kind("tstzrange", "[2024-01-01, infinity)", "(,2024-01-01]", "empty"),
    _kind("nummultirange", "{[1,2), [3,4)}", "{}", "{[1.0,2.00)}"),
    _kind("tsvector", "a:1 b:2A", "", "'it''s':3"),
    _kind("tsquery", "a & !b", "'it''s' <-> c:*A", ""),
    _kind("bit(3)", "101", "000"),
    _kind("varbit", "1", "01", "", "10101010101"),
    _kind("money", "0", "-1.5", "92233720368547758.07"),
    _kind("oid", "0", "4294967295", "1"),
    _kind("pg_lsn", "0/0", "FFFFFFFF/FFFFFFFF"),
    _kind("xid8", "0", "18446744073709551615"),
    _kind("regtype", "integer", "text[]", "pg_catalog.bool", "0"),
    _kind("pg_snapshot", "10:20:10,14", "1:1:", is_key=False),
    _kind("xid", "0", "4294967295", is_key=False),
    _kind("tid", "(0,1)", "(4294967295,65535)"),
    _kind("jsonpath", '$."a"[*] ? (@ > 1)', "strict $", is_key=False),
    _kind("point", "(0,0)", "(1.5,-2)", "(NaN,Infinity)", is_key=False),
    _kind("box", "(1,1),(0,0)", is_key=False),
    _kind("line", "{1,-1,0.5}", is_key=False),
    _kind("lseg", "[(0,0),(1e-5,1e20)]", is_key=False),
    _kind("path", "[(0,0),(1,2)]", "((0,0),(1,2))", is_key=False),
    _kind("polygon", "((0,0),(1,0),(1,1))", is_key=False),
    _kind("circle", "<(0,-0),1.5>", is_key=False),
    _kind("mood", "sad", "ok", "so, so", 'it\'s "fine"'),
    _kind("pair", "(1,a)", '(,"")', '(2,"x,""y""")', "(,)"),
    _kind("nested", '("(1,a)",infinity)', '(,"2024-01-01 00:00:00.5")'),
    _kind("positive", "1", "2147483647"),
    _kind("small", "1", "999"),
    _kind("price", "1", "1.50", "-0.01", "99999999.99"),
    _kind("dear", "10.01", "11"),
    _kind("instant", "2024-02-29 23:59:59.9996", "infinity", "2024-02-29 23:59:59.5"),
    _kind("words", "{}", '{a,NULL,"NULL","","a b"}'),
    _kind("integer[]", "{}", "{1,2,NULL}", "{{1,2},{3,4}}", "[0:1]={5,6}", "{2147483647}"),
    _kind("text[]", "{}", '{a,NULL,"null","","\\"q\\"","b\\\\s","x,y","é "}', "{{a},{b}}"),
    _kind("double precision[]", "{0,-0,NaN,Infinity,1e-5,NULL}", "{}", "{1e20}"),
    _kind("real[]", "{0,-0,NaN,1.1}", "{}"),
    _kind("numeric[]", "{1,1.0,1.00,NaN,NULL}", "{}", "{Infinity}"),
    _kind("numeric(8, 2)[]", "{1,2.5,NULL}", "{NaN}"),
    _kind("boolean[]", "{t,f,NULL}", "{}"),
    _kind("bytea[]", '{"\\\\x00ff","\\\\x",NULL}'),
    _kind("date[]", "{2024-02-29,NULL}", "{infinity}", '{"0044-03-15 BC",2024-01-01}'),
    _kind("timestamp[]", '{"2024-02-29 23:59:59.999999",NULL}', "{infinity,-infinity}"),
    _kind("timestamptz[]", '{"2024-02-29 23:59:59.5+00"}', "{infinity}", "{}"),
    _kind("uuid[]", "{00000000-0000-0000-0000-000000000000}", "{}"),
    _kind("time[]", "{24:00:00,NULL}", "{00:00:00.5}"),
    _kind("interval[]", '{"1 mon","30 days",NULL}', "{}"),
    _kind("json[]", '{"{\\"a\\": 1}",NULL,"[]"}', is_key=False),
    _kind("jsonb[]", '{"{\\"a\\": 1}",null,"\\"null\\""}', "{}"),
    _kind("inet[]", "{10.0.0.1,10.0.0.1/24,NULL}"),
    _kind("money[]", "{-1.5,NULL}", "{}"),
    _kind("char(3)[]", "{a,NULL,é}", '{" b"}'),
    _kind("int4range[]", '{"[1,5)",empty,NULL}', "{}"),
    _kind("mood[]", '{sad,"so, so",NULL}', "{}"),
    _kind("pair[]", '{"(1,a)",NULL}', "{}"),
    _kind("positive[]", "{1,2}", "{}"),
    _kind("box[]", "{(1,1),(0,0);(2,2),(1,1)}", is_key=False),
    Kind("text", (_toasted("one"), _toasted("two"), "repeat('long ', 2000)", "''"), is_key=False),
    Kind("bytea", (f"convert_to({_toasted('three')}, 'UTF8')", "'\\x00'"), is_key=False),
    Kind("jsonb", (f"jsonb_build_object('k', {_toasted('four')})", "'{}'"), is_key=False),
    Kind("text[]", (f"ARRAY[{_toasted('five')}, NULL]", "'{}'"), is_key=False),
)
"""Types of columns; values of the last ones are stored out of line, and not sent where an update leaves them."""

KEY_KINDS: Final = tuple(kind for kind in KINDS if kind.is_key)
"""Those whose values can be keys."""


def kinds_for(version: int, keys: bool = False) -> list[Kind]:
    """Return the types that a release has."""
    return [kind for kind in (KEY_KINDS if keys else KINDS) if kind.since <= version]
