"""What tests of the publisher ask of it, well-behaved."""

import contextlib
from typing import Any

import psycopg

from pgoutput_construct import testing
from pgoutput_construct.wire import connection_messages as m
from tests.publisher.wire_client import WireClient

__all__ = ["START", "allowed", "can_start", "served", "sqlstate"]

START = "START_REPLICATION SLOT {} LOGICAL 0/0 (proto_version '1', publication_names 'shop')"


def served(publisher: testing.TestPublisher, **options: Any) -> bool:
    """Return whether a well-behaved client is answered."""
    with psycopg.connect(publisher.dsn, autocommit=True, **options) as connection:
        return connection.execute("SELECT 1").fetchone() == (1,)


def allowed(publisher: testing.TestPublisher) -> bool:
    """Return whether there is a place for another client."""
    with contextlib.suppress(psycopg.OperationalError):
        return served(publisher)
    return False


def can_start(client: WireClient, slot: str) -> bool:
    """Return whether a slot was free, and begin a stream from it."""
    with contextlib.suppress(psycopg.errors.ObjectInUse):
        client.start(START.format(slot))
        return True
    return False


def sqlstate(message: Any) -> str:
    """Return the code of an error."""
    assert isinstance(message, m.ErrorResponse), message
    return next(field.value for field in message.details if field.code == "C")
