"""What an index notes of invalid messages, and of those whose rows nothing reads; what a reader makes of it later."""

from collections.abc import Callable
from pathlib import Path

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.changelog import ChangeLog, LogWriter, Position, reader
from pgoutput_construct.changelog._index import index_builder
from pgoutput_construct.changelog._index.index_builder import IndexBuilder
from pgoutput_construct.changelog._segment.block import Block
from pgoutput_construct.changelog._segment.segment_index import MOST_FAULTS, SegmentIndex
from pgoutput_construct.changelog.compact import _merge_indexes
from pgoutput_construct.changelog.reader import refuse_faults, refuse_unread
from pgoutput_construct.changelog.verify import differences
from pgoutput_construct.columnar.descriptions import OUTSIDE
from tests.spark.logs import log_options

ORIGIN, MESSAGE = pgo.build(pgo.Origin(pgo.Lsn(1), "o")), pgo.build(pgo.Message(None, 0, pgo.Lsn(1), "p", b""))
UNREAD = frozenset({pgo.Origin, pgo.Message})


@pytest.fixture(autouse=True)
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Indexes are made by a version to which both may change rows."""
    monkeypatch.setattr(index_builder, "UNREAD", UNREAD)


def indexed(*segments: list[bytes]) -> SegmentIndex:
    """Return the indexes of segments, each a block, as footers have them."""
    builder, indexes = IndexBuilder(), list[SegmentIndex]()
    for payloads in segments:
        count = len(payloads)
        builder.add(Block.from_payloads(payloads, [0] * count, [0] * count, {}, {}, [OUTSIDE] * count))
        indexes.append(SegmentIndex.from_bytes(builder.finish(0).to_bytes()))
    return SegmentIndex.concat(indexes)


@pytest.mark.parametrize("payloads", [[ORIGIN, MESSAGE], [MESSAGE, ORIGIN], [b"?", MESSAGE], [MESSAGE, b"?"]])
def test_faults_are_in_order(payloads: list[bytes]) -> None:
    """Whatever they are, in one block."""
    assert [fault["seq"] for fault in indexed(payloads).entries("faults").to_pylist()] == [0, 1]


def test_merged_indexes_have_the_faults_of_their_rows() -> None:
    """Each problem once, as an index that is made from all rows has it."""
    segments = [b"?", MESSAGE], [MESSAGE, b"?", ORIGIN]
    merged, whole = _merge_indexes(indexed(*segments), None), indexed([each for rows in segments for each in rows])
    assert differences(merged, whole) == []
    assert [fault["seq"] for fault in merged.entries("faults").to_pylist()] == [0, 1, 4]


def log_of(path: Path, *payloads: bytes) -> ChangeLog:
    """Write a log of one segment."""
    count = len(payloads)
    with LogWriter(path) as writer:
        writer.use(log_options())
        writer.append(
            Block.from_payloads(payloads, [0] * count, [0] * count, log_options().layout(), {}, [OUTSIDE] * count)
        )
        writer.publish(Position())
    return ChangeLog(path)


@pytest.fixture
def log(tmp_path: Path) -> ChangeLog:
    """A log of one Message."""
    return log_of(tmp_path, MESSAGE)


@pytest.mark.parametrize("refuse", [refuse_faults, refuse_unread])
def test_the_class_of_a_message_decides_later(
    log: ChangeLog, monkeypatch: pytest.MonkeyPatch, refuse: Callable[..., None]
) -> None:
    """A change since then is refused, as its rows are in no index; what changes no row is ignored, and read once."""
    monkeypatch.setattr(reader, "UNREAD", UNREAD)
    with pytest.raises(pgo.ChangeLogError, match=r"seq 0 .*Message may change rows"):
        refuse(log, log.index)
    monkeypatch.setattr(reader, "UNREAD", frozenset())
    monkeypatch.setattr(reader, "CHANGES", frozenset({pgo.Message}))
    with pytest.raises(pgo.ChangeLogError, match=r"seq 0 .*index lacks its rows: capture into a new log"):
        refuse(log, log.index)
    monkeypatch.setattr(reader, "CHANGES", frozenset())
    refuse(log, log.index)
    monkeypatch.setattr(ChangeLog, "entry", None)
    refuse(ChangeLog(log.store, log), log.index)


def test_an_invalid_message_remains_a_fault(tmp_path: Path) -> None:
    """Also one of a class without rows; only readers that read every message of a table continue."""
    log = log_of(tmp_path, MESSAGE[:-1])
    refuse_unread(log, log.index)
    with pytest.raises(pgo.ChangeLogError, match=r"seq 0 .*Message\."):
        refuse_faults(log, log.index)


def test_unread_rows_after_many_other_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index lists some problems only, and readers of tables refuse what may change rows after these."""
    invalid = [MESSAGE[:1] + bytes([flags]) + MESSAGE[2:] for flags in range(2, MOST_FAULTS + 2)]
    log = log_of(tmp_path, *invalid, ORIGIN[:-1], ORIGIN)
    assert len(log.index.entries("faults")) == MOST_FAULTS
    monkeypatch.setattr(reader, "UNREAD", frozenset({pgo.Origin}))
    with pytest.raises(pgo.ChangeLogError, match=r"seq 101 .*Origin may change rows"):
        refuse_unread(log, log.index)
    monkeypatch.setattr(reader, "UNREAD", frozenset())
    monkeypatch.setattr(reader, "CHANGES", frozenset({pgo.Origin}))
    with pytest.raises(pgo.ChangeLogError, match=r"seq 101 .*index lacks its rows"):
        refuse_unread(log, log.index)
    monkeypatch.setattr(reader, "CHANGES", frozenset())
    refuse_unread(log, log.index)
