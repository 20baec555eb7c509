"""Copies of tables that were begun and are not complete: what a later capture need not read again.

A copy is made in **attempts**, each under a snapshot of its own: the next one begins where the connection or the
capture of the one before ended. A chunk is read as a whole under the snapshot of an attempt. A chunk that was read in
an earlier one is **brought up to date** instead: of its pages only rows are read that the earlier snapshot may not have
seen. The copy is complete once each of its chunks is as of one snapshot, that of its last attempt; the rows that do not
count then are found by ``postgres/_snapshot/void_search``.

A chunk counts as read when the log says so (``COPIED_CHUNKS``), after all of its rows: what has no such event is read
again. The events come once the log has all that the snapshot of the attempt sees. So whatever happens to the server (a
crash after commits that were not flushed, a promotion, a restore), what was read counts if the log can be continued.
And of attempts in which chunks were read, each sees all that an earlier one sees.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from pgoutput_construct.changelog._facts.visibility import Snapshot
from pgoutput_construct.changelog._segment.block import Flags, Numbers
from pgoutput_construct.changelog._segment.events import (
    BEGUN_ANEW,
    COPIED_CHUNKS,
    COPIED_TABLE,
    COPYING_TABLE,
    CREATED_SLOT,
    OPTIONS_CHANGED,
    LogEvent,
    event_rows,
    events_of,
)
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex
from pgoutput_construct.wire import Lsn, Timestamp

__all__ = [
    "CopyAttempt",
    "CopyPlan",
    "LeafFile",
    "PartialCopy",
    "ReadColumn",
    "ReadColumns",
    "ReadPages",
    "attempts_of",
    "begun_details",
    "partial_copies",
    "read_details",
]

_NAMES: Final = frozenset({BEGUN_ANEW, CREATED_SLOT, OPTIONS_CHANGED, COPIED_TABLE, COPYING_TABLE, COPIED_CHUNKS})
"""The events that say how far copies have come."""


@dataclass(frozen=True)
class LeafFile:
    """A table that has rows of the copied one, and its file when the copy was begun."""

    oid: int
    """The table: the copied one, or a partition."""
    filenode: int
    """Its file (``relfilenode``): another one has other pages."""
    pages: int
    """Its pages when the copy was begun."""


class ReadColumn(NamedTuple):
    """What the values of a column depend on."""

    number: int
    """Its attribute number."""
    type_oid: int
    """The OID of its type."""
    numbers: tuple[int, ...]
    """Its attribute number in each leaf."""


class ReadColumns(NamedTuple):
    """The columns that rows were read with."""

    published: tuple[ReadColumn, ...]
    """Those that were published."""
    last_number: int
    """The highest attribute number of the table, also of columns that were dropped, or are not published."""

    def fits(self, later: "ReadColumns") -> bool:
        """Return whether rows that were read with these columns have what those of an attempt with later ones have.

        Columns that were added since, with a constant default or none, and dropped, renamed or widened ones change no
        row: the server rewrites the file where they do (``ATRewriteTables()``). Readers know them from the catalog.
        """
        known = {column.number: column for column in self.published}
        return all(column.number > self.last_number or known.get(column.number) == column for column in later.published)


@dataclass(frozen=True)
class CopyPlan:
    """What a copy is of: it can be resumed only while this stays the same."""

    relation_oid: int
    """The table."""
    namespace: str
    """Its schema."""
    name: str
    """Its name."""
    first_chunk: int
    """The number of its first chunk."""
    last_chunk: int
    """That of its last one."""
    chunk_pages: int
    """The pages of a chunk; the last one of a leaf also has those that were added since."""
    leaves: tuple[LeafFile, ...]
    """Its files, in the order of their chunks."""
    in_halves: bool
    """Whether its rows have no key, so that of the same pages there are two chunks each time: the rows of transactions
    before the ``xmin`` of the snapshot, and the later ones, which each attempt reads as a whole."""
    digest: str
    """A digest of all by which its rows are read, but columns: replica identity, filter, format, publication, types."""
    requests: tuple[str, ...]
    """The numbers of the requests that it fulfils."""

    def rows_in(self, index: SegmentIndex) -> int:
        """Return how many rows of its chunks a log has, also those that do not count."""
        chunks = index.entries("snapshots")
        numbers, rows = chunks["number"].to_numpy(), chunks["rows"].to_numpy()
        return int(rows[(numbers >= self.first_chunk) & (numbers <= self.last_chunk)].sum())

    def pages(self) -> list[int]:
        """Return of how many pages each chunk has the rows first; those of no leaf are of none."""
        found = list[int]()
        for leaf in self.leaves:
            for first in range(0, max(leaf.pages, 1), self.chunk_pages):
                found += [min(self.chunk_pages, leaf.pages - first), *([0] * self.in_halves)]
        return found or [0]


class ReadPages(NamedTuple):
    """How much of a table was read, under any snapshot."""

    read: int
    """The pages that were read."""
    pages: int
    """The pages of the table when its copy was begun."""

    @property
    def percent(self) -> int:
        """The percentage, rounded down."""
        return 100 * self.read // max(self.pages, 1)

    def __str__(self) -> str:
        return f"{self.percent} %: {self.read:,} of {self.pages:,} pages were read"


@dataclass(frozen=True)
class CopyAttempt:
    """An attempt to read the chunks that were not read before."""

    seq: int
    """That of its event: its rows follow it, up to the next attempt."""
    snapshot: Snapshot
    """Its snapshot."""
    since: Lsn
    """It sees all commits before this LSN."""
    until: Lsn
    """It sees no commit from this LSN on."""
    columns: ReadColumns
    """The columns of its rows."""
    time: Timestamp = field(default_factory=Timestamp.now)
    """When it was begun."""


@dataclass
class PartialCopy:
    """A copy that was begun, as far as the log has it."""

    plan: CopyPlan
    attempts: list[CopyAttempt] = field(default_factory=list)
    """Its attempts."""
    reads: list[tuple[int, int]] = field(default_factory=list)
    """The numbers of the chunks that were read, or brought up to date, each with the index of the attempt."""
    read_time: Timestamp = field(default_factory=lambda: Timestamp(0))
    """The time of the last event COPIED_CHUNKS."""

    def read_pages(self, attempts: int | None = None) -> ReadPages:
        """Return how much was read in the first ``attempts``; None: in all."""
        first, sizes = self.plan.first_chunk, self.plan.pages()
        chunks = {chunk for chunk, attempt in self.reads if attempts is None or attempt < attempts}
        return ReadPages(sum(sizes[chunk - first] for chunk in chunks), sum(sizes))

    @property
    def current_pages(self) -> int:
        """The pages that are as the last attempt sees them: it has read them, or brought them up to date."""
        first, sizes, last = self.plan.first_chunk, self.plan.pages(), len(self.attempts) - 1
        return sum(sizes[chunk - first] for chunk, attempt in self.reads if attempt == last)

    @property
    def pages_per_second(self) -> float:
        """The pages that the last attempt reads for the first time, by the second; 0.0 before it has read any."""
        pages = self.read_pages().read - self.read_pages(len(self.attempts) - 1).read
        return pages / max((self.read_time - self.attempts[-1].time) / 1e6, 1.0)

    def read_in(self) -> dict[int, int]:
        """Return the attempt in which each chunk was last read, or brought up to date; others were not read yet."""
        return dict(self.reads)

    def attempts_at(self, seqs: Numbers) -> Numbers:
        """Return the index of the attempt in which rows were read, by their seqs; -1: before the first."""
        return np.searchsorted(np.array([each.seq for each in self.attempts], np.int64), seqs, "right") - 1

    def counts(self, chunks: Numbers, attempts: Numbers) -> Flags:
        """Return for rows whether their chunk was read as a whole in the attempt in which they were read."""
        known = np.array([chunk << 32 | attempt for chunk, attempt in self.reads], np.int64)
        found: Flags = np.isin(chunks << 32 | attempts, known)
        return found


def begun_details(plan: CopyPlan, attempt: CopyAttempt) -> dict[str, Any]:
    """Return the details of the event COPYING_TABLE, whose LSN is that of the snapshot."""
    snapshot = attempt.snapshot
    return {
        "oid": plan.relation_oid,
        "schema": plan.namespace,
        "table": plan.name,
        "chunks": [plan.first_chunk, plan.last_chunk],
        "chunk_pages": plan.chunk_pages,
        "leaves": [[leaf.oid, leaf.filenode, leaf.pages] for leaf in plan.leaves],
        "in_halves": plan.in_halves,
        "digest": plan.digest,
        "requests": list(plan.requests),
        "columns": [[column.number, column.type_oid, *column.numbers] for column in attempt.columns.published],
        "last_column": attempt.columns.last_number,
        "xmin": snapshot.xmin,
        "xmax": snapshot.xmax,
        "xip": list(snapshot.xip),
        "since": int(attempt.since),
        "until": int(attempt.until),
    }


def read_details(plan: CopyPlan, attempt: CopyAttempt, chunks: Sequence[int]) -> dict[str, Any]:
    """Return the details of the event COPIED_CHUNKS."""
    return {"oid": plan.relation_oid, "attempt": attempt.seq, "chunks": list(chunks)}


def partial_copies(index: SegmentIndex) -> dict[int, PartialCopy]:
    """Return the copies that were begun, are not complete, and can be resumed, by the OIDs of their tables.

    Copies from before an event BEGUN_ANEW are not included, nor those whose first rows were pruned.
    """
    found, lost = dict[int, PartialCopy](), set[int]()
    for event in _events(index):
        if event.name == OPTIONS_CHANGED and event.details.keys() <= _OF_THE_SERVER:
            continue
        if event.name in (BEGUN_ANEW, CREATED_SLOT, OPTIONS_CHANGED):
            found.clear()  # the stream may lack changes, or have had other options for a time
        elif event.name == COPIED_TABLE:
            found.pop(event.details["oid"], None)
        elif event.name == COPYING_TABLE:
            _begin(found, event)
        elif event.details["oid"] in found and not _note(found[event.details["oid"]], event):
            lost.add(event.details["oid"])
    return {oid: copy for oid, copy in found.items() if oid not in lost}


_OF_THE_SERVER: Final = frozenset({"timeline", "timeline_origin", "server_version"})
"""What differs after a promotion or an upgrade: the log is continued only if the server has what it has."""


def _note(copy: PartialCopy, event: LogEvent) -> bool:
    """Note that chunks were read; return whether the log still has the event of the attempt."""
    attempts = {attempt.seq: number for number, attempt in enumerate(copy.attempts)}
    number = attempts.get(event.details["attempt"])
    if number is not None:
        copy.reads += [(chunk, number) for chunk in event.details["chunks"]]
        copy.read_time = event.time
    return number is not None


def attempts_of(index: SegmentIndex) -> dict[tuple[int, int], list[CopyAttempt]]:
    """Return the attempts to make each copy in order, by the numbers of its first and its last chunk."""
    found = dict[tuple[int, int], list[CopyAttempt]]()
    for event in events_of(index, COPYING_TABLE):
        first, last = event.details["chunks"]
        found.setdefault((first, last), []).append(_attempt(event))
    return found


def _events(index: SegmentIndex) -> Iterator[LogEvent]:
    return (row.read() for row in event_rows(index, _NAMES) if row.seq >= index.first_seq)


def _begin(found: dict[int, PartialCopy], event: LogEvent) -> None:
    told = event.details
    named, leaves = (told["oid"], told["schema"], told["table"]), tuple(LeafFile(*leaf) for leaf in told["leaves"])
    first, last = told["chunks"]
    given = told["in_halves"], told["digest"], tuple(told["requests"])
    plan = CopyPlan(*named, first, last, told["chunk_pages"], leaves, *given)
    copy = found.get(plan.relation_oid)
    if copy is None or copy.plan != plan:
        copy = found[plan.relation_oid] = PartialCopy(plan)
    copy.attempts.append(_attempt(event))


def _attempt(event: LogEvent) -> CopyAttempt:
    told = event.details
    snapshot = Snapshot(told["xmin"], told["xmax"], tuple(told["xip"]), event.lsn)
    published = tuple(ReadColumn(number, kind, tuple(own)) for number, kind, *own in told["columns"])
    columns = ReadColumns(published, told["last_column"])
    return CopyAttempt(event.seq, snapshot, Lsn(told["since"]), Lsn(told["until"]), columns, event.time)
