"""The capture as a process that is started again whenever it ends, as a supervisor would."""

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
"""When segments are cut: each process has one of these, so that kills meet small and large ones; the last one has the
last."""

COMMANDS = 0.25
"""How many of the captures are the command, which cuts a segment each two seconds, and waits half a minute for a silent
server; the others call the function."""


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


class CaptureProcess(Supervised):
    """The processes that capture one log, one after the other: each is the command, or calls the function."""

    def __init__(self, log: CapturedLog, errors: Path, chance: random.Random, commands: float = COMMANDS) -> None:
        """Start none yet.

        Args:
            log: What is captured, and where it goes.
            errors: The file that takes what the processes say.
            chance: What is drawn from.
            commands: How many of the processes are the command, of 1.
        """
        super().__init__(["capture"], errors)
        self._log, self._chance, self._commands = log, chance, commands

    def command(self, more: Sequence[str]) -> Sequence[str]:
        """Return the arguments of Python for a process, which captures up to an LSN where ``more`` is one."""
        way = self._log.command if self._chance.random() < self._commands else self._log.function
        return way(self._chance, next(iter(more), None))
