"""The function ``capture``: a slot's changes into a change log, made durable, and only then confirmed."""

import ctypes
from contextlib import suppress
from functools import partial

from pgoutput_construct._keywords import takes_fields
from pgoutput_construct.changelog.writer import LogWriter
from pgoutput_construct.postgres._capture.capture_options import CaptureOptions, names_of
from pgoutput_construct.postgres._capture.capture_session import Callbacks, CaptureSession, activity
from pgoutput_construct.postgres._capture.preparation import CapturePlan
from pgoutput_construct.postgres._capture.pump import CaptureProgress
from pgoutput_construct.postgres._capture.slot_watch import Heartbeat, SlotWatch
from pgoutput_construct.postgres._capture.transaction_tracker import Ending
from pgoutput_construct.postgres._catalog.catalog_watch import CatalogWatch
from pgoutput_construct.postgres._patience import ANSWER_SECONDS, Patience, collected_signals
from pgoutput_construct.postgres._retry import Retry
from pgoutput_construct.postgres._snapshot.copier import Copier
from pgoutput_construct.postgres.connection import connect
from pgoutput_construct.postgres.publications import NewPublication

__all__ = ["capture"]


@takes_fields(CaptureOptions)
def capture(dsn: str, options: CaptureOptions) -> CaptureProgress:
    """Capture a slot's changes into a change log; resume where the log ends.

    However the capture ends, everything that was received is made durable first, complete transactions are confirmed,
    and the connection is closed. Without a condition to end it runs forever: if the server is unreachable, also at the
    start, the capture reconnects, with pauses that grow to 30 seconds, and logs each kind of failure once (logger
    ``pgoutput_construct``). Permanent errors, such as a wrong password or a missing publication, are raised at once.

    Args:
        dsn: The connection string, as libpq reads it; its password appears in no error. In addition to the stream's
            connection there is an ordinary one, which polls the slot and the publications.
        options: The slot, the publications, the log, and all else, as positional or keyword arguments: see
            ``CaptureOptions``.

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
    patience = Patience()
    holder = partial(connect, dsn, patience=patience) if options.snapshot else None
    names, tables = names_of(options.publications), names_of(options.create_publication)
    new = NewPublication.parse(tables, names_of(options.publish)) if tables else None
    plan = CapturePlan(options, names, new, holder)
    callbacks = Callbacks(options.stop, options.on_progress)
    _return_large_buffers()
    with (
        LogWriter(options.directory, options.limits) as writer,
        collected_signals(options.handle_signals) as received,
        callbacks,
    ):
        if options.file_mode is not None:
            writer.store.set_file_mode(options.file_mode)
        catalog = CatalogWatch(writer, options.slot, names, options.on_rewrite, options.snapshot)
        progress = CaptureProgress(complete_lsn=writer.position.complete_lsn)
        interval = options.status_interval
        with (
            Copier(
                dsn, writer.store, names, options.workers, options.snapshot, interval, options.snapshot_rate
            ) as copier,
            _watch(dsn, plan, catalog) as watch,
        ):
            catalog.on_copies_requested, copier.on_copied = copier.poll, catalog.repeat_facts
            copier.has_facts_of = catalog.has_facts_of

            def check() -> None:
                watch.check()
                copier.check()

            ending = Ending(
                options.until_lsn,
                callbacks.stopped,
                received,
                options.duration,
                options.until_idle,
                lambda: activity(progress),
                check,
                lambda first: catalog.is_settled(first) and not copier.busy,
            )
            patience.stop = ending.reason
            run = CaptureSession(dsn, plan, writer, ending, callbacks, progress, watch, catalog, copier)
            return run.run(Retry(options.reconnect_seconds, ANSWER_SECONDS if ending.is_bounded else None))


def _watch(dsn: str, plan: CapturePlan, catalog: CatalogWatch) -> SlotWatch:
    options = plan.options
    beat = None if options.heartbeat is None else Heartbeat(options.heartbeat, options.transactional_heartbeat)
    recovers = options.on_lost_slot == "snapshot"
    return SlotWatch(dsn, plan.slot, plan.publications, options.status_interval, beat, catalog, recovers)


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
