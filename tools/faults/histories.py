"""python -m tools.faults histories: random histories of a database, whose tables are compared exactly with the server.

A history is the lives of some dozen tables, of any types and identities, with DDL, savepoints, prepared transactions
and publications that change. It is captured, replicated in steps and at once, and compared: the current tables, their
histories now and at moments that were noted, states as of earlier batches. One that fails is shrunk, and printed as a
test. Each history is drawn by its name, seed and number, alone.
"""

import argparse
import logging
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pgoutput_construct.cli._options import WRITE_MODES
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from tools.class_archive import java_options
from tools.faults.generated_histories import History, generated
from tools.faults.generated_lives import LIVES
from tools.faults.replicated import SINKS
from tools.faults.shrinking import as_test, shrunk
from tools.few_rows import FEW_ROWS
from tools.servers import RELEASES, open_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tools.faults.history_runs import Difference, Outcome, Settings

__all__ = ["SERVER_SETTINGS", "main"]

SERVER_SETTINGS: Final = {"autovacuum": "off", "max_prepared_transactions": "60", "lc_monetary": "C"}
"""What the servers of histories need on top of the defaults."""
_QUICK: Final = {
    **FEW_ROWS,
    "spark.driver.extraJavaOptions": f"-Duser.timezone=UTC {java_options()}",
}
"""What halves the time of a few histories."""
_LONG: Final = {**_QUICK, "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:+UseSerialGC"}
"""What is quicker still where there are more histories than _FEW: there what plans them is worth compiling well."""
_FEW: Final = 40
_COMPILED: Final = {"spark.sql.shuffle.partitions": "2"}

Say = Callable[[str], object]


@dataclass
class _Runs:
    """The histories of one server."""

    server: EmbeddedServer
    spark: "SparkSession"
    directory: Path
    settings: "Settings"
    shrink_seconds: float
    say: Say
    totals: Counter[str] = field(default_factory=Counter)
    trials: int = 0

    def run(self, history: History) -> None:
        """Perform a history; shrink it where it fails."""
        began = time.monotonic()
        outcome = self.perform(history)
        self.count(outcome)
        spent = ", ".join(f"{what} {seconds:.0f} s" for what, seconds in outcome.seconds.items())
        self.say(f"{history.name}: {_summary(outcome)}; {time.monotonic() - began:.0f} s ({spent})")
        for each in outcome.differences:
            self.say(f"    {'reported: ' if each.reported else 'FAILED: '}{each}")
        for each in _each_life(outcome.failures) if self.shrink_seconds else ():
            self.shrink(history, each)

    def perform(self, history: History) -> "Outcome":
        from tools.faults.history_runs import perform

        self.trials += 1
        place = self.directory / str(self.trials)
        place.mkdir()
        try:
            return perform(history, self.server, self.spark, place, self.settings)
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def count(self, outcome: "Outcome") -> None:
        self.totals["tables"] += outcome.tables
        self.totals["rows"] += outcome.rows
        self.totals["comparisons"] += outcome.comparisons
        self.totals["kills"] += outcome.kills
        self.totals["histories with failures"] += bool(outcome.failures)
        self.totals["failures"] += len(outcome.failures)
        self.totals["reported differences"] += len(outcome.differences) - len(outcome.failures)

    def shrink(self, history: History, difference: "Difference") -> None:
        """Print the statements of a history that it takes for a difference."""
        last = difference

        def fails(smaller: History) -> bool:
            nonlocal last
            try:
                failures = self.perform(smaller).failures
            except Exception:  # it cannot be performed without what is left out
                return False
            found = [each for each in failures if _is_like(each, difference)]
            last = found[0] if found else last
            return bool(found)

        lives = {step.life for step in history.steps if step.life and step.life in _words(difference.table)}
        began, before = time.monotonic(), self.trials
        smallest, is_sure = shrunk(history, lives, fails, self.shrink_seconds)
        spent = f"{self.trials - before} trials, {time.monotonic() - began:.0f} s"
        if is_sure:
            self.say(f"    shrunk in {spent}:\n\n{as_test(smallest, str(last), self.settings)}\n")
        else:
            self.say(f"    it did not fail once more ({spent})")


def _each_life(failures: Sequence["Difference"]) -> list["Difference"]:
    """Return the first failure of each life, as far as its name shows it: the others come of the same."""
    return list({min(_words(each.table), key=len): each for each in reversed(failures)}.values())


def _is_like(difference: "Difference", other: "Difference") -> bool:
    """Return whether two differences are of one kind: errors by how their class is called, others by their stage."""
    return (difference.stage, _error(difference.text)) == (other.stage, _error(other.text))


def _error(text: str) -> str:
    word = text.split(":", maxsplit=1)[0]
    return word if word.isidentifier() and word.endswith(("Error", "Exception")) else ""


def _words(name: str) -> set[str]:
    """Return how lives may be called that a table's name begins with: ``t3`` of ``public.t3_child``."""
    plain = name.replace('"', "").split(".")[-1]
    return {plain, plain.split("_")[0], plain.split(" ")[0]}


def _summary(outcome: "Outcome") -> str:
    failed = f"{len(outcome.failures)} FAILED" if outcome.failures else "equal"
    reported = len(outcome.differences) - len(outcome.failures)
    return (
        f"{outcome.tables} tables, {outcome.rows:,} rows, {outcome.comparisons} comparisons: {failed}"
        + (f", {reported} reported" if reported else "")
        + (f"; {outcome.kills} killed" if outcome.kills else "")
        + f"; {outcome.executed} statements, {outcome.refused} refused"
    )


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit status: 1 when a table differs, and nobody said so."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that no server is left behind
    logging.getLogger("pgoutput_construct").setLevel(logging.ERROR)
    began, totals = time.monotonic(), Counter[str]()
    end = began + 60 * options.minutes if options.minutes else float("inf")

    def say(text: str) -> None:
        print(text if text.startswith(" ") else f"{time.monotonic() - began:7.0f} s  {text}", flush=True)

    from pgoutput_construct.spark import spark_session
    from tools.faults.history_runs import Settings

    settings = Settings(
        into=options.format,
        write_mode=options.write_mode,
        is_maintained=options.maintain,
        with_history=not options.no_history,
        states=options.states,
        kills=options.kills,
    )
    jars = () if options.format == "parquet" else (options.format,)
    print(f"seed {options.seed}", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="histories-") as place,
        spark_session("local[2]", _spark_settings(options), into=jars) as spark,
    ):
        directory = Path(place)
        for version in options.versions:
            with open_server(version, SERVER_SETTINGS) as server:
                (directory / str(version)).mkdir()
                runs = _Runs(server, spark, directory / str(version), settings, 60 * options.shrink, say)
                for number in range(options.first, options.first + options.count):
                    if time.monotonic() > end:
                        break
                    name = f"{options.seed} {version} {number}"
                    history = generated(
                        name, version, options.tables, options.without, options.only, options.notes, options.batches
                    )
                    if options.binary:
                        history = replace(history, options={**history.options, "binary": True})
                    runs.totals["histories"] += 1
                    runs.run(history)
                totals += runs.totals
    say(", ".join(f"{name} {count:,}" for name, count in totals.items()) + f"; seed {options.seed}")
    return 1 if totals["failures"] else 0


def _spark_settings(options: argparse.Namespace) -> Mapping[str, str]:
    if options.compiled:
        return _COMPILED
    return _LONG if options.count * len(options.versions) > _FEW else _QUICK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.faults histories", description=__doc__)
    add = parser.add_argument
    add("--count", type=int, default=20, help="histories on each server (default 20)")
    add("--tables", type=int, default=25, help="tables of each history, at least (default 25)")
    add("--versions", type=int, nargs="+", choices=RELEASES, default=[18], help="PostgreSQL's (default 18)")
    add("--format", choices=SINKS, default="parquet", help="of the tables (default parquet)")
    add("--write-mode", choices=WRITE_MODES, help="of the tables (default: the format's own)")
    add("--maintain", action="store_true", help="maintain tables after each batch")
    add("--notes", type=int, default=6, help="moments of each history that are compared with its history (default 6)")
    add("--batches", type=int, default=3, help="how often each is replicated on the way, at most (default 3)")
    add("--states", type=int, default=2, help="tables of each that are compared as of an earlier seq (default 2)")
    add("--kills", type=int, default=0, help="captures, and replications, of each that are killed (default 0)")
    add("--compiled", action="store_true", help="let Spark compile its plans, as it does by default")
    add("--no-history", action="store_true", help="replicate current tables alone")
    add("--binary", action="store_true", help="capture in binary format")
    add("--minutes", type=float, default=0, help="begin no history after this time (default: no limit)")
    add("--shrink", type=float, default=5, metavar="MINUTES", help="how long one is shrunk at most; 0: not (default 5)")
    add("--without", nargs="+", default=[], metavar="NAME", help="lives, and features of steps, that are left out")
    add("--only", nargs="+", default=[], choices=LIVES, metavar="NAME", help=f"only these lives: {', '.join(LIVES)}")
    add("--seed", type=int, default=random.randrange(10**6), help="of all that is drawn")
    add("--first", type=int, default=0, metavar="N", help="the number of the first history (default 0)")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
