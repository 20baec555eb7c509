"""What the stream does not say, noticed while it runs: changes of the catalog become events of the log.

Three parties meet here: the pump, which tells what it received and appends the events; the watch beside the stream,
whose thread asks the server; and the log, whose lineage says what an event means for its tables.
"""

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from pgoutput_construct.changelog.block import Block
from pgoutput_construct.changelog.events import PUBLICATION_FACTS
from pgoutput_construct.changelog.index import SegmentIndex
from pgoutput_construct.changelog.lineage import Stale, lineage_of
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.changelog.requests import ask, requests
from pgoutput_construct.changelog.writer import LogWriter
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres.catalog import CATALOG_SINCE, catalog_digest, locked_tables, read_catalog
from pgoutput_construct.postgres.known import Known, News, Shape, shape_of
from pgoutput_construct.postgres.queries import Connection
from pgoutput_construct.wire.messages import Relation

__all__ = ["CatalogWatch", "OnRewrite"]

OnRewrite: TypeAlias = Literal["snapshot", "stop"]
"""What a capture does when rows change that the stream does not send: have them copied again, or end."""

_LOG = logging.getLogger("pgoutput_construct")
_RELATION: Final = Relation.TAG[0]
_LONGEST_WAIT: Final = 1.0
"""Seconds for which events wait for a place between two transactions."""
_PATIENCE: Final = 10.0
"""Seconds for which the end of a capture waits for a server that cannot be asked, though its stream goes on."""


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
        self._described: dict[int, Shape] = {}  # by the pump; they wait for a reading
        self._news: list[tuple[float, News]] = []  # by the thread; they wait for the pump
        self._opening = 0  # so many of them were found before the stream began
        self._locked: frozenset[int] = frozenset()
        self._is_hurried = False
        self._failed_at: float | None = None
        self._received = self._seen = -1
        self._said = self._judged = -1
        self._stale: dict[int, Stale] = {}
        self._problem: ReplicationError | None = None

    def check(self) -> None:
        """Raise the ReplicationError that keeps the capture from going on, if there is one."""
        if self._problem is not None:
            raise self._problem

    @property
    def settled(self) -> bool:
        """Whether all that was received was looked at, and what it means is known; if not, that is hurried.

        A table that is being altered is not waited for, nor a server that has not answered for some time.
        """
        if self._known is None or (self._failed_at is not None and time.monotonic() - self._failed_at > _PATIENCE):
            return True
        described = self._described.keys() - self._locked
        waits = bool(described or self._news or self._seen < self._received or self._judged < self._said)
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
            index = _index_of(self._writer)
            self._known = Known.of(index)
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

    def append_news(self, between: bool) -> None:
        """Append what was noticed to the log: ``between`` transactions, or where it has waited for long."""
        while self._news and (between or time.monotonic() - self._news[0][0] > _LONGEST_WAIT):
            _, news = self._news[0]
            if self._opening and self._writer.durable_seq < 0 and self._received < 0:
                self._writer.append_event(news.name, news.lsn, **news.details)  # a log of nothing else is of no use
            else:
                self._writer.append_fact(news.name, news.lsn, **news.details)
                self._said = self._writer.next_seq - 1
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
            self._judge(_index_of(self._writer))
            self._judged = said

    def _forget(self, described: dict[int, Shape], locked: frozenset[int]) -> None:
        """Have descriptions wait no more; those of tables that are being altered are looked at again."""
        for oid, shape in described.items():
            if oid not in locked and self._described.get(oid) == shape:
                del self._described[oid]

    def _judge(self, index: SegmentIndex, asked: Collection[tuple[str, str]] = ()) -> None:
        """See which tables the log no longer has as they are, and do what is to be done about it.

        The copies of the tables that were ``asked`` for begin after what the log says.
        """
        before, self._stale = self._stale, dict(lineage_of(index).stale)
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

    def _what_follows(self, stale: Stale) -> str:
        return "it is copied again" if self._copies(stale) else stale.remedy

    def _copies(self, stale: Stale) -> bool:
        return stale.published and (stale.lost or self._on_rewrite == "snapshot")

    def _request(self, wanted: Mapping[tuple[str, str], str]) -> None:
        if wanted:
            ask(self._writer.store, wanted, "; ".join(wanted.values()))
            self.asked_for_copies()


def _index_of(writer: LogWriter) -> SegmentIndex:
    return SegmentIndex.concat([]) if writer.durable_seq < 0 else ChangeLog(writer.store).index
