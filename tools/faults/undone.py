"""python -m tools.faults undo: takes random transactions back, and compares the tables with what they were before.

A history is that of ``histories``: tables of any types and identities, keys that change, TOASTed values, truncates,
savepoints, prepared and streamed transactions. After each transaction the log is captured, and some transaction, mostly
the latest one, is taken back on the server by the SQL of ``pgoutput undo``. Then each table must have its rows without
what that transaction did; if a row was changed since, the SQL must refuse and change nothing. Afterwards the changes of
rows, drawn at random, are compared with what ``pgoutput blame`` says: triggers recorded them.
"""

import argparse
import logging
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import psycopg

from pgoutput_construct.changelog.reader import EmptyLogError
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.forensics import undo
from pgoutput_construct.postgres import capture, current_lsn
from tools.faults.generated_histories import PUBLICATION, History, Step, generated
from tools.faults.histories import SERVER_SETTINGS
from tools.faults.noted_tables import Moment, NotedTable, note_tables
from tools.faults.witnessed_rows import WitnessedRows
from tools.servers import RELEASES, open_server

__all__ = ["ALTERING", "LIVES", "UndoRun", "main"]

LIVES: Final = ("ordinary", "short", "deferred", "cascades", "toast", "odd names", "collisions", "generated", "types")
"""The lives of tables that are taken back."""
ALTERING: Final = (
    *("column added", "volatile default", "column dropped", "column replaced", "column renamed", "type altered"),
    *("type cast", "identity", "identity of another column", "new key", "table renamed", "schema changed"),
    *("created again", "rewritten", "savepoint with DDL", "two phases with DDL", "drop expression", "set expression"),
    *("enum added", "enum renamed", "attribute added", "attribute altered", "attribute dropped", "full"),
)
"""Features of steps that alter tables."""
_UNFIT: Final = ("open transaction", "snapshot", "publication")
"""Features that are not one transaction after the other."""
_TIMEOUTS: Final = "-c lock_timeout=2s -c statement_timeout=60s -c search_path=public,other"
_LATEST: Final = 0.6
"""How often the latest transaction is taken back, and not an earlier one."""
_RECENT: Final = 8
"""The last transactions, of which others are taken back."""
_BEFORE_COMMIT: Final = ("COMMIT", "PREPARE TRANSACTION")
_RETYPING: Final = "ALTER TYPE"
"""How statements begin after which values of a type look otherwise: the stream has no changes of their rows."""

Rows = Mapping[int, Counter[tuple[str | None, ...]]]


@dataclass(frozen=True)
class _Unit:
    """A transaction, with the tables before and after it."""

    xid: int
    statements: tuple[str, ...]
    before: Moment
    after: Moment


@dataclass
class UndoRun:
    """One history on a server."""

    history: History
    server: EmbeddedServer
    directory: Path
    is_altered: bool = False
    """Whether tables are altered: then some changes cannot be taken back."""
    limit: int = 10**9
    """How many transactions are taken back."""
    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    @property
    def _dbname(self) -> str:
        return "u_" + "".join(each if each.isalnum() else "_" for each in self.history.name.lower())

    def run(self) -> None:
        """Perform the history, and take its transactions back."""
        self._chance = random.Random(f"{self.history.name} undone")
        self._units: list[_Unit] = []
        with self.server.connect() as admin:
            admin.execute(f"CREATE DATABASE {self._dbname}".encode())
        try:
            with (
                self.server.connect(dbname=self._dbname, options=_TIMEOUTS) as self._session,
                self.server.connect(dbname=self._dbname) as self._admin,
            ):
                for statement in self.history.setup:
                    self._admin.execute(statement.encode())
                self._witness = WitnessedRows(self._admin)
                self._capture()
                for step in _transactions(self.history.steps):
                    if self.counts["undone"] >= self.limit or self.problems:
                        return
                    self._perform(step)
                self._capture()
                self._blame()
        finally:
            self._drop()

    def _perform(self, statements: tuple[str, ...]) -> None:
        before = note_tables(self._admin, PUBLICATION)
        xid = self._execute(statements)
        if xid is None:
            return
        after = note_tables(self._admin, PUBLICATION)
        if not self.is_altered:
            self._witness.watch()
        self._capture()
        self.counts["transactions"] += 1
        if any(each.startswith(_RETYPING) for each in statements):
            self._units.clear()
            return
        self._units.append(_Unit(xid, statements, before, after))
        unit = self._units[-1] if self._chance.random() < _LATEST else self._chance.choice(self._units[-_RECENT:])
        if _is_comparable(unit, after) and _changes(unit):
            self._take_back(unit, after)

    def _execute(self, statements: tuple[str, ...]) -> int | None:
        """Execute a transaction; return its xid, None if it has none, failed or was rolled back."""
        xid = None
        try:
            for statement in statements:
                if statement.startswith(_BEFORE_COMMIT):
                    row = self._session.execute("SELECT pg_current_xact_id_if_assigned()::text").fetchone()
                    xid = None if row is None or row[0] is None else int(row[0]) % 2**32
                self._session.execute(statement.encode())
        except psycopg.Error:
            self._session.execute("ROLLBACK")
            self._end_prepared()
            return None
        return xid

    def _end_prepared(self) -> None:
        query = "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"
        for (gid,) in self._admin.execute(query).fetchall():
            self._admin.execute(f"ROLLBACK PREPARED '{gid}'".encode())

    def _capture(self) -> None:
        capture(
            self.server.dsn.replace("/postgres?", f"/{self._dbname}?"),
            self._dbname,
            [PUBLICATION],
            self.directory,
            create_slot=True,
            snapshot=True,
            status_interval=0.2,
            reconnect_seconds=60,
            until_lsn=current_lsn(self._admin),
            handle_signals=False,
            **self.history.options,
        )

    def _take_back(self, unit: _Unit, now: Moment) -> None:
        """Take a transaction back; note what is not as it should be."""
        is_latest = unit is self._units[-1]
        script = undo(self.directory, xid=unit.xid)
        if script.obstacles:
            self.counts["obstacles"] += 1
            self._check_obstacles(unit, script.obstacles)
            return
        text = script.text()
        expected = _expected(unit, now)
        try:
            self._session.execute(text.encode())
        except psycopg.Error as error:
            self._session.execute("ROLLBACK")
            self.counts["refused"] += 1
            # PostgreSQL 18: "Replica identity must not contain unpublished generated columns."
            if is_latest and "eplica identity" not in str(error):
                self._problem(unit, f"it is the latest transaction, and refused: {error}", text)
            if _rows(note_tables(self._admin, PUBLICATION)) != _rows(now):
                self._problem(unit, "it was refused, and something changed", text)
            return
        self.counts["undone"] += 1
        self.counts["undone statements"] += len(script.statements)
        self.counts["undone later"] += not is_latest
        found = _rows(note_tables(self._admin, PUBLICATION))
        if expected is None:
            self._problem(unit, "a row was changed since, and it was not refused", text)
        elif found != expected:
            names = [now.tables[oid].name for oid in found if found[oid] != expected.get(oid)]
            self._problem(unit, f"{', '.join(names)}: not as before", text)

    def _check_obstacles(self, unit: _Unit, obstacles: Sequence[str]) -> None:
        is_reset = any("RESTART IDENTITY" in each for each in unit.statements)
        is_refused = all("no replica identity" in each or "later change of this row" in each for each in obstacles)
        is_binary = self.history.options["binary"] and all(
            "in binary format" in each or "later" in each for each in obstacles
        )
        if not (self.is_altered or is_reset or is_refused or is_binary):
            self._problem(unit, f"an obstacle: {'; '.join(obstacles)[:500]}", "")

    def _blame(self) -> None:
        if not self.is_altered:
            found = self._witness.compare(self.directory, self._chance)
            self.counts["blamed"] += found.compared
            self.counts["touches"] += found.touches
            self.counts["untold"] += found.untold
            self.problems += found.problems

    def _problem(self, unit: _Unit, text: str, script: str) -> None:
        statements = "\n    ".join(unit.statements)
        self.problems.append(f"{self.history.name}, xid {unit.xid}: {text}\n    {statements}\n{script}")

    def _drop(self) -> None:
        with self.server.connect(dbname=self._dbname) as connection:
            query = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s"
            connection.execute(query, [self._dbname])
        with self.server.connect() as admin, suppress(psycopg.Error):
            admin.execute(f"DROP DATABASE {self._dbname} WITH (FORCE)".encode())


def _transactions(steps: Sequence[Step]) -> Iterator[tuple[str, ...]]:
    """Yield the statements of each transaction, one after the other."""
    prepared: dict[str, tuple[str, ...]] = {}
    for step in steps:
        statements = step.statements
        if not statements or step.session:
            continue
        first, last = statements[0], statements[-1]
        if last.startswith("PREPARE TRANSACTION"):
            prepared[last.split("'")[1]] = statements
        elif " PREPARED " in first:
            yield (*prepared.pop(first.split("'")[1], ()), first)
        elif first == "BEGIN":
            yield statements
        else:
            yield from (("BEGIN", each, "COMMIT") for each in statements)


def _rows(moment: Moment) -> Rows:
    return {oid: Counter(table.rows) for oid, table in moment.tables.items()}


def _columns(table: NotedTable) -> Any:
    return table.columns, table.types


def _is_comparable(unit: _Unit, now: Moment) -> bool:
    """Return whether the tables that a transaction changed have the columns that they had before it."""
    moments = unit.before, unit.after, now
    for oid in {*unit.before.tables, *unit.after.tables}:
        tables = [moment.tables.get(oid) for moment in moments]
        rows = [None if table is None else Counter(table.rows) for table in tables]
        if rows[0] != rows[1] and (None in tables or len({str(_columns(each)) for each in tables if each}) > 1):
            return False
    return True


def _changes(unit: _Unit) -> bool:
    return _rows(unit.before) != _rows(unit.after)


def _expected(unit: _Unit, now: Moment) -> Rows | None:
    """Return the rows without what a transaction did; None if a row that it left is no longer there."""
    before, after, found = _rows(unit.before), _rows(unit.after), dict(_rows(now))
    for oid, rows in found.items():
        removed = before.get(oid, Counter()) - after.get(oid, Counter())
        added = after.get(oid, Counter()) - before.get(oid, Counter())
        if added - rows:
            return None
        found[oid] = rows - added + removed
    return found


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit status: 1 if a table is not as it was before."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that no server is left behind
    logging.getLogger("pgoutput_construct").setLevel(logging.ERROR)
    began, totals, problems = time.monotonic(), Counter[str](), list[str]()
    print(f"seed {options.seed}", flush=True)
    without = [*_UNFIT, *(() if options.altered else ALTERING)]
    with tempfile.TemporaryDirectory(prefix="undone-") as place:
        for version in options.versions:
            with open_server(version, SERVER_SETTINGS) as server:
                number, undone = options.first, 0
                while undone < options.count and not problems:
                    name = f"{options.seed} {version} {number}"
                    history = generated(name, version, options.tables, without, options.only or LIVES, 0, 0)
                    given = {**history.options, "binary": options.binary}
                    history = replace(history, publication="FOR ALL TABLES", options=given)
                    directory = Path(place) / name.replace(" ", "-")
                    run = UndoRun(history, server, directory, options.altered, options.count - undone)
                    try:
                        run.run()
                    except (PgoutputError, EmptyLogError) as error:
                        run.problems.append(f"{name}: {type(error).__name__}: {error}")
                    number, undone = number + 1, undone + run.counts["undone"]
                    problems += run.problems
                    totals += run.counts
                    counts = ", ".join(f"{what} {count:,}" for what, count in run.counts.items())
                    print(f"{time.monotonic() - began:7.0f} s  {name}: {counts}", flush=True)
                    for problem in run.problems:
                        print(f"FAILED: {problem}", flush=True)
    print(", ".join(f"{name} {count:,}" for name, count in totals.items()) + f"; seed {options.seed}")
    return 1 if problems else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.faults undo", description=__doc__)
    add = parser.add_argument
    add("--count", type=int, default=500, help="transactions that are taken back on each server (default 500)")
    add("--tables", type=int, default=8, help="tables of each history, at least (default 8)")
    add("--versions", type=int, nargs="+", choices=RELEASES, default=[18], help="PostgreSQL's (default 18)")
    add("--altered", action="store_true", help="alter tables, too: then some changes cannot be taken back")
    add("--binary", action="store_true", help="capture in binary format")
    add("--only", nargs="+", default=[], choices=LIVES, metavar="NAME", help=f"only these lives: {', '.join(LIVES)}")
    add("--seed", type=int, default=random.randrange(10**6), help="of all that is drawn")
    add("--first", type=int, default=0, metavar="N", help="the number of the first history (default 0)")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
