"""Alterations of the tables of scenarios; the statements are replicated as rows, which a subscriber executes.

PostgreSQL does not replicate ALTER TABLE: a subscriber must run it after all earlier changes are applied, and before
later ones. A scenario therefore has a table of statements. The transaction that alters a table inserts the statement
into it, and a trigger on the subscriber's table runs the statement.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from hypothesis import strategies as st

from pgoutput_construct.testing.fake_tables import FakeTable
from pgoutput_construct.testing.scenario_tables import COLUMN_TYPES, DOMAIN, Row, ScenarioTable
from pgoutput_construct.wire.protocol import RelationReplicaIdentity

__all__ = ["STATEMENTS", "WAYS", "Alteration", "alteration", "alterations_table", "trigger"]

STATEMENTS: Final = "alterations"
"""The name of the table of statements."""
_STATEMENT: Final = "statement"
WAYS: Final = frozenset(("add a column", "rename a column", "drop a column", "convert a column", "rename a table"))
"""The kinds of alterations."""
_COLUMNS: Final = tuple(f"c{number}" for number in range(24))
_TABLES: Final = tuple(f"t{number}" for number in range(8))
_NEAR: Final = 2
"""A new name is one of this many free ones, so that names are reused."""
_INTO: Final[Mapping[str, tuple[str, ...]]] = {"int4": (DOMAIN, "int8"), DOMAIN: ("int4", "int8")}
"""Types to which a column can be converted without changing its values."""

_Columns: TypeAlias = dict[int, tuple[str, str]]
"""Name and type of each column, by number."""


class Alteration(NamedTuple):
    """An ALTER TABLE of the publisher."""

    way: str
    """Its kind, one of WAYS."""
    table: ScenarioTable
    """The table after it."""
    was: str
    """The table's name before it."""
    statement: str
    """The statement, for a subscriber."""
    column: str | None = None
    """The old name of the column that is renamed or dropped."""
    called: str | None = None
    """The new name of the column that is renamed or added."""

    def row(self, row: Row) -> Row:
        """Return a row of the table after the alteration."""
        if self.column is None:
            return row if self.called is None else row | {self.called: None}
        kept = {name: value for name, value in row.items() if name != self.column or self.called is not None}
        return {self.called if name == self.column and self.called else name: value for name, value in kept.items()}


def alteration(draw: st.DrawFn, table: ScenarioTable, names: Iterable[str]) -> Alteration:
    """Draw an alteration of a table; ``names`` are those of all tables of its schema."""
    taken = set(names)
    ways: list[Callable[[], Alteration]] = [
        lambda: _add(draw, table),
        *[lambda: _rename_column(draw, table)] * 2,
        *[lambda: _rename(draw, table, [name for name in _TABLES if name not in taken])] * 2,
    ]
    droppable = [name for name in table.fake.columns if name not in table.primary_key]
    if droppable and len(table.fake.columns) > 1:
        ways += [lambda: _drop(draw, table, droppable)] * 2
    if convertible := [name for name, kind in table.fake.columns.items() if kind in _INTO]:
        ways += [lambda: _convert(draw, table, convertible)] * 4
    return draw(st.sampled_from(ways))()


def alterations_table(namespace: str, oid: int) -> ScenarioTable:
    """Return the table of statements."""
    fake = FakeTable(STATEMENTS, {_STATEMENT: "text"}, (), namespace, oid, identity=RelationReplicaIdentity.NOTHING)
    return ScenarioTable(fake, (), (1,), 1)


def trigger(table: ScenarioTable) -> str:
    """Return the statements that create the trigger at a subscriber, which runs replicated statements."""
    function = f'"{table.fake.namespace}"."alter"()'
    body = f"BEGIN EXECUTE NEW.{_STATEMENT}; RETURN NULL; END"
    create = f"CREATE TRIGGER alter AFTER INSERT ON {table.in_sql} FOR EACH ROW EXECUTE FUNCTION {function}"
    always = f"ALTER TABLE {table.in_sql} ENABLE ALWAYS TRIGGER alter"
    return f"CREATE FUNCTION {function} RETURNS trigger LANGUAGE plpgsql AS '{body}'; {create}; {always}"


def _add(draw: st.DrawFn, table: ScenarioTable) -> Alteration:
    name, kind = _new_name(draw, table), draw(st.sampled_from(list(COLUMN_TYPES)))
    statement = f'ADD COLUMN "{name}" {table.type_in_sql(kind)}'
    return _altered("add a column", table, {**_columns(table), table.made + 1: (name, kind)}, statement, called=name)


def _rename_column(draw: st.DrawFn, table: ScenarioTable) -> Alteration:
    old, new = draw(st.sampled_from(list(table.fake.columns))), _new_name(draw, table)
    columns = {number: (new if name == old else name, kind) for number, (name, kind) in _columns(table).items()}
    return _altered("rename a column", table, columns, f'RENAME COLUMN "{old}" TO "{new}"', column=old, called=new)


def _drop(draw: st.DrawFn, table: ScenarioTable, names: list[str]) -> Alteration:
    old = draw(st.sampled_from(names))
    columns = {number: (name, kind) for number, (name, kind) in _columns(table).items() if name != old}
    return _altered("drop a column", table, columns, f'DROP COLUMN "{old}"', column=old)


def _convert(draw: st.DrawFn, table: ScenarioTable, names: list[str]) -> Alteration:
    chosen = draw(st.sampled_from(names))
    into = draw(st.sampled_from(_INTO[table.fake.columns[chosen]]))
    columns = {number: (name, into if name == chosen else kind) for number, (name, kind) in _columns(table).items()}
    statement = f'ALTER COLUMN "{chosen}" TYPE {table.type_in_sql(into)}'
    return _altered("convert a column", table, columns, statement)


def _rename(draw: st.DrawFn, table: ScenarioTable, names: list[str]) -> Alteration:
    name = draw(st.sampled_from(names[:_NEAR]))
    statement = f'ALTER TABLE {table.in_sql} RENAME TO "{name}"'
    return Alteration("rename a table", table.altered(_columns(table), name), table.name, statement)


def _altered(
    way: str,
    table: ScenarioTable,
    columns: _Columns,
    statement: str,
    column: str | None = None,
    called: str | None = None,
) -> Alteration:
    whole = f"ALTER TABLE {table.in_sql} {statement}"
    return Alteration(way, table.altered(columns, table.name), table.name, whole, column, called)


def _columns(table: ScenarioTable) -> _Columns:
    return dict(zip(table.numbers, table.fake.columns.items(), strict=True))


def _new_name(draw: st.DrawFn, table: ScenarioTable) -> str:
    free = [name for name in _COLUMNS if name not in table.fake.columns]
    return draw(st.sampled_from(free[:_NEAR]))
