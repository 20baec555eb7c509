"""Logs that earlier versions wrote: names without an end, no index, fewer columns."""

import shutil
from pathlib import Path

from pgoutput_construct.changelog.planning import committed_spans
from pgoutput_construct.changelog.reader import ChangeLog
from tests.changelog.test_index import changed, ended
from tests.live.recording import Recording
from tests.spark.logs import log_options, write_log, write_recording

STORED = Path(__file__).parents[1] / "data" / "log-format-1"
"""The recording 18-v4-text, written by the last version of format 1."""


def test_a_log_of_format_1_reads_as_one_of_format_2(recordings: dict[str, Recording], tmp_path: Path) -> None:
    """The same entries; and the same index, computed from the payloads."""
    write_recording(tmp_path, recordings["18-v4-text"], rows=200)
    old, new = ChangeLog(STORED), ChangeLog(tmp_path)
    assert [entry.payload for entry in old] == [entry.payload for entry in new]
    assert [entry.states for entry in old] == [entry.states for entry in new]
    assert ended(old.index) == ended(new.index) and changed(old.index) == changed(new.index)
    assert committed_spans(old.index) == committed_spans(new.index)
    assert old.descriptions() == new.descriptions()
    assert [segment.options.log_format for segment in (*old.segments, *new.segments)] == [1, 1, 1, 3, 3, 3]


def test_a_log_of_format_1_goes_on_in_format_2(recordings: dict[str, Recording], tmp_path: Path) -> None:
    """What is written next has an index, which knows of what was before."""
    payloads = recordings["18-v4-text"].payloads
    shutil.copytree(STORED, tmp_path / "log")
    write_log(tmp_path / "log", payloads, log_options(4, "parallel", two_phase=True), rows=10_000)
    log = ChangeLog(tmp_path / "log")
    assert [segment.index is None for segment in log.segments] == [True, True, True, False]
    assert [entry.payload for entry in log] == [*payloads, *payloads]
    assert ended(log.index.one(3))[-1][1:7] == ended(log.index.one(2))[-1][1:7]
