"""The stored recordings of real servers, read without a server."""

import pytest

from tests.live import checks
from tests.live.capture import MODES
from tests.live.items import KINDS
from tests.live.recording import Recording
from tools.servers import SERVERS

NAMES = [f"{version}-{mode.name}" for version in SERVERS for mode in MODES]
each_recording = pytest.mark.parametrize("name", NAMES)
Recordings = dict[str, Recording]


def test_every_mode_is_stored(recordings: Recordings) -> None:
    """There is one recording for each server and mode, with the options that the mode has now."""
    assert sorted(recordings) == sorted(NAMES)
    assert {recording.mode for recording in recordings.values()} == set(MODES)


def test_a_recording_is_read_as_it_was_saved(recordings: Recordings, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Saving what was loaded gives an equal recording."""
    directory = tmp_path_factory.mktemp("recordings")
    for recording in recordings.values():
        assert Recording.load(recording.save(directory)) == recording


def test_every_kind_is_stored(recordings: Recordings) -> None:
    """All nineteen messages are in the recordings."""
    assert {payload[:1].decode() for r in recordings.values() for payload in r.payloads} == KINDS


@each_recording
def test_every_payload_is_rebuilt(recordings: Recordings, name: str) -> None:
    """Parse and build give the server's bytes."""
    checks.assert_round_trip(recordings[name])


@each_recording
def test_order(recordings: Recordings, name: str) -> None:
    """Transactions, streams and prepares nest as documented; positions to confirm only grow."""
    checks.assert_order(recordings[name])


@each_recording
def test_facts(recordings: Recordings, name: str) -> None:
    """The workload shows all that the options allow, and nothing that they exclude."""
    checks.assert_facts(recordings[name])


@pytest.mark.slow
@each_recording
def test_one_byte_less_or_more_is_refused(recordings: Recordings, name: str) -> None:
    """Each message is refused when truncated by one byte and when extended by one."""
    checks.assert_refused(recordings[name])
