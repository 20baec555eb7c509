"""The change log without a server: written, read, damaged, locked, foreign."""

import os
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pgoutput_construct.changelog._notes.confirmation_note import read_note
from pgoutput_construct.changelog._segment.block import Block
from pgoutput_construct.changelog.verify import verify
from pgoutput_construct.columnar.descriptions import OUTSIDE
from pgoutput_construct.errors import ChangeLogError, DecodeError
from pgoutput_construct.postgres import SCHEMA, ChangeLog, LogOptions, LogWriter, Position, SegmentLimits, explain
from pgoutput_construct.wire import Lsn, Timestamp, XLogData, parse

OPTIONS = LogOptions(
    slot="s",
    publications=("p", 'q"'),
    proto_version=4,
    streaming="parallel",
    server_version=180004,
    system_identifier="7",
    database="d",
)


def _frame(number: int, wal_start: int | None = None) -> XLogData:
    position = Lsn(number if wal_start is None else wal_start)
    return XLogData(position, position, Timestamp(number * 1_000_000), b"payload %d" % number * (number % 5))


def _append(writer: LogWriter, frame: XLogData, stream_xid: int = OUTSIDE) -> None:
    start = np.array([frame.wal_start], np.uint64).view(np.int64)
    states = {"in_stream": [stream_xid != OUTSIDE]}
    writer.append(Block.from_payloads([frame.data], start, [frame.send_time], OPTIONS.layout(), states, [stream_xid]))


def _name(first: int, last: int) -> str:
    return f"segment-{first:020d}-{last:020d}.parquet"


def _write(directory: Path, *sizes: int) -> None:
    with LogWriter(directory) as writer:
        writer.use(OPTIONS)
        for size in sizes:
            for _ in range(size):
                _append(writer, _frame(writer.next_seq), 7 if writer.next_seq % 3 == 0 else OUTSIDE)
            assert writer.publish(Position(Lsn(writer.next_seq - 1), {"g\udcff": 5}, (4,)))


def test_written_entries_are_read_back(tmp_path: Path) -> None:
    """Entries, options and positions come back as they were, over several segments and several writers."""
    _write(tmp_path, 3, 4)
    _write(tmp_path, 5)
    log = ChangeLog(tmp_path)
    entries = list(log)
    assert [entry.seq for entry in entries] == list(range(12)) and len(log) == 12
    assert [entry.payload for entry in entries] == [_frame(number).data for number in range(12)]
    assert [entry.send_time for entry in entries] == [_frame(number).send_time for number in range(12)]
    assert [entry.stream_xid for entry in entries] == [7 if number % 3 == 0 else None for number in range(12)]
    assert all(entry.in_stream == (entry.stream_xid is not None) for entry in entries)
    assert log.options == OPTIONS and log.complete_lsn == 11 and log.segments[-1].position.prepared == {"g\udcff": 5}
    assert [segment.rows for segment in log.segments] == [3, 4, 5]
    assert [entry.seq for entry in log.entries(6)] == list(range(6, 12))
    assert log.entry(8) == entries[8]
    with pytest.raises(ChangeLogError, match="there is no entry with seq 12: the log has 0 to 11"):
        log.entry(12)


def test_a_segment_is_plain_parquet(tmp_path: Path) -> None:
    """Any reader of Parquet sees the columns of the contract."""
    _write(tmp_path, 3)
    table = pq.read_table(tmp_path / _name(0, 2))
    assert table.schema.remove_metadata() == SCHEMA
    assert table["send_time"].type == pa.timestamp("us", "UTC")
    assert str(table["send_time"][1].as_py()) == "2000-01-01 00:00:01+00:00"


@pytest.mark.slow
@pytest.mark.parametrize("count", [200, pytest.param(500, marks=pytest.mark.long)])
def test_every_flipped_byte_is_detected_or_harmless(tmp_path: Path, count: int) -> None:
    """Whatever byte of a segment changes: an error that names the segment, or exactly the same entries."""
    _write(tmp_path, 40)
    path = tmp_path / _name(0, 39)
    good, whole = path.read_bytes(), list(ChangeLog(tmp_path))
    choose = random.Random(1)
    noticed = 0
    for place in choose.sample(range(len(good)), count):
        flipped = bytearray(good)
        flipped[place] ^= 1 << choose.randrange(8)
        path.write_bytes(flipped)
        try:
            log = ChangeLog(tmp_path)
            assert (list(log), log.options, log.complete_lsn) == (whole, OPTIONS, 39)
        except ChangeLogError as error:
            assert path.name in str(error)
            noticed += 1
    assert noticed > count // 2


@pytest.mark.slow
def test_damage_names_the_segment(tmp_path: Path) -> None:
    """A flipped byte of a payload, a cut file, an empty file, another Parquet file: each names its segment."""
    _write(tmp_path, 2000, 3)
    path = tmp_path / _name(0, 1999)
    good = path.read_bytes()
    foreign = tmp_path.parent / "foreign.parquet"
    pq.write_table(pa.table({"seq": [1]}), foreign)
    middle = len(good) // 2
    for bad in (
        good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1 :],
        good[:-9],
        b"",
        foreign.read_bytes(),
    ):
        path.write_bytes(bad)
        with pytest.raises(ChangeLogError, match=path.name):
            list(ChangeLog(tmp_path))
    path.unlink()
    with pytest.raises(ChangeLogError, match=f"the seqs 0 to 1999 are missing.* before {_name(2000, 2002)}"):
        ChangeLog(tmp_path)


def test_a_missing_segment_is_detected(tmp_path: Path) -> None:
    """A gap in the seqs is named, also at the front, unless the log says that it was pruned."""
    _write(tmp_path, 2, 3, 4)
    (tmp_path / _name(2, 4)).unlink()
    with pytest.raises(ChangeLogError, match="seqs 2 to 4 are missing"):
        ChangeLog(tmp_path)
    (tmp_path / _name(0, 1)).unlink()
    with pytest.raises(ChangeLogError, match="seqs 0 to 4 are missing"):
        ChangeLog(tmp_path)
    (tmp_path / "pruned.json").write_text('{"first_seq": 5, "lsn": 0, "time": 0}')
    assert [entry.seq for entry in ChangeLog(tmp_path)] == [5, 6, 7, 8]
    (tmp_path / "pruned.json").write_text("{}")
    with pytest.raises(ChangeLogError, match=r"pruned\.json: damaged"):
        ChangeLog(tmp_path)


def test_a_renamed_or_foreign_segment_is_detected(tmp_path: Path) -> None:
    """A segment under another's name, and one of another log, are refused."""
    _write(tmp_path / "a", 2, 3)
    (tmp_path / "a" / _name(2, 4)).rename(tmp_path / "a" / _name(2, 5))
    with pytest.raises(ChangeLogError, match=r"its footer is that of segment-0+2"):
        ChangeLog(tmp_path / "a")


def test_an_empty_directory_is_no_log(tmp_path: Path) -> None:
    """Reading needs at least one segment; files in the making do not count."""
    (tmp_path / ".segment-00000000000000000000.parquet.tmp").write_bytes(b"half")
    with pytest.raises(ChangeLogError, match="no change log here"):
        ChangeLog(tmp_path)


def test_a_new_writer_removes_unfinished_files_and_resumes(tmp_path: Path) -> None:
    """Files left by a crash are removed; seq, position and prepared transactions continue."""
    _write(tmp_path, 3)
    (tmp_path / ".segment-00000000000000000003.parquet.tmp").write_bytes(b"half")
    with LogWriter(tmp_path) as writer:
        assert (writer.next_seq, writer.position) == (3, Position(Lsn(2), {"g\udcff": 5}, (4,)))
        assert writer.options == OPTIONS
    assert not list(tmp_path.glob("*.tmp")) and not list(tmp_path.glob(".*.tmp"))


def test_two_writers_cannot_share_a_directory(tmp_path: Path) -> None:
    """The second is refused, and may write when the first is done."""
    with LogWriter(tmp_path), pytest.raises(ChangeLogError, match="another capture writes into this directory"):
        LogWriter(tmp_path)
    LogWriter(tmp_path).close()


def test_another_log_is_refused_with_a_remedy(tmp_path: Path) -> None:
    """Cluster, database and slot must be the same; how the changes are sent may differ from segment to segment."""
    from dataclasses import replace

    _write(tmp_path, 1)
    with LogWriter(tmp_path) as writer:
        for change in ({"slot": "t"}, {"system_identifier": "8"}, {"database": "e"}):
            with pytest.raises(ChangeLogError, match=f"{next(iter(change))}.*another directory"):
                writer.use(replace(OPTIONS, **change))
        for change in ({"publications": ("p",)}, {"proto_version": 3, "streaming": "on"}, {"binary": True}):
            writer.use(replace(OPTIONS, **change, server_version=190000))


def test_positions_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    """A position beyond 2^63 and a clock beyond 64 bits raise; they do not wrap."""
    with LogWriter(tmp_path) as writer:
        writer.use(OPTIONS)
        with pytest.raises(ChangeLogError, match="FFFFFFFF/FFFFFFFF is beyond"):
            _append(writer, _frame(1, 2**64 - 1))
        _append(writer, _frame(1))
        with pytest.raises(ChangeLogError, match="is beyond"):
            writer.publish(Position(Lsn(2**63)))
        _append(writer, XLogData(Lsn(1), Lsn(1), Timestamp(2**63 - 1), b""))
        with pytest.raises(ChangeLogError, match="seq 1 cannot be written"):
            writer.publish(Position(Lsn(1)))


def test_a_full_disk_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No segment is written, nothing is left behind, and the rows can be written later."""

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with LogWriter(tmp_path) as writer:
        writer.use(OPTIONS)
        _append(writer, _frame(1))
        assert writer.publish(Position(Lsn(1)))  # the first one also writes what the log is
        _append(writer, _frame(2))
        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", full)
            with pytest.raises(ChangeLogError, match=r"segment-\S+: cannot be written: .*No space left"):
                writer.publish(Position(Lsn(2)))
        assert [path.name for path in tmp_path.glob("*segment*")] == [_name(0, 0)]
        assert writer.publish(Position(Lsn(2))) and len(ChangeLog(tmp_path)) == 2


def test_new_directories_are_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of every directory that is made is synced in the one above it, from the top down."""
    synced: list[Path] = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").resolve())
        fsync(descriptor)

    monkeypatch.setattr("os.fsync", note)
    for expected in ([tmp_path, tmp_path / "a", tmp_path / "a/b"], [tmp_path / "a/b"]):
        LogWriter(tmp_path / "a/b/log").close()
        assert synced == expected
        synced.clear()


def test_invalid_directories(tmp_path: Path) -> None:
    """A file in the way, above or in its place, and a refused lock or position: the error names the place."""
    file = tmp_path / "file"
    file.touch()
    for directory in (file, file / "log", file / "a/log"):
        with pytest.raises(ChangeLogError, match=rf"^{directory}: .*cannot be created: .*another address"):
            LogWriter(directory)
    (tmp_path / "log/.capture.lock").mkdir(parents=True)
    with pytest.raises(ChangeLogError, match=r"log: .*cannot be locked: Is a directory \(.*\.lock\)"):
        LogWriter(tmp_path / "log")
    with LogWriter(tmp_path / "other") as writer:
        (tmp_path / "other/.confirmed.json.tmp").mkdir()
        with pytest.raises(ChangeLogError, match=r"confirmed\.json: .*cannot be written: Is a directory"):
            writer.cut(Position(Lsn(5)))
            writer.collect(wait=True)
        assert writer.noted_lsn == 0


def test_a_lost_last_segment_that_moved_nothing(tmp_path: Path) -> None:
    """One of events alone, or of copied rows: a slot does not show that it existed, and readers may have read it."""
    _write(tmp_path, 3)
    for name in (_name(3, 3), _name(4, 4)):
        with LogWriter(tmp_path) as writer:
            writer.use(OPTIONS)
            writer.append_fact("said", Lsn(1))
            assert writer.publish(writer.position)
        kept = (tmp_path / name).rename(tmp_path / "kept")
        seq = int(name[8:28])
        lost = f"the log ends at seq {seq - 1}, but it had seq {seq} to {seq} .*restore the removed segments"
        with pytest.raises(ChangeLogError, match=lost):
            LogWriter(tmp_path)
        assert any("restore the removed segments" in text for text in verify(tmp_path).problems)
        kept.rename(tmp_path / name)
    _write(tmp_path, 2)
    assert ChangeLog(tmp_path).segments[-1].last_seq == 6 and verify(tmp_path).problems == ()


@pytest.mark.parametrize("ended", [False, True])
def test_a_note_that_fails_after_its_segment(tmp_path: Path, ended: bool, caplog: pytest.LogCaptureFixture) -> None:
    """The segment is durable all the same; the note is written with the next cut, also after the process was killed."""
    _write(tmp_path, 3)
    blocked = tmp_path / ".confirmed.json.tmp"
    writer = LogWriter(tmp_path)
    writer.use(OPTIONS)
    blocked.mkdir()
    writer.append_fact("said", Lsn(1))
    assert writer.publish(writer.position) and "cannot be written" in caplog.text
    assert writer.pending == 0 and writer.durable_seq == 3 and read_note(writer.store).next_seq < 4
    blocked.rmdir()
    if ended:
        writer.close()
        writer = LogWriter(tmp_path)
        writer.use(OPTIONS)
    with writer:
        writer.cut(writer.position)
        writer.collect(wait=True)
        assert read_note(writer.store).next_seq == 4
        writer.append_fact("said", Lsn(1))
        assert writer.publish(writer.position)
    assert read_note(writer.store).next_seq == 5 and verify(tmp_path).problems == ()


def test_the_limits_cut_by_rows_bytes_and_time(tmp_path: Path) -> None:
    """Whichever limit comes first makes a segment due; nothing is due without rows."""
    for limits in (
        SegmentLimits(rows=2, seconds=60),
        SegmentLimits(payload_bytes=15, seconds=60),
        SegmentLimits(seconds=0),
    ):
        with LogWriter(tmp_path, limits) as writer:
            assert not writer.is_due()
            for number in (1, 2):
                _append(writer, _frame(number))
            assert writer.is_due()
    with pytest.raises(ChangeLogError):
        SegmentLimits(rows=0)


def test_an_error_in_a_payload_names_segment_seq_and_field(tmp_path: Path) -> None:
    """explain adds the place in the log to the place in the message."""
    with LogWriter(tmp_path) as writer:
        writer.use(OPTIONS)
        _append(writer, XLogData(Lsn(5), Lsn(5), Timestamp(0), b"B\0\0"))
        writer.publish(Position(Lsn(5)))
    entry = ChangeLog(tmp_path).entry(0)
    with pytest.raises(DecodeError) as caught:
        parse(entry.payload)
    text = str(explain(entry, caught.value))
    assert text.startswith(
        "segment segment-00000000000000000000-00000000000000000000.parquet, seq 0 (WAL 0/5): Begin.final_lsn"
    )
