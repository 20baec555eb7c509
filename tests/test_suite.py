"""``tools/test``: what a run has started is gone afterwards, whichever way it ends; which tests a change affects."""

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tools.affected_tests import UnknownBranchError, affected_tests, affects_documentation
from tools.suite import Run, left_over

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
RUN = """
    import sys
    from tools.suite import Run
    with Run() as run:
        sys.exit(run.test([sys.argv[1], "-p", "no:cacheprovider", "--numprocesses", "1"]))
"""
CHECKING = """
    import pathlib, sys
    from tools.suite import Run

    def check(name):
        program = f"import pathlib, time; pathlib.Path({sys.argv[1]!r}, {name!r}).touch(); time.sleep(600)"
        return [sys.executable, "-c", program]

    with Run() as run:
        print(run.directory, flush=True)
        fetches = [["timeit", "-n1", "-r1", check(name)[-1]] for name in ("fetch", "next fetch")]
        run.both([check("first"), check("second")], {"no fetch": fetches}, ["--version"])
"""
WAITING = """
    import pathlib, subprocess, sys, time
    from pgoutput_construct.demo.embedded_server import EmbeddedServer

    def test_waits():
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        with EmbeddedServer(18) as server:
            pathlib.Path({ready!r}).write_text(str(server.data_directory.parent))
            time.sleep(600)
"""
SECONDS = 120.0


@pytest.mark.server
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_nothing_is_left_after_a_signal(number: signal.Signals, tmp_path: Path) -> None:
    """Neither the server of a test, nor a process in a session of its own, nor files."""
    ready, test = tmp_path / "ready", tmp_path / "test_waiting.py"
    test.write_text(textwrap.dedent(WAITING.format(ready=str(ready))))
    run = subprocess.Popen([sys.executable, "-c", textwrap.dedent(RUN), test], cwd=ROOT, stdout=subprocess.PIPE)
    deadline = time.monotonic() + SECONDS
    while not (ready.exists() and ready.read_text()):
        assert run.poll() is None and time.monotonic() < deadline, "the test has not begun"
        time.sleep(0.1)
    directory = Path(ready.read_text())
    assert len(left_over(directory, 0.0)) > 3
    run.send_signal(number)
    run.communicate(timeout=SECONDS)
    assert (left_over(directory, 0.0), directory.exists()) == ([], False)


def test_checks_and_fetches_end_with_the_run(tmp_path: Path) -> None:
    """Those that run are ended, and the next do not begin."""
    program = [sys.executable, "-c", textwrap.dedent(CHECKING), tmp_path]
    run = subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    directory = Path(run.stdout.readline().strip())
    deadline = time.monotonic() + SECONDS
    while {path.name for path in tmp_path.iterdir()} != {"first", "fetch"}:
        assert run.poll() is None and time.monotonic() < deadline, "checks and fetches have not begun"
        time.sleep(0.1)
    run.send_signal(signal.SIGTERM)
    run.communicate(timeout=SECONDS)
    assert (left_over(directory, 0.0), directory.exists()) == ([], False)
    assert {path.name for path in tmp_path.iterdir()} == {"first", "fetch"}


def test_what_tests_leave_is_ended_and_named(capfd: pytest.CaptureFixture[str]) -> None:
    """Processes are found by their environment, wherever they have gone."""
    with Run() as run:
        process = subprocess.Popen(["sleep", "600"], env=run.environment, start_new_session=True, cwd="/")
    assert f"sleep ({process.pid})" in capfd.readouterr().err
    assert process.wait(SECONDS) is not None and not left_over(run.directory, 0.0)


_RUNS = list[Path]()


@pytest.mark.filterwarnings("ignore:was run once more")
def test_what_spark_gives_up_is_repeated(tmp_path: Path) -> None:
    """Once, with its own fixtures: that Spark starts a process in ten seconds is not what it shows."""
    _RUNS.append(tmp_path)
    if len(_RUNS) == 1:
        raise RuntimeError("SparkException: Python worker failed to connect back.")
    assert _RUNS[-1] != _RUNS[-2]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with a branch."""
    for command in (
        "git init -q -b main",
        "git config user.name n",
        "git config user.email n@example.org",
        "git commit -q --allow-empty -m one",
        "git checkout -q -b work",
    ):
        subprocess.run(command.split(), cwd=tmp_path, check=True)
    return tmp_path


@pytest.mark.parametrize(
    ("path", "some", "others"),
    [
        ("pgoutput_construct/spark/_verify/verification.py", "tests/spark/test_verify.py", "tests/wire/test_trace.py"),
        ("pgoutput_construct/cli/__main__.py", "tests/cli", "tests/spark/test_verify.py"),
        ("tests/publisher/conftest.py", "tests/publisher", "tests/postgres"),
        ("docs/index.md", "tests/test_documentation.py", "tests/stream/test_identifiers.py"),
        ("pgoutput_construct/wire/trace.py", "tests/wire/test_trace.py", "tests/wireshark"),
        ("tools/generate/wireshark/dissector.py", "tests/wireshark", "tests/benchmark"),
        ("tests/live/workload.sql", "tests/live", "tests/postgres"),
        ("spec/pgoutput.yaml", "tests", "tests/test_documentation.py"),
    ],
)
def test_a_change_affects_what_imports_it(clone: Path, path: str, some: str, others: str) -> None:
    """Committed or not; of a folder with a changed conftest all tests."""
    (clone / path).parent.mkdir(parents=True, exist_ok=True)
    (clone / path).write_text("")
    found = affected_tests(clone)
    assert some in found and others not in found
    assert affects_documentation(clone) == path.startswith(("docs/", "pgoutput_construct/", "spec/"))
    subprocess.run(["git", "add", "."], cwd=clone, check=True)
    subprocess.run(["git", "commit", "-qm", "two"], cwd=clone, check=True)
    assert affected_tests(clone) == found


def test_nothing_changed(clone: Path) -> None:
    """No tests then."""
    assert affected_tests(clone) == [] and not affects_documentation(clone)


def test_no_branch_to_compare_with(clone: Path) -> None:
    """A clone of one branch alone has no other: the error says how to get it."""
    with pytest.raises(UnknownBranchError, match=r"there is no branch absent .*: git fetch origin absent:absent"):
        affected_tests(clone, "absent")
