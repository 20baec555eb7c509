"""The tables of scenarios: their columns, strategies of their rows, and their definitions in SQL."""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any, Final, NamedTuple

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from pgoutput_construct.pgtypes.builtin_types import FIRST_USER_OID
from pgoutput_construct.testing.fake_tables import FakeTable
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.protocol import RelationReplicaIdentity

__all__ = ["COLUMN_TYPES", "DOMAIN", "Row", "ScenarioTable", "create_types", "scenario_tables", "schema_of"]

Row = dict[str, Any]
"""Values in Python, by column."""

_ENUM: Final = "mood"
DOMAIN: Final = "whole"
"""A domain over int4."""
_BASE: Final = "int4"
_MOODS: Final = ("sad", "ok", "happy")
_TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
_OIDS: Final = 16
"""OIDs that one scenario may use."""
_FULL: Final = RelationReplicaIdentity.FULL
_NOTHING: Final = RelationReplicaIdentity.NOTHING


class ColumnType(NamedTuple):
    """A column type."""

    values: SearchStrategy[Any]
    """Its values in Python, as psycopg loads them; equal values are equal for the server, too."""
    binary: Callable[[Any], bytes] | None = None
    """Converts a value to binary format; None: values are sent in text format only."""
    is_toasted: bool = False
    """Whether values may be stored out of line, so that an update need not send them."""
    may_be_key: bool = True


COLUMN_TYPES: Final[Mapping[str, ColumnType]] = {
    "int4": ColumnType(st.integers(-(2**31), 2**31 - 1), struct.Struct("!i").pack),
    "text": ColumnType(_TEXT, str.encode, is_toasted=True),
    "int8": ColumnType(st.integers(-(2**63), 2**63 - 1), struct.Struct("!q").pack),
    "bool": ColumnType(st.booleans(), struct.Struct("!?").pack),
    "bytea": ColumnType(st.binary(max_size=8), bytes, is_toasted=True),
    "uuid": ColumnType(st.uuids(), lambda value: bytes(value.bytes)),
    "numeric": ColumnType(st.decimals(-(10**6), 10**6, places=3), is_toasted=True, may_be_key=False),
    "float8": ColumnType(st.floats(allow_nan=False).map(lambda f: f + 0.0), struct.Struct("!d").pack, may_be_key=False),
    "date": ColumnType(st.dates(date(1, 1, 1)), lambda value: struct.pack("!i", (value - date(2000, 1, 1)).days)),
    "timestamptz": ColumnType(st.datetimes(datetime(1900, 1, 1), datetime(2999, 1, 1), timezones=st.just(UTC))),
    _ENUM: ColumnType(st.sampled_from(_MOODS), str.encode),
    DOMAIN: ColumnType(st.integers(-(2**31), 2**31 - 1), struct.Struct("!i").pack),
}
"""The column types of scenarios, by name: ``mood`` is an enum and ``whole`` a domain in the schema of the scenario."""


@dataclass(frozen=True, eq=False)
class ScenarioTable:
    """A table of a scenario between two alterations."""

    fake: FakeTable
    primary_key: tuple[str, ...]
    """The columns of the primary key; empty: rows may occur more than once."""
    numbers: tuple[int, ...]
    """The attnum of each column, which a rename keeps, and which is never reused."""
    made: int
    """The number of columns that it ever had, including dropped ones."""

    @property
    def oid(self) -> int:
        """Its OID."""
        return self.fake.oid

    @property
    def name(self) -> str:
        """Its name, unique within the scenario at any time."""
        return self.fake.name

    @property
    def in_sql(self) -> str:
        """Its schema and name, quoted for SQL."""
        return f'"{self.fake.namespace}"."{self.name}"'

    @property
    def only_grows(self) -> bool:
        """Whether its rows cannot be updated or deleted, which PostgreSQL refuses without a replica identity."""
        return self.fake.replica_identity == _NOTHING

    @property
    def definition(self) -> str:
        """The statement that creates it, for a subscriber."""
        columns = [f'"{name}" {self.type_in_sql(kind)}' for name, kind in self.fake.columns.items()]
        key = ", ".join(f'"{name}"' for name in self.primary_key)
        return f"CREATE TABLE {self.in_sql} ({', '.join([*columns, *([f'PRIMARY KEY ({key})'] if key else [])])})"

    def key_of(self, row: Row) -> tuple[Any, ...]:
        """Return the primary key of a row."""
        return tuple(row[name] for name in self.primary_key)

    def drawn(self, draw: st.DrawFn) -> Row:
        """Draw a row, whose key may already exist."""
        return {name: self.value(draw, name) for name in self.fake.columns}

    def value(self, draw: st.DrawFn, name: str) -> Any:
        """Draw a value of a column."""
        values = COLUMN_TYPES[self.fake.columns[name]].values
        return draw(values if name in self.primary_key else st.none() | values)

    def is_toasted(self, name: str) -> bool:
        """Return whether an update may omit the value of a column that it does not change."""
        return name not in self.primary_key and COLUMN_TYPES[self.fake.columns[name]].is_toasted

    def sent(self, row: Row, binary: bool) -> Row:
        """Return a row for a change; in binary format for types that have one here, if that is asked for."""
        return {name: self._sent(name, value) for name, value in row.items()} if binary else row

    def altered(self, columns: Mapping[int, tuple[str, str]], name: str) -> "ScenarioTable":
        """Return the table with these columns (name and type by attnum), and this name."""
        of_number = zip(self.numbers, self.fake.columns, strict=True)
        called = {was: columns[number][0] for number, was in of_number if number in columns}
        key, primary_key = (tuple(called[was] for was in of) for of in (self.fake.key, self.primary_key))
        fake = replace(self.fake, name=name, columns=dict(columns.values()), key=key)
        return replace(self, fake=fake, primary_key=primary_key, numbers=tuple(columns), made=max(self.made, *columns))

    def with_other_identity(self) -> "ScenarioTable":
        """Return the table, which has a key, with its replica identity switched between the key and the full row."""
        if self.fake.replica_identity == _FULL:
            return replace(self, fake=replace(self.fake, key=self.primary_key, identity=None))
        return replace(self, fake=replace(self.fake, key=(), identity=_FULL))

    def _sent(self, name: str, value: Any) -> Any:
        if value is None or value is m.UNCHANGED:
            return value
        kind = COLUMN_TYPES[self.fake.columns[name]]
        return value if kind.binary is None else m.Binary(kind.binary(value))

    def type_in_sql(self, kind: str) -> str:
        """Return the name of a type, quoted for SQL."""
        return f'"{self.fake.namespace}"."{kind}"' if kind in self.fake.types else kind


@st.composite
def scenario_tables(draw: st.DrawFn, number: int) -> list[ScenarioTable]:
    """Draw the tables of a scenario, in a schema of its own."""
    first = FIRST_USER_OID + number * _OIDS
    # A Type message has a domain's own OID with the schema and name of its base type (logicalrep_write_typ()).
    domain = m.Type(type_oid=first + 1, namespace="", name=_BASE)
    types = {_ENUM: m.Type(type_oid=first, namespace=schema_of(number), name=_ENUM), DOMAIN: domain}
    return [_table(draw, number, at, first + 2 + at, types) for at in range(draw(st.integers(1, 3)))]


def schema_of(number: int) -> str:
    """Return the schema of a scenario."""
    return f"scenario {number}"


def create_types(number: int) -> str:
    """Return the statements that create the schema and types of a scenario."""
    schema, values = schema_of(number), ", ".join(f"'{value}'" for value in _MOODS)
    enum = f'CREATE TYPE "{schema}"."{_ENUM}" AS ENUM ({values})'
    return f'CREATE SCHEMA "{schema}"; {enum}; CREATE DOMAIN "{schema}"."{DOMAIN}" AS {_BASE}'


def _table(draw: st.DrawFn, number: int, at: int, oid: int, types: Mapping[str, m.Type]) -> ScenarioTable:
    keys = [kind for kind, each in COLUMN_TYPES.items() if each.may_be_key]
    key_types = draw(st.lists(st.sampled_from(keys), max_size=2))
    others = draw(st.lists(st.sampled_from(list(COLUMN_TYPES)), min_size=not key_types, max_size=3))
    primary_key = tuple(f"key {index}" for index, _ in enumerate(key_types))
    columns = dict(zip(primary_key, key_types, strict=True)) | {f"c{index}": kind for index, kind in enumerate(others)}
    known = [RelationReplicaIdentity.DEFAULT, RelationReplicaIdentity.INDEX] if primary_key else [_NOTHING]
    identity = draw(st.sampled_from([*known, _FULL]))
    key = primary_key if identity in (RelationReplicaIdentity.DEFAULT, RelationReplicaIdentity.INDEX) else ()
    fake = FakeTable(f"t{at}", columns, key, schema_of(number), oid, types=types, identity=identity)
    return ScenarioTable(fake, primary_key, tuple(range(1, len(columns) + 1)), len(columns))
