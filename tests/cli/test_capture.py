"""``pgoutput capture`` as a process: what it captures, prints and measures, and how it ends."""

import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import psycopg
import pytest

from pgoutput_construct.cli._options import LISTEN
from pgoutput_construct.postgres import slot_health
from pgoutput_construct.publisher.slots import Slots, default_slots_address
from tests.cli.conftest import Run
from tests.postgres.shop import PUBLICATION, Shop, committed_ids, is_active, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.server

PROGRAM = [sys.executable, "-m", "pgoutput_construct.cli", "capture"]


def _arguments(shop: Shop, *more: object) -> list[str]:
    source = ["--slot", shop.slot, "--publication", PUBLICATION, "--new-log"]
    return [shop.dsn, str(shop.directory), *source, *map(str, more)]


@contextmanager
def _capturing(shop: Shop, *more: object, **options: Any) -> "Iterator[subprocess.Popen[str]]":
    """Run the command as a process, wait until it reads the slot, and kill it when the block ends."""
    command = [*PROGRAM, *_arguments(shop, "--segment-seconds", 0.1, *more)]
    process = subprocess.Popen(command, **{"stderr": subprocess.PIPE, "text": True, **options})
    try:
        wait_until(lambda: is_active(shop) or process.poll() is not None)
        yield process
    finally:
        process.kill()
        process.wait()


def _lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_capture_up_to_an_lsn_and_resume(run: Run, shop: Shop) -> None:
    """Everything committed before an LSN is in the log; the next capture resumes after it."""
    for number in (1, 2):
        end = shop.execute(f"INSERT INTO item VALUES ({number}, 'a')")
        result = run("capture", *_arguments(shop, "--until-lsn", end))
        assert result.exit_code == 0, result.output
        assert "ended by until_lsn" in result.stderr and "1 transaction in 1 segment" in result.stderr
    assert committed_ids(shop.log()) == [1, 2]


@pytest.mark.parametrize(
    "number",
    [pytest.param(signal.SIGINT, id="SIGINT", marks=pytest.mark.long), pytest.param(signal.SIGTERM, id="SIGTERM")],
)
def test_a_signal_finishes_the_segment(shop: Shop, number: signal.Signals) -> None:
    """What was received is durable and confirmed, and the LSN is logged; each line is JSON if requested."""
    with _capturing(shop, "--log-format", "json") as process:
        shop.execute("INSERT INTO item VALUES (1, 'a')")
        wait_until(lambda: any(shop.directory.glob("segment-*")) and committed_ids(shop.log()) == [1])
        end = shop.execute("INSERT INTO item VALUES (2, 'b')")
        process.send_signal(number)
        said = _lines(process.communicate(timeout=300)[1])
    assert process.returncode == 0
    assert said[-1]["ended_by"] == number.name and said[-1]["level"] == "info"
    assert said[-1]["confirmed_lsn"] == str(shop.confirmed())
    # Whether the second row had come when the signal did, the server and the machine decide.
    assert committed_ids(shop.log()) == ([1, 2] if shop.confirmed() >= end else [1])


def test_a_second_signal_ends_at_once(shop: Shop) -> None:
    """While a server that does not answer is said goodbye to, another Ctrl-C ends the command, with status 130."""
    with _capturing(shop) as process:
        [slot] = slot_health(shop.dsn, shop.slot)
        assert slot.active_pid is not None
        os.kill(slot.active_pid, signal.SIGSTOP)
        try:
            for _ in range(2):
                process.send_signal(signal.SIGINT)
                time.sleep(1)  # signals that have not been handled yet are one
            assert process.wait(300) == 130
        finally:
            os.kill(slot.active_pid, signal.SIGCONT)


def test_metrics(shop: Shop) -> None:
    """Prometheus gets counts, positions, lag and the slot's health."""
    with _capturing(shop, "--metrics", "127.0.0.1:0") as process:
        assert process.stderr is not None
        address = next(
            found[0] for line in process.stderr if (found := re.search(r"http://127\.0\.0\.1:\d+/metrics", line))
        )
        shop.execute("INSERT INTO item VALUES (1, 'a')")
        wait_until(lambda: _metrics(address).get("pgoutput_capture_segments_total") == 1.0)
        wait_until(lambda: "pgoutput_capture_slot_retained_bytes" in _metrics(address))
        measured = _metrics(address)
    assert measured["pgoutput_capture_up"] == 1.0 and measured["pgoutput_capture_transactions_total"] == 1.0
    assert measured["pgoutput_capture_server_lsn"] > 0 and measured["pgoutput_capture_complete_lsn"] > 0
    assert measured["pgoutput_capture_lag_bytes"] >= 0 and measured["pgoutput_capture_lag_seconds"] >= 0
    assert measured["pgoutput_capture_slot_wal_status reserved"] == 1.0


def test_metrics_are_for_this_machine_unless_a_host_is_named() -> None:
    """Nobody else sees them unasked: they name the slot, and need no password."""
    given = {"9187": "127.0.0.1", ":9187": "127.0.0.1", "0.0.0.0:9187": "0.0.0.0", "[::1]:9187": "::1"}
    assert {text: LISTEN.convert(text, None, None) for text in given} == {k: (v, 9187) for k, v in given.items()}


def _metrics(address: str) -> dict[str, float]:
    with urlopen(address, timeout=10) as answer:
        text = answer.read().decode()
    found = re.findall(r'^(pgoutput_\w+)\{slot="\w+"(?:,status="(\w+)")?\} (\S+)$', text, re.MULTILINE)
    return {f"{name} {status}".strip(): float(value) for name, status, value in found}


def test_a_terminal_shows_progress(shop: Shop) -> None:
    """On a terminal one line says rates, position and lag; it goes when the capture ends."""
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    with _capturing(shop, stderr=slave, text=False, env=environment) as process:
        shop.execute("INSERT INTO item VALUES (1, 'a')")
        shown = bytearray()
        wait_until(lambda: b"lag" in _read(master, shown) and b"/s" in shown)
        process.send_signal(signal.SIGINT)
        while process.poll() is None:
            _read(master, shown)
    assert b"ended by SIGINT" in _read(master, shown) and process.returncode == 0
    os.close(slave)
    os.close(master)


def _read(descriptor: int, shown: bytearray) -> bytearray:
    if select.select([descriptor], [], [], 0.05)[0]:
        shown += os.read(descriptor, 100_000)
    return shown


def test_the_environment_names_the_server(run: Run, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty connection string takes everything from libpq's environment."""
    parts = psycopg.conninfo.conninfo_to_dict(shop.dsn)
    names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "dbname": "PGDATABASE"}
    end = shop.execute("INSERT INTO item VALUES (1, 'a')")
    for key, name in names.items():
        if key in parts:
            monkeypatch.setenv(name, str(parts[key]))
    result = run("capture", "", *_arguments(shop, "--until-lsn", end)[1:])
    assert result.exit_code == 0, result.output
    assert committed_ids(shop.log()) == [1]


def test_slot_and_publication_are_created(run: Run, shop: Shop) -> None:
    """Publication and slot are created in this order, once; a time without changes ends each capture."""
    arguments = [shop.dsn, shop.directory, "--slot", f"{shop.slot}_new", "--publication", "new", "--create-slot"]
    arguments += ["--failover-slot", "--create-publication", "item", "--heartbeat", 0.1]
    try:
        for number, ending in ((1, "--until-idle"), (2, "--duration")):
            result = run("capture", *arguments, ending, 1)
            assert result.exit_code == 0, result.output
            assert f"ended by {ending[2:].replace('-', '_')}" in result.stderr
            shop.execute(f"INSERT INTO item VALUES ({number}, 'a')")
        assert run("capture", *arguments, "--until-lsn", shop.execute()).exit_code == 0
        [slot] = slot_health(shop.dsn, f"{shop.slot}_new")
        assert slot.failover
    finally:
        shop.execute(f"SELECT pg_drop_replication_slot('{shop.slot}_new')")
    assert committed_ids(shop.log()) == [1, 2]


def test_changes_wait_as_long_as_said(shop: Shop) -> None:
    """A segment that may wait for an hour is written when the capture ends."""
    shop.capture(until=shop.execute("INSERT INTO item VALUES (1, 'a')"))
    with _capturing(shop, "--segment-seconds", 3600) as process:
        shop.execute("INSERT INTO item VALUES (2, 'a')")
        time.sleep(3)  # more than the default
        assert committed_ids(shop.log()) == [1]
        process.terminate()
        assert process.wait(300) == 0
    assert committed_ids(shop.log()) == [1, 2]


def test_the_creation_of_a_slot_has_a_limit(run: Run, shop: Shop) -> None:
    """An open transaction does not block the command without a limit; no slot is left behind."""
    arguments = _arguments(shop, "--create-slot", "--slot-timeout", 0.5)
    arguments[3] = f"{shop.slot}_late"
    with shop.connect() as connection, connection.transaction():
        connection.execute("INSERT INTO item VALUES (1, 'a')")
        result = run("capture", *arguments)
    assert result.exit_code == 1 and "was not created in 0.5 seconds" in result.stderr
    assert not slot_health(shop.dsn, f"{shop.slot}_late")


def test_an_empty_log_with_an_existing_slot_needs_new_log(run: Run, shop: Shop) -> None:
    """An error names the option with which it begins."""
    run("capture", *_arguments(shop, "--until-lsn", shop.execute("INSERT INTO item VALUES (1, 'a')")))
    shop.directory = shop.directory.with_name("other")
    arguments = _arguments(shop, "--until-lsn", shop.execute("INSERT INTO item VALUES (2, 'a')"))
    result = run("capture", *(argument for argument in arguments if argument != "--new-log"))
    assert result.exit_code == 1 and "--new-log" in result.stderr
    assert run("capture", *arguments).exit_code == 0
    assert committed_ids(shop.log()) == [2]


@pytest.mark.parametrize("form", ["text", "json"])
def test_an_error_is_one_line(run: Run, shop: Shop, form: str) -> None:
    """What is wrong is the last line, with the remedy in the command's words, and no password anywhere."""
    arguments = _arguments(shop, "--log-format", form)
    arguments[0] = psycopg.conninfo.make_conninfo(shop.dsn, password="hunter2")
    arguments[5] = "nobody's"
    result = run("capture", *arguments)
    assert result.exit_code == 1 and "hunter2" not in result.output
    last = result.stderr.splitlines()[-1]
    text = last if form == "text" else json.loads(last)["message"]
    assert 'publication "nobody\'s" does not exist' in text
    assert form == "text" or json.loads(last)["level"] == "error"


def test_a_port_that_is_taken(run: Run, shop: Shop) -> None:
    """What the system refuses is a line of the log, too."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("capture", *_arguments(shop, "--metrics", f"127.0.0.1:{port}", "--log-format", "json"))
    assert result.exit_code == 1 and "in use" in json.loads(result.stderr.splitlines()[-1])["message"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--until-lsn", "x"], "'x' is not an LSN"),
        (["--duration", "0"], "not in the range x>0"),
        (["--metrics", "99999"], "is not a port"),
        (["--streaming", "often"], "'often' is not one of"),
        (["--create-publication", "a,,b"], "separate them by commas"),
    ],
)
def test_a_wrong_command_line(run: Run, tmp_path: Path, more: list[str], said: str) -> None:
    """What cannot be meant is a usage error, before anything is connected."""
    result = run("capture", "", tmp_path / "log", "--slot", "s", "--publication", "p", *more)
    assert result.exit_code == 2 and said in result.output
    assert not (tmp_path / "log").exists()


def _modes(directory: Path) -> dict[str, int]:
    return {str(path.relative_to(directory)): path.stat().st_mode & 0o777 for path in directory.rglob("*")}


def test_file_modes_of_a_log(run: Run, shop: Shop) -> None:
    """Whatever writes into it: a capture, copies, compactions, a prune, readers, a publisher; unless told otherwise."""
    publisher, around = Slots(default_slots_address(shop.directory)), shop.directory.parent
    before = os.umask(0)
    try:
        for number in range(4):
            end = shop.execute(f"INSERT INTO item VALUES ({number}, 'a')")
            shop.capture(until=end)
        upkeep = (
            ("snapshot", shop.dsn, shop.directory, "--table", "item"),
            ("log", "compact", shop.directory, "--least", 2, "--grace", 0),
            ("log", "prune", shop.directory, "--before", end, "--yes"),
            ("log", "readers", shop.directory, "--add", "somebody"),
        )
        for command in upkeep:
            assert run(*command).exit_code == 0
        publisher.open()
        publisher.create("somebody")
        publisher.close()
        known = _modes(around)
        folders = {name for name in known if (around / name).is_dir()}
        assert {"log/.capture.lock", "log/.maintenance.lock", "log.slots.json"} < known.keys() and len(known) > 8
        assert known == {name: 0o700 if name in folders else 0o600 for name in known}

        os.umask(0o077)
        again = run("capture", *_arguments(shop, "--file-mode", "0640", "--until-lsn", shop.execute()))
        assert again.exit_code == 0, again.output
        shop.capture(until=shop.execute("INSERT INTO item VALUES (100, 'b')"))
        for command in upkeep:
            assert run(*command).exit_code == 0
        known = _modes(shop.directory)
        folders = {name for name in known if (shop.directory / name).is_dir()}
        assert known == {name: 0o750 if name in folders else 0o640 for name in known}
        assert shop.directory.stat().st_mode & 0o777 == 0o750
    finally:
        os.umask(before)
    for mode, said in (("0755", "not a mode for the files of a log"), ("rw", "is not a file mode such as 0640")):
        refused = run("capture", *_arguments(shop, "--file-mode", mode))
        assert refused.exit_code in (1, 2) and said in refused.output
