"""Transactions of every kind, and checks that a log has each exactly once."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pgoutput_construct.postgres import SegmentLimits
from tests.postgres.shop import Shop, committed_ids, ends, wait_until
from tools.background import in_background

__all__ = ["TINY", "assert_exact", "mixed", "wait_for_more", "writing"]

TINY = SegmentLimits(rows=40, seconds=0.05)
"""Segments that end inside of transactions."""


def mixed(shop: Shop, first: int = 0) -> None:
    """Two large transactions interleaved, one of them rolled back in part; prepared ones; messages; small ones."""
    with shop.connect() as one, shop.connect() as two, shop.connect() as three:
        one.execute("BEGIN")
        two.execute("BEGIN")
        for step in range(4):
            for connection, offset in ((one, 1000), (two, 2000)):
                connection.execute("SAVEPOINT s")
                start = first + offset + step * 100
                rows = f"SELECT g, repeat('x', 300) FROM generate_series({start}, {start + 99}) g"
                connection.execute(f"INSERT INTO item {rows}".encode())
                if step == 2:
                    connection.execute("ROLLBACK TO s")
            three.execute(f"INSERT INTO item VALUES ({first + step}, 'small')".encode())
            three.execute(f"SELECT pg_logical_emit_message(false, 'note', '{first + step}')".encode())
        two.execute("COMMIT")
        one.execute(f"PREPARE TRANSACTION 'large {first}'".encode())
        three.execute("BEGIN")
        three.execute(f"INSERT INTO item VALUES ({first + 10}, 'prepared')".encode())
        three.execute(f"PREPARE TRANSACTION 'small {first}'".encode())
        three.execute(f"COMMIT PREPARED 'large {first}'".encode())
        three.execute(f"ROLLBACK PREPARED 'small {first}'".encode())


def _table_ids(shop: Shop) -> list[int]:
    with shop.connect() as connection:
        return [row[0] for row in connection.execute("SELECT id FROM item ORDER BY id")]


def assert_exact(shop: Shop) -> None:
    """Nothing lost, nothing twice: transactions by their ends, rows by the table."""
    log = shop.log()
    assert sorted(committed_ids(log)) == _table_ids(shop)
    repeated = {end: count for end, count in ends(log).items() if count != 1}
    assert not repeated


def wait_for_more(shop: Shop) -> None:
    """Wait for the next segment."""
    before = len(list(shop.directory.glob("segment*")))
    wait_until(lambda: len(list(shop.directory.glob("segment*"))) > before)


@contextmanager
def writing(shop: Shop) -> Iterator[None]:
    """Write small and large transactions all the while."""

    def write(done: threading.Event) -> None:
        number = 10_000_000
        while not done.wait(0.3):
            number += 10_000
            mixed(shop, number)

    with in_background(write):
        yield
