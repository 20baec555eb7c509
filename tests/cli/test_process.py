"""The command as a process: pipes, signals, missing extras, and what it imports."""

import json
import os
import pty
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from pgoutput_construct.cli import group
from pgoutput_construct.extras import EXTRAS
from tests.live.recording import STORE

COMMAND = [sys.executable, "-m", "pgoutput_construct.cli"]
RECORDING = STORE / "18-v4-immediate.txt"
STOP = b"45\n"


def _start(*arguments: object, **options: Any) -> "subprocess.Popen[bytes]":
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*COMMAND, *map(str, arguments)], **{**pipes, **options})


def _isolated(code: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, **environment}
    return subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, env=environment)


@pytest.mark.slow
def test_a_pipe_of_both(tmp_path: Path) -> None:
    """decode | build as a shell runs them gives the file back."""
    decode = _start("decode", RECORDING)
    build = _start("build", stdin=decode.stdout)
    assert build.communicate()[0] == RECORDING.read_bytes()
    assert (decode.wait(), build.returncode) == (0, 0)


def test_a_closed_pipe_ends_the_command() -> None:
    """When the reader goes away, decode ends quietly."""
    process = _start("decode", RECORDING)
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline().startswith(b'{"message"')
    process.stdout.close()
    assert (process.stderr.read(), process.wait()) == (b"", group.BROKEN_PIPE)


@pytest.mark.parametrize("before", [signal.SIG_DFL, signal.SIG_IGN])
def test_ctrl_c(before: signal.Handlers) -> None:
    """Ctrl-C ends it quietly with status 130; what was decoded has been printed; also in a shell's background job."""
    process = _start(
        "decode", "--proto-version", 2, "--streaming", "on", preexec_fn=lambda: signal.signal(signal.SIGINT, before)
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(b"530000031d01\n")
    process.stdin.flush()
    assert b"StreamStart" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=300) == (b"", b"")
    assert process.returncode == group.INTERRUPTED


@pytest.mark.parametrize("form", ["hex", "recvlogical"])
def test_a_live_pipe(form: str) -> None:
    """Each message is printed as soon as it has arrived, while the writer continues."""
    payload = bytes.fromhex("530000031d01")
    sent = payload.hex().encode() if form == "hex" else payload
    process = _start("decode", "--format", form, "--proto-version", 2, "--streaming", "on")
    assert process.stdin is not None and process.stdout is not None
    for piece in (sent, b"\n"):
        process.stdin.write(piece)
        process.stdin.flush()
    assert json.loads(process.stdout.readline())["xid"] == 0x31D
    output, errors = process.communicate(timeout=300)
    assert (output, errors, process.returncode) == (b"", b"", 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pieces", "options"),
    [
        ([b"5", b"30000031d01\n"], ()),
        ([b"\n", b"\n\n5", b"30000031d01\n"], ()),
        ([b"S", b"\0\0\x03\x1d\x01\n"], ()),
        ([b"\nS", b"\0\0\x03\x1d\x01\n"], ("--format", "recvlogical")),
    ],
)
def test_format_detection_needs_enough_bytes(pieces: list[bytes], options: tuple[str, ...]) -> None:
    """A pipe whose first bytes say nothing is read on until they do."""
    process = _start("decode", "--proto-version", 2, "--streaming", "on", *options)
    assert process.stdin is not None
    for piece in pieces:
        process.stdin.write(piece)
        process.stdin.flush()
        time.sleep(0.3)
    output, errors = process.communicate(timeout=300)
    assert (json.loads(output)["xid"], process.returncode) == (0x31D, 0), errors


SHELL, QUOTED = shlex.join(map(str, COMMAND)), shlex.quote(str(RECORDING))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("decode - <&-", "standard input is closed"),
        ("decode <&-", "standard input is closed"),
        ("build <&-", "standard input is closed"),
        ("inspect <&-", "standard input is closed"),
        (f"decode {QUOTED} >&-", "standard output is closed"),
        (f"decode {QUOTED} | {SHELL} build >&-", "standard output is closed"),
    ],
)
def test_closed_streams(command: str, said: str) -> None:
    """A standard stream that the shell has closed is one line and status 1."""
    result = subprocess.run(f"{SHELL} {command}", shell=True, check=False, capture_output=True, text=True)
    assert result.returncode == 1 and result.stderr.startswith("Error: ") and said in result.stderr
    assert result.stderr.count("\n") == 1


def test_closed_standard_error() -> None:
    """Nobody need listen to progress."""
    command = f"{SHELL} decode {QUOTED} 2>&-"
    assert subprocess.run(command, shell=True, check=False, stdout=subprocess.DEVNULL).returncode == 0


def test_output_over_the_input_is_refused(tmp_path: Path) -> None:
    """Standard input that the shell took from the output is found too."""
    file = tmp_path / "d.jsonl"
    file.write_bytes(b'{"message": "StreamStop"}\n')
    with file.open("rb") as source:
        process = _start("build", "-o", file, stdin=source)
    assert b"its own input" in process.communicate()[1] and process.returncode == 1
    assert file.stat().st_size


@pytest.mark.slow
def test_progress_on_a_terminal() -> None:
    """Long work shows how far it is, on a terminal that sees nothing else."""
    master, slave = pty.openpty()
    process = _start("decode", "--proto-version", 2, "--streaming", "on", stdout=subprocess.DEVNULL, stderr=slave)
    os.close(slave)
    assert process.stdin is not None
    process.stdin.write(b"530000031d01\n")
    while process.poll() is None and not _readable(master):
        process.stdin.write(b"4d0000031d0100000000000000007000 00000000\n")
        process.stdin.flush()
        time.sleep(0.01)
    shown = os.read(master, 1000)
    process.stdin.close()
    assert process.wait(timeout=300) == 0
    os.close(master)
    assert b"messages" in shown


def _readable(descriptor: int) -> bool:
    import select

    return bool(select.select([descriptor], [], [], 0)[0])


def _hiding(modules: Iterable[str], *arguments: object, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run a command as if these modules were not installed."""
    command = ["pgoutput", *map(str, arguments)]
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({[*modules]!r})); sys.argv = {command}\n"
        "from pgoutput_construct.cli.__main__ import main; main()"
    )
    return _isolated(code, **environment)


@pytest.mark.parametrize(
    ("arguments", "hidden", "said"),
    [
        (["decode"], ["click"], "click; run: pip install 'pgoutput_construct[cli]'"),
        (["inspect", "45"], ["rich"], "rich; run: pip install 'pgoutput_construct[cli]'"),
        (["decode", "."], ["pyarrow"], "pyarrow; run: pip install 'pgoutput_construct[cli,changelog]'"),
        (
            ["inspect", "--seq", "1", "."],
            ["pyarrow"],
            "pyarrow; run: pip install 'pgoutput_construct[cli,changelog]'",
        ),
        (
            ["capture", "", "log", "--slot", "s", "--publication", "p", "--metrics", "0"],
            ["prometheus_client"],
            "prometheus_client; run: pip install 'pgoutput_construct[cli,postgres,metrics]'",
        ),
        (["log", "."], ["numba"], "numba; run: pip install 'pgoutput_construct[cli,changelog]'"),
        (
            ["tables", ".", "-o", "out"],
            ["pyspark", "psycopg"],
            "psycopg, pyspark; run: pip install 'pgoutput_construct[cli,spark]'",
        ),
        (
            ["tables", ".", "-o", "out"],
            ["pyspark", "click"],
            "click, pyspark; run: pip install 'pgoutput_construct[cli,spark]'",
        ),
        (
            ["demo"],
            EXTRAS["demo"],
            f"{', '.join(sorted(EXTRAS['demo']))}; run: pip install 'pgoutput_construct[demo]'",
        ),
    ],
)
def test_without_an_extra(arguments: list[str], hidden: list[str], said: str) -> None:
    """All that a command lacks is named at once, with the command that installs it."""
    result = _hiding(hidden, *arguments)
    assert (result.returncode, result.stdout, result.stderr) == (1, "", f"Error: not installed: {said}\n")


def test_without_modules_and_without_java(tmp_path: Path) -> None:
    """A missing Java is named together with missing modules."""
    result = _hiding(["pyspark"], "tables", ".", "-o", tmp_path / "out", JAVA_HOME=str(tmp_path))
    assert result.returncode == 1 and result.stderr.count("\n") == 1
    assert "not installed: pyspark; " in result.stderr and "; and Spark needs Java 17 or newer" in result.stderr


@pytest.mark.slow
def test_help_without_an_extra() -> None:
    """The help of a command needs no more than the command line itself."""
    for command in ("capture", "log", "slots", "tail", "tables", "demo"):
        assert "Examples:" in _hiding([*EXTRAS["spark"], *EXTRAS["metrics"]], command, "--help").stdout


def test_without_libpq() -> None:
    """psycopg without libpq, as a build without its wheels has it, is one line too."""
    error = ImportError("no pq wrapper available.\n- couldn't import psycopg 'python' implementation: libpq not found")
    assert group.reason(error) == (
        "psycopg is installed without libpq; run: pip install 'pgoutput_construct[cli,postgres]'"
    )


def test_imports_nothing_heavy() -> None:
    """decode and build of files need click and construct, nothing else."""
    code = (
        "import sys; from pgoutput_construct.cli.group import cli\n"
        f"cli(['decode', {str(RECORDING)!r}], standalone_mode=False); cli(['build', '--help'], standalone_mode=False)\n"
        "heavy = {'pyspark', 'pandas', 'pyarrow', 'numpy', 'psycopg', 'rich'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    assert _isolated(code).returncode == 0
