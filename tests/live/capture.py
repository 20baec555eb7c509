"""Read a slot of a live server, in one of the modes that the tests use."""

import selectors
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import psycopg
import pytest
from psycopg.pq import ExecStatus

from pgoutput_construct.demo.embedded_server import VERSIONS
from tools.postgres19 import RELEASE, missing_postgres19

__all__ = [
    "EACH_VERSION",
    "MODES",
    "SERVER_SETTINGS",
    "UNASKED",
    "Capture",
    "Mode",
    "drop_slot",
    "emit_marker",
    "slots",
    "wait_for",
]

SERVER_SETTINGS: Mapping[str, str] = {
    "wal_sender_timeout": "0",  # the recorders never confirm: each slot keeps everything
    "autovacuum": "off",
    "wal_retrieve_retry_interval": "100ms",  # subscriptions come back soon after a cut
    "lock_timeout": "20s",  # a workload that waits for itself fails instead of hanging
}
"""What the tests' servers need on top of the defaults."""

_NO_19 = missing_postgres19()
EACH_VERSION = [*VERSIONS, pytest.param(RELEASE, marks=pytest.mark.skipif(bool(_NO_19), reason=_NO_19))]
"""The major versions that tests open servers of their own of; one that was not fetched is skipped."""

XLOG_DATA_HEADER = 25
TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Mode:
    """The options of one START_REPLICATION, and of its slot."""

    name: str
    proto_version: int
    streaming: Literal["off", "on", "parallel"] = "off"
    two_phase: bool = False
    """A property of the slot; the option of the same name needs version 3, the messages do not."""
    binary: bool = False
    immediate: bool = False
    """Stream every change at once (the developer option debug_logical_replication_streaming)."""

    def start_command(self, slot: str, publications: Iterable[str]) -> str:
        """Return the START_REPLICATION command."""
        options = {
            "proto_version": str(self.proto_version),
            "publication_names": ",".join(publications),
            "messages": "true",
            "streaming": self.streaming,
            "two_phase": "true" if self.two_phase and self.proto_version >= 3 else "",
            "binary": "true" if self.binary else "",
            "origin": "any",
        }
        chosen = ", ".join(f"{key} '{value}'" for key, value in options.items() if value not in ("", "off"))
        return f"START_REPLICATION SLOT {slot} LOGICAL 0/0 ({chosen})"


MODES = (
    Mode("v1-text", 1),
    Mode("v1-binary", 1, binary=True),
    Mode("v2-text", 2, "on"),
    Mode("v2-binary", 2, "on", binary=True),
    Mode("v3-text", 3, "on", two_phase=True),
    Mode("v3-binary", 3, "on", two_phase=True, binary=True),
    Mode("v4-text", 4, "parallel", two_phase=True),
    Mode("v4-binary", 4, "parallel", two_phase=True, binary=True),
    Mode("v4-immediate", 4, "parallel", two_phase=True, immediate=True),
)
"""Every mode that is recorded."""

UNASKED = (
    Mode("v1-two-phase", 1, two_phase=True),
    Mode("v2-two-phase", 2, "on", two_phase=True),
)
"""Clients that get two-phase messages, because the slot has two-phase on, in a version that has none."""


class Capture:
    """One replication connection, read without blocking; it confirms nothing by itself."""

    def __init__(self, dsn: str, mode: Mode, slot: str, dbname: str, publications: Iterable[str]) -> None:
        options = "-c debug_logical_replication_streaming=immediate" if mode.immediate else ""
        self.frames: list[bytes] = []
        self._connection = psycopg.connect(dsn, autocommit=True, replication="database", dbname=dbname, options=options)
        self._pq = self._connection.pgconn
        self._pq.send_query(mode.start_command(slot, publications).encode())
        result = self._pq.get_result()
        if result is None or result.status != ExecStatus.COPY_BOTH:
            raise psycopg.OperationalError(self._pq.get_error_message())

    def fileno(self) -> int:
        """Return the socket, for select."""
        return self._pq.socket

    def read(self) -> list[bytes]:
        """Take the frames that have arrived."""
        arrived = []
        self._pq.consume_input()
        while (answer := self._pq.get_copy_data(1))[0] > 0:
            arrived.append(bytes(answer[1]))
        if answer[0] < 0:
            raise psycopg.OperationalError(f"the stream ended: {self._pq.get_error_message()}")
        self.frames += arrived
        return arrived

    @property
    def payloads(self) -> tuple[bytes, ...]:
        """The pgoutput messages received so far."""
        return tuple(frame[XLOG_DATA_HEADER:] for frame in self.frames if frame[:1] == b"w")

    def send(self, frame: bytes) -> None:
        """Send a frame to the server."""
        self._pq.put_copy_data(frame)
        self._pq.flush()

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


def wait_for(captures: Iterable[Capture], marker: bytes) -> None:
    """Read all captures until each has received a payload that ends with the marker."""
    deadline = time.monotonic() + TIMEOUT
    with selectors.DefaultSelector() as waiting:
        for capture in captures:
            waiting.register(capture, selectors.EVENT_READ, capture)
        while waiting.get_map():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(waiting.get_map())} streams did not bring {marker!r}")
            for key, _ in waiting.select(0.5):
                if any(frame.endswith(marker) for frame in key.data.read()):
                    waiting.unregister(key.fileobj)


def emit_marker(connection: "psycopg.Connection[Any]", marker: bytes) -> None:
    """Log a non-transactional message; the transaction id makes its commit flush the log at once."""
    connection.execute("SELECT pg_current_xact_id(), pg_logical_emit_message(false, 'sync', %b)", [marker])


@contextmanager
def slots(connection: "psycopg.Connection[Any]", modes: Iterable[Mode]) -> Iterator[dict[Mode, str]]:
    """Make one slot for each mode, and drop them at the end."""
    names = {mode: f"slot_{mode.name.replace('-', '_')}" for mode in modes}
    create = "SELECT pg_create_logical_replication_slot(%s, 'pgoutput', false, %s)"
    for mode, name in names.items():
        connection.execute(create, [name, mode.two_phase])
    try:
        yield names
    finally:
        for name in names.values():
            drop_slot(connection, name)


def drop_slot(connection: "psycopg.Connection[Any]", name: str) -> None:
    """Drop a slot, hanging up its user first, who may connect again before that is done."""
    query = "SELECT pg_terminate_backend(active_pid, 10000) FROM pg_replication_slots WHERE slot_name = %s"
    deadline = time.monotonic() + 60
    while True:
        connection.execute(query, [name])
        try:
            connection.execute("SELECT pg_drop_replication_slot(%s)", [name])
        except psycopg.errors.ObjectInUse:
            if time.monotonic() > deadline:
                raise
        else:
            return
