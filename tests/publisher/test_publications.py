"""Subscriptions find their tables by themselves in what a running capture writes, as on the server that publishes."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.changelog._facts.catalog_readings import publication_readings
from pgoutput_construct.changelog._facts.completeness import superfluous_copies
from pgoutput_construct.changelog._facts.copies import copies_of
from pgoutput_construct.changelog.prune import prune
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.postgres import capture, snapshot
from pgoutput_construct.postgres._catalog import catalog_watch
from pgoutput_construct.publisher._server.service import Settings
from pgoutput_construct.publisher.log_feed import LogFeed
from pgoutput_construct.publisher.server import ThreadedPublisher
from tests.postgres.shop import Shop, is_active, wait_until
from tests.publisher.subscriber import Subscriber, database

pytestmark = pytest.mark.server

TABLES = """
CREATE TABLE written (id int PRIMARY KEY, note text);
CREATE TABLE never (id int PRIMARY KEY, note text);
CREATE TABLE gone (id int PRIMARY KEY);
CREATE TABLE removed (id int PRIMARY KEY);
CREATE TABLE root (id int PRIMARY KEY, note text) PARTITION BY RANGE (id);
CREATE TABLE leaf1 PARTITION OF root FOR VALUES FROM (0) TO (100);
CREATE TABLE leaf2 PARTITION OF root FOR VALUES FROM (100) TO (200);
INSERT INTO written VALUES (1, 'copied'); INSERT INTO root VALUES (1, 'copied'), (101, 'copied');
INSERT INTO gone VALUES (1); INSERT INTO removed VALUES (1);
CREATE PUBLICATION tables FOR TABLE written, never, gone, removed, root WITH (publish_via_partition_root);
"""
HERE = """
CREATE TABLE written (id int PRIMARY KEY, note text);
CREATE TABLE never (id int PRIMARY KEY, note text);
CREATE TABLE root (id int PRIMARY KEY, note text);
"""
until = partial(wait_until, seconds=60)
LISTED = "SELECT srrelid::regclass::text FROM pg_subscription_rel ORDER BY 1"


@pytest.fixture
def source(server18: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """A database, and a place for the log of it."""
    with Shop.create(server18, "listed_source", tmp_path / "log", two_phase=False) as shop:
        shop.slot += "_tables"
        shop.options = {"create_slot": True, "snapshot": True}
        yield shop


@contextmanager
def capturing(shop: Shop, *publications: str) -> Iterator[None]:
    """Capture meanwhile, and begin with that."""
    with shop.capturing(publications=list(publications)):
        until(lambda: is_active(shop))
        yield


def published(shop: Shop, publication: str = "tables") -> set[str]:
    """Return the names of the tables that the log says a publication has."""
    try:
        readings = [each for each in publication_readings(ChangeLog(shop.directory).index) if each.name == publication]
    except ChangeLogError:
        return set()
    return {table.name for table in readings[-1].tables.values()} if readings else set()


def copied(shop: Shop) -> list[str]:
    """Return the names of the tables that the log has copies of, sorted."""
    try:
        return sorted(copy.name for copy in copies_of(ChangeLog(shop.directory).index))
    except ChangeLogError:
        return []


by_19_too = pytest.mark.parametrize("subscribing", [15, 16, 18, 19], indirect=True, ids="pg{}".format)
"""For the tests of CREATE SUBSCRIPTION and REFRESH."""


@contextmanager
def subscribed(subscribing: EmbeddedServer, name: str, tables: str, log: Path) -> Iterator[Subscriber]:
    """Yield a subscriber of a log, in a database of its own with tables, that has not subscribed yet."""
    feed = LogFeed(log)
    with (
        database(subscribing, name) as target,
        ThreadedPublisher(feed, Settings(slots_file=log.parent / "slots.json")) as running,
    ):
        target.execute(tables.encode())
        subscriber = Subscriber(subscribing, target, running.dsn, name)
        try:
            yield subscriber
        finally:
            if target.execute("SELECT FROM pg_subscription WHERE subname = %s", [name]).fetchall():
                subscriber.unsubscribe()


def listed(subscriber: Subscriber) -> list[str]:
    """Return the tables of a subscription."""
    return [name for (name,) in subscriber.connection.execute(LISTED).fetchall()]


def eventually_rows(subscriber: Subscriber, table: str, expected: list[Any]) -> None:
    """Wait until a table has rows; raise AssertionError where it gets others."""
    deadline = time.monotonic() + 300
    while (found := subscriber.rows(table)) != expected and time.monotonic() < deadline:
        time.sleep(0.05)
    assert found == expected, subscriber.server.log[-3000:]


@pytest.mark.differs_by_version
@by_19_too
def test_tables_that_are_published_now(source: Shop, subscribing: EmbeddedServer, tmp_path: Path) -> None:
    """Empty ones, roots without their leaves; not those that were dropped, or taken out of the publication."""
    source.execute(TABLES)
    with capturing(source, "tables"):
        until(lambda: published(source) == {"written", "never", "gone", "removed", "root"})
        source.execute("UPDATE root SET note = 'changed' WHERE id = 101", "INSERT INTO leaf1 VALUES (2, 'into a leaf')")
        source.execute("INSERT INTO gone VALUES (2)", "INSERT INTO removed VALUES (2)")
        source.execute("DROP TABLE gone", "ALTER PUBLICATION tables DROP TABLE removed")
        until(lambda: published(source) == {"written", "never", "root"})
        with subscribed(
            subscribing, "listed", HERE + "CREATE TABLE gone (id int); CREATE TABLE removed (id int)", source.directory
        ) as subscriber:
            subscriber.subscribe(publications="tables")
            assert listed(subscriber) == ["never", "root", "written"]
            source.execute("INSERT INTO never VALUES (1, 'the first')")
            eventually_rows(subscriber, "never", [(1, "the first")])
            assert subscriber.rows("root") == [(1, "copied"), (2, "into a leaf"), (101, "changed")]
            assert subscriber.rows("written") == [(1, "copied")]
            source.execute("ALTER PUBLICATION tables DROP TABLE never")
            until(lambda: published(source) == {"written", "root"})
            subscriber.refresh()
            assert listed(subscriber) == ["root", "written"]
            assert subscriber.rows("gone") == []


def test_an_archive(source: Shop, subscribing: EmbeddedServer) -> None:
    """A subscriber of a publication of inserts retains what the source deletes, also when the table is copied again."""
    create = "CREATE TABLE written (id int PRIMARY KEY)"
    publish = "CREATE PUBLICATION archive FOR TABLE written WITH (publish = 'insert')"
    source.execute(create, "INSERT INTO written VALUES (1), (2)", publish)
    with capturing(source, "archive"):
        until(lambda: published(source, "archive") == {"written"})
        with subscribed(subscribing, "archive", create, source.directory) as subscriber:
            subscriber.subscribe(publications="archive")
            eventually_rows(subscriber, "written", [(1,), (2,)])
            source.execute("DELETE FROM written WHERE id = 1", "INSERT INTO written VALUES (3)")
            eventually_rows(subscriber, "written", [(1,), (2,), (3,)])
            snapshot(source.dsn, source.directory, ["public.written"], handle_signals=False)
            source.execute("INSERT INTO written VALUES (4)")
            eventually_rows(subscriber, "written", [(1,), (2,), (3,), (4,)])


@by_19_too
def test_tables_that_are_added_later(source: Shop, subscribing: EmbeddedServer) -> None:
    """Rows that were sent before a subscription knew their table arrive when it does: copied ones, and changes."""
    source.execute("CREATE TABLE written (id int PRIMARY KEY)", "CREATE PUBLICATION tables FOR TABLE written")
    here = (
        "CREATE TABLE written (id int); CREATE TABLE later (id int PRIMARY KEY, note text); CREATE TABLE last (id int)"
    )
    with capturing(source, "tables"):
        until(lambda: published(source) == {"written"})
        with subscribed(subscribing, "added", here, source.directory) as subscriber:
            subscriber.subscribe(publications="tables")
            assert listed(subscriber) == ["written"]
            source.execute(
                "CREATE TABLE later (id int PRIMARY KEY, note text)",
                "INSERT INTO later SELECT n, 'before' FROM generate_series(1, 3) n",
                "ALTER PUBLICATION tables ADD TABLE later",
            )
            until(lambda: any(copy.name == "later" for copy in copies_of(ChangeLog(source.directory).index)))
            source.execute("INSERT INTO later VALUES (4, 'after')", "DELETE FROM later WHERE id = 1")
            source.execute("INSERT INTO written VALUES (1)")
            eventually_rows(subscriber, "written", [(1,)])
            assert subscriber.rows("later") == []
            subscriber.refresh()
            assert listed(subscriber) == ["later", "written"]
            eventually_rows(subscriber, "later", [(2, "before"), (3, "before"), (4, "after")])
            source.execute("UPDATE later SET note = 'changed' WHERE id = 4", "INSERT INTO written VALUES (2)")
            eventually_rows(subscriber, "later", [(2, "before"), (3, "before"), (4, "changed")])
            eventually_rows(subscriber, "written", [(1,), (2,)])


def test_subscriptions_that_share_a_name(source: Shop, server18: EmbeddedServer) -> None:
    """Each gets what it has ignored of a table when it asks for its tables, though another one has asked before."""
    source.execute("CREATE TABLE written (id int PRIMARY KEY)", "CREATE PUBLICATION tables FOR TABLE written")
    here = "CREATE TABLE written (id int PRIMARY KEY); CREATE TABLE later (id int PRIMARY KEY)"
    with ExitStack() as stack:
        stack.enter_context(capturing(source, "tables"))
        until(lambda: published(source) == {"written"})
        first = stack.enter_context(subscribed(server18, "shared", here, source.directory))
        target = stack.enter_context(database(server18, "shared_too"))
        target.execute(here.encode())
        second = Subscriber(server18, target, first.publisher, first.name)
        try:
            first.subscribe(publications="tables")
            second.subscribe("slot_name = another", publications="tables")
            source.execute("CREATE TABLE later (id int PRIMARY KEY)", "ALTER PUBLICATION tables ADD TABLE later")
            source.execute("INSERT INTO later VALUES (1), (2)")
            until(lambda: published(source) == {"written", "later"})
            source.execute("INSERT INTO written VALUES (1)")
            for subscriber in (first, second):
                eventually_rows(subscriber, "written", [(1,)])
            for subscriber in (first, second):
                subscriber.refresh()
                eventually_rows(subscriber, "later", [(1,), (2,)])
            source.execute("DELETE FROM later WHERE id = 1")
            for subscriber in (first, second):
                eventually_rows(subscriber, "later", [(2,)])
        finally:
            second.unsubscribe()


RENAMED = """
CREATE SCHEMA one; CREATE SCHEMA two;
CREATE TABLE one.t (id int); CREATE TABLE two.t (id int); CREATE TABLE item (id int);
CREATE TABLE before (id int); CREATE TABLE after (id int);
"""


@pytest.mark.parametrize("version", [16, 18], ids="pg{}".format)
def test_tables_by_name(request: pytest.FixtureRequest, version: int, tmp_path: Path) -> None:
    """A subscription has tables by name: a renamed one arrives by a REFRESH, and another one has its old name."""
    server = request.getfixturevalue(f"server{version}")
    with Shop.create(server, f"by_name_source{version}", tmp_path / "log", two_phase=False) as shop:
        shop.slot += "_by_name"
        shop.options = {"create_slot": True, "snapshot": True}
        shop.execute(
            "CREATE SCHEMA one; CREATE TABLE one.t (id int)",
            "CREATE TABLE before (id int); INSERT INTO before VALUES (1)",
            "CREATE PUBLICATION tables FOR ALL TABLES",
        )
        with capturing(shop, "tables"):
            # A copy of one.t that is made after it is renamed has the first row under the new name.
            until(lambda: copied(shop) == ["before", "item", "t"])
            with subscribed(server, f"by_name{version}", RENAMED, shop.directory) as subscriber:
                subscriber.subscribe(publications="tables")
                shop.execute(
                    "BEGIN; INSERT INTO one.t VALUES (1); ALTER SCHEMA one RENAME TO two; CREATE SCHEMA one;"
                    "CREATE TABLE one.t (id int); INSERT INTO one.t VALUES (2); INSERT INTO two.t VALUES (3); COMMIT",
                    "INSERT INTO before VALUES (2)",
                )
                shop.execute("ALTER TABLE before RENAME TO after", "INSERT INTO after VALUES (3)")
                until(lambda: published(shop) == {"item", "t", "after"})
                until(lambda: copied(shop).count("t") > 1)
                subscriber.wait(shop.execute("INSERT INTO one.t VALUES (4)"))
                assert subscriber.rows("one.t") == [(1,), (2,), (4,)]
                assert subscriber.rows("before") == [(1,), (2,)]
                assert (subscriber.rows("two.t"), subscriber.rows("after")) == ([], [])
                subscriber.refresh()
                eventually_rows(subscriber, "two.t", [(1,), (3,)])
                eventually_rows(subscriber, "after", [(1,), (2,), (3,)])
                shop.execute("INSERT INTO two.t VALUES (5)", "INSERT INTO after VALUES (4)")
                subscriber.wait(shop.execute("INSERT INTO one.t VALUES (6)"))
                assert subscriber.rows("two.t") == [(1,), (3,), (5,)]
                assert subscriber.rows("after") == [(1,), (2,), (3,), (4,)]
                assert subscriber.rows("one.t") == [(1,), (2,), (4,), (6,)]
                assert subscriber.rows("before") == [(1,), (2,)]


def test_tables_that_are_altered_when_created(source: Shop, subscribing: EmbeddedServer) -> None:
    """The copy of one that the log has from its creation on is served where it has values that no stream says."""
    source.execute("CREATE PUBLICATION tables FOR ALL TABLES")
    here = "CREATE TABLE item (id int); CREATE TABLE filled (id int, more int); CREATE TABLE changed (id int)"
    with capturing(source, "tables"):
        until(lambda: published(source) == {"item"})
        with subscribed(subscribing, "altered", here + "; CREATE TABLE plain (id int)", source.directory) as subscriber:
            source.execute(
                "BEGIN; CREATE TABLE filled (id int); CREATE TABLE changed (id int); CREATE TABLE plain (id int);"
                "INSERT INTO filled VALUES (1); INSERT INTO changed VALUES (1); INSERT INTO plain VALUES (1);"
                "ALTER TABLE filled ADD COLUMN more int DEFAULT 7;"
                "ALTER TABLE changed ALTER COLUMN id TYPE bigint USING id * 2; COMMIT"
            )
            names = {"item", "filled", "changed", "plain"}
            until(lambda: published(source) == names)
            until(lambda: {copy.name for copy in copies_of(ChangeLog(source.directory).index)} == names)
            subscriber.subscribe(publications="tables")
            eventually_rows(subscriber, "filled", [(1, 7)])
            eventually_rows(subscriber, "changed", [(2,)])
            eventually_rows(subscriber, "plain", [(1,)])
            index = ChangeLog(source.directory).index
            superfluous = superfluous_copies(index)
            assert {copy.name for copy in copies_of(index) if copy.seq in superfluous} == {"plain"}


@by_19_too
def test_what_is_asked_of_origins(source: Shop, subscribing: EmbeddedServer) -> None:
    """A subscription without what came from elsewhere asks whether copies might have that (since 16)."""
    source.execute("CREATE PUBLICATION tables FOR TABLE item")
    with capturing(source, "tables"):
        source.execute("INSERT INTO item VALUES (1)")
        until(lambda: published(source) == {"item"})
    with subscribed(subscribing, "origins", "CREATE TABLE item (id int PRIMARY KEY)", source.directory) as subscriber:
        if subscriber.connection.info.server_version < 160000:
            pytest.skip("its subscriptions have no option origin")
        create = "CREATE SUBSCRIPTION origins CONNECTION {} PUBLICATION tables WITH (origin = none, enabled = false)"
        subscriber.connection.execute(psycopg.sql.SQL(create).format(subscriber.publisher))
        assert listed(subscriber) == ["item"]


def test_a_subscription_that_asks_late(source: Shop, subscribing: EmbeddedServer) -> None:
    """One that was made without a connection gets what it ignored before it asked for its tables."""
    source.execute("CREATE PUBLICATION tables FOR ALL TABLES", "CREATE TABLE copied (id int PRIMARY KEY)")
    source.execute("INSERT INTO copied VALUES (1)")
    here = "CREATE TABLE copied (id int PRIMARY KEY); CREATE TABLE item (id int)"
    here += "; CREATE TABLE created (id int PRIMARY KEY)"
    with capturing(source, "tables"):
        until(lambda: published(source) == {"item", "copied"})
        source.execute("CREATE TABLE created (id int PRIMARY KEY)", "INSERT INTO created VALUES (1), (2)")
        until(lambda: published(source) == {"item", "copied", "created"})
        with subscribed(subscribing, "late", here, source.directory) as subscriber:
            create = (
                "CREATE SUBSCRIPTION late CONNECTION {} PUBLICATION tables WITH (connect = false, slot_name = late)"
            )
            subscriber.connection.execute(psycopg.sql.SQL(create).format(subscriber.publisher))
            subscriber.enable()
            end = source.execute("DELETE FROM created WHERE id = 1", "INSERT INTO copied VALUES (2)")
            subscriber.wait(end)
            assert (subscriber.rows("copied"), subscriber.rows("created")) == ([], [])
            subscriber.refresh()
            eventually_rows(subscriber, "copied", [(1,), (2,)])
            eventually_rows(subscriber, "created", [(2,)])


@pytest.mark.differs_by_version
@pytest.mark.parametrize("version", [16, 18], ids="pg{}".format)
def test_a_publication_that_does_not_exist(request: pytest.FixtureRequest, version: int, tmp_path: Path) -> None:
    """The stream begins; with the first change PostgreSQL 18 warns of it and goes on, those before raise an error."""
    server: EmbeddedServer = request.getfixturevalue(f"server{version}")
    with Shop.create(server, f"unknown_source{version}", tmp_path / "log", two_phase=False) as shop:
        shop.slot += f"_unknown{version}"
        shop.execute("CREATE TABLE written (id int PRIMARY KEY)", "CREATE PUBLICATION tables FOR TABLE written")
        shop.options = {"create_slot": True, "snapshot": True}
        with capturing(shop, "tables"):
            until(lambda: published(shop) == {"written"})
            here = "CREATE TABLE written (id int PRIMARY KEY)"
            with subscribed(server, f"unknown{version}", here, shop.directory) as subscriber:
                subscriber.subscribe("enabled = false", publications="tables")
                alter = f"ALTER SUBSCRIPTION unknown{version} ADD PUBLICATION nobody WITH (refresh = false)"
                subscriber.connection.execute(alter.encode())
                seen = len(server.log)
                subscriber.enable()
                query = "SELECT latest_end_lsn IS NOT NULL FROM pg_stat_subscription WHERE subname = %s"
                until(lambda: subscriber.connection.execute(query, (subscriber.name,)).fetchone() == (True,))
                assert 'publication "nobody"' not in server.log[seen:]
                shop.execute("INSERT INTO written VALUES (1)")
                if version < 18:
                    until(lambda: 'publication "nobody" does not exist' in server.log[seen:])
                    assert subscriber.rows("written") == []
                else:
                    eventually_rows(subscriber, "written", [(1,)])
                    assert 'WARNING:  skipped loading publication "nobody"' in server.log[seen:]


def test_some_of_the_publications(source: Shop, subscribing: EmbeddedServer) -> None:
    """A subscription gets the tables and the operations of those that it names, and needs no table of others."""
    source.execute(
        "CREATE TABLE ours (id int PRIMARY KEY, note text)",
        "CREATE TABLE theirs (id int PRIMARY KEY)",
        "CREATE TABLE shared (id int PRIMARY KEY, note text)",
        "INSERT INTO ours VALUES (1, 'copied')",
        "INSERT INTO theirs VALUES (1)",
        "CREATE PUBLICATION a FOR TABLE ours",
        "CREATE PUBLICATION b FOR TABLE theirs, shared",
        "CREATE PUBLICATION c FOR TABLE shared WITH (publish = 'insert, update')",
    )
    here = "CREATE TABLE ours (id int PRIMARY KEY, note text); CREATE TABLE shared (id int PRIMARY KEY, note text)"
    with capturing(source, "a", "b", "c"):
        until(lambda: published(source, "b") == {"theirs", "shared"})
        source.execute("INSERT INTO ours VALUES (2, 'sent')", "INSERT INTO theirs VALUES (2)")
        source.execute("INSERT INTO shared VALUES (1, 'x'), (2, 'y')", "DELETE FROM shared WHERE id = 1")
        with subscribed(subscribing, "one", here, source.directory) as subscriber:
            create = "CREATE SUBSCRIPTION one CONNECTION {} PUBLICATION a, c WITH (copy_data = false)"
            subscriber.connection.execute(psycopg.sql.SQL(create).format(subscriber.publisher))
            assert listed(subscriber) == ["ours", "shared"]
            source.execute("BEGIN; INSERT INTO theirs VALUES (3); UPDATE ours SET note = 'last' WHERE id = 2; COMMIT")
            eventually_rows(subscriber, "ours", [(1, "copied"), (2, "last")])
            assert subscriber.rows("shared") == [(1, "x"), (2, "y")]
            subscriber.connection.execute("CREATE TABLE theirs (id int PRIMARY KEY)")
            source.execute("ALTER PUBLICATION a ADD TABLE theirs", "INSERT INTO theirs VALUES (4)")
            until(lambda: published(source, "a") == {"ours", "theirs"})
            subscriber.refresh()
            source.execute("INSERT INTO theirs VALUES (5)")
            eventually_rows(subscriber, "theirs", [(n,) for n in range(1, 6)])


def test_publications_that_cannot_be_served_alone(source: Shop, server18: EmbeddedServer) -> None:
    """Rows that came with another publication's filter, or as those of its root: the subscription is refused."""
    source.execute(
        "CREATE TABLE t (id int PRIMARY KEY)",
        "CREATE TABLE root (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE leaf PARTITION OF root FOR VALUES FROM (0) TO (100)",
        "INSERT INTO t VALUES (1)",
        "CREATE PUBLICATION few FOR TABLE t WHERE (id > 100)",
        "CREATE PUBLICATION leaves FOR TABLE leaf",
        "CREATE PUBLICATION all_of_it FOR TABLE t, root WITH (publish_via_partition_root)",
    )
    here = "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE root (id int); CREATE TABLE leaf (id int)"
    with capturing(source, "few", "leaves", "all_of_it"):
        until(lambda: published(source, "leaves") == {"leaf"})
    with subscribed(server18, "alone", here, source.directory) as subscriber:
        with pytest.raises(psycopg.OperationalError, match=r"few cannot be served separately: .* row filter"):
            subscriber.subscribe(publications="few")
        with pytest.raises(psycopg.OperationalError, match=r"leaves cannot be served separately: .* partition"):
            subscriber.subscribe(publications="leaves")
        subscriber.subscribe(publications="all_of_it")
        assert listed(subscriber) == ["root", "t"]


NAMES = ("a\nb", "a\rb\t", "two  spaces", "a) b", 'it\'s; "x", y', "back\\slash", "'\\'", "ä E'x'")


def test_names_of_publications(source: Shop, subscribing: EmbeddedServer, tmp_path: Path) -> None:
    """Each is read as it is, whatever quotes, spaces, parentheses or escapes it has: by subscribers and captures."""
    tables = {f"t{number}": name for number, name in enumerate(NAMES)}
    create = [f"CREATE TABLE {table} (id int PRIMARY KEY)" for table in tables]
    publish = [
        SQL("CREATE PUBLICATION {} FOR TABLE {}").format(Identifier(name), Identifier(table)).as_string()
        for table, name in tables.items()
    ]
    source.execute(*create, *publish, *(f"INSERT INTO {table} VALUES (1)" for table in tables))
    with capturing(source, *NAMES):
        until(lambda: [published(source, name) for name in NAMES] == [{table} for table in tables])
    with subscribed(subscribing, "named", "; ".join(create), source.directory) as subscriber:
        names = SQL(", ").join(map(Identifier, NAMES))
        command = SQL("CREATE SUBSCRIPTION named CONNECTION {} PUBLICATION {} WITH (copy_data = false)")
        subscriber.connection.execute(command.format(subscriber.publisher, names))
        assert listed(subscriber) == [*tables]
        for table in tables:
            eventually_rows(subscriber, table, [(1,)])
        subscriber.unsubscribe()
    again, feed = tmp_path / "again", LogFeed(source.directory)
    with ThreadedPublisher(feed) as running:
        until_lsn = feed.position
        capture(running.dsn, "again", NAMES, again, create_slot=True, until_lsn=until_lsn, handle_signals=False)
    assert {reading.name for reading in publication_readings(ChangeLog(again).index)} == {*NAMES}


def test_publications_of_a_pruned_log(source: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a prune removed is said again by the capture that runs."""
    monkeypatch.setattr(catalog_watch, "_PRUNED_INTERVAL", 0.0)
    source.execute("CREATE PUBLICATION tables FOR TABLE item")
    with capturing(source, "tables"):
        source.execute("INSERT INTO item VALUES (1)")
        until(lambda: published(source) == {"item"})
        last = publication_readings(ChangeLog(source.directory).index)[-1].seq
        end = source.execute("INSERT INTO item VALUES (2)")
        until(lambda: ChangeLog(source.directory).complete_lsn >= end)
        assert prune(source.directory, end, states=False).first_seq > last
        until(lambda: published(source) == {"item"})


def test_a_capture_of_what_is_served(source: Shop, tmp_path: Path) -> None:
    """Its log says what is published as the first one does: tables that nobody wrote to, and operations."""
    source.execute(
        "CREATE TABLE never (id int PRIMARY KEY)",
        "CREATE TABLE gone (id int PRIMARY KEY)",
        "CREATE PUBLICATION tables FOR TABLE item, never, gone WITH (publish = 'insert')",
    )
    with capturing(source, "tables"):
        source.execute("INSERT INTO item VALUES (1)", "INSERT INTO gone VALUES (1)", "DROP TABLE gone")
        until(lambda: published(source) == {"item", "never"})
    again, feed = tmp_path / "again", LogFeed(source.directory)
    with ThreadedPublisher(feed) as running:
        capture(
            running.dsn, "again", ["tables"], again, create_slot=True, until_lsn=feed.position, handle_signals=False
        )
    (reading,) = publication_readings(ChangeLog(again).index)
    assert {table.name for table in reading.tables.values()} == {"item", "never"}
    assert reading.operations == {"insert"}
