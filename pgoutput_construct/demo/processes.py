"""A command as a process that is started again whenever it ends, as a supervisor would."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pgoutput_construct.errors import PgoutputError

__all__ = ["Supervised"]


@dataclass
class Supervised:
    """The processes of one command, one after the other; each leads a group of its own."""

    arguments: Sequence[str]
    """Those of the command."""
    errors: Path
    """The file that takes what the processes say."""
    module: str = "pgoutput_construct.cli"
    """The command, as Python's ``-m`` takes it."""
    ended: list[str] = field(default_factory=list)
    """How each of the processes ended that ended by themselves."""
    _process: "subprocess.Popen[bytes] | None" = None

    @property
    def pid(self) -> int | None:
        """The process, None where none was started."""
        return None if self._process is None else self._process.pid

    @property
    def runs(self) -> bool:
        """Whether a process runs."""
        return self._process is not None and self._process.poll() is None

    def ensure(self) -> None:
        """Start a process unless one runs."""
        if self.runs:
            return
        if self._process is not None:
            self.ended.append(f"status {self._process.returncode}; {self._said()}")
        self._process = self._start(self.arguments)

    def kill(self) -> bool:
        """Kill the process and its children with signal 9; False when none runs."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return False
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True

    def finish(self, more: Sequence[str], seconds: float) -> None:
        """Run the command with ``more`` arguments until it ends; raises PgoutputError where it fails, or goes on."""
        self.kill()
        process = self._start([*self.arguments, *more])
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise PgoutputError(
                f"{' '.join(self.arguments[:1])} goes on after {seconds:.0f} s; {self._said()}"
            ) from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        if status:
            raise PgoutputError(f"{self.arguments[0]} ended with status {status}; {self._said()}")

    def _start(self, arguments: Sequence[str]) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", self.module, *arguments]
        with self.errors.open("ab") as errors:
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
            return subprocess.Popen(command, env=environment, stdout=errors, stderr=errors, start_new_session=True)

    def _said(self) -> str:
        lines = [line for line in self.errors.read_text("utf-8", "replace").splitlines() if line.strip()]
        return f"its last words in {self.errors}: {lines[-1] if lines else '(none)'}"
