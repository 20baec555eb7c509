"""Inserts, updates, deletes and truncates as rows of Python values, in the order of the stream."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal

from pgoutput_construct.errors import PgoutputError, ProtocolError
from pgoutput_construct.pgtypes.loader import ValueLoader
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.stream.relations import RelationCache
from pgoutput_construct.wire.codec_runtime import draft
from pgoutput_construct.wire.messages import BY_TAG, PgoutputMessage, Relation, TupleData, Type
from pgoutput_construct.wire.protocol import CHANGES, UNREAD, RelationColumnFlags, UpdateOldKind
from pgoutput_construct.wire.types import Marker, bare

__all__ = ["OPERATIONS", "OPS", "SNAPSHOT", "RowChange", "RowReader", "tables_of", "unread_problem"]

OPERATIONS: Final = {cls: cls.__name__.lower() for cls in BY_TAG.values() if cls in CHANGES}
"""The ``op`` of each message that changes rows: insert, update, delete, truncate, and those of later versions."""
SNAPSHOT: Final = "snapshot"
"""The ``op`` of rows that were copied from a table."""
OPS: Final = (SNAPSHOT, *OPERATIONS.values())
"""Every ``op``."""


def unread_problem(cls: type[PgoutputMessage]) -> str:
    """Return why no table is read from a stream that has a message of a class in UNREAD."""
    return (
        f"{cls.__name__} may change rows in a way that no reader of tables knows: read the tables with a version of "
        "pgoutput_construct that does; if it changes no row, write rows: ignored at the message in the specification, "
        "and generate the package again"
    )


def tables_of(message: PgoutputMessage) -> tuple[int, ...]:
    """Return the OIDs of the tables that a change is about; none for any other message."""
    if type(message) not in CHANGES:
        return ()
    # By their fields, not their names: later versions may add other messages that change rows.
    relation_oid = getattr(message, "relation_oid", None)
    return tuple(getattr(message, "relation_oids", ())) if relation_oid is None else (relation_oid,)


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

    An UPDATE that does not touch a TOASTed value does not read it either, so PostgreSQL sends 'u' instead of it
    (logicalrep_write_tuple()). The value is that of the row before, which a consumer must know from elsewhere. 'u' is
    not NULL, which is sent as 'n'.
    """
    unsent: Mapping[str, Marker] = field(default_factory=dict)
    """The markers that were sent instead of these values, by column name: UNCHANGED, or one of a later version."""


class RowReader:
    """Turns messages into rows; pass it every message of the stream in order, as Session parses them.

    Rows are returned as they arrive. With streaming on or two-phase decoding, that is before their transaction has
    committed: a Stream Abort or a Rollback Prepared revokes rows that were returned already, those whose ``xid`` is its
    ``subxid``, or all of the transaction. Hold them until its Stream Commit or Commit Prepared, or use a change log,
    which does (``pgoutput_construct.changelog``).

    >>> reader = RowReader()
    >>> described = bytes.fromhex("52 00004001 7075626c696300 7400 64 0001 01 696400 00000017 ffffffff")
    >>> inserted = bytes.fromhex("49 00004001 4e 0001 74 00000001 35")
    >>> for payload in (described, inserted):
    ...     for row in reader.read(pgoutput_construct.parse(payload)):
    ...         print(row.relation.name, row.new)
    t {'id': 5}
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
        self._layouts: dict[int, _RowLayout] = {}

    def read(self, message: "PgoutputMessage") -> Iterator[RowChange]:
        """Return the rows of a message; a truncate has one for each table.

        Raises ProtocolError for a row without a Relation, or with another number of columns, and for a message that
        may change rows in a way that no reader knows (UNREAD).
        """
        if type(message) in UNREAD:
            raise ProtocolError(unread_problem(type(message)))
        self.relations.update(message)
        if type(message) is Type:
            self._layouts.clear()
        op = OPERATIONS.get(type(message))
        return iter(()) if op is None else iter(self._rows(op, message))

    def _rows(self, op: str, message: Any) -> Sequence[RowChange]:
        # By their fields, not their names: later versions may add other messages that change rows.
        relation_oid = getattr(message, "relation_oid", None)
        if relation_oid is not None:
            return (self._change(op, message, self.relations.get(relation_oid)),)
        xid, oids = getattr(message, "xid", None), getattr(message, "relation_oids", ())
        return [RowChange(op, self.relations.get(bare(oid)), xid, None, None, ()) for oid in oids]

    def _change(self, op: str, message: Any, relation: Relation) -> RowChange:
        layout = self._layouts.get(relation.relation_oid)
        if layout is None or layout.relation is not relation:
            layout = self._layouts[relation.relation_oid] = _RowLayout(relation, self._loader)
        change = _change()
        change.op, change.relation, change.xid = op, relation, getattr(message, "xid", None)
        change.new, change.old, change.unchanged, change.unsent = None, None, (), _NONE
        if (row := getattr(message, "new", None)) is not None:
            new, are_sent = layout.row(row)
            if not are_sent and (unsent := {name: value for name, value in new.items() if isinstance(value, Marker)}):
                new = {name: value for name, value in new.items() if name not in unsent}
                change.unchanged, change.unsent = tuple(unsent), unsent
            change.new = new
        if (row := getattr(message, "old", None)) is not None:
            old, _ = layout.row(row)
            if getattr(message, "old_kind", None) == UpdateOldKind.KEY:
                old = {name: old[name] for name in layout.keys}
            change.old = old
        change.__class__ = RowChange
        done: RowChange = change
        return done


_SENT: Final = frozenset({bytes, type(None)})
"""The classes of values in text format, and of NULL."""
_NONE: Final[Mapping[str, Marker]] = MappingProxyType({})
_change: Final = draft(RowChange)


class _RowLayout:
    """How the rows of a Relation are loaded: what each row needs is looked up once."""

    def __init__(self, relation: Relation, loader: ValueLoader | None) -> None:
        self.relation = relation
        self.keys = [column.name for column in relation.columns if column.flags & RelationColumnFlags.KEY]
        self._loader = loader
        self._names = [column.name for column in relation.columns]
        self._count = len(self._names)
        self._is_ambiguous = len(set(self._names)) < self._count
        self._loads = [
            (column.name, loader.text_loader(column.type_oid)) for column in relation.columns if loader is not None
        ]

    def row(self, row: TupleData) -> tuple[dict[str, Any], bool]:
        """Return a row by column name, and whether certainly all of its values were sent."""
        values = row if type(row) is tuple else bare(row)
        if len(values) != self._count:
            raise ProtocolError(
                f"a row of {full_name(self.relation)} has {len(values)} values, but its Relation has "
                f"{self._count} columns: a newer Relation is missing from the stream"
            )
        if self._is_ambiguous:
            raise ProtocolError(f"the Relation of {full_name(self.relation)} has two columns with the same name")
        if _SENT.issuperset(map(type, values)):
            if self._loader is None:
                return dict(zip(self._names, values, strict=True)), True
            try:
                return {
                    name: None if value is None else load(value)
                    for (name, load), value in zip(self._loads, values, strict=True)
                }, True
            except MemoryError:
                raise
            except Exception:  # a value that Python cannot represent: find out which
                pass
        return self._mixed_row([bare(value) for value in values]), False

    def _mixed_row(self, values: Sequence[Any]) -> dict[str, Any]:
        if self._loader is None:
            return dict(zip(self._names, values, strict=True))
        load, columns = self._loader.load, self.relation.columns
        return {column.name: load(value, column.type_oid) for column, value in zip(columns, values, strict=True)}
