"""What is known of a table of a log: its names, columns and keys over all alterations."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from pgoutput_construct.changelog.copies import TableCopy
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.spark.columns import Missing
from pgoutput_construct.spark.names import directory_name
from pgoutput_construct.stream.identifiers import full_name

__all__ = ["Base", "Identity", "Place", "Refused", "Shape", "Table", "Usage"]

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


class Refused(NamedTuple):
    """A published table that cannot be read, such as one with a column whose name is not UTF-8."""

    relation_oid: int
    """The table that has the name now."""
    dropped: bool
    """Whether it is no more."""
    error: PgoutputError
    """Why."""


class Identity(NamedTuple):
    """By what a table tells its rows apart while one Relation describes it, and where that Relation does."""

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
    """Those of all Relations of its own changes, in the order of their first changes."""
    shapes: tuple[Shape, ...]
    """The columns of its own changes, in the order of their first ones."""
    relation_oid: int
    """The table that has this name now; its state is made of its own changes alone."""
    relation_oids: tuple[int, ...]
    """The tables that had this name last, this one among them: the changes under the name are those of all."""
    base: Base | None
    """The copy that its state begins with, None where the log has none of this OID."""
    names: Mapping[int, tuple[str, ...]]
    """The history's descriptions of these tables, by index: what their columns are called in ``columns``."""
    missing: Mapping[int, Mapping[str, Missing]]
    """What the rows of a description have in columns that came later."""
    defaults: Mapping[str, Missing]
    """What rows of its own have in columns that came later."""
    segments: tuple[int, ...]
    """Indexes of the segments that hold its rows."""
    rows: int
    """How many changes the log has, and rows that were copied."""
    dropped: bool = False
    """Whether the table is no more."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """The attribute numbers of its columns, as far as the log knows them: what they are, whatever they are called."""

    @property
    def qualified(self) -> str:
        """``schema.table`` as SQL writes it."""
        return full_name(self)

    @property
    def directory(self) -> str:
        """The name of its dataset's directory."""
        return directory_name(self.namespace, self.name)

    @property
    def current_columns(self) -> pa.Schema:
        """The columns that it has now, typed; those of its ``state``, without ``_untyped``."""
        return pa.schema([self.columns.field(name) for name in self.current])

    @property
    def has_equal_names(self) -> bool:
        """Whether names of its columns differ only in case."""
        return len({name.lower() for name in self.columns.names}) < len(self.columns.names)

    def is_gone(self, relation_oid: int) -> bool:
        """Return whether a table that had the name is no more."""
        return self.dropped or relation_oid != self.relation_oid
