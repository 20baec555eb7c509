"""A bank whose changes are captured while its log is compacted and pruned: a writer, and its tables' contents."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import pyarrow as pa

from pgoutput_construct.demo.server import EmbeddedServer
from pgoutput_construct.postgres import create_slot, current_lsn, fetch_table
from pgoutput_construct.wire import Lsn
from tools.background import in_background

if TYPE_CHECKING:
    import psycopg

__all__ = ["PUBLICATION", "SLOT", "Bank", "Moment"]

SLOT = PUBLICATION = "bank"
_ROUNDS: Final = 50
_PAUSE: Final = 2.0
"""Seconds between two bursts of transactions."""
_WIDE: Final = "INSERT INTO account SELECT nextval('numbers'), 'long', 0, repeat('x', 200) FROM generate_series(1, 400)"
"""More than logical_decoding_work_mem: it is streamed."""


@dataclass(frozen=True)
class Moment:
    """The contents of the tables with all commits before an LSN, and no others."""

    lsn: Lsn
    tables: dict[str, pa.Table]


@dataclass
class Bank:
    """One database, and its writer."""

    server: EmbeddedServer
    dbname: str = "bank"
    _quiet: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Self:
        with self.server.connect() as admin:
            admin.execute(f"CREATE DATABASE {self.dbname}".encode())
        with self.connect() as connection:
            connection.execute(Path(__file__).with_name("bank.sql").read_bytes())
            create_slot(connection, SLOT)
        return self

    def __exit__(self, *_: object) -> None:
        with self.server.connect() as admin:
            admin.execute(f"SELECT pg_drop_replication_slot('{SLOT}')".encode())
            admin.execute(f"DROP DATABASE {self.dbname} WITH (FORCE)".encode())

    @property
    def dsn(self) -> str:
        """The connection string of the database."""
        from psycopg.conninfo import make_conninfo

        return make_conninfo(self.server.dsn, dbname=self.dbname)

    def connect(self) -> "psycopg.Connection[tuple[object, ...]]":
        """Open an autocommit connection."""
        return self.server.connect(dbname=self.dbname)

    def restart(self) -> bool:
        """Kill the server, and start it again."""
        self.server.kill()
        self.server.start()
        return True

    def work(self, rounds: int) -> None:
        """Commit a number of transactions; another one, streamed and in part rolled back, is open most of the time."""
        with self.connect() as connection, self.connect() as other:
            other.execute("BEGIN")
            other.execute(_WIDE)
            connection.execute(f"CALL work({rounds // 2})".encode())
            other.execute("SAVEPOINT s")
            other.execute(_WIDE)
            other.execute("ROLLBACK TO s")
            other.execute(_WIDE)
            other.execute("COMMIT")
            connection.execute(f"CALL work({rounds - rounds // 2})".encode())

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write continuously during the block."""

        def write(done: threading.Event) -> None:
            while not done.wait(_PAUSE):
                with self._quiet:
                    self.work(_ROUNDS)

        with in_background(write):
            yield

    def moment(self) -> Moment:
        """Return the contents of the tables, pausing the writer."""
        columns = {
            "account": {"id": pa.int64(), "owner": pa.string(), "balance": pa.int64(), "note": pa.string()},
            "entry": {"account": pa.int64(), "amount": pa.int64()},
            "cart": {"id": pa.int64(), "items": pa.int64()},
        }
        with self._quiet, self.connect() as connection:
            tables = {
                f"public.{name}": fetch_table(self.dsn, "public", name, pa.schema(list(kinds.items())))
                for name, kinds in columns.items()
            }
            return Moment(current_lsn(connection), tables)
