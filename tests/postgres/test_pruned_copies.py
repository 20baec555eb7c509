"""Pruned logs: their copies are not repeated unless requested; what they lack is not forgotten."""

from pathlib import Path

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.changelog._facts.catalog_readings import publication_readings
from pgoutput_construct.changelog._facts.completeness import lacks_of
from pgoutput_construct.changelog._facts.copies import copies_of
from pgoutput_construct.changelog.prune import prune
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import snapshot
from tests.postgres.shop import Shop

pytestmark = pytest.mark.server

ALL = pgo.Lsn(2**63 - 1)


def _copied(shop: Shop) -> set[int]:
    return {copy.relation_oid for copy in copies_of(shop.log().index)}


def test_pruned_copies_are_not_repeated(server18: EmbeddedServer, tmp_path: Path) -> None:
    """Over captures and prunes; a table that is new is copied, and one that ``snapshot`` asks for."""
    with Shop.create(server18, "pruned_copies", tmp_path / "log") as shop:
        shop.execute("CREATE TABLE a (id int PRIMARY KEY)", "INSERT INTO a SELECT generate_series(1, 9)")
        shop.capture(snapshot=True)
        assert len(_copied(shop)) == 2
        for number in (10, 11):
            shop.execute(f"INSERT INTO a VALUES ({number})")
            shop.capture(snapshot=True)
            prune(shop.directory, ALL, states=False)
            shop.execute(f"INSERT INTO item VALUES ({number})")
            shop.capture(snapshot=True)
            assert not _copied(shop)
        shop.execute("CREATE TABLE b (id int PRIMARY KEY)")
        shop.capture(snapshot=True)
        (new,) = _copied(shop)
        snapshot(shop.dsn, shop.directory, ["public.a"])
        shop.capture(snapshot=True)
        assert len(_copied(shop)) == 2 and new in _copied(shop)


LISTED = ["listed"]


def test_changes_of_a_publication_are_found_across_a_prune(server18: EmbeddedServer, tmp_path: Path) -> None:
    """The reading that listed the table is removed, and its copy stays: what was not sent since is known to be lacking.

    The table is taken out of the publication, and written to, before the prune; it is added again after it.
    """
    with Shop.create(server18, "pruned_readings", tmp_path / "log", two_phase=False) as shop:
        shop.execute("CREATE PUBLICATION listed FOR TABLE item", "INSERT INTO item VALUES (1)")
        shop.capture(publications=LISTED)
        snapshot(shop.dsn, shop.directory, ["public.item"])
        shop.capture(publications=LISTED)
        (first,) = copies_of(shop.log().index)
        assert not lacks_of(shop.log().index)
        shop.execute("ALTER PUBLICATION listed DROP TABLE item", "INSERT INTO item VALUES (2)")
        shop.capture(publications=LISTED)
        (lack,) = lacks_of(shop.log().index)
        assert prune(shop.directory, ALL).first_seq > 0
        assert lacks_of(shop.log().index) == [lack]
        shop.execute("ALTER PUBLICATION listed ADD TABLE item")
        shop.capture(publications=LISTED, on_rewrite="snapshot")
        copies = [*copies_of(shop.log().index)]
        assert len(copies) == 2 and copies[0] == first and copies[1].rows == 2
        assert not lacks_of(shop.log().index)


def test_a_table_that_was_added_again_while_nobody_captured(server18: EmbeddedServer, tmp_path: Path) -> None:
    """The prune removes the latest reading; only it tells that the table's membership is another one since.

    The log has the table completely by a truncate, so no copy repeats what was read.
    """
    with Shop.create(server18, "pruned_membership", tmp_path / "log", two_phase=False) as shop:
        shop.execute("CREATE PUBLICATION listed FOR TABLE item", "INSERT INTO item VALUES (0)")
        shop.capture(publications=LISTED)
        shop.execute("TRUNCATE item", "INSERT INTO item VALUES (1)")
        shop.capture(publications=LISTED)
        assert not lacks_of(shop.log().index)
        assert prune(shop.directory, ALL).first_seq > 0
        assert [each.name for each in publication_readings(shop.log().index)] == LISTED
        assert not lacks_of(shop.log().index)
        shop.execute("ALTER PUBLICATION listed DROP TABLE item", "INSERT INTO item VALUES (2)")
        shop.execute("ALTER PUBLICATION listed ADD TABLE item")
        shop.capture(publications=LISTED, on_rewrite="snapshot")
        (copy,) = copies_of(shop.log().index)
        assert copy.rows == 2 and not lacks_of(shop.log().index)
