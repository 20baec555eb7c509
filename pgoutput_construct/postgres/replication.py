"""One logical replication stream: frames in, status updates out, and nothing confirmed by itself."""

import logging
import math
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, Self

import psycopg
from psycopg import pq

from pgoutput_construct.catalog_queries import SENDER_TIMEOUT, WORKING_PROCESS
from pgoutput_construct.changelog.log_options import StreamOptions
from pgoutput_construct.columnar.envelope import Frames
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres._frames import FrameReader
from pgoutput_construct.postgres._waiting import PatientConnection, result_of
from pgoutput_construct.postgres.connection import ask, ask_one, connect, describe_error, is_transient
from pgoutput_construct.postgres.publications import LostPublicationError, Notices
from pgoutput_construct.wire import Lsn, PrimaryKeepalive, StandbyStatusUpdate, Timestamp, build_frame, parse_frame
from pgoutput_construct.wire.frames import Frame

__all__ = [
    "DecodingError",
    "ReplicationStream",
    "Silence",
    "SilentServerError",
    "is_at_work",
    "start_command",
]


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
        silence: "Silence | None" = None,
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
        allowed = _sender_timeout(connection)
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
            raise _server_error(result, _ENDED)
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
            raise _server_error(result, _REFUSED)

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
    asked = {name: _text(value) for name, value in options.non_default().items()}
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


_ENDED = "the server ended the stream"
_REFUSED = "the server refused START_REPLICATION"

_INTERNAL: Final = re.compile("XX...|58P01")
"""Internal errors, damaged data, and a file that the decoder needs and that is missing, as a WAL segment."""

_PLUGIN: Final = b"pgoutput"
"""Named by the error of a server that cannot load its output plugin, as while its package is replaced: the slot is
as good as before. (Errors of the plugin itself name it in their context.)"""
_UNLOADED: Final = (
    "the server cannot load its output plugin: see to its installation (and its dynamic_library_path), then try again; "
    "the slot is as it was"
)

_REMEDIES = {
    "42704": "create what is missing; a publication must exist before the changes that it publishes are made",
    "55006": "stop the other reader of this slot, or wait until the server notices that it is gone",
    "55000": "if the slot was invalidated: drop it, create it, begin a new log with an initial copy of the tables, "
    "or capture with --on-lost-slot snapshot (on_lost_slot='snapshot')",
    "42501": "the role needs the attribute REPLICATION: ALTER ROLE ... REPLICATION",
}
_TOO_LARGE = ("invalid memory alloc request size", "Cannot enlarge string buffer")
"""What PostgreSQL says where a message would have 1 GB or more (MaxAllocSize; palloc, enlargeStringInfo). The latter is
a DETAIL: the error itself is "out of memory" up to PostgreSQL 16."""
_BINARY = (
    "a row is larger than 1 GB as text, as a bytea is whose hexadecimal text has twice its bytes: capture with the "
    "option binary (binary=True, --binary), which the log takes as it is; what is larger than 1 GB in binary format, "
    "too, must be left out of the publication by a list of columns"
)


class DecodingError(ReplicationError):
    """The server met an internal error while it decoded, or began to: the next attempt passes it, or meets it again."""


def _server_error(result: Any, what: str) -> ReplicationError:
    """Turn the result that ended a stream, or refused it (``what``), into an error with a remedy."""
    if result is None or result.status not in {pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.NONFATAL_ERROR}:
        return ReplicationError(f"{what} without an error: it is shutting down", transient=True)
    state = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode("ascii", "replace") or None
    primary = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or result.error_message or b""
    detail = result.error_field(pq.DiagnosticField.MESSAGE_DETAIL) or b""
    said = b"; ".join(part.strip() for part in (primary, detail) if part)
    text = f"{what}: {said.decode('utf-8', 'replace')}"
    transient = state is None or is_transient(state)
    if state == "42704" and what == _ENDED:
        return LostPublicationError(text, sqlstate=state)
    if any(words in text for words in _TOO_LARGE):
        text += f" ({_BINARY})"
    elif state in _REMEDIES:
        text += f" ({_REMEDIES[state]})"
    elif state is not None and _INTERNAL.fullmatch(state):
        if _PLUGIN in said:
            return ReplicationError(f"{text} ({_UNLOADED})", sqlstate=state, transient=transient)
        return DecodingError(text, sqlstate=state, transient=True)  # for a few times: see Retry
    return ReplicationError(text, sqlstate=state, transient=transient)


_LOG = logging.getLogger("pgoutput_construct")
_INTERVALS = 3


class Silence:
    """Follows one stream: when it last sent something, when to ask it to, and when to give it up."""

    def __init__(
        self,
        interval: float,
        *,
        allowed: float | None = None,
        silent_before: int = 0,
        seen_working: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """Ask after each ``interval`` of silence, and give up after three of them.

        Args:
            interval: Seconds.
            allowed: Seconds of silence that the server's settings allow (``_sender_timeout``): it is not given up
                before. None to ask ``seen_working`` instead.
            silent_before: How many connections in a row ended in silence: each doubles the limit.
            seen_working: Returns when the server was last seen at work for this stream, in seconds of
                ``time.monotonic``; called often while it is silent.
        """
        self.interval = interval
        self.limit = max(_INTERVALS * interval * 2**silent_before, allowed or 0.0)
        """Seconds without a sign of life after which the server is given up."""
        self._seen_working = seen_working
        self._heard = self._asked = time.monotonic()
        self._said = False

    def heard(self) -> None:
        """Note that the server sent something."""
        self._heard = time.monotonic()
        self._said = False

    def asks(self) -> bool:
        """Return whether to ask for an answer now: it was silent for one interval, and was not asked in this one."""
        now = time.monotonic()
        if now - max(self._heard, self._asked) < self.interval:
            return False
        self._asked = now
        return True

    def check(self) -> None:
        """Raise SilentServerError when the server was silent for too long, and is not seen at work."""
        now = time.monotonic()
        if now - self._heard < self.interval:
            return
        seen = self._seen_working()
        if now - max(self._heard, seen) >= self.limit:
            raise SilentServerError(now - self._heard)
        if now - self._heard < self.limit:
            return
        if not self._said:
            self._said = True
            _LOG.warning(
                "the server has sent nothing for %.3g seconds, but is at work for the slot: it decodes what is not "
                "published; waiting for it",
                now - self._heard,
            )


class SilentServerError(ReplicationError):
    """A server that was asked and did not answer; connecting again may help."""

    def __init__(self, seconds: float) -> None:
        """Report that it was silent for ``seconds``."""
        super().__init__(
            f"the server has sent nothing for {seconds:.3g} seconds, though it was asked: the path to it is dead, or "
            "it hangs",
            transient=True,
        )


def _sender_timeout(connection: psycopg.Connection[Any]) -> float:
    """Return for how many seconds a walsender waits for its client (wal_sender_timeout), and may be silent itself.

    Infinity where it waits for ever: then TCP alone says that it is gone.
    """
    return float(ask_one(connection, SENDER_TIMEOUT)) or math.inf


def is_at_work(dsn: str, pid: int) -> bool:
    """Return whether a new connection shows the server's process ``pid`` at work; False where none can be had."""
    try:
        with connect(dsn, replication=False) as connection:
            found = ask(connection, WORKING_PROCESS, pid=pid)
    except (ReplicationError, psycopg.Error):
        return False
    return any(row["is_at_work"] for row in found)
