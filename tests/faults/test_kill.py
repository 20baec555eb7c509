"""The short form of ``python -m tools.faults capture``: everything is broken at least once, and nothing is lost."""

import os
import signal
from pathlib import Path

import pytest

from pgoutput_construct.demo.server import EmbeddedServer
from tools.faults.attack import Round
from tools.faults.breaking import Breaking
from tools.faults.counts import Faults
from tools.faults.judge import Verdict
from tools.faults.modes import MODES

pytestmark = pytest.mark.server


@pytest.mark.parametrize(("version", "mode"), [(16, "v2-two-phase-slot"), (18, "v4-parallel-two-phase")])
def test_nothing_is_lost_repeated_or_visible_though_rolled_back(
    version: int, mode: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Captures killed, the server stopped without warning, connections cut: the log says what the witness says."""
    server: EmbeddedServer = request.getfixturevalue(f"attacked{version}")
    (chosen,) = (known for known in MODES if known.name == mode)
    report = Round(server, chosen, Faults(kills=4, stops=1, cuts=1, tidies=2), tmp_path / mode, seed=version).run()
    assert report.verdict.good, report.verdict.problems
    counts = report.counts
    assert counts.kills >= 4 and (counts.stops, counts.cuts, counts.compactions + counts.prunes) == (1, 1, 2)
    assert min(counts.transactions, counts.rolled_back) > 10 and counts.entries > counts.changes


class _Interrupted(Round):
    """A round in which a capture ends, and not by one of the faults."""

    def _attack(self, breaking: Breaking) -> None:
        breaking.begin()
        assert breaking.process.pid is not None
        os.kill(breaking.process.pid, signal.SIGTERM)
        super()._attack(breaking)


def test_a_capture_that_gives_up_fails_its_round(attacked18: EmbeddedServer, tmp_path: Path) -> None:
    """Though another one is started, and the log says the truth."""
    report = _Interrupted(attacked18, MODES[0], Faults(kills=1), tmp_path / "ended", seed=1).run()
    assert not report.verdict.good and report.verdict == Verdict(ended=1, problems=report.verdict.problems)
    assert report.verdict.problems[0].startswith("ended 1: status ") and report.counts.ended == 1
