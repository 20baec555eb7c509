"""One table of a log through its renames: which column is which, what identifies its rows, and rows by column."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final, NamedTuple, TypeAlias

from pgoutput_construct.changelog._facts.catalog_readings import CatalogColumn, TableReading, table_readings
from pgoutput_construct.changelog._facts.lineage import Lineage, lineage_of
from pgoutput_construct.changelog._facts.numbering import ColumnId, column_ids
from pgoutput_construct.changelog._index.planning import relation_history
from pgoutput_construct.changelog.reader import ChangeLog, refuse_unread
from pgoutput_construct.errors import ChangeLogError, PgoutputError
from pgoutput_construct.pgtypes.type_registry import writer
from pgoutput_construct.pgtypes.value_codec import CODEC_ERRORS
from pgoutput_construct.stream.identifiers import full_name, normal_name, quote_identifier
from pgoutput_construct.stream.relations import Description, RelationHistory
from pgoutput_construct.wire.messages import Binary, TupleData
from pgoutput_construct.wire.protocol import RelationColumnFlags, RelationReplicaIdentity
from pgoutput_construct.wire.types import bare

__all__ = ["ColumnId", "LoggedTables", "Row", "RowShape", "TrackedTable"]

Row: TypeAlias = dict[ColumnId, bytes | None]
"""The known values of a row, as text; a value in binary format whose text only the server knows stays Binary."""

_FULL: Final = RelationReplicaIdentity.FULL


class SentRow(NamedTuple):
    """A tuple of a message."""

    row: Row
    """The values that were sent."""
    unsent: tuple[ColumnId, ...]
    """The columns whose value was not sent: unchanged TOAST."""


@dataclass(frozen=True)
class RowShape:
    """How the tuples that one description describes are read."""

    description: Description
    """The Relation and its Types."""
    columns: tuple[ColumnId, ...]
    """The columns, in the order of tuples."""
    key: tuple[ColumnId, ...]
    """The columns of the replica identity; all for FULL."""
    _texts: tuple[Callable[[bytes], str], ...]
    """What converts values in binary format to text."""

    @property
    def is_full(self) -> bool:
        """Whether whole old rows are sent: the replica identity is FULL."""
        return self.description.relation.replica_identity == _FULL

    def names(self) -> Mapping[ColumnId, str]:
        """Return what the columns are called in this description."""
        return dict(zip(self.columns, (column.name for column in self.description.relation.columns), strict=True))

    def read(self, values: TupleData) -> SentRow:
        """Return the values of a tuple by column; raise PgoutputError if it does not have the described columns."""
        values = bare(values)
        if len(values) != len(self.columns):
            name = full_name(self.description.relation)
            raise PgoutputError(f"a row of {name} has {len(values)} values, but {len(self.columns)} columns")
        row, unsent = Row(), list[ColumnId]()
        for column, text, value in zip(self.columns, self._texts, map(bare, values), strict=True):
            if value is None or type(value) is bytes:
                row[column] = value
            elif isinstance(value, Binary):
                row[column] = _as_text(value, text)
            else:
                unsent.append(column)
        return SentRow(row, tuple(unsent))


def _as_text(value: Binary, text: Callable[[bytes], str]) -> bytes:
    try:
        return text(value).encode("utf-8", "surrogateescape")
    except CODEC_ERRORS:
        return value


class TrackedTable:
    """One table, by its OID, under all names that it had."""

    def __init__(
        self,
        latest_name: str,
        descriptions: Sequence[Description],
        readings: Sequence[TableReading],
        lineage: Lineage,
        *,
        is_past: bool,
    ) -> None:
        """Take what a log says of it.

        Args:
            latest_name: Its last schema and name, as SQL has them.
            descriptions: Its descriptions in the order of the log, at least one.
            readings: What the catalog said of it, in the order of the log.
            lineage: The log's lineage.
            is_past: Whether another table has its last name now.
        """
        self.latest_name = latest_name
        self.descriptions = descriptions
        self.relation_oid = descriptions[-1].relation.relation_oid
        self.is_gone = is_past or (bool(readings) and readings[-1].gone)
        """Whether another table has its name now, or it was dropped, as far as the log knows."""
        self._readings, self._lineage = readings, lineage
        names = [tuple(column.name for column in each.relation.columns) for each in descriptions]
        ids = column_ids(zip(names, map(lineage.numbers, descriptions), strict=True))
        self._columns = dict(zip((each.seq for each in descriptions), ids, strict=True))
        self._shapes: dict[int, RowShape] = {}

    @cached_property
    def latest_reading(self) -> TableReading | None:
        """What the catalog said of it last, if the table existed then."""
        return self._readings[-1] if self._readings and not self._readings[-1].gone else None

    @cached_property
    def column_names(self) -> Mapping[ColumnId, str]:
        """The last names of the columns that it has, or had."""
        names = dict[ColumnId, str]()
        for description in self.descriptions:
            names |= self.shape(description).names()
        for each in self._catalog_columns:
            if each.name not in names:  # else it is known by its name alone
                names[each.number] = each.name
        return names

    @cached_property
    def _catalog_columns(self) -> Sequence[CatalogColumn]:
        """The columns that it has now, as far as the catalog was read after the last description."""
        reading = self.latest_reading
        if reading is None or not self._lineage.follows(reading, self.descriptions[-1]):
            return ()
        return [each for each in reading.columns if not each.dropped]

    def column(self, name: str) -> ColumnId:
        """Return the column that has a name, or the last one that had it; raise ChangeLogError if none had."""
        for column, latest in self.column_names.items():
            if latest == name and not self.is_dropped_column(column):
                return column
        for description in reversed(self.descriptions):
            for column, called in self.shape(description).names().items():
                if called == name:
                    return column
        known = ", ".join(map(quote_identifier, self.current_columns().values()))
        title = full_name(self.descriptions[-1].relation)
        raise ChangeLogError(f"{title} has no column {quote_identifier(name)}: it has {known}")

    def current_columns(self) -> Mapping[ColumnId, str]:
        """Return the columns that it has now, as far as the log knows, with their names."""
        names = self.column_names
        return {each: name for each, name in names.items() if not self.is_dropped_column(each)}

    def is_dropped_column(self, column: ColumnId) -> bool:
        """Return whether a column no longer exists, as far as the log knows; one that it knows by name has that name.

        A column of the last description may be missing in the publication's later column list, and still exist.
        """
        if self._catalog_columns:
            return all(column not in (each.number, each.name) for each in self._catalog_columns)
        reading = self.latest_reading
        if column in self.shape(self.descriptions[-1]).columns:
            return reading is not None and self._lineage.follows(reading, self.descriptions[-1])
        columns = reading.columns if reading is not None and isinstance(column, int) else ()
        return all(each.dropped or each.number != column for each in columns)

    def catalog_column(self, column: ColumnId) -> CatalogColumn | None:
        """Return what the catalog said of a column last; None if the log does not know."""
        for reading in reversed(self._readings):
            for each in reading.columns:
                if each.number == column and not each.dropped:
                    return each
        return None

    def unpublished_columns(self) -> list[str]:
        """Return the names of columns with data that the stream does not have: a column list leaves them out."""
        reading = self.latest_reading
        columns = reading.columns if reading is not None else ()
        return [each.name for each in columns if not (each.dropped or each.published or each.generated)]

    def older_value(self, column: ColumnId) -> Row:
        """Return the value that rows have that are older than a column; an empty row where the log does not know.

        A stored generated column, one whose default is volatile, and one that was not published at first have values
        that the stream never sent.
        """
        first = next((each for reading in self._readings for each in reading.columns if each.number == column), None)
        if first is None or first.generated or first.default or not first.published or not isinstance(column, int):
            return {}
        text = self._lineage.missing(self.relation_oid, column)
        return {column: None if text is None else text.encode("utf-8", "surrogateescape")}

    def identities(self) -> set[tuple[ColumnId, ...]]:
        """Return the replica identities that it had, except FULL and NOTHING: the columns of each."""
        shapes = map(self.shape, self.descriptions)
        return {shape.key for shape in shapes if shape.key and not shape.is_full}

    def shape(self, description: Description) -> RowShape:
        """Return how the tuples are read that a description describes."""
        if description.seq not in self._shapes:
            self._shapes[description.seq] = self._shape(description)
        return self._shapes[description.seq]

    def _shape(self, description: Description) -> RowShape:
        relation, columns = description.relation, self._columns[description.seq]
        flagged = zip(columns, relation.columns, strict=True)
        key = tuple(column for column, each in flagged if each.flags & RelationColumnFlags.KEY)
        texts = tuple(writer(each.type_oid, description.types) for each in relation.columns)
        return RowShape(description, columns, columns if relation.replica_identity == _FULL else key, texts)


def _latest_name(descriptions: Sequence[Description], readings: Sequence[TableReading], lineage: Lineage) -> str:
    named = [each for each in readings if not each.gone]
    is_newer = bool(named) and lineage.follows(named[-1], descriptions[-1])
    return full_name(named[-1] if is_newer else descriptions[-1].relation)


class LoggedTables:
    """The tables of a log, by name."""

    def __init__(self, log: ChangeLog) -> None:
        """Read what the index of a log says of its tables; raise ChangeLogError if it has rows that nothing reads."""
        refuse_unread(log, log.index)
        self.log = log
        self.history: RelationHistory = relation_history(log.index)
        """What describes each OID at each seq."""
        self._by_oid: dict[int, list[Description]] = {}
        for description in self.history.descriptions:
            self._by_oid.setdefault(description.relation.relation_oid, []).append(description)
        self._readings = table_readings(log.index)
        self._lineage = lineage_of(log.index)
        self._names = {
            oid: _latest_name(several, self._of(oid), self._lineage) for oid, several in self._by_oid.items()
        }

    def _of(self, oid: int) -> Sequence[TableReading]:
        return self._readings.get(oid, ())

    @cache  # noqa: B019 - both live as long as a command
    def table(self, relation_oid: int) -> TrackedTable:
        """Return a table by its OID; raise ChangeLogError if the log has no description of it."""
        if relation_oid not in self._by_oid:
            raise ChangeLogError(f"{self.log.store}: no Relation describes the relation OID {relation_oid}")
        readings, name = self._of(relation_oid), self._names[relation_oid]
        namesakes = [oid for oid, each in self._names.items() if each == name and oid != relation_oid]
        is_past = any(self._by_oid[oid][-1].seq > self._by_oid[relation_oid][-1].seq for oid in namesakes)
        return TrackedTable(name, self._by_oid[relation_oid], readings, self._lineage, is_past=is_past)

    def named(self, name: str) -> list[TrackedTable]:
        """Return the tables whose last name is this one, in the order in which they appear in the log.

        There are several if a table was dropped and created again. If none has it, those that once had it are
        returned.

        Args:
            name: The name as in SQL.

        Raises:
            ChangeLogError: The log has no such table.
            PgoutputError: It is not a name.
        """
        name = normal_name(name)
        found = [oid for oid, latest in self._names.items() if latest == name]
        found = found or [
            oid
            for oid, several in self._by_oid.items()
            if name in {full_name(each.relation) for each in several} or name in {each.title for each in self._of(oid)}
        ]
        if not found:
            known = ", ".join(sorted({*self._names.values()})) or "none"
            raise ChangeLogError(f"{self.log.store}: no table {name}: the log has {known}")
        return [self.table(oid) for oid in found]
