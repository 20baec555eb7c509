"""From a slot into the change log: captured, made durable, and only then confirmed."""

import ctypes
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Unpack

from pgoutput_construct.changelog._store.store import Address
from pgoutput_construct.changelog.writer import LogWriter, SegmentLimits
from pgoutput_construct.postgres._capture.capture_session import Callbacks, CaptureSession, Retry, activity
from pgoutput_construct.postgres._capture.gaps import OnLostSlot
from pgoutput_construct.postgres._capture.preparation import CapturePlan
from pgoutput_construct.postgres._capture.pump import CaptureProgress
from pgoutput_construct.postgres._capture.slot_watch import Heartbeat, SlotWatch
from pgoutput_construct.postgres._capture.transaction_tracker import Ending
from pgoutput_construct.postgres._catalog.catalog_watch import CatalogWatch, OnRewrite
from pgoutput_construct.postgres._patience import Patience, collected_signals
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

    However it ends, what was received is made durable first, what is complete is confirmed, and the connection closed.
    ``ended_by`` of the progress that is returned is the reason: ``until_lsn``, ``until_idle``, ``duration``, ``stop``,
    ``SIGINT`` or ``SIGTERM``. Without one it goes on for ever: a server that is away, also at the start, is waited
    for, with pauses that grow to 30 seconds. Each such state is logged once (logger ``pgoutput_construct``). What
    cannot pass by itself, such as a wrong password or a missing publication, is raised at once.

    Args:
        dsn: The connection string, as libpq reads it; its password appears in no error. Beside the connection of the
            stream there is an ordinary one, which looks at the slot and the publications.
        slot: The replication slot, which must exist (``create_slot``).
        publications: The publications, which must exist, and be older than the slot. They may be others than in
            earlier captures into the log: an event in the log tells.
        directory: The address of the change log: a directory, which is made where there is none, or a URI.
        limits: When a segment is cut.
        until_lsn: The position up to which changes are captured; None to go on.
        until_idle: Ends when the server had nothing more to send for so many seconds.
        duration: Ends after so many seconds.
        stop: Asked about every 50 ms; True ends the capture.
        on_progress: Called after each segment, and about each second. Both are called on a thread of their own, so
            that a slow one keeps nobody from reading the stream; what happens meanwhile is shown together.
        create_slot: Create the slot where there is none and the log is empty. It waits for the transactions that
            write now, which are logged.
        failover: Standbys keep a copy of the slot that is created, with which a capture goes on after a failover
            (PostgreSQL 17; the standby needs ``sync_replication_slots``).
        slot_timeout: Seconds after which the creation of the slot is given up; None to wait as long as it takes.
        new_log: Begin a log in an empty directory with a slot that this log's capture has not created, which is refused
            otherwise: the log may be on a volume that is not mounted, and what was confirmed does not come again.
        create_publication: Tables, as in SQL, and ``schema.*`` for all of a schema (PostgreSQL 15, by a superuser), for
            which the one publication that is named is created where it does not exist. Each table needs a replica
            identity, unless ``publish`` leaves out updates and deletes.
        publish: What a publication that is created publishes: ``insert``, ``update``, ``delete``, ``truncate``. All
            of them where it is left out.
        file_mode: The mode of the log's files, such as 0o640: of those that it has, and of those that anything writes
            into it from now on. Where none was ever given, 0o600; directories that are made have 0o700.
        heartbeat: Seconds between two logical messages (prefix ``pgoutput_construct``) that the capture writes, so that
            the slot moves while nobody else writes. The role needs no right to any table. A standby takes none.
        transactional_heartbeat: They are transactions of their own, with Begin and Commit.
        status_interval: Seconds between two status updates to the server, and between two looks at the slot. A
            server that is silent for three of them, though asked, is left, and connected to again, unless it is seen at
            work for the slot: it may decode for hours what is not published.
        reconnect_seconds: For how long after the last contact a connection is made again; None: for ever.
        snapshot: The log is to hold every table that is published from its first row: those that it has no copy of are
            copied beside the stream, now and when they are published later. A slot that is created gives the snapshot.
            ``until_lsn`` and ``until_idle`` end the capture only when all copies are durable. The role needs SELECT on
            the tables. Without it only the copies are made that ``snapshot()`` asks for.
        workers: Over how many connections tables are copied.
        on_rewrite: What to do when rows of a table change that the stream does not send, as where ALTER TABLE rewrites
            them: ``snapshot`` has the table copied again, ``stop`` ends with the reason and the remedy.
        on_lost_slot: What to do when changes are missing, since the slot is gone, was invalidated or moved, or the
            server has another history: ``snapshot`` goes on, with a new slot where that is needed, and has all tables
            copied again; ``stop`` ends with the reason and the remedy.
        handle_signals: Whether SIGINT and SIGTERM end the capture (only in the main thread).
        options: The options of START_REPLICATION, such as binary, messages and two_phase (ReplicationOptions).
            proto_version and streaming that are left open are as the log has them; in a new log, the best that the
            server knows. They may change from one capture into the log to the next: an event in the log tells.

    Raises:
        ReplicationError: The server, the slot, a publication or the connection is not as it must be.
        ChangeLogError: The directory is in use, damaged, or exchanged while the capture runs; the log has lost a
            segment; the log's end is not in the server's history.
        DecodeError: A message that is none; what came before it is in the log.
        PgoutputError: A name or an operation in ``create_publication`` or ``publish`` that is none.
        ProtocolError: A message that cannot come where it stands; what came before it is in the log.
    """
    names, tables = _names(publications), _names(create_publication)
    new = NewPublication.parse(tables, _names(publish)) if tables else None
    writes = heartbeat is not None
    asked = Patience()
    holder = partial(connect, dsn, patience=asked) if snapshot else None
    plan = CapturePlan(
        slot, names, options, create_slot, failover, slot_timeout, new_log, new, holder, on_lost_slot, writes
    )
    beat = None if heartbeat is None else Heartbeat(heartbeat, transactional_heartbeat)
    callbacks = Callbacks(stop, on_progress)
    _return_large_buffers()
    with LogWriter(directory, limits) as writer, collected_signals(handle_signals) as received, callbacks:
        if file_mode is not None:
            writer.store.set_file_mode(file_mode)
        catalog = CatalogWatch(writer, slot, names, on_rewrite)
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
            asked.asked = ending.reason
            run = CaptureSession(
                dsn, plan, writer, ending, callbacks, progress, watch, catalog, copier, status_interval
            )
            return run.run(Retry(reconnect_seconds))


def _names(given: Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


_M_MMAP_THRESHOLD = -3  # malloc.h
_THRESHOLD = 2**18


def _return_large_buffers() -> None:
    """Have glibc give every freed buffer of 256 KB and more back to the system; elsewhere nothing happens.

    By itself it raises that limit to the largest buffer that was ever freed. The buffers of batches then lie among
    small ones that live until their segment is written, and the process keeps twice the memory that it uses.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _THRESHOLD)
