"""The tables of a log in another server: what creates them, out of what the log says of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg.sql import SQL, Composable, Composed, Identifier, Literal

from pgoutput_construct.changelog._facts.catalog_readings import TableReading, table_readings
from pgoutput_construct.changelog._facts.lineage import Lineage, lineage_of
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.pgtypes.builtin_types import FIRST_USER_OID
from pgoutput_construct.stream.identifiers import full_name, quote_identifier
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.wire.messages import RelationColumn
from pgoutput_construct.wire.protocol import RelationColumnFlags, RelationReplicaIdentity

__all__ = ["TargetTable", "create_tables", "target_tables"]


@dataclass(frozen=True)
class TargetTable:
    """A table as its latest name has it, with all columns that it had."""

    relation_oid: int
    namespace: str
    name: str
    columns: Mapping[str, tuple[RelationColumn, Description]]
    """Each column as it was described last, and by what."""
    key: tuple[str, ...]
    """The columns of its replica identity; none: the whole row."""
    current: tuple[str, ...] = ()
    """The columns that it had in the end."""
    older: Mapping[str, str] = field(default_factory=dict)
    """What rows have, as text, that are older than a column: changes of that time do not say it."""
    called: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """What the columns of each description are called here, by its seq."""
    dropped: bool = False
    """Whether it was dropped in the end."""

    @property
    def identifier(self) -> Composable:
        """Its name in SQL."""
        return Identifier(self.namespace, self.name)

    @property
    def qualified(self) -> str:
        """Its name as it is printed."""
        return full_name(self)


def target_tables(descriptions: Iterable[Description], index: SegmentIndex) -> list[TargetTable]:
    """Return the tables that the descriptions of a log, in their order, are about; ``index`` is the log's.

    Of tables that had the same name the one that exists has it, else the last one: the others were dropped, or renamed
    unseen. A column that was renamed has its last name from the beginning, where the log knows that it is the same one;
    one that was dropped, and whose name another one has, is called ``name_dropped_number``.
    """
    by_oid: dict[int, list[Description]] = {}
    for description in descriptions:
        by_oid.setdefault(description.relation.relation_oid, []).append(description)
    readings = {oid: several[-1] for oid, several in table_readings(index).items()}
    lineage = lineage_of(index)
    existing = {(each.namespace, each.name) for oid, each in readings.items() if not each.gone and oid not in by_oid}
    used = {oid: [*filter(lineage.has_rows, several)] or several for oid, several in by_oid.items()}
    tables = [_table(several, lineage, readings.get(oid)) for oid, several in used.items()]
    tables.sort(key=lambda table: (not table.dropped, used[table.relation_oid][-1].seq))
    by_name = {(table.namespace, table.name): table for table in tables}
    return [table for name, table in by_name.items() if not (table.dropped and name in existing)]


def _table(descriptions: Sequence[Description], lineage: Lineage, reading: TableReading | None) -> TargetTable:
    latest, numbers = descriptions[-1].relation, [lineage.numbers(each) for each in descriptions]
    newer = reading if reading and not reading.gone and lineage.follows(reading, descriptions[-1]) else None
    called = _called(descriptions, numbers, {c.number: c.name for c in newer.columns if not c.dropped} if newer else {})
    columns = {
        name: (column, each)
        for each, names in zip(descriptions, called, strict=True)
        for name, column in zip(names, each.relation.columns, strict=True)
    }
    if newer:
        sent = {number for own in numbers for number in own or ()}
        added = {
            each.name: each
            for each in newer.columns
            if each.published and not each.dropped and each.number not in sent and each.name not in columns
        }
        columns |= {
            name: (RelationColumn(0, name, each.type, each.modifier), descriptions[-1]) for name, each in added.items()
        }
    is_full = latest.replica_identity == RelationReplicaIdentity.FULL
    named = zip(called[-1], latest.columns, strict=True)
    key = () if is_full else tuple(name for name, column in named if column.flags & RelationColumnFlags.KEY)
    read = reading.columns if reading else ()
    older = {column.name: column.missing for column in read if column.missing is not None}
    for names, own in zip(called, numbers, strict=True):
        values = (
            (name, lineage.missing(latest.relation_oid, number)) for name, number in zip(names, own or (), strict=False)
        )
        older |= {name: value for name, value in values if value is not None}
    name = (newer.namespace, newer.name) if newer else (latest.namespace or "pg_catalog", latest.name)
    by_seq = {each.seq: names for each, names in zip(descriptions, called, strict=True)}
    current = called[-1]
    if newer and numbers[-1] is not None:
        is_there = {column.number for column in newer.columns if not column.dropped}
        current = tuple(name for name, number in zip(current, numbers[-1], strict=True) if number in is_there)
        current += tuple(added)
    dropped = reading is not None and reading.gone
    return TargetTable(latest.relation_oid, *name, columns, key, current, older, by_seq, dropped)


def _called(
    descriptions: Sequence[Description], numbers: Sequence[tuple[int, ...] | None], newest: Mapping[int, str]
) -> list[tuple[str, ...]]:
    """Return what the columns of each description are called: as the last one that has them calls them.

    ``newest`` has the names, by number, that columns got after the last description.
    """
    names, latest = dict(newest), descriptions[-1]
    taken = {*newest.values()} or {column.name for column in latest.relation.columns}
    for description, own in zip(reversed(descriptions), reversed(numbers), strict=True):
        for number, column in zip(own or (), description.relation.columns, strict=False):
            if number not in names:
                is_other = column.name in taken and (description is not latest or bool(newest))
                names[number] = f"{column.name}_dropped_{number}" if is_other else column.name
                taken.add(names[number])
    return [
        tuple(column.name for column in each.relation.columns) if own is None else tuple(names[n] for n in own)
        for each, own in zip(descriptions, numbers, strict=True)
    ]


def create_tables(connection: psycopg.Connection[Any], tables: Iterable[TargetTable]) -> list[str]:
    """Create the tables that are not there, and their schemas; return the names of those that were created.

    Raises PgoutputError for a column whose type the server does not have, and for a name that is not UTF-8.
    """
    created = []
    for table in tables:
        name = table.qualified
        for each in (name, *table.columns):
            try:
                each.encode()
            except UnicodeEncodeError:
                raise PgoutputError(
                    f"{name!r}: the name {each!r} is not UTF-8: a table with such a name cannot be created elsewhere"
                ) from None
        if connection.execute("SELECT to_regclass(%s)", (name,)).fetchone() == (None,):
            for statement in _statements(connection, table):
                connection.execute(statement)
            created.append(name)
    return created


def _statements(connection: psycopg.Connection[Any], table: TargetTable) -> Iterator[Composed]:
    columns: list[Composable] = []
    for name, described in table.columns.items():
        default = SQL(" DEFAULT {}").format(Literal(table.older[name])) if name in table.older else SQL("")
        columns.append(SQL("{} {}{}").format(Identifier(name), SQL(_type(connection, table, *described)), default))
    if table.key:
        columns.append(SQL("PRIMARY KEY ({})").format(SQL(", ").join(map(Identifier, table.key))))
    yield SQL("CREATE SCHEMA IF NOT EXISTS {}").format(Identifier(table.namespace))
    yield SQL("CREATE TABLE {} ({})").format(table.identifier, SQL(", ").join(columns))
    if not table.key:
        yield SQL("ALTER TABLE {} REPLICA IDENTITY FULL").format(table.identifier)


def _type(
    connection: psycopg.Connection[Any], table: TargetTable, column: RelationColumn, description: Description
) -> str:
    """Return the SQL name of a column's type."""
    if column.type_oid < FIRST_USER_OID:
        query = "SELECT pg_catalog.format_type(%s, %s)"
        row = connection.execute(query, (column.type_oid, column.type_modifier)).fetchone()
        return str(row[0]) if row else ""
    known = description.types.get(column.type_oid)
    name = full_name(known) if known else ""
    if not known or connection.execute("SELECT to_regtype(%s)", (name,)).fetchone() == (None,):
        told = name or f"of OID {column.type_oid}"
        title = f"{table.qualified}.{quote_identifier(column.name)}"
        raise PgoutputError(f"{title}: the server has no type {told}: create it, or the table, and begin again")
    return name
