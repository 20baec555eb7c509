"""A client that comes back gets what it has not confirmed, once, though the log has grown meanwhile."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import capture, current_lsn
from pgoutput_construct.publisher._feed.cursor import Cursor, ScriptCursor
from pgoutput_construct.publisher._feed.message_feed import MessageFeed, Script
from pgoutput_construct.publisher._server.service import Settings
from pgoutput_construct.publisher.log_feed import LogFeed
from pgoutput_construct.publisher.server import ThreadedPublisher
from pgoutput_construct.stream.session import Session
from pgoutput_construct.stream.transaction_reader import PREPARED, EndedTransaction
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.options import LAYOUT_OPTIONS
from pgoutput_construct.wire.protocol import ReplicationOptions
from pgoutput_construct.wire.types import Lsn
from tests.postgres.shop import wait_until
from tests.publisher.batches import Batch
from tests.publisher.logs import frames_of
from tests.publisher.reading import ABOUT, LAYOUT, payloads_of
from tests.publisher.subscriber import Subscriber, database
from tests.spark.logs import log_options, write_log

pytestmark = pytest.mark.server

_DESCRIBING = (m.Relation.TAG, m.Type.TAG)
ASKED = [
    ReplicationOptions(proto_version=4, streaming=streaming, messages=True) for streaming in ("off", "on", "parallel")
]


@pytest.fixture(scope="module")
def sent() -> list[tuple[Lsn, m.PgoutputMessage]]:
    """The messages of some scenarios."""
    return Batch.invent(6).sent


_OPENING = (m.Begin, m.BeginPrepare, m.StreamStart, m.StreamStop)


def payloads(cursor: Cursor) -> list[bytes]:
    """Return all that a cursor sends; not what describes tables, which a client gets again when it comes back."""
    data = b"".join(chunk.data for chunk in iter(cursor.next_chunk, None))
    found = (frame.data for frame in frames_of(data))
    return [payload for payload in found if payload[:1] not in _DESCRIBING]


def meant(sent: Iterable[bytes], options: ReplicationOptions) -> list[Any]:
    """Return changes and ends of transactions; not whether they were streamed, which what is read again is not."""
    session, found = Session(**{name: getattr(options, name) for name in LAYOUT_OPTIONS}), list[Any]()
    for payload in sent:
        message: Any = session.parse(payload)
        end = getattr(message, "end_lsn", None) or getattr(message, "rollback_end_lsn", None)
        if isinstance(message, _OPENING):
            continue
        found.append(end or (replace(message, xid=None) if hasattr(message, "xid") else message))
    return found


@pytest.mark.parametrize(
    ("options", "two_phase_at"),
    [
        pytest.param(options, at, id=f"{options.streaming}-{at}", marks=[] if shown else [pytest.mark.long])
        for options in ASKED
        for at, shown in ((None, options.streaming == "off"), (0, options.streaming == "parallel"))
    ],
)
def test_wherever_it_was_cut(
    sent: list[tuple[Lsn, m.PgoutputMessage]], options: ReplicationOptions, two_phase_at: int | None, tmp_path: Path
) -> None:
    """What follows each position is what a client gets that has confirmed it: nothing twice, nothing left out."""
    options = replace(options, two_phase=two_phase_at is not None)
    write_log(tmp_path, payloads_of(message for _, message in sent), log_options(**LAYOUT, two_phase=True), 500)
    feed = LogFeed(tmp_path)
    whole = payloads(Cursor(feed, options, 0, two_phase_at=two_phase_at))
    assert (m.Prepare.TAG in {payload[:1] for payload in whole}) == options.two_phase
    items = [item for item in feed.order(two_phase_at) if isinstance(item, EndedTransaction)]
    step = len(items) // 12
    for item in (item for place, item in enumerate(items) if item.outcome == PREPARED or place % step == 0):
        rest = payloads(Cursor(feed, options, item.end_lsn or 0, two_phase_at=two_phase_at))
        following = meant(rest, options)
        confirmed = meant(whole, options)
        assert confirmed[len(confirmed) - len(following) :] == following
        assert confirmed[len(confirmed) - len(following) - 1] == item.end_lsn


def test_a_script_in_other_ways(sent: list[tuple[Lsn, m.PgoutputMessage]]) -> None:
    """Whoever asks for neither streams nor prepared transactions gets of a script what a log serves."""
    script, feed = Script(ABOUT), MessageFeed(ABOUT)
    options = ReplicationOptions(proto_version=4, messages=True)
    cursor = ScriptCursor(script, options, 0)
    assert cursor.next_chunk() is None
    for lsn, message in sent:
        script.add(lsn, message)
        feed.add(lsn, message)
    assert payloads(cursor) == payloads(Cursor(feed, options, 0))


TABLES = """
CREATE TABLE counted (n int, note text); ALTER TABLE counted REPLICA IDENTITY FULL;
CREATE TABLE keyed (id int PRIMARY KEY, note text);
"""
BEFORE = "INSERT INTO counted SELECT n, 'copied' FROM generate_series(1, 20) n; INSERT INTO keyed VALUES (1, 'copied');"
PREPARED_ONE = """
INSERT INTO counted VALUES (100, 'after the copy');
BEGIN; INSERT INTO counted VALUES (101, 'prepared'); UPDATE keyed SET note = 'prepared'; PREPARE TRANSACTION 'one';
BEGIN; INSERT INTO counted VALUES (102, 'never'); PREPARE TRANSACTION 'other';
INSERT INTO counted VALUES (103, 'between');
"""
FINISHED_ONE = "COMMIT PREPARED 'one'; ROLLBACK PREPARED 'other'; INSERT INTO counted VALUES (104, 'last');"


class Source:
    """A database whose changes are captured, piece by piece."""

    def __init__(self, connection: psycopg.Connection[Any], log: Path) -> None:
        self.connection, self.log = connection, log

    def execute(self, statements: str) -> None:
        """Execute some statements, one by one."""
        for statement in statements.split(";"):
            self.connection.execute(statement.encode())

    def capture(self, **options: Any) -> None:
        """Capture what there is."""
        kept: Any = {"proto_version": 4, "streaming": "on", "two_phase": True, "handle_signals": False}
        capture(self.connection.info.dsn, "resumed", ["shop"], self.log, **kept, **options)


@pytest.fixture
def source(server: EmbeddedServer, tmp_path: Path) -> Iterator[Source]:
    """A database with rows, of which a log has a copy."""
    with database(server, "resumed_source") as connection:
        source = Source(connection, tmp_path / "log")
        source.execute(TABLES + "CREATE PUBLICATION shop FOR ALL TABLES;" + BEFORE)
        source.capture(create_slot=True, snapshot=True, until_idle=1.0)
        yield source
        source.execute("SELECT pg_drop_replication_slot('resumed')")


def _is_prepared(target: psycopg.Connection[Any], count: int) -> bool:
    query = "SELECT count(*) FROM pg_prepared_xacts WHERE database = 'resumed_target'"
    return target.execute(query).fetchone() == (count,)


def test_a_subscription_goes_on(server: EmbeddedServer, source: Source, tmp_path: Path) -> None:
    """A copy comes once, though the log grows behind it; what is prepared is prepared before it is committed."""
    with database(server, "resumed_target") as target:
        target.execute(TABLES)
        subscriber = Subscriber(server, target, "", "resumed")
        try:
            for statements, left in (("", 0), (PREPARED_ONE, 2), (FINISHED_ONE, 0)):
                source.execute(statements)
                source.capture(until_lsn=current_lsn(source.connection))
                feed = LogFeed(source.log)
                with ThreadedPublisher(feed, Settings(slots_file=tmp_path / "slots.json")) as running:
                    subscriber.connect(running.dsn, "two_phase = true")
                    wait_until(partial(_is_prepared, target, left))
                    subscriber.wait(feed.position)
                    subscriber.disable()
            for table in ("counted", "keyed"):
                assert subscriber.rows(table) == sorted(source.connection.execute(f"SELECT * FROM {table}").fetchall())
        finally:
            subscriber.unsubscribe(keeps_slot=True)
