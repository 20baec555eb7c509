"""One logical replication stream: frames in, status updates out, and nothing confirmed by itself."""

import sys
import threading
import time
from collections.abc import Iterator
from typing import Final, Self

import psycopg
from psycopg import pq

from pgoutput_construct.changelog.options import StreamOptions
from pgoutput_construct.columnar.envelope import Frames
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres.connection import describe_error
from pgoutput_construct.postgres.failures import ENDED, REFUSED, server_error
from pgoutput_construct.postgres.frames import FrameReader
from pgoutput_construct.postgres.notices import Notices
from pgoutput_construct.postgres.silence import Silence, sender_timeout
from pgoutput_construct.postgres.waiting import PatientConnection, result_of
from pgoutput_construct.wire import Lsn, PrimaryKeepalive, StandbyStatusUpdate, Timestamp, build_frame, parse_frame
from pgoutput_construct.wire.frames import Frame

__all__ = ["ReplicationStream", "start_command"]

_DRAIN_SECONDS = 3.0
_TIMEOUT_SHARE: Final = 4
"""A status goes out at least as many times in each wal_sender_timeout: one that is late must not be the last one."""


class ReplicationStream:
    """A running ``START_REPLICATION``; a context manager that owns its connection and closes it.

    A server ends a stream whose client has said nothing for ``wal_sender_timeout``, whatever keeps that busy. So
    statuses are sent by a thread of their own, whether or not somebody reads; all else is for one thread at a time.

    Source: PostgreSQL documentation, section "Streaming Replication Protocol". Only ``confirm`` moves the
    slot: every status update, also the prompt answer to a keepalive, repeats the last confirmed position. A
    frame with an empty payload is passed on as it is: PostgreSQL 13 sends one in place of an Origin whose
    name is gone (``pgoutput_begin_txn``).
    """

    def __init__(
        self,
        connection: PatientConnection,
        options: StreamOptions,
        start_lsn: Lsn | None = None,
        *,
        confirmed_lsn: Lsn | None = None,
        status_interval: float = 10.0,
        silence: Silence | None = None,
    ) -> None:
        """Start at ``start_lsn``, or where the slot is if later; raise ReplicationError where the server refuses.

        A status is sent every ``status_interval`` seconds, and at least four times in each of the server's
        ``wal_sender_timeout``.

        What is before ``start_lsn`` counts as confirmed, or what is before an earlier ``confirmed_lsn``.

        No SQL that looks at a published table (pg_publication_tables does) may have been run on ``connection``: the
        server would decode changes from before by the table's present columns, which it then has in its caches.
        ``silence`` says how long the server may send nothing, by default as long as its ``wal_sender_timeout``, and at
        least three times ``status_interval``.
        """
        options.check_server(connection.info.server_version)
        self._connection = connection
        self._layout = options.layout()
        self._pgconn = connection.pgconn
        allowed = sender_timeout(connection)
        self._interval = min(status_interval, allowed / _TIMEOUT_SHARE)
        self._status_sent = time.monotonic()
        start = start_lsn or Lsn(0)
        self._confirmed = start if confirmed_lsn is None else confirmed_lsn
        self.silence = silence or Silence(status_interval, allowed=allowed)
        """How long the server may send nothing."""
        self._notices = Notices(connection)
        # libpq lets one thread at a time use a connection; nobody has the lock while the server is waited for.
        self._lock = threading.Lock()
        self.frames = FrameReader(self._pgconn, lock=self._lock)
        """What takes the frames from libpq, and waits."""
        try:
            self._start(start_command(options, start))
        except BaseException:
            self.frames.close()
            raise
        self._single: Iterator[bytes] = iter(())
        self._closed = threading.Event()
        self._statuses = threading.Thread(target=self._send_statuses, name=f"statuses of {options.slot}", daemon=True)
        self._statuses.start()

    @property
    def confirmed_lsn(self) -> Lsn:
        """The position that the server was last told is durable."""
        return self._confirmed

    def drain(self, timeout: float, most: int = sys.maxsize) -> Frames:
        """Return the frames that are there as they came, ``most`` at most, waiting ``timeout`` seconds for the first.

        No frames after ``timeout`` mean that none came. Keepalives that ask for a reply are for the caller.
        Raises ReplicationError when the server ends the stream, skips changes or is silent for too long, and when the
        connection breaks; what came before was returned.
        """
        try:
            frames = self.frames.read(timeout, most)
            with self._lock:
                result = self._pgconn.get_result() if self.frames.ended and not frames else None
        except psycopg.Error as error:
            raise describe_error(error, "the replication connection broke") from error
        self._notices.check()
        if frames or self.frames.fed:
            self.silence.heard()
        if not frames and self.frames.ended:
            raise server_error(result, ENDED)
        if not frames:
            self.silence.check()
        return frames

    def hold(self, seconds: float) -> None:
        """Read nothing for a while, or until ``frames.wake``: a server whose frames nobody reads is not silent."""
        self.silence.heard()
        self.frames.pause(seconds)

    def read(self, timeout: float) -> Frame | None:
        """Return the next frame, mostly XLogData or PrimaryKeepalive, or None when none came in ``timeout`` seconds.

        Keepalives that ask for a reply are answered before they are returned. Raises as ``drain``, and DecodeError for
        a frame that is none.
        """
        data = next(self._single, None)
        if data is None:
            self._single = iter(self.drain(timeout))
            data = next(self._single, None)
        if data is None:
            return None
        frame = parse_frame(data, **self._layout)
        if isinstance(frame, PrimaryKeepalive) and frame.reply_requested:
            self.send_status()
        return frame

    def __iter__(self) -> Iterator[Frame]:
        while True:
            frame = self.read(self._interval)
            if frame is not None:
                yield frame

    def confirm(self, lsn: Lsn) -> None:
        """Tell the server that everything before ``lsn`` is durable here; a lower one changes nothing."""
        if lsn > self._confirmed:
            self._confirmed = lsn
            self.send_status()

    def send_status(self, *, reply_requested: bool = False) -> None:
        """Send a Standby Status Update with the confirmed position; a reply is a keepalive."""
        with self._lock:
            # Nothing is written before it is flushed, so the three positions are one: rows in memory must not
            # release a synchronous commit that waits for remote_write either.
            lsn = self._confirmed
            status = StandbyStatusUpdate(lsn, lsn, lsn, Timestamp.now(), int(reply_requested))
            self._status_sent = time.monotonic()
            self._send(build_frame(status, **self._layout))

    def close(self) -> None:
        """End the stream so that the server has read the last status, then close the connection."""
        self._closed.set()
        self._statuses.join()
        try:
            if not self._connection.closed:
                self._end_copy()
        except (ReplicationError, psycopg.Error):
            pass  # the server is gone: there is nobody to say goodbye to
        finally:
            self.frames.close()
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, command: bytes) -> None:
        try:
            self._pgconn.send_query(command)
            result = result_of(self._pgconn, self._connection.patience)
        except psycopg.Error as error:
            raise describe_error(error, "START_REPLICATION failed") from error
        if result is None or result.status != pq.ExecStatus.COPY_BOTH:
            while self._pgconn.get_result() is not None:
                pass  # so that the connection, which is still the caller's, can be used
            raise server_error(result, REFUSED)

    def _send_statuses(self) -> None:
        due = self._status_sent + self._interval
        while not self._closed.wait(due - time.monotonic()):
            if time.monotonic() >= self._status_sent + self._interval:
                try:
                    self.send_status(reply_requested=self.silence.asks())
                except ReplicationError:
                    return  # who reads is told so, after what came before
            due = self._status_sent + self._interval

    def _send(self, data: bytes) -> None:
        if self.frames.ended:
            return  # the server reads nothing more; the next ``drain`` raises its reason
        try:
            self._pgconn.put_copy_data(data)
            # What the path does not take now goes out with the next status, or when frames are read.
            self._pgconn.flush()
        except psycopg.Error as error:
            raise describe_error(error, "the replication connection broke") from error

    def _end_copy(self) -> None:
        self._pgconn.put_copy_end()
        deadline = time.monotonic() + _DRAIN_SECONDS
        while time.monotonic() < deadline:
            # While the server waits for us to read it does not read: take its bytes in, too.
            blocked = bool(self._pgconn.flush())
            length, _ = self._pgconn.get_copy_data(1)
            if length < 0:
                return
            if length == 0 and self.frames.wait(deadline - time.monotonic(), write=blocked):
                self._pgconn.consume_input()


def start_command(options: StreamOptions, start_lsn: Lsn) -> bytes:
    """Write the ``START_REPLICATION`` command that starts at ``start_lsn``, or where the slot is if later."""
    pairs = ", ".join(f"{_identifier(key)} {_literal(value)}" for key, value in _pairs(options).items())
    return f"START_REPLICATION SLOT {_identifier(options.slot)} LOGICAL {start_lsn} ({pairs})".encode()


def _pairs(options: StreamOptions) -> dict[str, str]:
    asked = {name: _text(value) for name, value in options.asked().items()}
    return {"proto_version": str(options.proto_version), "publication_names": _text(options.publications), **asked}


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(_identifier(name) for name in value)
    return "true" if value is True else str(value)


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    # Not psycopg's: replication commands (repl_scanner.l) have no E'' strings, a backslash is itself.
    return "'" + text.replace("'", "''") + "'"
