"""A server that gives its stream and answers no question: the capture ends all the same."""

import pytest

from pgoutput_construct.changelog.writer import LogWriter
from pgoutput_construct.postgres import catalog_watch
from pgoutput_construct.postgres.catalog_watch import CatalogWatch
from tests.postgres.shop import PUBLICATION, Shop

pytestmark = pytest.mark.server


def test_the_end_waits_only_for_a_while(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """First it waits for the next look; where that fails again and again, no longer."""
    with LogWriter(shop.directory) as writer, shop.connect() as connection:
        catalog = CatalogWatch(writer, shop.slot, [PUBLICATION], "snapshot")
        assert catalog.settled
        catalog.begin(connection)
        assert not catalog.settled  # what it read is not in the log
        catalog.failed()
        assert not catalog.settled
        monkeypatch.setattr(catalog_watch, "_PATIENCE", 0.0)
        assert catalog.settled
        catalog.look(connection)
        catalog.append_news(between=True)
        assert catalog.settled
