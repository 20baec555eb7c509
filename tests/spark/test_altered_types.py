"""Columns that get another type on a real server: their type is the documented one, their rows as in the source."""

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.spark import open_log
from pgoutput_construct.spark._replicate import read_current, replicate
from tests.postgres.shop import Shop
from tests.spark.replicate.rounds import check_equal

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.usefixtures("compiled")]

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "types.md"


class Alteration(NamedTuple):
    """An alteration as the page has it, and values before and after it."""

    before: str
    after: str
    spark: str
    values: tuple[str, ...]
    later: tuple[str, ...]
    using: str = ""
    zone: str = "Europe/Berlin"


ALTERATIONS: Final = (
    Alteration("smallint", "integer", "int", ("1", "-32768"), ("2147483647",)),
    Alteration("integer", "bigint", "bigint", ("1", "-2147483648"), ("9223372036854775807",)),
    Alteration("bigint", "integer", "bigint", ("1",), ("-2147483648",)),
    Alteration("integer", "oid", "bigint", ("1",), ("4294967295",)),
    Alteration("smallint", "real", "float", ("1", "32767"), ("0.1", "'NaN'")),
    Alteration("integer", "double precision", "double", ("2147483647",), ("0.1", "'-0'")),
    Alteration("bigint", "double precision", "string", ("9007199254740992",), ("0.1",)),
    Alteration("real", "double precision", "double", ("0.1", "'NaN'"), ("0.1",)),
    Alteration("double precision", "real", "double", ("0.1", "'-Infinity'"), ("0.1",)),
    Alteration("integer", "numeric(12,2)", "decimal(12,2)", ("1",), ("1.25", "'NaN'")),
    Alteration("integer", "numeric", "string", ("1",), ("1.250",)),
    Alteration("numeric(8,2)", "numeric(12,4)", "decimal(12,4)", ("1.5", "'NaN'"), ("12345678.1234",)),
    Alteration("numeric(8,2)", "numeric(12,2)", "decimal(12,2)", ("1.5",), ("1234567890.25",)),
    Alteration("numeric(12,4)", "numeric(8,2)", "decimal(12,4)", ("1.5",), ("123456.25",)),
    Alteration("numeric(8,2)", "numeric", "string", ("1.5",), ("1.250", "1e40")),
    Alteration("varchar(4)", "varchar(8)", "string", ("'ab '",), ("'ab     '",)),
    Alteration("varchar(4)", "text", "string", ("'ab '",), ("'longer'",)),
    Alteration("char(4)", "text", "string", ("'ab'",), ("'ab'",)),
    Alteration("text", "integer", "string", ("'007'",), ("8",), "v::integer"),
    Alteration("integer", "text", "string", ("7",), ("'x'",)),
    Alteration("mood", "text", "string", ("'fine'",), ("'x'",)),
    Alteration("text", "mood", "string", ("'fine'",), ("'fine'",), "v::mood"),
    Alteration("boolean", "integer", "string", ("true",), ("7",), "v::integer"),
    Alteration("bytea", "text", "string", (r"'\x00ff'",), ("'x'",), "encode(v, 'hex')"),
    Alteration("date", "timestamp", "timestamp_ntz", ("'2020-02-29'", "'infinity'"), ("'2020-01-01 12:00'",)),
    Alteration("timestamp", "date", "timestamp_ntz", ("'2020-02-29 12:00'",), ("'2020-02-29'", "'0044-03-15 BC'")),
    Alteration("timestamp", "timestamptz", "string", ("'2020-02-29 12:00'", "'infinity'"), ("'2020-01-01 12:00+02'",)),
    # With UTC it is no rewrite: the file stays as it is.
    Alteration("timestamp", "timestamptz", "string", ("'2020-02-29 12:00'",), ("'2020-01-01 12:00+02'",), zone="UTC"),
    Alteration("date", "timestamptz", "string", ("'2020-02-29'", "'infinity'"), ("'2020-01-01 12:00+02'",)),
    Alteration("integer[]", "bigint[]", "array<bigint>", ("'{1,NULL}'",), ("'{9223372036854775807}'",)),
    Alteration("date[]", "timestamp[]", "array<timestamp_ntz>", ("'{2020-01-01,NULL}'",), ("'{2020-01-01 12:00}'",)),
    Alteration("integer", "integer[]", "string", ("1",), ("'{1,NULL}'",), "ARRAY[v]"),
)


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """A database with a type of its own."""
    with Shop.create(server18, "altered_types", tmp_path / "log") as shop:
        shop.execute("CREATE TYPE mood AS ENUM ('fine')")
        yield shop


def _statements(chosen: Sequence[int], of_table: Any) -> Iterator[str]:
    for number in chosen:
        yield from of_table(f"t{number}", ALTERATIONS[number])


def _created(name: str, each: Alteration) -> Iterator[str]:
    yield f"CREATE TABLE {name} (id serial PRIMARY KEY, v {each.before})"


def _inserted(name: str, each: Alteration) -> Iterator[str]:
    yield f"INSERT INTO {name} (v) VALUES {', '.join(f'({value})' for value in (*each.values, 'NULL'))}"


def _altered(name: str, each: Alteration) -> Iterator[str]:
    using = f" USING {each.using}" if each.using else ""
    yield f"SET TimeZone = '{each.zone}'"
    yield f"ALTER TABLE {name} ALTER v TYPE {each.after}{using}"
    yield f"INSERT INTO {name} (v) VALUES {', '.join(f'({value})' for value in each.later)}"


@pytest.mark.parametrize("count", [12, pytest.param(len(ALTERATIONS), marks=pytest.mark.long)], ids=["some", "all"])
def test_what_becomes_of_a_column(spark: Any, shop: Shop, tmp_path: Path, count: int) -> None:
    """Its type holds the values of before and after; its rows are those of the server."""
    chosen = random.sample(range(len(ALTERATIONS)), count)
    for of_table in (_created, _inserted, _altered):
        shop.execute(*_statements(chosen, of_table))
        shop.capture(snapshot=True)
        replicate(spark, shop.directory, tmp_path / "wh")
    names = [f"t{number}" for number in chosen]
    kinds = {name: read_current(spark, tmp_path / "wh", name).schema["v"].dataType.simpleString() for name in names}
    assert kinds == {f"t{number}": ALTERATIONS[number].spark for number in chosen}
    check_equal(spark, shop, tmp_path / "wh", names)
    assert not open_log(spark, shop.directory).lacks


def test_the_page_has_each() -> None:
    """The table of the page is what is tested."""
    rows = re.findall(r"^\| `([^`]+)` to `([^`]+)` \| ([^|]+) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    assert {(before, after): kind.strip() for before, after, kind in rows} == {
        (each.before, each.after): each.spark for each in ALTERATIONS
    }
