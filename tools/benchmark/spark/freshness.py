"""python -m tools.benchmark freshness: seconds from COMMIT until a table of the warehouse has the row."""

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.demo.freshness import Freshness
from pgoutput_construct.demo.processes import Supervised
from pgoutput_construct.postgres import create_slot
from pgoutput_construct.spark.formats import FORMATS
from tools.background import in_background
from tools.benchmark.spark.runs import cpu_of_processes

if TYPE_CHECKING:
    import psycopg

__all__ = ["main"]

_MUST: Final = 15.0
"""Seconds in the median."""
_WAIT: Final = 120.0
"""Seconds in which the pipeline is to be there, and one more a table."""
_SETTLED: Final = 20.0
"""Seconds after which the last changes are in the tables, and these are maintained."""
_IDLE: Final = 30.0
"""Seconds in which it is measured what ``replicate`` takes without changes."""
_SLOT: Final = "freshness"
_KEPT: Final = 20_000
"""So many rows a table has: each change of a row that is there makes room for one that comes."""
_CREATE: Final = "CREATE TABLE t{0} (id bigint PRIMARY KEY, note text, amount numeric(12, 2), at timestamptz)"
_FILL: Final = "INSERT INTO t{0} SELECT i, 'old', i, now() FROM generate_series(1, %s) i"
_CHANGE: Final = """
    WITH new AS (INSERT INTO t{0} SELECT i, 'new ' || i, i, now() FROM generate_series(%(next)s, %(next)s + 3) i),
    changed AS (UPDATE t{0} SET note = 'changed' WHERE id BETWEEN %(next)s - 5000 AND %(next)s - 4998)
    DELETE FROM t{0} WHERE id BETWEEN %(next)s - 19990 AND %(next)s - 19988
"""
_CHANGES: Final = 10
"""Changes of one transaction: four rows come, three change, three go."""


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit status: 1 when the goal is missed."""
    options = _parser().parse_args(arguments)
    missed = [into for into in options.into if _median(into, options) > _MUST]
    return 1 if missed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.benchmark freshness", description=__doc__)
    parser.add_argument("--into", nargs="+", choices=sorted(FORMATS), default=sorted(FORMATS), help="sinks (all)")
    parser.add_argument("--rate", type=int, default=2000, metavar="N", help="changes a second (default 2000)")
    parser.add_argument("--seconds", type=float, default=60.0, help="for how long it is measured (default 60)")
    parser.add_argument("--tables", type=int, default=2, metavar="N", help="tables that are written (default 2)")
    parser.add_argument("--segment-seconds", default="2", metavar="SECONDS", help="of the capture (default 2)")
    parser.add_argument("--interval", default="1", metavar="SECONDS", help="of replicate (default 1)")
    parser.add_argument("--master", default="local[2]", help="of Spark (default local[2])")
    return parser


def _median(into: str, options: argparse.Namespace) -> float:
    """Measure one sink, and print what was seen; return the median."""
    with tempfile.TemporaryDirectory(prefix="freshness-") as place, EmbeddedServer(18) as server:
        with server.connect() as connection:
            for number in range(options.tables):
                connection.execute(_CREATE.format(number).encode())
                connection.execute(_FILL.format(number).encode(), [_KEPT])
            connection.execute("CREATE PUBLICATION freshness FOR ALL TABLES")
            create_slot(connection, _SLOT)
        watch = Freshness(Path(place, "log"), Path(place, "warehouse"))
        with _pipeline(server, Path(place), into, options) as replica, watch:
            with _writing(server, options) as written:
                _await(watch, options.tables)
                first, begun = len(watch.lags), written[0]
                time.sleep(options.seconds)
                rate = (written[0] - begun) / options.seconds
            median = _report(into, rate, watch, first)
            print(f"{into}: replicate without changes: {_idle_share(replica):.1%} of a core", flush=True)
        return median


def _idle_share(replica: Supervised) -> float:
    """Return the part of a core that a command takes when it has nothing to do."""
    if replica.pid is None:
        raise SystemExit("replicate has ended")
    time.sleep(_SETTLED)
    begun, before = time.monotonic(), cpu_of_processes(replica.pid)
    time.sleep(_IDLE)
    after = cpu_of_processes(replica.pid)
    # Workers that end meanwhile take their seconds with them.
    spent = sum(seconds - before.get(pid, 0.0) for pid, seconds in after.items())
    return spent / (time.monotonic() - begun)


def _report(into: str, rate: float, watch: Freshness, first: int) -> float:
    measured = watch.lags[first:]
    lags = sorted(lag for each in measured for lag in each.lags)
    if not lags:
        raise SystemExit(f"{into}: no row came; nothing was measured")
    median, most = statistics.median(lags), lags[int(len(lags) * 0.95)]
    print(
        f"{into}: {rate:,.0f} changes a second, {len(lags):,} commits seen by {len(measured)} versions of tables: "
        f"median {median:.1f} s, 95 % {most:.1f} s (must {_MUST:.0f})",
        flush=True,
    )
    return median


@contextmanager
def _pipeline(server: EmbeddedServer, place: Path, into: str, options: argparse.Namespace) -> Iterator[Supervised]:
    """Capture and replicate in processes of their own while the block runs; yields the latter."""
    log, said = str(place / "log"), ["--publication", "freshness", "--slot", _SLOT, "--snapshot", "--new-log"]
    said += ["--segment-seconds", options.segment_seconds]
    capture = Supervised(["capture", server.dsn, log, *said], place / "capture.txt")
    goal = ["--into", into, "--warehouse", str(place / "warehouse"), "--continuous", "--master", options.master]
    replica = Supervised(["replicate", log, *goal, "--interval", options.interval], place / "replicate.txt")
    capture.ensure()
    replica.ensure()
    try:
        yield replica
    except SystemExit as error:
        words = (f"{each.errors.name}: {each.errors.read_text()[-500:]}" for each in (capture, replica))
        raise SystemExit("\n".join([str(error), *words])) from None
    finally:
        replica.kill()
        capture.kill()


@contextmanager
def _writing(server: EmbeddedServer, options: argparse.Namespace) -> Iterator[list[int]]:
    """Write at the rate while the block runs; yields a list of how many changes there were."""
    written = [0]

    def write(done: threading.Event) -> None:
        with server.connect() as connection:
            begun = time.monotonic()
            for number in count():
                if done.wait(max(0.0, begun + number * _CHANGES / options.rate - time.monotonic())):
                    return
                _write(connection, number, options.tables)
                written[0] += _CHANGES

    with in_background(write):
        yield written


def _write(connection: "psycopg.Connection[Any]", number: int, tables: int) -> None:
    place, table = divmod(number, tables)
    connection.execute(_CHANGE.format(table).encode(), {"next": _KEPT + 1 + 4 * place})


def _await(watch: Freshness, tables: int) -> None:
    """Wait until all tables are there, and have been brought up to date twice: Java is warm then."""
    end = time.monotonic() + _WAIT + tables
    while watch.tables < tables or len(watch.lags) < 2 * tables:
        if time.monotonic() > end:
            raise SystemExit(f"the tables are not there after {_WAIT + tables:.0f} s")
        time.sleep(0.2)
