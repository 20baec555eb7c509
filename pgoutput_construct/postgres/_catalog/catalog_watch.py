"""What the stream does not say, noticed while it runs: changes of the catalog become events of the log.

Three parties meet here: the pump, which tells what it received and appends the events; the watch beside the stream,
whose thread asks the server; and the log, whose lineage says what an event means for its tables.
"""

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from pgoutput_construct.changelog._facts.events import PUBLICATION_FACTS, TABLE_FACTS
from pgoutput_construct.changelog._facts.lineage import LineageTracker, Stale
from pgoutput_construct.changelog._index.index import SegmentIndex
from pgoutput_construct.changelog._index.indexes import indexes_of
from pgoutput_construct.changelog._index.listing import first_kept, list_log
from pgoutput_construct.changelog._index.log_index import LogIndex
from pgoutput_construct.changelog._segment.block import Block
from pgoutput_construct.changelog._upkeep.requests import ask, requests
from pgoutput_construct.changelog.writer import LogWriter
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres._catalog.catalog_state import CatalogEvent, CatalogState, TableShape, table_shape
from pgoutput_construct.postgres._catalog.table_catalog import (
    CATALOG_SINCE,
    catalog_digest,
    locked_tables,
    read_catalog,
)
from pgoutput_construct.postgres.connection import Connection
from pgoutput_construct.wire.messages import Relation

if TYPE_CHECKING:
    from pgoutput_construct.changelog._index.listing import Listing

__all__ = ["CatalogWatch", "OnRewrite"]

OnRewrite: TypeAlias = Literal["snapshot", "stop"]
"""What a capture does when rows change that the stream does not send: have them copied again, or end."""

_LOG = logging.getLogger("pgoutput_construct")
_RELATION: Final = Relation.TAG[0]
_NEVER: Final = 2**63 - 1
_MAX_WAIT: Final = 1.0
"""Seconds for which events wait for a place between two transactions."""
_PRUNED_INTERVAL: Final = 60.0
"""Seconds: how often it is looked whether a prune has removed what says what is published."""
_PATIENCE: Final = 10.0
"""Seconds for which the end of a capture waits for a server that cannot be asked, though its stream goes on."""
_MAX_PARTS: Final = 100
"""How often the index of new segments is put below what is known, before all is read from scratch in one piece."""


class CatalogWatch:
    """Follows the catalog for one capture."""

    def __init__(self, writer: LogWriter, slot: str, publications: Sequence[str], on_rewrite: OnRewrite) -> None:
        """Prepare for a log; nothing is read before ``begin``."""
        self.wake: Callable[[], None] = lambda: None
        """Called when the server is to be asked at once."""
        self.on_copies_requested: Callable[[], None] = lambda: None
        """Called when copies of tables were asked for, or others are published."""
        self._writer, self._slot, self._publications = writer, slot, tuple(publications)
        self._on_rewrite = on_rewrite
        self._known: CatalogState | None = None
        self._digest = ""
        self._next_pruned = 0.0
        self._described: dict[int, TableShape] = {}  # by the pump; they wait for a reading
        self._events: list[tuple[float, CatalogEvent]] = []  # by the thread; they wait for the pump
        self._opening = 0  # so many of them were found before the stream began
        self._tables_with_facts: set[int] = set()  # by the pump; the log has facts of them
        self._locked: frozenset[int] = frozenset()
        self._is_awaited = False
        self._failed_at: float | None = None
        self._received_seq = self._polled_seq = self._target_seq = -1
        self._last_event_seq = self._judged_seq = -1
        self._log = _GrowingIndex(writer)
        self._lineage = LineageTracker()
        self._stale: dict[int, Stale] = {}
        self._problem: ReplicationError | None = None

    def check(self) -> None:
        """Raise the ReplicationError that keeps the capture from going on, if there is one."""
        if self._problem is not None:
            raise self._problem

    def is_settled(self, first: bool = True) -> bool:
        """Return whether all that was received was looked at, and what it means is known; if not, that is hurried.

        Asked again, not for the ``first`` time, it is about what had been received then: writers may never pause. A
        table that is being altered is not waited for, nor a server that has not answered for some time.
        """
        if first:
            self._target_seq = self._received_seq
        if self._known is None or (self._failed_at is not None and time.monotonic() - self._failed_at > _PATIENCE):
            return True
        described = self._described.keys() - self._locked
        waits = bool(
            described or self._events or self._polled_seq < self._target_seq or self._judged_seq < self._last_event_seq
        )
        self._is_awaited = waits
        if waits and self._failed_at is None:
            self.wake()
        return not waits

    @property
    def needs_cut(self) -> bool:
        """Whether somebody waits until the events that were appended are durable."""
        return self._is_awaited and self._last_event_seq > self._writer.durable_seq

    def begin(self, connection: Connection, from_scratch: bool = False) -> None:
        """Read the catalog for the first time, before the stream begins.

        A reconnection changes nothing, unless the log is begun ``anew``.

        Raises ReplicationError, also where the log says that ``on_rewrite`` keeps the capture from going on.
        """
        if connection.info.server_version < CATALOG_SINCE:
            return
        if is_first := self._known is None or from_scratch:
            index = self._log.read()
            self._events, self._digest = [], ""
            self._known = CatalogState.from_index(index)
            if from_scratch:  # what was read before proves nothing of tables that came since
                self._known.publications.clear()
            self._tables_with_facts = set(self._known.tables)
            self._described = dict(self._known.unconfirmed)
            asked = {table for request in requests(self._writer.store) for table in request.tables}
            self._find_stale_tables(index, asked)
        self.poll(connection)
        if is_first:
            self._opening = len(self._events)
        self.check()

    def receive(self, block: Block) -> None:
        """Take note of the descriptions in a block that was appended to the log."""
        if len(block):
            self._received_seq = self._writer.next_seq
        if self._known is None or not (block.index.tags == _RELATION).any():
            return
        rows, _ = block.header(Relation)
        for relation in map(block.index.message, rows.tolist()):
            assert isinstance(relation, Relation)
            oid, shape = relation.relation_oid, table_shape(relation)
            if self._known.confirmed.get(oid) != shape:
                self._described[oid] = shape
                self.wake()

    def repeat_facts(self, oid: int, shape: TableShape) -> None:
        """Have the facts of a table said again, behind its copy: older ones are pruned with what the copy replaces."""
        if self._known is not None:
            self._described[oid] = shape
            self.wake()

    def has_facts_of(self, oid: int) -> bool:
        """Return whether the log has facts of a table: where they precede its copy, readers know whether it was new."""
        return self._known is None or oid in self._tables_with_facts

    def append_events(self, between: bool) -> None:
        """Append what was noticed to the log: ``between`` transactions, or where it has waited for long."""
        while self._events and (between or time.monotonic() - self._events[0][0] > _MAX_WAIT):
            _, news = self._events[0]
            if self._opening and self._writer.durable_seq < 0 and self._received_seq < 0:
                self._writer.append_event(news.name, news.lsn, **news.details)  # a log of nothing else is of no use
            else:
                self._writer.append_fact(news.name, news.lsn, **news.details)
                self._last_event_seq = self._writer.next_seq - 1
            if news.name == PUBLICATION_FACTS and self._known is not None:
                self._known.published_at[news.details["publication"]] = self._writer.next_seq - 1
            if news.name == TABLE_FACTS:
                self._tables_with_facts.add(news.details["oid"])
            self._events.pop(0)
            self._opening = max(0, self._opening - 1)

    def note_failure(self) -> None:
        """Note that the server could not be asked."""
        if self._failed_at is None:
            self._failed_at = time.monotonic()

    def poll(self, connection: Connection) -> None:
        """Ask the server, and see what is new; called about each second, by one thread at a time.

        The order counts: what was received before the locks were looked at is as the rows say that are read then.
        """
        if self._known is None:
            return
        start, described = self._writer.next_seq, dict(self._described)
        self._locked = locked = locked_tables(connection)
        digest = catalog_digest(connection)
        self._repeat_pruned_facts()
        if digest != self._digest or described:
            asked = {*self._known.tables, *described}
            reading = read_catalog(connection, self._publications, self._slot, asked)
            found, now = self._known.update(reading, start, locked, described), time.monotonic()
            if any(news.name == PUBLICATION_FACTS for news in found):
                self.on_copies_requested()
            self._events += [(now, news) for news in found]
            for description in filter(None, (news.description for news in found)):
                _LOG.warning("%s", description)
            self._digest = digest
            self._forget(described, locked)
        else:
            self._known.note_unchanged(start, locked)
        self._polled_seq, self._failed_at = start, None
        said = self._last_event_seq  # by the pump, which may append more meanwhile
        if self._judged_seq < said <= self._writer.durable_seq:
            self._find_stale_tables(self._log.read())
            self._judged_seq = said

    def _repeat_pruned_facts(self) -> None:
        """Have publications said again where a prune has removed what said them: readers go by their latest events."""
        if self._known is None or time.monotonic() < self._next_pruned:
            return
        self._next_pruned = time.monotonic() + _PRUNED_INTERVAL
        if min(self._known.published_at.values(), default=_NEVER) < first_kept(self._writer.store):
            self._known.publications.clear()
            self._known.published_at.clear()
            self._digest = ""

    def _forget(self, described: dict[int, TableShape], locked: frozenset[int]) -> None:
        """Have descriptions wait no more; those of tables that are being altered are looked at again."""
        for oid, shape in described.items():
            if oid not in locked and self._described.get(oid) == shape:
                del self._described[oid]

    def _find_stale_tables(self, index: SegmentIndex, asked: Collection[tuple[str, str]] = ()) -> None:
        """See which tables the log no longer has as they are, and do what is to be done about it.

        The copies of the tables that were ``asked`` for begin after what the log says.
        """
        before, self._stale = self._stale, dict(self._lineage.follow(index).stale)
        new = [stale for oid, stale in self._stale.items() if before.get(oid) != stale]
        for stale in new:
            _LOG.warning("%s, which the stream does not say; %s", stale.reason, self._consequence(stale))
        refused = [stale for stale in new if stale.published and not self._is_copied_again(stale)]
        if refused:
            reasons = "; ".join(f"{stale.reason}: {stale.remedy}" for stale in refused)
            self._problem = ReplicationError(f"rows changed that the stream does not send: {reasons}")
        else:
            tables = {stale.table: stale.reason for stale in new if self._is_copied_again(stale)}
            self._request_copies({table: reason for table, reason in tables.items() if table not in asked})

    def _consequence(self, stale: Stale) -> str:
        return "it is copied again" if self._is_copied_again(stale) else stale.remedy

    def _is_copied_again(self, stale: Stale) -> bool:
        return stale.published and (stale.lost or self._on_rewrite == "snapshot")

    def _request_copies(self, wanted: Mapping[tuple[str, str], str]) -> None:
        if wanted:
            ask(self._writer.store, wanted, "; ".join(wanted.values()))
            self.on_copies_requested()


class _GrowingIndex:
    """The index of the log that is written: of what was read before, only segments that came since are read."""

    def __init__(self, writer: LogWriter) -> None:
        self._writer = writer
        self._listing: Listing | None = None
        self._index: SegmentIndex | None = None
        self._parts = 0

    def read(self) -> SegmentIndex:
        """Return the index of what is durable; raises ChangeLogError."""
        if self._writer.durable_seq < 0:
            return SegmentIndex.concat([])
        self._listing = listing = list_log(self._writer.store, self._listing)
        known, place = self._index, 0
        if known is not None and known.first_seq == listing[0].first_seq and self._parts < _MAX_PARTS:
            place = listing.place(known.last_seq) + 1  # compaction may have put its last segments and new ones together
            if listing[place - 1].last_seq != known.last_seq:
                place = 0
        if known is None or not place:
            self._index, self._parts = indexes_of(listing), 0
        elif place < len(listing):
            self._index, self._parts = LogIndex.concat([known, indexes_of(listing[place:])]), self._parts + 1
        assert self._index is not None
        return self._index
