"""Inserts, updates, deletes and truncates as rows of Python values, in the order of the stream."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from pgoutput_construct.errors import PgoutputError, ProtocolError
from pgoutput_construct.pgtypes.loader import ValueLoader
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.stream.relations import RelationCache
from pgoutput_construct.wire.messages import BY_TAG, PgoutputMessage, Relation, TupleData
from pgoutput_construct.wire.protocol import CHANGES, RelationColumnFlags, UpdateOldKind
from pgoutput_construct.wire.types import Marker, bare

__all__ = ["OPERATIONS", "OPS", "SNAPSHOT", "RowChange", "RowReader"]

OPERATIONS: Final = {cls: cls.__name__.lower() for cls in BY_TAG.values() if cls in CHANGES}
"""The ``op`` of each message that changes rows: insert, update, delete, truncate, and those of later versions."""
SNAPSHOT: Final = "snapshot"
"""The ``op`` of rows that were copied from a table."""
OPS: Final = (SNAPSHOT, *OPERATIONS.values())
"""Every ``op``."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """One change of one row (of a whole table, for a truncate)."""

    op: str
    """One of OPERATIONS."""
    relation: Relation
    """The description of the table when the change was sent."""
    xid: int | None
    """Transaction or subtransaction ID inside a stream, None outside."""
    new: dict[str, Any] | None
    """The new row by column name, without the columns in ``unchanged``."""
    old: dict[str, Any] | None
    """The old row, or only its key columns, by column name; None if it was not sent."""
    unchanged: tuple[str, ...]
    """The columns of the new row whose value was not sent.

    An UPDATE that does not touch a TOASTed value does not read it either, so PostgreSQL sends 'u' in place of it
    (logicalrep_write_tuple()). The value is that of the row before, which a consumer must know from elsewhere. 'u' is
    not NULL, which is sent as 'n'.
    """
    unsent: Mapping[str, Marker] = field(default_factory=dict)
    """The markers that were sent in place of these values, by column name: UNCHANGED, or one of a later version."""


class RowReader:
    """Turns messages into rows; pass it every message of the stream in order, as Session parses them.

    Rows are returned as they arrive. With streaming on or two-phase decoding, that is before their transaction has
    committed: a Stream Abort or a Rollback Prepared revokes rows that were returned already, those whose ``xid`` is its
    ``subxid``, or all of the transaction. Hold them until its Stream Commit or Commit Prepared, or use a change log,
    which does (``pgoutput_construct.changelog``).
    """

    def __init__(self, relations: RelationCache | None = None, values: Literal["python", "raw"] = "python") -> None:
        """Create a reader.

        Args:
            relations: The relations sent so far; None: those of a stream that begins now.
            values: ``python`` loads values into Python objects, ``raw`` leaves them as sent: bytes and Binary.

        Raises:
            PgoutputError: Another word for ``values``, or Python objects without psycopg, which loads them.
        """
        if values not in ("python", "raw"):
            raise PgoutputError(f"values must be 'python' or 'raw', not {values!r:.40}")
        self.relations = relations or RelationCache()
        self._loader = ValueLoader(self.relations.types) if values == "python" else None

    def read(self, message: PgoutputMessage) -> Iterator[RowChange]:
        """Return the rows of a message; a truncate has one for each table.

        Raises ProtocolError for a row without a Relation, or with another number of columns.
        """
        self.relations.update(message)
        return iter(list(self._rows(message)))

    def _rows(self, message: Any) -> Iterator[RowChange]:
        # By their fields, not their names: later versions may add other messages that change rows.
        op = OPERATIONS.get(type(message))
        if op is None:
            return
        if hasattr(message, "relation_oid"):
            yield self._change(op, message, self.relations.get(message.relation_oid))
        for oid in getattr(message, "relation_oids", ()):
            yield RowChange(op, self.relations.get(bare(oid)), getattr(message, "xid", None), None, None, ())

    def _change(self, op: str, message: Any, relation: Relation) -> RowChange:
        new = self._row(relation, message.new) if getattr(message, "new", None) is not None else None
        old = self._old(relation, message) if getattr(message, "old", None) is not None else None
        unsent = {name: value for name, value in (new or {}).items() if isinstance(value, Marker)}
        sent = None if new is None else {name: value for name, value in new.items() if not isinstance(value, Marker)}
        return RowChange(op, relation, getattr(message, "xid", None), sent, old, tuple(unsent), unsent)

    def _old(self, relation: Relation, message: Any) -> dict[str, Any]:
        row = self._row(relation, message.old)
        if getattr(message, "old_kind", None) != UpdateOldKind.KEY:
            return row
        keys = {column.name for column in relation.columns if column.flags & RelationColumnFlags.KEY}
        return {name: value for name, value in row.items() if name in keys}

    def _row(self, relation: Relation, row: TupleData) -> dict[str, Any]:
        values = [bare(value) for value in bare(row)]
        if len(values) != len(relation.columns):
            raise ProtocolError(
                f"a row of {full_name(relation)} has {len(values)} values, but its Relation has "
                f"{len(relation.columns)} columns: a newer Relation is missing from the stream"
            )
        names = [column.name for column in relation.columns]
        if len(set(names)) < len(names):
            raise ProtocolError(f"the Relation of {full_name(relation)} has two columns with the same name")
        if self._loader is None:
            return dict(zip(names, values, strict=True))
        load = self._loader.load
        return {
            column.name: load(value, column.type_oid) for column, value in zip(relation.columns, values, strict=True)
        }
