"""What the server's catalog said of tables and publications while they were captured: events of the log.

The stream describes the columns of a table by name and type. The catalog has more: the number of each column, which a
rename keeps, and the value that rows have which are older than the column (pg_attribute).
"""

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, TypeAlias

from pgoutput_construct.changelog._facts.events import (
    PUBLICATION_FACTS,
    TABLE_FACTS,
    EventRow,
    LogEvent,
    event_rows,
    events_of,
)
from pgoutput_construct.changelog._facts.successive_texts import SharedColumns, SuccessiveText
from pgoutput_construct.changelog._facts.visibility import Snapshot
from pgoutput_construct.changelog._index.segment_index import SegmentIndex
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.wire import Lsn

__all__ = [
    "CatalogColumn",
    "CatalogType",
    "ColumnDifference",
    "PublicationMember",
    "PublicationReading",
    "Reading",
    "TableFactsReader",
    "TableReading",
    "UnsentPartition",
    "altered_columns",
    "covers",
    "publication_readings",
    "snapshot_of",
    "table_readings",
]


@dataclass(frozen=True)
class CatalogColumn:
    """One row of pg_attribute."""

    number: int
    """Its number, for as long as it exists; another column of the same name has another."""
    name: str = ""
    """Its name; of a column that was dropped nothing is known."""
    type: int = 0
    """The OID of its type; 0 for a column that was dropped."""
    modifier: int = 0
    """The modifier of its type; of 0 the facts say nothing."""
    missing: str | None = None
    """The text of the value that rows have which are older than the column (attmissingval); None: NULL."""
    default: bool = False
    """It has a default, and no value for older rows."""
    xmin: int = 0
    """The transaction or subtransaction (32 bits) that wrote this row of the catalog."""
    dropped: bool = False
    """It was dropped."""
    generated: str = ""
    """How it is generated, as pg_attribute.attgenerated has it: ``s`` is stored, ``v`` virtual; empty: it is not, or
    the log is of before this was written down."""
    published: bool = False
    """The publications that are captured publish it."""
    recent: bool = False
    """The row of the catalog may be younger than what the slot has yet to send."""

    @cached_property
    def shape(self) -> tuple[str, int, int]:
        """What a Relation says of it: name, type and modifier."""
        return self.name, self.type, self.modifier


@dataclass(frozen=True)
class CatalogType:
    """An enum or a composite type that values of columns are of, or contain: as arrays, domains, ranges, composites.

    Rows have the OID of a label, and a composite value as many attributes as were in it then (record_out() shows those
    that its type has now): ALTER TYPE changes what they say, and touches none.
    """

    oid: int
    """The type."""
    columns: frozenset[int]
    """The numbers of the columns."""
    labels: Mapping[int, str]
    """The labels of an enum by their OIDs, which they keep when they are renamed."""
    attributes: tuple[tuple[int, int], ...]
    """The numbers of a composite type's attributes, and their types."""

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> "CatalogType":
        """Read one of a table's ``types``."""
        attributes = tuple((number, oid) for number, oid in facts.get("attributes", ()))
        return cls(facts["type"], frozenset(facts["columns"]), dict(facts.get("labels", ())), attributes)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """When something was read from the catalog."""

    seq: int = -1
    """Where the log has it; -1 while it has not."""
    snapshot: Snapshot
    """Which transactions had ended when all was read; its position was read last: all of them ended before it."""
    since: int = -1
    """All messages of the log before this seq had been received; -1: not known, as while the table was locked."""
    unchanged: int = -1
    """When the messages before this seq had been received, all was still as the reading before this one says."""


@dataclass(frozen=True, kw_only=True)
class TableReading(Reading):
    """What the catalog said of one table."""

    oid: int
    """The table."""
    namespace: str
    """Its schema."""
    name: str
    """Its name."""
    gone: bool = False
    """There is no such table any more; the names are those that it had."""
    replica_identity: str = ""
    """As pg_class.relreplident has it."""
    identity: frozenset[int] = frozenset()
    """The numbers of the columns of its key or index that is the replica identity, published or not; none where the
    full row or nothing is, or in logs of before this was written down."""
    created: int = 0
    """The transaction or subtransaction (32 bits) that created it."""
    filenodes: Mapping[int, int] = field(default_factory=dict)
    """The file of the table, or of each of its leaves, by OID: another one after each rewrite."""
    attached: frozenset[int] = frozenset()
    """The leaves that were tables before they became partitions."""
    joined: Mapping[int, str] = field(default_factory=dict)
    """For each of these, and for those below one, what names its being a partition: another text each time that it is
    attached. Not in older logs."""
    truncated: frozenset[int] = frozenset()
    """The leaves that nobody has written into or looked at since their file is there."""
    rewritten: Mapping[int, int] = field(default_factory=dict)
    """For each leaf that no longer has the file that it was created with, the transaction or subtransaction (32 bits)
    that gave it its file, or a later one: it wrote the oldest of the rows of pg_class of the leaf, its TOAST table and
    its indexes. Not in older logs."""
    columns: SharedColumns[CatalogColumn] = field(default_factory=SharedColumns)
    """Its columns by number, with those that were dropped."""
    types: tuple[CatalogType, ...] = ()
    """The enums and composite types of its columns; none in logs of before this was written down."""

    @property
    def is_partitioned(self) -> bool:
        """Whether its rows are in other tables, its leaves."""
        return self.oid not in self.filenodes

    @property
    def hides_identity(self) -> bool:
        """Whether some columns of the replica identity are not published."""
        published = self.columns.published
        places = ((number, bisect_left(published, number)) for number in self.identity)
        return any(published[place : place + 1] != (number,) for number, place in places)

    @property
    def title(self) -> str:
        """Schema and name."""
        return full_name(self)


@dataclass(frozen=True)
class PublicationMember:
    """One table of a publication."""

    namespace: str
    """Its schema."""
    name: str
    """Its name."""
    columns: frozenset[int] | None
    """The numbers of the columns in its list; None where it has no list."""
    filter: str | None
    """What tells its row filter from others; None where it has none."""
    member: int | None = None
    """What names its being in the publication, another one each time that it is added; None where it is in it with all
    tables, or those of a schema."""
    ancestors: frozenset[int] = frozenset()
    """The OIDs of the tables that it is a partition of; none in logs of before this was written down."""
    joined: str | None = None
    """What names its being a partition of the tables that are in the publication, another text each time that it, or
    one between, is attached; None where it is in it with all tables, or those of a schema, and in older logs."""


@dataclass(frozen=True)
class UnsentPartition:
    """A partition that a publication has, and of which the server sends nothing."""

    oid: int
    """The partition."""
    namespace: str
    """Its schema."""
    name: str
    """Its name."""
    root: int
    """The OID of the table that is published with it; its own, where partitions are published as they are."""
    is_foreign: bool
    """It is a foreign table; else it is unlogged."""


@dataclass(frozen=True, kw_only=True)
class PublicationReading(Reading):
    """What the catalog said of one publication."""

    name: str
    """The publication."""
    captured: bool = True
    """False from when the capture went on without it."""
    operations: frozenset[str] = frozenset()
    """Which of insert, update, delete and truncate it publishes."""
    via_root: bool = False
    """Changes of partitions are published as those of the partitioned table."""
    tables: Mapping[int, PublicationMember] = field(default_factory=dict)
    """What it publishes, by OID."""
    all_tables: bool = False
    """It publishes every table that there will be, from its creation on."""
    generated: bool = False
    """It publishes stored generated columns of tables without a list of columns (PostgreSQL 18)."""
    excluded: frozenset[int] = frozenset()
    """The OIDs of the tables that it does not publish although it publishes all others (PostgreSQL 19)."""
    unsent: tuple[UnsentPartition, ...] = ()
    """What it has, and the server does not send."""

    @classmethod
    def of(cls, event: LogEvent) -> "PublicationReading":
        """Read an event PUBLICATION_FACTS."""
        told = event.details
        return cls(
            **_read(event),
            name=told["publication"],
            captured=told.get("captured", True),
            operations=frozenset(told.get("operations", ())),
            via_root=told.get("via_root", False),
            all_tables=told.get("all_tables", False),
            generated=told.get("generated", False),
            excluded=frozenset(told.get("excluded", ())),
            tables={table["oid"]: _published(table) for table in told.get("tables", ())},
            unsent=tuple(
                UnsentPartition(each["oid"], each["schema"], each["name"], each["root"], each["foreign"])
                for each in told.get("unsent", ())
            ),
        )


def covers(later: Snapshot, earlier: Snapshot) -> bool:
    """Return whether a snapshot contains all transactions that another one does."""
    unseen = {xid for xid in later.xip if xid < earlier.xmax}
    return later.xmax >= earlier.xmax and unseen <= set(earlier.xip)


ColumnDifference: TypeAlias = tuple[Sequence[CatalogColumn], Sequence[CatalogColumn]]
"""Of an earlier and a later reading, the columns that are not the same object in both."""


def altered_columns(before: TableReading | None, after: TableReading) -> ColumnDifference:
    """Return the columns in which two readings may differ, of each: those that are not one object in both."""
    old, new = (SharedColumns() if before is None else before.columns).differing(after.columns)
    return old, new


class TableFactsReader:
    """Reads events TABLE_FACTS, one after the other; columns of which they say the same are one object.

    Each of these events has all columns of its table, up to 1,600, of which an ALTER TABLE mostly concerns one. So what
    an event says as the one before it did is not parsed, and who compares readings can compare columns by identity.
    """

    def __init__(self) -> None:
        self._columns = _Columns()
        self._latest: dict[int, _ColumnTexts] = {}

    def read(self, event: EventRow) -> TableReading:
        """Return what an event TABLE_FACTS says."""
        details, columns = self._apart(event.payload)
        xmin, xmax, xip = details["snapshot"]
        return TableReading(
            seq=event.seq,
            snapshot=Snapshot(xmin, xmax, tuple(xip), Lsn(event.lsn)),
            since=details["since"],
            unchanged=details["unchanged"],
            oid=details["oid"],
            namespace=details["schema"],
            name=details["name"],
            gone=details.get("gone", False),
            replica_identity=details.get("replica_identity", ""),
            identity=frozenset(identity) if (identity := details.get("identity")) else _NO_NUMBERS,
            created=details.get("created", 0),
            filenodes=dict(details.get("filenodes", ())),
            joined=dict(details.get("joined", ())),
            attached=frozenset(attached) if (attached := details.get("attached")) else _NO_NUMBERS,
            truncated=frozenset(truncated) if (truncated := details.get("truncated")) else _NO_NUMBERS,
            rewritten=dict(details.get("rewritten", ())),
            columns=columns,
            types=tuple(map(CatalogType.of, details.get("types", ()))),
        )

    def _apart(self, payload: memoryview) -> tuple[dict[str, Any], SharedColumns[CatalogColumn]]:
        first, last = _ends(payload)
        if first < last:
            with suppress(ValueError, TypeError):  # somebody else wrote it, in another order
                details = json.loads(str(payload[:first], "ascii") + str(payload[last:], "ascii"))
                begin, end = map(self._columns.shared, details.pop("columns"))
                latest = self._latest.get(details["oid"]) or _ColumnTexts(SharedColumns((begin, end)))
                text = payload[first + len(_BETWEEN_COLUMNS) : last]
                self._latest[details["oid"]] = latest = latest.follow(begin, text, end, self._columns)
                return details, latest.columns
        details = json.loads(bytes(payload))
        return details, SharedColumns(map(self._columns.shared, details.pop("columns", ())))


_NO_NUMBERS: Final[frozenset[int]] = frozenset()
_BETWEEN_COLUMNS: Final = b'}, {"number": '
"""What stands between two columns (LogEvent.payload), and never within a text: quotes are escaped there."""
_NEAR: Final = 4096
"""Bytes in which the first of them mostly is, and the last."""


def _ends(payload: memoryview) -> tuple[int, int]:
    """Return where the first and the last _BETWEEN_COLUMNS are; -1 for none."""
    for size in (_NEAR, len(payload)):
        start = max(len(payload) - size, 0)
        first, last = bytes(payload[:size]).find(_BETWEEN_COLUMNS), bytes(payload[start:]).rfind(_BETWEEN_COLUMNS)
        if first >= 0 and last >= 0:
            return first, start + last
    return -1, -1


@dataclass(frozen=True)
class _ColumnTexts:
    """The JSON of columns, without what is before the first of them and after the last, and what it says."""

    columns: SharedColumns[CatalogColumn]
    """All of them, the first and the last, too."""
    text: SuccessiveText = field(default_factory=lambda: SuccessiveText(gap=len(_BETWEEN_COLUMNS)))

    def follow(self, begin: CatalogColumn, text: memoryview, end: CatalogColumn, known: "_Columns") -> "_ColumnTexts":
        """Return the columns of the next text; those that it begins and ends with as this one does are the same."""
        columns, successor, last = self.columns, self.text, len(self.columns) - 1
        where, new = slice(last, last), list[CatalogColumn]()
        if (found := successor.differing(text)) is not None:
            differing, middle = found
            pieces = middle.split(_BETWEEN_COLUMNS)
            successor = successor.next(text, differing, [*map(len, pieces)])
            where, new = slice(1 + differing.start, 1 + differing.stop), [*map(known.__getitem__, pieces)]
        # All in one step: until the last column has followed, one that was added before it would stand twice.
        if columns[last] is not end:
            where, new = slice(where.start, last + 1), [*new, *columns[where.stop : last], end]
        if columns[0] is not begin:
            where, new = slice(0, where.stop), [begin, *columns[1 : where.start], *new]
        return _ColumnTexts(columns.replaced(where, new) if new or where.start < where.stop else columns, successor)


class _Columns(dict[bytes, CatalogColumn]):
    """Columns by their JSON without what is between columns; what is new is read."""

    def __init__(self) -> None:
        super().__init__()
        self._shared: dict[CatalogColumn, CatalogColumn] = {}
        self._said: dict[tuple[tuple[str, Any], ...], CatalogColumn] = {}

    def __missing__(self, text: bytes) -> CatalogColumn:
        self[text] = found = self.shared(json.loads('{"number": ' + text.decode("ascii") + "}"))
        return found

    def shared(self, facts: Mapping[str, Any]) -> CatalogColumn:
        """Return the column of which this is said."""
        said = tuple(facts.items())
        if said not in self._said:
            column = CatalogColumn(**facts)
            self._said[said] = self._shared.setdefault(column, column)
        return self._said[said]


def table_readings(index: SegmentIndex) -> dict[int, list[TableReading]]:
    """Return what the catalog said of each table, by OID, in the order of the log."""
    found: dict[int, list[TableReading]] = {}
    reader = TableFactsReader()
    for event in event_rows(index, {TABLE_FACTS}):
        reading = reader.read(event)
        found.setdefault(reading.oid, []).append(reading)
    return found


def publication_readings(index: SegmentIndex) -> list[PublicationReading]:
    """Return what the catalog said of publications, in the order of the log."""
    return [PublicationReading.of(event) for event in events_of(index, PUBLICATION_FACTS)]


def snapshot_of(event: LogEvent) -> Snapshot:
    """Return the snapshot that an event has in its details."""
    xmin, xmax, xip = event.details["snapshot"]
    return Snapshot(xmin, xmax, tuple(xip), event.lsn)


def _read(event: LogEvent) -> dict[str, Any]:
    told = event.details
    return {"seq": event.seq, "snapshot": snapshot_of(event), "since": told["since"], "unchanged": told["unchanged"]}


def _published(table: Mapping[str, Any]) -> PublicationMember:
    columns = table.get("columns")
    numbers = None if columns is None else frozenset(columns)
    ancestors = frozenset(table.get("ancestors") or ())
    names = table["schema"], table["name"]
    return PublicationMember(*names, numbers, table.get("filter"), table.get("member"), ancestors, table.get("joined"))
