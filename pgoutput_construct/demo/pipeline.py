"""The whole pipeline, from a real server to tables that are compared with it, as a list of steps."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pgoutput_construct.demo.server import EmbeddedServer
from pgoutput_construct.demo.workload import Workload, create_shop
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.postgres import CaptureProgress, capture, connect, current_lsn, fetch_table
from pgoutput_construct.spark import (
    Comparison,
    OpenLog,
    Written,
    compare,
    open_log,
    read_table,
    spark_session,
    write_tables,
)

__all__ = ["SLOT", "DemoOptions", "Report", "TableReport", "run_demo"]

SLOT = PUBLICATION = "shop"
SEEN_TABLES = ("public.carts", "public.customers", "public.order_lines", "public.orders")
"""The tables of the shop that must be in the result, so that a lost table is noticed."""


@dataclass(frozen=True)
class DemoOptions:
    """What the user can choose."""

    directory: Path
    """Where the change log and the tables go; it must not contain a log yet."""
    scale: float = 1.0
    """Amount of work: 1 is about 7,000 rows at first, and 40,000 changes."""
    master: str = "local[*]"
    """Spark's master."""
    binary: bool = False
    """Whether values are sent in binary format."""
    version: int = 18
    """The embedded PostgreSQL's major version."""


@dataclass(frozen=True)
class TableReport:
    """One table: what was written, and whether it equals its source."""

    name: str
    written: Written
    comparison: Comparison


@dataclass(frozen=True)
class Report:
    """What the demo has done."""

    log: Path
    progress: CaptureProgress
    tables: tuple[TableReport, ...]

    @property
    def equal(self) -> bool:
        """Whether every table equals its source."""
        return all(table.comparison.equal for table in self.tables)


Tell = Callable[[str], None]
"""Called with a description of what is being done."""


def run_demo(options: DemoOptions, step: Tell, detail: Tell) -> Report:
    """Run the demo; ``step`` is called when a part begins, ``detail`` with its progress.

    Raises PgoutputError for any failure; a table that differs from its source is in the report instead.
    """
    log = options.directory / "changelog"
    step(f"starting an embedded PostgreSQL {options.version}")
    with EmbeddedServer(options.version) as server:
        create_shop(server, options.scale)
        step("copying the shop's tables, running its workload and capturing its changes")
        progress = _capture_workload(server, options, log, detail)
        step("starting Spark")
        with spark_session(options.master) as spark:
            step("decoding the change log into one dataset per table")
            opened = open_log(spark, log)
            written = write_tables(opened, options.directory / "tables")
            step("rebuilding the tables from their copies and changes and comparing them with the source")
            names = sorted({*opened.tables, *SEEN_TABLES})
            tables = tuple(_table(opened, server, name, written, detail) for name in names)
    return Report(log, progress, tables)


def _capture_workload(server: EmbeddedServer, options: DemoOptions, log: Path, detail: Tell) -> CaptureProgress:
    """Capture while the workload runs, then up to the end: the second capture resumes where the first ended.

    The workload waits for the capture: PostgreSQL 18 does not stream what it knows to be rolled back already.
    """
    workload, connected = Workload(server, options.scale), threading.Event()
    with ThreadPoolExecutor(1, "workload") as pool:
        running = pool.submit(_run_once_connected, workload, connected)
        try:
            first = _capture(server, options, log, detail, connected, stop=running.done)
        finally:
            workload.stop()
            connected.set()
    running.result()
    with connect(server.dsn, replication=False) as connection:
        end = current_lsn(connection)
    last = _capture(server, options, log, detail, connected, until_lsn=end)
    return _together(first, last)


def _run_once_connected(workload: Workload, connected: threading.Event) -> None:
    connected.wait()
    workload.run()


def _capture(
    server: EmbeddedServer, options: DemoOptions, log: Path, detail: Tell, connected: threading.Event, **ending: Any
) -> CaptureProgress:
    def tell(progress: CaptureProgress) -> None:
        if progress.connected:
            connected.set()
        captured = f"{progress.rows:,} messages captured, confirmed up to {progress.confirmed_lsn}"
        detail(f"{progress.copies.rows:,} rows copied, {captured}")

    progress = capture(
        server.dsn,
        SLOT,
        [PUBLICATION],
        log,
        create_slot=True,
        snapshot=True,
        binary=options.binary,
        two_phase=True,
        on_progress=tell,
        **ending,
    )
    if progress.ended_by not in ("stop", "until_lsn"):
        raise KeyboardInterrupt
    return progress


def _together(first: CaptureProgress, last: CaptureProgress) -> CaptureProgress:
    counts = ("rows", "payload_bytes", "segments", "transactions", "dropped", "empty", "reconnects")
    return replace(last, **{name: getattr(first, name) + getattr(last, name) for name in counts})


def _table(log: OpenLog, server: EmbeddedServer, name: str, written: dict[str, Written], detail: Tell) -> TableReport:
    if name not in written:
        raise PgoutputError(f"the change log has no changes of {name}, which the workload changes")
    detail(name)
    table = log.table(name)
    changes = read_table(log.spark, written[name].path)
    source = fetch_table(server.dsn, table.namespace, table.name, table.current_columns)
    return TableReport(name, written[name], compare(log.state(name, changes), source))
