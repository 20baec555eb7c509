"""Tables with rows from before the first change: the log with their copies equals the source."""

import itertools
import threading
import time
from collections.abc import Callable
from inspect import unwrap
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo
from psycopg.pq import TransactionStatus

from pgoutput_construct.changelog._facts.catalog_readings import snapshot_of
from pgoutput_construct.changelog._facts.copies import copies_of
from pgoutput_construct.changelog._segment.events import CREATED_SLOT, TABLE_FACTS, events_of
from pgoutput_construct.changelog.verify import verify
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres import (
    ChangeLog,
    NewPublication,
    capture,
    current_lsn,
    ensure_publication,
    snapshot,
    stream,
)
from pgoutput_construct.postgres._capture import preparation
from pgoutput_construct.postgres._snapshot import chunks, copier, copy_plans, jobs, workers
from pgoutput_construct.postgres._snapshot.copied_tables import PublishedTable, read_tables
from pgoutput_construct.postgres.replication_slots import ExportedSnapshot, create_slot_with_snapshot
from tests.postgres.copying.conftest import Source
from tests.postgres.proxy import Proxy
from tests.postgres.shop import wait_until

pytestmark = pytest.mark.server

TABLES = """
    CREATE TABLE keyed (id int PRIMARY KEY, name text, big text);
    ALTER TABLE keyed ALTER big SET STORAGE EXTERNAL;
    INSERT INTO keyed SELECT g, 'name ' || g, CASE WHEN g % 50 = 0 THEN repeat('b', 3000) END
        FROM generate_series(1, 3000) g;
    CREATE TABLE keyless (a int, b text);
    INSERT INTO keyless SELECT g % 7, 'twice' FROM generate_series(1, 1000) g;
    CREATE TABLE whole (a int, b text);
    ALTER TABLE whole REPLICA IDENTITY FULL;
    INSERT INTO whole SELECT g % 300, 'row' FROM generate_series(1, 600) g;
    CREATE TABLE parts (id int, day int, v text, PRIMARY KEY (id, day)) PARTITION BY LIST (day);
    CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
    CREATE TABLE parts_2 (v text, gone int, day int NOT NULL, id int NOT NULL, PRIMARY KEY (id, day));
    ALTER TABLE parts_2 DROP COLUMN gone;
    ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES IN (2);
    INSERT INTO parts SELECT g, 1 + g % 2, 'part' FROM generate_series(1, 2000) g;
    CREATE TABLE filtered (id int PRIMARY KEY, v text);
    INSERT INTO filtered SELECT g, 'f' FROM generate_series(1, 1000) g;
    CREATE TABLE listed (id int PRIMARY KEY, shown text, hidden text);
    INSERT INTO listed SELECT g, 's', 'h' FROM generate_series(1, 1000) g;
    CREATE TABLE generated (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) STORED, v text);
    INSERT INTO generated (id, v) SELECT g, 'g' FROM generate_series(1, 500) g;
    CREATE TABLE "Odd ""name"" ü" ("a b" int PRIMARY KEY, "it's" text);
    INSERT INTO "Odd ""name"" ü" SELECT g, E'tab\\t back\\\\ line\\n' FROM generate_series(1, 100) g;
    CREATE TABLE empty (id int PRIMARY KEY);
    ALTER PUBLICATION p SET TABLE keyed, keyless, whole, parts, filtered WHERE (id % 2 = 0), listed (id, shown),
        generated, "Odd ""name"" ü", empty
"""
WRITES = (
    "INSERT INTO keyed VALUES (%s, 'new', repeat('n', 3000))",
    "UPDATE keyed SET name = 'changed' WHERE id = %s % 3000",
    "UPDATE keyed SET id = -%s WHERE id = %s % 2999",
    "DELETE FROM keyed WHERE id = %s % 2998",
    "INSERT INTO keyless VALUES (%s, 'new')",
    "DELETE FROM whole WHERE ctid = (SELECT ctid FROM whole WHERE a = %s % 300 LIMIT 1)",
    "UPDATE whole SET b = 'new' WHERE a = %s % 299",
    "UPDATE parts SET v = 'new' WHERE id = %s % 2000",
    "UPDATE parts SET day = 3 - day WHERE id = %s % 1999",
    "UPDATE filtered SET v = 'new' WHERE id = %s % 1000",
    "UPDATE listed SET shown = 'new' WHERE id = %s % 1000",
    "BEGIN; INSERT INTO generated (id, v) VALUES (%s, 'rolled back'); ROLLBACK",
    "INSERT INTO generated (id, v) VALUES (%s, 'g')",
)
COLUMNS = {
    "keyed": "id name big",
    "keyless": "a b",
    "whole": "a b",
    "parts": "id day v",
    "filtered": "id v",
    "listed": "id shown",
    "generated": "id v",
    "empty": "id",
}


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.long), 3])
def test_every_kind_of_table_under_writes(source: Source, workers: int) -> None:
    """Keys, none, FULL, partitions, TOAST, a filter, a column list, generated columns, odd names, no rows."""
    source.execute(TABLES)
    with source.writing(*WRITES):
        wait_until(lambda: source.connect().execute("SELECT count(*) > 1002 FROM keyless").fetchone() == (True,))
        with source.capturing(workers=workers):
            wait_until(lambda: len(_copied(source)) == 9)
    source.capture()
    source.check(COLUMNS, {"filtered": "id % 2 = 0"})
    odd = next(copy for copy in copies_of(source.log().index) if copy.name.startswith("Odd"))
    assert odd.rows == 100
    assert verify(source.directory).problems == ()


def test_the_snapshot_of_the_slot_is_in_the_log(source: Source) -> None:
    """An event says where the slot begins and what its snapshot contains; the first copies were made under it."""
    source.execute("CREATE TABLE a (id int)", "INSERT INTO a VALUES (1)", "ALTER PUBLICATION p ADD TABLE a")
    source.capture()
    index = source.log().index
    (event,), (copy,) = events_of(index, CREATED_SLOT), copies_of(index)
    assert event.details["slot"] == f"slot_{source.dbname}" and snapshot_of(event) == copy.snapshot
    source.capture()
    assert len(list(events_of(source.log().index, CREATED_SLOT))) == 1


def test_a_table_published_later_and_a_repeated_copy(source: Source) -> None:
    """A table is published while the capture runs; a copy is repeated with and without a running capture."""
    source.execute("CREATE TABLE a (id int PRIMARY KEY)", "INSERT INTO a SELECT generate_series(1, 100)")
    source.execute("CREATE TABLE b (id int PRIMARY KEY, v int)", "INSERT INTO b SELECT generate_series(1, 3000)")
    source.execute("ALTER PUBLICATION p ADD TABLE a")
    with source.writing("INSERT INTO b VALUES (%s)", "UPDATE b SET v = %s WHERE id = %s % 3000"):
        with source.capturing():
            wait_until(lambda: _copied(source) == ["a"])
            source.execute("ALTER PUBLICATION p ADD TABLE b")
            wait_until(lambda: _copied(source) == ["a", "b"])
            (again,) = snapshot(source.dsn, source.directory, ["public.b"], handle_signals=False)
            assert again.name == "b" and again.rows >= 3000
        twice = snapshot(source.dsn, source.directory, ["b", "a"], workers=1, handle_signals=False)
        assert [copy.name for copy in twice] == ["b", "a"]
    source.capture()
    assert _copied(source) == ["a", "b", "b", "b", "a"] or _copied(source) == ["a", "b", "b", "a", "b"]
    source.check({"a": "id", "b": "id v"})
    index = source.log().index
    facts = {event.details["oid"]: event.seq for event in events_of(index, TABLE_FACTS)}
    # What precedes a copy may be pruned: the facts of its columns are repeated after it.
    assert all(facts[copy.relation_oid] > copy.seq for copy in copies_of(index))
    with pytest.raises(ReplicationError, match=r"table public\.c is not published by 'p'"):
        source.execute("CREATE TABLE c ()")
        snapshot(source.dsn, source.directory, ["c"], handle_signals=False)


def test_a_slot_that_another_program_reads(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody would make the copies: that is an error after a time, and the request is withdrawn."""
    monkeypatch.setitem(unwrap(capture).__globals__, "ANSWER_SECONDS", 0.2)
    source.execute("CREATE TABLE a (id int PRIMARY KEY)", "INSERT INTO a VALUES (1)", "ALTER PUBLICATION p ADD TABLE a")
    source.capture()
    with (
        stream(source.dsn, f"slot_{source.dbname}", ["p"]),
        pytest.raises(ReplicationError, match="is being read by process"),
    ):
        snapshot(source.dsn, source.directory, ["a"], handle_signals=False)
    assert [copy.rows for copy in snapshot(source.dsn, source.directory, ["a"], handle_signals=False)] == [1]


def test_an_outage_while_a_table_is_copied(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time to begin is limited; a copy that runs continues after an outage that is longer."""
    monkeypatch.setitem(unwrap(capture).__globals__, "ANSWER_SECONDS", 0.2)
    source.execute("CREATE TABLE a (id int PRIMARY KEY)", "INSERT INTO a SELECT generate_series(1, 1000)")
    source.execute("ALTER PUBLICATION p ADD TABLE a")
    source.capture()
    refused_until: float | None = None

    def refuse_after_copy_begins(data: bytes) -> bytes:
        nonlocal refused_until
        if refused_until is None and data.startswith(b"H\0\0"):  # CopyOutResponse
            refused_until = time.monotonic() + 1
            proxy.cut()
        if refused_until is not None and time.monotonic() < refused_until:
            raise OSError
        return data

    with Proxy(source.server) as proxy:
        proxy.alter = refuse_after_copy_begins
        dsn = make_conninfo(proxy.dsn(source.dsn), sslmode="disable", gssencmode="disable")
        (copy,) = snapshot(dsn, source.directory, ["a"], handle_signals=False)
    assert refused_until is not None and copy.rows == 1000


def test_a_table_altered_before_it_is_read(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables rewritten, truncated or altered since the slot's snapshot are copied again, dropped ones are not."""
    source.execute("CREATE TABLE a (id int PRIMARY KEY, v int)")
    source.execute("INSERT INTO a SELECT g, g FROM generate_series(1, 3000) g")
    source.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t SELECT generate_series(1, 3000)")
    source.execute("CREATE TABLE r (x int, y int)", "INSERT INTO r SELECT g, -g FROM generate_series(1, 3000) g")
    source.execute("CREATE TABLE d (id int)", "CREATE TABLE n (id int)", "INSERT INTO n VALUES (1)")
    source.execute("ALTER PUBLICATION p SET TABLE a, t, r, d, n")

    def alter() -> None:
        source.execute("ALTER TABLE a ALTER v TYPE text USING 'v' || v", "TRUNCATE t", "DROP TABLE d")
        source.execute("ALTER TABLE r RENAME x TO z", "ALTER TABLE r RENAME y TO x", "ALTER TABLE n RENAME TO m")

    _when_the_slot_is_there(monkeypatch, alter)
    source.capture()
    assert sorted(_copied(source)) == ["a", "m", "r", "t"]
    source.check({"a": "id v", "t": "id", "r": "z x", "m": "id"})


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for a lock of a table gives way to another one soon, and tries again soon."""
    monkeypatch.setitem(workers._SETTINGS, "lock_timeout", "500ms")
    monkeypatch.setattr(copier, "_MAX_PAUSE", 0.5)


def test_the_slot_advances_while_a_copy_waits(source: Source, monkeypatch: pytest.MonkeyPatch, impatient: None) -> None:
    """A locked table delays its copy, but neither the stream nor the removal of WAL."""
    source.execute("CREATE TABLE a (id int PRIMARY KEY)", "CREATE TABLE b (id int PRIMARY KEY)")
    source.execute("INSERT INTO a VALUES (1)", "ALTER PUBLICATION p SET TABLE a, b")
    with source.connect() as holder:
        holder.execute("BEGIN")
        begin = copier.CopyMaker.copy_exported

        def lock_and_begin(maker: copier.CopyMaker, exported: ExportedSnapshot) -> None:
            if holder.info.transaction_status == TransactionStatus.INTRANS:
                holder.execute("LOCK TABLE a IN ACCESS EXCLUSIVE MODE")
            begin(maker, exported)

        monkeypatch.setattr(copier.CopyMaker, "copy_exported", lock_and_begin)
        with source.capturing():
            wait_until(lambda: _confirmed(source) > 0)
            source.execute("INSERT INTO b VALUES (1)")
            end = current_lsn(source.connect())
            wait_until(lambda: _confirmed(source) >= end)
            wait_until(lambda: _copied(source) == ["b"])
            holder.execute("COMMIT")
            wait_until(lambda: sorted(_copied(source)) == ["a", "b"])
    source.check({"a": "id", "b": "id"})


def test_a_locked_table_delays_only_its_own_copy(
    source: Source, caplog: pytest.LogCaptureFixture, impatient: None
) -> None:
    """While a table is altered, captures begin and other tables are copied; the error names the lock holder."""
    source.execute(
        "CREATE TABLE a (id int) PARTITION BY LIST (id)", "CREATE TABLE a_1 PARTITION OF a FOR VALUES IN (1)"
    )
    source.execute("CREATE TABLE b (id int PRIMARY KEY)", "INSERT INTO a VALUES (1)", "INSERT INTO b VALUES (1)")
    source.capture()
    source.execute("ALTER PUBLICATION p ADD TABLE a, b")
    with source.connect() as holder:
        holder.execute("BEGIN")
        holder.execute("ALTER TABLE a_1 ALTER id SET STATISTICS 7")
        holder.execute("LOCK TABLE a_1 IN ACCESS EXCLUSIVE MODE")
        assert not ensure_publication(holder, "p", NewPublication.parse(["b"]))
        # A copy waits until WAL before it is flushed: the heartbeat does that on a server that is idle.
        with source.capturing(heartbeat=0.2) as outcome:
            wait_until(lambda: _copied(source) == ["b"])
            snapshot(source.dsn, source.directory, ["b"], handle_signals=False)
            wait_until(
                lambda: "public.a cannot be copied while" in "\n".join(caplog.messages) or bool(outcome), seconds=60
            )
            assert f"locked (ACCESS EXCLUSIVE): pid {holder.info.backend_pid}, user" in "\n".join(caplog.messages)
            holder.execute("COMMIT")
            wait_until(lambda: sorted(_copied(source)) == ["a", "b", "b"])
    source.check({"a": "id", "b": "id"})


def test_a_failed_copy_is_retried_before_the_end(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a capture waits for all copies, also when one was broken off before it began."""
    source.execute("CREATE TABLE a (id int)", "CREATE TABLE b (id int)", "CREATE TABLE c (id int)")
    source.capture()
    source.execute("INSERT INTO a VALUES (1)", "ALTER PUBLICATION p SET TABLE a, b")
    calls = itertools.count()

    def fail_at_first(*arguments: Any) -> list[PublishedTable]:
        call = next(calls)
        if call == 0:
            raise ReplicationError("the server is in recovery mode", sqlstate="57P03", transient=True)
        if call == 3:
            source.execute("ALTER PUBLICATION p ADD TABLE c", "INSERT INTO b VALUES (2)")
        return [] if call == 1 else read_tables(*arguments)

    monkeypatch.setattr(copier, "read_tables", fail_at_first)
    source.capture(status_interval=30)
    assert sorted(_copied(source)) == ["a", "b", "c"]


def test_connections_that_break(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk whose connection is lost is resumed by another one after the rows that were handed over."""
    source.execute("CREATE TABLE a (id int PRIMARY KEY, v text)", "ALTER PUBLICATION p ADD TABLE a")
    source.execute("INSERT INTO a SELECT g, repeat('x', 500) FROM generate_series(1, 5000) g")
    monkeypatch.setattr(copy_plans, "CHUNK_PAGES", 10_000)
    killed: list[int] = []
    hand_over = chunks.ChunkReader._hand_over

    def break_connections(reader: chunks.ChunkReader, chunk: jobs.Chunk, *arguments: Any, **options: Any) -> None:
        hand_over(reader, chunk, *arguments, **options)
        if len(killed) < 3 and chunk.handed > 1000 * (len(killed) + 1):
            query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'COPY%%' AND datname = %s"
            with source.connect() as connection:
                killed.extend(len(row) for row in connection.execute(query, [source.dbname]))

    monkeypatch.setattr(chunks.ChunkReader, "_hand_over", break_connections)
    source.capture()
    assert len(killed) >= 2
    assert [copy.rows for copy in copies_of(source.log().index)] == [5000]
    source.check({"a": "id v"})


def test_tables_that_the_role_may_not_read(source: Source) -> None:
    """Rows that a policy would leave out, and a table without the right to read it, end the capture with the remedy."""
    source.execute("CREATE TABLE a (id int PRIMARY KEY)", "INSERT INTO a VALUES (1)", "ALTER PUBLICATION p ADD TABLE a")
    role = f"reader_{source.dbname}"
    source.execute(f"CREATE ROLE {role} LOGIN REPLICATION", f"GRANT CREATE ON DATABASE {source.dbname} TO {role}")
    dsn = f"{source.dsn} user={role}"
    try:
        with pytest.raises(ReplicationError, match=r"public\.a cannot be copied: permission denied.*GRANT SELECT"):
            _capture_as(source, dsn)
        source.execute(f"GRANT SELECT ON a TO {role}", "ALTER TABLE a ENABLE ROW LEVEL SECURITY")
        with pytest.raises(ReplicationError, match="row-level security"):
            _capture_as(source, dsn)
    finally:
        source.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_a_later_copy_waits_for_earlier_writers(source: Source) -> None:
    """A transaction that wrote before its table was published is in the copy: the stream does not have all of it."""
    source.execute("CREATE TABLE a (id int PRIMARY KEY)", "CREATE TABLE b (id int PRIMARY KEY)")
    source.execute("ALTER PUBLICATION p ADD TABLE a")
    with source.connect() as writer, source.capturing():
        wait_until(lambda: _copied(source) == ["a"])
        writer.execute("BEGIN")
        writer.execute("INSERT INTO a VALUES (1)")  # it has an xid before b is published, and writes b then, too
        writer.execute("INSERT INTO b VALUES (1)")
        publisher = threading.Thread(target=source.execute, args=("ALTER PUBLICATION p SET TABLE a, b",))
        publisher.start()
        publisher.join(2)
        assert _copied(source) == ["a"]
        writer.execute("COMMIT")
        publisher.join(30)
        wait_until(lambda: _copied(source) == ["a", "b"])
    source.capture()
    source.check({"a": "id", "b": "id"})


def _when_the_slot_is_there(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
    """Do something between the creation of the slot and the first copy."""
    create = create_slot_with_snapshot

    def create_and_act(*arguments: Any, **options: Any) -> ExportedSnapshot:
        exported = create(*arguments, **options)
        action()
        return exported

    monkeypatch.setattr(preparation, "create_slot_with_snapshot", create_and_act)


def _capture_as(source: Source, dsn: str) -> None:
    from pgoutput_construct.postgres import capture

    given = {"create_slot": True, "snapshot": True, "until_idle": 0.1, "handle_signals": False}
    capture(dsn, f"slot_{source.dbname}", ["p"], source.directory, **given)  # type: ignore[arg-type]


def _copied(source: Source) -> list[str]:
    if not list(source.directory.glob("segment*")):
        return []
    return [copy.name for copy in copies_of(ChangeLog(source.directory).index)]


def _confirmed(source: Source) -> int:
    query = "SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots WHERE slot_name = %s"
    with source.connect() as connection:
        row = connection.execute(query, [f"slot_{source.dbname}"]).fetchone()
    return int(row[0] or 0) if row else 0  # NULL while it is created
