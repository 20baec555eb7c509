"""The short form of ``python -m tools.faults capture``: everything is broken at least once, and nothing is lost."""

import random
from pathlib import Path

import pytest

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from tests.postgres.shop import wait_until
from tools.faults.__main__ import line
from tools.faults.attack import Round
from tools.faults.capture_process import CapturedLog, CaptureProcess
from tools.faults.counts import Faults
from tools.faults.fault_injection import Breaking
from tools.faults.judge import Verdict, judge_captures
from tools.faults.modes import MODES
from tools.faults.obstacles import break_decoding

pytestmark = pytest.mark.server


@pytest.mark.parametrize(
    ("version", "mode", "kills", "stalls", "rollbacks"),
    [
        pytest.param(15, "v2", 4, 0, 3, marks=pytest.mark.long),
        pytest.param(16, "v2-two-phase-slot", 4, 0, 0, marks=pytest.mark.long),
        pytest.param(18, "v4-parallel-two-phase", 4, 1, 0, marks=pytest.mark.long),
        pytest.param(18, "v4-parallel-two-phase", 2, 0, 0, marks=pytest.mark.long),
    ],
)
def test_nothing_is_lost_repeated_or_visible_though_rolled_back(
    version: int, mode: str, kills: int, stalls: int, rollbacks: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Captures killed, the server stopped, connections cut and silent: the log says what the witness says.

    The command, which allows a server half a minute of silence, is attacked where none is silent.
    """
    server: EmbeddedServer = request.getfixturevalue(f"attacked{version}")
    (chosen,) = (known for known in MODES if known.name == mode)
    faults = Faults(kills=kills, stops=1, cuts=1, stalls=stalls, tidies=2, rollbacks=rollbacks)
    commands = 0.0 if stalls else 0.5
    for attempt in range(3):
        directory = tmp_path / f"{mode}-{attempt}"
        report = Round(server, chosen, faults, directory, seed=version + attempt, commands=commands).run()
        assert report.verdict.good, report.verdict.problems
        counts = report.counts
        if not counts.undecodable:  # else the server lost its own slot, which it seldom does: another round
            break
    assert not counts.undecodable and counts.kills >= kills
    assert (counts.stops, counts.cuts, counts.compactions + counts.prunes) == (1 + rollbacks, 1, 2)
    assert bool(counts.rollbacks) == bool(rollbacks)
    assert counts.stalls == counts.noticed == stalls
    assert min(counts.transactions, counts.rolled_back) > 10 and counts.entries > counts.changes


class Undecodable(Round):
    """A round at whose end the server writes a transaction that it cannot decode, and others after it."""

    tampered = False
    """Whether the witness then forgets one of the transactions before."""

    def _attack(self, breaking: Breaking) -> None:
        super()._attack(breaking)
        with self._connect() as connection:
            connection.execute("CREATE TABLE broken (id bigint, mark text)")
            break_decoding(self.server, self._dbname, 1, "broken")
            connection.execute("INSERT INTO item SELECT nextval('marks'), nextval('marks'), 'x', 1")
            if self.tampered:
                connection.execute("DELETE FROM witness WHERE xid = (SELECT xid FROM witness ORDER BY serial LIMIT 1)")


@pytest.mark.parametrize(("tampered", "commands"), [(False, 1.0), (True, 0.0)])
@pytest.mark.long
def test_a_slot_that_the_server_cannot_decode(
    attacked18: EmbeddedServer, tmp_path: Path, tampered: bool, commands: float
) -> None:
    """What was decoded is compared, by the command and the function, and a difference in it is found all the same."""
    (mode,) = (known for known in MODES if known.name == "v1-two-phase-slot")
    directory = tmp_path / f"undecodable-{tampered:d}"
    attack = Undecodable(attacked18, mode, Faults(seconds=3), directory, seed=1, commands=commands)
    attack.tampered = tampered
    report = attack.run()
    assert report.counts.undecodable == 1 and report.counts.transactions > 10
    assert report.verdict.good is not tampered, report.verdict.problems
    assert bool(report.verdict.visible) is tampered
    assert "slots that the server could not decode 1" in line(report, "")


def test_a_capture_that_gives_up_fails_its_round(attacked18: EmbeddedServer, tmp_path: Path) -> None:
    """Though another one is started, and the log says the truth; one that is killed has not given up."""
    captured = CapturedLog(attacked18.dsn, "no_such_slot", "p", tmp_path / "log", MODES[0])
    process, verdict = CaptureProcess(captured, tmp_path / "said.txt", random.Random(1)), Verdict()
    process.ensure()
    wait_until(lambda: not process.runs)
    process.ensure()
    assert process.kill()
    judge_captures(process.ended, verdict)
    assert verdict == Verdict(ended=1, problems=verdict.problems) and not verdict.good
    assert "status 1; last line of" in verdict.problems[0] and "create the slot" in verdict.problems[0]
