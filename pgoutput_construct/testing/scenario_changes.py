"""The changes inside the transactions of a scenario, which fit the existing rows, and their Relations."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from hypothesis import strategies as st

from pgoutput_construct.testing.fake_tables import Change
from pgoutput_construct.testing.scenario_alterations import Alteration, alterations_table
from pgoutput_construct.testing.scenario_model import Model, Running
from pgoutput_construct.testing.scenario_tables import Row, ScenarioTable, scenario_tables, schema_of
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.protocol import MessageFlags
from pgoutput_construct.wire.types import Lsn, Timestamp

__all__ = ["ScenarioChanges"]

T = TypeVar("T")
_STRIDE: Final = 1 << 20
"""Bytes of WAL of one scenario."""
_XIDS: Final = 1000
"""Transaction IDs of one scenario, including subtransactions."""
_RECORD: Final = 0x40
_START: Final = 800_000_000_000_000
"""The time at which scenarios start: microseconds since 2000-01-01 UTC, in May 2025."""
_MOST: Final = 4
"""The most changes in a transaction, or in a part of a streamed one."""


class ScenarioChanges:
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
