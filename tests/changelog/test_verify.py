"""verify finds and locates the problems of a log, and continues after each."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pgoutput_construct.changelog import ChangeLog, registry
from pgoutput_construct.changelog import verify as verification
from pgoutput_construct.changelog._index import indexes
from pgoutput_construct.changelog._index.listing import Listing, list_log
from pgoutput_construct.changelog._index.manifest import manifest_names, read_manifest
from pgoutput_construct.changelog._notes.confirmation_note import Note, write_note
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex
from pgoutput_construct.changelog._segment.segment_schema import SCHEMA
from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.changelog._store.store import LogStore
from pgoutput_construct.changelog.compact import CompactionLimits, compact
from pgoutput_construct.changelog.prune import prune
from pgoutput_construct.changelog.verify import OnProgress, Verification, verify
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.wire import Lsn
from tests.live.recording import Recording
from tests.spark.logs import write_recording

pytestmark = pytest.mark.slow

ALL = Lsn(2**63 - 1)


@pytest.fixture
def log(tmp_path: Path, recordings: dict[str, Recording], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log of ten segments and two manifests."""
    monkeypatch.setattr(indexes, "SMALL", 4)
    recording = recordings["18-v4-text"]
    write_recording(LocalStore(tmp_path, durable=False), recording, rows=len(recording.payloads) // 9)
    return tmp_path


def segments(log: Path) -> list[Path]:
    """Return the files of the segments."""
    return sorted(log.glob("segment-*"))


def test_a_complete_log_has_no_problem(log: Path) -> None:
    """Everything was looked at."""
    seen = list[Verification]()
    found = verify(log, seen.append)
    count = len(segments(log))
    assert (found.segments, found.checked, found.manifests, found.problems) == (count, count, 2, ())
    assert found.rows == len(ChangeLog(log)) and len(seen) == count
    with pytest.raises(ChangeLogError, match="no change log here"):
        verify(log / "nothing")


def test_damage_is_reported_and_the_rest_is_checked(log: Path) -> None:
    """Zeroed bytes, a truncated file, a missing file: each is exactly one problem."""
    files = segments(log)
    good = files[3].read_bytes()
    middle = len(good) // 3
    for bad in (good[:middle] + bytes(100) + good[middle + 100 :], good[:-9]):
        files[3].write_bytes(bad)
        found = verify(log)
        assert len(found.problems) == 1 and files[3].name in found.problems[0] and "damaged" in found.problems[0]
        assert found.checked == len(files) - 1
    files[3].unlink()
    assert "are missing before" in verify(log).problems[0] and len(verify(log).problems) == 1


def test_an_index_that_does_not_match_its_rows(log: Path) -> None:
    """A footer whose checksums are right, and whose index is another's."""
    file = segments(log)[2]
    table, metadata = pq.read_table(file), pq.read_metadata(file).metadata
    index = SegmentIndex.from_bytes(metadata[b"pgoutput_construct.index"])
    wrong = SegmentIndex.from_lists(index.first_seq, index.last_seq, index.complete_lsn)
    pairs = {**metadata, b"pgoutput_construct.index": wrong.to_bytes()}
    with pq.ParquetWriter(file, SCHEMA, store_schema=False, use_dictionary=False) as writer:
        writer.write_table(table.cast(SCHEMA))
        writer.add_key_value_metadata(pairs)
    problems = verify(log).problems
    assert f"{file.name}: its index does not match its rows: transactions" in problems[0]


def test_a_manifest_that_does_not_match_its_footers(log: Path) -> None:
    """It is compared with the footers; a damaged one is a problem, though readers do without it."""
    first, second = manifest_names(path.name for path in log.iterdir())
    store = LocalStore(log)
    manifest = read_manifest(store, first.name)
    place = manifest.table.schema.get_field_index("payload_bytes")
    wrong = pa.array([7] * len(manifest))
    replace(manifest, table=manifest.table.set_column(place, manifest.table.schema.field(place), wrong)).write(store)
    (log / second.name).write_bytes(b"")
    problems = verify(log).problems
    assert len(problems) == 5 and sum(": footer; remove it: it is a cache" in text for text in problems) == 4
    assert f"{second.name}: damaged" in problems[-1]


def test_damaged_notes(log: Path) -> None:
    """Lost newest segments, and a reader's file that is none."""
    newest = segments(log)[-1]
    registry.register(log, "r", 0)
    (log / "readers" / "r.json").write_text("{")
    (log / ".confirmed.json").write_text('{"confirmed_lsn": 1, "next_seq": 100000}')
    problems = verify(log).problems
    assert any("restore the removed segments" in text for text in problems)
    (log / ".confirmed.json").unlink()
    assert any("r.json: damaged" in text for text in verify(log).problems)
    shutil.copy(newest, log / "other.parquet")
    (log / "readers" / "r.json").unlink()
    assert verify(log).problems == ()


def test_concurrent_compaction_and_prune_are_no_damage(log: Path, recordings: dict[str, Recording]) -> None:
    """The log is listed again, and what is there instead is read; what is lost meanwhile is a problem still."""
    copies = {count: Path(shutil.copytree(log, log.with_name(f"{log.name}-{count}"))) for count in (1, 2)}

    def after(count: int, act: Callable[[], object]) -> OnProgress:
        return lambda found: act() if found.checked == count else None

    limits = CompactionLimits(rows=10**6, least=2, grace=0)
    for count, copy in copies.items():
        found = verify(copy, after(count, partial(compact, copy, limits)))
        assert found.problems == () and found.checked == found.segments == count + 2
    small = log / "small"
    write_recording(LocalStore(small, durable=False), recordings["18-v4-text"], rows=10)
    count, gone = len(segments(small)), prune(small, ALL, states=False, dry_run=True).segments
    found = verify(small, after(1, partial(prune, small, ALL, states=False)))
    assert gone > 1 and found.problems == () and found.checked == found.segments == count + 1 - gone
    lost = segments(log)[5]
    problems = verify(log, after(2, lost.unlink)).problems
    assert problems and all("are missing before" in text for text in problems)


class Merging(LocalStore):
    """A directory in which a capture merges manifests just before they are read."""

    is_merging = False

    def open(self, name: str) -> pa.NativeFile:
        """Open a file that is not there any more where it is a manifest."""
        if self.is_merging and name.startswith("index-"):
            self.delete(name)
        return super().open(name)


def test_a_concurrent_capture_is_no_damage(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A segment and a note that come when the segments were listed; manifests that go when they were."""
    store, newest, end = Merging(log), segments(log)[-1], ChangeLog(log).segments[-1].last_seq + 1
    aside = newest.rename(log / ".aside")

    def list_then_capture(store: LogStore) -> Listing:
        listing = list_log(store)
        if aside.exists():
            aside.rename(newest)
            write_note(store, Note(Lsn(1), end))
        return listing

    def merge(found: Verification) -> None:
        store.is_merging = True

    monkeypatch.setattr(verification, "list_log", list_then_capture)
    assert verify(store).problems == ()
    found = verify(store, merge)
    assert found.problems == () and found.manifests == 0 and found.checked == found.segments
