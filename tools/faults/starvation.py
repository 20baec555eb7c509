"""python -m tools.faults starved: a first capture, with kernels to compile, among processes that compete for the CPUs.

The server waits for a status for a few seconds only. No connection may be lost, and the log must have every row: those
that were copied, and those that came meanwhile.
"""

import argparse
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.changelog.verify import verify
from pgoutput_construct.demo.processes import printed, running
from pgoutput_construct.demo.server import VERSIONS, EmbeddedServer
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.wire import Insert, parse
from tools.background import in_background
from tools.servers import RELEASES, open_server
from tools.starvation import Statuses, busy_loops, watched_statuses

__all__ = ["main", "starve"]

_ENDED_BY_SERVER = "terminating walsender process due to replication timeout"
_SQL = """CREATE TABLE copied (id int PRIMARY KEY, v text, n numeric, t timestamptz);
    INSERT INTO copied SELECT i, md5(i::text), i, now() FROM generate_series(1, {rows}) i;
    CREATE TABLE written (id int PRIMARY KEY);
    CREATE PUBLICATION p FOR ALL TABLES"""
_SLOT = "starved"


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    options = _parser().parse_args(arguments)
    good = True
    for version in options.versions:
        with open_server(version, {"wal_sender_timeout": f"{options.timeout}s"}) as server:
            try:
                seen, problems = starve(server, options.loops, options.rows, options.seconds, options.compiled)
            except PgoutputError as error:
                seen, problems = Statuses(), [f"{type(error).__name__}: {error}"]
        words = "; ".join(problems) or "nothing lost"
        print(
            f"PostgreSQL {version}, {options.loops} busy loops a processor: at most {seen.longest:.1f} s without a "
            f"status (wal_sender_timeout {options.timeout} s), {len(seen.walsenders)} connections: {words}",
            flush=True,
        )
        good = good and not problems
    return 0 if good else 1


def starve(
    server: EmbeddedServer, loops: int, rows: int, seconds: float, compiled: bool = False
) -> tuple[Statuses, list[str]]:
    """Run a capture for some seconds from its first stream on; return what the server saw, and what is wrong."""
    with server.connect() as admin, tempfile.TemporaryDirectory() as folder:
        admin.execute(_SQL.format(rows=rows).encode())
        # A process that finds no kernels of another one.
        environment = {} if compiled else {"NUMBA_CACHE_DIR": f"{folder}/kernels"}
        written = 0

        def write(done: threading.Event) -> None:
            nonlocal written
            with server.connect() as connection:
                while not done.wait(0.05):
                    written += 1
                    connection.execute("INSERT INTO written VALUES (%s)", [written])

        capture = running(*_command(server, folder), env=environment)
        with watched_statuses(server) as seen, busy_loops(loops), in_background(write), capture as child:
            while child.poll() is None and not seen.walsenders:
                time.sleep(0.1)
            time.sleep(seconds)
            child.terminate()
            status = child.wait()
        [(end,)] = admin.execute("SELECT pg_current_wal_lsn()::text").fetchall()
        printed(*_command(server, folder, "--until-lsn", end), env=environment)
        problems = [*_problems(ChangeLog(Path(folder) / "log"), rows, written)]
    if status:
        problems.append(f"the capture ended with status {status}")
    if lost := server.log.count(_ENDED_BY_SERVER):
        problems.append(f"the server ended {lost} connections: {_ENDED_BY_SERVER}")
    return seen, problems


def _command(server: EmbeddedServer, folder: str, *options: str) -> list[str]:
    command = ["-m", "pgoutput_construct.cli", "capture", server.dsn, f"{folder}/log", "--slot", _SLOT]
    return [*command, "--publication", "p", "--create-slot", "--snapshot", *options]


def _problems(log: ChangeLog, rows: int, written: int) -> Iterator[str]:
    """Compare a log with what was written."""
    yield from verify(log.store).problems
    names = {each.relation.relation_oid: each.relation.name for each in log.descriptions()}
    found: dict[str, set[bytes]] = {"copied": set(), "written": set()}
    for entry in log.entries(copied=True):
        message = parse(entry.payload, **{**log.segment(entry.seq).options.layout(), **entry.states})
        if isinstance(message, Insert):
            found[names[message.relation_oid]].add(bytes(message.new[0]))  # type: ignore[arg-type]
    for table, count in {"copied": rows, "written": written}.items():
        if found[table] != {b"%d" % number for number in range(1, count + 1)}:
            yield f"of {count} rows of {table} the log has {len(found[table])}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.faults starved", description=__doc__)
    add = parser.add_argument
    add("--versions", type=int, nargs="+", choices=RELEASES, default=VERSIONS, help="PostgreSQL's")
    add("--loops", type=int, default=4, metavar="N", help="processes for each processor that never wait (default 4)")
    add("--timeout", type=int, default=10, metavar="S", help="wal_sender_timeout in seconds (default 10)")
    add("--rows", type=int, default=100_000, metavar="N", help="of the table that is copied (default 100000)")
    add("--compiled", action="store_true", help="let the capture find kernels that were compiled before")
    add("--seconds", type=float, default=30.0, metavar="S", help="how long a capture reads (default 30)")
    return parser
