"""One round: a database that is written to, a capture of it in one mode, and everything between them broken."""

import random
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import psycopg

from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.changelog.verify import verify
from pgoutput_construct.demo.server import EmbeddedServer
from pgoutput_construct.postgres import create_slot, current_lsn
from tools.faults.capturing import CapturedLog, CaptureProcess
from tools.faults.errors import FaultsError
from tools.faults.judge import Verdict, judge, judge_index
from tools.faults.modes import Mode
from tools.faults.proxy import Proxy
from tools.faults.tidying import Tidying
from tools.faults.witness import PUBLICATION, create_tables, read_witness, write_witness
from tools.faults.writers import Writers, finish_prepared

__all__ = ["SERVER_SETTINGS", "Counts", "Faults", "Round", "RoundReport"]

SERVER_SETTINGS = {
    "track_commit_timestamp": "on",
    "max_prepared_transactions": "60",
    "autovacuum": "off",
    "wal_sender_timeout": "5s",  # who is killed or silent lets go of the slot
}
"""What the server of a round needs on top of the defaults."""

_SLOT = "faults"
_SLOW = ("stall", "tidy")
_LOOK_SECONDS = 0.05
_CONNECT_SECONDS = 60.0
_SEGMENT_SECONDS = 15.0
_SILENCE_SECONDS = 75.0  # the capture waits 60 seconds for the answer to a statement, its stream three status intervals
_CATCH_UP_SECONDS = 300.0


@dataclass(frozen=True)
class Faults:
    """How often what is broken in a round, and for how long it goes on at least."""

    kills: int = 0
    stops: int = 0
    cuts: int = 0
    stalls: int = 0
    tidies: int = 0
    """Compactions and prunes."""
    seconds: float = 0.0

    def share(self, part: int, parts: int) -> "Faults":
        """Return the share of the round ``part`` when these are spread over ``parts`` rounds."""
        names = [name.name for name in fields(self) if name.name != "seconds"]
        shares = {
            name: (part + 1) * getattr(self, name) // parts - part * getattr(self, name) // parts for name in names
        }
        return Faults(**shares, seconds=self.seconds)

    def events(self) -> list[str]:
        """Name each of them."""
        names = {"kill": self.kills, "stop": self.stops, "cut": self.cuts, "stall": self.stalls, "tidy": self.tidies}
        return [name for name, count in names.items() for _ in range(count)]


@dataclass
class Counts:
    """What happened."""

    kills: int = 0
    stops: int = 0
    cuts: int = 0
    stalls: int = 0
    noticed: int = 0
    """Silences that the capture noticed by itself."""
    compactions: int = 0
    prunes: int = 0
    tidies_killed: int = 0
    """Compactions and prunes that were killed."""
    ended: int = 0
    """Captures that ended by themselves with an error, and were started again."""
    transactions: int = 0
    changes: int = 0
    rolled_back: int = 0
    """Transactions and savepoints that were rolled back."""
    segments: int = 0
    entries: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(**{one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)})


@dataclass
class RoundReport:
    """What a round came to."""

    name: str
    counts: Counts
    verdict: Verdict


@dataclass
class Round:
    """One round on a server that is its own as long as it runs."""

    server: EmbeddedServer
    mode: Mode
    faults: Faults
    directory: Path
    """Where the log and the words of the capture go; it must not exist."""
    seed: int
    counts: Counts = field(default_factory=Counts)
    _tidying: Tidying = field(init=False)

    def run(self) -> RoundReport:
        """Write, capture and break; then compare. Raises FaultsError where no comparison comes about."""
        chance = random.Random(self.seed)
        dbname = f"round_{self.directory.name.replace('-', '_')}"
        self.directory.mkdir()
        with self.server.connect() as admin:
            admin.execute(f"CREATE DATABASE {dbname}".encode())
        with self._connect(dbname) as connection:
            create_tables(connection)
            create_slot(connection, _SLOT, two_phase=self.mode.two_phase_slot)
        with Proxy(self._socket) as proxy:
            dsn = f"host=127.0.0.1 port={proxy.port} user=postgres dbname={dbname} sslmode=disable gssencmode=disable"
            log = CapturedLog(dsn, _SLOT, PUBLICATION, self.directory / "log", self.mode)
            process = CaptureProcess(log, self.directory / "capture.txt", chance)
            self._tidying = Tidying(log.directory, self.directory / "tidy.txt", chance)
            try:
                self._attack(dbname, process, proxy, chance)
                report = self._judge(dbname, log, process)
            finally:
                process.kill()
        self._drop(dbname)
        return report

    @property
    def _socket(self) -> Path:
        parts = psycopg.conninfo.conninfo_to_dict(self.server.dsn)
        return Path(str(parts["host"])) / f".s.PGSQL.{parts.get('port') or 5432}"

    def _connect(self, dbname: str, **options: Any) -> "psycopg.Connection[Any]":
        return self.server.connect(dbname=dbname, **options)

    def _attack(self, dbname: str, process: CaptureProcess, proxy: Proxy, chance: random.Random) -> None:
        begun, events = time.monotonic(), self.faults.events()
        chance.shuffle(events)
        with Writers(lambda **options: self._connect(dbname, **options), self.seed) as writers:
            self._wait(lambda: bool(self._newest()), _CONNECT_SECONDS, process)  # the first one compiles its kernels
            for event in events:
                process.ensure()
                self._wait_for_a_moment(process, chance)
                with writers.calm() if event in _SLOW else nullcontext():
                    getattr(self, f"_{event}")(process, proxy, chance)
                writers.check()
            while time.monotonic() < begun + self.faults.seconds:
                process.ensure()
                time.sleep(_LOOK_SECONDS)
            writers.stop()
            self.counts.rolled_back = writers.rolled_back
        with self._connect(dbname) as connection:
            finish_prepared(connection, chance)

    def _wait_for_a_moment(self, process: CaptureProcess, chance: random.Random) -> None:
        """Wait until the capture is at some place: often shortly after a segment, at times while it starts."""
        if chance.random() < 0.7:
            newest = self._newest()
            self._wait(lambda: self._newest() != newest, _SEGMENT_SECONDS, process)
            time.sleep(chance.random() * 0.4)
        else:
            time.sleep(chance.random() * 2)

    def _newest(self) -> str:
        return max((path.name for path in (self.directory / "log").glob("segment-*")), default="")

    def _kill(self, process: CaptureProcess, _proxy: Proxy, chance: random.Random) -> None:
        process.ensure()
        self.counts.kills += process.kill()
        time.sleep(chance.random() * 0.3)

    def _stop(self, process: CaptureProcess, _proxy: Proxy, chance: random.Random) -> None:
        self.server.stop("immediate")
        self.counts.stops += 1
        time.sleep(chance.random())
        self.server.start()
        process.ensure()

    def _cut(self, process: CaptureProcess, proxy: Proxy, _chance: random.Random) -> None:
        self._wait_connected(process, proxy)
        self.counts.cuts += bool(proxy.cut())

    def _stall(self, process: CaptureProcess, proxy: Proxy, chance: random.Random) -> None:
        """A silence ends when the capture gives the connection up; when it does not, the connection is cut."""
        self._wait_connected(process, proxy)
        if chance.random() < 0.3:
            proxy.stall_next()
            proxy.cut()
        else:
            proxy.stall()
        self.counts.stalls += 1
        pid = process.pid
        self.counts.noticed += self._wait(lambda: not proxy.silent, _SILENCE_SECONDS, process) and pid == process.pid
        proxy.cut()

    def _tidy(self, process: CaptureProcess, _proxy: Proxy, chance: random.Random) -> None:
        """Compact or prune while the capture goes on, and at times is killed at the same moment."""
        if not self._newest():
            self._wait(lambda: bool(self._newest()), _CONNECT_SECONDS, process)

        def meanwhile() -> None:
            if chance.random() < 0.3:
                self.counts.kills += process.kill()
            process.ensure()

        self._tidying.step(meanwhile)

    def _wait_connected(self, process: CaptureProcess, proxy: Proxy) -> None:
        if not self._wait(lambda: bool(proxy.connected), _CONNECT_SECONDS, process):
            raise FaultsError(f"the capture did not connect in {_CONNECT_SECONDS:.0f} s: {process.errors}")

    def _wait(self, condition: Callable[[], bool], seconds: float, process: CaptureProcess) -> bool:
        """Wait for a condition; False when it does not come true in time. A capture that ends is started again."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                return False
            process.ensure()
            time.sleep(_LOOK_SECONDS)
        return True

    def _judge(self, dbname: str, log: CapturedLog, process: CaptureProcess) -> RoundReport:
        with self._connect(dbname) as connection:
            process.finish(str(current_lsn(connection)), _CATCH_UP_SECONDS)
            witness = read_witness(connection, self.mode.messages)
        contents = self._tidying.contents()
        verdict = judge(contents, witness)
        judge_index(ChangeLog(log.directory).transactions().to_pylist(), contents, verdict)
        for problem in verify(log.directory).problems:
            verdict.add("misindexed", problem)
        if not verdict.good:
            write_witness(witness, self.directory / "witness.jsonl")
        counts = self.counts
        counts.transactions, counts.changes = len(witness.transactions), witness.changes
        counts.segments, counts.entries = len(list(log.directory.glob("segment-*"))), contents.entries
        counts.compactions, counts.prunes = self._tidying.compactions, self._tidying.prunes
        counts.tidies_killed = self._tidying.killed
        counts.ended = sum(1 for status in process.ended if status)
        return RoundReport(self.directory.name, counts, verdict)

    def _drop(self, dbname: str) -> None:
        with self.server.connect() as admin:
            query = "SELECT pg_terminate_backend(active_pid, 10000) FROM pg_replication_slots WHERE slot_name = %s"
            admin.execute(query, [_SLOT])
            admin.execute("SELECT pg_drop_replication_slot(%s)", [_SLOT])
            admin.execute(f"DROP DATABASE {dbname} WITH (FORCE)".encode())
