"""Live servers: the workload, recorded now in every mode, round-trips byte for byte."""

from collections.abc import Mapping

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from tests.live import checks
from tests.live.capture import MODES
from tests.live.items import KINDS, items
from tests.live.recording import Recording, record_all

pytestmark = pytest.mark.server
each_mode = pytest.mark.parametrize("mode", [mode.name for mode in MODES])


@pytest.fixture(scope="module")
def live(server: EmbeddedServer) -> Mapping[str, Recording]:
    """The workload, recorded on each server."""
    return record_all(server)


@each_mode
def test_every_payload_is_rebuilt(live: Mapping[str, Recording], mode: str) -> None:
    """Parse and build give the server's bytes."""
    checks.assert_round_trip(live[mode])


@each_mode
def test_order(live: Mapping[str, Recording], mode: str) -> None:
    """Transactions, streams and prepares nest as documented; positions to confirm only grow."""
    checks.assert_order(live[mode])


@each_mode
def test_facts(live: Mapping[str, Recording], mode: str) -> None:
    """The workload shows all that the options allow, and nothing that they exclude."""
    checks.assert_facts(live[mode])


def test_every_kind_was_seen(live: Mapping[str, Recording]) -> None:
    """All nineteen messages came from the server."""
    assert {payload[:1].decode() for recording in live.values() for payload in recording.payloads} == KINDS


@each_mode
def test_every_frame_is_rebuilt(live: Mapping[str, Recording], mode: str) -> None:
    """The envelope too: parse_frame and build_frame give the server's bytes, and the payloads inside."""
    frames = [pgo.parse_frame(frame) for frame in live[mode].frames]
    assert [pgo.build_frame(frame) for frame in frames] == list(live[mode].frames)
    assert tuple(frame.data for frame in frames if isinstance(frame, pgo.XLogData)) == live[mode].payloads


@each_mode
def test_frame_positions(live: Mapping[str, Recording], mode: str) -> None:
    """A frame's positions are its message's: none for descriptions, the end of the record for a commit."""
    frames = [pgo.parse_frame(frame) for frame in live[mode].frames]
    carriers = [frame for frame in frames if isinstance(frame, pgo.XLogData)]
    for frame, item in zip(carriers, items(live[mode]), strict=True):
        assert frame.wal_start == frame.wal_end
        if item.kind in "RY":
            assert frame.wal_start == 0
        if item.kind in "Cc":
            assert frame.wal_start == item.message.end_lsn
