"""The short form of ``python -m tools.faults capture``: everything is broken at least once, and nothing is lost."""

import random
from pathlib import Path

import pytest

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from tests.postgres.shop import wait_until
from tools.faults.attack import Round
from tools.faults.capture_process import CapturedLog, CaptureProcess
from tools.faults.counts import Faults
from tools.faults.judge import Verdict, judge_captures
from tools.faults.modes import MODES

pytestmark = pytest.mark.server


@pytest.mark.parametrize(
    ("version", "mode", "stalls"), [(16, "v2-two-phase-slot", 0), (18, "v4-parallel-two-phase", 1)]
)
def test_nothing_is_lost_repeated_or_visible_though_rolled_back(
    version: int, mode: str, stalls: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Captures killed, the server stopped, connections cut and silent: the log says what the witness says.

    The command, which allows a server half a minute of silence, is attacked where none is silent.
    """
    server: EmbeddedServer = request.getfixturevalue(f"attacked{version}")
    (chosen,) = (known for known in MODES if known.name == mode)
    faults, commands = Faults(kills=4, stops=1, cuts=1, stalls=stalls, tidies=2), 0.0 if stalls else 0.5
    report = Round(server, chosen, faults, tmp_path / mode, seed=version, commands=commands).run()
    assert report.verdict.good, report.verdict.problems
    counts = report.counts
    assert counts.kills >= 4 and (counts.stops, counts.cuts, counts.compactions + counts.prunes) == (1, 1, 2)
    assert counts.stalls == counts.noticed == stalls
    assert min(counts.transactions, counts.rolled_back) > 10 and counts.entries > counts.changes


def test_a_capture_that_gives_up_fails_its_round(attacked18: EmbeddedServer, tmp_path: Path) -> None:
    """Though another one is started, and the log says the truth; one that is killed has not given up."""
    captured = CapturedLog(attacked18.dsn, "no_such_slot", "p", tmp_path / "log", MODES[0])
    process, verdict = CaptureProcess(captured, tmp_path / "said.txt", random.Random(1)), Verdict()
    process.ensure()
    wait_until(lambda: not process.runs, 60)
    process.ensure()
    assert process.kill()
    judge_captures(process.ended, verdict)
    assert verdict == Verdict(ended=1, problems=verdict.problems) and not verdict.good
    assert "status 1; last line of" in verdict.problems[0] and "create the slot" in verdict.problems[0]
