"""``pgoutput serve scenario:SEED``: whoever tests a client in another language gets a stream, and what it means."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from pgoutput_construct.cli.group import cli
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.wire.types import Lsn
from tests.publisher.subscriber import Subscriber, database

pytestmark = pytest.mark.server


def test_a_subscription_has_what_it_means(server18: EmbeddedServer, tmp_path: Path) -> None:
    """The statements create the tables; in the end each has the rows that the file says."""
    told = tmp_path / "meaning.json"
    arguments = ["serve", "scenario:7:5", "--meaning", str(told), "--port", "0"]
    command = [sys.executable, "-m", "pgoutput_construct.cli", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as serving, database(server18, "told") as target:
        try:
            assert serving.stdout is not None
            port = re.search(r":(\d+)$", serving.stdout.readline().strip())
            assert port is not None
            meaning = json.loads(told.read_text("utf-8"))
            target.execute("; ".join(meaning["statements"]))
            subscriber = Subscriber(server18, target, f"host=127.0.0.1 port={port[1]} dbname=postgres", "told")
            subscriber.subscribe("streaming = parallel")
            try:
                subscriber.wait(Lsn(meaning["end"]))
            finally:
                subscriber.unsubscribe()
        finally:
            serving.terminate()
        target.execute("SET timezone = 'UTC'")
        for table in meaning["tables"]:
            columns = ", ".join(f'"{name}"' for name in table["columns"])
            found = _texts(target.execute(f'SELECT {columns} FROM "{table["schema"]}"."{table["name"]}"'))
            assert sorted(found, key=repr) == sorted(table["rows"], key=repr), table["name"]


def _texts(cursor: psycopg.Cursor[Any]) -> list[list[str | None]]:
    """Return rows as the server sent them, in text format."""
    result = cursor.pgresult
    assert result is not None
    rows = ([result.get_value(row, column) for column in range(result.nfields)] for row in range(result.ntuples))
    return [[None if value is None else value.decode() for value in row] for row in rows]


def test_what_is_no_scenario() -> None:
    """Is refused with an example; a file cannot be asked what it means."""
    done = CliRunner().invoke(cli, ["serve", "scenario:x"])
    assert done.exit_code == 1
    assert "such as scenario:1:20" in done.output
    assert "--meaning needs a scenario" in CliRunner().invoke(cli, ["serve", "log", "--meaning", "m.json"]).output
