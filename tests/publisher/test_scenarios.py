"""PostgreSQL judges scenarios: what its subscription makes of invented streams is what they mean."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import psycopg
import pytest
from psycopg.sql import SQL, Literal

import pgoutput_construct as pgo
from pgoutput_construct.demo.server import EmbeddedServer
from pgoutput_construct.publisher.faults import Fault
from pgoutput_construct.publisher.script import Script
from pgoutput_construct.publisher.threaded import ThreadedPublisher
from pgoutput_construct.testing.scenario_tables import ScenarioTable
from pgoutput_construct.testing.scenarios import Scenario
from tests.publisher.batches import Batch, Sent, describing, script_of
from tests.publisher.reading import ABOUT, expected, feed_of, payloads_of, read
from tests.publisher.subscriber import Subscriber, database

pytestmark = pytest.mark.server

COUNT: Final = int(os.environ.get("PGOUTPUT_SCENARIOS", "40"))
"""Scenarios of a run; ``tools/soak`` asks for more."""
ASKED: Final = (
    (180000, "streaming = parallel, two_phase = true"),
    (180000, "streaming = on, two_phase = true, binary = true"),
    (150000, "streaming = off, two_phase = true"),
    (140000, "streaming = on"),
    (130000, "streaming = off"),
)
"""The server that the publisher stands for, which says the protocol version, and the options of the subscription."""
CUTS: Final = max(7, COUNT // 10)
_NUMBERS: Final = ("int4", "int8")


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
def _emptied(target: psycopg.Connection[Any], batch: Batch) -> Iterator[None]:
    """Empty the tables behind each test."""
    yield
    for (gid,) in target.execute("SELECT gid FROM pg_prepared_xacts").fetchall():
        target.execute(SQL("ROLLBACK PREPARED {}").format(Literal(gid)))
    tables = [table.in_sql for scenario in batch.scenarios for table in scenario.tables]
    target.execute(f"TRUNCATE {', '.join(tables)}")


def _different(connection: psycopg.Connection[Any], batch: Batch) -> list[Scenario]:
    """Return the scenarios whose tables a subscriber has with other rows."""
    return [each for each in batch.scenarios if any(_is_different(connection, each, table) for table in each.tables)]


def _is_different(connection: psycopg.Connection[Any], scenario: Scenario, table: ScenarioTable) -> bool:
    names = list(table.invented.columns)
    columns = ", ".join(f'"{name}"' for name in names)
    rows = connection.execute(f"SELECT {columns} FROM {table.in_sql}").fetchall()
    expected = [tuple(row[name] for name in names) for row in scenario.rows[table.name]]
    if sorted(rows, key=repr) == sorted(expected, key=repr):
        return False
    print(f"{table.in_sql} has {rows}, not {expected}")
    return True


@contextmanager
def subscription(server: EmbeddedServer, target: psycopg.Connection[Any], script: Script) -> Iterator[Subscriber]:
    """Yield a subscriber to a script, whose subscription is dropped in the end."""
    with ThreadedPublisher(script) as publisher:
        subscriber = Subscriber(server, target, publisher.dsn, "scenarios")
        try:
            yield subscriber
        finally:
            subscriber.unsubscribe()


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: f"{asked[0]} {asked[1]}")
def test_a_server_applies_them(
    server: EmbeddedServer, target: psycopg.Connection[Any], batch: Batch, asked: tuple[int, str]
) -> None:
    """However it asks for the stream, its tables are those of the model."""
    version, options = asked
    with subscription(server, target, script_of(batch.sent, version)) as subscriber:
        subscriber.subscribe(options)
        subscriber.wait(batch.end)
        assert target.execute("SELECT count(*) FROM pg_prepared_xacts").fetchone() == (0,)
    different = _different(target, batch)
    assert not different, f"{batch}\n{different}"


def test_a_subscription_made_without_a_connection(
    server: EmbeddedServer, target: psycopg.Connection[Any], batch: Batch
) -> None:
    """It learns of the tables later, and gets what the publisher has from then on."""
    script = script_of(describing(batch.scenarios))
    with subscription(server, target, script) as subscriber:
        subscriber.subscribe_unconnected("streaming = parallel, two_phase = true")
        for lsn, message in batch.sent:
            script.add(lsn, message)
        subscriber.wait(batch.end)
    assert not _different(target, batch), str(batch)


@pytest.mark.parametrize("streaming", ["off", "on", "parallel"])
def test_nothing_is_lost_or_comes_twice_after_cuts(
    server: EmbeddedServer, target: psycopg.Connection[Any], batch: Batch, streaming: str
) -> None:
    """The connection is lost between messages, wherever these are; the server gets what it has not confirmed."""
    script = Script(ABOUT)
    every = len(batch.sent) // CUTS
    for number, (lsn, message) in enumerate(batch.sent, 1):
        script.add(lsn, message)
        if number % every == 0:
            script.fault(Fault("cut"))
    with subscription(server, target, script) as subscriber:
        subscriber.subscribe(f"streaming = {streaming}, two_phase = true")
        subscriber.wait(batch.end)
    assert not _different(target, batch), str(batch)


def test_a_wrong_value_is_seen(server: EmbeddedServer, target: psycopg.Connection[Any], batch: Batch) -> None:
    """PostgreSQL has other rows where a byte of a value is another one, and in no other scenario."""
    scenario, wrong = next(_wrong_values(batch))
    sent = [each for other in batch.scenarios for each in (wrong if other is scenario else other.sent)]
    with subscription(server, target, script_of(sent)) as subscriber:
        subscriber.subscribe("streaming = on")
        subscriber.wait(batch.end)
    assert _different(target, batch) == [scenario]


def _wrong_values(batch: Batch) -> Iterator[tuple[Scenario, list[Sent]]]:
    """Yield scenarios with a wrong value, which this package makes other rows of."""
    for scenario in batch.scenarios:
        for seq, (lsn, message) in enumerate(scenario.sent):
            if isinstance(message, pgo.Insert | pgo.Update):
                sent = [*scenario.sent[:seq], (lsn, _wrong_value(scenario, message)), *scenario.sent[seq + 1 :]]
                if _rows_of(sent) not in (None, expected([scenario]).rows):
                    yield scenario, sent


def _wrong_value(scenario: Scenario, message: Any) -> Any:
    """Return a change whose new row has a wrong byte at the end of each number in binary format."""
    tables = {table.invented.oid: table for table in scenario.tables}
    kinds = tables[message.relation_oid].invented.columns.values()
    new = [_wrong_number(value) if kind in _NUMBERS else value for value, kind in zip(message.new, kinds, strict=False)]
    return replace(message, new=tuple(new))


def _wrong_number(value: Any) -> Any:
    return pgo.Binary(value[:-1] + bytes([value[-1] ^ 1])) if isinstance(value, pgo.Binary) else value


def _rows_of(sent: list[Sent]) -> Any:
    positions, messages = zip(*sent, strict=True)
    try:
        return read(feed_of(payloads_of(messages), positions)).rows
    except StopIteration:
        return None


def test_a_wrong_prepare_is_refused(server: EmbeddedServer, target: psycopg.Connection[Any], batch: Batch) -> None:
    """A Prepare that is not where its Begin Prepare says: this package takes it, PostgreSQL does not."""
    sent = [(lsn, _misplaced(message)) for lsn, message in batch.sent]
    with subscription(server, target, script_of(sent)) as subscriber:
        subscriber.subscribe("streaming = on, two_phase = true, disable_on_error = true")
        subscriber.wait_for_error()
    assert "incorrect prepare LSN" in server.log


def test_a_wrong_rollback_is_seen(server: EmbeddedServer, target: psycopg.Connection[Any], batch: Batch) -> None:
    """What was not prepared at the time that a Rollback Prepared says stays prepared."""
    sent = _up_to_rollback(batch)
    lsn, rollback = sent[-1]
    assert isinstance(rollback, pgo.RollbackPrepared), str(batch)
    sent[-1] = lsn, replace(rollback, prepare_time=pgo.Timestamp(rollback.prepare_time + 1))
    with subscription(server, target, script_of(sent)) as subscriber:
        subscriber.subscribe("two_phase = true")
        subscriber.wait(lsn)
        prepared = target.execute("SELECT gid FROM pg_prepared_xacts").fetchall()
    assert any(gid.endswith(f"_{rollback.xid}") for (gid,) in prepared), f"{prepared}: {batch}"


def _up_to_rollback(batch: Batch) -> list[Sent]:
    """Return a stream up to its first Rollback Prepared."""
    sent = batch.sent
    last = next(seq for seq, (_, message) in enumerate(sent) if isinstance(message, pgo.RollbackPrepared))
    return sent[: last + 1]


def _misplaced(message: Any) -> Any:
    return (
        replace(message, prepare_lsn=pgo.Lsn(message.prepare_lsn + 1)) if isinstance(message, pgo.Prepare) else message
    )
