"""Fixtures of the tests of the publisher."""

from collections.abc import Iterator

import pytest

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.testing.fixtures import publisher
from tests.live.capture import SERVER_SETTINGS
from tools.servers import missing_server, open_server

__all__ = ["publisher", "server15", "subscribing"]


@pytest.fixture(scope="session")
def server15() -> Iterator[EmbeddedServer]:
    """A PostgreSQL 15 for the whole run, where it was fetched."""
    if problem := missing_server(15):
        pytest.skip(problem)
    with open_server(15, SERVER_SETTINGS) as server:
        yield server


@pytest.fixture(
    scope="session",
    params=[pytest.param(version, marks=pytest.mark.server, id=f"pg{version}") for version in (15, 16, 18)],
)
def subscribing(request: pytest.FixtureRequest) -> EmbeddedServer:
    """Each of the servers that subscribe, in turn."""
    started: EmbeddedServer = request.getfixturevalue(f"server{request.param}")
    return started
