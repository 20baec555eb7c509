"""What a log says of one table: its names, columns and keys over all alterations; and the directory of its dataset."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

import pyarrow as pa

from pgoutput_construct.changelog._facts.copies import TableCopy
from pgoutput_construct.changelog._segment.block import Flags, Numbers
from pgoutput_construct.lake._directories import directory_name
from pgoutput_construct.spark._log_view.table_columns import ColumnDefault
from pgoutput_construct.stream.identifiers import full_name

if TYPE_CHECKING:
    from pyspark.sql import Column

ChangePosition = tuple[int, int]
"""The order of a change: ``(_commit_lsn, _seq)``."""
ColumnsSince = tuple[ChangePosition, frozenset[str]]
"""From which position on changes have which columns; the table may have had others before or after."""
_Value = TypeVar("_Value")


class BaseCopy(NamedTuple):
    """The rows that a table begins with: its latest copy."""

    copy: TableCopy
    after_seq: int
    """The rows of the copy have seqs after this one, up to that of ``copy``."""
    columns: frozenset[str]
    """The columns that they were described with."""

    @overload
    def has(self, lsns: Numbers, seqs: Numbers) -> Flags: ...

    @overload
    def has(self, lsns: "Column", seqs: "Column") -> "Column": ...

    def has(self, lsns: Any, seqs: Any) -> Any:
        """Return whether rows are of the copy, and not changed since.

        Args:
            lsns: Their ``_commit_lsn``, as an array or as a column of a query.
            seqs: Their ``_seq``, as one, too.
        """
        return (lsns == int(self.copy.snapshot.lsn)) & (seqs > self.after_seq) & (seqs < self.copy.seq)


class Identity(NamedTuple):
    """A replica identity of a table, and the positions of its changes."""

    replica_identity: str
    """As relreplident in pg_class."""
    key_columns: tuple[str, ...]
    """Its columns; none for the full row, or nothing."""
    first: ChangePosition
    """Its first change."""
    last: ChangePosition
    """Its last change."""


@dataclass(frozen=True)
class Table:
    """A published table, as its changes in the log show it."""

    namespace: str
    """Its schema, as last described."""
    name: str
    """Its name, as last described."""
    columns: pa.Schema
    """All columns that it ever had in the log, typed; the present ones come first, in their order."""
    current: tuple[str, ...]
    """The present columns."""
    key_columns: tuple[str, ...]
    """The columns of its replica identity; none for the full row, or nothing."""
    replica_identity: str
    """As relreplident in pg_class, one of RelationReplicaIdentity."""
    identities: tuple[Identity, ...]
    """Those of all Relations of its own changes, in the order of their first changes."""
    shapes: tuple[ColumnsSince, ...]
    """The columns of its own changes, in the order of their first ones."""
    relation_oid: int
    """The OID of the table that has this name now; its state is made of its own changes alone."""
    relation_oids: tuple[int, ...]
    """The OIDs of the tables that had this name last; the changes under the name are those of all."""
    base: BaseCopy | None
    """The copy that its state begins with, None where the log has none of this OID."""
    names: Mapping[int, tuple[str, ...]]
    """The history's descriptions of these tables, by index: what their columns are called in ``columns``."""
    missing: Mapping[int, Mapping[str, ColumnDefault]]
    """The defaults that the rows of a description have in columns that were added later."""
    defaults: Mapping[str, ColumnDefault]
    """The defaults that its own rows have in columns that were added later."""
    segment_indexes: tuple[int, ...]
    """Indexes of the segments that hold its rows."""
    rows: int
    """Number of changes and copied rows in the log."""
    dropped: bool = False
    """Whether the table was dropped."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """The attribute numbers of its columns, as far as the log has them."""
    comments: Mapping[int, str] | None = None
    """The comments on its columns by attribute number, and on itself as 0; None where the log has none of the catalog.
    """
    rules: Mapping[str, str] = field(default_factory=dict)
    """What a reader has made of columns, by their names there: excluded, renamed, or how their values are masked."""
    hides_values: bool = False
    """Whether some are excluded or masked."""
    copied: Mapping[str, str] = field(default_factory=dict)
    """The columns that a reader has added, by their names, and the column of a change that each is a copy of."""
    needs_types: bool = False
    """Whether it is an error for a reader if the type of a column cannot hold a value."""

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
        """The present columns, typed; those of its ``state``, without ``_untyped``."""
        return pa.schema([self.columns.field(name) for name in self.current])

    def renamed(self, rename: Callable[[str], str]) -> "Table":
        """Return the table with other names of its columns.

        Args:
            rename: Returns the new name of a column; different ones for different columns.
        """

        def every(names: Iterable[str]) -> tuple[str, ...]:
            return tuple(map(rename, names))

        def by_name(values: Mapping[str, _Value]) -> dict[str, _Value]:
            return {rename(name): value for name, value in values.items()}

        return replace(
            self,
            columns=pa.schema([field.with_name(rename(field.name)) for field in self.columns]),
            current=every(self.current),
            key_columns=every(self.key_columns),
            identities=tuple(each._replace(key_columns=every(each.key_columns)) for each in self.identities),
            shapes=tuple((first, frozenset(every(names))) for first, names in self.shapes),
            base=self.base and self.base._replace(columns=frozenset(every(self.base.columns))),
            names={index: every(names) for index, names in self.names.items()},
            missing={index: by_name(values) for index, values in self.missing.items()},
            defaults=by_name(self.defaults),
            numbers=by_name(self.numbers),
            copied=by_name(self.copied),
        )

    def is_removed(self, relation_oid: int) -> bool:
        """Return whether a table that had the name was dropped or renamed."""
        return self.dropped or relation_oid != self.relation_oid


def plain_path(path: object) -> str:
    """Return a path that Spark takes as a name, and not as a pattern."""
    return re.sub(r"[][{}*?\\]", r"\\\g<0>", str(path))
