"""A server whose stream continues while queries fail: the capture still ends."""

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.changelog._segment.block import Block
from pgoutput_construct.changelog.writer import LogWriter
from pgoutput_construct.postgres._catalog import catalog_watch
from pgoutput_construct.postgres._catalog.catalog_watch import CatalogWatch
from tests.changelog.blocks import block_of
from tests.postgres.shop import PUBLICATION, Shop

pytestmark = pytest.mark.server


def test_the_end_of_a_capture_waits_for_a_limited_time(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """First it waits for the next look; where that fails again and again, no longer."""
    with LogWriter(shop.directory) as writer, shop.connect() as connection:
        catalog = CatalogWatch(writer, shop.slot, [PUBLICATION], "snapshot")
        assert catalog.is_settled()
        catalog.begin(connection)
        assert not catalog.is_settled()  # what it read is not in the log
        catalog.note_failure()
        assert not catalog.is_settled()
        monkeypatch.setattr(catalog_watch, "_PATIENCE", 0.0)
        assert catalog.is_settled()
        catalog.poll(connection)
        catalog.append_events(between=True)
        assert catalog.is_settled()


def test_a_capture_ends_although_writers_never_pause(shop: Shop) -> None:
    """What is received after the end was reached is not waited for, as long as the end stays reached."""
    with LogWriter(shop.directory) as writer, shop.connect() as connection:
        catalog = CatalogWatch(writer, shop.slot, [PUBLICATION], "snapshot")
        catalog.begin(connection)
        catalog.append_events(between=True)
        catalog.receive(_received(writer))
        assert not catalog.is_settled()
        catalog.poll(connection)
        catalog.receive(_received(writer))
        assert catalog.is_settled(first=False)
        assert not catalog.is_settled()


def _received(writer: LogWriter) -> Block:
    """Append a message to a log, as the pump does before it shows it."""
    session = pgo.Session(1, "off")
    block = block_of(session, 0, pgo.build(pgo.Begin(pgo.Lsn(5), pgo.Timestamp(0), 1)))
    writer.append(block)
    return block
