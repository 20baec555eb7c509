"""Text in a client's encoding: converted as PostgreSQL does it, to subscribers in databases of other encodings."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from pgoutput_construct import testing
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES
from pgoutput_construct.postgres import capture, current_lsn
from pgoutput_construct.publisher._feed.encodings import CODECS, REFUSED, ClientEncoding, StreamEncoder, find_encoding
from pgoutput_construct.publisher.log_feed import LogFeed
from pgoutput_construct.publisher.refusals import Refusal
from pgoutput_construct.publisher.replay import ReplayError, compare_tables, replay
from pgoutput_construct.publisher.server import ThreadedPublisher
from pgoutput_construct.stream.relations import RelationCache
from pgoutput_construct.wire import Lsn, Timestamp, build
from pgoutput_construct.wire import messages as m
from tests.publisher.subscriber import Subscriber, database

pytestmark = pytest.mark.server

SENDS = {
    "plain": {"textsend", "varcharsend", "bpcharsend", "namesend", "json_send"},
    "versioned": {"jsonb_send", "jsonpath_send"},
    "xml": {"xml_send"},
    "lexemes": {"tsvectorsend"},
    "operands": {"tsquerysend"},
}
"""The send functions that convert text, by how it stands in what they send."""
CHARACTERS = 0x2200
"""Code points that are compared: the blocks up to Letterlike Symbols have all that single bytes stand for."""
CONVERTED = """CREATE FUNCTION pg_temp.converted(code int, encoding text) RETURNS bytea LANGUAGE plpgsql AS $$
    BEGIN RETURN convert_to(chr(code), encoding); EXCEPTION WHEN untranslatable_character THEN RETURN NULL; END $$"""
TABLES = """
CREATE TYPE size AS ENUM ('groß', 'klein');
CREATE TABLE "Straße" (id int PRIMARY KEY, "größe" size, note text, short varchar, fixed char(4), listed text[],
    doc json, parsed jsonb, words tsvector, query tsquery, bytes bytea, named name, number numeric);
"""
ROWS = """INSERT INTO "Straße" VALUES
    (1, 'groß', 'grün', 'süß', 'ä', ARRAY['ö', NULL, 'a,b', 'ß'], '{"ü": "é"}', '{"ü": "é"}',
     $$'grün':1,3A 'plain':2$$, $$'grün':*A & !( 'süß' <2> 'x' )$$, 'é', 'ñame', 1.5),
    (2, NULL, repeat('ÿ', 5000), 'ascii', 'a', '{}', '1', '[]', '', $$'a'$$, '\\xff', 'a', NULL)"""
VALUES = (
    "'é'::text",
    "'é'::varchar",
    "'é'::char(3)",
    "'é'::name",
    "ARRAY['é', NULL, 'ü']",
    "ARRAY[ARRAY['é'], ARRAY['ü']]",
    "'{}'::text[]",
    """'{"ü": "é"}'::json""",
    """'{"ü": "é"}'::jsonb""",
    """ARRAY['{"ü": "é"}'::jsonb]""",
    """'$."ü" ? (@ == "é")'::jsonpath""",
    "'grün:1,3A süß:2 x'::tsvector",
    "'grün:*A & !(süß <2> x | é)'::tsquery",
    "'é'::bytea",
    "int8range(200, 300)",
    "233::int8",
    "array[233, 234]",
)
"""Values of types whose send functions convert text, and of others."""
UNTRANSLATABLE = 'character with byte sequence 0xe2 0x82 0xac in encoding "UTF8" has no equivalent in encoding "LATIN1"'


@contextmanager
def encoded_database(server: EmbeddedServer, name: str, encoding: str) -> Iterator[psycopg.Connection[Any]]:
    """Yield a connection, which reads UTF-8, to a new database of an encoding."""
    create = "CREATE DATABASE {} ENCODING {} LOCALE 'C' TEMPLATE template0 STRATEGY file_copy"
    with server.connect() as admin:
        admin.execute(SQL(create).format(Identifier(name), encoding))
        try:
            options: Mapping[str, Any] = {"dbname": name, "client_encoding": "UTF8"}
            with server.connect(**options) as connection:
                yield connection
        finally:
            admin.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name)))


@contextmanager
def captured(server: EmbeddedServer, log: Path, publication: str = "läden", **options: Any) -> Iterator[Any]:
    """Yield a source in UTF-8 and a function that captures what it has, to the end, into a log."""
    with database(server, "encoded_source") as source:
        source.execute(TABLES.encode())
        source.execute(SQL("CREATE PUBLICATION {} FOR ALL TABLES").format(Identifier(publication)))

        def take() -> None:
            end = current_lsn(source)
            given: dict[str, Any] = {"create_slot": True, "handle_signals": False, **options}
            capture(source.info.dsn, "encoded", [publication], log, **given, until_lsn=end)

        try:
            yield source, take
        finally:
            source.execute("SELECT pg_drop_replication_slot('encoded')")


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_subscribers_in_latin1(server: EmbeddedServer, tmp_path: Path, binary: bool) -> None:
    """Names, enums and values arrive as the same characters, in both formats; the publication is found by its name."""
    with (
        captured(server, tmp_path / "log", binary=binary) as (source, take),
        encoded_database(server, "latin1_target", "LATIN1") as target,
    ):
        take()
        source.execute(ROWS.encode())
        take()
        target.execute(TABLES.encode())
        feed = LogFeed(tmp_path / "log")
        with ThreadedPublisher(feed) as running:
            subscriber = Subscriber(server, target, running.dsn, "latin1")
            subscriber.subscribe(f"binary = {binary}", publications="läden")
            try:
                subscriber.wait(feed.order().end)
            finally:
                subscriber.unsubscribe()
        query = 'SELECT t.*, t::text FROM "Straße" t ORDER BY id'
        expected = source.execute(query.encode()).fetchall()
        assert len(expected) == 2
        assert target.execute(query.encode()).fetchall() == expected


def test_what_latin1_does_not_have(server: EmbeddedServer, tmp_path: Path) -> None:
    """The subscription gets the server's error, and applies nothing of the transaction."""
    with (
        captured(server, tmp_path / "log", "shop") as (source, take),
        encoded_database(server, "latin1_target", "LATIN1") as target,
    ):
        take()
        source.execute("INSERT INTO \"Straße\" (id, note) VALUES (1, 'ok')".encode())
        source.execute("INSERT INTO \"Straße\" (id, note) VALUES (2, 'ok'), (3, '€')".encode())
        take()
        target.execute(TABLES.encode())
        with ThreadedPublisher(LogFeed(tmp_path / "log")) as running:
            subscriber = Subscriber(server, target, running.dsn, "latin1")
            subscriber.subscribe()
            deadline = time.monotonic() + 60
            while UNTRANSLATABLE not in server.log and time.monotonic() < deadline:
                time.sleep(0.05)
            subscriber.unsubscribe()
        assert UNTRANSLATABLE in server.log
        assert target.execute('SELECT id, note FROM "Straße"'.encode()).fetchall() == [(1, "ok")]


def test_replay_compares_characters(server: EmbeddedServer, tmp_path: Path) -> None:
    """A log brought into a LATIN1 database is equal to its source; bytes of UTF-8 there would not be."""
    log = tmp_path / "log"
    with (
        captured(server, log, "shop") as (source, take),
        encoded_database(server, "latin1_target", "LATIN1") as target,
    ):
        take()
        source.execute(ROWS.encode())
        take()
        target.execute("CREATE TYPE size AS ENUM ('groß', 'klein')".encode())
        done = replay(log, target.info.dsn)
        assert [(each.equal, each.rows) for each in compare_tables(target.info.dsn, source.info.dsn, done.targets)] == [
            (True, 2)
        ]
        target.execute("UPDATE \"Straße\" SET note = convert_from(convert_to(note, 'UTF8'), 'LATIN1')".encode())
        assert not any(each.equal for each in compare_tables(target.info.dsn, source.info.dsn, done.targets))


def test_names_that_a_target_does_not_have(server: EmbeddedServer, tmp_path: Path) -> None:
    """Replay says which character is in the way."""
    log = tmp_path / "log"
    with (
        captured(server, log, "shop") as (source, take),
        encoded_database(server, "latin1_target", "LATIN1") as target,
    ):
        source.execute('CREATE TABLE "€" (id int PRIMARY KEY); INSERT INTO "€" VALUES (1)'.encode())
        take()
        source.execute('INSERT INTO "€" VALUES (2)'.encode())
        take()
        with pytest.raises(ReplayError, match="0xe2 0x82 0xac"):
            replay(log, target.info.dsn)


def test_codecs_convert_as_postgresql_does(server18: EmbeddedServer) -> None:
    """Each character that an encoding has, and none that it has not."""
    query = "SELECT code, pg_temp.converted(code, %s) FROM generate_series(1, %s) code"
    with server18.connect() as connection:
        connection.execute(CONVERTED)
        for name, codec in CODECS.items():
            for code, expected in connection.execute(query, (name, CHARACTERS)).fetchall():
                try:
                    found = chr(code).encode(codec)
                except UnicodeEncodeError:
                    found = None
                assert found == expected, (name, hex(code))


def test_encodings_that_are_refused() -> None:
    """The page names each, and a client is refused that asks for one of them."""
    page = Path(__file__).parents[2] / "docs" / "how-to" / "serve-and-replay.md"
    listed = (
        " ".join(page.read_text("utf-8").split())
        .partition("cannot be converted exactly are refused: ")[2]
        .partition(".")[0]
    )
    names = listed.replace(" and ", ", ").split(", ")
    assert len(names) == len(set(names)) and {*names} == {*REFUSED}
    for name in names:
        with pytest.raises(Refusal, match="is not supported"):
            find_encoding(name)


@pytest.mark.differs_by_version
def test_types_that_send_text(server: EmbeddedServer) -> None:
    """The table of built-in types says of each whose send function converts text how that stands in its values."""
    with server.connect() as connection:
        query = "SELECT oid, typsend::oid::regproc::text FROM pg_type WHERE oid < 10000"
        sends = dict(connection.execute(query).fetchall())
    kinds = {function: kind for kind, functions in SENDS.items() for function in functions}
    there = BUILTIN_TYPES.keys() & sends.keys()  # some types are younger than some servers
    assert {oid: BUILTIN_TYPES[oid].sends_text for oid in there} == {oid: kinds.get(sends[oid], "") for oid in there}


def test_values_in_binary_format(server: EmbeddedServer) -> None:
    """Each is converted to what the server sends to a client of that encoding."""
    for value in VALUES:
        sent = []
        for encoding in ("UTF8", "LATIN1"):
            with server.connect(client_encoding=encoding) as connection:
                cursor = connection.execute(f"SELECT {value}".encode(connection.info.encoding), binary=True)
                assert cursor.description is not None and cursor.pgresult is not None
                sent.append(cursor.pgresult.get_value(0, 0) or b"")
        column = m.RelationColumn(0, "c", cursor.description[0].type_code, -1)
        relations = RelationCache()
        relations.update(m.Relation(None, 1, "public", "t", "d", (column,)))
        encoder = StreamEncoder(ClientEncoding("LATIN1", CODECS["LATIN1"]), relations)
        assert encoder.encoded(m.Insert(None, 1, (m.Binary(sent[0]),))) == m.Insert(None, 1, (m.Binary(sent[1]),))


def test_sessions_in_an_encoding(publisher: testing.TestPublisher) -> None:
    """A client is told what it has; what it names otherwise is the same; what cannot be done is refused at once."""
    with psycopg.connect(publisher.dsn, user="me", client_encoding="latin1", autocommit=True) as connection:
        assert connection.info.parameter_status("client_encoding") == "LATIN1"
        cursor = psycopg.ClientCursor(connection)
        assert cursor.execute("SHOW client_encoding").fetchone() == ("LATIN1",)
        cursor.execute("SET client_encoding TO 'windows-1252'")
        assert connection.info.parameter_status("client_encoding") == "WIN1252"
        with pytest.raises(psycopg.errors.InvalidParameterValue, match='"client_encoding": "klingon"'):
            cursor.execute("SET client_encoding TO klingon")
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="conversion between EUC_KR and UTF8"):
            cursor.execute("SET NAMES 'euc_kr'")
        assert connection.info.parameter_status("client_encoding") == "WIN1252"
        query = "SELECT t.pubname FROM pg_catalog.pg_publication t WHERE t.pubname IN ('läden')"
        assert cursor.execute(query).fetchall() == [("läden",)]
    refused = r"FATAL:.*conversion between EUC_JP and UTF8(?s:.*)database in UTF8"
    with pytest.raises(psycopg.OperationalError, match=refused):
        psycopg.connect(publisher.dsn, user="me", client_encoding="EUC_JP")


def test_names_in_messages() -> None:
    """All names of a stream are converted; the content of a logical decoding message is not."""
    encoder = StreamEncoder(ClientEncoding("LATIN1", CODECS["LATIN1"]), RelationCache())
    numbers = (Lsn(1), Lsn(2), Timestamp(3), 7)  # their bytes are ASCII
    layout: dict[str, Any] = {"proto_version": 4, "in_stream": False}
    column = m.RelationColumn(1, "größe", 25, 0)
    for message in (
        m.Origin(Lsn(1), "knoten ä"),
        m.BeginPrepare(*numbers, "prüfen"),
        m.Prepare(*numbers, "prüfen"),
        m.CommitPrepared(*numbers, "prüfen"),
        m.RollbackPrepared(Lsn(1), Lsn(2), Timestamp(3), Timestamp(4), 7, "prüfen"),
        m.StreamPrepare(*numbers, "prüfen"),
        m.Type(None, 127, "läden", "größe"),
        m.Relation(None, 1, "läden", "straße", "d", (column,)),
    ):
        expected = build(message, **layout).decode().encode("latin-1")
        assert build(encoder.encoded(message), **layout) == expected
    sent = encoder.encoded(m.Message(None, 0, Lsn(1), "ü", "ü".encode()))
    assert build(sent) == build(m.Message(None, 0, Lsn(1), "ü", "ü".encode())).replace(b"\xc3\xbc\0", b"\xfc\0")
