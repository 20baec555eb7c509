"""A log whose table copies were pruned: the capture does not repeat them unless requested."""

from pathlib import Path

import pytest

import pgoutput_construct as pgo
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
