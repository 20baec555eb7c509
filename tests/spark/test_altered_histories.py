"""Columns that get another type on a real server: rows that had ended before say in it what they were."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import fetch_table
from pgoutput_construct.spark import open_log
from pgoutput_construct.spark._replicate import read_history, replicate
from tests.postgres.shop import Shop
from tests.spark.test_altered_types import ALTERATIONS, Alteration

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.usefixtures("compiled")]

TO_TEXT: Final = {
    "double precision": ("'1'", "'0.1'", "'-0'", "'1e20'", "'1e-7'", "'1.5e300'", "'NaN'", "'-Infinity'"),
    "real": ("'1'", "'0.1'", "'1e6'", "'16777217'", "'NaN'", "'Infinity'"),
    "numeric(9,8)": ("0", "0.00000001", "-0.00000015", "1.5", "'NaN'"),
    "numeric": ("1.250", "1e-20", "'Infinity'"),
    "boolean": ("true", "false"),
    "bytea": (r"'\x00ff'", "''"),
    "date": ("'2020-02-29'", "'infinity'", "'0044-03-15 BC'"),
    "timestamp": ("'2020-02-29 12:00'", "'0001-01-01 00:00:00.000001'", "'-infinity'"),
    "timestamptz": ("'2020-10-25 02:30+01'", "'2020-10-25 02:30+02'", "'1800-01-01 00:00:00.5+00'", "'infinity'"),
    "time": ("'12:00:00.5'", "'24:00'"),
    "interval": ("'1 year 2 mons -3 days 04:05:06.7'",),
    "uuid": ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",),
    "json": ("""'{"a" : 1.0}'""",),
    "jsonb": ("""'{"b":1,  "a": "x"}'""",),
    "int4range": ("'[1,5)'", "'empty'"),
    "inet": ("'10.0.0.1'", "'10.0.0.0/8'"),
    "mood": ("'fine'",),
    "place": ("ROW(1, 'a \"b\"')",),
    "integer[]": ("'{1,NULL}'", "'{}'", "'{{1,2},{3,4}}'", "'[0:1]={1,2}'"),
    "text[]": (r"""ARRAY['', 'NULL', 'a b', 'a,b', 'q"', '\', NULL]""", "ARRAY['plain']"),
    "boolean[]": ("'{t,f,NULL}'",),
    "bytea[]": (r"ARRAY['\x00ff'::bytea, '']",),
    "double precision[]": ("'{1,0.1,NaN,NULL,1e-7}'",),
    "real[]": ("'{1,0.1}'",),
    "numeric(9,8)[]": ("'{0,0.00000001,NULL}'",),
    "date[]": ("'{2020-02-29,NULL}'", "'{infinity}'"),
    "timestamp[]": ("'{2020-02-29 12:00}'",),
    "timestamptz[]": ("'{2020-10-25 02:30+01}'",),
    "box[]": ("'{(1,1),(0,0);(3,3),(2,2)}'",),
}
"""Values of types that become text."""

ALL: Final = (
    *(each for each in ALTERATIONS if each.zone != "UTC"),
    *(Alteration(kind, "text", "string", found, ("'x'",)) for kind, found in TO_TEXT.items()),
)
"""Each is that of a column of one table."""

SERVER_TYPES: Final = {"int": "int", "float": "real", "double": "double precision", "timestamp_ntz": "timestamp"}
"""Types of PostgreSQL that are those in Spark, where the names are others."""


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """A database with types of its own."""
    with Shop.create(server18, "altered_histories", tmp_path / "log") as shop:
        shop.execute("CREATE TYPE mood AS ENUM ('fine')", "CREATE TYPE place AS (a int, b text)")
        yield shop


def _held(number: int, each: Alteration) -> str:
    """Return what a row of before has in the type that holds it: in a string, what its output function writes."""
    if each.spark == "string":
        return f"CASE WHEN c{number} IS NOT NULL THEN format('%s', c{number}) END"
    inner = each.spark.removeprefix("array<").removesuffix(">")
    return f"c{number}::{SERVER_TYPES.get(inner, inner)}{'[]' if inner != each.spark else ''}"


def _inserted() -> Iterator[str]:
    """Yield statements by which rows come, and are noted as what they are to be."""
    yield "SET TimeZone = 'UTC'"
    columns = ", ".join(f"c{number} {each.before}" for number, each in enumerate(ALL))
    yield f"CREATE TABLE t (id int PRIMARY KEY, {columns})"
    for row in range(max(len(each.values) for each in ALL) + 1):
        values = ", ".join((*each.values, *["NULL"] * row)[row] for each in ALL)
        yield f"INSERT INTO t VALUES ({row}, {values})"
    held = ", ".join(f"{_held(number, each)} AS c{number}" for number, each in enumerate(ALL))
    yield f"CREATE TABLE was AS SELECT id, {held} FROM t"


def _altered() -> Iterator[str]:
    yield f"SET TimeZone = '{ALTERATIONS[0].zone}'"
    using = [re.sub(r"\bv\b", f"c{number}", each.using or "v") for number, each in enumerate(ALL)]
    each_one = (
        f"ALTER c{number} TYPE {each.after} USING {using[number]}::{each.after}" for number, each in enumerate(ALL)
    )
    yield f"ALTER TABLE t {', '.join(each_one)}"
    yield f"INSERT INTO t VALUES (0, {', '.join(each.later[0] for each in ALL)})"


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.long
def test_rows_that_ended_before(spark: Any, shop: Shop, tmp_path: Path, ansi: str) -> None:
    """They have the same values in a history that was written in other types, and in the changes that the log has."""
    settings = {"spark.sql.ansi.enabled": ansi, "spark.sql.session.timeZone": "Europe/Berlin"}
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        _check_histories(spark, shop, tmp_path / "wh")
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def _check_histories(spark: Any, shop: Shop, warehouse: Path) -> None:
    shop.execute(*_inserted())
    shop.capture(snapshot=True)
    for statements in (["DELETE FROM t"], _altered()):
        shop.execute(*statements)
        shop.capture(snapshot=True)
        replicate(spark, shop.directory, warehouse, history=True, tables=["t"])
    log = open_log(spark, shop.directory)
    columns = log.table("public.was").current_columns
    expected = {row["id"]: row for row in fetch_table(shop.dsn, "public", "was", columns).to_pylist()}
    history = read_history(spark, warehouse, "public.t").where("_ended_by = 'delete'")
    copied = log.changes("public.t").where("_op = 'snapshot'").orderBy("_seq").limit(len(expected))
    for rows in (history, copied):
        kinds = [rows.schema[f"c{number}"].dataType.simpleString() for number in range(len(ALL))]
        assert kinds == [each.spark for each in ALL]
        found = {row["id"]: row.asDict() for row in rows.collect()}
        assert found.keys() == expected.keys()
        assert not list(_differences(found, expected))


def _differences(found: Mapping[int, Any], expected: Mapping[int, Any]) -> Iterator[str]:
    """Yield the values that are not as they are to be, with their alterations."""
    for number, each in enumerate(ALL):
        for row in sorted(expected):
            have, want = (_said(of[row], f"c{number}") for of in (found, expected))
            if have != want:
                yield f"{each.before} to {each.after}: {have} instead of {want}"


def _said(row: Mapping[str, Any], name: str) -> str:
    """Return what a row says of a column: its value, and its text."""
    return f"{row[name]!r} {dict(row['_untyped'] or ()).get(name)!r}"
