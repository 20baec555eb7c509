"""python -m tools.faults spark: kills capture, Spark and server while tables are replicated; compares the tables."""

import argparse
import os
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pgoutput_construct.cli._options import TABLE_FORMATS, WRITE_MODES
from pgoutput_construct.columnar.column_masks import Mask
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.demo.processes import Supervised
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.postgres import fetch_table
from tools.faults.bank import PUBLICATION, SLOT, Bank
from tools.faults.live_slot import attack_slot
from tools.faults.orphans import orphans
from tools.faults.victims import kill_child

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pgoutput_construct.spark._log_view.replicated_tables import Table

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
_SALT: Final = "PGOUTPUT_FAULTS_SALT"
"""The variable of the environment that has the salt of masks."""
_HASHED: Final = f"sha256(${_SALT})"
_MASKS: Final[Mapping[str, str]] = {
    "public.account.id": _HASHED,
    "public.account.owner": _HASHED,
    "public.account.note": "text(***)",
    "public.entry.account": _HASHED,
    "public.cart.items": "null",
}
"""The masks of columns, that of a key among them."""

_MAINTAINED: Final = ("--maintain-every", "2", "--retain", "0", "--retain-snapshots", "1")
"""Options after which many kills meet maintenance."""

Say = Callable[[str], None]


@dataclass
class _Attack:
    bank: Bank
    directory: Path
    into: str
    chance: random.Random
    say: Say
    masks: Mapping[str, str] = field(default_factory=dict)
    """The masks of columns."""
    soft_delete: bool = False
    """Whether deleted rows stay in tables."""
    is_maintained: bool = False
    """Whether tables are maintained often."""
    write_mode: str | None = None
    """As ``replicate`` has it."""
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
        replicated += [word for name, mask in self.masks.items() for word in ("--mask", f"{name}={mask}")]
        replicated += ["--soft-delete"] if self.soft_delete else []
        replicated += [] if self.write_mode is None else ["--write-mode", self.write_mode]
        # Tables as small as these need no Spark, whose processes are among the victims.
        continuous = [*replicated, "--continuous", "--spark", "always", *(_MAINTAINED if self.is_maintained else ())]
        self.replica = Supervised(continuous, self.directory / "replicate.txt")
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
            current = read_current(spark, self.directory / "warehouse", name)
            current = current.where("_deleted_at IS NULL") if self.soft_delete else current
            result = compare(current.drop("_commit_lsn", "_seq", "_deleted_at"), self._source_rows(table))
            self.say(f"{self.into}: {name}: {result}")
            found += [] if result.equal else [f"{name}: {result}"]
        found += self._leaks()
        return [*found, *orphans(spark, self.directory / "warehouse")] if self.is_maintained else found

    def _source_rows(self, table: "Table") -> pa.Table:
        """Return the rows of a table of the server, with masks."""
        masks = {name: self.masks.get(f"{table.qualified}.{name}") for name in table.current}
        kinds = [each if masks[each.name] is None else each.with_type(pa.string()) for each in table.current_columns]
        rows = fetch_table(self.bank.dsn, table.namespace, table.name, pa.schema(kinds))
        for name, mask in masks.items():
            if mask is not None:
                values = Mask.parse(mask).values(rows[name].combine_chunks())
                rows = rows.set_column(rows.schema.get_field_index(name), name, values)
        return rows

    def _leaks(self) -> list[str]:
        """Return the files that have the salt."""
        if not self.masks:
            return []
        salt, files = os.environ[_SALT].encode(), (path for path in self.directory.rglob("*") if path.is_file())
        return [f"{path} has the salt" for path in files if salt in path.read_bytes()]


def attack(
    server: EmbeddedServer,
    directory: Path,
    into: str,
    kills: int,
    seconds: float,
    chance: random.Random,
    say: Say,
    masks: bool = False,
    soft_delete: bool = False,
    maintains: bool = False,
    write_mode: str | None = None,
) -> list[str]:
    """Replicate a bank into one sink, and kill what does it so often; return how its tables differ from the source.

    Args:
        server: The server.
        directory: Where files go.
        into: The sink.
        kills: How many processes are killed.
        seconds: The mean time between two kills.
        chance: What draws.
        say: Called with what has happened.
        masks: Whether columns are masked.
        soft_delete: Whether deleted rows stay in tables.
        maintains: Whether tables are maintained often.
        write_mode: How tables are written, None for as the format does.

    Raises:
        FaultsError: The tables do not come to the end.
    """
    from pgoutput_construct.spark import spark_session
    from pgoutput_construct.spark.formats import FORMATS  # of all: Java continues when a session ends

    with Bank(server) as bank:
        os.environ.setdefault(_SALT, f"a-salt-{chance.getrandbits(64):x}")
        masked = _MASKS if masks else {}
        attacked = _Attack(bank, directory, into, chance, say, masked, soft_delete, maintains, write_mode)
        attacked.run(kills, seconds)
        counts = ", ".join(f"{name} {count}" for name, count in sorted(attacked.counts.items()))
        ended = [*attacked.capture.ended, *attacked.replica.ended]
        say(f"{into}: killed {counts}; ended by themselves, and were started again: {len(ended)}")
        with spark_session("local[2]", into=FORMATS) as spark:
            return attacked.differences(spark)


def _attack(
    server: EmbeddedServer,
    place: Path,
    into: str,
    kills: tuple[int, float],
    chance: random.Random,
    say: Say,
    options: argparse.Namespace,
) -> list[str]:
    if into == _SLOT:
        return attack_slot(server, place, *kills, chance, say)
    chosen = options.mask, options.soft_delete, options.maintain, options.write_mode
    return attack(server, place, into, *kills, chance, say, *chosen)


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
                kills = share + (number < more), options.seconds
                problems = _attack(server, place, into, kills, chance, say, options)
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
    parser.add_argument("--mask", action="store_true", help="mask columns, that of a key among them")
    parser.add_argument("--soft-delete", action="store_true", help="keep deleted rows in tables")
    parser.add_argument(
        "--maintain",
        action="store_true",
        help="maintain tables after every two of their batches, and look for files that no table has",
    )
    parser.add_argument("--write-mode", choices=WRITE_MODES, help="of the tables (default: the format's own)")
    parser.add_argument("--version", type=int, default=18, help="PostgreSQL's (default 18)")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of what is drawn")
    parser.add_argument("--directory", type=Path, metavar="FOLDER", help="where files go; those of a failure are kept")
    return parser
