"""The rows of one table as its changes make them: what each row was before a change, and what it is after it.

A message says little of the row before: with the replica identity DEFAULT only the new values, and the key if that
changed; never a TOASTed value that did not change. What it does not say the log mostly said before: in the change or
the copy that wrote it. So changes are followed in their order (``_table_changes``), each row under its replica
identity.

Which row a change is about
    The old row of the message, or its key, decides; without one the key of the new row, which then did not change.
    A replica identity is unique at any time: PostgreSQL accepts only an index whose uniqueness is checked at once
    (``indimmediate``). So a row that would get the identity of another one replaces it: the log lacks what removed
    that. Under FULL several rows may be equal, or swap keys (deferrable constraints): there the whole old row
    decides, and of several equal ones the first, which makes no difference.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from pgoutput_construct.changelog._facts.copies import TableCopy
from pgoutput_construct.forensics._table_changes import LoggedChange
from pgoutput_construct.forensics._tracked_table import ColumnId, Row, RowShape, TrackedTable
from pgoutput_construct.stream.rows import SNAPSHOT
from pgoutput_construct.wire.protocol import UpdateOldKind

__all__ = ["RowLife", "RowStates", "RowStep", "SentRows", "sent_rows"]


class SentRows(NamedTuple):
    """What a change sends of its row."""

    shape: RowShape
    old: Row | None
    """The old row, or its key; None if neither was sent."""
    new: Row | None
    """The new row, without the values that were not sent."""
    unsent: tuple[ColumnId, ...]
    """The columns of the new row whose value was not sent."""

    @property
    def identity(self) -> Row:
        """What identifies the row before the change."""
        if self.old is not None:
            return self.old
        new = self.new or {}
        return {column: new[column] for column in self.shape.key if column in new}


def sent_rows(table: TrackedTable, change: LoggedChange) -> SentRows | None:
    """Return what a change sends of its row; None for a truncate."""
    if change.description is None:
        return None
    shape, message = table.shape(change.description), change.message
    old = new = None
    unsent: tuple[ColumnId, ...] = ()
    if (values := getattr(message, "new", None)) is not None:
        new, unsent = shape.read(values)
    if (values := getattr(message, "old", None)) is not None:
        old = shape.read(values).row
        if getattr(message, "old_kind", None) == UpdateOldKind.KEY:
            old = {column: old[column] for column in shape.key}
    return SentRows(shape, old, new, unsent)


@dataclass(eq=False)
class RowLife:
    """One row, from its insert to its delete, whatever its key is meanwhile."""

    row: Row = field(default_factory=Row)
    """Its known values now."""


class RowStep(NamedTuple):
    """A change of one row."""

    life: RowLife
    change: LoggedChange | TableCopy
    """The change, or the copied row; a copy in which the row is missing."""
    before: Row | None
    """The known values before it; None if there was no row."""
    after: Row | None
    """The known values after it; None if there is no row."""
    sent: SentRows | None
    """What was sent; None for a truncate and for a copy."""
    shape: RowShape | None
    """How the table's rows were described then; None where nothing has described them yet."""


class RowStates:
    """Follows the rows of a table."""

    def __init__(self, table: TrackedTable) -> None:
        self._table = table
        self._key: tuple[ColumnId, ...] = ()
        """What identifies rows: the replica identity, or all columns where there is none."""
        self._is_full = False
        """Whether several rows may have the same."""
        self._columns: frozenset[ColumnId] = frozenset()
        self._shape: RowShape | None = None
        self._by_key: dict[tuple[bytes | None, ...], list[RowLife]] = {}
        """The rows whose identity is known, by its values."""
        self._others: list[RowLife] = []
        """The rows of which a value of the identity is not known."""
        self._uncopied: dict[int, RowLife] | None = None
        """While a copy is read: the rows that it has not had yet, by ``id``."""
        self._copy: TableCopy | None = None

    def follow(self, changes: Iterable[LoggedChange | TableCopy]) -> Iterator[RowStep]:
        """Apply changes in their order; yield what becomes of each row."""
        for change in changes:
            if isinstance(change, TableCopy):
                yield from self._end_copy()
                self._copy, self._uncopied = change, {id(life): life for life in self._lives()}
                continue
            if change.op != SNAPSHOT:
                yield from self._end_copy()
            yield from self._apply(change)
        yield from self._end_copy()

    def _apply(self, change: LoggedChange) -> Iterator[RowStep]:
        sent = sent_rows(self._table, change)
        if sent is None:
            lives = [*self._lives()]
            self._by_key, self._others = {}, []
            yield from (RowStep(life, change, life.row, None, None, self._shape) for life in lives)
            return
        self._use(sent.shape)
        if change.op == SNAPSHOT:
            yield self._copied(change, sent)
        elif sent.old is None and change.op == "insert":
            life = RowLife()
            self._put(life, sent.new or {})
            yield RowStep(life, change, None, life.row, sent, sent.shape)
        else:
            yield self._changed(change, sent)

    def _changed(self, change: LoggedChange, sent: SentRows) -> RowStep:
        life = self._find(sent.identity) or RowLife()
        before = {**life.row, **sent.identity}
        self._remove(life)
        if sent.new is None:
            return RowStep(life, change, before, None, sent, sent.shape)
        kept = {column: before[column] for column in sent.unsent if column in before}
        self._put(life, {**sent.new, **kept})
        return RowStep(life, change, before, life.row, sent, sent.shape)

    def _copied(self, change: LoggedChange, sent: SentRows) -> RowStep:
        new = sent.new or {}
        known = self._find({column: new[column] for column in self._key if column in new}, only=self._uncopied)
        life, before = (RowLife(), None) if known is None else (known, known.row)
        if known is not None:
            self._remove(known)
            (self._uncopied or {}).pop(id(known), None)
        self._put(life, new)
        return RowStep(life, change, before, life.row, sent, sent.shape)

    def _end_copy(self) -> Iterator[RowStep]:
        """Remove the rows that a copy did not have: the log lacks what removed them."""
        if self._copy is None:
            return
        copy, missing = self._copy, [*(self._uncopied or {}).values()]
        self._copy = self._uncopied = None
        for life in missing:
            self._remove(life)
            yield RowStep(life, copy, life.row, None, None, self._shape)

    def _lives(self) -> Iterator[RowLife]:
        for lives in self._by_key.values():
            yield from lives
        yield from self._others

    # The rows by their identity.

    def _use(self, shape: RowShape) -> None:
        """Read rows as a description has them: columns may be new, and the identity another one."""
        self._shape = shape
        columns, key, is_full = frozenset(shape.columns), shape.key or shape.columns, shape.is_full or not shape.key
        if (key, is_full, columns) == (self._key, self._is_full, self._columns):
            return
        lives = [*self._lives()]
        added = [column for column in shape.columns if column not in self._columns]
        older = {name: value for column in added for name, value in self._table.older_value(column).items()}
        for life in lives:
            life.row = {**older, **life.row}
        self._key, self._is_full, self._columns = key, is_full, columns
        self._by_key, self._others = {}, []
        for life in lives:
            self._index(life)

    def _index(self, life: RowLife) -> None:
        if self._key and all(column in life.row for column in self._key):
            self._by_key.setdefault(tuple(life.row[column] for column in self._key), []).append(life)
        else:
            self._others.append(life)

    def _put(self, life: RowLife, row: Row) -> None:
        life.row = row
        if self._key and not self._is_full:
            self._by_key.pop(tuple(row.get(column) for column in self._key), None)
        self._index(life)

    def _remove(self, life: RowLife) -> None:
        key = tuple(life.row.get(column) for column in self._key)
        for lives in (self._by_key.get(key, []), self._others):
            for index, each in enumerate(lives):
                if each is life:
                    del lives[index]
                    if not lives and lives is not self._others:
                        del self._by_key[key]
                    return

    def _find(self, identity: Row, only: dict[int, RowLife] | None = None) -> RowLife | None:
        """Return the row that has these values, as far as they are known; None if none has."""
        candidates = self._others
        if self._key and all(column in identity for column in self._key):
            candidates = [*self._by_key.get(tuple(identity[column] for column in self._key), ()), *self._others]
        elif identity:
            candidates = [*self._lives()]
        for life in candidates:
            is_chosen = only is None or id(life) in only
            if (
                is_chosen
                and identity
                and all(life.row.get(column, value) == value for column, value in identity.items())
            ):
                return life
        return None
