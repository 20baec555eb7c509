"""Readings of the server's catalog: what it said of tables and publications while they were captured.

The stream describes the columns of a table by name and type. The catalog knows more: the number of each column
(pg_attribute.attnum), which survives a rename, and the value of a column in rows that are older than the column
(attmissingval). The capture records each reading as an event, TABLE_FACTS or PUBLICATION_FACTS.

When a reading counts
    A reading says what was true at its LSN, the WAL insert position after its snapshot. Where it stands in the log says
    less: a capture that was down, or is late, reads the catalog as it is now, and appends that before transactions that
    it catches up; one that waits for the end of a transaction appends it after some that are newer. So as of an earlier
    point (``LogIndex.as_of``) readings are selected by their LSN (``dated_events``). Of a history of
    the server that was lost (event BEGUN_ANEW with ``void_after``), readings do not count before the log was restarted;
    LSNs of a later history are not compared with those of the point.

    - What tables and publications are like is what the last reading by then says (``table_readings``,
      ``publication_readings``), or the Relation of later rows.
    - A table or publication that was first read later was as that reading says, as far as anybody knows: how it was
      created (``known_tables``), and what is published when a capture begins.
    - What happened between two readings is found by comparing them, whenever the second one was made: which column is
      which (``lineage``), and whether a table was created while it was captured (``known_publications``).
    - What the first reading after the point shows to be altered may have been altered by then. Mostly something shows
      whether it was; otherwise it is reported (``undated_changes``).
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any, Final, TypeAlias

from pgoutput_construct.changelog._facts.successive_texts import SharedColumns, SuccessiveText
from pgoutput_construct.changelog._facts.visibility import Snapshot
from pgoutput_construct.changelog._index.log_index import LogIndex
from pgoutput_construct.changelog._segment.events import (
    PUBLICATION_FACTS,
    TABLE_FACTS,
    EventRow,
    LogEvent,
    event_rows,
    parse_details,
)
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex
from pgoutput_construct.changelog._store.json_notes import from_json, parse_json
from pgoutput_construct.errors import ChangeLogError
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
    "dated_events",
    "known_publications",
    "known_tables",
    "publication_readings",
    "snapshot_of",
    "table_readings",
]


@dataclass(frozen=True)
class CatalogColumn:
    """One row of pg_attribute."""

    number: int
    """Its number (attnum), which is never reused in its table."""
    name: str = ""
    """Its name; empty for a dropped column, of which nothing is known."""
    type: int = 0
    """The OID of its type; 0 for a column that was dropped."""
    modifier: int = 0
    """The modifier of its type; the events omit 0."""
    missing: str | None = None
    """The text of its value in rows that are older than the column (attmissingval); None: NULL."""
    default: bool = False
    """Whether it has a default, but no value for older rows."""
    xmin: int = 0
    """The xid (32 bits) that wrote its row of pg_attribute, possibly of a subtransaction."""
    dropped: bool = False
    """Whether it was dropped."""
    generated: str = ""
    """pg_attribute.attgenerated: ``s`` for stored, ``v`` for virtual; empty: not generated, or a log of an earlier
    version."""
    published: bool = False
    """Whether a captured publication publishes it."""
    recent: bool = False
    """Whether its row of pg_attribute may be newer than changes that the slot has yet to send."""

    @cached_property
    def shape(self) -> tuple[str, int, int]:
        """Name, type and modifier: what a Relation says of it."""
        return self.name, self.type, self.modifier


@dataclass(frozen=True)
class CatalogType:
    """An enum or a composite type that columns have, directly or within arrays, domains, ranges or composites.

    Stored values have the OID of a label, or the attributes at the time of writing (record_out() prints those that the
    type has now). So ALTER TYPE changes the text of existing values without rewriting a row.
    """

    oid: int
    """The OID of the type."""
    columns: frozenset[int]
    """The numbers of the columns that contain it."""
    labels: Mapping[int, str]
    """The labels of an enum by OID; a renamed label keeps its OID."""
    attributes: tuple[tuple[int, int], ...]
    """The numbers of a composite type's attributes, and the OIDs of their types."""

    @classmethod
    def parse(cls, facts: Mapping[str, Any]) -> "CatalogType":
        """Parse one of the ``types`` of an event TABLE_FACTS."""
        attributes = tuple((number, oid) for number, oid in facts.get("attributes", ()))
        return cls(facts["type"], frozenset(facts["columns"]), dict(facts.get("labels", ())), attributes)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A reading of the catalog, and when it was made."""

    seq: int = -1
    """The seq of its event; -1 before it is appended to a log."""
    snapshot: Snapshot
    """The snapshot of the reading; its LSN was read afterwards, so all transactions that it sees ended before that."""
    since: int = -1
    """The messages before this seq had been received when it was made; -1: unknown, as while the table was locked."""
    unchanged: int = -1
    """When the messages before this seq had been received, the previous reading was still accurate."""


@dataclass(frozen=True, kw_only=True)
class TableReading(Reading):
    """A reading of one table."""

    oid: int
    """The OID of the table."""
    namespace: str
    """Its schema."""
    name: str
    """Its name."""
    gone: bool = False
    """Whether the table was dropped; the names are its last ones."""
    replica_identity: str = ""
    """pg_class.relreplident."""
    identity: frozenset[int] = frozenset()
    """The numbers of the columns of the key or index that is the replica identity, published or not; empty for FULL
    and NOTHING."""
    created: int = 0
    """The xid (32 bits) that created it, possibly of a subtransaction."""
    filenodes: Mapping[int, int] = field(default_factory=dict)
    """pg_class.relfilenode of the table, or of each of its leaf partitions, by OID: a rewrite assigns a new one."""
    attached: frozenset[int] = frozenset()
    """The leaf partitions that may have been tables before they, or a partition above them, were attached, if that was
    in the transaction that created them; and all that were attached in a later one."""
    joined: Mapping[int, str] = field(default_factory=dict)
    """For each of those that were attached later than they were created, and for those below one, an identifier of the
    attachment: it differs each time that it is attached."""
    truncated: frozenset[int] = frozenset()
    """The leaf partitions whose present file nobody has written to or scanned."""
    rewritten: Mapping[int, int] = field(default_factory=dict)
    """For each leaf partition that does not have the file that it was created with, the xid (32 bits) that assigned the
    file, or a later one: the one that wrote the oldest row of pg_class among the leaf, its TOAST table and its indexes.
    """
    columns: SharedColumns[CatalogColumn] = field(default_factory=SharedColumns)
    """Its columns by number, including dropped ones."""
    types: tuple[CatalogType, ...] = ()
    """The enums and composite types of its columns."""
    comments: Mapping[int, str] = field(default_factory=dict)
    """The comments on its columns by number, and on itself as 0."""

    @property
    def is_partitioned(self) -> bool:
        """Whether it is partitioned: its rows are in its leaf partitions."""
        return self.oid not in self.filenodes

    @property
    def hides_identity(self) -> bool:
        """Whether a column of the replica identity is not published."""
        published = self.columns.published
        indexes = ((number, bisect_left(published, number)) for number in self.identity)
        return any(published[index : index + 1] != (number,) for number, index in indexes)

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
    """The numbers of the columns in its column list; None without a list."""
    filter: str | None
    """An identifier of its row filter; None without a filter."""
    member: int | None = None
    """An identifier of its membership, which differs each time that the table is added; None if it is published FOR ALL
    TABLES or FOR TABLES IN SCHEMA."""
    ancestors: frozenset[int] = frozenset()
    """The OIDs of the tables that it is a partition of."""
    joined: str | None = None
    """An identifier of its attachment to the published tables above it, which differs each time that it, or a table
    between, is attached; None if it is published FOR ALL TABLES or FOR TABLES IN SCHEMA."""
    within: frozenset[str] = frozenset()
    """For each schema FOR TABLES IN which it is published, an identifier that differs each time that the schema is
    added, and the table moved into it or attached below one in it."""


@dataclass(frozen=True)
class UnsentPartition:
    """A partition of a published table that the server does not replicate."""

    oid: int
    """The OID of the partition."""
    namespace: str
    """Its schema."""
    name: str
    """Its name."""
    root: int
    """The OID of the table that its changes would be published as; its own OID without publish_via_partition_root."""
    is_foreign: bool
    """Whether it is a foreign table; otherwise it is unlogged."""


@dataclass(frozen=True, kw_only=True)
class PublicationReading(Reading):
    """A reading of one publication."""

    name: str
    """The name of the publication."""
    captured: bool = True
    """False once the capture no longer includes it."""
    operations: frozenset[str] = frozenset()
    """The operations that it publishes, among insert, update, delete and truncate."""
    via_root: bool = False
    """Whether changes of partitions are published as those of the root (publish_via_partition_root)."""
    tables: Mapping[int, PublicationMember] = field(default_factory=dict)
    """The published tables, by OID."""
    all_tables: bool = False
    """Whether it publishes all tables, including those created later."""
    generated: bool = False
    """Whether it publishes stored generated columns of tables without a column list (PostgreSQL 18)."""
    written: int | None = None
    """The xid (32 bits) that wrote its row of pg_publication: what it publishes of its tables was altered then at the
    latest. None where a publisher serves the catalog, which does not know it."""
    excluded: frozenset[int] = frozenset()
    """The OIDs of excluded tables: FOR ALL TABLES EXCEPT (PostgreSQL 19)."""
    unsent: tuple[UnsentPartition, ...] = ()
    """Its partitions that the server does not replicate."""

    @classmethod
    def from_event(cls, event: LogEvent) -> "PublicationReading":
        """Parse an event PUBLICATION_FACTS."""
        details = event.details
        return cls(
            **_read(event),
            name=details["publication"],
            captured=details.get("captured", True),
            operations=frozenset(details.get("operations", ())),
            via_root=details.get("via_root", False),
            all_tables=details.get("all_tables", False),
            generated=details.get("generated", False),
            written=details.get("written"),
            excluded=frozenset(details.get("excluded", ())),
            tables={table["oid"]: _published(table) for table in details.get("tables", ())},
            unsent=tuple(
                UnsentPartition(each["oid"], each["schema"], each["name"], each["root"], each["foreign"])
                for each in details.get("unsent", ())
            ),
        )


def covers(later: Snapshot, earlier: Snapshot) -> bool:
    """Return whether a snapshot sees all transactions that an earlier one sees."""
    unseen = {xid for xid in later.xip if xid < earlier.xmax}
    return later.xmax >= earlier.xmax and unseen <= set(earlier.xip)


ColumnDifference: TypeAlias = tuple[Sequence[CatalogColumn], Sequence[CatalogColumn]]
"""Of an earlier and a later reading, the columns that are not the same object in both."""


def altered_columns(before: TableReading | None, after: TableReading) -> ColumnDifference:
    """Return the columns in which two readings may differ: those that are not the same object in both."""
    old, new = (SharedColumns() if before is None else before.columns).differing(after.columns)
    return old, new


class TableFactsReader:
    """Reads successive events TABLE_FACTS; columns that are equal in several readings are the same object.

    Each event has all columns of its table, up to 1,600, of which an ALTER TABLE mostly concerns one. So only the
    columns that differ from the table's previous event are parsed, and readings can be compared by identity of columns.
    """

    def __init__(self) -> None:
        self._columns = _Columns()
        self._latest: dict[int, _ColumnTexts] = {}

    def read(self, event: EventRow) -> TableReading:
        """Return the reading in an event TABLE_FACTS."""
        details, columns = self._apart(event)
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
            joined=dict(details.get("joined") or ()),
            attached=frozenset(attached) if (attached := details.get("attached")) else _NO_NUMBERS,
            truncated=frozenset(truncated) if (truncated := details.get("truncated")) else _NO_NUMBERS,
            rewritten=dict(details.get("rewritten", ())),
            columns=columns,
            types=tuple(map(CatalogType.parse, details.get("types", ()))),
            comments=dict(details.get("comments", ())),
        )

    def _apart(self, event: EventRow) -> tuple[dict[str, Any], SharedColumns[CatalogColumn]]:
        payload = event.payload
        first, last = _ends(payload)
        if first < last:
            with suppress(ValueError):  # not in the order that a capture writes, or not what it writes
                text = str(payload[:first], "ascii") + str(payload[last:], "ascii")
                details = parse_details(event.seq, TABLE_FACTS, text)
                begin, end = map(self._columns.shared, details.pop("columns"))
                latest = self._latest.get(details["oid"]) or _ColumnTexts(SharedColumns((begin, end)))
                between = payload[first + len(_BETWEEN_COLUMNS) : last]
                self._latest[details["oid"]] = latest = latest.follow(begin, between, end, self._columns)
                return details, latest.columns
        details = parse_details(event.seq, TABLE_FACTS, bytes(payload))
        try:
            return details, SharedColumns(map(self._columns.shared, details.pop("columns", ())))
        except ValueError as error:
            raise ChangeLogError(f"seq {event.seq}: the facts of a column are invalid: {error}") from None


_NO_NUMBERS: Final[frozenset[int]] = frozenset()
_BETWEEN_COLUMNS: Final = b'}, {"number": '
"""The bytes between two columns (LogEvent.payload); they cannot occur within a string, where quotes are escaped."""
_NEAR: Final = 4096
"""Bytes at each end of a payload in which the first and the last separator mostly are."""


def _ends(payload: memoryview) -> tuple[int, int]:
    """Return the offsets of the first and the last _BETWEEN_COLUMNS; -1 for none."""
    for size in (_NEAR, len(payload)):
        start = max(len(payload) - size, 0)
        first, last = bytes(payload[:size]).find(_BETWEEN_COLUMNS), bytes(payload[start:]).rfind(_BETWEEN_COLUMNS)
        if first >= 0 and last >= 0:
            return first, start + last
    return -1, -1


@dataclass(frozen=True)
class _ColumnTexts:
    """The columns of a reading, and their JSON between the first and the last column."""

    columns: SharedColumns[CatalogColumn]
    """All columns, including the first and the last."""
    text: SuccessiveText = field(default_factory=lambda: SuccessiveText(gap=len(_BETWEEN_COLUMNS)))

    def follow(self, begin: CatalogColumn, text: memoryview, end: CatalogColumn, known: "_Columns") -> "_ColumnTexts":
        """Return the columns of the next reading.

        Args:
            begin: Its first column.
            text: The JSON between the first and the last column.
            end: Its last column.
            known: Parses new columns.
        """
        columns, successor, last = self.columns, self.text, len(self.columns) - 1
        where, new = slice(last, last), list[CatalogColumn]()
        if (found := successor.differing(text)) is not None:
            differing, middle = found
            pieces = middle.split(_BETWEEN_COLUMNS)
            successor = successor.next(text, differing, [*map(len, pieces)])
            where, new = slice(1 + differing.start, 1 + differing.stop), [*map(known.__getitem__, pieces)]
        # In one step: with the old last column, a column that was added before it would be included twice.
        if columns[last] is not end:
            where, new = slice(where.start, last + 1), [*new, *columns[where.stop : last], end]
        if columns[0] is not begin:
            where, new = slice(0, where.stop), [begin, *columns[1 : where.start], *new]
        return _ColumnTexts(columns.replaced(where, new) if new or where.start < where.stop else columns, successor)


class _Columns(dict[bytes, CatalogColumn]):
    """Columns by the JSON between separators; parses new ones."""

    def __init__(self) -> None:
        super().__init__()
        self._shared: dict[CatalogColumn, CatalogColumn] = {}

    def __missing__(self, text: bytes) -> CatalogColumn:
        self[text] = found = self.shared(parse_json('{"number": ' + text.decode("ascii") + "}"))
        return found

    def shared(self, facts: Mapping[str, Any]) -> CatalogColumn:
        """Return the column with these facts: equal columns are the same object; raise ValueError for others."""
        column = from_json(CatalogColumn, facts)
        return self._shared.setdefault(column, column)


def dated_events(index: SegmentIndex, names: Collection[str], after: int = -1) -> Iterator[tuple[EventRow, bool]]:
    """Yield events in the order of the log, each with whether it is a reading that was true by the end of the index.

    Readings that were true later come last, whether they stand in the index, or after it; those of another history of
    the server are left out. Other events are those of the index.

    Args:
        index: The index of a log, possibly as of a point.
        names: The names of the events.
        after: Only events after this seq.
    """
    as_of = index.as_of if isinstance(index, LogIndex) else None
    if as_of is None:
        yield from ((event, True) for event in event_rows(index, names, after))
        return
    for event in event_rows(as_of.log, names, after):
        if event.name in _READINGS:
            is_true = as_of.has(event.seq, event.lsn)
            if is_true is not None:
                yield event, is_true
        elif event.seq <= as_of.seq:
            yield event, True


_READINGS: Final = frozenset({TABLE_FACTS, PUBLICATION_FACTS})


def table_readings(index: SegmentIndex) -> dict[int, list[TableReading]]:
    """Return the readings of each table, by OID, in the order of the log."""
    return _table_readings(index)[0]


def known_tables(index: SegmentIndex) -> dict[int, list[TableReading]]:
    """Return the same, and of a table that was first read later, that reading: how it was created, as far as known."""
    found, first = _table_readings(index)
    return {oid: [reading] for oid, reading in first.items()} | found


def _table_readings(index: SegmentIndex) -> tuple[dict[int, list[TableReading]], dict[int, TableReading]]:
    """Return the readings of each table, and of those that have none the first later one while it existed."""
    found: dict[int, list[TableReading]] = {}
    first: dict[int, TableReading] = {}
    reader = TableFactsReader()
    for event, is_true in dated_events(index, {TABLE_FACTS}):
        reading = reader.read(event)
        if is_true:
            found.setdefault(reading.oid, []).append(reading)
        elif reading.oid not in found and not reading.gone:
            first.setdefault(reading.oid, reading)
    return found, first


def publication_readings(index: SegmentIndex) -> list[PublicationReading]:
    """Return the readings of publications, in the order of the log; of one that was first read later, that reading."""
    found, later = _publication_readings(index)
    known = {reading.name for reading in found}
    first = {reading.name: reading for reading in reversed(later) if reading.name not in known}
    return [*found, *sorted(first.values(), key=attrgetter("seq"))]


def known_publications(index: SegmentIndex) -> list[PublicationReading]:
    """Return all readings of publications, later ones too: what is known of how they were altered."""
    found, later = _publication_readings(index)
    return [*found, *later]


def _publication_readings(index: SegmentIndex) -> tuple[list[PublicationReading], list[PublicationReading]]:
    """Return the readings of publications that were true by the end of an index, and the later ones."""
    found: dict[bool, list[PublicationReading]] = {True: [], False: []}
    for event, is_true in dated_events(index, {PUBLICATION_FACTS}):
        found[is_true].append(PublicationReading.from_event(event.read()))
    return found[True], found[False]


def snapshot_of(event: LogEvent) -> Snapshot:
    """Return the snapshot in the details of an event."""
    xmin, xmax, xip = event.details["snapshot"]
    return Snapshot(xmin, xmax, tuple(xip), event.lsn)


def _read(event: LogEvent) -> dict[str, Any]:
    since, unchanged = event.details["since"], event.details["unchanged"]
    return {"seq": event.seq, "snapshot": snapshot_of(event), "since": since, "unchanged": unchanged}


def _published(table: Mapping[str, Any]) -> PublicationMember:
    columns = table.get("columns")
    numbers = None if columns is None else frozenset(columns)
    ancestors = frozenset(table.get("ancestors") or ())
    within = frozenset(table.get("within") or ())
    return PublicationMember(
        table["schema"],
        table["name"],
        numbers,
        table.get("filter"),
        table.get("member"),
        ancestors,
        table.get("joined"),
        within,
    )
