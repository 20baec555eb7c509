"""What the stream does not say, noticed while it runs: changes of the catalog become events of the log.

Three parties meet here: the pump, which tells what it received and appends the events; the watch beside the stream,
whose thread asks the server; and the log, whose lineage says what an event means for its tables.
"""

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from pgoutput_construct.changelog._facts.events import PUBLICATION_FACTS, TABLE_FACTS
from pgoutput_construct.changelog._facts.lineage import LineageTracker, StaleTable
from pgoutput_construct.changelog._index.indexes import indexes_of
from pgoutput_construct.changelog._index.listing import first_kept, list_log
from pgoutput_construct.changelog._index.log_index import LogIndex
from pgoutput_construct.changelog._index.segment_index import SegmentIndex
from pgoutput_construct.changelog._notes.copy_requests import ask, requests
from pgoutput_construct.changelog._segment.block import Block
from pgoutput_construct.changelog.writer import LogWriter
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres._catalog.known_tables import Known, News, Shape, shape_of
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
_LONGEST_WAIT: Final = 1.0
"""Seconds for which events wait for a place between two transactions."""
_PRUNED_INTERVAL: Final = 60.0
"""Seconds: how often it is looked whether a prune has removed what says what is published."""
_PATIENCE: Final = 10.0
"""Seconds for which the end of a capture waits for a server that cannot be asked, though its stream goes on."""
_PARTS: Final = 100
"""How often the index of new segments is put below what is known, before all is read from scratch in one piece."""


class CatalogWatch:
    """Follows the catalog for one capture."""

    def __init__(self, writer: LogWriter, slot: str, publications: Sequence[str], on_rewrite: OnRewrite) -> None:
        """Prepare for a log; nothing is read before ``begin``."""
        self.wake: Callable[[], None] = lambda: None
        """Called when the server is to be asked at once."""
        self.asked_for_copies: Callable[[], None] = lambda: None
        """Called when copies of tables were asked for, or others are published."""
        self._writer, self._slot, self._publications = writer, slot, tuple(publications)
        self._on_rewrite = on_rewrite
        self._known: Known | None = None
        self._digest = ""
        self._next_pruned = 0.0
        self._described: dict[int, Shape] = {}  # by the pump; they wait for a reading
        self._news: list[tuple[float, News]] = []  # by the thread; they wait for the pump
        self._opening = 0  # so many of them were found before the stream began
        self._said_tables: set[int] = set()  # by the pump; the log has facts of them
        self._locked: frozenset[int] = frozenset()
        self._is_hurried = False
        self._failed_at: float | None = None
        self._received = self._seen = self._wanted = -1
        self._said = self._judged = -1
        self._log = _GrowingIndex(writer)
        self._lineage = LineageTracker()
        self._stale: dict[int, StaleTable] = {}
        self._problem: ReplicationError | None = None

    def check(self) -> None:
        """Raise the ReplicationError that keeps the capture from going on, if there is one."""
        if self._problem is not None:
            raise self._problem

    def settled(self, first: bool = True) -> bool:
        """Return whether all that was received was looked at, and what it means is known; if not, that is hurried.

        Asked again, not for the ``first`` time, it is about what had been received then: writers may never pause. A
        table that is being altered is not waited for, nor a server that has not answered for some time.
        """
        if first:
            self._wanted = self._received
        if self._known is None or (self._failed_at is not None and time.monotonic() - self._failed_at > _PATIENCE):
            return True
        described = self._described.keys() - self._locked
        waits = bool(described or self._news or self._seen < self._wanted or self._judged < self._said)
        self._is_hurried = waits
        if waits and self._failed_at is None:
            self.wake()
        return not waits

    @property
    def is_hurried(self) -> bool:
        """Whether somebody waits until the events that were appended are durable."""
        return self._is_hurried and self._said > self._writer.durable_seq

    def begin(self, connection: Connection, anew: bool = False) -> None:
        """Read the catalog for the first time, before the stream begins.

        A reconnection changes nothing, unless the log is begun ``anew``.

        Raises ReplicationError, also where the log says that ``on_rewrite`` keeps the capture from going on.
        """
        if connection.info.server_version < CATALOG_SINCE:
            return
        if is_first := self._known is None or anew:
            index = self._log.read()
            self._news, self._digest = [], ""
            self._known = Known.of(index)
            if anew:  # what was read before proves nothing of tables that came since
                self._known.publications.clear()
            self._said_tables = set(self._known.tables)
            self._described = dict(self._known.unconfirmed)
            asked = {table for request in requests(self._writer.store) for table in request.tables}
            self._judge(index, asked)
        self.look(connection)
        if is_first:
            self._opening = len(self._news)
        self.check()

    def receive(self, block: Block) -> None:
        """Take note of the descriptions in a block that was appended to the log."""
        if len(block):
            self._received = self._writer.next_seq
        if self._known is None or not (block.index.tags == _RELATION).any():
            return
        rows, _ = block.header(Relation)
        for relation in map(block.index.message, rows.tolist()):
            assert isinstance(relation, Relation)
            oid, shape = relation.relation_oid, shape_of(relation)
            if self._known.confirmed.get(oid) != shape:
                self._described[oid] = shape
                self.wake()

    def confirm(self, oid: int, shape: Shape) -> None:
        """Have the facts of a table said again, behind its copy: older ones are pruned with what the copy replaces."""
        if self._known is not None:
            self._described[oid] = shape
            self.wake()

    def has_said(self, oid: int) -> bool:
        """Return whether the log has facts of a table: where they precede its copy, readers know whether it was new."""
        return self._known is None or oid in self._said_tables

    def append_news(self, between: bool) -> None:
        """Append what was noticed to the log: ``between`` transactions, or where it has waited for long."""
        while self._news and (between or time.monotonic() - self._news[0][0] > _LONGEST_WAIT):
            _, news = self._news[0]
            if self._opening and self._writer.durable_seq < 0 and self._received < 0:
                self._writer.append_event(news.name, news.lsn, **news.details)  # a log of nothing else is of no use
            else:
                self._writer.append_fact(news.name, news.lsn, **news.details)
                self._said = self._writer.next_seq - 1
            if news.name == PUBLICATION_FACTS and self._known is not None:
                self._known.published_at[news.details["publication"]] = self._writer.next_seq - 1
            if news.name == TABLE_FACTS:
                self._said_tables.add(news.details["oid"])
            self._news.pop(0)
            self._opening = max(0, self._opening - 1)

    def failed(self) -> None:
        """Note that the server could not be asked."""
        if self._failed_at is None:
            self._failed_at = time.monotonic()

    def look(self, connection: Connection) -> None:
        """Ask the server, and see what is new; called about each second, by one thread at a time.

        The order counts: what was received before the locks were looked at is as the rows say that are read then.
        """
        if self._known is None:
            return
        start, described = self._writer.next_seq, dict(self._described)
        self._locked = locked = locked_tables(connection)
        digest = catalog_digest(connection)
        self._say_pruned_again()
        if digest != self._digest or described:
            asked = {*self._known.tables, *described}
            reading = read_catalog(connection, self._publications, self._slot, asked)
            found, now = self._known.news(reading, start, locked, described), time.monotonic()
            if any(news.name == PUBLICATION_FACTS for news in found):
                self.asked_for_copies()
            self._news += [(now, news) for news in found]
            for words in filter(None, (news.words for news in found)):
                _LOG.warning("%s", words)
            self._digest = digest
            self._forget(described, locked)
        else:
            self._known.passed(start, locked)
        self._seen, self._failed_at = start, None
        said = self._said  # by the pump, which may append more meanwhile
        if self._judged < said <= self._writer.durable_seq:
            self._judge(self._log.read())
            self._judged = said

    def _say_pruned_again(self) -> None:
        """Have publications said again where a prune has removed what said them: readers go by their latest events."""
        if self._known is None or time.monotonic() < self._next_pruned:
            return
        self._next_pruned = time.monotonic() + _PRUNED_INTERVAL
        if min(self._known.published_at.values(), default=_NEVER) < first_kept(self._writer.store):
            self._known.publications.clear()
            self._known.published_at.clear()
            self._digest = ""

    def _forget(self, described: dict[int, Shape], locked: frozenset[int]) -> None:
        """Have descriptions wait no more; those of tables that are being altered are looked at again."""
        for oid, shape in described.items():
            if oid not in locked and self._described.get(oid) == shape:
                del self._described[oid]

    def _judge(self, index: SegmentIndex, asked: Collection[tuple[str, str]] = ()) -> None:
        """See which tables the log no longer has as they are, and do what is to be done about it.

        The copies of the tables that were ``asked`` for begin after what the log says.
        """
        before, self._stale = self._stale, dict(self._lineage.follow(index).stale)
        new = [stale for oid, stale in self._stale.items() if before.get(oid) != stale]
        for stale in new:
            _LOG.warning("%s, which the stream does not say; %s", stale.reason, self._what_follows(stale))
        refused = [stale for stale in new if stale.published and not self._copies(stale)]
        if refused:
            reasons = "; ".join(f"{stale.reason}: {stale.remedy}" for stale in refused)
            self._problem = ReplicationError(f"rows changed that the stream does not send: {reasons}")
        else:
            tables = {stale.table: stale.reason for stale in new if self._copies(stale)}
            self._request({table: reason for table, reason in tables.items() if table not in asked})

    def _what_follows(self, stale: StaleTable) -> str:
        return "it is copied again" if self._copies(stale) else stale.remedy

    def _copies(self, stale: StaleTable) -> bool:
        return stale.published and (stale.lost or self._on_rewrite == "snapshot")

    def _request(self, wanted: Mapping[tuple[str, str], str]) -> None:
        if wanted:
            ask(self._writer.store, wanted, "; ".join(wanted.values()))
            self.asked_for_copies()


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
        if known is not None and known.first_seq == listing[0].first_seq and self._parts < _PARTS:
            place = listing.place(known.last_seq) + 1  # compaction may have put its last segments and new ones together
            if listing[place - 1].last_seq != known.last_seq:
                place = 0
        if known is None or not place:
            self._index, self._parts = indexes_of(listing), 0
        elif place < len(listing):
            self._index, self._parts = LogIndex.concat([known, indexes_of(listing[place:])]), self._parts + 1
        assert self._index is not None
        return self._index
