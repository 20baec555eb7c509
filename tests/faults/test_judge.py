"""The judge can fail: a log that was tampered with is found out, each way by its own name."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Any

import pytest

from pgoutput_construct.changelog import ChangeLog, LogEntry
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import SegmentLimits, capture, create_slot, current_lsn, drop_slot
from pgoutput_construct.wire import (
    Begin,
    BeginPrepare,
    Commit,
    CommitPrepared,
    Insert,
    Message,
    Prepare,
    Relation,
    RollbackPrepared,
    StreamAbort,
    build,
    parse,
)
from tests.postgres.shop import wait_until
from tools.faults.contents import read_contents
from tools.faults.judge import Verdict, judge
from tools.faults.witness import PUBLICATION, Witness, create_tables, read_witness

pytestmark = pytest.mark.server

ROWS = "INSERT INTO item SELECT nextval('marks'), nextval('marks'), 'x', g FROM generate_series(1, {}) g"
TICKET = "UPDATE ticket SET mark = mark + 1 WHERE id = 1"
NOTE = """WITH said AS (INSERT INTO witness (op, relation, new) VALUES ('note', '', '{"mark": "1"}') RETURNING op)
          SELECT pg_logical_emit_message(false, 'faults-note', '1') FROM said"""
TAKE_BACK = "ROLLBACK TO s"
WORKLOAD = (
    ("BEGIN", ROWS.format(3), TICKET, "COMMIT"),
    ("BEGIN", "UPDATE item SET id = id + 1000000", TICKET, NOTE, "COMMIT"),
    ("BEGIN", ROWS.format(500), "SAVEPOINT s", ROWS.format(500), TAKE_BACK, ROWS.format(500), "COMMIT"),
    ("BEGIN", ROWS.format(2), "PREPARE TRANSACTION 'g'", "ROLLBACK PREPARED 'g'"),
    ("BEGIN", ROWS.format(1), "ROLLBACK"),
    ("BEGIN", "DELETE FROM item WHERE id > 1000000", "TRUNCATE emptied", "COMMIT"),
)
SLOT = "faults_judge"


@dataclass(frozen=True)
class Evidence:
    """A log that says the truth, and the truth."""

    entries: tuple[LogEntry, ...]
    layout: dict[str, Any]
    witness: Witness

    def judge(self, entries: Any) -> Verdict:
        """Judge other entries in their place, numbered anew."""
        renumbered = (entry._replace(seq=seq) for seq, entry in enumerate(entries))
        return judge(read_contents(renumbered, {entry.segment: self.layout for entry in self.entries}), self.witness)

    def messages(self) -> Iterator[tuple[int, Any]]:
        """Parse them, each with its place."""
        for place, entry in enumerate(self.entries):
            yield place, parse(entry.payload, **self.layout, **entry.states)

    def places(self, cls: type) -> list[int]:
        """Find the messages of a class."""
        return [place for place, message in self.messages() if isinstance(message, cls)]

    def replaced(self, place: int, message: Any) -> list[LogEntry]:
        """Put another message in a place."""
        entry = self.entries[place]
        built = entry._replace(payload=build(message, **self.layout, **entry.states))
        return [*self.entries[:place], built, *self.entries[place + 1 :]]

    def without(self, first: int, last: int) -> list[LogEntry]:
        """Leave entries out, but for those that describe tables to later ones."""
        kept = [place for place in self.places(Relation) if first <= place <= last]
        return [*self.entries[:first], *(self.entries[place] for place in kept), *self.entries[last + 1 :]]


@pytest.fixture(scope="module")
def evidence(attacked18: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """A small workload, captured without any fault."""
    directory = tmp_path_factory.mktemp("judge") / "log"
    with attacked18.connect() as admin:
        admin.execute("CREATE DATABASE judge")
    with attacked18.connect(dbname="judge") as connection, ThreadPoolExecutor(1) as pool:
        create_tables(connection)
        create_slot(connection, SLOT, two_phase=True)
        options: Any = {"two_phase": True, "messages": True, "new_log": True}
        run = partial(capture, connection.info.dsn, SLOT, [PUBLICATION], directory, **options)
        done = Event()
        running = pool.submit(run, limits=SegmentLimits(seconds=0.05), stop=done.is_set)
        try:
            for statement in (statement for transaction in WORKLOAD for statement in transaction):
                if statement == TAKE_BACK:
                    # PostgreSQL 18 sends nothing of a savepoint that it knows to be rolled back.
                    wait_until(lambda: any(directory.glob("segment-*")) and len(ChangeLog(directory)) > 700)
                connection.execute(statement.encode())
        finally:
            done.set()
        running.result()
        run(until_lsn=current_lsn(connection))
        witness = read_witness(connection, messages=True)
        drop_slot(connection, SLOT)
    log = ChangeLog(directory)
    return Evidence(tuple(log.entries()), log.options.layout(), witness)


def test_the_truth(evidence: Evidence) -> None:
    """An unmodified log passes, and there was something to compare."""
    assert evidence.judge(evidence.entries) == Verdict()
    assert len(evidence.witness.transactions) == 4 and evidence.witness.changes == 1012


def test_a_transaction_dropped(evidence: Evidence) -> None:
    """All of its changes are lost."""
    begin, commit = evidence.places(Begin)[0], evidence.places(Commit)[0]
    verdict = evidence.judge(evidence.without(begin, commit))
    assert (verdict.lost, verdict.repeated, verdict.visible) == (4, 0, 0)


def test_a_change_dropped(evidence: Evidence) -> None:
    """One of many is lost."""
    verdict = evidence.judge(evidence.without(evidence.places(Insert)[1], evidence.places(Insert)[1]))
    assert (verdict.lost, verdict.repeated, verdict.visible) == (1, 0, 0)


def test_a_transaction_repeated(evidence: Evidence) -> None:
    """All of its changes occur twice, and its commit follows a later one."""
    begin, commit = evidence.places(Begin)[0], evidence.places(Commit)[0]
    verdict = evidence.judge([*evidence.entries, *evidence.entries[begin : commit + 1]])
    assert (verdict.lost, verdict.repeated, verdict.visible) == (0, 4, 0)
    assert verdict.misordered


def test_a_change_repeated(evidence: Evidence) -> None:
    """The same row inserted twice."""
    place = evidence.places(Insert)[1]
    verdict = evidence.judge(
        [*evidence.entries[:place], *evidence.entries[place - 1 : place], *evidence.entries[place:]]
    )
    assert (verdict.lost, verdict.repeated, verdict.visible) == (0, 1, 0)


def test_a_subtransaction_shown_that_was_rolled_back(evidence: Evidence) -> None:
    """Without its Stream Abort the rows of a savepoint that was rolled back look committed."""
    (abort,) = evidence.places(StreamAbort)
    verdict = evidence.judge(evidence.without(abort, abort))
    assert (verdict.lost, verdict.repeated) == (0, 0) and verdict.visible > 100


def test_a_prepared_transaction_shown_that_was_rolled_back(evidence: Evidence) -> None:
    """A Commit Prepared in the place of a Rollback Prepared."""
    (place,) = evidence.places(RollbackPrepared)
    end = dict(evidence.messages())[place]
    commit = CommitPrepared(end.rollback_end_lsn, end.rollback_end_lsn, end.rollback_time, end.xid, end.gid)
    verdict = evidence.judge(evidence.replaced(place, commit))
    assert (verdict.lost, verdict.repeated, verdict.visible) == (0, 0, 2)
    assert len(evidence.places(BeginPrepare)) == len(evidence.places(Prepare)) == 1


def test_another_order(evidence: Evidence) -> None:
    """Two changes of one transaction, and two transactions, in each other's place."""
    entries, one, other = list(evidence.entries), *evidence.places(Insert)[:2]
    entries[one], entries[other] = entries[other], entries[one]
    assert evidence.judge(entries) == Verdict(misordered=1, problems=evidence.judge(entries).problems)
    second, third = (evidence.places(Begin)[place] for place in (1, 2))
    moved = [*evidence.entries[:second], *evidence.entries[third:], *evidence.entries[second:third]]
    assert evidence.judge(moved).misordered


def test_a_value_altered(evidence: Evidence) -> None:
    """One byte of one value."""
    place = evidence.places(Insert)[0]
    insert = dict(evidence.messages())[place]
    verdict = evidence.judge(
        evidence.replaced(place, Insert(insert.xid, insert.relation_oid, (*insert.new[:2], b"y", b"1")))
    )
    assert verdict.altered == 1 and not verdict.lost


def test_a_message_outside_of_transactions(evidence: Evidence) -> None:
    """Lost, and repeated."""
    (place,) = evidence.places(Message)
    assert evidence.judge(evidence.without(place, place)).lost == 1
    assert evidence.judge([*evidence.entries, evidence.entries[place]]).repeated == 1
