"""When a table copy is complete: once the log has all commits that it may contain, and records which it contains."""

import random
import threading
import time

import numpy as np
import pytest

from pgoutput_construct.changelog._facts.copies import TableCopy, copies_of
from pgoutput_construct.changelog._index.planning import committed_transactions
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex
from pgoutput_construct.postgres import snapshot
from pgoutput_construct.postgres._snapshot import copier
from pgoutput_construct.postgres._snapshot.snapshots import sees_until
from pgoutput_construct.postgres.connection import Connection, current_lsn
from pgoutput_construct.wire import Lsn
from tests.postgres.copying.conftest import Source
from tests.postgres.shop import wait_until
from tools.background import in_background

pytestmark = pytest.mark.server

_ROWS = "CREATE TABLE a (id int PRIMARY KEY, v int); INSERT INTO a SELECT g, g FROM generate_series(1, 2000) g"
_WAL = "SELECT count(pg_logical_emit_message(false, 'test', repeat('x', 100000))) FROM generate_series(1, 30)"
_AHEAD = 2**21  # bytes


@pytest.mark.parametrize("two_phase", [pytest.param(False, marks=pytest.mark.long), True])
def test_the_event_of_a_copy_has_its_visibility(source: Source, two_phase: bool) -> None:
    """Of all commits among which copies are made: prepared, streamed, asynchronous, of many savepoints."""
    if two_phase and source.version < 15:
        pytest.skip("slots have two phases from PostgreSQL 15 on")
    source.execute(_ROWS, "CREATE TABLE b (id serial PRIMARY KEY, v text)", "ALTER PUBLICATION p ADD TABLE a, b")

    def write(seed: int, connection: Connection) -> None:
        chance, gid = random.Random(f"{seed}"), f"{source.dbname} {seed}"
        rows = 600 if chance.random() < 0.03 else 1
        connection.execute("BEGIN")
        connection.execute(f"SET LOCAL synchronous_commit = {chance.choice(('off', 'on'))}".encode())
        connection.execute("UPDATE a SET v = v + 1 WHERE id = %s", [chance.randrange(1, 2000)])
        connection.execute("SAVEPOINT s")
        connection.execute("INSERT INTO b (v) SELECT repeat('b', 100) FROM generate_series(1, %s)", [rows])
        connection.execute(chance.choice((b"ROLLBACK TO s", b"RELEASE s")))
        if chance.random() < 0.3:
            connection.execute(f"PREPARE TRANSACTION '{gid}'".encode())
            connection.execute(f"COMMIT PREPARED '{gid}'".encode())
        else:
            connection.execute(chance.choice((b"COMMIT", b"COMMIT", b"ROLLBACK")))

    def write_all(done: threading.Event, first: int) -> None:
        with source.connect() as connection:
            connection.execute("SET logical_decoding_work_mem = '64kB'")
            for number in range(first, 10**9, 10):
                write(number, connection)
                if done.wait(0.02):
                    return

    options = {"two_phase": True} if two_phase else {}
    with (
        in_background(
            lambda done: write_all(done, 1), lambda done: write_all(done, 2), lambda done: write_all(done, 3)
        ),
        source.capturing(**options),
    ):
        wait_until(lambda: len(_copies(source)) == 2)
        for _ in range(3):
            snapshot(source.dsn, source.directory, ["a", "b"], handle_signals=False)
    source.capture(**options)
    index = source.log().index
    transactions = committed_transactions(index.transactions)
    seqs, lsns, xids = (transactions[name].to_numpy() for name in ("seq", "commit_lsn", "xid"))
    copies = list(copies_of(index))
    assert len(copies) == 8
    among = 0
    for copy in copies:
        # By PostgreSQL's own definition; these xids do not wrap around.
        seen = copy.snapshot
        expected = (xids >= seen.xmax) | np.isin(xids, np.array(seen.xip, np.int64))
        assert (copy.visibility.adds(lsns, xids) == expected).all()
        assert (seqs[lsns < copy.visibility.sees_until] < copy.seq).all()
        among += int(expected.any() and not expected.all())
    assert among >= 6
    source.check({"a": "id v", "b": "id v"})


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies that see commits up to an LSN that the server has not written yet."""
    monkeypatch.setattr(copier, "sees_until", lambda connection: Lsn(sees_until(connection) + _AHEAD))


def test_a_copy_waits_for_the_stream(source: Source, ahead: None) -> None:
    """All its rows are in the log, and the table is not copied until all commits that it may contain are there."""
    source.execute(_ROWS)
    source.capture()
    source.execute("ALTER PUBLICATION p ADD TABLE a")
    with source.capturing(), source.connect() as connection:
        wait_until(lambda: _rows(source) == 2000)
        time.sleep(1)
        source.execute("UPDATE a SET v = 0 WHERE id = 1")
        assert not _copies(source)
        connection.execute(_WAL.encode())
        wait_until(lambda: bool(_copies(source)))
    source.capture()
    (copy,) = _copies(source)
    assert copy.visibility.place_lsn < copy.visibility.sees_until and not copy.visibility.contained
    source.check({"a": "id v"})


def test_a_capture_that_ends_before_the_copy_is_complete(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of a copy that did not become complete count nothing: the next capture makes another one."""
    source.execute(_ROWS)
    source.capture()
    source.execute("ALTER PUBLICATION p ADD TABLE a")
    with monkeypatch.context() as patched:
        patched.setattr(copier, "sees_until", lambda connection: Lsn(sees_until(connection) + _AHEAD))
        with source.capturing():
            wait_until(lambda: _rows(source) == 2000)
    assert not _copies(source)
    source.execute("DELETE FROM a WHERE id = 7")
    source.capture()
    (copy,) = _copies(source)
    assert (copy.rows, copy.first_chunk > 0, _rows(source)) == (1999, True, 3999)
    source.check({"a": "id v"})


def test_sees_until_after_a_wal_page_header(source: Source) -> None:
    """An idle server's insert LSN is after the header, which no stream ever reaches."""
    with source.connect() as connection:

        def is_idle_there() -> bool:
            connection.execute("SELECT pg_switch_wal()")
            row = connection.execute("SELECT pg_current_wal_insert_lsn() > pg_current_wal_flush_lsn()").fetchone()
            return row == (True,) and _is_reached(connection)

        wait_until(is_idle_there)


def _is_reached(connection: Connection) -> bool:
    until = sees_until(connection)
    inserted = connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
    return inserted is not None and until < int(inserted[0]) and current_lsn(connection) >= until


def _rows(source: Source) -> int:
    index = _index(source)
    return 0 if index is None else sum(row["rows"] for row in index.entries("snapshots").to_pylist())


def _copies(source: Source) -> list[TableCopy]:
    index = _index(source)
    return [] if index is None else list(copies_of(index))


def _index(source: Source) -> SegmentIndex | None:
    return source.log().index if list(source.directory.glob("segment*")) else None
