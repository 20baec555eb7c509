"""Clients in Python: each case in a process of its own, which is forked from one that has imported their modules."""

import json
import multiprocessing
import os
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from multiprocessing.connection import Connection
from threading import Lock
from typing import Any, Final

from pgoutput_construct.conformance.command_client import peak_memory
from pgoutput_construct.conformance.conformance_client import ClientTask, ConformanceClient, RunningClient

__all__ = ["ForkedClient", "Report"]

Report = Callable[[dict[str, Any]], None]
"""Writes one line."""
_STOP_SECONDS: Final = 2.0
_CONTEXT: Final = multiprocessing.get_context("forkserver")
_PRELOADED: Final = {"tools.conformance.forked": None}
"""The modules that the server of forks imports, in their order."""


class ForkedClient(ConformanceClient):
    """A module with a function ``run(task, report)``."""

    def __init__(self, name: str, module: str) -> None:
        """Take a client.

        The modules of all clients are imported once, if these are made before the first one runs.

        Args:
            name: What it is, for people.
            module: The module.
        """
        self.name = name
        self._module = module
        _PRELOADED[module] = None
        _CONTEXT.set_forkserver_preload([*_PRELOADED])

    def start(self, task: ClientTask) -> RunningClient:
        """See ConformanceClient."""
        return _ForkedProcess(self._module, task)


class _ForkedProcess(RunningClient):
    def __init__(self, module: str, task: ClientTask) -> None:
        self._reader, writer = _CONTEXT.Pipe(duplex=False)
        self._errors = task.directory / "errors.txt"
        self._process = _CONTEXT.Process(target=_run, args=(module, task, writer, str(self._errors)), daemon=True)
        self._process.start()
        writer.close()
        os.set_blocking(self._reader.fileno(), False)
        self._rest = b""
        self._lock = Lock()

    def read(self) -> list[str]:
        """See RunningClient."""
        with self._lock:
            parts = [self._rest]
            while not self._reader.closed and (part := _available(self._reader.fileno())):
                parts.append(part)
            *lines, self._rest = b"".join(parts).split(b"\n")
        return [line.decode("utf-8", "replace") for line in lines]

    @property
    def status(self) -> int | None:
        """See RunningClient."""
        return self._process.exitcode

    @property
    def errors(self) -> str:
        """See RunningClient."""
        return self._errors.read_text("utf-8", "replace") if self._errors.exists() else ""

    @property
    def peak(self) -> int | None:
        """See RunningClient."""
        return peak_memory(self._process.pid or 0)

    def stop(self) -> None:
        """See RunningClient."""
        self._process.terminate()
        self._process.join(_STOP_SECONDS)
        self._process.kill()
        self._process.join()
        with self._lock:
            self._reader.close()


def _available(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 20)
    except BlockingIOError:
        return b""


def _run(module: str, task: ClientTask, writer: Connection, errors: str) -> None:
    descriptor = writer.fileno()
    with open(errors, "a", encoding="utf-8") as file:  # noqa: PTH123 - as standard error
        os.dup2(file.fileno(), 2)

    def report(line: dict[str, Any]) -> None:
        data = json.dumps(line).encode() + b"\n"
        while data:
            data = data[os.write(descriptor, data) :]

    status = 0
    try:
        import_module(module).run(task, report)
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stderr.flush()
    os._exit(status)
