r"""python -m tools.faults settings: settings of the caller's session are flipped one at a time, and change nothing.

The settings are those that a running session says it has (``SET -v``; with --undocumented also those that it does not
list): booleans, and enumerations, whose values are taken from what the setting says of itself. With each in turn the
state of a small log with awkward names and values is read, and its tables in each format. If the sessions of our own
are others with it, the log is also replicated, in two batches into each format; else that could not be another way
(--always does it nevertheless). All must have the rows that they have without.
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

__all__ = ["TABLE", "FlippedSettings", "Setting", "SmallLog", "main"]

TABLE: Final = r'''public."It's \ odd"'''
"""The table of the log, as SQL writes its name."""
_CREATED: Final = (
    r"""CREATE TABLE "It's \ odd" ("k'1 \ x" text, at timestamptz, "Big \'" text, "${env:HOME}" int, local timestamp,
    day date, n numeric(12, 3), f float8, PRIMARY KEY ("k'1 \ x", at))""",
    r"""ALTER TABLE "It's \ odd" ALTER "Big \'" SET STORAGE EXTERNAL""",
    # Twice the hour that ends summer time in Berlin and in New York, and once the one that is left out.
    r"""INSERT INTO "It's \ odd"
    SELECT k, at::timestamptz, repeat('b', 3000), 1, at::timestamptz AT TIME ZONE 'UTC', '1500-02-28', i / 3.0, '-0.0'
    FROM unnest(
        ARRAY['plain', 'it''s', 'back\slash', E'both\\\'', E'new\nline', '${env:HOME}', ''],
        ARRAY['2024-10-27 00:30Z', '2024-10-27 01:30Z', '2024-11-03 05:30Z', '2024-11-03 06:30Z', '2024-03-31 01:30Z',
            '0001-01-02 00:00Z', '9999-12-30 12:00Z']
    ) WITH ORDINALITY each (k, at, i)""",
)
_CHANGED: Final = (
    r"""UPDATE "It's \ odd" SET "${env:HOME}" = 2, f = 'NaN' WHERE "k'1 \ x" <> 'plain'""",
    r"""DELETE FROM "It's \ odd" WHERE "k'1 \ x" IN ('back\slash', '')""",
    r"""INSERT INTO "It's \ odd"
    VALUES ('it''s \ new', '2024-10-27 00:45Z', 'c', 3, 'infinity', '9999-12-31', 'NaN', 1e300)""",
)
_PARTITIONS: Final = {TABLE: ["at"]}
_REFUSED: Final = "no such value"
_QUOTED: Final = re.compile(r"""['"`]([\w-]+)['"`]|\b([A-Z][A-Z0-9_]{2,})\b""")
"""A value in the text of a setting."""
_NAMES: Final = re.compile(r"spark\.(sql|databricks\.delta)\.")
_SKIPPED: Final = re.compile(r"spark\.sql\.(connect|thriftServer|hive|ui)\b")
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
            for statements in (_CREATED, _CHANGED):
                for statement in statements:
                    connection.execute(statement.encode())
                is_new, end = statements is _CREATED, current_lsn(connection)
                capture(dsn, "flipped", ["pub"], log, new_log=is_new, snapshot=is_new, until_lsn=end)
                if is_new:
                    shutil.copytree(log, first)
        with server.connect() as admin:
            # A walsender may end later than its client.
            for call in ("pg_terminate_backend(active_pid, 10000)", "pg_drop_replication_slot(slot_name)"):
                admin.execute(f"SELECT {call} FROM pg_replication_slots WHERE slot_name = 'flipped'".encode())
            admin.execute("DROP DATABASE flipped WITH (FORCE)")
        return cls(log, first)


@dataclass
class FlippedSettings:
    """Sessions with other settings, and what becomes of a log in each."""

    spark: "SparkSession"
    log: SmallLog
    directory: Path
    formats: Sequence[str]
    expected: Any = None
    """The rows of the table."""
    _numbers: Iterator[int] = field(default_factory=count)

    def begin(self, *settings: Setting) -> dict[str, str]:
        """Replicate the log with some settings; return as ``differences`` does what is not as a plain session has it.

        What is expected are the rows of the log's state.
        """
        self.expected = rows(self.state, self.spark)
        return self._differing(self.replicated(self.session(*settings), lambda into: self.directory / into))

    def differences(self, *settings: Setting, always: bool = False) -> dict[str, str]:
        """Return what is another thing with some settings, and how: an error, or other rows.

        With ``always`` the log is replicated even if the sessions of our own are those of any other session.
        """
        from pgoutput_construct.spark import read_current

        session, found = self.session(*settings), dict[str, Any]()
        if always or own_settings(session) != own_settings(self.spark):
            number = next(self._numbers)
            found |= self.replicated(session, lambda into: self.directory / f"{into}{number}")
        for into in self.formats:
            found[f"read_current of {into}"] = rows(read_current, session, self.directory / into, TABLE)
        found["state"] = rows(self.state, session)
        return self._differing(found)

    def session(self, *settings: Setting) -> "SparkSession":
        """Return a session with some settings."""
        session = self.spark.newSession()
        for each in settings:
            session.conf.set(*each)
        return session

    def state(self, session: "SparkSession") -> "DataFrame":
        """Return the state of the table."""
        from pgoutput_construct.spark import open_log

        return open_log(session, self.log.directory).state(TABLE)

    def replicated(self, session: "SparkSession", place: Any) -> dict[str, Any]:
        """Return the rows after two batches by format, as a plain session reads them, and what a session has more."""
        from pgoutput_construct.spark import read_current, replicate

        found, before = dict[str, Any](), session.conf.getAll
        for into in self.formats:
            partitions = {} if into == "parquet" else _PARTITIONS
            try:
                for log in (self.log.first, self.log.directory):
                    replicate(session, log, place(into), into, write_mode="merge-on-read", partition_by=partitions)
            except Exception as error:
                found[f"replicate into {into}"] = _text_of(error)
            else:
                found[f"replicate into {into}"] = rows(read_current, self.spark, place(into), TABLE)
        if changed := set(session.conf.getAll.items()) ^ set(before.items()):
            found["the session"] = str(sorted(changed))
        return found

    def _differing(self, found: Mapping[str, Any]) -> dict[str, str]:
        return {
            what: each if isinstance(each, str) else f"other rows: {sorted(set(each) - set(self.expected))}"
            for what, each in found.items()
            if each != self.expected
        }


def own_settings(spark: "SparkSession") -> Mapping[str, str]:
    """Return the settings of a session of our own for a program with a session."""
    from pgoutput_construct.spark._own_session import own_session

    return dict(own_session(spark, "a comparison").conf.getAll)


def rows(read: Any, *arguments: Any) -> Any:
    """Return the rows of a DataFrame as sorted texts; the text of an error where it fails."""
    from pgoutput_construct.spark import plain_errors

    try:
        with plain_errors():
            frame: DataFrame = read(*arguments).drop("_commit_lsn", "_seq")
            return sorted(repr(_values(frame.columns, row)).replace("b" * 3000, "...") for row in frame.collect())
    except Exception as error:
        return _text_of(error)


def _values(names: Sequence[str], row: Any) -> dict[str, Any]:
    each = zip(names, row, strict=True)
    return {name: sorted(value.items()) if isinstance(value, dict) else value for name, value in each}


def _text_of(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def settings_of(spark: "SparkSession", undocumented: bool = False) -> Iterator[Setting]:
    """Yield the booleans and enumerations of a session, each with every other value than its present one."""
    scratch = spark.newSession()
    for name, value, meaning in sorted(_undocumented(spark) if undocumented else _documented(spark)):
        if not _NAMES.match(name) or _SKIPPED.match(name):
            continue
        present = _present(scratch, name, value)
        candidates = ["true", "false"] if present.lower() in ("true", "false") else _values_in(scratch, name, meaning)
        yield from (Setting(name, each) for each in candidates if each.lower() != present.lower())


def _documented(spark: "SparkSession") -> list[tuple[str, str, str]]:
    return [(row["key"], row["value"], row["meaning"]) for row in spark.sql("SET -v").collect()]


def _undocumented(spark: Any) -> list[tuple[str, str, str]]:
    companion = getattr(spark._jvm, "org.apache.spark.sql.internal.SQLConf$")  # an object of Scala
    entries = getattr(companion, "MODULE$").getConfigEntries().toArray()
    return [(each.key(), each.defaultValueString(), each.doc()) for each in entries]


def _present(scratch: "SparkSession", name: str, value: str) -> str:
    """Return the value that a session has; as it is listed, which may be that of another one, for none."""
    try:
        return scratch.conf.get(name) or value
    except Exception:
        return value


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
    parser.add_argument("--always", action="store_true", help="replicate with each setting")
    parser.add_argument("--into", nargs="+", default=("parquet", *LAKES), help="the formats")
    parser.add_argument("--seconds", type=float, default=2400.0, help="begin no other setting after this time")
    options = parser.parse_args(arguments)
    if problem := missing_jars():
        print(f"faults: {problem}", file=sys.stderr)
        return 2
    from pgoutput_construct.spark import spark_session

    with tempfile.TemporaryDirectory(prefix="settings-") as name, open_server(18) as server:
        log = SmallLog.recorded(server, Path(name))
        quiet = {**FEW_ROWS, "spark.databricks.delta.snapshotPartitions": "1"}
        with spark_session("local[2]", quiet, "settings", into=LAKES) as spark:
            return _run(FlippedSettings(spark, log, Path(name), options.into), options)


def _run(flipped: FlippedSettings, options: argparse.Namespace) -> int:
    began, totals = time.monotonic(), Counter[str]()
    if problems := flipped.begin():
        print(f"without a change of settings: {problems}", file=sys.stderr)
        return 2
    print(f"without: {flipped.expected}; {time.monotonic() - began:.0f} s", flush=True)
    chosen = list(_chosen(flipped.spark, options))
    for number, setting in enumerate(chosen, 1):
        if time.monotonic() - began > options.seconds:
            totals["not tried"] = len(chosen) - number + 1
            break
        if not _can_be_set(flipped, setting):
            totals["cannot be set"] += 1
            continue
        differences = flipped.differences(setting, always=options.always)
        totals["different" if differences else "the same"] += 1
        for what, each in differences.items():
            print(f"{setting}: {what}: {each}", flush=True)
        if not number % 20:
            print(f"[{number}/{len(chosen)}, {time.monotonic() - began:.0f} s] {dict(totals)}", flush=True)
    print(f"{len(chosen)} settings in {time.monotonic() - began:.0f} s: {dict(totals)}")
    return 1 if totals["different"] or totals["not tried"] else 0


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
