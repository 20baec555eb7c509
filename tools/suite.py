"""What ``tools/test`` runs: what tests need is fetched, then tests run, and meanwhile checks; nothing is left of it.

A run has a directory of its own for temporary files, and a mark in the environment of whatever it starts: servers, JVMs
and clients that are still there at the end, also at one by a signal, are ended, and the directory is removed.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

import psutil

from tools.affected_tests import UnknownBranchError, affected_tests, affects_documentation
from tools.cache import FOLDER

__all__ = ["CHECKS", "FETCHES", "MARK", "Run", "left_over", "main"]

_MODULE: Final = (sys.executable, "-m")
CHECKS: Final[Sequence[Sequence[str]]] = (
    (*_MODULE, "ruff", "check", "."),
    (*_MODULE, "ruff", "format", "--check", "."),
    (*_MODULE, "tools.generate", "--check"),
    (str(Path(sys.executable).with_name("lint-imports")), "--no-cache"),
    (*_MODULE, "mypy"),
)
"""Commands that check the code, the quickest first."""

KERNELS: Final = (
    sys.executable,
    "-c",
    "from pgoutput_construct.postgres._capture.capture_session import compile_kernels; compile_kernels()",
)
"""Compiles most kernels, into numba's cache."""

DOCUMENTATION: Final = ("tools/docs",)

FETCHES: Final[Mapping[str, Sequence[Sequence[str]]]] = {
    "tests on PostgreSQL 19 will be skipped": [["tools.postgres19"]],
    "tests of Delta Lake, Iceberg, S3, a REST catalog, or earlier releases of PostgreSQL will be skipped": [
        ["tools.jars"],
        ["tools.rest_catalog"],  # all of these run Ivy
        ["tools.earlier_servers"],
    ],
    "tests with other versions of PySpark, or other readers of tables, will be skipped": [["tools.environments"]],
    "tests of Kaitai Struct will be skipped": [["tools.kaitai"]],
    "tests of the codec in TypeScript, or of its format, will be skipped": [["tools.codecs"]],
    "tests of the explorer will be skipped": [["tools.explorer", "--fetch"]],
    "tests with some of the peers above will be skipped": [["tools.benchmark", "peers"]],
    "Spark will start more slowly": [["tools.class_archive"]],
}
"""What it means if something cannot be fetched or made, and the modules that do so, most once for all clones."""

WORKERS: Final = min((os.cpu_count() or 1) + 2, 6)
"""Processes that run tests: two more than there are cores, as a third of the time tests wait for servers and Spark."""

QUICK: Final = "not long and not slow and not spark and not server"
"""Which tests are quick."""

MARK: Final = "PGOUTPUT_TEST_RUN"
"""The environment variable of all processes of a run: its directory."""
_PREFIX: Final = "pgoutput-test-"
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_GRACE: Final = 10.0
"""Seconds in which processes end by themselves, such as a JVM whose Python has ended."""
_FAREWELL: Final = 2.0
"""Seconds for a process to clean up after SIGTERM: PostgreSQL removes its segments of shared memory."""
_CLONE: Final = Path(__file__).parents[1]


class Interrupted(BaseException):
    """A signal ends the run."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    quick, changed = _taken(given, "--quick"), _taken(given, "--changed")
    _remove_dead_runs()
    with Run() as run:
        return _run(run, given, quick, changed)


def _run(run: "Run", given: Sequence[str], quick: bool, changed: bool) -> int:
    tests, is_documented = list[str](), True
    if changed:
        try:
            tests, is_documented = affected_tests(_CLONE), affects_documentation(_CLONE)
        except UnknownBranchError as error:
            print(f"tools/test --changed: {error}", file=sys.stderr)
            return 2
        print(f"== {len(tests)} files of tests import what has changed", flush=True)
        if not tests:
            return run.check((*CHECKS, DOCUMENTATION) if is_documented else CHECKS)
    if quick:
        run.environment.setdefault("PGOUTPUT_HYPOTHESIS_PROFILE", "save")
        return run.both(CHECKS, {}, ("-m", QUICK, *tests, *given))
    return run.both((*CHECKS, DOCUMENTATION) if is_documented else CHECKS, FETCHES, (*tests, *given))


def _taken(given: list[str], option: str) -> bool:
    is_there = option in given
    if is_there:
        given.remove(option)
    return is_there


class Run:
    """A run of checks and tests; use it as a context manager."""

    def __init__(self) -> None:
        """Make its directory."""
        self.directory = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        self.directory.chmod(0o1777)  # as /tmp is: a server that root starts has another user
        self.environment = {**os.environ, MARK: str(self.directory), "TMPDIR": str(self.directory)}
        # Without compiled modules each process compiles all that it imports, and pytest writes all assertions again.
        self.environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self.environment.setdefault("MYPY_CACHE_DIR", str(FOLDER / "mypy"))  # what it has found holds in any clone
        self._handlers = dict[signal.Signals, Any]()
        self._is_ending = False

    def __enter__(self) -> "Run":
        self._handlers = {number: signal.signal(number, _interrupt) for number in _SIGNALS}
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        self._is_ending = True
        left = left_over(self.directory, _GRACE if kind is None else 0.0)
        names = ", ".join(_names(left))
        _end(left, self.directory)
        shutil.rmtree(self.directory, ignore_errors=True)
        if left and kind is None:
            print(f"== processes that tests had left, and that were ended: {names}", file=sys.stderr)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def fetch(self, fetches: Mapping[str, Sequence[Sequence[str]]]) -> None:
        """Fetch what tests need, all at a time; where that fails, say what it means."""
        pool = ThreadPoolExecutor(max(len(fetches), 1))
        done = [pool.submit(self._fetch, commands) for commands in fetches.values()]
        pool.shutdown(wait=False)  # at a signal, what runs is killed first
        for meaning, fetched in zip(fetches, done, strict=True):
            if not fetched.result():
                print(f"== {meaning}, for the reason above", file=sys.stderr)

    def _fetch(self, commands: Sequence[Sequence[str]]) -> bool:
        run = ([*_MODULE, *command] for command in commands)
        return all(
            not self._is_ending and not subprocess.run(each, cwd=_CLONE, env=self.environment, check=False).returncode
            for each in run
        )

    def check(self, checks: Sequence[Sequence[str]]) -> int:
        """Run checks, one after another; return 1 if one fails."""
        return max([self._check(each) for each in checks if not self._is_ending], default=0)

    def _check(self, check: Sequence[str]) -> int:
        began = time.monotonic()
        done = subprocess.run(check, cwd=_CLONE, env=self.environment, capture_output=True, text=True, check=False)
        output = f"{done.stdout}{done.stderr}" if done.returncode else ""
        title = " ".join(each for each in check if each not in _MODULE)
        result = "failed" if done.returncode else "ok"
        print(f"== {title}: {result}, {time.monotonic() - began:.0f} s\n{output}", end="", flush=True)
        return int(done.returncode != 0)

    def test(self, arguments: Sequence[str]) -> int:
        """Run pytest in several processes; return its exit status."""
        workers = ("--numprocesses", str(WORKERS), "--dist", "loadfile", "--no-loadscope-reorder")
        process = subprocess.Popen([*_MODULE, "pytest", *workers, *arguments], cwd=_CLONE, env=self.environment)
        try:
            return process.wait()
        except Interrupted:
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired, Interrupted):
                process.wait(_GRACE)
            raise

    @contextmanager
    def _compiling(self) -> Iterator[None]:
        """Compile the kernels of a new clone meanwhile: each process would do so for its tests, once it has them."""
        if any(_CLONE.glob("pgoutput_construct/*/__pycache__/*.nbi")):
            yield
            return
        with subprocess.Popen(KERNELS, cwd=_CLONE, env=self.environment) as process:
            try:
                yield
            finally:
                process.kill()  # few tests may be quicker

    def both(
        self,
        checks: Sequence[Sequence[str]],
        fetches: Mapping[str, Sequence[Sequence[str]]],
        arguments: Sequence[str],
    ) -> int:
        """Run checks while what tests need is fetched and tests run; return 1 if a check fails, else their status."""
        results = list[int]()
        thread = threading.Thread(target=lambda: results.append(self.check(checks)), daemon=True)
        thread.start()
        with self._compiling():
            self.fetch(fetches)
            status = self.test(arguments)
        thread.join()
        if results == [0]:
            return status
        print("== a check failed: see above", file=sys.stderr)
        return 1


def left_over(directory: Path, seconds: float) -> list[psutil.Process]:
    """Return the processes of a run that are still there after some time, but for this one."""
    deadline = time.monotonic() + seconds
    while found := [each for each in psutil.process_iter() if _is_of(each, directory)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.2)
    return found


def _end(processes: Sequence[psutil.Process], directory: Path) -> None:
    """End processes of a run, and those that they have started meanwhile."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    psutil.wait_procs(processes, _FAREWELL)
    deadline = time.monotonic() + _GRACE
    while (left := left_over(directory, 0.0)) and time.monotonic() < deadline:
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left, 1.0)


def _is_of(process: psutil.Process, directory: Path) -> bool:
    try:
        return process.pid != os.getpid() and (
            process.environ().get(MARK) == str(directory) or any(str(directory) in each for each in process.cmdline())
        )
    except psutil.Error:  # it has ended, or is of another user
        return False


def _names(processes: Iterable[psutil.Process]) -> Iterator[str]:
    for each in processes:
        with suppress(psutil.Error):
            yield f"{each.name()} ({each.pid})"


def _remove_dead_runs() -> None:
    """Remove what runs have left that could not do so themselves: they were killed."""
    for directory in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        pid = directory.name.removeprefix(_PREFIX).partition("-")[0]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            _end(left_over(directory, 0.0), directory)
            shutil.rmtree(directory, ignore_errors=True)


def _interrupt(number: int, _: FrameType | None) -> NoReturn:
    raise Interrupted(number)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Interrupted as signaled:
        sys.exit(128 + signaled.args[0])
