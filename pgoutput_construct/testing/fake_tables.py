"""Tables that exist in a test only: rows of Python values in, the messages that a server would send out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.pgtypes.builtin_types import FIRST_USER_OID, TYPE_NAMES
from pgoutput_construct.testing.value_texts import column_text, text_of
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.messages import PgoutputMessage  # noqa: TC001 - typing.get_type_hints() finds it
from pgoutput_construct.wire.protocol import (
    DeleteOldKind,
    RelationColumnFlags,
    RelationReplicaIdentity,
    TruncateOptions,
    UpdateOldKind,
)

__all__ = ["Change", "FakeTable"]

Row = Mapping[str, Any]
"""Values by column; ``pgoutput_construct.UNCHANGED`` for a value that is not sent."""


class Change(NamedTuple):
    """A change of a table: a message that is not part of a transaction yet."""

    table: "FakeTable"
    message: "PgoutputMessage"


@dataclass(frozen=True, eq=False)
class FakeTable:
    """A table that exists in a test only.

    Raises:
        PgoutputError: A column's type, or a key column, does not exist. A change also raises it for an unknown column,
            and for a value that is not of its column's type.
    """

    name: str
    columns: Mapping[str, str]
    """The built-in type of each column."""
    key: Sequence[str] = ()
    """The columns of its replica identity; empty: REPLICA IDENTITY FULL, unless ``identity`` is given."""
    namespace: str = "public"
    oid: int = FIRST_USER_OID
    modifiers: Mapping[str, int] = field(default_factory=dict)
    """Type modifiers, as atttypmod in pg_attribute."""
    types: Mapping[str, m.Type] = field(default_factory=dict)
    """The Type messages of column types that are not built in, by their names in ``columns``."""
    identity: RelationReplicaIdentity | None = None
    """Its replica identity; None: DEFAULT with a key, FULL without."""

    def __post_init__(self) -> None:
        if not isinstance(self.columns, Mapping):  # it may be empty: PostgreSQL has tables without columns
            raise PgoutputError(f'{self._title}: columns are a mapping of names to types, such as {{"id": "int4"}}')
        for name in self.columns:
            self._type_oid(name)
        if isinstance(self.key, str):
            raise PgoutputError(f"{self._title}: key is a sequence of columns, such as [{self.key!r}]")
        self._check_columns(self.key)

    @property
    def replica_identity(self) -> RelationReplicaIdentity:
        """Its replica identity."""
        if self.identity is not None:
            return self.identity
        return RelationReplicaIdentity.DEFAULT if self.key else RelationReplicaIdentity.FULL

    @property
    def relation(self) -> m.Relation:
        """The Relation that describes it."""
        return m.Relation(
            relation_oid=self.oid,
            namespace=self.namespace,
            name=self.name,
            replica_identity=self.replica_identity.value,
            columns=tuple(self._column(name) for name in self.columns),
        )

    def insert(self, row: Row) -> Change:
        """Return the insert of a row; missing columns, other than those of the key, are NULL."""
        return Change(self, m.Insert(relation_oid=self.oid, new=self._tuple(row)))

    def update(self, row: Row, old: Row | None = None) -> Change:
        """Return an update to ``row``; ``old`` is the row before, required without a key, or if the key changes."""
        if not self.key:
            kind: str | None = UpdateOldKind.ROW.value
            before: m.TupleData | None = self._tuple(self._needed(old))
        else:
            kind = UpdateOldKind.KEY.value if old is not None else None
            before = None if old is None else self._key_tuple(old)
        new = self._tuple(row)
        return Change(self, m.Update(relation_oid=self.oid, old_kind=kind, old=before, new=new))

    def delete(self, old: Row) -> Change:
        """Return the delete of a row; if the table has a key, ``old`` needs the key columns only."""
        kind = (DeleteOldKind.KEY if self.key else DeleteOldKind.ROW).value
        before = self._key_tuple(old) if self.key else self._tuple(old)
        return Change(self, m.Delete(relation_oid=self.oid, old_kind=kind, old=before))

    def truncate(self, *others: "FakeTable", restart_identity: bool = False) -> Change:
        """Return a truncate of this table, together with others."""
        options = TruncateOptions.RESTART_IDENTITY if restart_identity else TruncateOptions(0)
        oids = (self.oid, *(other.oid for other in others))
        return Change(self, m.Truncate(options=int(options), relation_oids=oids))

    def _column(self, name: str) -> m.RelationColumn:
        is_key = name in self.key or self.replica_identity == RelationReplicaIdentity.FULL
        flags = int(RelationColumnFlags.KEY) if is_key else 0
        oid, modifier = self._type_oid(name), self.modifiers.get(name, -1)
        return m.RelationColumn(flags=flags, name=name, type_oid=oid, type_modifier=modifier)

    @property
    def _title(self) -> str:
        return f"{self.namespace}.{self.name}"

    def _type_oid(self, column: str) -> int:
        name = self.columns[column]
        if name in self.types:
            return self.types[name].type_oid
        if name not in TYPE_NAMES:
            raise PgoutputError(
                f"{self._title}.{column}: {name!r} is not a built-in type as pg_type names it, such as text, int4 or "
                "_int4 (an array)"
            )
        return TYPE_NAMES[name].oid

    def _needed(self, old: Row | None) -> Row:
        if old is None:
            raise PgoutputError(f"{self._title} has REPLICA IDENTITY FULL: pass the old row")
        return old

    def _check_columns(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.columns:
                raise PgoutputError(f"{self._title} has no column {name!r}: it has {', '.join(self.columns)}")

    def _key_tuple(self, row: Row) -> m.TupleData:
        """Return the tuple of a row's key; its other columns are NULL, as PostgreSQL sends it."""
        whole = self._tuple(row)
        return tuple(value if name in self.key else None for name, value in zip(self.columns, whole, strict=True))

    def _tuple(self, row: Row) -> m.TupleData:
        if not isinstance(row, Mapping):
            raise PgoutputError(f"{self._title}: a row is a mapping of columns to values, not {row!r:.80}")
        self._check_columns(row)
        for name in self.key:
            if row.get(name) is None:
                raise PgoutputError(f"{self._title}.{name}: a row needs a value of each key column, which is NOT NULL")
        return tuple(self._value(name, row.get(name)) for name in self.columns)

    def _value(self, column: str, value: Any) -> m.Unchanged | bytes | None:
        kind = self.columns[column]
        return text_of(value) if kind in self.types else column_text(value, kind, f"{self._title}.{column}")
