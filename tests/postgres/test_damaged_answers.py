"""Answers that no server gives, since a proxy alters them: the right result, or an error that says what was read."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.postgres import ReplicationError, ReplicationStream, StreamOptions, connect, slot_health
from pgoutput_construct.postgres._catalog.table_catalog import read_catalog
from pgoutput_construct.postgres._patience import Patience
from pgoutput_construct.postgres._snapshot.copied_tables import read_tables
from pgoutput_construct.postgres.connection import identify
from pgoutput_construct.postgres.publications import read_publications
from tests.postgres.proxy import Proxy
from tests.postgres.shop import PUBLICATION, Shop

pytestmark = pytest.mark.server


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """A database with a table of several types."""
    with Shop.create(server18, "damaged", tmp_path / "log") as shop:
        shop.execute(
            "CREATE TYPE mood AS ENUM ('good')", "CREATE TABLE t (id int PRIMARY KEY, m mood, n numeric(5, 2))",
            "COMMENT ON TABLE t IS 'some'",
        )  # fmt: skip
        yield shop


@pytest.fixture
def proxy(shop: Shop) -> Iterator[Proxy]:
    """A path to the shop's server."""
    with Proxy(shop.server) as proxy:
        shop.path = proxy.dsn
        yield proxy


def slots(shop: Shop) -> None:
    """What ``pgoutput slots`` reads."""
    with _connect(shop) as connection:
        slot_health(connection)


def catalog(shop: Shop) -> None:
    """What a capture reads in the catalog."""
    with _connect(shop) as connection:
        read_publications(connection, [PUBLICATION])
        reading = read_catalog(connection, [PUBLICATION], shop.slot)
        read_tables(connection, [PUBLICATION], reading.tables)


def stream(shop: Shop) -> None:
    """The beginning of a stream."""
    with _connect(shop, replication=True) as connection:
        identify(connection)
        with ReplicationStream(connection, StreamOptions(slot=shop.slot, publications=(PUBLICATION,))) as stream:
            stream.read(0.01)


def _connect(shop: Shop, replication: bool = False) -> Any:
    dsn = psycopg.conninfo.make_conninfo(shop.path(shop.dsn), sslmode="disable", gssencmode="disable")
    return connect(dsn, replication=replication, connect_timeout=2, patience=Patience(0.5))


@pytest.mark.parametrize(
    ("read", "sent", "altered"),
    [
        (slots, b'"database"', b'"databasf"'),
        (slots, b'{"xmin"', b'["xmin"'),
        (slots, b"slot_damaged", b"slot_dam\xe1ged"),
        (catalog, b'"number" : 1', b'"numbes" : 1'),
        (catalog, b"mood", b"moo\xe4"),
        (stream, b"\0\0\0\x07damaged", b"\0\0\0\x07damage\xe4"),
        (stream, b"\0\0\0\x011", b"\0\0\0\x01!"),
    ],
)
def test_altered_answers(shop: Shop, proxy: Proxy, read: Callable[[Shop], None], sent: bytes, altered: bytes) -> None:
    """No error of Python leaves; the text says what was read, and what to do."""
    proxy.alter = lambda data: data.replace(sent, altered)
    with pytest.raises(ReplicationError, match=r"the server's answer is not one of PostgreSQL.*sslmode=require"):
        read(shop)


def test_names_that_cannot_be_sent(shop: Shop) -> None:
    """They are the caller's, not the server's: the error names them."""
    with connect(shop.dsn, replication=True) as replication, connect(shop.dsn, replication=False) as ordinary:
        for connection in (replication, ordinary):
            with pytest.raises(
                ReplicationError, match=r"'a\\udcff' cannot be sent to the server: it is not valid UTF-8"
            ):
                read_publications(connection, ["p", "a\udcff"])
            with pytest.raises(ReplicationError, match=r"'a\\udcff' cannot be sent to the server"):
                read_catalog(connection, ["a\udcff"], shop.slot)


@pytest.mark.parametrize("count", [30, pytest.param(2000, marks=pytest.mark.long)])
def test_flipped_bits(shop: Shop, proxy: Proxy, count: int) -> None:
    """One bit in what the server sends, anywhere: the right result, or an error of this package."""
    choose, flip = random.Random(count), _Flip()
    proxy.alter = flip
    for read in (slots, catalog, stream):
        flip.begin(None, 0)
        read(shop)
        size, ended = flip.passed, list[str]()
        for _ in range(count // 3):
            flip.begin(choose.randrange(size), choose.randrange(8))
            try:
                read(shop)
            except PgoutputError as error:
                ended.append(str(error))
        assert ended and all(ended)


class _Flip:
    """Flips a bit of the bytes that pass."""

    def begin(self, at: int | None, bit: int) -> None:
        """Count the bytes from here on, and flip one bit of the one with the index ``at``."""
        self.passed, self._at, self._bit = 0, at, bit

    def __call__(self, data: bytes) -> bytes:
        altered, place = bytearray(data), -1 if self._at is None else self._at - self.passed
        if 0 <= place < len(data):
            altered[place] ^= 1 << self._bit
        self.passed += len(data)
        return bytes(altered)
