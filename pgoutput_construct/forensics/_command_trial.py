"""Whether a command fails with a fixture: what shrinks fixtures asks again and again."""

import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.forensics._fixture import Fixture

__all__ = ["command_fails"]

_NOT_EXECUTED: Final = (126, 127)
"""The exit statuses of a POSIX shell for a command that is not executable, or was not found."""


def command_fails(command: str, timeout: float) -> Callable[[Fixture], bool]:
    """Return what executes a command with a fixture, and returns whether it fails.

    A command that takes too long is ended, with the processes that it has started, and fails: it hangs.

    Args:
        command: A command of the shell; ``{file}`` is replaced by the path of the fixture, ``{dsn}`` by the connection
            string of a publisher that serves it.
        timeout: Seconds after which it hangs.

    What is returned raises PgoutputError if the shell cannot execute the command: every fixture would fail then.
    """

    def fails(trial: Fixture) -> bool:
        with TemporaryDirectory(prefix="fixture-") as directory:
            path = Path(directory) / "fixture.jsonl"
            trial.save(path)
            if "{dsn}" not in command:
                return _fails(command.replace("{file}", str(path)), timeout)
            from pgoutput_construct.testing import publisher

            with publisher() as served:
                served.play(path)
                return _fails(command.replace("{file}", str(path)).replace("{dsn}", served.dsn), timeout)

    return fails


def _fails(command: str, timeout: float) -> bool:
    process = subprocess.Popen(
        command, shell=True, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        status = process.wait(timeout)
        if status in _NOT_EXECUTED:
            raise PgoutputError(f"the command cannot be executed: the shell ends with status {status}")
        return status != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
