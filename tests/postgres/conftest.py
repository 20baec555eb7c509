"""Fixtures: a server that tests may kill, and a database and a slot for each test."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import _retry
from tests.postgres.shop import Shop
from tools.servers import missing_server, open_server

_NUMBERS = itertools.count()


_SETTINGS = {"wal_sender_timeout": "20s", "autovacuum": "off"}


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers are down for a moment only: captures try again soon."""
    monkeypatch.setattr(_retry, "_MIN_PAUSE", 0.05)
    monkeypatch.setattr(_retry, "_MAX_PAUSE", 0.4)


@pytest.fixture(scope="session")
def own_server18() -> Iterator[EmbeddedServer]:
    """A PostgreSQL 18 that tests may restart and kill; slots are saved, since fsync off loses nothing then."""
    with EmbeddedServer(18, _SETTINGS) as server:
        yield server


@pytest.fixture(scope="session")
def own_server19() -> Iterator[EmbeddedServer]:
    """A PostgreSQL 19 of that kind, where it was fetched."""
    if problem := missing_server(19):
        pytest.skip(problem)
    with open_server(19, _SETTINGS) as server:
        yield server


@pytest.fixture
def own_server(request: pytest.FixtureRequest) -> EmbeddedServer:
    """One of them: 18, unless a test asks for others (``parametrize("own_server", [18, 19], indirect=True)``)."""
    started: EmbeddedServer = request.getfixturevalue(f"own_server{getattr(request, 'param', 18)}")
    return started


@pytest.fixture
def shop(own_server: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """A database with a table, a publication and a two-phase slot, and an empty place for a log."""
    with Shop.create(own_server, f"shop{next(_NUMBERS)}", tmp_path / "log") as shop:
        yield shop
