"""The short form of ``python -m tools.faults tables``: a log's tables are the same whatever upkeep does to it."""

from pathlib import Path
from typing import Any

import pytest

from pgoutput_construct.demo.embedded_server import EmbeddedServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.mark.long
def test_tables_are_the_same_before_and_after(server18: EmbeddedServer, spark: Any, tmp_path: Path) -> None:
    """Compacted and pruned while a capture and a reader run; a reader that lacks pruned changes gets an error."""
    from tools.faults.rebuilder import Rebuilder
    from tools.faults.upkeep_tables import attack

    report = attack(server18, Rebuilder(spark), tmp_path, 300, print, copy=False)
    assert report.segments >= 300 > report.compacted_to and report.removed > 0
    assert report.comparisons >= 5 and report.refused >= 5 and min(report.captured, report.rows) > 500
