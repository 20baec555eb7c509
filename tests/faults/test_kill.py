"""The short form of ``python -m tools.faults capture``: everything is broken at least once, and nothing is lost."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tools.faults.attack import Round
from tools.faults.counts import Faults
from tools.faults.modes import MODES

if TYPE_CHECKING:
    from pgoutput_construct.demo.server import EmbeddedServer

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
