"""Reads a change log: its segments, entries, events and transactions, and its identity."""

import json
import uuid
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog._index.indexes import builder_after, indexes_of
from pgoutput_construct.changelog._index.listing import Listing, list_log
from pgoutput_construct.changelog._index.log_index import AsOf, LogIndex, LogPoint
from pgoutput_construct.changelog._index.planning import first_commit_after, last_commit, relation_history, sent_by_seq
from pgoutput_construct.changelog._segment.events import BEGUN_ANEW, LogEvent, events_of
from pgoutput_construct.changelog._segment.footer import Segment
from pgoutput_construct.changelog._segment.segment_index import MOST_FAULTS, SegmentIndex
from pgoutput_construct.changelog._segment.segment_reader import read_segment
from pgoutput_construct.changelog._segment.segment_schema import parts_of
from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog._store.json_notes import from_json, read_note
from pgoutput_construct.changelog._store.store import Address, LogStore
from pgoutput_construct.changelog.log_options import LogOptions
from pgoutput_construct.columnar.descriptions import OUTSIDE, copy_scope
from pgoutput_construct.errors import ChangeLogError, PgoutputError
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.stream.rows import unread_problem
from pgoutput_construct.wire import Lsn, Timestamp, parse
from pgoutput_construct.wire.messages import BY_TAG, PgoutputMessage
from pgoutput_construct.wire.options import STATE_PARAMETERS
from pgoutput_construct.wire.protocol import BEGINS, CHANGES, DESCRIPTIONS, ENDS, UNREAD
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
    "parsed_entries",
    "refuse_faults",
    "refuse_unread",
    "table_entries",
]


_BATCH_ROWS = 10_000


class EmptyLogError(ChangeLogError):
    """There is no segment at the address: none was written yet, or the address is wrong."""


class LogEntry(NamedTuple):
    """One payload, with everything that is needed to parse it."""

    seq: int
    """Its number in the log, strictly increasing."""
    wal_start: Lsn
    """As the server sent it, neither unique nor monotonic: 0/0 for Relation, Type, and before an Origin."""
    send_time: Timestamp
    """The server's clock when it sent this: microseconds since 2000-01-01 UTC."""
    in_stream: bool
    """Whether it is parsed as inside a stream: after a Stream Start, up to and including its Stream Stop."""
    stream_xid: int | None
    """The top-level xid of that stream; None outside."""
    payload: bytes
    """The message as received."""
    segment: str
    """The name of the segment's file."""
    others: Mapping[str, bool] = MappingProxyType({})
    """The stream states of later protocol versions, like ``in_stream``."""

    snapshot: int | None = None
    """The number of the snapshot chunk that it belongs to; None for messages of the stream."""

    @property
    def scope(self) -> int | None:
        """Its scope in a RelationHistory: the xid of its stream, None outside, or the scope of its snapshot chunk."""
        return self.stream_xid if self.snapshot is None else copy_scope(self.snapshot)

    @property
    def states(self) -> dict[str, bool]:
        """The stream state as keywords of ``parse``."""
        return {"in_stream": self.in_stream, **self.others}


class ChangeLog:
    """A change log as of the time when it is opened; to see later segments, open it again.

    The log may contain incomplete transactions, left by an interrupted capture; the complete transaction follows later.
    A Begin after a Begin without its Commit (or Prepare) voids the first; a Stream Start with ``first_segment=1`` voids
    the earlier streams of its xid. No complete transaction is included twice.
    """

    def __init__(self, address: Address | LogStore, known: "ChangeLog | None" = None) -> None:
        """Open a log for reading.

        Args:
            address: A path, a URL, or a store (see ``open_store``).
            known: An earlier object of the same log, whose footers are not read again: for readers that follow a log.

        Raises:
            EmptyLogError: There is no segment.
            ChangeLogError: The log is damaged, or cannot be read.
        """
        self.store = open_store(address)
        known = None if known is None or known.store != self.store else known
        self._known = None if known is None else known.segments
        self.settled_problems: set[str] = set() if known is None else known.settled_problems
        """The problems that the index notes, and that are none with the specification of today."""
        if not self.segments:
            raise EmptyLogError(f"{self.store}: no change log here (no segment-*.parquet)")

    @cached_property
    def segments(self) -> Listing:
        """The segments in order; raises ChangeLogError for a damaged, foreign or missing one."""
        known, self._known = self._known, None
        return list_log(self.store, known)

    @cached_property
    def index(self) -> LogIndex:
        """What is known without reading payloads; raises ChangeLogError for a damaged footer."""
        return indexes_of(self.segments)

    @property
    def options(self) -> LogOptions:
        """The options of the capture, from the latest segment."""
        return self.segments[-1].options

    @property
    def complete_lsn(self) -> Lsn:
        """All transactions that end before this LSN are in the log."""
        return self.segments[-1].position.complete_lsn

    def __len__(self) -> int:
        rows, described = self.index.entries("snapshots")["rows"], self.index.entries("descriptions")["stream_xid"]
        copied = (pc.sum(rows).as_py() or 0) + (pc.sum(pc.less(described, OUTSIDE)).as_py() or 0)
        return max(self.segments.messages - copied, 0)

    def __iter__(self) -> Iterator[LogEntry]:
        return self.entries()

    def entries(self, first_seq: int | None = None, *, copied: bool = False) -> Iterator[LogEntry]:
        """Iterate over the messages of the stream, with one segment in memory at a time.

        Args:
            first_seq: The seq to begin at; None: the first.
            copied: Also yield the rows of table copies with their Relations, which do not describe the messages around
                them (see ``LogEntry.scope``).

        Raises:
            ChangeLogError: A segment is damaged, or ``first_seq`` was pruned.
        """
        if first_seq is not None:
            self.check_kept(first_seq)
        for segment in self.segments[max(self.segments.find(first_seq or 0), 0) :]:
            for entry in table_entries(self.table(segment), segment.name):
                if entry.seq >= (first_seq or 0) and (copied or entry.snapshot is None):
                    yield entry

    def check_kept(self, next_seq: int) -> None:
        """Raise ChangeLogError if rows from ``next_seq`` on were pruned."""
        if next_seq < (begin := self.segments[0].first_seq):
            raise ChangeLogError(
                f"{self.store}: the seqs {next_seq} to {begin - 1} were pruned before they were read: continue with "
                "an initial copy of the tables; prune retains what a registered reader has not read"
            )

    def entry(self, seq: int) -> LogEntry:
        """Return the entry of a seq; raise ChangeLogError if there is none."""
        segment = self.segment(seq)
        row = self.table(segment).slice(seq - segment.first_seq, 1)
        for entry in table_entries(row, segment.name):
            return entry
        raise ChangeLogError(f"{self.store}: seq {seq} is an event, not a message")

    def segment(self, seq: int) -> Segment:
        """Return the segment that contains a seq; raise ChangeLogError if there is none."""
        first, last = self.segments[0].first_seq, self.segments[-1].last_seq
        if not first <= seq <= last:
            raise ChangeLogError(f"{self.store}: there is no entry with seq {seq}: the log has {first} to {last}")
        return self.segments[self.segments.find(seq)]

    def events(self) -> Iterator[LogEvent]:
        """Iterate over the events that the capture wrote in addition to the messages."""
        return events_of(self.index)

    def transactions(self) -> pa.Table:
        """Return the transactions that ended, in the order of their ends; see ``SegmentIndex.transactions``."""
        return self.index.transactions

    def open_transactions(self) -> pa.Table:
        """Return the transactions without an outcome: open, streamed, or prepared; see ``SegmentIndex.open``."""
        return self.index.open

    def descriptions(self) -> list[Description]:
        """Return every Relation in the log with its Types, in order; after a prune, those that are still needed."""
        return relation_history(self.index).descriptions

    def table(self, segment: Segment) -> pa.Table:
        """Read one segment as an Arrow table of ``SCHEMA``, verifying checksums; raises ChangeLogError for damage."""
        return read_segment(segment)


def explain(entry: LogEntry, error: PgoutputError) -> ChangeLogError:
    """Return an error with the segment and seq of an entry whose payload cannot be parsed.

    Use: ``raise explain(entry, error) from error``, where parsing ``entry.payload`` raised ``error``, which has the
    path and offset within the message.
    """
    return ChangeLogError(f"segment {entry.segment}, seq {entry.seq} (WAL {entry.wal_start}): {error}")


def refuse_unread(log: ChangeLog, index: LogIndex) -> None:
    """Raise ChangeLogError, with segment and seq, for a noted message whose rows nothing reads, or no index has.

    Its class decides, as it is now: the specification may have changed since the message was noted.
    """
    for entry, problem in _faults(log, index):
        if BY_TAG.get(entry.payload[:1]) in CHANGES | UNREAD:
            raise explain(entry, PgoutputError(problem))


def refuse_faults(log: ChangeLog, index: LogIndex) -> None:
    """Raise ChangeLogError, with segment and seq, for a message that is invalid, or that ``refuse_unread`` refuses."""
    for entry, problem in _faults(log, index):
        raise explain(entry, PgoutputError(problem))


def _faults(log: ChangeLog, index: LogIndex) -> Iterator[tuple[LogEntry, str]]:
    """Yield the first message of each problem that an index notes and that is one now, and the problem."""
    noted = index.entries("faults").group_by("problem", use_threads=False).aggregate([("seq", "min")])
    for row in noted.to_pylist():
        problem = row["problem"]
        if problem in log.settled_problems:
            continue
        entry = log.entry(row["seq_min"])
        cls = BY_TAG.get(entry.payload[:1])
        if cls in CHANGES:  # an index notes no other message of these
            yield entry, f"{cls.__name__} {_UNCOUNTED}"
        elif cls in UNREAD or cls in _ORDERED or not _is_valid(log, entry):
            yield entry, problem
        else:
            log.settled_problems.add(problem)
    yield from _unlisted(log, index)


def _unlisted(log: ChangeLog, index: LogIndex) -> Iterator[tuple[LogEntry, str]]:
    """Yield the messages whose rows nothing reads, or no index has, where an index lists no further problems."""
    counts = pc.list_value_length(index.table["faults"]).to_numpy()
    for number in np.flatnonzero(counts >= MOST_FAULTS).tolist():
        of = slice(number, number + 1)
        counted = index.entries("rows", of)["tag"].to_pylist()
        tags = [cls.TAG[0] for cls in CHANGES | UNREAD if cls in UNREAD or cls.TAG[0] not in counted]
        last = index.entries("faults", of)["seq"][-1].as_py()
        segment = log.segment(last)
        rows = log.table(segment).slice(last + 1 - segment.first_seq)
        for entry in table_entries(rows.filter(pc.is_in(rows["tag"], pa.array(tags, rows["tag"].type))), segment.name):
            cls = BY_TAG[entry.payload[:1]]
            if _is_valid(log, entry):
                yield entry, unread_problem(cls) if cls in UNREAD else f"{cls.__name__} {_UNCOUNTED}"


_ORDERED: Final = BEGINS | ENDS | DESCRIPTIONS
"""Messages that may be faults where they stand, though they are valid."""
_UNCOUNTED: Final = (
    "is read as a change of rows by this version, but was not when it was written into the log, whose index lacks its "
    "rows: capture into a new log, with copies of the tables (pgoutput capture --snapshot)"
)


def _is_valid(log: ChangeLog, entry: LogEntry) -> bool:
    try:
        parse(entry.payload, **{**log.segment(entry.seq).options.layout(), **entry.states})
    except PgoutputError:
        return False
    return True


def table_entries(table: pa.Table, segment: str | None = None) -> Iterator[LogEntry]:
    """Iterate over the messages in rows of ``SCHEMA``; without ``segment``, the table has a column with its name."""
    # Timestamps as integers: datetime cannot hold all of them.
    sent = table.schema.get_field_index("send_time")
    numbers = table.set_column(sent, "send_time", table["send_time"].cast("int64"))
    messages = numbers.filter(numbers["tag"].is_valid()) if numbers["tag"].null_count else numbers
    for batch in messages.to_batches(max_chunksize=_BATCH_ROWS):
        yield from (_entry(row, segment or row["segment"]) for row in batch.to_pylist())


def parsed_entries(table: pa.Table, segment: Segment) -> Iterator[tuple[LogEntry, PgoutputMessage]]:
    """Iterate over the messages in rows of a segment, parsed; raise ChangeLogError for a damaged payload."""
    layout = segment.options.layout()
    for entry in table_entries(table, segment.name):
        try:
            message = parse(entry.payload, **{**layout, **entry.states})
        except PgoutputError as error:
            raise explain(entry, error) from error
        yield entry, message


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
    """The identity of a log, by which readers recognise it."""

    system_identifier: str
    """The cluster (``IDENTIFY_SYSTEM``)."""
    database: str
    """The database."""
    slot: str
    """The slot that the log was last captured from."""
    id: str | None = None
    """The log's own id; None where its file was removed, until something is written into the log."""

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Parse the result of ``to_json``; raise ValueError for anything else."""
        return from_json(cls, content)

    def to_json(self) -> dict[str, Any]:
        """Return the identity as values of JSON."""
        return asdict(self)

    def differences(self, other: "LogIdentity") -> list[str]:
        """Return how ``other`` differs, as ``name: here, not there``; empty for the same log.

        The id decides, since a log may be captured from another slot later. If this identity was recorded before the
        log got an id, the other fields decide.
        """
        if self.id is not None and self.id == other.id:
            return []
        mine, theirs = self.to_json(), other.to_json()
        names = [name for name in mine if self.id is not None or name != "id"]
        different = [name for name in names if mine[name] != theirs[name]]
        return [f"{name}: {mine[name] or 'none'}, not {theirs[name] or 'none'}" for name in different]


def ensure_id(store: LogStore) -> str:
    """Return the id of a log, creating it if it has none. Only the writer may call this."""
    known = _read(store)
    if known is None:
        known = uuid.uuid4().hex
        store.write(_FILE, json.dumps({"id": known}).encode("ascii"))
    return known


def identity_of(log: ChangeLog) -> LogIdentity:
    """Return the identity of a log; raises ChangeLogError if the file with its id is damaged."""
    options = log.options
    return LogIdentity(options.system_identifier, options.database, options.slot, _read(log.store))


@dataclass(frozen=True)
class _IdentityNote:
    id: str


def _read(store: LogStore) -> str | None:
    remedy = 'write {"id": "..."} with the id that a warehouse recorded (_warehouse.json), or remove it'
    note = read_note(store, _FILE, _IdentityNote, remedy=remedy)
    return None if note is None else note.id


def index_as_of(log: ChangeLog, point: LogPoint | int) -> LogIndex:
    """Return the index of a log as of a point, or a seq: what ended by then, and what the catalog said then.

    It has a row for each segment up to that of the seq. If a transaction ended or an event follows after the seq in
    its segment, the index of that segment is built again from its rows; no other segment is read. Raises ChangeLogError
    for a seq that the log does not have.
    """
    if isinstance(point, int):
        point = LogPoint(point)
    seq, segment = point.seq, log.segment(point.seq)
    segment_index = log.segments.find(seq)
    index = log.index.slice(0, segment_index + 1)
    if _last_settled(log.index.one(segment_index), segment.last_seq) > seq:
        # With the descriptions in the index no footer is read again for them.
        builder = builder_after(log.segments[:segment_index], sent_by_seq(index))
        rows = log.table(segment).slice(0, seq - segment.first_seq + 1)
        for part in parts_of(rows, segment.options.layout()):
            builder.add(part)
        before = index.slice(0, segment_index)
        index = LogIndex.concat([before, builder.finish(before.complete_lsn if segment_index else 0)])
    if seq == log.index.last_seq and point.lsn is None:
        return index
    return replace(index, as_of=_as_of(log.index, point))


def _as_of(index: LogIndex, point: LogPoint) -> AsOf:
    """Return which readings of the catalog are true as of a point."""
    seq, lsn, known = point
    events = [*events_of(index, BEGUN_ANEW)]
    begun = [event.seq for event in events]
    count = bisect_right(begun, seq)
    end = index.last_seq + 1 if known is None else known + 1
    history = range([0, *begun][count], min([*begun, end][count], end))
    voids = ((event, event.details["void_after"]) for event in events[:count])
    lost = tuple((event.seq, after, int(event.lsn)) for event, after in voids if after is not None)
    if lsn is not None:
        return AsOf(index, seq, lsn, lsn, history, lost)
    last, following = last_commit(index, seq), first_commit_after(index, seq)
    certain = last["commit_lsn"] if last is not None and last["seq"] in history else 0
    is_followed = following is not None and following["seq"] in history
    until = following["commit_lsn"] - 1 if following and is_followed else _NO_LSN
    return AsOf(index, seq, until, certain, history, lost)


_NO_LSN: Final = 2**64 - 1
"""No reading has a later LSN."""


def _last_settled(index: SegmentIndex, seq: int) -> int:
    """Return the last seq, at most ``seq``, of the end of a transaction or of an event; -1 for none."""
    found = []
    for name in ("transactions", "events"):
        seqs = index.entries(name)["seq"]
        found.append(pc.max(seqs.filter(pc.less_equal(seqs, seq))).as_py())
    return max((last for last in found if last is not None), default=-1)
