"""Values arrive in the format that was asked for, whatever the log has: PostgreSQL's subscription judges."""

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.errors import ProtocolError
from pgoutput_construct.pgtypes.builtin_types import TYPE_NAMES
from pgoutput_construct.postgres import capture, current_lsn
from pgoutput_construct.publisher import Feed, Settings, ThreadedPublisher
from pgoutput_construct.publisher._feed.encodings import Formats
from pgoutput_construct.publisher.log_feed import LogFeed
from pgoutput_construct.publisher.refusals import Refusal
from pgoutput_construct.stream.session import Session
from pgoutput_construct.wire import messages as m
from tests.live.recording import Recording
from tests.publisher.subscriber import Subscriber, database
from tools.servers import SERVERS

TABLES = """
CREATE TYPE mood AS ENUM ('sad', 'very happy');
CREATE TYPE pair AS (a int, b text, feeling mood);
CREATE DOMAIN posint AS int CHECK (VALUE > 0);
CREATE TABLE kept (
    id int PRIMARY KEY, b bool, n numeric, f4 float4, f8 float8, t text, c char(5), d date, ts timestamp,
    tz timestamptz, i interval, u uuid, net inet, j json, jb jsonb, bits varbit, raw bytea, p point, v tsvector,
    r int4range, mr nummultirange, lsn pg_lsn, m mood, ms mood[], own pair, po posint, ns numeric[], words text[],
    big text
);
CREATE TABLE full_rows (m mood, n numeric, f float8, words text[]);
ALTER TABLE full_rows REPLICA IDENTITY FULL;
"""
CHANGES = """
INSERT INTO kept SELECT n, n % 2 = 0, n / 3.0, n / 7.0, exp(n), 'grün ' || n, 'c', date '2000-01-01' - n * 5000,
    timestamp '0100-01-01 BC' + n * interval '99 years 1.5 s', timestamptz '2026-01-31 12:00+02' + n * interval '1 h',
    make_interval(n, -n, 0, n, -n, 1, 1.5), md5(n::text)::uuid, '10.0.0.0/8'::inet + n, '{"a" :1}',
    '{"b": [1.50, null]}', n::bit(9)::varbit, decode(md5(n::text), 'hex'), point(n, 1e-7),
    to_tsvector('simple', 'the fat cat ' || n), int4range(n, n + 5), nummultirange(numrange(n, n + 0.5)),
    '1/AB'::pg_lsn + n, 'very happy', '{sad,NULL,"very happy"}', ROW (n, 'a "quoted", b', 'sad')::pair, n,
    ARRAY [[n / 3.0, NULL], ['NaN'::numeric, 1e20]], ARRAY ['', 'NULL', 'a,b'],
    (SELECT string_agg(md5(n::text || g), '') FROM generate_series(1, 100) g) FROM generate_series(1, 40) n;
UPDATE kept SET ts = 'infinity', d = '-infinity', n = 'NaN', tz = NULL WHERE id < 10;
UPDATE kept SET id = id + 1000 WHERE id > 30; DELETE FROM kept WHERE id BETWEEN 15 AND 18;
INSERT INTO full_rows SELECT 'sad', n, sqrt(n), ARRAY ['w' || n] FROM generate_series(1, 20) n;
UPDATE full_rows SET f = -f, m = 'very happy' WHERE n > 10; DELETE FROM full_rows WHERE n < 5;
"""
MONEY = (b"-$12.34", m.Binary(struct.pack("!q", -1234)))
OWN = {
    *(b"sad", b"ok", b"happy", "glücklich".encode(), b"it's ok", b"{sad,ok}", b"{x@y}"),
    *(b'(1.5,,"la""bel, (x)")', b'{"(0,1,x)",NULL}'),
}
"""Values of types that are not built in: enums, composites, and arrays, also of domains."""
SLOTS = ("formats_text", "formats_binary")
ROWS = ("SELECT t::text FROM kept t ORDER BY 1", "SELECT t::text FROM full_rows t ORDER BY 1")


@pytest.fixture(scope="module")
def source(server: EmbeddedServer) -> Iterator[psycopg.Connection[Any]]:
    """A database with tables of many types, whose changes two slots keep."""
    with database(server, "formats_source") as connection:
        for statement in [*TABLES.split(";"), "CREATE PUBLICATION shop FOR ALL TABLES"]:
            connection.execute(statement)
        for name in SLOTS:
            connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (name,))
        for statement in CHANGES.split(";"):
            connection.execute(statement)
        yield connection
        connection.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name ~ '^form'"
        )


@contextmanager
def subscribed(server: EmbeddedServer, feed: Feed, options: str) -> Iterator[Subscriber]:
    """Yield a subscription to a feed whose tables are there."""
    with database(server, "formats_target") as target, ThreadedPublisher(feed, Settings()) as running:
        for statement in TABLES.split(";"):
            target.execute(statement)
        subscriber = Subscriber(server, target, running.dsn, "formats")
        subscriber.subscribe(options)
        try:
            yield subscriber
        finally:
            subscriber.unsubscribe()


@pytest.mark.parametrize("captured", ["text", "binary"])
def test_formats(server: EmbeddedServer, source: psycopg.Connection[Any], tmp_path: Path, captured: str) -> None:
    """A log in either format is applied by a subscription that asks for the other, and the tables are equal."""
    asked = "true" if captured == "text" else "false"
    options: Any = {"proto_version": 2, "streaming": "on", "binary": captured == "binary", "handle_signals": False}
    options["new_log"] = True
    log = tmp_path / "log"
    capture(source.info.dsn, f"formats_{captured}", ["shop"], log, until_lsn=current_lsn(source), **options)
    feed = LogFeed(log)
    with subscribed(server, feed, f"streaming = on, binary = {asked}") as subscriber:
        subscriber.wait(feed.position)
        for query in ROWS:
            assert subscriber.connection.execute(query).fetchall() == source.execute(query).fetchall()


def _messages(recording: Recording) -> list[m.PgoutputMessage]:
    session = Session(proto_version=recording.mode.proto_version, streaming=recording.mode.streaming)
    return [_without_money(session.parse(payload)) for payload in recording.payloads]


def _without_money(message: m.PgoutputMessage) -> m.PgoutputMessage:
    """Leave out a row's money, of which the locale of a server decides the text."""
    row = getattr(message, "new", None) or ()
    changed: Any = message
    left = tuple(None if value in MONEY else value for value in row)
    return replace(changed, new=left) if left != row else message


@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize("version", SERVERS)
def test_both_formats_of_a_recording(recordings: dict[str, Recording], version: int, number: int) -> None:
    """What a server sent in one format becomes what it sent in the other; types that are not built in stay text."""
    texts, binaries = (_messages(recordings[f"{version}-v{number}-{name}"]) for name in ("text", "binary"))
    formats = Formats(binary=False)
    assert [formats.asked(message) for message in binaries] == texts
    formats, kept = Formats(binary=True), set[bytes]()
    for text, binary in zip(texts, binaries, strict=True):
        asked: Any = formats.asked(text)
        for name in ("old", "new"):
            for got, sent in zip(getattr(asked, name, None) or (), getattr(binary, name, None) or (), strict=True):
                if got != sent or type(got) is not type(sent):
                    kept.add(got)
    assert kept == OWN


@pytest.mark.parametrize(
    ("oid", "declared", "told"),
    [
        *((TYPE_NAMES[name].oid, (), name) for name in ("regclass", "money", "_money")),
        (20000, (m.Type(None, 20000, "public", "floatrange"),), "public.floatrange"),
    ],
)
def test_what_has_no_text(oid: int, declared: Sequence[m.Type], told: str) -> None:
    """A value whose text only its server knows is refused: with table, column, type, and what to do."""
    formats = Formats(binary=False)
    column = m.RelationColumn(0, "c", oid, -1)
    described: list[m.PgoutputMessage] = [*declared, m.Relation(None, 30000, "public", "t", "d", (column,))]
    for message in described:
        formats.asked(message)
    insert = m.Insert(None, 30000, (m.Binary(b"\2\0\0\0\4abcd"),))
    with pytest.raises(Refusal, match=f"public.t.c: a value of the type {told} is served in binary format") as caught:
        formats.asked(insert)
    assert "binary = true" in caught.value.hint
    assert Formats(binary=True).asked(insert) is insert


def test_what_is_not_described() -> None:
    """A row whose Relation comes late stays as it is where it may: a client takes text for any value."""
    text, binary = (m.Insert(None, 30000, (kind(b"7"),)) for kind in (bytes, m.Binary))
    assert Formats(binary=True).asked(text) is text
    with pytest.raises(ProtocolError, match="no Relation has described"):
        Formats(binary=False).asked(binary)
