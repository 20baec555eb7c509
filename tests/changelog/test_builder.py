"""The builder of a log's index in the writer: it continues after errors, and after a prune of what it needs."""

from pathlib import Path

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.changelog import ChangeLog, LogWriter, Position
from pgoutput_construct.changelog._segment.block import Block
from pgoutput_construct.columnar.descriptions import OUTSIDE
from tests.spark.logs import log_options

LSN, TIME = pgo.Lsn(5), pgo.Timestamp(6)
BEGIN, COMMIT = pgo.build(pgo.Begin(LSN, TIME, 7)), pgo.build(pgo.Commit(LSN, pgo.Lsn(6), TIME))
RELATION = pgo.build(pgo.Relation(None, 1, "public", "t", "d", ()))
INSERT = pgo.build(pgo.Insert(None, 1, ()))


def test_a_full_disk_after_a_prune(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Relation is in a removed segment; the builder that failed still has it."""

    def write(*payloads: bytes) -> None:
        count = len(payloads)
        writer.append(Block.from_payloads(payloads, [0] * count, [0] * count, options.layout(), {}, [OUTSIDE] * count))
        writer.publish(Position())

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    options = log_options()
    with LogWriter(tmp_path) as writer:
        writer.use(options)
        write(BEGIN, RELATION, COMMIT)
        write(BEGIN, COMMIT)
        next(tmp_path.glob("segment-*0-*.parquet")).unlink()
        (tmp_path / "pruned.json").write_text('{"first_seq": 3}')
        with monkeypatch.context() as patch, pytest.raises(pgo.ChangeLogError, match="No space left"):
            patch.setattr("os.fsync", full)
            write(BEGIN, INSERT, COMMIT)
        writer.publish(Position())
        write(BEGIN, INSERT, COMMIT)
    log = ChangeLog(tmp_path)
    assert log.index.entries("rows")["description"].to_pylist() == [1, 1]
    assert [description.relation.name for description in log.descriptions()] == ["t"]
