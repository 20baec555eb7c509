"""Compaction and prune are killed while a log is written and read."""

from pathlib import Path

import pytest

from tools.faults.upkeep import attack

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("transactions", "kills"), [(1500, 3), pytest.param(4000, 6, marks=pytest.mark.long)])
def test_nothing_is_lost_when_upkeep_is_killed(tmp_path: Path, transactions: int, kills: int) -> None:
    """Each transaction has its row, once, in whatever a reader opens; in the end every index is that of its rows."""
    report = attack(tmp_path / "log", transactions, kills, seed=4)
    assert report.kills_of_upkeep == kills and report.kills_of_writer and report.reads >= kills // 2 and report.pruned
