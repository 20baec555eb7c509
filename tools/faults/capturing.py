"""The capture as a process that is started again whenever it ends, as a supervisor would."""

import json
import os
import random
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.faults.errors import FaultsError
from tools.faults.modes import Mode

__all__ = ["COMMANDS", "ROOT", "CaptureProcess", "CapturedLog", "child_environment"]

ROOT = Path(__file__).parents[2]
"""The clone's folder."""
_LIMITS: tuple[dict[str, Any], ...] = (
    {"rows": 40, "seconds": 0.05},
    {"rows": 2000, "seconds": 0.3},
    {"rows": 100_000, "seconds": 1.0},
)
"""When segments are cut: each process has one of these, so that kills meet small and large ones; the last one has the
last."""

COMMANDS = 0.25
"""How many of the captures are the command, which cuts a segment each two seconds, and waits half a minute for a silent
server; the others call the function."""


def child_environment() -> dict[str, str]:
    """Return the environment in which a process imports the same modules as this one."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}


@dataclass(frozen=True)
class CapturedLog:
    """What is captured, and where it goes."""

    dsn: str
    """The server as the capture sees it."""
    slot: str
    publication: str
    directory: Path
    """The change log's."""
    mode: Mode

    def function(self, chance: random.Random, until_lsn: str | None) -> list[str]:
        """Return arguments of Python that call capture(); a status each half second finds dead connections early."""
        names = {"dsn": self.dsn, "slot": self.slot, "publications": [self.publication]}
        others = {
            "directory": str(self.directory),
            "status_interval": 0.5,
            "new_log": True,
            "limits": _LIMITS[-1] if until_lsn else chance.choice(_LIMITS),
        }
        given = {**names, **others, "until_lsn": until_lsn, **self.mode.drawn(chance)}
        return ["-m", "tools.faults.child", json.dumps(given)]

    def command(self, chance: random.Random, until_lsn: str | None) -> list[str]:
        """Return arguments of Python that are the command ``pgoutput capture``."""
        options = {
            "slot": self.slot,
            "publication": self.publication,
            "until-lsn": until_lsn,
            "new-log": True,
            **self.mode.drawn(chance),
        }
        flags = [f"--{name.replace('_', '-')}" for name, value in options.items() if value is True]
        valued = {name: value for name, value in options.items() if value not in (None, True, False)}
        pairs = [text for name, value in valued.items() for text in (f"--{name.replace('_', '-')}", str(value))]
        return ["-m", "pgoutput_construct.cli", "capture", self.dsn, str(self.directory), *flags, *pairs]


@dataclass
class CaptureProcess:
    """The processes that capture one log, one after the other."""

    log: CapturedLog
    errors: Path
    """The file that takes what the processes say."""
    chance: random.Random
    commands: float = COMMANDS
    ended: list[str] = field(default_factory=list)
    """How each of the processes ended that ended by themselves: a supervisor would have started another one."""
    _process: "subprocess.Popen[bytes] | None" = None

    @property
    def pid(self) -> int | None:
        """The process that runs, None where none does."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def ensure(self) -> None:
        """Start a process unless one runs."""
        if self.pid is None:
            self._note_end()
            self._process = self._start(None)

    def kill(self) -> bool:
        """Kill the process with signal 9; False when none runs."""
        running = self.pid is not None
        if not running:
            self._note_end()
        process, self._process = self._process, None
        if process is None:
            return False
        process.kill()
        process.wait()
        return running

    def finish(self, until_lsn: str, seconds: float) -> None:
        """Capture up to ``until_lsn``; raises FaultsError where that takes longer than ``seconds``, or fails."""
        self.kill()
        process = self._start(until_lsn)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise FaultsError(f"the capture did not reach {until_lsn} in {seconds:.0f} s; {self._said()}") from None
        finally:
            process.kill()
            process.wait()
        if status:
            raise FaultsError(f"the capture ended with status {status}; {self._said()}")

    def _note_end(self) -> None:
        """Note how a process ended that nobody killed, with its words before others follow them."""
        if self._process is not None:
            self.ended.append(f"status {self._process.returncode}; {self._said()}")

    def _start(self, until_lsn: str | None) -> "subprocess.Popen[bytes]":
        way = self.log.command if self.chance.random() < self.commands else self.log.function
        command = [sys.executable, *way(self.chance, until_lsn)]
        with self.errors.open("ab") as errors:
            return subprocess.Popen(command, cwd=ROOT, env=child_environment(), stdout=errors, stderr=errors)

    def _said(self) -> str:
        lines = self.errors.read_text("utf-8", "replace").splitlines()
        return f"its last words in {self.errors}: {lines[-1] if lines else '(none)'}"
