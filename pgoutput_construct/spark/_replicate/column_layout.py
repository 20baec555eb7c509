"""Which columns the tables of a warehouse have in addition to their own, and in which types: chosen, and remembered.

- The **position** of the change that made a row (``_commit_lsn``, ``_seq``): ``replicate`` itself can do without. Rows
  before a batch come before its changes, whatever their positions; only a table whose rows are told apart by all
  of their columns needs to know which of these a row had, and all rows of a dataset have those of its version. So
  where rows have no positions they are given that of the last change in the dataset (``Sink.read_all_for_replay``).
- **``_untyped``** has what types cannot hold, and is needed wherever a type cannot hold all values. A table can do
  without it if it has no such type, or if such a value is an error of the table (``StagedTable.needs_types``).
- **``_commit_time`` and ``_xid``** are copies of columns of changes. Replays take them for columns of the table that
  every change sends; only ``staging``, which fills them, knows better. They are not compared with the server.
- **``_deleted_at``** is that of tables whose deleted rows stay (``soft_deletes``).

Histories always have ``dataset_columns.HISTORY``. A table whose added columns change is written again, from the log;
but a superfluous ``_untyped`` stays until that is so in any case.
"""

from collections.abc import Mapping
from copy import copy
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type

from pgoutput_construct.columnar import chosen_types
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.lake._notes import Dataset
from pgoutput_construct.spark._log_view.change_columns import POSITION, changes_schema
from pgoutput_construct.spark._log_view.replicated_tables import Table
from pgoutput_construct.spark._open_log import OpenLog
from pgoutput_construct.spark._state.equality import is_always_typed
from pgoutput_construct.spark._table_formats.dataset_columns import DELETED_AT, STATE

_UNTYPED: Final = "_untyped"
_COPIED: Final = ("_commit_time", "_xid")


class MetadataColumns(StrEnum):
    """Which metadata columns say by which change a row came."""

    NONE = "none"
    LSN = "lsn"
    """``_commit_lsn`` and ``_seq``."""
    ALL = "all"
    """Also ``_commit_time`` and ``_xid``."""


class UntypedColumns(StrEnum):
    """Which tables have ``_untyped``."""

    ALWAYS = "always"
    NEEDED = "needed"
    """Those with a type that cannot hold every value."""
    NEVER = "never"
    """None: a value that its type cannot hold is an error of its table."""


@dataclass(frozen=True)
class ColumnLayout:
    """The choices of a warehouse; the defaults are those of a new one."""

    soft_delete: bool = False
    """Whether deleted rows stay, with the timestamp of the commit that deleted them."""
    metadata: MetadataColumns = MetadataColumns.LSN
    untyped: UntypedColumns = UntypedColumns.ALWAYS
    types: str = ""
    """The types chosen for columns (``columnar.chosen_types``)."""

    @classmethod
    def from_notes(cls, notes: Mapping[str, Any]) -> "ColumnLayout":
        """Return the layout in the notes of a warehouse; raise PgoutputError for an invalid one."""
        try:
            return cls().chosen(**notes)
        except TypeError as error:
            raise PgoutputError(f"the notes of the warehouse have an invalid layout of columns: {error}") from None

    def to_notes(self) -> dict[str, Any]:
        """Return it for the notes of a warehouse."""
        return asdict(self)

    def chosen(
        self,
        soft_delete: bool | None = None,
        metadata: str | None = None,
        untyped: str | None = None,
        types: str | None = None,
    ) -> "ColumnLayout":
        """Return the layout after a run that is given options; None keeps what is.

        Tables that get their own columns alone have no ``_untyped`` either, unless it is chosen, too. Raises
        PgoutputError for an invalid option.
        """
        implied = None
        if metadata not in (None, self.metadata):  # what is given again changes nothing
            implied = UntypedColumns.NEVER if metadata == "none" else UntypedColumns.ALWAYS
        chosen_types(types or "")
        return ColumnLayout(
            self.soft_delete if soft_delete is None else soft_delete,
            self.metadata if metadata is None else _word(MetadataColumns, metadata, "metadata_columns"),
            _word(UntypedColumns, untyped, "untyped") if untyped is not None else implied or self.untyped,
            self.types if types is None else types,
        )

    def added(self, table: Table) -> tuple[str, ...] | None:
        """Return the added columns of a table, as replays call them; None for the usual ones."""
        found = [_UNTYPED] if self._has_untyped(table) else []
        found += [] if self.metadata is MetadataColumns.NONE else POSITION
        found += [DELETED_AT] if self.soft_delete else []
        return None if tuple(found) == STATE else tuple(found)

    def kept_of(self, table: Table, before: Dataset | None) -> tuple[str, ...] | None:
        """Return the added columns of a table that changes are applied to: a superfluous ``_untyped`` stays."""
        found = self.added(table)
        if before is None:
            return found
        was, now = (STATE if each is None else each for each in (before.version.shape.added, found))
        return before.version.shape.added if was == (_UNTYPED, *now) else found

    def _has_untyped(self, table: Table) -> bool:
        if self.untyped is not UntypedColumns.NEEDED:
            return self.untyped is UntypedColumns.ALWAYS
        return not all(is_always_typed(from_arrow_type(each.type)) for each in table.columns)

    def applied_to(self, log: OpenLog, prefix: str) -> OpenLog:
        """Return a log whose tables have copies of columns of changes, if these are chosen.

        Args:
            log: The log.
            prefix: The prefix of added columns.
        """
        needs_types = self.untyped is UntypedColumns.NEVER
        if self.metadata is not MetadataColumns.ALL and not needs_types:
            return log
        found, names = copy(log), _COPIED if self.metadata is MetadataColumns.ALL else ()
        tables = {
            name: replace(_with_copies(table, prefix, names), needs_types=needs_types)
            for name, table in log.opened.tables.items()
        }
        found.opened = replace(log.opened, tables=tables)
        return found


DEFAULT_LAYOUT: Final = ColumnLayout()
"""The layout of a new warehouse, unless it is chosen."""


def _with_copies(table: Table, prefix: str, sources: tuple[str, ...]) -> Table:
    """Return a table with copies of columns of changes, under names that none of its own columns has."""
    kinds, taken = changes_schema(pa.schema([])), {name.lower() for name in table.columns.names}
    copied = dict[str, str]()
    for source in sources:
        name = f"{prefix}{source.removeprefix('_')}"
        while name.lower() in taken:
            name = f"_{name}"
        copied[name] = source
    fields = [kinds.field(source).with_name(name) for name, source in copied.items()]
    columns = pa.schema([*(table.columns.field(name) for name in table.current), *fields])
    others = [each for each in table.columns if each.name not in table.current]
    return replace(table, columns=pa.schema([*columns, *others]), current=(*table.current, *copied), copied=copied)


def _word(kind: type[StrEnum], text: str, name: str) -> Any:
    if text not in list(kind):
        raise PgoutputError(f"{name} is {text!r}: it is one of {', '.join(kind)}")
    return kind(text)
