"""The whole pipeline, from a server with a running workload to replicated tables, with a crash of each process."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.demo.freshness import Freshness
from pgoutput_construct.demo.picture import picture
from pgoutput_construct.demo.processes import Supervised
from pgoutput_construct.demo.workload import ALTERATIONS, Workload, create_shop
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.postgres import connect, current_lsn, fetch_table
from pgoutput_construct.spark import Comparison, compare, open_log, read_current, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SLOT", "DemoOptions", "Report", "TableReport", "run_demo"]

SLOT = PUBLICATION = "shop"
SEEN_TABLES: Final = ("public.carts", "public.customers", "public.order_lines", "public.orders")
"""The tables that must be in the result, so that a missing one is an error."""
_SECONDS: Final = 600.0
"""Seconds to wait for a process."""
_WORK: Final = 20.0
"""The minimum duration of each half of the workload in seconds."""
_PAUSE: Final = 4.0
"""Seconds between two crashes."""
_TICK: Final = 0.2
_MAX_ENDS: Final = 5
"""How often a process may end by itself (the capture may, while the server is down)."""


@dataclass(frozen=True)
class DemoOptions:
    """The options of the demo."""

    directory: Path
    """The directory for the change log and the tables; it must not contain a log yet."""
    scale: float = 1.0
    """The size of the workload: 1 is about 7,000 initial rows and 40,000 changes."""
    master: str = "local[*]"
    """Spark's master."""
    binary: bool = False
    """Whether values are sent in binary format."""
    version: int = 18
    """The embedded PostgreSQL's major version."""
    into: str = "parquet"
    """The format of the tables."""


@dataclass(frozen=True)
class TableReport:
    """One table, and whether it equals its source."""

    name: str
    changes: int
    """The number of changes and copied rows in the log."""
    comparison: Comparison


@dataclass(frozen=True)
class Report:
    """The result of the demo."""

    log: Path
    warehouse: Path
    picture: Path
    watched: Freshness
    """The freshness of the tables over time."""
    tables: tuple[TableReport, ...]

    @property
    def equal(self) -> bool:
        """Whether every table equals its source."""
        return all(table.comparison.equal for table in self.tables)


ProgressCallback = Callable[[str], None]
"""Called with a description of the current step."""


def run_demo(options: DemoOptions, step: ProgressCallback, detail: ProgressCallback) -> Report:
    """Run the demo.

    Args:
        options: The options.
        step: Called when a step begins.
        detail: Called with the progress of the step.

    Raises:
        PgoutputError: A process fails. Tables that differ from their source are in the report instead.
    """
    step(f"starting an embedded PostgreSQL {options.version} with a shop's tables")
    with EmbeddedServer(options.version) as server:
        create_shop(server, options.scale)
        options.directory.mkdir(parents=True, exist_ok=True)
        run = _DemoRun(options, server, step, detail)
        try:
            run.run()
        finally:
            run.capture.kill()
            run.replica.kill()
        step("comparing the tables with the source")
        with spark_session(options.master, into=[options.into]) as spark:
            tables = tuple(run.compared(spark))
    drawn = options.directory / "freshness.svg"
    drawn.write_text(picture(run.watched), encoding="utf-8")
    return Report(run.log, run.warehouse, drawn, run.watched, tables)


@dataclass
class _DemoRun:
    options: DemoOptions
    server: EmbeddedServer
    step: ProgressCallback
    detail: ProgressCallback
    log: Path = field(init=False)
    warehouse: Path = field(init=False)

    def __post_init__(self) -> None:
        directory = self.options.directory
        self.log, self.warehouse = directory / "changelog", directory / "tables"
        captured = ["capture", self.server.dsn, str(self.log), "--slot", SLOT, "--publication", PUBLICATION]
        captured += ["--create-slot", "--snapshot", "--two-phase", *(["--binary"] if self.options.binary else [])]
        self.capture = Supervised(captured, directory / "capture.txt")
        replicated = ["replicate", str(self.log), "--into", self.options.into, "--warehouse", str(self.warehouse)]
        replicated += ["--master", self.options.master, "--spark", "always"]
        self.replica = Supervised([*replicated, "--continuous"], directory / "replicate.txt")
        self.rest = Supervised([*replicated, "--once"], directory / "replicate.txt")
        self.watched = Freshness(self.log, self.warehouse)

    def run(self) -> None:
        """Copy the tables, replicate the workload while each process is killed once, and replicate the rest."""
        with self.watched, ThreadPoolExecutor(1, "workload") as pool:
            self.step("copying its tables into the log, and replicating them to Spark")
            self.wait(lambda: self.watched.tables >= len(SEEN_TABLES))
            self.step("running the workload; the capture and Spark are killed and resume")
            self.work(pool, ALTERATIONS, [(self.capture, "capture killed"), (self.replica, "Spark killed")])
            self.step("killing the server; the workload, the capture and Spark resume")
            self.server.kill()
            self.watched.note("server killed")
            self.server.start()
            self.work(pool, (), [])
            self.step("replicating the rest")
            self.finish()
            self.watched.look()

    def work(
        self, pool: ThreadPoolExecutor, alterations: Sequence[str], victims: Sequence[tuple[Supervised, str]]
    ) -> None:
        """Run half of the workload.

        Args:
            pool: Runs the workload.
            alterations: The statements that alter tables meanwhile.
            victims: The processes to kill meanwhile, each with the text of its event.
        """
        workload = Workload(self.server, self.options.scale / 2, alterations, _WORK)
        running = pool.submit(workload.run)
        try:
            for process, text in victims:
                self.sleep(_PAUSE, running)
                process.kill()
                self.watched.note(text)
            self.wait(running.done)
        finally:
            workload.stop()
        running.result()

    def finish(self) -> None:
        """Capture and replicate the rest."""
        with connect(self.server.dsn, replication=False) as connection:
            end = current_lsn(connection)
        self.capture.finish(["--until-lsn", str(end)], _SECONDS)
        self.replica.kill()
        self.rest.finish([], _SECONDS)

    def wait(self, done: Callable[[], bool]) -> None:
        """Supervise the processes until ``done`` returns True; raise PgoutputError if it takes too long."""
        end = time.monotonic() + _SECONDS
        while not done():
            self.watch()
            if time.monotonic() > end:
                raise PgoutputError(f"no result within {_SECONDS:.0f} s: see {self.replica.errors}")

    def sleep(self, seconds: float, running: "Future[None]") -> None:
        """Supervise the processes for ``seconds``, or until the workload has ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not running.done():
            self.watch()

    def watch(self) -> None:
        """Restart processes that have ended, and report the progress."""
        begun = any(self.log.glob("segment-*"))
        for process in (self.capture, self.replica) if begun else (self.capture,):
            process.ensure()
            if len(process.ended) > _MAX_ENDS:
                raise PgoutputError(f"{process.arguments[0]} ended {len(process.ended)} times: {process.ended[-1]}")
        if self.watched.samples:
            last = self.watched.samples[-1]
            self.detail(f"{last.captured:,} transactions captured, {last.replicated:,} in the tables")
        time.sleep(_TICK)

    def compared(self, spark: "SparkSession") -> "list[TableReport]":
        """Compare the tables with their source."""
        opened, found = open_log(spark, self.log), []
        for name in sorted({*opened.tables, *SEEN_TABLES}):
            if name not in opened.tables:
                raise PgoutputError(f"the change log has no changes of {name}, which the workload changes")
            self.detail(name)
            table = opened.table(name)
            source = fetch_table(self.server.dsn, table.namespace, table.name, table.current_columns)
            current = read_current(spark, self.warehouse, name).drop("_commit_lsn", "_seq")
            found.append(TableReport(name, table.rows, compare(current, source)))
        return found
