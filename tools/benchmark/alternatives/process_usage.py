"""What a program and all processes below it need: seconds, CPU and memory."""

import os
import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from pgoutput_construct.demo.processes import kill
from tools.benchmark.errors import BenchmarkError

__all__ = ["ProcessUsage", "measure_program"]

_PAUSE: Final = 0.1
"""Seconds between two looks at the processes."""
_SECONDS: Final = 3600.0
"""Seconds after which a program is given up."""


class ProcessUsage(NamedTuple):
    """What a program, or several in turn, needed."""

    seconds: float
    """From the start of the process until it has ended."""
    cpu: float
    """Seconds of CPU of all its processes."""
    peak: int
    """Maximum of the bytes of memory of all its processes together; what they share counts once."""

    def followed_by(self, other: "ProcessUsage") -> "ProcessUsage":
        """Return what both needed, one after the other.

        Args:
            other: What the later one needed.
        """
        return ProcessUsage(self.seconds + other.seconds, self.cpu + other.cpu, max(self.peak, other.peak))


def measure_program(
    command: Sequence[str | Path], folder: Path, environment: Mapping[str, str] | None = None
) -> ProcessUsage:
    """Run a program to completion, and return what it needed.

    Args:
        command: The program and its arguments.
        folder: Its working directory, in which ``output.txt`` receives what it writes.
        environment: Variables in addition to those of this process.

    Raises:
        BenchmarkError: It failed, or did not end within an hour.
    """
    output = folder / "output.txt"
    tree = _ProcessTree()
    children = _children_cpu()
    began = time.perf_counter()
    with output.open("ab") as file:
        process = subprocess.Popen(
            list(map(str, command)),
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        while process.poll() is None and time.perf_counter() - began < _SECONDS:
            tree.look(process.pid)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_PAUSE)
        seconds = time.perf_counter() - began
        if process.returncode is None:
            raise BenchmarkError(f"{command[0]} was given up after {_SECONDS:.0f} s; see {output}")
    finally:
        kill(process)
    if process.returncode:
        last = output.read_text("utf-8", "replace").strip()[-600:]
        raise BenchmarkError(f"{command[0]} ended with status {process.returncode}: {last}")
    # The processes that ended unseen since the last look are missing in one, those that nobody waited for in the other.
    return ProcessUsage(seconds, max(tree.cpu, _children_cpu() - children), tree.peak)


class _ProcessTree:
    """A process and those below it, also after they have lost their parent."""

    def __init__(self) -> None:
        self.peak = 0
        self._seen: dict[psutil.Process, float] = {}

    @property
    def cpu(self) -> float:
        """Seconds of CPU, as far as they were seen."""
        return sum(self._seen.values())

    def look(self, pid: int) -> None:
        """Take what the processes have used so far."""
        with suppress(psutil.NoSuchProcess):
            root = psutil.Process(pid)
            for process in (root, *root.children(recursive=True)):
                self._seen.setdefault(process, 0.0)
        memory = 0
        for process in self._seen:
            with suppress(psutil.Error):
                if process.is_running():
                    used = process.cpu_times()
                    self._seen[process] = used.user + used.system
                    memory += _memory(process)
        self.peak = max(self.peak, memory)


def _memory(process: psutil.Process) -> int:
    """Return the bytes of a process; of pages that it shares with others its part, where the system knows that."""
    found = process.memory_full_info()
    return int(getattr(found, "pss", found.rss))


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
