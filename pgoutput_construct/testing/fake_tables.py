"""Tables that exist in a test only: rows of Python values in, the messages that a server would send out."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.extras import needing
from pgoutput_construct.pgtypes.builtin_types import FIRST_USER_OID, TYPE_NAMES
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.protocol import (
    DeleteOldKind,
    RelationColumnFlags,
    RelationReplicaIdentity,
    TruncateOptions,
    UpdateOldKind,
)

__all__ = ["Change", "FakeTable", "text_of"]

Row = Mapping[str, Any]
"""Values by column; ``pgoutput_construct.UNCHANGED`` for a value that is not sent."""


class Change(NamedTuple):
    """A change of a table: a message that is not part of a transaction yet."""

    table: "FakeTable"
    message: m.PgoutputMessage


@dataclass(frozen=True, eq=False)
class FakeTable:
    """A table that exists in a test only."""

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
        """Return the insert of a row; missing columns are NULL."""
        return Change(self, m.Insert(relation_oid=self.oid, new=self._tuple(row)))

    def update(self, row: Row, old: Row | None = None) -> Change:
        """Return an update to ``row``; ``old`` is the row before, required without a key, or if the key changes."""
        if not self.key:
            kind: str | None = UpdateOldKind.ROW.value
            before: m.TupleData | None = self._tuple(self._needed(old))
        else:
            kind = UpdateOldKind.KEY.value if old is not None else None
            before = None if old is None else self._tuple({name: old[name] for name in self.key})
        new = self._tuple(row)
        return Change(self, m.Update(relation_oid=self.oid, old_kind=kind, old=before, new=new))

    def delete(self, old: Row) -> Change:
        """Return the delete of a row; if the table has a key, ``old`` needs the key columns only."""
        kind = (DeleteOldKind.KEY if self.key else DeleteOldKind.ROW).value
        row = {name: old[name] for name in self.key} if self.key else old
        return Change(self, m.Delete(relation_oid=self.oid, old_kind=kind, old=self._tuple(row)))

    def truncate(self, *others: "FakeTable", restart_identity: bool = False) -> Change:
        """Return a truncate of this table, together with others."""
        options = TruncateOptions.RESTART_IDENTITY if restart_identity else TruncateOptions(0)
        oids = (self.oid, *(other.oid for other in others))
        return Change(self, m.Truncate(options=int(options), relation_oids=oids))

    def _column(self, name: str) -> m.RelationColumn:
        is_key = name in self.key or self.replica_identity == RelationReplicaIdentity.FULL
        flags = int(RelationColumnFlags.KEY) if is_key else 0
        oid, modifier = self._type_oid(self.columns[name]), self.modifiers.get(name, -1)
        return m.RelationColumn(flags=flags, name=name, type_oid=oid, type_modifier=modifier)

    def _type_oid(self, name: str) -> int:
        if name in self.types:
            return self.types[name].type_oid
        if name not in TYPE_NAMES:
            raise PgoutputError(f"{name!r} is not a built-in type such as text or int4: describe it in types")
        return TYPE_NAMES[name].oid

    def _needed(self, old: Row | None) -> Row:
        if old is None:
            raise PgoutputError(f"{self.name} has REPLICA IDENTITY FULL: pass the old row")
        return old

    def _tuple(self, row: Row) -> m.TupleData:
        unknown = [name for name in row if name not in self.columns]
        if unknown:
            raise PgoutputError(f"{self.name} has no column {unknown[0]!r}: it has {', '.join(self.columns)}")
        return tuple(text_of(row.get(name)) for name in self.columns)


def text_of(value: Any) -> m.Unchanged | bytes | None:
    """Return a Python value in text format, as a message contains it; raise PgoutputError.

    psycopg dumps it, except numbers, text, bytes, booleans and dates, which need no psycopg. None, UNCHANGED and
    ``Binary`` are returned unchanged.
    """
    if value is None or value is m.UNCHANGED or isinstance(value, m.Binary):
        return value
    if isinstance(value, bytes):
        return b"\\x" + value.hex().encode("ascii")
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if isinstance(value, float) and not math.isfinite(value):
        return b"NaN" if math.isnan(value) else b"Infinity" if value > 0 else b"-Infinity"
    if (
        isinstance(value, str | int | float)
        or type(value) is date
        or (isinstance(value, Decimal) and value.is_finite())
    ):
        return str(value).encode("utf-8", "surrogateescape")
    return _dumped(value)


def _dumped(value: Any) -> bytes:
    with needing("postgres"):
        from psycopg.adapt import PyFormat, Transformer
        from psycopg.errors import ProgrammingError

    try:
        dumped = Transformer().get_dumper(value, PyFormat.TEXT).dump(value)
    except ProgrammingError as error:
        raise PgoutputError(f"{value!r:.80} cannot be a value: {error}") from error
    return b"" if dumped is None else bytes(dumped)
