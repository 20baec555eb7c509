"""The function ``capture``: a slot's changes into a change log, made durable, and only then confirmed."""

import ctypes
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Unpack

from pgoutput_construct.changelog._store.store import Address
from pgoutput_construct.changelog.writer import LogWriter, SegmentLimits
from pgoutput_construct.postgres._capture.callbacks import Callbacks
from pgoutput_construct.postgres._capture.capture_session import CaptureSession, activity
from pgoutput_construct.postgres._capture.gaps import OnLostSlot
from pgoutput_construct.postgres._capture.preparation import CapturePlan
from pgoutput_construct.postgres._capture.pump import CaptureProgress
from pgoutput_construct.postgres._capture.slot_watch import Heartbeat, SlotWatch
from pgoutput_construct.postgres._capture.transaction_tracker import Ending
from pgoutput_construct.postgres._catalog.catalog_watch import CatalogWatch, OnRewrite
from pgoutput_construct.postgres._patience import ANSWER_SECONDS, Patience, collected_signals
from pgoutput_construct.postgres._retry import Retry
from pgoutput_construct.postgres._snapshot.copier import Copier
from pgoutput_construct.postgres.connection import connect
from pgoutput_construct.postgres.publications import NewPublication
from pgoutput_construct.wire import Lsn
from pgoutput_construct.wire.protocol import GivenOptions

__all__ = ["capture"]


def capture(
    dsn: str,
    slot: str,
    publications: Iterable[str],
    directory: Address,
    *,
    limits: SegmentLimits | None = None,
    until_lsn: Lsn | None = None,
    until_idle: float | None = None,
    duration: float | None = None,
    stop: Callable[[], bool] | None = None,
    on_progress: Callable[[CaptureProgress], None] | None = None,
    create_slot: bool = False,
    failover: bool = False,
    slot_timeout: float | None = None,
    new_log: bool = False,
    create_publication: Iterable[str] = (),
    publish: Iterable[str] = (),
    file_mode: int | None = None,
    heartbeat: float | None = None,
    transactional_heartbeat: bool = False,
    status_interval: float = 10.0,
    reconnect_seconds: float | None = None,
    snapshot: bool = False,
    workers: int = 2,
    on_rewrite: OnRewrite = "snapshot",
    on_lost_slot: OnLostSlot = "stop",
    handle_signals: bool = True,
    **options: Unpack[GivenOptions],
) -> CaptureProgress:
    """Capture a slot's changes into a change log; resume where the log ends.

    However the capture ends, everything that was received is made durable first, complete transactions are confirmed,
    and the connection is closed. Without a condition to end it runs forever: if the server is unreachable, also at the
    start, the capture reconnects, with pauses that grow to 30 seconds, and logs each kind of failure once (logger
    ``pgoutput_construct``). Permanent errors, such as a wrong password or a missing publication, are raised at once.

    Conditions to end (``until_lsn``, ``until_idle``, ``duration``) count from where the capture begins: the slot is
    read, and the server's history is that of the log. With such a condition, a capture that cannot begin, since the
    server is unreachable or the slot has another reader, raises the error after ``reconnect_seconds``, or a minute.

    Args:
        dsn: The connection string, as libpq reads it; its password appears in no error. In addition to the stream's
            connection there is an ordinary one, which polls the slot and the publications.
        slot: The name of the replication slot, which must exist unless ``create_slot`` is set.
        publications: The names of the publications, which must exist, and be older than the slot. They may differ from
            those of earlier captures into the log, which then records an event.
        directory: The address of the change log: a directory, which is created if it does not exist, or a URI.
        limits: When a segment is cut.
        until_lsn: End when everything before this LSN is durable; None for no such end.
        until_idle: End when the server has had nothing to send for this many seconds.
        duration: End this many seconds after the capture began.
        stop: Called about every 50 ms; True ends the capture.
        on_progress: Called after each segment, and about once a second. ``stop`` and ``on_progress`` are called on a
            thread of their own, so that slow callbacks do not delay the stream; progress reports are merged meanwhile.
        create_slot: Create the slot if it does not exist and the log is empty. The server waits for the transactions
            that are writing now, which are logged.
        failover: Create the slot with the option failover: standbys synchronize it, and a capture can continue with it
            after a failover (PostgreSQL 17; the standby needs ``sync_replication_slots``).
        slot_timeout: Seconds after which creating the slot fails; None for no limit.
        new_log: Start a log in an empty directory with a slot that this log's capture has not created. Without it that
            is an error: the log may be on a volume that is not mounted, and what was confirmed is not sent again.
        create_publication: Tables, as in SQL, and ``schema.*`` for all tables of a schema (PostgreSQL 15, by a
            superuser). The publication, of which there must be one, is created for them if it does not exist. Each
            table needs a replica identity, unless ``publish`` excludes updates and deletes.
        publish: The operations of a publication that is created: ``insert``, ``update``, ``delete``, ``truncate``; all
            of them by default.
        file_mode: The mode of the log's files, such as 0o640: of existing ones, and of all that are written into the
            log from now on. By default 0o600; new directories have 0o700.
        heartbeat: Seconds between two logical messages (prefix ``pgoutput_construct``) that the capture writes, so that
            the slot advances while nobody else writes. The role needs no privileges on tables. Not on a standby.
        transactional_heartbeat: Write each of them in a transaction, with Begin and Commit.
        status_interval: Seconds between two status updates to the server, and between two polls of the slot. If the
            server is silent for three intervals, although a reply was requested, the capture reconnects, unless the
            slot's walsender is active: it may decode unpublished changes for hours.
        reconnect_seconds: Seconds after the last contact for which the capture reconnects; None for no limit, but of 60
            seconds for a first connection if there is a condition to end.
        snapshot: Keep the log complete from the first row of each published table: tables without a copy in the log are
            copied alongside the stream, now and when they are published later. A slot that is created provides the
            snapshot. ``until_lsn`` and ``until_idle`` then wait for all copies to be durable. The role needs SELECT on
            the tables. Without this option only the copies that ``snapshot()`` requests are made.
        workers: The number of connections that copy a table.
        on_rewrite: What to do if rows of a table change without messages, for example if ALTER TABLE rewrites them:
            ``snapshot`` copies the table again, ``stop`` raises an error with the remedy.
        on_lost_slot: What to do if changes were lost, because the slot was dropped, invalidated or moved, or the server
            has another history: ``snapshot`` continues, if necessary with a new slot, and copies all tables again;
            ``stop`` raises an error with the remedy.
        handle_signals: Whether SIGINT and SIGTERM end the capture (in the main thread only).
        options: The options of START_REPLICATION, such as binary, messages and two_phase (ReplicationOptions).
            proto_version and streaming default to those of the log; in a new log, to the best that the server supports.
            They may differ from those of earlier captures into the log, which then records an event.

    Returns:
        The final progress. Its ``ended_by`` is ``until_lsn``, ``until_idle``, ``duration``, ``stop``, ``SIGINT`` or
        ``SIGTERM``.

    Raises:
        ReplicationError: The server, the slot, a publication or the connection does not fit or fails.
        ChangeLogError: The directory is in use, is damaged, or was replaced while the capture runs; the log lost a
            segment; the log's end is not in the server's history.
        DecodeError: A message is malformed; everything before it is in the log.
        PgoutputError: ``create_publication`` or ``publish`` has an invalid name or operation.
        ProtocolError: A message cannot come at that point of the stream; everything before it is in the log.
    """
    names, tables = _names(publications), _names(create_publication)
    new = NewPublication.parse(tables, _names(publish)) if tables else None
    writes = heartbeat is not None
    patience = Patience()
    holder = partial(connect, dsn, patience=patience) if snapshot else None
    plan = CapturePlan(
        slot, names, options, create_slot, failover, slot_timeout, new_log, new, holder, on_lost_slot, writes
    )
    beat = None if heartbeat is None else Heartbeat(heartbeat, transactional_heartbeat)
    callbacks = Callbacks(stop, on_progress)
    _return_large_buffers()
    with LogWriter(directory, limits) as writer, collected_signals(handle_signals) as received, callbacks:
        if file_mode is not None:
            writer.store.set_file_mode(file_mode)
        catalog = CatalogWatch(writer, slot, names, on_rewrite, snapshot)
        watch = SlotWatch(dsn, slot, names, status_interval, beat, catalog, on_lost_slot == "snapshot")
        progress = CaptureProgress(complete_lsn=writer.position.complete_lsn)
        with Copier(dsn, writer.store, names, workers, snapshot, status_interval) as copier, watch:
            catalog.on_copies_requested, copier.on_copied = copier.poll, catalog.repeat_facts
            copier.has_facts_of = catalog.has_facts_of

            def check() -> None:
                watch.check()
                copier.check()

            ending = Ending(
                until_lsn,
                callbacks.stopped,
                received,
                duration,
                until_idle,
                lambda: activity(progress),
                check,
                lambda first: catalog.is_settled(first) and not copier.busy,
            )
            patience.stop = ending.reason
            run = CaptureSession(
                dsn, plan, writer, ending, callbacks, progress, watch, catalog, copier, status_interval
            )
            return run.run(Retry(reconnect_seconds, ANSWER_SECONDS if ending.is_bounded else None))


def _names(given: Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


_M_MMAP_THRESHOLD = -3  # malloc.h
_THRESHOLD = 2**18


def _return_large_buffers() -> None:
    """Make glibc return freed buffers of 256 KB and more to the system; does nothing with other C libraries.

    By default glibc raises that threshold to the largest buffer that was ever freed. Buffers of batches then end up in
    the heap among small ones that live until their segment is written, and the process retains twice the memory that
    it uses.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _THRESHOLD)
