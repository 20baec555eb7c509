"""Which tables are to be copied: those that are published and that the log does not have, and those asked for."""

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow.compute as pc

from pgoutput_construct.changelog.copies import latest_copies
from pgoutput_construct.changelog.indexes import indexes_of
from pgoutput_construct.changelog.listing import list_log
from pgoutput_construct.changelog.pruned import read_pruned
from pgoutput_construct.changelog.requests import CopyRequest, TableName, fulfil, requests
from pgoutput_construct.changelog.store import LogStore
from pgoutput_construct.columnar.descriptions import OUTSIDE, copy_scope
from pgoutput_construct.postgres.copying.jobs import TableJob
from pgoutput_construct.postgres.copying.snapshots import next_xid
from pgoutput_construct.postgres.membership import read_published
from pgoutput_construct.postgres.queries import Connection
from pgoutput_construct.postgres.server import is_standby
from pgoutput_construct.stream.identifiers import qualified_name

__all__ = ["Wanted", "WantedTable"]

_LOG = logging.getLogger("pgoutput_construct")
_LOOKS: Final = 1.0  # seconds between two looks at the requests of a log


@dataclass(frozen=True)
class WantedTable:
    """A table that is to be copied."""

    oid: int
    namespace: str
    name: str
    after: int
    """Its snapshot must contain all transactions with an xid before this: they may have written what no stream has."""
    requests: tuple[CopyRequest, ...] = ()
    """Who asked for it."""


class Wanted:
    """Knows what was copied, and looks at the publications and the requests from time to time."""

    def __init__(self, store: LogStore, publications: Sequence[str], everything: bool, interval: float) -> None:
        """Look at the publications every ``interval`` seconds, at all times where ``everything`` is to be copied."""
        self._store, self._publications, self._everything = store, tuple(publications), everything
        self._interval = interval
        # An object store is asked over the network, and wants to be paid for it.
        self._pause = _LOOKS if store.keeps_out else max(interval, _LOOKS)
        self._due = self._due_requests = 0.0
        self._requests: list[CopyRequest] = []
        self._served: dict[str, set[TableName]] = {}
        self._published: dict[int, TableName] = {}
        self._after: dict[int, int] = {}
        self._copied: set[int] | None = None
        self._next_number = self._now = 0
        self.open: dict[int, TableJob] = {}
        """The copies that are on their way into the log, by the OIDs of their tables."""

    def missing(self, oids: Iterable[int]) -> list[int]:
        """Return those of some tables that were not copied, and are not on their way."""
        return [oid for oid in oids if oid not in self.open and oid not in self._read_log()]

    def needs_look(self, at_once: bool = False) -> bool:
        """Tell whether a server must be asked to know what is wanted; ``at_once``: there may be something new."""
        if at_once or time.monotonic() >= self._due_requests:
            self._requests = requests(self._store)
            self._due_requests = time.monotonic() + self._pause
        self._due = 0.0 if at_once else self._due
        return bool(self._requests) or (self._everything and time.monotonic() >= self._due)

    def look(self, connection: Connection) -> list[WantedTable]:
        """Return the tables that are to be copied now; it must be asked again, until it returns none."""
        if self._requests and not self._everything and is_standby(connection):
            self._refuse_all("the server is a standby")
        if self._requests or time.monotonic() >= self._due:
            self._look(connection)
        asked: dict[int, list[CopyRequest]] = {}
        oids = {name: oid for oid, name in self._published.items()}
        for request in list(self._requests):
            for table in request.tables:
                if table in oids and table not in self._served.get(request.number, ()):
                    asked.setdefault(oids[table], []).append(request)
                elif table not in oids:
                    self._refuse(request, table, "it is not published")
        missing = self.missing(self._published) if self._everything else []
        chosen = [oid for oid in dict.fromkeys([*missing, *asked]) if oid not in self.open]
        if chosen:  # what becomes of them is not known here
            self._due = 0.0
        return [self._wanted(oid, tuple(asked.get(oid, ()))) for oid in chosen]

    def begin_anew(self) -> None:
        """Ask anew which transactions a copy must contain: another slot is read."""
        self._after.clear()
        self._due = 0.0

    def number(self, chunks: int) -> int:
        """Return the first of so many numbers of chunks that the log does not have."""
        self._read_log()
        first = self._next_number
        self._next_number += chunks
        return first

    def copied(self, job: TableJob) -> None:
        """Note that a copy is durable, and remove the requests that it was the last to fulfil."""
        self.open.pop(job.table.oid, None)
        self._read_log().add(job.table.oid)
        for request in job.requests:
            self._serve(request, (job.table.namespace, job.table.name))

    def discard(self, job: TableJob) -> None:
        """Note that a copy did not become complete: whether it is still wanted is looked at anew."""
        job.void = True
        self.open.pop(job.table.oid, None)
        self._due = 0.0

    def _wanted(self, oid: int, asked: tuple[CopyRequest, ...]) -> WantedTable:
        # It may have been taken out of the publication and added again meanwhile: only what is asked now is certain.
        return WantedTable(oid, *self._published[oid], self._now if asked else self._after[oid], asked)

    def _look(self, connection: Connection) -> None:
        self._published = read_published(connection, self._publications)
        # Read after they were seen to be published.
        self._now = next_xid(connection)
        self._after = {oid: self._after.get(oid, self._now) for oid in self._published}
        self._due = time.monotonic() + self._interval

    def _read_log(self) -> set[int]:
        """Return the tables that the log has copies of, or had before it was pruned; the log is read once."""
        if self._copied is None:
            listing = list_log(self._store)
            self._copied = {*read_pruned(self._store).copied}
            if listing:
                index = indexes_of(listing)
                self._copied.update(latest_copies(index))
                # Each chunk begins with what describes it, also one that was never completed.
                lowest = pc.min(index.entries("descriptions")["stream_xid"]).as_py()
                if lowest is not None and lowest < OUTSIDE:
                    self._next_number = copy_scope(lowest) + 1
        return self._copied

    def _refuse_all(self, reason: str) -> None:
        for request in list(self._requests):
            for table in request.tables:
                self._refuse(request, table, reason)

    def _refuse(self, request: CopyRequest, table: TableName, reason: str) -> None:
        _LOG.warning("no copy is made of table %s, for which somebody asked: %s", qualified_name(*table), reason)
        self._serve(request, table)

    def _serve(self, request: CopyRequest, table: TableName) -> None:
        served = self._served.setdefault(request.number, set())
        served.add(table)
        if served.issuperset(request.tables):
            fulfil(self._store, request)
            self._requests = [each for each in self._requests if each.number != request.number]
