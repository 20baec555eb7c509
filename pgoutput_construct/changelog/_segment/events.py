"""Events: rows of the log for what the capture learned and the stream does not say."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, NotRequired, TypeAlias, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog._segment.segment_index import BinaryValues, SegmentIndex
from pgoutput_construct.changelog._store.json_notes import from_json, parse_json
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.wire import Lsn, Timestamp
from pgoutput_construct.wire.types import UNIX_TO_POSTGRES

__all__ = [
    "BEGUN_ANEW",
    "CONNECTED",
    "COPIED_CHUNKS",
    "COPIED_TABLE",
    "COPYING_TABLE",
    "CREATED_SLOT",
    "OPTIONS_CHANGED",
    "PUBLICATION_FACTS",
    "TABLE_FACTS",
    "EventRow",
    "LogEvent",
    "VoidRowsDetails",
    "event_rows",
    "events_of",
    "log_events",
    "parse_details",
]

CONNECTED: Final = "connected"
"""A connection began: transactions that an earlier one left incomplete are void, and are sent again."""
OPTIONS_CHANGED: Final = "options"
"""The log continues under other options; details: the old and the new value of each, ``{"slot": ["a", "b"]}``."""
CREATED_SLOT: Final = "created slot"
"""The capture created the slot, which sends the transactions that end after the event's LSN. Details: ``slot``, its
name; ``snapshot`` (xmin, xmax, xip), the snapshot exported with it, under which the first copies are made; null if no
snapshot was requested."""

COPIED_TABLE: Final = "copied table"
"""A table copy is complete: all rows of the table, and all commits that they may contain, are in the log. Details:
``oid, schema, table``; ``chunks`` (the first and the last number), ``rows``; the snapshot ``xmin, xmax, xip``; and by
LSN which transactions it contains, ``place_lsn, contained, sees_until`` (``visibility``); ``void``, rows of its chunks
that do not count, if it was interrupted (``void_rows``). The LSN of the event is the snapshot's."""

COPYING_TABLE: Final = "copying table"
"""A copy of a table in several chunks is begun, or resumed: ``partial_copies``. Details: ``oid, schema, table, chunks``
as of COPIED_TABLE; ``chunk_pages``; ``leaves`` (of each the OID, the file, and its pages); ``in_halves`` (whether there
are two chunks for the same pages); ``digest``, of what the rows are read by; ``requests``, the numbers of those
that it fulfils; the snapshot of the attempt ``xmin, xmax, xip``, ``since`` (it sees what commits before this LSN) and
``until`` (it sees nothing that commits from this LSN on); ``columns`` (of each the attribute number, the OID of the
type, and the attribute number in each leaf) and ``last_column``, the highest attribute number. The LSN is the
snapshot's."""
COPIED_CHUNKS: Final = "copied chunks"
"""Chunks of a table copy were read as a whole, or brought up to date; all of their rows precede the event. Details:
``oid``; ``attempt``, the seq of its event COPYING_TABLE; and ``chunks``, their numbers."""

TABLE_FACTS: Final = "table"
"""What the catalog says of a table, when it is first seen and after each change: ``catalog_readings``."""
PUBLICATION_FACTS: Final = "publication"
"""What a publication publishes, when it is first seen and after each change: ``catalog_readings``."""
BEGUN_ANEW: Final = "begun anew"
"""The slot or the server's history was lost, and the log continues with changes that do not follow from those before.
Details: ``reason``; ``void_after``: earlier transactions that ended after this LSN are void (null: none is);
``snapshot`` (xmin, xmax, xip): a copy whose snapshot contains this one makes its table complete again."""

_Snapshot: TypeAlias = tuple[int, int, tuple[int, ...]]


class _Connected(TypedDict, total=False):
    slot: str
    timeline: int | None
    server_version: int


class _CreatedSlot(TypedDict):
    slot: str
    snapshot: _Snapshot | None


class VoidRowsDetails(TypedDict):
    """What the details of an event say of void rows: ``_facts/void_rows``."""

    rows: int
    """Their number."""
    ranges: int
    """The number of ranges of their seqs."""
    seqs: str
    """The ranges: for each the distance of its first seq from that of the one before, and its length; as 64 bits with
    the lowest byte first, compressed with zlib, in base64."""


class _CopiedTable(TypedDict):
    oid: int
    schema: str
    table: str
    chunks: tuple[int, int]
    rows: int
    xmin: int
    xmax: int
    xip: tuple[int, ...]
    requests: NotRequired[tuple[str, ...]]
    place_lsn: Lsn
    contained: tuple[int, ...]
    sees_until: Lsn
    void: NotRequired[VoidRowsDetails]


class _CopyingTable(TypedDict):
    oid: int
    schema: str
    table: str
    chunks: tuple[int, int]
    chunk_pages: int
    leaves: tuple[tuple[int, int, int], ...]
    in_halves: bool
    digest: str
    requests: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]
    last_column: int
    xmin: int
    xmax: int
    xip: tuple[int, ...]
    since: Lsn
    until: Lsn


class _CopiedChunks(TypedDict):
    oid: int
    attempt: int
    chunks: tuple[int, ...]


class _BegunAnew(TypedDict):
    reason: str
    snapshot: _Snapshot
    void_after: Lsn | None


class _FactReading(TypedDict):
    snapshot: _Snapshot
    since: int
    unchanged: int


class _CatalogType(TypedDict):
    type: int
    columns: tuple[int, ...]
    labels: NotRequired[tuple[tuple[int, str], ...]]
    attributes: NotRequired[tuple[tuple[int, int], ...]]


class _CatalogColumn(TypedDict):
    number: int
    name: NotRequired[str]
    type: NotRequired[int]
    modifier: NotRequired[int]


class _TableFacts(_FactReading):
    oid: int
    schema: str
    name: str
    gone: NotRequired[bool]
    replica_identity: NotRequired[str]
    identity: NotRequired[tuple[int, ...] | None]
    created: NotRequired[int]
    filenodes: NotRequired[tuple[tuple[int, int], ...]]
    joined: NotRequired[tuple[tuple[int, str], ...] | None]
    attached: NotRequired[tuple[int, ...] | None]
    truncated: NotRequired[tuple[int, ...] | None]
    rewritten: NotRequired[tuple[tuple[int, int], ...]]
    columns: NotRequired[tuple[_CatalogColumn, ...]]
    types: NotRequired[tuple[_CatalogType, ...]]
    comments: NotRequired[tuple[tuple[int, str], ...]]


class _PublishedTable(TypedDict):
    oid: int
    schema: str
    name: str
    columns: NotRequired[tuple[int, ...] | None]
    filter: NotRequired[str | None]
    member: NotRequired[int | None]
    ancestors: NotRequired[tuple[int, ...] | None]
    joined: NotRequired[str | None]
    within: NotRequired[tuple[str, ...] | None]


class _UnsentPartition(TypedDict):
    oid: int
    schema: str
    name: str
    root: int
    foreign: bool


class _PublicationFacts(_FactReading):
    publication: str
    captured: NotRequired[bool]
    operations: NotRequired[tuple[str, ...]]
    via_root: NotRequired[bool]
    all_tables: NotRequired[bool]
    generated: NotRequired[bool]
    written: NotRequired[int | None]
    excluded: NotRequired[tuple[int, ...]]
    tables: NotRequired[tuple[_PublishedTable, ...]]
    unsent: NotRequired[tuple[_UnsentPartition, ...]]


_KINDS: Final[Mapping[str, Any]] = {
    CONNECTED: _Connected,
    OPTIONS_CHANGED: dict[str, tuple[Any, Any]],
    CREATED_SLOT: _CreatedSlot,
    COPIED_TABLE: _CopiedTable,
    COPYING_TABLE: _CopyingTable,
    COPIED_CHUNKS: _CopiedChunks,
    TABLE_FACTS: _TableFacts,
    PUBLICATION_FACTS: _PublicationFacts,
    BEGUN_ANEW: _BegunAnew,
}
"""The types of the details that are read; they may have further fields, which later versions write."""
_LEAST_TIME: Final = UNIX_TO_POSTGRES - 2**63


def parse_details(seq: int, name: str | None, payload: bytes | str) -> dict[str, Any]:
    """Parse the payload of an event.

    Args:
        seq: Its seq.
        name: The name that it must have; None: any.
        payload: Its name and details as JSON.

    Returns:
        The name as ``event``, and the details.

    Raises:
        ChangeLogError: The payload is not that of an event, or its details have other types than this version reads.
    """
    try:
        details: Any = parse_json(payload)
        found = details.get("event") if isinstance(details, dict) else None
        if not isinstance(found, str) or found != (name or found):
            raise ValueError(f"it should be an object with the name of an event {name or ''}")
        found.encode()  # raises ValueError for what is no text
        others = {key: value for key, value in details.items() if key != "event"}
        from_json(_KINDS.get(found, _Anything), others)
    except ValueError as error:
        raise ChangeLogError(f"seq {seq}: the payload is not that of an event: {error}: {payload[:80]!r}") from None
    return dict(details)


_Anything: Final = dict[str, Any]


@dataclass(frozen=True)
class LogEvent:
    """One event of a log. Its row has no tag; its payload is the name and the details as JSON."""

    name: str
    """What happened, such as CONNECTED."""
    lsn: Lsn = field(default_factory=Lsn)
    """The LSN that it is about; 0/0 for none."""
    time: Timestamp = field(default_factory=lambda: Timestamp(0))
    """When: microseconds since 2000-01-01 UTC."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Details, values of JSON."""
    seq: int = -1
    """Its seq; -1 before it is appended to a log."""

    def payload(self) -> bytes:
        """Return the payload of its row; raises TypeError for details that JSON cannot represent."""
        return json.dumps({"event": self.name, **self.details}).encode("ascii")

    @classmethod
    def parse(cls, seq: int, lsn: int, time: int, payload: bytes) -> "LogEvent":
        """Parse the row of an event.

        Args:
            seq: Its seq.
            lsn: The LSN that it is about.
            time: When: microseconds since 2000-01-01 UTC.
            payload: Its name and details as JSON.

        Raises:
            ChangeLogError: The payload is not that of an event.
        """
        details = parse_details(seq, None, payload)
        return cls(details.pop("event"), Lsn(lsn), Timestamp(time), details, seq)


class EventRow(NamedTuple):
    """One event in the index of a log, its payload not parsed yet."""

    seq: int
    """Its seq."""
    name: str
    """What happened."""
    lsn: int
    """The LSN that it is about."""
    time: int
    """When: microseconds since 2000-01-01 UTC."""
    payload: memoryview
    """Its name and details as JSON: mostly a view of the index."""

    def read(self) -> LogEvent:
        """Return the event; raise ChangeLogError if the payload is not that of an event."""
        return LogEvent.parse(self.seq, self.lsn, self.time, bytes(self.payload))


def event_rows(index: SegmentIndex, names: Collection[str] = (), after: int = -1) -> Iterator[EventRow]:
    """Yield the events of a log in order. Payloads, which are long for tables of many columns, are not copied.

    Who asks for events by name derives what they say together. So those that a pruned log inherits come first then.

    Args:
        index: The index of the log.
        names: Only events of these names; all of the log's own if empty.
        after: Only events after this seq.
    """
    for event in index.inherited_events:
        if event.name in names and event.seq > after:
            yield EventRow(*event[:-1], memoryview(event.payload.encode()))
    events = index.entries("events")
    chosen = events["seq"].to_numpy() > after
    if names:
        chosen &= pc.is_in(events["name"], pa.array(sorted(names), pa.string())).to_numpy()
    row_indexes = np.flatnonzero(chosen)
    facts = events.select(EventRow._fields[:-1]).take(row_indexes)
    columns = (column.to_pylist() for column in facts.columns)
    yield from map(EventRow, *columns, map(BinaryValues(events["payload"]).__getitem__, row_indexes.tolist()))


def events_of(index: SegmentIndex, name: str | None = None) -> Iterator[LogEvent]:
    """Yield the events of a log, or those of one name, in order."""
    for row in event_rows(index, () if name is None else {name}):
        yield row.read()


def log_events(table: pa.Table) -> Iterator[LogEvent]:
    """Yield the events among rows of a segment; raise ChangeLogError for a row without a tag that is not one."""
    events = table.filter(table["tag"].is_null())
    columns = events["seq"], events["wal_start"], events["send_time"].cast(pa.int64()), events["payload"]
    for seq, lsn, time, payload in zip(*(column.to_pylist() for column in columns), strict=True):
        if time < _LEAST_TIME:
            raise ChangeLogError(f"seq {seq}: the time of the event does not fit into 64 bits")
        yield LogEvent.parse(seq, lsn, time - UNIX_TO_POSTGRES, payload)
