"""Publications: warnings about them, and a dropped one loses no change silently."""

import logging
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from psycopg import sql

from pgoutput_construct.changelog._facts.copies import latest_copies
from pgoutput_construct.changelog._segment.events import OPTIONS_CHANGED
from pgoutput_construct.cli.group import cli
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.postgres import (
    NewPublication,
    ReplicationError,
    capture,
    create_slot,
    drop_slot,
    ensure_publication,
    read_publications,
    slot_health,
)
from pgoutput_construct.wire import Delete, Insert, Lsn, Update
from tests.postgres.shop import PUBLICATION, Shop, committed_ids, is_active, messages, wait_until

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
    ends = pytest.raises(ReplicationError, match="the remaining publications")
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
    with pytest.raises(ReplicationError, match="publishes only later changes"):
        either.capture(publications=["p"])
    either.capture(publications=["q"])
    assert committed_ids(either.log()) == [1, 2]
    (changed,) = (event for event in either.log().events() if event.name == OPTIONS_CHANGED)
    assert changed.details == {"publications": [["p"], ["q"]]}


def test_a_publication_created_after_pending_changes(either: Shop) -> None:
    """The error gives the arguments of a capture that comes past that; then it is known, and no change is lost."""
    either.execute("CREATE TABLE late (id bigint PRIMARY KEY, name text)", "INSERT INTO item VALUES (1, 'a')")
    either.capture(publications=["p"])
    with either.server.connect(dbname=either.dbname, autocommit=False) as writer:
        writer.execute("INSERT INTO item VALUES (2, 'begun before')")
        either.execute("INSERT INTO item VALUES (3, 'c')", """CREATE PUBLICATION "p's" FOR TABLE late""")
        either.execute("INSERT INTO late VALUES (4, 'd')")
        follow(either, ["p", "p's"])
    either.execute("INSERT INTO late VALUES (5, 'e')")
    follow(either, ["p", "p's"])
    either.execute("INSERT INTO late VALUES (6, 'f')", "INSERT INTO item VALUES (7, 'g')")
    either.capture(publications=["p", "p's"], snapshot=True)
    assert sorted(set(committed_ids(either.log()))) == [1, 2, 3, 6, 7]
    assert {copy.name: copy.rows for copy in latest_copies(either.log().index).values()} == {"item": 4, "late": 3}
    either.execute("INSERT INTO late VALUES (8, 'h')", """CREATE PUBLICATION r FOR TABLE late""")
    follow(either, ["r"], before=["p", "p's"])
    either.execute("INSERT INTO late VALUES (9, 'i')")
    either.capture(publications=["r"])
    assert committed_ids(either.log())[-2:] == [8, 9]


def follow(shop: Shop, publications: list[str], before: list[str] | None = None) -> None:
    """Have a capture fail, and run what its error gives, as a shell and as Python would read it."""
    with pytest.raises(ReplicationError, match="was created after changes that the slot has yet to send") as error:
        shop.capture(publications=publications)
    found = re.search(r"First capture with .*?: (--.*?) \((.*)\), and then with", str(error.value))
    assert found is not None
    called = eval(f"dict({found[2]})", {"Lsn": Lsn})
    assert called["publications"] == (before or ["p"])
    arguments = ["capture", shop.dsn, str(shop.directory), "--slot", shop.slot, *shlex.split(found[1])]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    assert shop.confirmed() >= called["until_lsn"]


def test_warnings_about_publications(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
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
    capture(shop.dsn, shop.slot, ["loud"], shop.directory, until_lsn=shop.execute(), new_log=True)
    assert 'refuses UPDATE and DELETE: public."Odd name", public.bare;' in "\n".join(caplog.messages)


def test_a_publication_is_created_only_for_tables_with_identity(shop: Shop) -> None:
    """Its tables must exist and have an identity; one that exists must have them."""
    shop.execute("CREATE SCHEMA s", 'CREATE TABLE s."A.b" (a int PRIMARY KEY)', "CREATE TABLE bare (a int)")
    with shop.connect() as connection:
        for tables, words in {
            ("bare",): r"public\.bare without a replica identity.*--publish insert,truncate",
            ("item", "Nothing"): r"table public\.nothing does not exist in",
            ("nowhere.*",): "schema nowhere does not exist in",
            (): "name the tables",
        }.items():
            with pytest.raises(ReplicationError, match=words):
                ensure_publication(connection, "made", NewPublication.parse(tables))
        for name in ("a..b", "a.b.c", "a.b.*", '"a', ""):
            with pytest.raises(PgoutputError, match="does not name a table"):
                NewPublication.parse([name])
        with pytest.raises(PgoutputError, match="unknown operation 'inserts' of a publication: insert, update"):
            NewPublication.parse(["item"], ["inserts"])
        assert not read_publications(connection, ["made"])
        assert ensure_publication(connection, "made", NewPublication.parse(["ITEM", 'S . "A.b"']))
        assert not ensure_publication(connection, "made", NewPublication.parse(["public.item"]))
        shop.execute("CREATE TABLE later (a int PRIMARY KEY)")
        shop.execute("CREATE TABLE parts (a int PRIMARY KEY) PARTITION BY LIST (a)")
        assert ensure_publication(connection, "split", NewPublication.parse(["parts"]))
        assert not ensure_publication(connection, "split", NewPublication.parse(["parts"]))
        with pytest.raises(ReplicationError, match=r"'made' exists without public.later.*ADD TABLE"):
            ensure_publication(connection, "made", NewPublication.parse(["item", "later"]))


def test_a_publication_of_a_schema(shop: Shop) -> None:
    """It has the tables of the schema, those that come later included; keyless ones where rows are only inserted."""
    shop.execute(
        'CREATE SCHEMA "Sales"',
        'CREATE TABLE "Sales".orders (id int PRIMARY KEY)',
        'CREATE TABLE "Sales".events (note text)',
        "CREATE SCHEMA other",
    )
    of_schema, both = ['"Sales".*'], ["item", '"Sales".*']
    with shop.connect() as connection:
        with pytest.raises(ReplicationError, match=r'^"Sales"\.events without a replica identity'):
            ensure_publication(connection, "sold", NewPublication.parse(both))
        assert not read_publications(connection, ["sold"])
        inserts = NewPublication.parse(both, ["truncate", "insert"])
        assert ensure_publication(connection, "sold", inserts) and not ensure_publication(connection, "sold", inserts)
        assert [facts.operations for facts in read_publications(connection, ["sold"])] == [("insert", "truncate")]
        for wanted, words in {
            NewPublication.parse(["other.*"]): "exists without the schema other; .*ADD TABLES IN SCHEMA",
            NewPublication.parse(of_schema, ["insert"]): "exists and publishes insert, truncate, not insert",
        }.items():
            with pytest.raises(ReplicationError, match=words):
                ensure_publication(connection, "sold", wanted)
        assert not ensure_publication(connection, "sold", NewPublication.parse(of_schema))
        shop.execute("CREATE PUBLICATION whole FOR ALL TABLES")
        assert not ensure_publication(connection, "whole", NewPublication.parse(["other.*"]))


def test_a_capture_of_a_schema_whose_tables_have_no_key(shop: Shop) -> None:
    """Rows of keyless tables arrive, and of a later one; the application may still change them."""
    everything = sql.SQL("DROP PUBLICATION {}").format(sql.Identifier(PUBLICATION)).as_string(None)
    shop.execute(everything, "CREATE SCHEMA sales", "CREATE TABLE sales.events (note text)")
    options: dict[str, Any] = {"create_slot": True, "create_publication": ["sales.*"], "publish": "insert"}
    slot = f"{shop.slot}_schema"
    capture(shop.dsn, slot, ["sold"], shop.directory, until_lsn=shop.execute(), **options)
    shop.execute(
        "INSERT INTO sales.events VALUES ('one')",
        "UPDATE sales.events SET note = 'two'",
        "CREATE TABLE sales.later (n int)",
        "INSERT INTO sales.later VALUES (1)",
        "DELETE FROM sales.events",
    )
    capture(shop.dsn, slot, ["sold"], shop.directory, until_lsn=shop.execute(), **options)
    rows = [message for _, message in messages(shop.log()) if isinstance(message, Insert | Update | Delete)]
    assert [message.new for message in rows if isinstance(message, Insert)] == [(b"one",), (b"1",)]
    assert len(rows) == 2


def test_a_capture_creates_slot_and_publication(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    """Publication and slot; a first attempt that fails leaves no slot, and a slot that is lost is not replaced."""
    caplog.set_level(logging.INFO)
    slot = f"{shop.slot}_made"
    given: dict[str, Any] = {"create_slot": True, "until_idle": 0.2}
    with pytest.raises(ReplicationError, match="publication 'made' does not exist"):
        capture(shop.dsn, slot, ["made"], shop.directory, **given)
    with shop.connect() as connection:
        assert not slot_health(connection, slot)
        first = capture(shop.dsn, slot, "made", shop.directory, create_publication="item", **given)
        assert first.rows == 0 and slot_health(connection, slot)
        shop.execute("INSERT INTO item VALUES (1, 'a')")
        assert capture(shop.dsn, slot, ["made"], shop.directory, **given).rows == 4
        drop_slot(connection, slot)
        with pytest.raises(ValueError, match=r"slot '.*_made' no longer exists.* start a new log"):
            capture(shop.dsn, slot, ["made"], shop.directory, **given)
        assert not slot_health(connection, slot)


def test_error_names_unsupported_options(server16: EmbeddedServer) -> None:
    """failover came with PostgreSQL 17."""
    with server16.connect() as connection, pytest.raises(ReplicationError, match="failover needs PostgreSQL 17"):
        create_slot(connection, "early", failover=True)


def test_partitions_with_another_identity_are_named(shop: Shop) -> None:
    """Via a root, whose identity the stream states, a partition should log by the same one, or by all columns."""
    shop.execute(
        "CREATE TABLE root (a int PRIMARY KEY, b text) PARTITION BY LIST (a)",
        *(f"CREATE TABLE leaf{n} PARTITION OF root FOR VALUES IN ({n})" for n in (1, 2)),
        "ALTER TABLE root REPLICA IDENTITY FULL",
        "ALTER TABLE leaf1 REPLICA IDENTITY FULL",
        "CREATE PUBLICATION via_root FOR TABLE root WITH (publish_via_partition_root = true)",
        "CREATE PUBLICATION leaves FOR TABLE root",
    )
    with shop.connect() as connection:
        leaves, via_root = read_publications(connection, ["via_root", "leaves"])
        assert leaves.other_identity == () and via_root.other_identity == ("public.leaf2",)
        assert "another replica identity: public.leaf2; " in via_root.warnings()[0]
        connection.execute("ALTER TABLE leaf1 REPLICA IDENTITY FULL")
        connection.execute("ALTER TABLE root REPLICA IDENTITY DEFAULT")
        assert read_publications(connection, ["via_root"])[0].other_identity == ()
