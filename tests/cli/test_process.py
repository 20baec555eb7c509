"""The command as a process: pipes, signals, missing extras, and what it imports."""

import json
import os
import pty
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pgoutput_construct.cli import group
from tests.live.recording import STORE

COMMAND = [sys.executable, "-m", "pgoutput_construct.cli"]
RECORDING = STORE / "18-v4-immediate.txt"
STOP = b"45\n"


def _start(*arguments: object, **options: Any) -> "subprocess.Popen[bytes]":
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*COMMAND, *map(str, arguments)], **{**pipes, **options})


def _isolated(code: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)


def test_a_pipe_of_both(tmp_path: Path) -> None:
    """decode | build as a shell runs them gives the file back."""
    decode = _start("decode", RECORDING)
    build = _start("build", stdin=decode.stdout)
    assert build.communicate()[0] == RECORDING.read_bytes()
    assert (decode.wait(), build.returncode) == (0, 0)


def test_nobody_reads() -> None:
    """When the reader goes away, decode ends quietly."""
    process = _start("decode", RECORDING)
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline().startswith(b'{"message"')
    process.stdout.close()
    assert (process.stderr.read(), process.wait()) == (b"", group.BROKEN_PIPE)


def test_ctrl_c() -> None:
    """Ctrl-C ends it quietly with status 130; what was decoded has been printed."""
    process = _start("decode", "--proto-version", 2, "--streaming", "on")
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(b"530000031d01\n")
    process.stdin.flush()
    assert b"StreamStart" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=20) == (b"", b"")
    assert process.returncode == group.INTERRUPTED


@pytest.mark.parametrize("form", ["hex", "recvlogical"])
def test_a_live_pipe(form: str) -> None:
    """Each message is printed as soon as it has come, while the writer goes on."""
    payload = bytes.fromhex("530000031d01")
    sent = payload.hex().encode() if form == "hex" else payload
    process = _start("decode", "--format", form, "--proto-version", 2, "--streaming", "on")
    assert process.stdin is not None and process.stdout is not None
    for piece in (sent, b"\n"):
        process.stdin.write(piece)
        process.stdin.flush()
    assert json.loads(process.stdout.readline())["xid"] == 0x31D
    output, errors = process.communicate(timeout=20)
    assert (output, errors, process.returncode) == (b"", b"", 0)


@pytest.mark.parametrize(
    ("pieces", "options"),
    [
        ([b"5", b"30000031d01\n"], ()),
        ([b"\n", b"\n\n5", b"30000031d01\n"], ()),
        ([b"S", b"\0\0\x03\x1d\x01\n"], ()),
        ([b"\nS", b"\0\0\x03\x1d\x01\n"], ("--format", "recvlogical")),
    ],
)
def test_a_form_is_told_by_enough(pieces: list[bytes], options: tuple[str, ...]) -> None:
    """A pipe whose first bytes say nothing is read on until they do."""
    process = _start("decode", "--proto-version", 2, "--streaming", "on", *options)
    assert process.stdin is not None
    for piece in pieces:
        process.stdin.write(piece)
        process.stdin.flush()
        time.sleep(0.3)
    output, errors = process.communicate(timeout=20)
    assert (json.loads(output)["xid"], process.returncode) == (0x31D, 0), errors


SHELL, QUOTED = shlex.join(map(str, COMMAND)), shlex.quote(str(RECORDING))


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


def test_a_file_over_itself(tmp_path: Path) -> None:
    """Standard input that the shell took from the output is found too."""
    file = tmp_path / "d.jsonl"
    file.write_bytes(b'{"message": "StreamStop"}\n')
    with file.open("rb") as source:
        process = _start("build", "-o", file, stdin=source)
    assert b"its own input" in process.communicate()[1] and process.returncode == 1
    assert file.stat().st_size


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
    assert process.wait(timeout=20) == 0
    os.close(master)
    assert b"messages" in shown


def _readable(descriptor: int) -> bool:
    import select

    return bool(select.select([descriptor], [], [], 0)[0])


def test_without_click() -> None:
    """Without click, one line says how to install it."""
    code = "import sys; sys.modules['click'] = None; from pgoutput_construct.cli.__main__ import main; main()"
    result = _isolated(code)
    assert result.returncode == 1 and "pip install 'pgoutput-construct[cli]'" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("module", ["pyarrow", "psycopg"])
def test_without_an_extra(module: str, tmp_path: Path) -> None:
    """A command that needs an extra says which."""
    code = (
        f"import sys; sys.modules[{module!r}] = None; sys.argv = ['pgoutput', 'decode', {str(tmp_path)!r}]\n"
        "from pgoutput_construct.cli.__main__ import main; main()"
    )
    result = _isolated(code)
    assert result.returncode == 1 and "pip install 'pgoutput-construct[postgres]'" in result.stderr
    assert "Traceback" not in result.stderr


def test_imports_nothing_heavy() -> None:
    """decode and build of files need click and construct, nothing else."""
    code = (
        "import sys; from pgoutput_construct.cli.group import cli\n"
        f"cli(['decode', {str(RECORDING)!r}], standalone_mode=False); cli(['build', '--help'], standalone_mode=False)\n"
        "heavy = {'pyspark', 'pandas', 'pyarrow', 'numpy', 'psycopg', 'rich'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    assert _isolated(code).returncode == 0
