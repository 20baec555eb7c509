"""Output on a terminal: nothing that a server, a log or a client sent can move its cursor or act as markup."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from pgoutput_construct.cli._printing import printable
from tests.cli.conftest import Run
from tests.postgres.shop import Shop

EVIL = "\x1b]0;x\x07\x9b2J[bold]b[/bold]\r\n\u202e@@"
"""A terminal's title, its screen, rich's markup, a line that looks like ours, and text from right to left."""
SHOWN = "\\x1b]0;x\\x07\\x9b2J[bold]b[/bold]\\r\\n\\u202e@@"
_PUBLICATION = EVIL.replace("\r\n", "")
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


def _check(output: str) -> str:
    """Return what was printed, which has neither control characters nor lines that were smuggled in."""
    assert [c for c in output if not c.isprintable() and c != "\n"] == []
    assert "\n@" not in output
    return output


@pytest.fixture
def evil(shop: Shop) -> Iterator[Shop]:
    """Return a shop and its log, in which everything that a user of the database names is evil."""
    names = {"name": sql.Identifier(EVIL), "kind": sql.Identifier(f"{EVIL} kind")}
    names["publication"] = sql.Identifier(_PUBLICATION)
    texts = {"text": sql.Literal(EVIL), "gid": sql.Literal(f"{shop.dbname}{EVIL}")}
    with shop.connect() as connection:
        for statement in (
            "CREATE SCHEMA {name}",
            "CREATE TYPE {name}.{kind} AS ENUM ({text})",
            "CREATE TABLE {name}.{name} ({name} text PRIMARY KEY, kind {name}.{kind})",
            "CREATE PUBLICATION {publication} FOR ALL TABLES",
            "CREATE TABLE keyless (a int)",
            "INSERT INTO {name}.{name} VALUES ({text}, {text})",
            "SELECT pg_logical_emit_message(true, {text}, {text})",
            "BEGIN; UPDATE {name}.{name} SET kind = NULL; PREPARE TRANSACTION {gid}",
        ):
            connection.execute(sql.SQL(statement).format(**names, **texts))
        try:
            shop.capture(publications=[_PUBLICATION])
            yield shop
        finally:
            connection.execute(sql.SQL("ROLLBACK PREPARED {gid}").format(**names, **texts))


@pytest.mark.server
def test_the_report_of_a_log(run: Run, evil: Shop) -> None:
    """Names, prefixes, identifiers of transactions, values and readers are escaped; JSON says all of them exactly."""
    named = f'"{SHOWN}"."{SHOWN}"'
    for command in (
        ("log", evil.directory),
        ("log", evil.directory, "--all"),
        ("log", evil.directory, "--verify"),
        ("tail", evil.directory),
        ("tail", evil.directory, "--table", f'"{EVIL}"."{EVIL}"'),
    ):
        done = run(*command)
        assert done.exit_code == 0, done.output
        output = _check(done.output)
        assert SHOWN in output.replace("\n", "")
    shown = run("tail", evil.directory)
    assert f"insert {named} (" in shown.stdout and f"message '{SHOWN}' '{SHOWN}'" in shown.stdout
    assert f"no snapshot of {named}" in shown.stderr
    changes = [json.loads(line) for line in _check(run("tail", evil.directory, "--json").stdout).splitlines()]
    assert any(change.get("name") == EVIL for change in changes)
    _check(run("log", "prune", evil.directory, "--before", "7/0", "--dry-run").output)
    _check(run("decode", evil.directory).stdout)
    for seq in range(evil.log().segments[-1].last_seq + 1):
        _check(run("inspect", evil.directory, "--seq", seq).stdout)


@pytest.mark.server
def test_errors_and_lines_of_a_log(run: Run, evil: Shop, tmp_path: Path) -> None:
    """Errors that name what a server has, or does not have; and what is logged."""
    table = f'"{EVIL}"."{EVIL}"'
    for command in (
        ("tail", evil.directory, "--table", '"none"'),
        ("snapshot", evil.dsn, evil.directory, "--table", f'"{EVIL}x"'),
        ("capture", evil.dsn, tmp_path / "new", "--slot", evil.slot, "--publication", f"{EVIL}x"),
        ("slots", evil.dsn, "--slot", EVIL),
    ):
        refused = run(*command)
        assert refused.exit_code == 1 and _check(refused.output).startswith(("Error: ", "20"))
    copied = run("snapshot", evil.dsn, evil.directory, "--table", table)
    assert copied.exit_code == 0 and f'"{SHOWN}"."{SHOWN}" is in the log: 1 row' in _check(copied.output), copied.output


@pytest.mark.server
def test_a_replay(run: Run, evil: Shop) -> None:
    """The tables that a replay creates, and what its publisher says of its client."""
    with evil.server.connect() as connection:
        connection.execute("CREATE DATABASE evil_copy")
        try:
            into = psycopg.conninfo.make_conninfo(evil.dsn, dbname="evil_copy")
            with evil.server.connect(dbname="evil_copy") as copy:
                kind = sql.SQL("CREATE SCHEMA {0}; CREATE TYPE {0}.{1} AS ENUM ({2})")
                names = sql.Identifier(EVIL), sql.Identifier(f"{EVIL} kind"), sql.Literal(EVIL)
                copy.execute(kind.format(*names))
            done = run("replay", evil.directory, "--into", into)
            assert f'"{SHOWN}"."{SHOWN}": 1 row, created' in _check(done.output), done.output
        finally:
            connection.execute("DROP DATABASE evil_copy WITH (FORCE)")


@pytest.mark.server
def test_on_a_terminal(evil: Shop) -> None:
    """Where colours are used, they are ours alone."""
    pty = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"
    both = """
import sys
from pgoutput_construct.cli.group import cli
for command in "log", "tail":
    cli([command, sys.argv[1]], standalone_mode=False)
    print("the end of", command)
"""
    program = [sys.executable, "-c", pty, sys.executable, "-c", both, str(evil.directory)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120, check=False)
    of_log, end, of_tail = done.stdout.partition("the end of log")
    assert done.returncode == 0 and end and "[bold]b[/bold]" in of_log and "[bold]b[/bold]" in of_tail
    _check(_STYLE.sub("", done.stdout).replace("\r\n", "\n"))


def test_what_is_printable() -> None:
    """Letters of all languages are; what is none is an escape of Python."""
    assert printable("Straße 表 🐘 é 'x' \\n") == "Straße 表 🐘 é 'x' \\n"
    assert printable(EVIL) == SHOWN
    assert printable("a\udce9\u00a0\u200b") == "a\\udce9\\xa0\\u200b"
