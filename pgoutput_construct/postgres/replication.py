"""One logical replication stream: frames in, status updates out; only ``confirm`` advances the slot."""

import logging
import math
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, Self

import psycopg
from psycopg import pq

from pgoutput_construct.catalog_queries import SENDER_TIMEOUT, WORKING_PROCESS
from pgoutput_construct.changelog.log_options import StreamOptions
from pgoutput_construct.columnar.envelope import Frames
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres._frames import FrameReader
from pgoutput_construct.postgres._patience import Patience, PatientConnection, failed_result, result_of
from pgoutput_construct.postgres.connection import connect, describe_error, fetch_named, fetch_value, is_transient
from pgoutput_construct.postgres.publications import LostPublicationError, Notices
from pgoutput_construct.postgres.replication_slots import slot_health
from pgoutput_construct.wire import Lsn, PrimaryKeepalive, StandbyStatusUpdate, Timestamp, build_frame, parse_frame

if TYPE_CHECKING:
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
"""The minimum number of status updates per wal_sender_timeout, so that a late one does not end the stream."""


class ReplicationStream:
    """A running ``START_REPLICATION``; a context manager that owns its connection and closes it.

    A server ends a stream whose client has been silent for ``wal_sender_timeout``. So a thread of its own sends status
    updates, whether or not anyone reads; all other methods are for one thread at a time.

    Source: PostgreSQL documentation, section "Streaming Replication Protocol". Every status update, including the
    prompt reply to a keepalive, repeats the last LSN of ``confirm``. A frame with an empty payload is passed on:
    PostgreSQL 13 sends one instead of an Origin whose name no longer exists (``pgoutput_begin_txn``).
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
        """Start the stream.

        Args:
            connection: A replication connection, which the stream then owns. No query about a published table (such as
                one on pg_publication_tables) may have been run on it: the server would have the table's current columns
                in its caches, and decode earlier changes by them.
            options: The slot, the publications and the options of START_REPLICATION.
            start_lsn: The LSN from which to decode; the server uses the slot's confirmed LSN if that is later.
            confirmed_lsn: The LSN that status updates repeat until ``confirm``; ``start_lsn`` by default.
            status_interval: Seconds between two status updates; they are sent at least four times per
                ``wal_sender_timeout`` of the server.
            silence: How long the server may be silent; by default its ``wal_sender_timeout``, and at least three
                times ``status_interval``.

        Raises:
            ReplicationError: The server does not support the options, or refuses the command.
        """
        options.check_server(connection.info.server_version)
        self._connection = connection
        self._layout = options.layout()
        self._pgconn = connection.pgconn
        allowed = _sender_timeout(connection)
        self._interval = min(status_interval, allowed / _TIMEOUT_SHARE)
        self._status_sent = time.monotonic()
        start = start_lsn or Lsn(0)
        self._confirmed = self._told = start if confirmed_lsn is None else confirmed_lsn
        self.silence = silence or Silence(status_interval, allowed=allowed)
        """How long the server may be silent."""
        self._notices = Notices(connection)
        # Only one thread at a time may use a libpq connection; the lock is not held while waiting for the server.
        self._lock = threading.RLock()  # a signal handler may close a stream while its thread confirms
        self.frames = FrameReader(self._pgconn, lock=self._lock)
        """Reads frames from libpq."""
        try:
            self._start(options.slot, start_command(options, start))
        except BaseException:
            self.frames.close()
            raise
        self._single: Iterator[bytes] = iter(())
        self._closed = threading.Event()
        self._statuses = threading.Thread(target=self._send_statuses, name=f"status of {options.slot}", daemon=True)
        self._statuses.start()

    @property
    def confirmed_lsn(self) -> Lsn:
        """The LSN that was last confirmed to the server."""
        return self._told

    def drain(self, timeout: float, most: int = sys.maxsize) -> Frames:
        """Return the available frames, at most ``most``; wait up to ``timeout`` seconds for the first one.

        Returns no frames if none arrived. The caller must reply to keepalives that request it. Raises ReplicationError
        if the server ends the stream, skips changes or is silent for too long, or the connection breaks, after
        everything before has been returned.
        """
        was_read_ahead = self.frames.is_reading_ahead
        try:
            frames = self.frames.read(timeout, most)
            with self._lock:
                has_ended = self.frames.ended and not frames
                result = result_of(self._pgconn, self._connection.patience) if has_ended else None
        except psycopg.Error as error:
            raise describe_error(error, "the replication connection broke") from error
        self._notices.check()
        if frames or self.frames.fed:
            self.silence.note_activity()
        if not frames and self.frames.ended:
            raise _server_error(result, _ENDED)
        if not frames and not was_read_ahead:  # which may have ended long ago
            self.silence.check()
        return frames

    def pause(self, seconds: float) -> None:
        """Read nothing for ``seconds``, or until ``frames.wake``; the server does not count as silent meanwhile."""
        self.silence.note_activity()
        self.frames.pause(seconds)

    def read(self, timeout: float) -> "Frame | None":
        """Return the next frame, usually XLogData or PrimaryKeepalive, or None if none arrives in ``timeout`` seconds.

        Replies to keepalives that request it. Raises as ``drain``, and DecodeError for a malformed frame.
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

    def __iter__(self) -> Iterator["Frame"]:
        while True:
            frame = self.read(self._interval)
            if frame is not None:
                yield frame

    def confirm(self, lsn: Lsn, *, together: float = 0.0) -> None:
        """Confirm to the server that everything before ``lsn`` is durable; does nothing for a lower LSN.

        Args:
            lsn: The LSN.
            together: Seconds after the last status within which none is sent for this LSN alone: the server's process
                wakes up for each. The next status has it: another confirmation's, ``send_confirmed``'s, or the one
                that is due.
        """
        if lsn > self._confirmed:
            self._confirmed = lsn
            if not (together and self.frames.is_reading_ahead):  # which has the connection
                self.send_confirmed(together=together)

    def send_confirmed(self, *, together: float = 0.0) -> None:
        """Send a status if an LSN was confirmed since the last one, and ``together`` seconds have passed since that."""
        if self._confirmed > self._told and (not together or time.monotonic() >= self._status_sent + together):
            self.send_status()

    def send_status(self, *, reply_requested: bool = False) -> None:
        """Send a Standby Status Update with the confirmed LSN; the server replies with a keepalive if requested."""
        with self._lock:
            # write_lsn and apply_lsn equal flush_lsn: payloads in memory must not release a synchronous commit that
            # waits for remote_write.
            lsn = self._confirmed
            status = StandbyStatusUpdate(lsn, lsn, lsn, Timestamp.now(), int(reply_requested))
            self._status_sent = time.monotonic()
            self._send(build_frame(status, **self._layout))
            self._told = lsn

    def close(self) -> None:
        """End the stream after the server has read the last status update and released the slot; close the connection.

        It waits for that at most ``_DRAIN_SECONDS``; a broken connection is closed at once.
        """
        self._closed.set()
        self._statuses.join()
        self.frames.end_reading_ahead()
        try:
            if not self._connection.closed:
                self.send_confirmed()
                self._end_copy()
        except (ReplicationError, psycopg.Error):
            pass  # the connection is broken already
        finally:
            self.frames.close()
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, slot: str, command: bytes) -> None:
        try:
            self._pgconn.send_query(command)
            result = result_of(self._pgconn, self._connection.patience)
            if result is not None and result.status == pq.ExecStatus.COPY_BOTH:
                return
            # To the last result, so that the caller, who still owns the connection, can use it.
            failed = failed_result(self._pgconn, self._connection.patience, result)
        except psycopg.Error as error:
            raise describe_error(error, "START_REPLICATION failed") from error
        refused = _server_error(failed, _REFUSED)
        if refused.sqlstate == "42704" and not slot_health(self._connection, slot):
            refused.transient = True  # dropped since it was checked: the next check says what that means
        raise refused

    def _send_statuses(self) -> None:
        due = self._status_sent + self._interval
        while not self._closed.wait(due - time.monotonic()):
            if time.monotonic() >= self._status_sent + self._interval:
                try:
                    self.send_status(reply_requested=self.silence.should_ask())
                except ReplicationError:
                    return  # ``drain`` raises it, after everything that was received before
            due = self._status_sent + self._interval

    def _send(self, data: bytes) -> None:
        if self.frames.ended:
            return  # the server has ended the stream; the next ``drain`` raises its error
        try:
            self._pgconn.put_copy_data(data)
            # What the socket does not accept now is sent with the next status update, or while frames are read.
            self._pgconn.flush()
        except psycopg.Error as error:
            raise describe_error(error, "the replication connection broke") from error

    def _end_copy(self) -> None:
        self._pgconn.put_copy_end()
        deadline = time.monotonic() + _DRAIN_SECONDS
        while time.monotonic() < deadline:
            # A server that is blocked in sending does not read, so read its data too.
            blocked = bool(self._pgconn.flush())
            length, _ = self._pgconn.get_copy_data(1)
            if length < 0:
                # Once the command is complete, another reader can have the slot, or drop it (StartLogicalReplication).
                result_of(self._pgconn, Patience(max(deadline - time.monotonic(), 0.0)))
                return
            if length == 0 and self.frames.wait(deadline - time.monotonic(), write=blocked):
                self._pgconn.consume_input()


def start_command(options: StreamOptions, start_lsn: Lsn) -> bytes:
    """Return the ``START_REPLICATION`` command for ``start_lsn``; the server uses the slot's LSN if that is later."""
    pairs = ", ".join(f"{_identifier(key)} {_literal(value)}" for key, value in _pairs(options).items())
    return f"START_REPLICATION SLOT {_identifier(options.slot)} LOGICAL {start_lsn} ({pairs})".encode()


def _pairs(options: StreamOptions) -> dict[str, str]:
    given = {name: _text(value) for name, value in options.non_default().items()}
    return {"proto_version": str(options.proto_version), "publication_names": _text(options.publications), **given}


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(_identifier(name) for name in value)
    return "true" if value is True else str(value)


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    # Not psycopg's Literal: replication commands (repl_scanner.l) have no E'' strings, and backslashes are literal.
    return "'" + text.replace("'", "''") + "'"


_ENDED = "the server ended the stream"
_REFUSED = "the server refused START_REPLICATION"

_INTERNAL: Final = re.compile("XX...|58P01")
"""SQLSTATEs for internal errors, corrupted data, and a missing file that decoding needs, such as a WAL segment."""

_PLUGIN: Final = b"pgoutput"
"""It is named in the error of a server that cannot load its output plugin, for example while its package is upgraded;
the slot is unharmed. (Errors of the plugin itself name it in their context.)"""
_UNLOADED: Final = (
    "the server cannot load its output plugin: check its installation and dynamic_library_path, then try again; the "
    "slot is unharmed"
)

_UNCONVERTED: Final = (
    "the server cannot convert text of a change to UTF-8, at no attempt: correct the row, then drop the slot, and "
    "capture with --create-slot and --on-lost-slot snapshot (on_lost_slot='snapshot')"
)
_REMEDIES = {
    "42704": "create what is missing; a publication must exist before the changes that it publishes are made",
    "55006": "stop the other reader of this slot, or wait until the server detects that it is disconnected",
    "55000": "if the slot was invalidated: drop it, create it again, and start a new log with an initial copy of the "
    "tables, or capture with --on-lost-slot snapshot (on_lost_slot='snapshot')",
    "22021": _UNCONVERTED,
    "22P05": _UNCONVERTED,
    "42501": "the role needs the attribute REPLICATION: ALTER ROLE ... REPLICATION",
}
_TOO_LARGE = ("invalid memory alloc request size", "Cannot enlarge string buffer")
"""PostgreSQL's errors for a message of 1 GB or more (MaxAllocSize; palloc, enlargeStringInfo). The latter is a DETAIL:
the error itself is "out of memory" up to PostgreSQL 16."""
_BINARY = (
    "a row is larger than 1 GB as text, for example because hexadecimal text of a bytea has twice its size: capture "
    "with the option binary (binary=True, --binary), in which the log stores it unchanged; columns that are larger "
    "than 1 GB in binary format too must be excluded from the publication by a column list"
)


class DecodingError(ReplicationError):
    """The server had an internal error in decoding: the next attempt may succeed, or fail with the same error."""


def _server_error(result: Any, what: str) -> ReplicationError:
    """Convert the result that ended or refused a stream (``what``) to an error with a remedy."""
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
        return DecodingError(text, sqlstate=state, transient=True)  # for a few attempts: see Retry.recurs
    return ReplicationError(text, sqlstate=state, transient=transient)


_LOG = logging.getLogger("pgoutput_construct")
_INTERVALS = 3


class Silence:
    """Tracks how long a server has been silent: when to request a reply, and when to give up the connection."""

    def __init__(
        self,
        interval: float,
        *,
        allowed: float | None = None,
        silent_before: int = 0,
        last_active: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """Request a reply after each ``interval`` of silence, and give up after three of them.

        Args:
            interval: Seconds.
            allowed: Seconds of silence that the server's settings allow (``_sender_timeout``): the connection is not
                given up earlier. None to use ``last_active`` instead.
            silent_before: The number of consecutive connections that ended in silence: each doubles the limit.
            last_active: Returns when the stream's walsender was last seen active, in seconds of ``time.monotonic``;
                called often while it is silent.
        """
        self.interval = interval
        self.limit = max(_INTERVALS * interval * 2**silent_before, allowed or 0.0)
        """Seconds without activity after which the connection is given up."""
        self._seen_working = last_active
        self._heard = self._requested = time.monotonic()
        self._said = False

    def note_activity(self) -> None:
        """Note that the server sent something."""
        self._heard = time.monotonic()
        self._said = False

    def should_ask(self) -> bool:
        """Return whether to request a reply now: after an interval of silence, once per interval."""
        now = time.monotonic()
        if now - max(self._heard, self._requested) < self.interval:
            return False
        self._requested = now
        return True

    def check(self) -> None:
        """Raise SilentServerError if the server has been silent for too long and its walsender is not active."""
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
                "the server has sent nothing for %.3g seconds, but its walsender is active: it is decoding changes "
                "that are not published; waiting for it",
                now - self._heard,
            )


class SilentServerError(ReplicationError):
    """A server did not reply to a request for it; reconnecting may help."""

    def __init__(self, seconds: float) -> None:
        """Report that it was silent for ``seconds``."""
        super().__init__(
            f"the server has sent nothing for {seconds:.3g} seconds, although a reply was requested: the network "
            "connection is dead, or the server hangs",
            transient=True,
        )


def _sender_timeout(connection: psycopg.Connection[Any]) -> float:
    """Return the seconds for which a walsender waits for its client, and may be silent itself (wal_sender_timeout).

    Infinity if it is disabled: then only TCP detects that the server is unreachable.
    """
    return float(fetch_value(connection, SENDER_TIMEOUT)) or math.inf


def is_at_work(dsn: str, pid: int) -> bool:
    """Return whether the server's process ``pid`` is active, by a new connection; False if that cannot be opened."""
    try:
        with connect(dsn, replication=False) as connection:
            found = fetch_named(connection, WORKING_PROCESS, pid=pid)
    except (ReplicationError, psycopg.Error):
        return False
    return any(row["is_at_work"] for row in found)
