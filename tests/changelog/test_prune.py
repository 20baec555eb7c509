"""Prune: segments that nobody needs are removed, and the rest is decoded without them."""

import re
import shutil
import time
from functools import partial
from pathlib import Path

import pytest

from pgoutput_construct.changelog import ChangeLog, LogWriter, registry
from pgoutput_construct.changelog._segment.prune_note import read_pruned
from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.changelog.prune import Prune
from pgoutput_construct.changelog.prune import prune as prune_log
from pgoutput_construct.changelog.verify import verify
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.wire import Lsn, Timestamp
from tests.live.recording import Recording
from tests.spark.logs import write_recording

pytestmark = pytest.mark.slow

ALL = Lsn(2**63 - 1)
prune = partial(prune_log, states=False)


@pytest.fixture(scope="module")
def small_segments(recordings: dict[str, Recording], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of many small segments; work on a copy of it."""
    directory = tmp_path_factory.mktemp("log")
    write_recording(LocalStore(directory, durable=False), recordings["18-v4-text"], rows=10)
    return directory


@pytest.fixture
def log(small_segments: Path, tmp_path: Path) -> Path:
    """A copy of the log."""
    return Path(shutil.copytree(small_segments, tmp_path / "log"))


def test_segments_before_an_lsn_are_removed(log: Path) -> None:
    """Whole segments; no transaction that is left has lost a row; the rest says what it said before."""
    whole = ChangeLog(log)
    transactions = whole.transactions().to_pylist()
    entries = [entry._replace(segment="") for entry in whole]
    middle = transactions[len(transactions) // 2]
    for before in (Lsn(middle["end_lsn"]), Timestamp(middle["commit_time"])):
        would = prune(log, before, dry_run=True)
        assert would.segments > 5 and would.removed == 0 and len(ChangeLog(log)) == len(whole)
        assert would.size == sum(segment.size for segment in whole.segments[: would.segments])
        assert all(row["end_lsn"] <= middle["end_lsn"] for row in transactions if row["seq"] < would.first_seq)
    seen = list[Prune]()
    done = prune(log, Lsn(middle["end_lsn"]), on_progress=seen.append)
    left = ChangeLog(log)
    assert done.removed == done.segments == len(seen) and seen[-1] == done
    assert [entry._replace(segment="") for entry in left] == [each for each in entries if each.seq >= done.first_seq]
    assert next(left.entries(done.first_seq)).seq >= done.first_seq
    with pytest.raises(ChangeLogError, match=f"the seqs 7 to {done.first_seq - 1} were pruned before they were read"):
        next(left.entries(7))
    assert left.transactions().to_pylist() == [row for row in transactions if row["seq"] >= done.first_seq]
    assert all(span["first"] >= done.first_seq for row in left.transactions().to_pylist() for span in row["spans"])
    assert verify(log).problems == () and read_pruned(open_store(log)).first_seq == done.first_seq
    assert prune(log, Lsn(middle["end_lsn"])).removed == 0


def test_an_abort_without_lsn(recordings: dict[str, Recording], tmp_path: Path) -> None:
    """With streaming=on it has neither LSN nor time: the segment's position counts."""
    write_recording(LocalStore(tmp_path, durable=False), recordings["16-v2-text"], rows=10)
    transactions = ChangeLog(tmp_path).transactions().to_pylist()
    assert any(row["end_lsn"] is None for row in transactions)
    last = [row for row in transactions if row["outcome"] == "committed"][-1]
    for before in (Lsn(last["end_lsn"]), Timestamp(last["commit_time"])):
        assert prune(tmp_path, before, dry_run=True).segments > 5
    done = prune(tmp_path, ALL)
    assert any(row["commit_time"] is None and row["seq"] < done.first_seq for row in transactions)
    assert verify(tmp_path).problems == ()


def test_the_newest_segment_always_stays(log: Path) -> None:
    """A writer resumes from it."""
    end = ChangeLog(log).segments[-1].last_seq
    done = prune(log, ALL)
    assert len(ChangeLog(log).segments) == done.kept and verify(log).problems == ()
    with LogWriter(log) as writer:
        assert writer.next_seq == end + 1


def test_what_retains_the_first_segment_is_reported(
    log: Path, recordings: dict[str, Recording], tmp_path: Path
) -> None:
    """Also where nothing but its own changes does, and where nothing is removed."""
    whole = ChangeLog(log)
    starts, ends = {segment.first_seq for segment in whole.segments}, whole.transactions().to_pylist()
    said = set[str]()
    for before in (Lsn(0), Timestamp(0), ALL, *(Lsn(row["end_lsn"]) for row in ends[::5] if row["end_lsn"])):
        planned = prune(log, before, dry_run=True)
        assert planned.first_seq in starts and planned.holds
        named = planned.holds[-1]
        seq = int(re.findall(r"(?:began at|begins at|from) seq (\d+)", named)[-1])
        following = min((start for start in starts if start > planned.first_seq), default=2**63)
        assert planned.first_seq <= seq < following
        said.add(named.split()[1])
    assert "segment" in said and len(said) > 2  # it, or a transaction by its xid
    write_recording(LocalStore(tmp_path / "one", durable=False), recordings["18-v4-text"], rows=10**6)
    assert prune(tmp_path / "one", ALL).holds == ("the newest segment is never removed: it begins at seq 0",)
    nothing, times = prune(log, Lsn(0), dry_run=True), prune(log, Timestamp(0), dry_run=True)
    assert not nothing.segments and nothing.holds[0].endswith(", which is after 0/0")
    assert times.holds[0].endswith(", which is after 2000-01-01T00:00:00+00:00")


def test_transactions_retain_what_they_need(log: Path) -> None:
    """One that began in a segment and ended after the position keeps it, and all after it; the report names it."""
    index = ChangeLog(log).index
    lasting = [
        row for row in index.transactions.to_pylist() if row["spans"] and row["seq"] - row["spans"][0]["first"] > 40
    ]
    assert lasting
    for row in lasting[:3]:
        before = [each for each in index.transactions.to_pylist() if each["seq"] < row["seq"]][-1]
        would = prune(log, Lsn(before["end_lsn"]), dry_run=True)
        assert would.first_seq <= row["spans"][0]["first"]
    assert any(f"transaction {row['xid']} began at seq" in text for row in lasting for text in would.holds)


def test_registered_readers_retain_what_they_have_not_read(log: Path) -> None:
    """Until they have read it, are removed, or have expired; the report names expired ones."""
    seqs = [segment.first_seq for segment in ChangeLog(log).segments]
    registry.register(log, "slow", seqs[3] + 1)
    would = prune(log, ALL, dry_run=True)
    assert would.first_seq <= seqs[3] and f"reader 'slow' has not read seq {seqs[3] + 1} and later" in would.holds
    registry.advance(log, "slow", seqs[9])
    assert seqs[3] < prune(log, ALL).first_seq <= seqs[9]
    registry.register(log, "slow", ChangeLog(log).segments[0].first_seq, seconds=0)
    time.sleep(0.01)
    done = prune(log, ALL)
    assert done.segments and any("and is ignored" in text for text in done.holds)
    with pytest.raises(ChangeLogError, match="needs seq 0, but the log was pruned up to"):
        registry.register(log, "new", 0)


def test_a_killed_prune_is_completed(log: Path) -> None:
    """The note was written, nothing or some was removed: the log begins where the note says."""
    copy = Path(shutil.copytree(log, log.with_name("copy")))
    done = prune(log, ALL)
    assert done.segments > 3
    expected = [entry.payload for entry in ChangeLog(log)]
    shutil.copy(log / "pruned.json", copy)
    for first in sorted(copy.glob("segment-*"))[:2]:
        first.unlink()
    assert [entry.payload for entry in ChangeLog(copy)] == expected
    assert prune(copy, ALL).removed == done.removed - 2
    assert sorted(path.name for path in copy.glob("segment-*")) == sorted(path.name for path in log.glob("segment-*"))


class Killed(BaseException):
    """What ends a prune where it stands."""


class Dying(LocalStore):
    """A directory into which a reader comes just before a prune notes something, and which ends it just after."""

    def write(self, name: str, content: bytes) -> None:
        """Write a file; the note is the last one."""
        if name == "pruned.json":
            registry.register(LocalStore(self.directory), "early", 0)
        super().write(name, content)
        if name == "pruned.json":
            raise Killed


def test_a_killed_prune_does_not_affect_new_readers(log: Path) -> None:
    """The log is whole for it, then and after the next prune; who comes later must not need what was planned to go."""
    entries = [entry.payload for entry in ChangeLog(log)]
    with pytest.raises(Killed):
        prune(Dying(log), ALL)
    assert [entry.payload for entry in ChangeLog(log)] == entries
    with pytest.raises(ChangeLogError, match="needs seq 0, but the log was pruned up to"):
        registry.register(log, "late", 0)
    assert prune(log, ALL).removed == 0 and verify(log).problems == ()
    assert [entry.payload for entry in ChangeLog(log)] == entries
    registry.register(log, "late", 0)
    registry.forget(log, "late")
    registry.forget(log, "early")
    assert prune(log, ALL).removed > 3 and verify(log).problems == ()
