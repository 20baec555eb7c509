"""A change log as a feed: its transactions from its index, its messages a window of a segment at a time."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from functools import lru_cache
from threading import Lock
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog.copies import TableCopy
from pgoutput_construct.changelog.footer import Segment
from pgoutput_construct.changelog.planning import lost_ends, relation_history
from pgoutput_construct.changelog.pruned import read_pruned
from pgoutput_construct.changelog.reader import ChangeLog, LogEntry, explain, table_entries
from pgoutput_construct.changelog.store import Address
from pgoutput_construct.changelog.wholeness import lacks_of, present_copies
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.publisher.feed import About, Fed, Feed
from pgoutput_construct.publisher.log_copies import LogCopies, settled
from pgoutput_construct.publisher.log_items import LogItems
from pgoutput_construct.publisher.log_order import LogOrder
from pgoutput_construct.stream.logged import COMMITTED, EndedTransaction
from pgoutput_construct.wire.engine import engine
from pgoutput_construct.wire.messages import Prepare, StreamPrepare
from pgoutput_construct.wire.types import Lsn

__all__ = ["LogFeed"]

_WINDOW: Final = 4096
"""Rows of a segment that are taken apart together."""
_WINDOWS: Final = 16
_TABLES: Final = 2
"""How many segments are kept for windows that are to come."""
_ORDERS: Final = 16
"""How many are kept: clients whose slots know of two phases since different positions have orders of their own."""
_PREPARES: Final = [cls.TAG[0] for cls in (Prepare, StreamPrepare)]


class LogFeed(Feed):
    """Serves a change log, and what a capture adds to it meanwhile."""

    def __init__(self, address: Address, until: int | None = None) -> None:
        """Open a log; raises ChangeLogError where there is none, or where it is damaged.

        Args:
            address: The log's.
            until: Serve what was committed at this position in the WAL or before, and nothing that comes later; None:
                all, and what is added.
        """
        self._lock = Lock()
        self._until = until
        self._address = address
        self._window = lru_cache(maxsize=_WINDOWS)(self._read_window)
        self._table = lru_cache(maxsize=_TABLES)(self._read_table)
        self._items = LogItems(self._prepares, until)
        self._copies: list[TableCopy] = []
        self._generation = 0
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
        self.history = relation_history(log.index)
        position = log.complete_lsn if self._until is None else Lsn(min(self._until, log.complete_lsn))
        self._begins = read_pruned(log.store).lsn
        copies = settled(present_copies(log.index), position, self._begins, lost_ends(log.index))
        is_other = self._items.update(log)
        self._generation += is_other or copies != self._copies
        self._copies = copies
        self._orders = lru_cache(maxsize=_ORDERS)(self._make_order)
        # Last, since clients are told that all before this has been sent to them.
        self._last_seq, self._position = log.segments[-1].last_seq, position

    def order(self, two_phase_at: int | None = None) -> LogOrder:
        """See Feed."""
        return self._ordered(two_phase_at)[0]

    def _ordered(self, two_phase_at: int | None) -> tuple[LogOrder, LogCopies]:
        return self._orders(two_phase_at)

    def _make_order(self, two_phase_at: int | None) -> tuple[LogOrder, LogCopies]:
        with self._lock:
            order = self._items.order(two_phase_at)
            order.generation, order.begins = self._generation, self._begins
            order.first_seq = self._log.segments[0].first_seq
            return order, LogCopies(self._copies, order)

    @property
    def position(self) -> Lsn:
        """See Feed."""
        return self._position

    @property
    def last_seq(self) -> int:
        """See Feed."""
        return self._last_seq

    def lacks(self) -> list[str]:
        """See Feed."""
        index, position = self._log.index, self._position
        waiting = (copy for copy in present_copies(index) if copy not in self._copies)
        left_out = (
            f"{copy.namespace}.{copy.name}: the copy made at {copy.snapshot.lsn} is left out: what is served is what "
            f"the log has between {self._begins} and {position}, without lost histories"
            for copy in waiting
        )
        return [*(f"{lack.name}: {lack}" for lack in lacks_of(index)), *left_out]

    def refresh(self) -> bool:
        """See Feed: a capture may write more."""
        if self._until is not None:
            return False
        with self._lock:
            log = ChangeLog(self._address, self._log)
            if _extent(log) != _extent(self._log):
                self._open(log)
        return True

    def read(self, first: int, last: int) -> Iterator[Fed]:
        """See Feed."""
        return (row.fed for row in self._rows(first, last) if row.snapshot is None)

    def copied(self, ended: EndedTransaction, two_phase_at: int | None) -> Iterator[Fed]:
        """See Feed."""
        for copy in self._ordered(two_phase_at)[1].of(ended):
            for segment in self._segments_of(copy):
                for row in self._rows(segment.first_seq, segment.last_seq):
                    if row.snapshot is not None and copy.first_chunk <= row.snapshot <= copy.last_chunk:
                        yield row.fed

    def committed_behind(self, copy: EndedTransaction, passed: int) -> Iterator[EndedTransaction]:
        """See Feed."""
        order, copies = self._ordered(None)
        first = next(place for place, item in order.placed() if copy.seq in {each.seq for each in copies.of(item)})
        items = (order[place] for place in range(first, order.behind(passed)))
        return (item for item in items if item.outcome == COMMITTED)

    def emptied(self, ended: EndedTransaction, two_phase_at: int | None) -> Mapping[int, bool]:
        """See Feed."""
        return self._ordered(two_phase_at)[1].emptied(ended)

    def is_copied(self, relation_oid: int, ended: EndedTransaction, two_phase_at: int | None) -> bool:
        """See Feed."""
        return self._ordered(two_phase_at)[1].contain(relation_oid, ended)

    def _segments_of(self, copy: TableCopy) -> list[Segment]:
        chunks, places = self._log.index.located("snapshots")
        numbers = chunks["number"].to_numpy()
        found = places[(numbers >= copy.first_chunk) & (numbers <= copy.last_chunk)]
        return [self._log.segments[place] for place in sorted(set(found.tolist()))]

    def _rows(self, first: int, last: int) -> Iterator["_Row"]:
        seq = first
        while seq <= last:
            segment = self._log.segment(seq)
            begin = seq - (seq - segment.first_seq) % _WINDOW
            end = min(begin + _WINDOW, segment.last_seq + 1)
            rows = self._window(begin, end)
            yield from rows[bisect_left(rows, seq, key=_seq) : bisect_right(rows, last, key=_seq)]
            seq = end

    def _prepares(self, segment: Segment) -> list[tuple[int, Prepare | StreamPrepare]]:
        table = self._log.table(segment)
        chosen = table.filter(pc.is_in(table["tag"], pa.array(_PREPARES, table["tag"].type)))
        parser = _Parser(segment.options.layout())
        fed = (parser.fed(entry) for entry in table_entries(chosen, segment.name))
        return [(each.seq, each.message) for each in fed if isinstance(each.message, Prepare | StreamPrepare)]

    def _read_window(self, begin: int, end: int) -> list["_Row"]:
        segment = self._log.segment(begin)
        table = self._table(segment.first_seq, segment.last_seq)
        # Of a segment that was compacted away the table is that of the one which covers it.
        table = table.slice(begin - table["seq"][0].as_py(), end - begin)
        parser = _Parser(segment.options.layout())
        return [_Row(parser.fed(entry), entry.snapshot) for entry in table_entries(table, segment.name)]

    def _read_table(self, first_seq: int, last_seq: int) -> pa.Table:
        return self._log.table(self._log.segment(first_seq))


def _extent(log: ChangeLog) -> tuple[int, int]:
    return log.segments[0].first_seq, log.segments[-1].last_seq


class _Row(NamedTuple):
    fed: Fed
    snapshot: int | None
    """The chunk that it was copied with."""


def _seq(row: _Row) -> int:
    return row.fed.seq


class _Parser:
    """Parses the entries of a segment."""

    def __init__(self, layout: Mapping[str, Any]) -> None:
        self._engine = lru_cache(maxsize=None)(lambda states: engine(**layout, **dict(states)))

    def fed(self, entry: LogEntry) -> Fed:
        """Return an entry as a feed has it; raise ChangeLogError where its payload is damaged."""
        try:
            message = self._engine(tuple(entry.states.items())).parse(entry.payload)
        except PgoutputError as error:
            raise explain(entry, error) from error
        return Fed(entry.seq, entry.wal_start, message, entry.scope)
