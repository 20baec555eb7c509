"""The writer of a change log: rows are in memory until their segment is durable, and only then confirmed.

When a segment is durable, and what may be confirmed when:

1. ``append`` collects blocks and events in memory. A crash loses them, and nothing else: the server sends them again.
2. ``cut`` hands them over, with the position that the log will have reached with them, to a thread that writes one
   segment at a time (``_Flush``). Meanwhile the next segment is filled.
3. The store makes the file durable (``_store``: fsync, rename and fsync of the directory, or the end of an upload).
4. The claim is checked again. If the directory was exchanged (an unmounted volume) or another capture has claimed the
   log, the file may have gone somewhere else: it must not be confirmed, and the capture ends with an error.
5. ``collect`` returns the position. The capture may now confirm ``complete_lsn`` as flush_lsn, after which the server
   forgets the WAL before it (LogicalConfirmReceivedLocation(), ReplicationSlotsComputeRequiredLSN()).

So everything that was confirmed is in the log; after a crash between 3 and 5 the log has more than was confirmed, and
the capture resumes from the log's own position, not from the slot's. If step 3 or 4 fails, the rows go back to the
front of what was appended: the seqs are the same at the next attempt.

Where only the position moves (an idle server), there is no segment to write, and a note next to the segments records
the LSN (``_notes.confirmation_note``). The server's position is thus never unknown: a slot that is elsewhere was moved
or re-created by somebody else, and a log that ends earlier has lost segments.

Who writes: a directory is locked when the writer is created, an object store is claimed with the first write, when the
capture has the slot (``_CaptureClaim``).
"""

import logging
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from pgoutput_construct.changelog._index.index_builder import IndexBuilder
from pgoutput_construct.changelog._index.indexes import ManifestKeeper, builder_after
from pgoutput_construct.changelog._index.listing import list_log
from pgoutput_construct.changelog._notes.confirmation_note import Note, note_after, read_note, write_note
from pgoutput_construct.changelog._segment.block import Block
from pgoutput_construct.changelog._segment.events import LogEvent
from pgoutput_construct.changelog._segment.footer import Position, Segment, chosen
from pgoutput_construct.changelog._segment.segment_descriptions import Sent
from pgoutput_construct.changelog._segment.segment_schema import Part, coalesced, segment_table
from pgoutput_construct.changelog._segment.segment_writer import write_segment
from pgoutput_construct.changelog._segment.size_limits import check_limits
from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog._store.store import Address, LogLock, LogStore
from pgoutput_construct.changelog.log_options import LogOptions
from pgoutput_construct.changelog.reader import ensure_id
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.wire import Lsn, Timestamp

__all__ = ["Durable", "LogWriter", "SegmentLimits"]


_LOG = logging.getLogger("pgoutput_construct")
_INT64_MAX = 2**63 - 1


@dataclass(frozen=True)
class SegmentLimits:
    """The limits of a segment. It is cut at the first one that is reached, also inside a transaction."""

    rows: int = 100_000
    """The maximum number of payloads in a segment, at most 1,500,000; a block that is appended whole may exceed it."""
    payload_bytes: int = 8 * 2**20
    """Bytes of payload at which a segment is cut, at most 128 MB; one payload may have up to 1 GB by itself. Two
    segments are in memory: one is filled while the other is written."""
    seconds: float = 2.0
    """How long a payload may wait in memory, in seconds: the delay of confirmations and of readers."""

    def __post_init__(self) -> None:
        if self.rows < 1 or self.payload_bytes < 1 or self.seconds < 0:
            raise ChangeLogError("limits of a segment: rows and payload_bytes must be at least 1, seconds at least 0")
        check_limits(self.rows, self.payload_bytes)


class LogWriter:
    """Appends blocks and events and writes them as segments; a context manager that holds the log's lock.

    ``cut`` hands the appended rows to a thread that makes them durable, ``collect`` returns when they are; ``publish``
    does both and waits. ``position`` is that of the last durable segment, where a capture resumes.
    """

    def __init__(self, address: Address | LogStore, limits: SegmentLimits | None = None) -> None:
        """Lock a log, remove unfinished files, and find its end.

        Args:
            address: The address of the log: a path, a URL, or a store.
            limits: When a segment is cut; SegmentLimits() by default.

        Raises:
            ChangeLogError: Another capture writes into the log, or it is damaged.
        """
        self.store = open_store(address)
        self.limits = limits or SegmentLimits()
        self.options: LogOptions | None = None
        self.next_seq = 0
        self.pending = 0
        """The number of payloads, and of facts (``append_fact``), that were appended and not handed over."""
        self.on_durable: Callable[[], None] | None = None
        """Called by the thread when there is something to collect."""
        self.on_collected: Callable[[Durable], None] | None = None
        """Called with each result that is collected, by whichever method."""
        self._last: Segment | None = None  # the newest that is durable
        self._note = Note()
        self._parts: list[Part] = []
        self._first_seq = 0
        self._bytes = 0
        self._oldest = 0.0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="change log")
        self._writing: tuple[_Handed, Future[Durable]] | None = None
        self.store.prepare()
        self._claim = _CaptureClaim(self.store)
        try:
            self._recover()
        except BaseException:
            self.close()
            raise

    @property
    def position(self) -> Position:
        """How far the log is complete with the last collected segment."""
        return self._last.position if self._last else Position()

    @property
    def durable_seq(self) -> int:
        """The seq of the last durable row that was collected; -1 for none."""
        return self._last.last_seq if self._last else -1

    @property
    def open_transactions(self) -> int:
        """The number of transactions without an outcome at the end of the last segment of this writer."""
        return self._flush.open_transactions

    @property
    def busy(self) -> bool:
        """Whether something was handed over and not collected yet."""
        return self._writing is not None

    @property
    def noted_lsn(self) -> Lsn:
        """The highest confirmed LSN; a slot beyond it was moved by somebody else."""
        return self._note.reached(self._last)

    @property
    def note(self) -> Note:
        """The confirmed LSNs: a slot at any other LSN was moved or created by somebody else."""
        return self._note

    @property
    def noted_timeline(self) -> tuple[int | None, str | None]:
        """The server's timeline at ``noted_lsn``, and its origin; None where the log has neither."""
        if self._note.confirmed_lsn > self.position.complete_lsn or self._last is None:
            return self._note.timeline, self._note.timeline_origin
        return self._last.options.timeline, self._last.options.timeline_origin

    @property
    def noted_slot(self) -> str | None:
        """The slot that the capture of this log created, or was about to create, before the log began."""
        return self._note.slot

    def note_slot(self, slot: str | None) -> None:
        """Record durably, before a slot is created, that the capture of this log creates it; None: it does not.

        If the process is killed while it waits for the slot, the server may still create it.
        """
        self._note = replace(self._note, slot=slot)
        write_note(self.store, self._note)

    def refresh(self) -> None:
        """Check that this writer still has the log; raise ChangeLogError if it has not.

        A writer that has not claimed the log yet reads it again: another one may have written to it, and ended.
        """
        if self._claim.is_taken:
            self._claim.check()
        elif not self._parts:
            self._note = read_note(self.store).including(self.position.complete_lsn)
            if self._claim.is_overtaken(self._last):
                self._recover()

    def use(self, options: LogOptions, said: Collection[str] = ()) -> None:
        """Set the options of the segments to come.

        Args:
            options: The options of the capture.
            said: The options whose change is recorded in the next segment, by an event (OPTIONS_CHANGED).

        Raises:
            ChangeLogError: The log was captured under options that these cannot follow.
        """
        if self.options is not None and (differences := self.options.differences(options, said)):
            raise ChangeLogError(
                f"{self.store}: this change log was captured with other options "
                f"({'; '.join(differences)}); use those, or another directory and another slot"
            )
        self.options = options

    def append(self, block: Block) -> None:
        """Append payloads; they get the seqs from ``next_seq`` on. Raises ChangeLogError for an LSN beyond 63 bits."""
        if not len(block):
            return
        if (lowest := int(block.wal_start.min())) < 0:
            raise _beyond(Lsn(lowest + 2**64))
        self._count(len(block))
        self._parts.append(block)
        self.next_seq += len(block)
        self._bytes += block.payload_bytes

    def append_event(self, name: str, lsn: Lsn, /, **details: Any) -> None:
        """Append an event, which becomes durable with the payloads after it.

        Args:
            name: What happened, such as CONNECTED.
            lsn: The LSN that the event is about; 0/0 for none.
            details: Anything that JSON can represent.
        """
        self._parts.append(LogEvent(name, lsn, Timestamp.now(), details))
        self.next_seq += 1

    def append_fact(self, name: str, lsn: Lsn, /, **details: Any) -> None:
        """Append an event that does not wait for payloads: it counts like one, so a segment may consist of it alone."""
        self._count(1)
        self.append_event(name, lsn, **details)

    def is_full(self) -> bool:
        """Return whether the appended rows reach the limit of rows or bytes."""
        return self.pending >= self.limits.rows or self._bytes >= self.limits.payload_bytes

    def is_due(self) -> bool:
        """Return whether any limit is reached, so that ``cut`` should be called."""
        waited = time.monotonic() - self._oldest
        return self.pending > 0 and (self.is_full() or waited >= self.limits.seconds)

    def cut(self, position: Position) -> None:
        """Hand over the appended rows to be made durable; without any, only the position is recorded.

        The position may be confirmed to the server only when ``collect`` has returned it. If the previous rows are not
        durable yet, this waits for them.

        Args:
            position: How far the log is complete with these rows.

        Raises:
            ChangeLogError: The options were not set, the LSN is beyond 63 bits, or the previous rows cannot be written.
        """
        if position.complete_lsn > _INT64_MAX:
            raise _beyond(position.complete_lsn)
        if self.pending and self.options is None:
            raise ChangeLogError("call use() with the options of the log before the first cut()")
        self.collect(wait=True)
        payloads = self._parts, self._first_seq, self.pending, self._bytes
        handed = _Handed(*payloads, self.options, position, self._last, self._note)
        if self.pending:
            self._parts, self._first_seq, self.pending, self._bytes = [], self.next_seq, 0, 0
        writing = self._thread.submit(self._flush.write, handed)
        self._writing = handed, writing
        if self.on_durable is not None:
            writing.add_done_callback(self._wake)

    def collect(self, wait: bool = False) -> "Durable | None":
        """Return what has become durable since the last call; None if nothing has (yet).

        Raises the error of the thread, such as ChangeLogError for a full disk; the rows are then appended again, as if
        they had not been handed over.

        Args:
            wait: Wait for the rows that were handed over.
        """
        if self._writing is None or not (wait or self._writing[1].done()):
            return None
        (handed, writing), self._writing = self._writing, None
        try:
            durable = writing.result()
        except BaseException:
            self._take_back(handed)
            raise
        self._last, self._note = durable.segment or self._last, durable.note
        if self.on_collected is not None:
            self.on_collected(durable)
        return durable

    def publish(self, position: Position) -> Segment | None:
        """Write all appended rows as one segment, and wait until it is durable; None if there are none."""
        self.collect(wait=True)
        if not self.pending:
            return None
        self.cut(position)
        durable = self.collect(wait=True)
        return durable.segment if durable else None

    def restart_at(self, position: Position | None = None) -> None:
        """Write the appended rows, and let the log resume at another position, even an earlier one.

        An event BEGUN_ANEW should record why.

        Args:
            position: Where it resumes; None: wherever the next slot begins, as for an empty log.
        """
        position = position or Position()
        self.publish(position)
        self._note = note_after(position.complete_lsn, self.next_seq, self.options)
        write_note(self.store, self._note)

    def close(self) -> None:
        """Wait for the rows that were handed over, and release the log; rows that were not handed over are lost."""
        self._thread.shutdown()
        self._claim.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _count(self, rows: int) -> None:
        if not self.pending:
            self._oldest = time.monotonic()
        self.pending += rows

    def _recover(self) -> None:
        self.store.sweep()
        note = read_note(self.store)  # before the segments: another capture writes first them, then the note
        listing = list_log(self.store)
        if listing:
            self._last = last = listing[-1]
            self.options = last.options
            self.next_seq = self._first_seq = last.last_seq + 1
        self._note = note.including(self.position.complete_lsn)
        self._note.check_end(self.next_seq, self.store)
        self._flush = _Flush(self.store, self._claim, ManifestKeeper(self.store, listing))

    def _take_back(self, handed: "_Handed") -> None:
        if handed.rows:
            self._parts, self._first_seq = handed.parts + self._parts, handed.first_seq
            self.pending, self._bytes = handed.rows + self.pending, handed.size + self._bytes

    def _wake(self, _: "Future[Durable]") -> None:
        if self.on_durable is not None:
            self.on_durable()


def _beyond(lsn: Lsn) -> ChangeLogError:
    return ChangeLogError(f"LSN {lsn} is beyond 7FFFFFFF/FFFFFFFF, the largest that a log can store")


_GROUP_ROWS = 32768  # the unit of reading and of damage; smaller row groups cost more CPU to write


@dataclass(frozen=True)
class _Handed:
    """Rows that were handed over to be made durable."""

    parts: list[Part]
    """The blocks and events, whose seqs begin at ``first_seq``."""
    first_seq: int
    rows: int
    """The number of payloads; without any, only the position is recorded."""
    size: int
    """The sum of the payloads' sizes, in bytes."""
    options: LogOptions | None
    position: Position
    """How far the log is complete with these rows."""
    last: Segment | None
    """The segment before these rows; None at the beginning of the log."""
    noted: Note
    """The note before these rows."""


@dataclass(frozen=True)
class Durable:
    """A position that has become durable, and may be confirmed to the server."""

    position: Position
    """How far the log is complete."""
    segment: Segment | None
    """The segment; None if only the position moved."""
    note: Note
    """The note as of this position."""


@dataclass
class _Flush:
    """Writes one segment, or note, at a time; only compaction and prune change the log concurrently."""

    store: LogStore
    claim: "_CaptureClaim"
    manifests: ManifestKeeper
    open_transactions: int = 0
    """The number of transactions without an outcome at the end of the last segment written."""
    _has_id: bool = False
    _builder: IndexBuilder | None = None
    _sent: dict[int, Sent] = field(default_factory=dict)

    def write(self, handed: _Handed) -> Durable:
        """Write rows, and return when they are durable; raises ChangeLogError if they must not be confirmed."""
        self.claim.take(handed.last)
        try:
            return self._written(handed)
        except ChangeLogError:
            if self.store.keeps_out:
                self.claim.check()  # nothing can be written into a directory that is gone: that is the reason
            raise

    def _written(self, handed: _Handed) -> Durable:
        segment, note, lsn = None, handed.noted, handed.position.complete_lsn
        is_noted = lsn in note.told
        if handed.rows and handed.options is not None:
            if not self._has_id:
                ensure_id(self.store)
                self._has_id = True
            segment = self._write_segment(handed, handed.options)
            note = note.including(lsn)
        last = segment or handed.last
        # The slot shows that a segment was lost only if the segment moved its LSN: of others the note has the seqs.
        lacks_seqs = last is not None and note.next_seq <= last.last_seq
        if lsn and (lacks_seqs if is_noted else segment is None):
            try:
                note = self._write_note(handed, last)
            except ChangeLogError as error:
                if segment is None:
                    raise
                # The segment is durable, and its LSN was confirmed before: the note is written with the next cut.
                _LOG.warning("%s", error)
        self.claim.check()  # if it was lost, the file may be elsewhere: then it must not be confirmed
        return Durable(handed.position, segment, note)

    def _write_note(self, handed: _Handed, last: Segment | None) -> Note:
        next_seq = last.last_seq + 1 if last else 0
        note = note_after(max(handed.position.complete_lsn, handed.noted.confirmed_lsn), next_seq, handed.options)
        note = replace(note, told=handed.noted.told, told_from=handed.noted.told_from).including(
            handed.position.complete_lsn
        )
        write_note(self.store, note)
        return note

    def _write_segment(self, handed: _Handed, options: LogOptions) -> Segment:
        builder = self._builder or builder_after(list_log(self.store), self._sent)
        if builder.next_seq != handed.first_seq:
            raise _overtaken(self.store, handed.first_seq)
        # The builder changes now: if the segment cannot be written, a new builder begins where this one did.
        self._builder, self._sent = None, builder.sent
        parts = list(coalesced(handed.parts))
        for part in parts:
            builder.add(part)
        index = builder.finish(handed.position.complete_lsn)
        table = segment_table(parts, handed.first_seq)
        segment = write_segment(self.store, table, options, handed.position, index, _GROUP_ROWS)
        self.manifests.add(segment, index)
        self._builder, self.open_transactions = builder, len(index.open)
        return segment


_LOCK: Final = "capture"
_SETTLING: Final = 600.0
"""Seconds after a claim in which an upload of the previous writer may still complete."""


class _CaptureClaim:
    """The right of a capture to write into a log. A directory is locked at once, an object store claimed by ``take``.

    Arguments named ``last`` are the newest segment that the capture knows, or None.
    """

    def __init__(self, store: LogStore) -> None:
        """Lock a directory; raises ChangeLogError if another capture has it."""
        self._store = store
        self._lock: LogLock | None = store.lock(_LOCK) if store.keeps_out else None
        self._settled_at = 0.0

    @property
    def is_taken(self) -> bool:
        """Whether the log was locked or claimed."""
        return self._lock is not None

    def take(self, last: Segment | None) -> None:
        """Claim the log, if that is not done; raises ChangeLogError if another capture has it, or wrote into it."""
        if self._lock is None:
            self._check_end(last)  # a writer that comes too late must not take over
            self._lock = self._store.lock(_LOCK)
            self._settled_at = time.monotonic() + _SETTLING
        self.check()
        if time.monotonic() < self._settled_at:
            self._check_end(last)

    def check(self) -> None:
        """Raise ChangeLogError if the lock or claim was lost."""
        if self._lock is not None:
            self._lock.check()

    def is_overtaken(self, last: Segment | None) -> bool:
        """Return whether another capture has written a segment after ``last``, or an upload of it has completed."""
        files = self._store.files()
        known = (last.name, last.size) if last else None
        return any((newest.name, files[newest.name]) != known for newest in chosen(files)[0][-1:])

    def release(self) -> None:
        """Release the log."""
        if self._lock is not None:
            self._lock.release()

    def _check_end(self, last: Segment | None) -> None:
        if self.is_overtaken(last):
            raise _overtaken(self._store, last.last_seq + 1 if last else 0)


def _overtaken(store: LogStore, seq: int) -> ChangeLogError:
    """Return the error for a log that has a segment where a capture was about to write ``seq``."""
    return ChangeLogError(
        f"{store}: the log no longer ends before seq {seq}, as it did when this capture read it: another capture "
        "writes into it, or an upload that seemed to have failed has completed; run one capture, which resumes where "
        "the log ends"
    )
