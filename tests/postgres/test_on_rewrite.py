"""Rows that change without messages: the capture copies the table again, or ends with an error."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pgoutput_construct.changelog._facts.copies import copies_of
from pgoutput_construct.changelog._facts.lineage import lineage_of
from pgoutput_construct.changelog._notes.copy_requests import ask, requests
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import ReplicationError, snapshot
from tests.postgres.lost import ids, oid_of
from tests.postgres.shop import Shop, is_active, wait_until

pytestmark = pytest.mark.server

REWRITE = "ALTER TABLE item ALTER id TYPE bigint USING id + 100"


@pytest.fixture
def shop(server: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """A shop on each of the servers, with two rows in its log."""
    with Shop.create(server, "rewriting", tmp_path / "log") as shop:
        shop.execute("INSERT INTO item VALUES (1, 'a'), (2, 'b')")
        shop.capture()
        yield shop


def test_on_rewrite_stop_ends_with_the_remedy(shop: Shop) -> None:
    """Also when it is started again, until the table is copied."""
    words = r"public\.item was rewritten.*copy it again: pgoutput snapshot DSN LOG --table public\.item"
    with pytest.raises(ReplicationError, match=words), shop.capturing(on_rewrite="stop") as outcome:
        wait_until(lambda: is_active(shop))
        shop.execute(REWRITE)
        wait_until(outcome.done)
    with pytest.raises(ReplicationError, match=words):
        shop.capture(on_rewrite="stop")
    snapshot(shop.dsn, shop.directory, ["item"])
    shop.execute("INSERT INTO item VALUES (3, 'c')")
    shop.capture(on_rewrite="stop")
    assert ids(shop.log(), oid_of(shop)) == [3, 101, 102]


def test_a_table_is_copied_after_each_rewrite(shop: Shop) -> None:
    """A table that is rewritten repeatedly: the last copy counts, and existing copies are not requested."""
    oid = oid_of(shop)
    with shop.capturing():
        wait_until(lambda: is_active(shop))
        for number in range(3, 7):
            shop.execute(REWRITE, f"INSERT INTO item VALUES ({number}, 'x')")
    shop.capture()
    log = shop.log()
    with shop.connect() as connection:
        expected = sorted(row[0] for row in connection.execute("SELECT id FROM item"))
    assert ids(log, oid) == expected == [6, 105, 204, 303, 401, 402]
    assert not lineage_of(log.index).stale and not requests(log.store)
    copies = len(list(copies_of(log.index)))
    shop.capture()
    assert len(list(copies_of(shop.log().index))) == copies


def test_a_requested_copy_is_not_requested_twice(shop: Shop) -> None:
    """A capture that was killed after it had asked: the next one makes one copy."""
    shop.execute(REWRITE)
    with pytest.raises(ReplicationError, match="was rewritten"):
        shop.capture(on_rewrite="stop")
    ask(shop.log().store, [("public", "item")])
    shop.capture()
    assert len(list(copies_of(shop.log().index))) == 1 and not requests(shop.log().store)
    assert ids(shop.log(), oid_of(shop)) == [101, 102]
