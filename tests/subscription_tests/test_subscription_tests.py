"""The command that runs PostgreSQL's own subscription tests: what it makes of statements, and its links at work."""

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from psycopg import conninfo

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from tests.publisher.subscriber import database
from tools.subscription_tests.__main__ import missing, read_output
from tools.subscription_tests.broker import Broker
from tools.subscription_tests.statements import split_at_drops, statements_of

SOURCE = os.environ.get("PGOUTPUT_POSTGRES_SOURCE", "")
"""The sources of a release, for whoever has them: they are not part of this project."""

REWRITTEN = [
    (
        "CREATE SUBSCRIPTION s CONNECTION 'host=h options=''-c a=b''' PUBLICATION p, \"Q\";",
        'CREATE SUBSCRIPTION "s" CONNECTION \'port=1\' PUBLICATION "p", "Q" WITH (copy_data = false)',
    ),
    (
        "create subscription S connection $$host=h$$ publication p with (slot_name='x', two_phase, copy_data = on)",
        'CREATE SUBSCRIPTION "s" CONNECTION \'port=1\' PUBLICATION "p"'
        " WITH (slot_name = 'x', two_phase = true, copy_data = false)",
    ),
    (
        "ALTER SUBSCRIPTION s  REFRESH  PUBLICATION",
        'ALTER SUBSCRIPTION "s" REFRESH PUBLICATION WITH (copy_data = false)',
    ),
    (
        "ALTER SUBSCRIPTION s SET PUBLICATION p WITH (refresh = true)",
        'ALTER SUBSCRIPTION "s" SET PUBLICATION "p" WITH (refresh = true, copy_data = false)',
    ),
    (
        "ALTER SUBSCRIPTION s DROP PUBLICATION p",
        'ALTER SUBSCRIPTION "s" DROP PUBLICATION "p" WITH (refresh = false);'
        ' ALTER SUBSCRIPTION "s" REFRESH PUBLICATION WITH (copy_data = false)',
    ),
]


@pytest.mark.parametrize(("text", "expected"), REWRITTEN)
def test_statements_are_rewritten_for_a_publisher_that_copies_nothing(text: str, expected: str) -> None:
    """CREATE gets the address of the publisher; whatever would copy tables gets copy_data = false."""
    (statement,) = statements_of(text)
    assert statement.rewritten(None if statement.connection is None else "port=1") == expected


def test_statements_say_what_they_ask() -> None:
    """Verb, what is altered, and names; SQL around them is skipped."""
    text = """SET SESSION AUTHORIZATION u; ALTER SUBSCRIPTION s DISABLE; ALTER SUBSCRIPTION s SET (slot_name = NONE);
        ALTER SUBSCRIPTION s RENAME TO "T"; DROP SUBSCRIPTION IF EXISTS "T";"""
    found = list(statements_of(text))
    assert [(each.verb, each.what, each.name, each.names) for each in found] == [
        ("ALTER", "DISABLE", "s", ()),
        ("ALTER", "SET", "s", ()),
        ("ALTER", "RENAME TO", "s", ("T",)),
        ("DROP", "", "T", ()),
    ]
    assert found[1].options == {"slot_name": "NONE"}


def test_a_text_is_split_where_a_subscription_is_dropped_and_created() -> None:
    """What is between the old one and its server ends before the new one begins."""
    first, second = "SELECT 1; DROP SUBSCRIPTION s;", " CREATE SUBSCRIPTION s CONNECTION 'c' PUBLICATION p; SELECT 2"
    assert split_at_drops(first + second) == [first, second]
    assert split_at_drops("ALTER SUBSCRIPTION s DISABLE; DROP SUBSCRIPTION s") == [
        "ALTER SUBSCRIPTION s DISABLE; DROP SUBSCRIPTION s"
    ]


def test_what_a_file_of_tests_said_is_counted() -> None:
    """TAP lines, and files that end before their plan."""
    text = "ok 1 - one\nnot ok 2 - two\n#   Failed test 'two'\nok 3 # skip no ICU\n1..3\n"
    result = read_output("file", text, 1)
    assert (result.passed, result.failed, result.skipped, result.ended) == (1, ["two"], 1, "")
    assert read_output("file", "ok 1 - one\ntimed out waiting for catchup\n", 29).ended.endswith("for catchup")
    assert read_output("file", "1..0 # SKIP no such build\n", 0).good
    by_design = read_output("013_partition", "ok 1 - one\nnot ok 2 - truncate of tab2_1 NOT replicated\n1..2\n", 1)
    assert by_design.good
    assert by_design.failed == []
    assert "copies the table again" in by_design.differs[0]


@pytest.mark.server
@pytest.mark.long
def test_a_subscription_gets_its_rows_through_a_capture_and_a_publisher(
    server18: EmbeddedServer, tmp_path: Path
) -> None:
    """Copied rows, and those of the stream, also when both processes were killed; then nothing of it is left."""
    definition = "CREATE TABLE numbers (id int PRIMARY KEY)"
    with database(server18, "between_from") as source, database(server18, "between_to") as target:
        source.execute(f"{definition}; INSERT INTO numbers SELECT generate_series(1, 5)")
        source.execute("CREATE PUBLICATION between FOR TABLE numbers")
        target.execute(definition)
        server, publisher = (conninfo.make_conninfo(server18.dsn, dbname=each.info.dbname) for each in (target, source))
        user = source.info.user
        with Broker(tmp_path, user, 60) as broker:
            _run(broker, server, target, f"CREATE SUBSCRIPTION between CONNECTION '{publisher}' PUBLICATION between")
            assert broker.answer({"do": "synced", "server": server}) == {}
            assert _numbers(target) == [1, 2, 3, 4, 5]
            (link,) = broker.links
            for child in (link.capture, link.publisher):
                child.kill()
            source.execute("INSERT INTO numbers VALUES (6)")
            _wait_for_capture(source, link.slot)
            assert broker.answer({"do": "catchup", "server": publisher, "name": "between"}) == {}
            assert _numbers(target) == [1, 2, 3, 4, 5, 6]
            _run(broker, server, target, "DROP SUBSCRIPTION between")
            assert broker.links == []
        query = "SELECT count(*) FROM pg_replication_slots WHERE database = 'between_from'"
        assert source.execute(query).fetchone() == (0,)


@pytest.mark.server
@pytest.mark.skipif(not SOURCE or bool(missing()), reason=missing() or "no PGOUTPUT_POSTGRES_SOURCE")
def test_a_file_of_postgresql_itself_passes(tmp_path: Path) -> None:
    """The whole command, with the Perl module."""
    tmp_path.chmod(0o755)
    command = [sys.executable, "-m", "tools.subscription_tests", SOURCE, "--file", "009_matviews"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _run(broker: Broker, server: str, connection: "psycopg.Connection[tuple[object, ...]]", text: str) -> None:
    """Run a statement as Between.pm does."""
    reply = broker.answer({"do": "before", "server": server, "sql": text})
    assert reply.get("notes") == [], reply
    connection.execute(reply["sql"])
    assert broker.answer({"do": "after", "server": server, "sql": text}) == {}


def _wait_for_capture(connection: "psycopg.Connection[tuple[object, ...]]", slot: str) -> None:
    position = connection.execute("SELECT pg_current_wal_lsn()").fetchone()
    query = "SELECT confirmed_flush_lsn >= %s FROM pg_replication_slots WHERE slot_name = %s"
    while connection.execute(query, (*(position or ()), slot)).fetchone() != (True,):
        connection.execute("SELECT pg_sleep(0.05)")


def _numbers(connection: "psycopg.Connection[tuple[object, ...]]") -> list[object]:
    return [number for (number,) in connection.execute("SELECT id FROM numbers ORDER BY id")]
