"""python -m tools.faults lost-histories: servers that come back with another history, or without statistics, at
LSNs that fit the log."""

import argparse
import random
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psycopg

from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.changelog._facts.copies import latest_copies
from pgoutput_construct.changelog._facts.lineage import lineage_of
from pgoutput_construct.changelog._segment.events import BEGUN_ANEW
from pgoutput_construct.changelog.verify import verify
from pgoutput_construct.demo.embedded_server import VERSIONS, EmbeddedServer
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.postgres import SegmentLimits, capture, create_slot, current_lsn
from pgoutput_construct.wire import Insert, parse
from tools.background import in_background
from tools.faults.committed_spans import committed_spans
from tools.faults.errors import FaultsError
from tools.faults.standby import Standby
from tools.servers import RELEASES, open_server

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Volume", "main"]

_SLOT: Final = "histories"
_DATABASE: Final = "histories"
_OPTIONS: Final[dict[str, Any]] = {"messages": True, "two_phase": True, "handle_signals": False}
_LOST, _OWN = 1_000_000, 2_000_000
"""The first ids of rows that only a lost history has, and of those that only the other one has."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.faults lost-histories", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="of each kind on each server (default 3)")
    parser.add_argument("--versions", type=int, nargs="+", choices=RELEASES, default=VERSIONS, help="PostgreSQL's")
    parser.add_argument("--kinds", nargs="+", choices=_ROUNDS, default=[*_ROUNDS], metavar="KIND", help=_KINDS)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of what is drawn")
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}", flush=True)
    good = True
    for version in options.versions:
        for number in range(options.rounds):
            for name in options.kinds:
                chance = random.Random(f"{options.seed} {version} {number} {name}")
                with open_server(version, {"autovacuum": "off"}) as server:
                    said, problems = _Round(server, chance).run(_ROUNDS[name])
                found = "; ".join([said, *problems] if problems else [said, "lost 0, ghosts 0"])
                print(f"PostgreSQL {version}, {name}, round {number}: {found}", flush=True)
                good = good and not problems
    return 0 if good else 1


@dataclass
class _Round:
    """One log, and a server that loses a part of its history."""

    server: EmbeddedServer
    chance: random.Random
    _next: int = 1

    def run(self, attack: "Callable[[_Round, Path], str]") -> tuple[str, list[str]]:
        """Return the report of an attack, and the problems of the log at the end."""
        with self.server.connect() as admin:
            admin.execute(f"CREATE DATABASE {_DATABASE}".encode())
        with self.connect(self.server) as connection:
            connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, v text)")
            connection.execute("CREATE TABLE unpublished (v text)")
            connection.execute("CREATE PUBLICATION p FOR TABLE t")
        with tempfile.TemporaryDirectory(prefix="histories-") as directory:
            log = Path(directory) / "log"
            try:
                return attack(self, log), []
            except FaultsError as found:
                return f"files were in {log}", [str(found)]

    def connect(self, server: "EmbeddedServer | Standby") -> "psycopg.Connection[Any]":
        """Open a connection to the database."""
        return psycopg.connect(psycopg.conninfo.make_conninfo(server.dsn, dbname=_DATABASE), autocommit=True)

    def work(self, server: "EmbeddedServer | Standby", base: int = 0) -> int:
        """Write transactions of every kind, and return how many rows are committed."""
        rows = 0
        with self.connect(server) as connection:
            for number in range(self.chance.randrange(3, 12)):
                count, kind = self.chance.choice((1, 7, 60, 1500)), self.chance.randrange(6)
                first = base + self._next
                self._next += count
                insert = f"INSERT INTO t SELECT g, 'x' FROM generate_series({first}, {first + count - 1}) g"
                gid = f"{base}-{self._next}"
                statements = {
                    0: [f"BEGIN; {insert}; PREPARE TRANSACTION '{gid}'", f"COMMIT PREPARED '{gid}'"],
                    1: [f"BEGIN; {insert}; PREPARE TRANSACTION '{gid}'", f"ROLLBACK PREPARED '{gid}'"],
                    2: [f"BEGIN; SAVEPOINT s; {insert}; ROLLBACK TO s; COMMIT"],
                    3: ["INSERT INTO unpublished SELECT repeat('y', 100) FROM generate_series(1, 1500)", insert],
                }.get(kind, [insert])
                for statement in statements:
                    connection.execute(statement.encode())
                rows += count if kind not in (1, 2) else 0
                if number % 5 == 4:
                    connection.execute("CHECKPOINT")
        return rows

    def capture(self, server: "EmbeddedServer | Standby", log: Path, **options: Any) -> Any:
        """Capture up to the end of the WAL."""
        with self.connect(server) as connection:
            end, dsn = current_lsn(connection), connection.info.dsn
        return capture(dsn, _SLOT, ["p"], log, until_lsn=end, duration=120.0, **{**_OPTIONS, **options})

    def roll_back(self, server: "EmbeddedServer | Standby", log: Path) -> None:
        """Let the log end with a streamed transaction that was rolled back, whose LSN protocol 1 to 3 do not send."""
        with self.connect(server) as connection:
            dsn = connection.info.dsn

            def run(done: threading.Event) -> None:
                limits = SegmentLimits(seconds=0.1)
                capture(dsn, _SLOT, ["p"], log, stop=done.is_set, limits=limits, **_OPTIONS)

            with in_background(run):
                connection.execute("BEGIN")
                connection.execute("INSERT INTO t SELECT g, 'rolled back' FROM generate_series(-3000, -1) g")
                _wait_until(lambda: bool(len(ChangeLog(log).open_transactions())))
                connection.execute("ROLLBACK")
                _wait_until(lambda: not len(ChangeLog(log).open_transactions()))

    def refused(self, server: "EmbeddedServer | Standby", log: Path, words: str) -> None:
        """Capture, which must be refused."""
        try:
            self.capture(server, log)
        except ChangeLogError as error:
            if words not in str(error):
                raise FaultsError(f"the error is another one: {error}") from error
        else:
            raise FaultsError("the capture continued, and reported nothing")

    def compare(self, server: "EmbeddedServer | Standby", log: Path) -> str:
        """Compare the rows of the log with the table; return how many there are."""
        with self.connect(server) as connection:
            there = {int(row[0]) for row in connection.execute("SELECT id FROM t")}
            ((oid,),) = connection.execute("SELECT 't'::regclass::oid::bigint")
        opened = ChangeLog(log)
        known, problems = _rows(opened, int(oid)), verify(log).problems
        stale = [stale.reason for stale in lineage_of(opened.index).stale.values()]
        lost, ghosts = len(there - known.keys()), len(known.keys() - there)
        twice = sum(count > 1 for count in known.values())
        if lost or ghosts or twice or problems or stale:
            raise FaultsError(f"lost {lost}, ghosts {ghosts}, twice {twice}, {list(problems)}, {stale}")
        return f"{len(there):,} rows"

    def pass_the_end(self, server: "EmbeddedServer | Standby", log: Path, is_published: bool = True) -> int:
        """Write until the server's LSNs are beyond those of the log; return how many rows the publication has of it."""
        rows = self.work(server, _OWN) if is_published else 0
        with self.connect(server) as connection:
            while not is_published and current_lsn(connection) <= ChangeLog(log).complete_lsn:
                connection.execute("INSERT INTO unpublished SELECT 'y' FROM generate_series(1, 200)")
            while current_lsn(connection) <= ChangeLog(log).complete_lsn:
                rows += self.work(server, _OWN)
        return rows


def _put_back(run: _Round, log: Path) -> str:
    """The volume of the server is put back to a snapshot, and it writes past the log's end."""
    run.capture(run.server, log, create_slot=True, snapshot=True)
    run.work(run.server)
    if run.chance.random() < 0.7:
        run.capture(run.server, log)
    with Volume.of(run.server) as volume:
        lost = run.work(run.server, _LOST)
        run.capture(run.server, log)
        how = ""
        if lost and run.chance.random() < 0.5:
            run.roll_back(run.server, log)
            how = ", a rolled-back stream at the log's end"
        volume.put_back()
        own = run.pass_the_end(run.server, log, is_published=not how)
        run.refused(run.server, log, "reset to an earlier state")
        run.capture(run.server, log, on_lost_slot="snapshot")
    return f"{lost:,} rows undone{how}, {own:,} written since: refused; then {_continue(run, run.server, log)}"


def _before_the_slot(run: _Round, log: Path) -> str:
    """The volume is put back to a snapshot from before the slot was created; somebody may have created it since."""
    run.work(run.server)
    with Volume.of(run.server) as volume:
        run.capture(run.server, log, create_slot=True, snapshot=True)
        lost = run.work(run.server, _LOST)
        run.capture(run.server, log)
        volume.put_back()
        how, own, words = "no slot", 0, "no longer exists"
        if run.chance.random() < 0.5:
            how, own, words = "a slot past the log's end", run.pass_the_end(run.server, log), "re-created, or moved"
            with run.connect(run.server) as connection:
                create_slot(connection, _SLOT, two_phase=True)
        elif run.chance.random() < 0.5:
            own = run.work(run.server, _OWN)
        run.refused(run.server, log, words)
        run.capture(run.server, log, on_lost_slot="snapshot")
    return f"{how}, {lost:,} rows undone, {own:,} written since: refused; then {_continue(run, run.server, log)}"


def _crashed(run: _Round, log: Path) -> str:
    """The server is killed again and again, and forgets how far its slot was: that is no other history."""
    run.capture(run.server, log, create_slot=True, snapshot=True)
    again = 0
    for _ in range(4):
        run.work(run.server)
        run.capture(run.server, log)
        if run.chance.random() < 0.5:
            run.roll_back(run.server, log)
        run.server.kill()
        run.server.start()
        again += run.capture(run.server, log).dropped
    run.capture(run.server, log)
    if any(event.name == BEGUN_ANEW for event in ChangeLog(log).events()):
        raise FaultsError("a crash was taken for another history")
    return f"4 crashes, {again} transactions compared and dropped, {run.compare(run.server, log)}"


def _twins(run: _Round, log: Path) -> str:
    """Two standbys are promoted to the same timeline, and captured one after the other."""
    with Standby.of(run.server) as first, Standby.of(run.server, "other") as second:
        run.work(run.server)
        first.catch_up()
        second.catch_up()
        second.cut_off()
        run.work(run.server)
        first.catch_up()
        run.server.stop()
        first.promote()
        run.capture(first, log, create_slot=True, snapshot=True)
        lost = run.work(first, _LOST)
        run.capture(first, log)
        first.stop()
        second.promote()
        with run.connect(second) as connection:
            create_slot(connection, _SLOT, two_phase=True)
        own = run.pass_the_end(second, log)
        run.refused(second, log, "another standby was promoted")
        run.capture(second, log, on_lost_slot="snapshot")
        said = _continue(run, second, log)
        first.start()
    return f"{lost:,} rows undone, {own:,} written since: refused; then {said}"


def _forgotten(run: _Round, log: Path) -> str:
    """The counters of the slot are lost, and so is the volume of the log."""
    run.capture(run.server, log, create_slot=True, snapshot=True)
    run.work(run.server)
    run.capture(run.server, log)
    away = log.rename(log.with_name("away"))
    run.work(run.server)
    if run.chance.random() < 0.5:
        with run.connect(run.server) as connection:
            connection.execute("CHECKPOINT")
        run.server.kill()
        run.server.start()
        how = "a crash"
    else:
        with run.connect(run.server) as connection:
            connection.execute("SELECT pg_stat_reset_replication_slot(NULL)")
        how = "pg_stat_reset_replication_slot"
    for _ in range(2):
        run.refused(run.server, log, "exists already")
    shutil.rmtree(log)
    away.rename(log)
    run.capture(run.server, log)
    return f"{how}: an empty log is refused; with the log {run.compare(run.server, log)}"


_ROUNDS: Final[dict[str, Callable[[_Round, Path], str]]] = {
    "volume put back": _put_back,
    "volume put back to before the slot": _before_the_slot,
    "server crashed": _crashed,
    "twin promotions": _twins,
    "statistics reset": _forgotten,
}
_KINDS: Final = f"only these: {', '.join(map(repr, _ROUNDS))}"


def _wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise FaultsError(f"the log has not what it should have after {seconds:.0f} s")
        time.sleep(0.05)


def _continue(run: _Round, server: EmbeddedServer | Standby, log: Path) -> str:
    run.work(server)
    run.capture(server, log)
    return run.compare(server, log)


def _rows(log: ChangeLog, oid: int) -> dict[int, int]:
    """Return the ids that a log has of a table into which was only inserted, each with how often."""
    from bisect import bisect_right

    import numpy as np

    copy, spans, found = latest_copies(log.index)[oid], committed_spans(log.index), dict[int, int]()
    for entry in log.entries(copied=True):
        message = parse(entry.payload, **{**log.options.layout(), **entry.states})
        if not isinstance(message, Insert) or message.relation_oid != oid:
            continue
        number = bisect_right(spans.first_seq, entry.seq) - 1
        if entry.snapshot is not None:
            counts = copy.first_chunk <= entry.snapshot <= copy.last_chunk and entry.seq not in copy.void
        else:
            in_span = number >= 0 and entry.seq <= spans.last_seq[number]
            aborted = in_span and message.xid is not None and message.xid in spans.aborted.get(number, ())
            visible = in_span and not aborted
            counts = visible and bool(copy.snapshot.invisible(np.array([spans.xid[number]]))[0])
        if counts:
            item = int(bytes(message.new[0]))  # type: ignore[arg-type]
            found[item] = found.get(item, 0) + 1
    return found


@dataclass
class Volume:
    """A snapshot of the volume on which a server has its data, to which it can be put back once."""

    server: EmbeddedServer
    copy: Path

    @classmethod
    @contextmanager
    def of(cls, server: EmbeddedServer) -> "Iterator[Volume]":
        """Take a snapshot while the server is stopped briefly."""
        with tempfile.TemporaryDirectory(prefix="volume-") as directory:
            volume = cls(server, Path(directory) / "data")
            server.stop()
            _copy(server.data_directory, volume.copy)
            server.start()
            yield volume

    def put_back(self) -> None:
        """Let the server continue from the snapshot: the same cluster and timeline, an older state of its slots.

        The snapshot becomes the server's data: a second copy would take as long as the first.
        """
        self.server.kill()
        for path in self.server.data_directory.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        for path in self.copy.iterdir():
            shutil.move(path, self.server.data_directory)
        self.server.start()


def _copy(source: Path, target: Path) -> None:
    """Copy a directory with its owners and modes: a server runs as a user of its own."""
    subprocess.run(["cp", "-a", f"{source}/.", target], check=True)
