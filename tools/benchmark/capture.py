"""python -m tools.benchmark capture: a capture against pg_recvlogical on the same slot content, and its peak memory.

Every run reads a copy of one slot, in a process of its own, in turns: what else the machine does hits both alike. It
also says for how long the server had no status of the capture at most, which sends one a second: with ``--busy``, amid
processes that want the processors, too.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.demo.processes import printed
from tools.benchmark.cases import HEADLINE
from tools.starvation import busy_loops, watched_statuses

__all__ = ["main"]

_KEPT = "kept"
_SLOT = "read"
_SETTINGS = {
    "autovacuum": "off",
    "max_wal_size": "16GB",
    "logical_decoding_work_mem": "64MB",
    "wal_sender_timeout": "60s",
}
_STATUS_INTERVAL = 1.0
_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Workload:
    """What one slot sends."""

    name: str
    title: str
    write: Callable[[Any, float], None]
    """Writes it over a connection; its size is a part of the usual one."""
    options: dict[str, Any]
    """The options of START_REPLICATION."""
    compared: bool = True
    """Whether pg_recvlogical reads it, too."""


def _rows(connection: Any, share: float) -> None:
    columns, values = ", ".join(("id int8", *HEADLINE.columns)), ", ".join(("id", *HEADLINE.values))
    connection.execute(f"CREATE TABLE read ({columns})")
    for _ in range(round(1500 * share)):
        connection.execute(f"INSERT INTO read SELECT {values} FROM generate_series(1::int8, 1000) AS id")


def _small(connection: Any, share: float) -> None:
    connection.execute("CREATE TABLE read (id int8 PRIMARY KEY, v text)")
    count = round(400_000 * share)
    connection.execute(
        f"DO $$ BEGIN FOR i IN 1..{count} LOOP INSERT INTO read VALUES (i, 'value ' || i); COMMIT; END LOOP; END $$"
    )


def _large(connection: Any, share: float) -> None:
    connection.execute("CREATE TABLE read (id int8, v text)")
    count = round(1_000_000 * share)
    text = "repeat(md5(id::text), 31)"
    connection.execute(f"INSERT INTO read SELECT id, {text} FROM generate_series(1, {count}) AS id")


def _value(connection: Any, share: float) -> None:
    connection.execute("CREATE TABLE read (id int8, v bytea)")
    connection.execute("ALTER TABLE read ALTER v SET STORAGE EXTERNAL")
    size = round(600_000_000 * share)
    connection.execute(f"INSERT INTO read VALUES (1, convert_to(repeat(md5('1'), {size // 32}), 'UTF8'))")


WORKLOADS = (
    Workload("ten", "rows of ten columns, 1,000 a transaction", _rows, {"proto_version": 1}),
    Workload("small", "transactions of one row", _small, {"proto_version": 1}),
    Workload("large", "one transaction of 1 GB", _large, {"proto_version": 1}, False),
    Workload("streamed", "one transaction of 1 GB, streamed", _large, {"proto_version": 2, "streaming": "on"}, False),
    Workload("copied", "a table of 1,500,000 rows, copied", _rows, {"proto_version": 1, "snapshot": True}, False),
    Workload("value", "one value of 600 MB, binary", _value, {"proto_version": 1, "binary": True}, False),
)


@dataclass(frozen=True)
class Run:
    """What one run needed; seconds without the start of the process."""

    seconds: float
    cpu: float
    rows: int
    transactions: int
    peak: int
    """Most resident bytes of the process."""


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    options = _parser().parse_args(arguments)
    if options.child:
        print(json.dumps(_capture(*options.child)))
        return 0
    names = options.workload or [workload.name for workload in WORKLOADS]
    print(f"{options.busy} busy loops a processor, load {os.getloadavg()[0]:.1f}", flush=True)
    with EmbeddedServer(18, _SETTINGS, options.directory) as server, busy_loops(options.busy):
        for workload in WORKLOADS:
            if workload.name in names:
                _measure(server, workload, options.share, options.repeat if workload.compared else 1)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.benchmark capture",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add, names = parser.add_argument, [workload.name for workload in WORKLOADS]
    shown = ", ".join(names)
    add("--workload", nargs="+", choices=names, metavar="NAME", help=f"only these (all): {shown}")
    add("--share", type=float, default=1.0, metavar="F", help="of the usual size (default 1)")
    add("--repeat", type=int, default=3, metavar="N", help="rounds of those that are compared (default 3)")
    add("--busy", type=int, default=0, metavar="N", help="processes for each processor that never wait (default 0)")
    add("--directory", type=Path, metavar="FOLDER", help="where the server's files go")
    add("--child", nargs=3, help=argparse.SUPPRESS)
    return parser


def _measure(server: EmbeddedServer, workload: Workload, share: float, repeat: int) -> None:
    with server.connect() as connection:
        connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [_KEPT])
        connection.execute("CREATE PUBLICATION read FOR ALL TABLES")
        workload.write(connection, share)
        [(end,)] = connection.execute("SELECT pg_current_wal_lsn()::text")
    print(f"{workload.name}: {workload.title}", flush=True)
    for _ in range(repeat):
        with watched_statuses(server) as seen:
            ours = _in_turn(server, lambda: _child(server, workload, end))
        line = (
            f"  capture {ours.rows / ours.seconds:10,.0f} messages/s {ours.transactions / ours.seconds:9,.0f} "
            f"transactions/s  {ours.cpu / ours.rows * 1e6:7.2f} us CPU a message  {ours.peak / 1e6:6,.0f} MB  "
            f"{seen.longest:5.1f} s without a status"
        )
        if workload.compared:
            seconds, cpu = _in_turn(server, lambda: _pg_recvlogical(server, workload, end))
            line += f"  pg_recvlogical {ours.rows / seconds:10,.0f} {cpu / ours.rows * 1e6:7.2f} us"
            line += f"  ratio {seconds / ours.seconds:.2f}"
        print(line, flush=True)
    with server.connect() as connection:
        connection.execute("SELECT pg_drop_replication_slot(%s)", [_KEPT])
        connection.execute("DROP TABLE read")
        connection.execute("DROP PUBLICATION read")


def _in_turn(server: EmbeddedServer, run: Callable[[], Any]) -> Any:
    """Run on a slot of its own: reading moves it."""
    with server.connect() as connection:
        connection.execute("SELECT pg_copy_logical_replication_slot(%s, %s)", [_KEPT, _SLOT])
    try:
        return run()
    finally:
        with server.connect() as connection:
            connection.execute("SELECT pg_drop_replication_slot(%s)", [_SLOT])


def _child(server: EmbeddedServer, workload: Workload, end: str) -> Run:
    options = json.dumps(workload.options)
    return Run(**json.loads(printed("-m", "tools.benchmark", "capture", "--child", server.dsn, options, end)))


class _WithoutPandas(MetaPathFinder):
    """What a capture is installed with, ``[cli,postgres]``, has no pandas; where it is there, pyarrow imports it."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is left out")


def _capture(dsn: str, options: str, end: str) -> dict[str, float]:
    sys.meta_path.insert(0, _WithoutPandas())
    from pgoutput_construct.postgres import capture
    from pgoutput_construct.postgres._capture.capture_session import compile_kernels
    from pgoutput_construct.wire import Lsn

    with tempfile.TemporaryDirectory() as directory:
        compile_kernels()  # that is part of the start, and takes as long as a million messages
        began, cpu = time.perf_counter(), time.process_time()
        given = {"until_lsn": Lsn(end), "new_log": True, "status_interval": _STATUS_INTERVAL, **json.loads(options)}
        done = capture(dsn, _SLOT, ["read"], Path(directory) / "log", **given)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"seconds": seconds, "cpu": cpu, "rows": done.rows, "transactions": done.transactions, "peak": peak}


def _pg_recvlogical(server: EmbeddedServer, workload: Workload, end: str) -> tuple[float, float]:
    """Return the seconds that it takes, with the start of its process, and those of CPU."""
    program = server.bin_path / "pg_recvlogical"
    given = {"publication_names": "read", **workload.options}
    pairs = [word for name, value in given.items() for word in ("-o", f"{name}={value}")]
    with tempfile.TemporaryDirectory() as directory:
        target = ["--file", f"{directory}/out", "--endpos", end, "--start", "--slot", _SLOT]
        began, cpu = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([program, "-d", server.dsn, *target, *pairs], check=True, capture_output=True)
        seconds, used = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        return seconds, used.ru_utime + used.ru_stime - cpu.ru_utime - cpu.ru_stime
