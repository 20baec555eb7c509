"""pgoutput serve given what it cannot serve with: it says what is wrong, and what to do."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

from pgoutput_construct.cli.group import cli
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.publisher.slots import Slots
from tests.publisher.logs import WrittenLog, insert, relation
from tests.publisher.subscriber import Subscriber, database

NEVER = "cannot listen"
"""What ends each try here at the latest: the port is taken."""


@pytest.fixture
def taken() -> Iterator[int]:
    """A port at which somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def told(source: Path, port: int, *options: str) -> str:
    """Return what ``pgoutput serve`` ends with, at a port that is taken."""
    done = CliRunner().invoke(cli, ["serve", str(source), "--port", str(port), *options])
    assert done.exit_code == 1, done.output
    return done.output


def test_what_it_cannot_serve_with(tmp_path: Path, taken: int) -> None:
    """A source that is none, files that are not what they should be, an address that is not here."""
    source, file = tmp_path / "none.jsonl", tmp_path / "file"
    assert "No such file" in told(tmp_path / "missing.jsonl", taken)
    assert "the directory of a change log, which pgoutput capture creates" in told(tmp_path / "missing.jsonl", taken)
    source.touch()
    for content, wrong in ((b"\n", "it is empty"), (b"\xff\n", "it is not UTF-8")):
        file.write_bytes(content)
        assert wrong in told(source, taken, "--password-file", str(file))
    assert "not a certificate and its key in PEM format" in told(
        source, taken, "--ssl-cert", str(file), "--ssl-key", str(file)
    )
    assert "No such file" in told(source, taken, "--slots", str(tmp_path / "missing" / "slots.json"))
    assert f"{NEVER} on 127.0.0.1:{taken}: Address already in use; choose another" in told(source, taken)
    assert f"{NEVER} on 192.0.2.1" in told(source, taken, "--host", "192.0.2.1")  # for documentation, RFC 5737


def test_a_password_that_others_can_read(tmp_path: Path, taken: int) -> None:
    """It is taken, with a warning: some systems give secrets as such files."""
    source, file = tmp_path / "none.jsonl", tmp_path / "password"
    source.touch()
    file.write_text("secret\n")
    for mode, warns in ((0o600, False), (0o604, True)):
        file.chmod(mode)
        output = told(source, taken, "--password-file", str(file))
        assert ("other users of this machine can read" in output, "secret" in output) == (warns, False)


def test_slots_of_another_publisher(tmp_path: Path, taken: int) -> None:
    """Two that kept positions in one file would each undo what the other one wrote."""
    source = tmp_path / "none.jsonl"
    source.touch()
    slots = Slots(tmp_path / "none.jsonl.slots.json")
    slots.open()
    assert "(--slots)" in told(source, taken)
    slots.close()
    assert NEVER in told(source, taken)
    (tmp_path / "none.jsonl.slots.json").write_text("{")
    assert "invalid slots file" in told(source, taken)


@contextmanager
def waiting(log: Path) -> Iterator[tuple[int, "subprocess.Popen[str]"]]:
    """Serve a log that has no segment yet; yield the port and the process."""
    command = [sys.executable, "-m", "pgoutput_construct.cli", "serve", str(log), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            listening, waits = process.stdout.readline(), process.stdout.readline()
            assert waits == f"waiting: {log} has no segment yet; start pgoutput capture to write one\n"
            yield int(listening.rpartition(":")[2]), process
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize(
    "is_there", [pytest.param(True, id="empty", marks=pytest.mark.long), pytest.param(False, id="not there")]
)
def test_a_log_without_a_segment(tmp_path: Path, server18: EmbeddedServer, is_there: bool) -> None:
    """It is waited for; clients are refused meanwhile, as by a server that starts, and served when there is one."""
    log = WrittenLog(tmp_path) if is_there else None
    with waiting(tmp_path / "log") as (port, process):
        log = log or WrittenLog(tmp_path)
        dsn = f"host=127.0.0.1 port={port} user=me dbname=postgres"
        with pytest.raises(
            psycopg.OperationalError, match="the database system is starting up\nDETAIL:  The change log"
        ):
            psycopg.connect(dsn)
        log.commit(700, 1000, 1010, relation(1), insert(1, "first"))
        log.publish()
        assert process.stdout is not None
        assert "1 transaction of 1 table\n" in iter(process.stdout.readline, "")
        with database(server18, "waiting") as target:
            target.execute("CREATE TABLE t1 (id text)")
            subscriber = Subscriber(server18, target, dsn, "waiting")
            subscriber.subscribe(publications="pub")
            subscriber.wait(1010)
            subscriber.unsubscribe()
            assert subscriber.rows("t1") == [("first",)]
        process.send_signal(signal.SIGINT)
        assert process.wait(300) == 0


def test_lines_that_are_not_there(tmp_path: Path) -> None:
    """Nobody captures into a file of JSON: it is refused."""
    lines = tmp_path / "changes.jsonl"
    done = CliRunner().invoke(cli, ["serve", str(lines)])
    assert done.exit_code == 1 and "changes.jsonl: No such file or directory" in done.stderr


@pytest.mark.slow
def test_waiting_is_interrupted(tmp_path: Path) -> None:
    """By a signal, at once and without an error."""
    with waiting(tmp_path) as (_, process):
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=300)
        assert (process.returncode, output) == (0, "")
