"""Manifests: a log opens with few reads, and what they say counts only where it still holds."""

import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pgoutput_construct.changelog import ChangeLog, LogWriter
from pgoutput_construct.changelog._index import indexes
from pgoutput_construct.changelog._index.manifest import manifest_names, read_manifest
from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.changelog.compact import CompactionLimits, compact
from pgoutput_construct.errors import ChangeLogError
from tests.live.recording import Recording
from tests.spark.logs import write_recording

pytestmark = pytest.mark.slow


@pytest.fixture
def log(tmp_path: Path, recordings: dict[str, Recording], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log of some 100 segments with manifests of 4 and of 16 of them."""
    monkeypatch.setattr(indexes, "SMALL", 4)
    monkeypatch.setattr(indexes, "_LARGE", 16)
    recording = recordings["18-v4-text"]
    write_recording(LocalStore(tmp_path, durable=False), recording, rows=len(recording.payloads) // 101)
    return tmp_path


def facts(log: ChangeLog) -> tuple[Any, ...]:
    """Return all that a log says without its payloads."""
    index = log.index
    tables = [
        index.entries(name).to_pylist() for name in ("transactions", "descriptions", "rows", "inherited", "changes")
    ]
    segments = [(each.name, each.options, each.position, each.checks, each.size, each.events) for each in log.segments]
    return segments, tables, index.open.to_pylist(), index.counts.to_pylist(), log.complete_lsn, index.first_seq


def without_manifests(log: Path) -> tuple[Any, ...]:
    """Return the same from the footers alone."""
    for name in manifest_names(path.name for path in log.iterdir()):
        (log / name.name).unlink()
    return facts(ChangeLog(log))


def test_manifests_match_the_footers(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They stay few, and are read in place of footers."""
    names = manifest_names(path.name for path in log.iterdir())
    segments = len(list(log.glob("segment-*")))
    assert segments > 99 and len(names) <= segments // 16 + 4
    assert [after.first_seq for after in names[1:]] == [before.last_seq + 1 for before in names[:-1]]
    opened: list[str] = []
    read = LocalStore.open
    monkeypatch.setattr(LocalStore, "open", lambda store, name: (opened.append(name), read(store, name))[1])
    found = facts(ChangeLog(log))
    assert len(opened) < 2 * len(names) + 8  # a block of transactions each
    assert found == without_manifests(log)


def test_a_manifest_counts_while_files_are_unchanged(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged one is left out, not those inside it; so is what one says of a segment that is not as it was."""
    names = [name.name for name in manifest_names(path.name for path in log.iterdir())]
    good = (log / names[0]).read_bytes()
    expected = facts(ChangeLog(log))
    for bad in (b"", good[:-1], good[:100] + b"x" + good[101:], good[:-100] + b"x" + good[-99:]):
        (log / names[0]).write_bytes(bad)
        assert facts(ChangeLog(log)) == expected
        with pytest.raises(ChangeLogError, match=r"damaged.*remove it"):
            assert read_manifest(LocalStore(log), names[0]).index(slice(None)).transactions
    (log / names[0]).write_bytes(good)
    inside = {name: (log / name).read_bytes() for name in names}
    monkeypatch.setattr(indexes, "_LARGE", 64)
    indexes.rewrite_manifests(LocalStore(log), ChangeLog(log).segments[47].last_seq)
    for name in names:
        (log / name).write_bytes(inside[name])
    outer = manifest_names(path.name for path in log.iterdir())[0].name
    (log / outer).write_bytes(b"")
    listing = ChangeLog(log).segments
    assert facts(ChangeLog(log)) == expected and len(listing.footers) < 16
    (log / outer).unlink()
    first = sorted(log.glob("segment-*"))[1]
    content = first.read_bytes()
    first.write_bytes(content[:-20])
    with pytest.raises(ChangeLogError, match=f"{first.name}: damaged"):
        ChangeLog(log)
    first.write_bytes(content)
    assert facts(ChangeLog(log)) == expected == without_manifests(log)


WRONG: list[tuple[str, Any]] = [
    *((name, None) for name in ("footer", "options", "checks", "block_check", "first_seq", "name", "complete_lsn")),
    *(("footer", text) for text in ("8", "{}", "x", '{"columns": []}')),
    *(("options", text) for text in ("[]", "x", "{}")),
    ("checks", []),
    *(("block_start", number) for number in (1 << 60, -5)),
    *(("block_bytes", number) for number in (1 << 60, -1)),
    ("name", "../x"),
]
"""What a manifest cannot say of a segment."""


def test_an_inconsistent_manifest_is_skipped(log: Path) -> None:
    """Its checksum fits, but not what it says: nothing is read that it leads to, and no memory taken."""
    (name, *_), expected = manifest_names(path.name for path in log.iterdir()), facts(ChangeLog(log))
    content = (log / name.name).read_bytes()
    length = int(content[-24:-8], 16)
    table = pa.ipc.open_stream(content[-24 - length : -24]).read_all()
    for column, value in WRONG:
        kind = table.schema.field(column).type
        values = pa.array([*table[column].to_pylist()[:-1], value], kind)
        changed = table.set_column(table.schema.get_field_index(column), table.schema.field(column), values)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(changed)
        packed = sink.getvalue().to_pybytes()
        end = b"%016x%08x" % (len(packed), zlib.crc32(packed))
        (log / name.name).write_bytes(content[: -24 - length] + packed + end)
        with pytest.raises(ChangeLogError, match=r"damaged.*remove it"):
            read_manifest(LocalStore(log), name.name)
    assert facts(ChangeLog(log)) == expected


def test_a_resumed_writer_continues_manifests(log: Path, recordings: dict[str, Recording]) -> None:
    """A writer that resumes merges what the one before had not, and what has lost its manifests gets new ones."""
    expected = without_manifests(log)
    assert not manifest_names(path.name for path in log.iterdir())
    LogWriter(LocalStore(log, durable=False)).close()
    names = manifest_names(path.name for path in log.iterdir())
    assert len(names) <= len(expected[0]) // 16 + 4 and facts(ChangeLog(log)) == expected
    LogWriter(LocalStore(log, durable=False)).close()
    assert manifest_names(path.name for path in log.iterdir()) == names


def test_manifests_are_rewritten(log: Path) -> None:
    """After segments were replaced: as few manifests as possible; the old ones are removed."""
    expected = facts(ChangeLog(log))
    indexes.rewrite_manifests(LocalStore(log), ChangeLog(log).segments[90].last_seq)
    names = manifest_names(path.name for path in log.iterdir())
    assert len(names) <= 91 // 16 + 1 + 3 and facts(ChangeLog(log)) == expected
    assert names[0].first_seq == 0 and facts(ChangeLog(log)) == without_manifests(log)


def test_a_follower_reads_only_new_footers(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an earlier object at hand one segment's footer is read; what was compacted meanwhile is read, too."""
    expected, last = facts(ChangeLog(log)), sorted(log.glob("segment-*"))[-1]
    moved = last.rename(log / ".aside")
    before = ChangeLog(log)
    assert facts(before) != expected
    moved.rename(last)
    opened: list[str] = []
    read = LocalStore.open
    monkeypatch.setattr(LocalStore, "open", lambda store, name: (opened.append(name), read(store, name))[1])
    after = ChangeLog(log, before)
    assert after.index.entries("marked").num_rows
    assert [name for name in opened if name.endswith((".parquet", ".arrow"))] == [last.name]
    assert facts(after) == expected
    assert compact(log, CompactionLimits(grace=0)).merged
    assert facts(ChangeLog(log, after)) == facts(ChangeLog(log))
