"""Compaction and prune are killed while a log is written and read."""

from pathlib import Path

from tools.faults.upkeep import attack


def test_nothing_is_lost_when_upkeep_is_killed(tmp_path: Path) -> None:
    """Each transaction has its row, once, in whatever a reader opens; in the end every index is that of its rows."""
    report = attack(tmp_path / "log", 4000, kills=6, seed=4)
    assert report.kills_of_upkeep == 6 and report.kills_of_writer and report.reads >= 3 and report.pruned
