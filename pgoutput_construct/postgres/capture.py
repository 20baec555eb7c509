"""From a slot into the change log: captured, made durable, and only then confirmed."""

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import psycopg

from pgoutput_construct.changelog.options import LogOptions, best_proto_version
from pgoutput_construct.changelog.writer import LogWriter, SegmentLimits
from pgoutput_construct.errors import ChangeLogError, ReplicationError
from pgoutput_construct.postgres import slots
from pgoutput_construct.postgres.connection import connect
from pgoutput_construct.postgres.pump import CaptureProgress, Ending, Pump
from pgoutput_construct.postgres.replication import ReplicationStream
from pgoutput_construct.postgres.transactions import TransactionTracker
from pgoutput_construct.stream import Session
from pgoutput_construct.wire import Lsn
from pgoutput_construct.wire.protocol import OPTIONS, GivenOptions

__all__ = ["capture"]

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_FIRST_WAIT = 10.0  # seconds: how long a reader that was killed may go on holding the slot


def capture(
    dsn: str,
    slot: str,
    publications: Iterable[str],
    directory: str | Path,
    *,
    limits: SegmentLimits | None = None,
    until_lsn: Lsn | None = None,
    stop: Callable[[], bool] | None = None,
    on_progress: Callable[[CaptureProgress], None] | None = None,
    status_interval: float = 10.0,
    reconnect_seconds: float = 60.0,
    handle_signals: bool = True,
    **options: Unpack[GivenOptions],
) -> CaptureProgress:
    """Capture a slot's changes into a change log; resume where the log ends.

    It ends when everything before ``until_lsn`` is durable, when ``stop()`` returns True, or on SIGINT or SIGTERM (in
    the main thread): then what was received is published, what is complete is confirmed, and the connection closed.

    Args:
        dsn: The connection string, as libpq reads it; its password appears in no error.
        slot: The replication slot, which must exist (create_slot).
        publications: The publications, which must exist, and be older than the slot.
        directory: The directory of the change log; it is made where there is none.
        limits: When a segment is cut.
        until_lsn: The position up to which changes are captured; None to go on.
        stop: Asked about every 50 ms; True ends the capture.
        on_progress: Called after each segment, and about each second.
        status_interval: Seconds between two status updates to the server.
        reconnect_seconds: For how long a lost connection is made again.
        handle_signals: Whether SIGINT and SIGTERM end the capture.
        options: The options of START_REPLICATION, such as binary, messages and two_phase (ReplicationOptions).
            proto_version and streaming that are left open are as the log has them; in a new log, the best that the
            server knows.

    Raises:
        ReplicationError: The server, the slot, a publication or the connection is not as it must be.
        ChangeLogError: The directory is in use, or damaged, or its log has other options.
        DecodeError: A message that is none; what came before it is in the log.
        ProtocolError: A message that cannot come where it stands; what came before it is in the log.
    """
    names = (publications,) if isinstance(publications, str) else tuple(publications)
    with LogWriter(directory, limits) as writer, _signals(handle_signals) as received:
        progress = CaptureProgress(complete_lsn=writer.position.complete_lsn)
        ending = Ending(until_lsn, stop, received)
        run = _Capture(dsn, slot, names, options, writer, ending, on_progress, progress)
        return run.run(status_interval, reconnect_seconds)


@dataclass
class _Capture:
    """One call of ``capture``: one log, connections one after the other."""

    dsn: str
    slot: str
    publications: tuple[str, ...]
    options: GivenOptions
    writer: LogWriter
    ending: Ending
    on_progress: Callable[[CaptureProgress], None] | None
    progress: CaptureProgress
    last_contact: float | None = None

    def run(self, status_interval: float, reconnect_seconds: float) -> CaptureProgress:
        """Capture until the end, over as many connections as it takes."""
        began = time.monotonic()
        pause = _SHORTEST_PAUSE
        reason = None
        while reason is None:
            attempt = time.monotonic()
            try:
                reason = self._connection(status_interval)
            except ReplicationError as error:
                self._consider(error, began, reconnect_seconds)
                lasted = time.monotonic() - attempt
                pause = _SHORTEST_PAUSE if lasted > _LONGEST_PAUSE else min(pause * 2, _LONGEST_PAUSE)
                self.progress.reconnects += 1
                self._report()
                reason = self._sleep(pause)
        self.progress.ended_by = reason
        self._report()
        return self.progress

    def _connection(self, status_interval: float) -> str:
        connection = connect(self.dsn)
        start = self.writer.position.complete_lsn
        try:
            options = self._check(connection)
            stream = ReplicationStream(connection, options, start, status_interval=status_interval)
        except BaseException:
            connection.close()
            raise
        tracker = TransactionTracker(Session(**options.layout()), self.writer.position)
        pump = Pump(self.writer, stream, tracker, self.ending, self.progress, self._report, status_interval)
        with stream:
            try:
                return pump.run()
            finally:
                self.last_contact = time.monotonic()

    def _check(self, connection: psycopg.Connection[Any]) -> LogOptions:
        server = slots.identify(connection)
        slots.check_wal_level(connection)
        slots.check_publications(connection, self.publications)
        confirmed = slots.check_slot(connection, self.slot)
        options = self._resolve(server, self.writer.options)
        self.writer.use(options)
        self._check_positions(confirmed, slots.current_lsn(connection))
        return options

    def _resolve(self, server: dict[str, Any], earlier: LogOptions | None) -> LogOptions:
        """Fill in what was left open: as the log has it, or else the best that the server knows."""
        given: dict[str, Any] = {name: value for name, value in self.options.items() if value is not None}
        version = server["server_version"]
        proto = given.get("proto_version") or (earlier.proto_version if earlier else best_proto_version(version))
        best = [name for name, value in OPTIONS["streaming"].values.items() if proto >= value.since][-1]
        defaults = {"proto_version": proto, "streaming": earlier.streaming if earlier else best}
        return LogOptions(slot=self.slot, publications=self.publications, **server, **{**defaults, **given})

    def _check_positions(self, confirmed: Lsn, current: Lsn) -> None:
        noted = self.writer.noted_lsn
        if noted and confirmed > noted:
            raise ChangeLogError(
                f"slot {self.slot!r} is at {confirmed}, but the log in {self.writer.store} ends "
                f"at {noted}: the slot was re-created, or moved by another reader, and the changes between are "
                "not in the log; begin a new log in an empty directory with a new copy of the tables"
            )
        if noted > current:
            raise ChangeLogError(
                f"the server's WAL ends at {current}, before the log in {self.writer.store} does "
                f"({noted}): the server has lost WAL, or was restored from a backup; begin a new log in an "
                "empty directory with a new copy of the tables"
            )

    def _consider(self, error: ReplicationError, began: float, reconnect_seconds: float) -> None:
        """Raise the error unless trying again may help; at first, only a slot in use is waited for."""
        if self.last_contact is None:
            since, patience = began, min(_FIRST_WAIT, reconnect_seconds)
            passing = error.sqlstate == "55006"
        else:
            since, patience, passing = self.last_contact, reconnect_seconds, error.transient
        if not passing or time.monotonic() - since >= patience:
            raise error

    def _sleep(self, seconds: float) -> str | None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if reason := self.ending.reason():
                return reason
            time.sleep(_SHORTEST_PAUSE)
        return None

    def _report(self) -> None:
        if self.on_progress is not None:
            self.on_progress(replace(self.progress))


@contextmanager
def _signals(handle: bool) -> Iterator[list[str]]:
    """Collect the names of SIGINT and SIGTERM; a second signal does what it would have done before."""
    received: list[str] = []
    if not handle or threading.current_thread() is not threading.main_thread():
        yield received
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    def note(number: int, _frame: object) -> None:
        received.append(signal.Signals(number).name)
        restore()

    for number in numbers:
        signal.signal(number, note)
    try:
        yield received
    finally:
        restore()
