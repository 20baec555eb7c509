"""A capture in a process of its own, restarted whenever it ends, as a supervisor does."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgoutput_construct.demo.processes import Supervised
from tools.faults.modes import Mode

__all__ = ["COMMANDS", "CaptureProcess", "CapturedLog"]

_LIMITS: tuple[dict[str, Any], ...] = (
    {"rows": 40, "seconds": 0.05},
    {"rows": 2000, "seconds": 0.3},
    {"rows": 100_000, "seconds": 1.0},
)
"""Limits of segments: each process has one of these, so that kills affect small and large segments; the process that
finishes has the last."""

COMMANDS = 0.25
"""The share of captures that run the command, which cuts a segment every two seconds and waits half a minute for a
silent server; the others call the function."""


@dataclass(frozen=True)
class CapturedLog:
    """What is captured, and the directory of the log."""

    dsn: str
    """The connection string of the capture."""
    slot: str
    publication: str
    directory: Path
    """The change log's."""
    mode: Mode

    def function(self, chance: random.Random, until_lsn: str | None) -> list[str]:
        """Return Python's arguments to call capture(); a status every half second detects dead connections early."""
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
        """Return Python's arguments to run ``pgoutput capture``."""
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


class CaptureProcess(Supervised):
    """Successive processes that capture one log; each runs the command, or calls the function."""

    def __init__(self, log: CapturedLog, errors: Path, chance: random.Random, commands: float = COMMANDS) -> None:
        """Prepare; no process is started yet.

        Args:
            log: What is captured, and the directory of the log.
            errors: The file for the output of the processes.
            chance: The source of randomness.
            commands: The share of processes that run the command, 0 to 1.
        """
        super().__init__(["capture"], errors)
        self._log, self._chance, self._commands = log, chance, commands

    def command(self, more: Sequence[str]) -> Sequence[str]:
        """Return Python's arguments for a process; ``more`` may have the LSN up to which it captures."""
        way = self._log.command if self._chance.random() < self._commands else self._log.function
        return way(self._chance, next(iter(more), None))
