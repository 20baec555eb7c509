"""The change log as its readers see it: segments, entries, and errors that name both."""

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog._facts.events import LogEvent, events_of
from pgoutput_construct.changelog._facts.segment_descriptions import Sent
from pgoutput_construct.changelog._index.indexes import builder_after, indexes_of
from pgoutput_construct.changelog._index.listing import Listing, list_log
from pgoutput_construct.changelog._index.log_index import LogIndex
from pgoutput_construct.changelog._index.planning import relation_history
from pgoutput_construct.changelog._index.segment_index import SegmentIndex
from pgoutput_construct.changelog._segment.footer import Segment
from pgoutput_construct.changelog._segment.segment_reader import read_segment
from pgoutput_construct.changelog._segment.segment_schema import parts_of
from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog._store.store import Address, LogStore, MissingFileError
from pgoutput_construct.changelog.log_options import LogOptions
from pgoutput_construct.columnar.descriptions import OUTSIDE, copy_scope
from pgoutput_construct.errors import ChangeLogError, PgoutputError
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.wire import Lsn, Timestamp
from pgoutput_construct.wire.options import STATE_PARAMETERS
from pgoutput_construct.wire.types import UNIX_TO_POSTGRES

__all__ = [
    "ChangeLog",
    "EmptyLogError",
    "LogEntry",
    "LogIdentity",
    "ensure_id",
    "explain",
    "identity_of",
    "index_as_of",
    "table_entries",
]


_BATCH_ROWS = 10_000


class EmptyLogError(ChangeLogError):
    """A log has no segment: none has been written yet, or something else is at its address."""


class LogEntry(NamedTuple):
    """One payload, with all that its parsing needs."""

    seq: int
    """Its place in the log, strictly increasing."""
    wal_start: Lsn
    """As the server sent it: 0/0 for Relation, Type and what an Origin follows; neither unique nor monotonic.
    """
    send_time: Timestamp
    """The server's clock when it sent this: microseconds since 2000-01-01 UTC."""
    in_stream: bool
    """Whether it is to be parsed as inside a stream: after a Stream Start, up to and with its Stream Stop."""
    stream_xid: int | None
    """The top-level transaction of that stream, None outside."""
    payload: bytes
    """The message as received."""
    segment: str
    """The name of the file that it is in."""
    others: Mapping[str, bool] = MappingProxyType({})
    """The stream states that later versions of the protocol brought, as ``in_stream``."""

    snapshot: int | None = None
    """The number of the chunk of a snapshot that it is of; None for what the stream sent."""

    @property
    def scope(self) -> int | None:
        """In which scope of a RelationHistory it is described: its stream, None, or that of its chunk."""
        return self.stream_xid if self.snapshot is None else copy_scope(self.snapshot)

    @property
    def states(self) -> dict[str, bool]:
        """The stream state as keywords of parse."""
        return {"in_stream": self.in_stream, **self.others}


class ChangeLog:
    """The change log at an address, as it is now: segments that come later need a new object.

    The log may hold incomplete copies of transactions, left by a capture that was interrupted: then the
    transaction is there again, complete, later. A Begin after a Begin without its Commit (or Prepare) voids the
    first; a Stream Start with ``first_segment=1`` voids the earlier streams of its xid. No complete transaction
    is there twice.
    """

    def __init__(self, address: Address | LogStore, known: "ChangeLog | None" = None) -> None:
        """Open a log for reading (see ``open_store``); raise EmptyLogError when it has no segment.

        What an earlier object, ``known``, has of the same log is not read again: who follows a log reads what is new.
        """
        self.store = open_store(address)
        self._known = None if known is None or known.store != self.store else known.segments
        if not self.segments:
            raise EmptyLogError(f"{self.store}: no change log here (no segment-*.parquet)")

    @cached_property
    def segments(self) -> Listing:
        """The segments in order; raises ChangeLogError for a damaged, foreign or missing one."""
        known, self._known = self._known, None
        return list_log(self.store, known)

    @cached_property
    def index(self) -> LogIndex:
        """What is to be known without the payloads; raises ChangeLogError for a damaged footer."""
        return indexes_of(self.segments)

    @property
    def options(self) -> LogOptions:
        """The options of the capture, from the latest segment."""
        return self.segments[-1].options

    @property
    def complete_lsn(self) -> Lsn:
        """All transactions that ended before this position are in the log."""
        return self.segments[-1].position.complete_lsn

    def __len__(self) -> int:
        rows, described = self.index.entries("snapshots")["rows"], self.index.entries("descriptions")["stream_xid"]
        copied = (pc.sum(rows).as_py() or 0) + (pc.sum(pc.less(described, OUTSIDE)).as_py() or 0)
        return self.segments.messages - copied

    def __iter__(self) -> Iterator[LogEntry]:
        return self.entries()

    def entries(self, first_seq: int | None = None, *, copied: bool = False) -> Iterator[LogEntry]:
        """Iterate over the messages of the stream, one segment in memory at a time; raise ChangeLogError for damage.

        Args:
            first_seq: Begin with this one; refused with ChangeLogError where it was pruned. None: with the first.
            copied: Yield also the rows that were copied from tables, and what describes these: their Relations say
                nothing of the messages around them (see ``LogEntry.scope``).
        """
        if first_seq is not None:
            self.check_kept(first_seq)
        for segment in self.segments[max(self.segments.place(first_seq or 0), 0) :]:
            for entry in table_entries(self.table(segment), segment.name):
                if entry.seq >= (first_seq or 0) and (copied or entry.snapshot is None):
                    yield entry

    def check_kept(self, next_seq: int) -> None:
        """Raise ChangeLogError when a reader that has read all before ``next_seq`` lacks what was pruned."""
        if next_seq < (begin := self.segments[0].first_seq):
            raise ChangeLogError(
                f"{self.store}: the seqs {next_seq} to {begin - 1} were pruned before they were read: go on with an "
                "initial copy of the tables; prune keeps what a registered reader has not read"
            )

    def entry(self, seq: int) -> LogEntry:
        """Return one entry; raise ChangeLogError when the log has none of this seq."""
        segment = self.segment(seq)
        row = self.table(segment).slice(seq - segment.first_seq, 1)
        for entry in table_entries(row, segment.name):
            return entry
        raise ChangeLogError(f"{self.store}: seq {seq} is an event, no message")

    def segment(self, seq: int) -> Segment:
        """Return the segment that holds an entry; raise ChangeLogError when the log has none of this seq."""
        first, last = self.segments[0].first_seq, self.segments[-1].last_seq
        if not first <= seq <= last:
            raise ChangeLogError(f"{self.store}: no entry has seq {seq}, the log has {first} to {last}")
        return self.segments[self.segments.place(seq)]

    def events(self) -> Iterator[LogEvent]:
        """Iterate over what the capture wrote beside the messages."""
        return events_of(self.index)

    def transactions(self) -> pa.Table:
        """Return the transactions that ended, in the order of their ends: see ``SegmentIndex.transactions``."""
        return self.index.transactions

    def open_transactions(self) -> pa.Table:
        """Return the transactions without an outcome: open, streamed, or prepared; see ``SegmentIndex.open``."""
        return self.index.open

    def descriptions(self) -> list[Description]:
        """Return every Relation of the log with the types of its columns, in order; of a pruned log those it needs."""
        return relation_history(self.index).descriptions

    def table(self, segment: Segment) -> pa.Table:
        """Read one segment as an Arrow table of ``SCHEMA``, all checksums verified; raises ChangeLogError."""
        return read_segment(segment)


def explain(entry: LogEntry, error: PgoutputError) -> ChangeLogError:
    """Say of an error in an entry's payload where it is: segment, seq, and the error's own path and offset.

    Meant for ``raise explain(entry, error) from error`` around the parsing of ``entry.payload``.
    """
    return ChangeLogError(f"segment {entry.segment}, seq {entry.seq} (WAL {entry.wal_start}): {error}")


def table_entries(table: pa.Table, segment: str | None = None) -> Iterator[LogEntry]:
    """Iterate over the messages among rows of a segment (``SCHEMA``); without its name the table has a column of it."""
    # Timestamps as integers: datetime cannot hold all of them.
    sent = table.schema.get_field_index("send_time")
    numbers = table.set_column(sent, "send_time", table["send_time"].cast("int64"))
    messages = numbers.filter(numbers["tag"].is_valid()) if numbers["tag"].null_count else numbers
    for batch in messages.to_batches(max_chunksize=_BATCH_ROWS):
        yield from (_entry(row, segment or row["segment"]) for row in batch.to_pylist())


def _entry(row: Mapping[str, Any], segment: str) -> LogEntry:
    states = {name: row[name] for name in STATE_PARAMETERS}
    in_stream, time = states.pop("in_stream"), Timestamp(row["send_time"] - UNIX_TO_POSTGRES)
    return LogEntry(
        row["seq"],
        Lsn(row["wal_start"]),
        time,
        in_stream,
        row["stream_xid"],
        row["payload"],
        segment,
        states,
        row["snapshot"],
    )


_FILE: Final = ".identity.json"


@dataclass(frozen=True)
class LogIdentity:
    """What tells a log from others."""

    system_identifier: str
    """The cluster, as ``IDENTIFY_SYSTEM`` names it."""
    database: str
    """The database in it."""
    slot: str
    """The slot that the log was last captured from."""
    id: str | None = None
    """The log's own id; None in a log of an earlier version, until something is written into it."""

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Read what ``to_json`` returns; raise KeyError for anything else."""
        identifier, database, slot = (str(content[name]) for name in ("system_identifier", "database", "slot"))
        return cls(identifier, database, slot, content.get("id"))

    def to_json(self) -> dict[str, Any]:
        """Return it as values of JSON that a person can read."""
        return asdict(self)

    def differences(self, other: "LogIdentity") -> list[str]:
        """Name what makes ``other`` another log, as ``name: here, not there``; nothing for the same log.

        The id decides: a slot may be another one later. A log that had none when this identity was noted gets one
        later; it is then known by the rest.
        """
        if self.id is not None and self.id == other.id:
            return []
        mine, theirs = self.to_json(), other.to_json()
        names = [name for name in mine if self.id is not None or name != "id"]
        different = [name for name in names if mine[name] != theirs[name]]
        return [f"{name}: {mine[name] or 'none'}, not {theirs[name] or 'none'}" for name in different]


def ensure_id(store: LogStore) -> str:
    """Return the id of a log, which gets one where it has none; its writer alone may call this."""
    known = _read(store)
    if known is None:
        known = uuid.uuid4().hex
        store.write(_FILE, json.dumps({"id": known}).encode("ascii"))
    return known


def identity_of(log: ChangeLog) -> LogIdentity:
    """Return what tells a log from others; raises ChangeLogError where the file that has its id is damaged."""
    options = log.options
    return LogIdentity(options.system_identifier, options.database, options.slot, _read(log.store))


def _read(store: LogStore) -> str | None:
    try:
        return str(json.loads(store.read(_FILE))["id"])
    except MissingFileError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise ChangeLogError(
            f"{store.path_of(_FILE)}: damaged: it has the id of the log, which its readers know it by: write "
            f'{{"id": "..."}} with the id that a warehouse has noted (_warehouse.json), or remove it: {error}'
        ) from error


def index_as_of(log: ChangeLog, seq: int) -> LogIndex:
    """Return the index of a log as of a seq: transactions that ended by then, copies, facts and descriptions.

    It has a row for each segment up to that of ``seq``. Where this is amid a segment, and something ended or was told
    behind it there, that segment alone is read. Raises ChangeLogError for a seq that the log does not have.
    """
    segment = log.segment(seq)
    place = log.segments.place(seq)
    index = log.index.slice(0, place + 1)
    if _last_settled(log.index.one(place), segment.last_seq) <= seq:
        return index
    builder = builder_after(log.segments[:place], _sent(index))
    rows = log.table(segment).slice(0, seq - segment.first_seq + 1)
    for part in parts_of(rows, segment.options.layout()):
        builder.add(part)
    before = index.slice(0, place)
    return LogIndex.concat([before, builder.finish(before.complete_lsn if place else 0)])


def _last_settled(index: SegmentIndex, seq: int) -> int:
    """Return the last seq, up to one, at which a transaction ended or an event stands; -1 for none."""
    found = []
    for name in ("transactions", "events"):
        seqs = index.entries(name)["seq"]
        found.append(pc.max(seqs.filter(pc.less_equal(seqs, seq))).as_py())
    return max((last for last in found if last is not None), default=-1)


def _sent(index: SegmentIndex) -> dict[int, Sent]:
    """Return the descriptions of a log, by seq, so that no footer is read again for them."""
    rows = [*index.entries("inherited").to_pylist(), *index.entries("descriptions").to_pylist()]
    return {row["seq"]: row for row in rows}
