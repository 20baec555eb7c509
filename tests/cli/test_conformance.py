"""pgoutput conformance: what it prints, and with which status it ends."""

import json
import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pgoutput_construct.cli.group import cli
from pgoutput_construct.conformance import all_cases

SCRIPT = """
import json, sys
import psycopg2, psycopg2.extras

dsn, slot, publication, wrong = sys.argv[1:]
connection = psycopg2.connect(dsn, connection_factory=psycopg2.extras.LogicalReplicationConnection)
cursor = connection.cursor()
cursor.start_replication(slot, options={"proto_version": "1", "publication_names": publication})
tables = {}

def read(message):
    data = message.payload
    if data[:1] == b"R":
        tables[data[1:5]] = ".".join(data[5:].decode("latin-1").split(chr(0))[:2])
    if data[:1] == b"I":
        new = {"id": "2" if wrong == "values" else "1"}
        if tables[data[1:5]].endswith("orders"):
            new["note"] = "one"
        line = {"transaction": message.data_start, "table": tables[data[1:5]]}
        print(json.dumps({**line, "operation": "insert", "new": new}))
        sys.stdout.flush()
    if wrong == "crashes":
        raise SystemExit(3)

cursor.consume_stream(read)
"""


def _run(*arguments: str) -> Result:
    patience = () if "--timeout" in arguments else ("--timeout", "120")  # a busy machine starts a client slowly
    return CliRunner().invoke(cli, ["conformance", *patience, *arguments])


@pytest.fixture
def client(tmp_path: Path) -> list[str]:
    """The command of a client that knows inserts of one row."""
    program = tmp_path / "client.py"
    program.write_text(SCRIPT)
    return [sys.executable, str(program), "{dsn}", "{slot}", "{publication}"]


def test_cases_are_listed() -> None:
    """All, or those that are asked for."""
    assert len(_run("--list").stdout.splitlines()) == len(all_cases())
    [line] = _run("--list", "--case", "v1/insert", "--json").stdout.splitlines()
    assert json.loads(line)["demand"] == "Report an inserted row when its transaction commits."


def test_a_client_that_passes(client: list[str], tmp_path: Path) -> None:
    """Status 0, and a page."""
    done = _run(
        "--case", "v1/insert", "--html", str(tmp_path / "report.html"), "--name", "mine", "--", *client, "nothing"
    )
    assert done.exit_code == 0, done.output
    assert "1 case: 1 passes" in done.stdout
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "<title>Conformance of mine</title>" in page
    assert "http" not in page.replace("http-equiv", "")


def test_a_client_that_fails(client: list[str], tmp_path: Path) -> None:
    """Status 1, and what was expected, reported, and sent, on the page, too."""
    page = tmp_path / "report.html"
    done = _run("--case", "v1/insert", "--html", str(page), "--", *client, "values")
    assert done.exit_code == 1
    for text in (
        "fails           must    v1/insert",
        "but new.id is '2' instead of '1'",
        "columns[0] (id)",
        "1 case that a client must pass failed",
    ):
        assert text in done.stdout
    report = page.read_text("utf-8")
    assert "columns[0] (id)" in report and "1 fail a must" in report
    assert "{&quot;operation&quot;: &quot;insert&quot;, &quot;table&quot;:" in report
    line = json.loads(_run("--case", "v1/insert", "--json", "--", *client, "values").stdout)
    assert (line["verdict"], line["problem"]) == ("fails", "new.id is '2' instead of '1'")
    assert line["expected"]["new"] == {"id": "1", "note": "one"}


@pytest.mark.slow
def test_a_client_that_ends(client: list[str]) -> None:
    """What it is, by its status and its standard error."""
    done = _run("--case", "v1/insert", "--json", "--", *client, "crashes")
    assert json.loads(done.stdout)["problem"] == "it ended before it had reported everything (exit status 3)"
    killed = "kill -9 $$"
    done = _run("--case", "v1/insert", "--json", "--", "sh", "-c", killed)
    assert json.loads(done.stdout)["verdict"] == "crashes"
    done = _run("--case", "v1/insert", "--timeout", "0.3", "--json", "--", "sleep", "60")
    assert json.loads(done.stdout)["problem"] == "it did not connect within 0.3 seconds"


@pytest.mark.slow
def test_levels(client: list[str]) -> None:
    """What a client should do counts where that is asked for."""
    arguments = ("--case", "handshake/odd-publication", "--timeout", "2")
    assert _run(*arguments, "--", *client, "values").exit_code == 0
    assert _run(*arguments, "--level", "should", "--", *client, "values").exit_code == 1


def test_usage() -> None:
    """A command is needed; cases must exist; a program must, too."""
    assert "give the client's command" in _run().stderr
    assert "no case matches 'v2'" in _run("--case", "v2", "--", "true").stderr
    assert "no-such-program: No such file" in _run("--case", "v1/insert", "--", "no-such-program").stderr


def test_words_are_replaced(tmp_path: Path) -> None:
    """Each word of the help; others stay as they are."""
    names = "dsn url host port user password database slot publication options output end_lsn timeout directory case"
    names += " proto_version streaming binary messages two_phase origin"
    program = "import sys; print(*sys.argv[1:], sep=chr(10), file=sys.stderr)"
    words = [f"{{{name}}}" for name in names.split()]
    done = _run("--case", "streams/aborted", "--json", "--", sys.executable, "-c", program, *words, "{other}")
    said = json.loads(done.stdout)["errors"].splitlines()
    assert said[-1] == "{other}"
    assert not [line for line in said[:-1] if "{" in line]
    assert said[-7:-1] == ["2", "on", "false", "false", "false", "any"]
    assert shlex.split(said[0])[0] == "host=127.0.0.1"
