"""python -m tools.faults snapshot: copies tables while writers change them, and kills what copies them.

That is the capture, or the connections of its copies. Chunks are small, and reading is slow, so that
copies are interrupted.
"""

import argparse
import json
import random
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import psycopg
from psycopg import errors

from pgoutput_construct.changelog import ChangeLog, SegmentLimits
from pgoutput_construct.changelog._facts.copies import copies_of
from pgoutput_construct.changelog._segment.events import COPYING_TABLE, events_of
from pgoutput_construct.changelog.verify import verify
from pgoutput_construct.demo.embedded_server import VERSIONS
from pgoutput_construct.demo.processes import running
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.postgres import capture, drop_slot, snapshot
from tools.background import in_background
from tools.faults.errors import FaultsError
from tools.faults.snapshot_tables import ALTERATIONS, LATER, TABLES, WRITES, differences, published
from tools.servers import RELEASES, open_server

__all__ = ["Attack", "Server", "attack", "main"]

_WRITERS: Final = 3
_RELEASES: Final = [release for release in RELEASES if release >= 15]
"""Of PostgreSQL, those that have row filters and column lists."""
_SLOT: Final = "attacked"
_EXPECTED: Final = (
    errors.UniqueViolation,
    errors.DeadlockDetected,
    errors.LockNotAvailable,
    errors.SerializationFailure,
)
"""Errors that writers cause each other; the last one where a row was moved to another partition meanwhile."""
_PAUSE: Final = 3.0
"""Seconds after which the connections of copies are ended, at most."""
Say = Callable[[str], object]
_SETTINGS: Final = {"autovacuum": "off", "lock_timeout": "20s", "max_wal_size": "4GB"}


@dataclass(frozen=True)
class Attack:
    """The size of an attack."""

    rows: int = 100_000
    """Rows of each table."""
    kills: int = 20
    """The number of kills of the capture."""
    workers: int = 2
    """Connections that copy."""
    seconds: float = 2.0
    """The mean time until a capture is killed, in seconds."""
    binary: bool = False
    chunk_pages: int = 8
    """Pages of a chunk."""
    rate: float = 2.0
    """Megabytes (10^6 bytes) that copies read a second."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.faults snapshot", description=__doc__)
    defaults = Attack()
    parser.add_argument("--rows", type=int, default=defaults.rows, help=f"of each table (default {defaults.rows})")
    parser.add_argument("--kills", type=int, default=defaults.kills, help=f"of the capture (default {defaults.kills})")
    parser.add_argument("--workers", type=int, default=defaults.workers, help="connections that copy")
    parser.add_argument("--seconds", type=float, default=defaults.seconds, help="how long a capture lives in the mean")
    parser.add_argument("--rate", type=float, default=defaults.rate, help="MB a second that copies read")
    parser.add_argument("--rounds", type=int, default=1, help="each with a database of its own (default 1)")
    parser.add_argument("--versions", type=int, nargs="+", choices=_RELEASES, default=VERSIONS, help="PostgreSQL's")
    parser.add_argument("--dsn", help="of a server of another version, instead: it gets a database, and a slot")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of what is drawn")
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}", flush=True)
    asked = Attack(options.rows, options.kills, options.workers, options.seconds, rate=options.rate)
    bad = interrupted = 0
    for server in _servers(options.versions, options.dsn):
        for number in range(options.rounds):
            directory, seed = Path(tempfile.mkdtemp(prefix="snapshot-")), options.seed + number
            problems = attack(server, f"attacked{number}", directory, asked, seed, lambda text: print(text, flush=True))
            with server.connect() as connection:
                version = connection.info.server_version // 10000
                drop_slot(connection, f"{_SLOT}_attacked{number}")
                connection.execute(f"DROP DATABASE attacked{number} WITH (FORCE)".encode())
            print(f"PostgreSQL {version}: {'; '.join(problems) or 'the log has what the source has'}", flush=True)
            bad += bool(problems)
            interrupted += _interruptions(directory)
            if not problems:
                shutil.rmtree(directory)
    print(f"{interrupted:,} interrupted copies were resumed; {bad} logs are wrong", flush=True)
    return 1 if bad else 0


class Server(Protocol):
    """The attacked server."""

    @property
    def dsn(self) -> str:
        """The connection string of a database."""

    def connect(self, **options: Any) -> "psycopg.Connection[Any]":
        """Open an autocommit connection; options are libpq's and psycopg's, such as ``dbname``."""


@dataclass(frozen=True)
class _Given:
    """A server that runs already."""

    dsn: str

    def connect(self, **options: Any) -> "psycopg.Connection[Any]":
        return psycopg.connect(self.dsn, **{"autocommit": True, **options})


def _servers(versions: Sequence[int], dsn: str | None) -> Iterator[Server]:
    if dsn is not None:
        yield _Given(dsn)
        return
    for version in versions:
        with open_server(version, _SETTINGS) as server:
            yield server


def attack(server: Server, dbname: str, directory: Path, asked: Attack, seed: int, say: Say) -> list[str]:
    """Copy tables into a log while they change and the capture is killed; return the problems."""
    with server.connect() as admin:
        admin.execute(f"CREATE DATABASE {dbname}".encode())
    dsn = psycopg.conninfo.make_conninfo(server.dsn, dbname=dbname)
    with server.connect(dbname=dbname) as connection:
        for statements in TABLES.values():
            for statement in statements:
                connection.execute(statement.replace("{rows}", str(asked.rows)).encode())
        names = tuple(name for name in TABLES if name != LATER)
        options = "WITH (publish_via_partition_root = true)"
        connection.execute(f"CREATE PUBLICATION p FOR TABLE {published(names)} {options}".encode())
    chance = random.Random(seed)
    given: dict[str, Any] = {
        **{"slot": f"{_SLOT}_{dbname}", "publications": ["p"], "directory": str(directory / "log")},
        **{"create_slot": True, "snapshot": True, "workers": asked.workers, "status_interval": 1.0},
        **{"binary": asked.binary},
    }
    slowly = {"chunk_pages": asked.chunk_pages, "snapshot_rate": asked.rate * 1e6}
    with _writing(server, dbname, asked.rows, seed):
        for number in range(asked.kills):
            if number == asked.kills // 2:
                with server.connect(dbname=dbname) as connection:
                    connection.execute(f"ALTER PUBLICATION p ADD TABLE {published((LATER,))}".encode())
            _run_and_kill(server, {"dsn": dsn, **given, **slowly}, chance.uniform(0, 2 * asked.seconds), chance)
            say(f"killed {number + 1} times; {_copied(directory)}")
    capture(dsn, **given, until_idle=1.0, handle_signals=False)
    snapshot(dsn, directory / "log", ["keyed", "whole"], handle_signals=False)
    capture(dsn, **given, until_idle=1.0, handle_signals=False)
    say(_copied(directory))
    log = ChangeLog(directory / "log")
    return [*differences(dsn, log), *verify(directory / "log").problems]


def _copied(directory: Path) -> str:
    try:
        index = ChangeLog(directory / "log").index
    except PgoutputError:
        return "no log"
    rows = sum(row["rows"] for row in index.entries("snapshots").to_pylist())
    return f"{len(list(copies_of(index)))} copies complete, {rows:,} rows copied"


def _interruptions(directory: Path) -> int:
    """Return how often copies in a log were resumed."""
    plans = [tuple(event.details["chunks"]) for event in events_of(ChangeLog(directory / "log").index, COPYING_TABLE)]
    return len(plans) - len({*plans})


def _run_and_kill(server: Server, given: dict[str, Any], seconds: float, chance: random.Random) -> None:
    """Kill a capture some seconds after it has connected; its copies lose their connections before."""
    limits = asdict(SegmentLimits(seconds=0.2))
    arguments = json.dumps({**given, "limits": limits, "until_lsn": None, "duration": 600})
    with running("-m", "tools.faults.child", arguments, stderr=subprocess.PIPE) as child:
        while child.poll() is None and not _is_read(server, given["slot"]):
            time.sleep(0.05)
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            time.sleep(min(chance.uniform(0, _PAUSE), left))
            with server.connect() as connection:
                connection.execute(_TERMINATE)
        died = child.poll()
        said = child.stderr.read().decode() if died is not None and child.stderr else ""
    if died is not None:
        raise FaultsError(f"the capture ended by itself, with status {died}: {said[-2000:]}")


def _is_read(server: Server, slot: str) -> bool:
    with server.connect() as connection:
        query = "SELECT FROM pg_replication_slots WHERE slot_name = %s AND active AND confirmed_flush_lsn IS NOT NULL"
        return connection.execute(query, [slot]).fetchone() is not None


_TERMINATE: Final = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND (query LIKE 'COPY (%' OR query LIKE '%pg_export_snapshot%')"""
"""Ends what copies tables, or exported its snapshot."""


@contextmanager
def _writing(server: Server, dbname: str, rows: int, seed: int) -> Iterator[None]:
    """Write from several connections until the block ends; what fails in a writer is raised then."""
    chances = [random.Random(f"{seed} {number}") for number in range(_WRITERS + 1)]
    writers = [partial(_write, server, dbname, rows, chance) for chance in chances[:-1]]
    with in_background(*writers, partial(_alter, server, dbname, chances[-1])):
        yield


def _write(server: Server, dbname: str, rows: int, chance: random.Random, done: threading.Event) -> None:
    with server.connect(dbname=dbname) as connection:
        while not done.wait(chance.uniform(0, 0.02)):
            with suppress(*_EXPECTED):
                _transaction(connection, rows, chance)


def _transaction(connection: "psycopg.Connection[Any]", rows: int, chance: random.Random) -> None:
    end = chance.choices(["COMMIT", "ROLLBACK", "PREPARE"], [8, 2, 1])[0]
    gid = f"g{chance.getrandbits(60)}"
    try:
        connection.execute("BEGIN")
        for _ in range(chance.randrange(1, 6)):
            if chance.random() < 0.2:
                connection.execute("SAVEPOINT s")
            statement = chance.choice(WRITES).replace("{n}", str(chance.randrange(10**6)))
            connection.execute(statement.replace("{row}", str(chance.randrange(1, min(rows, 10_000)))).encode())
            if chance.random() < 0.1:
                connection.execute("SAVEPOINT s; ROLLBACK TO s")
        if end == "PREPARE":
            connection.execute(f"PREPARE TRANSACTION '{gid}'".encode())
            connection.execute(f"{chance.choice(['COMMIT', 'COMMIT', 'ROLLBACK'])} PREPARED '{gid}'".encode())
        else:
            connection.execute(end.encode())
    except psycopg.Error:
        connection.execute("ROLLBACK")
        raise


def _alter(server: Server, dbname: str, chance: random.Random, done: threading.Event) -> None:
    with server.connect(dbname=dbname) as connection:
        while not done.wait(chance.uniform(0.5, 3)):
            with suppress(*_EXPECTED):
                statement = chance.choice(ALTERATIONS).replace("{n}", str(chance.randrange(10**8)))
                connection.execute(statement.encode())
