"""PostgreSQL judges scenarios: what its subscription makes of invented streams is what they mean."""

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import psycopg
import pytest

import pgoutput_construct as pgo
from pgoutput_construct.demo.server import EmbeddedServer
from pgoutput_construct.testing.scenarios import Scenario
from tests.publisher.batches import Batch, Sent, serving
from tests.publisher.subscriber import Subscriber, database

pytestmark = pytest.mark.server

COUNT: Final = int(os.environ.get("PGOUTPUT_SCENARIOS", 40))
"""Scenarios of a run; ``tools/soak`` asks for more."""
ASKED: Final = (
    (180000, "streaming = parallel, two_phase = true"),
    (180000, "streaming = on, binary = true"),
    (150000, "streaming = off, two_phase = true"),
    (140000, "streaming = on"),
    (130000, "streaming = off"),
)
"""The server that the publisher stands for, which says the protocol version, and the options of the subscription."""


@pytest.fixture(scope="module")
def batch() -> Batch:
    """The scenarios of this run."""
    return Batch.invent(COUNT)


@pytest.fixture(scope="module")
def target(server: EmbeddedServer, batch: Batch) -> Iterator[psycopg.Connection[Any]]:
    """A database with their tables, which are empty."""
    with database(server, "scenarios") as connection:
        for scenario in batch.scenarios:
            connection.execute("; ".join(scenario.definitions))
        yield connection


@pytest.fixture(autouse=True)
def _empty(target: psycopg.Connection[Any], batch: Batch) -> Iterator[None]:
    yield
    tables = [table.in_sql for scenario in batch.scenarios for table in scenario.tables]
    target.execute(f"TRUNCATE {', '.join(tables)}")


def differences(connection: psycopg.Connection[Any], scenario: Scenario) -> list[str]:
    """Return where the tables of a subscriber are not those of a scenario."""
    found = []
    for table in scenario.tables:
        names = list(table.invented.columns)
        rows = connection.execute(f"SELECT {', '.join(map(_quoted, names))} FROM {table.in_sql}").fetchall()
        expected = [tuple(row[name] for name in names) for row in scenario.rows[table.name]]
        if sorted(rows, key=repr) != sorted(expected, key=repr):
            found.append(f"{table.in_sql} has {rows}, not {expected}, behind {scenario.sent}")
    return found


def _quoted(name: str) -> str:
    return f'"{name}"'


def applied(server: EmbeddedServer, target: psycopg.Connection[Any], sent: list[Sent], end: int, asked: Any) -> None:
    """Let a server subscribe to a stream and apply it."""
    version, options = asked
    with serving(sent, version) as publisher:
        subscriber = Subscriber(server, target, publisher.dsn, "scenarios")
        subscriber.subscribe(options)
        try:
            subscriber.wait(end)
        finally:
            subscriber.unsubscribe()


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: f"{asked[0]} {asked[1]}")
def test_a_server_applies_them(
    server: EmbeddedServer, target: psycopg.Connection[Any], batch: Batch, asked: tuple[int, str]
) -> None:
    """However it asks for the stream, its tables are those of the model."""
    applied(server, target, batch.sent, batch.end, asked)
    found = [each for scenario in batch.scenarios for each in differences(target, scenario)]
    assert not found, f"{batch}\n" + "\n".join(found)
    assert target.execute("SELECT count(*) FROM pg_prepared_xacts").fetchone() == (0,)
    print(batch)
