"""The recordings of the cases, made with the embedded PostgreSQL 18 and cached in a folder."""

from collections.abc import Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgoutput_construct.demo.server import EmbeddedServer
from tools.benchmark.batch import Batch
from tools.benchmark.cases import TABLE, Case
from tools.benchmark.errors import BenchmarkError
from tools.benchmark.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

__all__ = ["SERVER_VERSION", "capture_path", "captures"]

SERVER_VERSION = 18
"""The PostgreSQL that sends the messages."""

_SLOT = "benchmark"


def capture_path(case: Case, messages: int, directory: Path) -> Path:
    """Return where the recording of a case with so many messages is kept."""
    return directory / "captures" / f"{case.name}-{case.messages(messages)}-{case.recipe}.payloads"


def captures(cases: Iterable[Case], messages: int, directory: Path, fresh: bool, progress: Progress) -> list[Batch]:
    """Return the recordings of the cases; those that are not in the folder are made, all of them when ``fresh``."""
    cases = list(cases)
    paths = {case: capture_path(case, messages, directory) for case in cases}
    missing = [case for case in cases if fresh or not paths[case].exists()]
    if missing:
        paths[missing[0]].parent.mkdir(parents=True, exist_ok=True)
        progress.step(f"starting PostgreSQL {SERVER_VERSION}")
        with EmbeddedServer(SERVER_VERSION, {"autovacuum": "off"}) as server:
            for case in missing:
                progress.step(f"{case.name}: recording {case.messages(messages):,} messages")
                _record(server, case, case.messages(messages)).save(paths[case])
    return [Batch.load(case, paths[case]) for case in cases]


def _record(server: EmbeddedServer, case: Case, count: int) -> Batch:
    with _database(server) as connection:
        _execute(connection, _create_table(case))
        _execute(connection, f"CREATE PUBLICATION {TABLE} FOR TABLE {TABLE}")
        _execute(connection, "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [_SLOT])
        _run_workload(connection, case, count)
        payloads = _read_slot(connection, case)
    if len(payloads) < count:
        raise BenchmarkError(f"{case.name}: the workload made {len(payloads)} messages, {count} were expected")
    return Batch(case, payloads[:count])


@contextmanager
def _database(server: EmbeddedServer) -> "Iterator[psycopg.Connection[Any]]":
    with server.connect() as admin:
        _execute(admin, f"DROP DATABASE IF EXISTS {TABLE} WITH (FORCE)")
        _execute(admin, f"CREATE DATABASE {TABLE}")
    with server.connect(dbname=TABLE) as connection:
        try:
            yield connection
        finally:
            _execute(connection, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")


def _create_table(case: Case) -> str:
    columns = ", ".join(["id int8 PRIMARY KEY", *case.columns])
    external = "".join(
        f"; ALTER TABLE {TABLE} ALTER {column.split()[0]} SET STORAGE EXTERNAL"
        for column in case.columns
        if column.startswith("body ")
    )
    return f"CREATE TABLE {TABLE} ({columns}){external}"


def _run_workload(connection: "psycopg.Connection[Any]", case: Case, count: int) -> None:
    """Run transactions until there are enough messages: a row each, every tenth updated, every fiftieth deleted."""
    rows = max(min(case.rows, count // 2), 1)
    values = ", ".join(("id", *case.values)).replace("%", "%%")
    statements = (
        f"INSERT INTO {TABLE} SELECT {values} FROM generate_series(%(first)s::int8, %(last)s::int8) AS id",
        f"UPDATE {TABLE} SET {case.update} WHERE id BETWEEN %(first)s AND %(last)s AND id %% 10 = 3",
        f"DELETE FROM {TABLE} WHERE id BETWEEN %(first)s AND %(last)s AND id %% 50 = 7",
    )
    for first in range(1, count + 1, rows):
        with connection.transaction():
            for statement in statements:
                _execute(connection, statement, {"first": first, "last": first + rows - 1})


def _read_slot(connection: "psycopg.Connection[Any]", case: Case) -> list[bytes]:
    options = {
        "proto_version": str(case.proto_version),
        "publication_names": TABLE,
        "streaming": case.streaming,
        "binary": str(case.binary).lower(),
    }
    pairs = [text for pair in options.items() for text in pair]
    query = f"SELECT data FROM pg_logical_slot_get_binary_changes(%s, NULL, NULL, {', '.join(['%s'] * len(pairs))})"
    with connection.cursor(binary=True) as cursor:
        cursor.execute(query.encode(), [_SLOT, *pairs])
        return [bytes(row[0]) for row in cursor]


def _execute(connection: "psycopg.Connection[Any]", text: str, arguments: Any = None) -> None:
    connection.execute(text.encode(), arguments)
