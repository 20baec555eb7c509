"""PostgreSQL judges scenarios: what its subscription makes of invented streams is what they mean."""

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import psycopg
import pytest
from psycopg.sql import SQL, Literal

import pgoutput_construct as pgo
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.pgtypes.builtin_types import TYPE_NAMES
from pgoutput_construct.publisher._feed.message_feed import Script
from pgoutput_construct.publisher.faults import Fault
from pgoutput_construct.publisher.server import ThreadedPublisher
from pgoutput_construct.testing.scenario_tables import ScenarioTable
from pgoutput_construct.testing.scenarios import Scenario
from tests.publisher.batches import Batch, Sent, describing, script_of
from tests.publisher.reading import expected, feed_of, payloads_of, read
from tests.publisher.subscriber import Subscriber, database

pytestmark = pytest.mark.server

COUNT: Final = int(os.environ.get("PGOUTPUT_SCENARIOS", "40"))
"""Scenarios of a run; ``tools/soak`` asks for more."""
ASKED: Final = (
    (190000, "streaming = parallel, two_phase = true"),
    (180000, "streaming = on, two_phase = true, binary = true"),
    (150000, "streaming = off, two_phase = true"),
    (140000, "streaming = on"),
    (130000, "streaming = off"),
)
"""The server that the publisher stands for, which says the protocol version, and the options of the subscription."""
CUTS: Final = max(7, COUNT // 10)
_FIXED: Final = tuple(TYPE_NAMES[name].oid for name in ("int4", "int8", "bool", "uuid", "float8"))
"""Types of a fixed size, whose values in binary format stay values when their last bit changes."""


@pytest.fixture(scope="module")
def batch() -> Batch:
    """The scenarios of this run."""
    return Batch.invent(COUNT)


@pytest.fixture(scope="module")
def template(server: EmbeddedServer, batch: Batch) -> Iterator[str]:
    """The name of a database with their tables as they are in the beginning."""
    with database(server, "scenarios_template") as connection:
        for scenario in batch.scenarios:
            connection.execute("; ".join(scenario.definitions))
        connection.close()
        yield "scenarios_template"


@pytest.fixture
def target(server: EmbeddedServer, template: str) -> Iterator[psycopg.Connection[Any]]:
    """A database with their tables, which are empty."""
    with database(server, "scenarios", template) as connection:
        yield connection
        for (gid,) in connection.execute("SELECT gid FROM pg_prepared_xacts").fetchall():
            connection.execute(SQL("ROLLBACK PREPARED {}").format(Literal(gid)))


def _different(connection: psycopg.Connection[Any], batch: Batch) -> list[Scenario]:
    """Return the scenarios whose tables a subscriber has with other rows."""
    return [each for each in batch.scenarios if any(_is_different(connection, each, table) for table in each.tables)]


def _is_different(connection: psycopg.Connection[Any], scenario: Scenario, table: ScenarioTable) -> bool:
    names = list(table.fake.columns)
    columns = ", ".join(f'"{name}"' for name in names)
    rows = connection.execute(f"SELECT {columns} FROM {table.in_sql}").fetchall()
    expected = [tuple(row[name] for name in names) for row in scenario.rows[table.name]]
    if sorted(rows, key=repr) == sorted(expected, key=repr):
        return False
    print(f"{table.in_sql} has {rows}, not {expected}")
    return True


@contextmanager
def publication(
    server: EmbeddedServer, target: psycopg.Connection[Any], batch: Batch, version: int = 180000
) -> Iterator[tuple[Script, Subscriber]]:
    """Yield what is published, tables without rows, and who may subscribe; the subscription is dropped in the end."""
    script = script_of(describing(batch.scenarios), version)
    with ThreadedPublisher(script) as publisher:
        subscriber = Subscriber(server, target, publisher.dsn, "scenarios")
        try:
            yield script, subscriber
        finally:
            subscriber.unsubscribe()


@contextmanager
def subscription(
    server: EmbeddedServer,
    target: psycopg.Connection[Any],
    batch: Batch,
    sent: Iterable[Sent | Fault],
    options: str,
    version: int = 180000,
) -> Iterator[Subscriber]:
    """Yield a subscriber to a stream, with faults; it subscribed when the tables had their first names."""
    with publication(server, target, batch, version) as (script, subscriber):
        subscriber.subscribe(f"enabled = false, {options}")
        for each in sent:
            script.fault(each) if isinstance(each, Fault) else script.add(*each)
        subscriber.enable()
        yield subscriber


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: f"{asked[0]} {asked[1]}")
def test_a_server_applies_them(
    server: EmbeddedServer, target: psycopg.Connection[Any], batch: Batch, asked: tuple[int, str]
) -> None:
    """However it asks for the stream, its tables are those of the model."""
    version, options = asked
    with subscription(server, target, batch, batch.sent, options, version) as subscriber:
        subscriber.wait(batch.end)
        assert target.execute("SELECT count(*) FROM pg_prepared_xacts").fetchone() == (0,)
    different = _different(target, batch)
    assert not different, f"{batch}\n{different}"


def test_a_subscription_made_without_a_connection(
    server: EmbeddedServer, target: psycopg.Connection[Any], batch: Batch
) -> None:
    """It learns of the tables later, and gets what the publisher has from then on."""
    with publication(server, target, batch) as (script, subscriber):
        subscriber.subscribe_unconnected("streaming = parallel, two_phase = true")
        for lsn, message in batch.sent:
            script.add(lsn, message)
        subscriber.wait(batch.end)
    assert not _different(target, batch), str(batch)


@pytest.mark.parametrize("streaming", ["off", pytest.param("on", marks=pytest.mark.long), "parallel"])
def test_nothing_is_lost_or_comes_twice_after_cuts(
    server: EmbeddedServer, target: psycopg.Connection[Any], batch: Batch, streaming: str
) -> None:
    """The connection is lost between messages, wherever these are; the server gets what it has not confirmed."""
    sent: list[Sent | Fault] = [*batch.sent]
    for place in range(len(sent), 0, -(len(sent) // CUTS)):
        sent.insert(place, Fault("cut"))
    with subscription(server, target, batch, sent, f"streaming = {streaming}, two_phase = true") as subscriber:
        subscriber.wait(batch.end)
    assert not _different(target, batch), str(batch)


def test_a_wrong_value_is_seen(server: EmbeddedServer, target: psycopg.Connection[Any], batch: Batch) -> None:
    """PostgreSQL has other rows where a bit of a value is another one, and in no other scenario."""
    scenario, wrong = next(_wrong_values(batch))
    sent = [each for other in batch.scenarios for each in (wrong if other is scenario else other.sent)]
    with subscription(server, target, batch, sent, "streaming = on") as subscriber:
        subscriber.wait(batch.end)
    assert _different(target, batch) == [scenario]


def _wrong_values(batch: Batch) -> Iterator[tuple[Scenario, list[Sent]]]:
    """Yield scenarios with a wrong value, which this package makes other rows of.

    Primary keys stay right: with a wrong one, an insert may find the key of another row, where PostgreSQL stops.
    """
    for scenario in batch.scenarios:
        tables = (*scenario.first, *(alteration.table for _, alteration in scenario.alterations))
        keys = {name for table in tables for name in table.primary_key}
        described: dict[int, pgo.Relation] = {}
        for seq, (lsn, message) in enumerate(scenario.sent):
            if isinstance(message, pgo.Relation):
                described[message.relation_oid] = message
            elif isinstance(message, pgo.Insert | pgo.Update):
                wrong = _wrong_value(message, described[message.relation_oid], keys)
                sent = [*scenario.sent[:seq], (lsn, wrong), *scenario.sent[seq + 1 :]]
                if _rows_of(scenario, sent) not in (None, expected([scenario]).rows):
                    yield scenario, sent


def _wrong_value(message: Any, relation: pgo.Relation, keys: Collection[str]) -> Any:
    """Return a change whose new row has another last bit in values in binary format, but for keys."""
    is_changed = [column.type_oid in _FIXED and column.name not in keys for column in relation.columns]
    values = zip(message.new, is_changed, strict=True)
    return replace(message, new=tuple(_with_wrong_bit(value) if changed else value for value, changed in values))


def _with_wrong_bit(value: Any) -> Any:
    return pgo.Binary(value[:-1] + bytes([value[-1] ^ 1])) if isinstance(value, pgo.Binary) else value


def _rows_of(scenario: Scenario, sent: list[Sent]) -> Any:
    positions, messages = zip(*sent, strict=True)
    try:
        return read(feed_of(payloads_of(messages), positions), [scenario]).rows
    except StopIteration:
        return None


def test_a_wrong_prepare_is_refused(server: EmbeddedServer, target: psycopg.Connection[Any], batch: Batch) -> None:
    """A Prepare that is not where its Begin Prepare says: this package takes it, PostgreSQL does not."""
    sent = [(lsn, _misplaced(message)) for lsn, message in batch.sent]
    options = "streaming = on, two_phase = true, disable_on_error = true"
    with subscription(server, target, batch, sent, options) as subscriber:
        subscriber.wait_for_error()
    assert "incorrect prepare LSN" in server.log


def test_a_wrong_rollback_is_seen(server: EmbeddedServer, target: psycopg.Connection[Any], batch: Batch) -> None:
    """What was not prepared at the time that a Rollback Prepared says stays prepared."""
    sent = _up_to_rollback(batch)
    lsn, rollback = sent[-1]
    assert isinstance(rollback, pgo.RollbackPrepared), str(batch)
    sent[-1] = lsn, replace(rollback, prepare_time=pgo.Timestamp(rollback.prepare_time + 1))
    with subscription(server, target, batch, sent, "two_phase = true") as subscriber:
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
