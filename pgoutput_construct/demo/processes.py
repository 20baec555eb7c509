"""Python programs as child processes: starting, killing, running to completion, and supervising them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pgoutput_construct.errors import PgoutputError

__all__ = ["Supervised", "completed", "kill", "printed", "running", "start"]


def start(*arguments: str, log: Path | None = None, **options: Any) -> "subprocess.Popen[Any]":
    """Start Python with the same module path as this process, as the leader of a process group.

    Args:
        arguments: The arguments of Python, such as ``-m`` and a module.
        log: The file to which standard error is appended, and standard output unless ``options`` have ``stdout``.
        options: The options of Popen; ``env`` is added to the environment.
    """
    environment = {**os.environ, "PYTHONPATH": _path(), **options.pop("env", {})}
    given = {"env": environment, "start_new_session": True, **options}
    if log is None:
        return subprocess.Popen([sys.executable, *arguments], **given)
    with log.open("ab") as file:
        return subprocess.Popen([sys.executable, *arguments], **{"stdout": file, "stderr": file, **given})


def kill(process: "subprocess.Popen[Any]") -> bool:
    """Kill a process group with signal 9; return whether its leader was still running."""
    runs = process.poll() is None
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    return runs


@contextmanager
def running(*arguments: str, log: Path | None = None, **options: Any) -> "Iterator[subprocess.Popen[Any]]":
    """Start Python as ``start`` does; kill it when the block ends."""
    process = start(*arguments, log=log, **options)
    try:
        yield process
    finally:
        kill(process)


def completed(*arguments: str, **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run Python to completion; return its status and output. ``options`` are those of ``start``."""
    with running(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options) as process:
        output, errors = process.communicate()
    return subprocess.CompletedProcess(arguments, process.returncode, output, errors)


def printed(*arguments: str, **options: Any) -> str:
    """Run Python to completion, and return its output; raise PgoutputError with its last errors if it fails."""
    done = completed(*arguments, **options)
    if done.returncode:
        raise PgoutputError(f"{' '.join(arguments)}: status {done.returncode}: {done.stderr.strip()[-600:]}")
    return done.stdout


@dataclass
class Supervised:
    """A supervised command: ``ensure`` restarts it whenever its process has ended."""

    arguments: Sequence[str]
    """The arguments of the command."""
    errors: Path
    """The file to which the processes write."""
    module: str = "pgoutput_construct.cli"
    """The module of the command, for ``python -m``."""
    ended: list[str] = field(default_factory=list)
    """For each process that ended by itself, its status and last line."""
    _process: "subprocess.Popen[bytes] | None" = None

    @property
    def pid(self) -> int | None:
        """The process id; None if none was started."""
        return None if self._process is None else self._process.pid

    @property
    def runs(self) -> bool:
        """Whether a process runs."""
        return self._process is not None and self._process.poll() is None

    def ensure(self) -> None:
        """Start a process unless one is running."""
        if not self.runs:
            self._note_end()
            self._process = start(*self.command(()), log=self.errors)

    def kill(self) -> bool:
        """Kill the process and its children with signal 9; return False if none was running."""
        if not self.runs:
            self._note_end()
        process, self._process = self._process, None
        return process is not None and kill(process)

    def finish(self, more: Sequence[str], seconds: float) -> None:
        """Run the command with ``more`` arguments to completion; raise PgoutputError if it fails or times out."""
        self.kill()
        with running(*self.command(more), log=self.errors) as process:
            try:
                status = process.wait(seconds)
            except subprocess.TimeoutExpired:
                words = _last_words(self.errors)
                raise PgoutputError(f"{self.arguments[0]} is still running after {seconds:.0f} s; {words}") from None
        if status:
            raise PgoutputError(f"{self.arguments[0]} ended with status {status}; {_last_words(self.errors)}")

    def command(self, more: Sequence[str]) -> Sequence[str]:
        """Return the arguments of Python for one process."""
        return ["-m", self.module, *self.arguments, *more]

    def _note_end(self) -> None:
        """Record how a process ended by itself, with its last line, before the next one appends to the file."""
        if self._process is not None:
            self.ended.append(f"status {self._process.returncode}; {_last_words(self.errors)}")


def _path() -> str:
    return os.pathsep.join(path or str(Path.cwd()) for path in sys.path)


def _last_words(errors: Path) -> str:
    lines = [line for line in errors.read_text("utf-8", "replace").splitlines() if line.strip()]
    return f"last line of {errors}: {lines[-1] if lines else '(none)'}"
