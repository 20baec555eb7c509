"""Features of PostgreSQL 19: FOR ALL TABLES EXCEPT, ALL SEQUENCES, REPACK, and slots that raise the WAL level."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.changelog._facts.completeness import lacks_of, whole_tables
from pgoutput_construct.changelog._facts.copies import copies_of
from pgoutput_construct.changelog._segment.events import PUBLICATION_FACTS, TABLE_FACTS, events_of
from pgoutput_construct.cli.group import cli
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres import capture, check_wal_level, create_slot, drop_slot, ensure_publication
from pgoutput_construct.postgres.publications import NewPublication
from tests.postgres.copying.conftest import Source
from tests.postgres.copying.source import logged_tables
from tests.postgres.shop import wait_until
from tools.faults.standby import Standby
from tools.servers import missing_server, open_server

if TYPE_CHECKING:
    import psycopg

pytestmark = pytest.mark.server

CATALOG = {
    "pg_publication": {
        *("oid", "pubname", "pubowner", "puballtables", "pubinsert", "pubupdate", "pubdelete", "pubtruncate"),
        *("pubviaroot", "pubgencols", "puballsequences"),
    },
    "pg_publication_rel": {"oid", "prpubid", "prrelid", "prqual", "prattrs", "prexcept"},
    "pg_publication_namespace": {"oid", "pnpubid", "pnnspid"},
    "pg_replication_slots": {
        *("slot_name", "plugin", "slot_type", "datoid", "database", "temporary", "active", "active_pid", "xmin"),
        *("catalog_xmin", "restart_lsn", "confirmed_flush_lsn", "wal_status", "safe_wal_size", "two_phase"),
        *("two_phase_at", "inactive_since", "conflicting", "invalidation_reason", "failover", "synced"),
        "slotsync_skip_reason",
    },
}
"""What is known of the catalog of publications and slots: each may decide what a log must have, or does not get."""

SINCE = {
    "pubgencols": 18,
    "puballsequences": 19,
    "prexcept": 19,
    "conflicting": 16,
    **dict.fromkeys(("inactive_since", "invalidation_reason", "failover", "synced"), 17),
    "two_phase_at": 18,
    "slotsync_skip_reason": 19,
}
"""The first server that has a column; all others have them since 15."""


@pytest.mark.differs_by_version
def test_no_column_of_the_catalog_is_unknown(any_server: EmbeddedServer) -> None:
    """Who finds another one here decides what it means for what is captured (membership.py, health.py)."""
    query = "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"
    with any_server.connect() as connection:
        for table, known in CATALOG.items():
            there = {row[0] for row in connection.execute(query, [table])}
            assert there == {name for name in known if SINCE.get(name, 0) <= any_server.version}, table


@pytest.fixture(params=[16, 18, 19], ids="pg{}".format)
def any_server(request: pytest.FixtureRequest) -> EmbeddedServer:
    """Each server."""
    server: EmbeddedServer = request.getfixturevalue(f"server{request.param}")
    return server


@pytest.fixture
def server(server19: EmbeddedServer) -> EmbeddedServer:
    """The one server of these tests, in the place of each of them."""
    return server19


TABLES = """
    CREATE TABLE shown (id int PRIMARY KEY, v text);
    CREATE TABLE hidden (id int PRIMARY KEY, v text);
    CREATE TABLE root (id int PRIMARY KEY) PARTITION BY RANGE (id);
    CREATE TABLE leaf PARTITION OF root FOR VALUES FROM (0) TO (10);
    INSERT INTO shown SELECT g, 'old' FROM generate_series(1, 100) g;
    INSERT INTO hidden SELECT g, 'old' FROM generate_series(1, 100) g;
    INSERT INTO root VALUES (1), (2);
    CREATE PUBLICATION most FOR ALL TABLES EXCEPT (TABLE hidden, root)
"""


def _copied(log: ChangeLog) -> list[str]:
    return [copy.name for copy in copies_of(log.index)]


def _excluded(log: ChangeLog) -> list[int]:
    *_, latest = events_of(log.index, PUBLICATION_FACTS)
    return [len(latest.details["tables"]), len(latest.details.get("excluded", ()))]


def test_excluded_tables_are_not_copied(source: Source) -> None:
    """Neither they nor their partitions come into the log; as soon as they are published they are copied."""
    source.execute(TABLES)
    source.capture(publications=["most"])
    assert _copied(source.log()) == ["shown"] and _excluded(source.log()) == [1, 2]
    source.execute("INSERT INTO hidden VALUES (101, 'unseen')", "INSERT INTO leaf VALUES (3)", "DELETE FROM shown")
    source.execute("ALTER PUBLICATION most SET ALL TABLES EXCEPT (TABLE shown)")
    source.execute("INSERT INTO hidden VALUES (102, 'seen')")
    source.capture(publications=["most"])
    assert sorted(_copied(source.log())) == ["hidden", "leaf", "shown"]
    source.check({"hidden": "id v", "leaf": "id"})
    lacks = {lack.name: lack.reason for lack in lacks_of(source.log().index)}
    assert lacks == {"public.shown": "public.shown is no longer published"}
    source.execute("INSERT INTO shown VALUES (1, 'unseen')", "ALTER PUBLICATION most SET ALL TABLES")
    source.capture(publications=["most"])
    assert lacks_of(source.log().index) == [] and _excluded(source.log()) == [3, 0]
    source.check({"hidden": "id v", "leaf": "id", "shown": "id v"})


def test_a_publication_does_not_contain_excluded_tables(source: Source) -> None:
    """A request for one of them, or for its whole schema, is refused; one for others is not."""
    source.execute(TABLES, "CREATE SCHEMA zoo", "CREATE TABLE zoo.animal (id int PRIMARY KEY)")
    with source.connect() as connection:
        for name in ("hidden", "leaf", "public.*"):
            with pytest.raises(ReplicationError, match=r"exists without .*SET ALL TABLES"):
                ensure_publication(connection, "most", NewPublication.parse([name]))
        assert not ensure_publication(connection, "most", NewPublication.parse(["shown", "zoo.*"]))


def test_a_temporarily_excluded_table_is_incomplete(source: Source) -> None:
    """Though it was created while all tables were captured: what was written meanwhile is not in the log."""
    source.execute("CREATE PUBLICATION most FOR ALL TABLES", "CREATE TABLE first (id int PRIMARY KEY)")
    given: dict[str, Any] = {"publications": ["most"], "snapshot": False}
    source.capture(**given)
    source.execute("INSERT INTO first VALUES (1)")
    source.capture(**given)
    source.execute("CREATE TABLE late (id int PRIMARY KEY)", "CREATE TABLE other (id int PRIMARY KEY)")
    source.execute("ALTER PUBLICATION most SET ALL TABLES EXCEPT (TABLE late)", "INSERT INTO first VALUES (2)")
    source.capture(**given)
    source.execute("INSERT INTO late VALUES (1)", "ALTER PUBLICATION most SET ALL TABLES")
    source.execute("INSERT INTO late VALUES (2)", "INSERT INTO other VALUES (2)")
    source.capture(**given)
    index = source.log().index
    lacks = lacks_of(index)
    assert sorted(lack.name for lack in lacks) == ["public.first", "public.late"]
    names = {event.details["oid"]: event.details["name"] for event in events_of(index, TABLE_FACTS)}
    assert {names[oid] for oid in whole_tables(index, lacks)} == {"other"}


def test_repack_changes_nothing(source: Source) -> None:
    """Tables that are rewritten by REPACK, also CONCURRENTLY, while they change: the log needs no other copy."""
    source.execute(
        "CREATE TABLE packed (id int PRIMARY KEY, v text)",
        "INSERT INTO packed SELECT g, repeat('v', 100) FROM generate_series(1, 5000) g",
        "CREATE PUBLICATION everything FOR ALL TABLES, ALL SEQUENCES",
        "CREATE SEQUENCE numbers",
    )
    with (
        source.capturing(publications=["everything"]) as outcome,
        source.writing(
            "UPDATE packed SET v = 'new', id = id + 100000 WHERE id = (SELECT min(id) FROM packed)",
            "DELETE FROM packed WHERE id = %s % 5000",
        ),
    ):
        wait_until(lambda: outcome.done() or _is_copied(source, "packed"))
        for command in ("REPACK packed", "REPACK (CONCURRENTLY) packed", "REPACK packed USING INDEX packed_pkey"):
            source.execute(command)
    source.capture(publications=["everything"])
    assert _copied(source.log()) == ["packed"] and lacks_of(source.log().index) == []
    source.check({"packed": "id v"})


def _is_copied(source: Source, name: str) -> bool:
    try:
        return name in _copied(source.log())
    except Exception:
        return False


def test_a_publication_of_only_sequences_is_refused(source: Source, caplog: pytest.LogCaptureFixture) -> None:
    """Capture and tail raise an error, and no slot is created; together with tables it is a warning."""
    source.execute("CREATE SEQUENCE numbers", "CREATE PUBLICATION counters FOR ALL SEQUENCES")
    with pytest.raises(ReplicationError, match="publishes only sequences"):
        source.capture(publications=["counters"])
    result = CliRunner().invoke(cli, ["tail", source.dsn, "--publication", "counters"])
    assert result.exit_code == 1 and "publishes only sequences" in result.stderr
    with source.connect() as connection:
        query = "SELECT FROM pg_replication_slots WHERE database = %s"
        assert connection.execute(query, [source.dbname]).fetchone() is None
    source.execute("CREATE TABLE t (id int PRIMARY KEY)", "ALTER PUBLICATION counters SET ALL TABLES, ALL SEQUENCES")
    source.capture(publications=["counters"])
    assert "publication 'counters' publishes sequences" in "\n".join(caplog.messages)


@pytest.fixture
def replica_server() -> Iterator[EmbeddedServer]:
    """A server with the wal_level that servers have by default."""
    if problem := missing_server(19):
        pytest.skip(problem)
    with open_server(19, {"wal_level": "replica"}) as server:
        yield server


def test_the_first_slot_raises_the_level(replica_server: EmbeddedServer, tmp_path: Path) -> None:
    """With wal_level = replica a capture creates its slot and reads; on a standby the primary's slots decide."""
    with replica_server.connect() as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY)")
        connection.execute("CREATE PUBLICATION p FOR TABLE t")
        connection.execute("INSERT INTO t VALUES (1)")
        assert connection.execute("SHOW effective_wal_level").fetchone() == ("replica",)
        given: dict[str, Any] = {"create_slot": True, "snapshot": True, "until_idle": 0.3, "handle_signals": False}
        capture(replica_server.dsn, "s", ["p"], tmp_path / "log", **given)
        assert connection.execute("SHOW effective_wal_level").fetchone() == ("logical",)
        connection.execute("INSERT INTO t VALUES (2)")
        capture(replica_server.dsn, "s", ["p"], tmp_path / "log", **given)
        assert logged_tables(ChangeLog(tmp_path / "log")) == {"t": [{"id": b"1"}, {"id": b"2"}]}
        drop_slot(connection, "s")
        wait_until(lambda: connection.execute("SHOW effective_wal_level").fetchone() == ("replica",))
        with Standby.of(replica_server, hot_standby_feedback="on") as standby:
            remedy = pytest.raises(ReplicationError, match="create a logical slot on the primary")
            with standby.connect() as other, remedy:
                check_wal_level(other)
            create_slot(connection, "raising")
            with standby.connect() as other:
                wait_until(lambda: _can_decode(other))
            drop_slot(connection, "raising")


def _can_decode(connection: "psycopg.Connection[Any]") -> bool:
    try:
        check_wal_level(connection)
    except ReplicationError:
        return False
    return True
