"""Strategies of scenarios: streams together with the tables that must result from them."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

from hypothesis import strategies as st

from pgoutput_construct.stream.transaction_reader import ABORTED, COMMITTED, ROLLED_BACK
from pgoutput_construct.testing.scenario_alterations import Alteration, alteration, trigger
from pgoutput_construct.testing.scenario_changes import ScenarioChanges
from pgoutput_construct.testing.scenario_model import Running, Subtransaction
from pgoutput_construct.testing.scenario_tables import Row, ScenarioTable, create_types
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.messages import PgoutputMessage  # noqa: TC001 - typing.get_type_hints() finds it
from pgoutput_construct.wire.protocol import StreamStartFirstSegment
from pgoutput_construct.wire.types import Lsn, Timestamp

__all__ = ["Scenario", "TransactionEnd", "scenarios"]

_LONGEST: Final = 10
"""The most steps of a scenario, before open transactions are ended."""


class TransactionEnd(NamedTuple):
    """How a transaction ended; ``outcome`` is one of those in ``stream.transaction_reader``."""

    xid: int
    gid: str | None
    outcome: str
    commit_lsn: Lsn
    end_lsn: Lsn
    time: Timestamp


@dataclass(frozen=True)
class Scenario:
    """A stream, and its expected result."""

    number: int
    """Identifies it among scenarios of one stream: OIDs, xids, LSNs and times increase with the number."""
    first: tuple[ScenarioTable, ...]
    """Its tables at the start, in a schema of their own; the last one is the table of statements."""
    tables: tuple[ScenarioTable, ...]
    """Its tables at the end."""
    sent: tuple[tuple[Lsn, "PgoutputMessage"], ...]
    """The messages in the order of the stream, each with its LSN."""
    rows: dict[str, list[Row]]
    """The expected rows of each table at the end, by its name then."""
    outcomes: tuple[TransactionEnd, ...]
    """The outcomes of the transactions, in the order of their ends."""
    said: tuple[str, ...]
    """Of committed transactions, the names of origins, and the prefixes and contents of logical messages."""
    alterations: tuple[tuple[int, Alteration], ...]
    """The alterations, each with the number of messages up to and including its commit."""

    @property
    def end(self) -> Lsn:
        """The LSN after its last transaction."""
        return max(outcome.end_lsn for outcome in self.outcomes)

    @property
    def definitions(self) -> list[str]:
        """The statements that create its tables at a subscriber, as at the start, and the trigger that alters them."""
        tables = [table.definition for table in self.first]
        return [create_types(self.number), *tables, trigger(self.first[-1])]

    @cached_property
    def counts(self) -> Counter[str]:
        """The number of messages of each class."""
        return Counter(type(message).__name__ for _, message in self.sent)


@st.composite
def scenarios(draw: st.DrawFn, number: int = 0) -> Scenario:
    """Return scenarios that a server with parallel streaming and two-phase could send from the start of a slot.

    Rows of tables with and without a key, with each replica identity, are inserted, updated (with TOASTed values
    omitted, and with new keys), deleted and truncated, in transactions that are plain, streamed and interleaved, with
    subtransactions that are released or rolled back, prepared, and committed or rolled back. Replica identities change,
    and tables are altered: columns are added, renamed, dropped and converted, tables are renamed, and names are reused.
    PostgreSQL does not replicate ALTER TABLE: the statements are rows of another table, which a trigger that
    ``Scenario.definitions`` creates at a subscriber executes. The messages are those of ``proto_version`` 4 and
    ``streaming`` parallel; ``pgoutput_construct.publisher`` serves them to clients with other options, too.

    Args:
        number: Scenarios with increasing numbers, concatenated, are one stream.
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
    """Draws steps, after each of which any other step is possible."""

    def __init__(self, draw: st.DrawFn, number: int) -> None:
        super().__init__(draw, number)
        self.first = *self.tables, self.statements
        self.alterations: list[tuple[int, Alteration]] = []
        self.open: list[Running] = []
        self.prepared: list[Running] = []
        self.outcomes: list[TransactionEnd] = []
        self.said: list[str] = []

    def steps(self) -> list[Callable[[], None]]:
        """Return the steps that are possible now."""
        steps = [self.transaction, self.transaction, self.segment, self.prepare, self.message_outside]
        if any(self.model.is_free(table, None, whole=True) for table in self.tables):
            steps += [self.alter_table, self.alter_table]
        if self.open:
            steps += [self.segment, self.segment, self.end_stream]
        if any(each.levels for each in self.open):
            steps += [self.roll_back_to, self.roll_back_to]
        return steps + [self.end_prepared] * bool(self.prepared)

    def finish(self) -> None:
        """End all open and prepared transactions, and commit one more, so that at least one committed."""
        while self.open:
            self.end_stream()
        while self.prepared:
            self.end_prepared()
        self.transaction()

    def transaction(self, alteration: Alteration | None = None) -> None:
        """Send a committed transaction, sometimes of another origin; ``alteration`` makes it alter a table."""
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
        """Send a prepared transaction."""
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
        """Commit or roll back a prepared transaction."""
        running = self.pop_random(self.prepared)
        names = {"xid": running.xid, "gid": running.prepare["gid"]}
        record = self.record("commit")
        if self.draw(st.integers(0, 2)) < 2:
            self.send(record["end_lsn"], m.CommitPrepared(**record, **names))
            return self.commit(running, names["gid"], record)
        lsn, end, time = running.prepare["end_lsn"], record["end_lsn"], record["commit_time"]
        times = {"prepare_time": running.prepare["prepare_time"], "rollback_time": time}
        self.send(end, m.RollbackPrepared(prepare_end_lsn=lsn, rollback_end_lsn=end, **times, **names))
        self.outcomes.append(TransactionEnd(running.xid, names["gid"], ROLLED_BACK, lsn, end, time))
        return self.model.end(running)

    def segment(self) -> None:
        """Send a segment of a streamed transaction, sometimes the first one of a new transaction."""
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
        """Set a savepoint, release one, or do nothing."""
        what = self.draw(st.integers(0, 3))
        if what == 1 and running.levels:
            running.release()
        elif what > 1 and len(running.levels) < 3:
            running.levels.append(Subtransaction(self.next_xid()))

    def roll_back_to(self) -> None:
        """Roll back a subtransaction, and with it those inside it."""
        running = self.draw(st.sampled_from([each for each in self.open if each.levels]))
        for subxid in running.roll_back():
            self.abort(running.xid, subxid)
        running.described.clear()  # PostgreSQL describes the tables again (cleanup_rel_sync_cache())

    def end_stream(self) -> None:
        """Commit, prepare or abort a streamed transaction."""
        running = self.pop_random(self.open)
        what = self.draw(st.integers(0, 3))
        if what == 3:
            lsn, time = self.abort(running.xid, running.xid)
            self.outcomes.append(TransactionEnd(running.xid, None, ABORTED, lsn, lsn, time))
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
        self.outcomes.append(TransactionEnd(running.xid, gid, COMMITTED, *numbers))
        self.said += running.said
        self.model.commit(running)

    def message_outside(self) -> None:
        """Send a non-transactional message of pg_logical_emit_message()."""
        lsn = self.next_lsn()
        self.send(lsn, m.Message(flags=0, lsn=lsn, prefix="outside", content=b"\0"))

    def alter_table(self) -> None:
        """Alter a table that no transaction uses, or change its replica identity, which needs no statement."""
        table = self.draw(st.sampled_from([each for each in self.tables if self.model.is_free(each, None, whole=True)]))
        if table.primary_key and self.draw(st.integers(0, 5)) == 5:
            other = table.with_other_identity()
            self.tables = [other if each is table else each for each in self.tables]
            self.described.discard(table.oid)
            return
        found = alteration(self.draw, table, (each.name for each in self.tables))
        self.transaction(found)
        self.alterations.append((len(self.sent), found))
