"""Performs a history on a server, captures and replicates it, and compares its tables with the server."""

import random
import re
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.changelog._facts.completeness import Lack, lacks_of
from pgoutput_construct.changelog._facts.copies import latest_copies
from pgoutput_construct.changelog.reader import EmptyLogError
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.lake._notes import Dataset
from pgoutput_construct.postgres import capture, current_lsn, snapshot
from pgoutput_construct.spark import MaintenanceReport, Retention, open_log, plain_errors, replicate
from pgoutput_construct.spark._log_view.added_columns import PREFIX
from pgoutput_construct.spark._replicate import Batch
from pgoutput_construct.spark._table_formats.dataset_columns import Naming
from tools.faults.generated_histories import CAPTURE, PUBLICATION, REPLICATE, History, Step
from tools.faults.history_kills import Killer
from tools.faults.netted_tables import has_one_key, net_mismatch
from tools.faults.noted_tables import Moment, NotedTable, mismatch, note_tables
from tools.faults.warehouse_tables import datasets_of, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Difference", "Outcome", "Settings", "perform"]

_SESSIONS: Final = 3
_SECONDS: Final = 180.0
"""For how long a capture may take when no transaction is open, for which it might wait, and"""
_PATIENCE: Final = 3.0
"""when one is."""
_TIMEOUTS: Final = "-c lock_timeout=300ms -c statement_timeout=20s -c search_path=public,other"
_OWN: Final = ("untyped", "commit_lsn", "seq")
"""The columns of a current table besides those of its source, without how their names begin."""
_REFUSED: Final = ("has the name of an added column", "is reserved for net changes")
_UNSENT: Final = "does not send the value of the column"
"""What is said of tables that are refused as they are documented to be."""

_WITHOUT_TEXT: Final = ("money", "public.mood[]", "public.positive[]")
"""The types whose values a log in binary format has no text of, as it is documented."""

_HELD: Final = b"""
    SELECT pid FROM pg_locks WHERE locktype = 'relation' AND mode = 'AccessExclusiveLock'
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND granted
"""
_PREPARED: Final = b"SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"


@dataclass(frozen=True)
class Settings:
    """How a history is replicated, and what is compared."""

    into: str = "parquet"
    write_mode: str | None = None
    """As ``replicate`` has it."""
    is_maintained: bool = False
    """Whether tables are maintained after each batch, and nothing of before is retained."""
    with_history: bool = True
    """Whether the warehouse has histories, too."""
    states: int = 2
    """How many tables are compared as of the end of an earlier capture, and by net changes: jobs of Spark each."""
    kills: int = 0
    """How many captures, and how many replications, are killed on the way, at most."""


@dataclass(frozen=True)
class Difference:
    """A difference from the source."""

    stage: str
    """The comparison, or the operation that failed."""
    table: str
    """The name of the table; empty for all."""
    text: str
    reported: bool = False
    """Whether the log reports the table as incomplete."""

    def __str__(self) -> str:
        return f"{self.stage}: {self.table}: {self.text}" if self.table else f"{self.stage}: {self.text}"


@dataclass
class Outcome:
    """The result of a history."""

    differences: list[Difference] = field(default_factory=list)
    tables: int = 0
    """How many were compared at the end."""
    rows: int = 0
    """Of these."""
    comparisons: int = 0
    """The number of comparisons of a table."""
    executed: int = 0
    """Statements that succeeded."""
    refused: int = 0
    """Statements that failed on the server, as random ones may; the rest of their steps was skipped."""
    kills: int = 0
    """Captures and replications that were killed."""
    refusals: list[str] = field(default_factory=list)
    """What it said of them."""
    seconds: dict[str, float] = field(default_factory=dict)
    """How long it was captured, and replicated."""

    @property
    def failures(self) -> list[Difference]:
        """The unreported differences, which are failures."""
        return [each for each in self.differences if not each.reported]


def perform(
    history: History, server: EmbeddedServer, spark: "SparkSession", directory: Path, settings: Settings | None = None
) -> Outcome:
    """Perform a history in a database of its own, and compare; nothing of it is left, but for files of a failure.

    ``directory`` must be there; log and warehouse go into it.
    """
    run = _Run(history, server, spark, directory, settings or Settings())
    with run.database():
        run.run()
    return run.outcome


@dataclass
class _Run:
    history: History
    server: EmbeddedServer
    spark: "SparkSession"
    directory: Path
    settings: Settings
    outcome: Outcome = field(default_factory=Outcome)
    moments: list[Moment] = field(default_factory=list)
    """Those that were noted."""
    points: list[tuple[int, Moment]] = field(default_factory=list)
    """The last seq of the log, and the contents, at the end of each capture."""
    batches: int = 0
    """How often it was replicated."""
    excluded: set[str] = field(default_factory=set)
    """Tables that the last batch could not bring up to date."""

    @cached_property
    def chance(self) -> random.Random:
        return random.Random(self.history.name)

    @cached_property
    def killer(self) -> Killer:
        return Killer(self.directory, self.settings.kills, random.Random(f"{self.history.name} killed"))

    @property
    def log(self) -> Path:
        return self.directory / "log"

    @cached_property
    def dbname(self) -> str:
        return "".join(each if each.isalnum() else "_" for each in f"h_{self.history.name}".lower())

    @property
    def dsn(self) -> str:
        return psycopg.conninfo.make_conninfo(self.server.dsn, dbname=self.dbname)

    @contextmanager
    def database(self) -> Iterator[None]:
        """Create a database; drop it with its slot at the end."""
        with self.server.connect() as admin:
            admin.execute(f"CREATE DATABASE {self.dbname}".encode())
        try:
            yield
        finally:
            with self.server.connect(dbname=self.dbname) as connection:
                for (gid,) in connection.execute(_PREPARED).fetchall():
                    connection.execute(f"ROLLBACK PREPARED '{gid}'".encode())
                query = b"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s"
                connection.execute(query, [self.dbname])
            with self.server.connect() as admin:
                admin.execute(f"DROP DATABASE {self.dbname} WITH (FORCE)".encode())

    def run(self) -> None:
        with ExitStack() as stack:
            self.admin = stack.enter_context(self.server.connect(dbname=self.dbname))
            for statement in self.history.setup:
                self.admin.execute(statement.encode())
            opened = (self.server.connect(dbname=self.dbname, options=_TIMEOUTS) for _ in range(_SESSIONS))
            self.sessions = [stack.enter_context(each) for each in opened]
            self.live: _Live | None = None
            try:
                self.capture()
                for step in self.history.steps:
                    self.step(step)
                self.end_transactions()
                final = self.replicated()
            except _GivenUpError:
                return
            finally:
                if self.live is not None:
                    self.live.stop()
            if not self.points:
                return
            self.compare_histories(final, self.warehouse, "history")
            self.compare_states()
            self.compare_net_changes()
            self.compare_at_once(final)

    # What the server does.

    def step(self, step: Step) -> None:
        """Execute one step."""
        match step.feature:
            case "capture":
                self.captured()
            case "note":
                self.release_tables()
                self.moments.append(note_tables(self.admin, PUBLICATION))
            case "replicate":
                self.replicated()
            case "snapshot":
                self.copy_again(step.statements[0])
            case _:
                self.execute(step)

    def execute(self, step: Step) -> None:
        session = self.sessions[step.session]
        for statement in step.statements:
            try:
                session.execute(statement.encode())
                self.outcome.executed += 1
            except psycopg.Error as error:
                self.outcome.refused += 1
                self.outcome.refusals.append(f"{str(error).splitlines()[0]} <- {statement[:200]}")
                _roll_back(session)
                return

    def release_tables(self) -> None:
        """Commit transactions that hold exclusive locks on tables, which could not be read."""
        holders = {row[0] for row in self.admin.execute(_HELD)}
        for session in self.sessions:
            if session.info.backend_pid in holders:
                _commit(session)
        if None in holders:
            self.end_prepared()

    def prepared(self) -> list[str]:
        """Return the transactions that are prepared."""
        return [row[0] for row in self.admin.execute(_PREPARED)]

    def end_prepared(self) -> None:
        for gid in self.prepared():
            self.admin.execute(f"COMMIT PREPARED '{gid}'".encode())

    def end_transactions(self) -> None:
        for session in self.sessions:
            _commit(session)
        self.end_prepared()

    # What captures and replicates it.

    def capture(self) -> None:
        """Capture everything that was written."""
        self.release_tables()
        if self.live is not None:
            live, self.live = self.live, None
            self.failing(CAPTURE, live.stop)
        self.failing(CAPTURE, self.capture_to_here)
        if self.history.is_live:
            self.live = _Live(self)

    def capture_to_here(self) -> None:
        """Capture what was written; a table that is copied waits for all transactions that are open, which then end."""
        end, is_open = current_lsn(self.admin), any(map(_is_open, self.sessions)) or self.prepared()
        self.outcome.kills += self.killer.capture(self.captured_by, str(end))
        if is_open and self._capture(until_lsn=end, duration=_PATIENCE):
            return
        self.end_transactions()
        if not self._capture(until_lsn=end, duration=_SECONDS):
            raise PgoutputError(f"the capture took longer than {_SECONDS:.0f} seconds")

    @property
    def captured_by(self) -> dict[str, Any]:
        """The keywords of capture."""
        return {
            "dsn": self.dsn,
            "slot": self.dbname,
            "publications": [PUBLICATION],
            "directory": self.log,
            "create_slot": True,
            "snapshot": True,
            "status_interval": 1.0,
            **self.history.options,
        }

    def _capture(self, **until: Any) -> bool:
        """Capture; return whether it reached the given LSN."""
        given = {**self.captured_by, **until, "handle_signals": False}
        return capture(given.pop("dsn"), **given).ended_by != "duration"

    def copy_again(self, table: str) -> None:
        """Copy a table again, unless it was dropped, or is not published."""
        self.end_transactions()
        end = time.monotonic() + _SECONDS
        with suppress(PgoutputError):
            snapshot(self.dsn, self.log, [table], stop=lambda: time.monotonic() > end, handle_signals=False)

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            spent = self.outcome.seconds.get(what, 0.0) + time.monotonic() - began
            self.outcome.seconds[what] = spent

    def failing(self, stage: str, work: Callable[[], object]) -> None:
        """Do something without which there is nothing to compare; what it raises is noted."""
        try:
            with self.timed(stage):
                work()
        except Exception as error:
            self.differ(stage, "", f"{type(error).__name__}: {_one_line(error)}")
            raise _GivenUpError from error

    def captured(self) -> tuple[Moment, bool]:
        """Capture all; return what the server shows, and whether the log has anything."""
        self.capture()
        moment = note_tables(self.admin, PUBLICATION)
        self.moments.append(moment)
        try:
            self.points.append((ChangeLog(self.log).index.last_seq, moment))
        except EmptyLogError as error:
            if moment.tables:
                self.differ(CAPTURE, "", _one_line(error))
            return moment, False
        return moment, True

    def replicated(self) -> Moment:
        """Capture and replicate all, and compare the tables; return what the server shows."""
        moment, has_log = self.captured()
        if has_log:
            self.batches += 1
            self.outcome.kills += self.killer.replicate(self.log, self.warehouse, self.replicated_by)
            if self.replicate(self.warehouse, REPLICATE, self.replicated_by):
                self.compare(moment, self.warehouse, "state")
        return moment

    @property
    def warehouse(self) -> Path:
        return self.directory / "warehouse"

    @property
    def replicated_by(self) -> dict[str, Any]:
        """The keywords of replicate."""
        given = {"into": self.settings.into, "write_mode": self.settings.write_mode}
        return given | {"history": self.settings.with_history, **self.history.replication}

    def replicate(self, warehouse: Path, stage: str, options: Mapping[str, Any]) -> bool:
        """Replicate; return whether there is something to compare."""
        troubled: dict[str, str] = {}
        maintained: dict[str, Any] = {}
        if self.settings.is_maintained:
            kept = Retention(age=0, count=1, grace=0)
            maintained = {"maintains": True, "retention": kept, "on_maintenance": self.check_maintenance}

        def done(batch: Batch) -> None:
            troubled.clear()
            troubled.update(batch.troubled)

        try:
            with warnings.catch_warnings(), self.timed(REPLICATE):
                warnings.simplefilter("ignore")
                replicate(self.spark, self.log, warehouse, **options, **maintained, on_batch=done)
        except Exception as error:
            if not troubled:
                self.differ(stage, "", f"{type(error).__name__}: {_one_line(error)}")
                return False
        for name, reason in troubled.items():
            self.differ(stage, name, _shortened(reason), is_reported=self.is_refused(name, reason))
        self.excluded = set(troubled)
        return True

    def check_maintenance(self, report: MaintenanceReport) -> None:
        """Take an error of maintenance for a difference."""
        if report.error:
            self.differ("maintain", report.table, report.error)

    # What is compared.

    def lacks(self) -> Mapping[int, Lack]:
        """Return what the log says that it lacks, by table."""
        return {lack.relation_oid: lack for lack in lacks_of(ChangeLog(self.log).index)}

    def is_refused(self, table: str, reason: str) -> bool:
        """Return whether an error says of a table what must be said: what the server does not send cannot be applied.

        A row that enters a row filter is sent without its unchanged TOASTed values.
        """
        return any(each in reason for each in _REFUSED) or (_UNSENT in reason and table in self.filtered)

    @cached_property
    def filtered(self) -> frozenset[str]:
        """The tables that have had a row filter, under all their names."""
        found = set[str]()
        for statement in (each for step in self.history.steps for each in step.statements):
            if published := re.search(r"\bTABLE ([\w.]+)(?: \([^)]*\))? WHERE \(", statement):
                found.add(published[1])
            if renamed := re.search(r"ALTER TABLE ([\w.]+) (?:RENAME TO (\w+)|SET SCHEMA (\w+))", statement):
                schema, _, name = renamed[1].rpartition(".")
                if renamed[1] in found:
                    found.add(f"{renamed[3] or schema}.{renamed[2] or name}")
        return frozenset(found)

    def differ(self, stage: str, table: str, text: str, lack: Lack | None = None, is_reported: bool = False) -> None:
        is_reported = is_reported or lack is not None
        found = Difference(stage, table, text + (f" (reported: {lack.reason})" if lack else ""), is_reported)
        if found not in self.outcome.differences:
            self.outcome.differences.append(found)

    def compare(self, moment: Moment, warehouse: Path, stage: str) -> None:
        """Compare all tables of a warehouse with recorded contents."""
        lacks, stored = self.lacks(), datasets_of(warehouse, is_history=False)
        self.outcome.tables = len(moment.tables)
        self.outcome.rows = sum(len(noted.rows) for noted in moment.tables.values())
        for oid, noted in moment.tables.items():
            if noted.name in self.excluded:
                continue
            self.outcome.comparisons += 1
            if oid not in stored:
                self.differ(stage, noted.name, "it is not in the warehouse", lacks.get(oid))
                continue
            if (name := stored[oid].version.table) != noted.name:
                self.differ(stage, noted.name, f"it is called {name} there", lacks.get(oid))
            rows, skipped = rows_of(self.spark, warehouse, stored[oid]), self.ours(stored[oid], *_OWN)
            text, is_known = self.mismatch(noted, rows, skipped=skipped, untyped=skipped[0])
            if text:
                self.differ(stage, noted.name, text, lacks.get(oid), is_known)
        published = {noted.name for noted in moment.tables.values()}
        for dataset in stored.values():
            name = dataset.version.table
            if dataset.version.oid not in moment.tables and name in published:
                self.differ(stage, name, f"the warehouse has it of OID {dataset.version.oid}, which is another table")

    def mismatch(
        self,
        noted: NotedTable,
        found: pa.Table,
        names: Mapping[str, str] | None = None,
        *,
        skipped: Sequence[str] = (),
        untyped: str,
    ) -> tuple[str, bool]:
        """Return in which way rows differ, and whether only in values that a binary capture has no text of."""
        text = mismatch(noted, found, names, skipped=skipped, untyped=untyped)
        if not text or text.startswith("columns") or not self.history.options.get("binary"):
            return text, False
        named = {name: name for name in noted.columns} if names is None else names
        known = {own: name for own, name in named.items() if noted.types[own] not in _WITHOUT_TEXT}
        return text, len(known) < len(named) and not mismatch(noted, found, known, untyped=untyped)

    def ours(self, dataset: Dataset, *names: str) -> list[str]:
        """Return the names of our metadata columns in a dataset of a warehouse."""
        naming = Naming(self.history.replication.get("metadata_prefix", PREFIX))
        prefix = naming.for_version(dataset.version, dataset.is_history).prefix
        return [f"{prefix}{name}" for name in names]

    def compare_histories(self, final: Moment, warehouse: Path, stage: str) -> None:
        """Compare the histories, as of now and as of each recorded time, with the source."""
        if not self.settings.with_history:
            return
        lacks, copies = self.lacks(), latest_copies(ChangeLog(self.log).index)
        for oid, dataset in datasets_of(warehouse, is_history=True).items():
            noted = final.tables.get(oid)
            if noted is None or noted.name in self.excluded:
                continue
            self.outcome.comparisons += 1
            ended_by, untyped = self.ours(dataset, "ended_by", "untyped")
            try:
                rows = rows_of(self.spark, warehouse, dataset)
                now = rows.filter(pc.is_null(rows[ended_by])).select([*noted.columns, untyped])
                text, is_known = self.mismatch(noted, now, skipped=[untyped], untyped=untyped)
            except KeyError as error:
                text, is_known = f"its columns are {rows.column_names}: {error}", False
            if text:
                self.differ(stage, noted.name, text, lacks.get(oid), is_known)
                continue
            copy = copies.get(oid)
            for moment in self.moments:
                if oid in moment.tables and (copy is None or moment.has_all_of(copy.snapshot)):
                    self.compare_moment(moment, noted, rows, dataset, stage, lacks.get(oid))

    def compare_moment(
        self, moment: Moment, now: NotedTable, history: pa.Table, dataset: Dataset, stage: str, lack: Lack | None
    ) -> None:
        """Compare a history as of a recorded time with the record, in the columns that the table still has."""
        then = moment.tables[now.oid]
        numbers = {number: name for name, number in now.columns.items()}
        names = {
            name: numbers[number]
            for name, number in then.columns.items()
            if number in numbers and now.types[numbers[number]] == then.types[name]
        }
        if not names:
            return
        self.outcome.comparisons += 1
        ours = ("op", "commit_lsn", "valid_to", "ended_by", "untyped", "unchanged")
        op, commit_lsn, valid_to, ended_by, untyped, unchanged = self.ours(dataset, *ours)
        time = pa.scalar(moment.time.astimezone(UTC), pa.timestamp("us", "UTC"))
        ends = history[valid_to].cast(pa.timestamp("us", "UTC"))
        # What a later copy has ended has no time of its end: that copy is older than the moment.
        is_open = pc.or_(pc.is_null(history[ended_by]), pc.fill_null(pc.greater(ends, time), False))
        # A commit has the LSN of its record's begin, a copy that of its snapshot's end.
        lsn, is_copied = pa.scalar(int(moment.lsn), pa.int64()), pc.equal(history[op], "snapshot")
        begins = pc.or_(pc.less(history[commit_lsn], lsn), pc.and_(is_copied, pc.equal(history[commit_lsn], lsn)))
        valid = history.filter(pc.and_(is_open, begins))
        text, is_known = self.mismatch(then, valid, names, untyped=untyped)
        if text and now.name in self.filtered:
            # A row that has entered a row filter: the history names the columns that the log does not have of it.
            unknown = set(pc.unique(valid[unchanged].combine_chunks().flatten()).to_pylist())
            told = {name: there for name, there in names.items() if there not in unknown}
            is_known = is_known or (bool(unknown) and not self.mismatch(then, valid, told, untyped=untyped)[0])
        if text:
            self.differ(f"{stage} at a moment", now.name, f"{moment.lsn}: {text}", lack, is_known)

    def compare_states(self) -> None:
        """Compare states of a few tables as of the end of earlier captures."""
        some = [
            (seq, noted)
            for seq, moment in self.points[:-1]
            for noted in moment.tables.values()
            if noted.rows and noted.name not in self.excluded
        ]
        for seq, noted in self.chance.sample(some, min(self.settings.states, len(some))):
            opened = open_log(self.spark, self.log, seq)
            lacks = {lack.relation_oid: lack for lack in opened.lacks}
            self.outcome.comparisons += 1
            try:
                with warnings.catch_warnings(), plain_errors():
                    warnings.simplefilter("ignore")
                    text = mismatch(noted, opened.state(noted.name).toArrow(), skipped=["_untyped"])
            except Exception as error:
                text = f"{type(error).__name__}: {_one_line(error)}"
            if text:
                text, lack = f"seq {seq}: {text}", lacks.get(noted.oid)
                self.differ("as of a seq", noted.name, text, lack, is_reported=self.is_refused(noted.name, text))

    def compare_net_changes(self) -> None:
        """Compare what net changes from the end of one capture to the next make of the rows with those of then."""
        left = self.settings.states
        for (seq, before), (end, after) in pairwise(self.points):
            opened = open_log(self.spark, self.log, end)
            for noted in after.tables.values():
                there = before.tables.get(noted.oid)
                if not left or there is None or there.rows == noted.rows or noted.name in self.excluded:
                    continue
                if noted.name not in opened.tables or there.types != noted.types:
                    continue
                if not has_one_key(opened.table(noted.name)):
                    continue
                left -= 1
                try:
                    with plain_errors():
                        text = net_mismatch(opened, there, noted, seq)
                except Exception as error:
                    text = f"{type(error).__name__}: {_one_line(error)}"
                self.outcome.comparisons += text is not None
                if text:
                    lacks, text = {lack.relation_oid: lack for lack in opened.lacks}, f"from seq {seq} to {end}: {text}"
                    self.differ(
                        "net changes",
                        noted.name,
                        text,
                        lacks.get(noted.oid),
                        is_reported=self.is_refused(noted.name, text),
                    )

    def compare_at_once(self, final: Moment) -> None:
        """Replicate all from the beginning in one batch, where it took several until now."""
        other = self.directory / "at-once"
        options = {name: each for name, each in self.replicated_by.items() if not name.startswith("batch_")}
        if self.batches > 1 and self.replicate(other, "replicate at once", options):
            self.compare(final, other, "state at once")
            self.compare_histories(final, other, "history at once")


class _GivenUpError(Exception):
    """What follows could not be compared."""


class _Live:
    """A capture that runs while a history is performed."""

    def __init__(self, run: _Run) -> None:
        self._done = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._capture, args=(run,), name="capture")
        self._thread.start()

    def _capture(self, run: _Run) -> None:
        try:
            run._capture(stop=self._done.is_set)
        except Exception as error:
            self._error = error

    def stop(self) -> None:
        """Stop the capture; raise its error, if any."""
        self._done.set()
        self._thread.join()
        if self._error is not None:
            raise self._error


def _is_open(session: "psycopg.Connection[Any]") -> bool:
    return session.info.transaction_status != psycopg.pq.TransactionStatus.IDLE


def _commit(session: "psycopg.Connection[Any]") -> None:
    if _is_open(session):
        session.execute("COMMIT")


def _roll_back(session: "psycopg.Connection[Any]") -> None:
    if _is_open(session):
        session.execute("ROLLBACK")


def _one_line(error: Exception) -> str:
    return _shortened(str(error))


def _shortened(text: str) -> str:
    return " ".join(text.split())[:600]
