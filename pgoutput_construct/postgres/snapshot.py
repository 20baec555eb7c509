"""The function ``snapshot``: requests table copies in the log, which the capture that writes it makes."""

import logging
import math
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

import pyarrow.compute as pc

from pgoutput_construct.changelog._facts.copies import TableCopy
from pgoutput_construct.changelog._index.indexes import index_of
from pgoutput_construct.changelog._index.listing import list_log
from pgoutput_construct.changelog._notes.copy_requests import CopyRequest, TableName, ask, fulfil, was_fulfilled
from pgoutput_construct.changelog._segment.events import COPIED_TABLE, events_of
from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog._store.store import Address, LogStore
from pgoutput_construct.changelog.log_options import LogOptions
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.errors import ChangeLogError, ReplicationError
from pgoutput_construct.postgres._capture.pump import CaptureProgress
from pgoutput_construct.postgres._snapshot.snapshots import check_can_copy
from pgoutput_construct.postgres.capture import capture
from pgoutput_construct.postgres.connection import Connection, connect
from pgoutput_construct.postgres.publications import find_table, read_published
from pgoutput_construct.postgres.replication_slots import slot_health
from pgoutput_construct.stream.identifiers import qualified_name

__all__ = ["snapshot"]

OnProgress = Callable[[CaptureProgress], None]

_LOG = logging.getLogger("pgoutput_construct")
_PAUSE: Final = 0.2  # seconds
_REPORT_SECONDS: Final = 2.0  # seconds between two reports of copied rows
_FREE_SECONDS: Final = 3.0
"""Seconds after which a slot without a reader counts as free: a capture that lost its connection reconnects."""


def snapshot(
    dsn: str,
    directory: Address,
    tables: Iterable[str],
    *,
    workers: int = 2,
    stop: Callable[[], bool] | None = None,
    on_progress: OnProgress | None = None,
    on_wait: Callable[[int], None] | None = None,
    handle_signals: bool = True,
) -> list[TableCopy]:
    """Copy the current rows of tables into a log: of newly published tables, or to repair stale ones.

    If a capture writes the log, it makes the copies; otherwise this call captures until they are durable. Tables are
    not locked against writes, and nothing is written on the server. A copy is complete once the stream has passed the
    end of the WAL at the time of the copy's snapshot: then the log has which transactions it contains.

    Args:
        dsn: The connection string, as libpq reads it.
        directory: The address of the change log, which must have a segment.
        tables: The tables, as in SQL, in ``public`` if no schema is given. Each must be published by a publication of
            the last capture into the log.
        workers: The number of connections that copy a table.
        stop: Called periodically; True stops waiting, and withdraws the request.
        on_progress: Called with the progress of the capture, if this call makes the copies.
        on_wait: If a capture makes the copies, called every few seconds with the number of rows copied so far.
        handle_signals: As for ``capture``, if this call makes the copies.

    Returns:
        The copies, as the log has them, in the order of ``tables``.

    Raises:
        ReplicationError: A table does not exist or is not published; or the server cannot be reached.
        ChangeLogError: There is no log at the address, or the capture refused the request.
    """
    store = open_store(directory)
    log = ChangeLog(store)
    names = [tables] if isinstance(tables, str) else list(tables)
    with connect(dsn) as connection:
        check_can_copy(connection)
        found = _find_published(connection, names, log.options)
    request = ask(store, found, workers=workers)
    is_stopped = stop or (lambda: False)
    seen = _CopiedRowCount(log, on_wait)
    try:
        if not _wait(store, request, is_stopped, dsn, log.options.slot, seen):
            _LOG.info("no capture reads slot %r: capturing until the copies are durable", log.options.slot)
            watched = _CompletionWatch(store, request, on_progress)
            given: dict[str, Any] = log.options.replication_options()
            given |= {"workers": workers, "handle_signals": handle_signals, "on_progress": watched.report}
            given |= {
                "duration": math.inf
            }  # a beginning is tried for a limited time; later failures are retried forever
            slot, publications = log.options.slot, log.options.publications
            capture(dsn, slot, publications, store.address, stop=lambda: is_stopped() or watched.done, **given)
    finally:
        fulfil(store, request)
    copies = _copies(ChangeLog(store), request)
    if len(copies) < len(found) and not is_stopped():
        raise ChangeLogError(
            f"{store}: not all tables were copied: see the messages of the capture that writes the log"
        )
    return copies


def _find_published(connection: Connection, names: list[str], options: LogOptions) -> list[TableName]:
    """Return the schemas and names of published tables; raise ReplicationError for others."""
    if not names:
        raise ReplicationError("name the tables to copy")
    published = set(read_published(connection, options.publications).values())
    found = [find_table(connection, name) for name in names]
    for table in found:
        if table not in published:
            publications = ", ".join(map(repr, options.publications))
            raise ReplicationError(
                f"table {qualified_name(*table)} is not published by {publications}, with which the log was captured: "
                "run ALTER PUBLICATION ... ADD TABLE ..., or name the partitioned table that it belongs to, or its "
                "partitions"
            )
    return list(dict.fromkeys(found))


def _wait(
    store: LogStore, request: CopyRequest, is_stopped: Callable[[], bool], dsn: str, slot: str, seen: "_CopiedRowCount"
) -> bool:
    """Wait for a capture to fulfil the request; return False if none writes the log, True if it is done or stopped."""
    free_since: float | None = None
    while not was_fulfilled(store, request) and not is_stopped():
        now, health, is_held = time.monotonic(), slot_health(dsn, slot), _is_held(store)
        # An object store has no lock: only the slot shows whether a capture has the log open.
        is_read = bool(health and health[0].active_pid) and (is_held or not store.keeps_out)
        free_since = None if is_read else free_since or now
        if free_since is not None and now - free_since >= (_FREE_SECONDS if is_held else 0):
            return False
        seen.report()
        time.sleep(_PAUSE)
    return True


class _CopiedRowCount:
    """Counts the copied rows that are added to a log."""

    def __init__(self, log: ChangeLog, on_wait: Callable[[int], None] | None) -> None:
        self._store, self._on_wait = log.store, on_wait
        self._next_seq = log.segments[-1].last_seq + 1
        self._rows = 0
        self._due = 0.0

    def report(self) -> None:
        """Report the number of rows every few seconds."""
        if self._on_wait is None or time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _REPORT_SECONDS
        segments = list_log(self._store)
        for index in (segments.first_seqs >= self._next_seq).nonzero()[0].tolist():
            self._rows += pc.sum(index_of(segments[index]).entries("snapshots")["rows"]).as_py() or 0
        self._next_seq = segments[-1].last_seq + 1
        self._on_wait(self._rows)


def _is_held(store: LogStore) -> bool:
    """Return whether a capture has the log open now, even if it has lost its connection."""
    if not store.keeps_out:
        return False
    try:
        store.lock("capture").release()
    except ChangeLogError:
        return True
    return False


class _CompletionWatch:
    """Watches the progress of this call's own capture until the request is fulfilled."""

    def __init__(self, store: LogStore, request: CopyRequest, on_progress: OnProgress | None) -> None:
        self._store, self._request, self._on_progress = store, request, on_progress
        self.done = False

    def report(self, progress: CaptureProgress) -> None:
        if self._on_progress is not None:
            self._on_progress(progress)
        self.done = progress.copies.settled and was_fulfilled(self._store, self._request)


def _copies(log: ChangeLog, request: CopyRequest) -> list[TableCopy]:
    """Return the copies that fulfilled a request, in the order of its tables."""
    events = events_of(log.index, COPIED_TABLE)
    copies = (TableCopy.of(event) for event in events if request.number in event.details.get("requests", ()))
    found = {(copy.namespace, copy.name): copy for copy in copies}
    return [found[table] for table in request.tables if table in found]
