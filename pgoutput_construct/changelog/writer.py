"""The writing end of the change log: one writer a log, rows in memory until a segment is durable."""

import time
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from pgoutput_construct.changelog._facts.events import LogEvent
from pgoutput_construct.changelog._facts.segment_descriptions import Sent
from pgoutput_construct.changelog._index.index_builder import IndexBuilder
from pgoutput_construct.changelog._index.indexes import ManifestKeeper, builder_after
from pgoutput_construct.changelog._index.listing import list_log
from pgoutput_construct.changelog._notes.confirmation_note import Note, note_after, read_note, write_note
from pgoutput_construct.changelog._segment.block import Block
from pgoutput_construct.changelog._segment.footer import Position, Segment, chosen
from pgoutput_construct.changelog._segment.segment_schema import Part, coalesced, segment_table
from pgoutput_construct.changelog._segment.segment_writer import write_segment
from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog._store.store import Address, LogLock, LogStore
from pgoutput_construct.changelog.log_options import LogOptions
from pgoutput_construct.changelog.reader import ensure_id
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.wire import Lsn, Timestamp

__all__ = ["Durable", "LogWriter", "SegmentLimits"]


_INT64_MAX = 2**63 - 1


@dataclass(frozen=True)
class SegmentLimits:
    """When a segment is cut: at the first limit that is reached, also inside a transaction."""

    rows: int = 100_000
    """Most payloads in a segment, give or take those that arrive together."""
    payload_bytes: int = 8 * 2**20
    """Bytes of payload after which no more is added; one payload may be up to 1 GB by itself. Two segments are in
    memory, one that is filled and one that is written."""
    seconds: float = 2.0
    """How long a payload may wait in memory: the delay of confirmations and of readers."""

    def __post_init__(self) -> None:
        if self.rows < 1 or self.payload_bytes < 1 or self.seconds < 0:
            raise ChangeLogError("the limits of a segment are at least one row, one byte and zero seconds")


class LogWriter:
    """Appends blocks and publishes them as segments; a context manager that holds the log's lock.

    An object store, whose locks keep nobody out, is claimed with the first write: who has come that far has the slot.

    A thread of its own makes one segment durable while the next is filled: ``cut`` hands over what was appended, and
    ``collect`` tells when it is durable; ``publish`` does both. What is not durable is lost in a crash. ``position``
    is what the last durable segment says: the position to resume from.
    """

    def __init__(self, address: Address | LogStore, limits: SegmentLimits | None = None) -> None:
        """Lock the log at an address, remove unfinished files, and find where its log ends; raises ChangeLogError.

        ``limits`` say when a segment is cut, SegmentLimits() where they are left out.
        """
        self.store = open_store(address)
        self.limits = limits or SegmentLimits()
        self.options: LogOptions | None = None
        self.next_seq = 0
        self.pending = 0
        """How many payloads, and events that do not wait for payloads, were appended and not handed over."""
        self.on_durable: Callable[[], None] | None = None
        """Called by the thread when there is something to collect."""
        self.on_collected: Callable[[Durable], None] | None = None
        """Called with all that is collected, however that comes about."""
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
        """How far the log is complete with the last durable segment that was collected."""
        return self._last.position if self._last else Position()

    @property
    def durable_seq(self) -> int:
        """The seq of the last row that is durable, as far as it was collected; -1 for none."""
        return self._last.last_seq if self._last else -1

    @property
    def open_transactions(self) -> int:
        """How many transactions of the log had not ended when this writer last wrote a segment."""
        return self._flush.open_transactions

    @property
    def busy(self) -> bool:
        """Whether something was handed over that was not collected."""
        return self._writing is not None

    @property
    def noted_lsn(self) -> Lsn:
        """The highest position that was confirmed; a slot beyond it was moved by somebody else."""
        return self._note.reached(self._last)

    @property
    def note(self) -> Note:
        """What the server was told: a slot at another position was moved, or created, by somebody else."""
        return self._note

    @property
    def noted_timeline(self) -> tuple[int | None, str | None]:
        """The server's timeline on which ``noted_lsn`` was reached, and its origin; None where the log has neither."""
        if self._note.confirmed_lsn > self.position.complete_lsn or self._last is None:
            return self._note.timeline, self._note.timeline_origin
        return self._last.options.timeline, self._last.options.timeline_origin

    @property
    def noted_slot(self) -> str | None:
        """The slot that the capture of this log has created, or was about to create, before the log began."""
        return self._note.slot

    def note_slot(self, slot: str | None) -> None:
        """Note durably, before a slot is created, that the capture of this log creates it; None: it does not.

        A process that is killed while it waits for the slot leaves a server that may still create it.
        """
        self._note = replace(self._note, slot=slot)
        write_note(self.store, self._note)

    def refresh(self) -> None:
        """See whether this writer still has the log, where its slot is further; raise ChangeLogError when it has not.

        One that has not claimed it yet takes it as it is now: another one may have written, and ended, since.
        """
        if self._claim.is_taken:
            self._claim.check()
        elif not self._parts:
            self._note = self._read_note(self._last)
            if self._claim.is_overtaken(self._last):
                self._recover()

    def use(self, options: LogOptions, said: Collection[str] = ()) -> None:
        """Set the ``options``; raise ChangeLogError when they cannot be those of this log.

        ``said`` are the options whose change the next segment tells of, by an event (OPTIONS_CHANGED).
        """
        if self.options is not None and (differences := self.options.differences(options, said)):
            raise ChangeLogError(
                f"{self.store}: the change log there was captured with other options "
                f"({'; '.join(differences)}); use these, or another directory and another slot"
            )
        self.options = options

    def append(self, block: Block) -> None:
        """Add payloads, at the seqs from ``next_seq`` on. Raises ChangeLogError for what a log cannot hold."""
        if not len(block):
            return
        if (lowest := int(block.wal_start.min())) < 0:
            raise _beyond(Lsn(lowest + 2**64))
        self._count(len(block))
        self._parts.append(block)
        self.next_seq += len(block)
        self._bytes += block.payload_bytes

    def append_event(self, name: str, lsn: Lsn, /, **details: Any) -> None:
        """Add an event: what happened, the position that it is about, and whatever JSON can hold.

        It becomes durable with the payloads that follow it.
        """
        self._parts.append(LogEvent(name, lsn, Timestamp.now(), details))
        self.next_seq += 1

    def append_fact(self, name: str, lsn: Lsn, /, **details: Any) -> None:
        """Add an event that does not wait for payloads: it counts as one for all limits, and makes a segment alone."""
        self._count(1)
        self.append_event(name, lsn, **details)

    def is_full(self) -> bool:
        """Return whether what was appended reaches the limit of rows or bytes."""
        return self.pending >= self.limits.rows or self._bytes >= self.limits.payload_bytes

    def is_due(self) -> bool:
        """Return whether a limit is reached and ``cut`` should be called."""
        waited = time.monotonic() - self._oldest
        return self.pending > 0 and (self.is_full() or waited >= self.limits.seconds)

    def cut(self, position: Position) -> None:
        """Hand over what was appended, to be made durable; without payloads only the position is written down.

        ``position``: how far the log is complete with these payloads. Only after ``collect`` has told may it be
        confirmed to the server. Waits for what was handed over before: collect that while ``busy``.
        """
        if position.complete_lsn > _INT64_MAX:
            raise _beyond(position.complete_lsn)
        if self.pending and self.options is None:
            raise ChangeLogError("set the options of the log before its first segment")
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
        """Return what has become durable since the last call; None for nothing, or (but for ``wait``) not yet.

        Raises what went wrong in the thread, such as ChangeLogError for a disk that is full; the payloads are then as
        if they had not been handed over.
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
        """Make all appended payloads durable as one segment, and wait for it; None when there are none."""
        self.collect(wait=True)
        if not self.pending:
            return None
        self.cut(position)
        durable = self.collect(wait=True)
        return durable.segment if durable else None

    def begin_anew(self, position: Position | None = None) -> None:
        """Make what was appended durable, and have the log go on from ``position``, also from an earlier one.

        Without one it goes on from wherever the next slot begins, as an empty log does. An event should say why
        (BEGUN_ANEW).
        """
        position = position or Position()
        self.publish(position)
        self._note = note_after(position.complete_lsn, self.next_seq, self.options)
        write_note(self.store, self._note)

    def close(self) -> None:
        """Wait for what was handed over, and release the log; what was not handed over is gone."""
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
        listing = list_log(self.store)
        self._note = self._read_note(listing[-1] if listing else None)
        if listing:
            self._last = last = listing[-1]
            self.options = last.options
            self.next_seq = self._first_seq = last.last_seq + 1
        self._note.check_end(self.next_seq, self.store)
        self._flush = _Flush(self.store, self._claim, ManifestKeeper(self.store, listing))

    def _read_note(self, last: Segment | None) -> Note:
        note = read_note(self.store)
        return note.including(last.position.complete_lsn) if last else note

    def _take_back(self, handed: "_Handed") -> None:
        if handed.rows:
            self._parts, self._first_seq = handed.parts + self._parts, handed.first_seq
            self.pending, self._bytes = handed.rows + self.pending, handed.size + self._bytes

    def _wake(self, _: "Future[Durable]") -> None:
        if self.on_durable is not None:
            self.on_durable()


def _beyond(lsn: Lsn) -> ChangeLogError:
    return ChangeLogError(f"WAL position {lsn} is beyond 7FFFFFFF/FFFFFFFF: the log cannot hold it")


_GROUP_ROWS = 32768  # rows that can be read, or are damaged, alone: fewer cost more CPU to write


@dataclass(frozen=True)
class _Handed:
    """What is to become durable."""

    parts: list[Part]
    """The payloads and events, from ``first_seq`` on."""
    first_seq: int
    rows: int
    """How many payloads these are; without any, only the position is written down."""
    size: int
    """Bytes of the payloads."""
    options: LogOptions | None
    position: Position
    """How far the log is complete with them."""
    last: Segment | None
    """The segment before them; None at the begin of the log."""
    noted: Note
    """What was noted last."""


@dataclass(frozen=True)
class Durable:
    """What has become durable, and may be confirmed to the server."""

    position: Position
    """How far the log is complete with it."""
    segment: Segment | None
    """The segment; None where only the position moved."""
    note: Note
    """The note that is in force with it."""


@dataclass
class _Flush:
    """Makes one thing after another durable; nothing else changes the log meanwhile, but for compaction and prune."""

    store: LogStore
    claim: "_CaptureClaim"
    manifests: ManifestKeeper
    open_transactions: int = 0
    """How many transactions of the log had not ended at the end of the last segment that this one wrote."""
    _has_id: bool = False
    _builder: IndexBuilder | None = None
    _sent: dict[int, Sent] = field(default_factory=dict)

    def write(self, handed: _Handed) -> Durable:
        """Return once all is durable; raises ChangeLogError when it may not be confirmed."""
        self.claim.take(handed.last)
        segment, note = None, handed.noted
        if handed.rows and handed.options is not None:
            if not self._has_id:
                ensure_id(self.store)
                self._has_id = True
            segment = self._write_segment(handed, handed.options)
            note = note.including(handed.position.complete_lsn)
        elif handed.position.complete_lsn and handed.position.complete_lsn not in note.told:
            note = self._write_note(handed)
        self.claim.check()  # else it went elsewhere, and may not be confirmed
        return Durable(handed.position, segment, note)

    def _write_note(self, handed: _Handed) -> Note:
        next_seq = handed.last.last_seq + 1 if handed.last else 0
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
        # It goes on: where the segment cannot be written, another one begins where this one did.
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
"""Seconds after a claim in which an upload of the one who had the log before may still end."""


class _CaptureClaim:
    """Whether a capture may write into a log: a directory is claimed at once, an object store by ``take``.

    ``last`` is, here and there, the newest segment of which the capture knows; None where it knows of none.
    """

    def __init__(self, store: LogStore) -> None:
        """Claim a directory; raises ChangeLogError when another capture has it."""
        self._store = store
        self._lock: LogLock | None = store.lock(_LOCK) if store.keeps_out else None
        self._settled_at = 0.0

    @property
    def is_taken(self) -> bool:
        """Whether there is something that another one can take away."""
        return self._lock is not None

    def take(self, last: Segment | None) -> None:
        """Have the log, from now on; raises ChangeLogError when another one has it, or has written into it."""
        if self._lock is None:
            self._check_end(last)  # who has come too late takes nothing from the other one
            self._lock = self._store.lock(_LOCK)
            self._settled_at = time.monotonic() + _SETTLING
        self.check()
        if time.monotonic() < self._settled_at:
            self._check_end(last)

    def check(self) -> None:
        """Raise ChangeLogError when the log was taken away."""
        if self._lock is not None:
            self._lock.check()

    def is_overtaken(self, last: Segment | None) -> bool:
        """Return whether another one has written, or an upload of it has ended, after the segment ``last``."""
        files = self._store.files()
        known = (last.name, last.size) if last else None
        return any((newest.name, files[newest.name]) != known for newest in chosen(files)[0][-1:])

    def release(self) -> None:
        """Let others have the log."""
        if self._lock is not None:
            self._lock.release()

    def _check_end(self, last: Segment | None) -> None:
        if self.is_overtaken(last):
            raise _overtaken(self._store, last.last_seq + 1 if last else 0)


def _overtaken(store: LogStore, seq: int) -> ChangeLogError:
    """Say that a log goes on where a capture wanted to write ``seq``, and what to do."""
    return ChangeLogError(
        f"{store}: the log does not end before seq {seq}, as it did when this capture read it: another capture writes "
        "into it, or an upload that had failed has ended; let one capture run, which goes on where the log ends"
    )
