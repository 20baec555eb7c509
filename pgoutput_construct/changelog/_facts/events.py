"""What a capture learned and the stream does not say: events, rows of the log beside the messages."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog._index.segment_index import BinaryValues, SegmentIndex
from pgoutput_construct.wire import Lsn, Timestamp
from pgoutput_construct.wire.types import UNIX_TO_POSTGRES

__all__ = [
    "BEGUN_ANEW",
    "CONNECTED",
    "COPIED_TABLE",
    "CREATED_SLOT",
    "OPTIONS_CHANGED",
    "PUBLICATION_FACTS",
    "TABLE_FACTS",
    "EventRow",
    "LogEvent",
    "event_rows",
    "events_of",
    "log_events",
]

CONNECTED: Final = "connected"
"""A connection began: what an earlier one left half in the log is void, and is sent again from its start."""
OPTIONS_CHANGED: Final = "options"
"""The log goes on under other options; the details have the old and the new value of each: ``{"slot": ["a", "b"]}``."""
CREATED_SLOT: Final = "created slot"
"""The slot was created by the capture: it sends the transactions that end after the event's position. ``slot``: its
name; ``snapshot`` (xmin, xmax, xip): what tables were at that position, under which the first copies are made; null
where none was asked for."""

COPIED_TABLE: Final = "copied table"
"""All rows that a table had are in the log, and all commits that they may contain: ``oid, schema, table``, ``chunks``
(the first and the last number), ``rows``; the snapshot: ``xmin, xmax, xip``; and, by LSNs, which transactions that
contains: ``place_lsn, contained, sees_until`` (changelog/visibility.py), which log format 2 does not have. The LSN of
the event is the snapshot's."""

TABLE_FACTS: Final = "table"
"""What the catalog says of a table, when first seen and whenever it changed: ``changelog/facts.py``."""
PUBLICATION_FACTS: Final = "publication"
"""What a publication publishes, when first seen and whenever it changed: ``changelog/facts.py``."""
BEGUN_ANEW: Final = "begun anew"
"""The slot, or the server's history, was lost, and the log goes on with changes that do not follow from those before:
``reason``; ``void_after``: earlier transactions that ended after this position are void (null: none is); ``snapshot``
(xmin, xmax, xip): tables are known again by copies whose snapshot contains this one."""


@dataclass(frozen=True)
class LogEvent:
    """One event of a log. Its row has no tag, and as payload its name and details as JSON."""

    name: str
    """What happened, such as CONNECTED."""
    lsn: Lsn = field(default_factory=Lsn)
    """The position in the WAL that it is about; 0/0 for none."""
    time: Timestamp = field(default_factory=lambda: Timestamp(0))
    """When: microseconds since 2000-01-01 UTC."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What else is known; JSON can hold it."""
    seq: int = -1
    """Its place in the log; -1 while it has none."""

    def payload(self) -> bytes:
        """Return what stands in the log; raises TypeError for details that JSON cannot hold."""
        return json.dumps({"event": self.name, **self.details}).encode("ascii")

    @classmethod
    def of(cls, seq: int, lsn: int, time: int, payload: bytes) -> "LogEvent":
        """Read an event; raise ValueError for a payload that is none."""
        details = json.loads(payload)
        if not isinstance(details, dict) or not isinstance(name := details.pop("event", None), str):
            raise ValueError(f"seq {seq}: the row has no tag, and its payload is no event: {payload!r:.80}")
        return cls(name, Lsn(lsn), Timestamp(time), details, seq)


class EventRow(NamedTuple):
    """One event as the index of a log has it, its payload not yet read."""

    seq: int
    """Its seq."""
    name: str
    """What happened."""
    lsn: int
    """The LSN that it is about."""
    time: int
    """When: microseconds since 2000-01-01 UTC."""
    payload: memoryview
    """Its name and details as JSON: bytes of the index."""

    def read(self) -> LogEvent:
        """Return the event; raise ValueError for a payload that is none."""
        return LogEvent.of(self.seq, self.lsn, self.time, bytes(self.payload))


def event_rows(index: SegmentIndex, names: Collection[str] = (), after: int = -1) -> Iterator[EventRow]:
    """Yield the events of a log after a seq, all or those of some ``names``, in their order.

    What the catalog says of a table with many columns is long: no payload is copied.
    """
    events = index.entries("events")
    chosen = events["seq"].to_numpy() > after
    if names:
        chosen &= pc.is_in(events["name"], pa.array(sorted(names), pa.string())).to_numpy()
    places = np.flatnonzero(chosen)
    facts = events.select(EventRow._fields[:-1]).take(places)
    columns = (column.to_pylist() for column in facts.columns)
    yield from map(EventRow, *columns, map(BinaryValues(events["payload"]).__getitem__, places.tolist()))


def events_of(index: SegmentIndex, name: str | None = None) -> Iterator[LogEvent]:
    """Yield the events of a log, or those of one name, in their order."""
    for row in event_rows(index, () if name is None else {name}):
        yield row.read()


def log_events(table: pa.Table) -> Iterator[LogEvent]:
    """Yield the events among rows of a segment; raise ValueError for a row without a tag that is none."""
    events = table.filter(table["tag"].is_null())
    columns = events["seq"], events["wal_start"], events["send_time"].cast(pa.int64()), events["payload"]
    for seq, lsn, time, payload in zip(*(column.to_pylist() for column in columns), strict=True):
        yield LogEvent.of(seq, lsn, time - UNIX_TO_POSTGRES, payload)
