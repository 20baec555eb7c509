"""Kills Spark and the server while Spark reads a slot directly: each change must arrive exactly once."""

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pgoutput_construct.demo.processes import Supervised
from pgoutput_construct.demo.server import EmbeddedServer
from pgoutput_construct.postgres import fetch_table
from tools.faults.bank import SLOT, Bank
from tools.faults.victims import kill_child

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["attack_slot"]

_NAMESPACE, _TABLE = "public", "account"
_KEY: Final = ("id",)
_SECONDS: Final = 600.0
"""Seconds to wait for the end."""

Say = Callable[[str], None]


@dataclass
class _Attack:
    bank: Bank
    directory: Path
    chance: random.Random
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        given = [self.bank.dsn, SLOT, f"{_NAMESPACE}.{_TABLE}", str(self.directory)]
        self.query = Supervised(given, self.directory / "query.txt", "tools.faults.slot_child")

    @property
    def victims(self) -> Mapping[str, Callable[[], bool]]:
        """The victims, and how they are killed; False if there is none right now."""
        return {
            "driver": self.query.kill,
            "JVM": lambda: kill_child(self.query, "java", self.chance),
            "Python worker": lambda: kill_child(self.query, "pyspark.daemon", self.chance),
            "server": self.bank.restart,
        }

    def run(self, kills: int, seconds: float) -> None:
        """Kill a number of times during writes, then read the rest; raises PgoutputError if that does not end."""
        try:
            while self.counts.total() < kills:
                self.query.ensure()
                self.bank.work(self.chance.randrange(20, 200))
                time.sleep(self.chance.uniform(0, 2 * seconds))
                name, kill = self.chance.choice(list(self.victims.items()))
                self.counts[name] += kill()
            self.query.finish(["to the end"], _SECONDS)
        finally:
            self.query.kill()

    def problems(self, spark: "SparkSession", say: Say) -> list[str]:
        """Return how the files differ from the server."""
        from pgoutput_construct.spark import compare, current_state

        changes = spark.read.parquet(f"file://{self.directory}/changes")
        count, different = changes.count(), changes.select("_commit_lsn", "_seq").distinct().count()
        batches = len(list((self.directory / "checkpoint" / "commits").glob("[0-9]*")))
        say(f"slot: {count:,} changes in {batches} batches")
        found = [] if count == different else [f"of {count} changes {count - different} came more than once"]
        state = current_state(changes, _KEY, "d")
        source = fetch_table(self.bank.dsn, _NAMESPACE, _TABLE, state.drop("_untyped").limit(0).toArrow().schema)
        result = compare(state, source)
        return found if result.equal else [*found, f"{_TABLE}: {result}"]


def attack_slot(
    server: EmbeddedServer, directory: Path, kills: int, seconds: float, chance: random.Random, say: Say
) -> list[str]:
    """Read a bank's slot into files, and kill what does it so often; return what is wrong with them.

    ``seconds`` is the mean time between two kills. Raises PgoutputError where it does not come to the end.
    """
    from pgoutput_construct.spark import spark_session
    from pgoutput_construct.spark.formats import FORMATS  # of all: Java continues when a session ends

    with Bank(server) as bank:
        attacked = _Attack(bank, directory, chance)
        attacked.run(kills, seconds)
        counts = ", ".join(f"{name} {count}" for name, count in sorted(attacked.counts.items()) if count)
        say(f"slot: killed {counts}; ended by themselves, and were started again: {len(attacked.query.ended)}")
        with spark_session("local[2]", into=FORMATS) as spark:
            return attacked.problems(spark, say)
