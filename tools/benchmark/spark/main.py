"""python -m tools.benchmark spark: reading a change log in Spark, compared with similar work of Spark alone."""

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from pyspark.sql import SparkSession

from pgoutput_construct.spark import OpenLog, open_log, spark_session
from tools.benchmark.errors import Unavailable
from tools.benchmark.log import fill_log
from tools.benchmark.spark.memory import compare_memory
from tools.benchmark.spark.runs import RUNS, Files, Spent, measured
from tools.benchmark.spark.workload import CHANGES, change_log, wal2json_lines

__all__ = ["main"]


class _Goal(NamedTuple):
    """One run's seconds over another's, and what they must not exceed.

    CPU seconds stand beside them: other programs on the machine change these less.
    """

    run: str
    against: str
    must: float


_GOALS: Final = (
    _Goal("log to typed Parquet", "plain copy of it", 1.7),
    _Goal("log to typed Parquet", "from_json over wal2json's lines", 1 / 6),
    _Goal("changes, by Spark's writer", "plain copy of it", 1.7),
    _Goal("state", "max_by per key", 1.5),
)
_PLANNING: Final = 5.0
"""Seconds in which a batch over 10^4 segments with 10^6 transactions is to be planned."""


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit status: 1 when a goal is missed."""
    options = _parser().parse_args(arguments)
    options.directory.mkdir(parents=True, exist_ok=True)
    transactions = options.changes // CHANGES
    good = True
    for together in options.together if options.memory > 0 else ():
        good = compare_memory(options.directory, options.memory, together) and good
    if options.changes < 1:
        return 0 if good else 1
    log, full = (change_log(options.directory, transactions, full) for full in (False, True))
    files = Files(log, full, _lines(options.directory, transactions), options.directory / "written")
    with spark_session(f"local[{options.cores}]", {"spark.sql.shuffle.partitions": str(options.cores)}) as spark:
        print(f"{options.changes:,} changes in {transactions:,} transactions, {options.cores} cores", flush=True)
        good = _compare(_measure(spark, files, options.repeat)) and good
        return 0 if _plan(spark, options.directory) <= _PLANNING and good else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.benchmark spark", description=__doc__)
    parser.add_argument(
        "--changes", type=int, default=2_000_000, metavar="N", help="of one table (default 2000000; 0: none)"
    )
    parser.add_argument(
        "--memory", type=int, default=10_000_000, metavar="N", help="of the log for memory (default 10000000; 0: none)"
    )
    parser.add_argument(
        "--together",
        type=int,
        nargs="+",
        default=(1, 100),
        metavar="N",
        help=f"logs with {CHANGES} changes N times a transaction of it (default 1 100)",
    )
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="rounds; the first one warms up (default 3)")
    parser.add_argument("--cores", type=int, default=2, metavar="N", help="threads of Spark (default 2)")
    root = Path(__file__).parents[3] / "build" / "benchmark"
    parser.add_argument("--directory", type=Path, default=root, metavar="FOLDER", help=f"for files (default {root})")
    return parser


def _lines(directory: Path, transactions: int) -> Path | None:
    try:
        return wal2json_lines(directory, transactions)
    except Unavailable as error:
        print(f"without from_json: {error}")
        return None


def _measure(spark: SparkSession, files: Files, repeat: int) -> dict[str, Spent]:
    """Return the medians of each run; in each round each has its turn."""
    runs = [run for run in RUNS.values() if files.lines is not None or "wal2json" not in run.name]
    found: dict[str, list[Spent]] = {run.name: [] for run in runs}
    for number in range(repeat):
        for run in runs:
            spent = run.measure(spark, files)
            found[run.name].append(spent)
            print(f"  round {number + 1}: {run.name:<33} {spent.seconds:8.2f} s {spent.cpu:8.2f} s of CPU", flush=True)
    medians = {name: _median(spent[1:] or spent) for name, spent in found.items()}
    for name, spent in medians.items():
        print(f"  median: {name:<33} {spent.seconds:8.2f} s {spent.cpu:8.2f} s of CPU", flush=True)
    return medians


def _median(spent: Sequence[Spent]) -> Spent:
    return Spent(*map(statistics.median, zip(*spent, strict=True)))


def _compare(spent: dict[str, Spent]) -> bool:
    """Print how each run stands against the other; return whether all goals are reached."""
    good = True
    for goal in _GOALS:
        if goal.against in spent:
            ours, theirs = spent[goal.run], spent[goal.against]
            ratio, cpu = ours.seconds / theirs.seconds, ours.cpu / theirs.cpu
            good = good and ratio <= goal.must
            print(f"{goal.run} / {goal.against}: {ratio:.2f}, of CPU {cpu:.2f} (must {goal.must:.2f})", flush=True)
    return good


def _plan(spark: SparkSession, directory: Path) -> float:
    """Return the seconds in which a batch over a large log is planned, up to its partitions."""
    log = fill_log(directory, 10_000, 1_000_000)
    planning, opened = measured(lambda: _planned(spark, log))
    again, _ = measured(lambda: open_log(spark, log, known=opened.log))
    print("10^6 transactions in 10^4 segments:")
    print(f"  planning a batch {planning.seconds:.2f} s, {planning.cpu:.2f} s of CPU (must {_PLANNING} s)")
    print(f"  opening the log again {again.seconds:.2f} s, {again.cpu:.2f} s of CPU", flush=True)
    return planning.seconds


def _planned(spark: SparkSession, log: Path) -> OpenLog:
    opened = open_log(spark, log)
    opened.changes("public.t").rdd.getNumPartitions()
    return opened
