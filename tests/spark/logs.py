"""Change logs for tests: from recordings, and captured from a live server."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg

import pgoutput_construct as pgo
from pgoutput_construct.changelog.footer import Position
from pgoutput_construct.changelog.store import Address, LogStore
from pgoutput_construct.postgres import LogOptions, LogWriter, capture, current_lsn
from tests.changelog.blocks import block_of
from tests.live.capture import emit_marker
from tests.live.recording import Recording

__all__ = ["capturing", "log_options", "write_log", "write_recording"]

PAUSE = 0.4
"""Seconds in which a capture receives what has been decoded so far."""


def log_options(
    proto_version: int = 1, streaming: str = "off", binary: bool = False, two_phase: bool = False
) -> LogOptions:
    """Return the options of a log that no server has written."""
    return LogOptions(
        slot="slot",
        publications=("pub",),
        proto_version=proto_version,
        streaming=streaming,  # type: ignore[arg-type]
        binary=binary,
        two_phase=two_phase,
        server_version=180000,
        system_identifier="1",
        database="test",
    )


def write_log(
    directory: Address | LogStore,
    payloads: Sequence[bytes],
    options: LogOptions,
    rows: int = 100,
    errors: Mapping[int, bytes] = {},
) -> None:
    """Write payloads as a log with ``rows`` in a segment; ``errors`` replaces some, after the stream state is known."""
    session = pgo.Session(options.proto_version, options.streaming)
    with LogWriter(directory) as writer:
        writer.use(options)
        for seq, payload in enumerate(payloads):
            data = errors.get(seq, payload)
            writer.append(block_of(session, seq, data))
            session.parse(payload)
            if writer.pending >= rows:
                writer.publish(Position())
        writer.publish(Position())


def write_recording(
    directory: Address | LogStore, recording: Recording, rows: int = 100, errors: Mapping[int, bytes] = {}
) -> None:
    """Write a stored recording as a log."""
    mode = recording.mode
    options = log_options(mode.proto_version, mode.streaming, mode.binary, mode.two_phase)
    write_log(directory, recording.payloads, options, rows, errors)


@contextmanager
def capturing(dsn: str, slot: str, publications: Sequence[str], directory: Path) -> Iterator[Callable[[], None]]:
    """Capture while the block runs, and then up to the end of the WAL; yields what lets the capture catch up."""
    done, errors = threading.Event(), list[BaseException]()

    def run(**options: object) -> None:
        try:
            capture(dsn, slot, publications, directory, messages=True, two_phase=True, **options)  # type: ignore[arg-type]
        except BaseException as error:
            errors.append(error)

    def catch_up() -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            emit_marker(connection, b"catch up")
        time.sleep(PAUSE)

    thread = threading.Thread(target=run, kwargs={"stop": done.is_set})
    thread.start()
    try:
        yield catch_up
    finally:
        done.set()
        thread.join(60)
    if errors:
        raise errors[0]
    with psycopg.connect(dsn, autocommit=True) as connection:
        emit_marker(connection, b"the end")
        end = current_lsn(connection)
    capture(dsn, slot, publications, directory, messages=True, two_phase=True, until_lsn=end)
