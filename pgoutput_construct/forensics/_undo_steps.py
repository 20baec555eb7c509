"""One SQL statement for each change that is taken back, or why there is none.

A statement finds its row by the replica identity and by every other value that the change left, so a row that was
changed since is not found, and the script ends with an error. Values are compared as the server prints them
(``concat()`` calls the output functions), since not every type has an equality, and equal values may have several
texts; types whose equality says the same, and columns of the identity, which an index finds, are compared by ``=``.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from psycopg import sql

from pgoutput_construct.forensics._row_states import RowStep
from pgoutput_construct.forensics._table_changes import LoggedChange
from pgoutput_construct.forensics._tracked_table import ColumnId, Row, TrackedTable
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES
from pgoutput_construct.pgtypes.loader import base_oid
from pgoutput_construct.stream.identifiers import quote_identifier
from pgoutput_construct.stream.rows import SNAPSHOT
from pgoutput_construct.wire.messages import Binary

__all__ = ["Obstacle", "UndoStep", "UndoneTable", "literal", "printed"]

_PLAIN: Final = frozenset(
    [
        *("bool", "int2", "int4", "int8", "oid", "numeric", "text", "varchar", "name", "uuid", "bytea"),
        *("date", "timestamp", "timestamptz"),
    ]
)
"""The types whose values are compared by their equality."""


class UndoStep(NamedTuple):
    """A statement that takes a change back."""

    about: str
    """The change: its seq, operation, table and key."""
    statement: str
    """The SQL, which changes one row."""


class Obstacle(NamedTuple):
    """A change that cannot be taken back."""

    about: str
    """The change: its seq, operation, table and key."""
    reason: str
    """Why not."""

    def __str__(self) -> str:
        return f"{self.about}: {self.reason}"


class UndoneTable:
    """Takes back the changes of one table, which is written to as it is named now."""

    def __init__(self, table: TrackedTable, *, publishes_deletes: bool) -> None:
        """Take a table, and whether a publication publishes its deletes."""
        self.table = table
        self._publishes_deletes = publishes_deletes
        self.notes: dict[str, None] = {}
        """What is different now from what the changes were made to."""
        self.name: Final = table.latest_name
        """The table as SQL names it now."""
        self._columns: Mapping[ColumnId, str] = {
            column: quote_identifier(name) for column, name in table.current_columns().items()
        }
        self._computed = frozenset(
            column for column in self._columns if (known := table.catalog_column(column)) and known.generated
        )
        latest = table.descriptions[-1]
        self._types = {
            column: base_oid(described.type_oid, latest.types)
            for column, described in zip(table.shape(latest).columns, latest.relation.columns, strict=True)
        }

    def take_back(self, step: RowStep) -> UndoStep | Obstacle | None:
        """Return what takes a change back; None if there is nothing to do."""
        about = self.about(step)
        if self.table.is_gone:
            return Obstacle(about, "the table was dropped since")
        if not self._is_utf8(step):
            return Obstacle(about, "a name or a value is not UTF-8, as the script is: take it back by hand")
        if step.before is None:
            return self._remove(about, step.after or {})
        return self._restore(about, step) if step.after is None else self._reset(about, step)

    def _is_utf8(self, step: RowStep) -> bool:
        """Return whether names and values are UTF-8; in a database in SQL_ASCII they need not be."""
        names = (text.encode("utf-8", "surrogateescape") for text in (self.name, *self._columns.values()))
        values = (value for row in (step.before, step.after) for value in (row or {}).values() if value is not None)
        texts = (value for value in values if not isinstance(value, Binary))
        try:
            b"\0".join((*names, *texts)).decode("utf-8")
        except UnicodeDecodeError:
            return False
        return True

    def about(self, step: RowStep) -> str:
        """Return which change a step is, for comments and errors."""
        change = step.change
        op = change.op if isinstance(change, LoggedChange) else SNAPSHOT
        row, key = step.after or step.before or {}, self._key(step)
        names = self.table.column_names
        known = (f"{names[each]}={row[each]!r}"[:80] for each in key if each in row)
        pairs = ", ".join(known).replace("=b'", "='")
        return f"seq {change.seq}: {op} of {self.name}{pairs and f' ({pairs})'}"

    def _key(self, step: RowStep) -> Sequence[ColumnId]:
        return () if step.shape is None or step.shape.is_full else step.shape.key

    def _remove(self, about: str, row: Row) -> UndoStep | Obstacle:
        """Take an insert back."""
        latest = self.table.shape(self.table.descriptions[-1])
        if self._publishes_deletes and not latest.key:
            return Obstacle(about, "the server refuses to delete from the table, which has no replica identity")
        found = self._where(row, about)
        return found if isinstance(found, Obstacle) else UndoStep(about, f"DELETE FROM {self.name}\n    WHERE {found}")

    def _restore(self, about: str, step: RowStep) -> UndoStep | Obstacle:
        """Take a delete, or the truncate of one row, back."""
        row, needed = step.before or {}, self._needed(step)
        if (missing := self._missing(about, row, needed)) is not None:
            return missing
        if unpublished := self.table.unpublished_columns():
            names = ", ".join(map(quote_identifier, unpublished))
            return Obstacle(about, f"the stream does not have the values of columns that are not published: {names}")
        columns = [column for column in needed if column not in self._computed]
        added = [column for column in self._columns if column not in needed and column not in self._computed]
        if added:
            self.notes[f"{self.name}: rows get the defaults of columns that were added since: {self._named(added)}"] = (
                None
            )
        if not columns:
            return UndoStep(about, f"INSERT INTO {self.name} DEFAULT VALUES")
        values = ", ".join(literal(row[column]) for column in columns)
        # An identity column that is GENERATED ALWAYS takes no value without this; for others it means nothing.
        return UndoStep(
            about,
            f"INSERT INTO {self.name} ({self._named(columns)})\n    OVERRIDING SYSTEM VALUE VALUES ({values})",
        )

    def _reset(self, about: str, step: RowStep) -> UndoStep | Obstacle | None:
        """Take an update back."""
        before, after = step.before or {}, step.after or {}
        unsent = step.sent.unsent if step.sent is not None else ()
        sent = [column for column in after if column not in unsent and column not in self._computed]
        changed = [column for column in sent if column not in before or before[column] != after[column]]
        if (missing := self._missing(about, before, changed)) is not None:
            return missing
        dropped = [column for column in changed if column not in self._columns]
        if unknown := [column for column in dropped if isinstance(column, str)]:
            return Obstacle(about, f"nobody knows what became of the columns {self._named(unknown)}")
        if dropped:
            self._note(f"columns were dropped since: {self._named(dropped)}")
        pairs = [f"{self._columns[each]} = {literal(before[each])}" for each in changed if each in self._columns]
        if not pairs:
            return None
        found = self._where(after, about)
        if isinstance(found, Obstacle):
            return found
        return UndoStep(about, f"UPDATE {self.name} SET {', '.join(pairs)}\n    WHERE {found}")

    def _missing(self, about: str, row: Row, columns: Sequence[ColumnId]) -> Obstacle | None:
        """Return why a row cannot get its old values in some columns; None if it can."""
        if missing := [column for column in columns if column not in row]:
            return Obstacle(about, f"the log does not have the old values of {self._named(missing)}")
        if binary := [column for column in columns if isinstance(row[column], Binary)]:
            names = self._named(binary)
            return Obstacle(about, f"only the server has the text of {names}, which was captured in binary format")
        return None

    def _needed(self, step: RowStep) -> list[ColumnId]:
        """Return the columns of a removed row that exist now, in the order of its description."""
        described = step.shape.columns if step.shape is not None else ()
        columns = dict.fromkeys([*described, *(step.before or {})])
        return [column for column in columns if column in self._columns]

    def _where(self, row: Row, about: str) -> str | Obstacle:
        """Return the condition that finds one row as a change left it."""
        shape = self.table.shape(self.table.descriptions[-1])
        key = [] if shape.is_full else [column for column in shape.key if column in row]
        others = [column for column in row if column not in key and column in self._columns]
        compared = [column for column in others if not isinstance(row[column], Binary)]
        left = [column for column in others if isinstance(row[column], Binary)]
        if left and not key:
            names = self._named(left)
            return Obstacle(
                about,
                f"it has no key, and only the server has the text of {names}, which was captured in binary format",
            )
        if left:
            self._note(f"not compared, since only the server has their text: {self._named(left)}")
        if any(isinstance(row[column], Binary) for column in key):
            return Obstacle(about, "only the server has the text of its key, which was captured in binary format")
        conditions = [self._condition(column, row[column], is_key=True) for column in key]
        conditions += [self._condition(column, row[column]) for column in compared]
        if key:
            return " AND ".join(conditions)
        # Rows may be equal: one of them.
        all_of = " AND ".join(conditions) or "true"
        found = f"SELECT tableoid, ctid FROM {self.name} WHERE {all_of} LIMIT 1 FOR UPDATE"
        return f"(tableoid, ctid) = ({found})"

    def _condition(self, column: ColumnId, value: bytes | None, is_key: bool = False) -> str:
        name, builtin = self._columns[column], BUILTIN_TYPES.get(self._types.get(column, 0))
        if builtin is not None and value is None:
            return f"{name} IS NULL"
        if value is None:
            return f"pg_catalog.num_nulls({name}) = 1"  # IS NULL is also true for a row of NULLs
        # A literal takes the type of what it is compared with, but for composite types, whose equality is record_eq(),
        # and for regclass and the like, which have that of oid.
        has_own = builtin is not None and not builtin.name.startswith("reg")
        if builtin is not None and (builtin.name in _PLAIN or (is_key and has_own)):
            return f"{name} = {literal(value)}"
        is_there = "" if value else f" AND pg_catalog.num_nulls({name}) = 0"
        return f"pg_catalog.concat({name}) = {literal(value)}{is_there}"

    def _note(self, text: str) -> None:
        self.notes[f"{self.name}: {text}"] = None

    def _named(self, columns: Sequence[ColumnId]) -> str:
        names = self.table.column_names
        return ", ".join(self._columns.get(column) or quote_identifier(names[column]) for column in columns)


def literal(value: bytes | None) -> str:
    """Return a value as SQL has it: PostgreSQL takes its type from where it stands."""
    return sql.Literal(None if value is None else value.decode("utf-8")).as_string(None).strip()


def printed(text: str) -> str:
    """Return text for a comment of SQL, which ends with its line."""
    return "".join(_visible(text))


def _visible(text: str) -> Iterator[str]:
    for each in text:
        yield each if each.isprintable() else each.encode("unicode_escape").decode("ascii")
