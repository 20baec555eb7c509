"""PostgreSQL judges: its own subscription applies what the publisher invents, and has what it should."""

import datetime
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from pgoutput_construct import testing
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.publisher._feed.feed import About
from pgoutput_construct.publisher._feed.message_feed import Script
from pgoutput_construct.publisher._server.service import Settings
from pgoutput_construct.publisher.server import ThreadedPublisher
from pgoutput_construct.testing.scripted_publisher import TestPublisher
from pgoutput_construct.wire.messages import UNCHANGED
from pgoutput_construct.wire.types import Lsn
from tests.postgres.shop import wait_until
from tests.publisher.subscriber import Subscriber, database

pytestmark = pytest.mark.server

OPTIONS = ("streaming = off", "streaming = on", "streaming = parallel, two_phase = true", "binary = true")


@pytest.fixture(scope="module")
def target(server: EmbeddedServer) -> Iterator[psycopg.Connection[Any]]:
    """A database for subscriptions."""
    with database(server, "judge") as connection:
        yield connection


@pytest.fixture
def subscriber(
    server: EmbeddedServer, target: psycopg.Connection[Any], publisher: testing.TestPublisher
) -> Iterator[Subscriber]:
    """A subscriber of the publisher with the tables of these tests."""
    target.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    target.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, note text, amount numeric(10,2), at timestamptz, code uuid)"
    )
    target.execute("CREATE TABLE pairs (a int, b text); ALTER TABLE pairs REPLICA IDENTITY FULL")
    each = Subscriber(server, target, publisher.dsn, "judged")
    yield each
    each.unsubscribe()


@pytest.mark.differs_by_version
@pytest.mark.parametrize("options", OPTIONS)
def test_what_is_invented_is_applied(publisher: testing.TestPublisher, subscriber: Subscriber, options: str) -> None:
    """Plain, streamed, interleaved, rolled-back and prepared changes arrive as they are meant, however asked for."""
    columns = {"id": "int4", "note": "text", "amount": "numeric", "at": "timestamptz", "code": "uuid"}
    orders = publisher.table("orders", columns, key=["id"])
    pairs = publisher.table("pairs", {"a": "int4", "b": "text"})
    moment = datetime.datetime(2026, 1, 31, 12, 30, tzinfo=datetime.UTC)
    first = {"id": 1, "note": "long", "amount": Decimal("12.50"), "at": moment, "code": uuid.UUID(int=7)}
    publisher.commit([orders.insert(first), orders.insert({"id": 2, "note": "two"}), pairs.insert({"a": 1, "b": "x"})])
    publisher.commit(
        [orders.insert({"id": 3, "note": "three"}), orders.update({"id": 2, "note": "zwei"})],
        streamed=True,
        rolled_back=[orders.insert({"id": 4, "note": "never"})],
    )
    publisher.interleaved(
        [orders.insert({"id": 10 + n, "note": "left"}) for n in range(3)],
        [pairs.insert({"a": 20 + n, "b": "right"}) for n in range(3)],
    )
    publisher.commit([orders.update(first | {"note": UNCHANGED, "amount": Decimal(9)})], prepared="gid")
    publisher.commit([pairs.update({"a": 1, "b": "y"}, {"a": 1, "b": "x"}), pairs.delete({"a": 22, "b": "right"})])
    publisher.commit([orders.update({"id": 5, "note": "moved"}, {"id": 3}), orders.delete({"id": 10})])
    end = publisher.commit([], origin="elsewhere")
    subscriber.subscribe(options)
    subscriber.wait(end)
    assert subscriber.rows("orders") == [
        (1, "long", Decimal("9.00"), moment, uuid.UUID(int=7)),
        (2, "zwei", None, None, None),
        (5, "moved", None, None, None),
        (11, "left", None, None, None),
        (12, "left", None, None, None),
    ]
    assert subscriber.rows("pairs") == [(1, "y"), (20, "right"), (21, "right")]


def test_a_truncate_and_a_second_connection(publisher: testing.TestPublisher, subscriber: Subscriber) -> None:
    """After a cut the server comes back, and gets what it has not confirmed, each change once."""
    pairs = publisher.table("pairs", {"a": "int4", "b": "text"})
    publisher.commit([pairs.insert({"a": n, "b": "gone"}) for n in range(10)])
    publisher.commit([pairs.truncate()])
    subscriber.subscribe()
    subscriber.wait(publisher.commit([pairs.insert({"a": n, "b": "here"}) for n in range(5)]))
    publisher.fault("cut")
    publisher.commit([pairs.insert({"a": 100, "b": "after"})])
    publisher.fault("cut inside a message")
    end = publisher.commit([pairs.update({"a": 0, "b": "last"}, {"a": 0, "b": "here"})])
    subscriber.wait(end)
    assert subscriber.rows("pairs") == [(0, "last"), *((n, "here") for n in range(1, 5)), (100, "after")]


def test_a_subscription_is_altered(server18: EmbeddedServer, publisher: testing.TestPublisher) -> None:
    """PostgreSQL 18 alters the slot with its subscription; what is prepared comes as was asked for last."""
    pairs = publisher.table("pairs", {"a": "int4", "b": "text"})
    numbers, gids = iter(range(100)), iter("abcdef")

    def prepare() -> tuple[str, int]:
        gid = next(gids)
        return gid, publisher.prepare([pairs.insert({"a": next(numbers), "b": gid})], gid)

    with database(server18, "altering") as target:
        target.execute("CREATE TABLE pairs (a int, b text); ALTER TABLE pairs REPLICA IDENTITY FULL")
        subscriber = Subscriber(server18, target, publisher.dsn, "altering")
        publisher.commit([pairs.insert({"a": next(numbers), "b": "first"})])
        subscriber.subscribe("two_phase = true, failover = true")
        try:
            slot = publisher.slot("altering")
            assert slot is not None and (slot.two_phase, slot.failover) == (True, True)
            found = []
            for options in ("two_phase = false", "failover = false", "two_phase = true, failover = true"):
                gid, xid = prepare()
                is_prepared = "SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()"
                subscriber.wait(publisher.commit([pairs.insert({"a": next(numbers), "b": "between"})]))
                found.append(target.execute(is_prepared).fetchone() == (1,))
                subscriber.wait(publisher.commit_prepared(gid, xid))
                subscriber.disable()
                subscriber.alter(f"SET ({options})")
                found += [slot.two_phase, slot.failover]
                subscriber.enable()
            # That of a subscription is switched on when it begins again, for what is prepared from there on.
            subscriber.wait(publisher.commit([pairs.insert({"a": next(numbers), "b": "last"})]))
            wait_until(lambda: slot.two_phase)
            gid, xid = prepare()
            subscriber.wait(publisher.commit([pairs.insert({"a": next(numbers), "b": "between"})]))
            found.append(target.execute(is_prepared).fetchone() == (1,))
            subscriber.wait(publisher.commit_prepared(gid, xid))
            assert found == [True, False, True, False, False, False, False, False, True, True]
            assert [a for a, _ in subscriber.rows("pairs")] == list(range(next(numbers)))
        finally:
            subscriber.unsubscribe()


def test_a_subscriber_that_is_killed(server18: EmbeddedServer) -> None:
    """Its worker ends amid the stream, again and again: no error here, and each row once there."""
    told: list[str] = []
    script = Script(About(180000, "7000000000000000000", "postgres", 1, (), {}))
    kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_subscription WHERE subname = 'killed' AND pid IS NOT NULL"
    with (
        ThreadedPublisher(script, Settings(), told.append) as running,
        database(server18, "killed") as target,
    ):
        publisher = TestPublisher(running, script)
        pairs = publisher.table("pairs", {"a": "int4", "b": "text"})
        target.execute("CREATE TABLE pairs (a int, b text)")
        target.execute("ALTER SYSTEM SET wal_retrieve_retry_interval = '100ms'")
        target.execute("SELECT pg_reload_conf()")
        subscriber = Subscriber(server18, target, running.dsn, "killed")
        publisher.commit([pairs.insert({"a": 0, "b": "first"})])
        subscriber.subscribe()
        try:
            for number in range(1, 6):
                rows = range(1000 * number, 1000 * number + 1000)
                end = publisher.commit([pairs.insert({"a": row, "b": "x" * 1000}) for row in rows])
                wait_until(lambda: target.execute(kill).fetchone() == (True,))
            subscriber.wait(end)
        finally:
            subscriber.unsubscribe()
            target.execute("ALTER SYSTEM RESET wal_retrieve_retry_interval")
            target.execute("SELECT pg_reload_conf()")
        assert [a for a, _ in subscriber.rows("pairs")] == [0, *range(1000, 6000)]
    assert any("its client has disconnected" in line for line in told)
    assert not [line for line in told if "error" in line or "violation" in line]


def test_tables_are_there_from_the_beginning(server: EmbeddedServer, publisher: testing.TestPublisher) -> None:
    """A subscription finds a table that nothing was committed to yet; then its first row arrives."""
    pairs = publisher.table("pairs", {"a": "int4", "b": "text"})
    with database(server, "early") as target:
        target.execute("CREATE TABLE pairs (a int, b text); CREATE TABLE more (a int)")
        subscriber = Subscriber(server, target, publisher.dsn, "early")
        subscriber.subscribe()
        try:
            listed = "SELECT srrelid::regclass::text FROM pg_subscription_rel ORDER BY 1"
            assert target.execute(listed).fetchall() == [("pairs",)]
            more = publisher.table("more", {"a": "int4"}, key=["a"])
            subscriber.alter("REFRESH PUBLICATION WITH (copy_data = false)")
            assert target.execute(listed).fetchall() == [("more",), ("pairs",)]
            end = publisher.commit([pairs.insert({"a": 1, "b": "first"}), more.insert({"a": 2})])
            assert publisher.wait_confirmed("early", end).confirmed >= end
            assert (subscriber.rows("pairs"), subscriber.rows("more")) == ([(1, "first")], [(2,)])
            with pytest.raises(
                TimeoutError, match=f"slot 'early' has confirmed [0-9A-F/]+, not {Lsn(end + 99)}, after"
            ):
                publisher.wait_confirmed("early", Lsn(end + 99), timeout=0.1)
            with pytest.raises(TimeoutError, match="slot 'other' does not exist"):
                publisher.wait_confirmed("other", end, timeout=0.1)
        finally:
            subscriber.unsubscribe()
