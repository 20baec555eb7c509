"""Servers that tests may stop and crash, with what the judge asks of them."""

from collections.abc import Iterator

import pytest

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from tools.faults.attack import SERVER_SETTINGS
from tools.servers import missing_server, open_server


@pytest.fixture(scope="session")
def attacked15() -> Iterator[EmbeddedServer]:
    """A PostgreSQL 15 that is stopped without warning, where it was fetched."""
    if problem := missing_server(15):
        pytest.skip(problem)
    with open_server(15, SERVER_SETTINGS) as server:
        yield server


@pytest.fixture(scope="session")
def attacked16() -> Iterator[EmbeddedServer]:
    """A PostgreSQL 16 that is stopped without warning."""
    with EmbeddedServer(16, SERVER_SETTINGS) as server:
        yield server


@pytest.fixture(scope="session")
def attacked18() -> Iterator[EmbeddedServer]:
    """A PostgreSQL 18 that is stopped without warning."""
    with EmbeddedServer(18, SERVER_SETTINGS) as server:
        yield server
