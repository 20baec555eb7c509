"""A real PostgreSQL that subscribes to a publisher."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.sql import SQL, Composable, Identifier, Literal

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from tests.postgres.shop import wait_until

__all__ = ["Subscriber", "database"]

_SECONDS = 300.0


@contextmanager
def database(server: EmbeddedServer, name: str, template: str = "template1") -> Iterator[psycopg.Connection[Any]]:
    """Yield a connection to a new database, a copy of another one to which nobody is connected; it is dropped then."""
    with server.connect() as admin:
        admin.execute(
            SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(Identifier(name), Identifier(template))
        )
        try:
            with psycopg.connect(server.dsn, dbname=name, autocommit=True) as connection:
                yield connection
        finally:
            admin.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name)))


class Subscriber:
    """A subscription in a database of its own."""

    def __init__(self, server: EmbeddedServer, connection: psycopg.Connection[Any], publisher: str, name: str) -> None:
        self.server = server
        self.connection = connection
        self.publisher = publisher
        self.name = name

    def subscribe(self, options: str = "", publications: str = "shop") -> None:
        """Subscribe; the tables are there."""
        given = ", ".join(filter(None, ["copy_data = false", options]))
        command = SQL("CREATE SUBSCRIPTION {} CONNECTION {} PUBLICATION {} WITH (" + given + ")")
        self.connection.execute(
            command.format(Identifier(self.name), Literal(self.publisher), Identifier(publications))
        )

    def enable(self) -> None:
        """Let it begin, where it was made with ``enabled = false``."""
        self.connection.execute(SQL("ALTER SUBSCRIPTION {} ENABLE").format(Identifier(self.name)))

    def subscribe_unconnected(self, options: str = "", publications: str = "shop") -> None:
        """Subscribe without a look at the publisher, whose slot is there or is made at its first use.

        What comes before the last command, which asks which tables are published, is not applied.
        """
        given = ", ".join(filter(None, ["connect = false, slot_name = {}", options]))
        command = SQL("CREATE SUBSCRIPTION {} CONNECTION {} PUBLICATION {} WITH (" + given + ")")
        name = Identifier(self.name)
        self.connection.execute(command.format(name, Literal(self.publisher), Identifier(publications), name))
        self.enable()
        self.connection.execute(SQL("ALTER SUBSCRIPTION {} REFRESH PUBLICATION WITH (copy_data = false)").format(name))

    def connect(self, publisher: str, options: str = "") -> None:
        """Subscribe, or go on with a subscription that was disabled, now to another publisher with the same slots."""
        known = self.connection.execute("SELECT FROM pg_subscription WHERE subname = %s", (self.name,)).fetchone()
        self.publisher = publisher
        if known is None:
            self.subscribe(options)
        else:
            self.alter("CONNECTION {}", Literal(publisher))
            self.alter("ENABLE")

    def refresh(self) -> None:
        """Ask again which tables are published."""
        self.alter("REFRESH PUBLICATION WITH (copy_data = false)")

    def disable(self) -> None:
        """Let it rest; what it confirms last has been sent then."""
        self.alter("DISABLE")
        query = "SELECT FROM pg_stat_subscription WHERE subname = %s AND pid IS NOT NULL"
        wait_until(lambda: self.connection.execute(query, (self.name,)).fetchone() is None)

    def alter(self, change: str, *arguments: Composable) -> None:
        """Alter the subscription."""
        self.connection.execute(SQL("ALTER SUBSCRIPTION {} " + change).format(Identifier(self.name), *arguments))

    def wait_for_error(self) -> None:
        """Wait until it has refused to apply something; raise AssertionError after a while."""
        deadline = time.monotonic() + _SECONDS
        query = "SELECT apply_error_count > 0 FROM pg_stat_subscription_stats WHERE subname = %s"
        while self.connection.execute(query, (self.name,)).fetchone() != (True,):
            assert time.monotonic() < deadline, f"{self.name} has refused nothing in {_SECONDS} seconds"
            time.sleep(0.05)

    def wait(self, lsn: int) -> None:
        """Wait until everything before a position is applied; raise AssertionError after a while."""
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            query = "SELECT latest_end_lsn - '0/0' >= %s FROM pg_stat_subscription WHERE subname = %s AND relid IS NULL"
            if (True,) in self.connection.execute(query, (lsn, self.name)).fetchall():
                return
            time.sleep(0.05)
        raise AssertionError(f"{self.name} has not come to {lsn:#x} in {_SECONDS} seconds: {self.server.log[-2000:]}")

    def unsubscribe(self, keeps_slot: bool = False) -> None:
        """Drop the subscription, and with it the slot unless that is kept; what it confirms last has been sent then."""
        if keeps_slot:
            self.alter("DISABLE")
            self.alter("SET (slot_name = NONE)")
        self.connection.execute(SQL("DROP SUBSCRIPTION {}").format(Identifier(self.name)))

    def rows(self, table: str, columns: str = "*") -> Sequence[Any]:
        """Return the rows of a table, sorted."""
        return sorted(self.connection.execute(f"SELECT {columns} FROM {table}").fetchall())
