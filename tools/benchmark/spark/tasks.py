"""python -m tools.benchmark tasks: how much memory a task of Spark needs for a table of very many rows and changes.

Each measurement is a process of its own, with a small heap, so that it fails where what is needed grows with the table.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from pyspark.sql import SparkSession

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import capture, create_slot, current_lsn
from pgoutput_construct.spark import net_changes, open_log, replicate, spark_session
from tools.benchmark.spark.memory import watched
from tools.benchmark.spark.runs import Spent, measured

__all__ = ["main"]

_TABLE: Final = "public.t"
_SLOT: Final = "tasks"
_SETTINGS: Final = {"autovacuum": "off", "max_wal_size": "8GB", "fsync": "off", "logical_decoding_work_mem": "256MB"}
_WORKERS: Final = "pgoutput_construct.spark.daemon"
"""The module of the Python processes that run tasks."""


class _Case(NamedTuple):
    """What is done to a table: before the log's copy of it, and after."""

    before: Sequence[str]
    after: Sequence[str]


_CASES: Final[Mapping[str, _Case]] = {
    "keyed": _Case(
        ["CREATE TABLE t (id bigint PRIMARY KEY, v int)"],
        ["INSERT INTO t SELECT i, i % 1000 FROM generate_series(1, {rows}) i"],
    ),
    "full": _Case(
        ["CREATE TABLE t (id bigint, v int)", "ALTER TABLE t REPLICA IDENTITY FULL"],
        ["INSERT INTO t SELECT i, i % 1000 FROM generate_series(1, {rows}) i"],
    ),
    "equal": _Case(
        ["CREATE TABLE t (id bigint, v int)", "ALTER TABLE t REPLICA IDENTITY FULL"],
        [
            "INSERT INTO t SELECT 1, 1 FROM generate_series(1, {rows})",
            "DELETE FROM t WHERE (ctid::text::point)[1]::int % 10 = 0",
        ],
    ),
    # Values are stored out of line for the sake of a column that is then dropped. Rows are in descending order, so
    # that no key is taken when it comes.
    "chain": _Case(
        [
            "CREATE TABLE t (id bigint PRIMARY KEY, doc text, long text) WITH (toast_tuple_target = 128)",
            "ALTER TABLE t ALTER doc SET STORAGE EXTERNAL",
            "INSERT INTO t SELECT i, repeat(chr(65 + (i % 26)::int), 90) || i, repeat('x', 2100) "
            "FROM generate_series({rows}, 1, -1) i",
            "ALTER TABLE t DROP long",
        ],
        ["UPDATE t SET id = id + 1"],
    ),
}
"""Tables of so many rows and, after their copy, at least so many changes; the other way round for ``chain``."""


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    options = _parser().parse_args(arguments)
    options.directory.mkdir(parents=True, exist_ok=True)
    for case in options.case:
        log = _log(options.directory, case, options.rows)
        for way in options.way:
            if way != "net" or case in ("keyed", "chain"):
                print(f"{case}, {options.rows:,} rows, {way}: {_measured(way, log, options)}", flush=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.benchmark tasks", description=__doc__)
    add, root = parser.add_argument, Path(__file__).parents[3] / "build" / "benchmark"
    add("--rows", type=int, default=10_000_000, metavar="N", help="of the table (default 10000000)")
    add("--case", nargs="+", choices=[*_CASES], default=[*_CASES], help=f"tables (all: {', '.join(_CASES)})")
    add("--way", nargs="+", choices=[*_WAYS], default=[*_WAYS], help=f"what is done (all: {', '.join(_WAYS)})")
    add("--heap", default="2g", metavar="SIZE", help="of the JVM (default 2g)")
    add("--cores", type=int, default=2, metavar="N", help="threads of Spark (default 2)")
    add("--directory", type=Path, default=root, metavar="FOLDER", help="for the logs (default build/benchmark)")
    return parser


def _log(directory: Path, case: str, rows: int) -> Path:
    """Return the log of a table, captured from a server unless it is there already."""
    log, (before, after) = directory / f"tasks-{case}-{rows}", _CASES[case]
    if log.exists():
        return log
    partial = log.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    with EmbeddedServer(18, _SETTINGS) as server:
        for number, statements in enumerate((before, after)):
            with server.connect() as connection:
                for statement in statements:
                    connection.execute(statement.format(rows=rows).encode())
                if not number:
                    connection.execute("CREATE PUBLICATION tasks FOR ALL TABLES")
                    create_slot(connection, _SLOT)
                end = current_lsn(connection)
            capture(server.dsn, _SLOT, ["tasks"], partial, until_lsn=end, snapshot=True, new_log=True)
    return partial.rename(log)


def _measured(way: str, log: Path, options: argparse.Namespace) -> str:
    given = [way, str(log.resolve()), options.heap, str(options.cores), str(options.directory.resolve())]
    command = [sys.executable, "-m", "tools.benchmark.spark.tasks", *given]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[3])
    if done.returncode:
        return f"failed: {done.stderr.strip()[-600:]}"
    workers, *spent = json.loads(done.stdout.splitlines()[-1])
    seconds, cpu = spent
    return f"a Python worker {workers:,.0f} MiB, heap at most {options.heap}; {seconds:,.0f} s, {cpu:,.0f} s of CPU"


def _state(spark: SparkSession, log: str, _: str) -> None:
    open_log(spark, log).state(_TABLE).write.format("noop").mode("overwrite").save()


def _net(spark: SparkSession, log: str, _: str) -> None:
    opened = open_log(spark, log)
    table, changes = opened.table(_TABLE), opened.changes(_TABLE).where("_op <> 'snapshot'")
    net_changes(changes, table.key_columns, table.current).write.format("noop").mode("overwrite").save()


def _replicate(spark: SparkSession, log: str, warehouse: str) -> None:
    replicate(spark, log, warehouse, "parquet")


_WAYS: Final[Mapping[str, Callable[[SparkSession, str, str], None]]] = {
    "state": _state,
    "net": _net,
    "replicate": _replicate,
}
"""What is done with a log, given a directory for what is written; net changes are of tables with a key."""


def _measure(way: str, log: str, heap: str, cores: int, directory: str) -> tuple[float, Spent]:
    """Return the MiB that the largest worker had, and what it took."""
    settings = {"spark.driver.memory": heap}
    with (
        tempfile.TemporaryDirectory(prefix="tasks-", dir=directory) as warehouse,
        spark_session(f"local[{cores}]", settings) as spark,
        watched(_WORKERS) as peaks,
    ):
        spent, _ = measured(lambda: _WAYS[way](spark, log, warehouse))
    return max(peaks.values(), default=0.0), spent


if __name__ == "__main__":
    way, log, heap, cores, directory = sys.argv[1:]
    found, spent = _measure(way, log, heap, int(cores), directory)
    print(json.dumps([found, *spent]))
