"""Whole logs at each kind of address: written, killed on the way, resumed, read."""

import io
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.changelog import ChangeLog, LogWriter, Position
from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.changelog._store.remote_store import RemoteStore
from pgoutput_construct.errors import ChangeLogError
from tests.changelog.blocks import block_of
from tests.live.recording import Recording
from tests.spark.logs import log_options, write_recording

pytestmark = pytest.mark.slow

RECORDING = "18-v4-text"


def test_a_log_is_written_and_read_at_any_address(address: str, recordings: dict[str, Recording]) -> None:
    """Payloads come back, in segments, and a writer resumes where they end."""
    recording = recordings[RECORDING]
    write_recording(address, recording, rows=100)
    log = ChangeLog(address)
    assert [entry.payload for entry in log] == list(recording.payloads) and len(log.segments) > 2
    assert "secret" not in f"{log.store} {log.store!r} {log.segments[0].path} {log.segments[0]}"
    assert log.entry(150).payload == recording.payloads[150]
    with LogWriter(address) as writer:
        assert writer.next_seq == len(recording.payloads) and writer.options == log.options
    with pytest.raises(ChangeLogError, match="no change log here"):
        ChangeLog(f"{address.partition('?')[0]}-other" if "memory" in address else "/nowhere")


def test_a_listing_is_not_a_snapshot(
    tmp_path: Path, recordings: dict[str, Recording], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of files that come while a directory is listed, it may show a later one alone: then it is listed again."""
    write_recording(tmp_path, recordings[RECORDING], rows=100)
    files = LocalStore.files
    newest = sorted(name for name in files(LocalStore(tmp_path)) if name.startswith("segment"))[-4:]
    unseen = [{newest[0], newest[2], newest[3]}, {newest[2]}, {newest[2]}, {newest[2]}]

    def list_some(store: LocalStore, folder: str = "") -> dict[str, int]:
        hidden = unseen.pop(0) if unseen else set[str]()
        return {name: size for name, size in files(store, folder).items() if name not in hidden}

    monkeypatch.setattr(LocalStore, "files", list_some)
    log = ChangeLog(tmp_path)
    assert log.segments[-1].name == newest[1]
    assert [entry.payload for entry in log] == list(recordings[RECORDING].payloads[: log.segments[-1].last_seq + 1])
    unseen[:] = [{newest[1]}] * 9
    with pytest.raises(ChangeLogError, match="are missing before"):
        ChangeLog(tmp_path)


@pytest.mark.parametrize("kind", ["directory", "s3"])
def test_a_killed_writer_leaves_a_log(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, recordings: dict[str, Recording]
) -> None:
    """After SIGKILL the log has whole segments without a gap, and the next writer resumes it."""
    where = request.getfixturevalue("s3_address") if kind == "s3" else str(tmp_path / "log")
    recording, store = recordings[RECORDING], open_store(where)
    for least in (5, 15):
        child = subprocess.Popen([sys.executable, "-m", "tests.changelog.slow_writer", where, RECORDING])
        deadline = time.monotonic() + 60
        while len(store.files()) < least and time.monotonic() < deadline:
            time.sleep(0.02)
        child.send_signal(signal.SIGKILL)
        child.wait()
    entries = list(ChangeLog(where))
    assert [entry.payload for entry in entries] == list(recording.payloads[: len(entries)]) and len(entries) >= 15
    with LogWriter(where) as writer:
        assert writer.next_seq == len(entries)
    assert not list(tmp_path.glob("log/.*.tmp"))


def test_a_capture_ends_when_its_directory_is_exchanged(tmp_path: Path, recordings: dict[str, Recording]) -> None:
    """What is under the path now is another directory: nothing is published there, nothing confirmed."""
    write_recording(tmp_path / "log", recordings[RECORDING])
    writer = LogWriter(tmp_path / "log")
    (tmp_path / "log").rename(tmp_path / "away")
    (tmp_path / "log").mkdir()
    with pytest.raises(ChangeLogError, match="was a volume unmounted"):
        writer.cut(Position(pgo.Lsn(writer.noted_lsn + 1)))
        writer.collect(wait=True)
    assert list((tmp_path / "log").iterdir()) == []
    writer.close()


def append(writer: LogWriter, recording: Recording, count: int) -> None:
    """Append the first payload of a recording, again and again."""
    mode = recording.mode
    session = pgo.Session(mode.proto_version, mode.streaming)
    writer.use(log_options(mode.proto_version, mode.streaming, mode.binary, mode.two_phase))
    for seq in range(count):
        writer.append(block_of(session, seq, recording.payloads[0]))


def publish(writer: LogWriter, recording: Recording, count: int) -> None:
    """Write a segment."""
    append(writer, recording, count)
    writer.publish(Position())


def test_a_capture_that_lost_an_object_store_to_another_ends(s3_address: str, recordings: dict[str, Recording]) -> None:
    """The slot has one reader: who wrote last. The other one, when it wakes up, writes nothing."""
    recording = recordings[RECORDING]
    with LogWriter(s3_address) as first:
        publish(first, recording, 3)
        with LogWriter(s3_address) as second:
            publish(second, recording, 2)
            with pytest.raises(ChangeLogError, match="has lost the log"):
                first.refresh()
            with pytest.raises(ChangeLogError, match="has lost the log"):
                publish(first, recording, 1)
    assert len(ChangeLog(s3_address)) == 5


def test_a_second_capture_without_the_slot_does_no_harm(s3_address: str, recordings: dict[str, Recording]) -> None:
    """It only opens the log, and ends or waits; once it gets the slot it continues after what the first one wrote."""
    recording = recordings[RECORDING]
    with LogWriter(s3_address) as first:
        publish(first, recording, 2)
        LogWriter(s3_address).close()
        waiting, late = LogWriter(s3_address), LogWriter(s3_address)
        publish(first, recording, 3)
        with late, pytest.raises(ChangeLogError, match="another capture writes into it"):
            publish(late, recording, 1)
        publish(first, recording, 4)
    with waiting:
        waiting.refresh()
        assert waiting.next_seq == 9
        publish(waiting, recording, 1)
    assert len(ChangeLog(s3_address)) == 10


class Slow(RemoteStore):
    """An object store where something happens before a segment's upload ends."""

    meanwhile: Callable[[], object] | None = None

    def _upload(self, path: str, content: io.BytesIO) -> None:
        if "segment-" in path and (act := self.meanwhile):
            self.meanwhile = None
            act()
        super()._upload(path, content)


@pytest.mark.parametrize("written", [0, 1, 3])
def test_an_upload_that_completes_after_a_claim(
    written: int, s3_address: str, recordings: dict[str, Recording]
) -> None:
    """The first writer ends; the next one too, but where what it has written since covers that. The log is whole."""
    recording, store = recordings[RECORDING], Slow(s3_address)
    publish_some = partial(publish, recording=recording)
    with LogWriter(store) as first, LogWriter(s3_address) as second:
        publish_some(first, count=3)
        second.refresh()

        def claim() -> None:
            second.cut(Position(pgo.Lsn(1)))
            second.collect(wait=True)
            if written:
                publish_some(second, count=written)

        store.meanwhile = claim
        with pytest.raises(ChangeLogError, match="has lost the log"):
            publish_some(first, count=2)
        is_covered = written == 3
        with nullcontext() if is_covered else pytest.raises(ChangeLogError, match="another capture writes into it"):
            publish_some(second, count=1)
    end = len(ChangeLog(s3_address))
    with LogWriter(s3_address) as third:
        assert third.next_seq == end >= 5
        publish_some(third, count=1)
    assert len(ChangeLog(s3_address)) == end + 1
