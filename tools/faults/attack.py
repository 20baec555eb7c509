"""One round: writers, a capture in one mode, and faults in everything between them; then a comparison."""

import random
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.changelog.verify import verify
from pgoutput_construct.demo.server import EmbeddedServer
from pgoutput_construct.postgres import create_slot, current_lsn
from tools.faults.capture_process import COMMANDS, CapturedLog, CaptureProcess
from tools.faults.counts import Counts, Faults
from tools.faults.fault_injection import SLOW, Breaking
from tools.faults.judge import Verdict, judge, judge_captures, judge_index
from tools.faults.maintenance import Tidying
from tools.faults.modes import Mode
from tools.faults.proxy import Proxy
from tools.faults.witness import PUBLICATION, create_tables, read_witness, write_witness
from tools.faults.writers import Writers, finish_prepared

__all__ = ["SERVER_SETTINGS", "Round", "RoundReport"]

SERVER_SETTINGS = {
    "track_commit_timestamp": "on",
    "max_prepared_transactions": "60",
    "autovacuum": "off",
    "wal_sender_timeout": "5s",  # releases the slot of a killed or silent client
}
"""Settings of the server in addition to the defaults."""

_SLOT = "faults"
_CATCH_UP_SECONDS = 300.0


@dataclass
class RoundReport:
    """The result of a round."""

    name: str
    counts: Counts
    verdict: Verdict


@dataclass
class Round:
    """One round on a server of its own."""

    server: EmbeddedServer
    mode: Mode
    faults: Faults
    directory: Path
    """The directory of the log and of the capture's output; it must not exist."""
    seed: int
    commands: float = COMMANDS
    """The share of captures that run the command, 0 to 1; the others call the function."""
    counts: Counts = field(default_factory=Counts)

    def run(self) -> RoundReport:
        """Write, capture and inject faults; then compare. Raises PgoutputError if the comparison is not possible."""
        self.directory.mkdir()
        self._create()
        with Proxy(self._socket) as proxy:
            breaking = self._breaking(proxy)
            try:
                self._attack(breaking)
                verdict = self._judge(breaking)
            finally:
                breaking.process.kill()
        self._drop()
        return RoundReport(self.directory.name, self.counts, verdict)

    @property
    def _dbname(self) -> str:
        return f"round_{self.directory.name.replace('-', '_')}"

    @property
    def _socket(self) -> Path:
        parts = psycopg.conninfo.conninfo_to_dict(self.server.dsn)
        return Path(str(parts["host"])) / f".s.PGSQL.{parts.get('port') or 5432}"

    def _connect(self, **options: Any) -> "psycopg.Connection[Any]":
        return self.server.connect(dbname=self._dbname, **options)

    def _create(self) -> None:
        with self.server.connect() as admin:
            admin.execute(f"CREATE DATABASE {self._dbname}".encode())
        with self._connect() as connection:
            create_tables(connection)
            create_slot(connection, _SLOT, two_phase=self.mode.two_phase_slot)

    def _breaking(self, proxy: Proxy) -> Breaking:
        chance, log = random.Random(self.seed), self.directory / "log"
        server = f"host=127.0.0.1 port={proxy.port} user=postgres dbname={self._dbname}"
        dsn = f"{server} sslmode=disable gssencmode=disable connect_timeout=5"
        captured = CapturedLog(dsn, _SLOT, PUBLICATION, log, self.mode)
        process = CaptureProcess(captured, self.directory / "capture.txt", chance, self.commands)
        tidying = Tidying(log, self.directory / "tidy.txt", chance)
        return Breaking(self.server, process, proxy, tidying, log, chance, self.counts)

    def _attack(self, breaking: Breaking) -> None:
        until, events = time.monotonic() + self.faults.seconds, self.faults.events()
        breaking.chance.shuffle(events)
        with Writers(self._connect, self.seed) as writers:
            breaking.begin()
            for event in events:
                with writers.calm() if event in SLOW else nullcontext():
                    breaking.inflict(event)
                writers.check()
            breaking.run_until(until)
            writers.stop()
            self.counts.rolled_back = writers.rolled_back
        with self._connect() as connection:
            finish_prepared(connection, breaking.chance)

    def _judge(self, breaking: Breaking) -> Verdict:
        with self._connect() as connection:
            breaking.process.finish([str(current_lsn(connection))], _CATCH_UP_SECONDS)
            witness = read_witness(connection, self.mode.messages)
        contents = breaking.tidying.contents()
        verdict = judge(contents, witness)
        judge_index(ChangeLog(breaking.log).transactions().to_pylist(), contents, verdict)
        for problem in verify(breaking.log).problems:
            verdict.add("misindexed", problem)
        judge_captures(breaking.process.ended, verdict)
        if not verdict.good:
            write_witness(witness, self.directory / "witness.jsonl")
        counts = self.counts
        counts.transactions, counts.changes = len(witness.transactions), witness.changes
        counts.entries = contents.entries
        counts.segments = len(list(breaking.log.glob("segment-*")))
        counts.ended = len(breaking.process.ended)
        tidying = breaking.tidying
        counts.compactions, counts.prunes, counts.tidies_killed = tidying.compactions, tidying.prunes, tidying.killed
        return verdict

    def _drop(self) -> None:
        with self.server.connect() as admin:
            query = "SELECT pg_terminate_backend(active_pid, 10000) FROM pg_replication_slots WHERE slot_name = %s"
            admin.execute(query, [_SLOT])
            admin.execute("SELECT pg_drop_replication_slot(%s)", [_SLOT])
            admin.execute(f"DROP DATABASE {self._dbname} WITH (FORCE)".encode())
