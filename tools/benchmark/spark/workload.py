"""The workload of the Spark benchmarks: changes in small transactions, as a change log and as JSON of wal2json."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import psycopg

from pgoutput_construct.demo.server import EmbeddedServer
from pgoutput_construct.postgres import capture, create_slot, current_lsn
from tools.benchmark.cases import HEADLINE
from tools.benchmark.errors import Unavailable

__all__ = ["CHANGES", "TABLE", "change_log", "wal2json_lines"]

TABLE: Final = "public.orders"
CHANGES: Final = 10
"""Changes of one transaction: six rows that come, three that change, one that goes."""

_SETTINGS: Final = {"autovacuum": "off", "max_wal_size": "16GB", "logical_decoding_work_mem": "64MB"}
_SLOT: Final = "benchmark"
_BIN: Final = Path("/usr/lib/postgresql/15/bin")
"""Where Debian's packages postgresql-15 and postgresql-15-wal2json put the server that wal2json is loaded into."""
_ALLOW: Final = (
    "SELECT set_config(name, setting || ', wal2json', false) FROM pg_settings WHERE name = 'output_plugin_libraries'"
)
"""Minor releases since August 2026 load the output plugins that are listed, which are the server's own."""
_VALUES: Final = ", ".join(("id", *HEADLINE.values))
_WORK: Final = f"""
DO $$ BEGIN
    FOR n IN 0 .. {{transactions}} - 1 LOOP
        INSERT INTO orders SELECT {_VALUES} FROM generate_series(n * 6 + 1::int8, n * 6 + 6) AS id;
        UPDATE orders SET {HEADLINE.update} WHERE id IN (n * 6 + 1, n * 3 + 1, n * 2 + 2);
        DELETE FROM orders WHERE id = n * 6 + 3;
        COMMIT;
    END LOOP;
END $$
"""


def change_log(directory: Path, transactions: int, full: bool = False) -> Path:
    """Return a change log of so many transactions, captured from a server unless it is there already.

    With ``full`` the table's replica identity is the full row.
    """
    log = directory / f"spark-{'full-' if full else ''}log-{transactions}"
    if log.exists():
        return log
    with EmbeddedServer(18, _SETTINGS) as server:
        with server.connect() as connection:
            _create(connection)
            if full:
                connection.execute("ALTER TABLE orders REPLICA IDENTITY FULL")
            connection.execute("CREATE PUBLICATION benchmark FOR TABLE orders")
            create_slot(connection, _SLOT)
            _work(connection, transactions)
            end = current_lsn(connection)
        partial = log.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        capture(server.dsn, _SLOT, ["benchmark"], partial, until_lsn=end, new_log=True)
    return partial.rename(log)


def wal2json_lines(directory: Path, transactions: int) -> Path:
    """Return a file of what wal2json (format 2) makes of the same changes; raise Unavailable where it is not there."""
    path = directory / f"wal2json-lines-{transactions}.jsonl"
    if path.exists():
        return path
    with _debian_server() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        _create(connection)
        connection.execute(_ALLOW)
        connection.execute("SELECT pg_create_logical_replication_slot(%s, 'wal2json')", [_SLOT])
        _work(connection, transactions)
        partial = path.with_suffix(".partial")
        query = (
            f"COPY (SELECT data FROM pg_logical_slot_get_changes('{_SLOT}', NULL, NULL, 'format-version', '2', "
            "'include-lsn', 'true', 'include-timestamp', 'true')) "
            "TO STDOUT (FORMAT csv, QUOTE e'\\x01', DELIMITER e'\\x02')"
        )
        with partial.open("wb") as file, connection.cursor().copy(query) as lines:
            for line in lines:
                file.write(line)
    return partial.rename(path)


def _create(connection: "psycopg.Connection[Any]") -> None:
    columns = ", ".join(("id int8 PRIMARY KEY", *HEADLINE.columns))
    connection.execute(f"CREATE TABLE orders ({columns})".encode())


def _work(connection: "psycopg.Connection[Any]", transactions: int) -> None:
    connection.execute(_WORK.replace("{transactions}", str(transactions)).encode())


@contextmanager
def _debian_server() -> Iterator[str]:
    """Run Debian's server for a while; yields its connection string."""
    if not (_BIN.parent / "lib" / "wal2json.so").exists():
        raise Unavailable("wal2json is not there: apt-get install postgresql-15 postgresql-15-wal2json")
    with tempfile.TemporaryDirectory(prefix="wal2json-") as place:
        shutil.chown(place, "postgres")
        data = f"{place}/data"
        _as_postgres("initdb", "-A", "trust", "-D", data)
        settings = "-c wal_level=logical -c fsync=off -c max_wal_size=16GB -c autovacuum=off"
        _as_postgres("pg_ctl", "-w", "-D", data, "-o", f"-h '' -k {place} {settings}", "-l", f"{place}/log", "start")
        try:
            yield f"host={place} user=postgres dbname=postgres"
        finally:
            _as_postgres("pg_ctl", "-w", "-D", data, "-m", "immediate", "stop")


def _as_postgres(program: str, *arguments: str) -> None:
    command = ["runuser", "-u", "postgres", "--", str(_BIN / program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"{program}: {done.stderr.strip()[-300:]}")
