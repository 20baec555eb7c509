"""Values that ``pgoutput tail`` prints: the same of a log in text format and of one in binary format."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from psycopg import sql

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import capture, create_slot
from tests.cli.conftest import Run
from tests.pgtypes.test_codecs_of_servers import NAMES, values_of
from tests.postgres.shop import PUBLICATION, Shop

_OWN = (
    "CREATE TYPE mood AS ENUM ('sad', 'very happy')",
    "CREATE TYPE pair AS (a int, b text)",
    "CREATE DOMAIN single AS float4",
    "CREATE DOMAIN amount AS numeric(8, 2)",
    "CREATE TABLE t_own (id serial PRIMARY KEY, v mood, a mood[], p pair, d single, n amount)",
    "INSERT INTO t_own (v, a, p, d, n) VALUES ('very happy', '{sad,NULL}', '(1,x y)', 0.1, 1.50)",
    "INSERT INTO t_own DEFAULT VALUES",
)


@pytest.fixture
def typed(server: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """Return a database with a table for each type; two slots decode the same rows."""
    with Shop.create(server, "tailed", tmp_path / "text") as shop:
        with shop.connect() as connection:
            create_slot(connection, "slot_tailed_binary", two_phase=True)
            connection.execute("SET extra_float_digits = 3")
            for name in _names(server):
                kind = sql.SQL("bit(9)") if name == "bit" else sql.SQL("pg_catalog.{}").format(sql.Identifier(name))
                names = {"table": sql.Identifier(f"t_{name}"), "kind": kind}
                names["value"] = sql.SQL("v::varbit::bit(9)" if name == "bit" else "v::{kind}").format(**names)
                connection.execute(
                    sql.SQL("CREATE TABLE {table} (id serial PRIMARY KEY, v {kind}, a {kind}[])").format(**names)
                )
                connection.execute(
                    sql.SQL(
                        "INSERT INTO {table} (v, a) SELECT {value}, ARRAY[[{value}, NULL]] FROM unnest(%s::text[]) v"
                    ).format(**names),
                    [list(values_of(name, connection.info.server_version))],
                )
        yield shop


def _names(server: EmbeddedServer) -> list[str]:
    """Return the types that a server has and prints as the others do: 19 writes pg_lsn with zeros."""
    return [name for name in NAMES if name != ("pg_lsn" if server.version >= 19 else "oid8")]


def _rows(run: Run, log: Path) -> list[tuple[str, dict[str, Any]]]:
    done = run("tail", log, "--json")
    assert done.exit_code == 0, done.output
    lines = map(json.loads, done.stdout.splitlines())
    return [(line["table"], line["new"]) for line in lines if line.get("op") == "insert"]


def test_text_and_binary_print_the_same(run: Run, typed: Shop, tmp_path: Path) -> None:
    """Each value of each type, alone and in an array: ``tail --json`` prints PostgreSQL's text of it."""
    end = typed.execute(*_OWN)
    typed.capture(until=end, binary=False)
    binary = tmp_path / "binary"
    options: dict[str, Any] = {**typed.options, "binary": True, "until_lsn": end}
    capture(typed.dsn, "slot_tailed_binary", [PUBLICATION], binary, **options)
    in_text, in_binary = _rows(run, tmp_path / "text"), _rows(run, binary)
    assert len({table for table, _ in in_text}) == len(_names(typed.server)) + 1
    assert in_binary == in_text
    shown = [run("tail", log).stdout for log in (tmp_path / "text", binary)]
    assert [line for line in shown[1].splitlines() if " insert " in line] == [
        line for line in shown[0].splitlines() if " insert " in line
    ]
    found = {json.dumps(row["v"]) for table, row in in_binary if table in ("public.t_float4", "public.t_numeric")}
    assert {"0.1", '"NaN"', '"Infinity"', '"-Infinity"', '"-1.50"', '"0.000"'} <= found
