"""The server that all pipelines read: a table of ten columns, its changes, and slots with the same contents."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import pyarrow as pa

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from tools.benchmark.alternatives.table_rows import COLUMNS, rows_of_lists
from tools.benchmark.cases import HEADLINE

if TYPE_CHECKING:
    import psycopg

__all__ = ["PUBLICATION", "TABLE", "ChangeSource", "listening_server"]

TABLE: Final = "shop"
"""The table, in the schema ``public``."""
PUBLICATION: Final = "alternatives"
"""The publication of the table."""
_KEPT: Final = "alternatives_kept"
"""The slot that is never read: those that are read are copies of it."""
_SETTINGS: Final = {
    "autovacuum": "off",
    "max_wal_size": "16GB",
    "logical_decoding_work_mem": "64MB",
    "wal_sender_timeout": "60s",
}
_SECONDS: Final = 30.0
"""Seconds within which a server notices that a reader of a slot has ended."""

_TRANSACTION: Final = 100
"""Changes of a transaction."""
_VALUES: Final = ", ".join(("id", *HEADLINE.values))
_FIRST: Final = f"INSERT INTO {TABLE} SELECT {_VALUES} FROM generate_series(1::int8, {_TRANSACTION}) AS id"
_TRANSACTIONS: Final = f"""DO $$ BEGIN
    FOR number IN {{first}}..{{last}} LOOP
        INSERT INTO {TABLE} SELECT {_VALUES}
            FROM generate_series(number * 70::int8 + 31, number * 70::int8 + 100) AS id;
        UPDATE {TABLE} SET {HEADLINE.update} WHERE id BETWEEN number / 2 * 70::int8 + 31 AND number / 2 * 70::int8 + 50;
        DELETE FROM {TABLE} WHERE id BETWEEN (number - 1) * 70::int8 + 91 AND (number - 1) * 70::int8 + 100;
        COMMIT;
    END LOOP;
END $$"""
"""Each inserts 70 rows, updates 20 older ones, and deletes ten of the transaction before."""


@contextmanager
def listening_server(directory: Path | None) -> Iterator[str]:
    """Start a server that listens on a port of 127.0.0.1, since JDBC knows no Unix sockets; yield its URL.

    Args:
        directory: The parent of its data directory; None for that of temporary files.
    """
    with EmbeddedServer(18, _SETTINGS, directory) as server:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        data = server.data_directory
        sockets = (data / "postmaster.pid").read_text().splitlines()[4]
        command = [str(server.bin_path / "pg_ctl"), "-w", "-D", str(data), "-l", str(data / "log")]
        command += ["-o", f"-h 127.0.0.1 -p {port} -k {sockets}", "restart"]
        owner = data.owner()  # pg_ctl does not run as root
        subprocess.run(command, check=True, user=owner, stdout=subprocess.DEVNULL, cwd=data)
        yield f"postgresql://postgres@127.0.0.1:{port}/postgres"


class ChangeSource:
    """The table and the slots of one database."""

    def __init__(self, dsn: str) -> None:
        """Create them.

        Args:
            dsn: The URL of the database.
        """
        self.dsn = dsn
        self.changes = 0
        """The number of changes that the slots have."""
        self._transactions = 0
        with self._connect() as connection:
            connection.execute(f"CREATE TABLE {TABLE} (id int8 PRIMARY KEY, {', '.join(HEADLINE.columns)})".encode())
            connection.execute(f"CREATE PUBLICATION {PUBLICATION} FOR TABLE {TABLE}".encode())
            connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [_KEPT])

    @property
    def port(self) -> int:
        """The port of the server."""
        return urlsplit(self.dsn).port or 5432

    def write(self, changes: int) -> None:
        """Write transactions of 100 changes: about so many changes in all.

        Args:
            changes: How many changes there shall be, with those that have been written already.
        """
        last = max(changes // _TRANSACTION - 1, 0)
        with self._connect() as connection:
            if not self._transactions:
                connection.execute(_FIRST.encode())
                self._transactions = 1
            connection.execute(_TRANSACTIONS.format(first=self._transactions, last=last).encode())
        self._transactions = max(last + 1, self._transactions)
        self.changes = self._transactions * _TRANSACTION

    def end(self) -> str:
        """Return the LSN after all that was written."""
        with self._connect() as connection:
            [(lsn,)] = connection.execute("SELECT pg_current_wal_lsn()::text").fetchall()
        return str(lsn)

    def rows(self) -> pa.Table:
        """Return the rows of the table."""
        with self._connect() as connection:
            return rows_of_lists(connection.execute(f"SELECT {', '.join(COLUMNS.names)} FROM {TABLE}".encode()))

    @contextmanager
    def slot(self, name: str = "alternatives_read", kept: str = _KEPT) -> Iterator[str]:
        """Copy a slot, since reading moves it; yield the copy's name, and drop it at the end.

        Args:
            name: The name of the copy.
            kept: The slot that is copied.
        """
        self.copy_slot(kept, name)
        try:
            yield name
        finally:
            self.drop_slot(name)

    def copy_slot(self, slot: str, name: str) -> None:
        """Copy a slot.

        Args:
            slot: The slot.
            name: The name of the copy.
        """
        with self._connect() as connection:
            connection.execute("SELECT pg_copy_logical_replication_slot(%s, %s)", [slot, name])

    def drop_slot(self, name: str) -> None:
        """Drop a slot when its reader has ended, which the server may notice later.

        Args:
            name: The slot; nothing happens if it does not exist.
        """
        end, active = time.monotonic() + _SECONDS, "SELECT active FROM pg_replication_slots WHERE slot_name = %s"
        with self._connect() as connection:
            while (found := connection.execute(active, [name]).fetchone()) and found[0] and time.monotonic() < end:
                time.sleep(0.01)
            if found:
                connection.execute("SELECT pg_drop_replication_slot(%s)", [name])

    def _connect(self) -> "psycopg.Connection[Any]":
        import psycopg

        return psycopg.connect(self.dsn, autocommit=True)
