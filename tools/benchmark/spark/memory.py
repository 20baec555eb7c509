"""The driver's memory for planning and reading a log, with few and with very many changes."""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import psutil
from pyspark.sql import DataFrame, SparkSession

import pgoutput_construct as pgo
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.spark import open_log, register, spark_session
from tools.benchmark.log import write_segments
from tools.benchmark.spark.workload import CHANGES, TABLE, change_log

__all__ = ["FEW", "compare_memory", "watched"]

FEW: Final = 100_000
"""Changes of the small log."""
MUST: Final = 1.2
"""What the large one may take, against the small one."""

_PAUSE: Final = 0.05
"""Seconds between two looks at the processes; each knows its own peak."""
_PLANNERS: Final = "pyspark.sql.worker"
"""The module of the Python processes that plan for the JVM; those of tasks have another."""


class Peaks(NamedTuple):
    """MiB that parts of a driver had at most."""

    python: float
    """The process that asks: interpreter, libraries, and what ``open_log`` knows."""
    planner: float
    """The largest of the Python processes in which Spark has the data source plan."""
    heap: float
    """What the JVM's heap has after a collection: what is kept of the query."""


def compare_memory(directory: Path, many: int, together: int) -> bool:
    """Print what both logs take, each in a process of its own, one way after the other; return whether it is right."""
    logs = {changes: repeated_log(directory, changes, together) for changes in (FEW, many)}
    print(f"memory of the driver in MiB, {CHANGES * together:,} changes a transaction", flush=True)
    good = True
    for way in _WAYS:
        peaks = {changes: _measured(way, log) for changes, log in logs.items()}
        for changes, found in peaks.items():
            parts = ", ".join(f"{name} {size:,.0f}" for name, size in found._asdict().items())
            print(f"  {way:<16} {changes:>12,} changes: {parts}", flush=True)
        ratio = sum(peaks[many]) / sum(peaks[FEW])
        good = good and ratio <= MUST
        print(f"  {way:<16} {ratio:.2f} times as much (must {MUST:.2f})", flush=True)
    return good


def _measured(way: str, log: Path) -> Peaks:
    command = [sys.executable, "-m", "tools.benchmark.spark.memory", way, str(log.resolve())]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[3])
    if done.returncode:
        raise SystemExit(f"{way}, {log}: {done.stderr.strip()[-600:]}")
    return Peaks(*json.loads(done.stdout.splitlines()[-1]))


def _loaded(spark: SparkSession, log: str) -> DataFrame:
    return spark.read.format("pgoutput").options(path=log, table=TABLE).load()


def _opened(spark: SparkSession, log: str) -> DataFrame:
    return open_log(spark, log).changes(TABLE)


_WAYS: Final[Mapping[str, Callable[[SparkSession, str], DataFrame]]] = {
    "the data source": _loaded,
    "open_log": _opened,
}
"""How a log is read."""


def _measure(way: str, log: str) -> Peaks:
    with spark_session("local[2]", {"spark.driver.memory": "2g"}) as spark, watched(_PLANNERS) as planners:
        register(spark)
        _WAYS[way](spark, log).write.format("noop").mode("overwrite").save()
        runtime = spark._jvm.java.lang.Runtime.getRuntime()
        runtime.gc()
        heap = (runtime.totalMemory() - runtime.freeMemory()) / 2**20
    return Peaks(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, max(planners.values(), default=0.0), heap)


@contextmanager
def watched(module: str) -> Iterator[dict[int, float]]:
    """Yield the peaks in MiB of the processes below this one that run a module, by their ids, as far as were seen."""
    peaks, done = dict[int, float](), threading.Event()

    def look() -> None:
        while not done.wait(_PAUSE):
            for process in psutil.Process().children(recursive=True):
                try:
                    # Not the JVM: its command line names the module among Spark's settings.
                    command = process.cmdline()
                    if command[1:2] == ["-m"] and any(module in part for part in command):
                        peaks[process.pid] = _peak(process.pid)
                except (psutil.Error, OSError, StopIteration):
                    continue  # it has ended

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        done.set()
        thread.join()


def _peak(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) / 1024


_CAPTURED: Final = 200
"""Transactions of the small log."""
_SEGMENT: Final = 10_000
"""Changes in a segment, as of a capture of 5,000 changes a second."""


def repeated_log(directory: Path, changes: int, together: int = 1) -> Path:
    """Return a log of so many changes, which is written unless it is there already.

    Its transactions have the changes of so many captured ones ``together``: of CHANGES each.
    """
    path, size = directory / f"repeated-{changes}-{together}", CHANGES * together
    if not path.exists():
        small, partial = ChangeLog(change_log(directory, _CAPTURED)), path.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        contents = _contents([entry.payload for entry in small.entries()])
        many = max(1, _SEGMENT // size)
        segments = _segments(contents, changes // size, many, together)
        write_segments(partial, segments, small.options, -(-changes // (size * many)))
        partial.rename(path)
    return path


def _contents(payloads: Sequence[bytes]) -> list[list[bytes]]:
    """Return what is between Begin and Commit of each transaction; the first one has the Relation."""
    found: list[list[bytes]] = []
    for payload in payloads:
        if payload[:1] == pgo.Begin.TAG:
            found.append([])
        elif found and payload[:1] != pgo.Commit.TAG:
            found[-1].append(payload)
    return [content for content in found if len(content) >= CHANGES]


def _segments(
    contents: Sequence[Sequence[bytes]], transactions: int, many: int, together: int
) -> Iterator[list[bytes]]:
    """Yield the payloads of each segment: so ``many`` transactions of the contents, over and over."""
    plain = [[payload for payload in content if payload[:1] != pgo.Relation.TAG] for content in contents]
    for first in range(0, transactions, many):
        payloads = []
        for number in range(first, min(first + many, transactions)):
            lsn, time = pgo.Lsn((number + 1) << 12), pgo.Timestamp(number * 2000)
            payloads.append(pgo.build(pgo.Begin(lsn, time, 1000 + number)))
            for part in range(number * together, (number + 1) * together):
                payloads += plain[part % len(plain)] if part else contents[0]
            payloads.append(pgo.build(pgo.Commit(lsn, pgo.Lsn(lsn + 8), time)))
        yield payloads


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("way", choices=[*_WAYS])
    parser.add_argument("log")
    given = parser.parse_args()
    print(json.dumps(_measure(given.way, given.log)))
