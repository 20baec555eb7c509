"""The workload: concurrent writers, key changes, rollbacks, large and prepared transactions, ALTER TABLE."""

import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from importlib import resources
from typing import Any

from psycopg import errors

from pgoutput_construct.demo.embedded_server import EmbeddedServer

__all__ = ["WRITERS", "Workload", "create_shop"]

WRITERS = 4
Cursor = Any
CONFLICTS = (errors.DeadlockDetected, errors.ForeignKeyViolation, errors.UniqueViolation)
"""Errors that concurrent writers cause each other."""

_CAPTURE_SECONDS = 60
"""How long the large transactions wait for the one that is rolled back to be decoded, and captured."""

NEW_CUSTOMER = """
    INSERT INTO customers (name, email, balance, rating, tags, profile, biography)
    VALUES (%s, %s, %s, %s, %s, jsonb_build_object('city', %s::text, 'visits', %s::int), repeat(%s, %s))
    RETURNING id"""
NEW_ORDER = """
    INSERT INTO orders (customer_id, total, discount, ship_on, scores, details)
    VALUES (%s, %s, %s, date '2026-01-01' + %s::int, %s, json_build_object('note', %s::text))
    RETURNING id"""
NEW_LINE = """
    INSERT INTO order_lines (order_id, line, product, quantity, price, gift_note) VALUES (%s, %s, %s, %s, %s, %s)"""
SOME_CUSTOMER = "(SELECT id FROM customers OFFSET %s LIMIT 1)"
SOME_ORDER = "(SELECT id FROM orders OFFSET %s LIMIT 1)"
PAY_SOME = "UPDATE orders SET status = 'paid' WHERE customer_id = %s AND id %% 3 = 0"
DELETE_SOME = "DELETE FROM orders WHERE customer_id = %s AND id %% 7 = 0"
NEXT_ID = "nextval(pg_get_serial_sequence('{}', 'id'))"
VIP = "'{\"vip\": true}'"

WORDS = ("plain", "naïve", "O'Hara", 'say "hi"', "back\\slash", "日本", "comma, brace {}", "", "NULL")


ROWS_BEFORE = {
    "customers": (
        1000,
        "(name, email, tags, biography) SELECT 'customer ' || g, 'c' || g || '@example.org', ARRAY['old'],"
        " repeat('x', g %% 4000) FROM generate_series(1, %s) g",
    ),
    "orders": (3000, "(customer_id, total) SELECT 1 + g %% greatest(%s / 3, 1), g FROM generate_series(1, %s) g"),
    "order_lines": (3000, "SELECT id, 1, 'old', 1, total, NULL FROM orders LIMIT %s"),
    "carts": (100, "SELECT 1000 + g, '{\"items\": []}' FROM generate_series(1, %s) g"),
}
"""The initial rows: for each table their number at scale 1, and the rest of the INSERT."""

ALTERATIONS = (
    "ALTER TABLE orders ADD COLUMN channel text NOT NULL DEFAULT 'shop window'",
    "ALTER TABLE carts RENAME COLUMN content TO items",
    "ALTER TABLE order_lines ADD COLUMN packed boolean DEFAULT false",
)
"""Alterations of tables during the workload, for which the stream has no rows."""


def create_shop(server: EmbeddedServer, scale: float = 1.0) -> None:
    """Create the tables with initial rows, and the publication; ``scale`` 1 is about 7,000 rows."""
    with server.connect() as connection:
        connection.execute(resources.files(__package__).joinpath("shop.sql").read_text("utf-8"))
        for table, (rows, values) in ROWS_BEFORE.items():
            count = max(round(rows * scale), 3)
            connection.execute(f"INSERT INTO {table} {values}", [count] * values.count("%s"))


class Workload:
    """Runs the workload; ``scale`` 1 is about 40,000 changes, some of which are rolled back."""

    def __init__(
        self,
        server: EmbeddedServer,
        scale: float = 1.0,
        alterations: Sequence[str] = ALTERATIONS,
        seconds: float = 0.0,
    ) -> None:
        """Prepare; ``run`` begins.

        Args:
            server: The server.
            scale: The number of changes, as a multiple of 40,000.
            alterations: Statements that alter tables meanwhile, one per second.
            seconds: The minimum duration.
        """
        self.server = server
        self.scale = scale
        self._seconds = seconds
        self._alterations = alterations
        self._stop = threading.Event()

    def run(self) -> None:
        """Run everything; writers are concurrent with the large transactions."""
        with ThreadPoolExecutor(WRITERS + 3, "shop") as pool:
            jobs = [pool.submit(self._write, number) for number in range(WRITERS)]
            jobs += [pool.submit(self._large), pool.submit(self._prepared), pool.submit(self._alter)]
            try:
                wait(jobs)
            except BaseException:
                self._stop.set()
                raise
        for job in jobs:
            job.result()

    def stop(self) -> None:
        """Let the writers end after their current transactions."""
        self._stop.set()

    def _write(self, number: int) -> None:
        choose = random.Random(f"1-{number}")
        actions, weights = zip(*ACTIONS.items(), strict=True)
        with self.server.connect(autocommit=False) as connection:
            transactions = max(round(600 * self.scale), 1)
            for _ in range(transactions):
                if self._stop.wait(self._seconds / transactions):
                    return
                # PostgreSQL resolves a deadlock by aborting one writer, which is just another rollback.
                with suppress(*CONFLICTS), connection.transaction(force_rollback=choose.random() < 0.1):
                    for action in choose.choices(actions, weights, k=choose.randint(1, 6)):
                        action(connection.cursor(), choose)

    def _large(self) -> None:
        """Run transactions far above logical_decoding_work_mem, which are streamed; one is rolled back.

        Wait for the capture, so that its log has that one, too.
        """
        rows = round(4000 * self.scale)
        with self.server.connect(autocommit=False) as connection:
            for outcome in ("commit", "rollback", "commit"):
                with connection.transaction(force_rollback=outcome == "rollback"):
                    customer = _one(connection.execute(NEW_CUSTOMER, _customer(random.Random(1))))
                    _bulk(connection, customer, rows)
                    with connection.transaction(force_rollback=True):
                        connection.execute("UPDATE orders SET total = -1 WHERE customer_id = %s", [customer])
                    connection.execute(PAY_SOME, [customer])
                    connection.execute(DELETE_SOME, [customer])
                    if outcome == "rollback":
                        self._wait_until_decoded()
        self._wait_until_captured()

    def _wait_until_decoded(self) -> None:
        """Wait until what was written so far is decoded: PostgreSQL 18 streams no transaction that has rolled back."""
        # The last pages stay in memory until something commits, so they may not have been sent.
        self._wait_until("sent_lsn", behind=16384)

    def _wait_until_captured(self) -> None:
        """Wait until the log has it: what is sent again has no transactions that were rolled back."""
        self._wait_until("flush_lsn")

    def _wait_until(self, position: str, behind: int = 0) -> None:
        """Wait until a position in pg_stat_replication is at most ``behind`` bytes behind what was written so far.

        Capture may be killed meanwhile, and the rest of the workload does not need this; so it is given up after a
        while.
        """
        with self.server.connect() as connection:
            end = _one(connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'")) - behind
            for _ in range(_CAPTURE_SECONDS * 10):
                row = connection.execute(f"SELECT max({position} - '0/0') FROM pg_stat_replication").fetchone()
                if (row is not None and (row[0] or 0) >= end) or self._stop.wait(0.1):
                    return

    def _prepared(self) -> None:
        """Run two-phase commits, one of which is rolled back; and a TRUNCATE."""
        with self.server.connect() as connection:
            for number, outcome in enumerate(("COMMIT", "ROLLBACK", "COMMIT")):
                connection.execute("BEGIN")
                customer = _one(connection.execute(NEW_CUSTOMER, _customer(random.Random(number))))
                _bulk(connection, customer, 20)
                connection.execute(f"PREPARE TRANSACTION 'shop-{number}'")
                connection.execute("INSERT INTO carts SELECT g, '{\"items\": [1, 2]}' FROM generate_series(1, 50) g")
                connection.execute("TRUNCATE carts" if number < 2 else "UPDATE carts SET id = -id")
                connection.execute(f"{outcome} PREPARED 'shop-{number}'")

    def _alter(self) -> None:
        """Add and rename columns while the other jobs run."""
        with self.server.connect() as connection:
            for statement in self._alterations:
                while not self._stop.wait(1.0):
                    with suppress(*CONFLICTS):
                        connection.execute(statement)
                        break


def _one(cursor: Cursor) -> int:
    return int(cursor.fetchone()[0])


def _customer(choose: random.Random) -> list[Any]:
    name = f"{choose.choice(WORDS)} {choose.randint(1, 9999)}"
    rating = choose.choice([None, 0.1, 2.5, float("inf"), float("nan")])
    tags = choose.sample(WORDS, choose.randint(0, 3))
    city = choose.choice(WORDS)
    return [name, f"c{choose.randint(1, 9999)}@example.org", choose.randint(-10**6, 10**6) / 100, rating, tags, city,
            choose.randint(0, 99), choose.choice("abcdé"), choose.choice([0, 40, 9000])]  # fmt: skip


def _bulk(connection: Any, customer: int, rows: int) -> None:
    """Insert orders with one line each, in two statements."""
    connection.execute(
        "INSERT INTO orders (customer_id, total, ship_on) SELECT %s, g, date '2026-01-01' + g %% 365"
        " FROM generate_series(1, %s) g",
        [customer, rows],
    )
    connection.execute(
        "INSERT INTO order_lines SELECT id, 1, 'bulk ' || id, 1 + id %% 5, total / 10, NULL"
        " FROM orders WHERE customer_id = %s",
        [customer],
    )


def _new_customer(cursor: Cursor, choose: random.Random) -> None:
    cursor.execute(NEW_CUSTOMER, _customer(choose))


def _new_order(cursor: Cursor, choose: random.Random) -> None:
    cursor.execute(f"SELECT {SOME_CUSTOMER}", [choose.randint(0, 200)])
    customer = cursor.fetchone()[0]
    if customer is None:
        return
    scores = choose.choice([None, [], [1, None, -3]])
    cursor.execute(
        NEW_ORDER,
        [customer, _price(choose), choose.choice([None, 1.5]), choose.randint(0, 900), scores, choose.choice(WORDS)],
    )
    order = _one(cursor)
    for line in range(1, choose.randint(1, 4) + 1):
        note = choose.choice([None, b"", bytes(range(256))])
        cursor.execute(NEW_LINE, [order, line, choose.choice(WORDS), choose.randint(1, 9), _price(choose), note])


def _price(choose: random.Random) -> float:
    return choose.randint(1, 9999) / 100


def _update(statement: str, most: int = 200) -> Callable[[Cursor, random.Random], None]:
    def action(cursor: Cursor, choose: random.Random) -> None:
        cursor.execute(statement, [choose.randint(0, most)])

    return action


ACTIONS: dict[Callable[[Cursor, random.Random], None], int] = {
    _new_customer: 6,
    _new_order: 10,
    _update(f"UPDATE customers SET balance = balance + 1.25 WHERE id = {SOME_CUSTOMER}"): 6,
    _update(f"UPDATE customers SET biography = biography || '!' WHERE id = {SOME_CUSTOMER}"): 2,
    _update(f"UPDATE customers SET profile = profile || {VIP}, active = NOT active WHERE id = {SOME_CUSTOMER}"): 2,
    _update(f"UPDATE customers SET id = {NEXT_ID.format('customers')} WHERE id = {SOME_CUSTOMER}"): 2,
    _update(f"UPDATE orders SET status = 'shipped', total = total * 2 WHERE id = {SOME_ORDER}", 900): 6,
    _update(f"UPDATE orders SET id = {NEXT_ID.format('orders')} WHERE id = {SOME_ORDER}", 900): 1,
    _update(f"UPDATE order_lines SET quantity = quantity + 1 WHERE order_id = {SOME_ORDER}", 900): 4,
    _update(f"DELETE FROM orders WHERE id = {SOME_ORDER}", 900): 2,
    _update(f"DELETE FROM customers WHERE id = {SOME_CUSTOMER}"): 1,
}
"""The actions of a writer, with their weights."""
