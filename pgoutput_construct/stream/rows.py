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
"""What rows say of the message that changed them: insert, update, delete, truncate, and what later versions brought."""
SNAPSHOT: Final = "snapshot"
"""What rows say that were copied from a table: no message changed them."""
OPS: Final = (SNAPSHOT, *OPERATIONS.values())
"""All that rows say of where they come from."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """One change of one row (of a whole table, for a truncate)."""

    op: str
    """One of OPERATIONS."""
    relation: Relation
    """The table as it was described when the change was sent."""
    xid: int | None
    """Transaction or subtransaction ID inside a stream, None outside."""
    new: dict[str, Any] | None
    """The new row by column name; columns whose value was not sent are missing here."""
    old: dict[str, Any] | None
    """The old row, or only its key columns, by column name; None where it was not sent."""
    unchanged: tuple[str, ...]
    """The columns of the new row whose value was not sent, such as a TOASTed one that is unchanged."""
    unsent: Mapping[str, Marker] = field(default_factory=dict)
    """What was sent in place of these, by column name: UNCHANGED, or what a later version brought."""


class RowReader:
    """Turns messages into rows; feed it every message of the stream in order, as Session parses them.

    Rows come as they are sent. With streaming on or two-phase decoding that is before their transaction has committed:
    a Stream Abort or a Rollback Prepared takes rows back that were returned, those with the ``xid`` that it names as
    ``subxid``, or all of the transaction. Keep them until its Stream Commit or Commit Prepared; a change log and the
    tables made of it do that (``pgoutput_construct.changelog``).
    """

    def __init__(self, relations: RelationCache | None = None, values: Literal["python", "raw"] = "python") -> None:
        """``values`` says what rows hold: Python objects, or the values as they came, bytes and Binary.

        Raises PgoutputError for other words, and for Python objects where psycopg, which loads them, is missing.
        """
        if values not in ("python", "raw"):
            raise PgoutputError(f"values must be 'python' or 'raw', not {values!r:.40}")
        self.relations = relations or RelationCache()
        self._loader = ValueLoader(self.relations.types) if values == "python" else None

    def read(self, message: PgoutputMessage) -> Iterator[RowChange]:
        """Return the rows in a message (a truncate has one a table).

        Raises ProtocolError for a row without a Relation, or one that does not fit it.
        """
        self.relations.update(message)
        return iter(list(self._rows(message)))

    def _rows(self, message: Any) -> Iterator[RowChange]:
        # By their fields, not their names: later versions may bring other messages that change rows.
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
                f"{len(relation.columns)} columns: a Relation between them is missing"
            )
        names = [column.name for column in relation.columns]
        if len(set(names)) < len(names):
            raise ProtocolError(f"the Relation of {full_name(relation)} has two columns of one name")
        if self._loader is None:
            return dict(zip(names, values, strict=True))
        load = self._loader.load
        return {
            column.name: load(value, column.type_oid) for column, value in zip(relation.columns, values, strict=True)
        }
