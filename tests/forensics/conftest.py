"""A database to capture, for tests of rows."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from tests.postgres.shop import Shop

_NUMBERS = itertools.count()


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """Return a database with a table, a publication and a slot, and an empty place for a log."""
    with Shop.create(server18, f"forensics{next(_NUMBERS)}", tmp_path / "log") as shop:
        yield shop
