"""One capture: a log, and connections to its slot, one after the other, until the capture is to end."""

import logging
import math
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

import psycopg

from pgoutput_construct.changelog.footer import Position
from pgoutput_construct.changelog.options import LogOptions
from pgoutput_construct.changelog.writer import LogWriter
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres.announcements import announce, announce_slot
from pgoutput_construct.postgres.callbacks import Callbacks
from pgoutput_construct.postgres.catalog_watch import CatalogWatch
from pgoutput_construct.postgres.compilation import compile_kernels
from pgoutput_construct.postgres.connection import connect
from pgoutput_construct.postgres.copying.copier import Copier
from pgoutput_construct.postgres.ending import Ending
from pgoutput_construct.postgres.gaps import LogGapError, Recovery
from pgoutput_construct.postgres.intake import Intake
from pgoutput_construct.postgres.notices import LostPublicationError
from pgoutput_construct.postgres.overlap import Overlap, is_sent_alike
from pgoutput_construct.postgres.preparation import Plan, Prepared, check_same_server, prepare
from pgoutput_construct.postgres.pump import CaptureProgress, Pump
from pgoutput_construct.postgres.replication import ReplicationStream
from pgoutput_construct.postgres.retry import Retry
from pgoutput_construct.postgres.silence import Silence
from pgoutput_construct.postgres.slots import UndecodableSlotError, drop_slot, end_reader
from pgoutput_construct.postgres.waiting import Patience, PatientConnection, Stopped, in_background
from pgoutput_construct.postgres.watch import Watch

__all__ = ["Capturing", "activity"]

_LOG = logging.getLogger("pgoutput_construct")
_SLICE: Final = 0.1  # seconds
_MOST_REPLACED: Final = 10


@dataclass
class Capturing:
    """One call of ``capture``: one log, connections one after the other."""

    dsn: str
    plan: Plan
    writer: LogWriter
    ending: Ending
    callbacks: Callbacks[CaptureProgress]
    progress: CaptureProgress
    watch: Watch
    catalog: CatalogWatch
    copier: Copier
    status_interval: float
    _recovery: Recovery = field(default_factory=Recovery)
    _replaced: int = 0
    """Slots in a row that could not be decoded, and were replaced."""
    _transactions: int = 0
    """How many had come when the last of them was."""
    _reader: int | None = None
    """The walsender of the last stream."""
    _is_compiled: bool = False
    _has_compared: bool = False
    """The last stream was of the log's own options, and compared what could be compared."""

    def run(self, retry: Retry) -> CaptureProgress:
        """Capture until the end, over as many connections as it takes."""
        reason, before = None, self.writer.options.publications if self.writer.options else ()
        while reason is None:
            retry.begin(activity(self.progress))
            try:
                reason = self._connection(retry)
            except Stopped as asked:
                reason = str(asked)
            except LostPublicationError as error:
                with closing(connect(self.dsn, patience=Patience(asked=self.ending.reason))) as asking:
                    raise error.remedied(asking, self.plan.publications, before) from None
            except ReplicationError as error:
                self.progress.connected = False
                if retry.recurs(error, self.progress.transactions):
                    self._give_up(error)
                pause = retry.failed(error, activity(self.progress))
                self.progress.reconnects += 1
                self._report()
                reason = self._sleep(pause)
        self.progress.ended_by, self.progress.connected = reason, False
        self._report()
        return self.progress

    def _give_up(self, error: ReplicationError) -> None:
        """Have the next connection replace a slot that cannot be decoded, where that is asked for; raise otherwise.

        A slot that is created while the same transactions run may be another such one. But tables are not copied for
        ever where it is the server that is damaged: a few slots are replaced without a transaction in between.
        """
        if self.progress.transactions != self._transactions:
            self._replaced, self._transactions = 0, self.progress.transactions
        undecodable = UndecodableSlotError(self.plan.slot, error, self._replaced)
        if self.plan.on_lost_slot == "stop" or self._replaced == _MOST_REPLACED:
            raise undecodable from error
        self._replaced += 1
        self._recovery.gap = undecodable

    def _connection(self, retry: Retry) -> str | None:
        """Read the slot over one connection; return the reason of the end, None to connect again at once."""
        patience = Patience(asked=self.ending.reason)
        self._compile(patience)
        with closing(connect(self.dsn, patience=patience)) as asking:
            if self._reader is not None:
                end_reader(asking, self.plan.slot, self._reader)
            prepared = prepare(asking, self.plan, self.writer, self._recovery)
            if self._recovery.begun_anew:
                self.copier.begin_anew()
            if prepared.exported is not None:
                self.copier.use(prepared.exported)
            self.catalog.begin(asking, self._recovery.begun_anew)
            self._recovery.begun_anew = False
        if not prepared.created_slot:
            self._note_beginning(prepared)
        options, overlap = self._compared(prepared)
        connection = connect(self.dsn, patience=patience)
        try:
            stream = self._start(connection, replace(prepared, overlap=overlap), options, retry)
        except BaseException:
            connection.close()
            raise
        self._reader = connection.info.backend_pid
        retry.connected(f"slot {self.plan.slot!r} from {stream.confirmed_lsn}, timeline {prepared.options.timeline}")
        self.progress.connected = True
        self.progress.confirmed_lsn = max(stream.confirmed_lsn, prepared.confirmed_lsn)
        self._note_beginning(prepared)
        self.ending.connected(prepared.current_lsn)
        intake = Intake(options.layout(), self.writer.position, overlap)
        watched = self.ending, self.progress, self._report
        pump = Pump(self.writer, stream, intake, *watched, self.copier, self.catalog, self.status_interval)
        self.watch.start()  # it also sees whether a server that sends nothing is at work
        if options is not prepared.options:
            with stream:
                return self._compare(pump)
        announce(self.writer, prepared.options)
        if prepared.created_slot:
            announce_slot(self.writer, self.plan.slot, prepared.confirmed_lsn, prepared.snapshot)
        pump.synchronous = lambda: self.watch.synchronous
        pump.begin = lambda: self.copier.start(prepared.options, self.writer.noted_lsn)
        with stream:
            return self._unless_gap(pump.run)

    def _compare(self, pump: Pump) -> str | None:
        """Compare what the server sends under the log's own options; where it cannot, positions are all there is."""
        try:
            reason = self._unless_gap(pump.compare)
        except ReplicationError as error:
            if error.transient:
                raise
            reason = None
            if not pump.tracker.proved:
                _LOG.warning("the server's history is compared with the log's by positions alone: %s", error)
        self._has_compared = self._recovery.gap is None
        return reason

    def _unless_gap(self, run: Callable[[], str | None]) -> str | None:
        try:
            return run()
        except LogGapError as gap:
            if self.plan.on_lost_slot == "stop":
                raise
            self._recovery.gap = gap
            return None

    def _compared(self, prepared: Prepared) -> tuple[LogOptions, Overlap | None]:
        """Return under which options the next stream begins, and what is compared with the log by then.

        Under other publications or options the server sends other transactions. So a stream of the log's own is
        compared first, of which nothing is taken; the next one has those that were asked for.
        """
        options, overlap = prepared.options, prepared.overlap
        if overlap is None or is_sent_alike(overlap.options, options):
            return options, overlap
        if self._has_compared:
            self._has_compared = False
            return options, None
        own: Any = {"publications": overlap.options.publications, **overlap.options.replication_options()}
        return replace(options, **own), overlap

    def _compile(self, patience: Patience) -> None:
        """Compile the kernels, the first time, when a connection has shown that there will be a stream for them.

        It takes long, and is done before that stream and before a slot is created: no server waits meanwhile.
        """
        if not self._is_compiled:
            connect(self.dsn, patience=patience).close()
            in_background(compile_kernels, Patience(math.inf, patience.asked), lambda _: None)
            self._is_compiled = True

    def _start(
        self, connection: PatientConnection, prepared: Prepared, options: LogOptions, retry: Retry
    ) -> ReplicationStream:
        silence = Silence(self.status_interval, silent_before=retry.silent, seen_working=self.watch.seen_working)
        start, confirmed = self.writer.position.complete_lsn, None
        if prepared.overlap is not None:
            start, confirmed = prepared.overlap.start_lsn, prepared.overlap.slot_lsn
        given: Any = {"status_interval": self.status_interval, "silence": silence}
        check_same_server(connection, prepared.options)
        try:
            return ReplicationStream(connection, options, start, confirmed_lsn=confirmed, **given)
        except ReplicationError:
            if prepared.created_slot:  # or it would hold WAL for a capture that never was
                with suppress(ReplicationError, psycopg.Error):
                    drop_slot(connection, self.plan.slot)
                    self.writer.note_slot(None)
            raise

    def _note_beginning(self, prepared: Prepared) -> None:
        """Write down where an empty log begins: it is then no place that was found empty, also before a segment."""
        if not self.writer.noted_lsn:
            self.writer.cut(Position(complete_lsn=prepared.confirmed_lsn))
            self.writer.collect(wait=True)

    def _sleep(self, seconds: float) -> str | None:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if reason := self.ending.reason():
                return reason
            time.sleep(min(_SLICE, left))
        return None

    def _report(self) -> None:
        self.progress.health, self.progress.copies = self.watch.health, self.copier.progress()
        self.callbacks.report(replace(self.progress))


def activity(progress: CaptureProgress) -> int:
    """Return a number that grows with whatever the server sends."""
    return progress.payload_bytes + progress.dropped
