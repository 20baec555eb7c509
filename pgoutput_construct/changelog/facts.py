"""What the server's catalog said of tables and publications while they were captured: events of the log.

The stream describes the columns of a table by name and type. The catalog has more: the number of each column, which a
rename keeps, and the value that rows have which are older than the column (pg_attribute).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pgoutput_construct.changelog.copies import Snapshot
from pgoutput_construct.changelog.events import PUBLICATION_FACTS, TABLE_FACTS, LogEvent, events_of
from pgoutput_construct.changelog.index import SegmentIndex

__all__ = [
    "Column",
    "PublicationReading",
    "PublishedTable",
    "Reading",
    "TableReading",
    "UnsentPartition",
    "covers",
    "publication_readings",
    "snapshot_of",
    "table_readings",
]


@dataclass(frozen=True)
class Column:
    """One row of pg_attribute."""

    number: int
    """Its number, for as long as it exists; another column of the same name has another."""
    name: str = ""
    """Its name; of a column that was dropped nothing is known."""
    type: int = 0
    """The OID of its type; 0 for a column that was dropped."""
    modifier: int = -1
    """The modifier of its type."""
    missing: str | None = None
    """The text of the value that rows have which are older than the column (attmissingval); None: NULL."""
    default: bool = False
    """It has a default, and no value for older rows."""
    xmin: int = 0
    """The transaction or subtransaction (32 bits) that wrote this row of the catalog."""
    dropped: bool = False
    """It was dropped."""
    published: bool = False
    """The publications that are captured publish it."""
    recent: bool = False
    """The row of the catalog may be younger than what the slot has yet to send."""

    @property
    def shape(self) -> tuple[str, int, int]:
        """What a Relation says of it: name, type and modifier."""
        return self.name, self.type, self.modifier


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
    created: int = 0
    """The transaction or subtransaction (32 bits) that created it."""
    filenodes: Mapping[int, int] = field(default_factory=dict)
    """The file of the table, or of each of its leaves, by OID: another one after each rewrite."""
    attached: frozenset[int] = frozenset()
    """The leaves that were tables before they became partitions."""
    truncated: frozenset[int] = frozenset()
    """The leaves that nobody has written into or looked at since their file is there."""
    columns: tuple[Column, ...] = ()
    """Its columns by number, with those that were dropped."""

    @property
    def is_partitioned(self) -> bool:
        """Whether its rows are in other tables, its leaves."""
        return self.oid not in self.filenodes

    @property
    def title(self) -> str:
        """Schema and name."""
        return f"{self.namespace}.{self.name}"

    @classmethod
    def of(cls, event: LogEvent) -> "TableReading":
        """Read an event TABLE_FACTS."""
        told = event.details
        return cls(
            **_read(event),
            oid=told["oid"],
            namespace=told["schema"],
            name=told["name"],
            gone=told.get("gone", False),
            replica_identity=told.get("replica_identity", ""),
            created=told.get("created", 0),
            filenodes=dict(told.get("filenodes", ())),
            attached=frozenset(told.get("attached", ())),
            truncated=frozenset(told.get("truncated", ())),
            columns=tuple(Column(**column) for column in told.get("columns", ())),
        )


@dataclass(frozen=True)
class PublishedTable:
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
    tables: Mapping[int, PublishedTable] = field(default_factory=dict)
    """What it publishes, by OID."""
    all_tables: bool = False
    """It publishes every table that there will be, from its creation on."""
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
            tables={table["oid"]: _published(table) for table in told.get("tables", ())},
            unsent=tuple(
                UnsentPartition(each["oid"], each["schema"], each["name"], each["root"], each["foreign"])
                for each in told.get("unsent", ())
            ),
        )


def covers(later: Snapshot, earlier: Snapshot) -> bool:
    """Tell whether a snapshot contains all transactions that another one does."""
    unseen = {xid for xid in later.xip if xid < earlier.xmax}
    return later.xmax >= earlier.xmax and unseen <= set(earlier.xip)


def table_readings(index: SegmentIndex) -> dict[int, list[TableReading]]:
    """Return what the catalog said of each table, by OID, in the order of the log."""
    found: dict[int, list[TableReading]] = {}
    for event in events_of(index, TABLE_FACTS):
        reading = TableReading.of(event)
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


def _published(table: Mapping[str, Any]) -> PublishedTable:
    columns = table.get("columns")
    numbers = None if columns is None else frozenset(columns)
    return PublishedTable(table["schema"], table["name"], numbers, table.get("filter"), table.get("member"))
