"""Strategies of scenarios: streams together with the tables that must result from them."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeVar

from hypothesis import strategies as st

from pgoutput_construct.stream.transaction_reader import ABORTED, COMMITTED, ROLLED_BACK
from pgoutput_construct.testing.fake_tables import Change
from pgoutput_construct.testing.scenario_alterations import Alteration, alteration, alterations_table, trigger
from pgoutput_construct.testing.scenario_model import Model, Running, Subtransaction
from pgoutput_construct.testing.scenario_tables import Row, ScenarioTable, create_types, scenario_tables, schema_of
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.messages import PgoutputMessage  # noqa: TC001 - typing.get_type_hints() finds it
from pgoutput_construct.wire.protocol import MessageFlags, StreamStartFirstSegment
from pgoutput_construct.wire.types import Lsn, Timestamp

__all__ = ["Scenario", "TransactionEnd", "scenarios"]

T = TypeVar("T")
_LONGEST: Final = 10
"""The most steps of a scenario, before open transactions are ended."""
_STRIDE: Final = 1 << 20
"""Bytes of WAL of one scenario."""
_XIDS: Final = 1000
"""Transaction IDs of one scenario, including subtransactions."""
_RECORD: Final = 0x40
_START: Final = 800_000_000_000_000
"""The time at which scenarios start: microseconds since 2000-01-01 UTC, in May 2025."""
_MOST: Final = 4
"""The most changes in a transaction, or in a part of a streamed one."""


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


class _ScenarioChanges:
    """Sends changes of tables; subclasses send what encloses them."""

    def __init__(self, draw: st.DrawFn, number: int) -> None:
        self.draw = draw
        self.tables: list[ScenarioTable] = draw(scenario_tables(number))
        self.statements = alterations_table(schema_of(number), self.tables[-1].oid + 1)
        self.model = Model([*self.tables, self.statements])
        self.sent: list[tuple[Lsn, m.PgoutputMessage]] = []
        self.described: set[int] = set()
        """OIDs whose Relation was sent for transactions that are not streamed."""
        self._xid = (number + 1) * _XIDS
        self._lsn = (number + 16) * _STRIDE

    def begin(self) -> Running:
        """Return a new transaction."""
        return Running(self.next_xid())

    def collected(self, running: Running, alteration: Alteration | None = None) -> list[tuple[Lsn, m.PgoutputMessage]]:
        """Return the changes of a transaction that is sent at its commit; ``alteration`` is applied between them."""
        before, self.sent = self.sent, []
        self.changes(running, self.described, in_stream=False)
        if alteration is not None:
            self.alter(alteration, running)
            self.changes(running, self.described, in_stream=False)
        changes, self.sent = self.sent, before
        return changes

    def changes(self, running: Running, described: set[int], in_stream: bool) -> None:
        """Send some changes."""
        for _ in range(self.draw(st.integers(0, _MOST))):
            change = self._change(running)
            if change is None:
                self._message(running, in_stream)
                continue
            self._send(*change, described, running.current if in_stream else None)

    def alter(self, alteration: Alteration, running: Running) -> None:
        """Alter a table that no other transaction uses, and send the statement."""
        table, row = self.statements, {"statement": alteration.statement}
        self.model.alter(alteration, running)
        running.whole.add(alteration.table.oid)
        self.tables = [alteration.table if each.oid == alteration.table.oid else each for each in self.tables]
        self.model.change(table, running, added=[row])
        self._send([table], table.fake.insert(row).message, self.described, None)
        self.described.discard(alteration.table.oid)

    def _send(
        self, tables: Sequence[ScenarioTable], change: m.PgoutputMessage, described: set[int], xid: int | None
    ) -> None:
        for table in tables:
            self._describe(table, described, xid)
        changed: Any = change
        self.send(self.next_lsn(), replace(changed, xid=xid))

    def _change(self, running: Running) -> tuple[Sequence[ScenarioTable], m.PgoutputMessage] | None:
        """Make a change, and return its tables and its message; None if no change is possible."""
        free = [table for table in self.tables if self.model.is_free(table, running, whole=False)]
        what = self.draw(st.integers(0, 12))
        if not free or what == 12:
            return None
        if what == 11:
            return self._truncate(running)
        table = self.draw(st.sampled_from(free))
        rows = [] if table.only_grows else self.model.free_rows(table, running)
        if not rows or what < 4:
            change = self._insert(table, running)
        else:
            row = self.draw(st.sampled_from(rows))
            change = self._update(table, running, row) if what < 9 else self._delete(table, running, row)
        return None if change is None else ([table], change.message)

    def _insert(self, table: ScenarioTable, running: Running) -> Change | None:
        row = table.drawn(self.draw)
        if not self.model.is_new(table, running, row):
            return None
        self.model.change(table, running, added=[row])
        return table.fake.insert(self._sent(table, row))

    def _update(self, table: ScenarioTable, running: Running, old: Row) -> Change:
        new = {name: self._updated(table, name, value) for name, value in old.items()}
        moved = new | {name: table.value(self.draw, name) for name in self._moving(table)}
        if moved != new and self.model.is_new(table, running, moved):
            new = moved
        self.model.change(table, running, [old], [new])
        # An old key also comes where it is the same, but stored out of line (ExtractReplicaIdentity()).
        says_old = not table.fake.key or table.key_of(old) != table.key_of(new) or self._seldom()
        before = self._sent(table, old) if says_old else None
        kept = [name for name, value in new.items() if value == old[name] and table.is_toasted(name)]
        absent = {name: m.UNCHANGED for name in kept if new[name] is not None and self.draw(st.booleans())}
        return table.fake.update(self._sent(table, new | absent), before)

    def _updated(self, table: ScenarioTable, name: str, value: Any) -> Any:
        return value if name in table.primary_key or self.draw(st.booleans()) else table.value(self.draw, name)

    def _moving(self, table: ScenarioTable) -> tuple[str, ...]:
        return table.primary_key if self._seldom() else ()

    def _seldom(self) -> bool:
        return self.draw(st.integers(0, 3)) == 3

    def _delete(self, table: ScenarioTable, running: Running, row: Row) -> Change:
        self.model.change(table, running, [row])
        return table.fake.delete(self._sent(table, row))

    def _truncate(self, running: Running) -> tuple[Sequence[ScenarioTable], m.PgoutputMessage] | None:
        free = [table for table in self.tables if self.model.is_free(table, running, whole=True)]
        if not free:
            return None
        tables = self.draw(st.lists(st.sampled_from(free), min_size=1, unique=True))
        for table in tables:
            self.model.empty(table, running)
        first, *others = (table.fake for table in tables)
        return tables, first.truncate(*others, restart_identity=self.draw(st.booleans())).message

    def _message(self, running: Running, in_stream: bool) -> None:
        """Send a transactional message; in a stream it has the top-level xid (ReorderBufferApplyMessage())."""
        lsn, flags = self.next_lsn(), int(MessageFlags.TRANSACTIONAL)
        xid = running.xid if in_stream else None
        content = f"{running.xid} {lsn}"
        self.send(lsn, m.Message(xid=xid, flags=flags, lsn=lsn, prefix="inside", content=content.encode()))
        running.said += ["inside", content]

    def _describe(self, table: ScenarioTable, described: set[int], xid: int | None) -> None:
        if table.fake.oid in described:
            return
        described.add(table.fake.oid)
        for kind in table.fake.columns.values():
            if kind in table.fake.types:  # PostgreSQL sends a Type for each column
                self.send(Lsn(0), replace(table.fake.types[kind], xid=xid))
        self.send(Lsn(0), replace(table.fake.relation, xid=xid))

    def _sent(self, table: ScenarioTable, row: Row) -> Row:
        return table.sent(row, binary=self.draw(st.booleans()))

    def send(self, lsn: Lsn, message: m.PgoutputMessage) -> None:
        """Send a message."""
        self.sent.append((lsn, message))

    def record(self, name: str) -> dict[str, Any]:
        """Return the fields for a new commit or prepare record: its LSN, the LSN after it, and its time."""
        lsn = self.next_lsn()
        return {f"{name}_lsn": lsn, "end_lsn": Lsn(lsn + _RECORD), f"{name}_time": self.time()}

    def pop_random(self, some: list[T]) -> T:
        """Remove and return a random element."""
        return some.pop(self.draw(st.integers(0, len(some) - 1)))

    def next_xid(self) -> int:
        """Return the xid of a new transaction or subtransaction."""
        self._xid += 1
        return self._xid

    def next_lsn(self) -> Lsn:
        """Return the LSN of a new record."""
        self._lsn += 2 * _RECORD
        return Lsn(self._lsn)

    def time(self) -> Timestamp:
        """Return the time of the latest record; it increases with the LSN."""
        return Timestamp(_START + self._lsn)


class _Machine(_ScenarioChanges):
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
