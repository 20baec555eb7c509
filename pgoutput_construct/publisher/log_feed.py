"""A change log as a feed: its items from its timeline, its messages a window of a segment at a time."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import compress, islice
from operator import attrgetter
from threading import Lock
from typing import Final

import numpy as np

from pgoutput_construct.changelog._facts.completeness import (
    begun_without_copy,
    lacks_of,
    present_copies,
    superfluous_copies,
)
from pgoutput_construct.changelog._facts.copies import TableCopy
from pgoutput_construct.changelog._facts.partial_copies import attempts_of
from pgoutput_construct.changelog._facts.void_rows import VoidRows
from pgoutput_construct.changelog._index.log_index import LogPoint
from pgoutput_construct.changelog._index.planning import first_commit_after, relation_history
from pgoutput_construct.changelog._segment.footer import Segment
from pgoutput_construct.changelog._store.store import Address
from pgoutput_construct.changelog.decoding_order import DecodingOrder, PlacedCopies
from pgoutput_construct.changelog.reader import ChangeLog, index_as_of, parsed_entries
from pgoutput_construct.changelog.timeline import TimelineFollower
from pgoutput_construct.columnar.descriptions import OUTSIDE, copy_scope
from pgoutput_construct.publisher._copied_columns import CopiedColumns
from pgoutput_construct.publisher._feed.feed import About, CopiedTable, Fed, Feed, Missed
from pgoutput_construct.publisher.published_tables import ListedTable, LogPublications, PublishedScope
from pgoutput_construct.publisher.refusals import Refusal
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.stream.relations import RelationHistory
from pgoutput_construct.stream.transaction_reader import COMMITTED, EndedTransaction
from pgoutput_construct.wire.types import Lsn

__all__ = ["LogFeed"]

_WINDOW: Final = 4096
"""Rows of a segment that are parsed together."""
_WINDOWS: Final = 16
_TABLES: Final = 2
"""Segments that are cached for the next windows, by their first and last seq, which compaction changes."""
_ORDERS: Final = 16
"""Orders that are cached: clients whose slots have two phases since different LSNs have orders of their own."""
_SEQ: Final = attrgetter("seq")
_REMOVING: Final = frozenset({"delete", "truncate"})
"""The operations of a publication that remove rows."""


class LogFeed(Feed):
    """Serves a change log, and what a capture adds to it meanwhile."""

    repeats = True

    def __init__(self, address: Address, point: LogPoint | None = None) -> None:
        """Open a log; raises ChangeLogError if it does not exist, is damaged, or lacks the point.

        Args:
            address: The log's.
            point: Serve the log as of this point, and nothing that comes later; None: all, and what is added.
        """
        self._lock = Lock()
        self._point = point
        self._address = address
        self._window = lru_cache(maxsize=_WINDOWS)(self._read_window)
        self._table = lru_cache(maxsize=_TABLES)(lambda first_seq, _: self._log.table(self._log.segment(first_seq)))
        self._timeline = TimelineFollower(point)
        self._superfluous = frozenset[int]()
        self._begun: dict[int, int] = {}
        self._open(ChangeLog(address))

    def _open(self, log: ChangeLog) -> None:
        options = log.options
        self.about = About(
            options.server_version,
            options.system_identifier,
            options.database,
            options.timeline or 1,
            tuple(options.publications),
            options.layout(),
        )
        self._log = log
        self._index = log.index if self._point is None else index_as_of(log, self._point)
        self.history = relation_history(log.index)
        self._first_described = _first_described(self.history)
        self._publications = LogPublications(self._index, self.history)
        following = None if self._point is None else first_commit_after(log.index, self._point.seq)
        position = log.complete_lsn if following is None else Lsn(following["commit_lsn"] - 1)
        copies = self._timeline.copies
        self._timeline.update(log)
        if self._timeline.begins:  # what was pruned may be rows that such a copy has
            self._superfluous = frozenset()
        elif copies != self._timeline.copies:
            self._superfluous = superfluous_copies(self._index)
        if copies != self._timeline.copies:
            self._begun = {oid: seq for oid, (seq, _) in begun_without_copy(self._index).items()}
        self._orders = lru_cache(maxsize=_ORDERS)(self._make_order)
        # Last, since keepalives say that all before this has been sent.
        self._last_seq, self._position = log.segments[-1].last_seq, position

    def order(self, two_phase_at: int | None = None) -> DecodingOrder:
        """See Feed."""
        return self._orders(two_phase_at)

    def _make_order(self, two_phase_at: int | None) -> DecodingOrder:
        with self._lock:
            return self._timeline.order(two_phase_at, self._superfluous, self._begun)

    @property
    def position(self) -> Lsn:
        """See Feed."""
        return self._position

    @property
    def last_seq(self) -> int:
        """See Feed."""
        return self._last_seq

    def published(self, publications: Collection[str]) -> Sequence[ListedTable]:
        """See Feed."""
        return self._publications.tables(publications)

    def operations(self, publication: str) -> Sequence[str]:
        """See Feed."""
        reading = self._publications.latest(publication)
        return super().operations(publication) if reading is None else sorted(reading.operations)

    def scope(self, publications: Collection[str]) -> PublishedScope | None:
        """See Feed."""
        known = self._publications
        named = frozenset(publications) & {*self.about.publications}
        if named not in known.scopes:
            if problem := known.problem(named):
                told = ", ".join(sorted(named))
                hint = f"Name all of {', '.join(self.about.publications)}, or capture {told} into a log of its own."
                raise Refusal("0A000", f"publication {told} cannot be served separately: {problem}", hint=hint)
            known.scopes[named] = known.scope(named)
        return known.scopes[named]

    def lacks(self) -> list[str]:
        """See Feed."""
        index, position = self._index, self._position
        waiting = (copy for copy in present_copies(index) if copy not in self._timeline.copies)
        left_out = (
            f"{full_name(copy)}: the copy made at {copy.snapshot.lsn} is skipped: it is outside of the served range, "
            f"{self._timeline.begins} to {position} without lost histories"
            for copy in waiting
        )
        copied = {copy.relation_oid for copy in self._timeline.copies}
        lacks = (each for each in lacks_of(index) if each.stale_since is not None or each.relation_oid not in copied)
        return [*(f"{lack.name}: {lack}" for lack in lacks), *left_out]

    def refresh(self) -> bool:
        """See Feed: a capture may write more."""
        if self._point is not None:
            return False
        with self._lock:
            log = ChangeLog(self._address, self._log)
            if _extent(log) != _extent(self._log):
                self._open(log)
        return True

    def read(self, first: int, last: int) -> Iterator[Fed]:
        """See Feed."""
        return (fed for fed in self._messages(first, last) if fed.scope is None or fed.scope > OUTSIDE)

    def copied(self, item: PlacedCopies) -> Iterator[Fed]:
        """See Feed."""
        attempts = attempts_of(self._index)
        for copy in item.copies:
            oid, least, most = copy.relation_oid, copy_scope(copy.last_chunk), copy_scope(copy.first_chunk)
            is_continued = len(attempts.get((copy.first_chunk, copy.last_chunk), ())) > 1
            columns = CopiedColumns.from_copy(copy, self.history, self._index) if is_continued else None
            for segment in self._segments_of(copy):
                found = self._messages(segment.first_seq, segment.last_seq)
                copied = (fed for fed in found if fed.scope is not None and least <= fed.scope <= most)
                for fed in _counting(copied, copy.void) if copy.void.rows else copied:
                    yield fed if columns is None else columns.projected(fed, self.description(oid, fed.seq, fed.scope))

    def missed(self, relation_oid: int, after: int, two_phase_at: int | None) -> Missed | None:
        """See Feed: a copy of the table that follows replaces what came before."""
        found, published = self._missed(relation_oid, after, two_phase_at), self._publications.named(relation_oid)
        if found is None or published is None:
            return found
        name = published[0].namespace, published[0].name
        is_renamed = not {name}.issuperset(self.described_names().get(relation_oid, ()))
        return found._replace(name=name, renamed_at=published[1]) if is_renamed else found

    def _missed(self, relation_oid: int, after: int, two_phase_at: int | None) -> Missed | None:
        order = self.order(two_phase_at)
        placed = [(item_index, item) for item_index, item in order.placed() if relation_oid in item.relation_oids]
        if placed:
            item_index, item = placed[-1]
            return Missed(relation_oid, item) if item_index < order.after(after) else None
        index = self._index
        if relation_oid not in index.counts["oid"].to_pylist():
            return None
        lacks = {lack.relation_oid: lack for lack in lacks_of(index)}
        if relation_oid in begun_without_copy(index) or relation_oid not in lacks:
            return Missed(relation_oid, None)
        lack = lacks[relation_oid]
        return Missed(relation_oid, None, f"changes of {lack.name} up to {Lsn(after)} are not sent again: {lack}")

    def committed_after(self, copy: PlacedCopies | None, lsn: int) -> Iterator[EndedTransaction]:
        """See Feed."""
        order, first = self.order(), 0
        if copy is not None:
            first = next(index for index, item in order.placed() if item.seqs & copy.seqs)
        items = (order[index] for index in range(first, order.after(lsn)))
        return (item for item in items if isinstance(item, EndedTransaction) and item.outcome == COMMITTED)

    def copied_tables(self, item: PlacedCopies, two_phase_at: int | None) -> list[CopiedTable]:
        """See Feed."""
        order = self.order(two_phase_at)
        return [
            CopiedTable(
                copy.relation_oid,
                copy.seq,
                f"{full_name(copy)}, copied at {copy.snapshot.lsn}",
                order.follows_changes(copy, self._first_described.get(copy.relation_oid)),
            )
            for copy in item.copies
        ]

    def is_retained(self, relation_oid: int, seq: int, publications: Collection[str]) -> bool:
        """See Feed."""
        operations = self._publications.operations(publications, relation_oid, seq)
        return bool(operations) and not operations >= _REMOVING

    def is_copied(
        self, relation_oid: int, ended: EndedTransaction, two_phase_at: int | None, without: Collection[int] = ()
    ) -> bool:
        """See Feed."""
        return self.order(two_phase_at).contains(relation_oid, ended, without)

    def awaited(self, relation_oid: int, ended: EndedTransaction, two_phase_at: int | None) -> int | None:
        """See Feed."""
        copy = self.order(two_phase_at).awaited(relation_oid, ended)
        return None if copy is None else copy.seq

    def _segments_of(self, copy: TableCopy) -> list[Segment]:
        chunks, indexes = self._log.index.located("snapshots")
        numbers = chunks["number"].to_numpy()
        found = indexes[(numbers >= copy.first_chunk) & (numbers <= copy.last_chunk)]
        return [self._log.segments[index] for index in sorted(set(found.tolist()))]

    def _messages(self, first: int, last: int) -> Iterator[Fed]:
        """Yield the messages from one seq to another, also copied rows."""
        seq = first
        while seq <= last:
            segment = self._log.segment(seq)
            begin = seq - (seq - segment.first_seq) % _WINDOW
            end = min(begin + _WINDOW, segment.last_seq + 1)
            window = self._window(begin, end)
            yield from window[bisect_left(window, seq, key=_SEQ) : bisect_right(window, last, key=_SEQ)]
            seq = end

    def _read_window(self, begin: int, end: int) -> list[Fed]:
        segment = self._log.segment(begin)
        table = self._table(segment.first_seq, segment.last_seq)
        # Of a segment that was compacted away the table is that of the one which covers it.
        table = table.slice(begin - table["seq"][0].as_py(), end - begin)
        found = parsed_entries(table, segment)
        return [Fed(entry.seq, entry.wal_start, message, entry.scope) for entry, message in found]


def _counting(fed: Iterator[Fed], void: VoidRows) -> Iterator[Fed]:
    """Yield those rows that are not void."""
    while window := [*islice(fed, _WINDOW)]:
        flags = void.has(np.array([each.seq for each in window], np.int64))
        yield from compress(window, ~flags)


def _first_described(history: RelationHistory) -> dict[int, int]:
    """Return the seq at which the stream describes each OID first; what describes copied rows does not count."""
    found: dict[int, int] = {}
    for seq, scope, oid, _ in history.changed():
        if scope is None or scope > OUTSIDE:
            found[oid] = min(seq, found.get(oid, seq))
    return found


def _extent(log: ChangeLog) -> tuple[int, int]:
    return log.segments[0].first_seq, log.segments[-1].last_seq
