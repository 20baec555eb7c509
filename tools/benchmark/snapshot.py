"""python -m tools.benchmark snapshot: tables into a log, against psql's COPY of the same tables to files.

Both have as many connections, one table each, and flush what they write to the disk. A third run has writers beside
it, and tells how much WAL the server keeps for the slot meanwhile.
"""

import argparse
import os
import resource
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from pgoutput_construct.demo.processes import printed
from pgoutput_construct.demo.server import EmbeddedServer
from pgoutput_construct.postgres import drop_slot
from tools.background import in_background
from tools.benchmark.cases import HEADLINE
from tools.benchmark.errors import Unavailable

__all__ = ["main"]

_SETTINGS = {
    "autovacuum": "off",
    "max_wal_size": "16GB",
    "fsync": "off",
    "wal_level": "logical",
    "shared_buffers": "512MB",
}
_SLOT = "snapshot"


@dataclass
class _Kept:
    """WAL while a capture runs."""

    written: int = 0
    """Bytes that the server wrote in all."""
    kept: int = 0
    """The maximum bytes retained for the slot."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.benchmark snapshot", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="in all tables together (default 1000000)")
    parser.add_argument("--workers", type=int, default=2, help="connections, and tables (default 2)")
    parser.add_argument("--repeat", type=int, default=3, help="rounds (default 3)")
    parser.add_argument("--binary", action="store_true", help="in binary format, both")
    parser.add_argument("--directory", type=Path, help="where files go")
    options = parser.parse_args(arguments)
    psql = shutil.which("psql")
    if psql is None:
        raise Unavailable("psql is not on the PATH")
    place, binary = options.directory, options.binary
    with EmbeddedServer(18, _SETTINGS, place) as server:
        names = _fill(server, options.rows, options.workers)
        for _ in range(options.repeat):
            theirs = _measure(
                server, options.directory, lambda folder: _copy(server, psql, names, folder, options.binary)
            )
            ours = _measure(
                server, options.directory, lambda folder: _snapshot(server, len(names), folder, options.binary)
            )
            print(
                f"COPY to files {theirs[0]:6.1f} s, snapshot {ours[0]:6.1f} s ({options.rows / ours[0]:,.0f} rows/s): "
                f"{ours[0] / theirs[0]:.2f} times;  CPU with the server's {theirs[1] / options.rows * 1e6:.2f} and "
                f"{ours[1] / options.rows * 1e6:.2f} us a row: {ours[1] / theirs[1]:.2f} times",
                flush=True,
            )
        with _written(server) as wal:
            _measure(server, place, lambda folder: _snapshot(server, len(names), folder, binary))
        print(
            f"with writers: {wal.written / 1e6:,.1f} MB of WAL, at most {wal.kept / 1e6:,.1f} MB retained for the slot"
        )
    return 0


def _fill(server: EmbeddedServer, rows: int, tables: int) -> list[str]:
    columns, values = ", ".join(("id int8 PRIMARY KEY", *HEADLINE.columns)), ", ".join(("id", *HEADLINE.values))
    names = [f"rows_{number}" for number in range(tables)]
    with server.connect() as connection:
        for name in names:
            connection.execute(f"CREATE TABLE {name} ({columns})".encode())
            query = f"INSERT INTO {name} SELECT {values} FROM generate_series(1::int8, {rows // tables}) AS id"
            connection.execute(query.encode())
            connection.execute(f"VACUUM (FREEZE, ANALYZE) {name}".encode())
        connection.execute("CREATE TABLE busy (id int8 PRIMARY KEY, v text)")
        connection.execute("CREATE PUBLICATION snapshot FOR ALL TABLES")
        connection.execute("CHECKPOINT")
    return names


def _measure(server: EmbeddedServer, directory: Path | None, run: Callable[[Path], None]) -> tuple[float, float]:
    """Return the seconds that a run took, and the CPU of its processes and of the server's that have ended."""
    folder = Path(tempfile.mkdtemp(prefix="snapshot-", dir=directory))
    try:
        before, begun = _cpu(server), time.monotonic()
        run(folder)
        return time.monotonic() - begun, _cpu(server) - before
    finally:
        shutil.rmtree(folder)


def _cpu(server: EmbeddedServer) -> float:
    pid = int((server.data_directory / "postmaster.pid").read_text().split()[0])
    time.sleep(0.2)  # until backends of disconnected clients have ended
    postmaster, own = psutil.Process(pid).cpu_times(), resource.getrusage(resource.RUSAGE_CHILDREN)
    return float(postmaster.children_user + postmaster.children_system + own.ru_utime + own.ru_stime)


def _copy(server: EmbeddedServer, psql: str, names: list[str], folder: Path, binary: bool) -> None:
    form = " WITH (FORMAT binary)" if binary else ""
    commands = [[psql, "-Xqc", f"\\copy {name} to '{folder / name}'{form}", server.dsn] for name in names]
    children = [subprocess.Popen(command) for command in commands]
    for child in children:
        if child.wait():
            raise Unavailable("psql failed")
    for name in names:
        with (folder / name).open("rb") as file:
            os.fsync(file.fileno())


def _snapshot(server: EmbeddedServer, workers: int, folder: Path, binary: bool) -> None:
    command = ["-m", "pgoutput_construct.cli", "capture", server.dsn, str(folder / "log"), "--slot"]
    command += [_SLOT, "--publication", "snapshot", "--create-slot", "--snapshot", "--workers", str(workers)]
    command += ["--until-lsn", "0/1", *(["--binary"] if binary else [])]
    # Modules are compiled once, as those of an installed package are.
    printed(*command, env={"PYTHONDONTWRITEBYTECODE": ""})
    with server.connect() as connection:
        drop_slot(connection, _SLOT)


@contextmanager
def _written(server: EmbeddedServer) -> Iterator[_Kept]:
    """Write small transactions until the block ends, and look at the slot four times a second."""
    wal = _Kept()
    query = "SELECT pg_current_wal_lsn() - restart_lsn FROM pg_replication_slots WHERE slot_name = %s"

    def write(done: threading.Event) -> None:
        with server.connect() as connection:
            (start,) = connection.execute("SELECT pg_current_wal_lsn()").fetchone() or ("",)
            number = 0
            while not done.wait(0.002):
                number += 1
                connection.execute("INSERT INTO busy VALUES (%s, repeat('x', 500))", [number])
                if number % 100 == 0 and (row := connection.execute(query, [_SLOT]).fetchone()) and row[0] is not None:
                    wal.kept = max(wal.kept, int(row[0]))
            wal.written = int((connection.execute("SELECT pg_current_wal_lsn() - %s", [start]).fetchone() or (0,))[0])
            connection.execute("TRUNCATE busy")

    with in_background(write):
        yield wal
