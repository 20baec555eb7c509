"""python -m tools.faults settings: settings of the caller's session are flipped one at a time, and change nothing.

The settings are those that a running session says it has (``SET -v``; with --undocumented also those that it does not
list): booleans, and enumerations, whose values are taken from what the setting says of itself. With each in turn a
small log with awkward names and values is replicated in two batches into each format, and read by a session without
it; its state, and the tables, are also read by the session that has it. All must have the rows that they have without.
"""

import argparse
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import capture, create_slot, current_lsn
from tools.few_rows import FEW_ROWS
from tools.jars import LAKES, missing_jars
from tools.servers import open_server

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["TABLES", "FlippedSettings", "Setting", "SmallLog", "main", "settings_of"]

TABLES: Final = ("""public."It's \\ odd\"""", "public.times")
"""The tables of the log, as SQL writes their names."""
PARTITIONED: Final = {"public.times": ["at"]}
_FIRST: Final = (
    """CREATE TABLE "It's \\ odd" ("k'1 \\ x" text PRIMARY KEY, "Big \\'" text, "${env:HOME}" int)""",
    """ALTER TABLE "It's \\ odd" ALTER "Big \\'" SET STORAGE EXTERNAL""",
    """INSERT INTO "It's \\ odd" SELECT k, repeat('b', 3000), 1
    FROM unnest(ARRAY['plain', 'it''s', 'back\\slash', 'both\\''', 'new' || chr(10) || 'line', '${env:HOME}', '']) k""",
    """CREATE TABLE times (id int, at timestamptz, local timestamp, day date, n numeric(12, 3), f float8, v text,
    PRIMARY KEY (id, at))""",
    # Twice the hour that ends summer time in Berlin and in New York, and once the one that is left out.
    """INSERT INTO times
    SELECT i, at::timestamptz, (at::timestamptz AT TIME ZONE 'UTC'), '1500-02-28', i / 3.0, '-0.0', 'a'
    FROM unnest(ARRAY['2024-10-27 00:30Z', '2024-10-27 01:30Z', '2024-11-03 05:30Z', '2024-11-03 06:30Z',
    '2024-03-31 01:30Z', '0001-01-01 00:00Z', '9999-12-31 12:00Z']) WITH ORDINALITY each (at, i)""",
)
_SECOND: Final = (
    """UPDATE "It's \\ odd" SET "${env:HOME}" = 2 WHERE "k'1 \\ x" <> 'plain'""",
    """DELETE FROM "It's \\ odd" WHERE "k'1 \\ x" IN ('back\\slash', '')""",
    """INSERT INTO "It's \\ odd" VALUES ('it''s \\ new', 'c', 3)""",
    "UPDATE times SET v = 'it''s \\ b', f = 'NaN' WHERE id IN (1, 4, 6)",
    "DELETE FROM times WHERE id IN (2, 3)",
    "INSERT INTO times VALUES (8, '2024-10-27 01:45Z', 'infinity', '9999-12-31', 'NaN', 1e300, NULL)",
)
_PLAIN: Final = "none"
_REFUSED: Final = "no such value"
_QUOTED: Final = re.compile(r"""['"`]([\w-]+)['"`]|\b([A-Z][A-Z0-9_]{2,})\b""")
"""A value in the text of a setting."""
_NAMES: Final = re.compile(r"spark\.(sql|databricks\.delta)\.")
_SKIPPED: Final = re.compile(r"spark\.sql\.(connect|thriftServer|hive|ui|sessionWindow)\b")
"""What is of other programs than a session that replicates."""


class Setting(NamedTuple):
    """A setting with another value than its own."""

    name: str
    value: str

    def __str__(self) -> str:
        """Return it as an option of commands has it."""
        return f"{self.name}={self.value}"


@dataclass
class SmallLog:
    """A log of two batches."""

    directory: Path
    first: Path
    """The same log as it was after the first."""

    @classmethod
    def recorded(cls, server: EmbeddedServer, directory: Path) -> "SmallLog":
        """Record it."""
        log, first = directory / "log", directory / "first"
        with server.connect() as admin:
            admin.execute("CREATE DATABASE flipped")
        dsn = psycopg.conninfo.make_conninfo(server.dsn, dbname="flipped")
        with server.connect(dbname="flipped") as connection:
            connection.execute("CREATE PUBLICATION pub FOR ALL TABLES")
            create_slot(connection, "flipped")
            for statements in (_FIRST, _SECOND):
                for statement in statements:
                    connection.execute(statement.encode())
                is_first = statements is _FIRST
                capture(
                    dsn, "flipped", ["pub"], log, new_log=is_first, snapshot=is_first, until_lsn=current_lsn(connection)
                )
                if is_first:
                    shutil.copytree(log, first)
        with server.connect(dbname="flipped") as connection:
            connection.execute("SELECT pg_drop_replication_slot('flipped')")
        return cls(log, first)


@dataclass
class FlippedSettings:
    """Sessions with other settings, and what becomes of a log in each."""

    spark: "SparkSession"
    log: SmallLog
    directory: Path
    formats: Sequence[str]
    expected: Mapping[str, Any] = field(default_factory=dict)
    """What there is without any flipped setting."""
    _numbers: Iterator[int] = field(default_factory=count)

    def session(self, *settings: Setting) -> "SparkSession":
        """Return a session with some settings."""
        session = self.spark.newSession()
        for each in settings:
            session.conf.set(*each)
        return session

    def outcome(self, *settings: Setting) -> dict[str, Any]:
        """Return the rows of tables, or errors, with some settings, by what was read and how."""
        from pgoutput_construct.spark import read_current

        session, found = self.session(*settings), dict[str, Any]()
        before = session.conf.getAll
        for into in self.formats:
            place = self.directory / f"{into}{next(self._numbers)}"
            done = self._replicated(session, place, into)
            found[f"{into}: replicate"] = done
            if done == "done":
                for name in TABLES:
                    found[f"{into}: {name}"] = rows(read_current, self.spark, place, name)
                    found[f"{into}, its session: {name}"] = rows(read_current, session, place, name)
        for name in TABLES:
            found[f"state: {name}"] = rows(self.state, session, name)
        now = {name: value for name, value in session.conf.getAll.items() if ".catalog.pgoutput_" not in name}
        found["the session"] = "as before" if now == before else sorted(set(now.items()) ^ set(before.items()))
        return found

    def state(self, session: "SparkSession", name: str) -> "DataFrame":
        """Return the state of a table of the log."""
        from pgoutput_construct.spark import open_log

        return open_log(session, self.log.directory).state(name)

    def _replicated(self, session: "SparkSession", place: Path, into: str) -> str:
        from pgoutput_construct.spark import replicate

        partitions = {} if into == "parquet" else PARTITIONED
        try:
            for log in (self.log.first, self.log.directory):
                replicate(session, log, place, into, write_mode="merge-on-read", partition_by=partitions)
        except Exception as error:
            return _text_of(error)
        return "done"

    def differences(self, found: Mapping[str, Any]) -> dict[str, str]:
        """Return how an outcome differs from what is expected: an error, or other rows."""
        return {
            what: each if isinstance(each, str) else "other rows" if what != "the session" else str(each)
            for what, each in found.items()
            if each != self.expected.get(what)
        }


def rows(read: Any, *arguments: Any) -> Any:
    """Return the rows of a DataFrame as sorted texts; the text of an error where it fails."""
    from pgoutput_construct.spark import plain_errors

    try:
        with plain_errors():
            frame: DataFrame = read(*arguments)
            frame = frame.drop("_commit_lsn", "_seq")
            return sorted(map(repr, (_values(frame, row) for row in frame.collect())))
    except Exception as error:
        return _text_of(error)


def _values(frame: "DataFrame", row: Any) -> dict[str, Any]:
    return {
        name: sorted(value.items()) if isinstance(value, dict) else value
        for name, value in zip(frame.columns, row, strict=True)
    }


def _text_of(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def settings_of(spark: "SparkSession", undocumented: bool = False) -> Iterator[Setting]:
    """Yield the booleans and enumerations of a session, each with every other value than its present one."""
    scratch = spark.newSession()
    for name, value, meaning in sorted(_undocumented(spark) if undocumented else _documented(spark)):
        if not _NAMES.match(name) or _SKIPPED.match(name):
            continue
        present = scratch.conf.get(name, value) or value
        candidates = ["true", "false"] if present.lower() in ("true", "false") else _values_in(scratch, name, meaning)
        yield from (Setting(name, each) for each in candidates if each.lower() != present.lower())


def _documented(spark: "SparkSession") -> list[tuple[str, str, str]]:
    return [(row["key"], row["value"], row["meaning"]) for row in spark.sql("SET -v").collect()]


def _undocumented(spark: Any) -> list[tuple[str, str, str]]:
    entries = spark._jvm.org.apache.spark.sql.internal.SQLConf.getConfigEntries()
    return [(each.key(), each.defaultValueString(), each.doc()) for each in entries]


def _values_in(scratch: "SparkSession", name: str, meaning: str) -> list[str]:
    """Return the values of an enumeration that its text names; none for a setting that takes any text."""
    if _accepts(scratch, name, _REFUSED):
        return []
    found = dict.fromkeys(one or other for one, other in _QUOTED.findall(meaning))
    return [each for each in found if not each.isdigit() and _accepts(scratch, name, each)]


def _accepts(scratch: "SparkSession", name: str, value: str) -> bool:
    before = scratch.conf.get(name, None)
    try:
        scratch.conf.set(name, value)
    except Exception:
        return False
    scratch.conf.unset(name) if before is None else scratch.conf.set(name, before)
    return True


def _can_be_set(flipped: FlippedSettings, setting: Setting) -> bool:
    """Return whether a session takes a setting: not one that all sessions share, or that Spark has removed."""
    try:
        flipped.session(setting)
    except Exception:
        return False
    return True


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.faults settings", description=__doc__)
    parser.add_argument("--only", nargs="+", help="NAME or NAME=VALUE: these settings")
    parser.add_argument("--undocumented", action="store_true", help="also settings that SET -v does not list")
    parser.add_argument("--into", nargs="+", default=("parquet", *LAKES), help="the formats")
    parser.add_argument("--seconds", type=float, default=2400.0, help="begin no other setting after this time")
    options = parser.parse_args(arguments)
    if problem := missing_jars():
        print(f"faults: {problem}", file=sys.stderr)
        return 2
    from pgoutput_construct.spark import spark_session

    with tempfile.TemporaryDirectory(prefix="settings-") as name, open_server(18) as server:
        directory = Path(name)
        log = SmallLog.recorded(server, directory)
        quiet = {**FEW_ROWS, "spark.databricks.delta.snapshotPartitions": "1"}
        with spark_session("local[2]", quiet, "settings", into=LAKES) as spark:
            return _run(FlippedSettings(spark, log, directory, options.into), options)


def _run(flipped: FlippedSettings, options: argparse.Namespace) -> int:
    began, totals = time.monotonic(), Counter[str]()
    flipped.expected = flipped.outcome()
    for what, each in flipped.expected.items():
        print(f"{what}: {each if isinstance(each, str) else f'{len(each)} rows'}", flush=True)
    chosen = list(_chosen(flipped.spark, options))
    for number, setting in enumerate(chosen, 1):
        if time.monotonic() - began > options.seconds:
            totals["not tried"] = len(chosen) - number + 1
            break
        if not _can_be_set(flipped, setting):
            totals["cannot be set"] += 1
            continue
        differences = flipped.differences(flipped.outcome(setting))
        totals["different" if differences else "the same"] += 1
        for what, each in differences.items():
            print(f"{setting}: {what}: {each}", flush=True)
        if not number % 20:
            print(f"[{number}/{len(chosen)}, {time.monotonic() - began:.0f} s] {dict(totals)}", flush=True)
    print(f"{len(chosen)} settings in {time.monotonic() - began:.0f} s: {dict(totals)}")
    return 1 if totals["different"] else 0


def _chosen(spark: "SparkSession", options: argparse.Namespace) -> Iterator[Setting]:
    if not options.only:
        yield from settings_of(spark, options.undocumented)
        return
    known = {each.name: each for each in settings_of(spark, True)}
    for each in options.only:
        name, is_given, value = each.partition("=")
        yield Setting(name, value) if is_given else known[name]


if __name__ == "__main__":
    sys.exit(main())
