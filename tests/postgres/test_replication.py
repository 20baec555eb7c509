"""The stream: frames, keepalives, confirmations, and errors in the middle."""

import time
from itertools import islice
from typing import Any

import psycopg
import pytest
from psycopg import pq

from pgoutput_construct.postgres import ReplicationError, ReplicationStream, StreamOptions, connect, ensure_slot
from pgoutput_construct.postgres._patience import result_of
from pgoutput_construct.wire import (
    Commit,
    Lsn,
    PrimaryKeepalive,
    StandbyStatusUpdate,
    Timestamp,
    XLogData,
    build_frame,
    parse_frame,
)
from tests.postgres.shop import PUBLICATION, Shop, wait_until

pytestmark = pytest.mark.server


def _options(shop: Shop, **options: object) -> StreamOptions:
    return StreamOptions(slot=shop.slot, publications=(PUBLICATION,), proto_version=4, **options)  # type: ignore[arg-type]


def test_frames_from_a_server_are_built_back_byte_for_byte(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every frame that a server sends, and every status that we send, survives parse and build."""
    import pgoutput_construct.postgres.replication as module

    received: list[bytes] = []

    def recording(data: bytes, **options: Any) -> object:
        received.append(data)
        return parse_frame(data, **options)

    monkeypatch.setattr(module, "parse_frame", recording)
    shop.execute("INSERT INTO item SELECT g, 'x' FROM generate_series(1, 100) g")
    with ReplicationStream(connect(shop.dsn), _options(shop)) as stream:
        stream.send_status(reply_requested=True)
        frames = list(islice(stream, 105))
    assert [build_frame(frame) for frame in frames] == received[:105]
    assert {type(frame) for frame in frames} == {XLogData, PrimaryKeepalive}
    status = StandbyStatusUpdate(Lsn("1/2"), Lsn("3/4"), Lsn("5/6"), Timestamp(-1), 1)
    assert parse_frame(build_frame(status)) == status


def test_status_updates_are_sent_although_nobody_reads(shop: Shop) -> None:
    """The client is busy for twice wal_sender_timeout, and its interval is longer: the server continues to send."""
    dsn = psycopg.conninfo.make_conninfo(shop.dsn, options="-c wal_sender_timeout=3s")
    with ReplicationStream(connect(dsn), _options(shop), status_interval=3600) as stream:
        shop.execute("INSERT INTO item SELECT g, repeat('x', 1000) FROM generate_series(1, 2000) g")
        time.sleep(6.5)
        assert any(isinstance(frame, XLogData) and frame.data[:1] == Commit.TAG for frame in stream)


def test_a_closed_stream_has_released_its_slot(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comes next can read or drop it at once: the server completes the command after that."""
    import pgoutput_construct.postgres.replication as module

    results = list[Any]()

    def recording(*arguments: Any) -> Any:
        results.append(result_of(*arguments))
        return results[-1]

    monkeypatch.setattr(module, "result_of", recording)
    with shop.connect() as connection:
        with ReplicationStream(connect(shop.dsn), _options(shop)) as stream:
            shop.execute("INSERT INTO item SELECT g, 'x' FROM generate_series(1, 100) g")
            assert next(iter(stream))
        connection.execute("SELECT pg_drop_replication_slot(%s)", [shop.slot])
        ensure_slot(connection, shop.slot)
    assert [result.status for result in results] == [pq.ExecStatus.COPY_BOTH, pq.ExecStatus.COMMAND_OK]


def test_a_client_that_does_not_answer_is_dropped(shop: Shop) -> None:
    """The counterpart: the server does end a silent stream, and that is an error that may pass."""
    dsn = psycopg.conninfo.make_conninfo(shop.dsn, options="-c wal_sender_timeout=500ms")
    with ReplicationStream(connect(dsn), _options(shop), status_interval=3600) as stream:
        with stream._lock:  # nothing is sent meanwhile
            time.sleep(1.2)
        with pytest.raises(ReplicationError) as caught:
            while True:
                stream.read(1)
    assert caught.value.transient


def test_only_confirm_moves_the_slot(shop: Shop) -> None:
    """Status updates repeat what was confirmed; the slot follows confirm, and never goes back."""
    before = shop.confirmed()
    end = shop.execute("INSERT INTO item VALUES (1, 'a')")
    with ReplicationStream(connect(shop.dsn), _options(shop), status_interval=0.01) as stream:
        frames = list(islice(stream, 6))
        assert any(isinstance(frame, XLogData) for frame in frames)
        stream.send_status(reply_requested=True)
        next(iter(stream))
        assert shop.confirmed() == before
        stream.confirm(end)
        wait_until(lambda: shop.confirmed() == end)
        stream.confirm(Lsn(1))
        assert stream.confirmed_lsn == end


def test_the_last_confirmation_is_not_lost_by_closing(shop: Shop) -> None:
    """Closing waits until the server has read what was confirmed."""
    end = shop.execute("INSERT INTO item VALUES (1, 'a')")
    with ReplicationStream(connect(shop.dsn), _options(shop)) as stream:
        stream.confirm(end)
    wait_until(lambda: shop.confirmed() == end, 2)


def test_a_missing_publication_ends_the_stream(shop: Shop) -> None:
    """PostgreSQL 18 says with a warning that it skips changes: nothing of what comes after it is given out."""
    with ReplicationStream(connect(shop.dsn), StreamOptions(slot=shop.slot, publications=("gone",))) as stream:
        shop.execute("INSERT INTO item VALUES (1, 'a')")
        with pytest.raises(ReplicationError, match=r'skipped loading publication "gone".*initial copy') as caught:
            wait_until(lambda: isinstance(stream.read(1), XLogData))
    assert not caught.value.transient


def test_termination_by_an_administrator_is_transient(shop: Shop) -> None:
    """pg_terminate_backend gives the server's words, and an error that may pass."""
    with ReplicationStream(connect(shop.dsn), _options(shop)) as stream:
        shop.execute("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active")
        with pytest.raises(ReplicationError, match="terminating connection") as caught:
            while True:
                stream.read(1)
    assert (caught.value.sqlstate, caught.value.transient) == ("57P01", True)
