"""What a server sends again after a client, or the server itself, was disconnected."""

import itertools
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from tests.live.capture import (
    EACH_VERSION,
    MODES,
    SERVER_SETTINGS,
    UNASKED,
    Capture,
    Mode,
    drop_slot,
    emit_marker,
    wait_for,
)
from tests.live.items import Item, items
from tests.live.recording import Recording, record_all
from tools.servers import open_server

pytestmark = pytest.mark.server

SCHEMA = (
    "CREATE TABLE t (id int PRIMARY KEY, v text)",
    "CREATE TABLE filler (line text)",
    "CREATE PUBLICATION pub FOR TABLE t",
)
FILL = "INSERT INTO filler SELECT repeat('x', 1000) FROM generate_series(1, 100)"
MODE = {mode.name: mode for mode in MODES + UNASKED}
NUMBERS = itertools.count()


class Bench:
    """A slot on a small database, read again and again by clients that go away."""

    def __init__(self, server: EmbeddedServer, mode: Mode) -> None:
        self.server, self.mode, number = server, mode, next(NUMBERS)
        self.database, self.slot = f"bench_{number}", f"bench_{number}"
        self.run(f"CREATE DATABASE {self.database}", dbname="postgres")
        self.run(*SCHEMA)
        create = "SELECT pg_create_logical_replication_slot('{}', 'pgoutput', false, {})"
        self.run(create.format(self.slot, mode.two_phase))

    def run(self, *statements: str, dbname: str | None = None) -> None:
        """Run statements on a connection of their own."""
        with self.server.connect(dbname=dbname or self.database) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def read(self, confirm: int | None = None) -> tuple[bytes, ...]:
        """Connect, read everything, confirm a position, and hang up."""
        with self.server.connect(dbname=self.database) as connection:
            with closing(Capture(self.server.dsn, self.mode, self.slot, self.database, ["pub"])) as capture:
                marker = f"bench {next(NUMBERS)}".encode()
                emit_marker(connection, marker)
                wait_for([capture], marker)
                if confirm is not None:
                    capture.send(pgo.build_frame(_status(confirm)))
                    self._wait_until(connection, f"confirmed_flush_lsn >= '{pgo.Lsn(confirm)}'")
            # The server notices a hang-up a little later; till then it refuses the next connection to the slot.
            self._wait_until(connection, "NOT active")
        return capture.payloads

    def messages(self) -> list[Any]:
        """Read everything and parse it, without the markers."""
        return [item.message for item in self.parse(self.read()) if item.kind != "M"]

    def parse(self, payloads: tuple[bytes, ...]) -> list[Item]:
        """Parse what one connection brought."""
        return list(items(Recording(self.server.version, self.mode, payloads)))

    def _wait_until(self, connection: Any, condition: str) -> None:
        query = f"SELECT {condition} FROM pg_replication_slots WHERE slot_name = '{self.slot}'"
        for _ in range(1000):
            if connection.execute(query.encode()).fetchone()[0]:
                return
            connection.execute("SELECT pg_sleep(0.01)")
        raise TimeoutError(f"{self.slot} never reached: {condition}")

    def close(self) -> None:
        """Drop the slot and the database."""
        with self.server.connect() as admin:
            drop_slot(admin, self.slot)
            admin.execute(f"DROP DATABASE {self.database} WITH (FORCE)".encode())


def _status(lsn: int) -> Any:
    return pgo.StandbyStatusUpdate(
        write_lsn=pgo.Lsn(lsn),
        flush_lsn=pgo.Lsn(lsn),
        apply_lsn=pgo.Lsn(0),
        send_time=pgo.Timestamp(0),
        reply_requested=0,
    )


def _names(messages: list[Any]) -> list[str]:
    return [type(message).__name__ for message in messages]


@pytest.fixture
def bench(server: EmbeddedServer, request: pytest.FixtureRequest) -> Iterator[Bench]:
    """A slot in the mode that the test names."""
    with closing(Bench(server, MODE[request.param])) as made:
        yield made


@pytest.fixture(scope="module", params=EACH_VERSION, ids="pg{}".format)
def mortal(request: pytest.FixtureRequest) -> Iterator[EmbeddedServer]:
    """A server that tests may stop or kill."""
    with open_server(request.param, SERVER_SETTINGS) as server:
        yield server


def mode(name: str) -> pytest.MarkDecorator:
    """Choose the bench's mode."""
    return pytest.mark.parametrize("bench", [name], indirect=True)


@mode("v1-text")
def test_unconfirmed_changes_are_sent_again(bench: Bench) -> None:
    """The second connection begins with all that the first one got, descriptions included."""
    bench.run("INSERT INTO t VALUES (1)", "UPDATE t SET v = 'a'")
    first = bench.read()
    bench.run("DELETE FROM t")
    again = bench.read()
    assert again[: len(first)] == first
    assert b"".join(payload[:1] for payload in first) == b"BRICBUCM"


@mode("v1-text")
def test_only_the_end_of_a_commit_confirms_it(bench: Bench) -> None:
    """A transaction comes again after its commit_lsn was confirmed, and not after its end_lsn."""
    bench.run("INSERT INTO t VALUES (1)")
    commit = bench.messages()[-1]
    bench.read(confirm=commit.commit_lsn)
    assert _names(bench.messages()) == ["Begin", "Relation", "Insert", "Commit"]
    bench.read(confirm=commit.end_lsn)
    assert bench.messages() == []


@mode("v4-text")
def test_a_confirmed_prepare_leaves_only_its_outcome(bench: Bench) -> None:
    """After a prepare was confirmed, the next connection gets no more than how it ended."""
    bench.run("BEGIN", "INSERT INTO t VALUES (1)", "PREPARE TRANSACTION 'one'")
    bench.run("BEGIN", "INSERT INTO t VALUES (2)", "PREPARE TRANSACTION 'two'")
    messages = bench.messages()
    assert _names(messages) == [
        "BeginPrepare",
        "Relation",
        "Insert",
        "Prepare",
        "BeginPrepare",
        "Insert",
        "Prepare",
    ]
    bench.read(confirm=messages[-1].end_lsn)
    bench.run("ROLLBACK PREPARED 'two'", "COMMIT PREPARED 'one'")
    rollback, commit = bench.messages()
    assert (rollback.gid, rollback.prepare_end_lsn) == ("two", messages[-1].end_lsn)
    assert (commit.gid, commit.xid) == ("one", messages[0].xid)


@mode("v2-text")
def test_an_open_stream_is_sent_from_its_first_segment(bench: Bench) -> None:
    """A stream that was cut off starts over, with its first segment."""
    with bench.server.connect(dbname=bench.database) as writer, writer.transaction():
        writer.execute("INSERT INTO t VALUES (1)")
        writer.execute(FILL.encode())
        assert _names(bench.messages()) == ["StreamStart", "Relation", "Insert", "StreamStop"]
        start, *rest = bench.messages()
        assert (start.first_segment, _names(rest)) == (1, ["Relation", "Insert", "StreamStop"])
    again = bench.messages()
    assert (again[0].first_segment, _names(again)[-1]) == (1, "StreamCommit")
    assert {message.first_segment for message in again[1:] if isinstance(message, pgo.StreamStart)} == {0}


@mode("v1-two-phase")
def test_a_two_phase_slot_sends_prepares_in_version_1(bench: Bench) -> None:
    """Two-phase commit belongs to the slot: neither the option nor version 3 is needed for its messages."""
    bench.run("BEGIN", "INSERT INTO t VALUES (1)", "PREPARE TRANSACTION 'one'", "COMMIT PREPARED 'one'")
    bench.run("BEGIN", "INSERT INTO t VALUES (2)", "PREPARE TRANSACTION 'two'", "ROLLBACK PREPARED 'two'")
    assert b"".join(payload[:1] for payload in bench.read()) == b"bRIPKbIPrM"


@mode("v2-two-phase")
def test_a_two_phase_slot_sends_stream_prepare_in_version_2(bench: Bench) -> None:
    """A streamed transaction too."""
    bench.run("BEGIN", "INSERT INTO t VALUES (1)", FILL, "PREPARE TRANSACTION 'one'", "COMMIT PREPARED 'one'")
    kinds = b"".join(payload[:1] for payload in bench.read())
    assert (kinds[:4], kinds[-3:]) == (b"SRIE", b"pKM")


@pytest.mark.parametrize("unasked", UNASKED, ids=lambda unasked: unasked.name)
def test_unasked_two_phase_messages_are_accepted(server: EmbeddedServer, unasked: Mode) -> None:
    """Their bytes are those of version 3, in the older version that they come in too."""
    recording = record_all(server, [unasked])[unasked.name]
    two_phase = [payload for payload in recording.payloads if payload[:1] in b"bPKrp"]
    assert {payload[:1] for payload in two_phase} >= {b"K", b"r"}
    for payload in two_phase:
        message = pgo.parse(payload, unasked.proto_version, unasked.streaming)
        assert message == pgo.parse(payload, 3, unasked.streaming)
        assert pgo.build(message, unasked.proto_version, unasked.streaming) == payload


@pytest.mark.differs_by_version
def test_unconfirmed_changes_are_sent_again_after_a_restart(mortal: EmbeddedServer) -> None:
    """What was not confirmed comes again; up to PostgreSQL 16 even what was."""
    with closing(Bench(mortal, MODE["v1-text"])) as bench:
        bench.run("INSERT INTO t VALUES (1)")
        bench.read(confirm=bench.messages()[-1].end_lsn)
        bench.run("INSERT INTO t VALUES (2)")
        before = bench.messages()
        mortal.restart()
        after = bench.messages()
        assert _names(before) == ["Begin", "Relation", "Insert", "Commit"]
        # Since 17 the checkpoint of a shutdown saves a slot of which only the confirmed position is new.
        if mortal.version >= 17:
            assert after == before
        else:
            assert _names(after) == ["Begin", "Relation", "Insert", "Commit", "Begin", "Insert", "Commit"]
            assert after[-1] == before[-1]


def test_a_crash_resets_the_confirmed_lsn(mortal: EmbeddedServer) -> None:
    """The confirmed position is kept in memory until the slot is saved: a crash sends transactions again."""
    with closing(Bench(mortal, MODE["v1-text"])) as bench:
        bench.run("INSERT INTO t VALUES (1)")
        before = bench.messages()
        bench.read(confirm=before[-1].end_lsn)
        assert bench.messages() == []
        mortal.kill()
        mortal.start()
        assert bench.messages() == before


@pytest.mark.differs_by_version
def test_a_transaction_lost_in_a_crash(mortal: EmbeddedServer) -> None:
    """Nobody logged its end: 16 streams it and takes it back without position and time, 18 sends nothing."""
    with closing(Bench(mortal, MODE["v4-text"])) as bench:
        writer = mortal.connect(dbname=bench.database)
        writer.execute("BEGIN")
        writer.execute("INSERT INTO t VALUES (1)")
        writer.execute(FILL.encode())
        before = bench.messages()
        assert _names(before) == ["StreamStart", "Relation", "Insert", "StreamStop"]
        mortal.kill()
        mortal.start()
        # A list of running transactions shows the decoder that this one has ended; a checkpoint logs one.
        bench.run("CHECKPOINT")
        after = bench.messages()
        if mortal.version >= 18:
            assert after == []
        else:
            # Looking up the table finds the transaction aborted: its stream stays empty.
            xid = before[0].xid
            assert _names(after) == ["StreamStart", "StreamStop", "StreamAbort"]
            assert after[-1] == pgo.StreamAbort(xid=xid, subxid=xid, abort_lsn=pgo.Lsn(0), abort_time=pgo.Timestamp(0))
