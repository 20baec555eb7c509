"""What README and the pages of the documentation say is so."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
import psycopg
import pyarrow.parquet as pq
import pytest
import yaml

from pgoutput_construct import testing
from pgoutput_construct.cli.command_table import COMMANDS
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres.capture import capture
from pgoutput_construct.publisher.faults import FAULTS
from pgoutput_construct.wire import Lsn, Timestamp
from tests.live.recording import Recording
from tests.publisher.subscriber import Subscriber, database

ROOT = Path(__file__).parents[1]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text("utf-8")
    for path in (*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md")))
}
TEXT = "\n".join(PAGES.values())
"""All pages."""
PRODUCTION = PAGES["docs/how-to/production.md"]
CONTAINERS = PAGES["docs/how-to/containers.md"]
MONITORING = PAGES["docs/how-to/monitoring.md"]
PERMISSIONS = PAGES["docs/how-to/permissions.md"]


def _blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGES[page], re.DOTALL)


PROGRAM, PIPELINE, LIVE, TESTING = _blocks("README.md")
_, LIVE_IN_ASYNCIO = _blocks("docs/how-to/live-client.md")
_, CLIENT, PUBLISHER = _blocks("docs/tutorials/testing-a-consumer.md")
[CONFORMING] = _blocks("docs/how-to/conformance.md")
[BATCH] = _blocks("docs/how-to/arrow.md")
[TABLES] = _blocks("docs/how-to/changes-in-spark.md")
[FOLLOWED] = _blocks("docs/tutorials/following-tables.md")
BLAMED, PLAYED = _blocks("docs/how-to/incidents.md")
[OWN] = _blocks("docs/how-to/own-protocol.md")
"""The program of tests/generate/test_own_protocol.py."""
_SUBMITTED = _blocks("docs/how-to/clusters.md")
"""The program of test_cluster."""


def test_blocks_are_known() -> None:
    """Each block of code is run by a test; a new one needs one."""
    known = {PROGRAM, PIPELINE, LIVE, LIVE_IN_ASYNCIO, TESTING, CLIENT, PUBLISHER, BATCH, TABLES, FOLLOWED, *_SUBMITTED}
    known |= {BLAMED, PLAYED}
    known |= {CONFORMING, OWN}
    assert {block for page in PAGES for block in _blocks(page)} == known


def test_library_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """The first example runs as it stands, and prints what its comment says."""
    code = PROGRAM
    assert len(code.splitlines()) <= 11
    exec(compile(code, "<page>", "exec"), {})
    printed = capsys.readouterr().out.strip()
    assert printed == "Insert.new.columns[2] 15"
    assert f"# {printed}" in code


@pytest.mark.server
@pytest.mark.parametrize(
    ("code", "number"),
    [
        pytest.param(LIVE, signal.SIGINT, id="iterator-2"),
        pytest.param(LIVE_IN_ASYNCIO, signal.SIGTERM, id="asyncio-15"),
        pytest.param(LIVE, signal.SIGTERM, id="iterator-15", marks=pytest.mark.long),
        pytest.param(LIVE_IN_ASYNCIO, signal.SIGINT, id="asyncio-2", marks=pytest.mark.long),
    ],
)
def test_live_examples_run(server18: EmbeddedServer, code: str, number: signal.Signals) -> None:
    """They print a change when it has committed, over a connection that is lost, and end at Ctrl-C and SIGTERM."""
    with database(server18, "readme_live") as connection:
        connection.execute("CREATE TABLE orders (id int PRIMARY KEY); CREATE PUBLICATION shop FOR TABLE orders")
        command = [sys.executable, "-c", f"dsn = {connection.info.dsn!r}\nexec({code!r})\nprint('end')"]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(command, env=_environment(), text=True, **pipes)
        try:
            assert process.stdout is not None
            active = "SELECT 1 / count(*) FROM pg_replication_slots WHERE active AND confirmed_flush_lsn IS NOT NULL"
            _until(lambda: connection.execute(active.encode()))
            for row in (1, 2):
                connection.execute("INSERT INTO orders VALUES (%s)", [row])
                assert process.stdout.readline().endswith(f" public.orders insert {{'id': {row}}}\n")
                connection.execute("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots")
            process.send_signal(number)
            printed, errors = process.communicate(timeout=300)
            assert (printed, process.returncode) == ("end\n", 0) and "Traceback" not in errors, errors
        finally:
            process.kill()
            process.wait()
            _until(lambda: connection.execute("SELECT pg_drop_replication_slot('mine')"))


@pytest.mark.slow
def test_testing_example_runs() -> None:
    """The test of a consumer runs, against our own session."""
    exec(compile(TESTING, "<page>", "exec"), {})


@pytest.mark.server
def test_publisher_example_runs(server18: EmbeddedServer) -> None:
    """The test of a client runs, and PostgreSQL's own subscription is the client."""
    with database(server18, "readme_client") as connection:
        connection.execute("CREATE TABLE orders (id int PRIMARY KEY, note text)")
        subscriber = Subscriber(server18, connection, "", "mine")

        def my_client(dsn: str) -> dict[str, Any]:
            subscriber.publisher = dsn
            subscriber.subscribe()
            _until(lambda: subscriber.rows("orders") == [(1, "second")] or 1 / 0)
            rows = [(str(key).encode(), note.encode()) for key, note in subscriber.rows("orders")]
            return {"orders": {(key,): {"id": key, "note": note} for key, note in rows}}

        # What is applied is confirmed when it has been flushed, a little later.
        for _ in range(int(os.environ.get("PGOUTPUT_README_ROUNDS", "3"))):
            _test_of(my_client)()
            subscriber.unsubscribe(keeps_slot=True)
            connection.execute("TRUNCATE orders")


def _test_of(client: Callable[[str], Any]) -> Callable[[], None]:
    """Return the test of the tutorial, with a client in the module that it imports."""
    module = types.ModuleType("my_client")
    vars(module)["my_client"] = client
    known: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(sys.modules, "my_client", module)
        exec(compile(PUBLISHER, "<page>", "exec"), known)
    test: Callable[[], None] = known["test_my_client"]
    return test


@pytest.mark.slow
def test_client_example_runs() -> None:
    """The client of the tutorial passes its test; one that takes the value before an update for the one after fails."""
    known, broken = dict[str, Any](), dict[str, Any]()
    exec(compile(CLIENT, "<page>", "exec"), known)
    exec(compile(CLIENT.replace("= kept", "= before"), "<page>", "exec"), broken)
    _test_of(known["my_client"])()
    with pytest.raises(AssertionError):
        _test_of(broken["my_client"])()
    rows = re.findall(r"^\| `([\w ]+)` \|", PAGES["docs/tutorials/testing-a-consumer.md"], re.MULTILINE)
    assert rows == [*FAULTS]


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [pytest.param(name, marks=() if name == "cut" else pytest.mark.long) for name in FAULTS if name != "stall"],
)
def test_client_example_survives(fault: str) -> None:
    """The client of the tutorial passes each fault of its table."""
    known = dict[str, Any]()
    exec(compile(CLIENT, "<page>", "exec"), known)
    with testing.publisher() as publisher:
        orders = publisher.table("orders", {"id": "int4", "note": "text"}, key=["id"])
        publisher.commit([orders.insert({"id": 1, "note": "first"}), orders.insert({"id": 2, "note": "gone"})])
        publisher.fault(fault)
        publisher.commit([orders.update({"id": 1, "note": "second"}), orders.delete({"id": 2})])
        tables = known["my_client"](publisher.dsn, 2)
        assert tables == {"orders": {(b"1",): {"id": b"1", "note": b"second"}}}


@pytest.mark.slow
def test_conformance_example_runs(tmp_path: Path) -> None:
    """The client of the page passes what it says, and fails what it says, in these words."""
    page, program = PAGES["docs/how-to/conformance.md"], tmp_path / "my_client.py"
    program.write_text(CONFORMING, "utf-8")
    words = shlex.split(re.findall(r"^    pgoutput (conformance .*)$", page, re.MULTILINE)[0])
    cases = ["--case", "rows/old-key-only", "--case", "rows/unchanged", "--case", "truncate/one-table"]
    client = [str(program) if word == "my_client.py" else word for word in words[words.index("--") + 1 :]]
    command = [sys.executable, "-m", "pgoutput_construct.cli", "conformance", *cases, "--", sys.executable, *client[1:]]
    done = subprocess.run(command, env=_environment(), capture_output=True, text=True, check=False)
    shown = re.findall(r"```text\n(.*?)```", page, re.DOTALL)[0]
    assert done.returncode == 1, done.stderr
    assert shown in done.stdout
    assert re.findall(r"^(\w+) .* (\S+)$", done.stdout, re.MULTILINE)[:1] == [("passes", "rows/unchanged")]
    assert "3 cases: 1 passes, 2 fails" in done.stdout


@pytest.mark.server
def test_page_of_incidents_runs(
    server18: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A change of a row is found and taken back; what a fixture has is played to the client of the tutorial."""
    monkeypatch.chdir(tmp_path)
    with database(server18, "readme_incident") as connection:
        connection.execute("CREATE TABLE orders (id int PRIMARY KEY, total numeric)")
        connection.execute("CREATE PUBLICATION shop FOR TABLE orders")
        connection.execute("SELECT pg_create_logical_replication_slot('incident', 'pgoutput')")
        connection.execute("INSERT INTO orders VALUES (42, 5.25)")
        connection.execute("UPDATE orders SET total = 0")
        options: Any = {"until_idle": 1.0, "handle_signals": False, "new_log": True}
        capture(connection.info.dsn, "incident", ["shop"], "changelog", **options)
        connection.execute("SELECT pg_drop_replication_slot('incident')")
        known: dict[str, Any] = {}
        exec(compile(BLAMED, "<page>", "exec"), known)
        printed = capsys.readouterr().out
        assert "update ('total',) {'id': b'42', 'total': b'0'}" in printed and "UPDATE public.orders" in printed
        connection.execute(known["script"].text())
        assert connection.execute("SELECT total FROM orders").fetchall() == [(Decimal("5.25"),)]
    command = [line.strip() for line in PAGES["docs/how-to/incidents.md"].splitlines() if "--key 42 --output" in line]
    assert _pgoutput(command[0], tmp_path).wait(300) == 0
    exec(compile(CLIENT, "<page>", "exec"), known)
    exec(compile(PLAYED, "<page>", "exec"), known)


@pytest.mark.server
def test_page_of_the_publisher_runs(server18: EmbeddedServer, tmp_path: Path) -> None:
    """A log is served by the command as it stands, and three lines of SQL bring its rows into another database."""
    page = PAGES["docs/how-to/serve-and-replay.md"]
    served, replayed = (line.strip() for line in page.splitlines() if line.startswith("    pgoutput "))
    create, subscribe, select = re.findall(r"^(?:CREATE|SELECT).*;", page, re.MULTILINE)
    with database(server18, "readme_source") as source, database(server18, "readme_copy") as target:
        source.execute(f"{create} INSERT INTO orders VALUES (1, 5.25); CREATE PUBLICATION shop FOR TABLE orders")
        source.execute("SELECT pg_create_logical_replication_slot('served', 'pgoutput')")
        source.execute("INSERT INTO orders VALUES (2, 6.50); UPDATE orders SET total = 7 WHERE id = 2")
        capture(
            source.info.dsn,
            "served",
            ["shop"],
            tmp_path / "changelog",
            until_idle=1.0,
            handle_signals=False,
            new_log=True,
        )
        source.execute("SELECT pg_drop_replication_slot('served')")
        process = _pgoutput(served, tmp_path)
        try:
            target.execute(create)
            _until(lambda: target.execute(subscribe))
            _until(lambda: target.execute(select).fetchall() == [(2, Decimal("7.00"))] or 1 / 0)
            target.execute("DROP SUBSCRIPTION copy")
            target.execute("DROP TABLE orders")
            process.send_signal(signal.SIGINT)
            assert process.wait(300) == 0
            line = replayed.replace('"dbname=copy"', shlex.quote(target.info.dsn)).replace("2026-", "9999-")
            assert _pgoutput(line, tmp_path).wait(300) == 0
            assert target.execute(select).fetchall() == [(2, Decimal("7.00"))]
        finally:
            process.kill()
            process.wait()


def _until(done: Callable[[], object], seconds: float = 300) -> None:
    """Wait until something raises no error any more."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            done()
        except Exception:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.long
def test_pipeline_example_runs_twice(server18: EmbeddedServer, tmp_path: Path) -> None:
    """The example captures until Ctrl-C, and then writes and rebuilds the table; the second time it continues."""
    with server18.connect() as admin:
        admin.execute("CREATE DATABASE readme")
    with server18.connect(dbname="readme") as connection:
        connection.execute("CREATE TABLE orders (id int PRIMARY KEY, total numeric(8, 2))")
        connection.execute("CREATE PUBLICATION my_publication FOR TABLE orders")
        dsn = server18.dsn.replace("/postgres?", "/readme?")
        command = [sys.executable, "-c", f"dsn = {dsn!r}\nfor _ in range(2):\n    exec({PIPELINE!r})"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE)
        try:
            for number in (1, 2):
                _wait(connection, process, "active")
                connection.execute("INSERT INTO orders VALUES (%s, 5.25)", [number])
                (end,) = connection.execute("SELECT pg_current_wal_lsn()").fetchone() or ()
                _wait(connection, process, f"confirmed_flush_lsn >= '{end}'")
                process.send_signal(signal.SIGINT)
                _wait(connection, process, "NOT active")
            printed = process.communicate(timeout=120)[0].decode()
        finally:
            process.kill()
            process.wait()
            connection.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = 'warehouse'"
            )
    assert process.returncode == 0
    assert (tmp_path / "tables" / "public.orders").is_dir() and printed.count("5.25") == 3


def _wait(connection: "psycopg.Connection[Any]", process: "subprocess.Popen[bytes]", condition: str) -> None:
    """Wait until the slot is as it should be; the process that makes it so must be running."""
    deadline = time.monotonic() + 180
    query = f"SELECT {condition} FROM pg_replication_slots WHERE slot_name = 'warehouse'"
    while connection.execute(query.encode()).fetchone() != (True,):
        assert process.poll() is None and time.monotonic() < deadline, condition
        time.sleep(0.1)


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.long
def test_page_of_tables_runs(server18: EmbeddedServer, tmp_path: Path) -> None:
    """The commands from a database that was there to tables of Iceberg run as they stand; the example reads the log."""
    page = PAGES["docs/how-to/tables.md"]
    commands = [line.strip() for line in page.splitlines() if line.startswith("    pgoutput ")]
    captured, replicated, verified = commands[:3]
    with server18.connect() as admin:
        admin.execute("CREATE DATABASE followed")
    with server18.connect(dbname="followed") as connection:
        connection.execute(
            "CREATE TABLE orders (id int PRIMARY KEY, total numeric(8, 2)); INSERT INTO orders VALUES (1, 5.25)"
        )
        connection.execute("CREATE PUBLICATION shop FOR TABLE orders")
        dsn = server18.dsn.replace("/postgres?", "/followed?")
        running = [_pgoutput(line.replace('""', shlex.quote(dsn)), tmp_path) for line in (captured,)]
        try:
            _wait(connection, running[0], "active")
            running.append(_pgoutput(replicated, tmp_path))
            connection.execute("INSERT INTO orders VALUES (2, 6.50)")
            _wait_for_tables(tmp_path / "lake", running)
            done = _pgoutput(verified.replace('""', shlex.quote(dsn)), tmp_path)
            assert done.wait(300) == 0
            for process in running:
                process.send_signal(signal.SIGINT)
            assert [process.wait(120) for process in running] == [0, 0]
            example = TABLES.replace('"lake"', '"parquet"')
            followed = FOLLOWED.replace('"lake"', '"parquet"')
            code = f"import os\nos.chdir({str(tmp_path)!r})\n{example}\n{followed}"
            done = subprocess.run(
                [sys.executable, "-c", code], check=False, env=_environment(), capture_output=True, text=True
            )
            assert done.returncode == 0 and done.stdout.count("6.50") == 3, done.stderr[-2000:]
        finally:
            for process in running:
                process.kill()
                process.wait()
            connection.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = 'followed'"
            )


def _wait_for_tables(warehouse: Path, running: "list[subprocess.Popen[bytes]]") -> None:
    """Wait until a first batch is complete."""
    deadline, note = time.monotonic() + 300, warehouse / "_warehouse.json"
    while not note.exists() or json.loads(note.read_text())["applied"] < 0:
        assert all(process.poll() is None for process in running) and time.monotonic() < deadline
        time.sleep(0.5)


def _pgoutput(line: str, folder: Path) -> "subprocess.Popen[bytes]":
    """Start a command of a page in a folder."""
    command = [sys.executable, "-m", "pgoutput_construct.cli", *shlex.split(line)[1:]]
    return subprocess.Popen(command, cwd=folder, env=_environment())


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def test_options_of_the_data_source_are_in_the_table() -> None:
    """The tables of options and views say what the data source says."""
    from pgoutput_construct.spark._source.source_options import OPTIONS, VIEWS

    for option in OPTIONS:
        assert f"| `{option.name}` | {option.meaning}" in PAGES["docs/reference/data-source.md"]
    for name, meaning in VIEWS.items():
        assert f"| `{name}` | {meaning} |" in PAGES["docs/reference/data-source.md"]


def test_jars_are_in_the_table() -> None:
    """The coordinates of each format and store, by version of Spark, and no others."""
    from pgoutput_construct.spark.formats import FORMATS, STORES

    page = PAGES["docs/how-to/table-formats.md"]
    for name, jars in {**{name: each.jars for name, each in FORMATS.items()}, "s3://": STORES["s3"].jars}.items():
        if not jars:
            continue
        [row] = re.findall(rf"^\| `{re.escape(name)}` \| (.*:.*|.*none yet) \| (.*) \|$", page, re.MULTILINE)
        for version, cell in (("4.1", row[0]), ("4.2", row[1]), ("4.3", row[1])):
            named = {*re.findall(r"`([^`]*:[^`]*)`", cell)}
            known = {*jars.get(version, "").split(",")} - {""}
            assert named == {each for each in known if "awssdk" not in each}, (name, version)
            sdk = {each.rpartition(":")[2] for each in known if "awssdk" in each}
            assert {*re.findall(r"AWS SDK ([\d.]+)", cell)} == sdk


def test_batch_example_runs(recordings: dict[str, Recording], capsys: pytest.CaptureFixture[str]) -> None:
    """The example of Arrow decodes the payloads of a recording."""
    exec(compile(BATCH, "<page>", "exec"), {"payloads": list(recordings["18-v4-text"].payloads)})
    assert "item id: int" in capsys.readouterr().out


def test_compatibility_table_names_tests_that_exist() -> None:
    """Each cell of the table is a mode that is recorded from that server."""
    from tests.live.capture import MODES
    from tools.servers import SERVERS

    named = set(re.findall(r"\[(pg\d+-[\w-]+)\]", PAGES["docs/explanation/tested-servers.md"]))
    assert named == {f"pg{version}-{mode.name}" for version in SERVERS for mode in MODES}


SITE = PAGES | {
    str(path.relative_to(ROOT)): path.read_text("utf-8")
    for pattern in ("*.md", "*/README.md")
    for path in (ROOT / "spec").glob(pattern)
}
LINKS = [(page, target) for page, text in SITE.items() for target in re.findall(r"\]\((?!http)([^)]+)\)", text)]


@pytest.mark.parametrize(("page", "target"), LINKS)
def test_links_lead_somewhere(page: str, target: str) -> None:
    """Each relative link is a file of the project, or a heading of one."""
    path, _, heading = target.partition("#")
    file = (ROOT / page).parent / path if path else ROOT / page
    assert file.exists()
    headings = re.findall(r"^#+ (.+)$", file.read_text("utf-8"), re.MULTILINE) if heading else []
    assert not heading or heading in [re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings]


@pytest.mark.parametrize("page", SITE)
def test_blocks_are_indented_as_a_whole(page: str) -> None:
    """A block of commands begins after an empty line: otherwise it is a paragraph."""
    prose = re.sub(r"^```.*?^```", "", SITE[page], flags=re.DOTALL | re.MULTILINE)
    assert not re.findall(r"^(?![-*\d] |\d\d?\. | |:)\S.*\n {4}\S.*$", prose, re.MULTILINE)


def test_every_page_is_in_the_contents() -> None:
    """Each page of the documentation is listed on the first one."""
    listed = re.findall(r"^(?:\.\./)?[\w/-]+$", PAGES["docs/index.md"], re.MULTILINE)
    found = {name.removeprefix("../") if name.startswith("../") else f"docs/{name}" for name in listed}
    assert {f"{name}.md" for name in found} == {*SITE} - {"docs/index.md", "README.md"}


LAYOUT = PAGES["docs/explanation/layout.md"]


@pytest.mark.parametrize("folder", re.findall(r"^\| `([\w/]+/)` \|", LAYOUT, re.MULTILINE))
def test_folders_exist(folder: str) -> None:
    """Each folder of the table is there."""
    assert (ROOT / folder).is_dir()


def test_commands_exist() -> None:
    """The table of commands has each of them."""
    page = PAGES["docs/reference/commands.md"]
    assert set(re.findall(r"^\| `pgoutput (\w+)", page, re.MULTILINE)) == set(COMMANDS)


COMMANDS_SHOWN = re.findall(
    rf"^(?: {{4,}}|ExecStart=).*?pgoutput(?:-\w+)? ((?:{'|'.join(COMMANDS)}) .*)$",
    TEXT.replace("\\\n", " "),
    re.MULTILINE,
)


@pytest.mark.parametrize(
    "line", [line for line in COMMANDS_SHOWN if not {*"|`"} & {*line}], ids=lambda line: line.split()[0]
)
def test_commands_are_accepted(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command that is shown, also in the unit and the container, has options that there are."""
    from pgoutput_construct.cli.group import cli

    monkeypatch.chdir(tmp_path)
    (tmp_path / "changelog").mkdir()
    (tmp_path / "LOG").mkdir()
    name, *arguments = shlex.split(line.replace("/shared/", ""), comments=True)
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    command.make_context(name, arguments)


UNITS = dict(re.findall(r"```ini\n# /etc/systemd/system/(\S+)\n(.*?)```", CONTAINERS, re.DOTALL))
"""The systemd units, by the names of their files."""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_systemd_units(tmp_path: Path) -> None:
    """They have nothing that systemd does not know."""
    assert [*UNITS] == ["pgoutput-capture.service", "pgoutput-replicate.service"]
    for name, unit in UNITS.items():
        (tmp_path / name).write_text(unit.replace("/opt/pgoutput/bin/pgoutput", shutil.which("true") or ""))
    for name in UNITS:
        command = ["systemd-analyze", "verify", tmp_path / name]
        result = subprocess.run(command, check=False, capture_output=True, text=True)
        assert (result.returncode, result.stderr) == (0, "")


def _started(name: str, folder: Path, dsn: str) -> "subprocess.Popen[bytes]":
    """Start what a unit starts, in a folder."""
    [line] = re.findall(r"^ExecStart=\S+ (.*)$", UNITS[name].replace("\\\n", " "), re.MULTILINE)
    changes = {"service=shop": shlex.quote(dsn), "127.0.0.1:9187": "127.0.0.1:0", "/var/lib/pgoutput": str(folder)}
    for written, used in changes.items():
        line = line.replace(written, used)
    return _pgoutput(f"pgoutput {line}", folder)


@pytest.mark.server
@pytest.mark.spark
def test_units_run(server18: EmbeddedServer, tmp_path: Path) -> None:
    """A role with what the page gives it captures and copies, and tables follow; both end at SIGTERM."""
    made = re.findall(r"^    psql -d shop -c \"(.*)\"$", PERMISSIONS, re.MULTILINE)
    assert len(made) == 3
    with database(server18, "readme_units") as connection:
        connection.execute("CREATE TABLE orders (id int PRIMARY KEY); CREATE TABLE customers (id int PRIMARY KEY)")
        connection.execute("INSERT INTO orders VALUES (1)")
        for statement in made:
            connection.execute(statement)
        dsn = psycopg.conninfo.make_conninfo(connection.info.dsn, user="warehouse", password="PASSWORD")
        running: list[subprocess.Popen[bytes]] = []
        try:
            running = [_started(name, tmp_path, dsn) for name in UNITS]
            _wait_for_tables(tmp_path / "lake", running)
            connection.execute("INSERT INTO orders VALUES (2)")
            _until(lambda: _ids(tmp_path) == {1, 2} or 1 / 0, 120)
            for process in reversed(running):
                process.send_signal(signal.SIGTERM)
            assert [process.wait(120) for process in running] == [0, 0]
            running = [_started("pgoutput-capture.service", tmp_path, dsn)]
            _wait(connection, running[0], "active")
            running[0].send_signal(signal.SIGTERM)
            assert running[0].wait(120) == 0
        finally:
            for process in running:
                process.kill()
                process.wait()
            connection.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
            connection.execute("DROP OWNED BY warehouse; DROP ROLE warehouse")


def _ids(folder: Path) -> set[int]:
    """Return what the last version of a table of Parquet has."""
    note = json.loads((folder / "lake" / "_datasets" / "public.orders.json").read_text())
    return set(pq.read_table(folder / "lake" / note["details"]["path"])["id"].to_pylist())


def test_container_recipe() -> None:
    """The images have the extras of their commands, and start them as the same user."""
    from pgoutput_construct.extras import EXTRAS

    [recipe] = re.findall(r"```dockerfile\n(.*?)```", CONTAINERS, re.DOTALL)
    first, second = recipe.split("FROM capture AS replicate")
    needed = ({"cli", "postgres", "metrics"}, {"cli", "spark"})
    for stage, extras in zip((first, second), needed, strict=True):
        [found] = re.findall(r"/source\[(.*?)\]", stage)
        assert extras <= set(found.split(",")) <= set(EXTRAS)
        assert re.findall(r"^USER (\d+)$", stage, re.MULTILINE) == ["10001"]
    assert 'ENTRYPOINT ["pgoutput"]' in first
    stages = re.findall(r"^FROM \S+ AS (\w+)$", recipe, re.MULTILINE)
    assert (
        re.findall(r"podman build --target (\w+) --tag pgoutput-\1 ", CONTAINERS) == stages == ["capture", "replicate"]
    )
    assert re.findall(r"^        pgoutput-(\w+) \1 ", CONTAINERS, re.MULTILINE) == stages


def test_kubernetes_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The containers start the images as their user, with arguments that the commands accept."""
    from pgoutput_construct.cli.group import cli

    [manifest] = [yaml.safe_load(block) for block in _yaml_blocks(CONTAINERS)]
    monkeypatch.chdir(tmp_path)
    assert manifest["spec"]["replicas"] == 1
    pod = manifest["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsUser"] == 10001
    for container in pod["containers"]:
        name, *arguments = container["args"]
        command = cli.get_command(click.Context(cli), name)
        assert command is not None and container["image"] == f"pgoutput-{name}"
        parameters = command.make_context(name, arguments).params
        (port,) = container["ports"]
        assert parameters["metrics"].port == port["containerPort"]
        assert container["livenessProbe"]["httpGet"] == {"path": "/metrics", "port": port["name"]}


def _yaml_blocks(page: str) -> list[str]:
    return re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)


def _exported_metrics() -> set[str]:
    """Return the names of the metrics that a capture and a replication export."""
    from pgoutput_construct.cli._collectors import CaptureCollector, ReplicateCollector
    from pgoutput_construct.cli._progress import Meter
    from pgoutput_construct.postgres import CaptureProgress, SlotHealth
    from pgoutput_construct.spark import Batch

    facts: Any = {field.name: None for field in fields(SlotHealth)}
    health = SlotHealth(**{**facts, "wal_status": "reserved", "retained_bytes": 1, "safe_wal_size": 1})
    replicate = ReplicateCollector()
    batch = Batch(
        1, 1, Lsn(1), Timestamp(0), {}, (), (), (), {}, {"public.t": "why"}, 1.0, {"public.t": "ChangeLogError"}
    )
    batch = replace(batch, tables={"public.u": "changed"}, step_seconds={"stage": 1.0})
    replicate.report(batch)
    families = (*CaptureCollector("s", Meter(CaptureProgress(health=health))).collect(), *replicate.collect())
    return {sample.name for family in families for sample in family.samples}


def test_metrics_are_in_the_table() -> None:
    """The tables have each metric that is exported, and no other."""
    page = PAGES["docs/reference/metrics.md"]
    assert set(re.findall(r"^\| `(pgoutput_\w+)` \|", page, re.MULTILINE)) == _exported_metrics()


def test_alerts() -> None:
    """Each rule of the alerts has metrics that are exported, and is explained."""
    [rules] = [yaml.safe_load(block)["groups"][0]["rules"] for block in _yaml_blocks(MONITORING)]
    exported = _exported_metrics()
    for rule in rules:
        assert {*re.findall(r"pgoutput_\w+", rule["expr"])} <= exported
        assert re.search(rf"^\| .*`{rule['alert']}`.* \|", MONITORING, re.MULTILINE)


def test_inline_options_exist() -> None:
    """Each option that a sentence or a cell of a table names is one of some command."""
    from pgoutput_construct.cli.group import cli

    prose = re.sub(r"^```.*?^```", "", TEXT, flags=re.DOTALL | re.MULTILINE).split("\n\n")
    code = " ".join(span for paragraph in prose for span in re.findall(r"`([^`]*)`", paragraph))
    named = {*re.findall(r"--[a-z][\w-]*", code)}
    options = (each for command in _commands(cli) for each in command.params)
    known = {option for each in options for option in (*each.opts, *each.secondary_opts)}
    assert len(named) > 8 and named - known == {
        "--archives",
        "--busy",
        "--changed",
        "--diff",
        "--dlt-source",
        "--engine",
        "--help",
        "--kill-every",
        "--pg",
        "--quick",
        "--test",
        "--version",
    }


def _commands(group: click.Group) -> Iterator[click.Command]:
    for name in group.list_commands(context := click.Context(group)):
        command = group.get_command(context, name)
        assert command is not None
        yield command
        if isinstance(command, click.Group):
            yield from _commands(command)


def test_registered_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader registers as is shown, and is then known by its position."""
    from pgoutput_construct.changelog.registry import readers

    [code] = re.findall(r"    from pgoutput_construct\.changelog\.registry .*?may go\n", PRODUCTION, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "changelog").mkdir()
    exec(compile(textwrap.dedent(code), "<page>", "exec"), {})
    assert [(reader.name, reader.next_seq) for reader in readers("changelog")] == [("warehouse", 120_000)]


def test_faults_are_counted() -> None:
    """As many modes as are said are attacked."""
    from tools.faults.modes import MODES

    assert len(MODES) == 11 and "in eleven modes" in PAGES["docs/explanation/longer-tests.md"]


def test_kernels_are_compiled_once() -> None:
    """The unit and the container have a place for compiled code that their user may write to."""
    cache = "NUMBA_CACHE_DIR=/var/cache/pgoutput"
    assert "CacheDirectory=pgoutput\n" in CONTAINERS
    assert f"Environment={cache}\n" in CONTAINERS and f"ENV {cache}\n" in CONTAINERS
