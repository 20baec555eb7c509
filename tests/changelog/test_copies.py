"""Rows of table copies in the log, in addition to the stream."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import pgoutput_construct as pgo
from pgoutput_construct.changelog import Block, ChangeLog, LogWriter, Position
from pgoutput_construct.changelog._facts.copies import TableCopy, latest_copies
from pgoutput_construct.changelog._facts.visibility import Snapshot, Visibility
from pgoutput_construct.changelog._segment.events import COPIED_TABLE
from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.changelog.compact import CompactionLimits, compact
from pgoutput_construct.changelog.verify import verify
from pgoutput_construct.errors import EngineError
from pgoutput_construct.wire import Lsn, Timestamp
from pgoutput_construct.wire.messages import Begin, Commit, Insert, Relation, RelationColumn
from tests.changelog.blocks import block_of
from tests.spark.logs import log_options

OPTIONS = log_options(1)
BEGIN = Begin(final_lsn=Lsn(10), commit_time=Timestamp(5), xid=96)
COPY = TableCopy(-1, 7, "public", "orders", Snapshot(90, 95, (92,), Lsn(50)), 3, 4, 4, Visibility.at(Lsn(50)))


def relation(*names: str) -> bytes:
    """Describe the table by its columns."""
    columns = tuple(RelationColumn(flags=0, name=name, type_oid=25, type_modifier=-1) for name in names)
    fields = {"relation_oid": 7, "namespace": "public", "name": "orders", "replica_identity": "d"}
    return pgo.build(Relation(**fields, columns=columns))  # type: ignore[arg-type]


def copied(number: int, names: tuple[str, ...], count: int) -> Block:
    """Return some rows of a chunk, as a copy hands them over."""
    rows = [pgo.build(Insert(relation_oid=7, new=(b"%d" % row,) * len(names))) for row in range(count)]
    return Block.copied(pa.array([relation(*names), *rows], pa.binary()), number, 50, 60, OPTIONS.layout())


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of two chunks of another shape, of which the second comes in two pieces, between two transactions."""
    session = pgo.Session(1)
    begin, commit = BEGIN, Commit(commit_lsn=Lsn(10), end_lsn=Lsn(11), commit_time=Timestamp(5))
    row = Insert(relation_oid=7, new=(b"a",))
    with LogWriter(LocalStore(tmp_path, durable=False)) as writer:
        writer.use(OPTIONS)
        for seq, payload in enumerate([pgo.build(begin), relation("a"), pgo.build(row), pgo.build(commit)]):
            writer.append(block_of(session, seq, payload))
        writer.append(copied(3, ("a", "b"), 2))
        writer.publish(Position(Lsn(11)))
        writer.append(copied(4, ("a", "b"), 1))
        writer.append(copied(4, ("a", "b"), 1))
        writer.append_event(COPIED_TABLE, COPY.snapshot.lsn, **COPY.said())
        for seq, payload in enumerate([pgo.build(begin), pgo.build(row), pgo.build(commit)]):
            writer.append(block_of(session, seq, payload))
        writer.publish(Position(Lsn(11)))
    return tmp_path


def test_copies_do_not_describe_the_stream(log: Path) -> None:
    """What describes copied rows counts for these alone; the stream's own description stays in force around them."""
    opened = ChangeLog(log)
    assert [entry.payload[:1] for entry in opened] == [b"B", b"R", b"I", b"C", b"B", b"I", b"C"] and len(opened) == 7
    rows = [entry for entry in opened.entries(copied=True) if entry.payload[:1] == b"I"]
    assert [entry.snapshot for entry in rows] == [None, 3, 3, 4, 4, None]
    history = opened.descriptions()
    assert [len(description.relation.columns) for description in history] == [1, 2, 2, 2]
    assert opened.transactions()["xid"].to_pylist() == [96, 96]
    assert opened.index.entries("snapshots").to_pylist() == [
        {"number": 3, "oid": 7, "rows": 2},
        {"number": 4, "oid": 7, "rows": 2},
    ]
    (copy,) = latest_copies(opened.index).values()
    assert copy == replace(COPY, seq=copy.seq)
    assert verify(log).problems == ()


def test_copies_survive_compaction(log: Path) -> None:
    """In one segment they are what they were in two."""
    before = ChangeLog(log)
    entries, described = list(before.entries(copied=True)), before.descriptions()
    with LogWriter(log) as writer:
        writer.use(OPTIONS)
        writer.append(block_of(pgo.Session(1), 0, pgo.build(BEGIN)))
        writer.publish(Position(Lsn(11)))
    assert compact(log, CompactionLimits(least=2, grace=0)).merged == 2
    after = ChangeLog(log)
    assert [entry[:6] for entry in after.entries(copied=True)][:-1] == [entry[:6] for entry in entries]
    assert after.descriptions() == described and verify(log).problems == ()
    assert after.index.entries("snapshots").to_pylist() == before.index.entries("snapshots").to_pylist()


def test_not_inside_a_transaction(tmp_path: Path) -> None:
    """The span of a transaction holds its own rows alone: copied ones that come inside it are refused."""
    with LogWriter(LocalStore(tmp_path, durable=False)) as writer, pytest.raises(EngineError, match="inside a trans"):
        writer.use(OPTIONS)
        writer.append(block_of(pgo.Session(1), 0, pgo.build(BEGIN)))
        writer.append(copied(3, ("a",), 1))
        writer.publish(Position(Lsn(11)))


@pytest.mark.parametrize("epoch", [0, 1, 5])
def test_visibility(epoch: int) -> None:
    """By 32 bits of the xid: what had not ended, and what came later, also beyond the end of an epoch."""
    whole = epoch * 2**32
    snapshot = Snapshot(whole + 90, whole + 95, (whole + 92, whole + 94), Lsn(0))
    xids = np.array([3, 89, 90, 91, 92, 93, 94, 95, 96, 2**31 + 94, 2**31 + 96, 2**32 - 1])
    expected = [False, False, False, False, True, False, True, True, True, True, False, False]
    assert snapshot.invisible(xids).tolist() == expected
    late = Snapshot(whole - 1, whole + 2, (), Lsn(0)) if epoch else Snapshot(2**32 - 1, 2**32 + 2, (), Lsn(0))
    assert late.invisible(np.array([2**32 - 1, 0, 1, 2, 3])).tolist() == [False, False, False, True, True]
