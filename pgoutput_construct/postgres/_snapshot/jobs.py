"""What is to be copied: tables in chunks of pages, and the pieces of these that the log takes."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
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
    "Pieces",
    "TableJob",
]

CHUNK_PAGES: Final = 4096
"""Pages in a chunk: what is read again at most when a connection is lost."""
_QUEUE_BYTES: Final = 16 * 2**20
"""Bytes of payload that wait to be appended to the log."""
_TID_RANGES_SINCE: Final = 140000

Part = tuple[Leaf | None, tuple[int | None, int | None]]
"""The pages of a chunk: of which leaf, the first, and the first that is not of it; None for no bound."""
_NOTHING: Final[Part] = (None, (None, None))


@dataclass
class TableJob:
    """One copy of a table, under one snapshot."""

    table: PublishedTable
    snapshot: Snapshot
    requests: tuple[CopyRequest, ...] = ()
    """Those that it fulfils."""
    chunks: tuple["Chunk", ...] = ()
    void: bool = False
    """It cannot become complete: the table is begun anew, and nothing more of this is appended."""
    rows: int = 0
    """Rows that were appended."""
    done: int = 0
    """The sizes of its chunks that were appended."""
    missing: int = 0
    """Chunks that were not appended yet."""
    event_seq: int | None = None
    """Where the log says that it is complete."""
    window: CommitWindow | None = None
    """The commits that its snapshot may see or not; None for the snapshot of a new slot, which sees what the slot does
    not send."""

    @classmethod
    def of(
        cls,
        table: PublishedTable,
        snapshot: Snapshot,
        server_version: int,
        requests: Iterable[CopyRequest],
        number: Callable[[int], int],
        window: CommitWindow | None = None,
    ) -> "TableJob":
        """Divide a table into chunks; ``number`` returns the first of so many numbers that they can have."""
        job = cls(table, snapshot, tuple(requests), window=window)
        parts = list(_parts(table, server_version)) or [_NOTHING]
        first = number(len(parts))
        job.chunks = tuple(Chunk(job, first + place, leaf, pages) for place, (leaf, pages) in enumerate(parts))
        job.missing = len(parts)
        return job

    @property
    def size(self) -> int:
        """Its size, by the pages of its chunks."""
        return sum(chunk.size for chunk in self.chunks)

    @property
    def sees_until(self) -> Lsn:
        """The LSN that the log must have come to before it can say which transactions the copy contains."""
        return Lsn(0) if self.window is None else self.window.until

    def copy(self) -> TableCopy:
        """Return what the log says of it when it is complete."""
        table, first, last = self.table, self.chunks[0].number, self.chunks[-1].number
        window, snapshot = self.window, self.snapshot
        visibility = Visibility.at(snapshot.lsn) if window is None else window.visibility(snapshot)
        named = -1, table.oid, table.namespace, table.name, snapshot
        return TableCopy(*named, first, last, self.rows, known_visibility=visibility)


@dataclass
class Chunk:
    """Some pages of a table."""

    job: TableJob
    number: int
    leaf: Leaf | None
    """The table that has the pages; None where a partitioned one has no partitions."""
    pages: tuple[int | None, int | None]
    """The first, and the first that is not of it; None for no bound."""
    handed: int = 0
    """Rows that were handed over: a connection that goes on with it passes over them."""

    @property
    def size(self) -> int:
        """How many pages it had when it was measured, and one more."""
        first, end = self.pages
        return 1 + (self.leaf.pages if end is None and self.leaf else end or 0) - (first or 0)


def _parts(table: PublishedTable, server_version: int) -> Iterator[Part]:
    """Yield the chunks of a table; the last one of a leaf has the rows that came since it was measured, too."""
    for leaf in table.leaves:
        # Older servers read all pages for any range of them.
        count = -(-leaf.pages // CHUNK_PAGES) if server_version >= _TID_RANGES_SINCE else 1
        bounds = [None, *(place * CHUNK_PAGES for place in range(1, count)), None]
        for pages in pairwise(bounds):
            yield leaf, pages


@dataclass(frozen=True)
class Piece:
    """Some rows of a chunk, after what describes them."""

    chunk: Chunk
    block: Block
    rows: int
    is_last: bool
    """Whether the chunk ends with it."""

    @property
    def size(self) -> int:
        """Bytes of its payloads."""
        return self.block.payload_bytes


@dataclass
class Pieces:
    """The pieces that wait for the log, up to a number of bytes; who brings more waits."""

    wake: Callable[[], None] | None = None
    """Called when there is something to take."""
    _waiting: deque[Piece] = field(default_factory=deque)
    _bytes: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _closed: bool = False

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, piece: Piece) -> None:
        """Add a piece as soon as there is room; those of a copy that is void, and all after ``close``, go nowhere."""
        with self._changed:
            self._changed.wait_for(lambda: self._bytes < _QUEUE_BYTES or self._closed or piece.chunk.job.void)
            if self._closed or piece.chunk.job.void:
                return
            self._waiting.append(piece)
            self._bytes += piece.size
        if (wake := self.wake) is not None:
            wake()

    def take(self) -> Piece | None:
        """Return the piece that waits longest; None where there is none."""
        with self._changed:
            if not self._waiting:
                return None
            piece = self._waiting.popleft()
            self._bytes -= piece.size
            self._changed.notify_all()
        return piece

    def close(self) -> None:
        """Let nobody wait any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


@dataclass(frozen=True)
class CopyProgress:
    """How far the copies of tables have come, in this call."""

    tables: int = 0
    """Tables whose copies are durable."""
    waiting: int = 0
    """Tables that are being copied, or are to be copied."""
    rows: int = 0
    """Rows that were appended to the log."""
    payload_bytes: int = 0
    """Bytes of these as payloads."""
    percent: float = 100.0
    """How much of the tables that were begun was appended, by their pages."""
    settled: bool = False
    """True when all that is wanted is durable."""
