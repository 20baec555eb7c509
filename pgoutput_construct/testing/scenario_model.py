"""A model of the tables of a scenario: committed rows, the effects of running transactions, and their locks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pgoutput_construct.testing.scenario_alterations import Alteration
from pgoutput_construct.testing.scenario_tables import Row, ScenarioTable

__all__ = ["Effect", "Model", "Running", "Subtransaction"]


class Effect(NamedTuple):
    """The effect of one change on the rows of a table: rows that it removes and adds."""

    xid: int
    """The transaction or subtransaction that made it."""
    table: int
    """The OID of the table."""
    removed: Sequence[Row] = ()
    added: Sequence[Row] = ()


@dataclass(eq=False)
class Subtransaction:
    """A subtransaction that is neither released nor rolled back."""

    xid: int
    released: list[int] = field(default_factory=list)
    """Subtransactions inside it that were released, and are rolled back with it."""


@dataclass(eq=False)
class Running:
    """A transaction without an outcome."""

    xid: int
    effects: list[Effect] = field(default_factory=list)
    levels: list[Subtransaction] = field(default_factory=list)
    keys: dict[int, set[tuple[Any, ...]]] = field(default_factory=dict)
    """By table OID: the keys of the rows that it has locked until its end; ROLLBACK TO does not release them here."""
    whole: set[int] = field(default_factory=set)
    """OIDs of the tables that it has locked as a whole."""
    described: set[int] = field(default_factory=set)
    """OIDs whose Relation was sent in its stream."""
    said: list[str] = field(default_factory=list)
    """The name of its origin, and the prefixes and contents of its logical messages."""
    prepare: dict[str, Any] = field(default_factory=dict)
    """The fields of its Prepare."""

    @property
    def current(self) -> int:
        """The xid of new changes."""
        return self.levels[-1].xid if self.levels else self.xid

    def release(self) -> None:
        """Release the innermost subtransaction: its changes become those of the enclosing one."""
        level = self.levels.pop()
        if self.levels:
            self.levels[-1].released += [*level.released, level.xid]

    def roll_back(self) -> list[int]:
        """Roll back the innermost subtransaction; return the xids that were rolled back, inner ones first."""
        level = self.levels.pop()
        xids = [*level.released, level.xid]
        self.effects = [effect for effect in self.effects if effect.xid not in xids]
        return xids


class Model:
    """The rows of all tables, as transactions see them.

    Concurrent transactions respect each other's locks, as on a server: a row that one has touched is locked until its
    end, and so is a truncated table. A table without a key is locked as a whole.
    """

    def __init__(self, tables: Iterable[ScenarioTable]) -> None:
        self.rows: dict[int, list[Row]] = {table.oid: [] for table in tables}
        """The committed rows, by the OID of the table."""
        self.running: list[Running] = []

    def is_free(self, table: ScenarioTable, running: Running | None, whole: bool) -> bool:
        """Return whether no other transaction has locked a table, or, if ``whole``, any of its rows."""
        others = [other for other in self.running if other is not running]
        whole = whole or not table.primary_key
        return not any(table.oid in other.whole or (whole and table.oid in other.keys) for other in others)

    def seen(self, table: ScenarioTable, running: Running) -> list[Row]:
        """Return the rows that a transaction sees."""
        rows = list(self.rows[table.oid])
        for effect in running.effects:
            if effect.table == table.oid:
                for row in effect.removed:
                    rows.remove(row)
                rows += effect.added
        return rows

    def free_rows(self, table: ScenarioTable, running: Running) -> list[Row]:
        """Return the rows that a transaction may update or delete."""
        taken = self._taken(table, running)
        return [row for row in self.seen(table, running) if not table.primary_key or table.key_of(row) not in taken]

    def is_new(self, table: ScenarioTable, running: Running, row: Row) -> bool:
        """Return whether a transaction may insert a row, or give another one its key."""
        if not table.primary_key:
            return True
        key = table.key_of(row)
        return key not in self._taken(table, running) and key not in map(table.key_of, self.seen(table, running))

    def change(
        self, table: ScenarioTable, running: Running, removed: Sequence[Row] = (), added: Sequence[Row] = ()
    ) -> None:
        """Apply a change of a transaction: ``removed`` rows are replaced by ``added`` rows."""
        running.effects.append(Effect(running.current, table.oid, removed, added))
        running.keys.setdefault(table.oid, set()).update(map(table.key_of, (*removed, *added)))
        if not table.primary_key:
            running.whole.add(table.oid)

    def empty(self, table: ScenarioTable, running: Running) -> None:
        """Apply a TRUNCATE."""
        self.change(table, running, self.seen(table, running))
        running.whole.add(table.oid)

    def alter(self, alteration: Alteration, running: Running) -> None:
        """Apply an alteration to the rows of its table, including those that the transaction has changed before."""
        table = alteration.table
        self.rows[table.oid] = [alteration.row(row) for row in self.rows[table.oid]]
        running.effects = [
            effect._replace(removed=[*map(alteration.row, effect.removed)], added=[*map(alteration.row, effect.added)])
            if effect.table == table.oid
            else effect
            for effect in running.effects
        ]

    def commit(self, running: Running) -> None:
        """Make the changes of a transaction visible to all."""
        self.end(running)
        for effect in running.effects:
            for row in effect.removed:
                self.rows[effect.table].remove(row)
            self.rows[effect.table] += effect.added

    def end(self, running: Running) -> None:
        """Discard a transaction, and release its locks."""
        if running in self.running:
            self.running.remove(running)

    def _taken(self, table: ScenarioTable, running: Running) -> set[tuple[Any, ...]]:
        others = (other for other in self.running if other is not running)
        return {key for other in others for key in other.keys.get(table.oid, ())}
