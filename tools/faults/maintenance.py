"""Compactions and prunes of the log that is being captured, some of them killed."""

import json
import random
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.changelog._segment.prune_note import read_pruned
from pgoutput_construct.changelog._store.store import MissingFileError
from pgoutput_construct.demo.processes import running
from tools.faults.contents import Contents, read_log, together
from tools.faults.errors import FaultsError
from tools.faults.maintenance_child import BEGUN

__all__ = ["Tidying"]

_SECONDS = 120.0
_KILLED = 0.6
"""How many are killed."""
_READ = 0.3
"""How many of the others work alongside a reader."""
_ATTEMPTS = 3


@dataclass
class Tidying:
    """Compacts and prunes one log, and retains its contents from before prunes."""

    directory: Path
    """The directory of the log."""
    errors: Path
    """The file for the output of the processes."""
    chance: random.Random
    compactions: int = 0
    prunes: int = 0
    killed: int = 0
    """How many of both were killed before they ended."""
    _earlier: Contents | None = None

    def contents(self) -> Contents:
        """Read the log, with all that was seen in it before it was pruned; raises PgoutputError."""
        log = ChangeLog(self.directory)
        contents = read_log(log)
        return together(self._earlier, contents, int(read_pruned(log.store).lsn))

    def step(self, meanwhile: Callable[[], None]) -> None:
        """Compact or prune, kill it or let it end, and read the log meanwhile; raises PgoutputError.

        ``meanwhile`` is called when it has begun.
        """
        if self.chance.random() < 0.5:
            self.prunes += 1
            self._earlier = self.contents()
            commits = self._earlier.commits
            # Each time some of the rest is pruned.
            before = commits[int(len(commits) * self.chance.uniform(0.2, 0.8))] if commits else 0
            self._run({"directory": str(self.directory), "before": before}, meanwhile)
        else:
            self.compactions += 1
            rows = self.chance.choice((5_000, 1_000_000))
            self._run({"directory": str(self.directory), "before": None, "rows": rows}, meanwhile)

    def _run(self, given: dict[str, object], meanwhile: Callable[[], None]) -> None:
        command = "-m", "tools.faults.maintenance_child", json.dumps(given)
        with running(*command, log=self.errors, stdout=subprocess.PIPE) as process:
            self._watch(process, meanwhile)

    def _read_meanwhile(self) -> None:
        """Read during maintenance; a reader whose rows are pruned opens the log again."""
        for _ in range(_ATTEMPTS):
            with suppress(MissingFileError):
                self.contents()
                return

    def _watch(self, process: "subprocess.Popen[bytes]", meanwhile: Callable[[], None]) -> None:
        assert process.stdout is not None
        begun = process.stdout.readline() == BEGUN
        meanwhile()
        if begun and self.chance.random() < _KILLED:
            time.sleep(self.chance.random() ** 2)
            self.killed += process.poll() is None
            return
        if self.chance.random() < _READ:
            self._read_meanwhile()
        if process.wait(_SECONDS):
            raise FaultsError(f"a compaction or prune ended with status {process.returncode}: {self.errors}")
