"""The change log as its readers see it: segments, entries, and errors that name both."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog.address import open_store
from pgoutput_construct.changelog.events import LogEvent, events_of
from pgoutput_construct.changelog.footer import Segment
from pgoutput_construct.changelog.indexes import indexes_of
from pgoutput_construct.changelog.listed import Listing
from pgoutput_construct.changelog.listing import list_log
from pgoutput_construct.changelog.log_index import LogIndex
from pgoutput_construct.changelog.options import LogOptions
from pgoutput_construct.changelog.planning import relation_history
from pgoutput_construct.changelog.reading import read_segment
from pgoutput_construct.changelog.store import Address, LogStore
from pgoutput_construct.columnar.descriptions import OUTSIDE, copy_scope
from pgoutput_construct.errors import ChangeLogError, PgoutputError
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.wire import Lsn, Timestamp
from pgoutput_construct.wire.options import STATE_PARAMETERS
from pgoutput_construct.wire.types import UNIX_TO_POSTGRES

__all__ = ["ChangeLog", "EmptyLogError", "LogEntry", "explain", "table_entries"]


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
