"""A client that is a command: started for each case, with what it needs to know in its arguments."""

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import IO, Any, Final

from pgoutput_construct.conformance.conformance_client import ClientTask, ConformanceClient, RunningClient
from pgoutput_construct.errors import PgoutputError

__all__ = ["CommandClient", "ProcessClient", "peak_memory"]

_WORD: Final = re.compile(r"\{(\w+)\}")
_STOP_SECONDS: Final = 2.0
_MOST_ERRORS: Final = 20_000
"""Bytes of standard error that are shown, the last ones."""


class CommandClient(ConformanceClient):
    """A command with placeholders such as ``{dsn}``: the names of ``ClientTask.words``."""

    def __init__(self, command: Sequence[str], name: str = "", directory: Path | None = None) -> None:
        """Take a command.

        Args:
            command: The program and its arguments.
            name: What it is, for people; by default the command.
            directory: Where it runs; by default here.
        """
        if not command:
            raise PgoutputError("the command of the client is missing: pgoutput conformance -- COMMAND ...")
        self.name = name or shlex.join(command)
        self._command = tuple(command)
        self._directory = directory
        self._writes_file = any("{output}" in argument for argument in command)

    def start(self, task: ClientTask) -> RunningClient:
        """Start the command; raise PgoutputError if it cannot be."""
        words = task.words
        command = [_WORD.sub(lambda match: words.get(match[1], match[0]), argument) for argument in self._command]
        try:
            return ProcessClient(command, task, self._writes_file, self._directory)
        except OSError as error:
            raise PgoutputError(f"{command[0]}: {error.strerror}") from error


class ProcessClient(RunningClient):
    """A client in a process of its own."""

    def __init__(self, command: Sequence[str], task: ClientTask, writes_file: bool, directory: Path | None) -> None:
        self._errors = (task.directory / "errors.txt").open("ab+")
        output = subprocess.DEVNULL if writes_file else subprocess.PIPE
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=self._errors,
            cwd=directory,
            start_new_session=True,
        )
        self._output: IO[bytes] | None = self._process.stdout
        if self._output is not None:
            os.set_blocking(self._output.fileno(), False)
        self._path = task.output if writes_file else None
        self._offset = task.output.stat().st_size if writes_file and task.output.exists() else 0
        self._rest = b""
        self._lock = Lock()
        self._peak: int | None = None

    def read(self) -> list[str]:
        """See RunningClient."""
        with self._lock:
            *lines, self._rest = (self._rest + self._written()).split(b"\n")
        return [line.decode("utf-8", "replace") for line in lines if line.strip()]

    def _written(self) -> bytes:
        if self._path is not None:
            if not self._path.exists():
                return b""
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
                self._offset += len(data)
                return data
        parts = []
        while self._output is not None and (part := self._output.read(1 << 20)):
            parts.append(part)
        return b"".join(parts)

    @property
    def status(self) -> int | None:
        """See RunningClient."""
        return self._process.poll()

    @property
    def errors(self) -> str:
        """See RunningClient."""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(size - _MOST_ERRORS, 0))
        return self._errors.read().decode("utf-8", "replace")

    @property
    def peak(self) -> int | None:
        """See RunningClient."""
        if (found := peak_memory(self._process.pid)) is not None:
            self._peak = max(self._peak or 0, found)
        return self._peak

    def stop(self) -> None:
        """See RunningClient."""
        self._signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_SECONDS)
        self._signal(signal.SIGKILL)
        self._process.wait()
        with self._lock:
            if self._output is not None:
                self._output.close()
                self._output = None
        self._errors.close()

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def peak_memory(pid: int) -> int | None:
    """Return the most resident bytes of a process and its children, as far as they run; None if that is unknown."""
    found = [each for number in _family(pid) if (each := _peak_of(number)) is not None]
    return sum(found) if found else None


def _family(pid: int) -> list[int]:
    try:
        children = (Path("/proc") / str(pid) / "task" / str(pid) / "children").read_text("ascii").split()
    except OSError:
        return [pid]
    return [pid, *(each for child in children for each in _family(int(child)))]


def _peak_of(pid: int) -> int | None:
    try:
        text = (Path("/proc") / str(pid) / "status").read_text("ascii", "replace")
    except OSError:
        return None
    line: Any = next((line for line in text.splitlines() if line.startswith("VmHWM:")), None)
    return None if line is None else int(line.split()[1]) * 1024
