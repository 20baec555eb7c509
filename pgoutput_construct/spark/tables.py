"""The tables of a log: which names, columns and keys its committed rows have, over all alterations."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from pgoutput_construct.columnar import columns_schema, unify
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark.names import directory_name, qualified_name
from pgoutput_construct.spark.schemas import CHANGE
from pgoutput_construct.stream.relations import Description, RelationHistory
from pgoutput_construct.wire.messages import Relation
from pgoutput_construct.wire.protocol import RelationColumnFlags, RelationReplicaIdentity

__all__ = ["Identity", "Place", "Table", "Usage", "find_tables"]

Place = tuple[int, int]
"""Where a change stands: ``(_commit_lsn, _seq)``."""


class Usage(NamedTuple):
    """How often, and where, one Relation describes committed rows in one segment."""

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
    """Those of all its Relations, in the order of their first changes; the two fields above are of the last."""
    descriptions: frozenset[int]
    """Which of the history's descriptions are of this table, by index."""
    segments: tuple[int, ...]
    """Indexes of the segments that hold its rows."""
    rows: int
    """How many changes the log has."""

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


def find_tables(history: RelationHistory, usages: Iterable[Usage]) -> dict[str, Table]:
    """Return the tables by qualified name, given which descriptions are used where.

    Tables without any committed change are not among them: PostgreSQL also describes what is not published by
    itself, the partitions of a table that is published as a whole. A table is an OID under the name it had last, so
    its changes before a renaming are its own. A table that was dropped and re-created has two OIDs under one name:
    its changes are those of both.
    """
    found = list(usages)
    latest: dict[int, Place] = {}
    for usage in found:
        latest[usage.description] = max(latest.get(usage.description, usage.last), usage.last)
    by_oid: dict[int, list[int]] = defaultdict(list)
    for index in latest:
        by_oid[history.descriptions[index].relation.relation_oid].append(index)
    by_name: dict[str, set[int]] = defaultdict(set)
    for indexes in by_oid.values():
        relation = history.descriptions[max(indexes, key=latest.__getitem__)].relation
        by_name[qualified_name(relation.namespace, relation.name)].update(indexes)
    return {name: _table(history, latest, by_name[name], found) for name in sorted(by_name)}


def _table(history: RelationHistory, latest: Mapping[int, Place], indexes: set[int], usages: list[Usage]) -> Table:
    order = sorted(indexes, key=latest.__getitem__, reverse=True)
    descriptions = [history.descriptions[index] for index in order]
    relation = descriptions[0].relation
    mine = [usage for usage in usages if usage.description in indexes]
    return Table(
        namespace=relation.namespace,
        name=relation.name,
        columns=_union(descriptions),
        current=tuple(column.name for column in relation.columns),
        key_columns=_key_columns(relation),
        replica_identity=relation.replica_identity,
        identities=_identities(history, mine),
        descriptions=frozenset(indexes),
        segments=tuple(sorted({usage.segment for usage in mine})),
        rows=sum(usage.rows for usage in mine),
    )


def _key_columns(relation: Relation) -> tuple[str, ...]:
    marked = tuple(column.name for column in relation.columns if column.flags & RelationColumnFlags.KEY)
    return () if relation.replica_identity == RelationReplicaIdentity.FULL else marked


def _identities(history: RelationHistory, usages: Iterable[Usage]) -> tuple[Identity, ...]:
    by_description: dict[int, list[Usage]] = defaultdict(list)
    for usage in usages:
        by_description[usage.description].append(usage)
    found = [_identity(history.descriptions[index].relation, used) for index, used in by_description.items()]
    return tuple(sorted(found, key=lambda identity: identity.first))


def _identity(relation: Relation, usages: Iterable[Usage]) -> Identity:
    first, last = min(usage.first for usage in usages), max(usage.last for usage in usages)
    return Identity(relation.relation_oid, relation.replica_identity, _key_columns(relation), first, last)


def _union(descriptions: Iterable[Description]) -> pa.Schema:
    """Unite the columns by name, the latest description first; types become wide enough for all."""
    kinds: dict[str, pa.DataType] = {}
    for description in descriptions:
        for field in columns_schema(description):
            kinds[field.name] = unify(kinds.get(field.name, field.type), field.type)
    return pa.schema(list(kinds.items()))
