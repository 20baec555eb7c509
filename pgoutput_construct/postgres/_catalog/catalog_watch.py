"""Changes of the catalog while a stream runs, which become events of the log.

Two threads use a ``CatalogWatch``: the pump's passes on what it received (``receive``) and appends events
(``append_events``); the slot watch's polls the server (``poll``). Once events are durable, the log's lineage shows
which tables they make stale, and copies of these are requested.
"""

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from pgoutput_construct.changelog._facts.completeness import begins_with_copies, tables_without_snapshot
from pgoutput_construct.changelog._facts.copies import snapshot_command
from pgoutput_construct.changelog._facts.lineage import LineageTracker, StaleTable
from pgoutput_construct.changelog._index.indexes import indexes_of
from pgoutput_construct.changelog._index.listing import list_log
from pgoutput_construct.changelog._index.log_index import LogIndex
from pgoutput_construct.changelog._notes.copy_requests import ask, requests
from pgoutput_construct.changelog._segment.block import Block
from pgoutput_construct.changelog._segment.events import PUBLICATION_FACTS, TABLE_FACTS
from pgoutput_construct.changelog._segment.prune_note import read_pruned
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex
from pgoutput_construct.changelog.writer import LogWriter
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres._catalog.catalog_state import CatalogEvent, CatalogState, RelationShape, relation_shape
from pgoutput_construct.postgres._catalog.table_catalog import (
    CATALOG_SINCE,
    catalog_digest,
    locked_tables,
    read_catalog,
)
from pgoutput_construct.postgres.connection import Connection
from pgoutput_construct.stream.identifiers import qualified_name
from pgoutput_construct.wire.messages import Relation

if TYPE_CHECKING:
    from pgoutput_construct.changelog._index.listing import Listing

__all__ = ["CatalogWatch", "OnRewrite"]

OnRewrite: TypeAlias = Literal["snapshot", "stop"]
"""What a capture does if rows change without messages: ``snapshot`` copies the table again, ``stop`` raises."""

_LOG = logging.getLogger("pgoutput_construct")
_RELATION: Final = Relation.TAG[0]
_NEVER: Final = 2**63 - 1
_MAX_WAIT: Final = 1.0
"""Seconds for which events wait for the end of a transaction."""
_PRUNED_INTERVAL: Final = 60.0
"""Seconds between two checks whether a prune has removed the latest facts of a publication."""
_PATIENCE: Final = 10.0
"""Seconds for which the end of a capture waits if the catalog cannot be read although the stream continues."""
_MAX_PARTS: Final = 100
"""How many times the index of new segments is appended before the whole index is read from scratch."""


class CatalogWatch:
    """Tracks the catalog for one capture."""

    def __init__(
        self, writer: LogWriter, slot: str, publications: Sequence[str], on_rewrite: OnRewrite, copies_all: bool = False
    ) -> None:
        """Prepare for a log; nothing is read before ``begin``.

        Args:
            writer: The writer of the log.
            slot: The name of the slot, whose catalog_xmin shows which columns are recent.
            publications: The names of the publications.
            on_rewrite: What to do with tables whose rows change without messages.
            copies_all: Whether the capture copies each table that the log does not have completely.
        """
        self.wake: Callable[[], None] = lambda: None
        """Called when the catalog should be polled at once."""
        self.on_copies_requested: Callable[[], None] = lambda: None
        """Called when table copies were requested, or a publication has changed."""
        self.on_polled: Callable[[], None] | None = None
        """Called after each reading, which ``is_settled`` may have waited for."""
        self._writer, self._slot, self._publications = writer, slot, tuple(publications)
        self._on_rewrite, self._copies_all = on_rewrite, copies_all
        self._without_copy = set[tuple[int, str]]()
        """The tables without a copy that were reported: OID and name."""
        self._has_joined = False
        """Whether a publication has changed since they were reported."""
        self._known: CatalogState | None = None
        self._digest = ""
        self._next_pruned = 0.0
        self._described: dict[int, RelationShape] = {}  # set by the pump: descriptions that wait for a reading
        self._events: list[tuple[float, CatalogEvent]] = []  # set by the polling thread: events to append
        self._opening = 0  # the number of these that were found before the stream began
        self._tables_with_facts: set[int] = set()  # set by the pump: tables whose facts are in the log
        self._locked: frozenset[int] = frozenset()
        self._is_awaited = False
        self._failed_at: float | None = None
        self._received_seq = self._polled_seq = self._target_seq = -1
        self._last_event_seq = self._judged_seq = -1
        self._log = _GrowingIndex(writer)
        self._lineage = LineageTracker()
        self._stale: dict[int, StaleTable] = {}
        self._problem: ReplicationError | None = None

    def check(self) -> None:
        """Raise the ReplicationError for which the capture must end, if there is one."""
        if self._problem is not None:
            raise self._problem

    def is_settled(self, first: bool = True) -> bool:
        """Return whether every received relation has been checked against the catalog; if not, trigger a check now.

        If it is not the ``first`` call in a row, only what had been received at the first one counts: writers may never
        pause. It does not wait for a table that is being altered, nor for a server that has not answered for long.
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
        """Whether ``is_settled`` waits for appended events to become durable."""
        return self._is_awaited and self._last_event_seq > self._writer.durable_seq

    def begin(self, connection: Connection, from_scratch: bool = False) -> None:
        """Read the catalog before a stream begins.

        Args:
            connection: The connection to poll with.
            from_scratch: The log was restarted: forget what is known. Otherwise a reconnect only polls.

        Raises:
            ReplicationError: The catalog cannot be read; or a table is stale and ``on_rewrite`` is ``stop``.
        """
        if connection.info.server_version < CATALOG_SINCE:
            return
        if is_first := self._known is None or from_scratch:
            index = self._log.read()
            self._events, self._digest = [], ""
            self._known = CatalogState.from_index(index)
            if from_scratch:  # earlier readings prove nothing about tables that were published since
                self._known.publications.clear()
            self._tables_with_facts = set(self._known.tables)
            self._described = dict(self._known.unconfirmed)
            requested = {table for request in requests(self._writer.store) for table in request.tables}
            self._find_stale_tables(index, requested)
            self._warn_of_missing_copies(index)
        self.poll(connection)
        if is_first:
            self._opening = len(self._events)
        self.check()

    def receive(self, block: Block) -> None:
        """Note the Relation messages in a block that was appended to the log."""
        if len(block):
            self._received_seq = self._writer.next_seq
        if self._known is None or not (block.index.tags == _RELATION).any():
            return
        rows, _ = block.header(Relation)
        for relation in map(block.index.message, rows.tolist()):
            assert isinstance(relation, Relation)
            oid, shape = relation.relation_oid, relation_shape(relation)
            if self._known.confirmed.get(oid) != shape:
                self._described[oid] = shape
                self.wake()

    def repeat_facts(self, oid: int, shape: RelationShape) -> None:
        """Append the facts of a table again, after its copy: a prune may remove older ones with what the copy replaces.

        Args:
            oid: The OID of the table.
            shape: Its description in the copy.
        """
        if self._known is not None:
            self._described[oid] = shape
            self.wake()

    def has_facts_of(self, oid: int) -> bool:
        """Return whether the log has facts of a table: if they precede its copy, readers know whether it was new."""
        return self._known is None or oid in self._tables_with_facts

    def append_events(self, between: bool) -> None:
        """Append pending events to the log if it is ``between`` transactions, or they have waited for long."""
        while self._events and (between or time.monotonic() - self._events[0][0] > _MAX_WAIT):
            _, news = self._events[0]
            if self._opening and self._writer.durable_seq < 0 and self._received_seq < 0:
                self._writer.append_event(news.name, news.lsn, **news.details)  # alone it is no reason for a segment
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
        """Note that the catalog could not be read."""
        if self._failed_at is None:
            self._failed_at = time.monotonic()

    def poll(self, connection: Connection) -> None:
        """Read the catalog and queue events for what has changed; called about once a second, by one thread at a time.

        The order matters: ``next_seq`` first, then the locks, then the catalog. Everything that was received before the
        locks were read was written by tables as this reading has them, unless they are locked.
        """
        if self._known is None:
            return
        start, described = self._writer.next_seq, dict(self._described)
        self._locked = locked = locked_tables(connection)
        digest = catalog_digest(connection)
        self._repeat_pruned_facts()
        if digest != self._digest or described:
            oids = {*self._known.tables, *described}
            reading = read_catalog(connection, self._publications, self._slot, oids)
            found, now = self._known.update(reading, start, locked, described), time.monotonic()
            if any(news.name == PUBLICATION_FACTS for news in found):
                self._has_joined = True
                self.on_copies_requested()
            self._events += [(now, news) for news in found]
            for description in filter(None, (news.description for news in found)):
                _LOG.warning("%s", description)
            self._digest = digest
            self._forget(described, locked)
        else:
            self._known.note_unchanged(start, locked)
        self._polled_seq, self._failed_at = start, None
        last_event = self._last_event_seq  # the pump may append more meanwhile
        if self._judged_seq < last_event <= self._writer.durable_seq:
            index = self._log.read()
            self._find_stale_tables(index)
            if self._has_joined:
                self._has_joined = False
                self._warn_of_missing_copies(index)
            self._judged_seq = last_event
        if (on_polled := self.on_polled) is not None:  # the pump, in another thread, may end meanwhile
            on_polled()

    def _repeat_pruned_facts(self) -> None:
        """Queue the facts of publications again if a prune has removed them: readers use the latest events."""
        if self._known is None or time.monotonic() < self._next_pruned:
            return
        self._next_pruned = time.monotonic() + _PRUNED_INTERVAL
        if min(self._known.published_at.values(), default=_NEVER) < read_pruned(self._writer.store).first_seq:
            self._known.publications.clear()
            self._known.published_at.clear()
            self._digest = ""

    def _forget(self, described: dict[int, RelationShape], locked: frozenset[int]) -> None:
        """Remove descriptions that were checked; those of tables that are being altered are checked again."""
        for oid, shape in described.items():
            if oid not in locked and self._described.get(oid) == shape:
                del self._described[oid]

    def _find_stale_tables(self, index: SegmentIndex, requested: Collection[tuple[str, str]] = ()) -> None:
        """Find the tables that became stale, and request copies of them, or set the error to raise.

        Copies of the tables in ``requested`` were requested already, and begin after what the log has.
        """
        before, self._stale = self._stale, dict(self._lineage.follow(index).stale)
        new = [stale for oid, stale in self._stale.items() if before.get(oid) != stale]
        for stale in new:
            _LOG.warning("%s, for which the server sends no message; %s", stale.reason, self._consequence(stale))
        refused = [stale for stale in new if stale.published and not self._is_copied_again(stale)]
        if refused:
            reasons = "; ".join(f"{stale.reason}: {stale.remedy}" for stale in refused)
            self._problem = ReplicationError(f"rows changed without messages in the stream: {reasons}")
        else:
            tables = {stale.table: stale.reason for stale in new if self._is_copied_again(stale)}
            self._request_copies({table: reason for table, reason in tables.items() if table not in requested})

    def _warn_of_missing_copies(self, index: SegmentIndex) -> None:
        """Warn of tables without a copy, if the log began with copies, and this capture makes none of its own."""
        if self._copies_all or not begins_with_copies(index):
            return
        requested = {qualified_name(*table) for request in requests(self._writer.store) for table in request.tables}
        found = tables_without_snapshot(index).items() - self._without_copy
        self._without_copy |= found
        if names := sorted(name for _, name in found if name not in requested):
            _LOG.warning(
                "the log began with table copies, and has none of %s: without --snapshot (snapshot=True) this capture "
                "does not make them; restart it with --snapshot, or run %s",
                ", ".join(names),
                snapshot_command(*names),
            )

    def _consequence(self, stale: StaleTable) -> str:
        return "copying it again" if self._is_copied_again(stale) else stale.remedy

    def _is_copied_again(self, stale: StaleTable) -> bool:
        return stale.published and (stale.lost or self._on_rewrite == "snapshot")

    def _request_copies(self, reasons: Mapping[tuple[str, str], str]) -> None:
        if reasons:
            ask(self._writer.store, reasons, "; ".join(reasons.values()))
            self.on_copies_requested()


class _GrowingIndex:
    """The index of the log that is being written; each read adds only the segments since the last one."""

    def __init__(self, writer: LogWriter) -> None:
        self._writer = writer
        self._listing: Listing | None = None
        self._index: SegmentIndex | None = None
        self._parts = 0

    def read(self) -> SegmentIndex:
        """Return the index of what is durable; raises ChangeLogError if a segment cannot be read."""
        if self._writer.durable_seq < 0:
            return SegmentIndex.concat([])
        self._listing = listing = list_log(self._writer.store, self._listing)
        known, begin = self._index, 0
        if known is not None and known.first_seq == listing[0].first_seq and self._parts < _MAX_PARTS:
            begin = listing.find(known.last_seq) + 1  # compaction may have merged its last segments with new ones
            if listing[begin - 1].last_seq != known.last_seq:
                begin = 0
        if known is None or not begin:
            self._index, self._parts = indexes_of(listing), 0
        elif begin < len(listing):
            self._index, self._parts = LogIndex.concat([known, indexes_of(listing[begin:])]), self._parts + 1
        assert self._index is not None
        return self._index
