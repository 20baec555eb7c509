"""A database of its own for each test, whose tables are copied in many small pieces."""

import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import CaptureProgress, SegmentLimits, capture, current_lsn, drop_slot
from pgoutput_construct.postgres._snapshot import chunks, copy_plans
from tests.postgres.copying.source import assert_equal, logged_tables
from tests.postgres.shop import wait_until
from tools.background import in_background

_NUMBERS = itertools.count()


@dataclass
class Source:
    """A database, and the log that it is captured into."""

    server: EmbeddedServer
    dbname: str
    directory: Path

    @property
    def dsn(self) -> str:
        """The connection string."""
        return psycopg.conninfo.make_conninfo(self.server.dsn, dbname=self.dbname)

    @property
    def version(self) -> int:
        """The major version of the server."""
        with self.connect() as connection:
            return connection.info.server_version // 10000

    def connect(self) -> "psycopg.Connection[Any]":
        """Open an autocommit connection."""
        return self.server.connect(dbname=self.dbname)

    def execute(self, *statements: str) -> None:
        """Run statements one after the other."""
        with self.connect() as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def capture(self, **options: Any) -> CaptureProgress:
        """Capture with copies up to the present end of the WAL, until all are durable."""
        given: dict[str, Any] = {"create_slot": True, "snapshot": True, "handle_signals": False, "status_interval": 0.5}
        if "stop" not in options:
            with self.connect() as connection:
                given["until_lsn"] = current_lsn(connection)
        publications = options.pop("publications", ["p"])
        return capture(self.dsn, f"slot_{self.dbname}", publications, self.directory, **{**given, **options})

    @contextmanager
    def capturing(self, **options: Any) -> Iterator[Future[Any]]:
        """Capture in a thread until the block ends, without delay; what it raises is raised then."""
        given = {"limits": SegmentLimits(seconds=0.1), **options}
        with in_background(lambda done: self.capture(stop=done.is_set, **given)) as (capturing,):
            yield capturing

    def is_read(self) -> bool:
        """Return whether a capture reads the slot."""
        query = "SELECT FROM pg_replication_slots WHERE slot_name = %s AND active"
        with self.connect() as connection:
            return bool(connection.execute(query, [f"slot_{self.dbname}"]).fetchall())

    @contextmanager
    def writing(self, *statements: str) -> Iterator[None]:
        """Run statements again and again, each with ``%s`` as a growing number, until the block ends."""

        def write(done: threading.Event) -> None:
            with self.connect() as connection:
                for number in itertools.count(1_000_000):
                    for statement in statements:
                        connection.execute(statement.replace("%s", str(number)).encode())
                    if done.wait(0.005):
                        return

        with in_background(write):
            yield

    def log(self) -> ChangeLog:
        """Open the log."""
        return ChangeLog(self.directory)

    def check(self, tables: dict[str, str], where: dict[str, str] | None = None) -> None:
        """Compare tables, given with their columns, with what the log says that they are."""
        logged = logged_tables(self.log())
        for name, columns in tables.items():
            assert_equal(self.dsn, logged, name, columns, (where or {}).get(name, "true"))


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Divide tables into chunks of few pages, and chunks into pieces of few rows."""
    monkeypatch.setattr(copy_plans, "CHUNK_PAGES", 8)
    monkeypatch.setattr(chunks, "_PIECE_BYTES", 2**14)


@pytest.fixture
def source(server: EmbeddedServer, tmp_path: Path, small_pieces: Callable[[], None]) -> Iterator[Source]:
    """An empty database with a publication ``p`` of nothing."""
    source = Source(server, f"source{next(_NUMBERS)}", tmp_path / "log")
    with server.connect() as admin:
        admin.execute(f"CREATE DATABASE {source.dbname}".encode())
    source.execute("CREATE PUBLICATION p WITH (publish_via_partition_root = true)")
    try:
        yield source
    finally:
        wait_until(lambda: not source.is_read())  # a walsender ends a moment later
        with server.connect() as admin:
            drop_slot(admin, f"slot_{source.dbname}", missing_ok=True)
            admin.execute(f"DROP DATABASE {source.dbname} WITH (FORCE)".encode())
