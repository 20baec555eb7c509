"""Strategies of scenarios: streams that mean something, and what the tables must hold behind them."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

from hypothesis import strategies as st

from pgoutput_construct.stream.transaction_reader import ABORTED, COMMITTED, ROLLED_BACK
from pgoutput_construct.testing.scenario_alterations import Alteration, alteration, trigger
from pgoutput_construct.testing.scenario_changes import ScenarioChanges
from pgoutput_construct.testing.scenario_model import Level, Running
from pgoutput_construct.testing.scenario_tables import Row, ScenarioTable, create_types
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.protocol import StreamStartFirstSegment
from pgoutput_construct.wire.types import Lsn, Timestamp

__all__ = ["Outcome", "Scenario", "scenarios"]

_LONGEST: Final = 10
"""Steps of a scenario, before what is open then comes to its end."""


class Outcome(NamedTuple):
    """How a transaction ended, in the words of ``stream.logged``."""

    xid: int
    gid: str | None
    outcome: str
    commit_lsn: Lsn
    end_lsn: Lsn
    time: Timestamp


@dataclass(frozen=True)
class Scenario:
    """A stream, and what it means."""

    number: int
    """What tells it from others: its OIDs, xids, positions and times are between those of its neighbours."""
    first: tuple[ScenarioTable, ...]
    """Its tables as they are in the beginning, in a schema of their own; one has what the others are altered with."""
    tables: tuple[ScenarioTable, ...]
    """Its tables as they are in the end."""
    sent: tuple[tuple[Lsn, m.PgoutputMessage], ...]
    """Each message, and its position in the WAL, in the order of the stream."""
    rows: dict[str, list[Row]]
    """By table, as it is called in the end: the rows that it must hold then."""
    outcomes: tuple[Outcome, ...]
    """How the transactions ended, in the order of their ends."""
    said: tuple[str, ...]
    """What those that committed say besides changes: names of origins, and prefixes and contents of messages."""
    alterations: tuple[tuple[int, Alteration], ...]
    """What the tables are altered with, each with how many messages there are up to its commit."""

    @property
    def end(self) -> Lsn:
        """The position behind it."""
        return max(outcome.end_lsn for outcome in self.outcomes)

    @property
    def definitions(self) -> list[str]:
        """The statements that create its tables as they are in the beginning; they follow alterations by a trigger."""
        tables = [table.definition for table in self.first]
        return [create_types(self.number), *tables, trigger(self.first[-1])]

    @cached_property
    def counts(self) -> Counter[str]:
        """How many messages of each kind it has."""
        return Counter(type(message).__name__ for _, message in self.sent)


@st.composite
def scenarios(draw: st.DrawFn, number: int = 0) -> Scenario:
    """Return scenarios, which a server that streams in parallel and in two phases could send from the start of a slot.

    Rows of tables with and without a key, with each replica identity, are inserted, updated (with TOASTed values left
    out, and with new keys), deleted and truncated, in transactions that are plain, streamed and interleaved, with
    subtransactions that are released and rolled back, prepared, and committed or rolled back. Tables get other replica
    identities, and are altered: columns are added, renamed, dropped and get other types, tables are renamed, and names
    go from one to another. PostgreSQL replicates no ALTER TABLE: the statements come in rows of another table, which
    the trigger that ``Scenario.definitions`` creates at a subscriber runs. The messages are those of a stream under
    ``proto_version`` 4 and ``streaming`` parallel; ``pgoutput_construct.publisher`` serves them to clients that ask for
    something else, too.

    Args:
        number: Scenarios of several numbers, in their order, are one stream.
    """
    machine = _Machine(draw, number)
    for _ in range(draw(st.integers(2, _LONGEST))):
        draw(st.sampled_from(machine.steps()))()
    machine.finish()
    tables = *machine.tables, machine.statements
    rows = {table.name: machine.model.rows[table.oid] for table in tables}
    ended = tuple(machine.outcomes), tuple(machine.said), tuple(machine.alterations)
    return Scenario(number, machine.first, tables, tuple(machine.sent), rows, *ended)


class _Machine(ScenarioChanges):
    """Takes steps, each of which leaves the stream where any other may follow."""

    def __init__(self, draw: st.DrawFn, number: int) -> None:
        super().__init__(draw, number)
        self.first = *self.tables, self.statements
        self.alterations: list[tuple[int, Alteration]] = []
        self.open: list[Running] = []
        self.prepared: list[Running] = []
        self.outcomes: list[Outcome] = []
        self.said: list[str] = []

    def steps(self) -> list[Callable[[], None]]:
        """Return what can happen next."""
        steps = [self.transaction, self.transaction, self.segment, self.prepare, self.message_outside]
        if any(self.model.is_free(table, None, whole=True) for table in self.tables):
            steps += [self.alter_table, self.alter_table]
        if self.open:
            steps += [self.segment, self.segment, self.end_stream]
        if any(each.levels for each in self.open):
            steps += [self.roll_back_to, self.roll_back_to]
        return steps + [self.end_prepared] * bool(self.prepared)

    def finish(self) -> None:
        """Bring what has no outcome to its end, and commit once more, so that there is one."""
        while self.open:
            self.end_stream()
        while self.prepared:
            self.end_prepared()
        self.transaction()

    def transaction(self, alteration: Alteration | None = None) -> None:
        """Send a transaction that has committed, from another origin now and then, and that may alter a table."""
        running = self.begin()
        changes = self.collected(running, alteration)
        record = self.record("commit")
        lsn = record["commit_lsn"]
        self.send(lsn, m.Begin(final_lsn=lsn, commit_time=record["commit_time"], xid=running.xid))
        if self.draw(st.integers(0, 5)) == 5:
            self.send(Lsn(0), m.Origin(origin_lsn=lsn, name="elsewhere"))
            running.said.insert(0, "elsewhere")
        self.sent += changes
        self.send(record["end_lsn"], m.Commit(**record))
        self.commit(running, None, record)

    def prepare(self) -> None:
        """Send a transaction that was prepared."""
        running = self.begin()
        changes = self.collected(running)
        self.say_prepared(running)
        self.send(running.prepare["prepare_lsn"], m.BeginPrepare(**running.prepare))
        self.sent += changes
        self.send(running.prepare["end_lsn"], m.Prepare(**running.prepare))

    def say_prepared(self, running: Running) -> None:
        numbers = self.record("prepare")
        running.prepare = numbers | {"xid": running.xid, "gid": f"gid {running.xid}"}
        self.prepared.append(running)
        if running not in self.model.running:
            self.model.running.append(running)

    def end_prepared(self) -> None:
        """Commit what was prepared, or roll it back."""
        running = self.taken(self.prepared)
        names = {"xid": running.xid, "gid": running.prepare["gid"]}
        record = self.record("commit")
        if self.draw(st.integers(0, 2)) < 2:
            self.send(record["end_lsn"], m.CommitPrepared(**record, **names))
            return self.commit(running, names["gid"], record)
        lsn, end, time = running.prepare["end_lsn"], record["end_lsn"], record["commit_time"]
        times = {"prepare_time": running.prepare["prepare_time"], "rollback_time": time}
        self.send(end, m.RollbackPrepared(prepare_end_lsn=lsn, rollback_end_lsn=end, **times, **names))
        self.outcomes.append(Outcome(running.xid, names["gid"], ROLLED_BACK, lsn, end, time))
        return self.model.end(running)

    def segment(self) -> None:
        """Send a segment of a streamed transaction, the first one of a new one now and then."""
        running = self.draw(st.sampled_from([None, *self.open]))
        is_first = running is None
        if running is None:
            running = self.begin()
            self.open.append(running)
            self.model.running.append(running)
        first = StreamStartFirstSegment.FIRST_SEGMENT if is_first else StreamStartFirstSegment.LATER_SEGMENT
        self.send(Lsn(0), m.StreamStart(xid=running.xid, first_segment=int(first)))
        for _ in range(self.draw(st.integers(1, 3))):
            self.enter_or_leave(running)
            self.changes(running, running.described, in_stream=True)
        self.send(Lsn(0), m.StreamStop())

    def enter_or_leave(self, running: Running) -> None:
        """Set a savepoint, release one, or go on."""
        what = self.draw(st.integers(0, 3))
        if what == 1 and running.levels:
            running.release()
        elif what > 1 and len(running.levels) < 3:
            running.levels.append(Level(self.next_xid()))

    def roll_back_to(self) -> None:
        """Roll a subtransaction back, and with it those inside it."""
        running = self.draw(st.sampled_from([each for each in self.open if each.levels]))
        for subxid in running.roll_back():
            self.abort(running.xid, subxid)
        running.described.clear()  # PostgreSQL describes the tables again (cleanup_rel_sync_cache())

    def end_stream(self) -> None:
        """Commit, prepare or abort a streamed transaction."""
        running = self.taken(self.open)
        what = self.draw(st.integers(0, 3))
        if what == 3:
            lsn, time = self.abort(running.xid, running.xid)
            self.outcomes.append(Outcome(running.xid, None, ABORTED, lsn, lsn, time))
            self.model.end(running)
        elif what == 2:
            self.say_prepared(running)
            self.send(running.prepare["end_lsn"], m.StreamPrepare(**running.prepare))
        else:
            record = self.record("commit")
            self.send(record["end_lsn"], m.StreamCommit(xid=running.xid, **record))
            self.described |= running.described
            self.commit(running, None, record)

    def abort(self, xid: int, subxid: int) -> tuple[Lsn, Timestamp]:
        lsn, time = self.next_lsn(), self.time()
        self.send(lsn, m.StreamAbort(xid=xid, subxid=subxid, abort_lsn=lsn, abort_time=time))
        return lsn, time

    def commit(self, running: Running, gid: str | None, record: dict[str, Any]) -> None:
        numbers = record["commit_lsn"], record["end_lsn"], record["commit_time"]
        self.outcomes.append(Outcome(running.xid, gid, COMMITTED, *numbers))
        self.said += running.said
        self.model.commit(running)

    def message_outside(self) -> None:
        """Send a message of pg_logical_emit_message() that waits for no commit."""
        lsn = self.next_lsn()
        self.send(lsn, m.Message(flags=0, lsn=lsn, prefix="outside", content=b"\0"))

    def alter_table(self) -> None:
        """Alter a table that nobody uses, or change its replica identity, which needs no statement."""
        table = self.draw(st.sampled_from([each for each in self.tables if self.model.is_free(each, None, whole=True)]))
        if table.primary_key and self.draw(st.integers(0, 5)) == 5:
            other = table.with_other_identity()
            self.tables = [other if each is table else each for each in self.tables]
            self.described.discard(table.oid)
            return
        found = alteration(self.draw, table, (each.name for each in self.tables))
        self.transaction(found)
        self.alterations.append((len(self.sent), found))
