"""python -m tools.benchmark client: the live client against psycopg2's replication cursor and a parser by hand.

Both are programs that follow a slot, pass each change on and confirm each transaction. They read copies of one slot, in
a process of their own for each run, in turns: what else the machine does hits both alike. Before they are measured,
each writes the changes to a file, and the files must be equal: the same changes, with values of the same types.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.demo.processes import printed
from pgoutput_construct.errors import PgoutputError
from tools.benchmark.cases import HEADLINE
from tools.benchmark.consumers import CONSUMERS, Consumer, ConsumerRun, code_lines
from tools.benchmark.errors import BenchmarkError, Unavailable
from tools.benchmark.progress import Progress
from tools.benchmark.report import machine, machine_text, table_text

if TYPE_CHECKING:
    import psycopg

__all__ = ["FOLLOWED", "ConsumerComparison", "FollowedWorkload", "check_equal", "compare", "main"]

GOAL: Final = 1.0
"""The changes per second of the live client must be at least those of psycopg2 times this."""
_VERSION: Final = 18
_SETTINGS: Final = {
    "autovacuum": "off",
    "max_wal_size": "16GB",
    "synchronous_commit": "off",
    "logical_decoding_work_mem": "64MB",
    "wal_sender_timeout": "60s",
}
_KEPT: Final = "followed_kept"
_READ: Final = "followed_read"
_PUBLICATION: Final = "followed"
_LIBRARIES: Final = ("psycopg", "psycopg2-binary", "pyarrow", "numba", "numpy")
_SECONDS: Final = 10.0
"""Seconds within which a server notices that a client has ended."""
_TENTH: Final = 10
"""Of ten changes, seven are inserts, two updates and one is a delete."""

_TABLES: Final = f"""
    CREATE TABLE followed (id int8 PRIMARY KEY, {", ".join(HEADLINE.columns)});
    CREATE TABLE noted (id int4 PRIMARY KEY, body text, facts jsonb, mark uuid, raw bytea);
    ALTER TABLE noted ALTER body SET STORAGE EXTERNAL;
    CREATE TABLE odd (id int4, name text);
    ALTER TABLE odd REPLICA IDENTITY FULL;
    CREATE PUBLICATION {_PUBLICATION} FOR TABLE followed, noted, odd
"""
_EVERY_KIND: Final = (
    """INSERT INTO noted VALUES (1, repeat('body', 1000), '{"a": [1, null]}', md5('1')::uuid, '\\x00ff')""",
    "INSERT INTO noted VALUES (2)",
    "UPDATE noted SET mark = NULL WHERE id = 1",
    "UPDATE noted SET id = 3 WHERE id = 1",
    "DELETE FROM noted WHERE id = 2",
    "INSERT INTO odd VALUES (1, 'è'), (2, NULL)",
    "UPDATE odd SET name = 'x'",
    "DELETE FROM odd WHERE id = 2",
    "TRUNCATE noted, odd",
)
"""A transaction for each kind of message: they precede the others, and are compared like them."""
_TRANSACTIONS: Final = f"""DO $$ BEGIN
    FOR number IN 0..{{transactions}} - 1 LOOP
        INSERT INTO followed SELECT {", ".join(("id", *HEADLINE.values))}
            FROM generate_series(number * 7::int8 * {{tenth}} + 1, (number + 1) * 7::int8 * {{tenth}}) AS id;
        UPDATE followed SET {HEADLINE.update} WHERE id BETWEEN number * 7::int8 * {{tenth}} + 1
            AND number * 7::int8 * {{tenth}} + 2 * {{tenth}};
        DELETE FROM followed WHERE id BETWEEN number * 7::int8 * {{tenth}} + 6 * {{tenth}} + 1
            AND (number + 1) * 7::int8 * {{tenth}};
        COMMIT;
    END LOOP;
END $$"""


@dataclass(frozen=True, slots=True)
class FollowedWorkload:
    """The size of the transactions that a slot sends."""

    name: str
    title: str
    size: Callable[[int], int]
    """Returns the number of changes of a transaction, given that of all."""

    def tenth(self, changes: int) -> int:
        """Return a tenth of the changes of a transaction.

        Args:
            changes: About how many changes there are in all.
        """
        return max(self.size(changes) // _TENTH, 1)

    def transactions(self, changes: int) -> int:
        """Return the number of transactions, without those of every kind of message.

        Args:
            changes: About how many changes there are in all.
        """
        return max(changes // (self.tenth(changes) * _TENTH), 1)


FOLLOWED: Final = (
    FollowedWorkload("small", "rows of ten columns in transactions of 10 changes", lambda _: 10),
    FollowedWorkload("large", "rows of ten columns in three large transactions", lambda changes: changes // 3),
)
"""Every workload."""


@dataclass(frozen=True, slots=True)
class ConsumerComparison:
    """The runs of all consumers on one workload."""

    workload: str
    runs: dict[str, list[ConsumerRun]]
    """Those of each consumer, by its name, in the order of the rounds."""

    @property
    def ratio(self) -> float:
        """The best changes per second of the live client, divided by those of psycopg2."""
        ours, theirs = (min(run.seconds for run in self.runs[consumer.name]) for consumer in CONSUMERS)
        return theirs / ours

    def lines(self) -> Iterator[Sequence[str]]:
        """Yield the cells of each consumer: the best of its runs; of the peaks, the largest."""
        for consumer in CONSUMERS:
            runs = self.runs[consumer.name]
            changes = runs[0].changes
            yield (
                consumer.name,
                str(code_lines(consumer.path)),
                f"{changes / min(run.seconds for run in runs):,.0f}",
                f"{min(run.cpu for run in runs) / changes * 1e6:.2f}",
                f"{max(run.peak for run in runs) / 1e6:,.0f}",
                f"{min(run.start for run in runs):.2f}",
                consumer.title,
            )

    def text(self) -> str:
        """Return the table of this workload, for people."""
        first = next(iter(self.runs.values()))[0]
        workload = next(found for found in FOLLOWED if found.name == self.workload)
        title = f"{workload.name}: {workload.title}: {first.changes:,} changes in {first.transactions:,} transactions"
        verdict = "reached" if self.ratio >= GOAL else "missed"
        goal = f"  the live client has {self.ratio:.2f} times the changes/s of psycopg2; goal >= {GOAL:g}: {verdict}"
        return "\n".join([title, table_text(_HEAD, self.lines()), goal])


_HEAD: Final = ("client", "lines", "changes/s", "us CPU/change", "peak MB", "start s", "what it is")


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    options = _options(arguments)
    progress = Progress(options.quiet)
    found, status = machine(_LIBRARIES), 0
    print(machine_text(found, f"a process for each client, {options.repeat} rounds"), flush=True)
    comparisons: list[ConsumerComparison] = []
    try:
        _check_installed()
        progress.step(f"starting PostgreSQL {_VERSION}")
        with EmbeddedServer(_VERSION, _SETTINGS, options.directory) as server:
            for workload in FOLLOWED:
                if workload.name in (options.workload or [workload.name]):
                    comparisons.append(compare(server.dsn, workload, options.changes, options.repeat, progress))
                    progress.clear()
                    print(f"\n{comparisons[-1].text()}", flush=True)
    except (BenchmarkError, Unavailable, PgoutputError) as error:
        progress.clear()
        print(f"benchmark: {error}", file=sys.stderr)
        status = 2
    except KeyboardInterrupt:
        progress.clear()
        status = 130
    if options.json:
        results = [asdict(comparison) | {"ratio": comparison.ratio} for comparison in comparisons]
        options.json.write_text(json.dumps({"machine": found, "results": results}, indent=1) + "\n", "utf-8")
    missed = any(comparison.ratio < GOAL for comparison in comparisons)
    return status or int(options.strict and missed)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.json is not None and not options.json.parent.is_dir():
        parser.error(f"folder {options.json.parent} does not exist")  # now, not after the measurements
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.benchmark client",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add, names = parser.add_argument, [workload.name for workload in FOLLOWED]
    add("--workload", nargs="+", choices=names, metavar="NAME", help=f"only these (all): {', '.join(names)}")
    add("--changes", type=_count, default=300_000, metavar="N", help="changes of a workload (default 300000)")
    add("--repeat", type=_count, default=3, metavar="N", help="rounds; the best is reported (default 3)")
    add("--directory", type=Path, metavar="FOLDER", help="where the server's files go")
    add("--json", type=Path, metavar="FILE", help="write every measurement as JSON")
    add("--strict", action="store_true", help="exit with status 1 if the goal is missed")
    add("--quiet", action="store_true", help="show no progress")
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _check_installed() -> None:
    if find_spec("psycopg2") is None:
        raise Unavailable("psycopg2 is not installed: pip install '.[test]' in a clone of the project")


def compare(dsn: str, workload: FollowedWorkload, changes: int, repeat: int, progress: Progress) -> ConsumerComparison:
    """Write a workload, check that all consumers deliver the same changes, and measure them in turns.

    Args:
        dsn: The connection string of an empty database, which is left with the tables of the workload.
        workload: The transactions.
        changes: About how many changes there are in all.
        repeat: The number of rounds.
        progress: What says what is being done now.

    Raises:
        BenchmarkError: The consumers delivered different changes.
    """
    import psycopg

    runs: dict[str, list[ConsumerRun]] = {consumer.name: [] for consumer in CONSUMERS}
    with psycopg.connect(dsn, autocommit=True) as connection, _written(connection, workload, changes):
        expected = len(_EVERY_KIND) + workload.transactions(changes)
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder, consumer.name) for consumer in CONSUMERS]
            for consumer, file in zip(CONSUMERS, files, strict=True):
                progress.step(f"{workload.name}: what {consumer.name} delivers")
                _child(connection, dsn, consumer, expected, file)
            check_equal(*files)
        progress.step(f"{workload.name}: {repeat} rounds of {len(CONSUMERS)} clients")
        for number in range(repeat):
            for consumer in CONSUMERS if number % 2 == 0 else CONSUMERS[::-1]:
                progress.detail(f"{workload.name}: round {number + 1} of {repeat}: {consumer.name}")
                runs[consumer.name].append(_child(connection, dsn, consumer, expected))
    return ConsumerComparison(workload.name, runs)


@contextmanager
def _written(connection: "psycopg.Connection[Any]", workload: FollowedWorkload, changes: int) -> Iterator[None]:
    """Write a workload into tables of its own, which a slot has; both are dropped at the end."""
    for statement in _TABLES.split(";"):
        connection.execute(statement.encode())
    connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [_KEPT])
    try:
        for statement in _EVERY_KIND:
            connection.execute(statement.encode())
        written = _TRANSACTIONS.format(transactions=workload.transactions(changes), tenth=workload.tenth(changes))
        connection.execute(written.encode())
        yield
    finally:
        _drop_slot(connection, _KEPT)
        connection.execute(f"DROP PUBLICATION {_PUBLICATION}".encode())
        connection.execute("DROP TABLE followed, noted, odd")


def _child(
    connection: "psycopg.Connection[Any]", dsn: str, consumer: Consumer, transactions: int, file: Path | None = None
) -> ConsumerRun:
    """Run a consumer in a process of its own, on a copy of the slot: reading moves it."""
    connection.execute("SELECT pg_copy_logical_replication_slot(%s, %s)", [_KEPT, _READ])
    given = consumer.name, dsn, _READ, _PUBLICATION, str(transactions), str(file or "")
    try:
        return ConsumerRun(**json.loads(printed("-m", "tools.benchmark.consumers", *given)))
    finally:
        _drop_slot(connection, _READ)


def _drop_slot(connection: "psycopg.Connection[Any]", slot: str) -> None:
    """Drop a slot when its reader has ended, which the server may notice later."""
    end = time.monotonic() + _SECONDS
    while (
        connection.execute("SELECT FROM pg_replication_slots WHERE slot_name = %s AND active", [slot]).fetchone()
        and time.monotonic() < end
    ):
        time.sleep(0.01)
    connection.execute("SELECT pg_drop_replication_slot(%s)", [slot])


def check_equal(*files: Path) -> None:
    """Check that all consumers wrote the same changes.

    Args:
        files: The file of each, named as it is; one change a line.

    Raises:
        BenchmarkError: They differ; the text has the first difference.
    """
    with ExitStack() as stack:
        opened = [stack.enter_context(file.open(encoding="utf-8")) for file in files]
        for number, lines in enumerate(zip_longest(*opened, fillvalue="nothing\n"), 1):
            if len(set(lines)) > 1:
                said = "".join(f"\n  {file.name}: {line.strip():.600}" for file, line in zip(files, lines, strict=True))
                raise BenchmarkError(f"the clients differ in change {number:,}:{said}")
    if not files[0].stat().st_size:
        raise BenchmarkError("the clients delivered no changes")
