"""One capture: a log, and connections to its slot, one after the other, until the capture is to end."""

import time
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Final

import psycopg

from pgoutput_construct.changelog.footer import Position
from pgoutput_construct.changelog.writer import LogWriter
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres.announcements import announce, announce_slot
from pgoutput_construct.postgres.callbacks import Callbacks
from pgoutput_construct.postgres.catalog_watch import CatalogWatch
from pgoutput_construct.postgres.connection import connect
from pgoutput_construct.postgres.copying.copier import Copier
from pgoutput_construct.postgres.ending import Ending
from pgoutput_construct.postgres.intake import Intake
from pgoutput_construct.postgres.preparation import Plan, Prepared, check_same_server, prepare
from pgoutput_construct.postgres.pump import CaptureProgress, Pump
from pgoutput_construct.postgres.replication import ReplicationStream
from pgoutput_construct.postgres.retry import Retry
from pgoutput_construct.postgres.silence import Silence
from pgoutput_construct.postgres.slots import drop_slot
from pgoutput_construct.postgres.waiting import Patience, PatientConnection, Stopped
from pgoutput_construct.postgres.watch import Watch

__all__ = ["Capturing", "activity"]

_SLICE: Final = 0.1  # seconds


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

    def run(self, retry: Retry) -> CaptureProgress:
        """Capture until the end, over as many connections as it takes."""
        reason = None
        while reason is None:
            retry.begin(activity(self.progress))
            try:
                reason = self._connection(retry)
            except Stopped as asked:
                reason = str(asked)
            except ReplicationError as error:
                self.progress.connected = False
                pause = retry.failed(error, activity(self.progress))
                self.progress.reconnects += 1
                self._report()
                reason = self._sleep(pause)
        self.progress.ended_by, self.progress.connected = reason, False
        self._report()
        return self.progress

    def _connection(self, retry: Retry) -> str:
        patience = Patience(asked=self.ending.reason)
        with closing(connect(self.dsn, patience=patience)) as asking:
            prepared = prepare(asking, self.plan, self.writer)
            if prepared.begun_anew:
                self.copier.begin_anew()
            if prepared.exported is not None:
                self.copier.use(prepared.exported)
            self.catalog.begin(asking, prepared.begun_anew)
        if not prepared.created_slot:
            self._note_beginning(prepared)
        connection = connect(self.dsn, patience=patience)
        try:
            stream = self._start(connection, prepared, Silence(self.status_interval, silent_before=retry.silent))
        except BaseException:
            connection.close()
            raise
        retry.connected(f"slot {self.plan.slot!r} from {stream.confirmed_lsn}, timeline {prepared.options.timeline}")
        self.progress.connected = True
        self.progress.confirmed_lsn = max(stream.confirmed_lsn, prepared.confirmed_lsn)
        self._note_beginning(prepared)
        announce(self.writer, prepared.options)
        if prepared.created_slot:
            announce_slot(self.writer, self.plan.slot, prepared.confirmed_lsn, prepared.snapshot)
        self.catalog.append_news(between=True)
        self.watch.start()
        self.copier.start(prepared.options)
        self.ending.connected(prepared.current_lsn)
        intake = Intake(prepared.options.layout(), self.writer.position)
        watched = self.ending, self.progress, self._report
        pump = Pump(self.writer, stream, intake, *watched, self.copier, self.catalog, self.status_interval)
        pump.synchronous = lambda: self.watch.synchronous
        with stream:
            return pump.run()

    def _start(self, connection: PatientConnection, prepared: Prepared, silence: Silence) -> ReplicationStream:
        start = self.writer.position.complete_lsn
        check_same_server(connection, prepared.options)
        try:
            return ReplicationStream(
                connection, prepared.options, start, status_interval=self.status_interval, silence=silence
            )
        except ReplicationError:
            if prepared.created_slot:  # or it would hold WAL for a capture that never was
                with suppress(ReplicationError, psycopg.Error):
                    drop_slot(connection, self.plan.slot)
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
