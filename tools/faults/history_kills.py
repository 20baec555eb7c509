"""Captures and replications of a history in processes of their own, which are killed before they finish."""

import json
import random
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pgoutput_construct.demo.processes import Supervised
from pgoutput_construct.errors import PgoutputError

__all__ = ["Killer"]

_STEP: Final = 0.05
"""Seconds from one count of files to the next."""
_SECONDS: Final = 120.0
"""For how long a process runs at most."""
_SEGMENTS: Final = {"rows": 40, "seconds": 0.05}
"""When a capture that is killed cuts segments: early, so that there is something to be killed amid."""
_SPARED: Final = 0.4
"""How many of the processes that could be killed are not even started: others than the first ones are killed, too."""
_FILES: Final = 30
"""A process is killed when it has written as many files as are drawn, fewer than this: one is as likely as all above
five, as there are processes that write few."""
_MISUSED: Final = "status 2;"
"""How a command ends whose arguments are wrong."""


@dataclass
class Killer:
    """What is killed, and when: processor time is short on some machines, so that it is files that are counted."""

    directory: Path
    """Where processes say what they have to say."""
    kills: int
    """How many captures are still to be killed, and how many replications, at most."""
    chance: random.Random
    replications: int | None = None
    """How many replications are still to be killed; None for ``kills``."""

    def __post_init__(self) -> None:
        self.replications = self.kills if self.replications is None else self.replications

    def capture(self, given: Mapping[str, Any], until_lsn: str) -> bool:
        """Capture up to a position, and kill that on the way; return whether it was."""
        if not self.kills or self.chance.random() < _SPARED:
            return False
        told = {**given, "directory": str(given["directory"]), "limits": _SEGMENTS, "until_lsn": until_lsn}
        child = Supervised([json.dumps(told)], self.directory / "killed.txt", "tools.faults.child")
        was_killed = self._killed(child, given["directory"])
        self.kills -= was_killed
        return was_killed

    def replicate(self, log: Path, warehouse: Path, given: Mapping[str, Any]) -> bool:
        """Replicate a log, and kill that on the way; return whether it was."""
        if not self.replications or self.chance.random() < _SPARED:
            return False
        told = [text for name, value in given.items() for text in _option(name, value)]
        arguments = ["replicate", str(log), "--warehouse", str(warehouse), "--once", *told]
        arguments += ["--spark", self.chance.choice(("needed", "always"))]
        was_killed = self._killed(Supervised(arguments, self.directory / "killed.txt"), warehouse)
        self.replications -= was_killed
        return was_killed

    def _killed(self, process: Supervised, folder: Path) -> bool:
        before, more = _files(folder), int(_FILES ** self.chance.random()) - 1
        rest, deadline = self.chance.random(), time.monotonic() + _SECONDS
        process.ensure()
        try:
            while process.runs and _files(folder) <= before + more and time.monotonic() < deadline:
                time.sleep(_STEP)
            time.sleep(rest / 5)
        finally:
            was_killed = process.kill()
        for end in process.ended:
            if end.startswith(_MISUSED):
                raise PgoutputError(f"nothing was there to be killed: {end}")
        return was_killed


def _files(folder: Path) -> int:
    """Return how many files there are below a folder, while others come and go."""
    found = subprocess.run(["find", str(folder), "-type", "f"], capture_output=True, check=False)
    return found.stdout.count(b"\n")


def _option(name: str, value: object) -> list[str]:
    """Return an option of the command, for a keyword of the function."""
    flag = f"--{name.replace('_', '-')}"
    if value is None or isinstance(value, bool):
        return [flag] if value else []
    return [flag, str(value)]
