"""Which segments a read of a table needs, and what of the log each task is told; out of the index alone."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from math import ceil
from operator import itemgetter
from os import cpu_count
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.changelog._facts.completeness import present_copies
from pgoutput_construct.changelog._facts.copies import TableCopy
from pgoutput_construct.changelog._index.log_index import LogIndex, is_own
from pgoutput_construct.changelog._index.planning import commits_of, committed, spans_of
from pgoutput_construct.changelog._index.usage import COPIED, PLAIN
from pgoutput_construct.changelog._segment.footer import Segment
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.spark.log_tables import LogTables
from pgoutput_construct.spark.metadata import USUAL, Prefix
from pgoutput_construct.spark.replicated_tables import Table
from pgoutput_construct.spark.source.pieces import Piece, Range, TableRows, Used
from pgoutput_construct.spark.visible_rows import Plan
from pgoutput_construct.stream.relations import RelationHistory
from pgoutput_construct.stream.transaction_reader import SPAN_COLUMNS, Spans

__all__ = [
    "Found",
    "chosen",
    "described_pieces",
    "pieces",
    "segment_pieces",
    "table_pieces",
    "used_by",
]

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_TASK_ROWS: Final = 1_000_000
_TASK_BYTES: Final = 1 << 28
"""Segments share a task until they have so much: each task costs a start, and each file of Parquet, until a column
gives up its dictionary, more for every row than after that."""
_LEAST: Final = 1 / 4
"""Such a part of it is enough for a task where this machine would have fewer tasks than processors."""
_FEW: Final = 4


class Found:
    """The rows that a range of a log has, by segment: runs of the index's ``rows``, and what shows them."""

    def __init__(self, index: LogIndex, wanted: Range, oids: Sequence[int] | None = None) -> None:
        """Look for the rows of some relations, None for all."""
        commits, first_seqs = commits_of(index, wanted.lost), index.table["first_seq"].to_numpy()
        with_own, in_part = _with_own(commits, wanted)
        for place in np.flatnonzero(in_part).tolist():
            some = wanted.transactions(index.one(place))
            own = is_own(some, np.full(len(some), first_seqs[place]))
            with_own[place] = bool(own.any())
        marked, places = index.located("marked")
        is_wanted = _committed(marked, wanted)
        marked, places = marked.filter(pa.array(is_wanted)), places[is_wanted]
        self.spans = spans_of(marked.filter(pa.array(~is_own(marked, first_seqs[places]))))
        self.copies = _copies(index, wanted)
        self._find(index, with_own, oids)

    def _find(self, index: LogIndex, with_own: Flags, oids: Sequence[int] | None) -> None:
        runs, places = index.located("rows")
        span, first_seq, xids = (runs[name].to_numpy() for name in ("span", "first_seq", "xid"))
        chunks = np.where(span == COPIED, xids, -1)
        plan = Plan(self.spans, RelationHistory(), self.copies)
        _, found = plan.origins_at(first_seq, xids, chunks)
        found |= (span == PLAIN) & with_own[places]
        if oids is not None:
            found &= np.isin(runs["oid"].to_numpy(), np.array(oids, np.int64))
        self.places = places[found]
        """The segment of each run."""
        self.descriptions: Numbers = runs["description"].to_numpy()[found]
        """The seq of the Relation that describes each run."""


def _with_own(commits: Mapping[str, Numbers], wanted: Range) -> tuple[Flags, Flags]:
    """Tell of segments whether they have wanted transactions of their own, and of which the numbers do not tell it."""
    bounds, own = wanted.bounds, commits["own"] > 0
    within, without = own.copy(), ~own
    for least, most, first, last in (
        ("first_commit", "last_commit", wanted.after + 1, wanted.until),
        ("least_lsn", "most_lsn", bounds.first_lsn, bounds.last_lsn),
    ):
        within &= (commits[least] >= first) & (commits[most] <= last)
        without |= (commits[most] < first) | (commits[least] > last)
    return within, ~within & ~without


def _committed(transactions: pa.Table, wanted: Range) -> Flags:
    numbered = transactions.append_column("row", pa.array(np.arange(len(transactions))))
    found = committed(numbered.select(["row", "seq", "outcome", "end_lsn", "commit_lsn", "commit_time"]), wanted.lost)
    flags = np.zeros(len(transactions), np.bool_)
    flags[found["row"].to_numpy()[wanted.holds(found)]] = True
    return flags


def _copies(index: LogIndex, wanted: Range) -> tuple[TableCopy, ...]:
    copies = (copy for copy in present_copies(index) if copy.rows and wanted.after < copy.seq <= wanted.until)
    return tuple(sorted((copy for copy in copies if wanted.bounds.hold(copy)), key=lambda copy: copy.first_chunk))


def pieces(log: ChangeLog, index: LogIndex, wanted: Range, found: Found) -> Iterator[Piece]:
    """Yield a piece for each task, of the segments that have rows which are wanted."""
    for piece in _pieces(log, index, np.unique(found.places), wanted):
        spans = _between(found.spans, piece.segments[0].first_seq, piece.segments[-1].last_seq)
        yield replace(piece, spans=spans, copies=found.copies)


def segment_pieces(log: ChangeLog, wanted: Range) -> Iterator[Piece]:
    """Yield a piece for each task, of all segments in which something ended that is wanted."""
    first, last = log.segments.place(wanted.after + 1), log.segments.place(wanted.until)
    yield from _pieces(log, log.index, np.arange(max(first, 0), last + 1), wanted)


def _pieces(log: ChangeLog, index: LogIndex, places: Numbers, wanted: Range) -> Iterator[Piece]:
    if not len(places):
        return
    first = int(places[0])
    known: Sequence[Segment] = log.segments[first : int(places[-1]) + 1]
    if len(places) > _FEW:
        known = list(known)  # one by one they take ten times as long
    listed = ((place, known[place - first]) for place in places.tolist())
    bare = [(place, each if each.index is None else replace(each, index=None)) for place, each in listed]
    for group in _groups(bare):
        yield Piece(tuple(segment for _, segment in group), wanted)


def table_pieces(
    opened: LogTables,
    table: Table,
    wanted: Range,
    columns: pa.Schema,
    schema: pa.Schema,
    keeps_bad: bool = False,
    prefix: Prefix = USUAL,
) -> list[TableRows]:
    """Return what reads the tables that had a name, a task each.

    ``prefix`` is that of its reader, all else has the names of replays.
    """
    oids, used = table.relation_oids, used_by(opened, table)
    return [
        TableRows(piece, table.qualified, oids, columns, schema, chosen(used, described), keeps_bad, prefix)
        for piece, described in described_pieces(opened, wanted, oids)
    ]


def described_pieces(opened: LogTables, wanted: Range, oids: Sequence[int]) -> Iterator[tuple[Piece, list[int]]]:
    """Yield a piece for each task that reads rows of some relations, and the seqs of the Relations of these rows."""
    found = Found(opened.index, wanted, oids)
    for piece in pieces(opened.log, opened.index, wanted, found):
        first, last = (opened.log.segments.place(s.first_seq) for s in (piece.segments[0], piece.segments[-1]))
        yield piece, np.unique(found.descriptions[(found.places >= first) & (found.places <= last)]).tolist()


def chosen(used: Mapping[int, Used], described: Iterable[int]) -> dict[int, Used]:
    """Return the descriptions of a table that are among those of a piece."""
    return {seq: used[seq] for seq in described if seq in used}


def used_by(opened: LogTables, table: Table) -> dict[int, Used]:
    """Return the descriptions of a table, by the seqs of the Relations."""
    descriptions = opened.plan.history.descriptions
    return {descriptions[i].seq: Used(names, table.missing.get(i, {})) for i, names in table.names.items()}


def _groups(segments: Sequence[tuple[int, Segment]]) -> Iterator[list[tuple[int, Segment]]]:
    """Yield the segments of each task, in order; tasks have about as much to do as each other."""
    sizes = np.array([max(each.rows / _TASK_ROWS, each.payload_bytes / _TASK_BYTES) for _, each in segments])
    ends = np.cumsum(sizes)
    tasks = max(ceil(ends[-1]), min(cpu_count() or 1, int(ends[-1] / _LEAST)), 1)
    places = ((ends - sizes / 2) * tasks / max(ends[-1], 1 / _TASK_ROWS)).astype(np.int64).tolist()
    for _, group in groupby(zip(places, segments, strict=True), itemgetter(0)):
        yield [segment for _, segment in group]


def _between(spans: Spans, first: int, last: int) -> Spans:
    """Return the spans that have something of a part of the log."""
    starts, ends = (np.frombuffer(column, np.int64) for column in (spans.first_seq, spans.last_seq))
    begin, end = int(np.searchsorted(ends, first)), int(np.searchsorted(starts, last, "right"))
    columns = {name: getattr(spans, name)[begin:end] for name in SPAN_COLUMNS}
    aborted = {place - begin: xids for place, xids in spans.aborted.items() if begin <= place < end}
    return Spans(**columns, aborted=aborted)
