"""Publications: what they lack is said, and one that is dropped under a capture loses no change in silence."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pgoutput_construct.changelog.events import OPTIONS_CHANGED
from pgoutput_construct.demo.server import EmbeddedServer
from pgoutput_construct.postgres import (
    ReplicationError,
    capture,
    create_slot,
    drop_slot,
    ensure_publication,
    read_publications,
    slot_health,
)
from tests.postgres.shop import Shop, committed_ids, is_active, wait_until

pytestmark = pytest.mark.server


@pytest.fixture
def either(server: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """A shop on each of the servers, with a publication of a simple name."""
    with Shop.create(server, "dropping", tmp_path / "log", two_phase=False) as shop:
        shop.execute("CREATE PUBLICATION p FOR TABLE item", "CREATE PUBLICATION q FOR TABLE item")
        yield shop


@pytest.mark.parametrize("look", ["warning", "look"])
def test_a_dropped_publication_ends_the_capture_before_changes_are_lost(either: Shop, look: str) -> None:
    """The warning of 18, the error of 16, and a look at the catalog: each ends it, and again after its restart."""
    interval = 0.1 if look == "look" else 10
    ends = pytest.raises(ReplicationError, match="publications that are left")
    with ends, either.capturing(publications=["p"], status_interval=interval) as outcome:
        wait_until(lambda: is_active(either))
        end = either.execute("INSERT INTO item VALUES (1, 'a')")
        wait_until(lambda: either.confirmed() >= end)
        before = either.execute("DROP PUBLICATION p")
        if look == "warning":
            either.execute("INSERT INTO item VALUES (2, 'missed')")
        wait_until(outcome.done)
    if look == "look":
        return
    assert either.confirmed() <= before
    either.execute("CREATE PUBLICATION p FOR TABLE item")
    with pytest.raises(ReplicationError, match="brings back only what is changed afterwards"):
        either.capture(publications=["p"])
    either.capture(publications=["q"])
    assert committed_ids(either.log()) == [1, 2]
    (changed,) = (event for event in either.log().events() if event.name == OPTIONS_CHANGED)
    assert changed.details == {"publications": [["p"], ["q"]]}


def test_publications_say_what_is_probably_not_meant(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    """Tables without a replica identity and operations that are not published are named when a capture starts."""
    shop.execute(
        "CREATE TABLE bare (a int)",
        'CREATE TABLE "Odd name" (a int)',
        'ALTER TABLE "Odd name" REPLICA IDENTITY NOTHING',
        "CREATE TABLE full_ (a int)",
        "ALTER TABLE full_ REPLICA IDENTITY FULL",
        "CREATE TABLE indexed (a int NOT NULL UNIQUE)",
        "ALTER TABLE indexed REPLICA IDENTITY USING INDEX indexed_a_key",
        "CREATE PUBLICATION quiet FOR TABLE bare, item WITH (publish = 'insert')",
        'CREATE PUBLICATION loud FOR TABLE item, bare, "Odd name", full_, indexed',
    )
    with shop.connect() as connection:
        loud, quiet = read_publications(connection, ["quiet", "loud", "none"])
    assert loud.without_identity == ('public."Odd name"', "public.bare")
    assert quiet.operations == ("insert",) and quiet.warnings()[0].startswith("publication 'quiet' publishes insert, ")
    capture(shop.dsn, shop.slot, ["loud"], shop.directory, until_lsn=shop.execute())
    assert 'refuses UPDATE and DELETE: public."Odd name", public.bare;' in caplog.text


def test_a_publication_is_made_for_tables_that_it_does_not_break(shop: Shop) -> None:
    """Its tables must exist and have an identity; one that exists must have them."""
    shop.execute("CREATE SCHEMA s", 'CREATE TABLE s."A.b" (a int PRIMARY KEY)', "CREATE TABLE bare (a int)")
    with shop.connect() as connection:
        for tables, words in {
            ("bare",): "'bare' has no replica identity",
            ("item", "none"): "no table 'none'",
            ("a..b",): "not the name of a table",
            (): "name the tables",
        }.items():
            with pytest.raises(ReplicationError, match=words):
                ensure_publication(connection, "made", tables)
        assert not read_publications(connection, ["made"])
        assert ensure_publication(connection, "made", ["item", 's."A.b"'])
        assert not ensure_publication(connection, "made", ["public.item"])
        shop.execute("CREATE TABLE later (a int PRIMARY KEY)")
        shop.execute("CREATE TABLE parts (a int PRIMARY KEY) PARTITION BY LIST (a)")
        assert ensure_publication(connection, "split", ["parts"])
        assert not ensure_publication(connection, "split", ["parts"])
        with pytest.raises(ReplicationError, match=r"'made' exists without public.later.*ADD TABLE"):
            ensure_publication(connection, "made", ["item", "later"])


def test_a_capture_makes_what_is_missing(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    """Publication and slot; a first attempt that fails leaves no slot, and a slot that is lost is not replaced."""
    caplog.set_level(logging.INFO)
    slot = f"{shop.slot}_made"
    given: dict[str, Any] = {"create_slot": True, "until_idle": 0.2}
    with pytest.raises(ReplicationError, match="no publication 'made'"):
        capture(shop.dsn, slot, ["made"], shop.directory, **given)
    with shop.connect() as connection:
        assert not slot_health(connection, slot)
        first = capture(shop.dsn, slot, "made", shop.directory, create_publication="item", **given)
        assert first.rows == 0 and slot_health(connection, slot)
        shop.execute("INSERT INTO item VALUES (1, 'a')")
        assert capture(shop.dsn, slot, ["made"], shop.directory, **given).rows == 4
        drop_slot(connection, slot)
        with pytest.raises(ValueError, match=r"no slot '.*_made' any more.* begin a new log"):
            capture(shop.dsn, slot, ["made"], shop.directory, **given)
        assert not slot_health(connection, slot)


def test_options_that_the_server_does_not_know_are_named(server16: EmbeddedServer) -> None:
    """failover came with PostgreSQL 17."""
    with server16.connect() as connection, pytest.raises(ReplicationError, match="failover needs PostgreSQL 17"):
        create_slot(connection, "early", failover=True)
