"""One round: writers, a capture in one mode, and faults in everything between them; then a comparison."""

import random
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.changelog.verify import verify
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.postgres import create_slot, current_lsn
from pgoutput_construct.wire import Commit
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
_UNDECODABLE = "the server cannot decode the next change"
"""What both the command and the function print of a slot that the server cannot decode (UndecodableSlotError)."""


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
        return Breaking(self.server, self._connect, process, proxy, tidying, log, chance, self.counts)

    def _attack(self, breaking: Breaking) -> None:
        until, events = time.monotonic() + self.faults.seconds, self.faults.events()
        breaking.chance.shuffle(events)
        with Writers(self._connect, self.seed) as writers:
            breaking.begin()
            for event in events:
                with writers.held() if event == "rollback" else writers.calm() if event in SLOW else nullcontext():
                    breaking.inflict(event)
                writers.check()
            breaking.run_until(until)
            writers.stop()
            self.counts.rolled_back = writers.rolled_back
        with self._connect() as connection:
            finish_prepared(connection, breaking.chance)

    def _judge(self, breaking: Breaking) -> Verdict:
        with self._connect() as connection:
            decodable: set[int] | None = None
            try:
                breaking.process.finish([str(current_lsn(connection))], _CATCH_UP_SECONDS)
            except PgoutputError as error:
                decodable = self._decodable(connection) if _UNDECODABLE in str(error) else None
                if decodable is None:
                    raise
                self.counts.undecodable = 1
            witness = read_witness(connection, self.mode.messages)
        contents = breaking.tidying.contents()
        if decodable is not None:
            decoded = {transaction.xid for transaction in contents.transactions} | decodable
            latest = max((transaction.commit_time for transaction in contents.transactions), default=0)
            witness = witness.up_to(latest, decoded)
        verdict = judge(contents, witness)
        judge_index(ChangeLog(breaking.log).transactions().to_pylist(), contents, verdict)
        for problem in verify(breaking.log).problems:
            verdict.add("misindexed", problem)
        judge_captures(self._unexplained(breaking.process.ended), verdict)
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

    def _decodable(self, connection: "psycopg.Connection[Any]") -> set[int] | None:
        """Return the xids that PostgreSQL's own function reads from the slot before it fails; None if it does not fail.

        After an immediate stop among writers that TRUNCATE and PREPARE, a slot's historic snapshot now and then does
        not show the table of a change ("could not map filenumber", ReorderBufferProcessTXN). No client can read on; but
        what the server decodes before that must be in the log.
        """
        self._end_reader(connection)
        if self._peek(connection, None) is not None:
            return None
        found, low, high = set[int](), 0, 1
        while (more := self._peek(connection, high)) is not None:
            found, low, high = more, high, high * 2
        while high - low > 1:
            middle = (low + high) // 2
            if (more := self._peek(connection, middle)) is None:
                high = middle
            else:
                found, low = more, middle
        return found

    def _peek(self, connection: "psycopg.Connection[Any]", changes: int | None) -> set[int] | None:
        """Return the xids of the transactions with the next changes of the slot; None if they cannot be decoded."""
        query = """SELECT DISTINCT xid::text::bigint
                   FROM pg_logical_slot_peek_binary_changes(%s, NULL, %s, VARIADIC %s) WHERE get_byte(data, 0) = %s"""
        options = ["proto_version", "1", "publication_names", PUBLICATION]
        try:
            found = connection.execute(query, [_SLOT, changes, options, Commit.TAG[0]]).fetchall()
        except psycopg.errors.InternalError_:
            return None
        return {xid for (xid,) in found}

    def _unexplained(self, ended: Sequence[str]) -> list[str]:
        """Return the endings of captures that a slot does not explain which the server cannot decode."""
        return [end for end in ended if not (self.counts.undecodable and _UNDECODABLE in end)]

    def _end_reader(self, connection: "psycopg.Connection[Any]") -> None:
        query = "SELECT pg_terminate_backend(active_pid, 10000) FROM pg_replication_slots WHERE slot_name = %s"
        connection.execute(query, [_SLOT])

    def _drop(self) -> None:
        with self.server.connect() as admin:
            self._end_reader(admin)
            admin.execute("SELECT pg_drop_replication_slot(%s)", [_SLOT])
            admin.execute(f"DROP DATABASE {self._dbname} WITH (FORCE)".encode())
