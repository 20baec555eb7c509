"""Compaction: the same log in fewer files, whatever runs or dies meanwhile."""

import shutil
from dataclasses import replace
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pgoutput_construct import Session, testing
from pgoutput_construct.changelog import ChangeLog, LogWriter
from pgoutput_construct.changelog._segment.segment_reader import read_segment
from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.changelog.compact import Compaction, CompactionLimits, compact, plan_compaction
from pgoutput_construct.changelog.verify import verify
from pgoutput_construct.errors import ChangeLogError
from tests.changelog.blocks import block_of
from tests.live.recording import Recording
from tests.spark.logs import log_options, write_log, write_recording

pytestmark = pytest.mark.slow

OPTIONS = log_options(4, "parallel", two_phase=True)
LIMITS = CompactionLimits(rows=120, least=3, grace=0)


@pytest.fixture(scope="module", params=["18-v4-text", pytest.param("16-v3-binary", marks=pytest.mark.long)])
def small_segments(
    request: pytest.FixtureRequest, recordings: dict[str, Recording], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A log of many small segments; work on a copy of it."""
    directory = tmp_path_factory.mktemp("log")
    write_recording(LocalStore(directory, durable=False), recordings[request.param], rows=5)
    return directory


@pytest.fixture
def log(small_segments: Path, tmp_path: Path) -> Path:
    """A copy of the log."""
    return Path(shutil.copytree(small_segments, tmp_path / "log"))


def facts(log: ChangeLog) -> list[Any]:
    """Return all that a log says, but for its files."""
    index = log.index
    tables = (index.transactions, index.open, index.entries("descriptions"), index.entries("events"), index.counts)
    rows = [row for segment in log.segments for row in read_segment(segment).drop_columns("snapshot").to_pylist()]
    return [rows, log.complete_lsn, log.options, *(table.to_pylist() for table in tables)]


def test_a_compacted_log_has_the_same_contents(log: Path) -> None:
    """In fewer files; its indexes are those of its rows; compacting it again does nothing."""
    before, files = facts(ChangeLog(log)), len(list(log.glob("segment-*")))
    seen = list[Compaction]()
    planned = plan_compaction(log, LIMITS)
    assert facts(ChangeLog(log)) == before and len(list(log.glob("segment-*"))) == files
    done = compact(log, LIMITS, seen.append)
    assert planned == done
    segments = ChangeLog(log).segments
    assert facts(ChangeLog(log)) == before and verify(log).problems == ()
    assert len(segments) == len(list(log.glob("segment-*"))) == done.after < files / 8 and done.before == files
    assert all(after.first_seq == first.last_seq + 1 for first, after in pairwise(segments))
    assert seen[-1] == done and done.removed == done.merged and done.rows <= len(before[0])
    assert max(segment.rows for segment in segments) <= LIMITS.rows
    again = compact(log, LIMITS)
    assert (again.merged, again.removed) == (0, 0)


def test_a_log_is_read_while_it_is_compacted(log: Path) -> None:
    """A reader that listed the small segments reads the large ones instead; a resumed writer continues."""
    opened = ChangeLog(log)
    with LogWriter(log) as writer:
        entries = opened.entries()
        first = next(entries)
        before = list(ChangeLog(log))
        compact(log, LIMITS)
        assert [entry.payload for entry in (first, *entries)] == [entry.payload for entry in before]
        assert opened.entry(17).payload == before[17].payload
        assert writer.next_seq == before[-1].seq + 1
    with LogWriter(log) as writer:
        assert writer.next_seq == before[-1].seq + 1


def test_a_large_segment_is_read_once(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has listed the small segments lists the log, and reads the large ones, as often as there are large ones."""
    opened, before = ChangeLog(log), list(ChangeLog(log))
    compact(log, LIMITS)
    asked: list[str] = []
    files = LocalStore.files
    monkeypatch.setattr(LocalStore, "files", lambda store, folder="": (asked.append(folder), files(store, folder))[1])
    assert list(map(attrgetter("payload"), opened)) == list(map(attrgetter("payload"), before))
    assert len(asked) <= len(list(log.glob("segment-*"))) < len(opened.segments) / 8


def test_segments_of_different_options_stay_apart(log: Path, recordings: dict[str, Recording]) -> None:
    """Each keeps the options under which its payloads are decoded."""
    with LogWriter(LocalStore(log, durable=False)) as writer:
        options = writer.options
        assert options is not None
        writer.use(replace(options, publications=("pub", "more")))
        for payload in recordings["18-v1-text"].payloads[:20]:
            writer.append(block_of(Session(**options.layout()), 1, payload))
            writer.publish(writer.position)
    before = facts(ChangeLog(log))
    compact(log, CompactionLimits(least=3, grace=0))
    assert facts(ChangeLog(log)) == before and verify(log).problems == ()
    publications = [segment.options.publications for segment in ChangeLog(log).segments]
    assert publications == [("pub",), ("pub", "more"), ("pub", "more")]


@settings(max_examples=15, phases=[Phase.explicit, Phase.reuse, Phase.generate])  # to shrink a log takes minutes
@given(testing.streams(4, "parallel", two_phase=True).filter(len), st.integers(1, 6), st.integers(2, 30))
def test_any_stream_compacts(stream: list[testing.Sent], rows: int, limit: int) -> None:
    """However a stream is cut, and merged: the indexes are those of the rows."""
    with TemporaryDirectory() as directory:
        write_log(LocalStore(directory, durable=False), [sent.payload for sent in stream], OPTIONS, rows)
        before = facts(ChangeLog(directory))
        compact(directory, CompactionLimits(rows=limit, least=2, grace=0))
        assert facts(ChangeLog(directory)) == before and verify(directory).problems == ()


def test_few_small_segments_are_not_merged(log: Path) -> None:
    """Fewer segments than the least, the newest one, and large ones."""
    files = len(list(log.glob("segment-*")))
    done = compact(log, CompactionLimits(least=files, grace=0))
    assert (done.merged, done.written, done.after) == (0, 0, files)
    done = compact(log, CompactionLimits(least=files - 1, grace=0))
    assert (done.merged, done.written) == (files - 1, 1)
    for wrong in ({"rows": 0}, {"payload_bytes": 0}, {"least": 1}, {"grace": -1}):
        with pytest.raises(ChangeLogError, match="limits of a compaction:"):
            CompactionLimits(**wrong)  # type: ignore[arg-type]


def test_one_compaction_at_a_time(log: Path, tmp_path: Path) -> None:
    """Another compaction is refused; where there is no log, none is made."""
    with open_store(log).lock("maintenance"), pytest.raises(ChangeLogError, match="another maintenance writes into"):
        compact(log, LIMITS)
    with pytest.raises(ChangeLogError, match="no change log here"):
        compact(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
