"""Captures of a live server: the same bytes as through other clients, once, and confirmed only when durable."""

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from psycopg.conninfo import make_conninfo

from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.postgres import (
    ReplicationStream,
    SegmentLimits,
    create_slot,
    drop_slot,
)
from pgoutput_construct.wire import Lsn
from tests.postgres.exact import TINY, assert_exact, mixed, writing
from tests.postgres.shop import (
    ENDS,
    PUBLICATION,
    Shop,
    end_lsn,
    messages,
    notes,
)

if TYPE_CHECKING:
    from pgoutput_construct.demo.embedded_server import EmbeddedServer

pytestmark = pytest.mark.server

MODES: dict[str, dict[str, Any]] = {
    "v1": {"proto_version": 1, "two_phase": False},
    "v2-streaming": {"proto_version": 2, "streaming": "on", "two_phase": False, "binary": True},
    "best": {"two_phase": True},
}


def _sql_payloads(shop: Shop, slot: str, mode: dict[str, Any]) -> list[bytes]:
    pairs = {
        "proto_version": mode.get("proto_version", 4),
        "publication_names": '"' + PUBLICATION.replace('"', '""') + '"',
        "messages": "true",
        "streaming": mode.get("streaming", "off" if mode.get("proto_version") == 1 else "parallel"),
        "binary": str(mode.get("binary", False)).lower(),
    }
    arguments = [str(text) for pair in pairs.items() for text in pair]
    marks = ", ".join(["%s"] * len(arguments))
    query = f"SELECT data FROM pg_logical_slot_peek_binary_changes(%s, NULL, NULL, {marks})"
    with shop.connect() as connection:
        return [row[0] for row in connection.execute(query.encode(), [slot, *arguments])]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", [16, 18], ids="pg{}".format)
def test_the_log_equals_what_the_sql_function_gives(
    version: int, mode: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The same workload through the replication protocol and through SQL: the same payloads in the same order."""
    server: EmbeddedServer = request.getfixturevalue(f"server{version}")
    options = MODES[mode]
    dbname = f"equal_{mode.replace('-', '_')}"
    with Shop.create(server, dbname, tmp_path / "log", two_phase=options["two_phase"]) as shop:
        twin = f"{shop.slot}_twin"
        with shop.connect() as connection:
            create_slot(connection, twin, two_phase=options["two_phase"])
            mixed(shop)
            result = shop.capture(limits=SegmentLimits(rows=100), **options)
            expected = _sql_payloads(shop, twin, options)
            drop_slot(connection, twin)
        log = shop.log()
        assert [entry.payload for entry in log] == expected
        assert result.rows == len(expected) and result.segments == len(log.segments) > 1
        assert any(entry.in_stream for entry in log) == (mode != "v1")
        assert set(notes(log).values()) == {1}
        if not options.get("binary"):
            assert_exact(shop)


@pytest.mark.parametrize("version", [1, 2])
def test_a_two_phase_slot_is_captured_in_any_version(shop: Shop, version: int) -> None:
    """The server sends prepared transactions unasked: they are in the log, and their rows in the tables."""
    mixed(shop)
    assert shop.capture(proto_version=version, two_phase=False).rows
    prepared = {entry.payload[:1] for entry in ChangeLog(shop.directory)} & {b"b", b"P", b"K", b"r"}
    assert prepared == {b"b", b"P", b"K", b"r"}
    assert_exact(shop)


def test_a_capture_resumes_where_the_log_ends(shop: Shop) -> None:
    """Three calls, the last without anything to do: one log, each transaction and message once."""
    for first in (0, 5000):
        mixed(shop, first)
        result = shop.capture(limits=TINY)
        assert result.ended_by == "until_lsn" and result.confirmed_lsn == shop.log().complete_lsn
    assert shop.capture().rows == 0
    assert_exact(shop)
    assert set(notes(shop.log()).values()) == {1}
    assert shop.log().segments[-1].position.prepared == {}


def test_the_slot_never_passes_what_is_durable(shop: Shop) -> None:
    """At every look, all transactions that ended before the confirmed position were already in the log."""
    looks: list[tuple[Lsn, int]] = []
    with writing(shop), shop.capturing(limits=SegmentLimits(rows=20, seconds=0.1), status_interval=0.05):
        deadline = time.monotonic() + 60
        while len({confirmed for confirmed, _ in looks}) <= 10 and time.monotonic() < deadline:
            confirmed = shop.confirmed()
            segments = sorted(shop.directory.glob("segment*"))
            looks.append((confirmed, int(segments[-1].stem.split("-")[1]) if segments else -1))
            time.sleep(0.01)
    log = shop.log()
    last_seq = {segment.first_seq: segment.last_seq for segment in log.segments} | {-1: -1}
    placed = _end_seqs(shop)
    assert len({confirmed for confirmed, _ in looks}) > 5
    for confirmed, newest in looks:
        assert all(seq <= last_seq[newest] for end, seq in placed if end <= confirmed)


def _end_seqs(shop: Shop) -> list[tuple[Lsn, int]]:
    return [(end_lsn(message), entry.seq) for entry, message in messages(shop.log()) if isinstance(message, ENDS)]


def test_what_the_server_sends_again_is_dropped(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slot that was never moved, read from its beginning: the log still has each transaction once."""

    class Forgetful(ReplicationStream):
        def __init__(self, connection: Any, options: Any, start_lsn: Any = None, **others: Any) -> None:
            super().__init__(connection, options, Lsn(0), **others)

        def confirm(self, lsn: Lsn, *, together: float = 0.0) -> None:
            pass

    monkeypatch.setattr("pgoutput_construct.postgres._capture.capture_session.ReplicationStream", Forgetful)
    mixed(shop, 0)
    shop.execute("BEGIN", "INSERT INTO item VALUES (78, 'late')", "PREPARE TRANSACTION 'late'")
    shop.capture()
    assert shop.log().segments[-1].position.prepared.keys() == {"late"}
    shop.execute("COMMIT PREPARED 'late'")
    mixed(shop, 5000)
    result = shop.capture()
    assert result.dropped > 5
    assert_exact(shop)
    assert set(notes(shop.log()).values()) == {1}


def test_the_end_of_a_capture_is_not_waited_for(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its end depends on wakes the capture: a segment that is durable, or a reading of the catalog."""
    monkeypatch.setattr("pgoutput_construct.postgres._capture.pump._SLICE", 60.0)
    shop.path = partial(make_conninfo, options="-c wal_sender_timeout=0")  # so that it sends nothing by itself
    mixed(shop)
    began = time.monotonic()
    assert shop.capture(status_interval=100).ended_by == "until_lsn" and time.monotonic() - began < 60
    assert_exact(shop)
