"""PostgreSQL judges: its own subscription applies what the publisher invents, and has what it should."""

import datetime
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from pgoutput_construct import testing
from pgoutput_construct.demo.server import EmbeddedServer
from pgoutput_construct.wire.messages import UNCHANGED
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
