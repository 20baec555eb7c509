"""Table copies in progress: tables divided into chunks of pages, and the queue of pieces for the log."""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from pgoutput_construct.changelog._facts.copies import TableCopy
from pgoutput_construct.changelog._facts.partial_copies import CopyAttempt, PartialCopy, ReadColumns
from pgoutput_construct.changelog._facts.visibility import Snapshot, Visibility
from pgoutput_construct.changelog._facts.void_rows import NO_VOID_ROWS, VoidRows
from pgoutput_construct.changelog._notes.copy_requests import CopyRequest
from pgoutput_construct.changelog._segment.block import Block
from pgoutput_construct.postgres._snapshot.copied_tables import Leaf, PublishedTable
from pgoutput_construct.postgres._snapshot.snapshots import CommitWindow
from pgoutput_construct.wire import Lsn, Timestamp

__all__ = [
    "Chunk",
    "CopyProgress",
    "Piece",
    "PieceQueue",
    "TableJob",
]

_QUEUE_BYTES: Final = 16 * 2**20
"""The bytes of payload in the queue above which ``put`` blocks."""


@dataclass
class TableJob:
    """One attempt to copy a table, under one snapshot."""

    table: PublishedTable
    snapshot: Snapshot
    requests: tuple[CopyRequest, ...] = ()
    """The requests that it fulfils."""
    chunks: tuple["Chunk", ...] = ()
    """The chunks that are read."""
    partial: PartialCopy | None = None
    """What is durable of it, for a later attempt; None for a table of one chunk, which is copied from scratch."""
    generation: int = 0
    """That of the selection when it was begun."""
    columns: ReadColumns = field(default_factory=lambda: ReadColumns((), 0))
    """The columns of its rows."""
    attempt: int | None = None
    """Its number, once the log says that it was begun."""
    is_waiting: bool = False
    """Whether it waits for the stream before its first chunk is read."""
    read: list[int] = field(default_factory=list)
    """The chunks that were read to their ends, and that the log does not say so of."""
    last_seq: int = -1
    """The seq of what was last appended of it."""
    void_rows: VoidRows | None = None
    """Its rows that do not count, once they are known; None before."""
    void: bool = False
    """Whether it was abandoned: nothing more of it is appended. The next attempt reads the chunks that were not."""
    was_altered: bool = False
    """Whether it was abandoned since the table was altered."""
    rows: int = 0
    """The number of rows that were appended."""
    done: int = 0
    """The total size of the chunks that were appended, in this attempt or before."""
    missing: int = 0
    """The number of chunks that were not appended yet."""
    event_seq: int | None = None
    """The seq of the event that the copy is complete; None before it is."""
    window: CommitWindow | None = None
    """The commits that its snapshot may see or not; None for the snapshot of a new slot, which sees exactly what the
    slot does not send."""
    _ending: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def size(self) -> int:
        """The total size of the chunks that are read, in pages."""
        return sum(chunk.size for chunk in self.chunks)

    @property
    def sees_until(self) -> Lsn:
        """The LSN up to which the log must be complete before it is known which transactions the copy contains."""
        return Lsn(0) if self.window is None else self.window.until

    @property
    def is_continued(self) -> bool:
        """Whether it has rows of earlier attempts, some of which may not count."""
        return bool(self.attempt)

    def begin(self, copy: PartialCopy, seq: int) -> CopyAttempt:
        """Return the attempt, which becomes one of the copy's; ``seq`` is that of its event."""
        snapshot, window = self.snapshot, self.window
        between = (snapshot.lsn, snapshot.lsn) if window is None else (window.since, window.until)
        attempt = CopyAttempt(seq, snapshot, *between, self.columns)
        self.attempt = len(copy.attempts)
        copy.attempts.append(attempt)
        return attempt

    def take_read(self, seq: int) -> list[int]:
        """Return the chunks that were read and that the log does not say so of, which the event with a seq then does.

        None of an attempt that was abandoned: the next one has decided by then what it reads.
        """
        with self._ending:
            if self.void or self.partial is None or self.attempt is None:
                return []
            chunks, self.last_seq = [*self.read], seq
            self.partial.reads += [(chunk, self.attempt) for chunk in chunks]
            self.partial.read_time = Timestamp.now()
            self.read.clear()  # last: then the copier's thread may look for void rows
        return chunks

    def complete(self, seq: int) -> bool:
        """Note that the event with a seq completes it; return False if it was abandoned before."""
        with self._ending:
            if not self.void:
                self.event_seq = seq
            return not self.void

    def abandon(self, was_altered: bool = False) -> bool:
        """Abandon it; return False if it was completed before."""
        with self._ending:
            if self.event_seq is None:
                self.void, self.was_altered = True, self.was_altered or was_altered
            return self.void

    def copy(self) -> TableCopy:
        """Return the complete copy, as its event records it."""
        table, window, snapshot = self.table, self.window, self.snapshot
        plan = None if self.partial is None else self.partial.plan
        numbers = (self.chunks[0].number,) * 2 if plan is None else (plan.first_chunk, plan.last_chunk)
        visibility = Visibility.at(snapshot.lsn) if window is None else window.visibility(snapshot)
        named = -1, table.oid, table.namespace, table.name, snapshot
        return TableCopy(*named, *numbers, self.rows, visibility, void=self.void_rows or NO_VOID_ROWS)


@dataclass
class Chunk:
    """Consecutive pages of a table."""

    job: TableJob
    number: int
    leaf: Leaf | None
    """The table that has the pages; None for a partitioned table without partitions."""
    pages: tuple[int | None, int | None]
    """The first page, and the page after the last one; None for no bound."""
    xids: tuple[int, int] | None = None
    """Only rows of transactions from the first to before the second of these 64-bit xids are read; None: of all."""
    all_others: bool = False
    """Whether the rows of all others are read instead."""
    was_read: bool = False
    """Whether it was read in an earlier attempt."""
    handed: int = 0
    """The number of rows that were handed over: another connection that resumes the chunk skips them."""

    @property
    def pages_read(self) -> int:
        """The number of pages when it was measured."""
        first, end = self.pages
        return max((self.leaf.pages if end is None and self.leaf else end or 0) - (first or 0), 0)

    @property
    def size(self) -> int:
        """What it counts in the progress of its copy, which has come as far as pages were read at all."""
        return 1 + self.pages_read


@dataclass(frozen=True)
class Piece:
    """Some rows of a chunk, after the messages that describe them."""

    chunk: Chunk
    block: Block | None
    """None for nothing: a chunk that was brought up to date has no new row."""
    rows: int
    is_last: bool
    """Whether it is the last piece of the chunk."""

    @property
    def size(self) -> int:
        """The size of its payloads in bytes."""
        return 0 if self.block is None else self.block.payload_bytes


@dataclass
class PieceQueue:
    """The pieces to append to the log; bounded in bytes, so that ``put`` blocks when it is full."""

    wake: Callable[[], None] | None = None
    """Called when a piece was added."""
    _waiting: deque[Piece] = field(default_factory=deque)
    _bytes: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _closed: bool = False

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, piece: Piece) -> None:
        """Add a piece as soon as there is room; pieces of void copies, and all after ``close``, are discarded."""
        with self._changed:
            self._changed.wait_for(lambda: self._bytes < _QUEUE_BYTES or self._closed or piece.chunk.job.void)
            if self._closed or piece.chunk.job.void:
                return
            self._waiting.append(piece)
            self._bytes += piece.size
        if (wake := self.wake) is not None:
            wake()

    def take(self) -> Piece | None:
        """Remove and return the oldest piece; None if there is none."""
        with self._changed:
            if not self._waiting:
                return None
            piece = self._waiting.popleft()
            self._bytes -= piece.size
            self._changed.notify_all()
        return piece

    def close(self) -> None:
        """Discard further pieces; blocked calls of ``put`` return."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


@dataclass(frozen=True)
class CopyProgress:
    """The progress of the table copies; counts start at zero with each call of ``capture``."""

    tables: int = 0
    """Tables whose copies are durable."""
    waiting: int = 0
    """Tables that are being copied, or remain to be copied."""
    rows: int = 0
    """Rows that were appended to the log."""
    payload_bytes: int = 0
    """The size of their payloads in bytes."""
    percent: float = 100.0
    """The percentage of the begun tables that was appended, by pages."""
    settled: bool = False
    """Whether all requested copies are durable."""
