"""The tables of a log: which names, columns and keys its rows have, over all alterations."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import pyarrow as pa

from pgoutput_construct.changelog.copies import TableCopy
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark.columns import Columns, Missing, Numbering, find_columns, used_ones
from pgoutput_construct.spark.names import directory_name, qualified_name
from pgoutput_construct.spark.schemas import CHANGE
from pgoutput_construct.stream.relations import Description, RelationHistory
from pgoutput_construct.wire.messages import Relation
from pgoutput_construct.wire.protocol import RelationColumnFlags, RelationReplicaIdentity

__all__ = ["BY_NAME", "Base", "Identity", "Place", "Shape", "Table", "Usage", "find_tables"]

Place = tuple[int, int]
"""Where a change stands: ``(_commit_lsn, _seq)``."""
Shape = tuple[Place, frozenset[str]]
"""From where on changes have which columns; the table may have others that came later, or were dropped before."""


class Usage(NamedTuple):
    """How often, and where, one Relation describes visible rows in one segment."""

    segment: int
    """Index of the segment in the log."""
    description: int
    """Index in the history's descriptions."""
    rows: int
    """How many rows (truncates count as one)."""
    first: Place
    """Where the first of them stands."""
    last: Place
    """Where the last of them stands."""
    copied: bool = False
    """Whether they were copied from the table."""


class Base(NamedTuple):
    """The rows that a table begins with: its latest copy."""

    copy: TableCopy
    after_seq: int
    """Its rows have positions in the log after this, up to that of ``copy``."""
    columns: frozenset[str]
    """The columns that they were described with."""


class Identity(NamedTuple):
    """By what a table tells its rows apart while one Relation describes it, and where that Relation does."""

    relation_oid: int
    """The table."""
    replica_identity: str
    """As relreplident in pg_class."""
    key_columns: tuple[str, ...]
    """Its columns; none when the identity is the full row, or nothing."""
    first: Place
    """Its first change."""
    last: Place
    """Its last change."""


@dataclass(frozen=True)
class Table:
    """A published table, as its changes in the log show it."""

    namespace: str
    """Its schema, as last described."""
    name: str
    """Its name, as last described."""
    columns: pa.Schema
    """All columns that it ever had in the log, typed; those it has now come first, in their order."""
    current: tuple[str, ...]
    """The columns that it has now."""
    key_columns: tuple[str, ...]
    """The columns of its replica identity; none when the identity is the full row, or nothing."""
    replica_identity: str
    """As relreplident in pg_class, one of RelationReplicaIdentity."""
    identities: tuple[Identity, ...]
    """Those of all Relations of its changes, in the order of their first changes."""
    shapes: tuple[Shape, ...]
    """The columns of its changes, in the order of their first ones."""
    relation_oid: int
    """The table that has this name now."""
    base: Base | None
    """The copy that its state begins with, None where the log has none of this OID."""
    names: Mapping[int, tuple[str, ...]]
    """The history's descriptions of this table, by index: what their columns are called in ``columns``."""
    missing: Mapping[int, Mapping[str, Missing]]
    """What the rows of a description have in columns that came later."""
    segments: tuple[int, ...]
    """Indexes of the segments that hold its rows."""
    rows: int
    """How many changes the log has, and rows that were copied."""

    @property
    def qualified(self) -> str:
        """``schema.table`` as SQL writes it."""
        return qualified_name(self.namespace, self.name)

    @property
    def directory(self) -> str:
        """The name of its dataset's directory."""
        return directory_name(self.namespace, self.name)

    @property
    def current_columns(self) -> pa.Schema:
        """The columns that it has now, typed; those of its ``state``, without ``_untyped``."""
        return pa.schema([self.columns.field(name) for name in self.current])

    def check_names(self, case_sensitive: bool) -> None:
        """Raise ChangeLogError when a column's name cannot stand beside the others in a DataFrame."""
        remedy = "rename it, or publish the table with a column list that leaves it out"
        for name in self.columns.names:
            if name in CHANGE or name.startswith("_before."):
                raise ChangeLogError(f"{self.qualified}: the column {name!r} is named as one of the change; {remedy}")
        folded = [name.lower() for name in (*self.columns.names, *CHANGE)]
        if not case_sensitive and len(set(folded)) < len(folded):
            raise ChangeLogError(
                f"{self.qualified}: columns whose names differ only in case; set spark.sql.caseSensitive to true"
            )


class _ByName:
    """What a log without facts of the catalog knows of columns."""

    def numbers(self, description: Description) -> None:
        """Know no attribute number."""

    def missing(self, relation_oid: int, number: int) -> None:
        """Know no default."""


BY_NAME: Final = _ByName()
"""Of columns nothing is known but their names."""


def find_tables(
    history: RelationHistory,
    usages: Iterable[Usage],
    copies: Iterable[TableCopy] = (),
    numbering: Numbering = BY_NAME,
) -> dict[str, Table]:
    """Return the tables by qualified name, given which descriptions are used where, and the complete ``copies``.

    Tables without any committed change or copy are not among them: PostgreSQL also describes what is not published
    by itself, the partitions of a table that is published as a whole. A table is an OID under the name it had last,
    so its changes before a renaming are its own. A table that was dropped and re-created has two OIDs under one name:
    its changes are those of both, its state is that of the last. ``numbering`` tells columns apart.
    """
    found, copied = list(usages), defaultdict[int, list[TableCopy]](list)
    for copy in copies:
        copied[copy.relation_oid].append(copy)
    latest = _latest(history, found, copied)
    by_oid: dict[int, list[int]] = defaultdict(list)
    for index in latest:
        by_oid[history.descriptions[index].relation.relation_oid].append(index)
    by_name: dict[str, set[int]] = defaultdict(set)
    for indexes in by_oid.values():
        relation = history.descriptions[max(indexes, key=latest.__getitem__)].relation
        by_name[qualified_name(relation.namespace, relation.name)].update(indexes)
    return {
        name: _table(history, sorted(by_name[name], key=latest.__getitem__, reverse=True), found, copied, numbering)
        for name in sorted(by_name)
    }


def _latest(
    history: RelationHistory, usages: Iterable[Usage], copied: Mapping[int, Sequence[TableCopy]]
) -> dict[int, Place]:
    """Return where each description is used last; of a table that was copied without a row, those that it has."""
    latest: dict[int, Place] = {}
    for usage in usages:
        latest[usage.description] = max(latest.get(usage.description, usage.last), usage.last)
    used = {history.descriptions[index].relation.relation_oid for index in latest}
    for index, description in enumerate(history.descriptions):
        oid = description.relation.relation_oid
        if oid not in used and oid in copied:
            latest[index] = int(copied[oid][-1].snapshot.lsn), description.seq
    return latest


def _table(
    history: RelationHistory,
    order: Sequence[int],
    usages: Iterable[Usage],
    copied: Mapping[int, Sequence[TableCopy]],
    numbering: Numbering,
) -> Table:
    """Return a table, given its descriptions, the latest first."""
    indexes = frozenset(order)
    mine = [usage for usage in usages if usage.description in indexes]
    of_copies = {usage.description for usage in mine if usage.copied}
    used = used_ones([(index, history.descriptions[index], index in of_copies) for index in order], numbering)
    columns = find_columns(used, numbering)
    relation = history.descriptions[order[0]].relation
    return Table(
        namespace=relation.namespace,
        name=relation.name,
        columns=columns.schema,
        current=columns.names[order[0]],
        key_columns=_key_columns(relation, columns.names[order[0]]),
        replica_identity=relation.replica_identity,
        identities=_identities(history, mine, columns),
        shapes=_shapes(mine, columns),
        relation_oid=relation.relation_oid,
        base=_base(copied.get(relation.relation_oid, ()), mine, columns),
        names=columns.names,
        missing=columns.missing,
        segments=tuple(sorted({usage.segment for usage in mine})),
        rows=sum(usage.rows for usage in mine),
    )


def _key_columns(relation: Relation, names: Sequence[str]) -> tuple[str, ...]:
    pairs = zip(relation.columns, names, strict=True)
    marked = tuple(name for column, name in pairs if column.flags & RelationColumnFlags.KEY)
    return () if relation.replica_identity == RelationReplicaIdentity.FULL else marked


def _identities(history: RelationHistory, usages: Iterable[Usage], columns: Columns) -> tuple[Identity, ...]:
    by_description: dict[int, list[Usage]] = defaultdict(list)
    for usage in usages:
        if not usage.copied:
            by_description[usage.description].append(usage)
    found = []
    for index, used in by_description.items():
        relation = history.descriptions[index].relation
        keys = _key_columns(relation, columns.names[index])
        first, last = min(usage.first for usage in used), max(usage.last for usage in used)
        found.append(Identity(relation.relation_oid, relation.replica_identity, keys, first, last))
    return tuple(sorted(found, key=lambda identity: identity.first))


def _shapes(usages: Iterable[Usage], columns: Columns) -> tuple[Shape, ...]:
    found = sorted((each.first, each.description) for each in usages if not each.copied)
    shapes = [(first, frozenset(columns.names[index])) for first, index in found]
    return tuple(shape for number, shape in enumerate(shapes) if not number or shapes[number - 1][1] != shape[1])


def _base(copies: Sequence[TableCopy], usages: Iterable[Usage], columns: Columns) -> Base | None:
    if not copies:
        return None
    copy, after = copies[-1], copies[-2].seq if len(copies) > 1 else -1
    mine = [usage for usage in usages if usage.copied and after < usage.first[1] < copy.seq]
    described = [frozenset(columns.names[usage.description]) for usage in mine]
    return Base(copy, after, frozenset(columns.schema.names).intersection(*described))
