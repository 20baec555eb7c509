"""Table copies in progress: tables divided into chunks of pages, and the queue of pieces for the log."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from pgoutput_construct.changelog._facts.copies import TableCopy
from pgoutput_construct.changelog._facts.visibility import Snapshot, Visibility
from pgoutput_construct.changelog._notes.copy_requests import CopyRequest
from pgoutput_construct.changelog._segment.block import Block
from pgoutput_construct.postgres._snapshot.copied_tables import Leaf, PublishedTable
from pgoutput_construct.postgres._snapshot.snapshots import CommitWindow
from pgoutput_construct.wire import Lsn

__all__ = [
    "CHUNK_PAGES",
    "Chunk",
    "CopyProgress",
    "Piece",
    "PieceQueue",
    "TableJob",
    "split",
]

CHUNK_PAGES: Final = 4096
"""The pages of a chunk, which is read again if its connection is lost."""
_QUEUE_BYTES: Final = 16 * 2**20
"""The bytes of payload in the queue above which ``put`` blocks."""
_TID_RANGES_SINCE: Final = 140000

Part = tuple[Leaf | None, tuple[int | None, int | None]]
"""The pages of a chunk: the leaf, the first page, and the page after the last one; None for no bound."""


@dataclass
class TableJob:
    """One copy of a table, under one snapshot."""

    table: PublishedTable
    snapshot: Snapshot
    requests: tuple[CopyRequest, ...] = ()
    """The requests that it fulfils."""
    chunks: tuple["Chunk", ...] = ()
    void: bool = False
    """Whether it was abandoned: nothing more of it is appended, and the table is copied from scratch."""
    rows: int = 0
    """The number of rows that were appended."""
    done: int = 0
    """The total size of the chunks that were appended."""
    missing: int = 0
    """The number of chunks that were not appended yet."""
    event_seq: int | None = None
    """The seq of the event that the copy is complete; None before it is."""
    window: CommitWindow | None = None
    """The commits that its snapshot may see or not; None for the snapshot of a new slot, which sees exactly what the
    slot does not send."""

    @property
    def size(self) -> int:
        """The total size of its chunks, in pages."""
        return sum(chunk.size for chunk in self.chunks)

    @property
    def sees_until(self) -> Lsn:
        """The LSN up to which the log must be complete before it is known which transactions the copy contains."""
        return Lsn(0) if self.window is None else self.window.until

    def copy(self) -> TableCopy:
        """Return the complete copy, as its event records it."""
        table, first, last = self.table, self.chunks[0].number, self.chunks[-1].number
        window, snapshot = self.window, self.snapshot
        visibility = Visibility.at(snapshot.lsn) if window is None else window.visibility(snapshot)
        named = -1, table.oid, table.namespace, table.name, snapshot
        return TableCopy(*named, first, last, self.rows, visibility)


@dataclass
class Chunk:
    """Consecutive pages of a table."""

    job: TableJob
    number: int
    leaf: Leaf | None
    """The table that has the pages; None for a partitioned table without partitions."""
    pages: tuple[int | None, int | None]
    """The first page, and the page after the last one; None for no bound."""
    handed: int = 0
    """The number of rows that were handed over: another connection that resumes the chunk skips them."""

    @property
    def size(self) -> int:
        """The number of pages when it was measured, plus one."""
        first, end = self.pages
        return 1 + (self.leaf.pages if end is None and self.leaf else end or 0) - (first or 0)


def split(table: PublishedTable, server_version: int) -> Iterator[Part]:
    """Yield the chunks of a table, at least one; the last one of a leaf also has the rows since it was measured."""
    if not table.leaves:
        yield None, (None, None)
    for leaf in table.leaves:
        # Servers before PostgreSQL 14 have no TID range scan: they would read all pages for each chunk.
        count = -(-leaf.pages // CHUNK_PAGES) if server_version >= _TID_RANGES_SINCE else 1
        bounds = [None, *(number * CHUNK_PAGES for number in range(1, count)), None]
        for pages in pairwise(bounds):
            yield leaf, pages


@dataclass(frozen=True)
class Piece:
    """Some rows of a chunk, after the messages that describe them."""

    chunk: Chunk
    block: Block
    rows: int
    is_last: bool
    """Whether it is the last piece of the chunk."""

    @property
    def size(self) -> int:
        """The size of its payloads in bytes."""
        return self.block.payload_bytes


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
