"""Selects the tables to copy, from the requests in the log and the publications."""

import logging
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow.compute as pc

from pgoutput_construct.changelog._facts.copies import latest_copies
from pgoutput_construct.changelog._facts.partial_copies import PartialCopy, partial_copies
from pgoutput_construct.changelog._index.indexes import indexes_of
from pgoutput_construct.changelog._index.listing import list_log
from pgoutput_construct.changelog._notes.copy_requests import CopyRequest, TableName, fulfil, requests
from pgoutput_construct.changelog._segment.events import COPIED_TABLE, COPYING_TABLE, event_rows
from pgoutput_construct.changelog._segment.prune_note import read_pruned
from pgoutput_construct.changelog._store.store import LogStore
from pgoutput_construct.columnar.descriptions import OUTSIDE, copy_scope
from pgoutput_construct.postgres._snapshot.jobs import TableJob
from pgoutput_construct.postgres._snapshot.snapshots import next_xid
from pgoutput_construct.postgres.connection import Connection, fetch, is_standby
from pgoutput_construct.postgres.publications import read_published
from pgoutput_construct.stream.identifiers import qualified_name

__all__ = ["CopySelection", "TableToCopy"]

_LOG = logging.getLogger("pgoutput_construct")
_POLL_SECONDS: Final = 1.0  # seconds between two reads of a log's requests
_SIZES: Final = """WITH RECURSIVE tree AS (
        SELECT oid AS root, oid FROM unnest(%s::oid[]) AS wanted (oid)
        UNION ALL SELECT root, inhrelid FROM tree JOIN pg_inherits ON inhparent = tree.oid)
    SELECT root::bigint, sum(greatest(relpages, 0))::bigint FROM tree JOIN pg_class USING (oid) GROUP BY root"""
"""The pages of tables as VACUUM and ANALYZE last counted them: to measure them would wait for locks."""


@dataclass(frozen=True)
class TableToCopy:
    """A table to copy."""

    oid: int
    namespace: str
    name: str
    after: int
    """The snapshot must see all transactions with a 64-bit xid before this: no stream may have their rows."""
    requests: tuple[CopyRequest, ...] = ()
    """The requests that the copy fulfils."""


class CopySelection:
    """Selects the tables to copy, from the requests in the log and the publications; knows which were copied."""

    def __init__(self, store: LogStore, publications: Sequence[str], everything: bool, interval: float) -> None:
        """Prepare to select; the arguments are those of ``Copier``."""
        self._store, self._publications, self._everything = store, tuple(publications), everything
        self._interval = interval
        # Listing an object store costs time and money.
        self._pause = _POLL_SECONDS if store.keeps_out else max(interval, _POLL_SECONDS)
        self._due = self._due_requests = 0.0
        self._requests: list[CopyRequest] = []
        self._served: dict[str, set[TableName]] = {}
        self._published: dict[int, TableName] = {}
        self._after: dict[int, int] = {}
        self._copied: set[int] | None = None
        self._next_number = self._now = 0
        self._partial: dict[int, PartialCopy] = {}
        self._lock = threading.RLock()
        self.generation = 0
        """Another number after each restart: attempts that were begun before are void."""
        self._reset_in = 0
        """The generation in which copies were last made to begin with their first rows."""
        self.open: dict[int, TableJob] = {}
        """The copies in progress, by table OID."""

    def missing(self, oids: Iterable[int]) -> list[int]:
        """Return the tables that have no copy in the log, and none in progress."""
        return [oid for oid in oids if oid not in self.open and oid not in self._read_log()]

    def needs_poll(self, at_once: bool = False) -> bool:
        """Return whether the server must be queried; ``at_once`` reads requests and publications now."""
        if at_once or time.monotonic() >= self._due_requests:
            self._requests = requests(self._store)
            self._due_requests = time.monotonic() + self._pause
        self._due = 0.0 if at_once else self._due
        return bool(self._requests) or (self._everything and time.monotonic() >= self._due)

    def tables_to_copy(self, connection: Connection) -> list[TableToCopy]:
        """Return the tables to copy now; call it again until it returns none."""
        if self._requests and not self._everything and is_standby(connection):
            self._refuse_all("the server is a standby")
        if self._requests or time.monotonic() >= self._due:
            self._read_publications(connection)
        requested: dict[int, list[CopyRequest]] = {}
        oids = {name: oid for oid, name in self._published.items()}
        for request in list(self._requests):
            for table in request.tables:
                if table in oids and table not in self._served.get(request.number, ()):
                    requested.setdefault(oids[table], []).append(request)
                elif table not in oids:
                    self._refuse(request, table, "it is not published")
        missing = self.missing(self._published) if self._everything else []
        chosen = [oid for oid in dict.fromkeys([*missing, *requested]) if oid not in self.open]
        if chosen:  # they may fail: read the publications again
            self._due = 0.0
            sizes = dict(fetch(connection, _SIZES, [chosen], doing="the sizes of tables cannot be read"))
            chosen.sort(key=lambda oid: sizes.get(oid, 0))  # small tables are soon complete
        return [self._table_to_copy(oid, tuple(requested.get(oid, ()))) for oid in chosen]

    def restart(self, has_gap: bool) -> None:
        """Determine again which transactions a copy must contain: another slot, or another server, is read.

        Args:
            has_gap: Whether the log lacks changes, so that no copy can be resumed.
        """
        with self._lock:
            self._after.clear()
            self.generation += 1
            if has_gap:
                self._reset_in = self.generation
                self._partial.clear()
        self._due = 0.0

    def allocate_chunks(self, chunks: int) -> int:
        """Return the first of ``chunks`` consecutive chunk numbers that the log does not have."""
        self._read_log()
        first = self._next_number
        self._next_number += chunks
        return first

    def copied(self, job: TableJob) -> None:
        """Note that a copy is durable, and remove the requests that are fulfilled with it."""
        self.open.pop(job.table.oid, None)
        with self._lock:
            self._partial.pop(job.table.oid, None)
        self._read_log().add(job.table.oid)
        for request in job.requests:
            self._mark_served(request, (job.table.namespace, job.table.name))

    def discard(self, job: TableJob) -> None:
        """Note that a copy did not become complete: the table may be selected again."""
        self.open.pop(job.table.oid, None)
        self._due = 0.0
        with self._lock:
            if job.partial is not None and job.partial.reads and job.generation >= self._reset_in:
                self._partial[job.table.oid] = job.partial
            else:
                self._partial.pop(job.table.oid, None)

    def partial(self, oid: int) -> PartialCopy | None:
        """Return the copy of a table that was begun, with chunks that count as read; None for none."""
        self._read_log()
        with self._lock:
            return self._partial.get(oid)

    def _table_to_copy(self, oid: int, requests: tuple[CopyRequest, ...]) -> TableToCopy:
        # A requested table may have been removed from the publication and added again since: use the current xid.
        return TableToCopy(oid, *self._published[oid], self._now if requests else self._after[oid], requests)

    def _read_publications(self, connection: Connection) -> None:
        self._published = read_published(connection, self._publications)
        # Read after the publications: transactions with a later xid find the tables published.
        self._now = next_xid(connection)
        self._after = {oid: self._after.get(oid, self._now) for oid in self._published}
        self._due = time.monotonic() + self._interval

    def _read_log(self) -> set[int]:
        """Return the OIDs of the tables that the log has copies of, or had before it was pruned; reads the log once."""
        if self._copied is None:
            listing = list_log(self._store)
            self._copied = {*read_pruned(self._store).copied}
            if listing:
                index = indexes_of(listing)
                self._copied.update(latest_copies(index))
                with self._lock:
                    found = {} if self._reset_in else partial_copies(index)
                    self._partial = {oid: copy for oid, copy in found.items() if copy.reads}
                # Each chunk begins with its Relation, also one that was never completed.
                lowest = pc.min(index.entries("descriptions")["stream_xid"]).as_py()
                if lowest is not None and lowest < OUTSIDE:
                    self._next_number = copy_scope(lowest) + 1
                # A copy that was begun has all of its numbers, also those of chunks that were not read.
                begun = (row.read().details["chunks"][1] for row in event_rows(index, {COPYING_TABLE, COPIED_TABLE}))
                self._next_number = max([self._next_number, *(last + 1 for last in begun)])
        return self._copied

    def _refuse_all(self, reason: str) -> None:
        for request in list(self._requests):
            for table in request.tables:
                self._refuse(request, table, reason)

    def _refuse(self, request: CopyRequest, table: TableName, reason: str) -> None:
        _LOG.warning("the request to copy table %s is refused: %s", qualified_name(*table), reason)
        self._mark_served(request, table)

    def _mark_served(self, request: CopyRequest, table: TableName) -> None:
        served = self._served.setdefault(request.number, set())
        served.add(table)
        if served.issuperset(request.tables):
            fulfil(self._store, request)
            self._requests = [each for each in self._requests if each.number != request.number]
