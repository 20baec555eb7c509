"""A log as of an earlier seq is the log that ended there; without Spark."""

from dataclasses import replace
from pathlib import Path

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.changelog.reader import index_as_of
from pgoutput_construct.spark._log_view.log_tables import LogTables
from tests.live.recording import Recording
from tests.spark.logs import write_recording


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["18-v4-text", *(pytest.param(name, marks=pytest.mark.long) for name in ("16-v1-text", "18-v2-binary"))]
)
def test_as_of_a_seq(tmp_path: Path, recordings: dict[str, Recording], name: str) -> None:
    """Where transactions ended, and amid one, it has what a log has that was written up to there."""
    recording = recordings[name]
    write_recording(tmp_path / "all", recording, rows=170)
    log = ChangeLog(tmp_path / "all")
    ends = log.transactions()["seq"].to_pylist()
    for seq in (*ends[:: max(1, len(ends) // 8)], ends[3] + 1, ends[-1], 169, log.index.last_seq):
        write_recording(tmp_path / str(seq), replace(recording, payloads=recording.payloads[: seq + 1]), rows=170)
        found, expected = LogTables.from_log(log, seq), LogTables.from_log(ChangeLog(tmp_path / str(seq)))
        assert found.plan.spans == expected.plan.spans
        assert found.tables == expected.tables and found.as_of == seq
        assert found.index.transactions.equals(expected.index.transactions)


def test_seqs_that_the_log_does_not_have(tmp_path: Path, recordings: dict[str, Recording]) -> None:
    """They are refused: what comes later is not known yet."""
    write_recording(tmp_path, recordings["16-v1-text"])
    log = ChangeLog(tmp_path)
    for seq in (-1, log.index.last_seq + 1):
        with pytest.raises(pgo.ChangeLogError, match=rf"there is no entry with seq {seq}: the log has 0 to"):
            index_as_of(log, seq)
