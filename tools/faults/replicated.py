"""python -m tools.faults spark: kills capture, Spark and server while tables are replicated; compares the tables."""

import argparse
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pgoutput_construct.cli._options import TABLE_FORMATS
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.demo.processes import Supervised
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.postgres import fetch_table
from tools.faults.bank import PUBLICATION, SLOT, Bank
from tools.faults.live_slot import attack_slot
from tools.faults.victims import kill_child

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SINKS", "attack", "main"]

SINKS: Final = TABLE_FORMATS
"""The sinks."""
_SLOT: Final = "slot"
"""Instead of a sink: a slot is read directly, and its changes are written to files."""
_SECONDS: Final = 600.0
"""Seconds to wait for anything."""
_ALTERATIONS: Final = (
    "ALTER TABLE account ADD COLUMN since_{0} int DEFAULT {0}",
    "ALTER TABLE account RENAME COLUMN since_{0} TO was_{0}",
    "ALTER TABLE account DROP COLUMN was_{0}",
    "ALTER TABLE entry ADD COLUMN since_{0} text DEFAULT 'since {0}'",
)
"""What is done to the tables on the way, each in its turn; the number is that of the turn."""

Say = Callable[[str], None]


@dataclass
class _Attack:
    bank: Bank
    directory: Path
    into: str
    chance: random.Random
    say: Say
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        log, warehouse = str(self.directory / "log"), str(self.directory / "warehouse")
        captured = [
            "capture",
            self.bank.dsn,
            log,
            "--slot",
            SLOT,
            "--publication",
            PUBLICATION,
            "--snapshot",
            "--new-log",
        ]
        self.capture = Supervised(captured, self.directory / "capture.txt")
        replicated = ["replicate", log, "--into", self.into, "--warehouse", warehouse]
        self.replica = Supervised([*replicated, "--continuous"], self.directory / "replicate.txt")
        self.rest = Supervised([*replicated, "--once"], self.directory / "rest.txt")

    @property
    def victims(self) -> Mapping[str, Callable[[], bool]]:
        """The victims, and how they are killed; False if there is none right now."""
        return {
            "capture": self.capture.kill,
            "driver": self.replica.kill,
            "JVM": lambda: kill_child(self.replica, "java", self.chance),
            "Python worker": lambda: kill_child(self.replica, "pyspark.daemon", self.chance),
            "server": self.bank.restart,
        }

    def run(self, kills: int, seconds: float) -> None:
        """Kill a number of times, then compare the tables; raises FaultsError if they differ."""
        try:
            self.attack(kills, seconds)
            self.finish()
        finally:
            self.capture.kill()
            self.replica.kill()

    def attack(self, kills: int, seconds: float) -> None:
        """Kill, wait a while, alter a table, write: until there were enough kills."""
        while self.counts.total() < kills:
            self.capture.ensure()
            self.replica.ensure()
            self.bank.work(self.chance.randrange(20, 200))
            time.sleep(self.chance.uniform(0, 2 * seconds))
            name, kill = self.chance.choice(list(self.victims.items()))
            if kill():
                self.counts[name] += 1
                self.alter()

    def alter(self) -> None:
        """Alter a table, for every third kill."""
        turn, due = divmod(self.counts.total(), 3)
        if due == 0:
            number, step = divmod(turn - 1, len(_ALTERATIONS))
            with self.bank.connect() as connection:
                connection.execute(_ALTERATIONS[step].format(number).encode())

    def finish(self) -> None:
        """Capture and replicate the rest."""
        self.replica.kill()
        with self.bank.connect() as connection:
            row = connection.execute("SELECT pg_current_wal_insert_lsn()").fetchone()
        self.capture.finish(["--until-lsn", str(row[0] if row else None)], _SECONDS)
        self.rest.finish([], _SECONDS)

    def differences(self, spark: "SparkSession") -> list[str]:
        """Return how the tables differ from the source."""
        from pgoutput_construct.spark import compare, open_log, read_current

        opened, found = open_log(spark, self.directory / "log"), []
        for name in opened.tables:
            table = opened.table(name)
            source = fetch_table(self.bank.dsn, table.namespace, table.name, table.current_columns)
            current = read_current(spark, self.directory / "warehouse", name).drop("_commit_lsn", "_seq")
            result = compare(current, source)
            self.say(f"{self.into}: {name}: {result}")
            found += [] if result.equal else [f"{name}: {result}"]
        return found


def attack(
    server: EmbeddedServer, directory: Path, into: str, kills: int, seconds: float, chance: random.Random, say: Say
) -> list[str]:
    """Replicate a bank into one sink, and kill what does it so often; return how its tables differ from the source.

    ``seconds`` is the mean time between two kills. Raises FaultsError where the tables do not come to the end.
    """
    from pgoutput_construct.spark import spark_session
    from pgoutput_construct.spark.formats import FORMATS  # of all: Java continues when a session ends

    with Bank(server) as bank:
        attacked = _Attack(bank, directory, into, chance, say)
        attacked.run(kills, seconds)
        counts = ", ".join(f"{name} {count}" for name, count in sorted(attacked.counts.items()))
        ended = [*attacked.capture.ended, *attacked.replica.ended]
        say(f"{into}: killed {counts}; ended by themselves, and were started again: {len(ended)}")
        with spark_session("local[2]", into=FORMATS) as spark:
            return attacked.differences(spark)


def _attack(
    server: EmbeddedServer, place: Path, into: str, kills: tuple[int, float], chance: random.Random, say: Say
) -> list[str]:
    if into == _SLOT:
        return attack_slot(server, place, *kills, chance, say)
    return attack(server, place, into, *kills, chance, say)


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit status: 1 when a table differs."""
    options = _parser().parse_args(arguments)
    print(f"seed {options.seed}", flush=True)
    began, chance, good = time.monotonic(), random.Random(options.seed), True
    directory = Path(tempfile.mkdtemp(prefix="replicated-", dir=options.directory))
    share, more = divmod(options.kills, len(options.into))

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:7.0f} s  {text}", flush=True)

    for number, into in enumerate(options.into):
        place = directory / into
        place.mkdir()
        with EmbeddedServer(options.version) as server:
            try:
                problems = _attack(server, place, into, (share + (number < more), options.seconds), chance, say)
            except PgoutputError as error:
                problems = [f"{type(error).__name__}: {error}"]
        say(f"{into}: {'; '.join(problems) or 'the tables are as the source has them'}")
        good = good and not problems
    if good:
        shutil.rmtree(directory)
    return 0 if good else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.faults spark", description=__doc__)
    every = (*SINKS, _SLOT)
    parser.add_argument(
        "--into", nargs="+", choices=every, default=every, help="sinks; slot: it is read live, into files (default all)"
    )
    parser.add_argument("--kills", type=int, default=50, help="over all sinks (default 50)")
    parser.add_argument("--seconds", type=float, default=6.0, help="between two kills in the mean (default 6)")
    parser.add_argument("--version", type=int, default=18, help="PostgreSQL's (default 18)")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of what is drawn")
    parser.add_argument("--directory", type=Path, metavar="FOLDER", help="where files go; those of a failure are kept")
    return parser
