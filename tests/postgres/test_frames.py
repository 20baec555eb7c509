"""Receiving frames from libpq: of every size, with each implementation of psycopg, until the connection breaks."""

import os
import subprocess
import sys
from ctypes.util import find_library

import psycopg
import pytest

from pgoutput_construct.changelog import Position
from pgoutput_construct.columnar.envelope import Frames
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres import ReplicationStream, StreamOptions, _frames, connect
from pgoutput_construct.postgres._capture.pump import Intake, short_switch_interval
from pgoutput_construct.postgres._frames import FrameReader
from pgoutput_construct.wire import Message, XLogData, parse, parse_frame
from tests.postgres.shop import PUBLICATION, Shop

pytestmark = pytest.mark.server

SIZES = (0, 1, 2**18 - 100, *range(2**18 - 70, 2**18 - 30, 3), 2**18, 5, 6, 9_000_000, 9_000_000, 1, *[250_000] * 20)
"""Of contents: around the size from which on a frame stays where libpq has put it, and more than one batch holds."""


def _options(shop: Shop) -> StreamOptions:
    return StreamOptions(slot=shop.slot, publications=(PUBLICATION,), proto_version=1, messages=True)


def _content(size: int) -> bytes:
    return (b"%07d " % size * (size // 8 + 1))[:size]


def _emit(shop: Shop, sizes: tuple[int, ...]) -> None:
    with shop.connect() as connection:
        for size in sizes:
            connection.execute("SELECT pg_logical_emit_message(false, 'size', %b::bytea)", [_content(size)])


def test_frames_of_every_size_arrive_as_they_were_sent(shop: Shop) -> None:
    """Small and large ones in turn; what was taken in stays as it is when the room of its batch is used again."""
    _emit(shop, SIZES)
    intake, contents, kept = Intake({}, Position()), list[bytes](), list[Frames]()
    with ReplicationStream(connect(shop.dsn), _options(shop)) as stream:
        blocks = []
        while len(contents) < len(SIZES):
            frames = stream.drain(1, most=7)
            assert len(frames) <= 7
            kept += [frames] if frames.lasting and len(frames) else []
            messages = [frame.data for frame in map(parse_frame, frames) if isinstance(frame, XLogData)]
            contents += [message.content for message in map(parse, messages) if isinstance(message, Message)]
            if frames:
                blocks.append(intake.take(frames).block)
    expected = [_content(size) for size in SIZES]
    assert contents == expected
    logged = [parse(payload) for block in blocks for payload in block.payloads.to_pylist()]
    assert [message.content for message in logged if isinstance(message, Message)] == expected
    large = [size for size in SIZES if size >= 2**18]
    assert len(kept) >= len(large) and all(len(frames) == 1 for frames in kept)


@pytest.mark.skipif(not find_library("pq"), reason="psycopg's Python implementation needs a libpq of the system")
def test_frames_with_the_python_implementation_of_psycopg(shop: Shop) -> None:
    """psycopg without its C code calls libpq by ctypes, and so the frames come from that one."""
    shop.execute("INSERT INTO item SELECT g, 'x' FROM generate_series(1, 1000) g")
    end = shop.execute()
    program = (
        "from psycopg import pq\n"
        "from pgoutput_construct.postgres import capture\n"
        "from pgoutput_construct.wire import Lsn\n"
        "assert pq.__impl__ == 'python'\n"
        f"capture({shop.dsn!r}, {shop.slot!r}, [{PUBLICATION!r}], {str(shop.directory)!r}, until_lsn=Lsn({int(end)}), "
        f"**{shop.options!r})"
    )
    environment = {**os.environ, "PSYCOPG_IMPL": "python", "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=300)
    assert sum(entry.payload[:1] == b"I" for entry in shop.log()) == 1000


def test_a_broken_connection_raises_its_reason(shop: Shop) -> None:
    """What came before is given first; one that was closed here is refused, and not touched."""
    _emit(shop, (1, 2, 3))
    stream = ReplicationStream(connect(shop.dsn), _options(shop))
    assert len(stream.drain(1)) > 0
    shop.execute("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active")
    with pytest.raises(ReplicationError, match=r"terminating connection|closed the connection") as caught:
        while True:
            stream.drain(1)
    assert caught.value.transient
    stream.close()
    connection = connect(shop.dsn)
    reader = FrameReader(connection.pgconn)
    connection.close()
    with pytest.raises(psycopg.OperationalError, match="reading from the server failed"):
        reader.read(0)
    reader.close()


def test_a_libpq_that_cannot_be_found_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """It names psycopg's implementation and what is missing."""
    monkeypatch.setattr(_frames, "_path", lambda: None)
    monkeypatch.setattr(_frames, "libpq", _frames.libpq.__wrapped__)
    with pytest.raises(ReplicationError, match=r"psycopg's implementation '\w+' cannot be called on .*PQ"):
        _frames.Gatherer()


def test_switch_interval_is_short_only_during_a_capture() -> None:
    """Also where one capture ends before another one that began later."""
    before = sys.getswitchinterval()
    first, second = short_switch_interval(), short_switch_interval()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert sys.getswitchinterval() < before
    second.__exit__(None, None, None)
    assert sys.getswitchinterval() == before
