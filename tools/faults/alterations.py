"""python -m tools.faults altered: alters tables at random while captures run, are killed, or are stopped; then checks
that the log knows which column is which."""

import argparse
import json
import random
import shutil
import tempfile
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import psycopg

from pgoutput_construct.changelog import ChangeLog, SegmentLimits
from pgoutput_construct.changelog._facts.copies import latest_copies
from pgoutput_construct.changelog._facts.lineage import lineage_of
from pgoutput_construct.changelog._index.planning import relation_history
from pgoutput_construct.demo.embedded_server import VERSIONS, EmbeddedServer
from pgoutput_construct.demo.processes import running
from pgoutput_construct.postgres import capture
from pgoutput_construct.wire import Insert, parse
from tools.faults.committed_spans import committed_spans
from tools.servers import RELEASES, open_server

__all__ = ["Alterations", "main"]

_TABLES: Final = ("t0", "t1", "t2", "t3")
_MANY: Final = 700
"""Rows of a transaction that is streamed."""
_COLUMNS: Final = """SELECT attnum, attname, attrelid::bigint, array_to_string(attmissingval, '') FROM pg_attribute
    WHERE attrelid = %s::regclass AND attnum > 1 AND NOT attisdropped ORDER BY attnum"""
_DEFAULTS: Final = ("", "", " DEFAULT 'x'", " DEFAULT 'y'", " DEFAULT random()::text")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.faults altered", description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=20, help="on each server, each with a log of its own (default 20)"
    )
    parser.add_argument("--versions", type=int, nargs="+", choices=RELEASES, default=VERSIONS, help="PostgreSQL's")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of what is drawn")
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}", flush=True)
    good = True
    for version in options.versions:
        with open_server(version, {"autovacuum": "off"}) as server:
            for number in range(options.rounds):
                found = Alterations(server, f"altered{number}", random.Random(f"{options.seed} {number}"))
                problems = found.run()
                print(f"PostgreSQL {version}, round {number}: {'; '.join(problems) or found.summary}", flush=True)
                good = good and not problems
    return 0 if good else 1


@dataclass
class Alterations:
    """One database whose tables are altered, and the expected lineage."""

    server: EmbeddedServer
    dbname: str
    chance: random.Random
    phases: int | None = None
    """The number of phases in which a capture runs, or does not; None: two to five."""
    summary: str = ""
    """What was compared, after ``run``."""
    _numbers: dict[int, tuple[int, ...]] = field(default_factory=dict)  # the columns of each row when it was inserted
    _missing: dict[tuple[int, int], str | None] = field(default_factory=dict)
    _fresh: int = 0

    def run(self) -> list[str]:
        """Alter and capture; return the first few problems."""
        directory = Path(tempfile.mkdtemp(prefix="altered-"))
        with self.server.connect() as admin:
            admin.execute(f"CREATE DATABASE {self.dbname}".encode())
        with self.server.connect(dbname=self.dbname) as source:
            for table in _TABLES:
                source.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, a text)".encode())
            source.execute("CREATE PUBLICATION p FOR ALL TABLES")
            dsn = psycopg.conninfo.make_conninfo(self.server.dsn, dbname=self.dbname)
            given: dict[str, Any] = {
                **{"slot": self.dbname, "publications": ["p"], "directory": str(directory)},
                **{"create_slot": True, "status_interval": 0.3},
            }
            capture(dsn, **given, until_idle=0.1, handle_signals=False)
            for _ in range(self.phases or self.chance.randrange(2, 6)):
                with self._capturing({"dsn": dsn, **given}, self.chance.random()):
                    for _ in range(self.chance.randrange(3, 25)):
                        self._step(source)
            capture(dsn, **given, until_idle=0.1, handle_signals=False)
            problems = list(self._problems(source, ChangeLog(directory)))[:5]
            source.execute("SELECT pg_drop_replication_slot(%s)", [self.dbname])
        if not problems:
            shutil.rmtree(directory)
        return problems

    @contextmanager
    def _capturing(self, given: dict[str, Any], kind: float) -> Iterator[None]:
        """Run a capture during the block and kill it, or run none."""
        if kind < 0.4:
            yield
            return
        settings = {"limits": asdict(SegmentLimits(seconds=0.1)), "until_lsn": None, "duration": 600}
        with running("-m", "tools.faults.child", json.dumps(given | settings)):
            time.sleep(self.chance.uniform(0, 6))
            yield
            time.sleep(self.chance.choice([0, 0.5, 2]))

    def _step(self, source: "psycopg.Connection[Any]") -> None:
        table, kind = self.chance.choice(_TABLES), self.chance.random()
        if kind < 0.5:
            self._insert(source, table)
        elif kind < 0.8:
            self._alter(source, table)
        elif kind < 0.9:
            time.sleep(self.chance.choice([0, 0.05, 0.3, 1.2]))
        else:
            source.execute("BEGIN")
            for _ in range(self.chance.randrange(1, 7)):
                self.chance.choice([self._insert, self._alter])(source, table)
            source.execute(self.chance.choice([b"COMMIT", b"COMMIT", b"ROLLBACK"]))

    def _insert(self, source: "psycopg.Connection[Any]", table: str) -> None:
        first, count = len(self._numbers) + 1, self.chance.choice([1] * 9 + [_MANY])
        source.execute(f"INSERT INTO {table} (id) SELECT generate_series({first}, {first + count - 1})".encode())
        numbers = 1, *(row[0] for row in source.execute(_COLUMNS.encode(), [table]))
        self._numbers |= dict.fromkeys(range(first, first + count), numbers)

    def _alter(self, source: "psycopg.Connection[Any]", table: str) -> None:
        columns = [row[1] for row in source.execute(_COLUMNS.encode(), [table])]
        column = self.chance.choice(columns) if columns else None
        self._fresh += 1
        what = self.chance.random()
        if what < 0.4 and (name := self.chance.choice("abcdef")) not in columns:
            source.execute(f"ALTER TABLE {table} ADD {name} text{self.chance.choice(_DEFAULTS)}".encode())
            for number, found, oid, missing in source.execute(_COLUMNS.encode(), [table]):
                if found == name:
                    self._missing[oid, number] = missing
        elif column is not None:
            unused = self.chance.choice(sorted({*"abcdef"} - {*columns}) or [f"new{self._fresh}"])
            new = self.chance.choice([unused, f"new{self._fresh}"])
            other = f"ALTER {column} SET STATISTICS {self._fresh % 1000}"
            action = self.chance.choice([f"DROP {column}", other, *[f"RENAME {column} TO {new}"] * 2])
            source.execute(f"ALTER TABLE {table} {action}".encode())

    def _problems(self, source: "psycopg.Connection[Any]", log: ChangeLog) -> Iterator[str]:
        """Compare the lineage in the log, for rows of committed transactions and for columns, with the expected one."""
        lineage, copies = lineage_of(log.index), latest_copies(log.index)
        history, spans = relation_history(log.index), committed_spans(log.index)
        unknown = 0
        for entry in log.entries():
            message = parse(entry.payload, **{**log.options.layout(), **entry.states})
            place = bisect_right(spans.first_seq, entry.seq) - 1
            if not isinstance(message, Insert) or place < 0 or entry.seq > spans.last_seq[place]:
                continue
            oid = message.relation_oid
            described = history.descriptions[history.index(oid, entry.seq, entry.stream_xid)]
            numbers, truth = lineage.numbers(described), self._numbers[int(bytes(message.new[0]))]  # type: ignore[arg-type]
            unknown += numbers is None
            if numbers != truth and oid not in copies:
                yield f"seq {entry.seq}: the columns have the numbers {truth}, the log says {numbers}"
        for table in _TABLES:
            for number, name, oid, _ in source.execute(_COLUMNS.encode(), [table]):
                expected = self._missing.get((oid, number))
                if oid not in copies and lineage.missing(oid, number) != expected:
                    yield f"older rows of {table} have {expected!r} in {name}, not {lineage.missing(oid, number)!r}"
        yield from (f"{stale.reason} and was not copied" for stale in lineage.stale.values())
        self.summary = f"{len(self._numbers):,} rows, {unknown} in columns that are not certain, {len(copies)} copies"
