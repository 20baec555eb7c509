"""A standalone cluster of Spark on this machine: a master, and workers that are processes of their own."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pyspark

from tools.class_archive import java_options

__all__ = ["BIN", "ENVIRONMENT", "cluster"]

BIN: Final = Path(pyspark.__file__).parent / "bin"
"""Where Spark's own commands are."""

ENVIRONMENT: Final[Mapping[str, str]] = {
    **os.environ,
    "PYTHONPATH": str(Path(__file__).parents[2]),
    "PYSPARK_PYTHON": sys.executable,
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_DAEMON_JAVA_OPTS": "-Dspark.master.rest.enabled=false",  # it has a port of its own, always the same
    "JDK_JAVA_OPTIONS": java_options(),
}
"""What its processes, and programs that use it, run with."""

_DEPLOY: Final = "org.apache.spark.deploy"
_UNTIL_CLOSED: Final = '"$@" </dev/null & read -r _; kill $!; wait'
"""A process that ends when the one that started it does, however that ended: its standard input is closed then."""
_SECONDS: Final = 300.0


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[str]:
    """Start a master and workers of one core each, which work and log in a folder; yields the master's address."""
    with ExitStack() as running:
        log = running.enter_context(_daemon(folder / "master.log", "master.Master", "--port", "0"))
        address = _said(log, r"Starting Spark master at (spark://\S+)")
        given = ("--cores", "1", "--memory", "1g")
        logs = [
            running.enter_context(
                _daemon(folder / f"worker{number}.log", "worker.Worker", *given, "-d", str(folder / "work"), address)
            )
            for number in range(workers)
        ]
        for each in logs:
            _said(each, r"(Successfully registered)")
        yield address


@contextmanager
def _daemon(log: Path, name: str, *arguments: str) -> Iterator[Path]:
    """Run one of Spark's daemons until the block ends; yields the file that it logs into."""
    command = ["sh", "-c", _UNTIL_CLOSED, "sh", BIN / "spark-class", f"{_DEPLOY}.{name}", *arguments]
    command += ["--host", "127.0.0.1", "--webui-port", "0"]
    with log.open("w") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT, env=ENVIRONMENT
        )
    try:
        yield log
    finally:
        process.communicate(timeout=_SECONDS)  # closes its standard input


def _said(log: Path, pattern: str) -> str:
    """Wait until a daemon has logged something, and return that."""
    deadline = time.monotonic() + _SECONDS
    while not (found := re.search(pattern, text := log.read_text("utf-8"))):
        assert time.monotonic() < deadline, text[-2000:]
        time.sleep(0.1)
    return found[1]
