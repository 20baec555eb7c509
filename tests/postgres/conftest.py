"""A server that these tests may kill, a database and a slot for each of them, and what they ask of a log."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgoutput_construct.demo.server import EmbeddedServer
from tests.postgres.shop import Shop

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def own_server() -> Iterator[EmbeddedServer]:
    """A PostgreSQL 18 that tests may restart and kill; slots are saved, since fsync off loses nothing then."""
    with EmbeddedServer(18, {"wal_sender_timeout": "20s", "autovacuum": "off"}) as server:
        yield server


@pytest.fixture
def shop(own_server: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """A database with a table, a publication and a two-phase slot, and an empty place for a log."""
    with Shop.create(own_server, f"shop{next(_NUMBERS)}", tmp_path / "log") as shop:
        yield shop
